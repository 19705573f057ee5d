package vfio

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const (
	nic = "0000:03:00.0"
	mac = "f0804000.ethernet"
)

// bindable is a machine with a PCI function of dwmac-motorcomm and a platform device
// of dwmac-generic.
func bindable(t *testing.T) *tree {
	k := newTree(t, procs, `
		sys/bus/pci/drivers/vfio-pci/
		sys/bus/platform/drivers/vfio-platform/
		sys/module/vfio_platform/parameters/reset_required: N
		sys/bus/platform/devices/f0804000.ethernet/driver_override: (null)
		sys/firmware/devicetree/base/soc/ethernet@f0804000/compatible: "snps,dwmac-4.20a\x00"
		sys/firmware/devicetree/base/soc/ethernet@f0804000/clocks: ""
		sys/bus/platform/devices/f0804000.ethernet/of_node -> ../../../../firmware/devicetree/base/soc/ethernet@f0804000
	`)
	k.pci(nic, "1f0a:6801", "020000", "dwmac-motorcomm", 14)
	k.join("platform", mac, "dwmac-generic", 3)
	k.sysfs(map[string]string{nic: "dwmac-motorcomm", mac: "dwmac-generic"})
	return k
}

// errorSays checks that an error is of an *Error with a remedy and has all texts.
func errorSays(t *testing.T, err error, is error, texts ...string) {
	t.Helper()
	e := new(Error)
	if !errors.As(err, &e) || !errors.Is(err, is) || e.Op == "" || e.Dev == "" {
		t.Errorf("%#v: %v is not %v", err, err, is)
		return
	}
	for _, s := range texts {
		if !strings.Contains(err.Error(), s) {
			t.Errorf("no %q in %q", s, err)
		}
	}
}

func TestBind(t *testing.T) {
	pci := "sys/bus/pci/devices/" + nic
	platform := "sys/bus/platform/devices/" + mac
	for _, tc := range []struct {
		name, dev string
		more      string
		override  string // before
		wrote     []string
		restored  []string
		warnings  []string
		driver    string // with which it was
	}{
		{
			name: "PCI", dev: "1f0a:6801", driver: "dwmac-motorcomm",
			wrote:    []string{pci + "/driver_override=vfio-pci\n", pci + "/driver/unbind=" + nic, "sys/bus/pci/drivers_probe=" + nic},
			restored: []string{pci + "/driver_override=\n", "sys/bus/pci/drivers/vfio-pci/unbind=" + nic, "sys/bus/pci/drivers_probe=" + nic},
		},
		{
			name: "platform", dev: mac, driver: "dwmac-generic",
			wrote:    []string{platform + "/driver_override=vfio-platform\n", platform + "/driver/unbind=" + mac, "sys/bus/platform/drivers_probe=" + mac},
			restored: []string{platform + "/driver_override=\n", "sys/bus/platform/drivers/vfio-platform/unbind=" + mac, "sys/bus/platform/drivers_probe=" + mac},
			warnings: []string{"dwmac-generic switches the clocks of the device off"},
		},
		{
			name: "it had an override", dev: nic, more: "sys/bus/pci/devices/0000:03:00.0/driver_override: dwmac-motorcomm", driver: "dwmac-motorcomm",
			wrote:    []string{pci + "/driver_override=vfio-pci\n", pci + "/driver/unbind=" + nic, "sys/bus/pci/drivers_probe=" + nic},
			restored: []string{pci + "/driver_override=dwmac-motorcomm\n", "sys/bus/pci/drivers/vfio-pci/unbind=" + nic, "sys/bus/pci/drivers_probe=" + nic},
		},
		{
			name: "its interface is down", dev: "enp3s0", driver: "dwmac-motorcomm",
			more:     "sys/class/net/enp3s0/flags: 0x1002\nsys/bus/pci/devices/0000:03:00.0/net/enp3s0/",
			wrote:    []string{pci + "/driver_override=vfio-pci\n", pci + "/driver/unbind=" + nic, "sys/bus/pci/drivers_probe=" + nic},
			restored: []string{pci + "/driver_override=\n", "sys/bus/pci/drivers/vfio-pci/unbind=" + nic, "sys/bus/pci/drivers_probe=" + nic},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			k := bindable(t)
			k.add(tc.more)
			before, err := Lookup(k, tc.dev)
			if err != nil {
				t.Fatal(err)
			}
			b, err := Bind(t.Context(), k, tc.dev)
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(tc.wrote, k.wrote); d != "" {
				t.Errorf("-want +got:\n%s", d)
			}
			if want := b.Info.Bus.vfioDriver(); b.Info.Driver != want || b.Info.Override != want {
				t.Errorf("%+v", b.Info)
			}
			if len(b.Warnings) != len(tc.warnings) {
				t.Errorf("%q", b.Warnings)
			}
			for n, w := range tc.warnings {
				if !strings.Contains(b.Warnings[n], w) {
					t.Errorf("no %q in %q", w, b.Warnings[n])
				}
			}
			k.wrote = nil
			for range 2 {
				if err := b.Restore(); err != nil {
					t.Fatal(err)
				}
			}
			if d := cmp.Diff(tc.restored, k.wrote); d != "" {
				t.Errorf("-want +got:\n%s", d)
			}
			after, err := Lookup(k, b.Info.Name)
			if d := cmp.Diff(before, after); err != nil || d != "" || after.Driver != tc.driver {
				t.Errorf("%v; -before +after:\n%s", err, d)
			}
		})
	}
}

// TestBindNothingToDo: a device that is with VFIO stays so, and Restore leaves it.
func TestBindNothingToDo(t *testing.T) {
	k := bindable(t)
	k.join("pci", nic, "vfio-pci", 14)
	b, err := Bind(t.Context(), k, nic)
	if err != nil || b.Info.Driver != "vfio-pci" {
		t.Fatal(b, err)
	}
	if err := b.Restore(); err != nil || len(k.wrote) > 0 {
		t.Errorf("%v, wrote %q", err, k.wrote)
	}
}

// TestBindDriverless: a device that had no driver has none again.
func TestBindDriverless(t *testing.T) {
	k := bindable(t)
	k.must(os.Remove(k.Path("sys/bus/pci/devices/" + nic + "/driver")))
	b, err := Bind(t.Context(), k, nic)
	if err != nil || len(k.wrote) != 2 {
		t.Fatal(err, k.wrote)
	}
	if err := b.Restore(); err != nil {
		t.Error(err)
	}
	if i, err := Lookup(k, nic); err != nil || i.Driver != "" || i.Override != "" {
		t.Errorf("%+v, %v", i, err)
	}
}

// TestBindRefuses: nothing is written for what would not go well.
func TestBindRefuses(t *testing.T) {
	for _, tc := range []struct {
		name, dev string
		more      string
		remove    string
		is        error
		says      []string
	}{
		{name: "no device", dev: "0000:09:00.0", is: ErrNoDevice, says: []string{"0000:09:00.0", "stmmacctl list"}},
		{name: "no driver for PCI", dev: nic, remove: "sys/bus/pci/drivers/vfio-pci", is: fs.ErrNotExist, says: []string{"no driver vfio-pci", "`sudo modprobe vfio-pci`"}},
		{name: "no driver for the platform", dev: mac, remove: "sys/bus/platform/drivers/vfio-platform", is: fs.ErrNotExist, says: []string{"`sudo modprobe vfio-platform reset_required=0`"}},
		{name: "a reset is required", dev: mac, more: "sys/module/vfio_platform/parameters/reset_required: Y", is: errors.ErrUnsupported,
			says: []string{"no reset function for snps,dwmac-4.20a", "`sudo modprobe -r vfio-platform && sudo modprobe vfio-platform reset_required=0`"}},
		{name: "no IOMMU, platform", dev: mac, remove: "sys/bus/platform/devices/" + mac + "/iommu_group", more: "sys/module/vfio/parameters/enable_unsafe_noiommu_mode: N",
			is: errors.ErrUnsupported, says: []string{"no IOMMU is behind it and noiommu mode is off", "`echo 1 | sudo tee /sys/module/vfio/parameters/enable_unsafe_noiommu_mode`"}},
		{name: "no IOMMU, PCI", dev: nic, remove: "sys/bus/pci/devices/" + nic + "/iommu_group", more: "sys/module/vfio/parameters/enable_unsafe_noiommu_mode: N",
			is: errors.ErrUnsupported, says: []string{"noiommu mode is off", "stmmacctl doctor"}},
		{name: "an interface is up", dev: nic, more: "sys/class/net/enp3s0/flags: 0x1003\nsys/bus/pci/devices/0000:03:00.0/net/enp3s0/", is: syscall.EBUSY,
			says: []string{"network interface enp3s0 is up", "`sudo ip link set enp3s0 down`"}},
		{name: "an interface is up by its state", dev: nic, more: "sys/class/net/enp3s0/operstate: up\nsys/bus/pci/devices/0000:03:00.0/net/enp3s0/", is: syscall.EBUSY,
			says: []string{"enp3s0 is up"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			k := bindable(t)
			k.add(tc.more)
			if tc.remove != "" {
				k.must(os.RemoveAll(k.Path(tc.remove)))
			}
			_, err := Bind(t.Context(), k, tc.dev)
			errorSays(t, err, tc.is, tc.says...)
			if len(k.wrote) > 0 {
				t.Errorf("wrote %q", k.wrote)
			}
		})
	}
}

func TestBindForce(t *testing.T) {
	k := bindable(t)
	k.add("sys/class/net/enp3s0/flags: 0x1003\nsys/bus/pci/devices/0000:03:00.0/net/enp3s0/")
	if _, err := Bind(t.Context(), k, nic, WithForce()); err != nil {
		t.Error(err)
	}
}

func TestBindWarns(t *testing.T) {
	k := bindable(t)
	k.pci("0000:03:00.1", "1b21:1242", "0c0330", "xhci_hcd", 14)
	b, err := Bind(t.Context(), k, nic)
	if err != nil {
		t.Fatal(err)
	}
	if len(b.Warnings) != 1 || !strings.Contains(b.Warnings[0], "IOMMU group 14 can be opened while pci 0000:03:00.1 1b21:1242 is with xhci_hcd") {
		t.Errorf("%q", b.Warnings)
	}
	k = bindable(t)
	k.must(os.Remove(k.Path("sys/bus/pci/devices/" + nic + "/iommu_group")))
	if b, err = Bind(t.Context(), k, nic); err != nil || len(b.Warnings) != 1 || !strings.Contains(b.Warnings[0], "noiommu") {
		t.Errorf("%v, %v", b, err)
	}
}

// failOn makes the write of a name, the nth of it, fail.
func failOn(k *tree, suffix string, nth int, err error) {
	plain := k.onWrite
	k.onWrite = func(name, data string) error {
		if strings.HasSuffix(name, suffix) {
			if nth--; nth == 0 {
				return &fs.PathError{Op: "write", Path: "/" + name, Err: err}
			}
		}
		return plain(name, data)
	}
}

// TestBindUndone: a step that fails leaves the device as it was, or says how it is.
func TestBindUndone(t *testing.T) {
	const asItWas = "the device is as it was, with the driver dwmac-motorcomm"
	for _, tc := range []struct {
		name   string
		set    func(k *tree)
		is     error
		says   []string
		driver string
	}{
		{"not root", func(k *tree) { failOn(k, "driver_override", 1, syscall.EACCES) }, os.ErrPermission,
			[]string{"driver_override: permission denied", "as root", "`echo vfio-pci | sudo tee /sys/bus/pci/devices/0000:03:00.0/driver_override`"}, "dwmac-motorcomm"},
		{"a container", func(k *tree) { failOn(k, "driver_override", 1, syscall.EROFS) }, syscall.EROFS, []string{"on the host"}, "dwmac-motorcomm"},
		{"the driver stays", func(k *tree) { failOn(k, "driver/unbind", 1, syscall.EINVAL) }, syscall.EINVAL, []string{`write "0000:03:00.0" to /sys`, "driver/unbind: invalid argument; " + asItWas, "dmesg"}, "dwmac-motorcomm"},
		{"the device vanishes", func(k *tree) { failOn(k, "driver/unbind", 1, syscall.ENOENT) }, fs.ErrNotExist, []string{"has gone meanwhile"}, "dwmac-motorcomm"},
		{"no probe", func(k *tree) { failOn(k, "drivers_probe", 1, syscall.EINVAL) }, syscall.EINVAL, []string{asItWas}, "dwmac-motorcomm"},
		{"VFIO refuses", func(k *tree) { k.sysfs(map[string]string{nic: "dwmac-motorcomm"}, "vfio-pci") }, syscall.ENODEV,
			[]string{"vfio-pci did not take it", asItWas, "sudo dmesg"}, "dwmac-motorcomm"},
		{"VFIO refuses, and so does the old driver", func(k *tree) { k.sysfs(nil, "vfio-pci") }, syscall.ENODEV,
			[]string{"the device is left with no driver", "give it back: `echo 0000:03:00.0 | sudo tee /sys/bus/pci/drivers/dwmac-motorcomm/bind`"}, ""},
		{"undoing fails", func(k *tree) {
			k.sysfs(nil, "vfio-pci")
			failOn(k, "driver_override", 2, syscall.EIO)
		}, syscall.EIO, []string{"could not be undone: write \"\" to", "left with no driver and driver_override vfio-pci"}, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			k := bindable(t)
			tc.set(k)
			_, err := Bind(t.Context(), k, nic)
			errorSays(t, err, tc.is, tc.says...)
			if strings.Contains(err.Error(), "vfio: ") {
				t.Errorf("it names itself twice: %v", err)
			}
			if i, err := Lookup(k, nic); err != nil || i.Driver != tc.driver {
				t.Errorf("%+v, %v", i, err)
			}
		})
	}
}

// TestBindEnds: the context ends before a step, and all before it is undone.
func TestBindEnds(t *testing.T) {
	for steps := range 3 {
		k := bindable(t)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		if steps == 0 {
			cancel()
		}
		plain := k.onWrite
		k.onWrite = func(name, data string) error {
			if len(k.wrote) == steps {
				cancel()
			}
			return plain(name, data)
		}
		_, err := Bind(ctx, k, nic)
		errorSays(t, err, context.Canceled)
		if i, err := Lookup(k, nic); err != nil || i.Driver != "dwmac-motorcomm" || i.Override != "" {
			t.Errorf("after %d steps: %+v, %v", steps, i, err)
		}
	}
}

// TestInUse: a device that is open is not taken away from VFIO.
func TestInUse(t *testing.T) {
	for _, tc := range []struct{ name, open, says string }{
		{"the group of another process", "proc/200/fd/5 -> /dev/vfio/14", "/dev/vfio/14 is in use, it is held by pid 200 (qemu-system-x86)"},
		{"the device of this process", "sys/bus/pci/devices/0000:03:00.0/vfio-dev/vfio3/dev: 511:3\nproc/100/fd/5 -> /dev/vfio/devices/vfio3", "/dev/vfio/devices/vfio3 is in use, it is held by this process"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			k := bindable(t)
			b, err := Bind(t.Context(), k, nic)
			if err != nil {
				t.Fatal(err)
			}
			k.add(tc.open)
			k.wrote = nil
			errorSays(t, b.Restore(), syscall.EBUSY, tc.says)
			errorSays(t, Unbind(k, nic), syscall.EBUSY, tc.says)
			if len(k.wrote) > 0 {
				t.Errorf("wrote %q", k.wrote)
			}
		})
	}
}

// TestRestoreFails: what goes wrong is said, and Restore can be tried again.
func TestRestoreFails(t *testing.T) {
	for _, tc := range []struct {
		name string
		set  func(k *tree)
		is   error
		says []string
	}{
		{"not root", func(k *tree) { failOn(k, "driver_override", 1, syscall.EPERM) }, os.ErrPermission, []string{"sudo", "`echo | sudo tee"}},
		{"VFIO stays", func(k *tree) { failOn(k, "vfio-pci/unbind", 1, syscall.EIO) }, syscall.EIO, []string{"the device is as it was, with the driver vfio-pci and driver_override vfio-pci"}},
		{"no probe", func(k *tree) { failOn(k, "drivers_probe", 1, syscall.EIO) }, syscall.EIO, []string{"the device is left with no driver"}},
		{"the old driver is gone", func(k *tree) { k.sysfs(nil) }, syscall.ENODEV,
			[]string{"dwmac-motorcomm did not take it back", "left with no driver", "`sudo modprobe dwmac-motorcomm; echo 0000:03:00.0 | sudo tee /sys/bus/pci/drivers/dwmac-motorcomm/bind`"}},
		{"VFIO has its ids", func(k *tree) { k.sysfs(map[string]string{nic: "vfio-pci"}) }, syscall.EBUSY,
			[]string{"vfio-pci took it again", "`echo 1f0a 6801 | sudo tee /sys/bus/pci/drivers/vfio-pci/remove_id`"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			k := bindable(t)
			plain := k.onWrite
			b, err := Bind(t.Context(), k, nic)
			if err != nil {
				t.Fatal(err)
			}
			tc.set(k)
			errorSays(t, b.Restore(), tc.is, tc.says...)
			k.onWrite = plain
			if err := b.Restore(); err != nil {
				t.Error(err)
			}
			if i, err := Lookup(k, nic); err != nil || i.Driver != "dwmac-motorcomm" || i.Override != "" {
				t.Errorf("%+v, %v", i, err)
			}
		})
	}
}

func TestUnbind(t *testing.T) {
	for _, tc := range []struct {
		name, dev     string
		set           func(k *tree)
		driver, wants string
		writes        int
	}{
		{"with VFIO", nic, func(k *tree) { k.join("pci", nic, "vfio-pci", 14) }, "dwmac-motorcomm", "", 3},
		{"by its driver", "driver=vfio-pci", func(k *tree) { k.join("pci", nic, "vfio-pci", 14) }, "dwmac-motorcomm", "", 3},
		{"with another driver", nic, func(*tree) {}, "dwmac-motorcomm", "", 0},
		{"a left override", nic, func(k *tree) { k.add("sys/bus/pci/devices/0000:03:00.0/driver_override: vfio-pci") }, "dwmac-motorcomm", "", 2},
		{"nobody takes it", nic, func(k *tree) { k.join("pci", nic, "vfio-pci", 14); k.sysfs(nil) }, "", "", 3},
		{"VFIO takes it again", nic, func(k *tree) { k.join("pci", nic, "vfio-pci", 14); k.sysfs(map[string]string{nic: "vfio-pci"}) }, "vfio-pci", "remove_id", 3},
		{"nothing", "0000:09:00.0", func(*tree) {}, "", "no PCI function", 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			k := bindable(t)
			tc.set(k)
			err := Unbind(k, tc.dev)
			if (err != nil) != (tc.wants != "") || err != nil && !strings.Contains(err.Error(), tc.wants) {
				t.Error(err)
			}
			if len(k.wrote) != tc.writes {
				t.Errorf("wrote %q", k.wrote)
			}
			if i, err := Lookup(k, nic); err != nil || tc.dev != "0000:09:00.0" && (i.Driver != tc.driver || i.Override != "") {
				t.Errorf("%+v, %v", i, err)
			}
		})
	}
}

// TestNodes holds the names of device nodes.
func TestNodes(t *testing.T) {
	for _, tc := range []struct {
		i    Info
		want []string
	}{
		{Info{Group: 12}, []string{"dev/vfio/12"}},
		{Info{Group: 12, Cdev: "vfio0"}, []string{"dev/vfio/12", "dev/vfio/devices/vfio0"}},
		{Info{Group: 0, GroupName: noiommuGroup}, []string{"dev/vfio/noiommu-0"}},
		{Info{Group: -1, Cdev: "noiommu-vfio0"}, []string{"dev/vfio/devices/noiommu-vfio0"}},
		{Info{Group: -1}, nil},
	} {
		if got := tc.i.nodes(); !slices.Equal(got, tc.want) {
			t.Errorf("%+v: %q, want %q", tc.i, got, tc.want)
		}
	}
}
