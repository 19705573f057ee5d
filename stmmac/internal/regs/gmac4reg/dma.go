package gmac4reg

import (
	"github.com/gostmmac/gostmmac/mmio"
	"github.com/gostmmac/gostmmac/stmmac/internal/regs"
)

// Offsets from the base of the CSR space. Databook: DMA registers.
const (
	DMAMode            mmio.Reg[DMAModeVal]   = 0x1000
	DMASysBusMode      mmio.Reg[SysBusMode]   = 0x1004
	DMAInterruptStatus mmio.Reg[DMAInterrupt] = 0x1008
	DMADebugStatus0    mmio.Reg[uint32]       = 0x100c // channels 0 to 2 from bit 8
	DMADebugStatus2    mmio.Reg[uint32]       = 0x1014 // channel 7
	DMATBSControl      mmio.Reg[TBSControl]   = 0x1050
)

// DMAModeVal is the value of DMA_Mode.
type DMAModeVal uint32

// Bits of DMA_Mode.
const (
	SWR  DMAModeVal = 1 << 0  // software reset, self-clearing
	DCHE DMAModeVal = 1 << 19 // descriptor cache enable, 5.20

	INTM mmio.Field[DMAModeVal] = 0x3 << 16
)

// SysBusMode is the value of DMA_SysBus_Mode.
type SysBusMode uint32

// Bits of DMA_SysBus_Mode.
const (
	FB      SysBusMode = 1 << 0 // fixed burst
	BLEN4   SysBusMode = 1 << 1
	BLEN8   SysBusMode = 1 << 2
	BLEN16  SysBusMode = 1 << 3
	BLEN32  SysBusMode = 1 << 4
	BLEN64  SysBusMode = 1 << 5
	BLEN128 SysBusMode = 1 << 6
	BLEN256 SysBusMode = 1 << 7
	EAME    SysBusMode = 1 << 11 // enhanced address mode: more than 32 bits
	AAL     SysBusMode = 1 << 12 // address-aligned beats
	MB      SysBusMode = 1 << 14 // mixed burst
	LPIXIT  SysBusMode = 1 << 30
	ENLPI   SysBusMode = 1 << 31

	RDOSRLMT mmio.Field[SysBusMode] = 0xf << 16 // outstanding reads - 1
	WROSRLMT mmio.Field[SysBusMode] = 0xf << 24 // outstanding writes - 1
)

// DMAInterrupt is the value of DMA_Interrupt_Status: bit c for channel c.
type DMAInterrupt uint32

// Bits of DMA_Interrupt_Status beside the channels.
const (
	MTLIS DMAInterrupt = 1 << 16
	MACIS DMAInterrupt = 1 << 17
)

// TBSControl is the value of DMA_TBS_CTRL: how long before its launch time a packet is
// fetched. Sources: databook and Linux's dwmac4_dma.h.
type TBSControl uint32

// Bits of DMA_TBS_CTRL.
const (
	FTOV TBSControl = 1 << 0 // FTOS is valid

	FGOS mmio.Field[TBSControl] = 0x7 << 4      // slots of the gate control list
	FTOS mmio.Field[TBSControl] = 0xffffff << 8 // units of 256 ns
)

// Offsets from the base of a DMA channel (DMA_CHx). Databook: DMA channel
// registers.
const (
	DMACHControl           mmio.Reg[CHControl]   = 0x00
	DMACHTxControl         mmio.Reg[CHTxControl] = 0x04
	DMACHRxControl         mmio.Reg[CHRxControl] = 0x08
	DMACHTxDescListHAddr   mmio.Reg[uint32]      = 0x10
	DMACHTxDescListAddr    mmio.Reg[uint32]      = 0x14
	DMACHRxDescListHAddr   mmio.Reg[uint32]      = 0x18
	DMACHRxDescListAddr    mmio.Reg[uint32]      = 0x1c
	DMACHTxDescTailPointer mmio.Reg[uint32]      = 0x20
	DMACHRxDescTailPointer mmio.Reg[uint32]      = 0x28
	DMACHTxDescRingLength  mmio.Reg[uint32]      = 0x2c // descriptors - 1
	DMACHRxDescRingLength  mmio.Reg[uint32]      = 0x30 // descriptors - 1
	DMACHInterruptEnable   mmio.Reg[CHInterrupt] = 0x34
	DMACHRxWatchdogTimer   mmio.Reg[uint32]      = 0x38 // units of 256 CSR clocks
	DMACHSlotFunction      mmio.Reg[uint32]      = 0x3c
	DMACHCurAppTxDesc      mmio.Reg[uint32]      = 0x44
	DMACHCurAppRxDesc      mmio.Reg[uint32]      = 0x4c
	DMACHCurAppTxBufferH   mmio.Reg[uint32]      = 0x50
	DMACHCurAppTxBuffer    mmio.Reg[uint32]      = 0x54
	DMACHCurAppRxBufferH   mmio.Reg[uint32]      = 0x58
	DMACHCurAppRxBuffer    mmio.Reg[uint32]      = 0x5c
	DMACHStatus            mmio.Reg[CHStatus]    = 0x60
	DMACHMissFrameCnt      mmio.Reg[CHMiss]      = 0x64 // read-clear
)

// CHMiss is the value of DMA_CHx_Miss_Frame_Cnt.
type CHMiss uint32

// Fields of DMA_CHx_Miss_Frame_Cnt.
const (
	MFCO CHMiss = 1 << 15 // the counter overflowed

	MFC mmio.Field[CHMiss] = 0x7ff << 0
)

// CHControl is the value of DMA_CHx_Control.
type CHControl uint32

// Bits of DMA_CHx_Control.
const (
	PBLx8 CHControl = 1 << 16
	SPH   CHControl = 1 << 24

	DSL mmio.Field[CHControl] = 0x7 << 18 // bus words skipped between descriptors
)

// CHTxControl is the value of DMA_CHx_Tx_Control.
type CHTxControl uint32

// Bits of DMA_CHx_Tx_Control.
const (
	ST   CHTxControl = 1 << 0  // start
	OSP  CHTxControl = 1 << 4  // operate on second packet
	TSE  CHTxControl = 1 << 12 // TCP segmentation
	EDSE CHTxControl = 1 << 28 // enhanced descriptors

	TXPBL mmio.Field[CHTxControl] = 0x3f << 16
)

// CHRxControl is the value of DMA_CHx_Rx_Control.
type CHRxControl uint32

// Bits of DMA_CHx_Rx_Control.
const (
	SR  CHRxControl = 1 << 0 // start
	RPF CHRxControl = 1 << 31

	RBSZ  mmio.Field[CHRxControl] = 0x3fff << 1 // bytes
	RXPBL mmio.Field[CHRxControl] = 0x3f << 16
)

// CHInterrupt is the value of DMA_CHx_Interrupt_Enable.
type CHInterrupt uint32

// Bits of DMA_CHx_Interrupt_Enable. AIE and NIE stand one bit higher in 4.00.
const (
	TIE  CHInterrupt = 1 << 0
	TXSE CHInterrupt = 1 << 1
	TBUE CHInterrupt = 1 << 2
	RIE  CHInterrupt = 1 << 6
	RBUE CHInterrupt = 1 << 7
	RSE  CHInterrupt = 1 << 8
	RWTE CHInterrupt = 1 << 9
	ETIE CHInterrupt = 1 << 10
	ERIE CHInterrupt = 1 << 11
	FBEE CHInterrupt = 1 << 12
	CDEE CHInterrupt = 1 << 13

	AIE    CHInterrupt = 1 << 14
	NIE    CHInterrupt = 1 << 15
	AIE400 CHInterrupt = 1 << 15
	NIE400 CHInterrupt = 1 << 16
)

// CHStatus is the value of DMA_CHx_Status. All bits up to NIS are
// write-1-to-clear.
type CHStatus uint32

// Bits of DMA_CHx_Status.
const (
	TI  CHStatus = 1 << 0
	TPS CHStatus = 1 << 1 // transmit process stopped
	TBU CHStatus = 1 << 2 // transmit buffer unavailable
	RI  CHStatus = 1 << 6
	RBU CHStatus = 1 << 7 // receive buffer unavailable
	RPS CHStatus = 1 << 8 // receive process stopped
	RWT CHStatus = 1 << 9
	ETI CHStatus = 1 << 10
	ERI CHStatus = 1 << 11
	FBE CHStatus = 1 << 12 // fatal bus error
	CDE CHStatus = 1 << 13 // context descriptor error
	AIS CHStatus = 1 << 14
	NIS CHStatus = 1 << 15

	TEB mmio.Field[CHStatus] = 0x7 << 16
	REB mmio.Field[CHStatus] = 0x7 << 19

	// StatusW1C are the bits that a write of 1 clears.
	StatusW1C CHStatus = 0xffff &^ (0x7 << 3)
)

// Layout says where the per-channel and per-queue registers lie.
type Layout = regs.Layout

// DefaultLayout is the layout of the databook.
var DefaultLayout = Layout{DMABase: 0x1100, DMAStride: 0x80, MTLBase: 0x0d00, MTLStride: 0x40}
