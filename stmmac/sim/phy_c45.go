package sim

import "time"

// read45 reads a register of clause 45. An MMD that is not there does not answer;
// registers that are not there read as 0.
func (p *phy) read45(dev uint32, reg uint16) uint16 {
	switch dev {
	case mmdPMA:
		return p.readPMA(reg)
	case mmdPCS:
		if p.cfg.EEE {
			return p.readPCS(reg)
		}
	case mmdAN:
		return p.readAN(reg)
	}
	return noAnswer
}

// common reads what each MMD has.
func (p *phy) common(reg uint16) uint16 {
	switch reg {
	case c45ID1:
		return uint16(p.cfg.ID >> 16)
	case c45ID2:
		return uint16(p.cfg.ID)
	case c45Devs1:
		v := uint16(1<<mmdPMA | 1<<mmdAN)
		if p.cfg.EEE {
			v |= 1 << mmdPCS
		}
		if p.answers(false) {
			v |= 1 // clause 22 registers
		}
		return v
	}
	return 0
}

// ability gathers the bits of the modes that the PHY has.
func (p *phy) ability(low, mid, gigabit, multi uint16) (v uint16) {
	for _, b := range [...]struct {
		mode LinkModes
		bit  uint16
	}{
		{Mode10Half | Mode10Full, low}, {Mode100Half | Mode100Full, mid}, {modesGigabit, gigabit}, {Mode2500Full, multi},
	} {
		if p.can(b.mode) {
			v |= b.bit
		}
	}
	return v
}

func (p *phy) readPMA(reg uint16) (v uint16) {
	switch reg {
	case c45Control:
		v = p.control&(bmcrSpeedLow|bmcrSpeedHigh|bmcrPowerDown) | p.ext
		if p.inReset() {
			v |= bmcrReset
		}
		if p.control&bmcrLoopback != 0 {
			v |= pmaLoopback
		}
	case c45Status:
		v = pmaLowPower
		if p.linked(&p.failedPMA) {
			v |= bmsrLink
		}
	case c45Speed:
		v = p.ability(pmaCan10, pmaCan100, pmaCan1000, pmaCan2500)
	case pmaStatus2:
		v = pmaPresent | pmaHasExt
	case pmaExtAble:
		v = p.ability(pmaExt10, pmaExt100, pmaExt1000, pmaExtMulti)
	case pmaMultiAble:
		v = p.ability(0, 0, 0, pmaMulti2500)
	default:
		v = p.common(reg)
	}
	return v
}

func (p *phy) readAN(reg uint16) (v uint16) {
	switch reg {
	case c45Control:
		v = p.control & bmcrAN
		if p.inReset() {
			v |= bmcrReset
		}
	case c45Status:
		v = bmsrANAble
		if p.able {
			v |= an45Able
		}
		if p.complete {
			v |= bmsrComplete
		}
		if p.pageC45 {
			v |= an45Page
			p.pageC45 = false
		}
		if p.linked(&p.failedAN) {
			v |= bmsrLink
		}
	case anAdvertise:
		v = p.anar
	case anPartner:
		v = p.partnerPage()
	case anMultiControl:
		v = p.multi
	case anEEEAdvertise, anEEEPartner, anEEEAdvertise2, anEEEPartner2:
		v = p.readEEE(reg)
	case anMultiStatus:
		if p.found&Mode2500Full != 0 {
			v |= multiLP2500
		}
		if p.up == Mode2500Full {
			v |= msLocalOK | msRemoteOK
		}
	default:
		v = p.common(reg)
	}
	return v
}

// write45 writes a register of clause 45. A PHY in reset takes no writes.
func (p *phy) write45(dev uint32, reg, v uint16, now time.Duration) {
	if p.inReset() {
		return
	}
	switch {
	case dev == mmdPMA && reg == c45Control:
		const mine = bmcrSpeedLow | bmcrSpeedHigh | bmcrPowerDown | bmcrLoopback
		c := p.control&^mine | v&(mine|bmcrReset)&^bmcrLoopback
		if v&pmaLoopback != 0 {
			c |= bmcrLoopback
		}
		ext := v & pmaSpeedExt
		again := ext != p.ext && (c&bmcrAN == 0 || c&bmcrLoopback != 0)
		p.ext = ext
		p.setControl(c, now)
		if again && !p.inReset() {
			p.begin(now)
		}
	case dev == mmdAN && reg == c45Control:
		p.setControl(p.control&^bmcrAN|v&(bmcrReset|bmcrAN|bmcrRestart), now)
	case dev == mmdPCS && reg == c45Control && p.cfg.EEE:
		const mine = bmcrPowerDown
		p.setControl(p.control&^mine|v&(mine|bmcrReset), now)
	case dev == mmdAN && (reg == anEEEAdvertise || reg == anEEEAdvertise2):
		p.writeEEE(reg, v)
	case dev == mmdAN && reg == anAdvertise:
		p.setAdvertisement(v)
	case dev == mmdAN && reg == anMultiControl:
		p.multi = 0
		if p.can(Mode2500Full) {
			p.multi = v & multi2500
		}
	}
}
