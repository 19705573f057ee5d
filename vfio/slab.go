package vfio

import (
	"errors"
	"fmt"
	"os"
	"slices"
)

// hugePage is the piece of memory that lies together without an IOMMU: a huge page
// of the size that every architecture of this package has.
const hugePage = 2 << 20

// slab is a huge page from which memory for devices without an IOMMU comes.
type slab struct {
	mem  []byte
	at   *mapping
	used []extent // offsets, ascending
}

// AllocDMA returns n bytes, at most 2 MiB, that lie together in memory, aligned to
// align, a power of two up to a page, and their bus address; UnmapDMA gives them
// back. It is for devices without an IOMMU, and takes huge pages. For others it
// fails with errors.ErrUnsupported: there MapDMA makes any memory contiguous.
func (d *Device) AllocDMA(n, align int) (mem []byte, iova uint64, err error) {
	mem, iova, err = d.allocDMA(n, align)
	return mem, iova, wrap("allocate DMA memory", d.info.Name, err)
}

func (d *Device) allocDMA(n, align int) ([]byte, uint64, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.usable(); err != nil {
		return nil, 0, err
	}
	if !d.dom.physical() {
		return nil, 0, fmt.Errorf("behind an IOMMU memory of the process is mapped: %w", errors.ErrUnsupported)
	}
	page := d.k.PageSize()
	if n <= 0 || n > hugePage || align <= 0 || align&(align-1) != 0 || align > page {
		return nil, 0, fmt.Errorf("%d bytes aligned to %d: up to %d bytes and alignments up to %d can be had: %w", n, align, hugePage, page, os.ErrInvalid)
	}
	size := uint64(n+page-1) &^ uint64(page-1)
	s, off, err := d.dom.allocSlab(size, d.end())
	if err != nil {
		return nil, 0, err
	}
	d.allocs = append(d.allocs, allocation{s, off, uint64(n)})
	if err := d.mayMaster(); err != nil {
		d.allocs = d.allocs[:len(d.allocs)-1]
		return nil, 0, errors.Join(err, d.dom.freeSlab(s, off))
	}
	return s.mem[off : off+uint64(n) : off+uint64(n)], s.at.bus + off, nil
}

// MaxContiguousDMA is how many bytes can lie together for the device, 0 for any
// number.
func (d *Device) MaxContiguousDMA() int {
	if d.dom.physical() {
		return hugePage
	}
	return 0
}

func (m *Domain) physical() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.space != nil && m.space.physical()
}

// allocation is what AllocDMA gave to a device.
type allocation struct {
	slab   *slab
	off, n uint64
}

// allocated finds what AllocDMA gave.
func (d *Device) allocated(bus uint64, n int) int {
	return slices.IndexFunc(d.allocs, func(a allocation) bool {
		return a.slab.at.bus+a.off == bus && n > 0 && a.n == uint64(n)
	})
}

// allocSlab takes size bytes, whole pages, from a slab that lies below end, and
// makes one more if none has room.
func (m *Domain) allocSlab(size, end uint64) (*slab, uint64, error) {
	m.mu.Lock()
	slabs := slices.Clone(m.slabs)
	for _, s := range slabs {
		if off, ok := s.take(size); ok && s.at.bus+(off+size-1) <= end-1 {
			m.mu.Unlock()
			return s, off, nil
		} else if ok {
			s.give(off)
		}
	}
	m.mu.Unlock()
	mem, err := m.k.HugeMemory(hugePage)
	if err != nil {
		return nil, 0, &Error{Call: "huge page", Err: fmt.Errorf("no huge page of %d bytes is free: %w", hugePage, err),
			Remedy: "sysctl vm.nr_hugepages=64"}
	}
	p, err := m.mapDMA(mem, end)
	if err != nil {
		return nil, 0, errors.Join(err, m.k.Munmap(mem))
	}
	s := &slab{mem: mem, at: p.of}
	off, _ := s.take(size) // all of it is free, and size is no more
	m.mu.Lock()
	defer m.mu.Unlock()
	p.of.own = mem
	m.slabs = append(m.slabs, s)
	return s, off, nil
}

// take finds the first gap of n bytes.
func (s *slab) take(n uint64) (off uint64, ok bool) {
	i := 0
	for ; i < len(s.used) && s.used[i].start-off < n; i++ {
		off = s.used[i].start + s.used[i].n
	}
	if off+n > uint64(len(s.mem)) {
		return 0, false
	}
	s.used = slices.Insert(s.used, i, extent{off, n})
	return off, true
}

func (s *slab) give(off uint64) {
	s.used = slices.DeleteFunc(s.used, func(u extent) bool { return u.start == off })
}

// freeSlab gives memory back, and the slab with the last of it: its memory stays as
// long as another device has a part of it mapped.
func (m *Domain) freeSlab(s *slab, off uint64) error {
	m.mu.Lock()
	s.give(off)
	last := len(s.used) == 0
	if last {
		m.slabs = slices.DeleteFunc(m.slabs, func(o *slab) bool { return o == s })
	}
	m.mu.Unlock()
	if last {
		return m.unmapDMA(s.at)
	}
	return nil
}
