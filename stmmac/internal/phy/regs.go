package phy

import "fmt"

// Registers of clause 22, with the clause of IEEE 802.3 that defines each.
const (
	regBMCR   = 0  // control, 22.2.4.1
	regBMSR   = 1  // status, 22.2.4.2
	regPHYID1 = 2  // identifier, 22.2.4.3.1
	regPHYID2 = 3  // identifier, 22.2.4.3.1
	regANAR   = 4  // auto-negotiation advertisement, 28.2.4.1.3
	regANLPAR = 5  // link partner ability, 28.2.4.1.4
	regANER   = 6  // auto-negotiation expansion, 28.2.4.1.5
	regGBCR   = 9  // MASTER-SLAVE control, 40.5.1.1
	regGBSR   = 10 // MASTER-SLAVE status, 40.5.1.1
	regESR    = 15 // extended status, 22.2.4.4
)

var regNames = map[int]string{
	regBMCR: "BMCR", regBMSR: "BMSR", regPHYID1: "PHYID1", regPHYID2: "PHYID2", regANAR: "ANAR",
	regANLPAR: "ANLPAR", regANER: "ANER", regGBCR: "GBCR", regGBSR: "GBSR", regESR: "ESR",
}

// Control register.
const (
	bmcrReset    = 1 << 15 // self-clearing within 0.5 s
	bmcrLoopback = 1 << 14
	bmcrSpeed100 = 1 << 13 // speed selection, low bit
	bmcrANEnable = 1 << 12
	bmcrPowerOff = 1 << 11
	bmcrIsolate  = 1 << 10
	bmcrRestart  = 1 << 9 // restart auto-negotiation, self-clearing
	bmcrFull     = 1 << 8
	bmcrSpeed1G  = 1 << 6 // speed selection, high bit
)

// Status register.
const (
	bmsr100Full  = 1 << 14
	bmsr100Half  = 1 << 13
	bmsr10Full   = 1 << 12
	bmsr10Half   = 1 << 11
	bmsrExtended = 1 << 8 // there is an extended status register
	bmsrComplete = 1 << 5 // auto-negotiation complete
	bmsrANAble   = 1 << 3
	bmsrLink     = 1 << 2 // latches low
)

// Advertisement and link partner ability, annex 28B. Registers 7.16 and 7.19
// of clause 45 have the same bits.
const (
	anSelector = 1 // IEEE 802.3
	an10Half   = 1 << 5
	an10Full   = 1 << 6
	an100Half  = 1 << 7
	an100Full  = 1 << 8
	anPause    = 1 << 10
	anAsymDir  = 1 << 11
	anNextExt  = 1 << 12 // extended next pages
	anAck      = 1 << 14 // in the partner's word only
	anNextPage = 1 << 15
)

// Expansion register.
const anerPartnerAN = 1 << 0 // the partner negotiates

// MASTER-SLAVE control and status.
const (
	gbcrHalf     = 1 << 8
	gbcrFull     = 1 << 9
	gbcrRole     = 7 << 10 // port type, and role if configured by hand
	gbsrHalf     = 1 << 10
	gbsrFull     = 1 << 11
	gbsrRoleFail = 1 << 15 // MASTER-SLAVE configuration fault, latches high, clears by reading
)

// Extended status.
const (
	esr1000Half = 1 << 12
	esr1000Full = 1 << 13
)

// MDIO manageable devices of clause 45, table 45-1.
const (
	devPMA     = 1
	devPCS     = 3
	devAN      = 7
	devVendor1 = 30
)

// Registers of clause 45.
const (
	regCtrl1   = 0  // control 1: PMA 45.2.1.1, AN 45.2.7.1
	regStat1   = 1  // status 1: PMA 45.2.1.2, AN 45.2.7.2
	regDevID1  = 2  // device identifier, 45.2.1.3
	regDevID2  = 3  // device identifier, 45.2.1.3
	regDevs1   = 5  // devices in package, 45.2.1.5
	regDevs2   = 6  // devices in package, 45.2.1.5
	regExtAble = 11 // PMA/PMD extended ability, 45.2.1.10
	regANAdv   = 16 // AN advertisement, 45.2.7.6
	regANLP    = 19 // AN LP base page ability, 45.2.7.7
	regNBTAble = 21 // 2.5G/5G PMA/PMD extended ability, 45.2.1.19
	regNBTCtrl = 32 // MultiGBASE-T AN control 1, 45.2.7.10
	regNBTStat = 33 // MultiGBASE-T AN status 1, 45.2.7.11
)

// Bits of registers of clause 45. Reset and the enable and restart of
// negotiation lie where those of the control register of clause 22 do.
const (
	pmaLowPower = 1 << 11
	pmaLink     = 1 << 2 // latches low

	extNBT   = 1 << 14 // register 21 exists
	ext10T   = 1 << 8
	ext100TX = 1 << 7

	nbtAble2500 = 1 << 0

	anStatComplete  = 1 << 5
	anStatAble      = 1 << 3
	anStatPartnerAN = 1 << 0

	nbtCtrl10G  = 1 << 12
	nbtCtrl5G   = 1 << 8
	nbtCtrl2500 = 1 << 7

	nbtStatRoleFail = 1 << 15 // latches high
	nbtStat2500     = 1 << 5
)

// Bits of the devices in package.
const devsClause22 = 1 << 0 // registers of clause 22 are there

func reg45Name(dev, reg int) string { return fmt.Sprintf("register %d.%d", dev, reg) }
