package gmac4

import (
	"github.com/gostmmac/gostmmac/stmmac/internal/core"
)

// busBytes is the widest bus of the IP: no register tells which one this is.
const busBytes = 16

// checksRx says whether the device looks at the checksums of received frames.
func (h *HW) checksRx() bool { return h.cfg.RxChecksum && h.feat.RxChecksum }

// TxOffloads implements core.Hardware. The checksum engine needs the whole frame
// in the queue while the DMA fetches a burst of the next: databook, Transmit
// Checksum Offload Engine.
func (h *HW) TxOffloads() core.TxLimits {
	l := core.TxLimits{Tag: h.feat.AddressInsert && h.cfg.VLANInsert}
	l.InnerTag = l.Tag && h.cfg.VLANDouble // EDVLP
	if h.cfg.TxChecksum && h.feat.TxChecksum {
		l.CsumTags = 1
		if h.cfg.VLANDouble {
			l.CsumTags = 2 // EDVLP
		}
		// An engine for less than the shortest frame is none.
		if n := h.txShare() - (8*h.txPBL()+5)*busBytes; n >= core.MinFrameLen {
			l.MaxCsum = n
		}
	}
	return l
}

// txPBL is the burst length for reading frames, in units of eight beats: with
// nothing configured a quarter of the queue at most, so that checksums can be
// inserted into the rest.
func (h *HW) txPBL() int {
	if n := h.cfg.AXI.PBL; n != 0 {
		return n
	}
	pbl := 32
	for pbl > 1 && 8*pbl*busBytes > h.txShare()/4 {
		pbl /= 2
	}
	return pbl
}
