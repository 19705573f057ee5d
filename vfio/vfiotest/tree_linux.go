package vfiotest

import (
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/gostmmac/gostmmac/vfio"
	"github.com/gostmmac/gostmmac/vfio/internal/uapi"
)

// tree collects the first error of several changes of the file system.
type tree struct {
	dir string
	err error
}

func (k *Kernel) tree() *tree { return &tree{dir: k.dir} }

func (t *tree) path(name string) string { return filepath.Join(t.dir, filepath.FromSlash(name)) }

func (t *tree) do(f func() error) {
	if t.err == nil {
		t.err = f()
	}
}

func (t *tree) mkdir(name string) {
	t.do(func() error { return os.MkdirAll(t.path(name), 0o755) })
}

func (t *tree) file(name, data string) {
	t.mkdir(path.Dir(name))
	t.do(func() error { return os.WriteFile(t.path(name), []byte(data), 0o644) })
}

// link makes a symbolic link to a file of the tree.
func (t *tree) link(to, name string) {
	t.mkdir(path.Dir(name))
	t.do(func() error {
		rel, err := filepath.Rel(t.path(path.Dir(name)), t.path(to))
		if err != nil {
			return err
		}
		return os.Symlink(rel, t.path(name))
	})
}

func (t *tree) remove(name string) {
	t.do(func() error { return os.RemoveAll(t.path(name)) })
}

// node makes or removes a device node, which is an empty file here.
func (t *tree) node(name string, exists bool) {
	if exists {
		t.file(name, "")
	} else {
		t.remove(name)
	}
}

func busDir(b vfio.Bus, what string) string { return path.Join("sys/bus", string(b), what) }

func groupDir(n int) string { return path.Join("sys/kernel/iommu_groups", strconv.Itoa(n)) }

const (
	noiommuParam = "sys/module/vfio/parameters/enable_unsafe_noiommu_mode"
	entryParam   = "sys/module/vfio_iommu_type1/parameters/dma_entry_limit"
	rescan       = "sys/bus/pci/rescan"
	autoprobe    = "sys/bus/pci/drivers_autoprobe"
)

func yesNo(b bool) string {
	if b {
		return "Y\n"
	}
	return "N\n"
}

// writeTree makes what there is without devices.
func (k *Kernel) writeTree() error {
	t := k.tree()
	if entries, err := os.ReadDir(k.dir); err != nil {
		return err
	} else if len(entries) > 0 {
		return fmt.Errorf("vfiotest: %s is not empty: %w", k.dir, os.ErrExist)
	}
	t.mkdir("sys/kernel/iommu_groups")
	t.mkdir("dev/vfio")
	t.file(noiommuParam, yesNo(k.cfg.NoIOMMU))
	t.node("dev/vfio/vfio", k.cfg.Type1)
	t.node("dev/iommu", k.cfg.IOMMUFD)
	if k.cfg.Type1 {
		t.file(entryParam, fmt.Sprintf("%d\n", k.cfg.EntryLimit))
	}
	if k.cfg.IOMMUFD {
		t.mkdir("dev/vfio/devices")
	}
	for _, name := range procFiles {
		if name != pagemapFile || k.cfg.Pagemap != PagemapAbsent {
			t.file(name, "")
		}
	}
	t.file(rescan, "")
	t.file(autoprobe, "1\n")
	for _, b := range []vfio.Bus{pciBus, platformBus} {
		t.mkdir(busDir(b, "devices"))
		t.file(busDir(b, "drivers_probe"), "")
		if name := "vfio-" + string(b); !slices.Contains(k.cfg.Unloaded, name) {
			k.addDriver(t, b, name)
		}
	}
	return t.err
}

func (k *Kernel) addDriver(t *tree, b vfio.Bus, name string) {
	id := string(b) + "/" + name
	if name == "" || k.drivers[id] || slices.Contains(k.cfg.Unloaded, name) {
		return
	}
	k.drivers[id] = true
	t.file(path.Join(busDir(b, "drivers"), name, "bind"), "")
	t.file(path.Join(busDir(b, "drivers"), name, "unbind"), "")
}

func (d *Device) dir() string { return path.Join(busDir(d.bus, "devices"), d.name) }

// writeTree makes the directory of the device, which is without a driver.
func (d *Device) writeTree() error {
	t := d.k.tree()
	dir := d.dir()
	attr := func(name, format string, args ...any) { t.file(path.Join(dir, name), fmt.Sprintf(format, args...)) }
	attr("driver_override", "%s\n", d.overrideText())
	if d.bus == pciBus {
		p := &d.pci
		attr("vendor", "0x%04x\n", p.Vendor)
		attr("device", "0x%04x\n", p.Device)
		attr("subsystem_vendor", "0x%04x\n", p.SubVendor)
		attr("subsystem_device", "0x%04x\n", p.SubDev)
		attr("class", "0x%06x\n", p.Class)
		attr("irq", "%d\n", 16*boolInt(p.INTx))
		attr("resource", "%s", d.resource())
		attr("remove", "")
		attr("power/runtime_status", "%s", d.runtimeStatus())
		if p.FLR {
			attr("reset_method", "flr\n")
		}
		if p.Token != "" {
			// The physical function need not be among the devices.
			t.do(func() error { return os.Symlink("../"+physfn(d.name), t.path(path.Join(dir, "physfn"))) })
		}
	} else {
		of := path.Join(dir, "of_node")
		for name, list := range map[string][]string{"compatible": d.platform.Compatible,
			"reg-names": d.platform.RegNames, "interrupt-names": d.platform.IRQNames} {
			if len(list) > 0 {
				t.file(path.Join(of, name), strings.Join(list, "\x00")+"\x00")
			}
		}
	}
	if d.group != nil {
		d.linkGroup(t)
	}
	d.k.addDriver(t, d.bus, d.native)
	return t.err
}

// runtimeStatus is the state of the runtime power management.
func (d *Device) runtimeStatus() string {
	if d.pmOff {
		return "unsupported\n"
	}
	return "active\n"
}

// physfn is the function 0 of a slot.
func physfn(name string) string { return name[:len(name)-1] + "0" }

// resource has a line for each of the BARs, the ROM and what else a function can have.
func (d *Device) resource() string {
	const lines = 13
	const memory, wide, readonly = 0x40200, 0x100000, 0x4000
	var b strings.Builder
	for i := range lines {
		var first, last, flags uint64
		if i <= uapi.PCIROM && d.regions[i].Size > 0 {
			r := &d.regions[i]
			first, last, flags = r.Base, r.Base+r.Size-1, memory
			switch {
			case i == uapi.PCIROM:
				flags |= readonly
			case r.Wide:
				flags |= wide
			}
		}
		fmt.Fprintf(&b, "0x%016x 0x%016x 0x%016x\n", first, last, flags)
	}
	return b.String()
}

// linkGroup connects the device and its group.
func (d *Device) linkGroup(t *tree) {
	g := groupDir(d.group.num)
	t.link(d.dir(), path.Join(g, "devices", d.name))
	t.link(g, path.Join(d.dir(), "iommu_group"))
	if d.group.noiommu {
		t.file(path.Join(g, "name"), "vfio-noiommu\n")
		t.file(path.Join(g, "reserved_regions"), "")
		return
	}
	t.file(path.Join(g, "type"), "DMA\n")
	t.file(path.Join(g, "reserved_regions"), d.k.reserved())
}

// unlinkGroup undoes it; the last device takes the group along.
func (d *Device) unlinkGroup(t *tree) {
	g := groupDir(d.group.num)
	t.remove(path.Join(g, "devices", d.name))
	t.remove(path.Join(d.dir(), "iommu_group"))
	if len(d.group.devices) <= 1 {
		t.remove(g)
	}
}

// reserved lists the holes between the ranges that the IOMMU translates. The one
// where a PC has its interrupts is called so.
func (k *Kernel) reserved() string {
	const apic = 0xfee00000
	var b strings.Builder
	for i, r := range k.cfg.IOVARanges[1:] {
		first, last := k.cfg.IOVARanges[i].Last+1, r.First-1
		kind := "reserved"
		if first <= apic && apic <= last {
			kind = "msi"
		}
		if first <= last {
			fmt.Fprintf(&b, "0x%016x 0x%016x %s\n", first, last, kind)
		}
	}
	return b.String()
}

// instanceName is the name that VFIO has for the device in vfio-dev, which it also has without
// a node.
func (d *Device) instanceName() string {
	name := fmt.Sprintf("vfio%d", d.instance)
	if d.k.cfg.IOMMUFD && d.group.noiommu {
		return noiommuPrefix + name
	}
	return name
}

// cdevName is the name of the device's own node, "" for none.
func (d *Device) cdevName() string {
	if d.instance < 0 || !d.k.cfg.IOMMUFD {
		return ""
	}
	return d.instanceName()
}

// nodes brings the nodes of the group up to date.
func (g *group) nodes(t *tree) {
	name := strconv.Itoa(g.num)
	if g.noiommu {
		name = noiommuPrefix + name
	}
	t.node("dev/vfio/"+name, g.k.cfg.Type1 && g.hasNode())
}

// free is the smallest number that is not taken.
func free(taken func(int) bool) int {
	n := 0
	for taken(n) {
		n++
	}
	return n
}

// bind gives the device, which has none, to a driver that matches.
func (d *Device) bind(driver string) error {
	k := d.k
	switch {
	case d.gone || !k.drivers[string(d.bus)+"/"+driver]:
		return unix.ENODEV
	case d.driver != "":
		return unix.EBUSY
	}
	t := k.tree()
	if d.isVFIO(driver) {
		if d.group == nil {
			if !k.cfg.NoIOMMU {
				return unix.EINVAL
			}
			d.join(free(func(n int) bool { return k.groups[n] != nil }), true)
			d.linkGroup(t)
		}
	} else if d.group != nil && slices.ContainsFunc(d.group.devices, func(o *Device) bool { return o.opens > 0 }) {
		return unix.EBUSY // the group's DMA belongs to a user
	}
	d.driver = driver
	dir := path.Join(busDir(d.bus, "drivers"), driver)
	t.link(dir, path.Join(d.dir(), "driver"))
	t.link(d.dir(), path.Join(dir, d.name))
	if d.vfio() {
		d.instance = free(func(n int) bool {
			return slices.ContainsFunc(k.devices, func(o *Device) bool { return o.instance == n })
		})
		dir := path.Join(d.dir(), "vfio-dev", d.instanceName())
		t.mkdir(dir)
		if k.cfg.IOMMUFD {
			t.file(path.Join(dir, "dev"), fmt.Sprintf("511:%d\n", d.instance))
			t.node("dev/vfio/devices/"+d.cdevName(), true)
		}
		d.group.nodes(t)
	} else if driver == d.native {
		for _, n := range d.net {
			t.mkdir(path.Join(d.dir(), "net", n))
		}
	}
	return t.err
}

// unbind takes the device from its driver.
func (d *Device) unbind() error {
	if d.driver == "" {
		return nil
	}
	t := d.k.tree()
	t.remove(path.Join(busDir(d.bus, "drivers"), d.driver, d.name))
	t.remove(path.Join(d.dir(), "driver"))
	t.remove(path.Join(d.dir(), "net"))
	t.remove(path.Join(d.dir(), "vfio-dev"))
	if name := d.cdevName(); name != "" {
		t.remove("dev/vfio/devices/" + name)
	}
	if d.driver == d.native && d.pci.PMOff {
		d.pmOff = true
		t.file(path.Join(d.dir(), "power/runtime_status"), d.runtimeStatus())
	}
	d.instance = -1
	d.driver = ""
	if d.group != nil {
		d.group.nodes(t)
		if d.group.noiommu {
			d.unlinkGroup(t)
			d.part()
		}
	}
	return t.err
}

// removeTree removes the directory of the device.
func (d *Device) removeTree() error {
	t := d.k.tree()
	if d.group != nil {
		d.unlinkGroup(t)
	}
	t.remove(d.dir())
	return t.err
}

// WriteFile implements vfio.Kernel. It does what the kernel does for
// driver_override, bind, unbind, drivers_probe, remove, rescan and the parameter of noiommu
// mode; another file just takes the data. Unbinding a device from VFIO asks its user to
// let it go (the request interrupt) and waits until it is closed.
func (k *Kernel) WriteFile(name, data string) error {
	k.mu.Lock()
	defer k.unlock()
	err := k.failure("write")
	if err == nil {
		err = k.writeFile(name, data)
	}
	k.log("write", name, -1, err)
	if err != nil {
		return &os.PathError{Op: "write", Path: "/" + name, Err: err}
	}
	return nil
}

func (k *Kernel) writeFile(name, data string) error {
	if !filepath.IsLocal(name) {
		return unix.ENOENT
	}
	if s, err := os.Stat(k.Path(name)); err != nil {
		return unix.ENOENT
	} else if s.IsDir() {
		return unix.EISDIR
	}
	word := strings.TrimSuffix(data, "\n")
	p := strings.Split(path.Clean(name), "/")
	if len(p) > 3 && p[0] == "sys" && p[1] == "bus" {
		bus, rest := vfio.Bus(p[2]), p[3:]
		switch {
		case len(rest) == 1 && rest[0] == "drivers_probe":
			return k.probe(bus, word)
		case len(rest) == 3 && rest[0] == "drivers" && rest[2] == "bind":
			d := k.find(bus, word)
			if d == nil || !d.matches(rest[1]) {
				return unix.ENODEV
			}
			return plain(d.bind(rest[1]))
		case len(rest) == 3 && rest[0] == "drivers" && rest[2] == "unbind":
			return k.unbindFrom(k.find(bus, word), rest[1])
		case len(rest) == 3 && rest[0] == "devices" && rest[2] == "driver_override":
			if d := k.find(bus, rest[1]); d != nil {
				return d.setOverride(word)
			}
		case len(rest) == 3 && rest[0] == "devices" && rest[2] == "remove" && word == "1":
			if d := k.find(bus, rest[1]); d != nil {
				return k.remove(d)
			}
		case name == rescan && word == "1":
			return k.rescan()
		case len(rest) == 4 && rest[0] == "devices" && rest[2] == "driver" && rest[3] == "unbind":
			if d := k.find(bus, rest[1]); d != nil {
				return k.unbindFrom(k.find(bus, word), d.driver)
			}
		}
	}
	if name == noiommuParam {
		switch strings.ToLower(word) {
		case "y", "1":
			k.cfg.NoIOMMU = true
		case "n", "0":
			k.cfg.NoIOMMU = false
		default:
			return unix.EINVAL
		}
		data = yesNo(k.cfg.NoIOMMU)
	}
	return plain(os.WriteFile(k.Path(name), []byte(data), 0o644))
}

// plain is the errno in an error.
func plain(err error) error {
	if err == nil {
		return nil
	}
	return errno(err)
}

func (k *Kernel) find(b vfio.Bus, name string) *Device {
	i := slices.IndexFunc(k.devices, func(d *Device) bool { return d.bus == b && d.name == name })
	if i < 0 {
		return nil
	}
	return k.devices[i]
}

// matches says that a driver may take the device.
func (d *Device) matches(driver string) bool {
	if d.override != "" {
		return driver == d.override
	}
	return driver != "" && driver == d.native
}

func (d *Device) setOverride(driver string) error {
	if len(driver) >= d.k.cfg.PageSize-1 {
		return unix.EINVAL
	}
	d.override = driver
	return plain(os.WriteFile(d.k.Path(path.Join(d.dir(), "driver_override")), []byte(d.overrideText()+"\n"), 0o644))
}

// overrideText is the override as the attribute shows it.
func (d *Device) overrideText() string {
	if d.override == "" {
		return "(null)"
	}
	return d.override
}

// probe looks for a driver for a device without one. That there is none is no error.
func (k *Kernel) probe(b vfio.Bus, name string) error {
	d := k.find(b, name)
	if d == nil {
		return unix.ENODEV
	}
	driver := d.override
	if driver == "" {
		driver = d.native
	}
	if d.driver != "" || !k.drivers[string(b)+"/"+driver] {
		return nil
	}
	if err := d.bind(driver); errors.Is(err, unix.EINVAL) || errors.Is(err, unix.EBUSY) {
		return unix.EINVAL
	} else if err != nil {
		return errno(err)
	}
	return nil
}

// remove takes a function from its bus, until a rescan finds it.
func (k *Kernel) remove(d *Device) error {
	if d.driver != "" {
		if err := k.unbindFrom(d, d.driver); err != nil {
			return err
		}
	}
	if err := d.vanish(); err != nil {
		return errno(err)
	}
	d.override, d.pmOff = "", false
	k.removed = append(k.removed, d)
	return nil
}

// rescan finds the functions that were removed, and gives them to their drivers unless that
// is switched off.
func (k *Kernel) rescan() error {
	probe, err := os.ReadFile(k.Path(autoprobe))
	if err != nil {
		return errno(err)
	}
	found := k.removed
	k.removed = nil
	for _, d := range found {
		driver := ""
		if strings.TrimSpace(string(probe)) == "1" && k.drivers[string(d.bus)+"/"+d.native] {
			driver = d.native
		}
		if err := d.appear(driver); err != nil {
			return errno(err)
		}
	}
	return nil
}

func (k *Kernel) unbindFrom(d *Device, driver string) error {
	if d == nil || d.driver == "" || d.driver != driver {
		return unix.ENODEV
	}
	if d.vfio() && d.bus == pciBus && d.opens > 0 {
		d.irqs[uapi.PCIREQ].signal(0)
	}
	for d.vfio() && d.opens > 0 {
		k.closed.Wait()
	}
	if d.driver != driver {
		return unix.ENODEV // another did it meanwhile
	}
	return plain(d.unbind())
}
