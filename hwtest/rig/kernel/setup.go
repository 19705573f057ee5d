package kernel

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/gostmmac/gostmmac/hwtest/rig/debian"
)

// Options says what Setup does.
type Options struct {
	Cache string       // the cache folder
	Tree  *debian.Tree // its tree, with Packages and the kernels of Archs
	// Glue is the folder with the source of the glue, hwtest/rig/glue-gpl.
	Glue string
	// Progress gets a line for each step.
	Progress io.Writer
}

// machine is what Setup needs of the cache folder and the machine.
type machine struct {
	kernel func(arch string) (*debian.Kernel, error)
	clone  func(dir string) error
	unpack func(ctx context.Context, log io.Writer, dir string, packages ...debian.Package) error
	inside func(ctx context.Context, log io.Writer, dir, program string, args ...string) error
}

// Setup makes what the cache folder lacks of the kernels of all architectures: it unpacks
// the packages that are kept there, builds the sets of modules in a copy of the tree, and
// keeps the results. Kernels that are complete are not touched. It needs what
// debian.Inside needs, and no network.
func Setup(ctx context.Context, o Options) error {
	return machine{kernel: o.Tree.Kernel, clone: o.Tree.CloneTo, unpack: o.Tree.Unpack, inside: debian.Inside}.setup(ctx, o)
}

func (m machine) setup(ctx context.Context, o Options) (err error) {
	if o.Progress == nil {
		o.Progress = io.Discard
	}
	b := &build{machine: m, Options: o, begin: time.Now(), root: filepath.Join(o.Cache, "build")}
	var missing []recipe
	sums := map[string]string{}
	for _, r := range recipes() {
		sum, err := r.sum(o.Glue)
		if err != nil {
			return &Error{"read the recipe", r.arch, err, "name the folder of the glue"}
		}
		k, err := m.kernel(r.arch)
		if err != nil {
			return &Error{"start", r.arch, err, ""}
		}
		sums[r.arch] = sum
		old, err := read(filepath.Join(o.Cache, folder, r.arch))
		switch {
		case err != nil:
			b.say("the kernel for %s is not complete: %v", r.arch, err)
		case old.Release != k.Release || old.Version != k.Version:
			b.say("the kernel for %s is %s %s and becomes %s %s", r.arch, old.Release, old.Version, k.Release, k.Version)
		case old.Recipe != sum:
			b.say("the modules for %s are to be built another way", r.arch)
		default:
			continue
		}
		missing = append(missing, r)
	}
	if len(missing) == 0 {
		return nil
	}
	if b.log, err = os.Create(filepath.Join(o.Cache, "kernels.log")); err != nil {
		return &Error{"make the log", missing[0].arch, err, ""}
	}
	defer func() { err = errors.Join(err, b.log.Close()) }()
	for _, r := range missing {
		if err := b.one(ctx, r, sums[r.arch]); err != nil {
			return err
		}
	}
	return nil
}

// build is one run of Setup.
type build struct {
	machine
	Options
	root  string // a clone of the tree, for one kernel
	log   *os.File
	begin time.Time // only for what is shown
}

func (b *build) say(format string, args ...any) {
	fmt.Fprintf(b.Progress, "rig setup: %3.0f s: "+format+"\n", append([]any{time.Since(b.begin).Seconds()}, args...)...)
}

// step is a part of the work on a kernel, with its name for errors.
type step struct {
	op  string
	run func() error
}

// one makes the folder of a kernel.
func (b *build) one(ctx context.Context, r recipe, sum string) (err error) {
	k, err := b.kernel(r.arch)
	if err != nil {
		return &Error{"start", r.arch, err, ""}
	}
	place := filepath.Join(b.Cache, folder, r.arch)
	fresh := place + ".new"
	modules := filepath.Join(b.root, "usr/lib/modules", k.Release)
	steps := []step{
		{"make the folder", func() error {
			return errors.Join(os.RemoveAll(b.root), os.RemoveAll(fresh), os.MkdirAll(filepath.Join(fresh, stockName), 0o755), b.clone(b.root))
		}},
		{"unpack " + k.Release, func() error {
			return b.unpack(ctx, b.log, b.root, slices.Concat(k.Image, k.Headers, k.Source)...)
		}},
		{"unpack the source", func() error { return b.source(ctx, r, k) }},
	}
	for _, s := range r.sets {
		steps = append(steps, step{"build the modules of " + s.name, func() error { return b.set(ctx, r, s, k, fresh) }})
	}
	steps = append(steps,
		step{"keep Debian's own modules", func() error { return b.stock(ctx, r, modules, fresh) }},
		step{"keep the image", func() error { return os.Rename(image(b.root, k.Release), filepath.Join(fresh, vmlinuzName)) }},
		step{"write the manifest", func() error {
			files, err := describe(fresh, k.Release)
			if err != nil {
				return err
			}
			m := manifest{Release: k.Release, Version: k.Version, Recipe: sum, Files: files}
			return errors.Join(m.write(fresh), os.RemoveAll(place), os.Rename(fresh, place))
		}})
	defer func() { err = errors.Join(err, os.RemoveAll(b.root)) }()
	for _, s := range steps {
		b.say("%s: %s", r.arch, s.op)
		fmt.Fprintf(b.log, "== %s: %s\n", r.arch, s.op)
		if err := s.run(); err != nil {
			remedy := ""
			if ctx.Err() == nil {
				remedy = "look at " + b.log.Name()
			}
			return &Error{s.op, r.arch, err, remedy}
		}
	}
	b.say("%s: complete: linux %s in %s", r.arch, k.Release, place)
	return nil
}

// image is where Debian's packages have the kernel: with its modules, or in the folder boot.
func image(root, release string) string {
	with := filepath.Join(root, "usr/lib/modules", release, vmlinuzName)
	if _, err := os.Stat(with); err == nil {
		return with
	}
	return filepath.Join(root, "boot", vmlinuzName+"-"+release)
}

// sourceDir is the folder of the kernel's source in the clone, with its name there.
const sourceDir = "source"

// source unpacks what the recipe takes of the kernel's source.
func (b *build) source(ctx context.Context, r recipe, k *debian.Kernel) error {
	if err := os.Mkdir(filepath.Join(b.root, sourceDir), 0o755); err != nil {
		return err
	}
	name := k.Source[0].Name
	args := []string{"-C", "/" + sourceDir, "--strip-components=1", "-xf", "/usr/src/" + name + ".tar.xz"}
	for _, p := range r.sources() {
		args = append(args, name+"/"+p)
	}
	return b.inside(ctx, b.log, b.root, "/usr/bin/tar", args...)
}

// set builds the modules of a set and keeps them.
func (b *build) set(ctx context.Context, r recipe, s set, k *debian.Kernel, fresh string) error {
	dir := filepath.Join(b.root, s.name)
	if err := b.lay(r, s, dir); err != nil {
		return err
	}
	// CONFIG_DEBUG_INFO_BTF_MODULES is off because it needs pahole.
	err := b.inside(ctx, b.log, b.root, "/usr/bin/make", "-j"+strconv.Itoa(runtime.NumCPU()), "-C", "/usr/src/linux-headers-"+k.Release, "M=/"+s.name,
		"DEB_BUILD_ARCH="+runtime.GOARCH, "CONFIG_DEBUG_INFO_BTF_MODULES=", "KCFLAGS=-g0", "modules")
	if err != nil {
		return err
	}
	built := 0
	err = filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		if err != nil || filepath.Ext(p) != ".ko" {
			return err
		}
		built++
		return move(p, filepath.Join(fresh, s.name, filepath.Base(p)))
	})
	if err == nil && built == 0 {
		err = errors.New("no module came out of it")
	}
	return err
}

// lay puts the source of a set into dir, with the files of ours.
func (b *build) lay(r recipe, s set, dir string) error {
	for _, p := range s.parts {
		from := filepath.Join(b.root, sourceDir, filepath.FromSlash(p.from))
		i, err := os.Stat(from)
		if err != nil {
			return err
		}
		to := filepath.Join(dir, filepath.FromSlash(p.to))
		if i.IsDir() {
			err = os.CopyFS(to, os.DirFS(from))
		} else {
			err = copyFile(from, to)
		}
		if err != nil {
			return err
		}
	}
	ours := path.Join("kbuild", r.arch, s.name)
	err := fs.WalkDir(kbuild, ours, func(p string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := kbuild.ReadFile(p)
		if err != nil {
			return err
		}
		return writeFile(filepath.Join(dir, filepath.FromSlash(strings.TrimPrefix(p, ours))), text)
	})
	if err != nil {
		return err
	}
	if s.spans != "" {
		text, err := os.ReadFile(filepath.Join(b.root, sourceDir, filepath.FromSlash(spanSource)))
		if err != nil {
			return err
		}
		cut, err := spanIterator(string(text))
		if err != nil {
			return err
		}
		if err := writeFile(filepath.Join(dir, filepath.FromSlash(s.spans)), []byte(cut)); err != nil {
			return err
		}
	}
	if !s.glue {
		return nil
	}
	glue, err := glueFiles(b.Glue)
	for _, f := range glue {
		err = errors.Join(err, copyFile(f, filepath.Join(dir, filepath.Base(f))))
	}
	return err
}

// stock keeps Debian's own modules of the recipe, and all that these and the sets depend on.
func (b *build) stock(ctx context.Context, r recipe, modules, fresh string) error {
	packed := map[string]string{}
	err := filepath.WalkDir(modules, func(p string, d fs.DirEntry, err error) error {
		if name, ok := strings.CutSuffix(filepath.Base(p), ".ko.xz"); ok {
			packed[ModuleName(name)] = p
		}
		return err
	})
	if err != nil {
		return err
	}
	built, err := filepath.Glob(filepath.Join(fresh, "*", "*.ko"))
	if err != nil {
		return err
	}
	have := map[string]bool{}
	var wanted []string
	look := func(file string) error {
		text, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		m, err := parseModule(text)
		if err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
		wanted = append(wanted, m.depends...)
		return nil
	}
	inSets := map[string]bool{}
	for _, f := range built {
		inSets[ModuleName(strings.TrimSuffix(filepath.Base(f), ".ko"))] = true
		if err := look(f); err != nil {
			return err
		}
	}
	// A module of a set that Debian has too is only kept if it is asked for.
	wanted = slices.DeleteFunc(wanted, func(n string) bool { return inSets[n] && packed[n] == "" })
	for _, n := range r.stock {
		wanted = append(wanted, ModuleName(n))
	}
	for len(wanted) > 0 {
		args := []string{"-d"}
		var unpacked []string
		for _, n := range wanted {
			if have[n] {
				continue
			}
			have[n] = true
			p, ok := packed[n]
			if !ok {
				return fmt.Errorf("there is no module %s among Debian's own: %w", n, os.ErrNotExist)
			}
			rel, err := filepath.Rel(b.root, p)
			if err != nil {
				return err
			}
			args = append(args, "/"+filepath.ToSlash(rel))
			unpacked = append(unpacked, strings.TrimSuffix(p, ".xz"))
		}
		wanted = nil
		if len(unpacked) == 0 {
			break
		}
		if err := b.inside(ctx, b.log, b.root, "/usr/bin/xz", args...); err != nil {
			return err
		}
		for _, f := range unpacked {
			if err := look(f); err != nil {
				return err
			}
			if err := move(f, filepath.Join(fresh, stockName, filepath.Base(f))); err != nil {
				return err
			}
		}
	}
	return nil
}

// glueFiles are the files of the glue that a build takes.
func glueFiles(dir string) ([]string, error) {
	var all []string
	for _, pattern := range []string{"*.c", "Kbuild.glue"} {
		found, err := filepath.Glob(filepath.Join(dir, pattern))
		if err == nil && len(found) == 0 {
			err = fmt.Errorf("no %s in %q: %w", pattern, dir, os.ErrNotExist)
		}
		if err != nil {
			return nil, err
		}
		all = append(all, found...)
	}
	return all, nil
}

// move renames a file into a folder that it makes.
func move(from, to string) error {
	return errors.Join(os.MkdirAll(filepath.Dir(to), 0o755), os.Rename(from, to))
}

func copyFile(from, to string) error {
	b, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	return writeFile(to, b)
}

// writeFile writes a file in a folder that it makes.
func writeFile(name string, b []byte) error {
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return err
	}
	return os.WriteFile(name, b, 0o644)
}
