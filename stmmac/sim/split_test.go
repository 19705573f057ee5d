package sim

import (
	"bytes"
	"testing"

	"pgregory.net/rapid"

	r4 "github.com/gostmmac/gostmmac/stmmac/internal/regs/gmac4reg"
)

// splitRig is a rig whose descriptors have two buffers of a slot each: the second lies
// half a slot behind the first.
func splitRig(t testing.TB, opts ...rigOption) *rig {
	g := newRig(t, append([]rigOption{withRBSZ(1024), withSlot(4096), withConfig(func(c *Config) { c.SplitHeader = true })}, opts...)...)
	g.setup()
	r4.DMACHControl.Update(g.ch(0), 0, r4.SPH)
	r4.MACConfiguration.Update(g.r, 0, r4.IPC|r4.JE)
	r4.MTLRxQOperationMode.Update(g.mtl(0), 0, r4.DISTCPEF)
	r4.MACExtConfiguration.Store(g.r, r4.HDSMS.Of(r4.HDSMS256))
	for i := range g.rxMem {
		g.rxMem[i] = 0x5a
	}
	return g
}

// start posts descriptors with two buffers and starts the engines.
func (g *rig) startSplit(d3 uint32) {
	for i := range g.n - 1 {
		g.armSplit(i, d3)
	}
	g.rxTail = g.n - 1
	r4.DMACHRxDescTailPointer.Store(g.ch(0), g.ringTail(g.rxBase, g.rxTail))
	g.run()
}

func (g *rig) armSplit(i int, d3 uint32) {
	a := g.rxAddr(i)
	b := a + uint64(g.slot/2)
	g.put(g.rxRing, i, [4]uint32{uint32(a), uint32(a >> 32), uint32(b), d3 | uint32(b>>32)})
}

const splitRead = rxRead | uint32(r4.RxBUF2V)

// piece is what one descriptor got in its two buffers.
type piece struct{ one, two int }

// recvSplit takes a frame of several descriptors: its parts as the lengths say, HL of
// the first, and PL and RDES2 of the last.
func (g *rig) recvSplit(pieces []piece) (data []byte, hl uint32) {
	g.t.Helper()
	for k, p := range pieces {
		w := g.get(g.rxRing, g.rxHead)
		d3 := r4.RDES3(w[3])
		if d3&r4.RxOWN != 0 || (d3&r4.RxFD != 0) != (k == 0) || (d3&r4.RxLD != 0) != (k == len(pieces)-1) {
			g.t.Fatalf("descriptor %d of %d is %08x", k, len(pieces), w)
		}
		if k == 0 {
			hl = r4.HL.Get(r4.RDES2(w[2]))
		} else if r4.HL.Get(r4.RDES2(w[2])) != 0 {
			g.t.Errorf("descriptor %d: HL in %08x", k, w)
		}
		slot := g.rxBuf(g.rxHead, g.slot)
		data = append(append(data, slot[:p.one]...), slot[g.slot/2:][:p.two]...)
		for _, untouched := range [][]byte{slot[p.one : g.slot/2], slot[g.slot/2+p.two:]} {
			if len(bytes.Trim(untouched, "\x5a")) > 0 {
				g.t.Errorf("descriptor %d: more than %v was written", k, p)
			}
		}
		if pl := int(r4.RxPL.Get(d3)); pl != len(data) {
			g.t.Errorf("descriptor %d: PL %d, want %d", k, pl, len(data))
		}
		g.rxHead++
	}
	return data, hl
}

// TestSplitHeader: where the engine splits, what lies in which buffer, and HL.
func TestSplitHeader(t *testing.T) {
	long := func(d datagram, n int) datagram {
		d.l4 = append(bytes.Clone(d.l4), bytes.Repeat([]byte{7}, n)...)
		if d.proto == 17 {
			d.l4[4], d.l4[5] = byte(len(d.l4)>>8), byte(len(d.l4))
		}
		return d
	}
	tcpOptions := func(n int) datagram {
		d := long(tcp(), n+100)
		d.l4[12] = byte(5+n/4) << 4
		return d
	}
	hops := append([]byte{6, 0}, make([]byte, 6)...) // hop by hop, then TCP
	const l2, both = 1, 2
	for _, c := range []struct {
		name   string
		frame  []byte
		splm   uint32
		offset int // SPLOFST, -1 leaves the value after reset
		hdsms  uint32
		hl     int
		pieces []piece
	}{
		{"UDP", long(udp(), 200).bytes(), 0, -1, 2, 42, []piece{{42, 204}}},
		{"TCP", long(tcp(), 200).bytes(), 0, -1, 2, 54, []piece{{54, 204}}},
		{"TCP with options", tcpOptions(12).bytes(), 0, -1, 2, 66, []piece{{66, 104}}},
		{"IPv4 options", long(udp().options(1, 1, 1, 1), 100).bytes(), 0, -1, 2, 46, []piece{{46, 104}}},
		{"UDP over IPv6", long(udp().as6(), 100).bytes(), 0, -1, 2, 62, []piece{{62, 104}}},
		{"TCP over IPv6", long(tcp().as6(), 100).bytes(), 0, -1, 2, 74, []piece{{74, 104}}},
		{"IPv6 extension header", long(tcp().as6().header(0).options(hops...), 100).bytes(), 0, -1, 2, 82, []piece{{82, 104}}},
		{"ICMP behind IP", long(icmp(), 100).bytes(), 0, -1, 2, 34, []piece{{34, 112}}},
		{"fragment behind IP", long(udp().fragment(0x2000), 100).bytes(), 0, -1, 2, 34, []piece{{34, 112}}},
		{"behind a tag", long(udp().tag(5), 100).bytes(), 0, -1, 2, 46, []piece{{46, 104}}},
		{"not IP", testFrame(200, 1), 0, -1, 2, 0, []piece{{204, 0}}},
		{"not IP, longer than a buffer", testFrame(1500, 1), 0, -1, 2, 0, []piece{{1024, 480}}},
		{"not IP, longer than two", testFrame(3500, 1), 0, -1, 2, 0, []piece{{1024, 1024}, {0, 1024}, {0, 432}}},
		{"IP header error", edit(long(udp(), 100).bytes(), headerLen+10, 1, 2), 0, -1, 2, 0, []piece{{146, 0}}},
		{"payload longer than a buffer", long(udp(), 1400).bytes(), 0, -1, 2, 42, []piece{{42, 1024}, {0, 380}}},
		{"payload of three", long(tcp(), 3000).bytes(), 0, -1, 2, 54, []piece{{54, 1024}, {0, 1024}, {0, 956}}},
		{"no payload", udp().bytes(), 0, -1, 2, 42, []piece{{42, 4 + 18}}},
		{"longer than 64", tcpOptions(16).bytes(), 0, -1, 0, 0, []piece{{174, 0}}},
		{"shorter than 128", tcpOptions(16).bytes(), 0, -1, 1, 70, []piece{{70, 104}}},
		{"L2", testFrame(200, 1), l2, -1, 2, 14, []piece{{14, 190}}},
		{"L2 of UDP", long(udp(), 100).bytes(), l2, -1, 2, 14, []piece{{14, 132}}},
		{"L2 at 20", testFrame(200, 1), l2, 20, 2, 32, []piece{{32, 172}}},
		{"L2 at 0", testFrame(200, 1), l2, 0, 2, 12, []piece{{12, 192}}},
		{"L2 behind a tag", tagged(200, 5, 1), l2, -1, 2, 18, []piece{{18, 190}}},
		{"L2 beyond the limit", testFrame(200, 1), l2, 100, 0, 0, []piece{{204, 0}}},
		{"L2 beyond the frame", testFrame(60, 1), l2, 100, 2, 0, []piece{{64, 0}}},
		{"either, IP", long(udp(), 100).bytes(), both, -1, 2, 42, []piece{{42, 104}}},
		{"either, not IP", testFrame(200, 1), both, -1, 2, 14, []piece{{14, 190}}},
		{"reserved", long(udp(), 100).bytes(), 3, -1, 2, 0, []piece{{146, 0}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			g := splitRig(t)
			r4.MACExtConfiguration.Store(g.r, r4.HDSMS.Of(c.hdsms))
			r4.MACExtCfg1.Update(g.r, r4.SPLM.Mask(), r4.SPLM.Of(c.splm))
			if c.offset >= 0 {
				r4.MACExtCfg1.Update(g.r, r4.SPLOFST.Mask(), r4.SPLOFST.Of(uint32(c.offset)))
			}
			g.startSplit(splitRead)
			frame := c.frame
			if len(frame) < minPadded {
				frame = append(bytes.Clone(frame), make([]byte, minPadded-len(frame))...)
			}
			g.w.inject(frame)
			g.step()
			got, hl := g.recvSplit(c.pieces)
			if n := len(got) - fcsLen; n != len(frame) || !bytes.Equal(got[:n], frame) {
				t.Errorf("received %x, want %x", got, frame)
			}
			if hl != uint32(c.hl) {
				t.Errorf("HL %d, want %d", hl, c.hl)
			}
			g.clean()
		})
	}
}

// TestSplitHeaderStripped: tags and an FCS that do not go to memory do not count.
func TestSplitHeaderStripped(t *testing.T) {
	g := splitRig(t, withConfig(func(c *Config) { c.VLANFilters = 1 }))
	r4.MACConfiguration.Update(g.r, 0, r4.CST)
	r4.MACVLANTag.Store(g.r, uint32(r4.EVLS.Of(r4.StripAlways)|r4.EVLRXS))
	g.startSplit(splitRead)
	d := udp(1, 2, 3, 4).padded(40)
	g.w.inject(d.tag(5).bytes())
	g.step()
	got, hl := g.recvSplit([]piece{{42, 44}})
	if !bytes.Equal(got, d.bytes()) || hl != 42 {
		t.Errorf("received %x with HL %d", got, hl)
	}
	g.clean()
}

// TestSplitHeaderBuffers: a descriptor without the buffer that is needed gets nothing,
// and a header that its buffer does not hold is not split.
func TestSplitHeaderBuffers(t *testing.T) {
	frame := tcp(bytes.Repeat([]byte{9}, 100)...).bytes()
	t.Run("no second buffer in the first", func(t *testing.T) {
		g := splitRig(t)
		g.startSplit(splitRead)
		g.armSplit(0, rxRead)
		g.w.inject(frame)
		g.step()
		got, hl := g.recvSplit([]piece{{54, 0}, {0, 104}})
		if !bytes.Equal(got[:len(frame)], frame) || hl != 54 {
			t.Errorf("received %x with HL %d", got, hl)
		}
		g.wantKinds(OwnedWrite, NoBuffer)
	})
	t.Run("no second buffer at all", func(t *testing.T) {
		g := splitRig(t)
		g.startSplit(rxRead)
		g.w.inject(frame)
		g.step()
		for i := range g.n - 1 {
			if w := g.get(g.rxRing, i); r4.RDES3(w[3])&(r4.RxOWN|r4.RxLD) != 0 {
				t.Fatalf("descriptor %d is %08x", i, w)
			}
		}
		g.wantKinds(NoBuffer)
	})
	t.Run("no first buffer", func(t *testing.T) {
		g := splitRig(t)
		g.startSplit(splitRead &^ uint32(r4.RxBUF1V))
		g.w.inject(frame)
		g.step()
		got, hl := g.recvSplit([]piece{{0, len(frame) + 4}})
		if !bytes.Equal(got[:len(frame)], frame) || hl != 0 {
			t.Errorf("received %x with HL %d", got, hl)
		}
		g.wantKinds(NoBuffer)
	})
	t.Run("a first buffer that is too small", func(t *testing.T) {
		g := splitRig(t, withRBSZ(48))
		r4.MACExtConfiguration.Store(g.r, r4.HDSMS.Of(0))
		g.startSplit(splitRead)
		g.w.inject(frame)
		g.step()
		got, hl := g.recvSplit([]piece{{48, 48}, {0, 48}, {0, 14}})
		if !bytes.Equal(got[:len(frame)], frame) || hl != 0 {
			t.Errorf("received %x with HL %d", got, hl)
		}
		g.wantKinds(ConfigInvalid)
	})
	t.Run("a start that takes room", func(t *testing.T) {
		g := splitRig(t, withRBSZ(64), withStart(2))
		r4.MACExtConfiguration.Store(g.r, r4.HDSMS.Of(0))
		g.startSplit(splitRead)
		g.w.inject(tcp(bytes.Repeat([]byte{9}, 30)...).options(make([]byte, 8)...).bytes())
		g.step()
		if w := g.get(g.rxRing, 0); r4.HL.Get(r4.RDES2(w[2])) != 62 {
			t.Errorf("%08x", w)
		}
	})
}

// TestSplitHeaderNeeds: the feature, the bit, the checksum engine, and a limit that the
// buffers hold.
func TestSplitHeaderNeeds(t *testing.T) {
	for _, c := range []struct {
		name  string
		has   bool
		ctl   r4.CHControl
		ipc   r4.Configuration
		hdsms uint32
		hl    uint32
		kinds []ViolationKind
	}{
		{"all", true, r4.SPH, r4.IPC, 2, 54, nil},
		{"no feature", false, r4.SPH, r4.IPC, 2, 0, nil},
		{"no bit", true, 0, r4.IPC, 2, 0, nil},
		{"no engine", true, r4.SPH, 0, 2, 0, []ViolationKind{ConfigInvalid}},
		{"a limit above the buffer", true, r4.SPH, r4.IPC, 4, 54, []ViolationKind{ConfigInvalid}},
		{"a reserved limit", true, r4.SPH, r4.IPC, 5, 0, []ViolationKind{ConfigInvalid}},
	} {
		t.Run(c.name, func(t *testing.T) {
			g := newRig(t, withRBSZ(1016), withConfig(func(cfg *Config) { cfg.SplitHeader = c.has }))
			g.setup()
			if v := r4.MACHWFeature1.Load(g.r)&r4.SPHEN != 0; v != c.has {
				t.Errorf("SPHEN %v", v)
			}
			r4.DMACHControl.Store(g.ch(0), c.ctl)
			r4.MACConfiguration.Update(g.r, 0, c.ipc)
			r4.MTLRxQOperationMode.Update(g.mtl(0), 0, r4.DISTCPEF)
			r4.MACExtConfiguration.Store(g.r, r4.HDSMS.Of(c.hdsms))
			if v := r4.HDSMS.Get(r4.MACExtConfiguration.Load(g.r)); !c.has && v != 0 {
				t.Errorf("HDSMS %d", v)
			}
			g.startSplit(splitRead)
			f := tcp(bytes.Repeat([]byte{9}, 100)...).bytes()
			g.w.inject(f)
			g.step()
			if w := g.get(g.rxRing, 0); r4.HL.Get(r4.RDES2(w[2])) != c.hl || r4.RDES3(w[3])&r4.RxLD == 0 {
				t.Errorf("%08x", w)
			}
			if len(c.kinds) == 0 {
				g.clean()
			} else {
				g.wantKinds(c.kinds...)
			}
		})
	}
}

// TestSplitHeaderRandom: whatever the sizes are, every byte of a frame lands once, in
// order, and none outside the buffers.
func TestSplitHeaderRandom(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		rbsz := 16 * rapid.IntRange(1, 40).Draw(rt, "size")
		bus := rapid.SampledFrom([]int{4, 8, 16}).Draw(rt, "bus")
		start := rapid.IntRange(0, bus-1).Draw(rt, "start")
		g := splitRig(t, withRBSZ(rbsz), withRing(64), withStart(start), withConfig(func(c *Config) { c.BusBytes, c.NoAudit = bus, true }))
		r4.MACExtConfiguration.Store(g.r, r4.HDSMS.Of(rapid.Uint32Range(0, 7).Draw(rt, "hdsms")))
		r4.MACExtCfg1.Store(g.r, r4.SPLM.Of(rapid.Uint32Range(0, 3).Draw(rt, "mode"))|r4.SPLOFST.Of(rapid.Uint32Range(0, 127).Draw(rt, "offset")))
		g.startSplit(splitRead)
		d, _ := genDatagram(rt)
		f := d.bytes()
		if len(f) < minPadded {
			f = append(f, make([]byte, minPadded-len(f))...)
		}
		g.w.inject(f)
		g.step()
		var got []byte
		for i := range g.n {
			w := g.get(g.rxRing, i)
			d3 := r4.RDES3(w[3])
			if d3&r4.RxOWN != 0 {
				rt.Fatalf("%d descriptors and no end", i)
			}
			slot := g.rxMem[i*g.slot:][:g.slot]
			hl, left := int(r4.HL.Get(r4.RDES2(w[2]))), int(r4.RxPL.Get(d3))-len(got)
			one := 0
			switch {
			case i == 0 && hl > 0:
				one = hl
			case i == 0:
				one = min(left, rbsz-start)
			}
			two := left - one
			if one > rbsz-start || two > rbsz || two < 0 {
				rt.Fatalf("descriptor %d has %d and %d bytes, buffers of %d: %08x", i, one, two, rbsz, w)
			}
			second := g.slot/2 + start&^(bus-1)
			got = append(append(got, slot[start:start+one]...), slot[second:second+two]...)
			for k, b := range slot {
				if (k < start || k >= start+one) && (k < second || k >= second+two) && b != 0x5a {
					rt.Fatalf("descriptor %d: byte %d was written", i, k)
				}
			}
			if d3&r4.RxLD != 0 {
				break
			}
		}
		if len(got) != len(f)+fcsLen || !bytes.Equal(got[:len(f)], f) {
			rt.Fatalf("received %x, want %x", got, f)
		}
	})
}
