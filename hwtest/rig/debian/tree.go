package debian

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
)

// Manifest says what a cache folder holds.
type Manifest struct {
	Arch     string    `json:"arch"`
	Suites   []string  `json:"suites"`
	Mirror   string    `json:"mirror"` // without user and password
	Wanted   []string  `json:"wanted"`
	Packages []Package `json:"packages"`
	Files    []File    `json:"files"` // of the tree
}

// File is a regular file or a symbolic link of a tree.
type File struct {
	Path string `json:"path"`
	Size int64  `json:"size"`
}

// Version returns the version of a package, or "".
func (m *Manifest) Version(name string) string {
	for _, p := range m.Packages {
		if p.Name == name {
			return p.Version
		}
	}
	return ""
}

// Names in a cache folder.
const (
	manifestName = "manifest.json"
	treeName     = "tree"
	aptName      = "apt"
)

// qemuPackage is the package of QEMU's boards with arm processors.
const qemuPackage = "qemu-system-arm"

// minQEMU is the first version with GMACs on npcm845-evb. Debian's packages have
// the qtest accelerator since then too.
const minQEMU = 11

// Tree is a folder of programs.
type Tree struct {
	Dir      string // absolute
	Manifest Manifest
	port     port
}

// DefaultDir is the cache folder where none is named: gostmmac-rig in the user's cache
// folder.
func DefaultDir() (string, error) {
	base, err := os.UserCacheDir()
	if err != nil {
		return "", &Error{"find the user's cache folder", err, "name a cache folder for the rigs"}
	}
	return filepath.Join(base, "gostmmac-rig"), nil
}

// Open returns the tree of the cache folder dir. One that is not there, or of which files
// are missing, is an error that is ErrIncomplete.
func Open(dir string) (*Tree, error) {
	t, err := read(dir)
	if err == nil {
		err = t.check()
	}
	if err != nil {
		return nil, &Error{"open " + dir, err, "go run ./hwtest/rig setup fills it"}
	}
	return t, nil
}

// read reads the manifest of the cache folder dir.
func read(dir string) (*Tree, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	p, ok := portOf(runtime.GOARCH)
	if !ok {
		return nil, fmt.Errorf("QEMU for a machine with %s: %w", runtime.GOARCH, errors.ErrUnsupported)
	}
	b, err := os.ReadFile(filepath.Join(dir, manifestName))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrIncomplete, err)
	}
	t := &Tree{Dir: filepath.Join(dir, treeName), port: p}
	if err := json.Unmarshal(b, &t.Manifest); err != nil {
		return nil, fmt.Errorf("%w: %s: %w", ErrIncomplete, manifestName, err)
	}
	if m := t.Manifest; m.Arch != p.arch || len(m.Packages) == 0 || len(m.Files) == 0 || !slices.Equal(m.Suites, []string{suite, backports}) {
		return nil, fmt.Errorf("%w: %s is of another kind", ErrIncomplete, manifestName)
	}
	return t, nil
}

// check compares the sizes of all files with the manifest.
func (t *Tree) check() error {
	for _, f := range t.Manifest.Files {
		if !filepath.IsLocal(filepath.FromSlash(f.Path)) {
			return fmt.Errorf("%w: %s names %q", ErrIncomplete, manifestName, f.Path)
		}
		i, err := os.Lstat(filepath.Join(t.Dir, filepath.FromSlash(f.Path)))
		if err != nil {
			return fmt.Errorf("%w: %w", ErrIncomplete, err)
		}
		if i.Size() != f.Size {
			return fmt.Errorf("%w: %s has %d bytes instead of %d", ErrIncomplete, f.Path, i.Size(), f.Size)
		}
	}
	return nil
}

// files lists what is in the folder dir.
func files(dir string) ([]File, error) {
	var all []File
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		i, err := d.Info()
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(dir, path)
		all = append(all, File{filepath.ToSlash(rel), i.Size()})
		return err
	})
	return all, err
}

// QEMU returns the command of QEMU's boards with 64-bit arm processors (which has those
// with 32 bits too) and what its environment needs: the tree's own dynamic loader runs
// it, so that the machine's libraries take no part.
func (t *Tree) QEMU() (command, env []string) {
	lib := filepath.Join(t.Dir, "usr/lib", t.port.triple)
	return []string{
		filepath.Join(t.Dir, t.port.loader), "--library-path", lib,
		filepath.Join(t.Dir, "usr/bin/qemu-system-aarch64"), "-L", filepath.Join(t.Dir, "usr/share/qemu"),
	}, []string{"QEMU_MODULE_DIR=" + filepath.Join(lib, "qemu")}
}
