package phy

import "github.com/gostmmac/gostmmac/stmmac/internal/core"

// clause22 is a PHY with the registers of clause 22, maybe with those of
// 2500BASE-T by clause 45 beside.
type clause22 struct {
	*access
	multi bool // has the AN device of clause 45
	gbit  bool // has registers 9 and 10; abilities finds out
}

// baseModes are the modes of a base page: ANAR, ANLPAR, 7.16 or 7.19.
func baseModes(v uint16) core.LinkModes {
	return pick(v, an10Half, core.Mode10Half) | pick(v, an10Full, core.Mode10Full) |
		pick(v, an100Half, core.Mode100Half) | pick(v, an100Full, core.Mode100Full)
}

// pick returns m if v has the bit.
func pick(v, bit uint16, m core.LinkModes) core.LinkModes {
	if v&bit != 0 {
		return m
	}
	return 0
}

// put returns the bit if m has the mode.
func put(m, mode core.LinkModes, bit uint16) uint16 {
	if m&mode != 0 {
		return bit
	}
	return 0
}

// basePage is the base page that advertises m and p in place of old. Next
// pages stay as the PHY had them: it sends those of 1000BASE-T by itself.
func basePage(old uint16, m core.LinkModes, p pauseBits) uint16 {
	return old&(anNextPage|anNextExt) | anSelector | uint16(p) |
		put(m, core.Mode10Half, an10Half) | put(m, core.Mode10Full, an10Full) |
		put(m, core.Mode100Half, an100Half) | put(m, core.Mode100Full, an100Full)
}

func pauseOf(v uint16) pauseBits { return pauseBits(v & (anPause | anAsymDir)) }

func (c *clause22) control() control {
	v := c.read(regBMCR)
	s := control{
		reg: regBMCR, val: v, silent: v == silent, resetting: v&bmcrReset != 0,
		asleep: v&bmcrPowerOff != 0, isolated: v&bmcrIsolate != 0, looped: v&bmcrLoopback != 0,
		autoneg: v&bmcrANEnable != 0, starting: v&bmcrRestart != 0,
		forced: core.Link{Up: true, FullDuplex: v&bmcrFull != 0},
	}
	switch v & (bmcrSpeed1G | bmcrSpeed100) {
	case 0:
		s.forced.Speed = 10
	case bmcrSpeed100:
		s.forced.Speed = 100
	case bmcrSpeed1G:
		s.forced.Speed = 1000
	}
	return s
}

// keep are the bits of the control register that a change of its power keeps.
const keep = bmcrLoopback | bmcrSpeed100 | bmcrANEnable | bmcrFull | bmcrSpeed1G

func (c *clause22) wake(s control)  { c.write(regBMCR, s.val&keep) }
func (c *clause22) sleep(s control) { c.write(regBMCR, s.val&keep|bmcrPowerOff) }
func (c *clause22) reset(control)   { c.write(regBMCR, bmcrReset) }

func (c *clause22) abilities() abilities {
	v := c.read(regBMSR)
	a := abilities{silent: v == silent || v == 0, autoneg: v&bmsrANAble != 0}
	a.modes = pick(v, bmsr10Half, core.Mode10Half) | pick(v, bmsr10Full, core.Mode10Full) |
		pick(v, bmsr100Half, core.Mode100Half) | pick(v, bmsr100Full, core.Mode100Full)
	if v&bmsrExtended != 0 {
		e := c.read(regESR)
		a.modes |= pick(e, esr1000Half, core.Mode1000Half) | pick(e, esr1000Full, core.Mode1000Full)
	}
	c.gbit = a.modes&(core.Mode1000Half|core.Mode1000Full) != 0
	if c.multi {
		a.modes |= c.modes2500()
	}
	return a
}

// modes2500 says whether the PMA does 2500BASE-T.
func (a *access) modes2500() core.LinkModes {
	if a.read45(devPMA, regExtAble)&extNBT == 0 {
		return 0
	}
	return pick(a.read45(devPMA, regNBTAble), nbtAble2500, core.Mode2500Full)
}

// advertise2500 advertises 2500BASE-T, or not, and nothing above it.
func (a *access) advertise2500(m core.LinkModes) (changed bool) {
	return a.update45(devAN, regNBTCtrl, nbtCtrl10G|nbtCtrl5G|nbtCtrl2500, put(m, core.Mode2500Full, nbtCtrl2500))
}

// negotiated2500 adds what is advertised of 2500BASE-T to n.
func (a *access) negotiated2500(n *negotiated) {
	n.local |= pick(a.read45(devAN, regNBTCtrl), nbtCtrl2500, core.Mode2500Full)
	lp := a.read45(devAN, regNBTStat)
	n.partner |= pick(lp, nbtStat2500, core.Mode2500Full)
	n.roleFail = n.roleFail || lp&nbtStatRoleFail != 0
}

func (c *clause22) advertise(m core.LinkModes, p pauseBits) (changed bool) {
	old := c.read(regANAR)
	if v := basePage(old, m, p); c.err == nil && v != old {
		c.write(regANAR, v)
		changed = true
	}
	if c.gbit {
		set := put(m, core.Mode1000Half, gbcrHalf) | put(m, core.Mode1000Full, gbcrFull)
		// The test modes in the upper bits are cleared.
		changed = c.update(regGBCR, ^uint16(gbcrRole), set) || changed
	}
	if c.multi {
		changed = c.advertise2500(m) || changed
	}
	return changed
}

func (c *clause22) negotiate() { c.write(regBMCR, bmcrANEnable|bmcrRestart) }

// speedBits are the bits of the control register for a speed and duplex.
func speedBits(l core.Link) uint16 {
	var v uint16
	switch l.Speed {
	case 100:
		v = bmcrSpeed100
	case 1000:
		v = bmcrSpeed1G
	}
	if l.FullDuplex {
		v |= bmcrFull
	}
	return v
}

func (c *clause22) force(s control, l core.Link) (changed bool) {
	v := speedBits(l)
	if s.val == v {
		return false
	}
	c.write(regBMCR, v)
	return true
}

func (c *clause22) loop(l core.Link) { c.write(regBMCR, bmcrLoopback|speedBits(l)) }

func (c *clause22) status() status {
	asked := c.err == nil
	// The link bit latches low: the first read shows a loss, the second what is.
	// A read that fails may have cleared the latch; it gives 0, which is a loss.
	first := c.read(regBMSR)
	v := c.read(regBMSR)
	return status{
		silent: v == silent || v == 0, lost: asked && first&v&bmsrLink == 0,
		up: v&bmsrLink != 0, complete: v&bmsrComplete != 0,
	}
}

func (c *clause22) negotiated() negotiated {
	adv, lp := c.read(regANAR), c.read(regANLPAR)
	n := negotiated{
		local: baseModes(adv), partner: baseModes(lp),
		localPause: pauseOf(adv), partnerPause: pauseOf(lp),
		// Some PHYs do not have the expansion register; what a partner without
		// negotiation does leaves no acknowledge in its word.
		partnerAN: c.read(regANER)&anerPartnerAN != 0 || lp&anAck != 0,
	}
	if c.gbit {
		adv, lp = c.read(regGBCR), c.read(regGBSR)
		n.local |= pick(adv, gbcrHalf, core.Mode1000Half) | pick(adv, gbcrFull, core.Mode1000Full)
		n.partner |= pick(lp, gbsrHalf, core.Mode1000Half) | pick(lp, gbsrFull, core.Mode1000Full)
		n.roleFail = lp&gbsrRoleFail != 0
	}
	if c.multi {
		c.negotiated2500(&n)
	}
	return n
}

func (c *clause22) roleFail() bool {
	return c.gbit && c.read(regGBSR)&gbsrRoleFail != 0 || c.multi && c.read45(devAN, regNBTStat)&nbtStatRoleFail != 0
}
