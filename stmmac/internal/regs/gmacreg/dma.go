package gmacreg

import "github.com/gostmmac/gostmmac/mmio"

// Offsets from the base of the CSR space, for DMA channel 0. Databook: DMA
// registers.
const (
	BusModeReg          mmio.Reg[BusMode]   = 0x1000
	TransmitPollDemand  mmio.Reg[uint32]    = 0x1004 // any write
	ReceivePollDemand   mmio.Reg[uint32]    = 0x1008 // any write
	ReceiveListAddress  mmio.Reg[uint32]    = 0x100c
	TransmitListAddress mmio.Reg[uint32]    = 0x1010
	StatusReg           mmio.Reg[Status]    = 0x1014
	OperationModeReg    mmio.Reg[Operation] = 0x1018
	InterruptEnable     mmio.Reg[Interrupt] = 0x101c
	MissedFrame         mmio.Reg[Missed]    = 0x1020 // read-clear
	ReceiveWatchdog     mmio.Reg[Watchdog]  = 0x1024 // 3.50 and later
	AXIBusMode          mmio.Reg[AXIMode]   = 0x1028
	AHBAXIStatus        mmio.Reg[uint32]    = 0x102c
	CurrentTxDescriptor mmio.Reg[uint32]    = 0x1048
	CurrentRxDescriptor mmio.Reg[uint32]    = 0x104c
	CurrentTxBuffer     mmio.Reg[uint32]    = 0x1050
	CurrentRxBuffer     mmio.Reg[uint32]    = 0x1054
	HWFeatureReg        mmio.Reg[HWFeature] = 0x1058 // 0: the device has no such register
)

// BusMode is the value of Bus_Mode.
type BusMode uint32

// Bits of Bus_Mode.
const (
	SWR   BusMode = 1 << 0  // software reset, self-clearing
	DA    BusMode = 1 << 1  // receive has priority over transmit
	ATDS  BusMode = 1 << 7  // descriptors of 32 bytes, with enhanced ones
	FB    BusMode = 1 << 16 // fixed burst
	USP   BusMode = 1 << 23 // RPBL counts for the receive DMA
	PBLX8 BusMode = 1 << 24 // PBL and RPBL times eight; times four before 3.50
	AAL   BusMode = 1 << 25 // address-aligned beats
	MB    BusMode = 1 << 26 // mixed burst
	TXPR  BusMode = 1 << 27

	DSL  mmio.Field[BusMode] = 0x1f << 2 // bus words skipped between descriptors of a ring
	PBL  mmio.Field[BusMode] = 0x3f << 8
	PRIO mmio.Field[BusMode] = 0x3 << 14 // PR
	RPBL mmio.Field[BusMode] = 0x3f << 17
)

// Status is the value of Status. Bits 0 to 16 are write-1-to-clear.
type Status uint32

// Bits of Status.
const (
	TI  Status = 1 << 0
	TPS Status = 1 << 1 // transmit process stopped
	TU  Status = 1 << 2 // transmit buffer unavailable
	TJT Status = 1 << 3 // transmit jabber timeout
	OVF Status = 1 << 4 // receive overflow
	UNF Status = 1 << 5 // transmit underflow
	RI  Status = 1 << 6
	RU  Status = 1 << 7 // receive buffer unavailable
	RPS Status = 1 << 8 // receive process stopped
	RWT Status = 1 << 9
	ETI Status = 1 << 10
	FBI Status = 1 << 13 // fatal bus error
	ERI Status = 1 << 14
	AIS Status = 1 << 15
	NIS Status = 1 << 16
	GLI Status = 1 << 26
	GMI Status = 1 << 27
	GPI Status = 1 << 28
	TTI Status = 1 << 29

	RS mmio.Field[Status] = 0x7 << 17 // receive process state
	TS mmio.Field[Status] = 0x7 << 20 // transmit process state
	EB mmio.Field[Status] = 0x7 << 23 // error bits of FBI

	// StatusW1C are the bits that a write of 1 clears.
	StatusW1C Status = 0x1ffff &^ (0x3 << 11)
	// StatusNormal and StatusAbnormal are the causes of NIS and of AIS.
	StatusNormal   = TI | TU | RI | ERI
	StatusAbnormal = TPS | TJT | OVF | UNF | RU | RPS | RWT | ETI | FBI
)

// Receive process states, RS.
const (
	RSStopped   = 0
	RSFetch     = 1
	RSWait      = 3 // for a frame
	RSSuspended = 4 // no descriptor
	RSClose     = 5
	RSTransfer  = 7
)

// Transmit process states, TS.
const (
	TSStopped   = 0
	TSFetch     = 1
	TSWait      = 2 // for status
	TSRead      = 3
	TSTimestamp = 4
	TSSuspended = 6 // no descriptor, or underflow
	TSClose     = 7
)

// Operation is the value of Operation_Mode.
type Operation uint32

// Bits of Operation_Mode.
const (
	SR   Operation = 1 << 1 // start receive
	OSF  Operation = 1 << 2 // operate on second frame
	FUF  Operation = 1 << 6 // forward undersized good frames
	FEF  Operation = 1 << 7 // forward error frames
	EFC  Operation = 1 << 8 // flow control by the level of the FIFO
	ST   Operation = 1 << 13
	FTF  Operation = 1 << 20 // flush the transmit FIFO, self-clearing
	TSF  Operation = 1 << 21 // transmit store and forward
	RFD2 Operation = 1 << 22
	RFA2 Operation = 1 << 23
	DFF  Operation = 1 << 24 // keep received frames that no descriptor waits for
	RSF  Operation = 1 << 25 // receive store and forward
	DT   Operation = 1 << 26 // keep frames of which only a checksum is bad

	RTC mmio.Field[Operation] = 0x3 << 3  // 0: 64, 1: 32, 2: 96, 3: 128 bytes
	RFA mmio.Field[Operation] = 0x3 << 9  // lower two bits; RFA2 is the third
	RFD mmio.Field[Operation] = 0x3 << 11 // lower two bits; RFD2 is the third
	TTC mmio.Field[Operation] = 0x7 << 14 // 0: 64, 1: 128, 2: 192, 3: 256, 4: 40, 5: 32, 6: 24, 7: 16 bytes
)

// Largest codes of the flow control thresholds: code c is 1 KiB times (c+1)
// below the end of the FIFO.
const MaxThreshold = 6

// RFAOf and RFDOf place a threshold code, 0 to MaxThreshold.
func RFAOf(code uint32) Operation {
	return RFA.Of(code&3) | Operation(code>>2&1)*RFA2
}

// RFDOf is RFAOf for the threshold that ends a pause.
func RFDOf(code uint32) Operation {
	return RFD.Of(code&3) | Operation(code>>2&1)*RFD2
}

// RFAFrom and RFDFrom take the threshold codes out of a value.
func RFAFrom(v Operation) uint32 { return RFA.Get(v) | uint32(v&RFA2/RFA2)<<2 }

// RFDFrom is RFAFrom for the threshold that ends a pause.
func RFDFrom(v Operation) uint32 { return RFD.Get(v) | uint32(v&RFD2/RFD2)<<2 }

// Interrupt is the value of Interrupt_Enable: the bits of Status.
type Interrupt uint32

// Bits of Interrupt_Enable.
const (
	TIE Interrupt = 1 << 0
	TSE Interrupt = 1 << 1
	TUE Interrupt = 1 << 2
	TJE Interrupt = 1 << 3
	OVE Interrupt = 1 << 4
	UNE Interrupt = 1 << 5
	RIE Interrupt = 1 << 6
	RUE Interrupt = 1 << 7
	RSE Interrupt = 1 << 8
	RWE Interrupt = 1 << 9
	ETE Interrupt = 1 << 10
	FBE Interrupt = 1 << 13
	ERE Interrupt = 1 << 14
	AIE Interrupt = 1 << 15
	NIE Interrupt = 1 << 16
)

// Missed is the value of Missed_Frame_And_Buffer_Overflow_Counter.
type Missed uint32

// Fields of Missed_Frame_And_Buffer_Overflow_Counter.
const (
	MISCNTOVF Missed = 1 << 16
	OVFCNTOVF Missed = 1 << 28

	MISFRMCNT mmio.Field[Missed] = 0xffff << 0 // no descriptor
	OVFFRMCNT mmio.Field[Missed] = 0x7ff << 17 // no room in the FIFO
)

// Watchdog is the value of Receive_Interrupt_Watchdog_Timer.
type Watchdog uint32

// RIWT is the field of Receive_Interrupt_Watchdog_Timer, in units of 256 CSR clocks.
const RIWT mmio.Field[Watchdog] = 0xff << 0

// AXIMode is the value of AXI_Bus_Mode.
type AXIMode uint32

// Bits of AXI_Bus_Mode.
const (
	UNDEF    AXIMode = 1 << 0 // bursts of any length
	BLEN4    AXIMode = 1 << 1
	BLEN8    AXIMode = 1 << 2
	BLEN16   AXIMode = 1 << 3
	BLEN32   AXIMode = 1 << 4
	BLEN64   AXIMode = 1 << 5
	BLEN128  AXIMode = 1 << 6
	BLEN256  AXIMode = 1 << 7
	AXIAAL   AXIMode = 1 << 12 // as Bus_Mode.AAL, read-only
	ONEKBBE  AXIMode = 1 << 13 // no burst crosses 1 KiB
	LPIXITFR AXIMode = 1 << 30
	ENLPI    AXIMode = 1 << 31

	RDOSRLMT mmio.Field[AXIMode] = 0xf << 16 // outstanding reads - 1
	WROSRLMT mmio.Field[AXIMode] = 0xf << 20 // outstanding writes - 1
)

// HWFeature is the value of HW_Feature.
type HWFeature uint32

// Bits of HW_Feature.
const (
	MIISEL     HWFeature = 1 << 0
	GMIISEL    HWFeature = 1 << 1
	HDSEL      HWFeature = 1 << 2
	EXTHASHEN  HWFeature = 1 << 3 // more than 64 bins
	HASHSEL    HWFeature = 1 << 4
	ADDMACADR  HWFeature = 1 << 5 // more than one MAC address
	PCSSEL     HWFeature = 1 << 6
	L3L4FLTREN HWFeature = 1 << 7
	SMASEL     HWFeature = 1 << 8
	RWKSEL     HWFeature = 1 << 9
	MGKSEL     HWFeature = 1 << 10
	MMCSEL     HWFeature = 1 << 11
	TSVER1SEL  HWFeature = 1 << 12
	TSVER2SEL  HWFeature = 1 << 13
	EEESEL     HWFeature = 1 << 14
	AVSEL      HWFeature = 1 << 15
	TXCOESEL   HWFeature = 1 << 16
	RXTYP1COE  HWFeature = 1 << 17
	RXTYP2COE  HWFeature = 1 << 18
	RXFIFOSIZE HWFeature = 1 << 19 // more than 2,048 bytes
	ENHDESSEL  HWFeature = 1 << 24
	INTTSEN    HWFeature = 1 << 25
	FLEXIPPSEN HWFeature = 1 << 26
	SAVLANINS  HWFeature = 1 << 27

	RXCHCNT   mmio.Field[HWFeature] = 0x3 << 20 // additional channels
	TXCHCNT   mmio.Field[HWFeature] = 0x3 << 22 // additional channels
	ACTPHYSEL mmio.Field[HWFeature] = 0x7 << 28
)
