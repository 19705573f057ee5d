package vfiouser

import (
	"fmt"
	"math"
	"time"
)

// Config describes a PCI function. Vendor and Device identify it; the zero value of all
// else is a function without registers, interrupts and capabilities.
type Config struct {
	// Name names the function in errors; "" is its identification, as "1f0a:6801".
	Name string

	Vendor, Device       uint16
	SubVendor, SubDevice uint16
	Revision             uint8
	Class                uint32 // base class, sub-class and interface in 24 bits; 0x020000 is Ethernet

	// BARs are by number. One of 64 bits takes the place of the next one too.
	BARs [6]BAR

	// INTx gives the function interrupt pin A.
	INTx bool
	MSI  MSI
	MSIX MSIX
	// PM adds the capability of power management (D0 and D3hot, which keep the
	// state), PCIe that of PCI Express with function-level reset and the extended
	// configuration space.
	PM, PCIe bool
	// Capabilities are others, in this order behind those.
	Capabilities []Capability

	// MessageTimeout is how long the client may take for a DMA message; 0 is 2 s. QEMU
	// waits 5 s for the answer to a read, so it should be less.
	MessageTimeout time.Duration
	// Report, when it is not nil, is called with every command that is refused and
	// every connection that ends in an error, by any goroutine. It must not block.
	Report func(error)
}

// BAR is a range of memory-mapped registers.
type BAR struct {
	Size     uint64 // bytes, a power of two, at least 16; 0 is none
	Wide     bool   // may lie above 4 GiB
	Prefetch bool   // reads have no side effects
}

// MSI is the capability of that name, with 64-bit addresses.
type MSI struct {
	Vectors  int  // 1, 2, 4, 8, 16 or 32; 0 is no capability
	Maskable bool // with a mask bit for each vector
}

// MSIX is the capability of that name. The server serves the table and the PBA; the device
// sees no access to them.
type MSIX struct {
	Vectors int    // 1 to 2048; 0 is no capability
	BAR     int    // where the table and the PBA lie
	Table   uint64 // offset of the table, 16 bytes for each vector, a multiple of 8
	PBA     uint64 // offset of the pending bits, 8 bytes for each 64 vectors, a multiple of 8
}

// pbaSize is the size of the PBA in bytes.
func (m MSIX) pbaSize() uint64 { return uint64(m.Vectors+63) / 64 * 8 }

// tableSize is the size of the table in bytes.
func (m MSIX) tableSize() uint64 { return uint64(m.Vectors) * msixEntrySize }

const msixEntrySize = 16

// Capability is a capability in the configuration space below 256 bytes (PCI Local Bus 3.0,
// 6.7) that reads as it is given and, where Writable has bits, what was written.
type Capability struct {
	ID       uint8
	Body     []byte // behind the ID and the pointer to the next
	Writable []byte // nil, or as long as Body
}

// complete fills in the defaults and checks the rest.
func (c *Config) complete() error {
	if c.Name == "" {
		c.Name = fmt.Sprintf("%04x:%04x", c.Vendor, c.Device)
	}
	if c.MessageTimeout == 0 {
		c.MessageTimeout = 2 * time.Second
	}
	switch {
	case c.MessageTimeout < 0:
		return fmt.Errorf("%w: MessageTimeout %v is negative", ErrConfig, c.MessageTimeout)
	case c.Vendor == 0xffff:
		return fmt.Errorf("%w: the vendor 0xffff is that of no device", ErrConfig)
	case c.Class > 0xff_ffff:
		return fmt.Errorf("%w: Class %#x has more than 24 bits", ErrConfig, c.Class)
	}
	for i, b := range c.BARs {
		largest := uint64(1 << 31)
		if b.Wide {
			largest = 1 << 62
		}
		switch {
		case b.Size == 0:
		case b.Size&(b.Size-1) != 0 || b.Size < 16 || b.Size > largest:
			return fmt.Errorf("%w: BAR %d of %#x bytes: a power of two from 16 to %#x is needed", ErrConfig, i, b.Size, largest)
		case b.Wide && (i == len(c.BARs)-1 || c.BARs[i+1].Size != 0):
			return fmt.Errorf("%w: BAR %d has 64 bits and takes the place of the next, which is not free", ErrConfig, i)
		}
	}
	if n := c.MSI.Vectors; n < 0 || n > 32 || n&(n-1) != 0 {
		return fmt.Errorf("%w: %d MSI vectors: 1, 2, 4, 8, 16 and 32 are possible", ErrConfig, n)
	}
	for _, k := range c.Capabilities {
		if k.ID == 0 || k.ID == capPM || k.ID == capMSI || k.ID == capMSIX || k.ID == capPCIe {
			return fmt.Errorf("%w: a capability of id %#x among Capabilities: it has a field of its own, or is none", ErrConfig, k.ID)
		}
	}
	return c.MSIX.check(&c.BARs)
}

func (m *MSIX) check(bars *[6]BAR) error {
	if m.Vectors == 0 {
		return nil
	}
	if m.Vectors < 0 || m.Vectors > 2048 {
		return fmt.Errorf("%w: %d MSI-X vectors: 1 to 2048 are possible", ErrConfig, m.Vectors)
	}
	if m.BAR < 0 || m.BAR >= len(bars) || bars[m.BAR].Size == 0 {
		return fmt.Errorf("%w: the MSI-X table lies in BAR %d, which is not there", ErrConfig, m.BAR)
	}
	fits := func(at, n uint64) bool {
		size := min(bars[m.BAR].Size, math.MaxUint32)
		return at%8 == 0 && n <= size && at <= size-n
	}
	if !fits(m.Table, m.tableSize()) || !fits(m.PBA, m.pbaSize()) {
		return fmt.Errorf("%w: the MSI-X table at %#x and the PBA at %#x of %d vectors: multiples of 8 inside BAR %d are needed", ErrConfig, m.Table, m.PBA, m.Vectors, m.BAR)
	}
	if m.Table < m.PBA+m.pbaSize() && m.PBA < m.Table+m.tableSize() {
		return fmt.Errorf("%w: the MSI-X table at %#x and the PBA at %#x overlap", ErrConfig, m.Table, m.PBA)
	}
	return nil
}
