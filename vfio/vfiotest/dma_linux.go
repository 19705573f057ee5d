package vfiotest

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// DMAFault is a DMA access that an IOMMU would have stopped, or that a device
// which may not be bus master tried.
type DMAFault struct {
	Dev    string
	Addr   uint64 // on the bus
	Len    int    // bytes
	Reason string
}

// Error implements error.
func (f *DMAFault) Error() string {
	return fmt.Sprintf("vfiotest: %s: DMA of %d bytes at %#x: %s", f.Dev, f.Len, f.Addr, f.Reason)
}

// Unwrap returns EFAULT.
func (f *DMAFault) Unwrap() error { return unix.EFAULT }

// DMA is the memory of the process that the device reaches at n bytes from a bus
// address, for reading and writing. An error is a *DMAFault: nothing is mapped
// there, mappings that are no neighbours meet there, the device is not open or may
// not be bus master. Without an IOMMU the address is physical, and the device
// reaches the pages that the process asked for the physical address of.
//
// The memory is the process's: it is gone when the driver unmapped it. Who cannot
// rule that out uses the Read and Write of [Device.Bus].
func (d *Device) DMA(addr uint64, n int) ([]byte, error) {
	d.k.mu.Lock()
	defer d.k.unlock()
	return d.dma(addr, n, true, true)
}

func (d *Device) dma(addr uint64, n int, read, write bool) ([]byte, error) {
	fault := func(why string) ([]byte, error) {
		return nil, &DMAFault{Dev: d.name, Addr: addr, Len: n, Reason: why}
	}
	switch {
	case d.gone:
		return fault("the device is unplugged")
	case d.opens == 0:
		return fault("the device is not open")
	case d.bus == pciBus && d.command()&commandMaster == 0:
		return fault("bus mastering is off")
	case n <= 0:
		return fault("the range is empty")
	}
	var virt uint64
	var why string
	switch t := d.table(); {
	case t == nil:
		return fault("the device is not attached to an IOAS")
	case d.group.noiommu:
		virt, why = d.k.phys.at(addr, uint64(n))
		if why == "" && d.space != nil && !t.holds(virt, uint64(n)) {
			why = "the memory is not mapped any more"
		}
	default:
		virt, why = t.lookup(addr, uint64(n), read, write)
	}
	if why != "" {
		return fault(why)
	}
	return userBytes(virt, n), nil
}

// table is what the device's addresses are looked up in.
func (d *Device) table() *table {
	switch {
	case d.space != nil:
		return &d.space.maps
	case d.iommufd == nil && d.group != nil && d.group.container != nil:
		return &d.group.container.maps
	}
	return nil
}

// holds says that one mapping has n bytes of the process.
func (t *table) holds(addr, n uint64) bool {
	for _, m := range t.maps {
		if m.Addr <= addr && n <= m.Size && addr-m.Addr <= m.Size-n {
			return true
		}
	}
	return false
}

// Bus is a device's view of memory, for a model of it.
type Bus struct{ d *Device }

// Bus is the device's view of memory.
func (d *Device) Bus() Bus { return Bus{d} }

// Window is DMA, or nil.
func (b Bus) Window(addr uint64, n int) []byte {
	p, err := b.d.DMA(addr, n)
	if err != nil {
		return nil
	}
	return p
}

// Read copies from the memory at a bus address. The driver cannot unmap it
// meanwhile.
func (b Bus) Read(addr uint64, p []byte) error { return b.copy(addr, p, false) }

// Write copies to the memory at a bus address, as Read.
func (b Bus) Write(addr uint64, p []byte) error { return b.copy(addr, p, true) }

func (b Bus) copy(addr uint64, p []byte, write bool) error {
	if len(p) == 0 {
		return nil
	}
	b.d.k.mu.Lock()
	defer b.d.k.unlock()
	mem, err := b.d.dma(addr, len(p), !write, write)
	switch {
	case err != nil:
		return err
	case write:
		copy(mem, p)
	default:
		copy(p, mem)
	}
	return nil
}
