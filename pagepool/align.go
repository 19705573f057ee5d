package pagepool

import (
	"unsafe"

	"golang.org/x/sys/cpu"
)

// CacheLine is the size in bytes that buffers are aligned to: the cache line
// of the architecture, 64 or more.
const CacheLine = max(64, int(unsafe.Sizeof(cpu.CacheLinePad{})))

// NetSKBPad is the headroom of a received frame in bytes; Linux NET_SKB_PAD.
const NetSKBPad = 64

// XDPHeadroom is the headroom of a received frame in bytes where a program may
// move its start; Linux XDP_PACKET_HEADROOM.
const XDPHeadroom = 256

func roundUp(n, to int) int { return (n + to - 1) / to * to }

// stride returns the distance of two chunks of size bytes: an odd number of
// cache lines, so that successive chunks start in different cache sets.
func stride(size int) int {
	s := roundUp(size, CacheLine)
	if s/CacheLine%2 == 0 {
		s += CacheLine
	}
	return s
}
