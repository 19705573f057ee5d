package stmmac_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"slices"
	"testing"

	"github.com/gostmmac/gostmmac/pagepool"
	"github.com/gostmmac/gostmmac/stmmac"
)

// Protocols of the frames below.
const (
	icmp4 = 1
	tcp   = 6
	udp   = 17
	icmp6 = 58
)

// noise are n bytes that follow from seq.
func noise(n int, seq uint64) []byte { return frame(n+22, seq)[22:] }

// payload is what a protocol carries, with n bytes behind its header and with
// nonsense where checksums go.
func payload(proto byte, n int, seq uint64) []byte {
	l4 := noise(map[byte]int{udp: 8, tcp: 20, icmp4: 8, icmp6: 8}[proto]+n, seq)
	switch proto {
	case udp:
		binary.BigEndian.PutUint16(l4[4:], uint16(len(l4)))
	case icmp4, icmp6:
		l4[2] |= 1 // what D35 is about
	}
	return l4
}

// ipv4 and ipv6 are frames with nonsense in the checksum of the header.
func ipv4(proto byte, l4 []byte) []byte {
	ip := []byte{0x45, 0, 0, 0, 0, 1, 0, 0, 64, proto, 0xbe, 0xef, 192, 0, 2, 1, 192, 0, 2, 2}
	binary.BigEndian.PutUint16(ip[2:], uint16(20+len(l4)))
	return slices.Concat(frame(12, 0), []byte{8, 0}, ip, l4)
}

func ipv6(next byte, rest []byte) []byte {
	ip := slices.Concat([]byte{0x60, 0, 0, 0, byte(len(rest) >> 8), byte(len(rest)), next, 64}, noise(32, 6))
	return slices.Concat(frame(12, 0), []byte{0x86, 0xdd}, ip, rest)
}

// kindOf are the frames that an engine can do, by name.
var plainKinds = []struct {
	name  string
	proto byte
	wrap  func(byte, []byte) []byte
}{{"UDP", udp, ipv4}, {"TCP", tcp, ipv4}, {"ICMP", icmp4, ipv4}, {"UDP6", udp, ipv6}, {"TCP6", tcp, ipv6}, {"ICMPv6", icmp6, ipv6}}

// ofLen is a frame of kind i and n bytes.
func ofLen(i, n int, seq uint64) []byte {
	k := plainKinds[i%len(plainKinds)]
	over := len(k.wrap(k.proto, payload(k.proto, 0, 0)))
	return k.wrap(k.proto, payload(k.proto, n-over, seq))
}

// fixed is a frame with the checksums that belong in it. It knows the frames of
// these tests: tags, IPv4 options and fragments, IPv6 extension headers.
func fixed(f []byte) []byte {
	f = bytes.Clone(f)
	sum := func(s uint32, b []byte) uint32 {
		for i, v := range b {
			s += uint32(v) << (8 * (1 - i&1))
		}
		return s
	}
	end := func(s uint32) uint16 {
		for s > 0xffff {
			s = s&0xffff + s>>16
		}
		return ^uint16(s)
	}
	at := 12
	for ; binary.BigEndian.Uint16(f[at:]) == 0x8100 || binary.BigEndian.Uint16(f[at:]) == 0x88a8; at += 4 {
	}
	ip := f[at+2:]
	var l4, addrs []byte
	var proto byte
	switch binary.BigEndian.Uint16(f[at:]) {
	case 0x0800:
		n := int(ip[0]&15) * 4
		clear(ip[10:12])
		binary.BigEndian.PutUint16(ip[10:], end(sum(0, ip[:n])))
		if binary.BigEndian.Uint16(ip[6:])&0x3fff != 0 {
			return f
		}
		l4, addrs, proto = ip[n:binary.BigEndian.Uint16(ip[2:])], ip[12:20], ip[9]
	case 0x86dd:
		l4, addrs, proto = ip[40:][:binary.BigEndian.Uint16(ip[4:])], ip[8:40], ip[6]
		for proto == 0 || proto == 43 || proto == 60 || proto == 44 {
			if proto == 44 && binary.BigEndian.Uint16(l4[2:])&^6 != 0 {
				return f
			}
			n := 8 * (int(l4[1]) + 1)
			if proto == 44 {
				n = 8
			}
			proto, l4 = l4[0], l4[n:]
		}
	}
	field, pseudo := map[byte]int{udp: 6, tcp: 16, icmp4: 2, icmp6: 2}[proto], sum(uint32(proto)+uint32(len(l4)), addrs)
	if field == 0 {
		return f
	}
	if proto == icmp4 {
		pseudo = 0
	}
	clear(l4[field:][:2])
	v := end(sum(pseudo, l4))
	if v == 0 && proto == udp {
		v = 0xffff
	}
	binary.BigEndian.PutUint16(l4[field:], v)
	return f
}

// tagging is the tags of a frame; the zero value is none.
type tagging struct {
	there   bool
	outer   uint16
	service bool
	double  bool
	inner   uint16
}

func (g tagging) String() string {
	switch {
	case !g.there:
		return "untagged"
	case g.double:
		return fmt.Sprintf("%#04x, %#04x, service %v", g.outer, g.inner, g.service)
	}
	return fmt.Sprintf("%#04x, service %v", g.outer, g.service)
}

// beside puts the tags beside a frame.
func (g tagging) beside(b *pagepool.Buf) *pagepool.Buf {
	if !g.there {
		return b
	}
	b.Flags |= pagepool.VLANTag
	b.VLAN = g.outer
	if g.service {
		b.Flags |= pagepool.VLANService
	}
	if g.double {
		b.Flags |= pagepool.InnerVLANTag
		b.InnerVLAN = g.inner
	}
	return b
}

// among puts them among its bytes.
func (g tagging) among(f []byte) []byte {
	if !g.there {
		return f
	}
	tags := []byte{0x81, 0, byte(g.outer >> 8), byte(g.outer)}
	if g.service {
		tags[0], tags[1] = 0x88, 0xa8
	}
	if g.double {
		tags = append(tags, 0x81, 0, byte(g.inner>>8), byte(g.inner))
	}
	return slices.Concat(f[:12], tags, f[12:])
}

// tagsBeside are the tags beside a received frame.
func tagsBeside(b *pagepool.Buf) (g tagging) {
	if b.Flags&pagepool.VLANTag != 0 {
		g = tagging{there: true, outer: b.VLAN, service: b.Flags&pagepool.VLANService != 0}
	}
	if b.Flags&pagepool.InnerVLANTag != 0 {
		g.double, g.inner = true, b.InnerVLAN
	}
	return g
}

// queued are rig settings with n queues each way.
func queued(n int, c rigConfig) rigConfig {
	c.sim.RxQueues, c.sim.TxQueues = n, n
	c.opts = append(slices.Clone(c.opts), stmmac.WithQueues(n, n), stmmac.WithRings(512/n, 512/n))
	return c
}

// with is an option that changes the configuration.
func with(f func(*stmmac.Config)) stmmac.Option { return stmmac.WithConfig(f) }

// put sends one frame on a queue; the model has no say before step.
func (r *rig) put(q int, b *pagepool.Buf) {
	r.Helper()
	if n, err := r.mac.Tx(q).Send([]*pagepool.Buf{b}); n != 1 || err != nil {
		r.Fatalf("send took %d: %v", n, err)
	}
}

// leaves sends a frame and fails unless what is on the wire then is want.
func (r *rig) leaves(q int, b *pagepool.Buf, want []byte, what string, args ...any) {
	r.Helper()
	r.put(q, b)
	r.step()
	r.onWire([][]byte{want}, what, args...)
}

// onWire fails unless the frames were sent since the last look. Frames below the
// minimum have a pad.
func (r *rig) onWire(want [][]byte, what string, args ...any) {
	r.Helper()
	got := r.wire.take()
	if len(got) != len(want) {
		r.Fatalf("%s: %d frames on the wire, want %d", fmt.Sprintf(what, args...), len(got), len(want))
	}
	for i, w := range want {
		if len(w) < 60 {
			w = append(bytes.Clone(w), make([]byte, 60-len(w))...)
		}
		if !bytes.Equal(got[i], w) {
			at := 0
			for at < min(len(got[i]), len(w)) && got[i][at] == w[at] {
				at++
			}
			r.Fatalf("%s: frame %d differs from byte %d of %d on:\ngot  %.80x\nwant %.80x", fmt.Sprintf(what, args...), i, at, len(w), got[i], w)
		}
	}
}

// asked is a frame in buffers of at most each bytes whose checksums are asked for.
func (r *rig) asked(f []byte, each int) *pagepool.Buf {
	r.Helper()
	b := r.buf(f, each)
	b.Flags |= pagepool.TxCsum
	return b
}

// takeOne receives one frame and keeps it.
func (r *rig) takeOne(q int) *pagepool.Buf {
	r.Helper()
	var one [1]*pagepool.Buf
	r.step()
	if r.mac.Rx(q).Recv(one[:]) != 1 {
		r.Fatalf("no frame on queue %d; %+v", q, r.mac.Rx(q).Stats())
	}
	return one[0]
}

// txStats sums the counts of all transmit queues.
func (r *rig) txStats() map[string]uint64 {
	sum := map[string]uint64{}
	for q := range r.numTx() {
		for name, v := range r.mac.Tx(q).Stats().All() {
			sum[name] += v
		}
	}
	return sum
}

// TestFixed holds the judge of the frames below to vectors of case D35.
func TestFixed(t *testing.T) {
	for _, c := range []struct {
		l4   []byte
		want uint16
	}{
		{[]byte{0x11, 0x11, 0x22, 0x22, 0, 10, 1, 2, 0xab, 0xcd}, 0x9cd5},
		{[]byte{0x11, 0x11, 0x22, 0x22, 0, 10, 1, 2, 0x48, 0xa3}, 0xffff},
		{[]byte{0x11, 0x11, 0x22, 0x22, 0, 11, 1, 2, 0xab, 0xcd, 1}, 0x9bd3},
	} {
		if got := binary.BigEndian.Uint16(fixed(ipv4(udp, c.l4))[40:]); got != c.want {
			t.Errorf("%#04x, want %#04x", got, c.want)
		}
	}
}
