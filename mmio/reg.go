package mmio

import "math/bits"

// Reg is the byte offset of a register whose value is a T.
type Reg[T ~uint32] uint32

// Load reads the register.
func (r Reg[T]) Load(m Region) T { return T(m.Load32(uint32(r))) }

// Store writes the register.
func (r Reg[T]) Store(m Region, v T) { m.Store32(uint32(r), uint32(v)) }

// Update reads the register, clears and then sets bits, writes the result back
// and returns it. It must not be used on a register with write-1-to-clear or
// read-clear bits. The caller holds the lock that guards the register.
func (r Reg[T]) Update(m Region, clear, set T) T {
	v := r.Load(m)&^clear | set
	r.Store(m, v)
	return v
}

// At returns element n of an array of registers that lie stride bytes apart.
func (r Reg[T]) At(n int, stride uint32) Reg[T] { return r + Reg[T](uint32(n)*stride) }

// Field is the mask of a bit field of a register value of type T.
type Field[T ~uint32] uint32

// Get returns the field of v, shifted down to bit 0.
func (f Field[T]) Get(v T) uint32 {
	return (uint32(v) & uint32(f)) >> uint(bits.TrailingZeros32(uint32(f)))
}

// Put returns v with the field set to x; bits of x that the field has no room
// for are dropped.
func (f Field[T]) Put(v T, x uint32) T {
	return T(uint32(v)&^uint32(f) | x<<uint(bits.TrailingZeros32(uint32(f)))&uint32(f))
}

// Of returns a value with only this field set to x.
func (f Field[T]) Of(x uint32) T { return f.Put(0, x) }

// Mask returns all bits of the field.
func (f Field[T]) Mask() T { return T(f) }

// Max returns the largest number that the field holds.
func (f Field[T]) Max() uint32 { return f.Get(T(f)) }
