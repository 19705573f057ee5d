package jobs

import (
	"errors"
	"os"
)

// ReadFile reads a file, of sysfs for example.
type ReadFile struct {
	returns[[]byte]
	Path string
}

// Name implements Job.
func (ReadFile) Name() string { return "read" }

func (j ReadFile) run(run) (any, error) { return os.ReadFile(j.Path) }

// WriteFile writes into a file that is there, with one system call, as sysfs wants it.
type WriteFile struct {
	returns[None]
	Path string
	Text string
}

// Name implements Job.
func (WriteFile) Name() string { return "write" }

func (j WriteFile) run(run) (_ any, err error) {
	f, err := os.OpenFile(j.Path, os.O_WRONLY|os.O_TRUNC, 0)
	if err != nil {
		return nil, err
	}
	_, err = f.WriteString(j.Text)
	return None{}, errors.Join(err, f.Close())
}

// List lists the names in a folder, sorted.
type List struct {
	returns[[]string]
	Path string
}

// Name implements Job.
func (List) Name() string { return "list" }

func (j List) run(run) (any, error) {
	entries, err := os.ReadDir(j.Path)
	names := []string{}
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names, err
}

// ReadLink says where a symbolic link points: sysfs shows drivers and groups so.
type ReadLink struct {
	returns[string]
	Path string
}

// Name implements Job.
func (ReadLink) Name() string { return "readlink" }

func (j ReadLink) run(run) (any, error) { return os.Readlink(j.Path) }

// Permit gives a file to a group and sets who may do what with it, as udev does with device
// nodes.
type Permit struct {
	returns[None]
	Path string
	GID  uint32
	Mode uint32 // bits of chmod(2)
}

// Name implements Job.
func (Permit) Name() string { return "permit" }

func (j Permit) run(run) (any, error) {
	const root = 0
	return None{}, errors.Join(os.Chown(j.Path, root, int(j.GID)), os.Chmod(j.Path, os.FileMode(j.Mode&0o777)))
}
