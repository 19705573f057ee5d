// Package regs holds what the register packages of all generations share: how
// registers are named and where those of channels and queues lie.
//
// The registers themselves stand in one package per generation; start reading
// at gmac4reg. It may import mmio.
package regs

import "fmt"

// Register names a register, or an array of registers that lie Stride bytes
// apart; then the name has a %d for the index.
type Register struct {
	Off    uint32
	Name   string
	Stride uint32
	Count  int

	Read Read                  // what reading it does
	Text func(v uint32) string // what a value says, as "SWR|INTM=2"; nil if it has no bits with names
}

// Read says whether a register may be read by somebody who only wants to look.
type Read uint8

// What reading a register does.
const (
	ReadPlain  Read = iota // nothing
	ReadClears             // it clears bits, sets a count back or takes something out of a queue
	ReadWindow             // nothing, but it shows what the last access through it moved
)

// Table is the register map of a generation.
type Table []Register

// Name returns the name of the register at off with the index filled in, as
// DMA_CH2_Status for element 2 of DMA_CH%d_Status, or "".
func (t Table) Name(off uint32) string {
	r, i := t.Find(off)
	switch {
	case r == nil:
		return ""
	case r.Stride == 0:
		return r.Name
	}
	return fmt.Sprintf(r.Name, i)
}

// Find returns the register at off and, of an array, which element that is; or nil.
func (t Table) Find(off uint32) (r *Register, i int) {
	for n := range t {
		r := &t[n]
		if r.Stride == 0 {
			if r.Off == off {
				return r, 0
			}
			continue
		}
		if off < r.Off || (off-r.Off)%r.Stride != 0 {
			continue
		}
		if i := int((off - r.Off) / r.Stride); i < r.Count {
			return r, i
		}
	}
	return nil, 0
}
