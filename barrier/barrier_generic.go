//go:build barrier_generic || !(386 || amd64 || arm64 || loong64 || riscv64 || (arm && (arm.6 || linux)))

package barrier

import "sync/atomic"

// The accessors are not instrumented under -race, as the assembly is not: the other side of every access is a device.

// fence orders everything before it before everything after it. The pair is needed: an atomic addition is LWSYNC alone
// on ppc64x, which lets a later load pass an earlier store, and LAA alone on s390x. The store and the load give SYNC on
// ppc64x and mips*, and BCR 14,0 on s390x. The word is private, so that callers do not share a cache line.
func fence() {
	var w uint32
	atomic.StoreUint32(&w, 0)
	atomic.LoadUint32(&w)
}

// DMARead orders earlier loads (the OWN word that a device cleared) before later loads (the other words of the
// descriptor, the payload). Here: a full fence.
//
//go:noinline
func DMARead() { fence() }

// DMAWrite orders earlier stores (payload, descriptor bodies) before later stores (the OWN word that hands a descriptor
// to the device). Here: a full fence.
//
//go:noinline
func DMAWrite() { fence() }

// DMARelease orders earlier loads and stores (the read of a received payload, the body of the refilled descriptor)
// before later stores (the OWN word that gives the buffer back to the device). Here: a full fence.
//
//go:noinline
func DMARelease() { fence() }

// DMAFull orders all earlier loads and stores before all later ones; it is needed only between an earlier store (OWN)
// and a later load (whether the device stopped). Here: a full fence.
//
//go:noinline
func DMAFull() { fence() }

// IORead orders an earlier load of a device register before later loads of memory. [Load32] contains it. Here: a full
// fence.
//
//go:noinline
func IORead() { fence() }

// IOWrite orders earlier stores to memory (the OWN word) before a later store to a device register (the doorbell).
// [Store32] contains it. Here: a full fence.
//
//go:noinline
func IOWrite() { fence() }

// LoadOwn loads the ownership word at p: one 32-bit load and no ordering. p must be a multiple of 4. Here: a plain load
// in a function that is not inlined, so that it is neither merged nor elided.
//
//go:noinline
//go:norace
func LoadOwn(p *uint32) uint32 { return *p }

// StoreOwn stores v into the ownership word at p: one 32-bit store and no ordering. p must be a multiple of 4. Here: a
// plain store in a function that is not inlined, so that it is not merged.
//
//go:noinline
//go:norace
func StoreOwn(p *uint32, v uint32) { *p = v }

// Load32 loads the device register at p: one 32-bit load, ordered before later loads of memory and of registers. p must
// be a multiple of 4. Here: a full fence, a plain load, a full fence.
//
//go:noinline
//go:norace
func Load32(p *uint32) uint32 {
	fence()
	v := *p
	fence()
	return v
}

// Store32 stores v into the device register at p: one 32-bit store, ordered after earlier stores to memory. p must be a
// multiple of 4. Here: a full fence, a plain store, a full fence.
//
//go:noinline
//go:norace
func Store32(p *uint32, v uint32) {
	fence()
	*p = v
	fence()
}
