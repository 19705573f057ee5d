package gmac4

import (
	"unsafe"

	"github.com/gostmmac/gostmmac/barrier"
	"github.com/gostmmac/gostmmac/mmio"
	"github.com/gostmmac/gostmmac/stmmac/internal/core"
	"github.com/gostmmac/gostmmac/stmmac/internal/regs/gmac4reg"
)

// Offsets of the words of a descriptor.
const (
	descSize = gmac4reg.DescSize
	des0     = 0
	des2     = 8
	des3     = 12
)

// rxDescs is a receive ring in memory. It implements core.RxDescs.
type rxDescs struct {
	ring unsafe.Pointer // slot 0; outside the Go heap
	n    uint32
	base uint32 // low word of the bus address of slot 0
	ch   mmio.Region
}

var _ core.RxDescs = (*rxDescs)(nil)

func slotAt(ring unsafe.Pointer, i uint32) unsafe.Pointer {
	return unsafe.Add(ring, uintptr(i)*descSize)
}

// Done implements core.RxDescs.
func (r *rxDescs) Done(first uint32, out []core.RxDone) int {
	want := uint32(len(out))
	k := min(want, r.n-first)
	got := countDone(slotAt(r.ring, first), k)
	if got == k && want > k {
		got += countDone(r.ring, want-k)
	}
	if got == 0 {
		return 0
	}
	// Orders the loads of the OWN words in countDone before those of the
	// lengths below and of the frames by whoever gets them.
	barrier.DMARead()
	d, end := slotAt(r.ring, first), slotAt(r.ring, r.n)
	for i := range out[:got] {
		d3 := gmac4reg.RDES3(*(*uint32)(unsafe.Add(d, des3)))
		o := &out[i]
		o.Len = gmac4reg.RxPL.Get(d3)
		// FD and LD are neighbours, as RxFirst and RxLast are in reverse.
		f := core.RxFlags(d3>>29&1 | d3>>27&2)
		if d3&(gmac4reg.RxES|gmac4reg.RxCTXT) != 0 {
			f |= rxOdd(d3)
		}
		o.Flags = f
		if d = unsafe.Add(d, descSize); d == end {
			d = r.ring
		}
	}
	return int(got)
}

// rxOdd decodes what a descriptor of a good frame does not have.
func rxOdd(d3 gmac4reg.RDES3) core.RxFlags {
	if d3&gmac4reg.RxCTXT != 0 {
		return core.RxContext
	}
	var f core.RxFlags
	for _, e := range [...]struct {
		bit  gmac4reg.RDES3
		flag core.RxFlags
	}{
		{gmac4reg.RxCE, core.RxErrCRC}, {gmac4reg.RxOE, core.RxErrOverflow}, {gmac4reg.RxRWT, core.RxErrWatchdog},
		{gmac4reg.RxGP, core.RxErrGiant}, {gmac4reg.RxDE, core.RxErrDribble}, {gmac4reg.RxRE, core.RxErrReceive},
	} {
		if d3&e.bit != 0 {
			f |= e.flag
		}
	}
	if f == 0 {
		f = core.RxErrOther
	}
	return f
}

// Ready implements core.RxDescs.
func (r *rxDescs) Ready(slot uint32) bool {
	return barrier.LoadOwn((*uint32)(unsafe.Add(slotAt(r.ring, slot), des3)))&uint32(gmac4reg.RxOWN) == 0
}

// Post implements core.RxDescs.
func (r *rxDescs) Post(first uint32, addr []uint64) {
	k := min(uint32(len(addr)), r.n-first)
	writeRxBodies(slotAt(r.ring, first), addr[:k])
	writeRxBodies(r.ring, addr[k:])
	// Orders the loads that the buffers' last users made of their bytes, and
	// the stores of the bodies above, before the stores of the OWN words: the
	// device may overwrite a buffer as soon as it sees OWN.
	barrier.DMARelease()
	giveRx(slotAt(r.ring, first), k)
	giveRx(r.ring, uint32(len(addr))-k)
}

// Kick implements core.RxDescs. The store contains the barrier that orders the
// stores of the OWN words before that of the tail.
func (r *rxDescs) Kick(tail uint32) {
	gmac4reg.DMACHRxDescTailPointer.Store(r.ch, r.base+tail*descSize)
}

// The functions below are leaves that do nothing but access descriptors. They
// are not inlined, so that the compiler cannot merge or move their accesses,
// and a test disassembles them.

// countDone loads the OWN words of up to n descriptors and returns how many
// come before the first that the device owns.
//
//go:noinline
func countDone(d unsafe.Pointer, n uint32) uint32 {
	for i := range n {
		if *(*uint32)(unsafe.Add(d, des3))&uint32(gmac4reg.RxOWN) != 0 {
			return i
		}
		d = unsafe.Add(d, descSize)
	}
	return n
}

// writeRxBodies stores all words but the last of a receive descriptor for each
// address.
//
//go:noinline
func writeRxBodies(d unsafe.Pointer, addr []uint64) {
	for _, a := range addr {
		*(*uint32)(unsafe.Add(d, des0)) = uint32(a)
		*(*uint32)(unsafe.Add(d, des0+4)) = uint32(a >> 32)
		*(*uint32)(unsafe.Add(d, des2)) = 0
		d = unsafe.Add(d, descSize)
	}
}

// giveRx stores the OWN words of n receive descriptors.
//
//go:noinline
func giveRx(d unsafe.Pointer, n uint32) {
	for range n {
		*(*uint32)(unsafe.Add(d, des3)) = uint32(gmac4reg.RxOWN | gmac4reg.RxIOC | gmac4reg.RxBUF1V)
		d = unsafe.Add(d, descSize)
	}
}
