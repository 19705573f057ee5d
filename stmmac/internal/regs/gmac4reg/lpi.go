package gmac4reg

import "github.com/gostmmac/gostmmac/mmio"

// Offsets of the registers of Energy Efficient Ethernet. Databook: MAC registers. Times
// are counted in ticks of MAC_1US_Tic_Counter.
const (
	MACLPIControlStatus mmio.Reg[LPIControl] = 0x00d0
	MACLPITimersControl mmio.Reg[LPITimers]  = 0x00d4
	MACLPIEntryTimer    mmio.Reg[uint32]     = 0x00d8 // µs, in steps of 8
)

// LPIEntryMask are the writable bits of MAC_LPI_Entry_Timer.
const LPIEntryMask = 0xffff8

// LPIControl is the value of MAC_LPI_Control_Status.
type LPIControl uint32

// Bits of MAC_LPI_Control_Status. A read clears the first four.
const (
	TLPIEN  LPIControl = 1 << 0  // the transmitter entered LPI
	TLPIEX  LPIControl = 1 << 1  // it left LPI, and may send again
	RLPIEN  LPIControl = 1 << 2  // the receiver entered LPI
	RLPIEX  LPIControl = 1 << 3  // it left LPI
	TLPIST  LPIControl = 1 << 8  // the transmitter is in LPI
	RLPIST  LPIControl = 1 << 9  // the receiver is in LPI
	LPIEN   LPIControl = 1 << 16 // enter LPI
	PLS     LPIControl = 1 << 17 // the link is up
	LPITXA  LPIControl = 1 << 19 // when nothing is left to send, and out of it for a frame
	LPIATE  LPIControl = 1 << 20 // after MAC_LPI_Entry_Timer, again and again
	LPITCSE LPIControl = 1 << 21 // the transmit clock may stop in LPI

	// LPIEvents are the bits that a read clears.
	LPIEvents = TLPIEN | TLPIEX | RLPIEN | RLPIEX
)

// LPITimers is the value of MAC_LPI_Timers_Control.
type LPITimers uint32

// Fields of MAC_LPI_Timers_Control and its value after reset.
const (
	LPITWT mmio.Field[LPITimers] = 0xffff << 0 // µs from the end of LPI to the next frame
	LPILST mmio.Field[LPITimers] = 0x3ff << 16 // ms that the link is up before LPI

	LPITimersReset LPITimers = 1000 << 16
)

// Bits of MMC_Tx_Interrupt and MMC_Rx_Interrupt of the counters of LPI.
const (
	MMCLPIUSEC uint32 = 1 << 26
	MMCLPITran uint32 = 1 << 27
)
