package gmac4

import (
	"github.com/gostmmac/gostmmac/stmmac/internal/core"
	"github.com/gostmmac/gostmmac/stmmac/internal/regs/gmac4reg"
)

const (
	// flowLeast is the smallest receive queue that can ask for pauses: a smaller
	// one has no thresholds in the databook.
	flowLeast = 4096
	// flowStep is the unit of RFA and RFD, and flowFirst what code 0 stands for:
	// bytes below the end of the queue.
	flowStep  = 512
	flowFirst = 1024
	// flowReaction is what a partner may send between the end of a pause frame
	// and its effect, in bytes: two slots of 512 bit times at 1 Gbit/s (IEEE
	// 802.3 annex 31B), and what is on the cable and in the PHYs.
	flowReaction = 512
	// pauseTime is the time that a pause frame asks for, in slots of 512 bit
	// times. A frame with time 0 ends it when the queue has room again.
	pauseTime = 0xffff
)

// flowThresholds are EHFC, RFA and RFD of a receive queue of size bytes for
// frames of at most frame bytes with FCS, or 0 if the queue is too small for
// pauses to save anything.
//
// A pause is asked for while there is still room for what comes before the
// partner stops: the frame that it is sending, what it sends until it has seen
// the request, and, since the request waits for a frame that this MAC is
// sending, one more. A queue that would then pause with less than two frames in
// it keeps room for the first only. The partner goes on when another frame has
// left, or half of what was there.
func flowThresholds(size, frame int) gmac4reg.MTLRxQMode {
	if size < flowLeast {
		return 0
	}
	// The partner does not know of a small MTU here.
	frame = max(frame, core.MaxFrameLen(1500))
	one := roundUp(frame, flowStep)
	stop := max(one, min(roundUp(2*frame+flowReaction, flowStep), (size-2*frame)/flowStep*flowStep))
	if size-stop < 2*flowStep {
		return 0
	}
	start := stop + max(flowStep, min(one, (size-stop)/2/flowStep*flowStep))
	rfa, rfd := uint32(stop-flowFirst)/flowStep, uint32(start-flowFirst)/flowStep
	if rfd >= gmac4reg.RFD.Max() { // the last code is reserved
		return 0
	}
	return gmac4reg.EHFC | gmac4reg.RFA.Of(rfa) | gmac4reg.RFD.Of(rfd)
}

func roundUp(n, to int) int { return (n + to - 1) / to * to }

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
		tx = gmac4reg.TFE | gmac4reg.PT.Of(pauseTime)
	}
	gmac4reg.MACRxFlow.Store(h.csr, rx)
	gmac4reg.MACQxTxFlow.Store(h.csr, tx)
}
