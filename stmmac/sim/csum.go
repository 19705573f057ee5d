package sim

import (
	"encoding/binary"
	"math/bits"

	r4 "github.com/gostmmac/gostmmac/stmmac/internal/regs/gmac4reg"
)

// Types and protocol numbers that the checksum engines know. Sizes are those of
// RFC 791, 768, 9293, 792 and 8200; of ICMP only the checksum has to be there.
const (
	typeIPv4 = 0x0800
	typeIPv6 = 0x86dd

	protoHopByHop = 0
	protoICMP     = 1
	protoTCP      = 6
	protoUDP      = 17
	protoICMPv6   = 58
	protoDestOpts = 60

	ipv4HeaderLen = 20
	ipv6HeaderLen = 40
	udpHeaderLen  = 8
	tcpHeaderLen  = 20
	icmpMinLen    = 4
)

// sum16 adds bytes to a ones' complement sum of big-endian words. An odd last
// byte counts as the upper half of a word.
func sum16(s uint64, b []byte) uint64 {
	var c uint64
	for ; len(b) >= 32; b = b[32:] { // one chain of carries, it decides the speed
		s, c = bits.Add64(s, binary.BigEndian.Uint64(b), 0)
		s, c = bits.Add64(s, binary.BigEndian.Uint64(b[8:]), c)
		s, c = bits.Add64(s, binary.BigEndian.Uint64(b[16:]), c)
		s, c = bits.Add64(s, binary.BigEndian.Uint64(b[24:]), c)
		s += c
	}
	for ; len(b) >= 8; b = b[8:] {
		s, c = bits.Add64(s, binary.BigEndian.Uint64(b), 0)
		s += c
	}
	var tail [8]byte
	copy(tail[:], b)
	s, c = bits.Add64(s, binary.BigEndian.Uint64(tail[:]), 0)
	return s + c
}

// fold16 folds a sum to 16 bits.
func fold16(s uint64) uint16 {
	s = s>>32 + s&0xffffffff
	s = s>>32 + s&0xffffffff
	s = s>>16 + s&0xffff
	return uint16(s>>16 + s&0xffff)
}

// isTag says whether a type is that of a VLAN tag.
func (s *macState) isTag(etype uint16) bool {
	return etype == typeVLAN || etype == typeSVLAN && s.vlan&r4.ESVL != 0
}

// layer3 is where the checksum engines look for an IP header, and the type in front
// of it: behind one VLAN tag, or behind two with double VLAN processing (EDVLP).
func (s *macState) layer3(data []byte) (off int, etype uint16) {
	most := headerLen + vlanLen
	if s.vlan&r4.EDVLP != 0 {
		most += vlanLen
	}
	for off = headerLen; off <= len(data); off += vlanLen {
		if etype = binary.BigEndian.Uint16(data[off-2:]); off == most || !s.isTag(etype) {
			return off, etype
		}
	}
	return len(data), 0
}

// ipPacket is an IP packet as its header describes it.
type ipPacket struct {
	v6    bool
	bad   bool // the header is short, of another version or contradicts itself
	frag  bool
	later bool  // a fragment that is not the first
	extra bool  // IPv6 extension headers that the receive engine walks over
	proto uint8 // of the payload, or of the header at which the engine gives up
	field int   // the length field
	// The packet without what follows it in the frame, and its payload. A packet
	// that is cut short in the frame ends there, and cut is set.
	whole, payload []byte
	header         []byte // with IPv4 options
	cut            bool
}

// parseIP reads the IP header at the start of data.
func parseIP(data []byte, etype uint16) (p ipPacket) {
	if etype == typeIPv6 {
		return parseIPv6(data)
	}
	if len(data) < ipv4HeaderLen {
		p.bad, p.header = true, data
		return p
	}
	n := int(data[0]&0xf) * 4
	p.field = int(binary.BigEndian.Uint16(data[2:]))
	p.bad = data[0]>>4 != 4 || n < ipv4HeaderLen || n > len(data) || p.field < n
	p.header = data[:min(max(n, ipv4HeaderLen), len(data))]
	if p.bad {
		return p
	}
	p.cut = p.field > len(data)
	p.whole = data[:min(p.field, len(data))]
	p.payload = p.whole[n:]
	frag := binary.BigEndian.Uint16(data[6:])
	p.frag, p.later = frag&0x3fff != 0, frag&0x1fff != 0
	p.proto = data[9]
	return p
}

// parseIPv6 walks over hop-by-hop and destination options. Routing, fragment and
// security headers end the walk, so that no payload is known behind them.
func parseIPv6(data []byte) (p ipPacket) {
	p.v6 = true
	if len(data) < ipv6HeaderLen || data[0]>>4 != 6 {
		p.bad = true
		return p
	}
	p.field = int(binary.BigEndian.Uint16(data[4:]))
	p.cut = ipv6HeaderLen+p.field > len(data)
	p.header = data[:ipv6HeaderLen]
	p.whole = data[:min(ipv6HeaderLen+p.field, len(data))]
	p.proto = data[6]
	p.payload = p.whole[ipv6HeaderLen:]
	for p.proto == protoHopByHop || p.proto == protoDestOpts {
		p.extra = true
		if len(p.payload) < 2 {
			return p
		}
		n := int(p.payload[1])*8 + 8
		if n > len(p.payload) {
			return p
		}
		p.proto, p.payload = p.payload[0], p.payload[n:]
	}
	return p
}

// payloadType is the value of PT.
func (p *ipPacket) payloadType() uint32 {
	switch {
	case p.proto == protoUDP:
		return r4.PTUDP
	case p.proto == protoTCP:
		return r4.PTTCP
	case p.proto == protoICMP && !p.v6, p.proto == protoICMPv6 && p.v6:
		return r4.PTICMP
	}
	return r4.PTUnknown
}

// checksumAt is where the checksum of a payload lies in it, and how long the payload
// is at least.
func checksumAt(pt uint32) (at, least int) {
	switch pt {
	case r4.PTUDP:
		return 6, udpHeaderLen
	case r4.PTTCP:
		return 16, tcpHeaderLen
	}
	return 2, icmpMinLen
}

// pseudo is the sum of the pseudo header of a payload of n bytes. ICMP has none in
// IPv4.
func (p *ipPacket) pseudo(n int) uint64 {
	s := uint64(n) + uint64(p.proto)
	switch {
	case p.v6:
		return sum16(s, p.header[8:ipv6HeaderLen])
	case p.proto == protoICMP:
		return 0
	}
	return sum16(s, p.header[12:ipv4HeaderLen])
}

// rxCheck is what the receive checksum engine says of a frame.
type rxCheck struct {
	d1 r4.RDES1
	// Counters of packets, 0 for none, and what their counters of octets get.
	l3, l4             uint32
	l3Octets, l4Octets uint32
}

// checkRx is the receive checksum engine (databook: Receive Checksum Offload Engine,
// RDES1). It bypasses frames that are not IP, and the payload of fragments, of IPv6
// packets with a routing, fragment or security header, and of all but TCP, UDP and
// ICMP; an IP header error ends the look at the payload without IPCB. A UDP checksum
// of 0 under IPv4 is not checked. IPCE also tells of a payload whose length is not
// that of the IP header: one that is cut short, or another length in its UDP header.
func (s *macState) checkRx(data []byte) (r rxCheck) {
	off, etype := s.layer3(data)
	switch etype {
	case typeIPv4:
		r.d1 = r4.IPV4
	case typeIPv6:
		r.d1 = r4.IPV6
	default:
		r.d1 = r4.IPCB
		return r
	}
	p := parseIP(data[off:], etype)
	r.l3Octets = uint32(p.field)
	if p.bad || !p.v6 && fold16(sum16(0, p.header)) != 0xffff {
		r.d1 |= r4.IPHE
		r.l3 = r4.RxIPv4HeaderErrorPackets
		if p.v6 {
			r.l3 = r4.RxIPv6HeaderErrorPackets
		}
		return r
	}
	pt := p.payloadType()
	if p.frag || pt == r4.PTUnknown {
		r.d1 |= r4.IPCB
		switch {
		case p.v6:
			r.l3 = r4.RxIPv6NoPayloadPackets
		case p.frag:
			r.l3 = r4.RxIPv4FragmentedPackets
		default:
			r.l3 = r4.RxIPv4NoPayloadPackets
		}
		return r
	}
	r.l3 = r4.RxIPv4GoodPackets
	if p.v6 {
		r.l3 = r4.RxIPv6GoodPackets
		r.l3Octets += ipv6HeaderLen
	}
	r.d1 |= r4.RxPT.Of(pt)
	// The counters of good and bad packets of a protocol lie side by side.
	r.l4 = r4.RxUDPGoodPackets
	switch pt {
	case r4.PTTCP:
		r.l4 = r4.RxTCPGoodPackets
	case r4.PTICMP:
		r.l4 = r4.RxICMPGoodPackets
	}
	n := len(p.payload)
	r.l4Octets = uint32(n)
	at, least := checksumAt(pt)
	switch {
	case n < least || p.cut || pt == r4.PTUDP && int(binary.BigEndian.Uint16(p.payload[4:])) != n:
	case pt == r4.PTUDP && !p.v6 && binary.BigEndian.Uint16(p.payload[at:]) == 0:
		r.l4 = r4.RxIPv4UDPChecksumDisabledPackets
		return r
	case fold16(sum16(p.pseudo(n), p.payload)) == 0xffff:
		return r
	}
	r.d1 |= r4.IPCE
	r.l4 += 4
	return r
}

// countIPC counts a frame that the MAC took without error.
func (m *Model) countIPC(r *rxCheck) {
	if r.l3 != 0 {
		m.countMMC(r.l3, 1)
		m.countMMC(r.l3+r4.IPCOctets, r.l3Octets)
	}
	if r.l4 != 0 {
		m.countMMC(r.l4, 1)
		m.countMMC(r.l4+r4.IPCOctets, r.l4Octets)
	}
}

// dropsChecksum says whether the queue drops a frame because its payload checksum
// is wrong. A wrong IP header is never a reason to drop.
func (q *rxQueue) dropsChecksum(r *rxCheck) bool {
	return r.d1&r4.IPCE != 0 && !q.tcpEF && !q.fep
}

// RxChecksumLies is a way in which the status of the receive checksum engine
// misleads a driver that does not look at all of it (D42).
type RxChecksumLies int

// Kinds of RxChecksumLies. The first two clear RS1V, so word 1 is not valid: it says
// that a UDP packet has errors, or that it has none.
const (
	RxChecksumHonest      RxChecksumLies = iota
	RxChecksumStaleError                 // RS1V clear, IPHE and IPCE set
	RxChecksumStaleGood                  // RS1V clear, a good UDP packet
	RxChecksumBypassError                // IPCB, and IPHE and IPCE with it
)

// lie changes the status of a last descriptor as the fault says. A word 1 that
// announces a timestamp stays.
func (l RxChecksumLies) lie(d1 *r4.RDES1, d3 *r4.RDES3) {
	switch {
	case l == RxChecksumHonest || *d1&r4.TSA != 0:
	case l == RxChecksumBypassError:
		if *d3&r4.RxRS1V != 0 {
			*d1 |= r4.IPCB | r4.IPHE | r4.IPCE
		}
	default:
		*d1 = r4.IPV4 | r4.RxPT.Of(r4.PTUDP)
		if l == RxChecksumStaleError {
			*d1 |= r4.IPHE | r4.IPCE
		}
		*d3 &^= r4.RxRS1V
	}
}
