package sim

import (
	"math/rand/v2"
	"time"
)

// PHYFaults are the switches for the management bus and the PHY that the MAC is
// wired to. They change what is read, or what happens next; the state of the PHY
// stays as it is.
type PHYFaults struct {
	// BusGated gates the clock of the management interface: every transaction is over
	// at once, reads give 0 and writes are lost (case D57).
	BusGated bool
	// BusyForever never clears GB; only a reset of the MAC does.
	BusyForever bool
	// AllOnes makes every read 0xffff, as on a bus without any PHY.
	AllOnes bool
	// AbsentZero makes reads of addresses without a PHY 0 instead of 0xffff.
	AbsentZero bool
	// Garbage, if it is not 0, is the seed of random numbers that every read gives.
	Garbage uint64
	// LinkInPowerDown makes BMSR 0x780d, with the link up, while the PHY is powered
	// down (case D58).
	LinkInPowerDown bool
	// NegotiationHangs lets no autonegotiation that begins come to an end.
	NegotiationHangs bool
	// Flap pulls the cable and plugs it back in turn, each after this time; less than
	// a millisecond counts as one, 0 is never.
	Flap time.Duration
}

// flap is the time between two changes of the cable, at least what bounds the work.
func (f *PHYFaults) flap() time.Duration { return max(f.Flap, time.Millisecond) }

// phyFaults takes over changed switches.
func (m *Model) phyFaults() {
	s := &m.mii
	f := &m.faults.PHY
	if f.Garbage != s.seed {
		s.seed = f.Garbage
		s.garbage = rand.New(rand.NewPCG(s.seed, 0))
	}
	p := s.wired
	if p == nil {
		return
	}
	m.runPHY()
	now := m.clock.Now()
	switch flapping := f.Flap > 0; {
	case flapping && p.flapAt == 0:
		s.gating = true
		p.flapAt = now + f.flap()
	case !flapping && p.flapAt != 0:
		p.flapAt = 0
		if p.flapped {
			p.flapped = false
			p.carrier(now)
		}
	}
	if p.stuck && !f.NegotiationHangs {
		p.begin(now)
	}
	m.afterPHY()
}
