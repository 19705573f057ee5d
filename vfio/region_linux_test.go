package vfio_test

import (
	"errors"
	"os"
	"runtime/debug"
	"slices"
	"sync"
	"testing"
	"unsafe"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/gostmmac/gostmmac/mmio"
	"github.com/gostmmac/gostmmac/vfio"
	"github.com/gostmmac/gostmmac/vfio/vfiotest"
)

// TestRegions is V10: parts that can be mapped are, and the rest is read and written
// by system calls, without a difference that a driver sees.
func TestRegions(t *testing.T) {
	type access struct {
		off   uint64
		write bool
	}
	for name, c := range map[string]struct {
		region vfiotest.Region
		mapped []vfio.Area
		calls  []access // of a walk over the registers 0, 0x1ffc, 0x2000, 0x2ffc, 0x3000, 0xfffc
	}{
		"whole":  {vfiotest.Region{Size: 64 * kib, Mmap: true}, []vfio.Area{{Offset: 0, Size: 64 * kib}}, nil},
		"sparse": {vfiotest.Region{Size: 64 * kib, Mmap: true, Sparse: []vfiotest.Area{{Offset: 0x3000, Size: 0xd000}, {Offset: 0, Size: 0x2000}}}, []vfio.Area{{Offset: 0x3000, Size: 0xd000}, {Offset: 0, Size: 0x2000}}, []access{{0x2000, true}, {0x2000, false}, {0x2ffc, true}, {0x2ffc, false}}},
		"none":   {vfiotest.Region{Size: 64 * kib}, nil, []access{{0, true}, {0, false}, {0x1ffc, true}, {0x1ffc, false}, {0x2000, true}, {0x2000, false}, {0x2ffc, true}, {0x2ffc, false}, {0x3000, true}, {0x3000, false}, {0xfffc, true}, {0xfffc, false}}},
	} {
		t.Run(name, func(t *testing.T) {
			k := newKernel(t, vfiotest.Config{})
			p := card("0000:03:00.0", 14)
			var got []access
			regs := make([]byte, 64*kib)
			r := c.region
			r.Read = func(off uint64, b []byte) { got = append(got, access{off, false}); copy(b, regs[off:]) }
			r.Write = func(off uint64, b []byte) { got = append(got, access{off, true}); copy(regs[off:], b) }
			p.BARs[0] = r
			addPCI(t, k, p)
			d := open(t, k, p.BDF)
			region, err := d.Region(0)
			if err != nil {
				t.Fatal(err)
			}
			if again, err := d.Region(0); again != region || err != nil {
				t.Errorf("the region is another one the second time, %v", err)
			}
			for i, off := range []uint32{0, 0x1ffc, 0x2000, 0x2ffc, 0x3000, 0xfffc} {
				region.Store32(off, uint32(i)+1)
				if v := region.Load32(off); v != uint32(i)+1 {
					t.Errorf("register %#x reads as %#x", off, v)
				}
			}
			for _, off := range []uint32{1, 2, 0x10000, 0xfffffffc, 0xfffd} {
				region.Store32(off, 7)
				if v := region.Load32(off); v != mmio.AllOnes {
					t.Errorf("offset %#x reads as %#x", off, v)
				}
			}
			if diff := cmp.Diff(c.calls, got, cmp.AllowUnexported(access{})); diff != "" {
				t.Errorf("system calls (-want +got):\n%s", diff)
			}
			if region.Len() != 64*kib || d.Gone() {
				t.Errorf("%d bytes, gone %v", region.Len(), d.Gone())
			}
		})
	}
}

// TestRegionInfo asks about regions that are there, and those that are not.
func TestRegionInfo(t *testing.T) {
	k := newKernel(t, vfiotest.Config{})
	p := card("0000:03:00.0", 14)
	p.BARs[2].Mmap, p.BARs[2].MSIXMappable = true, true
	addPCI(t, k, p)
	d := open(t, k, p.BDF)
	info, err := d.RegionInfo(2)
	must(t, err)
	if !info.MSIXMappable || info.Size != 16*kib || !info.Read || !info.Write {
		t.Errorf("%+v", info)
	}
	for i, target := range map[int]error{-1: os.ErrNotExist, 9: os.ErrNotExist, 1: os.ErrNotExist, 100: os.ErrNotExist} {
		_, err := d.Region(i)
		mustFail(t, err, target)
	}
	if n := d.NumRegions(); n != 9 {
		t.Errorf("%d regions", n)
	}
	// What cannot be mapped, for whatever reason, is accessed by system calls.
	hw := addPCI(t, k, card("0000:04:00.0", 15))
	k.FailNext("mmap", unix.EINVAL)
	r, err := open(t, k, hw.Name()).Region(0)
	must(t, err)
	r.Store32(8, 9)
	if hw.Memory(0)[8] != 9 || r.Load32(8) != 9 {
		t.Error("a region that could not be mapped does not work")
	}
}

// TestUnplugged pulls a device out: a mapped register raises SIGBUS, others fail.
func TestUnplugged(t *testing.T) {
	for name, mapped := range map[string]bool{"mapped": true, "by system calls": false} {
		for op, do := range map[string]func(mmio.Region) bool{
			"load":   func(r mmio.Region) bool { return r.Load32(0x40) == mmio.AllOnes },
			"store":  func(r mmio.Region) bool { r.Store32(0x40, 1); return true },
			"window": func(r mmio.Region) bool { return mmio.Window(r, 0x2000, 0x1000).Load32(4) == mmio.AllOnes },
			"bell":   func(r mmio.Region) bool { b := mmio.NewDoorbell(r, 0x80); b.Ring(1); return true },
		} {
			t.Run(name+"/"+op, func(t *testing.T) {
				k := newKernel(t, vfiotest.Config{})
				p := card("0000:03:00.0", 14)
				p.BARs[0].Mmap = mapped
				hw := addPCI(t, k, p)
				d := open(t, k, p.BDF)
				r, err := d.Region(0)
				must(t, err)
				mem := memory(t, 4*kib)
				iova, err := d.MapDMA(mem)
				must(t, err)
				v := interrupt(t, d, 0)
				r.Store32(0x40, 5)
				if r.Load32(0x40) != 5 || d.Gone() {
					t.Fatal("it is gone before it was pulled out")
				}
				must(t, hw.Unplug())
				if !do(r) {
					t.Error("it does not read as all ones")
				}
				if !d.Gone() {
					t.Error("nobody noticed")
				}
				// From then on nothing is asked of it.
				before := len(k.Calls())
				if r.Load32(0) != mmio.AllOnes {
					t.Error("it does not read as all ones")
				}
				_, err = d.MapDMA(memory(t, 4*kib))
				mustFail(t, err, vfio.ErrGone)
				mustFail(t, d.Reset(t.Context()), vfio.ErrGone)
				_, err = d.Region(2)
				mustFail(t, err, vfio.ErrGone)
				_, err = d.Interrupt(1)
				mustFail(t, err, vfio.ErrGone)
				mustFail(t, d.EnterLowPower(), vfio.ErrGone)
				mustFail(t, d.SetBusMaster(false), vfio.ErrGone)
				if n := len(k.Calls()); n != before {
					t.Errorf("calls: %v", k.Calls()[before:])
				}
				must(t, d.UnmapDMA(iova, len(mem)))
				must(t, v.Close())
				must(t, d.Close())
			})
		}
	}
}

// TestGuard says that the guard takes faults in its own region only, and leaves the
// goroutine as it was.
func TestGuard(t *testing.T) {
	k := newKernel(t, vfiotest.Config{})
	p := card("0000:03:00.0", 14)
	hw := addPCI(t, k, p)
	d := open(t, k, p.BDF)
	r, err := d.Region(0)
	must(t, err)
	for _, on := range []bool{false, true} {
		old := debug.SetPanicOnFault(on)
		r.Load32(0)
		r.Store32(0, 1)
		if got := debug.SetPanicOnFault(old); got != on {
			t.Errorf("SetPanicOnFault was %v before an access and %v after it", on, got)
		}
	}
	must(t, hw.Unplug())
	for _, on := range []bool{false, true} {
		old := debug.SetPanicOnFault(on)
		r.Load32(0)
		if got := debug.SetPanicOnFault(old); got != on {
			t.Errorf("SetPanicOnFault was %v before a fault and %v after it", on, got)
		}
	}
	// Another fault, in a call of the region: of memory that is none of its own.
	foreign := memory(t, 4*kib)
	must(t, unix.Mprotect(foreign, unix.PROT_NONE))
	hw2 := addPCI(t, k, func() vfiotest.PCI {
		p := card("0000:04:00.0", 15)
		p.BARs[0] = vfiotest.Region{Size: 64 * kib, Read: func(_ uint64, b []byte) { b[0] = foreign[0] }}
		return p
	}())
	d2 := open(t, k, hw2.Name())
	r2, err := d2.Region(0)
	must(t, err)
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		f, ok := recover().(interface{ Addr() uintptr })
		if !ok || f.Addr() != uintptr(unsafe.Pointer(&foreign[0])) {
			t.Errorf("panic %v, want the fault of other memory", f)
		}
		if d2.Gone() {
			t.Error("a fault elsewhere made the device gone")
		}
		must(t, unix.Mprotect(foreign, unix.PROT_READ|unix.PROT_WRITE))
	}()
	r2.Load32(0)
	t.Error("no panic")
}

// TestCloseUnderAccess closes a device while goroutines use its registers: none
// touches memory that was unmapped.
func TestCloseUnderAccess(t *testing.T) {
	k := newKernel(t, vfiotest.Config{})
	p := card("0000:03:00.0", 14)
	addPCI(t, k, p)
	rounds := 20
	for range rounds {
		d := open(t, k, p.BDF)
		r, err := d.Region(0)
		if err != nil {
			t.Fatal(err)
		}
		var wg sync.WaitGroup
		started := make(chan struct{}, 4)
		for range 4 {
			wg.Go(func() {
				r.Store32(4, 1)
				started <- struct{}{}
				for r.Load32(4) != mmio.AllOnes {
					r.Store32(8, 3)
				}
			})
		}
		for range 4 {
			<-started
		}
		must(t, d.Close())
		wg.Wait()
	}
}

// TestConfigSpace walks the capabilities of a function and its registers.
func TestConfigSpace(t *testing.T) {
	k := newKernel(t, vfiotest.Config{})
	hw := addPCI(t, k, card("0000:03:00.0", 14))
	addPlatform(t, k, board("mac", 3))
	_, err := open(t, k, "mac").Config()
	mustFail(t, err, errors.ErrUnsupported)
	d := open(t, k, hw.Name())
	c, err := d.Config()
	if err != nil {
		t.Fatal(err)
	}
	if v, err := c.Read32(vfio.ConfigVendorID); v != 0x68011f0a || err != nil {
		t.Errorf("ids %#x, %v", v, err)
	}
	var ids []uint16
	for p, err := range c.Capabilities() {
		must(t, err)
		if !p.Extended {
			ids = append(ids, p.ID)
		}
	}
	slices.Sort(ids)
	if diff := cmp.Diff([]uint16{vfio.CapPowerManagement, vfio.CapMSI, vfio.CapExpress, vfio.CapMSIX}, ids); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	p, err := c.Capability(vfio.CapMSIX, false)
	must(t, err)
	if v, err := c.Read16(p.Offset + 2); v&0x7ff != 5 || err != nil {
		t.Errorf("MSI-X control %#x, %v", v, err)
	}
	_, err = c.Capability(vfio.ExtCapAER, true)
	mustFail(t, err, os.ErrNotExist)
	_, err = c.Read16(1)
	mustFail(t, err, os.ErrInvalid)
	_, err = c.Read32(c.Len())
	mustFail(t, err, os.ErrInvalid)
	_, err = c.Read8(-1)
	mustFail(t, err, os.ErrInvalid)
	mustFail(t, c.Write32(0xffe, 1), os.ErrInvalid)
	must(t, c.Update16(vfio.ConfigCommand, 1<<8, 0))
	if hw.Command()&(1<<8) == 0 {
		t.Errorf("command %#x", hw.Command())
	}
	must(t, c.Update16(vfio.ConfigCommand, 0, 1<<8))
	if hw.Command()&(1<<8) != 0 {
		t.Errorf("command %#x", hw.Command())
	}
	must(t, c.Write8(0x3c, 5))
	if v, err := c.Read8(0x3c); v != 5 || err != nil {
		t.Errorf("interrupt line %d, %v", v, err)
	}
}

// hostile is a kernel that shows another configuration space.
type hostile struct {
	*vfiotest.Kernel
	config []byte
}

func (h hostile) Pread(fd int, p []byte, off int64) (int, error) {
	const config = 7 << 40
	if i := off - config; h.config != nil && i >= 0 && i < int64(len(h.config)) {
		return copy(p, h.config[i:]), nil
	}
	return h.Kernel.Pread(fd, p, off)
}

// TestHostileConfig walks lists that lead nowhere: the walk ends, with an error where
// something is missing.
func TestHostileConfig(t *testing.T) {
	for name, c := range map[string]struct {
		change func(cfg []byte)
		bad    bool
	}{
		"to itself":         {func(b []byte) { b[0x34], b[0x40], b[0x41] = 0x40, 9, 0x40 }, true},
		"loop":              {func(b []byte) { b[0x34], b[0x41], b[0x81] = 0x40, 0x80, 0x40 }, true},
		"into the header":   {func(b []byte) { b[0x34] = 0x10 }, false},
		"to the end":        {func(b []byte) { b[0x34], b[0xfc], b[0xfd] = 0xff, 9, 0 }, false},
		"extended, loop":    {func(b []byte) { copy(b[0x100:], []byte{1, 0, 1, 0x10}) }, true},
		"extended, short":   {func(b []byte) { copy(b[0x100:], []byte{1, 0, 1, 0x02}) }, false},
		"extended, the end": {func(b []byte) { copy(b[0x100:], []byte{1, 0, 1, 0xff}); copy(b[0xff0:], []byte{2, 0, 1, 0}) }, false},
	} {
		t.Run(name, func(t *testing.T) {
			k := newKernel(t, vfiotest.Config{})
			hw := addPCI(t, k, card("0000:03:00.0", 14))
			bytes := hw.Config()
			c.change(bytes)
			d := open(t, hostile{k, bytes}, hw.Name())
			cfg, err := d.Config()
			must(t, err)
			n := 0
			var last error
			for _, err := range cfg.Capabilities() {
				last = err
				n++
			}
			if (last != nil) != c.bad || n > 1200 {
				t.Errorf("%d capabilities, error %v", n, last)
			}
			for range cfg.Capabilities() {
				break // the walk can be left
			}
		})
	}
}

func BenchmarkRegion(b *testing.B) {
	k := newKernel(b, vfiotest.Config{})
	addPCI(b, k, card("0000:03:00.0", 14))
	d := open(b, k, "0000:03:00.0")
	r, err := d.Region(0)
	if err != nil {
		b.Fatal(err)
	}
	plain := mmio.Map(make([]byte, 64*kib))
	for name, r := range map[string]mmio.Region{"vfio": r, "unguarded": plain} {
		b.Run(name+"/load", func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				r.Load32(0x40)
			}
		})
		b.Run(name+"/bell", func(b *testing.B) {
			b.ReportAllocs()
			bell := mmio.NewDoorbell(r, 0x40)
			for b.Loop() {
				bell.Ring(1)
			}
		})
	}
}
