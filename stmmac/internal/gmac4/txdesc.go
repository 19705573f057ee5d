package gmac4

import (
	"unsafe"

	"github.com/gostmmac/gostmmac/barrier"
	"github.com/gostmmac/gostmmac/pagepool"
	"github.com/gostmmac/gostmmac/stmmac/internal/core"
	"github.com/gostmmac/gostmmac/stmmac/internal/regs/gmac4reg"
)

// txDescs is a transmit ring. It implements core.TxDescs.
type txDescs struct{ ring }

var _ core.TxDescs = (*txDescs)(nil)

// IOC is where core.TxPost.Len has TxInterrupt.
var _ = [1]struct{}{}[uint32(gmac4reg.IOC)-core.TxInterrupt]

// PostWhole implements core.TxDescs.
func (t *txDescs) PostWhole(first uint32, frames []*pagepool.Buf, v *pagepool.View, interrupt uint32) {
	at, last := t.at(first), len(frames)-1
	writeTxWhole(at, frames[:last], v.Bus())
	b := frames[last]
	writeTxOne(t.at(first+uint32(last)), v.Bus().Chunk(b)+uint64(b.Offset()), uint32(b.Len())|interrupt)
	// Orders the stores of the frames' bytes and of the bodies before those of
	// the OWN words, with which the device may fetch both.
	barrier.DMAWrite()
	giveTxWhole(at, frames)
}

// PostOne implements core.TxDescs.
func (t *txDescs) PostOne(slot uint32, addr uint64, n, interrupt uint32) {
	d := t.at(slot)
	writeTxOne(d, addr, n|interrupt)
	// Orders the stores of the frame's bytes and of the body before that of the
	// OWN word, with which the device may fetch both.
	barrier.DMAWrite()
	giveTxOne(d, n)
}

// Post implements core.TxDescs.
func (t *txDescs) Post(first uint32, d []core.TxPost) {
	k := min(uint32(len(d)), t.n-first)
	at, start := t.at(first), t.slots
	writeTxBodies(at, d[:k])
	writeTxBodies(start, d[k:])
	giveTx(at, d[:k], 0)
	giveTx(start, d[k:], 0)
	// Orders the stores of the frames' bytes, of the bodies and of the OWN
	// words that do not start a frame before those that do: with the first one
	// the device may fetch the whole frame.
	barrier.DMAWrite()
	giveTx(at, d[:k], uint32(gmac4reg.TxOWN))
	giveTx(start, d[k:], uint32(gmac4reg.TxOWN))
}

// Tag implements core.TxDescs.
func (t *txDescs) Tag(m *pagepool.Meta) (context core.TxPost, length, own uint32) {
	d3 := gmac4reg.TxCTXT | gmac4reg.TxVLTV | gmac4reg.TxVT.Of(uint32(m.VLAN))
	if m.Flags&pagepool.InnerVLANTag != 0 {
		context.Len = uint32(gmac4reg.TxIVT.Of(uint32(m.InnerVLAN)))
		d3 |= gmac4reg.TxIVLTV | gmac4reg.IVTIR.Of(gmac4reg.TagInsert)
	}
	context.Own = uint32(d3)
	return context, uint32(gmac4reg.VTIR.Of(gmac4reg.TagInsert)), 0
}

// Errors implements core.TxDescs.
func (t *txDescs) Errors(own uint32) core.TxErrors {
	d3 := gmac4reg.TDES3(own)
	var s core.TxErrors
	for _, e := range [...]struct {
		bits gmac4reg.TDES3
		err  core.TxErrors
	}{
		{gmac4reg.TxUF, core.TxErrUnderflow}, {gmac4reg.TxEC | gmac4reg.TxLC, core.TxErrCollision},
		{gmac4reg.TxNC | gmac4reg.TxLoC, core.TxErrCarrier}, {gmac4reg.TxED, core.TxErrDeferral},
		{gmac4reg.TxJT, core.TxErrJabber}, {gmac4reg.TxFF, core.TxErrFlushed},
		{gmac4reg.TxIHE | gmac4reg.TxPCE, core.TxErrChecksum},
	} {
		if d3&e.bits != 0 {
			s |= e.err
		}
	}
	if s == 0 {
		s = core.TxErrOther
	}
	return s
}

// The functions below are leaves that do nothing but store to descriptors. They
// are not inlined, so that the compiler cannot merge or move their stores, and
// a test disassembles them.

// writeTxWhole stores all words but the last of a transmit descriptor for each
// frame of one buffer, without IOC.
//
//go:noinline
func writeTxWhole(d unsafe.Pointer, frames []*pagepool.Buf, bus pagepool.Bus) {
	for _, b := range frames {
		*(*uint64)(unsafe.Add(d, des0)) = bus.Chunk(b) + uint64(b.Offset())
		*(*uint32)(unsafe.Add(d, des2)) = uint32(b.Len())
		d = unsafe.Add(d, descSize)
	}
}

// giveTxWhole stores the OWN word of a transmit descriptor for each frame of
// one buffer.
//
//go:noinline
func giveTxWhole(d unsafe.Pointer, frames []*pagepool.Buf) {
	for _, b := range frames {
		*(*uint32)(unsafe.Add(d, des3)) = uint32(gmac4reg.TxOWN|gmac4reg.TxFD|gmac4reg.TxLD) | uint32(b.Len())
		d = unsafe.Add(d, descSize)
	}
}

// writeTxOne stores all words but the last of a transmit descriptor of one
// buffer, the third of which is des2word.
//
//go:noinline
func writeTxOne(d unsafe.Pointer, addr uint64, des2word uint32) {
	*(*uint64)(unsafe.Add(d, des0)) = addr
	*(*uint32)(unsafe.Add(d, des2)) = des2word
}

// giveTxOne stores the OWN word of a transmit descriptor of one buffer of n
// bytes.
//
//go:noinline
func giveTxOne(d unsafe.Pointer, n uint32) {
	*(*uint32)(unsafe.Add(d, des3)) = uint32(gmac4reg.TxOWN|gmac4reg.TxFD|gmac4reg.TxLD) | n
}

// writeTxBodies stores all words but the last of the transmit descriptors.
//
//go:noinline
func writeTxBodies(d unsafe.Pointer, post []core.TxPost) {
	for i := range post {
		*(*uint64)(unsafe.Add(d, des0)) = post[i].Addr
		*(*uint32)(unsafe.Add(d, des2)) = post[i].Len
		d = unsafe.Add(d, descSize)
	}
}

// giveTx stores the OWN words of the descriptors that are the first of their
// frame, with first = OWN, or of those that are not, with 0.
//
//go:noinline
func giveTx(d unsafe.Pointer, post []core.TxPost, first uint32) {
	for i := range post {
		if own := post[i].Own; own&uint32(gmac4reg.TxOWN) == first {
			*(*uint32)(unsafe.Add(d, des3)) = own | uint32(gmac4reg.TxOWN)
		}
		d = unsafe.Add(d, descSize)
	}
}
