package sim

import (
	"bytes"
	"testing"

	r4 "github.com/gostmmac/gostmmac/stmmac/internal/regs/gmac4reg"
)

// TestCollisions: what the descriptor and the counters say of frames that collide in
// half duplex.
func TestCollisions(t *testing.T) {
	type counts struct{ single, multiple, late, excessive uint32 }
	for _, c := range []struct {
		name    string
		conf    r4.Configuration
		n       int
		late    bool
		sent    bool
		status  r4.TDES3
		counted counts
	}{
		{"none", 0, 0, false, true, 0, counts{}},
		{"negative", 0, -3, false, true, 0, counts{}},
		{"one", 0, 1, false, true, r4.TxCC.Of(1), counts{single: 1}},
		{"two", 0, 2, false, true, r4.TxCC.Of(2), counts{multiple: 1}},
		{"fifteen", 0, 15, false, true, r4.TxCC.Of(15), counts{multiple: 1}},
		{"sixteen", 0, 16, false, false, r4.TxES | r4.TxEC, counts{excessive: 1}},
		{"far too many", 0, 1000, false, false, r4.TxES | r4.TxEC, counts{excessive: 1}},
		{"no retry", r4.DR, 1, false, false, r4.TxES | r4.TxEC, counts{excessive: 1}},
		{"no retry needed", r4.DR, 0, false, true, 0, counts{}},
		{"late", 0, 1, true, false, r4.TxES | r4.TxLC, counts{late: 1}},
		{"full duplex", r4.DM, 16, true, true, 0, counts{}},
		{"loopback", r4.LM, 16, true, false, 0, counts{}},
		{"with DCRS and DO", r4.DCRS | 1<<10, 1, false, true, r4.TxCC.Of(1), counts{single: 1}},
	} {
		g := newRig(t)
		g.open()
		g.link(c.conf | r4.PS | r4.FES)
		if got := r4.MACConfiguration.Load(g.r); got != c.conf|r4.PS|r4.FES|r4.TE|r4.RE {
			t.Errorf("%s: MAC_Configuration %#x", c.name, uint32(got))
		}
		var asked []uint64
		g.d.SetFaults(func(f *Faults) {
			f.Collide = func(k uint64) int {
				asked = append(asked, k)
				if k == 1 {
					return c.n
				}
				return 0
			}
			f.CollideLate = func(k uint64) bool { return k == 1 && c.late }
		})
		frames := [][]byte{testFrame(60, 1), testFrame(300, 2), testFrame(61, 3)}
		for _, f := range frames {
			g.send(f)
		}
		g.step()
		for k := range frames {
			d3 := r4.TDES3(g.get(g.txRing, k)[3])
			want := r4.TxFD | r4.TxLD
			if k == 1 {
				want |= c.status
			}
			if d3 != want {
				t.Errorf("%s: frame %d is %#x, want %#x", c.name, k, uint32(d3), uint32(want))
			}
		}
		switch {
		case c.conf&r4.LM != 0:
			frames = nil
		case !c.sent:
			frames = [][]byte{frames[0], frames[2]}
		}
		g.wantSent(frames...)
		got := counts{g.r.Load32(r4.TxSingleCollisionGoodPackets), g.r.Load32(r4.TxMultipleCollisionGoodPackets),
			g.r.Load32(r4.TxLateCollisionPackets), g.r.Load32(r4.TxExcessiveCollisionPackets)}
		if got != c.counted {
			t.Errorf("%s: counted %+v, want %+v", c.name, got, c.counted)
		}
		good, all := g.r.Load32(r4.TxPacketCountGood), g.r.Load32(r4.TxPacketCountGoodBad)
		lost := c.counted.late + c.counted.excessive
		if all != 3 || good != 3-lost || g.d.Stats().TxErrors != uint64(lost) {
			t.Errorf("%s: %d of %d frames good, %+v", c.name, good, all, g.d.Stats())
		}
		if v := g.r.Load32(r4.TxDeferredPackets) + g.r.Load32(r4.TxExcessiveDeferralError); v != 0 {
			t.Errorf("%s: %d deferred", c.name, v)
		}
		if duplex := c.conf&(r4.DM|r4.LM) != 0; duplex != (len(asked) == 0) {
			t.Errorf("%s: asked for %v", c.name, asked)
		}
		g.clean()
	}
}

// TestCollisionsOfWaitingFrames: a frame that waits for the wire stays the k-th.
func TestCollisionsOfWaitingFrames(t *testing.T) {
	g := newRig(t, withFaults(Faults{Collide: func(k uint64) int { return int(k) + 1 }}))
	g.open()
	g.link(r4.PS)
	f := testFrame(60, 1)
	for k := range uint32(3) {
		g.w.full = true
		g.send(f)
		for range 4 {
			g.step()
		}
		g.w.full = false
		g.step()
		_, last := g.reap()
		if cc := r4.TxCC.Get(r4.TDES3(last[3])); cc != k+1 {
			t.Errorf("frame %d collided %d times", k, cc)
		}
	}
	if v := g.r.Load32(r4.TxMultipleCollisionGoodPackets); v != 2 {
		t.Errorf("%d frames with several collisions", v)
	}
}

// TestHalfDuplexWithoutAudit: with bursts allowed half duplex is the same.
func TestHalfDuplexWithoutAudit(t *testing.T) {
	g := newRig(t, withConfig(func(c *Config) { c.NoAudit = true }))
	g.open()
	g.link(r4.PS)
	f := testFrame(60, 1)
	g.send(f)
	g.step()
	g.d.SetFaults(func(f *Faults) {
		f.Collide = func(k uint64) int {
			if k != 1 {
				t.Errorf("frame %d, want 1", k)
			}
			return 1
		}
	})
	g.send(f)
	g.step()
	g.wantSent(f, f)
}

// TestLoopbackIsTheMAC: in loopback frames take the whole way: padding, FCS, filters
// and lengths; the wire is cut off both ways, and the clocks are needed.
func TestLoopbackIsTheMAC(t *testing.T) {
	sum := fcs(testFrame(90, 2))
	withFCS := append(testFrame(90, 2), sum[:]...)
	wrong := append(testFrame(90, 2), 1, 2, 3, 4)
	padded := append(testFrame(20, 1), make([]byte, 40)...)
	for _, c := range []struct {
		name   string
		cpc    uint32
		conf   r4.Configuration
		filter r4.PacketFilter
		in     []byte
		out    []byte // nil: not received
	}{
		{"padded", cpcPadFCS, 0, 0, testFrame(20, 1), padded},
		{"runt", cpcFCS, 0, 0, testFrame(20, 1), nil},
		{"own FCS", cpcNone, 0, 0, withFCS, testFrame(90, 2)},
		{"own wrong FCS", cpcNone, 0, 0, wrong, nil},
		{"replaced FCS", cpcReplace, 0, 0, wrong, testFrame(90, 2)},
		{"foreign", cpcPadFCS, 0, 0, frameTo(foreign, 90, 1), nil},
		{"foreign promiscuous", cpcPadFCS, 0, r4.PR, frameTo(foreign, 90, 1), frameTo(foreign, 90, 1)},
		{"broadcast", cpcPadFCS, 0, 0, frameTo(bcast, 90, 1), frameTo(bcast, 90, 1)},
		{"multicast", cpcPadFCS, 0, 0, frameTo(mcast, 90, 1), nil},
		{"full length", cpcPadFCS, 0, 0, testFrame(1514, 1), testFrame(1514, 1)},
		{"half duplex", cpcPadFCS, r4.PS | r4.FES, 0, testFrame(90, 1), testFrame(90, 1)},
		{"10", cpcPadFCS, r4.PS | r4.DM, 0, testFrame(90, 1), testFrame(90, 1)},
	} {
		for _, quiet := range []bool{false, true} {
			g := newRig(t, withConfig(func(k *Config) { k.NoAudit = quiet }))
			g.open()
			if c.conf == 0 {
				c.conf = r4.DM
			}
			g.link(c.conf | r4.LM)
			r4.MACPacketFilter.Store(g.r, c.filter)
			g.w.inject(testFrame(60, 0xff)) // not heard
			g.w.full = true                 // nor is the wire asked for room
			g.queue(true, c.in)
			g.desc(g.txRing, 0)[3] |= uint32(r4.CPC.Of(c.cpc))
			g.ring()
			g.d.SetClockGated(true)
			g.step()
			if n, _ := g.reap(); n != 0 {
				t.Fatalf("%s: sent without a clock", c.name)
			}
			g.d.SetClockGated(false)
			g.step()
			if n, _ := g.reap(); n != 1 {
				t.Fatalf("%s: %d descriptors back", c.name, n)
			}
			got, _, ok := g.recv()
			if ok != (c.out != nil) || !bytes.Equal(got, c.out) {
				t.Errorf("%s: received %v, %d bytes", c.name, ok, len(got))
			}
			g.noRecv()
			g.wantSent()
			if v := g.r.Load32(r4.TxPacketCountGoodBad); v != 1 {
				t.Errorf("%s: %d frames counted as sent", c.name, v)
			}
			// Out of loopback the wire is there again.
			g.link(c.conf)
			g.w.full = false
			f := testFrame(77, 5)
			g.w.inject(f)
			g.send(f)
			g.step()
			g.mustRecv(f)
			g.wantSent(f)
			g.clean()
		}
	}
	// With an elastic wire what arrives meanwhile waits, and RE is needed too.
	g := newRig(t)
	g.w.elastic = true
	g.open()
	g.link(r4.DM | r4.LM)
	f := testFrame(70, 1)
	g.w.inject(f)
	r4.MACConfiguration.Update(g.r, r4.RE, 0)
	g.send(testFrame(60, 9))
	g.step()
	g.noRecv()
	g.link(r4.DM)
	g.step()
	g.mustRecv(f)
	g.clean()
}

// TestLoopbackPause: in loopback the MAC hears its own PAUSE.
func TestLoopbackPause(t *testing.T) {
	g := newRig(t)
	g.open()
	g.link(r4.DM | r4.LM)
	r4.MACRxFlow.Store(g.r, r4.RFE)
	r4.MACQxTxFlow.Store(g.r, r4.TFE|r4.PT.Of(50)|r4.FCBBPA)
	g.step()
	if !g.paused() {
		t.Fatal("not paused")
	}
	g.wantSent()
	g.clock.Advance(50 * 512)
	if g.paused() {
		t.Fatal("still paused")
	}
	g.clean()
}
