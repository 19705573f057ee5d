package core

import (
	"context"
	"iter"
	"net"
	"time"

	"github.com/gostmmac/gostmmac/pagepool"
)

// Features is what the feature registers of the device tell.
type Features struct {
	Version uint8 // Synopsys version: 0x40 is 4.00, 0x52 is 5.20
	UserID  uint8

	RxQueues, TxQueues     int
	RxChannels, TxChannels int
	RxFIFO, TxFIFO         int // bytes, all queues together; 0: not told
	AddrWidth              int // bits of a DMA address
	PerfectFilters         int // MAC addresses beside the first
	HashBins               int // 0: no hash table
	VLANFilters            int
	L3L4Filters            int
	PPSOutputs             int
	AuxSnapshots           int

	MII, GMII, HalfDuplex  bool
	PCS                    bool
	MDIO                   bool
	MMC                    bool
	Timestamps             bool
	EEE                    bool
	WakeMagic, WakeFrame   bool
	RxChecksum, TxChecksum bool
	TSO, SplitHeader       bool
	ARPOffload             bool
	AddressInsert          bool // source address and VLAN insertion
	VLANHash, DoubleVLAN   bool
	DCB, AV                bool
	FlexibleParser         bool
	EST, FramePreemption   bool
	TimeBasedScheduling    bool
	SafetyFeatures         int // 0: none
}

// Events are what a channel interrupts for.
type Events uint32

// Events of a channel.
const (
	EventRx    Events = 1 << iota // a frame was received, or the ring ran dry
	EventTx                       // a frame was sent
	EventFatal                    // a bus error stopped the channel
	EventGone                     // the device does not answer
)

// RingMemory is where a ring lies.
type RingMemory struct {
	Mem *pagepool.Memory
	N   int // descriptors
}

// Limits are what a generation can take.
type Limits struct {
	DescSize  int // bytes
	RingAlign int // bytes
	MaxRxBuf  int // bytes of a receive buffer
	MaxTxBuf  int // bytes of a transmit buffer
	MaxMTU    int // bytes

	Chain      bool // descriptors may be a chain (Config.Chain)
	VLANStrip  bool // the device can take VLAN tags off
	StripFCS   bool // and the FCS, of all frames
	VectorEach bool // channels can have interrupt vectors of their own
}

// Setup is what Hardware.Setup programs.
type Setup struct {
	Rx         []RingMemory
	Tx         []RingMemory
	RxSize     int      // receive buffer size to program, bytes
	RxTails    []uint32 // slots that the tails name, all before them posted
	Addr       net.HardwareAddr
	VectorEach bool // RI and TI have vectors of their own
}

// Hardware is the register side of a generation. Calls are made by one
// goroutine at a time except those of Lost, Unmask and Events, which may come
// from any.
type Hardware interface {
	// Identify reads version and features, and refuses a device of another
	// generation or one that does not answer.
	Identify() (Features, error)
	Limits() Limits
	// MaxFrame is the longest frame in bytes, with FCS, that the FIFOs hold.
	MaxFrame() int
	// AddrWidth is how many bits of a bus address the device uses.
	AddrWidth() int
	// Addr reads the address that the MAC has now.
	Addr() net.HardwareAddr
	// Halt clears the start bits of all channels: a dead owner may have left
	// them set.
	Halt()
	// Halted waits until the DMA of all channels is at rest behind Halt. When it is not in
	// time, also when ctx ended, it resets.
	Halted(ctx context.Context) error
	// Reset resets the DMA and all registers, within the bound of the Config.
	Reset(ctx context.Context) error
	// RxDescs and TxDescs are the rings of a channel. Receive buffers have size
	// bytes, as in Setup. The DMA is stopped; what the memory held is forgotten.
	RxDescs(ch int, m RingMemory, size int) RxDescs
	TxDescs(ch int, m RingMemory) TxDescs
	// Setup programs everything up to the start of the DMA.
	Setup(s Setup) error
	// TxOffloads is what the device does itself to frames that are sent: all but
	// the lengths of a TxLimits.
	TxOffloads() TxLimits
	// Start starts the DMA of all channels.
	Start()
	// SetLink sets speed and duplex with the MAC off, and turns it on if the
	// link is up.
	SetLink(l Link) error
	// SetFilter changes which frames are let in and says how. Frames that the
	// filters before and after both let in are not lost. A filter that the device
	// cannot do is refused and changes nothing; after another error the filter is
	// unknown until the next call succeeds.
	SetFilter(f Filter) (FilterUse, error)
	// SetAddr changes the MAC's own address, which is a unicast address.
	SetAddr(a net.HardwareAddr) error
	// ReadCounters adds what the device has counted since the last call.
	ReadCounters()
	// ForgetCounters sets the sums to 0.
	ForgetCounters()
	// Counters yields the sums of all that ReadCounters has read, with the
	// databook's names. Any goroutine may call it and ReadCounters.
	Counters() iter.Seq2[string, uint64]
	// Dump reads all registers that the device has, in the order of their offsets,
	// but those that a read changes. With ErrGone the list ends where the device
	// stopped to answer.
	Dump() ([]Register, error)
	// SetRxWatchdog sets how long after a frame whose descriptor does not ask for
	// an interrupt a receive channel raises one; 0 turns that off. It returns the
	// time that the device can do.
	SetRxWatchdog(ch int, d time.Duration) (time.Duration, error)
	// DivideTxFIFO gives the transmit FIFO to the first n queues in equal parts
	// and turns the others off: for half duplex, in which only queue 0 sends. It
	// is called while the transmit channels are stopped and their queues empty.
	DivideTxFIFO(n int)
	// SetLoopback makes the MAC receive what it sends, from the next SetLink on.
	SetLoopback(on bool)
	// StopReceiver turns the receiver off: what it has accepted goes on to memory.
	StopReceiver()
	// RxPending says that frames wait in the device for receive channel ch, and
	// TxPending that transmit queue ch holds one.
	RxPending(ch int) bool
	TxPending(ch int) bool
	// TxPaused says that a pause frame keeps transmit queue ch from sending.
	TxPaused(ch int) bool
	// MDIO is the bus to the PHYs, and LinkModes is what SetLink takes.
	MDIO() MDIOBus
	LinkModes() LinkModes
	// Stop stops the MAC and the DMA and waits until no transfer runs.
	Stop(ctx context.Context) error
	// Lost reads, and so clears, how many frames a receive channel and its queue
	// have lost since the last call: for want of a running channel, and of room
	// in the FIFO.
	Lost(ch int) (missed, full uint32)
	// Events reads the status of a channel, clears what it read of the enabled
	// events in mask, and disables the interrupts of those that it found.
	Events(ch int, mask Events) Events
	// Unmask clears the events of a channel that have happened and enables
	// their interrupts, unless they are enabled; it returns when the device has
	// seen both, or with ErrGone.
	Unmask(ch int, e Events) error
}
