package gmac4reg

import "github.com/gostmmac/gostmmac/mmio"

// MMCIPCInterrupt has a bit for each counter of the receive checksum engine; like
// its mask it is part of the MMC block. Databook: MMC registers.
const MMCIPCInterrupt mmio.Reg[uint32] = 0x0808

// Offsets of the MMC counters of the receive checksum engine. Each counter of
// packets has one of octets IPCOctets behind it.
const (
	RxIPv4GoodPackets                uint32 = 0x0810
	RxIPv4HeaderErrorPackets         uint32 = 0x0814
	RxIPv4NoPayloadPackets           uint32 = 0x0818
	RxIPv4FragmentedPackets          uint32 = 0x081c
	RxIPv4UDPChecksumDisabledPackets uint32 = 0x0820
	RxIPv6GoodPackets                uint32 = 0x0824
	RxIPv6HeaderErrorPackets         uint32 = 0x0828
	RxIPv6NoPayloadPackets           uint32 = 0x082c
	RxUDPGoodPackets                 uint32 = 0x0830
	RxUDPErrorPackets                uint32 = 0x0834
	RxTCPGoodPackets                 uint32 = 0x0838
	RxTCPErrorPackets                uint32 = 0x083c
	RxICMPGoodPackets                uint32 = 0x0840
	RxICMPErrorPackets               uint32 = 0x0844

	IPCOctets uint32 = 0x40
)

// IPCCount is how many counters of packets there are, and of octets.
const IPCCount = 14

// MMCIPCFirst is the counter of bit 0 of MMC_IPC_Rx_Interrupt; the counter of bit n
// lies n words behind.
const MMCIPCFirst = RxIPv4GoodPackets

// Values of PT.
const (
	PTUnknown = 0
	PTUDP     = 1
	PTTCP     = 2
	PTICMP    = 3
)

// Values of CIC.
const (
	CICNone    = 0
	CICHeader  = 1 // IPv4 header
	CICPayload = 2 // and payload, on the pseudo header's sum in the field
	CICFull    = 3 // and payload with its pseudo header
)
