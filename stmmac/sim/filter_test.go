package sim

import (
	"bytes"
	"encoding/binary"
	"testing"

	r4 "github.com/gostmmac/gostmmac/stmmac/internal/regs/gmac4reg"
)

var (
	bcast    = [6]byte{255, 255, 255, 255, 255, 255}
	mcast    = [6]byte{0x01, 0x00, 0x5e, 0, 0, 0xfb}
	foreign  = [6]byte{0x2a, 0x10, 0x2f, 0x1b, 0x03, 0x45}
	pauseDst = [6]byte{0x01, 0x80, 0xc2, 0, 0, 1}
)

// TestHashBins are the bins of D45; the first two stand in manuals as examples.
func TestHashBins(t *testing.T) {
	for _, c := range []struct {
		addr            [6]byte
		b64, b128, b256 int
	}{
		{[6]byte{0x1f, 0x52, 0x41, 0x9c, 0xb6, 0xaf}, 0x2c, 0x59, 0xb3},
		{[6]byte{0xa0, 0x0a, 0x98, 0, 0, 0x45}, 0x07, 0x0e, 0x1d},
		{[6]byte{0x01, 0, 0x5e, 0, 0, 0x01}, 0x20, 0x40, 0x80},
		{[6]byte{0x01, 0, 0x5e, 0, 0, 0xfb}, 0x30, 0x60, 0xc0},
		{[6]byte{0x33, 0x33, 0, 0, 0, 0x01}, 0x01, 0x03, 0x06},
		{[6]byte{0x33, 0x33, 0xff, 0x12, 0x34, 0x56}, 0x3d, 0x7a, 0xf4},
		{[6]byte{0x01, 0x80, 0xc2, 0, 0, 0x0e}, 0x1e, 0x3c, 0x78},
		{[6]byte{0x01, 0x1b, 0x19, 0, 0, 0}, 0, 0, 1},
	} {
		for bins, want := range map[int]int{64: c.b64, 128: c.b128, 256: c.b256} {
			if got := hashBin(c.addr[:], bins); got != want {
				t.Errorf("%x in %d bins: %#x, want %#x", c.addr, bins, got, want)
			}
		}
	}
}

func TestAddressFilter(t *testing.T) {
	setHash := func(g *rig, a [6]byte) {
		bin := hashBin(a[:], 64)
		r4.MACHashTable.At(bin/32, 4).Store(g.r, 1<<(bin%32))
	}
	none := func(*rig) {}
	for _, c := range []struct {
		name   string
		filter r4.PacketFilter
		setup  func(*rig)
		pass   [4]bool // own, foreign, multicast, broadcast
	}{
		{"after reset", 0, none, [4]bool{true, false, false, true}},
		{"promiscuous", r4.PR, none, [4]bool{true, true, true, true}},
		{"promiscuous, source filter", r4.PR | r4.SAF, none, [4]bool{true, true, true, true}},
		{"promiscuous, receive all", r4.PR | r4.RA, none, [4]bool{true, true, true, true}},
		{"all multicast", r4.PM, none, [4]bool{true, false, true, true}},
		{"no broadcast", r4.DBF, none, [4]bool{true, false, false, false}},
		{"no broadcast but promiscuous", r4.DBF | r4.PR, none, [4]bool{true, true, true, true}},
		{"receive all", r4.RA, none, [4]bool{true, true, true, true}},
		{"inverse", r4.DAIF, none, [4]bool{false, true, true, true}},
		{"second address", 0, func(g *rig) { g.setMAC(1, foreign) }, [4]bool{true, true, false, true}},
		{"second address without its low half", 0, func(g *rig) {
			r4.MACAddressHigh.At(1, 8).Store(g.r, r4.AE|r4.AddressHigh(foreign[5])<<8|r4.AddressHigh(foreign[4]))
		}, [4]bool{true, false, false, true}},
		{"last address", 0, func(g *rig) { g.setMAC(31, foreign) }, [4]bool{true, true, false, true}},
		{"no address 32", 0, func(g *rig) { g.setMAC(32, foreign) }, [4]bool{true, false, false, true}},
		{"masked bytes", 0, func(g *rig) {
			r4.MACAddressHigh.At(1, 8).Store(g.r, r4.AE|r4.MBC.Of(0x3e)) // only the first byte counts
			r4.MACAddressLow.At(1, 8).Store(g.r, uint32(foreign[0]))
		}, [4]bool{true, true, false, true}},
		{"source address entry", 0, func(g *rig) {
			r4.MACAddressHigh.At(1, 8).Store(g.r, r4.AE|r4.SA|r4.AddressHigh(foreign[5])<<8|r4.AddressHigh(foreign[4]))
			r4.MACAddressLow.At(1, 8).Store(g.r, binary.LittleEndian.Uint32(foreign[:]))
		}, [4]bool{true, false, false, true}},
		{"multicast hash", r4.HMC, func(g *rig) { setHash(g, mcast) }, [4]bool{true, false, true, true}},
		{"multicast hash without the bit", r4.HMC, none, [4]bool{true, false, false, true}},
		{"hash table without HMC", 0, func(g *rig) { setHash(g, mcast) }, [4]bool{true, false, false, true}},
		{"unicast hash", r4.HUC, func(g *rig) { setHash(g, foreign) }, [4]bool{false, true, false, true}},
		{"unicast hash or perfect", r4.HUC | r4.HPF, func(g *rig) { setHash(g, foreign) }, [4]bool{true, true, false, true}},
		{"source filter", r4.SAF, none, [4]bool{}},
		{"inverse source filter", r4.SAF | r4.SAIF, none, [4]bool{true, false, false, true}},
		{"source filter with the sender", r4.SAF, func(g *rig) {
			r4.MACAddressHigh.At(1, 8).Store(g.r, r4.AE|r4.SA|0x0900)
			r4.MACAddressLow.At(1, 8).Store(g.r, 2)
		}, [4]bool{true, false, false, true}},
	} {
		t.Run(c.name, func(t *testing.T) {
			g := newRig(t)
			g.open()
			c.setup(g)
			r4.MACPacketFilter.Store(g.r, c.filter)
			for i, dst := range [][6]byte{testMAC, foreign, mcast, bcast} {
				f := frameTo(dst, 60, byte(i))
				g.w.inject(f)
				g.step()
				got, w, ok := g.recv()
				if ok != c.pass[i] || ok && !bytes.Equal(got, f) {
					t.Errorf("frame to %x: received %v, want %v", dst, ok, c.pass[i])
				}
				fails := c.filter == r4.RA && (i == 1 || i == 2) // PR hides it
				if ok && r4.RDES2(w[2])&(r4.DAFFail|r4.SAFFail) != 0 != fails {
					t.Errorf("frame to %x: word 2 %#x", dst, w[2])
				}
			}
			g.clean()
		})
	}
}

func TestFilterStatus(t *testing.T) {
	g := newRig(t)
	g.open()
	g.setMAC(5, foreign)
	bin := hashBin(mcast[:], 64)
	r4.MACHashTable.At(bin/32, 4).Store(g.r, 1<<(bin%32))
	r4.MACPacketFilter.Store(g.r, r4.HMC)
	g.w.inject(frameTo(foreign, 60, 1), frameTo(mcast, 60, 2))
	g.step()
	if w := r4.RDES2(g.get(g.rxRing, 0)[2]); r4.MADRM.Get(w) != 5 || w&r4.HF != 0 {
		t.Errorf("perfect match: word 2 %#x", uint32(w))
	}
	if w := r4.RDES2(g.get(g.rxRing, 1)[2]); w&r4.HF == 0 || r4.MADRM.Get(w) != uint32(bin) {
		t.Errorf("hash match: word 2 %#x", uint32(w))
	}
}

func TestControlFrames(t *testing.T) {
	pause := frameTo(pauseDst, 60, 0)
	binary.BigEndian.PutUint16(pause[12:], typeControl)
	binary.BigEndian.PutUint16(pause[14:], opPause)
	other := bytes.Clone(pause)
	other[15] = 2
	for pcf, want := range [4][2]bool{{false, false}, {false, true}, {true, true}, {false, false}} {
		g := newRig(t)
		g.open()
		r4.MACPacketFilter.Store(g.r, r4.PCF.Of(uint32(pcf)))
		for i, f := range [][]byte{pause, other} {
			g.w.inject(f)
			g.step()
			if _, _, ok := g.recv(); ok != want[i] {
				t.Errorf("PCF %d, frame %d: received %v", pcf, i, ok)
			}
		}
		r4.MACPacketFilter.Store(g.r, r4.PCF.Of(3)|r4.PM) // 3: those that pass the filter
		g.w.inject(pause)
		g.step()
		if _, w, ok := g.recv(); !ok || r4.RxLT.Get(r4.RDES3(w[3])) != ltControl {
			t.Errorf("pause frame: received %v, word 3 %#x", ok, w[3])
		}
	}
}

// tagged is a frame with a VLAN tag.
func tagged(n int, tci uint16, seed byte) []byte {
	f := testFrame(n, seed)
	f = append(f[:12:12], append([]byte{0x81, 0, byte(tci >> 8), byte(tci)}, f[12:]...)...)
	return f
}

func TestVLANFilter(t *testing.T) {
	for _, c := range []struct {
		reg    r4.VLANTag
		tci    uint16
		passes bool
	}{
		{r4.ETV | 100, 100, true}, {r4.ETV | 100, 0xe064, true}, {r4.ETV | 100, 101, false},
		{100, 0xe064, false}, {100, 100, true}, {r4.ETV | r4.VTIM | 100, 100, false}, {r4.ETV | r4.VTIM | 100, 7, true},
		{r4.ETV, 5, true}, {0, 5, true},
	} {
		g := newRig(t, withConfig(func(c *Config) { c.VLANFilters = 1 }))
		g.open()
		r4.MACVLANTag.Store(g.r, uint32(c.reg|r4.EVLRXS))
		r4.MACPacketFilter.Store(g.r, r4.VTFE)
		f, plain := tagged(80, c.tci, 1), testFrame(60, 2)
		g.w.inject(f, plain)
		g.step()
		if c.passes {
			w := g.mustRecv(f)
			if r4.RDES2(w[2])&r4.VF == 0 {
				t.Errorf("word 2 %#x", w[2])
			}
			if d3 := r4.RDES3(w[3]); w[0] != uint32(c.tci) || d3&r4.RxRS0V == 0 || r4.RxLT.Get(d3) != ltVLAN {
				t.Errorf("%#x, tag %#x: %08x", uint32(c.reg), c.tci, w)
			}
		}
		g.mustRecv(plain) // untagged frames always pass
		g.noRecv()
	}
}

// TestRouting: queues by priority, group address, control and untagged frames, and
// the channel of a queue (D47).
func TestRouting(t *testing.T) {
	type rx struct {
		frame   []byte
		queue   int // -1: vanishes
		channel int
	}
	run := func(t *testing.T, setup func(*rig), frames []rx) {
		t.Helper()
		g := newRig(t, withConfig(func(c *Config) { c.RxQueues = 4 }))
		g.setup()
		for q := range 4 {
			r4.MTLRxQOperationMode.Store(g.mtl(q), r4.RSF|r4.RQS.Of(15))
		}
		r4.MACPacketFilter.Store(g.r, r4.PM|r4.PCF.Of(2))
		setup(g)
		r4.MACConfiguration.Update(g.r, 0, r4.RE) // no DMA: the frames stay in the queues
		for i, f := range frames {
			g.w.inject(f.frame)
			g.step()
			where := -1
			for q := range g.d.rxq {
				if x := &g.d.rxq[q]; !x.empty() {
					where = q
					if ch := int(x.frames[x.head].meta.ch); ch != f.channel {
						t.Errorf("frame %d: channel %d, want %d", i, ch, f.channel)
					}
					x.drop(g.d.Model)
				}
			}
			if where != f.queue {
				t.Errorf("frame %d: queue %d, want %d", i, where, f.queue)
			}
		}
	}
	control := frameTo(pauseDst, 60, 0)
	binary.BigEndian.PutUint16(control[12:], typeControl)
	control[15] = 9
	uni, multi := testFrame(60, 1), frameTo(mcast, 60, 2)
	pcp := func(p uint16) []byte { return tagged(64, p<<13|5, 3) }
	enable := func(g *rig) { r4.MACRxQCtrl0.Store(g.r, 0xaa) }

	t.Run("after reset everything vanishes", func(t *testing.T) {
		run(t, func(g *rig) { r4.MACRxQCtrl0.Store(g.r, 0) }, []rx{{uni, -1, 0}, {multi, -1, 0}, {pcp(7), -1, 0}})
	})
	t.Run("queue 0 by default", func(t *testing.T) {
		run(t, enable, []rx{{uni, 0, 0}, {multi, 0, 0}, {pcp(7), 0, 0}, {control, 0, 0}})
	})
	t.Run("routed", func(t *testing.T) {
		run(t, func(g *rig) {
			enable(g)
			r4.MACRxQCtrl2.Store(g.r, 0x03|0x0c<<8|0x30<<16|0xc0<<24)
			r4.MACRxQCtrl1.Store(g.r, r4.UPQ.Of(3)|r4.MCBCQ.Of(2)|r4.MCBCQEN|r4.DCBCPQ.Of(1))
			r4.MTLRxQDMAMap0.Store(g.r, 3|2<<8|1<<16|0<<24)
		}, []rx{{uni, 3, 0}, {multi, 2, 1}, {pcp(0), 0, 3}, {pcp(2), 1, 2}, {pcp(5), 2, 1}, {pcp(7), 3, 0}, {control, 1, 2}})
	})
	t.Run("disabled queue", func(t *testing.T) {
		run(t, func(g *rig) {
			r4.MACRxQCtrl0.Store(g.r, 0x2)
			r4.MACRxQCtrl2.Store(g.r, 0x0f|0xf0<<8)
		}, []rx{{uni, 0, 0}, {pcp(1), 0, 0}, {pcp(6), -1, 0}})
	})
	t.Run("channel that is not there", func(t *testing.T) {
		run(t, func(g *rig) {
			enable(g)
			r4.MTLRxQDMAMap0.Store(g.r, 5)
		}, []rx{{uni, -1, 0}})
	})
	t.Run("queue that is not there", func(t *testing.T) {
		run(t, func(g *rig) {
			enable(g)
			r4.MACRxQCtrl1.Store(g.r, r4.UPQ.Of(6))
		}, []rx{{uni, -1, 0}})
	})
	t.Run("channel by address", func(t *testing.T) {
		run(t, func(g *rig) {
			enable(g)
			r4.MTLRxQDMAMap0.Store(g.r, uint32(r4.RxQDynamic))
			r4.MACAddressHigh.At(1, 8).Store(g.r, r4.AE|r4.DCS.Of(2)|r4.AddressHigh(foreign[5])<<8|r4.AddressHigh(foreign[4]))
			r4.MACAddressLow.At(1, 8).Store(g.r, binary.LittleEndian.Uint32(foreign[:]))
		}, []rx{{uni, 0, 0}, {frameTo(foreign, 60, 1), 0, 2}})
	})
}

// TestFrameLengths: runts, giants, the watchdog and bad frames (databook:
// MAC_Configuration, MTL_RxQx_Operation_Mode).
func TestFrameLengths(t *testing.T) {
	const drop = -1
	for _, c := range []struct {
		name string
		conf r4.Configuration
		mode r4.MTLRxQMode
		wdt  r4.WatchdogTimeout
		gpsl uint32
		size int // without FCS
		tag  bool
		bad  bool
		pl   int
		errs r4.RDES3
	}{
		{"runt", 0, 0, 0, 0, 59, false, false, drop, 0},
		{"runt forwarded", 0, r4.FUP, 0, 0, 30, false, false, 34, 0},
		{"less than a header", 0, r4.FUP, 0, 0, 13, false, false, drop, 0},
		{"smallest", 0, 0, 0, 0, 60, false, false, 64, 0},
		{"bad FCS", 0, 0, 0, 0, 60, false, true, drop, 0},
		{"bad FCS forwarded", 0, r4.FEP, 0, 0, 60, false, true, 64, r4.RxCE | r4.RxES},
		{"largest", 0, 0, 0, 0, 1514, false, false, 1518, 0},
		{"giant", 0, 0, 0, 0, 1515, false, false, 1519, r4.RxGP | r4.RxES},
		{"largest with tag", 0, 0, 0, 0, 1518, true, false, 1522, 0},
		{"giant with tag", 0, 0, 0, 0, 1519, true, false, 1523, r4.RxGP | r4.RxES},
		{"2K", r4.S2KP, 0, 0, 0, 1996, false, false, 2000, 0},
		{"over 2K", r4.S2KP, 0, 0, 0, 1997, false, false, 2001, r4.RxGP | r4.RxES},
		{"own giant limit", r4.GPSLCE, 0, 0, 1600, 1596, false, false, 1600, 0},
		{"over own giant limit", r4.GPSLCE, 0, 0, 1600, 1597, false, false, 1601, r4.RxGP | r4.RxES},
		{"jumbo", r4.JE, 0, 0, 0, 9014, false, false, 9018, 0},
		{"jumbo with tag", r4.JE, 0, 0, 0, 9018, true, false, 9022, 0},
		{"over jumbo", r4.JE, 0, 0, 0, 9015, false, false, 9019, r4.RxGP | r4.RxES},
		{"watchdog", 0, 0, 0, 0, 2045, false, false, drop, 0},
		{"watchdog forwarded", 0, r4.FEP, 0, 0, 3000, false, false, 2048, r4.RxGP | r4.RxRWT | r4.RxES},
		{"jumbo watchdog", r4.JE, r4.FEP, 0, 0, 11000, false, false, 10240, r4.RxGP | r4.RxRWT | r4.RxES},
		{"no watchdog", r4.WD | r4.JE, 0, 0, 0, 12000, false, false, 12004, r4.RxGP | r4.RxES},
		{"own watchdog", r4.JE, 0, r4.PWE | 2, 0, 4092, false, false, 4096, 0},
		{"over own watchdog", r4.JE, r4.FEP, r4.PWE | 2, 0, 4093, false, false, 4096, r4.RxRWT | r4.RxES},
	} {
		t.Run(c.name, func(t *testing.T) {
			g := newRig(t, withSlot(16384), withRBSZ(15872))
			g.open()
			r4.MTLRxQOperationMode.Update(g.mtl(0), 0, c.mode)
			r4.MACWatchdogTimeout.Store(g.r, c.wdt)
			r4.MACExtConfiguration.Store(g.r, c.gpsl)
			r4.MACConfiguration.Update(g.r, 0, c.conf)
			f := testFrame(c.size, 1)
			if c.tag {
				f = tagged(c.size-4, 1, 1)
			}
			g.w.rx = append(g.w.rx, Frame{Data: f, BadFCS: c.bad})
			g.step()
			w := g.get(g.rxRing, 0)
			d3 := r4.RDES3(w[3])
			if got := d3&r4.RxOWN == 0; got != (c.pl != drop) {
				t.Fatalf("received %v", got)
			}
			if c.pl == drop {
				if g.d.Stats().RxDropped != 1 {
					t.Error("not counted")
				}
				return
			}
			if int(r4.RxPL.Get(d3)) != c.pl || d3&(rxErrors|r4.RxES) != c.errs {
				t.Errorf("length %d errors %#x", r4.RxPL.Get(d3), uint32(d3&(rxErrors|r4.RxES)))
			}
			n := min(c.pl, c.size)
			if !bytes.Equal(g.rxBuf(0, n), f[:n]) {
				t.Error("content")
			}
			if n+4 == c.pl {
				sum := fcs(f)
				if same := bytes.Equal(g.rxBuf(0, c.pl)[n:], sum[:]); same == c.bad {
					t.Errorf("the FCS in memory is right: %v", same)
				}
			}
			g.clean()
		})
	}
}

// TestThresholdReceive: without store and forward a bad frame that is past the
// threshold has left the FIFO before it is known to be bad.
func TestThresholdReceive(t *testing.T) {
	g := newRig(t)
	g.open()
	r4.MTLRxQOperationMode.Update(g.mtl(0), r4.RSF, r4.RTC.Of(3)) // 128 bytes
	g.w.rx = append(g.w.rx, Frame{Data: testFrame(100, 1), BadFCS: true}, Frame{Data: testFrame(150, 2), BadFCS: true})
	g.step()
	got, w, ok := g.recv()
	if !ok || len(got) != 150 || r4.RDES3(w[3])&r4.RxCE == 0 {
		t.Fatalf("received %v, %d bytes", ok, len(got))
	}
	g.noRecv()
}

func TestStripping(t *testing.T) {
	length := testFrame(60, 1)
	binary.BigEndian.PutUint16(length[12:], 20) // 20 bytes and pad
	typ := testFrame(60, 2)
	for _, c := range []struct {
		conf r4.Configuration
		pl   [2]uint32
	}{{0, [2]uint32{64, 64}}, {r4.CST, [2]uint32{64, 60}}, {r4.ACS, [2]uint32{34, 64}}, {r4.ACS | r4.CST, [2]uint32{34, 60}}} {
		g := newRig(t)
		g.open()
		r4.MACConfiguration.Update(g.r, 0, c.conf)
		g.w.inject(length, typ)
		g.step()
		for i := range 2 {
			d3 := r4.RDES3(g.get(g.rxRing, i)[3])
			if r4.RxPL.Get(d3) != c.pl[i] || r4.RxLT.Get(d3) != uint32(i) {
				t.Errorf("conf %#x frame %d: word 3 %#x", uint32(c.conf), i, uint32(d3))
			}
		}
	}
}

func TestReceiverOff(t *testing.T) {
	g := newRig(t)
	g.open()
	r4.MACConfiguration.Update(g.r, r4.RE, 0)
	g.w.inject(testFrame(60, 1))
	g.step()
	r4.MACConfiguration.Update(g.r, 0, r4.RE)
	g.step()
	g.noRecv()
	if s := g.d.Stats(); s.RxDropped != 1 {
		t.Errorf("%+v", s)
	}
}

func TestLoopback(t *testing.T) {
	g := newRig(t)
	g.open()
	r4.MACConfiguration.Update(g.r, 0, r4.LM)
	for k := range 40 {
		f := testFrame(60+k*13, byte(k))
		g.w.inject(testFrame(60, 0xff)) // not heard
		g.send(f)
		g.step()
		g.mustRecv(f)
		g.post(1)
		g.reap()
	}
	g.wantSent()
	g.noRecv()
	g.clean()
}

func TestCounters(t *testing.T) {
	g := newRig(t, withSlot(4096), withRing(64))
	g.open()
	r4.MACConfiguration.Update(g.r, 0, r4.JD)
	r4.MACPacketFilter.Store(g.r, r4.PM|r4.PCF.Of(2))
	pause := frameTo(pauseDst, 60, 0)
	binary.BigEndian.PutUint16(pause[12:], typeControl)
	binary.BigEndian.PutUint16(pause[14:], opPause)
	frames := [][]byte{testFrame(60, 1), testFrame(61, 1), testFrame(123, 1), testFrame(124, 1), testFrame(300, 1), testFrame(700, 1),
		testFrame(1020, 1), testFrame(1514, 1), frameTo(mcast, 60, 1), frameTo(bcast, 60, 1), tagged(96, 5, 1), testFrame(1600, 1), pause}
	octets := uint32(0)
	for _, f := range frames {
		octets += uint32(len(f)) + 4
		g.send(f)
	}
	g.w.inject(frames...)
	g.w.inject(testFrame(40, 1))             // undersize
	g.w.inject(testFrame(2500, 1))           // watchdog
	g.w.inject(frameTo(foreign, 60, 1))      // filtered: not counted
	for _, n := range []int{200, 30, 1800} { // bad, runt, jabber
		g.w.rx = append(g.w.rx, Frame{Data: testFrame(n, 1), BadFCS: true})
	}
	g.step()
	bad := uint32(44 + 2504 + 204 + 34 + 1804)
	for name, c := range map[string]struct{ off, want uint32 }{
		"tx octets gb":    {r4.TxOctetCountGoodBad, octets},
		"tx octets g":     {r4.TxOctetCountGood, octets},
		"tx frames gb":    {r4.TxPacketCountGoodBad, 13},
		"tx frames g":     {r4.TxPacketCountGood, 13},
		"tx unicast":      {r4.TxUnicastPacketsGoodBad, 10},
		"tx multicast":    {r4.TxMulticastPacketsGoodBad, 2},
		"tx multicast g":  {r4.TxMulticastPacketsGood, 2},
		"tx broadcast":    {r4.TxBroadcastPacketsGoodBad, 1},
		"tx broadcast g":  {r4.TxBroadcastPacketsGood, 1},
		"tx 64":           {r4.Tx64OctetsPacketsGoodBad, 4},
		"tx 65-127":       {r4.Tx65To127OctetsPacketsGoodBad, 3},
		"tx 128-255":      {r4.Tx128To255OctetsPacketsGoodBad, 1},
		"tx 256-511":      {r4.Tx256To511OctetsPacketsGoodBad, 1},
		"tx 512-1023":     {r4.Tx512To1023OctetsPacketsGoodBad, 1},
		"tx 1024-":        {r4.Tx1024ToMaxOctetsPacketsGoodBad, 3},
		"tx vlan":         {r4.TxVLANPacketsGood, 1},
		"tx oversize":     {r4.TxOsizePacketsGood, 1},
		"tx pause":        {r4.TxPausePackets, 1},
		"rx frames gb":    {r4.RxPacketsCountGoodBad, 18},
		"rx octets gb":    {r4.RxOctetCountGoodBad, octets + bad},
		"rx octets g":     {r4.RxOctetCountGood, octets + 44},
		"rx unicast":      {r4.RxUnicastPacketsGood, 11},
		"rx multicast":    {r4.RxMulticastPacketsGood, 2},
		"rx broadcast":    {r4.RxBroadcastPacketsGood, 1},
		"rx crc":          {r4.RxCRCErrorPackets, 3},
		"rx runt":         {r4.RxRuntErrorPackets, 1},
		"rx jabber":       {r4.RxJabberErrorPackets, 1},
		"rx undersize":    {r4.RxUndersizePacketsGood, 1},
		"rx oversize":     {r4.RxOversizePacketsGood, 1},
		"rx 64":           {r4.Rx64OctetsPacketsGoodBad, 4},
		"rx 65-127":       {r4.Rx65To127OctetsPacketsGoodBad, 3},
		"rx 1024-":        {r4.Rx1024ToMaxOctetsPacketsGoodBad, 5},
		"rx vlan":         {r4.RxVLANPacketsGoodBad, 1},
		"rx watchdog":     {r4.RxWatchdogErrorPackets, 1},
		"rx pause":        {r4.RxPausePackets, 1},
		"rx control":      {r4.RxControlPacketsGood, 1},
		"rx fifo":         {r4.RxFIFOOverflowPackets, 0},
		"rx length error": {r4.RxLengthErrorPackets, 0},
	} {
		if got := g.r.Load32(c.off); got != c.want {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
		if again := g.r.Load32(c.off); again != c.want {
			t.Errorf("%s: %d at the second read", name, again)
		}
	}
}

func TestCounterControl(t *testing.T) {
	g := newRig(t)
	g.open()
	f := testFrame(60, 1)
	rx := func() {
		g.w.inject(f)
		g.step()
		if _, _, ok := g.recv(); ok {
			g.post(1)
		}
	}
	const frames = r4.RxPacketsCountGoodBad
	rx()
	r4.MMCControl.Store(g.r, r4.MMCRstOnRd)
	if a, b := g.r.Load32(frames), g.r.Load32(frames); a != 1 || b != 0 {
		t.Errorf("reset on read: %d, then %d", a, b)
	}
	r4.MMCControl.Store(g.r, r4.MMCCntFreez)
	rx()
	if v := g.r.Load32(frames); v != 0 {
		t.Errorf("frozen: %d", v)
	}
	r4.MMCControl.Store(g.r, 0)
	rx()
	r4.MMCControl.Store(g.r, r4.MMCControlInit) // reset wins over preset
	if v := g.r.Load32(frames); v != 0 {
		t.Errorf("reset: %#x", v)
	}
	if v := r4.MMCControl.Load(g.r); v != r4.MMCRstOnRd|r4.MMCCntPrstLvl {
		t.Errorf("MMC_Control %#x", uint32(v))
	}
	r4.MMCControl.Store(g.r, r4.MMCCntPrst)
	if v := g.r.Load32(frames); v != 0x7ffffff0 {
		t.Errorf("half preset: %#x", v)
	}
	r4.MMCControl.Store(g.r, r4.MMCCntPrst|r4.MMCCntPrstLvl|r4.MMCCntStopRO)
	if v := g.r.Load32(r4.RxOctetCountGoodBad); v != 0xfffff800 {
		t.Errorf("full preset: %#x", v)
	}
	for range 20 {
		rx()
	}
	if v := g.r.Load32(frames); v != 0xffffffff {
		t.Errorf("does not stop at its end: %#x", v)
	}
}

func TestCounterInterrupt(t *testing.T) {
	g := newRig(t)
	g.open()
	r4.MMCControl.Store(g.r, r4.MMCCntPrst)
	r4.MMCRxInterruptMask.Store(g.r, 0x7)
	r4.MMCTxInterruptMask.Store(g.r, ^uint32(0))
	f := frameTo(bcast, 60, 1)
	for range 20 {
		g.w.inject(f)
		g.send(f)
		g.step()
		g.recv()
		g.post(1)
		g.reap()
	}
	const bcastBit = 1 << 3
	if v := r4.MMCRxInterrupt.Load(g.r); v&(1|bcastBit) != 1|bcastBit {
		t.Fatalf("MMC_Rx_Interrupt %#x", v)
	}
	if v := r4.MACInterruptStatus.Load(g.r); v != r4.MMCIS|r4.MMCRXIS {
		t.Fatalf("MAC_Interrupt_Status %#x", uint32(v))
	}
	if v := r4.DMAInterruptStatus.Load(g.r); v != r4.MACIS {
		t.Fatalf("DMA_Interrupt_Status %#x", uint32(v))
	}
	if e := g.d.Stats().Edges[0]; e != 1 {
		t.Fatalf("%d edges", e)
	}
	r4.MMCRxInterruptMask.Store(g.r, ^uint32(bcastBit))
	g.r.Load32(r4.RxBroadcastPacketsGood) // reading the counter clears its bit
	if v := r4.DMAInterruptStatus.Load(g.r); v != 0 {
		t.Fatalf("DMA_Interrupt_Status %#x after the read", uint32(v))
	}
	r4.MMCRxInterruptMask.Store(g.r, 0)
	if e := g.d.Stats().Edges[0]; e != 2 {
		t.Fatalf("%d edges", e)
	}
}

func TestOverflowInterrupt(t *testing.T) {
	g := newRig(t, withConfig(func(c *Config) { c.RxFIFO = 256 }))
	g.setup()
	q := g.mtl(0)
	r4.MTLQInterruptCtrl.Store(q, r4.RXOIE)
	r4.MACConfiguration.Update(g.r, 0, r4.RE)
	g.w.inject(testFrame(200, 1), testFrame(200, 2))
	g.step()
	if a, b := r4.MTLInterruptStatus.Load(g.r), r4.DMAInterruptStatus.Load(g.r); a != 1 || b != r4.MTLIS {
		t.Fatalf("MTL_Interrupt_Status %#x, DMA_Interrupt_Status %#x", a, uint32(b))
	}
	if e := g.d.Stats().Edges[0]; e != 1 {
		t.Fatalf("%d edges", e)
	}
	r4.MTLQInterruptCtrl.Store(q, r4.RXOIE) // a 0 does not clear
	if v := r4.MTLQInterruptCtrl.Load(q); v != r4.RXOIE|r4.RXOVFIS {
		t.Fatalf("%#x", uint32(v))
	}
	r4.MTLQInterruptCtrl.Store(q, r4.RXOIE|r4.RXOVFIS)
	if v := r4.MTLQInterruptCtrl.Load(q); v != r4.RXOIE {
		t.Fatalf("%#x", uint32(v))
	}
	if r4.DMAInterruptStatus.Load(g.r) != 0 {
		t.Fatal("still pending")
	}
}
