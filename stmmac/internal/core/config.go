package core

import (
	"fmt"
	"net"
	"time"

	"github.com/rs/zerolog"

	"github.com/gostmmac/gostmmac/pagepool"
	"github.com/gostmmac/gostmmac/stmmac/internal/regs"
)

// Generation is a line of the MAC's IP. It is not read from the device: the
// PCI id, the platform compatible or the caller says it.
type Generation uint8

// Generations.
const (
	GenerationUnknown Generation = iota
	MAC100                       // 10/100 core
	GMAC                         // GMAC 3.x
	GMAC4                        // GMAC 4.00 to 5.30 (EQOS)
	XGMAC                        // XGMAC 2.10 on
)

// String returns the name of the generation as in address strings.
func (g Generation) String() string {
	switch g {
	case MAC100:
		return "mac100"
	case GMAC:
		return "gmac"
	case GMAC4:
		return "gmac4"
	case XGMAC:
		return "xgmac"
	}
	return fmt.Sprintf("generation %d", uint8(g))
}

// ParseGeneration is the inverse of String.
func ParseGeneration(s string) (Generation, bool) {
	for _, g := range []Generation{MAC100, GMAC, GMAC4, XGMAC} {
		if s == g.String() {
			return g, true
		}
	}
	return GenerationUnknown, false
}

// Link is the state of the link.
type Link struct {
	Up         bool
	Speed      int // Mbit/s: 10, 100, 1000 or 2500
	FullDuplex bool
	RxPause    bool // pause frames from the partner stop the transmitter
	TxPause    bool // pause frames are sent when a receive queue fills up
}

// String formats the link as "1000 Mbit/s full duplex, pause" or "down".
func (l Link) String() string {
	if !l.Up {
		return "down"
	}
	d := "half"
	if l.FullDuplex {
		d = "full"
	}
	p := ""
	switch {
	case l.RxPause && l.TxPause:
		p = ", pause"
	case l.RxPause:
		p = ", pause received"
	case l.TxPause:
		p = ", pause sent"
	}
	return fmt.Sprintf("%d Mbit/s %s duplex%s", l.Speed, d, p)
}

// AXI are the parameters of the bus interface. The zero value of a field is
// the default that its comment names.
type AXI struct {
	FixedBurst   bool // DMA_SysBus_Mode.FB
	NoMixedBurst bool // clears DMA_SysBus_Mode.MB
	AlignedBeats bool // DMA_SysBus_Mode.AAL
	MaxReads     int  // outstanding read requests, 1 to 16; 0: 2
	MaxWrites    int  // outstanding write requests, 1 to 16; 0: 2
	BurstLens    int  // sum of the allowed lengths 4, 8, 16, 32, 64, 128, 256; 0: 4+8+16+32
	PBL          int  // beats of a burst: 1, 2, 4, 8, 16 or 32, times eight; 0: 32
}

// MSI says which interrupt vectors of the device serve what. Without it vector
// 0 serves everything.
type MSI struct {
	Common int   // events that belong to no channel
	Rx, Tx []int // by channel
}

// Recovery says what becomes of a MAC that met a fault (a bus error, a queue that
// stands still): it is reset and rebuilt, unless there were too many faults
// within the window; then it is down until it is closed, and Err says why.
type Recovery struct {
	Limit  int           // how many rebuilds the window allows; 0: none, the first fault takes the MAC down
	Window time.Duration // 0: 10 s
	// Stall is how long a queue may stand still with something to do before that
	// is a fault; 0: 400 ms.
	Stall time.Duration
}

// Coalesce says how many events share an interrupt, and so how long a queue that
// sleeps may sleep on. The zero value interrupts for every received frame and
// every batch of sent ones. A queue that does not sleep in Wait has no interrupts
// in any case.
type Coalesce struct {
	// RxTime is how long after a received frame an interrupt comes if no other one
	// has; 0: each frame interrupts. It needs the CSR clock, and the device rounds
	// it: from 16 to 255 times 256 CSR clocks, and eight times that from 5.00 on.
	RxTime time.Duration
	// RxFrames is, with RxTime, how many receive buffers share an interrupt besides;
	// 0: none has one.
	RxFrames int
	// TxTime is how long Wait to send sleeps if no interrupt comes; 0: the last
	// frame of each Send interrupts.
	TxTime time.Duration
	// TxFrames is, with TxTime, how many sent frames share an interrupt.
	TxFrames int
	// Spin is how often Wait looks at the ring before it sleeps, at most; it looks
	// more often while that pays and less while it does not. 0: it sleeps at once.
	Spin int
}

// Config is what opening a MAC needs to know beside what its registers tell.
type Config struct {
	Name       string     // how errors and logs call the device
	Generation Generation // required

	RxQueues, TxQueues int              // 1 to 8, and at most what the device has
	RxRing, TxRing     int              // descriptors, 2 to MaxRing
	MTU                int              // bytes, 46 to 9000
	HardwareAddr       net.HardwareAddr // nil: that in the registers, or a random one
	PHY                *PHY             // the PHY to look after; nil: the link is fixed
	Link               Link             // of a fixed link
	Promiscuous        bool             // let all frames in
	AllMulticast       bool             // let all multicast frames in
	StripFCS           bool             // let the device remove the FCS (ACS and CST)
	RxChecksum         bool             // let the device check the checksums of received frames
	TxChecksum         bool             // let the device insert the checksums that are asked for
	SelfTest           bool             // try the checksum engines in loopback when the MAC is opened; longer frames than it tried are then the driver's
	VLANInsert         bool             // let the device insert the tags that are beside a frame
	Queues             Queues           // how several queues share the MAC
	VLANStrip          bool             // let the device remove the VLAN tag and report it
	VLANDouble         bool             // the inner tag of two too, and insert both (TPIDs 0x8100; S-VLAN tags stay among the bytes); needs VLANStrip and Features.DoubleVLAN
	KeepTx             bool             // Send frees nothing; Reap hands finished frames back
	NetIPAlign         int              // bytes, 0 to 15
	Pool               *pagepool.Pool   // nil: the MAC makes one
	BufSize            int              // bytes, of the buffers of a pool that the MAC makes
	ResetTimeout       time.Duration    // how long the reset may take
	StopTimeout        time.Duration    // how long the DMA may take to come to rest
	Coalesce           Coalesce         // how events share interrupts
	Recovery           Recovery         // what becomes of the MAC after a fault

	// What no register tells.
	RegionNo  int    // which region of the device has the registers
	CSROffset uint32 // bytes from the start of the region to the CSR space
	CSRClock  uint64 // Hz, 1 MHz or more; 0: unknown, which excludes a PHY and a receive watchdog
	AddrWidth int    // address bits that the integration wired; 0: what the feature register says
	RxFIFO    int    // bytes, all queues together; 0: what the feature register says, or 2 KiB a queue if it does not
	TxFIFO    int    // bytes, all queues together; 0: what the feature register says, or 2 KiB a queue if it does not
	DescCache bool   // DMA_Mode.DCHE, 5.20
	// PerfectFilters are the MAC addresses beside the first, 1 to 31, and HashBins the
	// bins of the hash table, 64, 128 or 256, of a GMAC 3.x, whose feature register
	// does not say how many; 0: one if it has any, and 64 unless there are more.
	PerfectFilters, HashBins int
	// Chain makes the descriptors a chain, each with the address of the next, instead
	// of a ring; MAC100 and GMAC 3.x.
	Chain  bool
	AXI    AXI         // parameters of the bus interface
	MSI    *MSI        // nil: one vector for everything
	Layout regs.Layout // where the channel registers lie; zero: as in the databook

	Clock  Clock          // the source of time
	Logger zerolog.Logger // the zero value is silent
}

// MaxRing is the largest ring: DMA_CHx_RxDesc_Ring_Length is ten bits.
const MaxRing = 1024
