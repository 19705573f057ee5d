package sim

// Registers of clause 22 (IEEE 802.3 table 22-6) and their bits.
const (
	regBMCR   = 0
	regBMSR   = 1
	regPHYID1 = 2
	regPHYID2 = 3
	regANAR   = 4
	regANLPAR = 5
	regANER   = 6
	regMSCR   = 9  // 1000BASE-T control
	regMSSR   = 10 // 1000BASE-T status
	regESR    = 15 // extended status

	bmcrReset     = 1 << 15
	bmcrLoopback  = 1 << 14
	bmcrSpeedLow  = 1 << 13
	bmcrAN        = 1 << 12
	bmcrPowerDown = 1 << 11
	bmcrIsolate   = 1 << 10
	bmcrRestart   = 1 << 9
	bmcrDuplex    = 1 << 8
	bmcrColTest   = 1 << 7
	bmcrSpeedHigh = 1 << 6

	bmsr100Full    = 1 << 14
	bmsr100Half    = 1 << 13
	bmsr10Full     = 1 << 12
	bmsr10Half     = 1 << 11
	bmsrExtStatus  = 1 << 8
	bmsrNoPreamble = 1 << 6
	bmsrComplete   = 1 << 5
	bmsrANAble     = 1 << 3
	bmsrLink       = 1 << 2
	bmsrExtended   = 1 << 0

	// ANAR, ANLPAR and the registers of clause 45 with the same layout (28.2.4.1).
	anSelector = 0x1f
	anIEEE8023 = 1 // selector
	an10Half   = 1 << 5
	an10Full   = 1 << 6
	an100Half  = 1 << 7
	an100Full  = 1 << 8
	anPause    = 1 << 10
	anAsym     = 1 << 11
	anFault    = 1 << 13
	anAck      = 1 << 14
	anNextPage = 1 << 15

	anerPartnerAble = 1 << 0
	anerPage        = 1 << 1
	anerNextAble    = 1 << 2
	anerPartnerNext = 1 << 3

	msFull      = 1 << 9 // advertised, in MSCR
	msHalf      = 1 << 8
	msManual    = 0xfc00 // test mode, manual master and slave, port type
	msLocalOK   = 1 << 13
	msRemoteOK  = 1 << 12
	msPartnerFD = 1 << 11
	msPartnerHD = 1 << 10
	esrFull     = 1 << 13
	esrHalf     = 1 << 12
)

// Registers of clause 45 (45.2.1 and 45.2.7) and their bits.
const (
	mmdPMA = 1
	mmdAN  = 7

	// In every MMD.
	c45Control = 0
	c45Status  = 1
	c45ID1     = 2
	c45ID2     = 3
	c45Speed   = 4
	c45Devs1   = 5
	c45Devs2   = 6

	pmaStatus2   = 8
	pmaExtAble   = 11
	pmaMultiAble = 21 // 2.5G and 5G extended ability

	anAdvertise    = 16
	anPartner      = 19
	anMultiControl = 32 // MultiGBASE-T control, 10GBASE-T once
	anMultiStatus  = 33

	pmaLoopback  = 1 << 0
	pmaSpeedExt  = 0xf << 2
	pmaExt2500   = 6 << 2
	pmaLowPower  = 1 << 1 // ability, in 1.1
	pmaPresent   = 2 << 14
	pmaHasExt    = 1 << 9
	pmaCan2500   = 1 << 13 // in 1.4
	pmaCan10     = 1 << 6
	pmaCan100    = 1 << 5
	pmaCan1000   = 1 << 4
	pmaExtMulti  = 1 << 14 // in 1.11
	pmaExt10     = 1 << 8
	pmaExt100    = 1 << 7
	pmaExt1000   = 1 << 5
	pmaMulti2500 = 1 << 0

	an45Page    = 1 << 6
	an45Able    = 1 << 0
	multi2500   = 1 << 7
	multiLP2500 = 1 << 5
)
