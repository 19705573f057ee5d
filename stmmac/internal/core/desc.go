package core

import (
	"unsafe"

	"github.com/gostmmac/gostmmac/barrier"
	"github.com/gostmmac/gostmmac/mmio"
)

// Format says where a generation keeps what in the word of a descriptor that
// has the OWN bit, which is bit 31 in all of them, and what else the rings need
// to know of descriptors. The rings read that word once and decode it with this
// table; what the table does not cover (errors, context descriptors) they ask the
// generation for.
type Format struct {
	Stride uint32 // bytes from one descriptor to the next

	// A received frame is whole and good in one descriptor when the bits of
	// RxMask are RxWhole. Its length, with FCS, is in the bits of RxLen of the
	// half of the word that begins at RxLenAt bytes: 0 or 2.
	RxMask, RxWhole uint32
	RxLast          uint32 // set in the last descriptor of a frame
	// RxTogether: the descriptors of a frame are taken off the ring when its last
	// one says so, not before. There are devices that write the last one twice, at
	// first without RxLast: given back in between it would be overwritten.
	RxTogether bool
	// RxPassed, unless it is 0, is what a device leaves in the word with OWN of a
	// descriptor that it misses in the middle of a frame, when it then goes on behind
	// it as if it had been given.
	RxPassed uint32
	RxLen    uint16
	RxLenAt  int
	// The byte at RxCsumAt from the word that has OWN says what the device found
	// of the checksums of such a frame; RxCsum has the flags that this means.
	RxCsumAt int
	RxCsum   *[256]uint8

	// A transmit descriptor to post has TxOwn, TxFirst and TxLast if it starts
	// or ends a frame, and with TxFirst the length of the frame in the bits of
	// TxFrameLen, from bit 0; these are 0 where it has no place. But for TxOwn they
	// need not be bits of the word with OWN: see TxPost.
	TxOwn, TxFirst, TxLast uint32
	TxFrameLen             uint32
	// With TxFirst, TxCsum asks for all checksums.
	TxCsum uint32
	// A finished descriptor ends a frame if TxDoneLast is set, and its frame was
	// sent without error if TxDoneErr is not. Where the device does not tell what
	// ends a frame TxDoneLast is 0.
	TxDoneLast, TxDoneErr uint32
}

// Ring is where a generation keeps a descriptor ring and how it tells the device
// of new descriptors.
type Ring struct {
	Format *Format
	Words  unsafe.Pointer // the OWN word of slot 0
	// The doorbell gets Base + slot·Step for the slot behind the last that is
	// posted: the address of that slot where it is a tail, and with Step 0 always
	// the same where it only makes the device look at the OWN words again.
	Bell       mmio.Doorbell
	Base, Step uint32
	// Spare is how many slots the device never owns, 0 or 1. A tail names one.
	Spare uint32
}

// kick rings the doorbell.
func (r *Ring) kick(tail uint32) { r.Bell.Ring(r.Base + tail*r.Step) }

// ownBit is OWN.
const ownBit = 1 << 31

// own loads the OWN word of a slot.
func (r *Ring) own(slot uint32) uint32 {
	return barrier.LoadOwn((*uint32)(r.word(slot)))
}

// word is where the OWN word of a slot is.
func (r *Ring) word(slot uint32) unsafe.Pointer {
	return unsafe.Add(r.Words, uintptr(slot)*uintptr(r.Format.Stride))
}

// The functions below are leaves that do nothing but load OWN words. They are
// not inlined, so that the compiler cannot merge or move their accesses, and a
// test disassembles them.

// loadDone loads the OWN words of up to n descriptors, from the one at p on, up
// to the first that the device owns, and returns how many came before it.
//
//go:noinline
func loadDone(p unsafe.Pointer, stride uintptr, n uint32) uint32 {
	for i := range n {
		if *(*uint32)(p)&ownBit != 0 {
			return i
		}
		p = unsafe.Add(p, stride)
	}
	return n
}

// loadFrames is loadDone for frames of several descriptors: it stops behind the
// frames-th descriptor that ends one, that is that has the bit last.
//
//go:noinline
func loadFrames(p unsafe.Pointer, stride uintptr, n, last uint32, frames int) uint32 {
	for i := range n {
		own := *(*uint32)(p)
		if own&ownBit != 0 || frames == 0 {
			return i
		}
		if own&last != 0 {
			frames--
		}
		p = unsafe.Add(p, stride)
	}
	return n
}

// loadSent loads the OWN words of up to n descriptors, from the one at p on, up
// to the first that the device owns. It returns how many came before it and
// the bits that all and that any of them have.
//
//go:noinline
func loadSent(p unsafe.Pointer, stride uintptr, n uint32) (k, all, any uint32) {
	all = ^uint32(0)
	for ; k < n; k++ {
		w := *(*uint32)(p)
		if w&ownBit != 0 {
			break
		}
		all &= w
		any |= w
		p = unsafe.Add(p, stride)
	}
	return k, all, any
}
