package usercheck

import (
	"encoding/binary"
	"sync"

	"github.com/gostmmac/gostmmac/vfio/vfiouser"
)

// What the function has. BAR 0 is memory that keeps what is written, with a log; BAR 2 has
// the MSI-X table and the PBA.
const (
	vendor, product = 0x1f0a, 0x0035
	class           = 0xff0000
	barSize         = 0x1_0000
	bar2Size        = 0x4000
	tableOffset     = 0x1000
	pbaOffset       = 0x2000
	msixVectors     = 6
	msiVectors      = 4
)

func function() (*vfiouser.Function, error) {
	return vfiouser.New(vfiouser.Config{
		Name: "usercheck", Vendor: vendor, Device: product, Class: class, Revision: 2,
		BARs: [6]vfiouser.BAR{{Size: barSize}, {}, {Size: bar2Size, Wide: true, Prefetch: true}},
		INTx: true, MSI: vfiouser.MSI{Vectors: msiVectors, Maskable: true},
		MSIX: vfiouser.MSIX{Vectors: msixVectors, BAR: 2, Table: tableOffset, PBA: pbaOffset}, PM: true, PCIe: true,
	})
}

// device is what the function does.
type device struct {
	mu     sync.Mutex
	mem    [barSize]byte
	order  []uint64 // offsets of writes, in their order
	widths map[int]int
	resets int
}

func (d *device) ReadBAR(bar int, off uint64, p []byte) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if bar == 0 {
		copy(p, d.mem[off:])
	}
}

func (d *device) WriteBAR(bar int, off uint64, p []byte) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if bar == 0 {
		copy(d.mem[off:], p)
		d.order = append(d.order, off)
		d.widths[len(p)]++
	}
}

func (d *device) Reset() {
	d.mu.Lock()
	defer d.mu.Unlock()
	clear(d.mem[:])
	d.order, d.widths = nil, map[int]int{}
	d.resets++
}

func (d *device) DropWindows() {}

// word is what the register at off holds.
func (d *device) word(off int) uint32 {
	d.mu.Lock()
	defer d.mu.Unlock()
	return binary.LittleEndian.Uint32(d.mem[off:])
}

// written takes the offsets of the writes so far, and how many there were of each width.
func (d *device) written() ([]uint64, map[int]int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	order, widths := d.order, d.widths
	d.order, d.widths = nil, map[int]int{}
	return order, widths
}

func (d *device) wasReset() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.resets
}
