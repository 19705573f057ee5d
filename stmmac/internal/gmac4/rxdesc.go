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
	des1     = 4
	des2     = 8
	des3     = 12
)

// format says how to read DES3, and what else of a descriptor the configuration
// makes valid.
func (h *HW) format() *core.Format {
	f := &core.Format{
		Stride: descSize,

		RxMask:   uint32(gmac4reg.RxFD | gmac4reg.RxLD | gmac4reg.RxCTXT | gmac4reg.RxES),
		RxWhole:  uint32(gmac4reg.RxFD | gmac4reg.RxLD),
		RxLast:   uint32(gmac4reg.RxLD),
		RxLen:    uint16(gmac4reg.RxPL),
		RxCsumAt: des1 - des3,
		RxCsum:   new([256]uint8),

		TxFirst: uint32(gmac4reg.TxFD), TxLast: uint32(gmac4reg.TxLD), TxOwn: uint32(gmac4reg.TxOWN),
		TxFrameLen: uint32(gmac4reg.TxFL), TxCsum: uint32(gmac4reg.CIC.Of(cicAll)),
		TxDoneLast: uint32(gmac4reg.TxLD), TxDoneErr: uint32(gmac4reg.TxES),
	}
	if h.cfg.VLANStrip {
		f.RxMask |= uint32(gmac4reg.RxRS0V)
	}
	if h.checksRx() {
		// RDES1 counts only where RS1V says so.
		f.RxMask |= uint32(gmac4reg.RxRS1V)
		f.RxWhole |= uint32(gmac4reg.RxRS1V)
		for i := range f.RxCsum {
			f.RxCsum[i] = uint8(verdict(gmac4reg.RDES1(i)))
		}
	}
	return f
}

// cicAll is the value of CIC that asks for the checksums of the IP header and
// the payload, with the pseudo header.
const cicAll = 3

// Values of RxPT: the payloads that the engine knows.
const (
	ptUDP  = 1
	ptICMP = 3
)

// verdict is what RDES1 says of the checksums: an engine that was bypassed has
// found nothing, whatever else it reports.
func verdict(d1 gmac4reg.RDES1) pagepool.Flags {
	pt := gmac4reg.RxPT.Get(d1)
	switch {
	case d1&gmac4reg.IPCB != 0:
		return 0
	case d1&(gmac4reg.IPHE|gmac4reg.IPCE) != 0:
		return pagepool.RxCsumBad
	case d1&(gmac4reg.IPV4|gmac4reg.IPV6) != 0 && pt >= ptUDP && pt <= ptICMP:
		return pagepool.RxCsumGood
	}
	return 0
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
type rxDescs struct {
	ring
	interrupts int
	outer      bool // the tag of a frame is taken off
	inner      bool // and the second of two
}

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

// Meta implements core.RxDescs.
func (r *rxDescs) Meta(slot, own uint32) (f pagepool.Flags, vlan, inner uint16) {
	d, d3 := r.at(slot), gmac4reg.RDES3(own)
	if d3&gmac4reg.RxRS1V != 0 {
		f = pagepool.Flags(r.core.Format.RxCsum[*(*uint8)(unsafe.Add(d, des1))])
	}
	if !r.outer || d3&gmac4reg.RxRS0V == 0 {
		return f, 0, 0
	}
	tags := *(*uint32)(unsafe.Add(d, des0))
	vlan = uint16(tags)
	f |= pagepool.VLANTag
	if r.inner && gmac4reg.RxLT.Get(d3) == ltTwoTags {
		f |= pagepool.InnerVLANTag
		inner = uint16(tags >> 16)
	}
	return f, vlan, inner
}

// ltTwoTags is the value of RxLT for a frame with two tags.
const ltTwoTags = 5

// SetInterrupts implements core.RxDescs.
func (r *rxDescs) SetInterrupts(n int) { r.interrupts = n }

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
	if r.interrupts == 1 {
		giveRx(at, len(a))
		giveRx(r.slots, len(b))
		return
	}
	giveRxSome(at, len(a), first, uint32(r.interrupts))
	giveRxSome(r.slots, len(b), 0, uint32(r.interrupts))
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

// giveRx stores the OWN words of n receive descriptors that interrupt when they
// are filled.
//
//go:noinline
func giveRx(d unsafe.Pointer, n int) {
	for ; n > 0; n-- {
		*(*uint32)(unsafe.Add(d, des3)) = uint32(gmac4reg.RxOWN | gmac4reg.RxIOC | gmac4reg.RxBUF1V)
		d = unsafe.Add(d, descSize)
	}
}

// giveRxSome stores the OWN words of n receive descriptors from a slot on, of
// which those of each every-th slot interrupt when they are filled, or none if
// every is 0.
//
//go:noinline
func giveRxSome(d unsafe.Pointer, n int, slot, every uint32) {
	for ; n > 0; n-- {
		own := uint32(gmac4reg.RxOWN | gmac4reg.RxBUF1V)
		if every != 0 && slot%every == 0 {
			own |= uint32(gmac4reg.RxIOC)
		}
		*(*uint32)(unsafe.Add(d, des3)) = own
		d = unsafe.Add(d, descSize)
		slot++
	}
}
