package guest

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gostmmac/gostmmac/hwtest/rig/debian"
	"github.com/gostmmac/gostmmac/hwtest/rig/guest/channel"
	"github.com/gostmmac/gostmmac/hwtest/rig/guest/jobs"
	"github.com/gostmmac/gostmmac/hwtest/rig/kernel"
)

// guard ends a test that hangs: an emulated machine on a busy one is slow.
func guard(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
	t.Cleanup(cancel)
	return ctx
}

// parts returns the tree and the kernel for an architecture of the cache folder, or skips.
func parts(t *testing.T, arch string) (*debian.Tree, *kernel.Kernel) {
	t.Helper()
	cache := os.Getenv("GOSTMMAC_RIG_CACHE")
	if testing.Short() {
		t.Skip("a guest takes many seconds; without -short it is booted")
	} else if cache == "" {
		t.Skip("GOSTMMAC_RIG_CACHE names no cache folder with QEMU and kernels; go run ./hwtest/rig setup fills one")
	}
	tree, err := debian.Open(cache)
	if err != nil {
		t.Fatal(err)
	}
	k, err := kernel.Open(cache, arch)
	if errors.Is(err, debian.ErrIncomplete) {
		t.Skip(err)
	} else if err != nil {
		t.Fatal(err)
	}
	return tree, k
}

// modules finds modules of a kernel in the order in which they are loaded.
func modules(t *testing.T, k *kernel.Kernel, sets []string, names ...string) []kernel.Module {
	t.Helper()
	m, err := k.Load(sets, names...)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// boot boots a guest that is ended at the end of the test, in which its kernel must not warn.
func boot(t *testing.T, c Config) *Guest {
	t.Helper()
	c.Dir = t.TempDir()
	log := c.Log
	c.Log = func(job, line string) {
		t.Log(job+":", line)
		if log != nil {
			log(job, line)
		}
	}
	begin := time.Now()
	g, err := Boot(guard(t), c)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("ready after %v", time.Since(begin).Round(time.Millisecond))
	t.Cleanup(func() {
		if err := g.Close(); err != nil {
			t.Error(err)
		}
		if t.Failed() {
			console, err := os.ReadFile(filepath.Join(c.Dir, ConsoleLog))
			t.Logf("%v, the console:\n%s", err, console)
		}
	})
	return g
}

func must[R any](t *testing.T, g *Guest, j jobs.Job[R]) R {
	t.Helper()
	r, err := Do(guard(t), g, j)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// TestPC boots the stock kernel for amd64 without any device, loads stmmac with its
// self-tests and all glues, and ends it.
func TestPC(t *testing.T) {
	tree, k := parts(t, "amd64")
	load := modules(t, k, []string{kernel.Stmmac}, "dwmac-modelpci", "dwmac-motorcomm", "dwmac-intel", "stmmac-pci", "motorcomm", "8021q", "veth")
	program := filepath.Join(t.TempDir(), "program")
	if err := Build(guard(t), "amd64", program, initPackage); err != nil {
		t.Fatal(err)
	}
	g := boot(t, Config{Tree: tree, Kernel: k, Modules: load, Init: program, Programs: map[string]string{"second": program}, IOMMU: true})
	s := must(t, g, jobs.System{})
	if !strings.Contains(s.Version, "Linux version "+k.Release+" ") || !strings.Contains(s.CommandLine, "oops=panic") || len(s.Modules) > 0 {
		t.Errorf("%+v", s)
	}
	if err := g.Load(guard(t), load, map[string]string{"dwmac_modelpci": "rxq=4 txq=4 multi_irq=1 filter_entries=32 bins=256"}); err != nil {
		t.Fatal(err)
	}
	if s := must(t, g, jobs.System{}); !slices.Contains(s.Modules, "stmmac") || len(s.Modules) != len(load) {
		t.Errorf("%d modules were loaded, and there are %q", len(load), s.Modules)
	}
	if b := must(t, g, jobs.ReadFile{Path: "/sys/module/dwmac_modelpci/parameters/bins"}); string(b) != "256\n" {
		t.Errorf("bins=%q", b)
	}
	if err := g.Load(guard(t), load[:1], nil); err == nil || !strings.Contains(err.Error(), "file exists") {
		t.Errorf("a module a second time: %v", err)
	}
	// The first program refuses to be another one.
	if p := must(t, g, jobs.Program{Path: "/bin/second"}); p.Code != 1 {
		t.Errorf("a program: %+v", p)
	}
	must(t, g, jobs.Unload{Module: "dwmac_modelpci"})
	if w := g.Warnings(); len(w) > 0 {
		t.Errorf("the kernel warned: %q", w)
	}
	if err := g.Off(guard(t)); err != nil {
		t.Error(err)
	}
	if _, err := Do(guard(t), g, jobs.System{}); !errors.Is(err, ErrGone) {
		t.Errorf("a job after the end: %v", err)
	}
}

// TestPanic: what a crash of the kernel looks like, while a job runs.
func TestPanic(t *testing.T) {
	tree, k := parts(t, "amd64")
	g := boot(t, Config{Tree: tree, Kernel: k})
	short, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if _, err := Do(short, g, jobs.WaitInterface{Interface: "none", Running: true}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a job with a limit: %v", err)
	}
	var job *channel.JobError
	if _, err := Do(guard(t), g, jobs.ReadFile{Path: "/none"}); !errors.As(err, &job) || !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a job that fails: %v", err)
	}
	waiting := make(chan error, 1)
	go func() {
		_, err := Do(guard(t), g, jobs.WaitInterface{Interface: "none", Running: true})
		waiting <- err
	}()
	_, err := Do(guard(t), g, jobs.WriteFile{Path: "/proc/sysrq-trigger", Text: "c"})
	for _, err := range []error{err, <-waiting} {
		var e *Error
		if !errors.Is(err, ErrPanic) || !errors.Is(err, ErrGone) || !errors.As(err, &e) || !strings.Contains(e.Console, "sysrq: Trigger a crash") {
			t.Errorf("%v", err)
		}
	}
	if err := g.Off(guard(t)); !errors.Is(err, ErrPanic) {
		t.Errorf("%v", err)
	}
}

// write writes a file of sysfs.
func write(t *testing.T, g *Guest, path, text string) {
	t.Helper()
	must(t, g, jobs.WriteFile{Path: path, Text: text})
}

// TestVFIOPCI gives a PCI device behind an IOMMU to vfio-pci, as built with character devices
// and iommufd.
func TestVFIOPCI(t *testing.T) {
	tree, k := parts(t, "amd64")
	load := modules(t, k, []string{kernel.VFIO}, "vfio-pci", "vfio_iommu_type1")
	g := boot(t, Config{Tree: tree, Kernel: k, Modules: load, IOMMU: true, Devices: []string{"pci-testdev,addr=5"}})
	if err := g.Load(guard(t), load, map[string]string{"vfio": "enable_unsafe_noiommu_mode=1"}); err != nil {
		t.Fatal(err)
	}
	const device = "/sys/bus/pci/devices/0000:00:05.0/"
	write(t, g, device+"driver_override", "vfio-pci")
	write(t, g, "/sys/bus/pci/drivers_probe", "0000:00:05.0")
	if l := must(t, g, jobs.ReadLink{Path: device + "driver"}); filepath.Base(l) != "vfio-pci" {
		t.Errorf("driver %s", l)
	}
	group := filepath.Base(must(t, g, jobs.ReadLink{Path: device + "iommu_group"}))
	if l := must(t, g, jobs.List{Path: "/dev/vfio"}); !slices.Contains(l, group) || !slices.Contains(l, "vfio") || !slices.Contains(l, "devices") {
		t.Errorf("group %s, /dev/vfio has %q", group, l)
	}
	if l := must(t, g, jobs.List{Path: "/dev/vfio/devices"}); !slices.Equal(l, []string{"vfio0"}) {
		t.Errorf("character devices %q", l)
	}
	if l := must(t, g, jobs.List{Path: "/dev"}); !slices.Contains(l, "iommu") {
		t.Errorf("no iommufd in %q", l)
	}
	if err := g.Off(guard(t)); err != nil {
		t.Error(err)
	}
}

// TestNPCM845 boots the stock kernel for arm64 on the board with two GMACs that a cable joins.
// The stock driver finds both and gets a link; the jobs of package jobs run between them.
func TestNPCM845(t *testing.T) {
	tree, k := parts(t, "arm64")
	load := modules(t, k, []string{kernel.VFIO}, "dwmac-generic", "8021q", "vfio-platform")
	ready := make(chan struct{}, 1)
	g := boot(t, Config{Tree: tree, Kernel: k, Modules: load, Args: BackToBack(), Log: func(_, line string) {
		if line == jobs.Ready {
			ready <- struct{}{}
		}
	}})
	// Neither has the model a reset that vfio-platform knows, nor the board an IOMMU.
	if err := g.Load(guard(t), load, map[string]string{"vfio": "enable_unsafe_noiommu_mode=1", "vfio_platform": "reset_required=0"}); err != nil {
		t.Fatal(err)
	}
	// Names of interfaces are in the order of probes, the drivers of sysfs by address.
	byAddress := map[string]string{}
	for _, i := range must(t, g, jobs.Interfaces{}) {
		byAddress[i.HardwareAddr] = i.Name
	}
	a, b := byAddress["02:00:00:00:00:01"], byAddress["02:00:00:00:00:02"]
	if a == "" || b == "" {
		t.Fatalf("the driver made %v", byAddress)
	}
	for _, address := range []string{"f0802000.ethernet", "f0804000.ethernet"} {
		if l := must(t, g, jobs.ReadLink{Path: "/sys/bus/platform/devices/" + address + "/driver"}); filepath.Base(l) != "stmmaceth" {
			t.Errorf("%s has the driver %s", address, l)
		}
	}
	must(t, g, jobs.Space{Space: "far"})
	must(t, g, jobs.Move{Interface: b, To: "far"})
	const mtu = 1500
	must(t, g, jobs.Configure{Interface: a, Up: true, MTU: mtu, Addresses: []string{"10.0.0.1/24"}})
	must(t, g, jobs.Configure{Space: "far", Interface: b, Up: true, MTU: mtu, Addresses: []string{"10.0.0.2/24"}})
	must(t, g, jobs.WaitInterface{Interface: a, Running: true})
	must(t, g, jobs.WaitInterface{Space: "far", Interface: b, Running: true})
	if l := must(t, g, jobs.Link{Interface: a}); !l.Up || l.Mbps != 1000 || !l.Full {
		t.Errorf("link %+v", l)
	}
	if d := must(t, g, jobs.Driver{Interface: a}); d.Name != "st_gmac" {
		t.Errorf("driver %+v", d)
	}
	p := must(t, g, jobs.Ping{To: "10.0.0.2", Size: 1000, Count: 5})
	if p.Answered != 5 {
		t.Errorf("%+v", p)
	}
	t.Logf("ping %d to %d us", p.Fastest, p.Slowest)

	const size = 1 << 20
	listened := make(chan error, 1)
	go func() {
		_, err := Do(guard(t), g, jobs.Transfer{Space: "far", Listen: "10.0.0.2:5001", Send: size, Receive: size, Seed: 1})
		listened <- err
	}()
	r := must(t, g, jobs.Transfer{Dial: "10.0.0.2:5001", Send: size, Receive: size, Seed: 1})
	if err := <-listened; err != nil {
		t.Error(err)
	}
	t.Logf("1 MiB each way in %d us", r.Microseconds)

	reflecting, stop := context.WithCancel(guard(t))
	reflected := make(chan error, 1)
	go func() {
		_, err := Do(reflecting, g, jobs.Reflect{Space: "far", Interface: b})
		reflected <- err
	}()
	<-ready
	f := must(t, g, jobs.Frames{Interface: a, To: "02:00:00:00:00:02", Min: 14, Max: mtu + 18})
	if f.Frames != mtu+18-14+1 {
		t.Errorf("%+v", f)
	}
	stop()
	if err := <-reflected; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	must(t, g, jobs.VLAN{Interface: "near.7", Parent: a, ID: 7})
	must(t, g, jobs.VLAN{Space: "far", Interface: "far.7", Parent: b, ID: 7})
	must(t, g, jobs.Configure{Interface: "near.7", Up: true, Addresses: []string{"10.7.0.1/24"}})
	must(t, g, jobs.Configure{Space: "far", Interface: "far.7", Up: true, Addresses: []string{"10.7.0.2/24"}})
	if p := must(t, g, jobs.Ping{To: "10.7.0.2", Size: 100, Count: 2}); p.Answered != 2 {
		t.Errorf("VLAN: %+v", p)
	}
	must(t, g, jobs.Join{Interface: a, Group: "33:33:00:00:12:34"})
	if s := must(t, g, jobs.Statistics{Interface: a}); s["rx_pkt_n"] == 0 {
		t.Errorf("statistics %v", s)
	}

	// The second goes from the driver to vfio-platform and back.
	const device, driver = "f0804000.ethernet", "/sys/bus/platform/drivers/"
	write(t, g, driver+"stmmaceth/unbind", device)
	write(t, g, "/sys/bus/platform/devices/"+device+"/driver_override", "vfio-platform")
	write(t, g, driver+"vfio-platform/bind", device)
	if l := must(t, g, jobs.List{Path: "/dev/vfio"}); !slices.Equal(l, []string{"noiommu-0", "vfio"}) {
		t.Errorf("/dev/vfio has %q", l)
	}
	write(t, g, driver+"vfio-platform/unbind", device)
	write(t, g, "/sys/bus/platform/devices/"+device+"/driver_override", "\n")
	write(t, g, "/sys/bus/platform/drivers_probe", device)
	back := ""
	for _, i := range must(t, g, jobs.Interfaces{}) {
		if i.HardwareAddr == "02:00:00:00:00:02" {
			back = i.Name
		}
	}
	must(t, g, jobs.Configure{Interface: back, Up: true})
	must(t, g, jobs.WaitInterface{Interface: back, Running: true})
	if w := g.Warnings(); len(w) > 0 {
		t.Errorf("the kernel warned: %q", w)
	}
	if err := g.Off(guard(t)); err != nil {
		t.Error(err)
	}
}
