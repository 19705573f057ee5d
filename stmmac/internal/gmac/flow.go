package gmac

import (
	"github.com/gostmmac/gostmmac/stmmac/internal/core"
	"github.com/gostmmac/gostmmac/stmmac/internal/regs/gmacreg"
)

// flowStep is the unit of RFA and RFD, and what code 0 stands for: bytes below the
// end of the FIFO.
const flowStep = 1024

// flowThresholds are EFC, RFA and RFD of a receive FIFO of size bytes for frames of
// at most frame bytes with FCS, or 0 if pauses would save nothing.
func flowThresholds(size, frame int) gmacreg.Operation {
	stop, start := core.FlowThresholds(size, frame, flowStep, flowStep*(1+gmacreg.MaxThreshold))
	if stop == 0 {
		return 0
	}
	return gmacreg.EFC | gmacreg.RFAOf(uint32(stop)/flowStep-1) | gmacreg.RFDOf(uint32(start)/flowStep-1)
}

// setFlow turns pause frames on and off as the link has agreed on them. There
// are none in half duplex.
func (h *HW) setFlow(l core.Link) {
	var v gmacreg.Flow
	if l.Up && l.FullDuplex {
		if l.RxPause {
			v |= gmacreg.RFE
		}
		if l.TxPause {
			v |= gmacreg.TFE | gmacreg.PT.Of(core.PauseTime)
		}
	}
	gmacreg.FlowControl.Store(h.csr, v)
}
