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
	"strings"
)

// Manifest says what a cache folder holds.
type Manifest struct {
	Arch     string    `json:"arch"`
	Suites   []string  `json:"suites"`
	Mirror   string    `json:"mirror"` // without user and password
	Wanted   []string  `json:"wanted"` // sorted
	Packages []Package `json:"packages"`
	Kernels  []Kernel  `json:"kernels,omitempty"` // sorted by architecture
	Files    []File    `json:"files"`             // of the tree
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

// wanted names what was asked for, with versions.
func (m *Manifest) wanted() string {
	var all []string
	for _, p := range m.Wanted {
		all = append(all, p+" "+m.Version(p))
	}
	return strings.Join(all, ", ")
}

// Names in a cache folder.
const (
	manifestName = "manifest.json"
	treeName     = "tree"
	aptName      = "apt"
	lockName     = "lock"
)

// Packages of QEMU that a cache folder can hold, by the processors of the machines that
// they emulate.
const (
	QEMUArm = "qemu-system-arm" // arm and arm64
	QEMUX86 = "qemu-system-x86" // i386 and amd64
)

// systems says which program shows that a package of QEMU runs: that of the processor
// that Tree.System takes.
var systems = map[string]string{QEMUArm: "aarch64", QEMUX86: "x86_64"}

// minQEMU is the first version with GMACs on npcm845-evb and with vfio-user-pci in
// Debian's packages. These have the qtest accelerator since then too.
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
	if m := t.Manifest; m.Arch != p.arch || len(m.Packages) == 0 || len(m.Files) == 0 || !slices.Equal(m.Suites, []string{suite, backports}) || !slices.Equal(m.Wanted, sorted(m.Wanted)) || !areNames(m.Wanted) || !slices.Equal(m.archs(), sorted(m.archs())) {
		return nil, fmt.Errorf("%w: %s is of another kind", ErrIncomplete, manifestName)
	}
	return t, nil
}

// check compares the sizes of all files with the manifest, and looks whether the packages
// of kernels are there.
func (t *Tree) check() error {
	for _, k := range t.Manifest.Kernels {
		for _, p := range k.packages() {
			if p.file() != filepath.Base(p.file()) {
				return fmt.Errorf("%w: %s names the package %q", ErrIncomplete, manifestName, p.file())
			}
			if _, err := os.Stat(filepath.Join(filepath.Dir(t.Dir), archives, p.file())); err != nil {
				return fmt.Errorf("%w: %w", ErrIncomplete, err)
			}
		}
	}
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

// Has says whether the tree was made with packages. One that is missing is an error that
// is ErrIncomplete.
func (t *Tree) Has(packages ...string) error {
	if err := t.lacks(packages); err != nil {
		return &Error{"open " + filepath.Dir(t.Dir), err, "go run ./hwtest/rig setup adds it"}
	}
	return nil
}

// lacks says which of packages is missing.
func (t *Tree) lacks(packages []string) error {
	for _, p := range packages {
		if !slices.Contains(t.Manifest.Wanted, p) {
			return fmt.Errorf("%w: it was filled without %s", ErrIncomplete, p)
		}
	}
	return nil
}

// hasKernels says whether the folder holds the kernels for all architectures.
func (t *Tree) hasKernels(archs []string) error {
	for _, a := range archs {
		if _, err := t.Kernel(a); err != nil {
			return err
		}
	}
	return nil
}

// QEMU returns the command of QEMU's boards with 64-bit arm processors (which has those
// with 32 bits too), as System does. They are in QEMUArm.
func (t *Tree) QEMU() (command, env []string) { return t.System(systems[QEMUArm]) }

// System returns the command of QEMU's machines with a processor (in QEMU's words:
// aarch64, x86_64) and what its environment needs: the tree's own dynamic loader runs
// it, so that the machine's libraries take no part. Whether the tree has it is for Has
// to say.
func (t *Tree) System(processor string) (command, env []string) {
	return append(t.Program("qemu-system-"+processor), "-L", filepath.Join(t.Dir, "usr/share/qemu"), "-L", filepath.Join(t.Dir, "usr/share/seabios")),
		[]string{"QEMU_MODULE_DIR=" + filepath.Join(t.Dir, "usr/lib", t.port.triple, "qemu")}
}
