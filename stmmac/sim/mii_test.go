package sim

import (
	"context"
	"errors"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	r4 "github.com/gostmmac/gostmmac/stmmac/internal/regs/gmac4reg"
)

// openAt is open with a speed (bits of MAC_Configuration) and a duplex.
func (g *rig) openAt(conf r4.Configuration) {
	g.t.Helper()
	g.setup()
	g.post(g.n - 1)
	r4.MACConfiguration.Store(g.r, conf)
	g.run()
}

// exchange puts a frame on the wire each way and says which arrived, in how many
// units of loss.
func (g *rig) exchange() (rx, tx bool, rxLost, txLost uint64) {
	g.t.Helper()
	before := g.d.Stats()
	g.w.tx = nil
	f := testFrame(80, 7)
	g.w.inject(f)
	g.send(f)
	g.step()
	if n, last := g.reap(); n != 1 || r4.TDES3(last[3])&r4.TxES != 0 {
		g.t.Fatalf("%d descriptors back, the last %08x", n, last)
	}
	_, _, rx = g.recv()
	if rx {
		g.post(1)
	}
	after := g.d.Stats()
	return rx, len(g.w.tx) == 1, after.RxLost - before.RxLost, after.TxLost - before.TxLost
}

func (g *rig) wantPassing(want bool) {
	g.t.Helper()
	rx, tx, rxLost, txLost := g.exchange()
	lost := uint64(1)
	if want {
		lost = 0
	}
	if rx != want || tx != want || rxLost != lost || txLost != lost {
		g.t.Errorf("received %v, sent %v, lost %d and %d; want passing %v", rx, tx, rxLost, txLost, want)
	}
	if s := g.d.PHYState(); s.Passing != want {
		g.t.Errorf("passing %v, want %v: %+v", s.Passing, want, s)
	}
}

// TestSpeedMismatch: frames pass only when the MAC is set to the speed and the duplex
// of the link, in all combinations.
func TestSpeedMismatch(t *testing.T) {
	links := []LinkModes{Mode10Half, Mode10Full, Mode100Half, Mode100Full, Mode1000Half, Mode1000Full, Mode2500Full}
	confs := []r4.Configuration{r4.PS, r4.PS | r4.DM, r4.PS | r4.FES, r4.PS | r4.FES | r4.DM, 0, r4.DM, r4.FES | r4.DM}
	for i, link := range links {
		for k, conf := range confs {
			g := newRig(t, withPHY(PHYConfig{Address: 1, Clause: PHYBoth, Partner: Partner{Modes: link}}))
			g.openAt(conf)
			if g.wantPassing(i == k); t.Failed() {
				t.Fatalf("link %#x, MAC_Configuration %#x", link, uint32(conf))
			}
			g.clean()
		}
	}
}

// TestDefaultPHYFollows: the PHY of a Config without one agrees with every MAC until
// somebody has to do with it.
func TestDefaultPHYFollows(t *testing.T) {
	for name, touch := range map[string]func(g *rig){
		"read":    func(g *rig) { g.read22(1, regBMSR) },
		"write":   func(g *rig) { g.write22(1, regANAR, 0x01e1) },
		"partner": func(g *rig) { g.d.SetPartner(Partner{}); g.settle() },
		"cable":   func(g *rig) { g.d.SetCable(true) },
	} {
		t.Run(name, func(t *testing.T) {
			g := newRig(t)
			g.openAt(r4.PS | r4.FES | r4.DM)
			g.read22(2, regBMSR) // another address
			g.wantPassing(true)
			touch(g)
			g.wantPassing(false)
			r4.MACConfiguration.Update(g.r, r4.TE|r4.RE, 0)
			r4.MACConfiguration.Store(g.r, r4.DM)
			r4.MACConfiguration.Update(g.r, 0, r4.TE|r4.RE)
			g.wantPassing(true)
			g.clean()
		})
	}
}

// TestNoPHY: a fixed link, and nobody on the bus.
func TestNoPHY(t *testing.T) {
	g := newRig(t, withConfig(func(c *Config) { c.NoPHY = true; c.OtherPHYs = []PHYConfig{{Address: 1}} }))
	g.openAt(r4.PS | r4.FES)
	g.d.SetCable(false)
	g.d.SetPartner(Partner{})
	g.d.SetFaults(func(f *Faults) { f.PHY.Flap = time.Second })
	g.write22(1, regBMCR, 0x0800)
	if s := g.d.PHYState(); s != (PHYState{}) {
		t.Errorf("%+v", s)
	}
	rx, tx, rxLost, txLost := g.exchange()
	if !rx || !tx || rxLost+txLost != 0 {
		t.Error("the fixed link lost a frame")
	}
	if v := g.read22(0, regPHYID1); v != 0xffff {
		t.Errorf("address 0 is %#x", v)
	}
	g.clean()
}

// TestLinkEvents: what the cable, power and isolation do to frames.
func TestLinkEvents(t *testing.T) {
	for name, c := range map[string]struct{ off, on func(g *rig) }{
		"cable": {func(g *rig) { g.d.SetCable(false) }, func(g *rig) { g.d.SetCable(true); g.settle() }},
		"power": {func(g *rig) { g.write22(1, regBMCR, 0x1940) }, func(g *rig) { g.write22(1, regBMCR, 0x1140); g.settle() }},
		// The link stays up: it is the interface to the MAC that is cut (22.2.4.1.6).
		"isolate": {func(g *rig) { g.write22(1, regBMCR, 0x1540); g.wantLink(1000, true) }, func(g *rig) { g.write22(1, regBMCR, 0x1140) }},
		"reset":   {func(g *rig) { g.write22(1, regBMCR, 0x9140) }, func(g *rig) { g.clock.Advance(defaultPHYReset); g.settle() }},
		"others":  {func(g *rig) { g.d.SetPHYControl(0x1940) }, func(g *rig) { g.d.SetPHYControl(0x8000); g.clock.Advance(defaultPHYReset); g.settle() }},
		"partner": {func(g *rig) { g.d.SetPartner(Partner{Modes: Mode100Full}); g.settle() }, func(g *rig) { g.d.SetPartner(Partner{}); g.settle() }},
	} {
		for _, quiet := range []bool{false, true} { // with NoAudit bursts pass
			t.Run(name, func(t *testing.T) {
				g := newRig(t, withPHY(PHYConfig{Address: 1}), withConfig(func(f *Config) { f.NoAudit = quiet }))
				g.openAt(r4.DM)
				for range 3 {
					g.wantPassing(true)
					c.off(g)
					g.wantPassing(false)
					g.wantPassing(false)
					c.on(g)
				}
				g.wantPassing(true)
				// The MAC does not know what is lost.
				if n := r4MMC(g, r4.TxPacketCountGood); n != uint32(g.d.Stats().TxFrames+g.d.Stats().TxLost) {
					t.Errorf("the MAC counts %d frames", n)
				}
				g.clean()
			})
		}
	}
}

func r4MMC(g *rig, off uint32) uint32 { return g.r.Load32(off) }

// TestElasticWireWaits: what an elastic wire holds is not lost with the link.
func TestElasticWireWaits(t *testing.T) {
	g := newRig(t, withPHY(PHYConfig{Address: 1, Unplugged: true}))
	g.w.elastic = true
	g.openAt(r4.DM)
	f := testFrame(64, 1)
	g.w.inject(f)
	g.step()
	g.noRecv()
	g.d.SetCable(true)
	g.step()
	g.noRecv()
	g.settle()
	g.step()
	g.mustRecv(f)
	if n := g.d.Stats().RxLost; n != 0 {
		t.Errorf("%d lost", n)
	}
	g.clean()
}

// TestLinkLossStallsTx: the kind of core that keeps a frame while there is no link
// (case D28). A flush gives it back.
func TestLinkLossStallsTx(t *testing.T) {
	g := newRig(t, withPHY(PHYConfig{Address: 1}), withFaults(Faults{LinkLossStallsTx: true}))
	g.openAt(r4.DM)
	g.d.SetCable(false)
	f, h := testFrame(70, 1), testFrame(71, 2)
	g.send(f)
	g.send(h)
	for range 3 {
		g.step()
		g.clock.Advance(time.Minute)
	}
	if n, _ := g.reap(); n != 0 {
		t.Fatalf("%d descriptors back without a link", n)
	}
	if r4.MTLTxQDebug.Load(g.mtl(0))&r4.TXQSTS == 0 {
		t.Error("the queue is empty")
	}
	g.d.SetCable(true)
	g.settle()
	g.step()
	if n, _ := g.reap(); n != 2 {
		t.Fatalf("%d descriptors back", n)
	}
	g.wantSent(f, h)

	g.d.SetCable(false)
	g.send(f)
	g.step()
	r4.MTLTxQOperationMode.Update(g.mtl(0), 0, r4.FTQ)
	if n, last := g.reap(); n != 1 || r4.TDES3(last[3])&r4.TxFF == 0 {
		t.Fatalf("%d back from a flush, the last %08x", n, last)
	}
	g.wantSent()
	if n := g.d.Stats().TxLost; n != 0 {
		t.Errorf("%d lost", n)
	}
	// The loopback inside the MAC needs no link.
	r4.MACConfiguration.Update(g.r, 0, r4.LM)
	g.send(h)
	g.step()
	g.mustRecv(h)
	if n, _ := g.reap(); n != 1 {
		t.Errorf("%d back", n)
	}
	r4.MACConfiguration.Update(g.r, r4.LM, 0)
	// With a link of another speed the MAC sends into nothing all the same.
	g.d.SetPartner(Partner{Modes: Mode100Full})
	g.d.SetCable(true)
	g.settle()
	g.send(h)
	g.step()
	if n, _ := g.reap(); n != 1 || g.d.Stats().TxLost != 1 {
		t.Errorf("%d back, %d lost", n, g.d.Stats().TxLost)
	}
	g.clean()
}

// TestPHYLoopback: what is sent comes back, at the speed of the bits, and the cable
// is cut off.
func TestPHYLoopback(t *testing.T) {
	for _, quiet := range []bool{false, true} {
		g := newRig(t, withPHY(PHYConfig{Address: 1}), withConfig(func(f *Config) { f.NoAudit = quiet }))
		g.openAt(r4.DM)
		g.write22(1, regBMCR, 0x4140)
		g.wantLink(0, false)
		g.settle()
		g.wantLink(1000, true)
		f := testFrame(100, 9)
		g.w.inject(testFrame(101, 8))
		g.send(f)
		g.step()
		g.mustRecv(f)
		g.noRecv()
		g.wantSent()
		if n := g.d.Stats().RxLost; n != 1 {
			t.Errorf("%d lost from the wire", n)
		}
		g.d.SetCable(false) // does not matter
		g.send(f)
		g.step()
		g.mustRecv(f)
		g.write22(1, regBMCR, 0x6100) // 100 Mbit/s, the MAC stays at 1000
		g.settle()
		g.wantLink(100, true)
		g.send(f)
		g.step()
		g.noRecv()
		if n := g.d.Stats().TxLost; n != 1 {
			t.Errorf("%d lost", n)
		}
		g.d.SetCable(true)
		g.write22(1, regBMCR, 0x1140)
		g.settle()
		if n, _ := g.reap(); n != 3 {
			t.Errorf("%d sent", n)
		}
		g.wantPassing(true)
		g.clean()
	}
}

// TestResetNeedsPHYClock: case D52. A software reset does not end while the PHY gives
// no clock, and does when it comes; a PHY that is powered up first is in time.
func TestResetNeedsPHYClock(t *testing.T) {
	swr := func(g *rig, d time.Duration) bool {
		r4.DMAMode.Store(g.r, r4.SWR)
		g.clock.Advance(d)
		return r4.DMAMode.Load(g.r)&r4.SWR == 0
	}
	down := PHYConfig{Address: 1, Control: 0x1800, ClockNeedsPower: true}
	t.Run("warm reboot", func(t *testing.T) {
		g := newRig(t, withPHY(down))
		if swr(g, time.Hour) {
			t.Fatal("the reset ended without a clock")
		}
		// Nothing but the bus gets out of here.
		g.d.Model.Reset()
		g.want22(1, regWant{regBMCR, 0x1800})
		g.write22(1, regBMCR, 0x1000)
		if !swr(g, resetTime) {
			t.Fatal("the reset does not end")
		}
		g.settle()
		g.wantLink(1000, true)
		g.clean()
	})
	t.Run("clock kept", func(t *testing.T) {
		c := down
		c.ClockNeedsPower = false
		if g := newRig(t, withPHY(c)); !swr(g, resetTime) {
			t.Fatal("the reset does not end")
		}
	})
	t.Run("PHY reset", func(t *testing.T) {
		g := newRig(t, withPHY(PHYConfig{Address: 1, ClockNeedsPower: true, ResetTime: time.Second}))
		g.write22(1, regBMCR, bmcrReset)
		if swr(g, time.Second/2) {
			t.Fatal("the reset ended without a clock")
		}
		g.clock.Advance(time.Second/2 + resetTime)
		if r4.DMAMode.Load(g.r) != 0 {
			t.Fatal("the reset does not end with the clock")
		}
		g.clean()
	})
	for _, late := range []time.Duration{0, 30 * time.Millisecond, 200 * time.Millisecond} {
		t.Run("released after "+late.String(), func(t *testing.T) {
			g := newRig(t, withPHY(PHYConfig{Address: 1, ReleaseAfter: late}))
			if late == 0 {
				g.wantLink(1000, true)
				if !swr(g, resetTime) {
					t.Fatal("the reset does not end")
				}
				return
			}
			g.want22(1, regWant{regBMCR, 0xffff}, regWant{regPHYID1, 0xffff})
			g.write22(1, regBMCR, 0x0800) // reaches nobody
			if s := g.d.PHYState(); !s.Reset || s.Link || s.PowerDown {
				t.Errorf("%+v", s)
			}
			r4.DMAMode.Store(g.r, r4.SWR)
			g.clock.Advance(late - 1 - g.clock.Now())
			if r4.DMAMode.Load(g.r) != r4.SWR {
				t.Fatal("the reset ended without a clock")
			}
			g.d.SetPHYControl(0x0800) // nor does anybody else reach it
			g.clock.Advance(1 + resetTime)
			if r4.DMAMode.Load(g.r) != 0 {
				t.Fatal("the reset does not end with the clock")
			}
			g.wantLink(0, false)
			g.settle()
			g.wantLink(1000, true)
			g.want22(1, regWant{regBMCR, 0x1140})
			g.clean()
		})
	}
	t.Run("suspended without a link", func(t *testing.T) {
		g := newRig(t, withPHY(PHYConfig{Address: 1, ClockNeedsLink: true}))
		if !swr(g, resetTime) {
			t.Fatal("the reset does not end with a link")
		}
		g.d.SetCable(false)
		if swr(g, time.Hour) {
			t.Fatal("the reset ended without a clock")
		}
		g.d.SetCable(true)
		g.settle()
		g.clock.Advance(resetTime)
		if r4.DMAMode.Load(g.r) != 0 {
			t.Fatal("the reset does not end with the clock")
		}
		g.clean()
	})
	t.Run("no traffic without clock", func(t *testing.T) {
		g := newRig(t, withPHY(PHYConfig{Address: 1, ClockNeedsPower: true}), withConfig(func(c *Config) { c.NoAudit = true }))
		g.openAt(r4.DM)
		g.write22(1, regBMCR, 0x1940)
		f := testFrame(60, 1)
		g.send(f)
		r4.MTLTxQOperationMode.Update(g.mtl(0), 0, r4.FTQ)
		g.step()
		if n, _ := g.reap(); n != 0 || r4.MTLTxQOperationMode.Load(g.mtl(0))&r4.FTQ == 0 {
			t.Error("sent or flushed without a clock")
		}
		g.write22(1, regBMCR, 0x1140)
		if r4.MTLTxQOperationMode.Load(g.mtl(0))&r4.FTQ != 0 {
			t.Error("the flush does not end with the clock")
		}
		if n, last := g.reap(); n != 1 || r4.TDES3(last[3])&r4.TxFF == 0 {
			t.Errorf("%d back, the last %08x", n, last)
		}
		g.wantSent()
		g.settle()
		g.wantPassing(true)
	})
}

// lateClock is a clock whose timers come too late once late is set.
type lateClock struct {
	*ManualClock
	late atomic.Bool
}

func (c *lateClock) AfterFunc(d time.Duration, f func()) func() bool {
	if c.late.Load() {
		return func() bool { return true }
	}
	return c.ManualClock.AfterFunc(d, f)
}

// TestPHYTimers: a model on a goroutine takes up what waited when the time of the link
// comes, or when a read of a management register finds the link up before the timer
// does. Close leaves no timer.
func TestPHYTimers(t *testing.T) {
	for _, late := range []bool{false, true} {
		clock := &lateClock{ManualClock: NewManualClock()}
		g := newRig(t, withPHY(PHYConfig{Address: 1, Unplugged: true}), withConfig(func(c *Config) { c.Inline = false }),
			func(g *rig) { g.cfg.Clock, g.clock, g.w.elastic = clock, clock.ManualClock, true })
		v, err := g.d.Interrupt(0)
		if err != nil {
			t.Fatal(err)
		}
		f := testFrame(64, 1)
		g.w.inject(f)
		g.openAt(r4.DM)
		r4.DMACHInterruptEnable.Store(g.ch(0), r4.NIE|r4.RIE)
		clock.late.Store(late)
		g.d.SetCable(true)
		for !g.d.parked.Load() {
			runtime.Gosched()
		}
		g.settle()
		if late {
			mdioAddress.Load(g.r)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if _, err := v.Wait(ctx); err != nil {
			t.Fatal(err)
		}
		g.mustRecv(f)

		timers := func() int {
			clock.mu.Lock()
			defer clock.mu.Unlock()
			return len(clock.timers)
		}
		g.d.SetCable(false)
		g.d.SetCable(true)
		if err := g.d.Close(); err != nil {
			t.Fatal(err)
		}
		if n := timers(); n != 0 {
			t.Errorf("%d timers left", n)
		}
		clock.late.Store(false)
		g.d.SetCable(false)
		g.d.SetCable(true)
		if n := timers(); n != 0 {
			t.Errorf("%d timers set after Close", n)
		}
	}
}

func TestPHYConfigErrors(t *testing.T) {
	for name, c := range map[string]Config{
		"address":       {PHY: &PHYConfig{Address: 32}},
		"clause":        {PHY: &PHYConfig{Clause: 3}},
		"mode":          {PHY: &PHYConfig{Modes: 1 << 12}},
		"gigabit in 45": {PHY: &PHYConfig{Clause: PHYClause45, Modes: Mode1000Full}},
		"2.5 in 22":     {PHY: &PHYConfig{Modes: Mode2500Full}},
		"partner":       {PHY: &PHYConfig{Partner: Partner{Modes: 1 << 12}}},
		"time":          {PHY: &PHYConfig{NegotiationTime: -1}},
		"release":       {PHY: &PHYConfig{ReleaseAfter: -1}},
		"twice":         {OtherPHYs: []PHYConfig{{Address: 1}}},
		"twice, others": {OtherPHYs: []PHYConfig{{Address: 5}, {Address: 5}}},
		"both":          {PHY: &PHYConfig{}, NoPHY: true},
		"no bus":        {PHY: &PHYConfig{}, NoMDIO: true},
		"no bus, other": {OtherPHYs: []PHYConfig{{}}, NoMDIO: true},
	} {
		var ce *ConfigError
		if _, err := New(c, &testWire{}); !errors.As(err, &ce) || ce.Error() == "" {
			t.Errorf("%s: %v", name, err)
		}
	}
	c := PHYConfig{}
	newRig(t, withConfig(func(f *Config) { f.PHY = &c }))
	if c != (PHYConfig{}) {
		t.Errorf("the caller's config became %+v", c)
	}
	for c, want := range map[PHYClause]string{PHYClause22: "clause 22", PHYBoth: "clauses 22 and 45", 9: "PHYClause(9)"} {
		if c.String() != want {
			t.Errorf("%d is %q", int(c), c)
		}
	}
}
