package regcheck

// Registers of the MAC.
const (
	macConfig  = 0x0000
	macGMIIAdr = 0x0010
	macGMIIDat = 0x0014
	macVersion = 0x0020
	macLPITime = 0x0034
	macAddr0Hi = 0x0040
	macAddr0Lo = 0x0044
	ptpControl = 0x0700
)

// Registers of the DMA.
const (
	dmaBusMode   = 0x1000
	dmaTxPoll    = 0x1004
	dmaRxBase    = 0x100c
	dmaTxBase    = 0x1010
	dmaStatus    = 0x1014
	dmaOperation = 0x1018
	dmaIntEnable = 0x101c
	hwFeature    = 0x1058
)

// Bits of macConfig.
const (
	configRE = 1 << 2
	configTE = 1 << 3
	configDM = 1 << 11 // full duplex
)

// Bits of dmaBusMode.
const busSWR = 1 << 0

// Bits of dmaStatus and dmaIntEnable.
const (
	intTI  = 1 << 0  // transmitted, of a descriptor with IC
	intTU  = 1 << 2  // transmit buffer unavailable
	intRI  = 1 << 6  // received
	intRU  = 1 << 7  // receive buffer unavailable
	intAIS = 1 << 15 // summary of the abnormal ones
	intNIS = 1 << 16 // summary of the normal ones
)

// Bits of dmaOperation.
const (
	opSR  = 1 << 1
	opST  = 1 << 13
	opTSF = 1 << 21 // store and forward
	opRSF = 1 << 25
)

// Bits of macGMIIAdr; the register is in bits 10:6, the PHY in 15:11.
const (
	gmiiBusy  = 1 << 0
	gmiiWrite = 1 << 1
	gmiiClock = 4 << 2 // CSR clock / 102
)

// Normal descriptors: four words, of which the third and the fourth are addresses.
const (
	descOwn = 1 << 31 // word 0

	rxFS  = 1 << 9 // word 0; the length of the frame is in bits 29:16
	rxLS  = 1 << 8
	rxES  = 1 << 15
	rxRER = 1 << 25 // word 1: end of ring
	rxRCH = 1 << 24 // word 3 is the next descriptor

	txIC  = 1 << 31 // word 1: interrupt when done
	txLS  = 1 << 30
	txFS  = 1 << 29
	txCIC = 3 << 27 // checksums of IP header, TCP and UDP, with the pseudo header
	txTER = 1 << 25
	txTCH = 1 << 24
)

// maxBuffer is the largest size of a buffer that is a multiple of 64: sizes have
// eleven bits.
const maxBuffer = 1984
