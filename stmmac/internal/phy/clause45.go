package phy

import "github.com/gostmmac/gostmmac/stmmac/internal/core"

// clause45 is a PHY that has registers of clause 45 only. Clause 45 has no
// registers for what 1000BASE-T advertises and for the duplex of a forced mode,
// so such a PHY negotiates 10, 100 and 2500 Mbit/s.
type clause45 struct{ *access }

func (c *clause45) control() control {
	v, an := c.read45(devPMA, regCtrl1), c.read45(devAN, regCtrl1)
	return control{
		reg: regCtrl1, val: v, silent: v == silent || an == silent,
		resetting: v&bmcrReset != 0 || an&bmcrReset != 0, asleep: v&pmaLowPower != 0,
		autoneg: an&bmcrANEnable != 0, starting: an&bmcrRestart != 0,
	}
}

func (c *clause45) wake(s control)  { c.write45(devPMA, regCtrl1, s.val&^pmaLowPower) }
func (c *clause45) sleep(s control) { c.write45(devPMA, regCtrl1, s.val|pmaLowPower) }
func (c *clause45) reset(s control) { c.write45(devPMA, regCtrl1, s.val|bmcrReset) }

func (c *clause45) abilities() abilities {
	st, ext := c.read45(devAN, regStat1), c.read45(devPMA, regExtAble)
	a := abilities{silent: st == silent || st == 0 || ext == silent, autoneg: st&anStatAble != 0}
	a.modes = pick(ext, ext10T, core.Mode10Half|core.Mode10Full) | pick(ext, ext100TX, core.Mode100Half|core.Mode100Full)
	a.modes |= c.modes2500()
	return a
}

func (c *clause45) advertise(m core.LinkModes, p pauseBits) (changed bool) {
	old := c.read45(devAN, regANAdv)
	if v := basePage(old, m, p); c.err == nil && v != old {
		c.write45(devAN, regANAdv, v)
		changed = true
	}
	return c.advertise2500(m) || changed
}

func (c *clause45) negotiate() {
	// The other bits of the register (extended next pages) are the PHY's.
	v := c.read45(devAN, regCtrl1) &^ bmcrReset
	c.write45(devAN, regCtrl1, v|bmcrANEnable|bmcrRestart)
}

func (c *clause45) status() status {
	asked := c.err == nil
	first := c.read45(devPMA, regStat1)
	v := c.read45(devPMA, regStat1)
	an := c.read45(devAN, regStat1)
	return status{
		silent: v == silent || an == silent || an == 0, lost: asked && first&v&pmaLink == 0,
		up: v&pmaLink != 0, complete: an&anStatComplete != 0,
	}
}

func (c *clause45) negotiated() negotiated {
	adv, lp := c.read45(devAN, regANAdv), c.read45(devAN, regANLP)
	n := negotiated{
		local: baseModes(adv), partner: baseModes(lp),
		localPause: pauseOf(adv), partnerPause: pauseOf(lp),
		partnerAN: c.read45(devAN, regStat1)&anStatPartnerAN != 0,
	}
	c.negotiated2500(&n)
	return n
}

func (c *clause45) roleFail() bool { return c.read45(devAN, regNBTStat)&nbtStatRoleFail != 0 }
