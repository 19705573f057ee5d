package gmac4reg

import "github.com/gostmmac/gostmmac/mmio"

// Offsets from the base of the CSR space. Databook: MAC registers.
const (
	MACConfiguration    mmio.Reg[Configuration] = 0x0000
	MACExtConfiguration mmio.Reg[uint32]        = 0x0004
	MACPacketFilter     mmio.Reg[PacketFilter]  = 0x0008
	MACHashTable        mmio.Reg[uint32]        = 0x0010 // 2, 4 or 8 words
	MACVLANTag          mmio.Reg[uint32]        = 0x0050
	MACVLANHash         mmio.Reg[uint32]        = 0x0058
	MACQxTxFlow         mmio.Reg[TxFlow]        = 0x0070 // one word per queue
	MACRxFlow           mmio.Reg[RxFlow]        = 0x0090
	MACRxQCtrl0         mmio.Reg[uint32]        = 0x00a0 // two bits per queue
	MACRxQCtrl1         mmio.Reg[RxQCtrl1]      = 0x00a4
	MACRxQCtrl2         mmio.Reg[uint32]        = 0x00a8
	MACRxQCtrl3         mmio.Reg[uint32]        = 0x00ac
	MACInterruptStatus  mmio.Reg[MACInterrupt]  = 0x00b0
	MACInterruptEnable  mmio.Reg[MACInterrupt]  = 0x00b4
	MAC1USTicCounter    mmio.Reg[uint32]        = 0x00dc
	MACPHYIFCtrlStatus  mmio.Reg[uint32]        = 0x00f8
	MACVersion          mmio.Reg[Version]       = 0x0110
	MACDebug            mmio.Reg[Debug]         = 0x0114
	MACHWFeature0       mmio.Reg[HWFeature0]    = 0x011c
	MACHWFeature1       mmio.Reg[HWFeature1]    = 0x0120
	MACHWFeature2       mmio.Reg[HWFeature2]    = 0x0124
	MACHWFeature3       mmio.Reg[HWFeature3]    = 0x0128
	MACMDIOAddress      mmio.Reg[uint32]        = 0x0200
	MACMDIOData         mmio.Reg[uint32]        = 0x0204
	MACARPAddress       mmio.Reg[uint32]        = 0x0210 // IPv4, first byte highest
	MACAddressHigh      mmio.Reg[AddressHigh]   = 0x0300 // stride AddressStride
	MACAddressLow       mmio.Reg[uint32]        = 0x0304 // stride AddressStride
)

// AddressStride is the distance of two MAC address register pairs, and
// AddressCount how many pairs the register map has room for.
const (
	AddressStride = 8
	AddressCount  = 128
)

// Offsets of the MMC block. Databook: MMC registers.
const (
	MMCControl          mmio.Reg[MMCCtrl] = 0x0700
	MMCRxInterrupt      mmio.Reg[uint32]  = 0x0704
	MMCTxInterrupt      mmio.Reg[uint32]  = 0x0708
	MMCRxInterruptMask  mmio.Reg[uint32]  = 0x070c
	MMCTxInterruptMask  mmio.Reg[uint32]  = 0x0710
	MMCIPCInterruptMask mmio.Reg[uint32]  = 0x0800
)

// MMCCtrl is the value of MMC_Control.
type MMCCtrl uint32

// Bits of MMC_Control.
const (
	MMCCntRst      MMCCtrl = 1 << 0 // CNTRST
	MMCCntStopRO   MMCCtrl = 1 << 1 // CNTSTOPRO
	MMCRstOnRd     MMCCtrl = 1 << 2 // RSTONRD
	MMCCntFreez    MMCCtrl = 1 << 3 // CNTFREEZ
	MMCCntPrst     MMCCtrl = 1 << 4 // CNTPRST
	MMCCntPrstLvl  MMCCtrl = 1 << 5 // CNTPRSTLVL
	MMCControlInit         = MMCCntRst | MMCRstOnRd | MMCCntPrst | MMCCntPrstLvl
)

// Configuration is the value of MAC_Configuration.
type Configuration uint32

// Bits of MAC_Configuration.
const (
	RE     Configuration = 1 << 0  // receiver enable
	TE     Configuration = 1 << 1  // transmitter enable
	DCRS   Configuration = 1 << 9  // disable carrier sense during transmission
	LM     Configuration = 1 << 12 // loopback mode
	DM     Configuration = 1 << 13 // full duplex
	FES    Configuration = 1 << 14 // speed, with PS
	PS     Configuration = 1 << 15 // port select: 10 and 100 Mbit/s
	JE     Configuration = 1 << 16 // jumbo packet enable
	JD     Configuration = 1 << 17 // jabber disable
	BE     Configuration = 1 << 18 // packet burst enable
	WD     Configuration = 1 << 19 // receive watchdog disable
	ACS    Configuration = 1 << 20 // automatic pad and FCS stripping of length frames
	CST    Configuration = 1 << 21 // FCS stripping of type frames
	S2KP   Configuration = 1 << 22 // frames of 2,000 bytes are not giants
	GPSLCE Configuration = 1 << 23
	IPC    Configuration = 1 << 27 // receive checksum offload
	ARPEN  Configuration = 1 << 31 // ARP offload

	IPG  mmio.Field[Configuration] = 0x7 << 24
	SARC mmio.Field[Configuration] = 0x7 << 28

	// SpeedMask are the bits that select the speed: 1000 Mbit/s is none of
	// them, 2500 FES, 100 both and 10 PS.
	SpeedMask = PS | FES
)

// PacketFilter is the value of MAC_Packet_Filter.
type PacketFilter uint32

// Bits of MAC_Packet_Filter.
const (
	PR   PacketFilter = 1 << 0  // promiscuous
	HUC  PacketFilter = 1 << 1  // hash unicast
	HMC  PacketFilter = 1 << 2  // hash multicast
	DAIF PacketFilter = 1 << 3  // destination address inverse filtering
	PM   PacketFilter = 1 << 4  // pass all multicast
	DBF  PacketFilter = 1 << 5  // disable broadcast
	SAIF PacketFilter = 1 << 8  // source address inverse filtering
	SAF  PacketFilter = 1 << 9  // source address filter
	HPF  PacketFilter = 1 << 10 // hash or perfect
	VTFE PacketFilter = 1 << 16
	IPFE PacketFilter = 1 << 20
	RA   PacketFilter = 1 << 31 // receive all

	PCF mmio.Field[PacketFilter] = 0x3 << 6 // control packets
)

// TxFlow is the value of MAC_Qx_Tx_Flow_Ctrl.
type TxFlow uint32

// Bits of MAC_Qx_Tx_Flow_Ctrl.
const (
	TFE TxFlow = 1 << 1

	PT mmio.Field[TxFlow] = 0xffff << 16 // pause time, slots of 512 bit times
)

// RxFlow is the value of MAC_Rx_Flow_Ctrl.
type RxFlow uint32

// Bits of MAC_Rx_Flow_Ctrl.
const RFE RxFlow = 1 << 0

// Values of the two bits per queue in MAC_RxQ_Ctrl0.
const (
	RxQDisabled = 0
	RxQAV       = 1
	RxQDCB      = 2 // DCB or generic traffic
)

// RxQCtrl1 is the value of MAC_RxQ_Ctrl1.
type RxQCtrl1 uint32

// Bits of MAC_RxQ_Ctrl1.
const (
	MCBCQEN RxQCtrl1 = 1 << 20
	TACPQE  RxQCtrl1 = 1 << 21

	AVCPQ  mmio.Field[RxQCtrl1] = 0x7 << 0
	PTPQ   mmio.Field[RxQCtrl1] = 0x7 << 4
	DCBCPQ mmio.Field[RxQCtrl1] = 0x7 << 8
	UPQ    mmio.Field[RxQCtrl1] = 0x7 << 12
	MCBCQ  mmio.Field[RxQCtrl1] = 0x7 << 16
)

// MACInterrupt is the value of MAC_Interrupt_Status and MAC_Interrupt_Enable.
type MACInterrupt uint32

// Bits of MAC_Interrupt_Status.
const (
	RGSMIIIS  MACInterrupt = 1 << 0
	PCSLCHGIS MACInterrupt = 1 << 1
	PCSANCIS  MACInterrupt = 1 << 2
	PHYIS     MACInterrupt = 1 << 3
	PMTIS     MACInterrupt = 1 << 4
	LPIIS     MACInterrupt = 1 << 5
	MMCIS     MACInterrupt = 1 << 8
	MMCRXIS   MACInterrupt = 1 << 9
	MMCTXIS   MACInterrupt = 1 << 10
	MMCRXIPIS MACInterrupt = 1 << 11
	TSIS      MACInterrupt = 1 << 12
)

// Debug is the value of MAC_Debug.
type Debug uint32

// Bits of MAC_Debug.
const (
	RPESTS Debug = 1 << 0  // a frame is being received
	TPESTS Debug = 1 << 16 // a frame is being sent
)

// Version is the value of MAC_Version.
type Version uint32

// Fields of MAC_Version.
const (
	SNPSVER mmio.Field[Version] = 0xff << 0 // 0x40 is 4.00, 0x52 is 5.20
	USERVER mmio.Field[Version] = 0xff << 8
)

// AddressHigh is the value of MAC_Addressx_High. The pair takes effect when
// the low register is written.
type AddressHigh uint32

// Bits of MAC_Addressx_High.
const (
	AE AddressHigh = 1 << 31
	SA AddressHigh = 1 << 30

	MBC    mmio.Field[AddressHigh] = 0x3f << 24
	DCS    mmio.Field[AddressHigh] = 0x7 << 16 // DMA channel select
	ADDRHI mmio.Field[AddressHigh] = 0xffff << 0
)
