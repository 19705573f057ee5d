package sim

// Scripting link events. The PHY that the MAC is wired to follows the clock of the
// model. A test that steps a ManualClock says what happens outside and lets time
// pass:
//
//	cfg := sim.Config{Inline: true, Clock: clock, PHY: &sim.PHYConfig{Address: 1}}
//	d.SetCable(false)                 // the link is gone at once
//	d.SetPartner(sim.Partner{Modes: sim.Mode100Full | sim.Mode10Full})
//	d.SetCable(true)
//	clock.Advance(10 * time.Millisecond) // NegotiationTime: the link is up
//	if s := d.PHYState(); !s.Link || s.Speed != 100 || !s.FullDuplex { … }
//
// SetPartner with a cable plugged drops the link and negotiates anew. Between two
// models both ends need the call: a cable has two ends, and each model has its
// own partner. SetPHYControl is somebody who writes to the PHY behind the driver's
// back. PHYConfig.Unplugged, Control and ReleaseAfter are the states that a
// driver may find; Faults.PHY and Faults.LinkLossStallsTx are what goes wrong.
//
// While the link is down, or MAC_Configuration does not agree with it in speed or
// duplex, frames pass in neither direction: Stats counts them as TxLost and RxLost;
// on an elastic wire frames to be received wait. This holds with Config.PHY; the
// PHY of a Config without one agrees with every MAC until the management interface
// has reached it, or one of the methods above was called or Flap set.

import (
	"fmt"
	"math/bits"
	"time"
)

// LinkModes is a set of what one end of a twisted pair link can do.
type LinkModes uint16

// The modes that the model knows, the lower priority of IEEE 802.3 28B.3 first, and
// the two pause bits of the base page (28B.2).
const (
	Mode10Half LinkModes = 1 << iota
	Mode10Full
	Mode100Half
	Mode100Full
	Mode1000Half
	Mode1000Full
	Mode2500Full
	ModePause     // symmetric PAUSE
	ModeAsymPause // ASM_DIR

	modesLow      = Mode10Half | Mode10Full | Mode100Half | Mode100Full
	modesGigabit  = Mode1000Half | Mode1000Full
	modesTechs    = modesLow | modesGigabit | Mode2500Full
	modesPause    = ModePause | ModeAsymPause
	modesHalf     = Mode10Half | Mode100Half | Mode1000Half
	modesParallel = Mode10Half | Mode100Half // what parallel detection can find

	// AllModes is everything.
	AllModes = modesTechs | modesPause
)

// best is the technology with the highest priority, or 0.
func (m LinkModes) best() LinkModes {
	if m &= modesTechs; m == 0 {
		return 0
	}
	return 1 << (bits.Len16(uint16(m)) - 1)
}

// speed is that of a single technology in Mbit/s.
func (m LinkModes) speed() int {
	switch {
	case m&(Mode10Half|Mode10Full) != 0:
		return 10
	case m&(Mode100Half|Mode100Full) != 0:
		return 100
	case m&modesGigabit != 0:
		return 1000
	case m&Mode2500Full != 0:
		return 2500
	}
	return 0
}

// half is the half duplex mode of the speed of a single technology, or 0.
func (m LinkModes) half() LinkModes { return (m | m>>1) & modesHalf }

// Partner is the other end of the cable.
type Partner struct {
	// Modes is what it advertises; 0 is AllModes.
	Modes LinkModes
	// Fixed says that it does not negotiate; it runs in the mode with the highest
	// priority of Modes.
	Fixed bool
	// NoEEE says that it does not advertise EEE; without it, it does in all modes of Modes
	// that know it.
	NoEEE bool
}

// PHYClause says which management frames a PHY answers.
type PHYClause int

const (
	// PHYClause22: clause 22 alone, up to 1000BASE-T.
	PHYClause22 PHYClause = iota
	// PHYClause45: clause 45 alone; 10, 100 and 2500 Mbit/s, because clause 45 has no
	// register that advertises 1000BASE-T.
	PHYClause45
	// PHYBoth: both clauses, all speeds.
	PHYBoth
)

// String returns the name of the clause.
func (c PHYClause) String() string {
	switch c {
	case PHYClause22:
		return "clause 22"
	case PHYClause45:
		return "clause 45"
	case PHYBoth:
		return "clauses 22 and 45"
	}
	return fmt.Sprintf("PHYClause(%d)", int(c))
}

// modes are those that the registers of the clause can tell.
func (c PHYClause) modes() LinkModes {
	switch c {
	case PHYClause22:
		return modesLow | modesGigabit
	case PHYClause45:
		return modesLow | Mode2500Full
	}
	return modesTechs
}

// DefaultPHYID is the identifier of PHYs that have no other: that of no vendor.
const DefaultPHYID = 0x0200_5310

// Defaults of a PHYConfig.
const (
	defaultNegotiation = 10 * time.Millisecond
	defaultPHYReset    = time.Millisecond
	defaultPHYAddress  = 1
)

// PHYConfig describes a PHY on the management bus. The zero value answers clause 22
// at address 0, does 10 to 1000 Mbit/s and has had a link for long; the PHY of a
// Config without one is the same at address 1.
type PHYConfig struct {
	Address uint8  // 0 to 31
	ID      uint32 // registers 2 (upper half) and 3; 0 is DefaultPHYID
	Clause  PHYClause
	// Modes is what it can do; 0 is all that the registers of its clause can tell. The
	// pause bits do not matter: a PHY advertises what the MAC wants.
	Modes LinkModes
	// EEE says that it does Energy Efficient Ethernet, in full duplex at 100 Mbit/s and
	// above, and advertises it after a reset. A PHY of clause 22 has registers 13 and 14
	// then, which reach the registers of clause 45 that tell of it.
	EEE bool
	// Control is what BMCR holds at the start, as a warm reboot or a boot loader
	// leaves it (0x1800: powered down); 0 is the default after reset, 0x1140. In the
	// registers of clause 45 the bits lie in 1.0 and 7.0.
	Control uint16

	Partner   Partner
	Unplugged bool // no cable at the start

	// NegotiationTime is how long it takes from the cause (cable, restart, power) to
	// a link, negotiated or not; 0 is 10 ms.
	NegotiationTime time.Duration
	// ResetTime is how long the reset bit stays set; 0 is 1 ms. IEEE 802.3 22.2.4.1.1
	// allows 500 ms.
	ResetTime time.Duration
	// ReleaseAfter keeps the reset pin asserted for so long after the start of the
	// model: the PHY does not answer and gives the MAC no clock.
	ReleaseAfter time.Duration
	// ClockNeedsPower says that the receive clock of the MAC stops while the PHY is
	// powered down or in reset: a software reset of the MAC does not end then.
	// ClockNeedsLink stops it while there is no link too, as a PHY does that
	// suspends itself (case D49).
	ClockNeedsPower, ClockNeedsLink bool
}

// complete fills the defaults in and checks the rest.
func (c *PHYConfig) complete() error {
	setDefault(&c.ID, DefaultPHYID)
	setDefault(&c.NegotiationTime, defaultNegotiation)
	setDefault(&c.ResetTime, defaultPHYReset)
	bad := func(field string, v any, why string) error { return &ConfigError{"PHY." + field, v, why} }
	switch {
	case c.Address > 31:
		return bad("Address", c.Address, "not 0 to 31")
	case c.Clause < PHYClause22 || c.Clause > PHYBoth:
		return bad("Clause", int(c.Clause), "unknown")
	case c.Modes&^AllModes != 0 || c.Partner.Modes&^AllModes != 0:
		return bad("Modes", c.Modes|c.Partner.Modes, "unknown modes")
	case c.NegotiationTime < 0 || c.ResetTime < 0 || c.ReleaseAfter < 0:
		return bad("NegotiationTime", c.NegotiationTime, "a time is negative")
	}
	can := c.Clause.modes()
	if c.Modes&modesTechs != 0 {
		if c.Modes&modesTechs&^can != 0 {
			return bad("Modes", c.Modes, "more than the registers of "+c.Clause.String()+" can tell")
		}
		can = c.Modes & modesTechs
	}
	c.Modes = can
	setDefault(&c.Partner.Modes, AllModes)
	return nil
}

// completePHYs checks the PHYs and returns those of the bus, the one that the MAC is
// wired to first.
func (c *Config) completePHYs() (list []PHYConfig, err error) {
	switch {
	case (c.NoPHY || c.NoMDIO) && c.PHY != nil:
		return nil, &ConfigError{"PHY", *c.PHY, "there is none with NoPHY or NoMDIO"}
	case c.NoMDIO && len(c.OtherPHYs) > 0:
		return nil, &ConfigError{"OtherPHYs", len(c.OtherPHYs), "there is no bus with NoMDIO"}
	case c.NoPHY || c.NoMDIO:
	case c.PHY != nil:
		list = append(list, *c.PHY)
	default:
		list = append(list, PHYConfig{Address: defaultPHYAddress, EEE: c.EEE})
	}
	list = append(list, c.OtherPHYs...)
	var used [32]bool
	for i := range list {
		p := &list[i]
		if err := p.complete(); err != nil {
			return nil, err
		}
		if used[p.Address] {
			return nil, &ConfigError{"PHY.Address", p.Address, "two PHYs at one address"}
		}
		used[p.Address] = true
	}
	return list, nil
}

// PHYState is what the PHY that the MAC is wired to thinks.
type PHYState struct {
	// Link, Speed (Mbit/s) and FullDuplex are the link as it is now; without a link
	// the other two are zero. In loopback it is the link of the PHY with itself.
	Link       bool
	Speed      int
	FullDuplex bool
	// Negotiated says that autonegotiation has completed, and Partner what the other
	// end advertised in it, or what parallel detection found.
	Negotiated bool
	Partner    LinkModes

	PowerDown, Isolate, Loopback bool
	Reset                        bool // by the bit or the pin
	// Passing says that frames pass between the MAC and the cable, or the
	// loopback: the link is up and MAC_Configuration agrees with it.
	Passing bool
	// EEE says that both ends negotiated Energy Efficient Ethernet for this link.
	EEE bool
	// Offer is what the other end of the cable finds, as SetPartner takes it: what this
	// PHY advertised when it began to negotiate, or the mode that it is forced to, of
	// which there is none if Modes is 0. A PHY that is powered down, in reset or in
	// loopback offers nothing.
	Offer Partner
}

// PHYState returns the state of the PHY. It is the zero value without a PHY.
func (m *Model) PHYState() PHYState {
	m.mu.Lock()
	defer m.leave()
	m.runPHY()
	p := m.mii.wired
	if p == nil {
		return PHYState{}
	}
	s := PHYState{
		Link: p.up != 0, Speed: p.up.speed(), FullDuplex: p.up != 0 && p.up&modesHalf == 0,
		Negotiated: p.complete, Partner: p.found,
		PowerDown: p.control&bmcrPowerDown != 0, Isolate: p.control&bmcrIsolate != 0,
		Loopback: p.control&bmcrLoopback != 0, Reset: p.inReset() || p.held(), EEE: p.eeeActive(),
	}
	s.Passing = s.Link && !m.phyGate(p).blocked
	s.Offer = p.offer()
	return s
}

// SetCable plugs the cable in or pulls it out. Without a PHY it has no effect.
func (m *Model) SetCable(plugged bool) {
	m.outside(func(p *phy, now time.Duration) {
		if p.plugged != plugged {
			p.plugged = plugged
			p.carrier(now)
		}
	})
}

// SetPartner changes the other end of the cable; what negotiates does so anew. Bits
// that are no mode are ignored. Without a PHY it has no effect.
func (m *Model) SetPartner(o Partner) {
	m.outside(func(p *phy, now time.Duration) {
		o.Modes &= AllModes
		setDefault(&o.Modes, AllModes)
		p.partner = o
		p.carrier(now)
	})
}

// SetPHYControl writes BMCR as somebody else than the driver does: firmware that
// powers the PHY down (0x0800), a pulse on its reset pin (0x8000). Without a PHY it
// has no effect.
func (m *Model) SetPHYControl(v uint16) {
	m.outside(func(p *phy, now time.Duration) {
		if !p.held() {
			p.write22(regBMCR, v, now)
		}
	})
}

// outside changes what the wired PHY is connected to. From then on the PHY says what
// passes.
func (m *Model) outside(f func(p *phy, now time.Duration)) {
	m.mu.Lock()
	m.runPHY()
	if p := m.mii.wired; p != nil {
		m.mii.gating = true
		f(p, m.clock.Now())
		m.afterPHY()
	}
	m.unlock()
}
