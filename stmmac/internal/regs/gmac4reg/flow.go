package gmac4reg

import "github.com/gostmmac/gostmmac/mmio"

// Offsets from the base of the CSR space. Databook: MAC registers, the last one MTL
// registers, from the base of a queue.
const (
	MACRxQCtrl4    mmio.Reg[RxQCtrl4]   = 0x0094
	MACTxQPrtyMap0 mmio.Reg[uint32]     = 0x0098 // queues 0 to 3, eight bits each
	MACTxQPrtyMap1 mmio.Reg[uint32]     = 0x009c // queues 4 to 7
	MTLRxQControl  mmio.Reg[RxQControl] = 0x003c
)

// Bits of MAC_Qx_Tx_Flow_Ctrl beside PT and TFE.
const (
	FCBBPA TxFlow = 1 << 0 // send one PAUSE; clears itself. Half duplex: back pressure
	DZPQ   TxFlow = 1 << 7 // no PAUSE of time 0 at the end

	PLT mmio.Field[TxFlow] = 0x7 << 4 // repeat 4, 28, 36, 144, 256 or 512 slots before the end
)

// UP is the bit of MAC_Rx_Flow_Ctrl that takes PAUSE for MAC address 0 too.
const UP RxFlow = 1 << 1

// TPQC is the field of MAC_RxQ_Ctrl1 for tagged PTP packets: with 1 they go to PTPQ.
const TPQC mmio.Field[RxQCtrl1] = 0x3 << 22

// RxQCtrl4 is the value of MAC_RxQ_Ctrl4: queues of packets that failed a filter.
type RxQCtrl4 uint32

// Bits of MAC_RxQ_Ctrl4.
const (
	UFFQE RxQCtrl4 = 1 << 0 // unicast
	MFFQE RxQCtrl4 = 1 << 8 // multicast
	VFFQE RxQCtrl4 = 1 << 16

	UFFQ mmio.Field[RxQCtrl4] = 0x7 << 1
	MFFQ mmio.Field[RxQCtrl4] = 0x7 << 9
	VFFQ mmio.Field[RxQCtrl4] = 0x7 << 17
)

// RxQControl is the value of MTL_RxQx_Control.
type RxQControl uint32

// Bits of MTL_RxQx_Control.
const (
	RXQFRMARBIT RxQControl = 1 << 3 // RXQ_FRM_ARBIT: arbitrate by packet

	RXQWEGT mmio.Field[RxQControl] = 0x7 << 0 // requests in an arbitration cycle
)

// ISCQW is the field of MTL_TxQx_Quantum_Weight: packets with WRR, bytes with DWRR,
// and with WFQ the factor of a packet's length, so that the larger number gets less.
const ISCQW mmio.Field[uint32] = 0x1fffff << 0

// Largest values of ISCQW.
const (
	MaxWeightWRR   = 0x64
	MaxWeightWFQ   = 0x3fff
	MaxQuantumDWRR = 0x1312d0
)

// DR is the bit of MAC_Configuration that gives a packet up at its first collision
// in half duplex.
const DR Configuration = 1 << 8

// Offsets of the MMC counters of half duplex.
const (
	TxSingleCollisionGoodPackets   uint32 = 0x074c
	TxMultipleCollisionGoodPackets uint32 = 0x0750
	TxDeferredPackets              uint32 = 0x0754
	TxLateCollisionPackets         uint32 = 0x0758
	TxExcessiveCollisionPackets    uint32 = 0x075c
	TxExcessiveDeferralError       uint32 = 0x076c
)
