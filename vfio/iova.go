package vfio

import (
	"fmt"
	"math/bits"
	"slices"

	"github.com/gostmmac/gostmmac/vfio/internal/uapi"
)

// firstIOVA is the lowest bus address that is given out: 0 means "no address" to
// many devices and drivers, and one that is near it tells of a mistake.
const firstIOVA = 1 << 16

// iovas gives out bus addresses from the ranges that the IOMMU translates, the
// lowest that fit, so that devices with 32 address bits reach them.
type iovas struct {
	ranges []uapi.IOVARange // ascending, apart
	page   uint64           // a power of two: the smallest that the IOMMU maps
	used   []extent         // ascending, apart
}

// extent is n bytes from start on.
type extent struct{ start, n uint64 }

// setRanges replaces the ranges. It fails when an address that is in use lies in
// none of them any more.
func (s *iovas) setRanges(ranges []uapi.IOVARange, page uint64) error {
	sorted := slices.Clone(ranges)
	sorted = slices.DeleteFunc(sorted, func(r uapi.IOVARange) bool { return r.Last < r.Start })
	slices.SortFunc(sorted, func(a, b uapi.IOVARange) int {
		if a.Start < b.Start {
			return -1
		}
		return 1
	})
	var merged []uapi.IOVARange
	for _, r := range sorted {
		if n := len(merged); n > 0 && r.Start <= merged[n-1].Last {
			merged[n-1].Last = max(merged[n-1].Last, r.Last)
			continue
		}
		merged = append(merged, r)
	}
	for _, u := range s.used {
		if !slices.ContainsFunc(merged, func(r uapi.IOVARange) bool { return r.Start <= u.start && u.start+(u.n-1) <= r.Last }) {
			return fmt.Errorf("%#x to %#x is mapped, and with this device it is reserved: open it before memory is mapped, or in a domain of its own: %w",
				u.start, u.start+(u.n-1), ErrNoIOVA)
		}
	}
	s.ranges, s.page = merged, page
	return nil
}

// hugePages are the sizes to which large pieces are aligned, so that the IOMMU can
// map them with as few entries.
var hugePages = [...]uint64{1 << 30, 2 << 20, 64 << 10}

// alloc returns n bytes, a multiple of the page, that lie to a huge page as the
// memory at vaddr does where that is possible, below 4 GiB if there is room, and
// below end; end 0 stands for 1<<64.
func (s *iovas) alloc(n, vaddr, end uint64) (uint64, error) {
	if n == 0 || n%s.page != 0 {
		return 0, fmt.Errorf("%d bytes are no multiple of the IOMMU's page of %d", n, s.page)
	}
	const low = 1 << 32
	for _, below := range [...]uint64{min(low-1, end-1) + 1, end} {
		for _, align := range hugePages {
			if n < align || align < s.page {
				continue
			}
			if at, ok := s.fit(n, align, vaddr%align, below); ok {
				return s.take(at, n), nil
			}
		}
		if at, ok := s.fit(n, s.page, 0, below); ok {
			return s.take(at, n), nil
		}
	}
	return 0, fmt.Errorf("%d bytes below %#x, with %d of them in use: %w", n, end, s.inUse(), ErrNoIOVA)
}

// fit finds the lowest free address that is phase modulo align.
func (s *iovas) fit(n, align, phase, end uint64) (uint64, bool) {
	for _, r := range s.ranges {
		at, ok := alignUp(max(r.Start, firstIOVA), align, phase)
		for _, u := range s.used {
			if !ok || u.start+(u.n-1) < at {
				continue
			}
			if u.start > at && u.start-at >= n {
				break
			}
			next, carry := bits.Add64(u.start, u.n, 0)
			if carry != 0 {
				ok = false
				break
			}
			at, ok = alignUp(max(at, next), align, phase)
		}
		last := min(r.Last, end-1)
		if ok && at <= last && last-at >= n-1 {
			return at, true
		}
	}
	return 0, false
}

// alignUp returns the lowest address from v on that is phase modulo align; ok is
// false when there is none.
func alignUp(v, align, phase uint64) (at uint64, ok bool) {
	at = v + (phase-v)&(align-1)
	return at, at >= v
}

func (s *iovas) take(start, n uint64) uint64 {
	i, _ := slices.BinarySearchFunc(s.used, start, func(u extent, v uint64) int {
		if u.start < v {
			return -1
		}
		return 1
	})
	s.used = slices.Insert(s.used, i, extent{start, n})
	return start
}

// release gives back what alloc returned.
func (s *iovas) release(start uint64) {
	s.used = slices.DeleteFunc(s.used, func(u extent) bool { return u.start == start })
}

func (s *iovas) inUse() (n uint64) {
	for _, u := range s.used {
		n += u.n
	}
	return n
}
