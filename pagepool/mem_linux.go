package pagepool

import (
	"fmt"
	"os"
	"unsafe"

	"golang.org/x/sys/unix"
)

// pageKind says which pages a reservation asks for.
type pageKind uint8

const (
	pagesAuto  pageKind = iota // hugetlb, else transparent huge, else small
	pagesSmall                 // of the system's page size
)

const (
	hugePage = 2 << 20
	// of 2 MiB, whatever the system's default is: with another size the kernel
	// would round the length up and map over what lies behind the reservation
	mapHuge = unix.MAP_PRIVATE | unix.MAP_ANONYMOUS | unix.MAP_HUGETLB | unix.MAP_HUGE_2MB
)

// reservation is one piece of address space: records, a guard page, payload.
type reservation struct {
	whole   []byte
	records []byte
	payload []byte
	huge    bool // payload lies in hugetlb pages
	locked  bool
}

// reserve maps records and payload, both rounded up to pages, with an
// inaccessible page between and behind them. The payload is not copied to a
// child of fork, which would move it away from under a device, and left out of
// core dumps. With lock it is locked if the process may lock as much.
func reserve(records, payload int, kind pageKind, lock bool) (*reservation, error) {
	page := os.Getpagesize()
	records = roundUp(records, page)
	payload = roundUp(payload, page)
	pad := 0
	wantHuge := kind == pagesAuto && payload >= hugePage
	if wantHuge {
		pad = hugePage
	}
	rounded := payload
	if wantHuge {
		rounded = roundUp(payload, hugePage)
	}
	whole, err := unix.Mmap(-1, 0, records+page+rounded+pad+page, unix.PROT_NONE,
		unix.MAP_PRIVATE|unix.MAP_ANONYMOUS|unix.MAP_NORESERVE)
	if err != nil {
		return nil, fmt.Errorf("reserve %d bytes of address space: %w", records+rounded, err)
	}
	r := &reservation{whole: whole, records: whole[:records:records]}
	start := records + page
	if wantHuge {
		at := uintptr(unsafe.Pointer(&whole[0])) + uintptr(start)
		start += int(-at & (hugePage - 1))
	}
	if err := r.commit(start, payload, rounded, wantHuge, lock); err != nil {
		return nil, joinRelease(r, err)
	}
	return r, nil
}

func joinRelease(r *reservation, err error) error {
	if e := r.release(); e != nil {
		return fmt.Errorf("%w; and giving the address space back: %w", err, e)
	}
	return err
}

func (r *reservation) commit(start, payload, rounded int, wantHuge, lock bool) error {
	if len(r.records) > 0 {
		if err := unix.Mprotect(r.records, unix.PROT_READ|unix.PROT_WRITE); err != nil {
			return fmt.Errorf("commit %d bytes of records: %w", len(r.records), err)
		}
	}
	at := unsafe.Pointer(&r.whole[start])
	if wantHuge && hugePagesFree(rounded) {
		_, err := unix.MmapPtr(-1, 0, at, uintptr(rounded), unix.PROT_READ|unix.PROT_WRITE, mapHuge|unix.MAP_FIXED|unix.MAP_POPULATE)
		if err == nil {
			r.huge = true
			r.payload = r.whole[start : start+rounded : start+rounded]
		} else if _, err = unix.MmapPtr(-1, 0, at, uintptr(rounded), unix.PROT_NONE,
			unix.MAP_PRIVATE|unix.MAP_ANONYMOUS|unix.MAP_FIXED|unix.MAP_NORESERVE); err != nil {
			// a failed MAP_FIXED may have removed what was there
			return fmt.Errorf("reserve payload: %w", err)
		}
	}
	if !r.huge {
		r.payload = r.whole[start : start+payload : start+payload]
		if err := unix.Mprotect(r.payload, unix.PROT_READ|unix.PROT_WRITE); err != nil {
			return fmt.Errorf("commit %d bytes of payload: %w", payload, err)
		}
		if wantHuge {
			// a kernel without transparent huge pages answers EINVAL; small pages are as right
			_ = unix.Madvise(r.payload, unix.MADV_HUGEPAGE)
		}
	}
	for _, advice := range []int{unix.MADV_DONTFORK, unix.MADV_DONTDUMP} {
		if err := unix.Madvise(r.payload, advice); err != nil {
			return fmt.Errorf("madvise %d: %w", advice, err)
		}
	}
	r.locked = lock && unix.Mlock(r.payload) == nil
	return nil
}

// hugePagesFree says whether n bytes of huge pages can be had now. It asks for
// them elsewhere, since a MAP_FIXED that fails may leave a hole in the
// reservation, where a mapping of another thread can land.
func hugePagesFree(n int) bool {
	p, err := unix.MmapPtr(-1, 0, nil, uintptr(n), unix.PROT_READ|unix.PROT_WRITE, mapHuge)
	return err == nil && unix.MunmapPtr(p, uintptr(n)) == nil
}

// release gives the address space back.
func (r *reservation) release() error {
	if r.whole == nil {
		return nil
	}
	whole := r.whole
	r.whole, r.records, r.payload = nil, nil, nil
	return unix.Munmap(whole)
}
