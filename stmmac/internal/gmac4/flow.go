package gmac4

import (
	"github.com/gostmmac/gostmmac/stmmac/internal/core"
	"github.com/gostmmac/gostmmac/stmmac/internal/regs/gmac4reg"
)

const (
	// flowStep is the unit of RFA and RFD, and flowFirst what code 0 stands for:
	// bytes below the end of the queue.
	flowStep  = 512
	flowFirst = 1024
)

// flowThresholds are EHFC, RFA and RFD of a receive queue of size bytes for
// frames of at most frame bytes with FCS, or 0 if the queue is too small for
// pauses to save anything.
func flowThresholds(size, frame int) gmac4reg.MTLRxQMode {
	last := flowFirst + flowStep*int(gmac4reg.RFD.Max()-1) // the last code is reserved
	stop, start := core.FlowThresholds(size, frame, flowStep, last)
	if stop == 0 {
		return 0
	}
	rfa, rfd := uint32(stop-flowFirst)/flowStep, uint32(start-flowFirst)/flowStep
	return gmac4reg.EHFC | gmac4reg.RFA.Of(rfa) | gmac4reg.RFD.Of(rfd)
}

// setFlow turns pause frames on and off as the link has agreed on them. There
// are none in half duplex.
func (h *HW) setFlow(l core.Link) {
	on := l.Up && l.FullDuplex
	var rx gmac4reg.RxFlow
	if on && l.RxPause {
		rx = gmac4reg.RFE
	}
	var tx gmac4reg.TxFlow
	if on && l.TxPause {
		tx = gmac4reg.TFE | gmac4reg.PT.Of(core.PauseTime)
	}
	gmac4reg.MACRxFlow.Store(h.csr, rx)
	gmac4reg.MACQxTxFlow.Store(h.csr, tx)
}
