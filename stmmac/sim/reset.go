package sim

import (
	"time"

	r4 "github.com/gostmmac/gostmmac/stmmac/internal/regs/gmac4reg"
)

// resetTime is how long a software reset takes while all clocks run: a few dozen
// cycles of the slowest clock, 2.5 MHz at 10 Mbit/s.
const resetTime = 20 * time.Microsecond

// startReset is SWR. Everything stops at once; registers answer again when the clock
// domains of the PHY have taken part.
func (m *Model) startReset() {
	m.cutMDIO()
	m.resetting.Store(true)
	m.applyReset()
	if !m.clockGated() {
		m.scheduleReset()
	}
}

func (m *Model) scheduleReset() {
	if m.stopRst != nil || m.closed {
		return
	}
	m.stopRst = m.clock.AfterFunc(resetTime, func() {
		m.mu.Lock()
		m.stopRst = nil
		if !m.clockGated() {
			m.resetting.Store(false)
		}
		m.unlock()
	})
}

// applyReset gives all registers their reset values and empties the engines.
func (m *Model) applyReset() {
	for i := range m.tx {
		m.tx[i].reset()
	}
	for i := range m.rx {
		m.rx[i].reset()
	}
	for i := range m.rxq {
		m.rxq[i].drop(m)
		m.rxq[i].above = false
	}
	m.flow, m.sched = flowState{}, scheduler{}
	m.mac.arp = arpState{}
	m.lpi = lpiState{}
	m.ptp = ptpState{at: m.clock.Now()}
	if m.stopTime != nil {
		m.stopTime()
		m.stopTime, m.timerAt = nil, 0
	}
	m.irqMu.Lock()
	for i := range m.regs.word {
		m.regs.set(uint32(i)*4, m.regs.desc[i].reset)
	}
	m.irqMu.Unlock()
	m.dropLines()
	m.biteReset()
	m.mdioDone = 0
	m.gen.resetQueues()
	m.mac.entries = m.mac.entries[:0]
	for i := range perfectFilters {
		m.mac.slots[i] = perfect{}
	}
	m.latchAddress(0)
	m.gen.derive()
}

// biteReset applies the reset values that are a fault.
func (m *Model) biteReset() {
	f := m.faults.Reset
	if f.GarbageHash {
		for i := range m.cfg.HashBins / 32 {
			m.regs.set(m.at.hash[i], 0xdeadbeef)
		}
	}
	if f.BroadcastOff {
		m.regs.set(m.at.filter, uint32(r4.DBF))
	}
	high, _ := m.at.address(0)
	d := &m.regs.desc[high/4]
	d.mask &^= uint32(r4.AE)
	if f.AddressOff {
		d.mask |= uint32(r4.AE)
		m.regs.set(high, m.regs.get(high)&^uint32(r4.AE))
	}
}

// Reset resets the model as the host's bus does: at once, whatever the clocks do.
func (m *Model) Reset() {
	m.mu.Lock()
	if m.stopRst != nil {
		m.stopRst()
		m.stopRst = nil
	}
	m.applyReset()
	m.resetting.Store(false)
	m.unlock()
}
