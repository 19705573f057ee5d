package gmac

import (
	"unsafe"

	"github.com/gostmmac/gostmmac/mmio"
	"github.com/gostmmac/gostmmac/pagepool"
	"github.com/gostmmac/gostmmac/stmmac/internal/core"
	"github.com/gostmmac/gostmmac/stmmac/internal/regs/gmacreg"
)

// Offsets of the words of a descriptor. Word 0 has OWN and the status, word 1 the
// control bits and sizes, word 2 the address of the buffer, and word 3 that of the
// next descriptor of a chain; of a ring it is that of a second buffer, of size 0.
const (
	descSize = gmacreg.DescSize
	des0     = 0
	des1     = 4
	des2     = 8
	des3     = 12
)

// ownBit is OWN, in both directions.
const ownBit = uint32(gmacreg.RxOWN)

// demand is what is written to a poll demand register: anything is.
const demand = 1

// ring is a list of descriptors in memory, a ring or a chain.
type ring struct {
	slots   unsafe.Pointer // outside the Go heap
	bus     uint32         // where the device sees the first one
	n       uint32
	ctrl    uint32 // bits of word 1 of every descriptor
	end     uint32 // and of the last one in addition
	chained bool   // each names the next one
	core    core.Ring
}

// Ring implements core.RxDescs and core.TxDescs.
func (r *ring) Ring() core.Ring { return r.core }

func (r *ring) at(slot uint32) unsafe.Pointer {
	return unsafe.Add(r.slots, uintptr(slot)*descSize)
}

// placed are the bits of word 1 that a slot has for its place.
func (r *ring) placed(slot uint32) uint32 {
	if slot == r.n-1 {
		return r.ctrl | r.end
	}
	return r.ctrl
}

// ring describes a list of which the device is told by the poll demand register
// bell. The doorbell contains the barrier that orders the stores of the OWN words
// before the demand. OWN bits of an earlier use of the memory would be taken for new
// ones, as nothing but OWN tells where the list ends: all words are set here. chained
// and end are the bits of word 1 in a chain and at the end of a ring.
func (h *HW) ring(bell mmio.Reg[uint32], m core.RingMemory, spare, chained, end uint32) ring {
	slots := unsafe.Pointer(unsafe.SliceData(m.Mem.Bytes()))
	r := ring{slots: slots, bus: uint32(m.Mem.Addr()), n: uint32(m.N), end: end, chained: h.cfg.Chain, core: core.Ring{
		Format: h.format(), Words: slots,
		Bell: mmio.NewDoorbell(h.csr, uint32(bell)), Base: demand,
		Spare: spare,
	}}
	if h.cfg.Chain {
		r.ctrl, r.end = chained, 0
	}
	for i := range r.n {
		*(*[4]uint32)(r.at(i)) = [4]uint32{0, r.placed(i)}
	}
	r.link(0, r.n)
	return r
}

// link stores where the next descriptor lies in n of a chain that do not wrap.
func (r *ring) link(first, n uint32) {
	if !r.chained {
		return
	}
	writeLinks(r.at(first), n, r.bus+(first+1)*descSize)
	if first+n == r.n {
		writeLinks(r.at(r.n-1), 1, r.bus)
	}
}

// writeLinks stores word 3 of n descriptors: next in the first, and what lies behind
// that in those that follow. It is a leaf like those in rxdesc.go.
//
//go:noinline
func writeLinks(d unsafe.Pointer, n, next uint32) {
	for ; n > 0; n-- {
		*(*uint32)(unsafe.Add(d, des3)) = next
		next += descSize
		d = unsafe.Add(d, descSize)
	}
}

// RxDescs implements core.Hardware. One descriptor is never the device's: there is
// one (QEMU's) that goes on behind the descriptor that it misses in the middle of a
// frame, and marks that; the mark is not to stand on a frame that waits to be taken.
func (h *HW) RxDescs(_ int, m core.RingMemory, size int) core.RxDescs {
	return &rxDescs{
		ring: h.ring(gmacreg.ReceivePollDemand, m, 1, uint32(gmacreg.RxRCH), uint32(gmacreg.RxRER)),
		size: uint32(gmacreg.RxRBS1.Of(uint32(size))), interrupts: 1, hw: h,
	}
}

// TxDescs implements core.Hardware.
func (h *HW) TxDescs(_ int, m core.RingMemory) core.TxDescs {
	return &txDescs{h.ring(gmacreg.TransmitPollDemand, m, 0, uint32(gmacreg.TxTCH), uint32(gmacreg.TxTER))}
}

// format says how to read word 0, and what of a descriptor to post stands where.
func (h *HW) format() *core.Format {
	f := &core.Format{
		Stride: descSize,

		RxMask:  uint32(gmacreg.RxFS | gmacreg.RxLS | gmacreg.RxES),
		RxWhole: uint32(gmacreg.RxFS | gmacreg.RxLS),
		RxLast:  uint32(gmacreg.RxLS), RxTogether: true, RxPassed: uint32(gmacreg.RxLS),
		RxLen: uint16(gmacreg.RxFL.Max()), RxLenAt: 2,
		RxCsum: &h.verdicts,

		// All but TxOwn are bits of word 1, where the length stands too.
		TxOwn: uint32(gmacreg.TxOWN), TxFirst: uint32(gmacreg.TxFS), TxLast: uint32(gmacreg.TxLS),
		TxCsum:    uint32(gmacreg.TxCIC.Of(gmacreg.CICFull)),
		TxDoneErr: uint32(gmacreg.TxES),
	}
	h.setVerdicts()
	return f
}

// setVerdicts fills the table of verdicts in: without the engine the status says
// nothing of checksums.
func (h *HW) setVerdicts() {
	h.verdicts = [256]uint8{}
	if h.checksRx() {
		for i := range h.verdicts {
			h.verdicts[i] = uint8(verdict(gmacreg.RDES0(i)))
		}
	}
}

// verdict is what the low byte of word 0 says of the checksums (databook: Receive
// Descriptor 0, table of bits 5, 7 and 0 with the engine of type 2). Of frames that
// are no IP, or have a payload that the engine does not know, it says nothing.
func verdict(d gmacreg.RDES0) pagepool.Flags {
	if d&gmacreg.RxFT == 0 {
		return 0
	}
	switch d & (gmacreg.RxIPE | gmacreg.RxPCE) {
	case 0:
		return pagepool.RxCsumGood
	default:
		return pagepool.RxCsumBad
	}
}
