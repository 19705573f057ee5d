package pagepool

import (
	"errors"
	"slices"
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
	first unsafe.Pointer // the pool's first record
	free  Owner          // the owner of free buffers
	bus   []uint64       // bus address of the payload, by arena
	end   uint64
}

// View returns the present table.
func (m *Mapping) View() *View { return m.view.Load() }

// Pool is the pool that is mapped.
func (m *Mapping) Pool() *Pool { return m.pool }

// First is the record from which handles count.
func (v *View) First() unsafe.Pointer { return v.first }

// Bus returns the bus addresses of the arenas.
func (v *View) Bus() Bus { return Bus{unsafe.SliceData(v.bus)} }

// Bus finds bus addresses without a check, for the loops of drivers.
type Bus struct{ arenas *uint64 }

// Chunk is the bus address of the chunk of b, whose arena the View must have:
// see [View.Arenas].
func (u Bus) Chunk(b *Buf) uint64 {
	return *(*uint64)(unsafe.Add(unsafe.Pointer(u.arenas), uintptr(b.arena)*unsafe.Sizeof(*u.arenas))) + uint64(b.chunk)
}

// Arenas is the number of arenas.
func (v *View) Arenas() int { return len(v.bus) }

// Application is the owner of buffers that the application holds.
func (v *View) Application() Owner { return v.free.with(holderApplication) }

// At returns the buffer that h names; first is that of a View and h a handle
// of its pool.
func At(first unsafe.Pointer, h Handle) *Buf {
	return (*Buf)(unsafe.Add(first, int(h)*RecordSize))
}

// HandleOf is the inverse of [At].
func HandleOf(first unsafe.Pointer, b *Buf) Handle {
	return Handle(int64(uintptr(unsafe.Pointer(b))-uintptr(first)) >> 6)
}

// Buf returns the buffer that h names; h must be a handle of the pool.
func (v *View) Buf(h Handle) *Buf { return At(v.first, h) }

// End is the bus address behind the highest byte of the pool that the device
// reaches.
func (v *View) End() uint64 { return v.end }

// Lookup returns the handle of b and the bus address of its first byte of
// data. ok is false when b is of another pool or of no arena that this device
// reaches.
func (v *View) Lookup(b *Buf) (h Handle, addr uint64, ok bool) {
	if b.owner.pool() != v.free.pool() || int(b.arena) >= len(v.bus) {
		return 0, 0, false
	}
	return HandleOf(v.first, b), v.bus[b.arena] + uint64(b.chunk) + uint64(b.off), true
}

// add adds an arena of n bytes of payload that begins at base. The view must
// not be in use.
func (v *View) add(base uint64, n int) {
	v.bus = append(v.bus, base)
	v.end = max(v.end, base+uint64(n))
}

// mapAll maps the arenas of the pool. The caller holds its lock.
func (m *Mapping) mapAll() error {
	v := &View{first: m.pool.first, free: m.pool.owner}
	// also as far as it got, for unmap
	defer m.view.Store(v)
	for _, a := range m.pool.arenas {
		base, err := a.mapFor(m.mapper)
		if err != nil {
			return err
		}
		v.add(base, len(a.payload))
	}
	return nil
}

// extend shows an arena that was mapped at base to the queues. The caller holds
// the pool's lock.
func (m *Mapping) extend(base uint64, n int) {
	v := *m.view.Load()
	v.bus = slices.Clone(v.bus)
	v.add(base, n)
	m.view.Store(&v)
}

// unmap unmaps all arenas. The caller holds the pool's lock.
func (m *Mapping) unmap() error {
	v := m.view.Swap(&View{first: m.pool.first, free: m.pool.owner})
	var errs []error
	for i, base := range v.bus {
		errs = append(errs, m.pool.arenas[i].unmapFor(m.mapper, base))
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
