// Package ixystyle is the yardstick of the side-by-side runs: a forwarding loop
// in the style of ixy.go (Emmerich et al., "The Case for Writing Network Drivers in
// High-Level Programming Languages", ANCS 2019), written for GMAC4 descriptors.
//
// It keeps what that design is known for: one Go heap object with slices per packet
// buffer, a pool that hands out one buffer per call, a slice per descriptor, every field
// read and written through bounds-checked byte slices, transmit cleaning in batches of 32,
// and one atomic doorbell store per batch. It leaves out what a driver needs and this loop
// does not: link, interrupts, counters, frames over several descriptors.
//
// The device must run between calls on the same goroutine (see fakemac): the OWN words
// are stored without a barrier, as the original stores its descriptors. A store with
// sync/atomic in that place would be an XCHG per packet that ixy.go does not pay.
package ixystyle
