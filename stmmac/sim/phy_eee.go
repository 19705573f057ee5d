package sim

import "time"

// modesEEE are the modes in which a PHY can be quiet between frames (clause 78).
const modesEEE = Mode100Full | Mode1000Full | Mode2500Full

// Registers 13 and 14 of clause 22 reach those of clause 45 (annex 22D). The functions
// stand in bits 15:14 of register 13.
const (
	regMMDControl = 13
	regMMDData    = 14

	mmdAddress        = 0 << 14
	mmdNoIncrement    = 1 << 14
	mmdIncrement      = 2 << 14 // after a read or a write
	mmdWriteIncrement = 3 << 14 // after a write
	mmdFunction       = 3 << 14
	mmdDevice         = 0x1f
)

// Registers of EEE in clause 45 (45.2.3.9, 45.2.3.10, 45.2.7.13 to 45.2.7.16) and their
// bits; those with a 2 are for speeds above 1 Gbit/s.
const (
	mmdPCS = 3

	pcsEEEAble  = 20
	pcsEEEAble2 = 21

	anEEEAdvertise  = 60
	anEEEPartner    = 61
	anEEEAdvertise2 = 62
	anEEEPartner2   = 63

	eee100  = 1 << 1
	eee1000 = 1 << 2
	eee2500 = 1 << 0

	// LPI in 3.1: as it is now, and latched until a read.
	pcsTxLPI      = 1 << 9
	pcsRxLPI      = 1 << 8
	pcsTxLPISeen  = 1 << 11
	pcsRxLPISeen  = 1 << 10
	pcsLPILatched = 2 // places from the first to the second pair
)

// eeeBits are the bits of modes in the first and in the second register.
func eeeBits(m LinkModes) (v, second uint16) {
	if m&Mode100Full != 0 {
		v |= eee100
	}
	if m&Mode1000Full != 0 {
		v |= eee1000
	}
	if m&Mode2500Full != 0 {
		second |= eee2500
	}
	return v, second
}

// eeeModes are the modes of the bits of the first and of the second register.
func eeeModes(v, second uint16) (m LinkModes) {
	if v&eee100 != 0 {
		m |= Mode100Full
	}
	if v&eee1000 != 0 {
		m |= Mode1000Full
	}
	if second&eee2500 != 0 {
		m |= Mode2500Full
	}
	return m
}

// eeeAble are the modes in which the PHY does EEE.
func (p *phy) eeeAble() LinkModes {
	if !p.cfg.EEE {
		return 0
	}
	return p.cfg.Modes & modesEEE
}

// eeeActive says whether both ends negotiated EEE for the mode of the link.
func (p *phy) eeeActive() bool { return p.up&p.eeeSent&p.eeeFound != 0 }

// eeePartner is what the registers tell of the partner after a negotiation.
func (p *phy) eeePartner() LinkModes {
	if p.partner.NoEEE || !p.cfg.EEE {
		return 0
	}
	m := p.partner.Modes & modesEEE
	if !p.can(Mode2500Full) {
		m &^= Mode2500Full
	}
	return m
}

// readPCS reads MMD 3. Of its control register the bits of MMD 1 show too.
func (p *phy) readPCS(reg uint16) (v uint16) {
	able, able2 := eeeBits(p.eeeAble())
	switch reg {
	case c45Control:
		v = p.control & bmcrPowerDown
		if p.inReset() {
			v |= bmcrReset
		}
	case c45Status:
		v = p.lpi | p.lpiSeen | pmaLowPower
		p.lpiSeen = p.lpi << pcsLPILatched
		if p.up != 0 {
			v |= bmsrLink
		}
	case pcsEEEAble:
		v = able
	case pcsEEEAble2:
		v = able2
	default:
		v = p.common(reg)
	}
	return v
}

// signal takes note of LPI on the way to the cable or from it.
func (p *phy) signal(bit uint16, on bool) {
	if !on {
		p.lpi &^= bit
		return
	}
	p.lpi |= bit
	p.lpiSeen |= bit << pcsLPILatched
}

// readEEE reads the registers of EEE in MMD 7.
func (p *phy) readEEE(reg uint16) (v uint16) {
	adv, adv2 := eeeBits(p.eeeAdv)
	lp, lp2 := eeeBits(p.eeeFound)
	switch reg {
	case anEEEAdvertise:
		return adv
	case anEEEPartner:
		return lp
	case anEEEAdvertise2:
		return adv2
	case anEEEPartner2:
		return lp2
	}
	return 0
}

// writeEEE writes one of the advertisements; it counts from the next negotiation on.
func (p *phy) writeEEE(reg, v uint16) {
	first, second := eeeBits(p.eeeAdv)
	if reg == anEEEAdvertise {
		first = v
	} else {
		second = v
	}
	p.eeeAdv = eeeModes(first, second) & p.eeeAble()
}

// readMMD and writeMMD are accesses to register 14.
func (p *phy) readMMD() (v uint16) {
	dev := uint32(p.mmdCtl & mmdDevice)
	if p.mmdCtl&mmdFunction == mmdAddress {
		return p.mmd[dev]
	}
	v = p.read45(dev, p.mmd[dev])
	if p.mmdCtl&mmdFunction == mmdIncrement {
		p.mmd[dev]++
	}
	return v
}

func (p *phy) writeMMD(v uint16, now time.Duration) {
	dev := uint32(p.mmdCtl & mmdDevice)
	if p.mmdCtl&mmdFunction == mmdAddress {
		p.mmd[dev] = v
		return
	}
	p.write45(dev, p.mmd[dev], v, now)
	if p.mmdCtl&mmdFunction >= mmdIncrement {
		p.mmd[dev]++
	}
}
