package gmac4

import (
	"unsafe"

	"github.com/gostmmac/gostmmac/barrier"
	"github.com/gostmmac/gostmmac/pagepool"
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

// format says how to read DES3.
var format = core.Format{
	Stride: descSize,

	RxMask:  uint32(gmac4reg.RxFD | gmac4reg.RxLD | gmac4reg.RxCTXT | gmac4reg.RxES),
	RxWhole: uint32(gmac4reg.RxFD | gmac4reg.RxLD),
	RxLast:  uint32(gmac4reg.RxLD),
	RxLen:   uint32(gmac4reg.RxPL),

	TxFirst: uint32(gmac4reg.TxFD), TxLast: uint32(gmac4reg.TxLD), TxOwn: uint32(gmac4reg.TxOWN),
	TxFrameLen: uint32(gmac4reg.TxFL),
	TxDoneLast: uint32(gmac4reg.TxLD), TxDoneErr: uint32(gmac4reg.TxES),
}

// ring is a descriptor ring in memory.
type ring struct {
	slots unsafe.Pointer // outside the Go heap
	n     uint32
	core  core.Ring
}

// Ring implements core.RxDescs and core.TxDescs.
func (r *ring) Ring() core.Ring { return r.core }

func (r *ring) at(slot uint32) unsafe.Pointer {
	return unsafe.Add(r.slots, uintptr(slot)*descSize)
}

// rxDescs is a receive ring. It implements core.RxDescs.
type rxDescs struct{ ring }

var _ core.RxDescs = (*rxDescs)(nil)

// Status implements core.RxDescs.
func (r *rxDescs) Status(own uint32) core.RxFlags {
	d3 := gmac4reg.RDES3(own)
	if d3&gmac4reg.RxCTXT != 0 {
		return core.RxContext
	}
	var f core.RxFlags
	for _, e := range [...]struct {
		bit  gmac4reg.RDES3
		flag core.RxFlags
	}{
		{gmac4reg.RxFD, core.RxFirst}, {gmac4reg.RxLD, core.RxLast},
		{gmac4reg.RxCE, core.RxErrCRC}, {gmac4reg.RxOE, core.RxErrOverflow}, {gmac4reg.RxRWT, core.RxErrWatchdog},
		{gmac4reg.RxGP, core.RxErrGiant}, {gmac4reg.RxDE, core.RxErrDribble}, {gmac4reg.RxRE, core.RxErrReceive},
	} {
		if d3&e.bit != 0 {
			f |= e.flag
		}
	}
	// The causes count only where the summary says so.
	if d3&gmac4reg.RxES == 0 {
		f &^= core.RxErrors
	} else if f&core.RxErrors == 0 {
		f |= core.RxErrOther
	}
	return f
}

// Post implements core.RxDescs.
func (r *rxDescs) Post(first uint32, a, b []pagepool.Handle, v *pagepool.View, start int) {
	at := r.at(first)
	writeRxBodies(at, a, v.First(), v.Bus(), start)
	if len(b) > 0 {
		writeRxBodies(r.slots, b, v.First(), v.Bus(), start)
	}
	// Orders the loads that the buffers' last users made of their bytes, and
	// the stores of the bodies above, before the stores of the OWN words: the
	// device may overwrite a buffer as soon as it sees OWN.
	barrier.DMARelease()
	giveRx(at, len(a))
	if len(b) > 0 {
		giveRx(r.slots, len(b))
	}
}

// The functions below are leaves that do nothing but store to descriptors. They
// are not inlined, so that the compiler cannot merge or move their stores, and
// a test disassembles them.

// writeRxBodies stores all words but the last of a receive descriptor for each
// buffer: the address of offset start of its chunk. The device ignores the
// second buffer, whose words are 2 and the lower part of 3, without BUF2V.
//
//go:noinline
func writeRxBodies(d unsafe.Pointer, hs []pagepool.Handle, first unsafe.Pointer, bus pagepool.Bus, start int) {
	for _, h := range hs {
		b := pagepool.At(first, h)
		*(*uint64)(unsafe.Add(d, des0)) = bus.Chunk(b) + uint64(start)
		*(*uint32)(unsafe.Add(d, des2)) = 0
		d = unsafe.Add(d, descSize)
	}
}

// giveRx stores the OWN words of n receive descriptors.
//
//go:noinline
func giveRx(d unsafe.Pointer, n int) {
	for ; n > 0; n-- {
		*(*uint32)(unsafe.Add(d, des3)) = uint32(gmac4reg.RxOWN | gmac4reg.RxIOC | gmac4reg.RxBUF1V)
		d = unsafe.Add(d, descSize)
	}
}
