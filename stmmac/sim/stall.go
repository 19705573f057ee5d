package sim

import (
	r4 "github.com/gostmmac/gostmmac/stmmac/internal/regs/gmac4reg"
)

// StallCure says what ends a stall of [Faults].RxStall and TxStall.
type StallCure int

// What ends a stall; what a later one names does not suffice for those before it.
const (
	// StallUntilStop: stopping the channel ends it; so does any reset.
	StallUntilStop StallCure = iota
	// StallUntilReset: stopping and starting does not help, a software reset or
	// one from outside does.
	StallUntilReset
	// StallForever: only SetFaults ends it.
	StallForever
)

// LinkLossMode is the form of a received frame that ends in the middle because the
// link went away.
type LinkLossMode int

// Kinds of LinkLossMode.
const (
	LinkLossNone   LinkLossMode = iota
	LinkLossError               // cut short in its last descriptor, with RE, CE and ES
	LinkLossNoLast              // FD and no LD; the next frame starts with FD
)

// applyStalls tells the channels of the switches that stall them.
func (m *Model) applyStalls() {
	for c := range m.rx {
		m.rx[c].stalled = m.faults.RxStall>>c&1 != 0
	}
	for c := range m.tx {
		m.tx[c].stalled = m.faults.TxStall>>c&1 != 0
	}
}

// cureStall ends the stall of the channel if what happens to it suffices.
func (r *ring) cureStall(by StallCure) {
	f := &r.m.faults
	if !r.stalled || by < f.StallSurvives {
		return
	}
	r.stalled = false
	if r.tx {
		f.TxStall &^= 1 << r.ch
	} else {
		f.RxStall &^= 1 << r.ch
	}
}

// hangs says that the channel does not come to rest when it is stopped.
func (r *ring) hangs() bool {
	if r.tx {
		return r.m.faults.TxStopHangs>>r.ch&1 != 0
	}
	return r.m.faults.RxStopHangs>>r.ch&1 != 0
}

// RaiseBusError stops a channel as a bus error does, with code, 0 to 7, in TEB or REB
// (databook: DMA_CHx_Status): what the channel was doing is given up. It does nothing
// for a channel that the model does not have.
func (m *Model) RaiseBusError(ch int, tx bool, code uint32) {
	m.mu.Lock()
	switch {
	case ch < 0:
	case tx && ch < len(m.tx):
		t := &m.tx[ch]
		t.txFrame = txFrame{}
		t.fatal(code)
	case !tx && ch < len(m.rx):
		c := &m.rx[ch]
		c.abandon()
		c.ctx = rxContext{}
		c.fatal(code)
	}
	m.unlock()
}

// cutOff gives a frame that the link lost the form that the fault says.
func (m *Model) cutOff(f *rxFrame, mode LinkLossMode) {
	f.cut = 1
	switch mode {
	case LinkLossError:
		// All the descriptors that the frame has room for, and an early end.
		f.cut = maxRing
		f.mode, f.cutErr = OverflowLastWithError, r4.RxRE|r4.RxCE|r4.RxES
	default:
		f.mode = OverflowNoLast
	}
	m.countMMC(r4.RxReceiveErrorPackets, 1)
}
