package main

import (
	"cmp"
	"slices"
)

// extent is a range of bus addresses.
type extent struct{ addr, n uint64 }

// extents divides a range of bus addresses, first fit. A MAC asks for a few
// pieces when it is opened and gives them back when it is closed, so a list is
// enough.
type extents struct {
	free []extent          // by address; no two of them touch
	used map[uint64]uint64 // length by address
}

// newExtents returns the n bytes from base on, all free. base + n must not
// exceed 1<<64 - 1.
func newExtents(base, n uint64) *extents {
	return &extents{free: []extent{{base, n}}, used: map[uint64]uint64{}}
}

// alloc returns the lowest n free bytes, n at least 1, whose address is a
// multiple of align, a power of two. ok is false when there are none.
func (x *extents) alloc(n, align uint64) (addr uint64, ok bool) {
	for i, e := range x.free {
		pad := -e.addr & (align - 1)
		if pad > e.n || e.n-pad < n {
			continue
		}
		addr = e.addr + pad
		var rest []extent
		if pad > 0 {
			rest = append(rest, extent{e.addr, pad})
		}
		if e.n > pad+n {
			rest = append(rest, extent{addr + n, e.n - pad - n})
		}
		x.free = slices.Replace(x.free, i, i+1, rest...)
		x.used[addr] = n
		return addr, true
	}
	return 0, false
}

// release frees what alloc returned. ok is false, and nothing changes, when
// alloc did not return n bytes at addr.
func (x *extents) release(addr, n uint64) (ok bool) {
	if have, ok := x.used[addr]; !ok || have != n {
		return false
	}
	delete(x.used, addr)
	i, _ := slices.BinarySearchFunc(x.free, addr, func(e extent, a uint64) int { return cmp.Compare(e.addr, a) })
	x.free = slices.Insert(x.free, i, extent{addr, n})
	if i+1 < len(x.free) && addr+n == x.free[i+1].addr {
		x.free[i].n += x.free[i+1].n
		x.free = slices.Delete(x.free, i+1, i+2)
	}
	if i > 0 && x.free[i-1].addr+x.free[i-1].n == addr {
		x.free[i-1].n += x.free[i].n
		x.free = slices.Delete(x.free, i, i+1)
	}
	return true
}

// inUse is the number of bytes that are not free.
func (x *extents) inUse() uint64 {
	var n uint64
	for _, l := range x.used {
		n += l
	}
	return n
}

// largest is the length of the longest free extent.
func (x *extents) largest() uint64 {
	var n uint64
	for _, e := range x.free {
		n = max(n, e.n)
	}
	return n
}
