package pagepool

import (
	"errors"
	"fmt"
	"os"
	"unsafe"
)

// arena is one contiguous piece of payload and its records.
type arena struct {
	res     *reservation
	records []Buf
	payload []byte
	// own is the mapper that brought the payload, with its bus address there.
	own     Mapper
	ownAddr uint64
}

// newArena makes arena number with n buffers of size bytes. The device that
// the pool is made for is asked for memory of its own first.
func newArena(m Mapper, number, n int, cfg *config) (*arena, error) {
	size, kind := cfg.size, cfg.kind
	step := stride(size)
	page := os.Getpagesize()
	// whole pages, since other devices map them
	want := roundUp(n*step, page)
	a := &arena{}
	mem, addr, err := m.AllocDMA(want, page)
	switch {
	case err == nil && suits(mem, addr, want, page):
		a.own, a.ownAddr, a.payload = m, addr, mem[:want:want]
		clear(a.payload)
		if a.res, err = reserve(n*RecordSize, page, pagesSmall, false); err != nil {
			return nil, errors.Join(err, m.UnmapDMA(addr, want))
		}
	case err == nil:
		return nil, errors.Join(
			misshapen(mem, addr, want, page),
			m.UnmapDMA(addr, len(mem)))
	case errors.Is(err, errors.ErrUnsupported):
		if a.res, err = reserve(n*RecordSize, want, kind, !pins(m)); err != nil {
			return nil, err
		}
		a.payload = a.res.payload
	default:
		return nil, err
	}
	a.records = unsafe.Slice((*Buf)(unsafe.Pointer(&a.res.records[0])), n)
	base := uintptr(unsafe.Pointer(&a.payload[0]))
	for i := range a.records {
		b := &a.records[i]
		b.chunk = uint32(i * step)
		b.dist = int64(base) + int64(i*step) - int64(uintptr(unsafe.Pointer(b)))
		b.size = uint16(size)
		b.arena = uint16(number)
	}
	return a, nil
}

// suits says whether memory that a device gave is n bytes, aligned in the
// process and on the bus.
func suits(mem []byte, addr uint64, n, align int) bool {
	at := uintptr(unsafe.Pointer(unsafe.SliceData(mem)))
	return len(mem) >= n && at%uintptr(align) == 0 && addr%uint64(align) == 0
}

func misshapen(mem []byte, addr uint64, n, align int) error {
	return fmt.Errorf("device gave %d bytes at %p and bus address %#x for %d aligned to %d", len(mem), mem, addr, n, align)
}

// mapFor returns the bus address of the arena for m.
func (a *arena) mapFor(m Mapper) (uint64, error) {
	if a.own == m {
		return a.ownAddr, nil
	}
	return m.MapDMA(a.payload)
}

// unmapFor undoes mapFor. The memory of a device stays until the arena ends.
func (a *arena) unmapFor(m Mapper, addr uint64) error {
	if a.own == m {
		return nil
	}
	return m.UnmapDMA(addr, len(a.payload))
}

// release gives the memory back.
func (a *arena) release() error {
	var err error
	if a.own != nil {
		err = a.own.UnmapDMA(a.ownAddr, len(a.payload))
	}
	a.records, a.payload = nil, nil
	return errors.Join(err, a.res.release())
}
