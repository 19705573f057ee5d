package sim

import "time"

// noAnswer is what a read finds when nobody drives the bus, which is pulled up.
const noAnswer = 0xffff

// bmsrPoweredDown is the BMSR that a powered down PHY gave in the field: the link up
// (case D58).
const bmsrPoweredDown = 0x780d

// answers says whether the PHY takes part in a management frame.
func (p *phy) answers(c45 bool) bool {
	if p.held() {
		return false
	}
	return p.cfg.Clause == PHYBoth || (p.cfg.Clause == PHYClause45) == c45
}

// read22 reads a register of clause 22. Registers that are not there read as 0.
func (p *phy) read22(reg uint32) (v uint16) {
	switch reg {
	case regBMCR:
		v = p.control
		if p.inReset() {
			v |= bmcrReset
		}
	case regBMSR:
		return p.bmsr()
	case regPHYID1:
		v = uint16(p.cfg.ID >> 16)
	case regPHYID2:
		v = uint16(p.cfg.ID)
	case regANAR:
		v = p.anar
	case regANLPAR:
		v = p.partnerPage()
	case regANER:
		if p.able {
			v |= anerPartnerAble
			if p.found&(modesGigabit|Mode2500Full) != 0 {
				v |= anerPartnerNext
			}
		}
		if p.can(modesGigabit | Mode2500Full) {
			v |= anerNextAble
		}
		if p.pageC22 {
			v |= anerPage
			p.pageC22 = false
		}
	case regMSCR:
		v = p.mscr
	case regMSSR:
		if !p.can(modesGigabit) {
			return 0
		}
		if p.found&Mode1000Full != 0 {
			v |= msPartnerFD
		}
		if p.found&Mode1000Half != 0 {
			v |= msPartnerHD
		}
		if p.up&modesGigabit != 0 {
			v |= msLocalOK | msRemoteOK
		}
	case regMMDControl:
		v = p.mmdCtl
	case regMMDData:
		if p.cfg.EEE {
			v = p.readMMD()
		}
	case regESR:
		if p.can(Mode1000Full) {
			v |= esrFull
		}
		if p.can(Mode1000Half) {
			v |= esrHalf
		}
	}
	return v
}

// bmsr reads the status register: the link bit stays 0 from a failure of the link to
// the next read (22.2.4.2.13).
func (p *phy) bmsr() uint16 {
	if p.faults.LinkInPowerDown && p.control&bmcrPowerDown != 0 {
		return bmsrPoweredDown
	}
	v := uint16(bmsrNoPreamble | bmsrANAble | bmsrExtended)
	for _, b := range [...]struct {
		mode LinkModes
		bit  uint16
	}{
		{Mode10Half, bmsr10Half}, {Mode10Full, bmsr10Full}, {Mode100Half, bmsr100Half}, {Mode100Full, bmsr100Full},
		{modesGigabit, bmsrExtStatus},
	} {
		if p.can(b.mode) {
			v |= b.bit
		}
	}
	if p.complete {
		v |= bmsrComplete
	}
	if p.linked(&p.failedBMSR) {
		v |= bmsrLink
	}
	return v
}

// linked is a latched link bit, and its read. A failure that lasts sets the latch
// again.
func (p *phy) linked(failed *bool) bool {
	ok := p.up != 0 && !*failed
	*failed = p.up == 0
	return ok
}

// partnerPage is the base page of the partner, or what parallel detection found.
func (p *phy) partnerPage() uint16 {
	v := basePage(p.found)
	if p.able {
		v |= anIEEE8023 | anAck
		if p.found&(modesGigabit|Mode2500Full) != 0 {
			v |= anNextPage
		}
	}
	return v
}

// write22 writes a register of clause 22. A PHY in reset takes no writes.
func (p *phy) write22(reg uint32, v uint16, now time.Duration) {
	if p.inReset() {
		return
	}
	switch reg {
	case regBMCR:
		p.setControl(v, now)
	case regANAR:
		p.setAdvertisement(v)
	case regMMDControl:
		if p.cfg.EEE {
			p.mmdCtl = v & (mmdFunction | mmdDevice)
		}
	case regMMDData:
		if p.cfg.EEE {
			p.writeMMD(v, now)
		}
	case regMSCR:
		if p.can(modesGigabit) {
			p.mscr = v & (msManual | gigabitBits(p.cfg.Modes))
		}
	}
}

// setAdvertisement is a store to ANAR or 7.16.
func (p *phy) setAdvertisement(v uint16) {
	p.anar = v & (anSelector | anFault | basePage(p.cfg.Modes|modesPause))
}
