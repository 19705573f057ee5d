package sim

import (
	"bytes"
	"encoding/binary"
	"testing"
	"time"

	r4 "github.com/gostmmac/gostmmac/stmmac/internal/regs/gmac4reg"
)

const arpAddress = 0xc0000207 // 192.0.2.7

// arpFrame is an ARP packet for 192.0.2.7 from 192.0.2.9 at 02:00:00:00:00:08, in a frame
// from 02:00:00:00:00:09.
func arpFrame(dst [6]byte, op uint16) []byte {
	f := append([]byte{}, dst[:]...)
	f = append(f, 2, 0, 0, 0, 0, 9, 0x08, 0x06, 0, 1, 0x08, 0, 6, 4, byte(op>>8), byte(op))
	f = append(f, 2, 0, 0, 0, 0, 8, 192, 0, 2, 9)
	f = append(f, 0, 0, 0, 0, 0, 0, 192, 0, 2, 7)
	return append(f, make([]byte, 18)...)
}

// arpReply is the answer to it.
func arpReply() []byte {
	f := []byte{2, 0, 0, 0, 0, 8}
	f = append(f, testMAC[:]...)
	f = append(f, 0x08, 0x06, 0, 1, 0x08, 0, 6, 4, 0, 2)
	f = append(append(f, testMAC[:]...), 192, 0, 2, 7)
	f = append(f, 2, 0, 0, 0, 0, 8, 192, 0, 2, 9)
	return append(f, make([]byte, 18)...)
}

func withARP() rigOption { return withConfig(func(c *Config) { c.ARPOffload = true }) }

func (g *rig) arpOn() {
	r4.MACARPAddress.Store(g.r, arpAddress)
	r4.MACConfiguration.Update(g.r, 0, r4.ARPEN)
}

// TestARPOffload: which requests are answered, and what their status says. All of them
// reach memory.
func TestARPOffload(t *testing.T) {
	with := func(at int, b ...byte) []byte { return edit(arpFrame(bcast, 1), at, b...) }
	for _, c := range []struct {
		name    string
		frame   []byte
		bad     bool
		filter  r4.PacketFilter
		answers bool
		lt      uint32
	}{
		{"request to all", arpFrame(bcast, 1), false, 0, true, ltARP},
		{"request to this MAC", arpFrame(testMAC, 1), false, 0, true, ltARP},
		{"request to another MAC", arpFrame(foreign, 1), false, r4.PR, false, ltARP},
		{"request to a group", arpFrame(mcast, 1), false, r4.PM, false, ltARP},
		{"reply", arpFrame(bcast, 2), false, 0, false, ltType},
		{"another target", with(41, 8), false, 0, false, ltARP},
		{"another hardware", with(15, 6), false, 0, false, ltType},
		{"another protocol", with(16, 0x86, 0xdd), false, 0, false, ltType},
		{"another length", with(18, 8), false, 0, false, ltType},
		{"another protocol length", with(19, 16), false, 0, false, ltType},
		{"wrong FCS", arpFrame(bcast, 1), true, 0, false, ltARP},
		{"cut short", arpFrame(bcast, 1)[:41], false, 0, false, ltType},
		{"tagged", tags(arpFrame(bcast, 1), 5), false, 0, false, ltVLAN},
		{"no ARP", frameTo(bcast, 60, 1), false, 0, false, ltType},
	} {
		t.Run(c.name, func(t *testing.T) {
			g := newRig(t, withARP())
			g.open()
			r4.MTLRxQOperationMode.Update(g.mtl(0), 0, r4.FEP|r4.FUP)
			r4.MACPacketFilter.Store(g.r, c.filter)
			g.arpOn()
			g.w.rx = append(g.w.rx, Frame{Data: c.frame, BadFCS: c.bad})
			g.step()
			_, w, ok := g.recv()
			if !ok || r4.RxLT.Get(r4.RDES3(w[3])) != c.lt || r4.RDES2(w[2])&r4.ARPNR != 0 {
				t.Errorf("received %v, %08x, want LT %d", ok, w, c.lt)
			}
			if c.answers {
				g.wantSent(arpReply())
				if n := r4.TxPacketCountGood; g.r.Load32(n) != 1 {
					t.Errorf("%s is %d", r4.Map.Name(n), g.r.Load32(n))
				}
			} else {
				g.wantSent()
			}
			want := uint64(0)
			if c.answers {
				want = 1
			}
			if s := g.d.Stats(); s.TxARP != want || s.TxFrames != 0 {
				t.Errorf("%d answers, %d frames", s.TxARP, s.TxFrames)
			}
			g.clean()
		})
	}
}

// TestARPOffloadBusy: the MAC answers one request at a time and says which it did not
// answer; the answer waits for the transmitter, a pause and the wire.
func TestARPOffloadBusy(t *testing.T) {
	for _, c := range []struct {
		name       string
		stop, free func(*rig)
	}{
		{"transmitter off", func(g *rig) { r4.MACConfiguration.Update(g.r, r4.TE, 0) },
			func(g *rig) { r4.MACConfiguration.Update(g.r, 0, r4.TE) }},
		{"wire full", func(g *rig) { g.w.full = true }, func(g *rig) { g.w.full = false }},
		{"pause", func(g *rig) {
			r4.MACRxFlow.Store(g.r, r4.RFE)
			g.w.inject(pauseTo(pauseDst, 100))
		}, func(g *rig) { g.clock.Advance(100 * 512 * time.Nanosecond) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			g := newRig(t, withARP())
			g.open()
			g.arpOn()
			c.stop(g)
			g.w.inject(arpFrame(bcast, 1), edit(arpFrame(bcast, 1), 41, 9), arpFrame(bcast, 1), arpFrame(bcast, 2))
			g.step()
			g.wantSent()
			for i, want := range []bool{false, false, true, false} {
				if _, w, ok := g.recv(); !ok || r4.RDES2(w[2])&r4.ARPNR != 0 != want {
					t.Errorf("%d: received %v, %08x, want ARPNR %v", i, ok, w, want)
				}
			}
			c.free(g)
			g.step()
			g.wantSent(arpReply())
			g.w.inject(arpFrame(bcast, 1))
			g.step()
			g.wantSent(arpReply())
			g.clean()
		})
	}
}

// TestARPOffloadWaits: a request that waits on the wire for room is answered once, when
// it has come in.
func TestARPOffloadWaits(t *testing.T) {
	g := newRig(t, withARP(), withRing(4), withConfig(func(c *Config) { c.RxFIFO = 256 }))
	g.w.elastic = true
	g.open()
	g.arpOn()
	r4.DMACHRxControl.Update(g.ch(0), r4.SR, 0)
	g.w.inject(testFrame(120, 1), testFrame(100, 2), arpFrame(bcast, 1))
	for range 3 {
		g.step()
		g.wantSent()
	}
	r4.DMACHRxControl.Update(g.ch(0), 0, r4.SR)
	g.step()
	g.wantSent(arpReply())
	g.mustRecv(testFrame(120, 1))
	g.mustRecv(testFrame(100, 2))
	if w := g.mustRecv(arpFrame(bcast, 1)); r4.RDES2(w[2])&r4.ARPNR != 0 {
		t.Errorf("%08x", w)
	}
	g.clean()
}

// TestARPOffloadOff: without ARPEN, without the feature and after a reset nothing is
// answered, and a request is a frame with a type.
func TestARPOffloadOff(t *testing.T) {
	for name, prepare := range map[string]func(*rig){
		"not enabled": func(g *rig) { r4.MACARPAddress.Store(g.r, arpAddress) },
		"no feature":  func(g *rig) { g.arpOn() },
		"disabled while it waits": func(g *rig) {
			g.arpOn()
			r4.MACConfiguration.Update(g.r, r4.TE, 0)
			g.w.inject(arpFrame(bcast, 1))
			g.step()
			g.recv()
			r4.MACConfiguration.Update(g.r, r4.ARPEN, r4.TE)
		},
		"reset while it waits": func(g *rig) {
			g.arpOn()
			r4.MACConfiguration.Update(g.r, r4.TE, 0)
			g.w.inject(arpFrame(bcast, 1))
			g.step()
			g.open()
		},
	} {
		t.Run(name, func(t *testing.T) {
			has := name != "no feature"
			g := newRig(t, withConfig(func(c *Config) { c.ARPOffload = has }))
			g.open()
			if v := r4.MACHWFeature0.Load(g.r)&r4.ARPOFFSEL != 0; v != has {
				t.Errorf("ARPOFFSEL %v", v)
			}
			prepare(g)
			if v := r4.MACARPAddress.Load(g.r); has && name[0] != 'r' && v != arpAddress || !has && v != 0 {
				t.Errorf("MAC_ARP_Address %#x", v)
			}
			g.w.inject(arpFrame(bcast, 1))
			g.step()
			if _, w, ok := g.recv(); !ok || r4.RxLT.Get(r4.RDES3(w[3])) != ltType {
				t.Errorf("received %v, %08x", ok, w)
			}
			g.wantSent()
			g.clean()
		})
	}
}

// TestARPOffloadMisuse: the address comes before the bit.
func TestARPOffloadMisuse(t *testing.T) {
	g := newRig(t, withARP())
	g.open()
	r4.MACConfiguration.Update(g.r, 0, r4.ARPEN)
	g.wantKinds(ConfigInvalid)
}

// TestARPOffloadLoopback: a MAC in loopback hears its answer, as the self-test of Linux
// wants: its status tells of no failed filter, for which that driver would drop it.
func TestARPOffloadLoopback(t *testing.T) {
	for _, l := range loopbacks {
		g := newRig(t, withARP())
		g.open()
		r4.MACPacketFilter.Store(g.r, r4.PR)
		g.arpOn()
		l.on(g)
		g.send(arpFrame(bcast, 1))
		g.step()
		g.mustRecv(arpFrame(bcast, 1))
		if w := g.mustRecv(arpReply()); r4.RDES2(w[2])&r4.DAFFail != 0 {
			t.Errorf("%s: %08x", l.name, w)
		}
		g.noRecv()
		g.wantSent()
		g.clean()
	}
}

// FuzzARPOffload: no packet makes the offload panic or answer twice.
func FuzzARPOffload(f *testing.F) {
	f.Add(arpFrame(bcast, 1))
	f.Add(arpFrame(testMAC, 2)[:42])
	f.Fuzz(func(t *testing.T, data []byte) {
		g := newRig(t, withARP())
		g.open()
		r4.MTLRxQOperationMode.Update(g.mtl(0), 0, r4.FUP)
		g.arpOn()
		g.w.inject(data[:min(len(data), 1500)])
		g.step()
		if len(g.w.tx) > 1 || len(g.w.tx) == 1 && (len(data) < 42 || !bytes.Equal(data[12:22], []byte{8, 6, 0, 1, 8, 0, 6, 4, 0, 1}) ||
			binary.BigEndian.Uint32(data[38:]) != arpAddress) {
			t.Fatalf("answered %x with %v", data, g.w.tx)
		}
	})
}
