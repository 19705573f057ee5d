package sim

import (
	"bytes"
	"encoding/binary"
	"testing"

	"pgregory.net/rapid"

	r4 "github.com/gostmmac/gostmmac/stmmac/internal/regs/gmac4reg"
)

// sendWith sends a frame with more bits in words 2 and 3 of its first descriptor and
// returns its last word 3.
func (g *rig) sendWith(d2 r4.TDES2, d3 r4.TDES3, pieces ...[]byte) r4.TDES3 {
	g.t.Helper()
	first := g.desc(g.txRing, g.txTail)
	g.queue(true, pieces...)
	first[2] |= uint32(d2)
	first[3] |= uint32(d3)
	g.ring()
	g.step()
	n, last := g.reap()
	if n < len(pieces) {
		g.t.Fatalf("%d of %d descriptors back", n, len(pieces))
	}
	return r4.TDES3(last[3])
}

// onWire takes the only frame that was sent.
func (g *rig) onWire() []byte {
	g.t.Helper()
	if len(g.w.tx) != 1 || g.w.tx[0].BadFCS {
		g.t.Fatalf("%d frames on the wire, or one with a bad FCS", len(g.w.tx))
	}
	f := g.w.tx[0].Data
	g.w.tx = nil
	return f
}

// noHeaderSum is a frame with rubbish in its IPv4 header checksum.
func noHeaderSum(f []byte, l3 int) []byte { return edit(f, l3+10, 0xba, 0xad) }

func TestTransmitChecksum(t *testing.T) {
	const junk = 0xbeef
	pad := 30
	udp4 := udp(0xab, 0xcd).padded(pad)
	udp6, tcp4, tcp6 := udp(1, 2, 3).as6().padded(pad), tcp(1, 2, 3).padded(pad), tcp(4).as6().padded(pad)
	ping, ping6 := icmp(7, 8, 9).padded(pad), icmp6(7, 8, 9).padded(pad)
	seeded := func(d datagram, at int) datagram { return d.field(at, d.pseudoSum()) }
	zero := udp(0, 0).padded(pad)
	zero = udp(byte(zero.right(6)>>8), byte(zero.right(6))).padded(pad)
	hbh := udp(1).as6().options(17, 0, 1, 4, 0, 0, 0, 0).padded(pad)
	for _, c := range []struct {
		name   string
		cic    uint32
		in     datagram
		out    datagram
		misuse bool
	}{
		{"none", 0, udp4.field(6, junk), udp4.field(6, junk), false},
		{"header", 1, udp4.field(6, junk), udp4.field(6, junk), false},
		{"header of a fragment", 1, udp4.fragment(0x2000), udp4.fragment(0x2000), false},
		{"header with options", 1, udp4.options(1, 1, 1, 0), udp4.options(1, 1, 1, 0), false},
		{"header of IPv6", 1, udp6.field(6, junk), udp6.field(6, junk), false},
		{"UDP, field ignored", 3, udp4.field(6, junk), udp4.filled(6), false},
		{"UDP, seeded", 2, seeded(udp4, 6), udp4.filled(6), false},
		{"UDP, filled before", 3, udp4.filled(6), udp4.filled(6), false},
		{"UDP over IPv6", 3, udp6.field(6, junk), udp6.filled(6), false},
		{"UDP over IPv6, seeded", 2, seeded(udp6, 6), udp6.filled(6), false},
		{"TCP", 3, tcp4.field(16, junk), tcp4.filled(16), false},
		{"TCP, seeded", 2, seeded(tcp4, 16), tcp4.filled(16), false},
		{"TCP with options", 3, tcp4.options(1, 1, 1, 1, 1, 1, 1, 0), tcp4.options(1, 1, 1, 1, 1, 1, 1, 0).filled(16), false},
		{"TCP over IPv6", 3, tcp6.field(16, junk), tcp6.filled(16), false},
		{"ICMP, field 0", 3, ping, ping.filled(2), false},
		{"ICMP, seeded with 0", 2, ping, ping.filled(2), false},
		{"ICMP, filled before (D35)", 3, ping.filled(2), ping.field(2, 0), true},
		{"ICMPv6, field ignored", 3, ping6.field(2, junk), ping6.filled(2), false},
		{"ICMPv6, seeded", 2, seeded(ping6, 2), ping6.filled(2), false},
		{"UDP that sums to 0", 3, zero, zero.field(6, 0xffff), false},
		{"one tag", 3, udp4.tag(5), udp4.tag(5).filled(6), false},
		{"IPv6 extension header", 3, hbh.field(6, junk), hbh.field(6, junk), true},
		{"another protocol", 3, datagram{proto: 47, l4: make([]byte, 40)}, datagram{proto: 47, l4: make([]byte, 40)}, true},
		{"later fragment", 3, udp4.fragment(0x0005), udp4.fragment(0x0005), true},
	} {
		t.Run(c.name, func(t *testing.T) {
			g := newRig(t)
			g.open()
			l3 := headerLen + len(c.in.tags)*vlanLen
			in, out := c.in.bytes(), c.out.bytes()
			if !c.in.v6 {
				in = noHeaderSum(in, l3)
				if c.cic == 0 {
					out = noHeaderSum(out, l3)
				}
			}
			for _, pieces := range [][][]byte{{in}, split(in, 17)} {
				slot := g.txTail % g.n * g.slot
				if back := g.sendWith(0, r4.CIC.Of(c.cic), pieces...); back&r4.TxES != 0 {
					t.Errorf("write-back %#x", uint32(back))
				}
				if got := g.onWire(); !bytes.Equal(got, out) {
					t.Errorf("in %d pieces sent\n%x, want\n%x", len(pieces), got, out)
				}
				if !bytes.Equal(g.txMem[slot:][:len(pieces[0])], pieces[0]) {
					t.Error("the engine changed the driver's buffer")
				}
			}
			if c.misuse {
				g.wantKinds(ChecksumMisuse)
			} else {
				g.clean()
			}
		})
	}
}

// TestTransmitChecksumStatus: errors of the engine in the write-back, and what it
// still inserts.
func TestTransmitChecksumStatus(t *testing.T) {
	good := udp(1, 2, 3, 4).padded(30)
	in := good.field(6, 0).bytes()
	l3 := headerLen
	for _, c := range []struct {
		name   string
		in     []byte
		status r4.TDES3
		header bool // the IPv4 header checksum was inserted
		l4     bool // the UDP checksum was inserted
	}{
		{"good", in, 0, true, true},
		{"version 6", edit(in, l3, 0x65), r4.TxIHE | r4.TxES, true, false},
		{"header of 16 bytes", edit(in, l3, 0x44), r4.TxIHE | r4.TxES, true, false},
		{"header behind the packet", edit(in, l3+2, 0, 19), r4.TxIHE | r4.TxES, true, false},
		{"packet behind the frame", edit(in, l3+2, 3, 0), r4.TxPCE | r4.TxES, true, true},
		{"no room for the checksum", edit(in, l3+2, 0, 27), r4.TxPCE | r4.TxES, true, false},
		{"frame ends in the header", in[:l3+19], r4.TxIHE | r4.TxES, false, false},
	} {
		g := newRig(t)
		g.open()
		back := g.sendWith(0, r4.CIC.Of(3), noHeaderSum(c.in, l3))
		if back&(r4.TxIHE|r4.TxPCE|r4.TxES) != c.status {
			t.Errorf("%s: write-back %#x", c.name, uint32(back))
		}
		out := g.onWire()
		if got := binary.BigEndian.Uint16(out[l3+10:]) != 0xbaad; got != c.header {
			t.Errorf("%s: header checksum inserted: %v", c.name, got)
		}
		if c.header && refSum(out[l3:l3+20]) != 0xffff {
			t.Errorf("%s: header sums to %#x", c.name, refSum(out[l3:l3+20]))
		}
		if got := binary.BigEndian.Uint16(out[l3+26:]) != 0; got != c.l4 {
			t.Errorf("%s: UDP checksum inserted: %v", c.name, got)
		}
		g.clean()
	}
}

// TestTransmitFragment: insertion into the first fragment replaces the field with a
// checksum of the fragment alone (D36).
func TestTransmitFragment(t *testing.T) {
	g := newRig(t)
	g.open()
	d := udp(make([]byte, 64)...).fragment(0x2000).field(4, 2008)
	g.sendWith(0, r4.CIC.Of(3), d.bytes())
	if got := g.onWire(); !bytes.Equal(got, d.field(6, d.right(6)).bytes()) {
		t.Errorf("%x", got)
	}
	g.wantKinds(ChecksumMisuse)
}

// TestTransmitChecksumLimits: the queue and burst length that bound the frame (D38), and
// what else keeps the engine off.
func TestTransmitChecksumLimits(t *testing.T) {
	frame := func(n int) datagram { return udp(make([]byte, n-42)...).field(6, 0x1234) }
	for _, c := range []struct {
		name   string
		tqs    uint32
		pbl    uint32
		x8     bool
		cic    uint32
		size   int
		status r4.TDES3
		l4     bool
		misuse bool
	}{
		{"at the limit", 7, 32, false, 3, 2048 - 37*8, 0, true, false},
		{"above", 7, 32, false, 3, 2048 - 37*8 + 1, r4.TxPCE | r4.TxES, false, true},
		{"above, header alone", 7, 32, false, 1, 2048 - 37*8 + 1, 0, false, false},
		{"at the limit with PBLx8", 15, 32, true, 3, 4096 - 261*8, 0, true, false},
		{"above with PBLx8", 15, 32, true, 3, 4096 - 261*8 + 1, r4.TxPCE | r4.TxES, false, true},
	} {
		g := newRig(t)
		g.setup()
		r4.MTLTxQOperationMode.Store(g.mtl(0), r4.TSF|r4.TXQEN.Of(2)|r4.TQS.Of(c.tqs))
		r4.DMACHTxControl.Store(g.ch(0), r4.TXPBL.Of(c.pbl))
		if c.x8 {
			r4.DMACHControl.Update(g.ch(0), 0, r4.PBLx8)
		}
		g.run()
		in := frame(c.size)
		back := g.sendWith(0, r4.CIC.Of(c.cic), noHeaderSum(in.bytes(), headerLen))
		if back&(r4.TxPCE|r4.TxES) != c.status {
			t.Errorf("%s: write-back %#x", c.name, uint32(back))
		}
		want := in
		if c.l4 {
			want = in.filled(6)
		}
		if got := g.onWire(); !bytes.Equal(got, want.bytes()) {
			t.Errorf("%s: wrong frame", c.name)
		}
		if c.misuse {
			g.wantKinds(ChecksumMisuse)
		} else {
			g.clean()
		}
	}

	for name, c := range map[string]struct {
		config func(*Config)
		setup  func(*rig)
		in     datagram
		kinds  []ViolationKind
		works  bool
	}{
		"no engine": {func(c *Config) { c.NoTxChecksum = true }, nil, udp(1), []ViolationKind{ChecksumMisuse}, false},
		"threshold": {nil, func(g *rig) { r4.MTLTxQOperationMode.Update(g.mtl(0), r4.TSF, r4.TTC.Of(7)) }, udp(1),
			[]ViolationKind{ThresholdTransmit, ChecksumMisuse}, false},
		"two tags":            {nil, nil, udp(1).tag(1, 2), []ViolationKind{ChecksumMisuse}, false},
		"two tags with EDVLP": {nil, func(g *rig) { r4.MACVLANTag.Store(g.r, uint32(r4.EDVLP)) }, udp(1).tag(1, 2), nil, true},
		"missing engine":      {func(c *Config) { c.Faults.TxChecksumMissing = true }, nil, udp(1), nil, false},
		"short limit":         {func(c *Config) { c.Faults.TxChecksumLimit = 92 }, nil, udp(1), nil, false},
		"limit":               {func(c *Config) { c.Faults.TxChecksumLimit = 93 }, nil, udp(1), nil, true},
	} {
		g := newRig(t, withConfig(func(cfg *Config) {
			if c.config != nil {
				c.config(cfg)
			}
		}))
		g.open()
		if c.setup != nil {
			c.setup(g)
		}
		in := c.in.padded(50).field(6, 0x1234)
		back := g.sendWith(0, r4.CIC.Of(3), noHeaderSum(in.bytes(), headerLen+vlanLen*len(in.tags)))
		want := noHeaderSum(in.bytes(), headerLen+vlanLen*len(in.tags))
		if c.works {
			want = in.filled(6).bytes()
		}
		if got := g.onWire(); !bytes.Equal(got, want) || back&r4.TxES != 0 {
			t.Errorf("%s: write-back %#x, sent\n%x, want\n%x", name, uint32(back), got, want)
		}
		g.wantKinds(c.kinds...)
	}
}

// TestTransmitChecksumCorrupts: every second frame is wrong (D37).
func TestTransmitChecksumCorrupts(t *testing.T) {
	g := newRig(t, withFaults(Faults{TxChecksumCorrupts: 2}))
	g.open()
	d := udp(1, 2).padded(30)
	for i := range 6 {
		cic := uint32(3)
		if i >= 4 {
			cic = 1
		}
		in := d.field(6, 0).bytes()
		g.sendWith(0, r4.CIC.Of(cic), in)
		want := d.filled(6).bytes()
		if cic == 1 {
			want = in
		}
		if got := g.onWire(); bytes.Equal(got, want) != (i%2 == 0) {
			t.Errorf("frame %d: %x", i, got)
		}
	}
	g.clean()
}

// TestTransmitChecksumWaits: a frame that has to wait for the wire is not summed again.
func TestTransmitChecksumWaits(t *testing.T) {
	g := newRig(t)
	g.open()
	d := icmp(1, 2, 3).padded(30)
	g.w.full = true
	first := g.desc(g.txRing, g.txTail)
	g.queue(true, d.bytes())
	first[3] |= uint32(r4.CIC.Of(3))
	g.ring()
	for range 3 {
		g.step()
	}
	g.w.full = false
	g.step()
	g.wantSent(d.filled(2).bytes())
	g.clean()
}

// TestLoopbackChecksum: what the transmit engine inserts, the receive engine finds
// good, as a driver's self test expects.
func TestLoopbackChecksum(t *testing.T) {
	g := newRig(t)
	g.open()
	r4.MACConfiguration.Update(g.r, 0, r4.LM|r4.IPC)
	for _, d := range []datagram{udp(1, 2, 3), tcp(4).as6(), icmp(5), icmp6(6)} {
		d.pad = 30
		g.sendWith(0, r4.CIC.Of(3), d.bytes())
		if _, w, ok := g.recv(); !ok || r4.RDES1(w[1])&(r4.IPHE|r4.IPCE|r4.IPCB) != 0 || r4.RxPT.Get(r4.RDES1(w[1])) == 0 {
			t.Errorf("%+v: %v %08x", d, ok, w)
		}
	}
	g.clean()
}

// TestTransmitChecksumRandom compares the engine with the plain sum.
func TestTransmitChecksumRandom(t *testing.T) {
	g := newRig(t)
	g.open()
	r4.MACVLANTag.Store(g.r, uint32(r4.EDVLP))
	rapid.Check(t, func(rt *rapid.T) {
		d, at := genDatagram(rt)
		cic := rapid.Uint32Range(2, 3).Draw(rt, "cic")
		in := d
		switch {
		case cic == 2:
			in = d.field(at, d.pseudoSum())
		case d.proto != 1:
			in = d.field(at, uint16(rapid.Uint32().Draw(rt, "junk")))
		}
		f := in.bytes()
		if !d.v6 {
			f = noHeaderSum(f, headerLen+vlanLen*len(d.tags))
		}
		g.sendWith(0, r4.CIC.Of(cic), split(f, rapid.IntRange(30, 400).Draw(rt, "piece"))...)
		want := d.filled(at).bytes()
		if n := len(want); n < minPadded {
			want = append(want, make([]byte, minPadded-n)...)
		}
		if got := g.onWire(); !bytes.Equal(got, want) {
			rt.Fatalf("sent\n%x, want\n%x", got, want)
		}
	})
	g.clean()
}
