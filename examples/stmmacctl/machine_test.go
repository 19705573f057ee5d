package main

import (
	"io"
	"strings"
	"testing"

	"github.com/gostmmac/gostmmac/stmmac/bus"
	"github.com/gostmmac/gostmmac/vfio"

	"github.com/google/go-cmp/cmp"
)

func TestMachineAddr(t *testing.T) {
	for _, tc := range []struct {
		in, dev string
		sim     bool
		fails   bool
	}{
		{in: "", dev: ""},
		{in: "pci:0000:03:00.0", dev: "0000:03:00.0"},
		{in: "pci:03:00.0,iommu=auto", dev: "03:00.0"},
		{in: "platform:f0804000.ethernet", dev: "f0804000.ethernet"},
		{in: "03:00.0", dev: "03:00.0"},
		{in: "1f0a:6801", dev: "1f0a:6801"},
		{in: "abcd:6801", dev: "abcd:6801"},
		{in: "driver=dwmac-intel", dev: "driver=dwmac-intel"},
		{in: "enp3s0", dev: "enp3s0"},
		{in: "sim:gmac4,wire=gen", dev: "gmac4", sim: true},
		{in: "pci:", fails: true},
		{in: "pci:03:00.0,iommu", fails: true},
	} {
		dev, sim, err := machineAddr(tc.in)
		if dev != tc.dev || sim != tc.sim || (err != nil) != tc.fails {
			t.Errorf("%q: %q, %v, %v", tc.in, dev, sim, err)
		}
	}
}

func TestEthernet(t *testing.T) {
	for _, tc := range []struct {
		i    vfio.Info
		want bool
	}{
		{vfio.Info{Bus: vfio.PCI, Class: 0x020000}, true},
		{vfio.Info{Bus: vfio.PCI, Class: 0x028000, Interfaces: []string{"x"}}, false},
		{vfio.Info{Bus: vfio.PCI, Class: 0x0c0330}, false},
		{vfio.Info{Bus: vfio.Platform, Compatible: []string{"rockchip,rk3568-gmac", "snps,dwmac-4.20a"}}, true},
		{vfio.Info{Bus: vfio.Platform, Compatible: []string{"nvidia,tegra186-eqos"}}, true},
		{vfio.Info{Bus: vfio.Platform, Compatible: []string{"qcom,sa8775p-ethqos"}}, true},
		{vfio.Info{Bus: vfio.Platform, Compatible: []string{"altr,socfpga-stmmac-a10-s10"}}, true},
		{vfio.Info{Bus: vfio.Platform, Compatible: []string{"arm,pl011"}}, false},
		{vfio.Info{Bus: vfio.Platform, Interfaces: []string{"eth0"}}, true},
		{vfio.Info{Bus: vfio.Platform}, false},
	} {
		if got := ethernet(&tc.i); got != tc.want {
			t.Errorf("%+v: %v", tc.i, got)
		}
	}
}

func TestDescribe(t *testing.T) {
	three := 3
	for _, tc := range []struct {
		i    vfio.Info
		want listed
	}{
		{vfio.Info{Bus: vfio.PCI, Name: "a", Vendor: 0x1f0a, Device: 0x6801, Group: 3, Driver: "vfio-pci"}, listed{Address: "pci:a", ID: "1f0a:6801", Driver: "vfio-pci", Group: &three, Node: "/dev/vfio/3"}},
		{vfio.Info{Bus: vfio.PCI, Name: "a", Group: 3, Driver: "vfio-pci", Cdev: "vfio1"}, listed{Address: "pci:a", ID: "0000:0000", Driver: "vfio-pci", Group: &three, Node: "/dev/vfio/devices/vfio1"}},
		{vfio.Info{Bus: vfio.PCI, Name: "a", Group: 3, GroupName: "vfio-noiommu", Driver: "vfio-pci"}, listed{Address: "pci:a", ID: "0000:0000", Driver: "vfio-pci", Group: &three, Node: "/dev/vfio/noiommu-3"}},
		{vfio.Info{Bus: vfio.Platform, Name: "b", Group: 3, Driver: "dwmac-generic", Compatible: []string{"x"}}, listed{Address: "platform:b", Driver: "dwmac-generic", Group: &three, Compatible: []string{"x"}}},
		{vfio.Info{Bus: vfio.Platform, Name: "b", Group: -1}, listed{Address: "platform:b"}},
	} {
		if d := cmp.Diff(tc.want, describe(&tc.i)); d != "" {
			t.Errorf("%+v: -want +got:\n%s", tc.i, d)
		}
	}
}

// TestPrintFindings holds the text of a report.
func TestPrintFindings(t *testing.T) {
	r := vfio.Report{Findings: []vfio.Finding{
		{Severity: vfio.Warning, Check: "memlock", Text: "little", Remedy: "raise it\nor not"},
		{Severity: vfio.OK, Check: "vfio", Text: "there"},
		{Severity: vfio.OK, Check: "device", Dev: "x", Text: "there"},
	}}
	var b strings.Builder
	if err := printFindings(&b, r); err != nil {
		t.Fatal(err)
	}
	want := `ok       vfio     there
ok       device   x: there
warning  memlock  little
                    raise it
                    or not
failures: 0, warnings: 1, ok: 2
`
	if d := cmp.Diff(want, b.String()); d != "" {
		t.Errorf("-want +got:\n%s", d)
	}
	r.Findings[0].Severity = vfio.Failure
	b.Reset()
	if err := printFindings(&b, r); err != nil || strings.Contains(b.String(), "failures:") || !strings.HasSuffix(b.String(), "or not\n") {
		t.Errorf("%v: %s", err, &b)
	}
	if got := summary(r); got != "failures: 1, warnings: 0, ok: 2" {
		t.Error(got)
	}
}

// TestMachineUsage: the arguments of the commands that open no device.
func TestMachineUsage(t *testing.T) {
	for _, tc := range []struct{ args, says string }{
		{"list pci:0000:03:00.0", "list takes no"},
		{"doctor a b", "address of a device"},
		{"bind", "address of a device"},
		{"unbind a b", "address of a device"},
		{"doctor -queues 2", "-queues is not for doctor, which has -json"},
		{"bind -mtu 100 x", "-mtu is not for bind, which has -force, -json"},
		{"unbind -force x", "-force is not for unbind"},
		{"list -wire gen", "-wire is not for list"},
		{"stats -all sim:gmac4", "-all is not for stats"},
	} {
		_, err := parse(strings.Fields(tc.args), bus.NewOpener(), io.Discard)
		if err == nil || !strings.Contains(err.Error(), tc.says) {
			t.Errorf("%s: %v", tc.args, err)
		}
	}
}
