package gmac4reg

import "github.com/gostmmac/gostmmac/mmio"

// Offsets of layer 3 and layer 4 filter 0; those of filter n lie n times
// [L3L4Stride] behind. Databook: MAC registers. An IPv4 source address is that of
// MAC_Layer3_Addr0, a destination address that of MAC_Layer3_Addr1; an IPv6 address
// takes all four, its last 32 bits first.
const (
	MACL3L4Control   mmio.Reg[L3L4Control] = 0x0900
	MACLayer4Address mmio.Reg[Layer4Ports] = 0x0904
	MACLayer3Addr    mmio.Reg[uint32]      = 0x0910 // four of them
)

// L3L4Stride is the distance of two filters, and MaxL3L4 how many filters the
// register map has room for.
const (
	L3L4Stride = 0x30
	MaxL3L4    = 8
)

// L3L4Control is the value of MAC_L3_L4_Controlx.
type L3L4Control uint32

// Bits of MAC_L3_L4_Controlx.
const (
	L3PEN  L3L4Control = 1 << 0  // the addresses are of IPv6, not IPv4
	L3SAM  L3L4Control = 1 << 2  // match the source address
	L3SAIM L3L4Control = 1 << 3  // inverse
	L3DAM  L3L4Control = 1 << 4  // match the destination address
	L3DAIM L3L4Control = 1 << 5  // inverse
	L4PEN  L3L4Control = 1 << 16 // the ports are of UDP, not TCP
	L4SPM  L3L4Control = 1 << 18 // match the source port
	L4SPIM L3L4Control = 1 << 19 // inverse
	L4DPM  L3L4Control = 1 << 20 // match the destination port
	L4DPIM L3L4Control = 1 << 21 // inverse

	// Low bits of an IPv4 address that are not compared; of an IPv6 address their
	// number is L3HSBM with the two low bits of L3HDBM above it.
	L3HSBM mmio.Field[L3L4Control] = 0x1f << 6
	L3HDBM mmio.Field[L3L4Control] = 0x1f << 11
)

// Layer4Ports is the value of MAC_Layer4_Addressx.
type Layer4Ports uint32

// Fields of MAC_Layer4_Addressx.
const (
	L4SP mmio.Field[Layer4Ports] = 0xffff << 0
	L4DP mmio.Field[Layer4Ports] = 0xffff << 16
)

// DNTU of MAC_Packet_Filter drops IP packets that are neither TCP nor UDP.
const DNTU PacketFilter = 1 << 21

// Bits of RDES2 of the layer 3 and layer 4 filters.
const (
	L3FM RDES2 = 1 << 27
	L4FM RDES2 = 1 << 28

	L3L4FM mmio.Field[RDES2] = 0x7 << 29 // number of the filter, with L3FM or L4FM
)
