package gmac4

import (
	"unsafe"

	"github.com/gostmmac/gostmmac/barrier"
	"github.com/gostmmac/gostmmac/mmio"
	"github.com/gostmmac/gostmmac/stmmac/internal/core"
	"github.com/gostmmac/gostmmac/stmmac/internal/regs/gmac4reg"
)

// txDescs is a transmit ring in memory. It implements core.TxDescs.
type txDescs struct {
	ring unsafe.Pointer // slot 0; outside the Go heap
	n    uint32
	base uint32 // low word of the bus address of slot 0
	ch   mmio.Region
}

var _ core.TxDescs = (*txDescs)(nil)

// Post implements core.TxDescs.
func (t *txDescs) Post(first uint32, d []core.TxPost) {
	k := min(uint32(len(d)), t.n-first)
	at := slotAt(t.ring, first)
	several := writeTxBodies(at, d[:k])
	if k < uint32(len(d)) {
		several = writeTxBodies(t.ring, d[k:]) || several
	}
	if several {
		giveTx(at, d[:k], 0)
		giveTx(t.ring, d[k:], 0)
	}
	// Orders the stores of the frames' bytes, of the bodies and of the OWN
	// words that do not start a frame before those that do: with the first one
	// the device may fetch the whole frame.
	barrier.DMAWrite()
	giveTx(at, d[:k], core.TxFirst)
	if k < uint32(len(d)) {
		giveTx(t.ring, d[k:], core.TxFirst)
	}
}

// Kick implements core.TxDescs. The store contains the barrier that orders the
// stores of the OWN words before that of the tail.
func (t *txDescs) Kick(tail uint32) {
	gmac4reg.DMACHTxDescTailPointer.Store(t.ch, t.base+tail*descSize)
}

// Done implements core.TxDescs.
func (t *txDescs) Done(first uint32, out []core.TxStatus) int {
	want := uint32(len(out))
	k := min(want, t.n-first)
	got := countDone(slotAt(t.ring, first), k)
	if got == k && want > k {
		got += countDone(t.ring, want-k)
	}
	if got == 0 {
		return 0
	}
	// Orders the loads of the OWN words in countDone before those of the
	// status below. The stores of whoever fills the buffers next come after a
	// branch on the former, which no processor lets them pass.
	barrier.DMARead()
	d, end := slotAt(t.ring, first), slotAt(t.ring, t.n)
	for i := range out[:got] {
		d3 := gmac4reg.TDES3(*(*uint32)(unsafe.Add(d, des3)))
		s := core.TxStatus(d3 >> 28 & 1) // LD is TxDoneLast
		if d3&gmac4reg.TxES != 0 {
			s |= txErrors(d3)
		}
		out[i] = s
		if d = unsafe.Add(d, descSize); d == end {
			d = t.ring
		}
	}
	return int(got)
}

// txErrors decodes the cause of an error summary.
func txErrors(d3 gmac4reg.TDES3) core.TxStatus {
	var s core.TxStatus
	for _, e := range [...]struct {
		bits   gmac4reg.TDES3
		status core.TxStatus
	}{
		{gmac4reg.TxUF, core.TxErrUnderflow}, {gmac4reg.TxEC | gmac4reg.TxLC, core.TxErrCollision},
		{gmac4reg.TxNC | gmac4reg.TxLoC, core.TxErrCarrier}, {gmac4reg.TxED, core.TxErrDeferral},
		{gmac4reg.TxJT, core.TxErrJabber}, {gmac4reg.TxFF, core.TxErrFlushed},
		{gmac4reg.TxIHE | gmac4reg.TxPCE, core.TxErrChecksum},
	} {
		if d3&e.bits != 0 {
			s |= e.status
		}
	}
	if s == 0 {
		s = core.TxErrOther
	}
	return s
}

// Ready implements core.TxDescs.
func (t *txDescs) Ready(slot uint32) bool {
	return barrier.LoadOwn((*uint32)(unsafe.Add(slotAt(t.ring, slot), des3)))&uint32(gmac4reg.TxOWN) == 0
}

// The functions below are leaves that do nothing but access descriptors. They
// are not inlined, so that the compiler cannot merge or move their accesses,
// and a test disassembles them.

// writeTxBodies stores all words but the last of the transmit descriptors, and
// says whether some do not start a frame.
//
//go:noinline
func writeTxBodies(d unsafe.Pointer, post []core.TxPost) (several bool) {
	all := core.TxFirst
	for i := range post {
		p := &post[i]
		*(*uint32)(unsafe.Add(d, des0)) = uint32(p.Addr)
		*(*uint32)(unsafe.Add(d, des0+4)) = uint32(p.Addr >> 32)
		// TxInterrupt is bit 2, IOC bit 31.
		*(*uint32)(unsafe.Add(d, des2)) = p.Len | uint32(p.Flags&core.TxInterrupt)<<29
		all &= p.Flags
		d = unsafe.Add(d, descSize)
	}
	return all == 0
}

// giveTx stores the OWN words of the descriptors whose TxFirst flag is as in
// first. TxFirst and TxLast are bits 0 and 1, FD and LD bits 29 and 28.
//
//go:noinline
func giveTx(d unsafe.Pointer, post []core.TxPost, first core.TxFlags) {
	for i := range post {
		if f := post[i].Flags; f&core.TxFirst == first {
			*(*uint32)(unsafe.Add(d, des3)) = uint32(gmac4reg.TxOWN) |
				uint32(f&core.TxFirst)<<29 | uint32(f&core.TxLast)<<27 | post[i].FrameLen
		}
		d = unsafe.Add(d, descSize)
	}
}
