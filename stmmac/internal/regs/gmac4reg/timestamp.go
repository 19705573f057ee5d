package gmac4reg

import "github.com/gostmmac/gostmmac/mmio"

// Offsets of the system time of IEEE 1588. Databook: MAC registers.
const (
	MACTimestampControl      mmio.Reg[TimestampControl]   = 0x0b00
	MACSubSecondIncrement    mmio.Reg[SubSecondIncrement] = 0x0b04
	MACSystemTimeSec         mmio.Reg[uint32]             = 0x0b08
	MACSystemTimeNs          mmio.Reg[uint32]             = 0x0b0c
	MACSystemTimeSecUpdate   mmio.Reg[uint32]             = 0x0b10
	MACSystemTimeNsUpdate    mmio.Reg[TimeNsUpdate]       = 0x0b14
	MACTimestampAddend       mmio.Reg[uint32]             = 0x0b18
	MACTimestampControlReset TimestampControl             = TSIPV4ENA // after reset
)

// TimestampControl is the value of MAC_Timestamp_Control.
type TimestampControl uint32

// Bits of MAC_Timestamp_Control. TSINIT, TSUPDT and TSADDREG clear themselves.
const (
	TSENA       TimestampControl = 1 << 0  // the time runs
	TSCFUPDT    TimestampControl = 1 << 1  // fine update: the addend divides the clock
	TSINIT      TimestampControl = 1 << 2  // take the update registers as the time
	TSUPDT      TimestampControl = 1 << 3  // add or subtract them
	TSADDREG    TimestampControl = 1 << 5  // take the addend
	TSENALL     TimestampControl = 1 << 8  // timestamp all packets
	TSCTRLSSR   TimestampControl = 1 << 9  // digital rollover: the subsecond part counts to 1e9 ns, else to 2^31
	TSVER2ENA   TimestampControl = 1 << 10 // PTP version 2
	TSIPENA     TimestampControl = 1 << 11 // PTP over Ethernet
	TSIPV6ENA   TimestampControl = 1 << 12
	TSIPV4ENA   TimestampControl = 1 << 13
	TSEVNTENA   TimestampControl = 1 << 14 // event messages alone
	TSMSTRENA   TimestampControl = 1 << 15
	TSENMACADDR TimestampControl = 1 << 18

	SNAPTYPSEL mmio.Field[TimestampControl] = 0x3 << 16
)

// SubSecondIncrement is the value of MAC_Sub_Second_Increment: what the time gains with
// each clock, or with each overflow of the addend.
type SubSecondIncrement uint32

// Fields of MAC_Sub_Second_Increment.
const (
	SNSINC mmio.Field[SubSecondIncrement] = 0xff << 8  // 1/256 of the unit
	SSINC  mmio.Field[SubSecondIncrement] = 0xff << 16 // ns, or 1e9/2^31 ns in binary rollover
)

// TimeNsUpdate is the value of MAC_System_Time_Nanoseconds_Update. To subtract, the
// seconds are written as 2^32 - n and these as 1e9 - n, or 2^31 - n.
type TimeNsUpdate uint32

// Fields of MAC_System_Time_Nanoseconds_Update.
const (
	ADDSUB TimeNsUpdate = 1 << 31 // subtract

	TSSS mmio.Field[TimeNsUpdate] = 0x7fffffff << 0
)
