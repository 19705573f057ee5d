// Package pagepool gives packet buffers that devices reach by DMA, recycled
// without allocation.
//
// A [Pool] owns numbered arenas of memory. An arena is contiguous for every
// device it is mapped for, so a buffer's bus address is the arena's base for
// that device plus the buffer's offset: [Pool.Attach] maps all arenas for one
// more device and returns its [Mapping], which holds the bases. Buffers move
// between the devices of one pool without a copy.
//
// A [Buf] is a record of one cache line that holds no Go pointer and lies
// outside the Go heap, in memory that is never mapped for a device: a device
// that writes past a buffer hits the guard page or another payload, not the
// book-keeping, and the garbage collector has nothing to look at. Records are
// named by a [Handle] of 32 bits, which is what rings keep.
//
// The layout of one reservation:
//
//	| records, 64 bytes each | guard page | payload, one chunk a buffer |
//	                                      |<- mapped for devices ------>|
//
// and of one chunk:
//
//	| headroom | data | tailroom |
//
// Chunks are an odd number of cache lines apart, so that the first lines of
// successive buffers do not fall into the same cache sets.
//
// Start reading at [New] and [Buf]; arena.go and mem_linux.go say where the
// memory comes from, mapping.go how a device sees it, cache.go how a goroutine
// that allocates a few buffers at a time avoids the lock. It imports
// package barrier at most, and golang.org/x/sys.
package pagepool
