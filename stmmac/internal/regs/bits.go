package regs

import (
	"fmt"
	"math/bits"
	"strings"
)

// Bits are the named bits of a register and, with masks of several, its fields, in
// the order in which they are told.
type Bits[T ~uint32] []struct {
	Mask T
	Name string // of the databook
}

// String tells what is set in v: the names of bits, fields as NAME=number, and
// what has no name as a number, joined by "|". It is "0" if nothing is set.
func (b Bits[T]) String(v T) string {
	var parts []string
	rest := v
	for _, e := range b {
		x := uint32(v&e.Mask) >> bits.TrailingZeros32(uint32(e.Mask))
		rest &^= e.Mask
		switch {
		case x == 0:
		case bits.OnesCount32(uint32(e.Mask)) == 1:
			parts = append(parts, e.Name)
		default:
			parts = append(parts, fmt.Sprintf("%s=%d", e.Name, x))
		}
	}
	if rest != 0 {
		parts = append(parts, fmt.Sprintf("%#x", uint32(rest)))
	}
	if parts == nil {
		return "0"
	}
	return strings.Join(parts, "|")
}

// Text is the Text of a register whose values are a T.
func Text[T interface {
	~uint32
	fmt.Stringer
}](v uint32) string {
	return T(v).String()
}
