package pagepool

import (
	"errors"
	"sync/atomic"
	"unsafe"
)

// Mapping is a pool as one device sees it: where each arena begins on the
// device's bus. Its methods may be called by several goroutines.
type Mapping struct {
	pool   *Pool
	mapper Mapper
	// view is replaced, never changed, when the pool grows, so that the hot
	// path reads it without a lock.
	view atomic.Pointer[View]
}

// View is the table of a mapping's arenas at one time. Queues keep one and
// fetch a newer one when they meet a buffer that it does not have.
type View struct {
	arenas []arenaView
}

type arenaView struct {
	records unsafe.Pointer // the first record
	size    uintptr        // bytes of records
	base    uint64         // bus address of the payload
	bytes   uint64         // of payload
}

// View returns the present table.
func (m *Mapping) View() *View { return m.view.Load() }

// Pool is the pool that is mapped.
func (m *Mapping) Pool() *Pool { return m.pool }

// Buf returns the buffer that h names; h must be a handle of the pool.
func (v *View) Buf(h Handle) *Buf {
	return (*Buf)(unsafe.Add(v.arenas[h>>handleBits].records, uintptr(h&handleMask)*RecordSize))
}

// Addr is the bus address of offset off in the chunk of b, which must be of
// the pool.
func (v *View) Addr(b *Buf, off int) uint64 {
	return v.arenas[b.arena].base + uint64(b.chunk) + uint64(off)
}

// End is the bus address behind the highest byte of the pool that the device
// reaches.
func (v *View) End() uint64 {
	var end uint64
	for _, a := range v.arenas {
		end = max(end, a.base+a.bytes)
	}
	return end
}

// Lookup returns the handle of b and the bus address of its first byte of
// data. ok is false when b is of no arena that this device reaches.
func (v *View) Lookup(b *Buf) (h Handle, addr uint64, ok bool) {
	n := uint(b.arena)
	if n >= uint(len(v.arenas)) {
		return 0, 0, false
	}
	a := &v.arenas[n]
	// A record that lies elsewhere belongs to another pool.
	d := uintptr(unsafe.Pointer(b)) - uintptr(a.records)
	if d >= a.size {
		return 0, 0, false
	}
	return Handle(n<<handleBits | uint(d/RecordSize)), a.base + uint64(b.chunk) + uint64(b.off), true
}

// extend adds the arenas that the mapping does not have yet. The caller holds
// the pool's lock.
func (m *Mapping) extend() error {
	next := &View{}
	if old := m.view.Load(); old != nil {
		next.arenas = append(next.arenas, old.arenas...)
	}
	for _, a := range m.pool.arenas[len(next.arenas):] {
		base, err := a.mapFor(m.mapper)
		if err != nil {
			return err
		}
		next.arenas = append(next.arenas, arenaView{
			records: unsafe.Pointer(&a.records[0]),
			size:    uintptr(len(a.records)) * RecordSize,
			base:    base,
			bytes:   uint64(len(a.payload)),
		})
		m.view.Store(next)
	}
	if m.view.Load() == nil {
		m.view.Store(next)
	}
	return nil
}

// unmap unmaps all arenas. The caller holds the pool's lock.
func (m *Mapping) unmap() error {
	v := m.view.Swap(&View{})
	if v == nil {
		return nil
	}
	var errs []error
	for i, av := range v.arenas {
		errs = append(errs, m.pool.arenas[i].unmapFor(m.mapper, av.base))
	}
	return errors.Join(errs...)
}

// Close unmaps the pool from the device, which must have been stopped. It is
// safe to call twice.
func (m *Mapping) Close() error {
	p := m.pool
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.mappings[m] {
		return nil
	}
	delete(p.mappings, m)
	if err := m.unmap(); err != nil {
		return &Error{Op: "unmap", Err: err}
	}
	return nil
}
