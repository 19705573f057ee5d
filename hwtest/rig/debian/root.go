package debian

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// archives is where apt keeps packages below the cache folder.
const archives = aptName + "/cache/archives"

// Unpack puts the content of packages that the folder keeps below dir, which is there. The
// log gets what dpkg-deb says.
func (t *Tree) Unpack(ctx context.Context, log io.Writer, dir string, packages ...Package) error {
	for _, p := range packages {
		if _, err := thisMachine().run(ctx, log, nil, "dpkg-deb", "-x", filepath.Join(filepath.Dir(t.Dir), archives, p.file()), dir); err != nil {
			return &Error{"unpack " + p.Name, err, "go run ./hwtest/rig setup repairs the cache folder"}
		}
	}
	return nil
}

// Lock waits until nobody else, in any process, fills the cache folder dir or has its lock.
func Lock(dir string) (unlock func() error, err error) {
	unlock, err = lockFile(filepath.Join(dir, lockName))
	if err != nil {
		return nil, &Error{"lock the cache folder", err, ""}
	}
	return unlock, nil
}

// CloneTo makes dir, which must not be there, a second tree with the same files: links, so
// nothing is copied. What is written there anew is no part of this tree; nothing of it may
// be changed in place.
func (t *Tree) CloneTo(dir string) error {
	err := filepath.WalkDir(t.Dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(t.Dir, path)
		if err != nil {
			return err
		}
		to := filepath.Join(dir, rel)
		switch {
		case d.IsDir():
			return os.Mkdir(to, 0o755)
		case d.Type() == fs.ModeSymlink:
			target, err := os.Readlink(path)
			if err != nil {
				return err
			}
			return os.Symlink(target, to)
		}
		return os.Link(path, to)
	})
	if err != nil {
		return &Error{"clone the tree", err, ""}
	}
	return nil
}

// Program returns the command of a program of the tree: its own dynamic loader runs it, as
// for QEMU. It suits programs that start no others; those need [Inside].
func (t *Tree) Program(name string) (command []string) {
	return []string{filepath.Join(t.Dir, t.port.loader), "--library-path", filepath.Join(t.Dir, "usr/lib", t.port.triple), filepath.Join(t.Dir, "usr/bin", name)}
}

// Inside runs a program in a tree as if that were the whole system (chroot(2)), with the
// machine's /dev, and waits for its end. The name of the program is a path in the tree.
// Output and messages go to log. It takes root, or a machine where a user may make
// namespaces (user_namespaces(7)).
func Inside(ctx context.Context, log io.Writer, dir, program string, args ...string) error {
	err := inside(ctx, log, dir, program, args...)
	if err == nil {
		return nil
	}
	remedy := ""
	if errors.Is(err, errEnter) {
		remedy = "run as root, or allow users to make namespaces (sysctl kernel.unprivileged_userns_clone, user.max_user_namespaces, kernel.apparmor_restrict_unprivileged_userns); sh, mount and chroot of the machine are needed"
	}
	return &Error{fmt.Sprintf("run %s in %s", program, dir), err, remedy}
}

// errEnter is why a program in a tree was not even started.
var errEnter = errors.New("the tree cannot be entered")
