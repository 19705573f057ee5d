//go:build hwtest

package hwtest

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"net"
	"slices"
)

const (
	headerLen = 14
	shortest  = 60 // of a frame without FCS (IEEE 802.3, minFrameSize)

	// typeLocal is the first local experimental EtherType (IEEE 802).
	typeLocal = 0x88b5
	typeVLAN  = 0x8100
	typeSVLAN = 0x88a8
	typeIPv4  = 0x0800
	typeIPv6  = 0x86dd
)

// frame is a frame of n bytes, 24 or more, with a number in it and a payload that
// follows from both.
func frame(dst, src net.HardwareAddr, n int, seq uint64) []byte {
	f := make([]byte, n)
	copy(f, dst)
	copy(f[6:], src)
	binary.BigEndian.PutUint16(f[12:], typeLocal)
	binary.BigEndian.PutUint64(f[14:], seq)
	binary.BigEndian.PutUint16(f[22:], uint16(n))
	fill(f[24:], seq+uint64(n))
	return f
}

// fill writes bytes that follow from seed.
func fill(p []byte, seed uint64) {
	x := seed*0x9e3779b97f4a7c15 | 1
	for i := range p {
		x ^= x << 13
		x ^= x >> 7
		x ^= x << 17
		p[i] = byte(x)
	}
}

// checkFrame says what is wrong with a frame that frame has made, whatever its
// number.
func checkFrame(f []byte) error {
	if len(f) < shortest {
		return fmt.Errorf("a frame of %d bytes", len(f))
	}
	want := frame(f[:6], f[6:12], max(24, int(binary.BigEndian.Uint16(f[22:]))), binary.BigEndian.Uint64(f[14:]))
	if !bytes.Equal(f, want) {
		return fmt.Errorf("a frame of %d bytes has other bytes than it was sent with: % .32x", len(f), f)
	}
	return nil
}

// markText starts the payload of a mark.
const markText = "mark"

// mark is a frame that says that those before it have arrived or never will.
func mark(dst, src net.HardwareAddr, seq uint64) []byte {
	f := make([]byte, shortest)
	copy(f, dst)
	copy(f[6:], src)
	binary.BigEndian.PutUint16(f[12:], typeLocal+1)
	copy(f[14:], markText)
	binary.BigEndian.PutUint64(f[14+len(markText):], seq)
	return f
}

func isMark(f []byte) bool {
	return len(f) == shortest && binary.BigEndian.Uint16(f[12:]) == typeLocal+1 && string(f[14:][:len(markText)]) == markText
}

// tagged is a frame with a tag before its type.
func tagged(f []byte, tpid, tci uint16) []byte {
	t := binary.BigEndian.AppendUint16(binary.BigEndian.AppendUint16(nil, tpid), tci)
	return slices.Concat(f[:12], t, f[12:])
}

// compare says how the frames that came differ from those that were sent.
func compare(got, want [][]byte) error {
	for i := range min(len(got), len(want)) {
		if !bytes.Equal(got[i], want[i]) {
			at := 0
			for at < min(len(got[i]), len(want[i])) && got[i][at] == want[i][at] {
				at++
			}
			return fmt.Errorf("frame %d of %d differs from byte %d on: %d bytes % .24x…, want %d bytes % .24x…",
				i+1, len(want), at, len(got[i]), got[i][at:], len(want[i]), want[i][at:])
		}
	}
	if len(got) != len(want) {
		return fmt.Errorf("%d frames of %d", len(got), len(want))
	}
	return nil
}

// Protocols of IP.
const (
	protoICMP   = 1
	protoTCP    = 6
	protoUDP    = 17
	protoICMPv6 = 58
)

// packet describes an IP packet in a frame.
type packet struct {
	name  string
	six   bool
	proto byte
	frag  uint16 // flags and offset of a fragment of IPv4
}

// kinds are the packets whose checksums an engine handles.
func kinds() []packet {
	return []packet{
		{"ipv4-udp", false, protoUDP, 0}, {"ipv4-tcp", false, protoTCP, 0}, {"ipv4-icmp", false, protoICMP, 0},
		{"ipv6-udp", true, protoUDP, 0}, {"ipv6-tcp", true, protoTCP, 0}, {"ipv6-icmp", true, protoICMPv6, 0},
	}
}

// build is a frame with the packet, of n bytes, and the checksums that belong in it.
func (p packet) build(dst, src net.HardwareAddr, n int, seq uint64) []byte {
	f := make([]byte, n)
	copy(f, dst)
	copy(f[6:], src)
	ip := f[headerLen:]
	var l4 []byte
	if p.six {
		binary.BigEndian.PutUint16(f[12:], typeIPv6)
		ip[0], ip[6], ip[7] = 0x60, p.proto, 64
		binary.BigEndian.PutUint16(ip[4:], uint16(len(ip)-40))
		copy(ip[8:], net.ParseIP("2001:db8::1"))
		copy(ip[24:], net.ParseIP("2001:db8::2"))
		l4 = ip[40:]
	} else {
		binary.BigEndian.PutUint16(f[12:], typeIPv4)
		copy(ip, []byte{0x45, 0, 0, 0, byte(seq >> 8), byte(seq), byte(p.frag >> 8), byte(p.frag), 64, p.proto, 0, 0, 192, 0, 2, 1, 192, 0, 2, 2})
		binary.BigEndian.PutUint16(ip[2:], uint16(len(ip)))
		l4 = ip[20:]
	}
	fill(l4, seq)
	switch p.proto {
	case protoUDP:
		copy(l4, []byte{0, 9, 0, 9})
		binary.BigEndian.PutUint16(l4[4:], uint16(len(l4)))
	case protoTCP:
		l4[12], l4[13] = 0x50, 0x10
	case protoICMP, protoICMPv6:
		l4[0], l4[1] = map[byte]byte{protoICMP: 8, protoICMPv6: 128}[p.proto], 0
	}
	p.finish(f)
	return f
}

// l4 is where the header of the protocol and its checksum are.
func (p packet) l4() (at, sum int) {
	at = headerLen + 20
	if p.six {
		at = headerLen + 40
	}
	return at, at + map[byte]int{protoICMP: 2, protoICMPv6: 2, protoTCP: 16, protoUDP: 6}[p.proto]
}

// finish puts the checksums into a frame.
func (p packet) finish(f []byte) {
	ip := f[headerLen:]
	at, where := p.l4()
	if !p.six {
		ip[10], ip[11] = 0, 0
		binary.BigEndian.PutUint16(ip[10:], ^sum(0, ip[:20]))
	}
	if p.frag != 0 {
		return // it has no checksum that could be right
	}
	pseudo := uint32(0)
	switch {
	case p.six:
		pseudo = uint32(sum(uint32(p.proto)+uint32(len(f)-at), ip[8:40]))
	case p.proto != protoICMP:
		pseudo = uint32(sum(uint32(p.proto)+uint32(len(f)-at), ip[12:20]))
	}
	f[where], f[where+1] = 0, 0
	v := ^sum(pseudo, f[at:])
	if v == 0 && p.proto == protoUDP {
		v = 0xffff // 0 is none (RFC 768)
	}
	binary.BigEndian.PutUint16(f[where:], v)
}

// spoil makes the checksums of a frame wrong.
func (p packet) spoil(f []byte) {
	_, where := p.l4()
	if !p.six {
		f[headerLen+10] ^= 0x55
	}
	f[where] ^= 0x55
	f[where+1] ^= 0xaa
}

// sum is the sum of RFC 1071.
func sum(s uint32, b []byte) uint16 {
	for ; len(b) > 1; b = b[2:] {
		s += uint32(binary.BigEndian.Uint16(b))
	}
	if len(b) > 0 {
		s += uint32(b[0]) << 8
	}
	for s > 0xffff {
		s = s>>16 + s&0xffff
	}
	return uint16(s)
}
