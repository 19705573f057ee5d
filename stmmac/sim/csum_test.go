package sim

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"testing"

	"pgregory.net/rapid"

	r4 "github.com/gostmmac/gostmmac/stmmac/internal/regs/gmac4reg"
)

// refSum is the ones' complement sum of RFC 1071 in its plainest form, for tests.
func refSum(parts ...[]byte) uint16 {
	var all []byte
	for _, p := range parts {
		all = append(all, p...)
	}
	if len(all)%2 != 0 {
		all = append(all, 0)
	}
	sum := uint32(0)
	for i := 0; i < len(all); i += 2 {
		sum += uint32(all[i])<<8 | uint32(all[i+1])
		if sum > 0xffff {
			sum -= 0xffff
		}
	}
	return uint16(sum)
}

// datagram describes an IP packet that a test builds.
type datagram struct {
	v6    bool
	proto byte
	l4    []byte // with its checksum field as it is to be
	opts  []byte // IPv4 options, or IPv6 extension headers
	next  byte   // next header of the IPv6 header, if there are extension headers
	frag  uint16 // flags and offset
	tags  []uint16
	svlan bool
	pad   int
}

// bytes is the frame, with a right IPv4 header checksum.
func (d datagram) bytes() []byte {
	f := append([]byte{}, testMAC[:]...)
	f = append(f, 2, 0, 0, 0, 0, 9)
	for _, tci := range d.tags {
		if d.svlan {
			f = append(f, 0x88, 0xa8, byte(tci>>8), byte(tci))
		} else {
			f = append(f, 0x81, 0x00, byte(tci>>8), byte(tci))
		}
	}
	n := len(d.opts) + len(d.l4)
	if d.v6 {
		next := d.proto
		if len(d.opts) > 0 {
			next = d.next
		}
		f = append(f, 0x86, 0xdd, 0x60, 0, 0, 0, byte(n>>8), byte(n), next, 64)
		f = append(f, d.addrs()...)
	} else {
		h := []byte{0x45 + byte(len(d.opts)/4), 0, byte((20 + n) >> 8), byte(20 + n), 0, 1, byte(d.frag >> 8), byte(d.frag), 64, d.proto, 0, 0}
		h = append(append(h, d.addrs()...), d.opts...)
		binary.BigEndian.PutUint16(h[10:], ^refSum(h))
		f = append(append(f, 0x08, 0x00), h...)
	}
	if d.v6 {
		f = append(f, d.opts...)
	}
	f = append(f, d.l4...)
	f = append(f, bytes.Repeat([]byte{0xee}, d.pad)...)
	return f
}

func (d datagram) addrs() []byte {
	if d.v6 {
		return append(bytes.Repeat([]byte{0x20, 0x01}, 8), bytes.Repeat([]byte{0xfe, 0x83}, 8)...)
	}
	return []byte{192, 0, 2, 1, 192, 0, 2, 2}
}

// pseudoSum is the sum of the pseudo header.
func (d datagram) pseudoSum() uint16 {
	switch {
	case d.v6:
		return refSum(d.addrs(), []byte{0, 0, byte(len(d.l4) >> 8), byte(len(d.l4)), 0, 0, 0, d.proto})
	case d.proto == 1:
		return 0
	}
	return refSum(d.addrs(), []byte{0, d.proto, byte(len(d.l4) >> 8), byte(len(d.l4))})
}

// right is the checksum that belongs into the field at at.
func (d datagram) right(at int) uint16 {
	l4 := bytes.Clone(d.l4)
	l4[at], l4[at+1] = 0, 0
	c := ^refSum(binary.BigEndian.AppendUint16(nil, d.pseudoSum()), l4)
	if c == 0 && d.proto == 17 {
		c = 0xffff
	}
	return c
}

// filled is d with the right checksum in its field.
func (d datagram) filled(at int) datagram {
	d.l4 = bytes.Clone(d.l4)
	binary.BigEndian.PutUint16(d.l4[at:], d.right(at))
	return d
}

func udp(payload ...byte) datagram {
	n := 8 + len(payload)
	return datagram{proto: 17, l4: append([]byte{0x11, 0x11, 0x22, 0x22, byte(n >> 8), byte(n), 0, 0}, payload...)}
}

func tcp(payload ...byte) datagram {
	h := []byte{0x12, 0x34, 0, 80, 1, 2, 3, 4, 5, 6, 7, 8, 0x50, 0x18, 0x20, 0, 0, 0, 0, 0}
	return datagram{proto: 6, l4: append(h, payload...)}
}

func icmp(payload ...byte) datagram {
	return datagram{proto: 1, l4: append([]byte{8, 0, 0, 0, 0x12, 0x34, 0, 1}, payload...)}
}

func icmp6(payload ...byte) datagram {
	return datagram{v6: true, proto: 58, l4: append([]byte{128, 0, 0, 0, 0x12, 0x34, 0, 1}, payload...)}
}

func (d datagram) as6() datagram              { d.v6 = true; return d }
func (d datagram) tag(tci ...uint16) datagram { d.tags = tci; return d }
func (d datagram) options(b ...byte) datagram { d.opts = b; return d }
func (d datagram) fragment(v uint16) datagram { d.frag = v; return d }
func (d datagram) padded(n int) datagram      { d.pad = n; return d }
func (d datagram) header(next byte) datagram  { d.next = next; return d }
func (d datagram) flip(i int) datagram        { d.l4 = bytes.Clone(d.l4); d.l4[i] ^= 0x40; return d }
func (d datagram) field(at int, v uint16) (e datagram) {
	e = d
	e.l4 = bytes.Clone(d.l4)
	binary.BigEndian.PutUint16(e.l4[at:], v)
	return e
}

// edit changes bytes of a frame.
func edit(f []byte, at int, b ...byte) []byte {
	f = bytes.Clone(f)
	copy(f[at:], b)
	return f
}

// TestVectors: the UDP packet of case D35 was computed by hand; its parts check the
// tools of the other tests.
func TestVectors(t *testing.T) {
	d := udp(0xab, 0xcd)
	if c, seed := d.right(6), d.pseudoSum(); c != 0x9cd5 || seed != 0x841f {
		t.Errorf("checksum %#x, pseudo header %#x", c, seed)
	}
	if c := d.filled(6).field(6, 0).right(6); c != 0x9cd5 {
		t.Errorf("%#x", c)
	}
	// RFC 1071, section 3.
	if s := refSum([]byte{0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7}); s != 0xddf2 {
		t.Errorf("%#x", s)
	}
	const want = "021122334455020000000009" + "0800" + "4500001e000100004011f6cac0000201c0000202" + "11112222000a9cd5abcd"
	if got := hex.EncodeToString(d.filled(6).bytes()); got != want {
		t.Errorf("%s", got)
	}
}

// TestSum16 compares the sum of eight bytes at a time with the plain one.
func TestSum16(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a := rapid.SliceOfN(rapid.Byte(), 0, 41).Draw(t, "a")
		b := rapid.SliceOfN(rapid.SampledFrom([]byte{0, 0xff, 0x80}), 0, 40).Draw(t, "b")
		got, want := fold16(sum16(sum16(0, a[:len(a)&^1]), b)), refSum(a[:len(a)&^1], b)
		if got != want && !(got%0xffff == 0 && want%0xffff == 0) {
			t.Fatalf("%#x, want %#x", got, want)
		}
	})
}

// ipcCounts are the counters that the table below checks, by register.
type ipcCounts map[uint32]uint32

func TestReceiveChecksum(t *testing.T) {
	pt := func(v uint32) r4.RDES1 { return r4.RxPT.Of(v) }
	const edvlp, esvl = r4.EDVLP, r4.ESVL
	udp4 := udp(0xab, 0xcd).filled(6)
	l3 := 14
	short := edit(udp4.bytes(), l3+2, 0, 31) // one byte more than there is
	for _, c := range []struct {
		name  string
		frame []byte
		vlan  r4.VLANTag
		d1    r4.RDES1
		count ipcCounts // packets; octets at +0x40
	}{
		{"UDP", udp4.bytes(), 0, r4.IPV4 | pt(1), ipcCounts{0x810: 1, 0x850: 30, 0x830: 1, 0x870: 10}},
		{"UDP with trailer", udp4.padded(30).bytes(), 0, r4.IPV4 | pt(1), ipcCounts{0x810: 1, 0x850: 30, 0x830: 1, 0x870: 10}},
		{"odd UDP", udp(1, 2, 3).filled(6).padded(5).bytes(), 0, r4.IPV4 | pt(1), ipcCounts{0x810: 1, 0x850: 31, 0x830: 1, 0x870: 11}},
		{"wrong UDP", udp4.flip(8).bytes(), 0, r4.IPV4 | pt(1) | r4.IPCE, ipcCounts{0x810: 1, 0x850: 30, 0x834: 1, 0x874: 10}},
		{"UDP without checksum", udp(1).bytes(), 0, r4.IPV4 | pt(1), ipcCounts{0x810: 1, 0x850: 29, 0x820: 1, 0x860: 9}},
		{"UDP of another length", udp4.field(4, 9).bytes(), 0, r4.IPV4 | pt(1) | r4.IPCE, ipcCounts{0x810: 1, 0x850: 30, 0x834: 1, 0x874: 10}},
		{"UDP whose checksum is 0xffff", udp(0x39, 0x66).padded(0).filled(6).bytes(), 0, r4.IPV4 | pt(1), ipcCounts{0x810: 1, 0x850: 30, 0x830: 1, 0x870: 10}},
		{"short UDP", datagram{proto: 17, l4: []byte{1, 2, 3, 4, 0, 7, 0xf}}.bytes(), 0, r4.IPV4 | pt(1) | r4.IPCE, ipcCounts{0x810: 1, 0x850: 27, 0x834: 1, 0x874: 7}},
		{"TCP", tcp(1, 2, 3).filled(16).bytes(), 0, r4.IPV4 | pt(2), ipcCounts{0x810: 1, 0x850: 43, 0x838: 1, 0x878: 23}},
		{"wrong TCP", tcp(1, 2, 3).filled(16).flip(0).bytes(), 0, r4.IPV4 | pt(2) | r4.IPCE, ipcCounts{0x810: 1, 0x850: 43, 0x83c: 1, 0x87c: 23}},
		{"TCP without checksum", tcp(1, 2, 3).bytes(), 0, r4.IPV4 | pt(2) | r4.IPCE, ipcCounts{0x810: 1, 0x850: 43, 0x83c: 1, 0x87c: 23}},
		{"short TCP", datagram{proto: 6, l4: make([]byte, 19)}.bytes(), 0, r4.IPV4 | pt(2) | r4.IPCE, ipcCounts{0x810: 1, 0x850: 39, 0x83c: 1, 0x87c: 19}},
		{"TCP behind options", tcp(9).filled(16).options(1, 1, 1, 0).bytes(), 0, r4.IPV4 | pt(2), ipcCounts{0x810: 1, 0x850: 45, 0x838: 1, 0x878: 21}},
		{"ICMP", icmp(7).filled(2).bytes(), 0, r4.IPV4 | pt(3), ipcCounts{0x810: 1, 0x850: 29, 0x840: 1, 0x880: 9}},
		{"wrong ICMP", icmp(7).filled(2).flip(8).bytes(), 0, r4.IPV4 | pt(3) | r4.IPCE, ipcCounts{0x810: 1, 0x850: 29, 0x844: 1, 0x884: 9}},
		{"UDP over IPv6", udp(1, 2, 3).as6().filled(6).bytes(), 0, r4.IPV6 | pt(1), ipcCounts{0x824: 1, 0x864: 51, 0x830: 1, 0x870: 11}},
		{"UDP over IPv6 without checksum", udp(1, 2, 3).as6().bytes(), 0, r4.IPV6 | pt(1) | r4.IPCE, ipcCounts{0x824: 1, 0x864: 51, 0x834: 1, 0x874: 11}},
		{"TCP over IPv6", tcp().as6().filled(16).padded(9).bytes(), 0, r4.IPV6 | pt(2), ipcCounts{0x824: 1, 0x864: 60, 0x838: 1, 0x878: 20}},
		{"ICMPv6", icmp6(1).filled(2).bytes(), 0, r4.IPV6 | pt(3), ipcCounts{0x824: 1, 0x864: 49, 0x840: 1, 0x880: 9}},
		{"wrong ICMPv6", icmp6(1).filled(2).flip(4).bytes(), 0, r4.IPV6 | pt(3) | r4.IPCE, ipcCounts{0x824: 1, 0x864: 49, 0x844: 1, 0x884: 9}},
		{"ICMPv6 in IPv4", datagram{proto: 58, l4: make([]byte, 8)}.bytes(), 0, r4.IPV4 | r4.IPCB, ipcCounts{0x818: 1, 0x858: 28}},
		{"ICMP in IPv6", datagram{v6: true, proto: 1, l4: make([]byte, 8)}.bytes(), 0, r4.IPV6 | r4.IPCB, ipcCounts{0x82c: 1, 0x86c: 8}},
		{"another protocol", datagram{proto: 47, l4: make([]byte, 8)}.bytes(), 0, r4.IPV4 | r4.IPCB, ipcCounts{0x818: 1, 0x858: 28}},
		{"first fragment", udp4.fragment(0x2000).bytes(), 0, r4.IPV4 | r4.IPCB, ipcCounts{0x81c: 1, 0x85c: 30}},
		{"last fragment", udp4.fragment(0x0002).bytes(), 0, r4.IPV4 | r4.IPCB, ipcCounts{0x81c: 1, 0x85c: 30}},
		{"not to be fragmented", udp4.fragment(0x4000).bytes(), 0, r4.IPV4 | pt(1), ipcCounts{0x810: 1, 0x850: 30, 0x830: 1, 0x870: 10}},
		{"IPv6 fragment", udp(1).as6().filled(6).options(17, 0, 0, 1, 0, 0, 0, 1).header(44).bytes(), 0, r4.IPV6 | r4.IPCB, ipcCounts{0x82c: 1, 0x86c: 17}},
		{"IPv6 routing header", udp(1).as6().filled(6).options(17, 0, 4, 0, 0, 0, 0, 0).header(43).bytes(), 0, r4.IPV6 | r4.IPCB, ipcCounts{0x82c: 1, 0x86c: 17}},
		{"IPv6 hop-by-hop and destination options", udp(1).as6().filled(6).options(60, 0, 1, 4, 0, 0, 0, 0, 17, 0, 1, 4, 0, 0, 0, 0).bytes(), 0,
			r4.IPV6 | pt(1), ipcCounts{0x824: 1, 0x864: 65, 0x830: 1, 0x870: 9}},
		{"IPv6 options longer than the packet", udp(1).as6().filled(6).options(17, 9, 1, 4, 0, 0, 0, 0).bytes(), 0, r4.IPV6 | r4.IPCB, ipcCounts{0x82c: 1, 0x86c: 17}},
		{"no next header", datagram{v6: true, proto: 59}.padded(20).bytes(), 0, r4.IPV6 | r4.IPCB, ipcCounts{0x82c: 1, 0x86c: 0}},
		{"wrong header checksum", edit(udp4.bytes(), l3+8, 63), 0, r4.IPV4 | r4.IPHE, ipcCounts{0x814: 1, 0x854: 30}},
		{"IPv4 of version 6", edit(udp4.bytes(), l3, 0x65), 0, r4.IPV4 | r4.IPHE, ipcCounts{0x814: 1, 0x854: 30}},
		{"IPv6 of version 4", edit(tcp().as6().filled(16).bytes(), l3, 0x40), 0, r4.IPV6 | r4.IPHE, ipcCounts{0x828: 1, 0x868: 0}},
		{"header of 16 bytes", edit(udp4.bytes(), l3, 0x44), 0, r4.IPV4 | r4.IPHE, ipcCounts{0x814: 1, 0x854: 30}},
		{"header behind the packet", edit(udp4.bytes(), l3+3, 19), 0, r4.IPV4 | r4.IPHE, ipcCounts{0x814: 1, 0x854: 19}},
		{"packet cut short", edit(short, l3+10, 0xf6, 0xc9), 0, r4.IPV4 | pt(1) | r4.IPCE, ipcCounts{0x810: 1, 0x850: 31, 0x834: 1, 0x874: 10}},
		{"IPv6 cut short", edit(tcp().as6().filled(16).bytes(), l3+5, 21), 0, r4.IPV6 | pt(2) | r4.IPCE, ipcCounts{0x824: 1, 0x864: 61, 0x83c: 1, 0x87c: 20}},
		{"short IPv4 header", append(udp4.bytes()[:14:14], 0x45, 0, 0, 30), 0, r4.IPV4 | r4.IPHE, ipcCounts{0x814: 1, 0x854: 0}},
		{"ARP", edit(udp4.bytes(), 12, 0x08, 0x06), 0, r4.IPCB, nil},
		{"one tag", udp4.tag(5).bytes(), 0, r4.IPV4 | pt(1), ipcCounts{0x810: 1, 0x850: 30, 0x830: 1, 0x870: 10}},
		{"two tags", udp4.tag(5, 6).bytes(), 0, r4.IPCB, nil},
		{"two tags with EDVLP", udp4.tag(5, 6).bytes(), edvlp, r4.IPV4 | pt(1), ipcCounts{0x810: 1, 0x850: 30, 0x830: 1, 0x870: 10}},
		{"three tags with EDVLP", udp4.tag(5, 6, 7).bytes(), edvlp, r4.IPCB, nil},
		{"S-VLAN tag", func() []byte { d := udp4.tag(5); d.svlan = true; return d.bytes() }(), 0, r4.IPCB, nil},
		{"S-VLAN tag with ESVL", func() []byte { d := udp4.tag(5); d.svlan = true; return d.bytes() }(), esvl, r4.IPV4 | pt(1), ipcCounts{0x810: 1, 0x850: 30, 0x830: 1, 0x870: 10}},
	} {
		t.Run(c.name, func(t *testing.T) {
			for _, quick := range []bool{false, true} { // the general code, and the burst path
				g := newRig(t, withConfig(func(cfg *Config) { cfg.NoAudit = quick }))
				g.open()
				r4.MACConfiguration.Update(g.r, 0, r4.IPC)
				r4.MACVLANTag.Store(g.r, uint32(c.vlan))
				r4.MTLRxQOperationMode.Update(g.mtl(0), 0, r4.DISTCPEF|r4.FUP)
				g.w.inject(c.frame)
				g.step()
				w := g.mustRecv(c.frame)
				if d3 := r4.RDES3(w[3]); r4.RDES1(w[1]) != c.d1 || d3&(r4.RxRS1V|r4.RxES) != r4.RxRS1V {
					t.Errorf("word 1 %#x, want %#x; word 3 %#x", w[1], uint32(c.d1), w[3])
				}
				for off := r4.MMCIPCFirst; off < 0x888; off += 4 {
					if got := g.r.Load32(off); got != c.count[off] {
						t.Errorf("%s is %d, want %d", g.d.regName(off), got, c.count[off])
					}
				}
				// Without the engine there is no status.
				r4.MACConfiguration.Update(g.r, r4.IPC, 0)
				g.w.inject(c.frame)
				g.step()
				if w := g.mustRecv(c.frame); w[1] != 0 || r4.RDES3(w[3])&r4.RxRS1V != 0 {
					t.Errorf("engine off: %08x", w)
				}
				g.clean()
			}
		})
	}
}

// TestChecksumDrop: only a payload error makes a queue drop a frame, and only if it
// does not forward such frames.
func TestChecksumDrop(t *testing.T) {
	good := udp(1, 2).filled(6).padded(30)
	payload, header := good.flip(8).bytes(), edit(good.bytes(), 22, 63)
	for i, c := range []struct {
		mode  r4.MTLRxQMode
		conf  r4.Configuration
		drops bool
	}{
		{0, r4.IPC, true}, {r4.DISTCPEF, r4.IPC, false}, {r4.FEP, r4.IPC, false}, {0, 0, false},
		{0, r4.IPC, true}, {r4.DISTCPEF, r4.IPC, false}, {r4.FEP, r4.IPC, false}, {0, 0, false}, // by the burst path
	} {
		g := newRig(t, withConfig(func(cfg *Config) { cfg.NoAudit = i >= 4 }))
		g.open()
		r4.MTLRxQOperationMode.Update(g.mtl(0), 0, c.mode)
		r4.MACConfiguration.Update(g.r, 0, c.conf)
		g.w.inject(payload, header, good.bytes())
		g.step()
		if !c.drops {
			g.mustRecv(payload)
		}
		g.mustRecv(header)
		g.mustRecv(good.bytes())
		g.noRecv()
		if s := g.d.Stats(); (s.RxDropped == 1) != c.drops {
			t.Errorf("mode %#x: %+v", uint32(c.mode), s)
		}
	}
}

// TestChecksumCounterInterrupt: half of a counter's range raises its bit, which is
// masked in MMC alone and ends with the load of the counter.
func TestChecksumCounterInterrupt(t *testing.T) {
	for _, packets := range []bool{true, false} {
		g := newRig(t)
		g.open()
		r4.MACConfiguration.Update(g.r, 0, r4.IPC)
		r4.MMCControl.Store(g.r, r4.MMCCntPrst)
		off, bit, n := r4.RxUDPGoodPackets, uint32(1)<<8, mmcPresetPackets
		if !packets {
			off, bit, n = r4.RxUDPGoodPackets+r4.IPCOctets, 1<<24, mmcPresetOctets/128
			r4.MMCIPCInterruptMask.Store(g.r, 0xffff) // the counters of packets
		}
		for i := range n {
			if v := r4.MMCIPCInterrupt.Load(g.r) & bit; v != 0 {
				t.Fatalf("%d frames: %#x", i, v)
			}
			g.w.inject(udp(make([]byte, 120)...).filled(6).bytes())
			g.step()
			g.rxHead++
			g.post(1)
		}
		if v := r4.MMCIPCInterrupt.Load(g.r); v&bit == 0 {
			t.Fatalf("MMC_IPC_Rx_Interrupt %#x", v)
		}
		if v := r4.MACInterruptStatus.Load(g.r); v&(r4.MMCRXIPIS|r4.MMCIS) != r4.MMCRXIPIS|r4.MMCIS {
			t.Errorf("MAC_Interrupt_Status %#x", uint32(v))
		}
		if v := r4.DMAInterruptStatus.Load(g.r); v&r4.MACIS == 0 {
			t.Errorf("DMA_Interrupt_Status %#x", uint32(v))
		}
		r4.MMCIPCInterruptMask.Store(g.r, ^uint32(0))
		if v := r4.MACInterruptStatus.Load(g.r); v&r4.MMCRXIPIS != 0 {
			t.Errorf("masked: %#x", uint32(v))
		}
		g.r.Load32(off)
		if v := r4.MMCIPCInterrupt.Load(g.r); v&bit != 0 {
			t.Errorf("after the load of the counter: %#x", v)
		}
	}
}

// TestChecksumLies are the faults of case D42.
func TestChecksumLies(t *testing.T) {
	good := udp(1).filled(6).padded(30).bytes()
	for _, c := range []struct {
		lie   RxChecksumLies
		valid bool
		d1    r4.RDES1
	}{
		{RxChecksumHonest, true, r4.IPV4 | 1}, {RxChecksumStaleError, false, r4.IPV4 | r4.IPHE | r4.IPCE | 1},
		{RxChecksumStaleGood, false, r4.IPV4 | 1}, {RxChecksumBypassError, true, r4.IPV4 | r4.IPCB | r4.IPHE | r4.IPCE | 1},
	} {
		g := newRig(t, withFaults(Faults{RxChecksumLies: c.lie}))
		g.open()
		r4.MACConfiguration.Update(g.r, 0, r4.IPC)
		g.w.inject(good)
		g.step()
		if w := g.mustRecv(good); (r4.RDES3(w[3])&r4.RxRS1V != 0) != c.valid || r4.RDES1(w[1]) != c.d1 {
			t.Errorf("%d: %08x", c.lie, w)
		}
	}
	// A context descriptor is announced all the same.
	g := newRig(t, withFaults(Faults{RxChecksumLies: RxChecksumStaleGood, InjectContext: InjectContext{Every: 1}}))
	g.open()
	g.w.inject(good)
	g.step()
	if w := g.mustRecv(good); r4.RDES3(w[3])&r4.RxRS1V == 0 || r4.RDES1(w[1]) != r4.TSA {
		t.Errorf("%08x", w)
	}
}

// genDatagram draws a packet that the engines handle.
func genDatagram(t *rapid.T) (d datagram, at int) {
	payload := rapid.SliceOfN(rapid.Byte(), 0, 200).Draw(t, "payload")
	d, at = udp(payload...), 6
	v6 := rapid.Bool().Draw(t, "v6")
	switch rapid.IntRange(0, 2).Draw(t, "proto") {
	case 1:
		d, at = tcp(payload...), 16
	case 2:
		d, at = icmp(payload...), 2
		if v6 {
			d = icmp6(payload...)
		}
	}
	d.v6 = v6
	d.tags = make([]uint16, rapid.IntRange(0, 2).Draw(t, "tags"))
	d.pad = rapid.IntRange(0, 50).Draw(t, "pad")
	if !v6 {
		d.opts = make([]byte, 4*rapid.IntRange(0, 10).Draw(t, "options"))
	}
	return d, at
}

// TestReceiveChecksumRandom: a frame with a right checksum is good, with one bit of
// its payload flipped it is not.
func TestReceiveChecksumRandom(t *testing.T) {
	s := &macState{vlan: r4.EDVLP}
	rapid.Check(t, func(t *rapid.T) {
		d, at := genDatagram(t)
		d = d.filled(at)
		got := s.checkRx(d.bytes())
		if got.d1&(r4.IPHE|r4.IPCB|r4.IPCE) != 0 || r4.RxPT.Get(got.d1) == 0 || (got.d1&r4.IPV6 != 0) != d.v6 || (got.d1&r4.IPV4 != 0) == d.v6 {
			t.Fatalf("%#x: %x", uint32(got.d1), d.bytes())
		}
		i := rapid.IntRange(0, len(d.l4)-1).Draw(t, "byte")
		d.l4[i] ^= 1 << rapid.IntRange(0, 7).Draw(t, "bit")
		if d.proto == 17 && !d.v6 && d.l4[6]|d.l4[7] == 0 {
			return
		}
		if got := s.checkRx(d.bytes()); got.d1&r4.IPCE == 0 {
			t.Fatalf("flipped: %#x", uint32(got.d1))
		}
	})
}

// TestEnginesTakeAnything: neither engine fails on any frame, and the transmit engine
// changes checksum fields alone.
func TestEnginesTakeAnything(t *testing.T) {
	g := newRig(t, withConfig(func(c *Config) { c.NoAudit = true }))
	g.setup()
	m := g.d.Model
	rapid.Check(t, func(t *rapid.T) {
		d, _ := genDatagram(t)
		f := d.bytes()
		for range rapid.IntRange(0, 6).Draw(t, "edits") {
			f[rapid.IntRange(0, min(len(f)-1, 70)).Draw(t, "at")] = rapid.Byte().Draw(t, "v")
		}
		f = f[:rapid.IntRange(1, len(f)).Draw(t, "length")]
		m.mac.vlan = r4.VLANTag(rapid.SampledFrom([]uint32{0, uint32(r4.EDVLP), uint32(r4.EDVLP | r4.ESVL)}).Draw(t, "vlan"))
		m.mac.checkRx(f)
		x := &m.tx[0]
		x.txFrame = txFrame{data: bytes.Clone(f), length: len(f), direct: true, cic: rapid.Uint32Range(1, 3).Draw(t, "cic")}
		x.insertChecksums()
		changed := 0
		for i := range f {
			if f[i] != x.data[i] {
				changed++
			}
		}
		if len(x.data) != len(f) || changed > 4 {
			t.Fatalf("%d bytes of %d changed", changed, len(f))
		}
	})
}
