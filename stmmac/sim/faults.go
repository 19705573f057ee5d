package sim

import (
	"time"

	"github.com/gostmmac/gostmmac/stmmac/internal/regs/gmac4reg"
)

// Faults are the switches that make the model behave like one of the cores in
// the field that surprised a driver. The zero value is a core that keeps to the
// databook. Change them at run time through SetFaults. The functions among them
// are called with the lock of the engines held, except OnStatusLoad, and must
// not call back into the device.
type Faults struct {
	// MiddleLength says what the length field of a receive descriptor holds
	// when the frame does not end in it (M1).
	MiddleLength MiddleLength
	// ScribbleWriteBack fills every word of a receive descriptor whose status is
	// not valid with 0xdeadXXXX at write-back (M2); without it they become 0.
	// Either way the addresses are gone.
	ScribbleWriteBack bool
	// Prefetch makes the engine read words 0 to 2 of the descriptors up to the
	// tail early, wait, and read word 3 last (M3). In the linux profile the fetch
	// of a descriptor stays atomic.
	Prefetch Prefetch
	// WholeBusWords writes whole bus words to receive buffers: 0xa5 in front of
	// a start that is not aligned and behind the end of the frame (M4).
	WholeBusWords bool
	// IgnoreSameTail ignores a tail write that does not change the tail (M5).
	IgnoreSameTail bool
	// ClockGated stops the receive and transmit clocks that the PHY gives: a
	// software reset or queue flush does not end, nothing is sent or received (M6).
	ClockGated bool
	// Overflow cuts frames as an overflow of the receive FIFO does (M7).
	Overflow Overflow
	// InjectContext writes context descriptors behind received frames, as a
	// core with timestamps does (M8).
	InjectContext InjectContext
	// TxNeverCompletes keeps every frame in the transmit FIFO: OWN of its last
	// descriptor is never cleared and no interrupt comes (M9).
	TxNeverCompletes bool
	// LinkLossStallsTx keeps frames in the transmit FIFO, unfinished, while the PHY has
	// no link (D28); without it they are sent into nothing.
	LinkLossStallsTx bool
	// FlushHangs keeps FTQ set for ever (M9 with a flush that does not end).
	FlushHangs bool
	// CurTxAhead lets DMA_CHx_Current_App_TxDesc run that many descriptors ahead
	// of the write-back, though never past the tail (M10).
	CurTxAhead int
	// OnStatusLoad is called after each load of DMA_CHx_Status has taken its
	// value: what it raises with RaiseStatus falls between a driver's read and
	// its clear (M12).
	OnStatusLoad func(ch int)
	// HalfDuplexQueue0Only keeps the frames of all transmit queues but queue 0
	// while the MAC is in half duplex (M13).
	HalfDuplexQueue0Only bool
	// Reset are register values after reset that differ from the databook (M14).
	Reset ResetFaults
	// SingleTxTwice sends every frame of a transmit ring of one descriptor twice (M15).
	SingleTxTwice bool
	// BusError fails the DMA access at a bus address as an IOMMU fault does; it
	// is asked before each access to a buffer or a descriptor list (M16).
	// Addresses beyond AddrWidth or outside mappings fail without it.
	BusError func(addr uint64, n int, write bool) bool
	// FailMap, when it returns an error, makes MapDMA and AllocDMA fail with it.
	FailMap func(n int) error
	// RxError returns error bits of RDES3 for the k-th frame (from 0) that reaches
	// a receive channel; with any the frame is delivered with ES and the bits set.
	RxError func(k uint64) gmac4reg.RDES3
	// InconsistentLength replaces the length in the last descriptor of a frame.
	InconsistentLength func(pl uint32) uint32
	// RxLengthFlags are set in RDES3 of every last descriptor, to show a
	// driver that takes them for part of the length.
	RxLengthFlags gmac4reg.RDES3
	// PHY are those of the management bus and the PHY (D52, D57, D58).
	PHY PHYFaults
	// ThresholdCorrupts changes a byte of frames that are longer than the
	// threshold of a queue that does not store and forward; the FCS on the wire is right.
	ThresholdCorrupts bool
	// TxChecksumCorrupts makes the transmit checksum engine insert a wrong checksum
	// in every TxChecksumCorrupts-th frame (D37); 0 is none.
	TxChecksumCorrupts uint64
	// TxChecksumMissing is a core whose feature register tells of a transmit
	// checksum engine that is not there: frames leave as they are (D37).
	TxChecksumMissing bool
	// TxChecksumLimit is the longest frame, in bytes without FCS, into which the
	// engine inserts checksums; longer ones leave as they are, and no status bit
	// tells of it (D38). 0 is no such limit.
	TxChecksumLimit int
	// RxChecksumLies makes the status of the receive checksum engine mislead (D42).
	RxChecksumLies RxChecksumLies

	// RxStall and TxStall stop channels without any status: bit c is channel c. The
	// DMA of the channel fetches nothing, what is in the FIFO stays there, and the
	// channel says that it runs. Frames of a stalled receive channel pile up in
	// the FIFO until it overflows. The bits clear themselves when StallSurvives says
	// that the stall is over; set them while the channel runs.
	RxStall, TxStall uint32
	// StallSurvives says what ends the stalls.
	StallSurvives StallCure
	// RxStopHangs and TxStopHangs keep channels from coming to rest when their start
	// bit is cleared: bit c is channel c. They move no frame any more, say that
	// they are busy, do not start again, and RPS or TPS is not set, until a reset.
	RxStopHangs, TxStopHangs uint32
	// LinkLoss cuts the k-th frame (from 0) that reaches a receive channel off in
	// its middle.
	LinkLoss func(k uint64) LinkLossMode
	// LateLastSegment makes a GMAC give the last receive descriptor of a frame back
	// twice, as the model of QEMU does: first without LS, and so much later with it. RI
	// comes with both. The channel stands still in between. 0 is none.
	LateLastSegment time.Duration
	// EmptyBufferEnds makes a GMAC end a received frame in the first descriptor of a ring
	// whose second buffer is empty (D25): the descriptor tells the length of the whole
	// frame, and what its first buffer had no room for is lost. In a chain there is no
	// second buffer, and frames go on.
	EmptyBufferEnds bool
	// Collide is how often the k-th frame (from 0) that is sent in half duplex
	// collides: 1 to 15 times before it leaves, or more: excessive collisions, it is
	// given up. With DR in MAC_Configuration the first is one too many. Without it
	// there are no collisions.
	Collide func(k uint64) int
	// CollideLate gives the k-th frame that is sent in half duplex up because it
	// collided after the first 64 bytes (512 in Gigabit).
	CollideLate func(k uint64) bool
}

// MiddleLength is what a core leaves in the length field of a receive
// descriptor that does not hold the end of the frame.
type MiddleLength int

// Kinds of MiddleLength.
const (
	MiddleCumulative MiddleLength = iota // bytes of the frame up to and with this descriptor
	MiddleZero                           // 0
	MiddleOwn                            // bytes in this descriptor
	MiddleStale                          // what the word held before
)

// Prefetch describes an engine that reads descriptors ahead.
type Prefetch struct {
	On    bool
	Delay time.Duration // between words 0 to 2 and word 3
	Depth int           // descriptors read ahead; 0 is 1
}

// OverflowMode is the form of a frame that was cut by an overflow.
type OverflowMode int

// Kinds of OverflowMode.
const (
	OverflowNone             OverflowMode = iota
	OverflowLastWithError                 // FD to LD, with OE and ES
	OverflowNoLast                        // FD and no LD; the next frame starts with FD
	OverflowLastWithoutError              // FD to LD, cut short, no error bit
)

// Overflow says which frames are cut and how.
type Overflow struct {
	Mode OverflowMode
	// Every cuts each Every-th frame that reaches a receive channel; 0 is none.
	Every uint64
	// After is the number of descriptors that the frame still fills, at least 1.
	After int
}

// InjectContext says where context descriptors are written.
type InjectContext struct {
	Every   uint64        // behind each Every-th frame; 0 is none
	Absent  bool          // the frame says TSA, the context descriptor never comes
	Delay   time.Duration // the context descriptor comes that much after the frame
	Invalid bool          // all ones, a timestamp that was lost
}

// ResetFaults are values after reset that bite. That receive queues are
// disabled after reset is the databook's value and always so.
type ResetFaults struct {
	GarbageHash  bool // hash table words hold garbage
	BroadcastOff bool // DBF is set
	AddressOff   bool // AE of MAC address 0 is clear, and writable
}
