package core

import (
	"fmt"

	"github.com/gostmmac/gostmmac/pagepool"
)

// Bytes around the payload of a frame.
const (
	EthHeaderLen = 14
	VLANTagLen   = 4
	MinFrameLen  = 60 // without FCS (IEEE 802.3, minFrameSize)
	// frameOverhead is what a frame has beside its MTU: the header, two tags
	// and the FCS.
	frameOverhead = EthHeaderLen + 2*VLANTagLen + FCSLen
)

// busWidth is the widest bus of the IP in bytes: a device counts the room of a
// first buffer from its start rounded down to the width of its bus.
const busWidth = 16

// MaxFrameLen is the longest frame at an MTU in bytes, with two VLAN tags and FCS.
func MaxFrameLen(mtu int) int { return mtu + frameOverhead }

// ChooseRxLayout says where frames start in a chunk of chunk bytes.
//
// The start is headroom + ipAlign while the longest frame fits into one buffer
// behind it. Where frames may span buffers every buffer starts and ends on a
// cache line, because a device ignores the low bits of the start of a
// continuation and writes whole bus words. The size never exceeds what lies
// behind the start, is a multiple of 64 and at most maxSize.
func ChooseRxLayout(mtu, chunk, headroom, ipAlign, maxSize int) (RxLayout, error) {
	l := RxLayout{MaxFrame: MaxFrameLen(mtu)}
	fits := func(start int) bool {
		l.Start = start
		l.Size = min((chunk-start)&^63, maxSize&^63)
		l.First = l.Size - start%busWidth
		return l.Size >= 64
	}
	if fits(headroom+ipAlign) && l.First >= l.MaxFrame {
		l.Single = l.Start%busWidth != 0
		return l, nil
	}
	line := pagepool.CacheLine
	if !fits((headroom + line - 1) / line * line) {
		return RxLayout{}, fmt.Errorf("a buffer of %d bytes with %d bytes of headroom holds no frame", chunk, headroom)
	}
	if line > 64 {
		l.Size &^= line - 1
		l.First = l.Size
		if l.Size == 0 {
			return RxLayout{}, fmt.Errorf("a buffer of %d bytes with %d bytes of headroom holds no frame", chunk, headroom)
		}
	}
	return l, nil
}
