package vfio

import (
	"errors"
	"fmt"
	"os"
	"slices"
)

// mapping is memory that the devices of a domain reach.
type mapping struct {
	start, n uint64 // in the process
	iova     uint64 // by which the kernel knows it
	bus      uint64 // where devices see it
	users    int    // pieces that devices hold of it
	own      []byte // memory that is given back when it is unmapped, of a slab
	// lost says that the kernel did not unmap all of it: its addresses are not
	// used again.
	lost bool
}

// piece is memory that a device reaches: a mapping, or a part of one.
type piece struct {
	of     *mapping
	bus, n uint64
}

// mapDMA makes mem reachable below end. What lies in a mapping already is a part of
// that.
func (m *Domain) mapDMA(mem []byte, end uint64) (p piece, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.space == nil {
		return p, &Error{Call: "map", Err: fmt.Errorf("no device is open in the domain: %w", ErrNoDevice)}
	}
	start, n := vaddr(mem), uint64(len(mem))
	page := max(uint64(m.k.PageSize()), m.iovas.page)
	if n == 0 || start%page != 0 || n%page != 0 {
		return p, fmt.Errorf("%d bytes at %#x are not whole pages of %d bytes: %w", n, start, page, os.ErrInvalid)
	}
	for _, o := range m.mappings {
		switch {
		case o.start <= start && start+n <= o.start+o.n && !o.lost:
			bus := o.bus + (start - o.start)
			if bus+(n-1) > end-1 {
				return p, beyond(bus, n, end)
			}
			o.users++
			return piece{o, bus, n}, nil
		case start < o.start+o.n && o.start < start+n:
			return p, fmt.Errorf("%d bytes at %#x overlap %d at %#x that are mapped: %w", n, start, o.n, o.start, os.ErrInvalid)
		}
	}
	if m.left == 0 {
		return p, &Error{Call: "map", Err: fmt.Errorf("the container has as many mappings as it may: %w", ErrNoIOVA),
			Remedy: "map larger pieces, or modprobe vfio_iommu_type1 dma_entry_limit=N"}
	}
	if m.space.pins() {
		lock, err := readMemlock(m.k)
		if err == nil { // what cannot be read cannot be checked; the kernel does
			if err := lock.check(lock.by(m.backend), n); err != nil {
				return p, err
			}
		}
	}
	o := &mapping{start: start, n: n, users: 1}
	if m.iovas.ranges != nil {
		below := end
		if m.space.physical() {
			below = 0 // the address is only a name for the kernel
		}
		if o.iova, err = m.iovas.alloc(n, start, below); err != nil {
			return p, err
		}
	}
	keepFromChildren(mem)
	if o.bus, err = m.space.mapDMA(mem, o.iova); err != nil {
		m.iovas.release(o.iova)
		return p, err
	}
	m.mappings = append(m.mappings, o)
	if m.left > 0 {
		m.left--
	}
	if o.bus+(n-1) > end-1 { // not a bus address of our choice
		return p, errors.Join(beyond(o.bus, n, end), m.drop(o))
	}
	return piece{o, o.bus, n}, nil
}

func beyond(bus, n, end uint64) error {
	return fmt.Errorf("memory at %#x to %#x is beyond what the device addresses, %#x: %w", bus, bus+(n-1), end-1, os.ErrInvalid)
}

// unmapDMA undoes one mapDMA.
func (m *Domain) unmapDMA(o *mapping) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if o.users--; o.users > 0 {
		return nil
	}
	return m.drop(o)
}

// drop unmaps. The caller holds m.mu.
func (m *Domain) drop(o *mapping) error {
	if err := m.space.unmapDMA(o.iova, o.n); err != nil {
		o.lost = true
		return err
	}
	m.iovas.release(o.iova)
	m.mappings = slices.DeleteFunc(m.mappings, func(p *mapping) bool { return p == o })
	if m.left >= 0 {
		m.left++
	}
	if o.own != nil {
		return m.k.Munmap(o.own)
	}
	return nil
}

// MapDMA makes mem, which starts and ends on a page, reachable for the device and
// returns its bus address. Memory that is mapped in the domain already, or lies in
// what is, has the same address and is counted: it is charged to the limit of locked
// memory once. Memory that overlaps a mapping otherwise is refused. From
// the first mapping on a PCI function may access memory (bus mastering). Without an
// IOMMU mem must lie together in memory: [Device.AllocDMA] gives such.
func (d *Device) MapDMA(mem []byte) (uint64, error) {
	bus, err := d.mapDMA(mem)
	return bus, wrap("map DMA", d.info.Name, err)
}

func (d *Device) mapDMA(mem []byte) (uint64, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.usable(); err != nil {
		return 0, err
	}
	p, err := d.dom.mapDMA(mem, d.end())
	if err != nil {
		return 0, err
	}
	d.maps = append(d.maps, p)
	if err := d.mayMaster(); err != nil {
		d.maps = d.maps[:len(d.maps)-1]
		return 0, errors.Join(err, d.dom.unmapDMA(p.of))
	}
	return p.bus, nil
}

// end is the first bus address that the device does not reach; 0 stands for 1<<64.
func (d *Device) end() uint64 { return 1 << d.opt.addrWidth } // 1 << 64 is 0

// UnmapDMA undoes one MapDMA or AllocDMA, for all of the n bytes at bus address iova
// that it gave. Bus mastering goes off before the last memory of the device does.
func (d *Device) UnmapDMA(iova uint64, n int) error {
	return wrap("unmap DMA", d.info.Name, d.unmapDMA(iova, n))
}

func (d *Device) unmapDMA(iova uint64, n int) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return nil // Close has unmapped it
	}
	if i := d.allocated(iova, n); i >= 0 {
		a := d.allocs[i]
		d.allocs = slices.Delete(d.allocs, i, i+1)
		return errors.Join(d.mayMaster(), d.dom.freeSlab(a.slab, a.off))
	}
	i := slices.IndexFunc(d.maps, func(p piece) bool { return p.bus == iova && n > 0 && p.n == uint64(n) })
	if i < 0 {
		return fmt.Errorf("no mapping of %d bytes is at %#x: %w", n, iova, os.ErrInvalid)
	}
	o := d.maps[i].of
	d.maps = slices.Delete(d.maps, i, i+1)
	return errors.Join(d.mayMaster(), d.dom.unmapDMA(o))
}

// Coherent says that the device sees what the CPU wrote, and the CPU what the
// device wrote, without cache maintenance.
func (d *Device) Coherent() bool { return d.coherent }

// PinsDMA says that memory that is mapped for the device stays where it is and in
// memory, so that it need not be locked: false without an IOMMU, except with an
// iommufd.
func (d *Device) PinsDMA() bool { return d.dom.pins() }

func (m *Domain) pins() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.space != nil && m.space.pins()
}
