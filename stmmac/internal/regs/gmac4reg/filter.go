package gmac4reg

import "github.com/gostmmac/gostmmac/mmio"

// Offsets from the base of the CSR space. Databook: MAC registers.
const (
	MACWatchdogTimeout mmio.Reg[WatchdogTimeout] = 0x000c
	DMADebugStatus1    mmio.Reg[uint32]          = 0x1010
)

// Counts that the map of MAC_HW_Feature0 and 1 allows.
const (
	HashWords            = 8  // MAC_Hash_Table_Reg0 to 7
	MaxAdditional        = 31 // largest value of ADDMACADRSEL
	ExtGPSL       uint32 = 0x3fff
)

// WatchdogTimeout is the value of MAC_Watchdog_Timeout.
type WatchdogTimeout uint32

// Bits of MAC_Watchdog_Timeout.
const (
	PWE WatchdogTimeout = 1 << 8 // the length below replaces 2,048 and 10,240

	WTO mmio.Field[WatchdogTimeout] = 0xf << 0 // KiB - 2; 14 is 16,383 bytes
)

// VLANTag is the value of MAC_VLAN_Tag.
type VLANTag uint32

// Bits of MAC_VLAN_Tag (MAC_VLAN_Tag_Ctrl).
const (
	ETV    VLANTag = 1 << 16 // compare the 12 bits of the VID only
	VTIM   VLANTag = 1 << 17 // inverse match
	ESVL   VLANTag = 1 << 18 // 0x88a8 is a VLAN tag too
	EVLRXS VLANTag = 1 << 24 // tag in RDES0
	EDVLP  VLANTag = 1 << 26 // double VLAN processing

	VL   mmio.Field[VLANTag] = 0xffff << 0
	EVLS mmio.Field[VLANTag] = 0x3 << 21
)

// RxWatchdog is the value of DMA_CHx_Rx_Interrupt_Watchdog_Timer.
type RxWatchdog uint32

// Fields of DMA_CHx_Rx_Interrupt_Watchdog_Timer.
const (
	RWTF mmio.Field[RxWatchdog] = 0xff << 0 // count, in units of RWTU
	RWTU mmio.Field[RxWatchdog] = 0x3 << 16 // 256 << code CSR clocks; 5.00 and later
)

// MTLRxQMap is the part of MTL_RxQ_DMA_Map0 or 1 that belongs to one queue,
// shifted down to bit 0.
type MTLRxQMap uint32

// Bits of MTLRxQMap.
const (
	RxQDynamic MTLRxQMap = 1 << 4 // RXQxDADMACH: DCS of the matching address decides

	RxQChannel mmio.Field[MTLRxQMap] = 0x7 << 0 // MDMACH
)

// MTL_ETS and context bits of a transmit descriptor, word 3.
const (
	TxTCMSSV TDES3 = 1 << 26 // context: MSS valid
	TxVLTV   TDES3 = 1 << 16 // context: VLAN tag valid
)
