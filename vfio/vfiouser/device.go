package vfiouser

import (
	"encoding/binary"

	"github.com/gostmmac/gostmmac/mmio"
)

// Device is what a PCI function does.
//
// ReadBAR, WriteBAR and Reset are called by one goroutine at a time, in the client's
// order, and are to return soon: the client's next command waits. They may use all
// methods of the [Function]. DropWindows may be called at the same time.
type Device interface {
	// ReadBAR reads and WriteBAR writes registers: len(p) is 1, 2, 4 or 8, off a
	// multiple of it, and all of it inside the BAR. A read fills p, which is zero
	// before. The byte order is that of PCI, little-endian. The MSI-X table and the PBA are not among the
	// registers.
	ReadBAR(bar int, off uint64, p []byte)
	WriteBAR(bar int, off uint64, p []byte)
	// Reset puts the device into the state after power-on: it accesses no memory
	// until it is told to, and holds its interrupt line low.
	Reset()
	// DropWindows makes the device forget what Function.Window and Function.Extent
	// returned: when it returns, the memory may go away. It must not wait for a call
	// of ReadBAR, WriteBAR or Reset.
	DropWindows()
}

// ReadRegion reads p at off from 32-bit registers, for a ReadBAR: less than a word is a
// part of it, and two words are read one after the other, the lower first.
func ReadRegion(r mmio.Region, off uint64, p []byte) {
	var word [4]byte
	for len(p) > 0 {
		binary.LittleEndian.PutUint32(word[:], loadAt(r, off&^3))
		n := copy(p, word[off&3:])
		p, off = p[n:], off+uint64(n)
	}
}

// WriteRegion writes p at off to 32-bit registers, for a WriteBAR. Less than a word is
// merged with what the register reads as. Two words are written one after the other, the
// lower first.
func WriteRegion(r mmio.Region, off uint64, p []byte) {
	var word [4]byte
	for len(p) > 0 {
		at := off &^ 3
		if off != at || len(p) < len(word) {
			binary.LittleEndian.PutUint32(word[:], loadAt(r, at))
		}
		n := copy(word[off&3:], p)
		if at < uint64(r.Len()) {
			r.Store32(uint32(at), binary.LittleEndian.Uint32(word[:]))
		}
		p, off = p[n:], off+uint64(n)
	}
}

// loadAt loads a register whose offset may be larger than any region.
func loadAt(r mmio.Region, off uint64) uint32 {
	if off >= uint64(r.Len()) {
		return mmio.AllOnes
	}
	return r.Load32(uint32(off))
}
