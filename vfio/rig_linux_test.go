package vfio_test

import (
	"errors"
	"os"
	"strings"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/gostmmac/gostmmac/vfio"
	"github.com/gostmmac/gostmmac/vfio/vfiotest"
)

const kib, mib, gib = 1 << 10, 1 << 20, 1 << 30

// newKernel makes a kernel that must be empty again at the end of the test.
func newKernel(t testing.TB, cfg vfiotest.Config) *vfiotest.Kernel {
	t.Helper()
	k, err := vfiotest.New(t.TempDir(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if n := k.OpenFDs(); n != 0 {
			t.Errorf("%d descriptors are left open", n)
		}
		if n := k.OpenMaps(); n != 0 {
			t.Errorf("%d mappings of registers are left", n)
		}
		if m := k.Mappings(); len(m) != 0 {
			t.Errorf("DMA mappings are left: %v", m)
		}
		k.Free()
	})
	return k
}

// card is a network card with vfio-pci: registers in BAR 0, a table of vectors in
// BAR 2.
func card(bdf string, group int) vfiotest.PCI {
	return vfiotest.PCI{
		BDF: bdf, Vendor: 0x1f0a, Device: 0x6801, Group: group, Driver: "vfio-pci", Native: "dwmac-motorcomm",
		BARs: []vfiotest.Region{{Size: 64 * kib, Mmap: true}, {}, {Size: 16 * kib}},
		INTx: true, MSI: 8, MSIX: vfiotest.MSIX{Count: 6, BAR: 2, PBA: 8 * kib}, FLR: true,
	}
}

// board is a MAC of a system on chip with vfio-platform.
func board(name string, group int) vfiotest.Platform {
	return vfiotest.Platform{
		Name: name, Compatible: []string{"vendor,soc-dwmac", "snps,dwmac-4.20a"}, Group: group, Driver: "vfio-platform", Native: "dwmac-generic",
		Regions: []vfiotest.Region{{Size: 8 * kib, Mmap: true}}, RegNames: []string{"stmmaceth"},
		Interrupts: []vfiotest.Interrupt{{Level: true}, {}}, IRQNames: []string{"macirq", "eth_wake_irq"},
	}
}

func addPCI(t testing.TB, k *vfiotest.Kernel, p vfiotest.PCI) *vfiotest.Device {
	t.Helper()
	d, err := k.AddPCI(p)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func addPlatform(t testing.TB, k *vfiotest.Kernel, p vfiotest.Platform) *vfiotest.Device {
	t.Helper()
	d, err := k.AddPlatform(p)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// open opens a device, which is closed at the end of the test at the latest.
func open(t testing.TB, k vfio.Kernel, addr string, opts ...vfio.Option) *vfio.Device {
	t.Helper()
	d, err := vfio.Open(t.Context(), addr, append([]vfio.Option{vfio.WithKernel(k)}, opts...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { must(t, d.Close()) })
	return d
}

func newDomain(t testing.TB, k vfio.Kernel, opts ...vfio.Option) *vfio.Domain {
	t.Helper()
	d, err := vfio.NewDomain(append([]vfio.Option{vfio.WithKernel(k)}, opts...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { must(t, d.Close()) })
	return d
}

func join(t testing.TB, m *vfio.Domain, addr string, opts ...vfio.DeviceOption) *vfio.Device {
	t.Helper()
	d, err := m.Open(t.Context(), addr, opts...)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// memory returns n bytes of memory of whole pages.
func memory(t testing.TB, n int) []byte {
	t.Helper()
	mem, err := unix.Mmap(-1, 0, n, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { must(t, unix.Munmap(mem)) })
	return mem
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Error(err)
	}
}

// mustFail wants an error of this package that wraps target and says all of texts.
func mustFail(t testing.TB, err, target error, texts ...string) {
	t.Helper()
	var e *vfio.Error
	if !errors.As(err, &e) || !errors.Is(err, target) {
		t.Errorf("error %v, want a *vfio.Error that is %v", err, target)
		return
	}
	for _, s := range texts {
		if !strings.Contains(err.Error(), s) {
			t.Errorf("error %q does not say %q", err, s)
		}
	}
}

// calls are the names of the calls so far that want says, in their order.
func calls(k *vfiotest.Kernel, want func(vfiotest.Call) bool) []string {
	var names []string
	for _, c := range k.Calls() {
		if want(c) {
			names = append(names, c.Name)
		}
	}
	return names
}

// address is where memory lies in the process.
func address(mem []byte) uintptr { return uintptr(unsafe.Pointer(unsafe.SliceData(mem))) }

// vmFlags are the flags of the mapping that mem lies in (proc(5), smaps).
func vmFlags(t testing.TB, mem []byte) string {
	t.Helper()
	b, err := os.ReadFile("/proc/self/smaps")
	if err != nil {
		t.Fatal(err)
	}
	inside := false
	for line := range strings.SplitSeq(string(b), "\n") {
		if lo, hi, ok := bounds(line); ok {
			inside = lo <= address(mem) && address(mem) < hi
		} else if f, ok := strings.CutPrefix(line, "VmFlags:"); ok && inside {
			return f + " "
		}
	}
	t.Fatal("the memory is not in smaps")
	return ""
}
