package vfiotest_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/gostmmac/gostmmac/vfio"
	"github.com/gostmmac/gostmmac/vfio/internal/uapi"
	"github.com/gostmmac/gostmmac/vfio/vfiotest"
)

const (
	pciDir = "sys/bus/pci/devices/" + nicName
	macDir = "sys/bus/platform/devices/" + macName
)

// list is what a link points to, what a directory holds or a file says.
func (r *rig) list(name string) string {
	r.Helper()
	fsys := r.k.FS()
	if to, err := fs.ReadLink(fsys, name); err == nil {
		if _, err := fs.Stat(fsys, name); err != nil {
			return "dangling"
		}
		return "-> " + path.Base(to)
	}
	if entries, err := fs.ReadDir(fsys, name); err == nil {
		var names []string
		for _, e := range entries {
			names = append(names, e.Name())
		}
		return strings.Join(names, " ")
	}
	b, err := fs.ReadFile(fsys, name)
	if errors.Is(err, fs.ErrNotExist) {
		return "none"
	}
	return string(b)
}

func (r *rig) tree(want map[string]string) {
	r.Helper()
	got := map[string]string{}
	for name := range want {
		got[name] = r.list(name)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		r.Error(diff)
	}
}

func TestTree(t *testing.T) {
	r := newRig(t, vfiotest.Config{Memlock: 65536, CapIPCLock: true})
	p := nic()
	p.SubVendor, p.SubDev, p.Net = 0x10ee, 7, []string{"enp3s0"}
	p.BARs[0].Base = 0x91200000
	r.pci(p)
	p.BDF, p.Driver, p.FLR, p.INTx, p.Token = "0000:03:00.1", "dwmac-motorcomm", false, false, "2ab74924-c335-45f4-9b16-8569e5b08258"
	p.Group = 8
	r.pci(p)
	r.platform(mac())
	r.tree(map[string]string{
		pciDir + "/vendor": "0x1f0a\n", pciDir + "/device": "0x6801\n", pciDir + "/class": "0x020000\n",
		pciDir + "/subsystem_vendor": "0x10ee\n", pciDir + "/subsystem_device": "0x0007\n", pciDir + "/irq": "16\n",
		pciDir + "/driver": "-> vfio-pci", pciDir + "/driver_override": "vfio-pci\n", pciDir + "/iommu_group": "-> 7",
		pciDir + "/reset_method": "flr\n", pciDir + "/net": "none", pciDir + "/vfio-dev": "vfio0",
		"sys/bus/pci/devices/0000:03:00.1/driver":       "-> dwmac-motorcomm",
		"sys/bus/pci/devices/0000:03:00.1/net":          "enp3s0",
		"sys/bus/pci/devices/0000:03:00.1/reset_method": "none",
		"sys/bus/pci/devices/0000:03:00.1/physfn":       "-> 0000:03:00.0",
		"sys/bus/pci/drivers":                           "dwmac-motorcomm vfio-pci",
		"sys/bus/pci/drivers/vfio-pci":                  "0000:03:00.0 bind unbind",
		"sys/bus/platform/drivers":                      "vfio-platform",
		macDir + "/driver":                              "-> vfio-platform",
		macDir + "/of_node/compatible":                  "snps,dwmac-5.20\x00snps,dwmac\x00",
		macDir + "/of_node/reg-names":                   "stmmaceth\x00",
		macDir + "/of_node/interrupt-names":             "macirq\x00eth_wake_irq\x00",
		"sys/kernel/iommu_groups":                       "7 8 9",
		"sys/kernel/iommu_groups/7/devices":             nicName,
		"sys/kernel/iommu_groups/7/name":                "none",
		"sys/kernel/iommu_groups/7/reserved_regions":    "0x00000000fee00000 0x00000000feefffff msi\n",
		"dev":              "iommu vfio",
		"dev/vfio":         "7 9 devices vfio",
		"dev/vfio/devices": "vfio0 vfio1",
		"sys/module/vfio/parameters/enable_unsafe_noiommu_mode": "N\n",
		"proc/self/status": "Name:\tvfiotest\nVmLck:\t       0 kB\nVmPin:\t       0 kB\nCapEff:\t0000000000204000\n",
	})
	lines := strings.Split(r.list(pciDir+"/resource"), "\n")
	if len(lines) != 14 || lines[0] != "0x0000000091200000 0x0000000091203fff 0x0000000000040200" || lines[1] != strings.Repeat(" 0x0000000000000000", 3)[1:] {
		t.Errorf("resource: %q", lines)
	}
	if s := r.list("proc/self/limits"); !strings.Contains(s, "\nMax locked memory         65536                65536                bytes     \n") {
		t.Errorf("limits: %q", s)
	}
	if _, err := os.Stat(r.k.Path(pciDir)); err != nil {
		t.Error(err)
	}
	// Package vfio reads the same.
	all, err := vfio.List(r.k)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, i := range all {
		got = append(got, fmt.Sprint(&i, " ", i.Driver, " ", i.Group, " ", i.Cdev, " ", i.VF, " ", len(i.BARs)))
	}
	want := []string{
		"pci 0000:03:00.0 1f0a:6801 vfio-pci 7 vfio0 false 2",
		"pci 0000:03:00.1 1f0a:6801 dwmac-motorcomm 8  true 2",
		"platform f0804000.ethernet snps,dwmac-5.20 vfio-platform 9 vfio1 false 0",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestInterfaces(t *testing.T) {
	for _, c := range []struct {
		cfg  vfiotest.Config
		cdev string
		want map[string]string
	}{
		{vfiotest.Config{Type1: true}, "", map[string]string{"dev": "vfio", "dev/vfio": "7 vfio", pciDir + "/vfio-dev": "vfio0", pciDir + "/vfio-dev/vfio0": ""}},
		{vfiotest.Config{IOMMUFD: true}, "vfio0", map[string]string{"dev": "iommu vfio", "dev/vfio": "devices", pciDir + "/vfio-dev": "vfio0", pciDir + "/vfio-dev/vfio0": "dev"}},
	} {
		r := newRig(t, c.cfg)
		r.pci(nic())
		r.tree(c.want)
		// Package vfio sees a node where there is one.
		i, err := vfio.Lookup(r.k, nicName)
		if err != nil || i.Cdev != c.cdev {
			t.Errorf("node %q, %v; want %q", i.Cdev, err, c.cdev)
		}
	}
	r := newRig(t, vfiotest.Config{Unloaded: []string{"vfio-pci"}})
	p := nic()
	p.Driver = p.Native
	r.pci(p)
	r.tree(map[string]string{"sys/bus/pci/drivers": "dwmac-motorcomm", "sys/bus/platform/drivers": "vfio-platform"})
	r.want(r.k.WriteFile("sys/bus/pci/drivers/vfio-pci/bind", nicName), unix.ENOENT)
}

// TestRuntimePM: a driver that leaves the runtime power management off keeps the function
// from being opened, until it was removed and found again.
func TestRuntimePM(t *testing.T) {
	r := newRig(t, vfiotest.Config{})
	p := nic()
	p.Driver, p.Native, p.PMOff = "dwmac-motorcomm", "", true
	d := r.pci(p)
	status := func(want string) {
		t.Helper()
		r.tree(map[string]string{pciDir + "/power/runtime_status": want + "\n"})
	}
	write := func(file, data string) {
		t.Helper()
		r.want(r.k.WriteFile(file, data), nil)
	}
	toVFIO := func() {
		t.Helper()
		write(pciDir+"/driver_override", "vfio-pci")
		if d.Driver() != "" {
			write(pciDir+"/driver/unbind", nicName)
		}
		write("sys/bus/pci/drivers_probe", nicName)
	}
	status("active")
	toVFIO()
	status("unsupported")
	open := func() error {
		dom, err := vfio.Open(t.Context(), nicName, vfio.WithKernel(r.k))
		if err == nil {
			err = dom.Close()
		}
		return err
	}
	r.want(open(), unix.EACCES)
	// With the drivers switched off it stays alone when it is found.
	write("sys/bus/pci/drivers_autoprobe", "0")
	write(pciDir+"/remove", "1")
	r.tree(map[string]string{"sys/bus/pci/devices": "", "sys/kernel/iommu_groups": "", "dev/vfio/devices": ""})
	r.want(r.k.WriteFile(pciDir+"/remove", "1"), fs.ErrNotExist)
	write("sys/bus/pci/rescan", "1")
	r.tree(map[string]string{pciDir + "/driver": "none", pciDir + "/driver_override": "(null)\n", pciDir + "/iommu_group": "-> 7"})
	status("active")
	toVFIO()
	r.want(open(), nil)
	// Its own driver takes it when it may.
	write("sys/bus/pci/drivers_autoprobe", "1")
	write(pciDir+"/remove", "1")
	write("sys/bus/pci/rescan", "1")
	write("sys/bus/pci/rescan", "1")
	r.tree(map[string]string{"sys/bus/pci/devices": nicName, pciDir + "/driver": "-> dwmac-motorcomm"})
}

// TestBind takes a function from its driver to VFIO and back, with mistakes on the
// way.
func TestBind(t *testing.T) {
	r := newRig(t, vfiotest.Config{})
	p := nic()
	p.Driver, p.Native, p.Net = "dwmac-motorcomm", "", []string{"enp3s0"}
	d := r.pci(p)
	const drivers = "sys/bus/pci/drivers/"
	for i, s := range []struct {
		file, data string
		want       error
		driver     string
	}{
		{drivers + "vfio-pci/unbind", nicName, unix.ENODEV, "dwmac-motorcomm"},
		{drivers + "dwmac-motorcomm/unbind", "0000:04:00.0", unix.ENODEV, "dwmac-motorcomm"},
		{drivers + "dwmac-motorcomm/unbind", "", unix.ENODEV, "dwmac-motorcomm"},
		{drivers + "dwmac-motorcomm/bind", nicName, unix.EBUSY, "dwmac-motorcomm"},
		{drivers + "nobody/bind", nicName, unix.ENOENT, "dwmac-motorcomm"},
		{drivers + "vfio-pci/bind", nicName, unix.ENODEV, "dwmac-motorcomm"}, // no match
		{drivers + "vfio-pci", nicName, unix.EISDIR, "dwmac-motorcomm"},
		{"../outside", "", unix.ENOENT, "dwmac-motorcomm"},
		{"sys/bus/pci/devices/0000:04:00.0/driver_override", "vfio-pci", unix.ENOENT, "dwmac-motorcomm"},
		{pciDir + "/driver_override", strings.Repeat("x", page), unix.EINVAL, "dwmac-motorcomm"},
		{pciDir + "/driver_override", "vfio-pci\n", nil, "dwmac-motorcomm"},
		{drivers + "vfio-pci/bind", nicName, unix.EBUSY, "dwmac-motorcomm"},
		{"sys/bus/pci/drivers_probe", nicName, nil, "dwmac-motorcomm"}, // it has a driver
		{pciDir + "/driver/unbind", nicName + "\n", nil, ""},
		{pciDir + "/driver/unbind", nicName, unix.ENOENT, ""},
		{drivers + "dwmac-motorcomm/bind", nicName, unix.ENODEV, ""}, // the override says otherwise
		{"sys/bus/pci/drivers_probe", "0000:04:00.0", unix.ENODEV, ""},
		{"sys/bus/pci/drivers_probe", nicName, nil, "vfio-pci"},
		{drivers + "vfio-pci/unbind", nicName, nil, ""},
		{drivers + "vfio-pci/bind", nicName, nil, "vfio-pci"},
		{drivers + "vfio-pci/unbind", nicName, nil, ""},
		{pciDir + "/driver_override", "nobody", nil, ""},
		{"sys/bus/pci/drivers_probe", nicName, nil, ""},
		{pciDir + "/driver_override", "\n", nil, ""},
		{"sys/bus/pci/drivers_probe", nicName, nil, "dwmac-motorcomm"},
	} {
		if err := r.k.WriteFile(s.file, s.data); !errors.Is(err, s.want) || (err == nil) != (s.want == nil) {
			t.Errorf("step %d, %s: %v, want %v", i, s.file, err, s.want)
		}
		if d.Driver() != s.driver {
			t.Fatalf("step %d: with %q, want %q", i, d.Driver(), s.driver)
		}
		want := map[string]string{
			"sys/bus/pci/drivers/vfio-pci": "bind unbind", "dev/vfio": "devices vfio", "dev/vfio/devices": "",
			pciDir + "/vfio-dev": "none", pciDir + "/net": "none", pciDir + "/driver": "none",
		}
		switch s.driver {
		case "vfio-pci":
			want["sys/bus/pci/drivers/vfio-pci"] = nicName + " bind unbind"
			want["dev/vfio"], want["dev/vfio/devices"], want[pciDir+"/vfio-dev"] = "7 devices vfio", "vfio0", "vfio0"
			want[pciDir+"/driver"] = "-> vfio-pci"
		case "dwmac-motorcomm":
			want[pciDir+"/net"], want[pciDir+"/driver"] = "enp3s0", "-> dwmac-motorcomm"
		}
		r.tree(want)
	}
	r.tree(map[string]string{pciDir + "/driver_override": "(null)\n"})
	if err := r.k.WriteFile(pciDir+"/driver_override", "x"); err != nil {
		t.Error(err)
	}
	if err := r.k.WriteFile("sys/bus/pci/nothing", "x"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("an attribute that there is not: %v", err)
	}
}

// TestBindBusy binds a sibling to a kernel driver while the group has a user.
func TestBindBusy(t *testing.T) {
	r := newRig(t, vfiotest.Config{})
	r.pci(nic())
	p := nic()
	p.BDF, p.Driver = "0000:03:00.1", ""
	r.pci(p)
	l := r.legacyNIC()
	bind := func() error { return r.k.WriteFile("sys/bus/pci/drivers/dwmac-motorcomm/bind", p.BDF) }
	r.want(bind(), unix.EBUSY)
	r.close(l.device, l.group)
	r.want(bind(), nil)
}

// TestUnbindOpen unbinds a function that is open: its user is asked, and the
// unbinding waits for it.
func TestUnbindOpen(t *testing.T) {
	r := newRig(t, vfiotest.Config{})
	d := r.pci(nic())
	l := r.legacyNIC()
	req := r.eventfd()
	r.ok(setIRQs(r.k, l.device, efd|trigger, uapi.PCIREQ, 0, 1, []int32{req}))
	done := make(chan error)
	go func() { done <- r.k.WriteFile("sys/bus/pci/drivers/vfio-pci/unbind", nicName) }()
	if r.await(req, 1) != 1 {
		t.Error("the user was not asked")
	}
	if d.Driver() != "vfio-pci" {
		t.Error("unbound while it is open")
	}
	r.close(l.device)
	if err := <-done; err != nil || d.Driver() != "" {
		t.Errorf("unbind: %v, with %q", err, d.Driver())
	}
}

// TestStatus follows the amounts of memory that the process has locked.
func TestStatus(t *testing.T) {
	r := newRig(t, vfiotest.Config{})
	r.pci(nic())
	p := nic()
	p.BDF, p.Group = "0000:04:00.0", 8
	r.pci(p)
	l, c := r.legacyNIC(), r.cdev("vfio1")
	_, addr := r.memory(3)
	expect := func(locked, pinned int) {
		t.Helper()
		s := r.list("proc/self/status")
		if !strings.Contains(s, fmt.Sprintf("\nVmLck:\t%8d kB\nVmPin:\t%8d kB\n", locked, pinned)) {
			t.Errorf("want %d and %d: %q", locked, pinned, s)
		}
	}
	expect(0, 0)
	r.mapDMA(l.container, 0, addr, 3*page, readWrite)
	r.want(r.mapIOAS(c.iommufd, c.ioas, 0, addr, page), nil)
	expect(12, 4)
	r.want(r.detach(c.device), nil)
	expect(12, 0)
	r.want(r.attach(c.device, c.ioas), nil)
	r.close(l.device, l.group)
	expect(0, 4)
	r.close(c.device, c.iommufd)
	expect(0, 0)
}

func TestFailNext(t *testing.T) {
	r := newRig(t, vfiotest.Config{})
	r.pci(nic())
	r.k.FailNext("open", unix.EACCES)
	r.k.FailNext("VFIO_GROUP_SET_CONTAINER", unix.EINVAL)
	r.k.FailNext("VFIO_GROUP_SET_CONTAINER", unix.EBUSY)
	r.k.FailNext("mmap", unix.ENOMEM)
	r.k.FailNext("munmap", unix.EINVAL)
	r.k.FailNext("pread", unix.EIO)
	r.k.FailNext("write", unix.EACCES)
	r.k.FailNext("huge", unix.ENOMEM)
	_, err := r.k.Open("dev/vfio/vfio")
	r.want(err, unix.EACCES)
	g, c := r.open("dev/vfio/7"), r.open("dev/vfio/vfio")
	for _, want := range []error{unix.EINVAL, unix.EBUSY, nil} {
		_, err = setContainer(r.k, g, c)
		r.want(err, want)
	}
	r.ok(r.k.IoctlInt(c, uapi.SetIOMMU, uapi.Type1v2IOMMU))
	d := r.ok(deviceFD(r.k, g, nicName))
	var mem []byte
	for _, want := range []error{unix.ENOMEM, nil} {
		mem, err = r.k.Mmap(d, 0, page, false)
		r.want(err, want)
	}
	for _, want := range []error{unix.EINVAL, nil} {
		r.want(r.k.Munmap(mem), want)
	}
	for _, want := range []error{unix.EIO, nil} {
		_, err = r.k.Pread(d, make([]byte, 4), 0)
		r.want(err, want)
	}
	for _, want := range []error{unix.EACCES, nil} {
		r.want(r.k.WriteFile(pciDir+"/driver_override", "x"), want)
	}
	for _, want := range []error{unix.ENOMEM, nil} {
		_, err = r.k.HugeMemory(2 << 20)
		r.want(err, want)
	}
	r.close(d, g, c)
	want := []vfiotest.Call{
		{Name: "open", Dev: "dev/vfio/vfio", FD: -1, Err: unix.EACCES},
		{Name: "open", Dev: "dev/vfio/7", FD: g},
		{Name: "open", Dev: "dev/vfio/vfio", FD: c},
		{Name: "VFIO_GROUP_SET_CONTAINER", Dev: "group 7", FD: g, Err: unix.EINVAL},
		{Name: "VFIO_GROUP_SET_CONTAINER", Dev: "group 7", FD: g, Err: unix.EBUSY},
		{Name: "VFIO_GROUP_SET_CONTAINER", Dev: "group 7", FD: g},
		{Name: "VFIO_SET_IOMMU", Dev: "container", FD: c},
		{Name: "VFIO_GROUP_GET_DEVICE_FD", Dev: "group 7", FD: g},
		{Name: "mmap", Dev: nicName, FD: d, Err: unix.ENOMEM},
		{Name: "mmap", Dev: nicName, FD: d},
		{Name: "munmap", FD: -1, Err: unix.EINVAL},
		{Name: "munmap", Dev: nicName, FD: -1},
		{Name: "pread", Dev: nicName, FD: d, Err: unix.EIO},
		{Name: "write", Dev: pciDir + "/driver_override", FD: -1, Err: unix.EACCES},
		{Name: "write", Dev: pciDir + "/driver_override", FD: -1},
		{Name: "huge", FD: -1, Err: unix.ENOMEM},
		{Name: "huge", FD: -1},
		{Name: "close", Dev: nicName, FD: d},
		{Name: "close", Dev: "group 7", FD: g},
		{Name: "close", Dev: "container", FD: c},
	}
	if diff := cmp.Diff(want, r.k.Calls()); diff != "" {
		t.Error(diff)
	}
}
