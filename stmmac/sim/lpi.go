package sim

import (
	"time"

	r4 "github.com/gostmmac/gostmmac/stmmac/internal/regs/gmac4reg"
)

// lpiState is Energy Efficient Ethernet in the MAC (databook: MAC_LPI_Control_Status and
// the registers behind it, IEEE 802.3 clause 78). The register itself holds what is set
// and what happened.
type lpiState struct {
	phase  lpiPhase
	armed  bool          // LPIEN is set, or phase is not lpiOff
	linkAt time.Duration // when PLS rose
	idle   bool          // nothing was left to send when it was looked at last
	idleAt time.Duration // since when
	sent   uint64        // frames at that time
	wakeAt time.Duration // end of lpiWaking
	// What MMC was told of the time in LPI, as a time; valid while in it.
	txAt, rxAt time.Duration
}

// lpiPhase is where the transmitter is.
type lpiPhase int

const (
	lpiOff    lpiPhase = iota
	lpiOn              // it says LPI to the PHY
	lpiWaking          // it does not any more, and may not send yet
)

// lpiControl is MAC_LPI_Control_Status.
func (m *Model) lpiControl() r4.LPIControl {
	return r4.LPIControl(m.regs.get(uint32(r4.MACLPIControlStatus)))
}

// setLPI changes bits of MAC_LPI_Control_Status.
func (m *Model) setLPI(clear, set r4.LPIControl) {
	m.regs.set(uint32(r4.MACLPIControlStatus), uint32(m.lpiControl()&^clear|set))
	if set&r4.LPIEvents != 0 {
		m.raiseShared()
	}
}

// ticks is how long n ticks of MAC_1US_Tic_Counter take, 1 µs each if it is set right.
func (m *Model) ticks(n uint64) time.Duration {
	clocks := uint64(m.regs.get(uint32(r4.MAC1USTicCounter))) + 1
	return time.Duration(mulDiv(n*clocks, nsPerSecond, m.cfg.CSRClock))
}

// storeLPI is a store to a register of LPI.
func (m *Model) storeLPI(off uint32, r *register, v uint32) {
	old := m.lpiControl()
	if off != uint32(r4.MACLPIControlStatus) {
		m.countLPI()
		m.regs.set(off, v&r.mask)
		m.lookLPI()
		return
	}
	now := r4.LPIControl(v&r.mask) | old&^r4.LPIControl(r.mask)
	m.regs.set(off, uint32(now))
	if old&r4.PLS == 0 && now&r4.PLS != 0 {
		m.lpi.linkAt = m.clock.Now()
	}
	m.lpi.armed = now&r4.LPIEN != 0 || m.lpi.phase != lpiOff
	m.lookLPI()
}

// loadLPI is the load of MAC_LPI_Control_Status.
func (m *Model) loadLPI() uint32 {
	m.lookLPI()
	v := m.lpiControl()
	if v&r4.LPIEvents != 0 {
		m.setLPI(r4.LPIEvents, 0)
		m.raiseShared()
	}
	return uint32(v)
}

// lookLPI lets the transmitter enter LPI, leave it or wake up as the registers, the
// traffic and the time say, and asks to be called again when more time is needed.
func (m *Model) lookLPI() {
	l := &m.lpi
	if !l.armed || m.clockGated() {
		return
	}
	c, now := m.lpiControl(), m.clock.Now()
	may := c&(r4.LPIEN|r4.PLS) == r4.LPIEN|r4.PLS && m.mac.conf&r4.TE != 0
	switch l.phase {
	case lpiOn:
		if !may {
			m.leaveLPI(now)
		}
		return
	case lpiWaking:
		m.lpiAwake(now)
		return
	}
	if !may {
		l.idle = false
		return
	}
	timers := r4.LPITimers(m.regs.get(uint32(r4.MACLPITimersControl)))
	at := l.linkAt + m.ticks(uint64(r4.LPILST.Get(timers))*1000)
	if c&r4.LPITXA != 0 {
		sent := m.stats.TxFrames + m.stats.TxPause + m.stats.TxARP + m.stats.TxErrors + m.stats.TxLost
		if !m.txIdle() {
			l.idle = false
			return
		}
		if !l.idle || sent != l.sent {
			l.idle, l.idleAt, l.sent = true, now, sent
		}
		if c&r4.LPIATE != 0 {
			at = max(at, l.idleAt+m.ticks(uint64(m.regs.get(uint32(r4.MACLPIEntryTimer)))))
		}
	}
	if now < at {
		m.armTimer(at)
		return
	}
	l.phase, l.txAt = lpiOn, now
	m.countMMC(r4.TxLPITran, 1)
	m.setLPI(0, r4.TLPIEN|r4.TLPIST)
	if p := m.mii.wired; p != nil {
		p.signal(pcsTxLPI, true)
		if m.mii.gating && m.mac.conf&r4.LM == 0 && !m.mii.loop && !p.eeeActive() {
			m.report(Violation{Kind: EEEMisuse, Channel: -1, Index: -1}, "LPI on a link that has not negotiated EEE")
		}
	}
}

// txIdle says that the transmitter has nothing left to send and has not been told of more.
func (m *Model) txIdle() bool {
	if m.flow.busy() || m.mac.arp.waiting {
		return false
	}
	for i := range m.tx {
		if !m.tx[i].idle() {
			return false
		}
	}
	return true
}

// leaveLPI ends LPI; the transmitter is silent for the wake time yet. With the timer
// LPIEN stays for the next time.
func (m *Model) leaveLPI(now time.Duration) {
	m.countLPI()
	l := &m.lpi
	c := m.lpiControl()
	clear := r4.TLPIST
	if c&r4.LPITXA != 0 && c&r4.LPIATE == 0 {
		clear |= r4.LPIEN
	}
	m.setLPI(clear, 0)
	if p := m.mii.wired; p != nil {
		p.signal(pcsTxLPI, false)
	}
	timers := r4.LPITimers(m.regs.get(uint32(r4.MACLPITimersControl)))
	l.phase, l.wakeAt = lpiWaking, now+m.ticks(uint64(r4.LPITWT.Get(timers)))
	m.lpiAwake(now)
}

// lpiAwake ends the wake time and says whether it is over.
func (m *Model) lpiAwake(now time.Duration) bool {
	l := &m.lpi
	if now < l.wakeAt {
		m.armTimer(l.wakeAt)
		return false
	}
	l.phase, l.idle = lpiOff, false
	l.armed = m.lpiControl()&r4.LPIEN != 0
	m.setLPI(0, r4.TLPIEX)
	return true
}

// lpiSilent says whether LPI keeps a frame from being sent; in the automatic mode the
// frame ends it.
func (m *Model) lpiSilent() bool {
	if m.lpi.phase == lpiOff {
		return false
	}
	now := m.clock.Now()
	if m.lpi.phase == lpiOn {
		if m.lpiControl()&r4.LPITXA == 0 {
			return true
		}
		m.leaveLPI(now)
		return m.lpi.phase != lpiOff
	}
	return !m.lpiAwake(now)
}

// flushLPI is what the flush of a transmit queue does to LPI in the automatic mode.
func (m *Model) flushLPI() {
	if m.lpi.phase == lpiOn && m.lpiControl()&r4.LPITXA != 0 {
		m.leaveLPI(m.clock.Now())
	}
}

// countLPI tells MMC of the time in LPI up to now.
func (m *Model) countLPI() {
	l, now, tick := &m.lpi, m.clock.Now(), max(m.ticks(1), 1)
	add := func(off uint32, since *time.Duration) {
		if n := (now - *since) / tick; n > 0 {
			*since += n * tick
			m.countMMC(off, uint32(n))
		}
	}
	if l.phase == lpiOn {
		add(r4.TxLPIUSEC, &l.txAt)
	}
	if m.lpiControl()&r4.RLPIST != 0 {
		add(r4.RxLPIUSEC, &l.rxAt)
	}
}

// SetPartnerLPI lets the other end of the cable say LPI, or not any more. It has no
// effect on a core without EEE, and without a link; the end of the link ends it. What
// the partner sends does not: it is for the caller to say both.
func (m *Model) SetPartnerLPI(on bool) {
	m.mu.Lock()
	if m.cfg.EEE && !m.resetting.Load() {
		m.runPHY()
		m.receiveLPI(on && !m.mii.shut() && !m.clockGated())
	}
	m.unlock()
}

// receiveLPI lets the receiver enter or leave LPI.
func (m *Model) receiveLPI(on bool) {
	if on == (m.lpiControl()&r4.RLPIST != 0) {
		return
	}
	m.countLPI()
	if p := m.mii.wired; p != nil {
		p.signal(pcsRxLPI, on)
	}
	if !on {
		m.setLPI(r4.RLPIST, r4.RLPIEX)
		return
	}
	m.lpi.rxAt = m.clock.Now()
	m.countMMC(r4.RxLPITran, 1)
	m.setLPI(0, r4.RLPIEN|r4.RLPIST)
}
