package gmac4reg

import "github.com/gostmmac/gostmmac/mmio"

// Offsets of MMC registers that depend on what a configuration has. Databook:
// MMC registers. All counters are 32 bits wide.
const (
	MMCIPCInterrupt       mmio.Reg[uint32] = 0x0808
	MMCFPETxInterrupt     mmio.Reg[uint32] = 0x08a0
	MMCFPETxInterruptMask mmio.Reg[uint32] = 0x08a4
	MMCFPERxInterrupt     mmio.Reg[uint32] = 0x08c0
	MMCFPERxInterruptMask mmio.Reg[uint32] = 0x08c4
)

// The counters of collisions count only where half duplex is possible.
const (
	TxSingleCollisionGoodPackets   uint32 = 0x074c
	TxMultipleCollisionGoodPackets uint32 = 0x0750
	TxDeferredPackets              uint32 = 0x0754
	TxLateCollisionPackets         uint32 = 0x0758
	TxExcessiveCollisionPackets    uint32 = 0x075c
	TxExcessiveDeferralError       uint32 = 0x076c
)

// The counters of low power idle are there with EEE.
const (
	TxLPIUSEC uint32 = 0x07ec
	TxLPITran uint32 = 0x07f0
	RxLPIUSEC uint32 = 0x07f4
	RxLPITran uint32 = 0x07f8
)

// The counters of the receive checksum engine are there with it. They count
// packets, then the octets of their payloads.
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
	RxIPv4GoodOctets                 uint32 = 0x0850
	RxIPv4HeaderErrorOctets          uint32 = 0x0854
	RxIPv4NoPayloadOctets            uint32 = 0x0858
	RxIPv4FragmentedOctets           uint32 = 0x085c
	RxIPv4UDPChecksumDisableOctets   uint32 = 0x0860
	RxIPv6GoodOctets                 uint32 = 0x0864
	RxIPv6HeaderErrorOctets          uint32 = 0x0868
	RxIPv6NoPayloadOctets            uint32 = 0x086c
	RxUDPGoodOctets                  uint32 = 0x0870
	RxUDPErrorOctets                 uint32 = 0x0874
	RxTCPGoodOctets                  uint32 = 0x0878
	RxTCPErrorOctets                 uint32 = 0x087c
	RxICMPGoodOctets                 uint32 = 0x0880
	RxICMPErrorOctets                uint32 = 0x0884
)

// The counters of frame preemption are there with it.
const (
	TxFPEFragment       uint32 = 0x08a8
	TxHoldReq           uint32 = 0x08ac
	RxPacketAssemblyErr uint32 = 0x08c8
	RxPacketSMDErr      uint32 = 0x08cc
	RxPacketAssemblyOK  uint32 = 0x08d0
	RxFPEFragment       uint32 = 0x08d4
)
