package checksum

import (
	"encoding/binary"

	"github.com/gostmmac/gostmmac/pagepool"
)

// Protocol numbers (IANA).
const (
	protoICMP     = 1
	protoTCP      = 6
	protoUDP      = 17
	protoRouting  = 43
	protoFragment = 44
	protoICMPv6   = 58
	protoDest     = 60
	protoHopByHop = 0
)

const (
	etherLen  = 14
	tagLen    = 4
	maxTags   = 2
	typeIPv4  = 0x0800
	typeIPv6  = 0x86dd
	typeVLAN  = 0x8100
	typeSVLAN = 0x88a8

	ipv4Len = 20
	ipv6Len = 40
	// maxExtensions bounds the walk through the extension headers of IPv6.
	maxExtensions = 16
)

// Place is where the checksums of a frame stand.
type Place struct {
	l3, l4 int // offsets in the frame; l4 is 0 if nothing behind the IP header is summed
	l4Len  int // bytes that the sum of the payload covers
	field  int // offset of that sum in the frame
	v6     bool
	hlen   int // bytes of the IPv4 header
	proto  uint8

	// Plain says that a checksum engine of this IP does the whole frame, if it can
	// look behind its tags: the network header has neither options nor extension
	// headers, the packet is no fragment and fills the frame to its end, and its
	// payload is TCP, UDP, ICMPv4 or ICMPv6.
	Plain bool
	// Tags is how many tags with the TPID 0x8100 stand before the network header;
	// with another one the frame is not Plain.
	Tags int
	// ICMPv4 says that the field of the payload's checksum must be 0 for such an
	// engine: it sums it.
	ICMPv4 bool
}

// Parse looks for the checksums of a frame whose first buffer is b. It is false
// if the frame has none: it is no IP packet, or not a whole one.
func Parse(b *pagepool.Buf) (p Place, ok bool) {
	total := b.FrameLen()
	var h [ipv6Len]byte
	off := etherLen - 2
	var etype uint16
	service := false
	for ; ; p.Tags++ {
		if !load(b, off, h[:2]) {
			return p, false
		}
		etype = binary.BigEndian.Uint16(h[:])
		if etype != typeVLAN && etype != typeSVLAN || p.Tags == maxTags {
			break
		}
		service = service || etype == typeSVLAN
		off += tagLen
	}
	p.l3 = off + 2
	switch etype {
	case typeIPv4:
		ok = p.parse4(b, h[:ipv4Len], total-p.l3)
	case typeIPv6:
		ok = p.parse6(b, h[:], total-p.l3)
	}
	p.Plain = p.Plain && !service
	return p, ok
}

// parse4 reads an IPv4 header; room is what the frame has from it on.
func (p *Place) parse4(b *pagepool.Buf, h []byte, room int) bool {
	if !load(b, p.l3, h) || h[0]>>4 != 4 {
		return false
	}
	p.hlen = int(h[0]&0xf) * 4
	size := int(binary.BigEndian.Uint16(h[2:]))
	if p.hlen < ipv4Len || size < p.hlen || size > room {
		return false
	}
	p.proto = h[9]
	const fragment = 0x3fff // MF and the offset
	if binary.BigEndian.Uint16(h[6:])&fragment != 0 {
		return true
	}
	whole := p.payload(b, p.l3+p.hlen, size-p.hlen)
	p.Plain = whole && p.hlen == ipv4Len && size == room
	return true
}

// parse6 reads an IPv6 header and its extension headers.
func (p *Place) parse6(b *pagepool.Buf, h []byte, room int) bool {
	if !load(b, p.l3, h) || h[0]>>4 != 6 {
		return false
	}
	p.v6 = true
	size := int(binary.BigEndian.Uint16(h[4:]))
	if size == 0 || size+ipv6Len > room { // 0 is a jumbogram
		return false
	}
	next, at, end := h[6], p.l3+ipv6Len, p.l3+ipv6Len+size
	plain := size+ipv6Len == room
	for range maxExtensions {
		var e [8]byte
		switch next {
		case protoHopByHop, protoDest, protoRouting, protoFragment:
			if at+len(e) > end || !load(b, at, e[:]) {
				return false
			}
		}
		n := 8 * (int(e[1]) + 1)
		switch next {
		case protoHopByHop, protoDest:
		case protoRouting:
			if e[3] != 0 {
				return false // the destination that is summed stands in the header
			}
		case protoFragment:
			if binary.BigEndian.Uint16(e[2:])&^6 != 0 { // the offset and M
				return false
			}
			n = 8
		default:
			p.proto = next
			whole := p.payload(b, at, end-at)
			p.Plain = whole && plain
			return p.l4 != 0
		}
		plain = false
		next, at = e[0], at+n
	}
	return false
}

// payload looks at the n bytes of payload at off. It is false if their checksum
// is not known, or does not cover all of them.
func (p *Place) payload(b *pagepool.Buf, off, n int) bool {
	least, field := 0, 0
	switch {
	case p.proto == protoTCP:
		least, field = 20, 16
	case p.proto == protoUDP:
		least, field = 8, 6
	case p.proto == protoICMP && !p.v6:
		least, field = 8, 2
	case p.proto == protoICMPv6 && p.v6:
		least, field = 4, 2
	default:
		return false
	}
	if n < least {
		return false
	}
	size := n
	if p.proto == protoUDP {
		var l [2]byte
		load(b, off+4, l[:])
		if size = int(binary.BigEndian.Uint16(l[:])); size < least || size > n {
			return false
		}
	}
	p.l4, p.l4Len, p.field = off, size, off+field
	p.ICMPv4 = p.proto == protoICMP
	return size == n
}

// load copies len(to) bytes of the frame from off on. It is false if there are
// not as many.
func load(b *pagepool.Buf, off int, to []byte) bool {
	for ; b != nil && len(to) > 0; b = b.Next() {
		p := b.Bytes()
		if off >= len(p) {
			off -= len(p)
			continue
		}
		to = to[copy(to, p[off:]):]
		off = 0
	}
	return len(to) == 0
}

// store is the inverse of load.
func store(b *pagepool.Buf, off int, from []byte) {
	for ; b != nil && len(from) > 0; b = b.Next() {
		p := b.Bytes()
		if off >= len(p) {
			off -= len(p)
			continue
		}
		from = from[copy(p[off:], from):]
		off = 0
	}
}
