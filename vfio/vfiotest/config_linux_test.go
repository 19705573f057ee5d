package vfiotest_test

import (
	"encoding/binary"
	"errors"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/gostmmac/gostmmac/vfio/internal/uapi"
	"github.com/gostmmac/gostmmac/vfio/vfiotest"
)

// TestConfigWrite writes ones to registers of the configuration space and reads
// what stays.
func TestConfigWrite(t *testing.T) {
	r := newRig(t, vfiotest.Config{})
	p := nic()
	p.SubVendor, p.SubDev = 0x1234, 0x5678
	p.BARs[0].Wide, p.BARs[0].Size, p.BARs[0].Mmap = true, 0x10000, false
	p.BARs[2].Base = 0x91230000
	p.ROM = 0x1000
	p.Capabilities = [][]byte{{0x09, 6, 1, 2, 3}}
	r.pci(p)
	l := r.legacyNIC()
	read := func(off int64) uint32 {
		b := make([]byte, 4)
		r.ok(r.k.Pread(l.device, b, config+off))
		return binary.LittleEndian.Uint32(b)
	}
	for _, c := range []struct {
		name         string
		off          int64
		before, ones uint32
	}{
		{"ids", 0, 0x68011f0a, 0x68011f0a},
		{"command and status", 4, 0x00100002, 0x00100547},
		{"class", 8, 0x02000000, 0x02000000},
		{"BAR 0", 0x10, 0x00000004, 0xffff0004},
		{"BAR 0, high", 0x14, 0x00000004, 0xffffffff},
		{"BAR 2", 0x18, 0x91230000, 0xffffe000},
		{"BAR 5", 0x24, 0, 0},
		{"subsystem", 0x2c, 0x56781234, 0x56781234},
		{"ROM", 0x30, 0x00002000, 0xfffff001},
		{"capabilities", 0x34, 0x40, 0x40},
		{"interrupt", 0x3c, 0x0100, 0x01ff},
	} {
		got := read(c.off)
		// The addresses of BAR 0 and of the ROM are the fake's choice.
		if c.off != 0x30 && c.off != 0x10 && got != c.before {
			t.Errorf("%s: %#08x, want %#08x", c.name, got, c.before)
		}
		r.ok(r.k.Pwrite(l.device, []byte{0xff, 0xff, 0xff, 0xff}, config+c.off))
		if got := read(c.off); got != c.ones {
			t.Errorf("%s: ones become %#08x, want %#08x", c.name, got, c.ones)
		}
	}
	var ids []byte
	at := read(0x34) & 0xff
	for n := 0; at != 0 && n < 20; n++ {
		head := read(int64(at))
		ids = append(ids, byte(head))
		if byte(head) == 9 {
			r.ok(r.k.Pwrite(l.device, []byte{0, 0, 0xab}, config+int64(at)))
			if got := read(int64(at)); got != head&0xff00ffff|0xab0000 {
				t.Errorf("own capability: %#x, was %#x", got, head)
			}
		}
		at = head >> 8 & 0xff
	}
	if diff := cmp.Diff([]byte{1, 5, 0x11, 0x10, 9}, ids); diff != "" {
		t.Errorf("capabilities: %s", diff)
	}
}

// TestReset says what opening, resetting and closing do to the command register,
// and how often the device was reset.
func TestReset(t *testing.T) {
	for _, c := range []struct {
		name                      string
		change                    func(p *vfiotest.PCI)
		opened, after, closed     uint16
		want                      error
		resetsOpen, resetsAtClose int
	}{
		{"FLR", func(*vfiotest.PCI) {}, 2, 2, 2, nil, 1, 3},
		{"no FLR", func(p *vfiotest.PCI) { p.FLR = false }, 2, 6, 2, unix.EINVAL, 0, 0},
		{"no memory", func(p *vfiotest.PCI) { p.NoMemory = true }, 0, 0, 0, nil, 1, 3},
		{"bus mastering survives", func(p *vfiotest.PCI) { p.KeepMaster = true }, 2, 6, 2, nil, 1, 3},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRig(t, vfiotest.Config{})
			p := nic()
			c.change(&p)
			hooks := 0
			var d *vfiotest.Device
			p.OnReset = func() { hooks++; d.Memory(0)[0] = 0 }
			d = r.pci(p)
			l := r.legacyNIC()
			if d.Command() != c.opened || d.Resets() != c.resetsOpen {
				t.Errorf("opened: command %#x, %d resets", d.Command(), d.Resets())
			}
			second := r.ok(deviceFD(r.k, l.group, nicName))
			if d.Resets() != c.resetsOpen {
				t.Error("the second open reset the device")
			}
			r.command(l.device, 6)
			d.Memory(0)[0] = 1
			_, err := r.k.IoctlInt(l.device, uapi.DeviceReset, 0)
			r.want(err, c.want)
			if d.Command() != c.after {
				t.Errorf("reset: command %#x", d.Command())
			}
			if want := byte(1 - min(c.resetsOpen, 1)); d.Memory(0)[0] != want {
				t.Errorf("memory after the reset: %d", d.Memory(0)[0])
			}
			r.close(second)
			r.command(l.device, 6)
			r.close(l.device)
			if want := c.closed; d.Command()&4 != want&4 || d.Resets() != c.resetsAtClose || hooks != d.Resets() {
				t.Errorf("closed: command %#x, %d resets, %d hooks", d.Command(), d.Resets(), hooks)
			}
		})
	}
	r := newRig(t, vfiotest.Config{})
	m := mac()
	d := r.platform(m)
	l := r.legacy("9", macName, uapi.Type1v2IOMMU)
	_, err := r.k.IoctlInt(l.device, uapi.DeviceReset, 0)
	r.want(err, unix.EINVAL)
	if d.Resets() != 0 || d.Command() != 0 || d.Config() != nil {
		t.Error("a platform device without a reset")
	}
}

func TestFeature(t *testing.T) {
	r := newRig(t, vfiotest.Config{})
	p := nic()
	p.SRIOV = true
	r.pci(p)
	r.platform(mac())
	pci, plat := r.legacyNIC().device, r.legacy("9", macName, uapi.Type1v2IOMMU).device
	e := r.eventfd()
	const get, set, probe = uapi.FeatureGet, uapi.FeatureSet, uapi.FeatureProbe
	for _, c := range []struct {
		name  string
		fd    int
		flags uint32
		data  []byte
		want  error
	}{
		{"neither", pci, uapi.FeatureLowPowerEntry, nil, unix.EINVAL},
		{"both", pci, get | set | uapi.FeatureLowPowerEntry, nil, unix.EINVAL},
		{"unknown flag", pci, 1<<19 | set, nil, unix.EINVAL},
		{"unknown", pci, probe | get | 99, nil, unix.ENOTTY},
		{"platform", plat, probe | set | uapi.FeatureLowPowerEntry, nil, unix.ENOTTY},
		{"get", pci, get | uapi.FeatureVFToken, make([]byte, 16), unix.EINVAL},
		{"probe", pci, probe | uapi.FeatureVFToken, nil, nil},
		{"probe set", pci, probe | set | uapi.FeatureLowPowerExit, nil, nil},
		{"probe both", pci, probe | get | set | uapi.FeatureLowPowerExit, nil, unix.EINVAL},
		{"token", pci, set | uapi.FeatureVFToken, make([]byte, 16), nil},
		{"short token", pci, set | uapi.FeatureVFToken, make([]byte, 15), unix.EINVAL},
		{"low power", pci, set | uapi.FeatureLowPowerEntry, nil, nil},
		{"lower power", pci, set | uapi.FeatureLowPowerEntry, nil, unix.EINVAL},
		{"high power", pci, set | uapi.FeatureLowPowerExit, nil, nil},
		{"higher power", pci, set | uapi.FeatureLowPowerExit, nil, nil},
		{"wake by nothing", pci, set | uapi.FeatureLowPowerEntryWake, binary.NativeEndian.AppendUint64(nil, 1<<31-1), unix.EBADF},
		{"wake", pci, set | uapi.FeatureLowPowerEntryWake, binary.NativeEndian.AppendUint64(nil, uint64(e)), nil},
	} {
		v := uapi.Feature{Argsz: uint32(8 + len(c.data)), Flags: c.flags}
		arg := append(append([]byte(nil), uapi.Bytes(&v)...), c.data...)
		if _, err := r.k.Ioctl(c.fd, uapi.DeviceFeature, arg); err != c.want {
			t.Errorf("%s: %v, want %v", c.name, err, c.want)
		}
	}
}

// hotResetInfo asks which functions a hot reset is for.
func hotResetInfo(r *rig, fd, n int) (uapi.HotResetInfo, []uapi.DependentDevice, error) {
	r.Helper()
	arg := make([]byte, n)
	binary.NativeEndian.PutUint32(arg, uint32(n))
	_, err := r.k.Ioctl(fd, uapi.DeviceGetHotResetInfo, arg)
	var v uapi.HotResetInfo
	copy(uapi.Bytes(&v), arg)
	var all []uapi.DependentDevice
	for i := 0; err == nil && i < int(v.Count); i++ {
		var d uapi.DependentDevice
		copy(uapi.Bytes(&d), arg[12+8*i:])
		all = append(all, d)
	}
	return v, all, err
}

func hotReset(r *rig, fd int, flags uint32, groups ...int) error {
	r.Helper()
	v := uapi.HotReset{Argsz: uint32(12 + 4*len(groups)), Flags: flags, Count: uint32(len(groups))}
	arg := append([]byte(nil), uapi.Bytes(&v)...)
	for _, g := range groups {
		arg = binary.NativeEndian.AppendUint32(arg, uint32(g))
	}
	_, err := r.k.Ioctl(fd, uapi.DeviceHotReset, arg)
	return err
}

// TestHotReset has two functions on a bus, in two groups, and one on another bus.
func TestHotReset(t *testing.T) {
	r := newRig(t, vfiotest.Config{})
	add := func(bdf string, group int) *vfiotest.Device {
		p := nic()
		p.BDF, p.Group = bdf, group
		return r.pci(p)
	}
	a, b := add(nicName, 7), add("0000:03:01.2", 8)
	add("0000:04:00.0", 10)
	r.platform(mac())
	l := r.legacyNIC()
	plat := r.legacy("9", macName, uapi.Type1v2IOMMU)
	if v, _, err := hotResetInfo(r, l.device, 12); err != unix.ENOSPC || v.Count != 2 {
		t.Errorf("no room: %+v %v", v, err)
	}
	v, all, err := hotResetInfo(r, l.device, 12+8*2)
	want := []uapi.DependentDevice{{ID: 7, Bus: 3}, {ID: 8, Bus: 3, DevFn: 1<<3 | 2}}
	if diff := cmp.Diff(want, all); err != nil || v.Flags != 0 || diff != "" {
		t.Errorf("%+v %v %s", v, err, diff)
	}
	_, _, err = hotResetInfo(r, plat.device, 64)
	r.want(err, unix.ENOTTY)
	r.want(hotReset(r, plat.device, 0, plat.group), unix.ENOTTY)
	other := r.open("dev/vfio/8")
	for _, c := range []struct {
		name   string
		flags  uint32
		groups []int
		want   error
	}{
		{"no group", 0, nil, unix.EINVAL},
		{"one of two", 0, []int{l.group}, unix.EINVAL},
		{"the wrong one", 0, []int{l.group, plat.group}, unix.EINVAL},
		{"a container", 0, []int{l.group, l.container}, unix.EINVAL},
		{"not open", 0, []int{l.group, 3}, unix.EBADF},
		{"too many", 0, []int{l.group, other, plat.group}, unix.EINVAL},
		{"flags", 1, []int{l.group, other}, unix.EINVAL},
		{"both", 0, []int{other, l.group}, nil},
	} {
		n := [2]int{a.Resets(), b.Resets()}
		r.want(hotReset(r, l.device, c.flags, c.groups...), c.want)
		for i, d := range []*vfiotest.Device{a, b} {
			if done := d.Resets() > n[i]; done != (c.want == nil) {
				t.Errorf("%s: device %d was reset: %v", c.name, i, done)
			}
		}
	}
	r.close(other)
	r.ok(0, b.Unplug())
	p := nic()
	p.BDF, p.Driver, p.Group = "0000:03:02.0", "dwmac-motorcomm", 11
	r.pci(p)
	r.want(hotReset(r, l.device, 0, l.group), unix.ENODEV)
}

// TestHotResetOwned does it with device nodes: the iommufd owns a group by having one
// of its devices.
func TestHotResetOwned(t *testing.T) {
	r := newRig(t, vfiotest.Config{})
	for _, x := range []struct {
		bdf   string
		group int
	}{{nicName, 7}, {"0000:03:00.1", 7}, {"0000:03:01.0", 8}} {
		p := nic()
		p.BDF, p.Group = x.bdf, x.group
		r.pci(p)
	}
	c := r.cdev("vfio0")
	v, all, err := hotResetInfo(r, c.device, 64)
	none := int32(uapi.DevIDNotOwned)
	if err != nil || v.Flags != uapi.HotResetFlagDevID || len(all) != 3 || all[0].ID == 0 || all[1].ID != uapi.DevIDOwned || all[2].ID != uint32(none) {
		t.Errorf("%+v %+v %v", v, all, err)
	}
	r.want(hotReset(r, c.device, 0), unix.EINVAL)
	r.want(hotReset(r, c.device, 0, c.iommufd), unix.EINVAL)
	dev := r.open("dev/vfio/devices/vfio2")
	r.want(r.bind(dev, c.iommufd), nil)
	if v, _, err = hotResetInfo(r, c.device, 64); err != nil || v.Flags != uapi.HotResetFlagDevID|uapi.HotResetFlagDevIDOwned {
		t.Errorf("%+v %v", v, err)
	}
	r.want(hotReset(r, c.device, 0), nil)
}

// TestUnplug takes a function away while it is open.
func TestUnplug(t *testing.T) {
	r := newRig(t, vfiotest.Config{})
	d := r.pci(nic())
	l := r.legacyNIC()
	req, msi := r.eventfd(), r.eventfd()
	r.ok(setIRQs(r.k, l.device, efd|trigger, uapi.PCIREQ, 0, 1, []int32{req}))
	r.ok(setIRQs(r.k, l.device, efd|trigger, uapi.PCIMSI, 0, 1, []int32{msi}))
	_, addr := r.memory(1)
	r.mapDMA(l.container, 0, addr, page, readWrite)
	r.command(l.device, 6)
	r.ok(0, d.Unplug())
	r.ok(0, d.Unplug())
	if r.count(req) != 1 {
		t.Error("no request to let the device go")
	}
	if d.Fire(uapi.PCIMSI, 0) || d.Fire(uapi.PCIREQ, 0) {
		t.Error("an interrupt of a device that is gone")
	}
	if _, err := d.DMA(0, 1); err == nil {
		t.Error("DMA of a device that is gone")
	}
	b := make([]byte, 4)
	for _, off := range []int64{0, config} {
		_, err := r.k.Pread(l.device, b, off)
		r.want(err, unix.EIO)
		_, err = r.k.Pwrite(l.device, b, off)
		r.want(err, unix.EIO)
	}
	_, err := r.k.IoctlInt(l.device, uapi.DeviceReset, 0)
	r.want(err, unix.ENODEV)
	_, err = deviceFD(r.k, l.group, nicName)
	r.want(err, unix.ENODEV)
	if len(r.names("sys/bus/pci/devices")) != 1 {
		t.Error("sysfs has forgotten a device that is open")
	}
	r.close(l.device)
	for _, dir := range []string{"sys/bus/pci/devices", "sys/kernel/iommu_groups", "dev/vfio/devices"} {
		if names := r.names(dir); len(names) > 0 {
			t.Errorf("left in %s: %v", dir, names)
		}
	}
	r.close(l.group, l.container)
	resets := d.Resets()
	if d = r.pci(nic()); d.Resets() != 0 || resets != 1 {
		t.Errorf("%d resets of the old one", resets)
	}
	r.close(r.legacyNIC().device)
}

func TestBadDevices(t *testing.T) {
	r := newRig(t, vfiotest.Config{})
	r.pci(nic())
	for name, change := range map[string]func(p *vfiotest.PCI){
		"the same":         func(p *vfiotest.PCI) { p.BDF = nicName },
		"no address":       func(p *vfiotest.PCI) { p.BDF = "" },
		"short address":    func(p *vfiotest.PCI) { p.BDF = "04:00.0" },
		"seven BARs":       func(p *vfiotest.PCI) { p.BARs = make([]vfiotest.Region, 7) },
		"too many vectors": func(p *vfiotest.PCI) { p.MSI = 33 },
		"table behind":     func(p *vfiotest.PCI) { p.MSIX.Table = 0x1f88 },
		"table in no BAR":  func(p *vfiotest.PCI) { p.MSIX.BAR = 4 },
		"wide and another": func(p *vfiotest.PCI) { p.BARs[1].Size = 0x1000; p.BARs[0].Wide = true },
		"wide at the end": func(p *vfiotest.PCI) {
			p.BARs = make([]vfiotest.Region, 6)
			p.BARs[5] = vfiotest.Region{Size: 16, Wide: true}
			p.MSIX.Count = 0
		},
		"huge BAR":            func(p *vfiotest.PCI) { p.BARs[0].Size = 1 << 40 },
		"area in a page":      func(p *vfiotest.PCI) { p.BARs[0].Sparse = []vfiotest.Area{{0x800, 0x800}} },
		"area behind":         func(p *vfiotest.PCI) { p.BARs[0].Sparse = []vfiotest.Area{{0x4000, 0x1000}} },
		"capability of no id": func(p *vfiotest.PCI) { p.Capabilities = [][]byte{{}} },
		"no room":             func(p *vfiotest.PCI) { p.Capabilities = [][]byte{make([]byte, 200)} },
		"no UUID":             func(p *vfiotest.PCI) { p.Token = "token" },
		"driver not loaded":   func(p *vfiotest.PCI) { p.Driver = "vfio-platform" },
	} {
		p := nic()
		p.BDF, p.Group = "0000:04:00.0", 8
		change(&p)
		if _, err := r.k.AddPCI(p); err == nil {
			t.Errorf("%s: it was added", name)
		}
	}
	for _, name := range []string{"", ".", "..", "a/b", "a b"} {
		if _, err := r.k.AddPlatform(vfiotest.Platform{Name: name, Group: -1}); !errors.Is(err, os.ErrInvalid) {
			t.Errorf("%q: %v", name, err)
		}
	}
	if names := r.names("sys/bus/pci/devices"); len(names) != 1 {
		t.Errorf("in sysfs: %v", names)
	}
	if names := r.names("sys/kernel/iommu_groups"); len(names) != 1 {
		t.Errorf("groups: %v", names)
	}
	for name, cfg := range map[string]vfiotest.Config{
		"small pages": {PageSize: 512}, "odd pages": {PageSize: 12288}, "ranges": {IOVARanges: []vfiotest.Range{{5, 4}}},
		"ranges that overlap": {IOVARanges: []vfiotest.Range{{0, 9}, {9, 20}}}, "physical base": {PhysBase: 4096},
	} {
		if _, err := vfiotest.New(t.TempDir(), cfg); !errors.Is(err, os.ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
	dir := t.TempDir()
	if err := os.WriteFile(dir+"/x", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := vfiotest.New(dir, vfiotest.Config{}); !errors.Is(err, os.ErrExist) {
		t.Errorf("a directory that is in use: %v", err)
	}
}
