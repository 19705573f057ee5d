package vfio_test

import (
	"errors"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/gostmmac/gostmmac/vfio"
	"github.com/gostmmac/gostmmac/vfio/vfiotest"
)

// TestLookup finds devices by all that names them.
func TestLookup(t *testing.T) {
	k := newKernel(t, vfiotest.Config{})
	a := card("0000:03:00.0", 14)
	b := card("0001:0a:1f.7", 15)
	b.Driver, b.Net = b.Native, []string{"enp10s0"}
	other := vfiotest.PCI{BDF: "0000:00:1c.0", Vendor: 0x8086, Device: 0xa0bc, Class: 0x060400, Group: 14, Driver: "pcieport"}
	vf := card("0000:03:10.0", 16)
	vf.Device, vf.Token = 0x6802, "83d8f4f2-509f-382f-3c1e-e6bfe0fa1001"
	for _, p := range []vfiotest.PCI{a, b, other, vf} {
		addPCI(t, k, p)
	}
	mac := board("f0804000.ethernet", 3)
	addPlatform(t, k, mac)
	for addr, want := range map[string]string{
		"0000:03:00.0": a.BDF, "03:00.0": a.BDF, "3:0.0": a.BDF, "0001:0a:1f.7": b.BDF, "1:A:1F.7": b.BDF,
		"f0804000.ethernet": mac.Name, "8086:a0bc": other.BDF, "driver=pcieport": other.BDF, "driver=vfio-platform": mac.Name, "enp10s0": b.BDF,
	} {
		i, err := vfio.Lookup(k, addr)
		if err != nil || i.Name != want {
			t.Errorf("%q: %q, %v; want %q", addr, i.Name, err, want)
		}
	}
	for addr, c := range map[string]struct {
		is   error
		says string
	}{
		"1f0a:6801": {os.ErrInvalid, "0000:03:00.0, 0001:0a:1f.7"}, "04:00.0": {vfio.ErrNoDevice, "no PCI function"}, "eth0": {vfio.ErrNoDevice, "list"},
		"ffff:ffff": {vfio.ErrNoDevice, ""}, "driver=": {vfio.ErrNoDevice, ""}, "driver=e1000": {vfio.ErrNoDevice, ""}, "": {os.ErrInvalid, "no name"},
		"..": {os.ErrInvalid, ""}, "../../etc": {os.ErrInvalid, ""}, "a\x00b": {os.ErrInvalid, ""},
	} {
		_, err := vfio.Lookup(k, addr)
		mustFail(t, err, c.is, c.says)
	}
	i, err := vfio.Lookup(k, vf.BDF)
	must(t, err)
	want := vfio.Info{Bus: vfio.PCI, Name: vf.BDF, Vendor: 0x1f0a, Device: 0x6802, Class: 0x020000, VF: i.VF, Driver: "vfio-pci", Override: "vfio-pci", Group: 16, BARs: i.BARs, Cdev: i.Cdev}
	if diff := cmp.Diff(want, i); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if len(i.BARs) != 2 || i.BARs[0].Index != 0 || i.BARs[0].Size != 64*kib || i.BARs[1].Index != 2 || !strings.HasPrefix(i.Cdev, "vfio") {
		t.Errorf("BARs %+v, node %q", i.BARs, i.Cdev)
	}
	i, err = vfio.Lookup(k, mac.Name)
	must(t, err)
	if diff := cmp.Diff(vfio.Info{Bus: vfio.Platform, Name: mac.Name, Compatible: mac.Compatible, RegNames: mac.RegNames, IRQNames: mac.IRQNames,
		Driver: "vfio-platform", Override: "vfio-platform", Group: 3, Cdev: i.Cdev}, i); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got := i.String(); got != "platform f0804000.ethernet vendor,soc-dwmac" {
		t.Errorf("%q", got)
	}
	all, err := vfio.List(k)
	must(t, err)
	var names []string
	for _, i := range all {
		names = append(names, i.Name)
	}
	if diff := cmp.Diff([]string{other.BDF, a.BDF, vf.BDF, b.BDF, mac.Name}, names); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	members, err := vfio.Members(k, 14)
	must(t, err)
	if len(members) != 2 || members[0].Name != other.BDF || members[1].Name != a.BDF {
		t.Errorf("%v", members)
	}
	_, err = vfio.Members(k, 99)
	mustFail(t, err, os.ErrNotExist)
	// A device that vanishes meanwhile is left out of the list.
	if err := os.Remove(k.Path("sys/bus/pci/devices/0000:03:00.0/vendor")); err != nil {
		t.Fatal(err)
	}
	all, err = vfio.List(k)
	if err != nil || slices.ContainsFunc(all, func(i vfio.Info) bool { return i.Name == a.BDF }) {
		t.Errorf("%v, %v", all, err)
	}
}

// FuzzBDF reads addresses of PCI functions and writes those that it takes as sysfs does.
func FuzzBDF(f *testing.F) {
	for _, s := range []string{"0000:03:00.0", "3:0.0", "10000:ff:1f.7", "+1:2.3", "0:0:0:0", "0.0", ":.", "f:20.0", "1:2.8", "-1:0.0", "0_0:0.0"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		bdf, ok := vfio.ParseBDF(s)
		if !ok {
			if bdf != "" {
				t.Fatalf("%q: %q", s, bdf)
			}
			return
		}
		if again, ok := vfio.ParseBDF(bdf); !ok || again != bdf {
			t.Fatalf("%q: %q, and again %q", s, bdf, again)
		}
		if strings.ContainsAny(s, "+-_ ") {
			t.Fatalf("%q was taken", s)
		}
	})
}

// TestNothing is a machine without PCI, platform devices and IOMMU groups.
func TestNothing(t *testing.T) {
	k, err := vfiotest.New(t.TempDir(), vfiotest.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer k.Free()
	must(t, os.RemoveAll(k.Path("sys/bus")))
	all, err := vfio.List(k)
	if len(all) != 0 || err != nil {
		t.Errorf("%v, %v", all, err)
	}
	if _, err := vfio.Lookup(k, "eth0"); !errors.Is(err, vfio.ErrNoDevice) {
		t.Error(err)
	}
}

// TestNoCdev: with a kernel without nodes of devices the device of VFIO is in sysfs too.
func TestNoCdev(t *testing.T) {
	for _, c := range []struct {
		cfg  vfiotest.Config
		want string
	}{{vfiotest.Config{Type1: true}, ""}, {vfiotest.Config{Type1: true, IOMMUFD: true}, "vfio0"}} {
		k := newKernel(t, c.cfg)
		addPCI(t, k, card("0000:03:00.0", 7))
		i, err := vfio.Lookup(k, "0000:03:00.0")
		if err != nil || i.Cdev != c.want {
			t.Errorf("%+v: node %q, want %q: %v", c.cfg, i.Cdev, c.want, err)
		}
	}
}
