package gmac

import (
	"unsafe"

	"github.com/gostmmac/gostmmac/barrier"
	"github.com/gostmmac/gostmmac/pagepool"
	"github.com/gostmmac/gostmmac/stmmac/internal/core"
	"github.com/gostmmac/gostmmac/stmmac/internal/regs/gmacreg"
)

// txDescs is a transmit list. It implements core.TxDescs.
type txDescs struct{ ring }

var _ core.TxDescs = (*txDescs)(nil)

// IC is where core.TxPost.Len has TxInterrupt, and TxPost.Own has OWN beside the
// bits of word 1.
var (
	_ = [1]struct{}{}[uint32(gmacreg.TxIC)-core.TxInterrupt]
	_ = [1]struct{}{}[ownBit-uint32(gmacreg.TxOWN)]
)

// whole are the bits of word 1 of a frame of one buffer.
const whole = uint32(gmacreg.TxFS | gmacreg.TxLS)

// PostWhole implements core.TxDescs.
func (t *txDescs) PostWhole(first uint32, frames []*pagepool.Buf, v *pagepool.View, interrupt uint32) {
	at, last := t.at(first), len(frames)-1
	writeTxWhole(at, frames[:last], v.Bus(), t.ctrl|whole)
	b, slot := frames[last], first+uint32(last)
	writeTxOne(t.at(slot), uint32(v.Bus().Chunk(b))+uint32(b.Offset()), t.placed(slot)|whole|uint32(b.Len())|interrupt)
	// Orders the stores of the frames' bytes and of the bodies before those of
	// the OWN words, with which the device may fetch both.
	barrier.DMAWrite()
	give(at, len(frames))
}

// PostOne implements core.TxDescs.
func (t *txDescs) PostOne(slot uint32, addr uint64, n, interrupt uint32) {
	d := t.at(slot)
	writeTxOne(d, uint32(addr), t.placed(slot)|whole|n|interrupt)
	// Orders the stores of the frame's bytes and of the body before that of the
	// OWN word, with which the device may fetch both.
	barrier.DMAWrite()
	give(d, 1)
}

// Post implements core.TxDescs.
func (t *txDescs) Post(first uint32, d []core.TxPost) {
	k := min(uint32(len(d)), t.n-first)
	at, start := t.at(first), t.slots
	t.write(first, d[:k])
	if len(d[k:]) > 0 {
		t.write(0, d[k:])
	}
	giveTx(at, d[:k], 0)
	giveTx(start, d[k:], 0)
	// Orders the stores of the frames' bytes, of the bodies and of the OWN
	// words that do not start a frame before those that do: with the first one
	// the device may fetch the whole frame.
	barrier.DMAWrite()
	giveTx(at, d[:k], ownBit)
	giveTx(start, d[k:], ownBit)
}

// write stores the bodies of descriptors that do not wrap.
func (t *txDescs) write(first uint32, d []core.TxPost) {
	writeTxBodies(t.at(first), d, t.ctrl)
	if last := first + uint32(len(d)) - 1; last == t.n-1 && t.end != 0 {
		p := &d[len(d)-1]
		writeControl(t.at(last), p.Own&^ownBit|p.Len|t.placed(last))
	}
}

// Tag implements core.TxDescs. Nothing asks for it: TxOffloads says that the device
// inserts no tags.
func (t *txDescs) Tag(*pagepool.Meta) (context core.TxPost, length, own uint32) {
	return core.TxPost{}, 0, 0
}

// Errors implements core.TxDescs.
func (t *txDescs) Errors(own uint32) core.TxErrors {
	d := gmacreg.TDES0(own)
	var s core.TxErrors
	for _, e := range [...]struct {
		bits gmacreg.TDES0
		err  core.TxErrors
	}{
		{gmacreg.TxUF, core.TxErrUnderflow}, {gmacreg.TxEC | gmacreg.TxLC, core.TxErrCollision},
		{gmacreg.TxNC | gmacreg.TxLoC, core.TxErrCarrier}, {gmacreg.TxED, core.TxErrDeferral},
		{gmacreg.TxJT, core.TxErrJabber}, {gmacreg.TxFF, core.TxErrFlushed},
		{gmacreg.TxIHE | gmacreg.TxPCE, core.TxErrChecksum},
	} {
		if d&e.bits != 0 {
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

// writeTxWhole stores words 1 and 2 of a transmit descriptor for each frame of one
// buffer: ctrl with the length, and the address.
//
//go:noinline
func writeTxWhole(d unsafe.Pointer, frames []*pagepool.Buf, bus pagepool.Bus, ctrl uint32) {
	for _, b := range frames {
		*(*uint32)(unsafe.Add(d, des1)) = ctrl | uint32(b.Len())
		*(*uint32)(unsafe.Add(d, des2)) = uint32(bus.Chunk(b)) + uint32(b.Offset())
		d = unsafe.Add(d, descSize)
	}
}

// writeTxOne stores words 1 and 2 of a transmit descriptor.
//
//go:noinline
func writeTxOne(d unsafe.Pointer, addr, word uint32) {
	*(*uint32)(unsafe.Add(d, des1)) = word
	*(*uint32)(unsafe.Add(d, des2)) = addr
}

// writeTxBodies stores words 1 and 2 of the transmit descriptors.
//
//go:noinline
func writeTxBodies(d unsafe.Pointer, post []core.TxPost, ctrl uint32) {
	for i := range post {
		*(*uint32)(unsafe.Add(d, des1)) = post[i].Own&^ownBit | post[i].Len | ctrl
		*(*uint32)(unsafe.Add(d, des2)) = uint32(post[i].Addr)
		d = unsafe.Add(d, descSize)
	}
}

// giveTx stores the OWN words of the descriptors that are the first of their
// frame, with first = OWN, or of those that are not, with 0.
//
//go:noinline
func giveTx(d unsafe.Pointer, post []core.TxPost, first uint32) {
	for i := range post {
		if post[i].Own&ownBit == first {
			*(*uint32)(unsafe.Add(d, des0)) = ownBit
		}
		d = unsafe.Add(d, descSize)
	}
}
