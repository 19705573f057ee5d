package gmacreg

import "github.com/gostmmac/gostmmac/mmio"

// Offsets from the base of the CSR space. Databook: GMAC registers.
const (
	MACConfiguration mmio.Reg[Configuration] = 0x0000
	MACFrameFilter   mmio.Reg[FrameFilter]   = 0x0004
	HashTableHigh    mmio.Reg[uint32]        = 0x0008 // bins 32 to 63
	HashTableLow     mmio.Reg[uint32]        = 0x000c // bins 0 to 31
	GMIIAddress      mmio.Reg[MIIAddress]    = 0x0010
	GMIIData         mmio.Reg[uint32]        = 0x0014
	FlowControl      mmio.Reg[Flow]          = 0x0018
	VLANTagReg       mmio.Reg[VLANTag]       = 0x001c
	VersionReg       mmio.Reg[Version]       = 0x0020
	DebugReg         mmio.Reg[Debug]         = 0x0024
	PMTControlStatus mmio.Reg[uint32]        = 0x002c
	LPIControlStatus mmio.Reg[uint32]        = 0x0030
	LPITimersControl mmio.Reg[uint32]        = 0x0034
	InterruptStatus  mmio.Reg[MACInterrupt]  = 0x0038
	InterruptMask    mmio.Reg[MACInterrupt]  = 0x003c // 1 masks
	MACAddressHigh   mmio.Reg[AddressHigh]   = 0x0040 // pairs 0 to 15, stride AddressStride
	MACAddressLow    mmio.Reg[uint32]        = 0x0044 // pairs 0 to 15, stride AddressStride
	ANControl        mmio.Reg[uint32]        = 0x00c0
	ANStatus         mmio.Reg[uint32]        = 0x00c4
	SGMIIRGMIIStatus mmio.Reg[uint32]        = 0x00d8
	HashTableReg     mmio.Reg[uint32]        = 0x0500 // 128 and 256 bins, stride 4
	TimestampStatus  mmio.Reg[uint32]        = 0x0728
	MACAddress16High mmio.Reg[AddressHigh]   = 0x0800 // pairs from 16 on, stride AddressStride
	MACAddress16Low  mmio.Reg[uint32]        = 0x0804 // pairs from 16 on, stride AddressStride
)

// The MAC address register pairs: AddressStride is the distance of two,
// AddressBlock how many lie in the first block, AddressCount how many the
// register map has room for.
const (
	AddressStride = 8
	AddressBlock  = 16
	AddressCount  = 32
)

// HashWords is the largest number of words of the hash table at HashTableReg.
const HashWords = 8

// AddressAt returns the register pair of MAC address i, from 0.
func AddressAt(i int) (high mmio.Reg[AddressHigh], low mmio.Reg[uint32]) {
	if i < AddressBlock {
		return MACAddressHigh.At(i, AddressStride), MACAddressLow.At(i, AddressStride)
	}
	return MACAddress16High.At(i-AddressBlock, AddressStride), MACAddress16Low.At(i-AddressBlock, AddressStride)
}

// Configuration is the value of MAC_Configuration.
type Configuration uint32

// Bits of MAC_Configuration.
const (
	RE     Configuration = 1 << 2  // receiver enable
	TE     Configuration = 1 << 3  // transmitter enable
	DC     Configuration = 1 << 4  // deferral check
	ACS    Configuration = 1 << 7  // automatic pad and FCS stripping of length frames
	LUD    Configuration = 1 << 8  // link up, on RGMII, SGMII and SMII
	DR     Configuration = 1 << 9  // disable retry, half duplex
	IPC    Configuration = 1 << 10 // receive checksum offload
	DM     Configuration = 1 << 11 // full duplex
	LM     Configuration = 1 << 12 // loopback mode
	DO     Configuration = 1 << 13 // disable receive own, half duplex
	FES    Configuration = 1 << 14 // 100 Mbit/s, with PS
	PS     Configuration = 1 << 15 // port select: 10 and 100 Mbit/s
	DCRS   Configuration = 1 << 16 // disable carrier sense during transmission
	JE     Configuration = 1 << 20 // jumbo frame enable
	BE     Configuration = 1 << 21 // frame burst enable, half duplex
	JD     Configuration = 1 << 22 // jabber disable
	WD     Configuration = 1 << 23 // receive watchdog disable
	TC     Configuration = 1 << 24 // transmit configuration to the PHY, on RGMII, SGMII and SMII
	CST    Configuration = 1 << 25 // FCS stripping of type frames
	SFTERR Configuration = 1 << 26 // SMII force transmit error
	TWOKPE Configuration = 1 << 27 // 2KPE: frames of 2,000 bytes are not giants

	BL   mmio.Field[Configuration] = 0x3 << 5 // back-off limit
	IFG  mmio.Field[Configuration] = 0x7 << 17
	SARC mmio.Field[Configuration] = 0x7 << 28

	// SpeedMask are the bits that select the speed: 1000 Mbit/s is none of
	// them, 100 both and 10 PS.
	SpeedMask = PS | FES
)

// FrameFilter is the value of MAC_Frame_Filter.
type FrameFilter uint32

// Bits of MAC_Frame_Filter.
const (
	PR   FrameFilter = 1 << 0  // promiscuous
	HUC  FrameFilter = 1 << 1  // hash unicast
	HMC  FrameFilter = 1 << 2  // hash multicast
	DAIF FrameFilter = 1 << 3  // destination address inverse filtering
	PM   FrameFilter = 1 << 4  // pass all multicast
	DBF  FrameFilter = 1 << 5  // disable broadcast
	SAIF FrameFilter = 1 << 8  // source address inverse filtering
	SAF  FrameFilter = 1 << 9  // source address filter
	HPF  FrameFilter = 1 << 10 // hash or perfect
	VTFE FrameFilter = 1 << 16
	IPFE FrameFilter = 1 << 20
	RA   FrameFilter = 1 << 31 // receive all

	PCF mmio.Field[FrameFilter] = 0x3 << 6 // control frames
)

// MIIAddress is the value of GMII_Address.
type MIIAddress uint32

// Bits of GMII_Address.
const (
	GB MIIAddress = 1 << 0 // busy; setting it starts the transaction
	GW MIIAddress = 1 << 1 // write

	CR mmio.Field[MIIAddress] = 0xf << 2 // divider of the CSR clock
	GR mmio.Field[MIIAddress] = 0x1f << 6
	PA mmio.Field[MIIAddress] = 0x1f << 11
)

// Flow is the value of Flow_Control.
type Flow uint32

// Bits of Flow_Control.
const (
	FCBBPA Flow = 1 << 0 // send one PAUSE; clears itself. Half duplex: back pressure
	TFE    Flow = 1 << 1
	RFE    Flow = 1 << 2
	UP     Flow = 1 << 3 // take PAUSE for MAC address 0 too
	DZPQ   Flow = 1 << 7 // no PAUSE of time 0 at the end

	PLT mmio.Field[Flow] = 0x3 << 4     // repeat 4, 28, 144 or 256 slots before the end
	PT  mmio.Field[Flow] = 0xffff << 16 // pause time, slots of 512 bit times
)

// VLANTag is the value of VLAN_Tag.
type VLANTag uint32

// Bits of VLAN_Tag.
const (
	ETV  VLANTag = 1 << 16 // compare the 12 bits of the VID only
	VTIM VLANTag = 1 << 17 // inverse match
	ESVL VLANTag = 1 << 18 // 0x88a8 is a VLAN tag too
	VTHM VLANTag = 1 << 19 // hash filter

	VL mmio.Field[VLANTag] = 0xffff << 0
)

// Version is the value of Version.
type Version uint32

// Fields of Version.
const (
	SNPSVER mmio.Field[Version] = 0xff << 0 // 0x37 is 3.70
	USERVER mmio.Field[Version] = 0xff << 8
)

// Debug is the value of Debug.
type Debug uint32

// Bits of Debug.
const (
	RPESTS    Debug = 1 << 0  // the receive protocol engine is active
	RWCSTS    Debug = 1 << 4  // the FIFO is being written to
	TPESTS    Debug = 1 << 16 // the transmit protocol engine is active
	TXPAUSED  Debug = 1 << 19
	TWCSTS    Debug = 1 << 22
	TXFSTS    Debug = 1 << 24 // the transmit FIFO is not empty
	TXSTSFSTS Debug = 1 << 25 // the transmit status FIFO is full

	RFCFCSTS mmio.Field[Debug] = 0x3 << 1
	RRCSTS   mmio.Field[Debug] = 0x3 << 5
	RXFSTS   mmio.Field[Debug] = 0x3 << 8 // fill level of the receive FIFO; 0: empty
	TFCSTS   mmio.Field[Debug] = 0x3 << 17
	TRCSTS   mmio.Field[Debug] = 0x3 << 20
)

// MACInterrupt is the value of Interrupt_Status and Interrupt_Mask.
type MACInterrupt uint32

// Bits of Interrupt_Status; the mask has those without MMC.
const (
	RGSMIIIS  MACInterrupt = 1 << 0
	PCSLCHGIS MACInterrupt = 1 << 1
	PCSANCIS  MACInterrupt = 1 << 2
	PMTIS     MACInterrupt = 1 << 3
	MMCIS     MACInterrupt = 1 << 4
	MMCRXIS   MACInterrupt = 1 << 5
	MMCTXIS   MACInterrupt = 1 << 6
	MMCRXIPIS MACInterrupt = 1 << 7
	TSIS      MACInterrupt = 1 << 9
	LPIIS     MACInterrupt = 1 << 10

	// MACInterruptMaskAll masks all that can be masked.
	MACInterruptMaskAll = RGSMIIIS | PCSLCHGIS | PCSANCIS | PMTIS | TSIS | LPIIS
)

// AddressHigh is the value of MAC_Addressx_High. Without AE and MBC the pair
// does not filter; AE of pair 0 reads 1 always.
type AddressHigh uint32

// Bits of MAC_Addressx_High.
const (
	AE AddressHigh = 1 << 31 // address enable
	SA AddressHigh = 1 << 30 // compare with the source address

	ADDRHI mmio.Field[AddressHigh] = 0xffff << 0
	MBC    mmio.Field[AddressHigh] = 0x3f << 24 // bytes that are not compared
)
