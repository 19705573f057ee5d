package vfio

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
)

// Bus is a kind of device.
type Bus string

// Buses, named as below /sys/bus.
const (
	PCI      Bus = "pci"
	Platform Bus = "platform"
)

// Info is what sysfs tells of a device. Anybody may read it, and the device need
// not be with a VFIO driver.
type Info struct {
	Bus  Bus
	Name string // "0000:03:00.0", "f0804000.ethernet"

	Vendor, Device     uint16   // PCI ids
	Class              uint32   // PCI class code, 24 bits
	BARs               []BAR    // those of PCI that have an address
	VF                 bool     // it is a virtual function
	Compatible         []string // of the device tree, the most specific first
	RegNames, IRQNames []string // reg-names and interrupt-names of the device tree

	Driver   string // kernel driver it is with, or ""
	Override string // driver_override, or ""
	Group    int    // number of the IOMMU group, -1 for none
	// GroupName is the name of the group: "vfio-noiommu" for one without an IOMMU.
	GroupName string
	// Cdev is the device node below /dev/vfio/devices: "vfio0", "noiommu-vfio0";
	// "" for none.
	Cdev       string
	Interfaces []string // network interfaces
}

// BAR is a base address register of a PCI function.
type BAR struct {
	Index int // 0 to 5; 6 is the ROM
	Base  uint64
	Size  uint64
}

// String formats the device as "pci 0000:03:00.0 1f0a:6801".
func (i *Info) String() string {
	switch {
	case i.Bus == PCI:
		return fmt.Sprintf("%s %s %04x:%04x", i.Bus, i.Name, i.Vendor, i.Device)
	case len(i.Compatible) > 0:
		return fmt.Sprintf("%s %s %s", i.Bus, i.Name, i.Compatible[0])
	}
	return fmt.Sprintf("%s %s", i.Bus, i.Name)
}

// NoIOMMU says that the device is with a VFIO driver in noiommu mode.
func (i *Info) NoIOMMU() bool {
	return i.GroupName == noiommuGroup || strings.HasPrefix(i.Cdev, noiommuPrefix)
}

const (
	noiommuGroup  = "vfio-noiommu" // drivers/vfio/group.c
	noiommuPrefix = "noiommu-"
)

// vfioDriver is the kernel's VFIO driver of a bus.
func (b Bus) vfioDriver() string { return "vfio-" + string(b) }

func (b Bus) devices() string { return path.Join("sys/bus", string(b), "devices") }

// dir is the device's directory below sys.
func (i *Info) dir() string { return path.Join(i.Bus.devices(), i.Name) }

// List returns the devices of the PCI and platform buses, sorted by bus and name.
// A device that vanishes meanwhile or cannot be read is left out.
func List(k Kernel) ([]Info, error) {
	var all []Info
	for _, b := range []Bus{PCI, Platform} {
		entries, err := fs.ReadDir(k.FS(), b.devices())
		if errors.Is(err, fs.ErrNotExist) {
			continue // a machine without that bus
		} else if err != nil {
			return nil, &Error{Op: "list", Err: err}
		}
		for _, e := range entries {
			if i, err := inspect(k, b, e.Name()); err == nil {
				all = append(all, i)
			}
		}
	}
	return all, nil
}

// Lookup finds the one device that addr names:
//
//	0000:03:00.0, 03:00.0    a PCI function
//	f0804000.ethernet        a platform device
//	1f0a:6801                a PCI function by vendor and device id
//	driver=dwmac-motorcomm   a device by the kernel driver that it is with
//	enp3s0                   a device by its network interface
//
// An error wraps ErrNoDevice, or os.ErrInvalid when several devices fit, which
// it lists.
func Lookup(k Kernel, addr string) (Info, error) {
	i, err := lookup(k, addr)
	return i, wrap("look up", addr, err)
}

func lookup(k Kernel, addr string) (Info, error) {
	if bdf, ok := ParseBDF(addr); ok {
		i, err := inspect(k, PCI, bdf)
		if errors.Is(err, fs.ErrNotExist) {
			err = &Error{Err: fmt.Errorf("no PCI function at this address: %w", ErrNoDevice), Remedy: "stmmacctl list shows what there is"}
		}
		return i, err
	}
	if addr == "" || strings.ContainsAny(addr, "/\x00") || addr == "." || addr == ".." {
		return Info{}, fmt.Errorf("%q is no name of a device: %w", addr, os.ErrInvalid)
	}
	if _, err := fs.Stat(k.FS(), path.Join(Platform.devices(), addr)); err == nil {
		return inspect(k, Platform, addr)
	}
	all, err := List(k)
	if err != nil {
		return Info{}, err
	}
	driver, byDriver := strings.CutPrefix(addr, "driver=")
	vendor, device, byID := parseID(addr)
	fit := slices.DeleteFunc(all, func(i Info) bool {
		switch {
		case byDriver:
			return i.Driver != driver || driver == ""
		case byID:
			return i.Bus != PCI || i.Vendor != vendor || i.Device != device
		}
		return !slices.Contains(i.Interfaces, addr)
	})
	switch len(fit) {
	case 0:
		return Info{}, &Error{Err: fmt.Errorf("nothing has this name, ids, driver or network interface: %w", ErrNoDevice),
			Remedy: "stmmacctl list shows what there is"}
	case 1:
		return fit[0], nil
	}
	names := make([]string, len(fit))
	for n, i := range fit {
		names[n] = i.Name
	}
	return Info{}, fmt.Errorf("%d devices fit, %s: give the name of one: %w", len(fit), strings.Join(names, ", "), os.ErrInvalid)
}

// ParseBDF reads the address of a PCI function, domain:bus:device.function in
// hexadecimal with or without the domain, and returns it as sysfs writes it.
func ParseBDF(s string) (bdf string, ok bool) {
	parts := strings.Split(s, ":")
	if len(parts) == 2 {
		parts = slices.Insert(parts, 0, "0")
	}
	if len(parts) != 3 {
		return "", false
	}
	dev, fn, found := strings.Cut(parts[2], ".")
	if !found {
		return "", false
	}
	var n [4]uint64
	for i, f := range []struct {
		s    string
		most uint64
	}{{parts[0], 0xffffffff}, {parts[1], 0xff}, {dev, 0x1f}, {fn, 7}} {
		v, err := strconv.ParseUint(f.s, 16, 32)
		if err != nil || v > f.most || strings.HasPrefix(f.s, "+") {
			return "", false
		}
		n[i] = v
	}
	return fmt.Sprintf("%04x:%02x:%02x.%x", n[0], n[1], n[2], n[3]), true
}

// parseID reads vendor:device.
func parseID(s string) (vendor, device uint16, ok bool) {
	v, d, found := strings.Cut(s, ":")
	if !found || len(v) != 4 || len(d) != 4 {
		return 0, 0, false
	}
	a, err1 := strconv.ParseUint(v, 16, 16)
	b, err2 := strconv.ParseUint(d, 16, 16)
	return uint16(a), uint16(b), err1 == nil && err2 == nil
}

// inspect reads what sysfs tells of one device.
func inspect(k Kernel, b Bus, name string) (Info, error) {
	fsys := k.FS()
	i := Info{Bus: b, Name: name, Group: -1}
	dir := i.dir()
	if _, err := fs.Stat(fsys, dir); err != nil {
		return i, err
	}
	if b == PCI {
		if err := i.readPCI(k.Path(dir)); err != nil {
			return i, err
		}
		_, err := fs.Lstat(fsys, path.Join(dir, "physfn"))
		i.VF = err == nil
	} else {
		i.Compatible = stringList(fsys, path.Join(dir, "of_node/compatible"))
		i.RegNames = stringList(fsys, path.Join(dir, "of_node/reg-names"))
		i.IRQNames = stringList(fsys, path.Join(dir, "of_node/interrupt-names"))
	}
	i.Driver = linkBase(fsys, path.Join(dir, "driver"))
	i.Override, _ = attribute(fsys, path.Join(dir, "driver_override"))
	if i.Override == "(null)" {
		i.Override = ""
	}
	if g := linkBase(fsys, path.Join(dir, "iommu_group")); g != "" {
		if n, err := strconv.Atoi(g); err == nil && n >= 0 {
			i.Group = n
			i.GroupName, _ = attribute(fsys, path.Join(groupDir(n), "name"))
		}
	}
	for _, n := range names(fsys, path.Join(dir, "vfio-dev")) {
		// A kernel without CONFIG_VFIO_DEVICE_CDEV has the name and no node: it has no number.
		if strings.HasPrefix(strings.TrimPrefix(n, noiommuPrefix), "vfio") && present(k, path.Join(dir, "vfio-dev", n, "dev")) {
			i.Cdev = n
		}
	}
	i.Interfaces = names(fsys, path.Join(dir, "net"))
	return i, nil
}

func groupDir(n int) string { return path.Join("sys/kernel/iommu_groups", strconv.Itoa(n)) }

// Members returns the devices of an IOMMU group, sorted by name.
func Members(k Kernel, n int) ([]Info, error) {
	entries, err := fs.ReadDir(k.FS(), path.Join(groupDir(n), "devices"))
	if err != nil {
		return nil, &Error{Op: "list IOMMU group " + strconv.Itoa(n), Err: err}
	}
	var all []Info
	for _, e := range entries {
		b := Platform
		if _, ok := ParseBDF(e.Name()); ok {
			b = PCI
		}
		i, err := inspect(k, b, e.Name())
		if err != nil {
			// It is in the group, whatever else there is to say.
			i = Info{Bus: b, Name: e.Name(), Group: n}
		}
		all = append(all, i)
	}
	return all, nil
}

// attribute reads a file of one line.
func attribute(fsys fs.FS, name string) (string, error) {
	b, err := fs.ReadFile(fsys, name)
	return strings.TrimSpace(string(b)), err
}

// stringList reads a property of the device tree: strings that end in 0.
func stringList(fsys fs.FS, name string) []string {
	b, err := fs.ReadFile(fsys, name)
	if err != nil || len(b) == 0 {
		return nil
	}
	return strings.Split(strings.TrimSuffix(string(b), "\x00"), "\x00")
}

// linkBase is the last element of what a symbolic link points to, or "".
func linkBase(fsys fs.FS, name string) string {
	to, err := fs.ReadLink(fsys, name)
	if err != nil {
		return ""
	}
	return path.Base(to)
}

// names lists a directory, nothing if there is none.
func names(fsys fs.FS, dir string) []string {
	entries, err := fs.ReadDir(fsys, dir)
	if err != nil {
		return nil
	}
	all := make([]string, len(entries))
	for i, e := range entries {
		all[i] = e.Name()
	}
	return all
}

// offends says that the device keeps its group from being viable: it is with a
// driver of the kernel that maps memory for it. The port driver of PCIe bridges does
// not, and neither do VFIO's own (driver_managed_dma in Linux).
func (i *Info) offends() bool {
	d := strings.ReplaceAll(i.Driver, "_", "-")
	return d != "" && d != "pci-stub" && d != "pcieport" && !strings.HasPrefix(d, "vfio-") && !strings.HasSuffix(d, "-vfio-pci")
}
