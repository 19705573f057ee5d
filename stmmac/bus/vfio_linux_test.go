package bus

import (
	"context"
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/gostmmac/gostmmac/mmio"
	"github.com/gostmmac/gostmmac/pagepool"
	"github.com/gostmmac/gostmmac/stmmac"
	"github.com/gostmmac/gostmmac/vfio"
	"github.com/gostmmac/gostmmac/vfio/vfiotest"
)

// registers is a region whose registers are those of a fake.
func registers(f *mmio.Fake) vfiotest.Region {
	return vfiotest.Region{
		Size: uint64(f.Len()),
		Read: func(off uint64, p []byte) {
			if len(p) == 4 {
				binary.LittleEndian.PutUint32(p, f.Load32(uint32(off)))
			}
		},
		Write: func(off uint64, p []byte) {
			if len(p) == 4 {
				f.Store32(uint32(off), binary.LittleEndian.Uint32(p))
			}
		},
	}
}

// yt6801 is the block of the chip with an eFuse whose bytes are all 0.
func yt6801() *mmio.Fake {
	f := mmio.NewFake(0x10000)
	f.Set(0x1504, 1<<1)
	return f
}

func machine(t *testing.T, cfg vfiotest.Config) (*Opener, *vfiotest.Kernel) {
	t.Helper()
	k, err := vfiotest.New(t.TempDir(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(k.Free)
	o := NewOpener()
	o.Kernel = k
	return o, k
}

func addNIC(t *testing.T, k *vfiotest.Kernel, bdf string, group int, f *mmio.Fake, more ...func(*vfiotest.PCI)) *vfiotest.Device {
	t.Helper()
	p := vfiotest.PCI{
		BDF: bdf, Vendor: 0x1f0a, Device: 0x6801, Group: group, Driver: "vfio-pci", Native: "dwmac-motorcomm",
		BARs: []vfiotest.Region{registers(f), {}, {Size: 0x2000}},
		MSIX: vfiotest.MSIX{Count: 6, BAR: 2, Table: 0, PBA: 0x1000}, FLR: true,
	}
	for _, m := range more {
		m(&p)
	}
	d, err := k.AddPCI(p)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func addMAC(t *testing.T, k *vfiotest.Kernel, compatible ...string) *mmio.Fake {
	t.Helper()
	f := mmio.NewFake(0x4000)
	f.Set(0x110, 0x1052)
	_, err := k.AddPlatform(vfiotest.Platform{
		Name: "f0804000.ethernet", Compatible: compatible, Group: 9, Driver: "vfio-platform",
		Regions: []vfiotest.Region{registers(f), {Size: 0x1000}}, Interrupts: []vfiotest.Interrupt{{Level: true}}, IRQNames: []string{"macirq"},
	})
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// configOf is what stmmac.Open makes of the options of a handle.
func configOf(t *testing.T, h *Handle) stmmac.Config {
	t.Helper()
	var got stmmac.Config
	opts := append(slices.Clone(h.Options), stmmac.WithConfig(func(c *stmmac.Config) {
		got = *c
		c.Generation = 0
	}))
	if _, err := stmmac.Open(context.Background(), h.Device, opts...); !errors.Is(err, os.ErrInvalid) {
		t.Fatalf("opened without a generation: %v", err)
	}
	return got
}

func TestPCI(t *testing.T) {
	for _, addr := range []string{"pci:0000:03:00.0", "pci:03:00.0,iommu=group", "pci:1f0a:6801,iommu=iommufd", "pci:driver=vfio-pci"} {
		t.Run(addr, func(t *testing.T) {
			o, k := machine(t, vfiotest.Config{})
			f := yt6801()
			d := addNIC(t, k, "0000:03:00.0", 7, f)
			h := mustOpen(t, o, addr)
			if !d.IsOpen() || h.Device.NumInterrupts() != 6 {
				t.Errorf("open %v, %d vectors", d.IsOpen(), h.Device.NumInterrupts())
			}
			c := configOf(t, h)
			if c.Name != addr || c.Generation != stmmac.GMAC4 || c.CSROffset != 0x2000 || c.CSRClock != 25e6 || c.HardwareAddr != nil {
				t.Errorf("%+v", c)
			}
			if diff := cmp.Diff(&stmmac.MSI{Common: 5, Rx: []int{0, 1, 2, 3}, Tx: []int{4}}, c.MSI); diff != "" {
				t.Errorf("vectors (-want +got):\n%s", diff)
			}
			if f.Peek(0x1010) != 1 || f.Peek(0x1004) != 1 {
				t.Error("the block around the MAC was not set up")
			}
			if err := errors.Join(h.Close(), h.Close()); err != nil {
				t.Error(err)
			}
			if d.IsOpen() || k.OpenFDs() != 0 || f.Peek(0x1010) != 0 || f.Peek(0x1004) != 0 {
				t.Errorf("after Close: open %v, %d descriptors, OOB_WOL_CTRL %#x", d.IsOpen(), k.OpenFDs(), f.Peek(0x1010))
			}
			mustOpen(t, o, addr) // it can be opened again
		})
	}
}

// TestOverrides: what the address says goes before what glue says.
func TestOverrides(t *testing.T) {
	o, k := machine(t, vfiotest.Config{})
	f := addMAC(t, k, "nxp,imx8mp-dwmac-eqos", "snps,dwmac-5.10a")
	h := mustOpen(t, o, "platform:f0804000.ethernet")
	if c := configOf(t, h); c.AddrWidth != 34 || c.CSRClock != 0 || c.RegionNo != 0 || c.CSROffset != 0 || c.MSI != nil {
		t.Errorf("%+v", c)
	}
	if err := h.Close(); err != nil {
		t.Error(err)
	}
	f.Set(0x110, 0)
	f.Set(0x410, 0x1052)
	h = mustOpen(t, o, "platform:f0804000.ethernet,generation=gmac4,region=0,offset=0x300,csr=50000000,addr=02:00:00:00:00:07,width=32")
	c := configOf(t, h)
	if c.AddrWidth != 32 || c.CSRClock != 50e6 || c.CSROffset != 0x300 || c.HardwareAddr.String() != "02:00:00:00:00:07" || c.Generation != stmmac.GMAC4 {
		t.Errorf("%+v", c)
	}
}

// TestUnknown: a device that glue does not know is opened by what the address says.
func TestUnknown(t *testing.T) {
	o, k := machine(t, vfiotest.Config{})
	addNIC(t, k, "0000:04:00.0", 8, mmio.NewFake(0x4000), func(p *vfiotest.PCI) { p.Vendor, p.Device = 0x1234, 0x5678 })
	_, err := o.Open(context.Background(), "pci:0000:04:00.0")
	var e *AddressError
	if !errors.Is(err, errors.ErrUnsupported) || !errors.As(err, &e) || e.Part != "location" ||
		!strings.Contains(err.Error(), "1234:5678") || !strings.Contains(err.Error(), "pci:0000:04:00.0,generation=gmac4") {
		t.Errorf("not known: %v", err)
	}
	h := mustOpen(t, o, "pci:0000:04:00.0,generation=gmac4,region=0,offset=0x1000")
	if c := configOf(t, h); c.Generation != stmmac.GMAC4 || c.CSROffset != 0x1000 {
		t.Errorf("%+v", c)
	}
	addMAC(t, k, "snps,dwxgmac-2.10", "snps,dwxgmac")
	if _, err := o.Open(context.Background(), "platform:f0804000.ethernet"); !errors.Is(err, errors.ErrUnsupported) || !strings.Contains(err.Error(), "gmac") {
		t.Errorf("a generation that is not driven: %v", err)
	}
	mustOpen(t, o, "platform:f0804000.ethernet,generation=gmac4") // who says so
}

// TestSharedDomain: memory that is mapped for one of two devices is at the same
// place for the other, and the domain goes with the last.
func TestSharedDomain(t *testing.T) {
	for _, iommu := range []string{"auto", "group", "iommufd"} {
		t.Run(iommu, func(t *testing.T) {
			o, k := machine(t, vfiotest.Config{})
			devs := [2]*vfiotest.Device{addNIC(t, k, "0000:03:00.0", 7, yt6801()), addNIC(t, k, "0000:04:00.0", 8, yt6801())}
			a := mustOpen(t, o, "pci:0000:03:00.0,iommu="+iommu)
			b := mustOpen(t, o, "pci:0000:04:00.0,iommu="+iommu)
			if n := len(o.domains); n != 1 {
				t.Errorf("%d domains", n)
			}
			pool, err := pagepool.New(a.Device, 8)
			if err != nil {
				t.Fatal(err)
			}
			var views [2]*pagepool.Mapping
			for i, h := range []*Handle{a, b} {
				if views[i], err = pool.Attach(h.Device); err != nil {
					t.Fatal(err)
				}
			}
			buf, err := pool.Alloc()
			if err != nil {
				t.Fatal(err)
			}
			buf.SetData([]byte("the same bytes"))
			_, at, ok := views[0].View().Lookup(buf)
			if _, other, too := views[1].View().Lookup(buf); !ok || !too || other != at || len(k.Mappings()) != 1 {
				t.Errorf("at %#x and %#x, %d mappings", at, other, len(k.Mappings()))
			}
			for _, d := range devs {
				mem, err := d.DMA(at, 14)
				if err != nil || string(mem) != "the same bytes" {
					t.Errorf("%s reads %q, %v", d.Name(), mem, err)
				}
			}
			pool.Free(buf)
			for _, v := range views {
				if err := v.Close(); err != nil {
					t.Error(err)
				}
			}
			if err := pool.Close(); err != nil {
				t.Error(err)
			}
			if err := a.Close(); err != nil || len(o.domains) != 1 || !devs[1].IsOpen() {
				t.Errorf("%v, %d domains, the other open: %v", err, len(o.domains), devs[1].IsOpen())
			}
			if err := b.Close(); err != nil || len(o.domains) != 0 || k.OpenFDs() != 0 {
				t.Errorf("%v, %d domains, %d descriptors", err, len(o.domains), k.OpenFDs())
			}
		})
	}
}

// TestOtherDomains: another iommu= is another domain.
func TestOtherDomains(t *testing.T) {
	o, k := machine(t, vfiotest.Config{})
	addNIC(t, k, "0000:03:00.0", 7, yt6801())
	addNIC(t, k, "0000:04:00.0", 8, yt6801())
	mustOpen(t, o, "pci:0000:03:00.0,iommu=group")
	mustOpen(t, o, "pci:0000:04:00.0,iommu=iommufd")
	if n := len(o.domains); n != 2 {
		t.Errorf("%d domains", n)
	}
}

// TestBind takes a device from its kernel driver and gives it back, also when it
// cannot be opened.
func TestBind(t *testing.T) {
	o, k := machine(t, vfiotest.Config{})
	native := func(p *vfiotest.PCI) { p.Driver = p.Native }
	d := addNIC(t, k, "0000:03:00.0", 7, yt6801(), native)
	if _, err := o.Open(context.Background(), "pci:0000:03:00.0"); !errors.Is(err, os.ErrNotExist) || !strings.Contains(err.Error(), "stmmacctl bind") {
		t.Errorf("opened without bind=on: %v", err)
	}
	h := mustOpen(t, o, "pci:0000:03:00.0,bind=on")
	if d.Driver() != "vfio-pci" {
		t.Errorf("it is with %q", d.Driver())
	}
	if err := h.Close(); err != nil || d.Driver() != "dwmac-motorcomm" || k.OpenFDs() != 0 {
		t.Errorf("closed: %v, with %q, %d descriptors", err, d.Driver(), k.OpenFDs())
	}
	dead := mmio.NewFake(0x10000) // its eFuse does not answer
	d = addNIC(t, k, "0000:04:00.0", 8, dead, native)
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if _, err := o.Open(ctx, "pci:0000:04:00.0,bind=on"); err == nil {
		t.Fatal("a chip that does not answer was opened")
	}
	if d.Driver() != "dwmac-motorcomm" || d.IsOpen() || k.OpenFDs() != 0 {
		t.Errorf("not opened: with %q, open %v, %d descriptors", d.Driver(), d.IsOpen(), k.OpenFDs())
	}
	// One that was bound by somebody else stays so.
	e := addNIC(t, k, "0000:05:00.0", 9, yt6801())
	if err := mustOpen(t, o, "pci:0000:05:00.0,bind=on").Close(); err != nil || e.Driver() != "vfio-pci" {
		t.Errorf("closed: %v, with %q", err, e.Driver())
	}
}

func TestNoIOMMU(t *testing.T) {
	o, k := machine(t, vfiotest.Config{NoIOMMU: true, CapSysRawIO: true})
	addNIC(t, k, "0000:03:00.0", -1, yt6801())
	_, err := o.Open(context.Background(), "pci:0000:03:00.0")
	if !errors.Is(err, os.ErrPermission) || !strings.Contains(err.Error(), "iommu=noiommu") {
		t.Errorf("without being asked for: %v", err)
	}
	if k.OpenFDs() != 0 || len(o.domains) != 0 {
		t.Errorf("%d descriptors, %d domains", k.OpenFDs(), len(o.domains))
	}
	mustOpen(t, o, "pci:0000:03:00.0,iommu=noiommu").Close()
	var warned []string
	o.Warn = func(a Address, text string) { warned = append(warned, a.Location+" "+text) }
	for n, c := range []struct {
		iommu   string
		backend vfio.Backend
	}{{"noiommu", vfio.IOMMUFD}, {"noiommu-group", vfio.Group}} {
		h := mustOpen(t, o, "pci:0000:03:00.0,iommu="+c.iommu)
		if len(warned) != n+1 || !strings.Contains(warned[n], "0000:03:00.0 no IOMMU") || !strings.Contains(warned[n], "all memory") {
			t.Errorf("warnings: %q", warned)
		}
		if b, _ := o.domains[c.iommu].dom.Backend(); b != c.backend {
			t.Errorf("%s: back end %v", c.iommu, b)
		}
		h.Close()
	}
	warned = nil
	addNIC(t, k, "0000:04:00.0", -1, yt6801(), func(p *vfiotest.PCI) { p.FLR = false })
	mustOpen(t, o, "pci:0000:04:00.0,iommu=noiommu")
	if len(warned) != 2 || !strings.Contains(warned[1], "0000:04:00.0 the kernel has no reset") || !strings.Contains(warned[1], "until it is opened again") {
		t.Errorf("without a reset: %q", warned)
	}
}

func TestVFIOErrors(t *testing.T) {
	for _, tc := range []struct {
		name string
		addr string
		bend func(t *testing.T, k *vfiotest.Kernel, f *mmio.Fake)
		part string
		is   error
		text string
	}{
		{"no such device", "pci:0000:05:00.0", nil, "location", vfio.ErrNoDevice, "stmmacctl list"},
		{"the wrong scheme", "platform:0000:03:00.0", nil, "location", os.ErrInvalid, "pci:0000:03:00.0"},
		{"with the kernel's driver", "pci:0000:04:00.0", func(t *testing.T, k *vfiotest.Kernel, _ *mmio.Fake) {
			addNIC(t, k, "0000:04:00.0", 8, yt6801(), func(p *vfiotest.PCI) { p.Driver = p.Native })
		}, "", nil, "0000:04:00.0"},
		{"no BAR 1", "pci:0000:03:00.0,region=1", nil, "location", vfio.ErrGone, "BAR 1"},
		{"ASPM L1", "pci:0000:03:00.0", func(t *testing.T, k *vfiotest.Kernel, _ *mmio.Fake) {
			dir := k.Path("sys/bus/pci/devices/0000:03:00.0/link")
			if err := errors.Join(os.Mkdir(dir, 0o777), os.WriteFile(filepath.Join(dir, "l1_aspm"), []byte("1\n"), 0o666)); err != nil {
				t.Fatal(err)
			}
		}, "location", os.ErrInvalid, "echo 0 > /sys/bus/pci/devices/0000:03:00.0/link/l1_aspm"},
		{"the chip is gone", "pci:0000:03:00.0", func(_ *testing.T, _ *vfiotest.Kernel, f *mmio.Fake) { f.Set(0x152c, mmio.AllOnes) }, "", vfio.ErrGone, "SYS_RESET"},
		{"the MAC has no clock", "platform:f0804000.ethernet", func(t *testing.T, k *vfiotest.Kernel, _ *mmio.Fake) {
			addMAC(t, k, "rockchip,rk3568-gmac", "snps,dwmac-4.20a").Set(0x110, 0)
		}, "", vfio.ErrGone, "GRF"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			o, k := machine(t, vfiotest.Config{})
			f := yt6801()
			d := addNIC(t, k, "0000:03:00.0", 7, f)
			if tc.bend != nil {
				tc.bend(t, k, f)
			}
			h, err := o.Open(context.Background(), tc.addr)
			var e *AddressError
			if h != nil || !errors.As(err, &e) || e.Address != tc.addr || e.Part != tc.part {
				t.Fatalf("%v, %v; want part %q", h, err, tc.part)
			}
			if tc.is != nil && !errors.Is(err, tc.is) || !strings.Contains(err.Error(), tc.text) {
				t.Errorf("%v; want %v, %q", err, tc.is, tc.text)
			}
			var v *vfio.Error
			if tc.is != os.ErrInvalid && !errors.As(err, &v) {
				t.Errorf("%v is none of vfio's", err)
			}
			if d.IsOpen() || k.OpenFDs() != 0 || len(o.domains) != 0 {
				t.Errorf("left: open %v, %d descriptors, %d domains", d.IsOpen(), k.OpenFDs(), len(o.domains))
			}
		})
	}
}
