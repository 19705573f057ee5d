package sim

import (
	"encoding/binary"

	r4 "github.com/gostmmac/gostmmac/stmmac/internal/regs/gmac4reg"
)

// Types that have a queue of their own.
const (
	typePTP  = 0x88f7 // IEEE 1588, annex F
	typeLLDP = 0x88cc // IEEE 802.1AB; carries DCBX
	typeAVTP = 0x22f0 // IEEE 1722
)

// frameType is what the routing wants to know of a frame.
type frameType struct {
	etype  uint32 // behind the tag
	avCtl  bool   // AVTP control: the cd bit is set
	tagged bool
	pcp    uint32
}

// typeOf looks at the type of a frame behind its tag.
func typeOf(data []byte, tagged bool, tag uint32) (t frameType) {
	at := headerLen - 2
	if tagged {
		at += vlanLen
	}
	t = frameType{tagged: tagged, pcp: tag >> 13 & 7}
	if len(data) < at+2 {
		return t
	}
	t.etype = uint32(binary.BigEndian.Uint16(data[at:]))
	t.avCtl = t.etype == typeAVTP && len(data) > at+2 && data[at+2]&0x80 != 0
	return t
}

// queue is the receive queue of a frame (databook: MAC_RxQ_Ctrl1 to 4). Frames that
// failed a filter and are received all the same come first, then those with a type
// of their own, then group addresses, then the VLAN priority, then untagged frames.
func (s *macState) queue(data []byte, f *rxMeta, tag uint32) uint8 {
	if !s.routed {
		return 0
	}
	if s.filter&(r4.RA|r4.PR) != 0 && s.failQ != 0 {
		failed := f.failed != 0
		vlan := f.tagged && (failed || s.filter&r4.VTFE != 0 && f.d2&r4.VF == 0)
		switch {
		case vlan && s.failQ&r4.VFFQE != 0:
			return uint8(r4.VFFQ.Get(s.failQ))
		case failed && f.class == classUnicast && s.failQ&r4.UFFQE != 0:
			return uint8(r4.UFFQ.Get(s.failQ))
		case failed && f.class != classUnicast && s.failQ&r4.MFFQE != 0:
			return uint8(r4.MFFQ.Get(s.failQ))
		}
	}
	t := typeOf(data, f.tagged, tag)
	switch {
	case t.avCtl && (!t.tagged || s.route&r4.TACPQE != 0):
		return uint8(r4.AVCPQ.Get(s.route))
	case t.etype == typePTP && (!t.tagged || r4.TPQC.Get(s.route) == 1):
		return uint8(r4.PTPQ.Get(s.route))
	case (t.etype == typeLLDP || t.etype == typeControl) && !t.tagged:
		return uint8(r4.DCBCPQ.Get(s.route))
	case f.class != classUnicast && s.route&r4.MCBCQEN != 0:
		return uint8(r4.MCBCQ.Get(s.route))
	case t.tagged:
		return s.byPCP[t.pcp]
	}
	return uint8(r4.UPQ.Get(s.route))
}
