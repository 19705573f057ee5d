package vfiotest

import "math"

// Config says what the kernel and the machine are like. The zero value has a type1
// IOMMU, iommufd, pages of 4 KiB and a process that may lock any amount of memory
// and has no capabilities.
type Config struct {
	// Type1 and IOMMUFD are the interfaces that there are: /dev/vfio/vfio with the
	// nodes of groups, /dev/iommu with those of devices. Neither set means both.
	Type1, IOMMUFD bool
	// NoIOMMU is vfio's parameter enable_unsafe_noiommu_mode: devices without a
	// group get one when they are bound to a VFIO driver.
	NoIOMMU bool
	// Unloaded lists VFIO drivers that are not loaded: "vfio-pci".
	Unloaded []string

	// PageSize is the size of a page in bytes, a power of 2 and a multiple of the
	// machine's; 0 means the machine's.
	PageSize int
	// IOMMUPageSizes has bit n set for pages of 1<<n bytes; 0 means 4 KiB, 2 MiB and 1 GiB.
	IOMMUPageSizes uint64
	// IOVARanges are the bus addresses behind the IOMMU, ascending. None means
	// those of a PC: 39 bits without the window of interrupts.
	IOVARanges []Range
	// EntryLimit is the most mappings that a container takes (type1's parameter
	// dma_entry_limit); 0 means 65535.
	EntryLimit int

	// Memlock is the limit of locked memory in bytes (RLIMIT_MEMLOCK); 0 means none.
	Memlock uint64
	// CapIPCLock and CapSysRawIO are capabilities of the process: no limit of
	// locked memory, and noiommu.
	CapIPCLock, CapSysRawIO bool

	// HugePages is how many huge pages of 2 MiB are free at first; 0 means 512, a
	// negative number none.
	HugePages int

	// Pagemap says what /proc/self/pagemap shows.
	Pagemap Pagemap
	// PhysBase is the physical address of the first gigabyte that is asked for, a
	// multiple of 1 GiB; 0 means 4 GiB. Others lie as far away as their virtual
	// addresses do.
	PhysBase uint64
	// Scatter gives every page, and huge page, a physical address of its own that
	// continues none.
	Scatter bool
}

// Range is a range of bus addresses with both ends in it.
type Range struct{ First, Last uint64 }

// Pagemap is what a process may see of physical addresses.
type Pagemap int

// What /proc/self/pagemap shows: frame numbers, as with CAP_SYS_ADMIN; 0 for
// every one, as without; or it does not exist.
const (
	PagemapReadable Pagemap = iota
	PagemapHidden
	PagemapAbsent
)

// PCI is a PCI function.
type PCI struct {
	BDF               string // "0000:03:00.0"
	Vendor, Device    uint16
	SubVendor, SubDev uint16
	Class             uint32 // 24 bits; 0 means an Ethernet controller

	// Group is the number of the IOMMU group; a negative one means that no IOMMU
	// translates for the function.
	Group int
	// Driver is the driver that the function is with at first, "" for none. Native
	// is the one that takes it without driver_override; if empty it is Driver
	// unless that is a VFIO driver.
	Driver, Native string
	Net            []string // network interfaces while Native has it

	BARs []Region // by number, of at most 6; a Wide one is followed by an empty one
	ROM  uint64   // bytes of the expansion ROM

	INTx bool
	MSI  int // vectors, 0 to 32
	MSIX MSIX

	FLR   bool   // it can be reset
	SRIOV bool   // it is a physical function with virtual ones: it has a VF token
	Token string // it is a virtual function, and this UUID is the token of the physical one

	// Capabilities are added to those of power management, MSI, MSI-X and PCIe:
	// the id, then what follows the two bytes of a capability's header. They are
	// plain memory. There is room for 64 bytes with headers.
	Capabilities [][]byte

	// NoMemory leaves memory decoding off in the command register when the function
	// is opened and when it was reset.
	NoMemory bool
	// KeepMaster lets bus mastering survive a reset, as Linux does. Without it the
	// driver has to turn it on again.
	KeepMaster bool
	// PMOff makes Native leave the runtime power management of the function off when it is
	// taken away, as stmmac does: the function cannot be opened then, until it was removed
	// and found again.
	PMOff bool
	// OnReset is called after each reset, from the goroutine that asked for it.
	OnReset func()
}

// MSIX is the MSI-X capability of a function.
type MSIX struct {
	Count   int    // vectors; 0 means that it has none
	BAR     int    // where the table is,
	Table   uint64 // at which offset in bytes;
	PBA     uint64 // and that of the pending bits, in the same BAR
	Dynamic bool   // vectors can be added while others are on (no NORESIZE)
}

// Platform is a device of the platform bus.
type Platform struct {
	Name           string   // "f0804000.ethernet"
	Compatible     []string // of the device tree, the most specific first
	Group          int      // as with PCI
	Driver, Native string   // as with PCI
	Net            []string // as with PCI

	Regions    []Region
	RegNames   []string
	Interrupts []Interrupt
	IRQNames   []string

	Reset   bool   // the kernel can reset it
	OnReset func() // as with PCI
}

// Interrupt is an interrupt line of a platform device.
type Interrupt struct{ Level bool }

// Region is a BAR or a range of registers. Without Read and Write it is memory.
type Region struct {
	Size uint64 // bytes; 0 means that there is none
	Base uint64 // physical address; 0 means that one is chosen
	Wide bool   // a BAR of 64 bits

	Mmap         bool   // it can be mapped, as a whole unless Sparse is set
	Sparse       []Area // the parts that can be mapped, in multiples of pages
	MSIXMappable bool   // the capability that tells that the MSI-X table may be mapped

	// Read and Write serve accesses that go through the kernel, of 1, 2, 4 or 8
	// bytes at a multiple of their size. They are called without a lock, by the
	// goroutine that accesses. A region that can be mapped is memory as well, which
	// they do not see.
	Read, Write func(off uint64, p []byte)
}

// Area is a part of a region.
type Area struct{ Offset, Size uint64 }

const (
	unlimited      = math.MaxUint64
	defaultEntries = 65535
	gib            = 1 << 30
	hugePage       = 2 << 20
	defaultHuge    = 512
)

// defaultRanges are what a PC with 39 bits has: the hole is where interrupts go.
func defaultRanges() []Range {
	return []Range{{0, 0xfedfffff}, {0xfef00000, 1<<39 - 1}}
}
