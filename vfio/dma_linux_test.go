package vfio_test

import (
	"errors"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/gostmmac/gostmmac/vfio"
	"github.com/gostmmac/gostmmac/vfio/vfiotest"
)

// TestMemlock is V02: what the process may lock is looked at before anything is
// mapped, and nothing is left half done.
func TestMemlock(t *testing.T) {
	const pool = 32 * mib
	for name, backend := range backends {
		for _, c := range []struct {
			limit uint64
			cap   bool
			ok    bool
		}{
			{64 * kib, false, false}, {4 * mib, false, false}, {64 * mib, false, true}, {64 * kib, true, true}, {pool, false, true}, {pool - 1, false, false},
		} {
			k := newKernel(t, vfiotest.Config{Memlock: c.limit, CapIPCLock: c.cap})
			addPCI(t, k, card("0000:03:00.0", 14))
			d := open(t, k, "0000:03:00.0", vfio.WithBackend(backend))
			mem := memory(t, pool)
			iova, err := d.MapDMA(mem)
			if c.ok {
				if err != nil {
					t.Errorf("%s, limit %d: %v", name, c.limit, err)
				} else {
					must(t, d.UnmapDMA(iova, len(mem)))
				}
				continue
			}
			mustFail(t, err, vfio.ErrMemlock, "0000:03:00.0", "ulimit -l", "LimitMEMLOCK=")
			if maps := calls(k, func(c vfiotest.Call) bool { return strings.Contains(c.Name, "MAP") }); len(maps) != 0 {
				t.Errorf("%s: the kernel was asked: %v", name, maps)
			}
			if hw := k.Mappings(); len(hw) != 0 {
				t.Errorf("%s: %v is mapped", name, hw)
			}
			// A smaller pool works.
			small := memory(t, 64*kib)
			if iova, err = d.MapDMA(small); c.limit >= 64*kib && err != nil {
				t.Error(err)
			} else if err == nil {
				must(t, d.UnmapDMA(iova, len(small)))
			}
		}
	}
}

// Containers and iommufds have accounts of their own: what one holds is not held
// against the other.
func TestMemlockAccounts(t *testing.T) {
	k := newKernel(t, vfiotest.Config{Memlock: 8 * mib})
	addPCI(t, k, card("0000:03:00.0", 14))
	addPCI(t, k, card("0000:04:00.0", 15))
	mem := memory(t, 12*mib)
	a := open(t, k, "0000:03:00.0", vfio.WithBackend(vfio.Group))
	b := open(t, k, "0000:04:00.0", vfio.WithBackend(vfio.IOMMUFD))
	for i, d := range []*vfio.Device{a, b} {
		iova, err := d.MapDMA(mem[i*6*mib:][:6*mib])
		must(t, err)
		_, err = d.MapDMA(memory(t, 4*mib))
		mustFail(t, err, vfio.ErrMemlock, "6291456 of 8388608 are used")
		defer func() { must(t, d.UnmapDMA(iova, 6*mib)) }()
	}
}

// TestChargedOnce is V03: memory of two devices in one domain is charged once, and
// registers are not mapped for devices.
func TestChargedOnce(t *testing.T) {
	for name, backend := range backends {
		t.Run(name, func(t *testing.T) {
			const pool = 8 * mib
			k := newKernel(t, vfiotest.Config{Memlock: pool + 64*kib})
			a := addPCI(t, k, card("0000:03:00.0", 14))
			b := addPCI(t, k, card("0000:04:00.0", 15))
			m := newDomain(t, k, vfio.WithBackend(backend))
			da, db := join(t, m, a.Name()), join(t, m, b.Name())
			for _, d := range []*vfio.Device{da, db} {
				_, err := d.Region(0)
				must(t, err)
			}
			mem := memory(t, pool)
			ia, err := da.MapDMA(mem)
			must(t, err)
			ib, err := db.MapDMA(mem)
			must(t, err)
			if ia != ib || len(k.Mappings()) != 1 {
				t.Errorf("bus addresses %#x and %#x, mapped %v", ia, ib, k.Mappings())
			}
			must(t, da.UnmapDMA(ia, pool))
			mustFail(t, da.UnmapDMA(ia, pool), os.ErrInvalid)
			if err := b.Bus().Write(ib, []byte{1}); err != nil {
				t.Errorf("the second device lost memory that the first unmapped: %v", err)
			}
			if a.Command()&4 != 0 || b.Command()&4 == 0 {
				t.Errorf("bus mastering: commands %#x and %#x", a.Command(), b.Command())
			}
			must(t, db.UnmapDMA(ib, pool))
			if len(k.Mappings()) != 0 {
				t.Errorf("%v is mapped", k.Mappings())
			}
		})
	}
}

// TestEntryLimit is V04: a container takes so many mappings and no more.
func TestEntryLimit(t *testing.T) {
	const limit = 16
	k := newKernel(t, vfiotest.Config{Type1: true, EntryLimit: limit})
	addPCI(t, k, card("0000:03:00.0", 14))
	m := newDomain(t, k)
	d := join(t, m, "0000:03:00.0")
	mem := memory(t, 64*4*kib)
	var at []uint64
	for i := range 64 {
		iova, err := d.MapDMA(mem[i*4*kib:][:4*kib])
		if i >= limit {
			mustFail(t, err, vfio.ErrNoIOVA, "dma_entry_limit")
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		at = append(at, iova)
	}
	if n := len(calls(k, func(c vfiotest.Call) bool { return c.Name == "VFIO_IOMMU_MAP_DMA" })); n != limit {
		t.Errorf("the kernel was asked %d times", n)
	}
	for _, iova := range at {
		must(t, d.UnmapDMA(iova, 4*kib))
	}
	// One for the whole of it, and again as often as one likes.
	for range 3 * limit {
		iova, err := d.MapDMA(mem)
		must(t, err)
		must(t, d.UnmapDMA(iova, len(mem)))
	}
	// Where the kernel does not tell how many are left, it says so itself.
	k.FailNext("VFIO_IOMMU_MAP_DMA", unix.ENOSPC)
	_, err := d.MapDMA(mem)
	mustFail(t, err, unix.ENOSPC, "dma_entry_limit")
	k.FailNext("VFIO_IOMMU_MAP_DMA", unix.ENOMEM)
	_, err = d.MapDMA(mem)
	mustFail(t, err, vfio.ErrMemlock, "ulimit")
	must(t, d.Close())
}

// TestWholeMappings is V05: no mapping overlaps another one, none is unmapped in
// parts, and what the kernel did not unmap is not given out again.
func TestWholeMappings(t *testing.T) {
	for name, backend := range backends {
		t.Run(name, func(t *testing.T) {
			k := newKernel(t, vfiotest.Config{})
			addPCI(t, k, card("0000:03:00.0", 14))
			d, err := vfio.Open(t.Context(), "0000:03:00.0", vfio.WithKernel(k), vfio.WithBackend(backend))
			if err != nil {
				t.Fatal(err)
			}
			mem := memory(t, 3*mib)
			iova, err := d.MapDMA(mem[:2*mib])
			must(t, err)
			before := len(k.Calls())
			for what, err := range map[string]error{
				"overlap":        second(d.MapDMA(mem[mib:])),
				"not on a page":  second(d.MapDMA(mem[2*mib+1:])),
				"part of a page": second(d.MapDMA(mem[2*mib:][:5])),
				"nothing":        second(d.MapDMA(nil)),
				"half":           d.UnmapDMA(iova, mib),
				"second half":    d.UnmapDMA(iova+mib, mib),
				"too much":       d.UnmapDMA(iova, 3*mib),
				"none":           d.UnmapDMA(iova, 0),
				"negative":       d.UnmapDMA(iova, -2*mib),
				"elsewhere":      d.UnmapDMA(0, 2*mib),
			} {
				if !errors.Is(err, os.ErrInvalid) {
					t.Errorf("%s: %v", what, err)
				}
			}
			for _, c := range k.Calls()[before:] {
				if strings.Contains(c.Name, "MAP") {
					t.Errorf("the kernel was asked to %s", c.Name)
				}
			}
			// A part of what is mapped has its address there, and keeps all of it mapped.
			part, err := d.MapDMA(mem[mib:][:mib])
			must(t, err)
			if part != iova+mib || len(k.Mappings()) != 1 {
				t.Errorf("the second half is at %#x, the whole at %#x; mapped %v", part, iova, k.Mappings())
			}
			must(t, d.UnmapDMA(part, mib))
			if len(k.Mappings()) != 1 {
				t.Error("the whole was unmapped with its part")
			}
			k.ShortUnmap(mib)
			mustFail(t, d.UnmapDMA(iova, 2*mib), os.ErrInvalid, "1048576 of 2097152 bytes were unmapped")
			_, err = d.MapDMA(mem[:2*mib])
			mustFail(t, err, os.ErrInvalid, "overlap")
			other, err := d.MapDMA(mem[2*mib:])
			must(t, err)
			if other >= iova && other < iova+2*mib {
				t.Errorf("%#x is given out again", other)
			}
			must(t, d.UnmapDMA(other, mib))
			k.FailNext("VFIO_IOMMU_UNMAP_DMA", unix.EIO)
			k.FailNext("IOMMU_IOAS_UNMAP", unix.EIO)
			other, err = d.MapDMA(mem[2*mib:])
			must(t, err)
			mustFail(t, d.UnmapDMA(other, mib), unix.EIO)
			must(t, d.Close())
		})
	}
}

func second(_ uint64, err error) error { return err }

// TestPageSizes is V11: memory is mapped in pages of whichever is larger, that of the
// machine or that of the IOMMU.
func TestPageSizes(t *testing.T) {
	for _, c := range []struct {
		page  int
		iommu uint64
		want  int
	}{{0, 0, os.Getpagesize()}, {0, 1 << 16, 64 * kib}, {64 * kib, 1<<12 | 1<<21, 64 * kib}, {16 * kib, 1 << 14, 16 * kib}} {
		for name, backend := range backends {
			k := newKernel(t, vfiotest.Config{PageSize: c.page, IOMMUPageSizes: c.iommu})
			hw := addPlatform(t, k, board("mac", 3))
			d := open(t, k, "mac", vfio.WithBackend(backend))
			raw := memory(t, 4*c.want)
			mem := raw[-address(raw)&uintptr(c.want-1):][:2*c.want]
			if c.want > 4*kib {
				_, err := d.MapDMA(mem[:c.want/2])
				mustFail(t, err, os.ErrInvalid, "whole pages")
			}
			iova, err := d.MapDMA(mem)
			if err != nil {
				t.Errorf("%s, page %d, IOMMU %#x: %v", name, c.page, c.iommu, err)
				continue
			}
			if iova%uint64(c.want) != 0 {
				t.Errorf("%s: bus address %#x for pages of %d", name, iova, c.want)
			}
			must(t, d.UnmapDMA(iova, len(mem)))
			// The window of 8 KiB is less than a page of 64 KiB, and so not mapped.
			r, err := d.Region(0)
			must(t, err)
			r.Store32(0x1ffc, 7)
			if hw.Memory(0)[0x1ffc] != 7 || r.Load32(0x1ffc) != 7 || r.Len() != 8*kib {
				t.Errorf("%s, page %d: the last register does not work", name, c.page)
			}
		}
	}
}

// TestAddrWidth keeps memory where the device reaches it.
func TestAddrWidth(t *testing.T) {
	high := vfiotest.Range{First: 1 << 33, Last: 1<<39 - 1}
	k := newKernel(t, vfiotest.Config{IOVARanges: []vfiotest.Range{{First: 0, Last: 1<<20 - 1}, high}})
	addPCI(t, k, card("0000:03:00.0", 14))
	addPCI(t, k, card("0000:04:00.0", 15))
	m := newDomain(t, k)
	narrow := join(t, m, "0000:03:00.0", vfio.WithAddrWidth(32))
	wide := join(t, m, "0000:04:00.0")
	mem := memory(t, 2*mib)
	_, err := narrow.MapDMA(mem)
	mustFail(t, err, vfio.ErrNoIOVA)
	iova, err := wide.MapDMA(mem)
	must(t, err)
	if iova < high.First {
		t.Errorf("bus address %#x", iova)
	}
	_, err = narrow.MapDMA(mem)
	mustFail(t, err, os.ErrInvalid, "beyond what the device addresses")
	must(t, wide.UnmapDMA(iova, len(mem)))
	small := memory(t, 64*kib)
	iova, err = narrow.MapDMA(small)
	must(t, err)
	must(t, narrow.UnmapDMA(iova, len(small)))
}

// TestJoinLater opens a device whose IOMMU reserves what is mapped already: only the
// device is refused.
func TestJoinLater(t *testing.T) {
	k := newKernel(t, vfiotest.Config{})
	addPCI(t, k, card("0000:03:00.0", 14))
	addPCI(t, k, card("0000:04:00.0", 15))
	m := newDomain(t, k, vfio.WithBackend(vfio.Group))
	a := join(t, m, "0000:03:00.0")
	mem := memory(t, 64*kib)
	iova, err := a.MapDMA(mem)
	must(t, err)
	k.FailNext("VFIO_GROUP_SET_CONTAINER", unix.EBUSY)
	_, err = m.Open(t.Context(), "0000:04:00.0")
	mustFail(t, err, unix.EBUSY, "open the device first")
	join(t, m, "0000:04:00.0")
	must(t, a.UnmapDMA(iova, len(mem)))
}

// TestConcurrentDMA maps and unmaps by many goroutines while the device is closed.
func TestConcurrentDMA(t *testing.T) {
	k := newKernel(t, vfiotest.Config{})
	addPCI(t, k, card("0000:03:00.0", 14))
	addPCI(t, k, card("0000:04:00.0", 15))
	m := newDomain(t, k)
	devices := []*vfio.Device{join(t, m, "0000:03:00.0"), join(t, m, "0000:04:00.0")}
	mem := memory(t, 8*4*kib)
	var wg sync.WaitGroup
	for g := range 8 {
		d := devices[g%2]
		r, err := d.Region(0)
		must(t, err)
		wg.Go(func() {
			for i := 0; ; i++ {
				p := mem[(g/2+i)%8*4*kib:][:4*kib]
				iova, err := d.MapDMA(p)
				if errors.Is(err, vfio.ErrClosed) {
					return
				}
				must(t, err)
				r.Store32(0x100, uint32(i))
				r.Load32(0x100)
				must(t, d.UnmapDMA(iova, len(p)))
			}
		})
	}
	for range 2000 {
		devices[0].NumInterrupts()
	}
	for _, d := range devices {
		if err := d.Close(); err != nil && !errors.Is(err, os.ErrInvalid) {
			t.Error(err)
		}
	}
	wg.Wait()
}

// TestNoIOMMU is V12: devices without an IOMMU are opened only where that was asked
// for, and see physical addresses.
func TestNoIOMMU(t *testing.T) {
	for name, backend := range backends {
		t.Run(name, func(t *testing.T) {
			k := newKernel(t, vfiotest.Config{NoIOMMU: true, CapSysRawIO: true})
			hw := addPCI(t, k, card("0000:03:00.0", -1))
			_, err := vfio.Open(t.Context(), hw.Name(), vfio.WithKernel(k), vfio.WithBackend(backend))
			mustFail(t, err, os.ErrPermission, "no IOMMU", "WithNoIOMMU")
			if n := len(calls(k, func(c vfiotest.Call) bool { return c.Name == "open" })); n != 0 {
				t.Errorf("%d nodes were opened", n)
			}
			d := open(t, k, hw.Name(), vfio.WithBackend(backend), vfio.WithNoIOMMU())
			if d.PinsDMA() != (backend == vfio.IOMMUFD) || d.MaxContiguousDMA() != 2*mib {
				t.Errorf("pins %v, contiguous %d", d.PinsDMA(), d.MaxContiguousDMA())
			}
			mem, bus, err := d.AllocDMA(10*kib, 4*kib)
			if err != nil {
				t.Fatal(err)
			}
			if bus%(4*kib) != 0 || len(mem) != 10*kib {
				t.Errorf("%d bytes at %#x", len(mem), bus)
			}
			must(t, hw.Bus().Write(bus+8*kib, []byte("physical")))
			if got := string(mem[8*kib:][:8]); got != "physical" {
				t.Errorf("the device wrote %q", got)
			}
			// Several pieces come from one huge page.
			var more []uint64
			for range 4 {
				_, b, err := d.AllocDMA(256*kib, 64)
				must(t, err)
				if b&^(2*mib-1) != bus&^(2*mib-1) || slices.Contains(more, b) {
					t.Errorf("a piece at %#x, the first at %#x", b, bus)
				}
				more = append(more, b)
			}
			whole, b, err := d.AllocDMA(2*mib, 4*kib)
			must(t, err)
			must(t, d.UnmapDMA(b, len(whole)))
			for _, n := range []int{0, -1, 2*mib + 1} {
				_, _, err := d.AllocDMA(n, 64)
				mustFail(t, err, os.ErrInvalid)
			}
			for _, align := range []int{0, 3, 8 * kib} {
				_, _, err := d.AllocDMA(64, align)
				mustFail(t, err, os.ErrInvalid)
			}
			for _, b := range more {
				must(t, d.UnmapDMA(b, 256*kib))
			}
			must(t, d.UnmapDMA(bus, 10*kib))
			mustFail(t, d.UnmapDMA(bus, 10*kib), os.ErrInvalid)
			if err := hw.Bus().Write(bus, []byte{1}); err == nil {
				t.Error("the device reaches memory that was given back")
			}
		})
	}
}

// TestNoIOMMUShared gives back memory of one device that another one has mapped: the
// other still reaches it, and nobody else gets it.
func TestNoIOMMUShared(t *testing.T) {
	for name, backend := range backends {
		t.Run(name, func(t *testing.T) {
			k := newKernel(t, vfiotest.Config{NoIOMMU: true, CapSysRawIO: true})
			addPCI(t, k, card("0000:03:00.0", -1))
			hw := addPCI(t, k, card("0000:04:00.0", -1))
			m := newDomain(t, k, vfio.WithNoIOMMU(), vfio.WithBackend(backend))
			a, b := join(t, m, "0000:03:00.0"), join(t, m, "0000:04:00.0")
			mem, bus, err := a.AllocDMA(64*kib, 4*kib)
			must(t, err)
			part := mem[16*kib:][:16*kib]
			at, err := b.MapDMA(part)
			must(t, err)
			if at != bus+16*kib {
				t.Errorf("the part is at %#x, the whole at %#x", at, bus)
			}
			must(t, a.UnmapDMA(bus, len(mem)))
			must(t, a.Close())
			if err := hw.Bus().Write(at, []byte("still there")); err != nil || string(part[:11]) != "still there" {
				t.Errorf("%v, %q", err, part[:11])
			}
			must(t, b.UnmapDMA(at, len(part)))
			if err := hw.Bus().Write(at, []byte{1}); err == nil {
				t.Error("the device reaches memory that was given back")
			}
		})
	}
}

// TestNoIOMMURefused goes through what keeps a process from memory without an IOMMU.
func TestNoIOMMURefused(t *testing.T) {
	both := vfiotest.Config{NoIOMMU: true, CapSysRawIO: true}
	try := func(t *testing.T, cfg vfiotest.Config, backend vfio.Backend, opts ...vfio.Option) (*vfiotest.Kernel, *vfio.Device, error) {
		t.Helper()
		k := newKernel(t, cfg)
		addPCI(t, k, card("0000:03:00.0", -1))
		d, err := vfio.Open(t.Context(), "0000:03:00.0", append([]vfio.Option{vfio.WithKernel(k), vfio.WithNoIOMMU(), vfio.WithBackend(backend)}, opts...)...)
		if err == nil {
			t.Cleanup(func() { must(t, d.Close()) })
		}
		return k, d, err
	}
	t.Run("no CAP_SYS_RAWIO", func(t *testing.T) {
		cfg := both
		cfg.CapSysRawIO = false
		for _, b := range backends {
			_, _, err := try(t, cfg, b)
			mustFail(t, err, os.ErrPermission)
		}
	})
	t.Run("frames hidden", func(t *testing.T) {
		cfg := both
		cfg.Pagemap = vfiotest.PagemapHidden
		_, d, err := try(t, cfg, vfio.Group)
		must(t, err)
		_, _, err = d.AllocDMA(4*kib, 64)
		mustFail(t, err, os.ErrPermission, "pagemap", "root")
	})
	t.Run("no pagemap", func(t *testing.T) {
		cfg := both
		cfg.Pagemap = vfiotest.PagemapAbsent
		_, d, err := try(t, cfg, vfio.Group)
		must(t, err)
		_, _, err = d.AllocDMA(4*kib, 64)
		mustFail(t, err, os.ErrNotExist, "pagemap")
	})
	t.Run("frame 0 is a frame", func(t *testing.T) {
		k, d, err := try(t, both, vfio.IOMMUFD)
		must(t, err)
		_ = k
		mem := memory(t, 4*kib)
		bus, err := d.MapDMA(mem)
		must(t, err)
		must(t, d.UnmapDMA(bus, len(mem)))
	})
	t.Run("pages that move", func(t *testing.T) { // V13
		_, d, err := try(t, both, vfio.Group)
		must(t, err)
		_, err = d.MapDMA(memory(t, 64*kib))
		mustFail(t, err, errors.ErrUnsupported, "huge pages", "nr_hugepages")
	})
	t.Run("a page that moved", func(t *testing.T) { // V13
		k, d, err := try(t, both, vfio.Group)
		must(t, err)
		mem, bus, err := d.AllocDMA(64*kib, 64)
		must(t, err)
		must(t, d.Domain().CheckMemory())
		k.Migrate(address(mem) + 4096)
		mustFail(t, d.Domain().CheckMemory(), vfio.ErrNotContiguous, "check memory")
		must(t, d.UnmapDMA(bus, len(mem)))
		must(t, d.Domain().CheckMemory())
	})
	t.Run("scattered", func(t *testing.T) {
		cfg := both
		cfg.Scatter = true
		k, d, err := try(t, cfg, vfio.IOMMUFD)
		must(t, err)
		_, err = d.MapDMA(memory(t, 64*kib))
		mustFail(t, err, vfio.ErrNotContiguous, "huge pages")
		if len(k.Mappings()) != 0 {
			t.Errorf("%v is mapped", k.Mappings())
		}
		mem, bus, err := d.AllocDMA(64*kib, 64)
		must(t, err)
		must(t, d.UnmapDMA(bus, len(mem)))
	})
	t.Run("an older kernel", func(t *testing.T) {
		k, d, err := try(t, both, vfio.IOMMUFD)
		must(t, err)
		k.FailNext("IOMMU_IOAS_NOIOMMU_GET_PA", unix.ENOTTY)
		_, _, err = d.AllocDMA(4*kib, 64)
		mustFail(t, err, unix.ENOTTY, "Linux 7.3")
	})
	t.Run("beyond the device", func(t *testing.T) {
		_, d, err := try(t, both, vfio.IOMMUFD, vfio.WithDevice(vfio.WithAddrWidth(32)))
		must(t, err)
		_, _, err = d.AllocDMA(4*kib, 64)
		mustFail(t, err, os.ErrInvalid, "beyond what the device addresses")
	})
	t.Run("with and without in one domain", func(t *testing.T) {
		k := newKernel(t, both)
		addPCI(t, k, card("0000:03:00.0", -1))
		addPCI(t, k, card("0000:04:00.0", 15))
		m := newDomain(t, k, vfio.WithNoIOMMU())
		join(t, m, "0000:04:00.0")
		_, err := m.Open(t.Context(), "0000:03:00.0")
		mustFail(t, err, os.ErrInvalid, "do not share a domain")
	})
}
