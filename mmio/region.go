package mmio

import (
	"unsafe"

	"github.com/gostmmac/gostmmac/barrier"
)

// AllOnes is what a load returns when no device answers: a register of a
// function that left the bus, or an offset behind the end of a region.
const AllOnes = ^uint32(0)

// Region is a range of 32-bit registers, addressed by byte offset.
//
// Load32 is ordered before all later memory accesses (Linux readl) and Store32
// after all earlier ones (Linux writel). An offset that is not a multiple of
// four or does not lie inside the region loads [AllOnes] and stores nothing;
// neither call panics. A Region may be used by several goroutines; a
// read-modify-write of one register needs a lock of the caller.
type Region interface {
	Load32(off uint32) uint32
	Store32(off, v uint32)
	// Len is the size of the region in bytes.
	Len() uint32
}

// mapped is a region of memory that the process has mapped from a device.
type mapped struct {
	base unsafe.Pointer
	n    uint32
}

// Map returns the registers that lie in mem, which must be mapped from a
// device (or be ordinary memory in a test), start at a multiple of four and
// stay mapped as long as the region is used. Memory that starts elsewhere gives
// a region of length 0. The part of mem behind 4 GiB - 4 is not reachable.
func Map(mem []byte) Region {
	p := unsafe.Pointer(unsafe.SliceData(mem))
	if uintptr(p)&3 != 0 {
		return &mapped{}
	}
	n := uint64(len(mem)) &^ 3
	if n > 1<<32-4 {
		n = 1<<32 - 4
	}
	return &mapped{base: p, n: uint32(n)}
}

func inside(off, n uint32) bool { return off < n && off&3 == 0 }

func (m *mapped) Load32(off uint32) uint32 {
	if !inside(off, m.n) {
		return AllOnes
	}
	return barrier.Load32((*uint32)(unsafe.Add(m.base, off)))
}

func (m *mapped) Store32(off, v uint32) {
	if inside(off, m.n) {
		barrier.Store32((*uint32)(unsafe.Add(m.base, off)), v)
	}
}

func (m *mapped) Len() uint32 { return m.n }

// window is a part of another region.
type window struct {
	r   Region
	off uint32
	n   uint32
}

// Window returns the n bytes of r that start at off, cut where r ends. An off
// that is not a multiple of four gives a region of length 0.
func Window(r Region, off, n uint32) Region {
	total := r.Len()
	if off > total {
		off = total
	}
	if n > total-off {
		n = total - off
	}
	n &^= 3
	if n == 0 || off&3 != 0 {
		return &mapped{}
	}
	switch p := r.(type) {
	case *mapped:
		return &mapped{base: unsafe.Add(p.base, off), n: n}
	case window:
		return window{r: p.r, off: p.off + off, n: n}
	}
	return window{r: r, off: off, n: n}
}

func (w window) Load32(off uint32) uint32 {
	if !inside(off, w.n) {
		return AllOnes
	}
	return w.r.Load32(w.off + off)
}

func (w window) Store32(off, v uint32) {
	if inside(off, w.n) {
		w.r.Store32(w.off+off, v)
	}
}

func (w window) Len() uint32 { return w.n }
