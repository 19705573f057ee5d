package sim

import (
	"testing"
	"time"

	r4 "github.com/gostmmac/gostmmac/stmmac/internal/regs/gmac4reg"
)

func withPHYFaults(f PHYFaults) rigOption { return withFaults(Faults{PHY: f}) }

// TestMDIOReadsWrong: cases D52 and D57, what a scan finds on a bus that does not work.
func TestMDIOReadsWrong(t *testing.T) {
	for name, c := range map[string]struct {
		f               PHYFaults
		present, absent uint16
	}{
		"gated":       {PHYFaults{BusGated: true}, 0, 0},
		"all ones":    {PHYFaults{AllOnes: true}, 0xffff, 0xffff},
		"absent zero": {PHYFaults{AbsentZero: true}, DefaultPHYID >> 16, 0},
		"both":        {PHYFaults{AbsentZero: true, AllOnes: true}, 0xffff, 0xffff},
		"none":        {PHYFaults{}, DefaultPHYID >> 16, 0xffff},
	} {
		t.Run(name, func(t *testing.T) {
			g := newRig(t, withPHYFaults(c.f))
			for pa := range uint32(32) {
				want := c.absent
				if pa == 1 {
					want = c.present
				}
				g.want22(pa, regWant{regPHYID1, want})
			}
			g.clean()
		})
	}
}

// TestBusGated: busy clears at once and writes are lost.
func TestBusGated(t *testing.T) {
	g := newRig(t, withPHYFaults(PHYFaults{BusGated: true}))
	for _, op := range []r4.MDIOAddress{readOp, readOp | r4.MDIOC45E, writeOp} {
		r4.MACMDIOData.Store(g.r, 0x0007_0800)
		mdioAddress.Store(g.r, op|r4.MDIOCR.Of(1)|at22(1, regBMCR))
		if v := mdioAddress.Load(g.r); v&r4.MDIOGB != 0 {
			t.Errorf("busy: %#x", uint32(v))
		}
		if v := r4.MACMDIOData.Load(g.r); op != writeOp && v != 0x0007_0000 {
			t.Errorf("read %#x", v)
		}
	}
	g.clock.Advance(time.Second)
	if g.d.PHYState().PowerDown {
		t.Error("a write got through")
	}
	g.d.SetFaults(func(f *Faults) { f.PHY.BusGated = false })
	g.want22(1, regWant{regPHYID1, DefaultPHYID >> 16})
	g.clean()
}

// TestBusyForever: GB never clears, and a driver that resets the MAC because of it
// does nothing wrong.
func TestBusyForever(t *testing.T) {
	g := newRig(t, withPHYFaults(PHYFaults{BusyForever: true}))
	r4.MACMDIOData.Store(g.r, 0x0800)
	mdioAddress.Store(g.r, writeOp|r4.MDIOCR.Of(1)|at22(1, regBMCR))
	g.clock.Advance(time.Hour)
	if mdioAddress.Load(g.r)&r4.MDIOGB == 0 {
		t.Fatal("not busy")
	}
	g.reset()
	if v := mdioAddress.Load(g.r); v != 0 {
		t.Errorf("%#x after the reset", v)
	}
	if g.d.PHYState().PowerDown {
		t.Error("the write got through")
	}
	g.clean()
}

// TestMDIOGarbage: random numbers, the same ones from the same seed.
func TestMDIOGarbage(t *testing.T) {
	read := func(seed uint64) (v [40]uint16) {
		g := newRig(t, withPHYFaults(PHYFaults{Garbage: seed}))
		for i := range v {
			v[i] = g.read22(uint32(i)&31, regPHYID1)
		}
		g.clean()
		return v
	}
	a, b, c := read(1), read(1), read(2)
	if a != b || a == c {
		t.Error("the numbers do not follow the seed")
	}
	seen := map[uint16]bool{}
	for _, v := range a {
		seen[v] = true
	}
	if len(seen) < len(a)/2 {
		t.Errorf("%d different numbers of %d", len(seen), len(a))
	}
}

// TestLinkWhilePoweredDown: case D58, BMCR 0x0800 and BMSR 0x780d.
func TestLinkWhilePoweredDown(t *testing.T) {
	g := newRig(t, withPHY(PHYConfig{Address: 1, Control: 0x0800}), withPHYFaults(PHYFaults{LinkInPowerDown: true}))
	g.want22(1, regWant{regBMCR, 0x0800}, regWant{regBMSR, 0x780d}, regWant{regBMSR, 0x780d})
	g.wantLink(0, false)
	g.openAt(r4.DM)
	g.wantPassing(false)
	g.write22(1, regBMCR, 0x1140)
	g.settle()
	g.read22(1, regBMSR)
	g.want22(1, regWant{regBMSR, 0x796d})
	g.wantPassing(true)
	g.clean()
}

func TestNegotiationHangs(t *testing.T) {
	g := newRig(t)
	g.d.SetFaults(func(f *Faults) { f.PHY.NegotiationHangs = true })
	g.wantLink(1000, true) // what has been negotiated stays
	g.write22(1, regBMCR, 0x1340)
	g.clock.Advance(time.Hour)
	g.wantLink(0, false)
	g.want22(1, regWant{regANER, 0x6}, regWant{regANER, 0x4}, regWant{regANLPAR, 0}, regWant{regBMSR, 0x7949})
	g.write22(1, regBMCR, 0x2100) // without negotiation
	g.settle()
	g.wantLink(100, true)
	g.write22(1, regBMCR, 0x1200)
	g.clock.Advance(time.Hour)
	g.wantLink(0, false)
	g.d.SetFaults(func(f *Faults) { f.PHY.NegotiationHangs = false })
	g.settle()
	g.wantLink(1000, true)
	g.clean()
}

// TestFlap: down and up in turn; it ends with the cable plugged.
func TestFlap(t *testing.T) {
	const period = 50 * time.Millisecond
	g := newRig(t, withPHY(PHYConfig{Address: 1}), withPHYFaults(PHYFaults{Flap: period}))
	g.clock.Advance(period - 1)
	g.wantLink(1000, true)
	for range 5 {
		g.clock.Advance(1)
		g.wantLink(0, false)
		g.clock.Advance(period + defaultNegotiation - 1)
		g.wantLink(0, false)
		g.clock.Advance(1)
		g.wantLink(1000, true)
		g.clock.Advance(period - defaultNegotiation - 1)
		g.wantLink(1000, true)
	}
	g.clock.Advance(1)
	g.wantLink(0, false)
	g.d.SetFaults(func(f *Faults) { f.PHY.Flap = 0 })
	g.settle()
	g.clock.Advance(time.Hour)
	g.wantLink(1000, true)
	// Shorter than the negotiation: never a link. What is no time at all is bounded.
	g.d.SetFaults(func(f *Faults) { f.PHY.Flap = 1 })
	g.clock.Advance(time.Millisecond)
	for range 1000 {
		g.wantLink(0, false)
		g.clock.Advance(time.Millisecond)
	}
	g.clean()
}
