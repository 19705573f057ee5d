package core

import "github.com/gostmmac/gostmmac/mmio"

// Dumped is a register to read, and how to tell what it holds: nil for one that is
// a number.
type Dumped struct {
	Register
	Text func(uint32) string
}

// ReadRegisters reads the registers of a list. It asks gone when one reads as all
// registers do of a device that does not answer, and with true the list ends there
// and ok is false.
func ReadRegisters(csr mmio.Region, list []Dumped, gone func() bool) (read []Register, ok bool) {
	for _, r := range list {
		r.Val = mmio.Reg[uint32](r.Off).Load(csr)
		if r.Val == mmio.AllOnes && gone() {
			return read, false
		}
		if r.Text != nil {
			r.Bits = r.Text(r.Val)
		}
		read = append(read, r.Register)
	}
	return read, true
}
