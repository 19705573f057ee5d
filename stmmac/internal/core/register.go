package core

import "fmt"

// Register is a register of a device and what it held.
type Register struct {
	Name string // of the databook, in its layout: DMA_CH0_Status
	Off  uint32 // bytes from the start of the CSR space, where the device has it
	Val  uint32
	// Bits names what is set in Val: bits by their name, fields as NAME=number and
	// what has no name as a number, as in "SWR|INTM=2"; "0" if nothing is set, and
	// "" for a register that is one number.
	Bits string
}

// String formats the register as "DMA_Mode (0x1000) = 0x00010001 SWR|INTM=1".
func (r Register) String() string {
	s := fmt.Sprintf("%s (0x%04x) = 0x%08x", r.Name, r.Off, r.Val)
	if r.Bits != "" {
		s += " " + r.Bits
	}
	return s
}
