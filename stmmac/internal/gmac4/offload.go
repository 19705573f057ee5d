package gmac4

import (
	"github.com/gostmmac/gostmmac/stmmac/internal/core"
)

// checksRx says whether the device looks at the checksums of received frames.
func (h *HW) checksRx() bool { return h.cfg.RxChecksum && h.feat.RxChecksum }

// TxOffloads implements core.Hardware.
func (h *HW) TxOffloads() core.TxLimits {
	l := core.TxLimits{Tag: h.feat.AddressInsert && h.cfg.VLANInsert}
	l.InnerTag = l.Tag && h.cfg.VLANDouble // EDVLP
	if h.cfg.TxChecksum && h.feat.TxChecksum {
		l.CsumTags = 1
		if h.cfg.VLANDouble {
			l.CsumTags = 2 // EDVLP
		}
		l.MaxCsum = core.ChecksumRoom(h.txShare(), h.txPBL())
	}
	return l
}

// txPBL is the burst length for reading frames, in units of eight beats.
func (h *HW) txPBL() int { return core.TxBurst(h.cfg.AXI.PBL, h.txShare(), 32) }
