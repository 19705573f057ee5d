package main

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/gostmmac/gostmmac/examples/internal/cli"
	"github.com/gostmmac/gostmmac/examples/internal/clitest"
	"github.com/gostmmac/gostmmac/stmmac/bus"
	"github.com/gostmmac/gostmmac/vfio"
	"github.com/gostmmac/gostmmac/vfio/vfiotest"

	"github.com/google/go-cmp/cmp"
)

// machine is a machine with a YT6801 of the kernel, another that VFIO has, a USB
// controller and a MAC on the platform bus, each in a group of its own.
func machine(t *testing.T, cfg vfiotest.Config) *vfiotest.Kernel {
	t.Helper()
	k, err := vfiotest.New(t.TempDir(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(k.Free)
	bar := []vfiotest.Region{{Size: 0x4000, Mmap: true}}
	for _, p := range []vfiotest.PCI{
		{BDF: "0000:03:00.0", Vendor: 0x1f0a, Device: 0x6801, Group: 7, Driver: "dwmac-motorcomm", Net: []string{"enp3s0"}, BARs: bar, FLR: true},
		{BDF: "0000:04:00.0", Vendor: 0x8086, Device: 0xa0ac, Group: 8, Driver: "vfio-pci", Native: "dwmac-intel", BARs: bar, FLR: true},
		{BDF: "0000:05:00.0", Vendor: 0x1b21, Device: 0x1242, Class: 0x0c0330, Group: 9, Driver: "xhci_hcd", BARs: bar},
	} {
		if _, err := k.AddPCI(p); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := k.AddPlatform(vfiotest.Platform{
		Name: "f0804000.ethernet", Compatible: []string{"snps,dwmac-4.20a"}, Group: 10, Driver: "dwmac-generic", Regions: []vfiotest.Region{{Size: 0x4000}},
	}); err != nil {
		t.Fatal(err)
	}
	// It has a clock, for which its device tree node has a property.
	if err := os.WriteFile(k.Path("sys/bus/platform/devices/f0804000.ethernet/of_node/clocks"), nil, 0o666); err != nil {
		t.Fatal(err)
	}
	return k
}

func opener(k vfio.Kernel) *bus.Opener {
	o := bus.NewOpener()
	o.Kernel = k
	return o
}

// on runs a command on a machine.
func on(t *testing.T, k vfio.Kernel, code int, args ...string) clitest.Outcome {
	t.Helper()
	return clitest.Run(t, func(ctx context.Context, args []string, stdout, stderr io.Writer) int {
		return runWith(ctx, opener(k), args, stdout, stderr)
	}, code, args...)
}

func TestList(t *testing.T) {
	k := machine(t, vfiotest.Config{Type1: true})
	want := `ADDRESS                     ID                DRIVER           GROUP  INTERFACE  NODE
pci:0000:03:00.0            1f0a:6801         dwmac-motorcomm  7      enp3s0     -
pci:0000:04:00.0            8086:a0ac         vfio-pci         8      -          /dev/vfio/8
platform:f0804000.ethernet  snps,dwmac-4.20a  dwmac-generic    10     -          -
`
	if d := cmp.Diff(want, on(t, k, cli.OK, "list").Stdout); d != "" {
		t.Errorf("-want +got:\n%s", d)
	}
	clitest.Says(t, on(t, k, cli.OK, "list", "-all").Stdout, "pci:0000:05:00.0            1b21:1242         xhci_hcd")
	var all []listed
	decode(t, on(t, k, cli.OK, "-json", "list").Stdout, &all)
	if len(all) != 3 || all[0].Address != "pci:0000:03:00.0" || all[0].Group == nil || *all[0].Group != 7 || all[1].Node != "/dev/vfio/8" {
		t.Errorf("%+v", all)
	}

	empty, err := vfiotest.New(t.TempDir(), vfiotest.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer empty.Free()
	clitest.Says(t, on(t, empty, cli.OK, "list").Stdout, "no Ethernet controller", "-all lists")
	clitest.Says(t, on(t, empty, cli.OK, "list", "-all").Stdout, "no device")
	if out := on(t, empty, cli.OK, "list", "-json").Stdout; out != "[]\n" {
		t.Error(out)
	}
}

func TestDoctor(t *testing.T) {
	k := machine(t, vfiotest.Config{Type1: true})
	out := on(t, k, cli.Failed, "doctor", "pci:0000:03:00.0")
	clitest.Says(t, out.Stdout, "failure  driver", "0000:03:00.0: it is with the kernel driver dwmac-motorcomm", "    give it to VFIO: `sudo stmmacctl bind pci:0000:03:00.0`\n", "ok       group")
	clitest.Says(t, out.Stderr, "stmmacctl: pci:0000:03:00.0: failures: 1, warnings: ")
	if strings.Count(out.Stderr, "\n") != 1 {
		t.Errorf("more than a line: %s", out.Stderr)
	}
	for _, addr := range []string{"1f0a:6801", "03:00.0", "driver=dwmac-motorcomm", "enp3s0"} {
		clitest.Says(t, on(t, k, cli.Failed, "doctor", addr).Stdout, "0000:03:00.0: it is with the kernel driver")
	}
	clitest.Says(t, on(t, k, cli.OK, "doctor", "pci:0000:04:00.0").Stdout, "ok       driver", "\nfailures: 0, warnings: ")
	out = on(t, k, cli.OK, "doctor")
	if clitest.Says(t, out.Stdout, "iommu"); strings.Contains(out.Stdout, "driver  ") || out.Stderr != "" {
		t.Errorf("%+v", out)
	}
	clitest.Says(t, on(t, k, cli.Failed, "doctor", "pci:0000:09:00.0").Stdout, "failure  device", "stmmacctl list")
	clitest.Says(t, on(t, k, cli.OK, "doctor", "sim:gmac4,wire=gen").Stdout, "needs nothing", "failures: 0, warnings: 0, ok: 1")
	clitest.Says(t, on(t, k, cli.Usage, "doctor", "pci:").Stderr, "location", "correct the address")

	var r vfio.Report
	decode(t, on(t, k, cli.Failed, "doctor", "-json", "enp3s0").Stdout, &r)
	if !r.Failed() || count(r, vfio.Failure) != 1 {
		t.Errorf("%+v", r)
	}
}

// up puts a network interface up, as `ip link set … up` does.
// TestDoctorOfChip says which MAC a device has and what its chip needs.
func TestDoctorOfChip(t *testing.T) {
	k, err := vfiotest.New(t.TempDir(), vfiotest.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer k.Free()
	for _, p := range []vfiotest.PCI{
		{BDF: "0000:01:00.0", Vendor: 0x1f0a, Device: 0x6801, Group: 1, Driver: "vfio-pci", FLR: true, BARs: []vfiotest.Region{{Size: 0x10000}}},
		{BDF: "0000:02:00.0", Vendor: 0x0014, Device: 0x7a03, Group: 2, Driver: "vfio-pci", FLR: true, BARs: []vfiotest.Region{{Size: 0x2000}}},
		{BDF: "0000:03:00.0", Vendor: 0x1234, Device: 0x5678, Group: 3, Driver: "vfio-pci", FLR: true, BARs: []vfiotest.Region{{Size: 0x2000}}},
	} {
		if _, err := k.AddPCI(p); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := k.AddPlatform(vfiotest.Platform{Name: "16030000.ethernet", Compatible: []string{"starfive,jh7110-dwmac", "snps,dwmac-5.20"},
		Group: 4, Driver: "vfio-platform", Regions: []vfiotest.Region{{Size: 0x10000, Mmap: true}}}); err != nil {
		t.Fatal(err)
	}
	for addr, c := range map[string]struct {
		code int
		says []string
	}{
		"pci:01:00.0":                {cli.OK, []string{"ok       mac", "Motorcomm YT6801, generation gmac4", "this must hold", "ASPM L1"}},
		"pci:02:00.0":                {cli.Failed, []string{"failure  mac", "Loongson LS7A1000 GMAC: ", "stmmacctl unbind"}},
		"pci:03:00.0":                {cli.OK, []string{"warning  mac", "1234:5678", "generation=gmac4"}},
		"platform:16030000.ethernet": {cli.OK, []string{"ok       mac", "StarFive JH7110", "this must hold"}},
	} {
		clitest.Says(t, on(t, k, c.code, "doctor", addr).Stdout, c.says...)
	}
	// A link in a state in which the chip does not work.
	l1 := k.Path("sys/bus/pci/devices/0000:01:00.0/link")
	if err := os.MkdirAll(l1, 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(l1, "l1_aspm"), []byte("1\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	clitest.Says(t, on(t, k, cli.Failed, "doctor", "01:00.0").Stdout, "failure  mac", "ASPM L1 is on", "echo 0 > /sys/bus/pci/devices/0000:01:00.0/link/l1_aspm")
}

func up(t *testing.T, k *vfiotest.Kernel, name string) {
	t.Helper()
	file := k.Path("sys/class/net/" + name + "/flags")
	if err := os.MkdirAll(filepath.Dir(file), 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte("0x1003\n"), 0o666); err != nil {
		t.Fatal(err)
	}
}

func TestBindUnbind(t *testing.T) {
	k := machine(t, vfiotest.Config{Type1: true})
	up(t, k, "enp3s0")
	clitest.Says(t, on(t, k, cli.Failed, "bind", "enp3s0").Stderr, "network interface enp3s0 is up", "`sudo ip link set enp3s0 down`")
	out := on(t, k, cli.OK, "bind", "-force", "enp3s0").Stdout
	if out != "pci:0000:03:00.0: with vfio-pci, opened by /dev/vfio/7\n" {
		t.Error(out)
	}
	on(t, k, cli.OK, "doctor", "pci:0000:03:00.0")
	clitest.Says(t, on(t, k, cli.OK, "bind", "pci:0000:03:00.0").Stdout, "with vfio-pci")
	if out = on(t, k, cli.OK, "unbind", "pci:0000:03:00.0").Stdout; out != "pci:0000:03:00.0: with dwmac-motorcomm\n" {
		t.Error(out)
	}
	// By the driver that it does not have any more afterwards.
	if out = on(t, k, cli.OK, "unbind", "driver=vfio-pci").Stdout; out != "pci:0000:04:00.0: with dwmac-intel\n" {
		t.Error(out)
	}

	var b binding
	decode(t, on(t, k, cli.OK, "bind", "-json", "platform:f0804000.ethernet").Stdout, &b)
	if b.Address != "platform:f0804000.ethernet" || b.Driver != "vfio-platform" || b.Node != "/dev/vfio/10" || len(b.Warnings) != 1 {
		t.Errorf("%+v", b)
	}
	clitest.Says(t, on(t, k, cli.OK, "unbind", "f0804000.ethernet").Stdout, "with dwmac-generic")
	clitest.Says(t, on(t, k, cli.OK, "bind", "f0804000.ethernet").Stdout, "\nwarning: dwmac-generic switches the clocks")

	if _, err := k.AddPCI(vfiotest.PCI{BDF: "0000:06:00.0", Vendor: 0x1f0a, Device: 0x6801, Group: 11, Driver: "vfio-pci", BARs: []vfiotest.Region{{Size: 0x4000}}}); err != nil {
		t.Fatal(err)
	}
	clitest.Says(t, on(t, k, cli.OK, "unbind", "06:00.0").Stdout, "with no driver", "warning: no driver took it", "`sudo modprobe $(cat /sys/bus/pci/devices/0000:06:00.0/modalias)`")

	for _, command := range []string{"bind", "unbind"} {
		clitest.Says(t, on(t, k, cli.Usage, command, "sim:gmac4").Stderr, "simulated", "stmmacctl list")
		clitest.Says(t, on(t, k, cli.Failed, command, "0000:09:00.0").Stderr, "no PCI function")
	}
	k.FailNext("write", syscall.EACCES)
	clitest.Says(t, on(t, k, cli.Failed, "bind", "enp3s0", "-force").Stderr, "permission denied", "sudo")
}

func TestBindWithoutDriver(t *testing.T) {
	k, err := vfiotest.New(t.TempDir(), vfiotest.Config{Unloaded: []string{"vfio-pci"}})
	if err != nil {
		t.Fatal(err)
	}
	defer k.Free()
	if _, err := k.AddPCI(vfiotest.PCI{BDF: "0000:03:00.0", Vendor: 0x1f0a, Device: 0x6801, Driver: "dwmac-motorcomm"}); err != nil {
		t.Fatal(err)
	}
	clitest.Says(t, on(t, k, cli.Failed, "bind", "1f0a:6801").Stderr, "no driver vfio-pci", "`sudo modprobe vfio-pci`")
}

// TestMachineOutputFails: what cannot be printed is said.
func TestMachineOutputFails(t *testing.T) {
	k := machine(t, vfiotest.Config{Type1: true})
	for _, args := range []string{"list", "list -json", "doctor", "doctor -json", "bind 04:00.0", "bind -json 04:00.0", "unbind 05:00.0"} {
		var stderr strings.Builder
		if code := runWith(t.Context(), opener(k), strings.Fields(args), &full{}, &stderr); code != cli.Failed || !strings.Contains(stderr.String(), "short write") {
			t.Errorf("%s: status %d: %s", args, code, &stderr)
		}
	}
}

// TestThisMachine runs the commands that change nothing on the machine of the test.
func TestThisMachine(t *testing.T) {
	mustRun(t, cli.OK, "list")
	mustRun(t, cli.OK, "list", "-all")
	clitest.Says(t, mustRun(t, cli.Failed, "doctor", "no-such-device").Stdout, "no-such-device")
}
