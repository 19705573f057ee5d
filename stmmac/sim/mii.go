package sim

import (
	"math/rand/v2"
	"time"

	r4 "github.com/gostmmac/gostmmac/stmmac/internal/regs/gmac4reg"
)

// miiState is what lies between the MAC and its PHYs: the management bus and the
// interface that frames pass through.
type miiState struct {
	miiGate
	bus     [32]*phy
	wired   *phy // the one that the MAC's frames go through; nil is a fixed link
	gating  bool // it decides what passes
	timer   func() bool
	timerAt time.Duration // when the timer is due; 0 is none
	onTimer func()
	garbage *rand.Rand
	seed    uint64
}

// miiGate says what passes.
type miiGate struct {
	noClock bool // the PHY gives no clock
	down    bool // there is no link
	blocked bool // nor, for this or another reason, do frames pass
	loop    bool // the PHY gives back what it gets
}

// shut says that no frame of the wire reaches the MAC.
func (g *miiGate) shut() bool { return g.blocked || g.loop }

// initPHYs puts the PHYs on the bus. Those of list follow the one that the MAC is
// wired to unless it has none.
func (m *Model) initPHYs(list []PHYConfig) {
	s := &m.mii
	s.onTimer = m.phyTimer
	now := m.clock.Now()
	for i, c := range list {
		p := newPHY(c, new(PHYFaults), now)
		s.bus[c.Address] = p
		if i == 0 && !m.cfg.NoPHY {
			p.faults = &m.faults.PHY
			s.wired = p
			s.gating = m.cfg.PHY != nil
		}
	}
}

// clockGated says that the MAC lacks the clocks of its PHY.
func (m *Model) clockGated() bool { return m.faults.ClockGated || m.mii.noClock }

// macSpeed is the speed in Mbit/s that MAC_Configuration selects.
func macSpeed(c r4.Configuration) int {
	switch c & r4.SpeedMask {
	case r4.FES:
		return 2500
	case r4.PS | r4.FES:
		return 100
	case r4.PS:
		return 10
	}
	return 1000
}

// phyGate compares the MAC with the PHY.
func (m *Model) phyGate(p *phy) (g miiGate) {
	g.noClock = !p.clock()
	if !m.mii.gating {
		return g
	}
	c := m.mac.conf
	g.down = p.up == 0
	g.blocked = g.down || p.control&bmcrIsolate != 0 || p.up.speed() != macSpeed(c) ||
		(p.up&modesHalf == 0) != (c&r4.DM != 0)
	g.loop = !g.blocked && p.control&bmcrLoopback != 0
	return g
}

// gate takes over a change of the PHY or of MAC_Configuration.
func (m *Model) gate() {
	s := &m.mii
	if s.wired == nil {
		return
	}
	was := s.miiGate
	s.miiGate = m.phyGate(s.wired)
	if was == s.miiGate {
		return
	}
	m.setQuick()
	if m.cfg.EEE && s.shut() {
		m.receiveLPI(false)
	}
	if was.noClock && !s.noClock {
		m.clockBack()
	}
	m.kick() // what waited for the link
}

// runPHY lets happen what was due up to now, on the bus and in the PHYs, in order.
func (m *Model) runPHY() {
	now := m.clock.Now()
	for {
		at, p := m.nextPHY()
		if at == 0 || at > now {
			break
		}
		if p == nil {
			m.finishMDIO(at)
		} else {
			p.event(at)
		}
	}
	m.afterPHY()
}

// nextPHY is the next event; one of the bus comes without a PHY.
func (m *Model) nextPHY() (at time.Duration, p *phy) {
	at = m.mdioDone
	for _, q := range m.mii.bus {
		if q == nil {
			continue
		}
		if t := q.due(); t != 0 && (at == 0 || t < at) {
			at, p = t, q
		}
	}
	return at, p
}

// afterPHY takes over what has changed and sets the timer for what comes.
func (m *Model) afterPHY() {
	m.gate()
	s := &m.mii
	at, _ := m.nextPHY()
	if at == s.timerAt || m.closed {
		return
	}
	if s.timer != nil {
		s.timer()
		s.timer = nil
	}
	if s.timerAt = at; at != 0 {
		s.timer = m.clock.AfterFunc(at-m.clock.Now(), s.onTimer)
	}
}

// phyTimer runs when the next event is due.
func (m *Model) phyTimer() {
	m.mu.Lock()
	m.mii.timer, m.mii.timerAt = nil, 0
	if !m.closed {
		m.runPHY()
	}
	m.unlock()
}
