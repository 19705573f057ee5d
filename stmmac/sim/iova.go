package sim

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
)

// MapError is a failed call on the memory of a device.
type MapError struct {
	Op   string // MapDMA, UnmapDMA, AllocDMA
	IOVA uint64
	Len  int
	Err  error
}

// Error implements error.
func (e *MapError) Error() string {
	return fmt.Sprintf("sim: %s: %d bytes at %#x: %v", e.Op, e.Len, e.IOVA, e.Err)
}

// Unwrap returns the reason.
func (e *MapError) Unwrap() error { return e.Err }

// Reasons of a MapError.
var (
	ErrNotMapped = errors.New("not mapped so")
	ErrNoSpace   = errors.New("no bus address left")
	ErrEmpty     = errors.New("no bytes")
)

const (
	iovaPage = 4096
	// iovaGuard is the unmapped gap between two mappings; a frame that runs over
	// the end of one does not reach the next.
	iovaGuard = 64 << 10
	// iovaFirst keeps 0, which a driver may take for "none", out of reach.
	iovaFirst = 0x1000_0000
	fourGiB   = 1 << 32
)

// mapping is a piece of memory that the device reaches.
type mapping struct {
	iova uint64
	mem  []byte
	free func() error // releases memory of the device's own
}

// space is the IOVA space of a device: what an IOMMU would hold.
type space struct {
	mu     sync.Mutex
	maps   []mapping // by iova
	lo, hi uint64    // addresses to hand out
	next   uint64    // where to look first, so that an address is not reused soon
	view   atomic.Pointer[[]mapping]
	last   atomic.Int32 // index in view of the mapping of the last access
}

func (s *space) init(c *Config) {
	s.lo, s.hi = iovaFirst, fourGiB
	if c.HighIOVA {
		s.lo, s.hi = fourGiB, min(uint64(1)<<c.AddrWidth, 1<<47)
	}
	s.next = s.lo
	s.publish()
}

func (s *space) publish() {
	v := slices.Clone(s.maps)
	s.view.Store(&v)
}

// add maps mem at an address that is page more than a multiple of align.
func (s *space) add(op string, mem []byte, page, align uint64, free func() error) (uint64, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(mem) == 0 {
		return 0, &MapError{op, 0, 0, ErrEmpty}
	}
	n := uint64(len(mem))
	at, ok := s.find(s.next, s.hi, page, align, n)
	if !ok {
		if at, ok = s.find(s.lo, s.hi, page, align, n); !ok {
			return 0, &MapError{op, 0, len(mem), ErrNoSpace}
		}
	}
	s.next = (at + n + iovaGuard + iovaPage - 1) &^ (iovaPage - 1)
	i, _ := slices.BinarySearchFunc(s.maps, at, func(m mapping, a uint64) int {
		if m.iova < a {
			return -1
		}
		return 1
	})
	s.maps = slices.Insert(s.maps, i, mapping{at, mem, free})
	s.publish()
	return at, nil
}

// find looks for n free bytes from lo on that do not cross 4 GiB: descriptor lists
// and the tails that compare 32 bits must not.
func (s *space) find(lo, hi, page, align, n uint64) (uint64, bool) {
	at := lo // free from here on
	fit := func(end uint64) (uint64, bool) {
		a := (at+align-1)&^(align-1) + page
		if a/fourGiB != (a+n-1)/fourGiB {
			a = (a/fourGiB+1)*fourGiB + page
		}
		return a, a >= at && a+n > a && a+n <= end
	}
	for _, m := range s.maps {
		if m.iova > at+iovaGuard {
			if a, ok := fit(m.iova - iovaGuard); ok {
				return a, true
			}
		}
		at = max(at, m.iova+uint64(len(m.mem))+iovaGuard)
	}
	return fit(hi)
}

// remove undoes add.
func (s *space) remove(iova uint64, n int) (mapping, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, m := range s.maps {
		if m.iova == iova && len(m.mem) == n {
			s.maps = slices.Delete(s.maps, i, i+1)
			s.publish()
			return m, nil
		}
	}
	return mapping{}, &MapError{"UnmapDMA", iova, n, ErrNotMapped}
}

// removeAll empties the space and returns what was in it.
func (s *space) removeAll() []mapping {
	s.mu.Lock()
	defer s.mu.Unlock()
	maps := s.maps
	s.maps = nil
	s.publish()
	return maps
}

// Window implements DMA.
func (s *space) Window(addr uint64, n int) []byte {
	m := s.lookup(addr)
	if m == nil {
		return nil
	}
	off := addr - m.iova
	if n < 0 || uint64(n) > uint64(len(m.mem))-off {
		return nil
	}
	return m.mem[off : off+uint64(n) : off+uint64(n)]
}

func (s *space) lookup(addr uint64) *mapping {
	v := *s.view.Load()
	// The index may be of an older view: any mapping of this one will do that
	// addr lies in.
	if i := int(s.last.Load()); i < len(v) && addr-v[i].iova < uint64(len(v[i].mem)) {
		return &v[i]
	}
	lo, hi := 0, len(v)
	for lo < hi {
		mid := int(uint(lo+hi) >> 1)
		if v[mid].iova <= addr {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	if lo == 0 || addr-v[lo-1].iova >= uint64(len(v[lo-1].mem)) {
		return nil
	}
	s.last.Store(int32(lo - 1))
	return &v[lo-1]
}

// Extent implements extenter.
func (s *space) Extent(addr uint64) (uint64, []byte) {
	m := s.lookup(addr)
	if m == nil {
		return 0, nil
	}
	return m.iova, m.mem
}

// Read implements DMA: what Window did not find is not mapped.
func (s *space) Read(uint64, []byte) error { return errBus }

// Write implements DMA.
func (s *space) Write(uint64, []byte) error { return errBus }
