package sim

import (
	"fmt"
	"math/bits"

	"github.com/gostmmac/gostmmac/stmmac/internal/core"
	"github.com/gostmmac/gostmmac/stmmac/internal/regs"
	"github.com/gostmmac/gostmmac/stmmac/internal/regs/gmac4reg"
)

// Profile says whose driver the model works with.
type Profile int

const (
	// Strict is the reading of the databook that a driver must not rely on
	// anything beyond. A receive channel stops when its current descriptor is
	// the tail; an interrupt line fires only when it rises or when the enable
	// bit of a pending event is set; violations are meant to fail the test.
	Strict Profile = iota
	// Linux is what the stock stmmac driver needs. Any tail write resumes a
	// receive channel and only a descriptor that it does not own stops it; base
	// plus ring length is a legal tail; every channel with a pending event fires
	// its line for itself, and again when its enable register is written while
	// it is pending.
	Linux
)

// String returns the name of the profile.
func (p Profile) String() string {
	switch p {
	case Strict:
		return "strict"
	case Linux:
		return "linux"
	}
	return fmt.Sprintf("Profile(%d)", int(p))
}

// Config describes a MAC. The zero value is a single-queue GMAC5 5.20 with the values
// named below.
//
// A GMAC has one queue each way, one interrupt vector, bus addresses of 32 bits and none
// of what Layout, VLANFilters, NoVLANInsert, NoDoubleVLAN, NoVLANHash, L3L4Filters,
// SplitHeader, ARPOffload, EEE, Timestamp and TBS are about: these are left 0. Of [Faults] those do nothing on it that are about tails, context
// descriptors and the words of GMAC4's descriptors: Prefetch, IgnoreSameTail,
// InjectContext, CurTxAhead, HalfDuplexQueue0Only, RxLengthFlags and RxChecksumLies.
type Config struct {
	Generation  Generation
	Version     uint8 // SNPSVER: 0x40 to 0x53, of a GMAC 0x30 to 0x37; 0 is 0x52 or 0x37
	UserVersion uint8
	// NoHWFeature leaves the HW_Feature register of a GMAC out: it reads as 0.
	NoHWFeature bool

	RxQueues, TxQueues int // queues, and DMA channels, 1 to 8; 0 is 1
	RxFIFO, TxFIFO     int // bytes, a power of two from 256 to 256 KiB; 0 is 16384
	AddrWidth          int // bits of a bus address: 32, 40 or 48; 0 is 48
	BusBytes           int // width of the bus: 4, 8 or 16; 0 is 8
	HashBins           int // 64, 128 or 256; 0 is 64
	CSRClock           uint64
	// Layout says where the per-channel registers lie; the zero value is
	// gmac4reg.DefaultLayout.
	Layout regs.Layout
	// NoRxChecksum and NoTxChecksum leave out the checksum engines, NoVLANInsert
	// the insertion of VLAN tags and source addresses, NoDoubleVLAN the processing
	// of a second tag and NoVLANHash the VLAN hash filter.
	NoRxChecksum, NoTxChecksum             bool
	NoVLANInsert, NoDoubleVLAN, NoVLANHash bool
	// VLANFilters is 1, the one filter of MAC_VLAN_Tag, or 4, 8, 16, 24 or 32 behind
	// MAC_VLAN_Tag_Ctrl and MAC_VLAN_Tag_Data; 0 is 32.
	VLANFilters int
	// L3L4Filters is the number of layer 3 and layer 4 filters, 0 to 8.
	L3L4Filters int
	// SplitHeader lets channels write headers and payloads to buffers of their own.
	SplitHeader bool
	// ARPOffload adds the engine that answers ARP requests.
	ARPOffload bool
	// EEE adds Energy Efficient Ethernet, in the MAC and in the PHY of a Config without one.
	EEE bool
	// Timestamp adds the system time of IEEE 1588, on a clock of PTPClock Hz; 0 is 50
	// MHz. Timestamps of packets are not modelled.
	Timestamp bool
	PTPClock  uint64
	// TBS adds time-based scheduling to a core with Timestamp: enhanced descriptors, with
	// launch times. That a packet is too late (MTL_TBS_CTRL) is not modelled.
	TBS bool
	// Address is what the MAC address 0 registers hold after reset; all zero
	// gives the databook's ff:ff:ff:ff:ff:ff.
	Address [6]byte

	// NumInterrupts is 1, one vector to which all lines of the MAC are wired,
	// or 1 + RxQueues + TxQueues: the common line, then one line for each
	// receive channel, then one for each transmit channel. 0 is 1.
	NumInterrupts int

	// PHY is the PHY that the frames of the MAC pass through; nil is a gigabit PHY with
	// clause 22 at address 1, on a cable to a partner that can do everything. What it
	// means for frames is told in phy.go. OtherPHYs are on the same management bus.
	PHY       *PHYConfig
	OtherPHYs []PHYConfig
	// NoPHY is a link that is always up, whatever the MAC is set to, with nothing on
	// the management bus but OtherPHYs. NoMDIO is the same without the bus.
	NoPHY, NoMDIO bool

	Profile Profile
	// Clock is the clock of timers; nil is a new ManualClock with Inline and
	// the machine's clock without.
	Clock core.Clock
	// Inline starts no goroutine: the engines run in Step only.
	Inline bool
	// OwnMemory makes AllocDMA give memory of the device's own.
	OwnMemory bool
	// HighIOVA places mappings above 4 GiB.
	HighIOVA bool
	Faults   Faults
	// NoAudit turns the audit, the coverage and the counts of register accesses
	// and doorbells off, for benchmarks.
	NoAudit bool
}

// EnableAll adds to a GMAC4 all that a Config leaves out by default: eight layer 3 and
// layer 4 filters, split header, the ARP offload, Energy Efficient Ethernet, the
// system time and time-based scheduling. Queues and sizes stay as they are, and so does a PHY that is given.
func (c *Config) EnableAll() {
	c.L3L4Filters = gmac4reg.MaxL3L4
	c.SplitHeader, c.ARPOffload, c.EEE, c.Timestamp, c.TBS = true, true, true, true, true
}

// ConfigError is a Config that describes no device.
type ConfigError struct {
	Field string
	Value any
	Why   string
}

// Error implements error.
func (e *ConfigError) Error() string {
	return fmt.Sprintf("sim: config: %s = %v: %s", e.Field, e.Value, e.Why)
}

// maxQueues is the most queues and channels that the register map has room for.
const maxQueues = 8

// defaultCSRClock is in the range of divider code 1, that of most boards.
const defaultCSRClock = 125_000_000

const (
	defaultPTPClock = 50_000_000
	maxPTPClock     = 1_000_000_000
)

func setDefault[T comparable](v *T, d T) {
	var zero T
	if *v == zero {
		*v = d
	}
}

// complete fills the defaults in and checks the rest.
func (c *Config) complete() error {
	switch c.Generation {
	case GMAC4:
		if c.NoHWFeature {
			return &ConfigError{"NoHWFeature", true, "is of a GMAC only"}
		}
	case GMAC:
		return c.completeGMAC()
	default:
		return &ConfigError{"Generation", c.Generation, "unknown"}
	}
	setDefault(&c.Version, 0x52)
	setDefault(&c.RxQueues, 1)
	setDefault(&c.TxQueues, 1)
	setDefault(&c.RxFIFO, 16384)
	setDefault(&c.TxFIFO, 16384)
	setDefault(&c.AddrWidth, 48)
	setDefault(&c.BusBytes, 8)
	setDefault(&c.HashBins, 64)
	setDefault(&c.VLANFilters, vlanCodes[len(vlanCodes)-1])
	setDefault(&c.CSRClock, defaultCSRClock)
	setDefault(&c.PTPClock, defaultPTPClock)
	setDefault(&c.Layout, gmac4reg.DefaultLayout)
	setDefault(&c.NumInterrupts, 1)

	for _, r := range []struct {
		field string
		value int
		ok    bool
		why   string
	}{
		{"Version", int(c.Version), c.Version >= 0x40 && c.Version <= 0x53, "not 4.00 to 5.30"},
		{"RxQueues", c.RxQueues, c.RxQueues >= 1 && c.RxQueues <= maxQueues, "not 1 to 8"},
		{"TxQueues", c.TxQueues, c.TxQueues >= 1 && c.TxQueues <= maxQueues, "not 1 to 8"},
		{"RxFIFO", c.RxFIFO, fifoSize(c.RxFIFO), "not a power of two from 256 to 262144"},
		{"TxFIFO", c.TxFIFO, fifoSize(c.TxFIFO), "not a power of two from 256 to 262144"},
		{"AddrWidth", c.AddrWidth, c.AddrWidth == 32 || c.AddrWidth == 40 || c.AddrWidth == 48, "not 32, 40 or 48"},
		{"BusBytes", c.BusBytes, c.BusBytes == 4 || c.BusBytes == 8 || c.BusBytes == 16, "not 4, 8 or 16"},
		{"HashBins", c.HashBins, c.HashBins == 64 || c.HashBins == 128 || c.HashBins == 256, "not 64, 128 or 256"},
		{"VLANFilters", c.VLANFilters, nrvf(c.VLANFilters) >= 0, "not 1, 4, 8, 16, 24 or 32"},
		{"L3L4Filters", c.L3L4Filters, c.L3L4Filters >= 0 && c.L3L4Filters <= gmac4reg.MaxL3L4, "not 0 to 8"},
		{"NumInterrupts", c.NumInterrupts, c.NumInterrupts == 1 || c.NumInterrupts == 1+c.RxQueues+c.TxQueues,
			"neither 1 nor 1 + RxQueues + TxQueues"},
		{"Profile", int(c.Profile), c.Profile == Strict || c.Profile == Linux, "unknown"},
	} {
		if !r.ok {
			return &ConfigError{r.field, r.value, r.why}
		}
	}
	if c.PTPClock > maxPTPClock {
		return &ConfigError{"PTPClock", c.PTPClock, "more than 1 GHz"}
	}
	if c.TBS && !c.Timestamp {
		return &ConfigError{"TBS", true, "without Timestamp there is no time to launch at"}
	}
	if c.HighIOVA && c.AddrWidth == 32 {
		return &ConfigError{"HighIOVA", true, "the device has 32 address bits"}
	}
	return c.checkLayout()
}

func fifoSize(n int) bool { return n >= 256 && n <= 256<<10 && bits.OnesCount(uint(n)) == 1 }

// Sizes of the registers of a DMA channel and of an MTL queue.
const (
	dmaChannelSize = 0x80
	mtlQueueSize   = 0x40
	// maxCSR bounds the register space that a Layout can ask for.
	maxCSR = 1 << 20
)

func (c *Config) checkLayout() error {
	l := c.Layout
	bad := func(why string) error { return &ConfigError{"Layout", l, why} }
	for _, s := range []struct{ base, stride uint32 }{{l.DMABase, l.DMAStride}, {l.MTLBase, l.MTLStride}} {
		switch {
		case s.base&3 != 0 || s.stride&3 != 0:
			return bad("not a multiple of 4")
		case s.base < 0x0d00 || s.base >= maxCSR || s.stride >= maxCSR/maxQueues:
			return bad("out of range")
		}
	}
	return nil
}

// channels is the number of DMA channel register blocks.
func (c *Config) channels() int { return max(c.RxQueues, c.TxQueues) }

// csrSize is the size of the register space: at least 8 KiB, a multiple of 4 KiB.
func (c *Config) csrSize() uint32 {
	n := uint32(c.channels())
	l := c.Layout
	end := max(0x2000, l.DMABase+(n-1)*l.DMAStride+dmaChannelSize, l.MTLBase+(n-1)*l.MTLStride+mtlQueueSize)
	return (end + 0xfff) &^ 0xfff
}
