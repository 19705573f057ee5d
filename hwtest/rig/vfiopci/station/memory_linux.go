package main

import (
	"errors"

	"golang.org/x/sys/unix"

	"github.com/gostmmac/gostmmac/stmmac"
)

// memoryFor maps memory for a device: of the process, or what the device brings without an
// IOMMU.
func memoryFor(d stmmac.Device) (mem []byte, at uint64, unmap func() error, err error) {
	if c, ok := d.(interface{ MaxContiguousDMA() int }); ok && c.MaxContiguousDMA() > 0 {
		const align = 4096
		mem, at, err := d.AllocDMA(c.MaxContiguousDMA(), align)
		if err != nil {
			return nil, 0, nil, err
		}
		return mem, at, func() error { return d.UnmapDMA(at, len(mem)) }, nil
	}
	mem, err = unix.Mmap(-1, 0, watched, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
	if err != nil {
		return nil, 0, nil, err
	}
	if at, err = d.MapDMA(mem); err != nil {
		return nil, 0, nil, errors.Join(err, unix.Munmap(mem))
	}
	return mem, at, func() error { return errors.Join(d.UnmapDMA(at, len(mem)), unix.Munmap(mem)) }, nil
}
