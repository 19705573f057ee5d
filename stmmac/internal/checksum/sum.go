package checksum

import (
	"encoding/binary"

	"github.com/gostmmac/gostmmac/pagepool"
)

// sum adds n bytes of a frame from off on to a sum of 16-bit words (RFC 1071).
func sum(b *pagepool.Buf, off, n int, s uint64) uint64 {
	odd := false
	for ; b != nil && n > 0; b = b.Next() {
		p := b.Bytes()
		if off >= len(p) {
			off -= len(p)
			continue
		}
		p = p[off:min(len(p), off+n)]
		n -= len(p)
		off = 0
		if odd && len(p) > 0 {
			s += uint64(p[0])
			p = p[1:]
			odd = false
		}
		for ; len(p) >= 4; p = p[4:] {
			s += uint64(binary.BigEndian.Uint32(p))
		}
		if len(p) >= 2 {
			s += uint64(binary.BigEndian.Uint16(p))
			p = p[2:]
		}
		if len(p) > 0 {
			s += uint64(p[0]) << 8
			odd = true
		}
	}
	return s
}

// fold makes a checksum of a sum.
func fold(s uint64) uint16 {
	for s>>16 != 0 {
		s = s>>16 + s&0xffff
	}
	return ^uint16(s)
}

// put stores a checksum at off.
func put(b *pagepool.Buf, off int, v uint16) {
	store(b, off, []byte{byte(v >> 8), byte(v)})
}

// Fill computes the checksums that stand at p, of the frame whose first buffer
// is b.
func (p Place) Fill(b *pagepool.Buf) {
	if !p.v6 {
		at := p.l3 + 10
		put(b, at, 0)
		put(b, at, fold(sum(b, p.l3, p.hlen, 0)))
	}
	if p.l4 == 0 {
		return
	}
	put(b, p.field, 0)
	v := fold(sum(b, p.l4, p.l4Len, p.pseudo(b)))
	if v == 0 && p.proto == protoUDP {
		v = 0xffff // 0 would say that there is none
	}
	put(b, p.field, v)
}

// Clear sets the field of the payload's checksum, if it has one, to 0.
func (p Place) Clear(b *pagepool.Buf) { p.putL4(b, 0) }

// putL4 stores the checksum of the payload, if that has one.
func (p Place) putL4(b *pagepool.Buf, v uint16) {
	if p.l4 != 0 {
		put(b, p.field, v)
	}
}

// Spoil writes what is no checksum to the fields that a device overwrites: for
// a test whether it does.
func (p Place) Spoil(b *pagepool.Buf) {
	if !p.v6 {
		put(b, p.l3+10, 0x5a5a)
	}
	p.putL4(b, 0xa5a5)
}

// pseudo is the sum of the pseudo header.
func (p Place) pseudo(b *pagepool.Buf) uint64 {
	switch {
	case p.v6:
		return sum(b, p.l3+8, 32, uint64(p.l4Len)+uint64(p.proto))
	case p.proto == protoICMP:
		return 0
	}
	return sum(b, p.l3+12, 8, uint64(p.l4Len)+uint64(p.proto))
}
