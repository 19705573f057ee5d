package gmac

import (
	"unsafe"

	"github.com/gostmmac/gostmmac/barrier"
	"github.com/gostmmac/gostmmac/pagepool"
	"github.com/gostmmac/gostmmac/stmmac/internal/core"
	"github.com/gostmmac/gostmmac/stmmac/internal/regs/gmacreg"
)

// rxDescs is a receive list. It implements core.RxDescs.
type rxDescs struct {
	ring
	size       uint32 // RBS1
	interrupts int
	hw         *HW
}

var _ core.RxDescs = (*rxDescs)(nil)

// Status implements core.RxDescs.
func (r *rxDescs) Status(own uint32) core.RxFlags {
	d := gmacreg.RDES0(own)
	var f core.RxFlags
	if d&gmacreg.RxFS != 0 {
		f |= core.RxFirst
	}
	if d&gmacreg.RxLS != 0 {
		f |= core.RxLast
	}
	// The causes count only where the summary says so.
	if d&gmacreg.RxES == 0 {
		return f
	}
	was := f
	for _, e := range [...]struct {
		bit  gmacreg.RDES0
		flag core.RxFlags
	}{
		{gmacreg.RxCE, core.RxErrCRC}, {gmacreg.RxOE, core.RxErrOverflow}, {gmacreg.RxRWT, core.RxErrWatchdog},
		{gmacreg.RxDB, core.RxErrDribble}, {gmacreg.RxRE, core.RxErrReceive}, {gmacreg.RxDE, core.RxErrCut},
	} {
		if d&e.bit != 0 {
			f |= e.flag
		}
	}
	switch {
	case f != was:
	case r.hw.checksRx() && d&gmacreg.RxLC == 0 && verdict(d) == pagepool.RxCsumBad:
		// The summary covers the checksums too, against the databook: the frame is
		// whole, and Meta says what it is worth.
	case !r.hw.checksRx() && d&gmacreg.RxIPE != 0:
		f |= core.RxErrGiant // the bit has this meaning without the engine
	default:
		f |= core.RxErrOther
	}
	return f
}

// Meta implements core.RxDescs.
func (r *rxDescs) Meta(_, own uint32) (f pagepool.Flags, vlan, inner uint16) {
	return pagepool.Flags(r.core.Format.RxCsum[uint8(own)]), 0, 0
}

// SetInterrupts implements core.RxDescs.
func (r *rxDescs) SetInterrupts(n int) { r.interrupts = n }

// Post implements core.RxDescs.
func (r *rxDescs) Post(first uint32, a, b []pagepool.Handle, v *pagepool.View, start int) {
	at := r.at(first)
	r.write(first, a, v, start)
	if len(b) > 0 {
		r.write(0, b, v, start)
	}
	// Orders the loads that the buffers' last users made of their bytes, and
	// the stores of the bodies above, before the stores of the OWN words: the
	// device may overwrite a buffer as soon as it sees OWN.
	barrier.DMARelease()
	give(at, len(a))
	give(r.slots, len(b))
}

// write stores the bodies of descriptors that do not wrap, of which those of each
// interrupts-th slot interrupt when they are filled, or none if that is 0.
func (r *rxDescs) write(first uint32, hs []pagepool.Handle, v *pagepool.View, start int) {
	ctrl, every := r.ctrl|r.size, uint32(r.interrupts)
	quiet := uint32(gmacreg.RxDIC)
	if every == 1 {
		quiet = 0
	}
	writeRxBodies(r.at(first), hs, v.First(), v.Bus(), start, ctrl|quiet)
	// A device with timestamps writes them over both words of addresses, so that the
	// link of a chain is gone too.
	r.link(first, uint32(len(hs)))
	behind := first + uint32(len(hs))
	if every > 1 {
		for slot := (first + every - 1) / every * every; slot < behind; slot += every {
			writeControl(r.at(slot), ctrl)
		}
	}
	if last := behind - 1; last == r.n-1 && r.end != 0 {
		if every != 0 && last%every == 0 {
			quiet = 0
		}
		writeControl(r.at(last), ctrl|quiet|r.end)
	}
}

// The functions below are leaves that do nothing but store to descriptors. They
// are not inlined, so that the compiler cannot merge or move their stores, and
// a test disassembles them.

// writeRxBodies stores words 1 and 2 of a receive descriptor for each buffer: ctrl,
// and the address of offset start of its chunk.
//
//go:noinline
func writeRxBodies(d unsafe.Pointer, hs []pagepool.Handle, first unsafe.Pointer, bus pagepool.Bus, start int, ctrl uint32) {
	for _, h := range hs {
		b := pagepool.At(first, h)
		*(*uint32)(unsafe.Add(d, des1)) = ctrl
		*(*uint32)(unsafe.Add(d, des2)) = uint32(bus.Chunk(b) + uint64(start))
		d = unsafe.Add(d, descSize)
	}
}

// writeControl stores word 1 of a descriptor.
//
//go:noinline
func writeControl(d unsafe.Pointer, word uint32) {
	*(*uint32)(unsafe.Add(d, des1)) = word
}

// give stores the OWN words of n descriptors, in their order.
//
//go:noinline
func give(d unsafe.Pointer, n int) {
	for ; n > 0; n-- {
		*(*uint32)(unsafe.Add(d, des0)) = ownBit
		d = unsafe.Add(d, descSize)
	}
}
