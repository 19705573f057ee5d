// Package mmio is the seam between a driver and the registers of its device.
//
// A [Region] is a window of 32-bit registers. [Map] puts one over mapped
// hardware, [Window] narrows one, [Trace] shows every access to a function and
// [Fake] is a scripted register file for tests: write-1-to-clear, read-clear
// and self-clearing bits, hooks and a log.
//
// Registers are typed: a [Reg] is the offset of a register whose value has a
// type of its own, and a [Field] is a bit field of that type, so that a bit of
// one register cannot be written to another.
//
//	const MACConfiguration mmio.Reg[Configuration] = 0x0000
//	v := MACConfiguration.Load(region)
//	MACConfiguration.Update(region, FES|PS, DM)
//
// Every access is one 32-bit load or store done in assembly by package barrier,
// which is the only package this one imports; a plain Go access may be merged,
// dropped or narrowed by the compiler, and a sync/atomic store is a locked
// instruction that uncached memory does not take.
//
// Start reading at [Region], then [Reg].
package mmio
