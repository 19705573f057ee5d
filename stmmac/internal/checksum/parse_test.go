package checksum

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/gostmmac/gostmmac/pagepool"
)

// agree fails unless Parse and Fill do what the straightforward implementation
// does, and touch nothing else.
func agree(t fataler, pool *pagepool.Pool, frame []byte, lens []int) {
	t.Helper()
	want := reference(frame)
	b := split(t, pool, frame, lens)
	defer pool.Free(b)
	p, ok := Parse(b)
	if ok != want.ok || ok && (p.Plain != want.plain || p.Tags != want.tags || want.plain && p.ICMPv4 != want.icmp4) {
		t.Fatalf("%x in %v: %v %+v, want %+v", frame, lens, ok, p, want)
	}
	if ok {
		p.Fill(b)
	}
	if got := joined(t, b); !bytes.Equal(got, want.filled) {
		t.Fatalf("%x in %v:\ngot  %x\nwant %x", frame, lens, got, want.filled)
	}
}

func unhex(s string) []byte {
	b, err := hex.DecodeString(s)
	if err != nil {
		panic(err)
	}
	return b
}

var ether = unhex("020000000002020000000001")

// ip4 is a frame from 192.0.2.1 to 192.0.2.2.
func ip4(proto byte, l4 ...byte) []byte {
	ip := []byte{0x45, 0, 0, byte(20 + len(l4)), 0, 1, 0, 0, 64, proto, 0, 0, 192, 0, 2, 1, 192, 0, 2, 2}
	return slices.Concat(ether, []byte{8, 0}, ip, l4)
}

// udp is a datagram from port 0x1111 to 0x2222.
func udp(payload ...byte) []byte {
	return append([]byte{0x11, 0x11, 0x22, 0x22, 0, byte(8 + len(payload)), 0, 0}, payload...)
}

// ip6 is a frame from 2001:db8::1 to 2001:db8::2.
func ip6(next byte, rest ...byte) []byte {
	ip := unhex("60000000000000ff20010db800000000000000000000000120010db8000000000000000000000002")
	ip[4], ip[5], ip[6] = byte(len(rest)>>8), byte(len(rest)), next
	return slices.Concat(ether, []byte{0x86, 0xdd}, ip, rest)
}

// TestVectors fills frames whose checksums come from elsewhere: case D35, a
// published IPv4 header, and an implementation in another language.
func TestVectors(t *testing.T) {
	pool := newPool(t)
	filled := ip4(17, udp(0xab, 0xcd)...)
	filled[40], filled[41] = 0x9c, 0xd5
	published := slices.Concat(ether, []byte{8, 0}, unhex("450000730000400040110000c0a80001c0a800c7"), make([]byte, 0x73-20))
	for name, c := range map[string]struct {
		frame []byte
		at    int
		want  uint16
	}{
		"D35":                                 {ip4(17, udp(0xab, 0xcd)...), 40, 0x9cd5},
		"D35, IPv4 header":                    {ip4(17, udp(0xab, 0xcd)...), 24, 0xf6ca},
		"D35, a sum of 0 is sent as ones":     {ip4(17, udp(0x48, 0xa3)...), 40, 0xffff},
		"D35, filled already":                 {filled, 40, 0x9cd5},
		"an odd byte is the upper of a word":  {ip4(17, udp(0xab, 0xcd, 0x01)...), 40, 0x9bd3},
		"a published IPv4 header":             {published, 24, 0xb861},
		"ICMP has no pseudo header":           {ip4(1, unhex("0000000012340001616263")...), 36, 0x2968},
		"ICMPv6 has one":                      {ip6(58, unhex("8000000012340001616263")...), 56, 0x4dad},
		"TCP":                                 {ip4(6, unhex("111122220000000100000002501810000000000068656c6c6f")...), 50, 0xa4bb},
		"a sum of 0 of another protocol is 0": {ip4(1, unhex("0000000000000000ffff")...), 36, 0},
	} {
		b := split(t, pool, c.frame, nil)
		p, ok := Parse(b)
		if !ok {
			t.Errorf("%s: not parsed", name)
		} else {
			p.Fill(b)
		}
		if got := binary.BigEndian.Uint16(b.Bytes()[c.at:]); got != c.want {
			t.Errorf("%s: %#04x, want %#04x", name, got, c.want)
		}
		pool.Free(b)
	}
}

// TestPlain goes through what keeps a frame from the engine, and what from any
// checksum at all.
func TestPlain(t *testing.T) {
	pool := newPool(t)
	set := func(f []byte, at int, v ...byte) []byte {
		f = bytes.Clone(f)
		copy(f[at:], v)
		return f
	}
	u4, u6, tcp := ip4(17, udp(1, 2, 3)...), ip6(17, udp(1, 2, 3)...), make([]byte, 20)
	tag := func(f []byte, tpid ...byte) []byte { return slices.Concat(f[:12], tpid, []byte{0, 5}, f[12:]) }
	ext := func(next byte, n int, more ...byte) []byte {
		return append([]byte{next, byte(n/8 - 1)}, append(make([]byte, n-2), more...)...)
	}
	for name, c := range map[string]struct {
		frame     []byte
		ok, plain bool
	}{
		"UDP":                   {u4, true, true},
		"TCP":                   {ip4(6, tcp...), true, true},
		"ICMP":                  {ip4(1, make([]byte, 8)...), true, true},
		"UDP over IPv6":         {u6, true, true},
		"TCP over IPv6":         {ip6(6, tcp...), true, true},
		"ICMPv6":                {ip6(58, make([]byte, 8)...), true, true},
		"ICMPv6 over IPv4":      {ip4(58, make([]byte, 8)...), true, false},
		"ICMP over IPv6":        {ip6(1, make([]byte, 8)...), false, false},
		"another protocol":      {ip4(132, make([]byte, 12)...), true, false},
		"do not fragment":       {set(u4, 20, 0x40), true, true},
		"first fragment":        {set(u4, 20, 0x20), true, false},
		"later fragment":        {set(u4, 20, 0, 1), true, false},
		"options":               {slices.Concat(set(u4, 14, 0x46, 0, 0, 35)[:34], make([]byte, 4), u4[34:]), true, false},
		"trailer":               {append(bytes.Clone(u4), 0), true, false},
		"trailer over IPv6":     {append(bytes.Clone(u6), 0), true, false},
		"no payload":            {ip4(17), true, false},
		"cut":                   {u4[:len(u4)-1], false, false},
		"cut, IPv6":             {u6[:len(u6)-1], false, false},
		"cut in the header":     {u4[:33], false, false},
		"UDP length too small":  {set(u4, 38, 0, 7), true, false},
		"UDP length too large":  {set(u4, 38, 0, 12), true, false},
		"UDP shorter":           {set(u4, 38, 0, 10), true, false},
		"UDP shorter, IPv6":     {set(u6, 58, 0, 10), true, false},
		"UDP too large, IPv6":   {set(u6, 58, 0, 12), false, false},
		"version 6 as IPv4":     {set(u4, 14, 0x65), false, false},
		"version 4 as IPv6":     {set(u6, 14, 0x45), false, false},
		"jumbogram":             {set(u6, 18, 0, 0), false, false},
		"header of 16 bytes":    {set(u4, 14, 0x44), false, false},
		"length below header":   {set(u4, 16, 0, 19), false, false},
		"hop-by-hop":            {ip6(0, ext(17, 8, udp(1)...)...), true, false},
		"two extension headers": {ip6(0, ext(60, 8, ext(17, 16, udp(1)...)...)...), true, false},
		"routing, at its end":   {ip6(43, ext(17, 24, udp(1)...)...), true, false},
		"routing, under way":    {set(ip6(43, ext(17, 24, udp(1)...)...), 57, 1), false, false},
		"atomic fragment":       {ip6(44, ext(17, 8, udp(1)...)...), true, false},
		"first IPv6 fragment":   {set(ip6(44, ext(17, 8, udp(1)...)...), 57, 1), false, false},
		"later IPv6 fragment":   {set(ip6(44, ext(17, 8, udp(1)...)...), 57, 8), false, false},
		"authentication header": {ip6(51, ext(17, 16, udp(1)...)...), false, false},
		"one tag":               {tag(u4, 0x81, 0), true, true},
		"two tags":              {tag(tag(u4, 0x81, 0), 0x81, 0), true, true},
		"three tags":            {tag(tag(tag(u4, 0x81, 0), 0x81, 0), 0x81, 0), false, false},
		"service tag":           {tag(u4, 0x88, 0xa8), true, false},
		"service and customer":  {tag(tag(u4, 0x81, 0), 0x88, 0xa8), true, false},
		"customer and service":  {tag(tag(u4, 0x88, 0xa8), 0x81, 0), true, false},
		"tag and no more":       {u4[:12:12], false, false},
		"a tag before the type": {slices.Concat(u4[:12], make([]byte, 8), u4[12:]), false, false}, // D40
		"length":                {set(u4, 12, 0, 40), false, false},
	} {
		b := split(t, pool, c.frame, nil)
		p, ok := Parse(b)
		if ok != c.ok || ok && p.Plain != c.plain {
			t.Errorf("%s: parsed %v, plain %v; want %v, %v", name, ok, p.Plain, c.ok, c.plain)
		}
		pool.Free(b)
		agree(t, pool, c.frame, nil)
	}
}

// TestSplit fills each kind of frame with a buffer's end at each byte of it.
func TestSplit(t *testing.T) {
	pool := newPool(t)
	for name, f := range map[string][]byte{
		"UDP":  ip4(17, udp(1, 2, 3, 4, 5)...),
		"TCP6": ip6(6, make([]byte, 23)...),
		"ICMP": ip4(1, 8, 0, 0xff, 0xff, 1, 2, 3, 4, 5),
	} {
		for i := range len(f) + 1 {
			for _, j := range []int{0, 1, 2, 7} {
				t.Run(fmt.Sprintf("%s at %d and %d", name, i, i+j), func(t *testing.T) { agree(t, pool, f, []int{i, j}) })
			}
		}
	}
}

// TestClearAndSpoil: the one zeroes the field of the payload alone, the other
// makes all fields wrong; neither touches a frame without them.
func TestClearAndSpoil(t *testing.T) {
	pool := newPool(t)
	for name, c := range map[string]struct {
		frame  []byte
		fields []int
	}{
		"UDP":      {ip4(17, udp(1, 2)...), []int{24, 40}},
		"ICMPv6":   {ip6(58, make([]byte, 9)...), []int{56}},
		"fragment": {func() []byte { f := ip4(17, udp(1, 2)...); f[20] = 0x20; return f }(), []int{24}},
	} {
		right := reference(c.frame).filled
		cleared, l4 := bytes.Clone(right), c.fields[len(c.fields)-1]
		if l4 != 24 {
			cleared[l4], cleared[l4+1] = 0, 0
		}
		b := split(t, pool, right, []int{l4 + 1})
		p, _ := Parse(b)
		p.Clear(b)
		if got := joined(t, b); !bytes.Equal(got, cleared) {
			t.Errorf("%s: cleared\n%x, want\n%x", name, got, cleared)
		}
		pool.Free(b)

		b = split(t, pool, right, nil)
		p.Spoil(b)
		got := joined(t, b)
		pool.Free(b)
		for _, at := range c.fields {
			if bytes.Equal(got[at:][:2], right[at:][:2]) {
				t.Errorf("%s: the field at %d is still right", name, at)
			}
			copy(got[at:], right[at:][:2])
		}
		if !bytes.Equal(got, right) {
			t.Errorf("%s: spoiled more:\n%x, want\n%x", name, got, right)
		}
	}
}

// drawFrame draws a frame that is right, or wrong in some places.
func drawFrame(t *rapid.T) []byte {
	lie := func(what string, right, max int) int {
		switch rapid.IntRange(0, 31).Draw(t, what+" lies") { // mostly small numbers
		case 30:
			return rapid.IntRange(0, max).Draw(t, what)
		case 31:
			return (right + rapid.IntRange(-3, 3).Draw(t, what+" off by") + max + 1) % (max + 1)
		}
		return right
	}
	some := func(what string, least, most int) []byte {
		return rapid.SliceOfN(rapid.Byte(), least, most).Draw(t, what)
	}
	v6 := rapid.Bool().Draw(t, "v6")
	proto := rapid.SampledFrom([]byte{1, 6, 6, 17, 17, 58, 132}).Draw(t, "proto")
	n := rapid.SampledFrom([]int{25, 60, 33, 20, 8, 7, 0}).Draw(t, "payload length")
	l4 := some("payload", n, n)
	if proto == 17 && len(l4) >= 8 {
		binary.BigEndian.PutUint16(l4[4:], uint16(lie("UDP length", len(l4), 100)))
	}
	typ := []byte{8, 0}
	var ip []byte
	if v6 {
		typ = []byte{0x86, 0xdd}
		for range rapid.IntRange(0, 2).Draw(t, "extensions") {
			kind := rapid.SampledFrom([]byte{0, 43, 44, 60, 51}).Draw(t, "extension")
			h := some("header", 8, 8)
			h[0] = proto
			if kind == 44 {
				h[2], h[3] = 0, byte(lie("fragment", int(h[3]&6), 255))
			} else {
				h[1] = byte(lie("extension length", rapid.IntRange(0, 2).Draw(t, "units"), 255))
				h[3] = byte(lie("segments left", 0, 2))
				h = append(h, make([]byte, min(int(h[1]), 2)*8)...)
			}
			proto, l4 = kind, append(h, l4...)
		}
		ip = append(some("IPv6", 40, 40), l4...)
		ip[0] = byte(lie("version", 6, 15)) << 4
		binary.BigEndian.PutUint16(ip[4:], uint16(lie("length", len(l4), 200)))
		ip[6] = proto
	} else {
		n := rapid.SampledFrom([]int{5, 5, 5, 6, 15}).Draw(t, "IHL")
		ip = append(some("IPv4", 4*n, 4*n), l4...)
		ip[0] = byte(lie("version", 4, 15))<<4 | byte(lie("IHL is", n, 15))
		binary.BigEndian.PutUint16(ip[2:], uint16(lie("length", len(ip), 200)))
		binary.BigEndian.PutUint16(ip[6:], uint16(lie("fragment", 0x4000*rapid.IntRange(0, 1).Draw(t, "DF"), 0xffff)))
		ip[9] = proto
	}
	f := bytes.Clone(ether)
	for range rapid.SampledFrom([]int{0, 0, 1, 2, 3}).Draw(t, "tags") {
		f = append(f, rapid.SampledFrom([][]byte{{0x81, 0}, {0x81, 0}, {0x88, 0xa8}}).Draw(t, "TPID")...)
		f = append(f, some("TCI", 2, 2)...)
	}
	f = slices.Concat(f, typ, ip, make([]byte, rapid.SampledFrom([]int{0, 0, 0, 1, 4}).Draw(t, "trailer")))
	return f[:max(lie("cut", len(f), 300)%(len(f)+1), 0)]
}

// TestRandomFrames compares with the straightforward implementation over frames
// that are right and wrong, in chains of any shape.
func TestRandomFrames(t *testing.T) {
	pool := newPool(t)
	seen := map[string]int{}
	rapid.Check(t, func(t *rapid.T) {
		for range 10 {
			f := drawFrame(t)
			e := reference(f)
			seen[fmt.Sprintf("ok %v, plain %v", e.ok, e.plain)]++
			agree(t, pool, f, rapid.SliceOfN(rapid.IntRange(0, 60), 0, 6).Draw(t, "buffers"))
		}
	})
	if len(seen) != 3 {
		t.Errorf("the frames are of these kinds only: %v", seen)
	}
}
