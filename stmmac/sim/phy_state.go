package sim

import "time"

// phy is a PHY: the state behind its registers. Its methods run with the lock of the
// engines held; now is the time at which something happens, which can lie before
// that of the clock.
type phy struct {
	cfg    PHYConfig
	faults *PHYFaults

	control uint16 // BMCR without the bits that clear themselves
	ext     uint16 // bits 5:2 of 1.0
	anar    uint16
	mscr    uint16
	multi   uint16 // 7.32
	mmd     [32]uint16
	mmdCtl  uint16 // register 13

	// EEE: what is advertised, what this negotiation sent and what it found, and LPI
	// as it shows in 3.1.
	eeeAdv, eeeSent, eeeFound LinkModes
	lpi, lpiSeen              uint16

	plugged bool
	flapped bool // the cable is out by the Flap fault
	partner Partner

	up       LinkModes // the link; 0 is none
	stuck    bool      // a negotiation that does not end
	sent     LinkModes // what this negotiation advertises
	selector uint16
	complete bool
	able     bool      // the partner negotiates
	found    LinkModes // ability of the partner

	// What a read of the status registers clears or ends, each in both clauses.
	failedBMSR, failedPMA, failedAN bool // the link failed since the last read
	pageC22, pageC45                bool // page received

	// When something happens next; 0 is never.
	releaseAt, resetAt, settleAt, flapAt time.Duration
}

// newPHY returns a PHY that has had all the time that it needs, unless its reset pin
// is held.
func newPHY(cfg PHYConfig, f *PHYFaults, now time.Duration) *phy {
	p := &phy{cfg: cfg, faults: f, plugged: !cfg.Unplugged, partner: cfg.Partner}
	p.defaults()
	// The link was down once, and nobody has read since.
	p.failedBMSR, p.failedPMA, p.failedAN = true, true, true
	if cfg.Control != 0 {
		p.control = cfg.Control & p.writable()
	}
	if cfg.ReleaseAfter > 0 {
		p.releaseAt = now + cfg.ReleaseAfter
		return p
	}
	if p.begin(now); p.settleAt != 0 {
		p.settle()
	}
	return p
}

// held says that the reset pin is asserted, inReset that the reset bit is set.
func (p *phy) held() bool    { return p.releaseAt != 0 }
func (p *phy) inReset() bool { return p.resetAt != 0 }

func (p *phy) can(m LinkModes) bool { return p.cfg.Modes&m != 0 }

// defaults gives the registers the values after reset. Pause is not advertised
// until somebody asks for it.
func (p *phy) defaults() {
	p.control = bmcrAN | bmcrDuplex
	switch {
	case p.can(modesGigabit):
		p.control |= bmcrSpeedHigh
	case p.can(Mode100Half | Mode100Full):
		p.control |= bmcrSpeedLow
	}
	p.ext = 0
	p.anar = anIEEE8023 | basePage(p.cfg.Modes)
	p.mscr = gigabitBits(p.cfg.Modes)
	p.multi = 0
	if p.can(Mode2500Full) {
		p.multi = multi2500
	}
	p.mmdCtl, p.eeeAdv = 0, p.eeeAble()
}

// writable are the bits of BMCR that keep what is written.
func (p *phy) writable() uint16 {
	w := uint16(bmcrLoopback | bmcrSpeedLow | bmcrAN | bmcrPowerDown | bmcrIsolate | bmcrDuplex | bmcrColTest)
	if p.can(modesGigabit | Mode2500Full) {
		w |= bmcrSpeedHigh
	}
	return w
}

// clock says whether the PHY gives the MAC its receive clock.
func (p *phy) clock() bool {
	return !p.held() && !(p.cfg.ClockNeedsPower && (p.control&bmcrPowerDown != 0 || p.inReset())) &&
		!(p.cfg.ClockNeedsLink && p.up == 0)
}

// medium says whether the PHY is on the cable.
func (p *phy) medium() bool { return p.plugged && !p.flapped && p.control&bmcrLoopback == 0 }

// due is the time of the next event, 0 if there is none.
func (p *phy) due() (at time.Duration) {
	for _, t := range [...]time.Duration{p.releaseAt, p.resetAt, p.settleAt, p.flapAt} {
		if t != 0 && (at == 0 || t < at) {
			at = t
		}
	}
	return at
}

// event lets happen what is due at now.
func (p *phy) event(now time.Duration) {
	switch now {
	case p.releaseAt:
		p.releaseAt = 0
		p.begin(now)
	case p.resetAt:
		p.resetAt = 0
		p.begin(now)
	case p.flapAt:
		p.flapAt = now + p.faults.flap()
		p.flapped = !p.flapped
		p.carrier(now)
	case p.settleAt:
		p.settle()
	}
}

// carrier takes note of a change of the cable or of what is at its end.
func (p *phy) carrier(now time.Duration) {
	if p.control&bmcrLoopback == 0 {
		p.begin(now)
	}
}

// drop ends the link and what was negotiated.
func (p *phy) drop() {
	if p.up != 0 {
		p.failedBMSR, p.failedPMA, p.failedAN = true, true, true
	}
	p.up, p.complete, p.able, p.found = 0, false, false, 0
	p.eeeFound, p.lpi = 0, 0
	p.settleAt, p.stuck = 0, false
}

// begin starts over: the link is gone and comes back, if it does, when the partner
// has been found.
func (p *phy) begin(now time.Duration) {
	p.drop()
	loop := p.control&bmcrLoopback != 0
	if p.held() || p.inReset() || p.control&bmcrPowerDown != 0 || !loop && !p.medium() {
		return
	}
	if p.control&bmcrAN != 0 && !loop {
		// What is written to the advertisement from here on is for the next time.
		p.sent, p.selector = p.advertised(), p.anar&anSelector
		p.eeeSent = p.eeeAdv
		if p.faults.NegotiationHangs || p.selector != anIEEE8023 {
			p.stuck = true
			return
		}
	}
	p.settleAt = now + p.cfg.NegotiationTime
}

// settle ends what begin started.
func (p *phy) settle() {
	p.settleAt = 0
	switch {
	case p.control&bmcrLoopback != 0:
		p.up = p.forced()
	case p.control&bmcrAN == 0:
		// 1000BASE-T and faster need autonegotiation (40.5.1, 126.6.1). A partner that
		// negotiates detects the speed and takes half duplex.
		m, o := p.forced()&modesLow, p.partner
		if o.Fixed && m.speed() == o.Modes.best().speed() || !o.Fixed && m.half()&o.Modes != 0 {
			p.up = m
		}
	case p.partner.Fixed:
		// Parallel detection (28.2.3.1) tells the speed alone.
		if m := p.partner.Modes.best().half() & modesParallel & p.sent; m != 0 {
			p.up, p.found, p.complete = m, m, true
		}
	default:
		p.able, p.found, p.eeeFound = true, p.partner.Modes, p.eeePartner()
		p.pageC22, p.pageC45 = true, true
		p.up = (p.sent & p.found).best()
		p.complete = p.up != 0
	}
}

// forced is the mode that the speed and duplex bits say, or 0.
func (p *phy) forced() (m LinkModes) {
	switch p.control & (bmcrSpeedHigh | bmcrSpeedLow) {
	case 0:
		m = Mode10Half
	case bmcrSpeedLow:
		m = Mode100Half
	case bmcrSpeedHigh:
		m = Mode1000Half
	default:
		if p.ext == pmaExt2500 {
			return Mode2500Full & p.cfg.Modes
		}
		return 0
	}
	if p.control&bmcrDuplex != 0 {
		m <<= 1
	}
	return m & p.cfg.Modes
}

// advertised is what the registers offer.
func (p *phy) advertised() (m LinkModes) {
	for _, b := range baseBits {
		if p.anar&b.bit != 0 {
			m |= b.mode
		}
	}
	if p.mscr&msHalf != 0 {
		m |= Mode1000Half
	}
	if p.mscr&msFull != 0 {
		m |= Mode1000Full
	}
	if p.multi&multi2500 != 0 {
		m |= Mode2500Full
	}
	return m & (p.cfg.Modes | modesPause)
}

// offer is what the other end of the cable finds.
func (p *phy) offer() Partner {
	switch {
	case p.held() || p.inReset() || p.control&(bmcrPowerDown|bmcrLoopback) != 0:
		return Partner{}
	case p.control&bmcrAN == 0:
		return Partner{Modes: p.forced() & modesLow, Fixed: true, NoEEE: true}
	}
	return Partner{Modes: p.sent, NoEEE: p.eeeSent == 0}
}

// setControl is a store to the bits of BMCR, in either clause.
func (p *phy) setControl(v uint16, now time.Duration) {
	if v&bmcrReset != 0 {
		p.drop()
		p.defaults()
		p.resetAt = now + p.cfg.ResetTime
		return
	}
	changed := p.control ^ v
	p.control = v & p.writable()
	changed &= p.writable()
	again := changed&(bmcrAN|bmcrPowerDown|bmcrLoopback) != 0 || v&bmcrAN != 0 && v&bmcrRestart != 0
	if p.control&bmcrAN == 0 || p.control&bmcrLoopback != 0 {
		again = again || changed&(bmcrSpeedLow|bmcrSpeedHigh|bmcrDuplex) != 0
	}
	if again {
		p.begin(now)
	}
}

// baseBits are the places of the modes in the base page.
var baseBits = [...]struct {
	mode LinkModes
	bit  uint16
}{
	{Mode10Half, an10Half}, {Mode10Full, an10Full}, {Mode100Half, an100Half}, {Mode100Full, an100Full},
	{ModePause, anPause}, {ModeAsymPause, anAsym},
}

// basePage are the bits of the base page for modes.
func basePage(m LinkModes) (v uint16) {
	for _, b := range baseBits {
		if m&b.mode != 0 {
			v |= b.bit
		}
	}
	return v
}

// gigabitBits are those of MSCR.
func gigabitBits(m LinkModes) (v uint16) {
	if m&Mode1000Full != 0 {
		v |= msFull
	}
	if m&Mode1000Half != 0 {
		v |= msHalf
	}
	return v
}
