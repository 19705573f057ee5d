package kernel

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/gostmmac/gostmmac/hwtest/rig/debian"
)

// Names in the folder of a kernel, which is kernels/<arch> of the cache folder.
const (
	folder       = "kernels"
	manifestName = "manifest.json"
	vmlinuzName  = "vmlinuz"
	stockName    = "stock" // modules of Debian's
)

// Error is a failure of a call of this package. It wraps debian.ErrIncomplete when a
// cache folder lacks a kernel.
type Error struct {
	Op     string // the step
	Arch   string // of the kernel, in Debian's words
	Err    error
	Remedy string // what to do about it, or ""
}

// Error implements error.
func (e *Error) Error() string {
	s := fmt.Sprintf("kernel for %s: %s: %v", e.Arch, e.Op, e.Err)
	if e.Remedy != "" {
		s += ": " + e.Remedy
	}
	return s
}

// Unwrap returns the reason.
func (e *Error) Unwrap() error { return e.Err }

// manifest says what the folder of a kernel holds.
type manifest struct {
	Release string `json:"release"`
	Version string `json:"version"`
	Recipe  string `json:"recipe"`
	Files   []file `json:"files"`
}

// file is one below the folder.
type file struct {
	Path    string   `json:"path"` // with slashes: vmlinuz, stock/x.ko, <set>/x.ko
	Size    int64    `json:"size"`
	SHA256  string   `json:"sha256"`
	Module  string   `json:"module,omitempty"`
	Depends []string `json:"depends,omitempty"`
}

// Kernel is a kernel that guests can run.
type Kernel struct {
	Arch    string // in Debian's words
	Release string // what uname -r says
	Version string // of Debian's packages
	dir     string
	files   []file
}

// Open returns the kernel for an architecture of the cache folder. One that is not there,
// or of which files are missing, is an error that is debian.ErrIncomplete.
func Open(cache, arch string) (*Kernel, error) {
	dir := filepath.Join(cache, folder, arch)
	m, err := read(dir)
	if err != nil {
		return nil, &Error{"open", arch, err, "go run ./hwtest/rig setup makes it"}
	}
	return &Kernel{Arch: arch, Release: m.Release, Version: m.Version, dir: dir, files: m.Files}, nil
}

// read reads the manifest of a kernel and looks whether its files are there.
func read(dir string) (*manifest, error) {
	b, err := os.ReadFile(filepath.Join(dir, manifestName))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", debian.ErrIncomplete, err)
	}
	m := new(manifest)
	if err := json.Unmarshal(b, m); err != nil {
		return nil, fmt.Errorf("%w: %s: %w", debian.ErrIncomplete, manifestName, err)
	}
	for _, f := range m.Files {
		if !filepath.IsLocal(filepath.FromSlash(f.Path)) {
			return nil, fmt.Errorf("%w: %s names %q", debian.ErrIncomplete, manifestName, f.Path)
		}
		i, err := os.Stat(filepath.Join(dir, filepath.FromSlash(f.Path)))
		if err != nil {
			return nil, fmt.Errorf("%w: %w", debian.ErrIncomplete, err)
		}
		if i.Size() != f.Size {
			return nil, fmt.Errorf("%w: %s has %d bytes instead of %d", debian.ErrIncomplete, f.Path, i.Size(), f.Size)
		}
	}
	if m.Release == "" || !slices.ContainsFunc(m.Files, func(f file) bool { return f.Path == vmlinuzName }) {
		return nil, fmt.Errorf("%w: %s names no kernel", debian.ErrIncomplete, manifestName)
	}
	return m, nil
}

// Image is the file of the kernel, as QEMU takes it.
func (k *Kernel) Image() string { return filepath.Join(k.dir, vmlinuzName) }

// Load returns the modules that names need, each behind what it depends on. Modules are
// taken from the sets, in that order, and else from Debian's own. A module that is not kept
// is an error that is os.ErrNotExist.
func (k *Kernel) Load(sets []string, names ...string) ([]Module, error) {
	found := map[string]file{}
	for _, set := range append(slices.Clone(sets), stockName) {
		any := false
		for _, f := range k.files {
			if f.Module == "" || !strings.HasPrefix(f.Path, set+"/") {
				continue
			}
			any = true
			if _, ok := found[f.Module]; !ok {
				found[f.Module] = f
			}
		}
		if !any {
			return nil, &Error{"find modules", k.Arch, fmt.Errorf("there is no set %q: %w", set, os.ErrNotExist), ""}
		}
	}
	ordered, err := order(names, func(name string) ([]string, error) {
		f, ok := found[name]
		if !ok {
			return nil, fmt.Errorf("%s is not kept: %w", name, os.ErrNotExist)
		}
		return f.Depends, nil
	})
	if err != nil {
		return nil, &Error{"find modules", k.Arch, err, "the list of those that are kept is in recipe.go"}
	}
	var all []Module
	for _, n := range ordered {
		all = append(all, Module{Name: n, File: filepath.Join(k.dir, filepath.FromSlash(found[n].Path))})
	}
	return all, nil
}

// describe lists the files of a kernel's folder, and checks that the modules are of its release.
func describe(dir, release string) ([]file, error) {
	var all []file
	for _, pattern := range []string{vmlinuzName, "*/*.ko"} {
		found, err := filepath.Glob(filepath.Join(dir, pattern))
		if err != nil {
			return nil, err
		}
		for _, name := range found {
			b, err := os.ReadFile(name)
			if err != nil {
				return nil, err
			}
			rel, err := filepath.Rel(dir, name)
			if err != nil {
				return nil, err
			}
			h := sha256.Sum256(b)
			f := file{Path: filepath.ToSlash(rel), Size: int64(len(b)), SHA256: hex.EncodeToString(h[:])}
			if filepath.Ext(name) == ".ko" {
				m, err := parseModule(b)
				if err != nil {
					return nil, fmt.Errorf("%s: %w", rel, err)
				}
				if r, _, _ := strings.Cut(m.vermagic, " "); r != release {
					return nil, fmt.Errorf("%s is for %q and not for %s", rel, r, release)
				}
				f.Module, f.Depends = ModuleName(m.name), m.depends
			}
			all = append(all, f)
		}
	}
	return all, nil
}

// write writes the manifest, behind all the rest, so a folder with one is complete.
func (m *manifest) write(dir string) error {
	b, err := json.MarshalIndent(m, "", " ")
	if err != nil {
		return err
	}
	place := filepath.Join(dir, manifestName)
	return errors.Join(os.WriteFile(place+".new", append(b, '\n'), 0o644), os.Rename(place+".new", place))
}
