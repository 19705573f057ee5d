package vfio

import (
	"errors"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// tree is a kernel that has files alone: those below a directory. Whoever opens a
// device gets errors.ErrUnsupported.
type tree struct {
	Kernel // nothing: all that is not below panics
	t      *testing.T
	dir    string
	page   int
	owners map[string][2]uint32 // of files; root's by default
	deny   map[string]error     // what cannot be opened
	wrote  []string             // "name=data"
	// onWrite does what the kernel would; the default is that there is no such file.
	onWrite func(name, data string) error
}

// newTree makes a tree of texts, each with a line per file:
//
//	path: content          a line; in quotes as in Go
//	path -> target         a symbolic link
//	path/                  a directory
func newTree(t *testing.T, texts ...string) *tree {
	t.Helper()
	k := &tree{t: t, dir: t.TempDir(), page: 4096, owners: map[string][2]uint32{}, deny: map[string]error{}}
	for _, text := range texts {
		k.add(text)
	}
	return k
}

func (k *tree) add(text string) {
	k.t.Helper()
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if line == "" {
			continue
		}
		if dir, ok := strings.CutSuffix(line, "/"); ok {
			k.must(os.MkdirAll(filepath.Join(k.dir, dir), 0o777))
			continue
		}
		name, to, isLink := strings.Cut(line, " -> ")
		content := ""
		if !isLink {
			i := strings.Index(line+" ", ": ")
			if i < 0 {
				k.t.Fatalf("%q is no line of a tree", line)
			}
			name, content = line[:i], strings.TrimPrefix(line[i:], ":")
			content = strings.TrimSpace(content)
			if q, err := strconv.Unquote(content); err == nil {
				content = q
			} else if content != "" {
				content += "\n"
			}
		}
		file := filepath.Join(k.dir, name)
		k.must(os.MkdirAll(filepath.Dir(file), 0o777))
		if isLink {
			k.must(os.RemoveAll(file))
			k.must(os.Symlink(to, file))
			continue
		}
		k.must(os.WriteFile(file, []byte(content), 0o666))
	}
}

// pci adds a function; a driver of "" is none, and a group of -1.
func (k *tree) pci(bdf, id, class, driver string, group int) {
	k.t.Helper()
	vendor, device, _ := strings.Cut(id, ":")
	dir := "sys/bus/pci/devices/" + bdf + "/"
	k.add(dir + "vendor: 0x" + vendor)
	k.add(dir + "device: 0x" + device)
	k.add(dir + "class: 0x" + class)
	k.add(dir + "irq: 16")
	k.add(dir + `resource: "0x00000000fe000000 0x00000000fe00ffff 0x0000000000040200\n0x0000000000000000 0x0000000000000000 0x0000000000000000\n"`)
	k.add(dir + "reset_method: flr bus")
	k.add(dir + "power_state: D0")
	k.add(dir + "driver_override: (null)")
	k.join("pci", bdf, driver, group)
}

// join puts a device to a driver and into a group.
func (k *tree) join(bus, name, driver string, group int) {
	k.t.Helper()
	dir := "sys/bus/" + bus + "/devices/" + name
	if driver != "" {
		k.add("sys/bus/" + bus + "/drivers/" + driver + "/")
		k.add(dir + "/driver -> ../../drivers/" + driver)
	}
	if group >= 0 {
		g := "sys/kernel/iommu_groups/" + strconv.Itoa(group)
		k.add(g + "/devices/" + name + " -> ../../../../bus/" + bus + "/devices/" + name)
		k.add(dir + "/iommu_group -> ../../../../kernel/iommu_groups/" + strconv.Itoa(group))
	}
}

// node adds a device node.
func (k *tree) node(name string, mode fs.FileMode, uid, gid uint32) {
	k.t.Helper()
	k.add(name + ":")
	k.must(os.Chmod(filepath.Join(k.dir, name), mode))
	k.owners[name] = [2]uint32{uid, gid}
}

func (k *tree) must(err error) {
	k.t.Helper()
	if err != nil {
		k.t.Fatal(err)
	}
}

func (k *tree) FS() fs.FS               { return treeFS{k} }
func (k *tree) Path(name string) string { return filepath.Join(k.dir, name) }
func (k *tree) PageSize() int           { return k.page }

func (k *tree) WriteFile(name, data string) error {
	k.wrote = append(k.wrote, name+"="+data)
	if k.onWrite == nil {
		return &fs.PathError{Op: "open", Path: "/" + name, Err: syscall.ENOENT}
	}
	return k.onWrite(name, data)
}

// treeFS is the file system of a tree.
type treeFS struct{ k *tree }

func (f treeFS) root() fs.ReadLinkFS { return os.DirFS(f.k.dir).(fs.ReadLinkFS) }

func (f treeFS) denied(op, name string) error {
	for _, d := range slices.Sorted(maps.Keys(f.k.deny)) {
		if name == d || strings.HasPrefix(name, d+"/") {
			return &fs.PathError{Op: op, Path: name, Err: f.k.deny[d]}
		}
	}
	return nil
}

func (f treeFS) Open(name string) (fs.File, error) {
	if err := f.denied("open", name); err != nil {
		return nil, err
	}
	return f.root().Open(name)
}

func (f treeFS) ReadLink(name string) (string, error) {
	if err := f.denied("readlink", name); err != nil {
		return "", err
	}
	return f.root().ReadLink(name)
}

func (f treeFS) Lstat(name string) (fs.FileInfo, error) { return f.root().Lstat(name) }

func (f treeFS) Stat(name string) (fs.FileInfo, error) {
	if err := f.denied("stat", path.Dir(name)); err != nil {
		return nil, err
	}
	i, err := fs.Stat(f.root(), name)
	if err != nil {
		return nil, err
	}
	o := f.k.owners[name]
	return ownedInfo{i, &syscall.Stat_t{Uid: o[0], Gid: o[1]}}, nil
}

// ownedInfo is a file of an owner of the test's choice.
type ownedInfo struct {
	fs.FileInfo
	stat *syscall.Stat_t
}

func (i ownedInfo) Sys() any { return i.stat }

// sysfs makes writes do what Linux does to the drivers of devices. The default
// drivers are by the name of the device. A driver that refuses takes no device.
func (k *tree) sysfs(defaults map[string]string, refuses ...string) {
	k.onWrite = func(name, data string) error {
		data = strings.TrimSuffix(data, "\n")
		file := filepath.Join(k.dir, name)
		bus := strings.Split(name, "/")[2]
		dir := "sys/bus/" + bus + "/devices/"
		switch path.Base(name) {
		case "driver_override":
			if data == "" {
				data = "(null)"
			}
			if _, err := os.Stat(file); err != nil {
				return err
			}
			return os.WriteFile(file, []byte(data+"\n"), 0o666)
		case "unbind":
			// Through the device, or through the driver.
			if linkBase(k.FS(), dir+data+"/driver") == "" {
				return &fs.PathError{Op: "write", Path: "/" + name, Err: syscall.ENODEV}
			}
			return os.Remove(filepath.Join(k.dir, dir+data+"/driver"))
		case "drivers_probe":
			if linkBase(k.FS(), dir+data+"/driver") != "" {
				return nil
			}
			driver, _ := attribute(k.FS(), dir+data+"/driver_override")
			if driver == "(null)" || driver == "" {
				driver = defaults[data]
			}
			if driver == "" || slices.Contains(refuses, driver) {
				return nil
			}
			if _, err := os.Stat(filepath.Join(k.dir, "sys/bus", bus, "drivers", driver)); err != nil {
				return nil
			}
			return os.Symlink("../../drivers/"+driver, filepath.Join(k.dir, dir+data+"/driver"))
		}
		return errors.ErrUnsupported
	}
}
