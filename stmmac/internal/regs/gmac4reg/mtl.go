package gmac4reg

import "github.com/gostmmac/gostmmac/mmio"

// Offsets from the base of the CSR space. Databook: MTL registers.
const (
	MTLOperationMode   mmio.Reg[MTLMode] = 0x0c00
	MTLInterruptStatus mmio.Reg[uint32]  = 0x0c20 // one bit per queue
	MTLRxQDMAMap0      mmio.Reg[uint32]  = 0x0c30 // queues 0 to 3, eight bits each
	MTLRxQDMAMap1      mmio.Reg[uint32]  = 0x0c34 // queues 4 to 7
)

// MTLMode is the value of MTL_Operation_Mode.
type MTLMode uint32

// Bits of MTL_Operation_Mode.
const (
	RAA MTLMode = 1 << 2 // receive arbitration: 0 strict priority, 1 weighted

	SCHALG mmio.Field[MTLMode] = 0x3 << 5
)

// Values of SCHALG.
const (
	SCHALGWRR  = 0
	SCHALGWFQ  = 1
	SCHALGDWRR = 2
	SCHALGSP   = 3
)

// Offsets from the base of an MTL queue (MTL_TxQx and MTL_RxQx).
const (
	MTLTxQOperationMode  mmio.Reg[MTLTxQMode]      = 0x00
	MTLTxQUnderflow      mmio.Reg[uint32]          = 0x04 // read-clear
	MTLTxQDebug          mmio.Reg[MTLTxQDbg]       = 0x08
	MTLTxQETSControl     mmio.Reg[uint32]          = 0x10
	MTLTxQQuantumWeight  mmio.Reg[uint32]          = 0x18
	MTLQInterruptCtrl    mmio.Reg[MTLQInterrupt]   = 0x2c
	MTLRxQOperationMode  mmio.Reg[MTLRxQMode]      = 0x30
	MTLRxQMissedOverflow mmio.Reg[MTLRxQMissedOvf] = 0x34 // read-clear
	MTLRxQDebug          mmio.Reg[MTLRxQDbg]       = 0x38
)

// MTLTxQMode is the value of MTL_TxQx_Operation_Mode.
type MTLTxQMode uint32

// Bits of MTL_TxQx_Operation_Mode.
const (
	FTQ MTLTxQMode = 1 << 0 // flush the transmit queue, self-clearing
	TSF MTLTxQMode = 1 << 1 // store and forward

	TXQEN mmio.Field[MTLTxQMode] = 0x3 << 2
	TTC   mmio.Field[MTLTxQMode] = 0x7 << 4    // threshold: 32, 64, 96, 128, 192, 256, 384, 512
	TQS   mmio.Field[MTLTxQMode] = 0x1ff << 16 // bytes/256 - 1
)

// TXQENEnabled is the value of TXQEN for a queue of generic traffic.
const TXQENEnabled = 2

// MTLTxQDbg is the value of MTL_TxQx_Debug.
type MTLTxQDbg uint32

// Bits of MTL_TxQx_Debug.
const (
	TXQPAUSED MTLTxQDbg = 1 << 0
	TWCSTS    MTLTxQDbg = 1 << 3
	TXQSTS    MTLTxQDbg = 1 << 4 // queue is not empty
	TXSTSFSTS MTLTxQDbg = 1 << 5

	TRCSTS mmio.Field[MTLTxQDbg] = 0x3 << 1
)

// MTLQInterrupt is the value of MTL_Qx_Interrupt_Control_Status.
type MTLQInterrupt uint32

// Bits of MTL_Qx_Interrupt_Control_Status.
const (
	TXUNFIS MTLQInterrupt = 1 << 0 // W1C
	TXUIE   MTLQInterrupt = 1 << 8
	RXOVFIS MTLQInterrupt = 1 << 16 // W1C
	RXOIE   MTLQInterrupt = 1 << 24
)

// MTLRxQMode is the value of MTL_RxQx_Operation_Mode.
type MTLRxQMode uint32

// Bits of MTL_RxQx_Operation_Mode.
const (
	FUP      MTLRxQMode = 1 << 3 // forward undersized good packets
	FEP      MTLRxQMode = 1 << 4 // forward error packets
	RSF      MTLRxQMode = 1 << 5 // store and forward
	DISTCPEF MTLRxQMode = 1 << 6 // do not drop frames with a TCP/IP checksum error
	EHFC     MTLRxQMode = 1 << 7 // hardware flow control

	RTC mmio.Field[MTLRxQMode] = 0x3 << 0    // threshold: 64, 32, 96, 128
	RFA mmio.Field[MTLRxQMode] = 0x3f << 8   // pause at full - 1 KiB - 512·code
	RFD mmio.Field[MTLRxQMode] = 0x3f << 14  // resume at full - 1 KiB - 512·code
	RQS mmio.Field[MTLRxQMode] = 0x3ff << 20 // bytes/256 - 1
)

// MTLRxQMissedOvf is the value of MTL_RxQx_Missed_Packet_Overflow_Cnt.
type MTLRxQMissedOvf uint32

// Fields of MTL_RxQx_Missed_Packet_Overflow_Cnt.
const (
	OVFCNTOVF MTLRxQMissedOvf = 1 << 11
	MISCNTOVF MTLRxQMissedOvf = 1 << 27

	OVFPKTCNT mmio.Field[MTLRxQMissedOvf] = 0x7ff << 0
	MISPKTCNT mmio.Field[MTLRxQMissedOvf] = 0x7ff << 16
)

// MTLRxQDbg is the value of MTL_RxQx_Debug.
type MTLRxQDbg uint32

// Fields of MTL_RxQx_Debug.
const (
	RXQSTS mmio.Field[MTLRxQDbg] = 0x3 << 4 // fill level, 0 is empty
	PRXQ   mmio.Field[MTLRxQDbg] = 0x3fff << 16
)
