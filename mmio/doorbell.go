package mmio

import (
	"unsafe"

	"github.com/gostmmac/gostmmac/barrier"
)

// Doorbell is one register that is written often: a tail pointer, a poll
// demand. Its bounds are checked once, when it is made.
type Doorbell struct {
	p   unsafe.Pointer // the register, in mapped memory
	r   Region         // else the region that it lies in
	off uint32
}

// NewDoorbell returns the register at off of r. One that does not lie in r is
// never written.
func NewDoorbell(r Region, off uint32) Doorbell {
	if m, ok := r.(*mapped); ok && inside(off, m.n) {
		return Doorbell{p: unsafe.Add(m.base, off)}
	}
	return Doorbell{r: r, off: off}
}

// Ring writes v, ordered after all earlier stores to memory.
func (d *Doorbell) Ring(v uint32) {
	if d.p != nil {
		barrier.Store32((*uint32)(d.p), v)
		return
	}
	d.r.Store32(d.off, v)
}
