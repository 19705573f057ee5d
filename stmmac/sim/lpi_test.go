package sim

import (
	"slices"
	"testing"
	"time"

	r4 "github.com/gostmmac/gostmmac/stmmac/internal/regs/gmac4reg"
)

// lpiRig is a running rig with EEE whose link has been up for a second, whose wake time
// is 20 µs and whose interrupt is enabled.
func lpiRig(t testing.TB, opts ...rigOption) *rig {
	g := newRig(t, append([]rigOption{withConfig(func(c *Config) { c.EEE = true })}, opts...)...)
	g.open()
	r4.MAC1USTicCounter.Store(g.r, defaultCSRClock/1_000_000-1)
	r4.MACLPITimersControl.Store(g.r, r4.LPITWT.Of(20)|r4.LPILST.Of(1000))
	r4.MACInterruptEnable.Store(g.r, r4.LPIIS)
	r4.MACLPIControlStatus.Store(g.r, r4.PLS)
	g.clock.Advance(time.Second)
	g.step()
	return g
}

// events reads and clears what happened since the last call.
func (g *rig) lpiEvents() r4.LPIControl { return r4.MACLPIControlStatus.Load(g.r) & r4.LPIEvents }

// wantLPI looks at events and state, and that the interrupt says the same.
func (g *rig) wantLPI(what string, events, state r4.LPIControl) {
	g.t.Helper()
	pending := r4.MACInterruptStatus.Load(g.r)&r4.LPIIS != 0
	v := r4.MACLPIControlStatus.Load(g.r)
	if v&r4.LPIEvents != events || v&(r4.TLPIST|r4.RLPIST) != state {
		g.t.Errorf("%s: MAC_LPI_Control_Status is %v, want %v", what, v, events|state)
	}
	if pending != (events != 0) {
		g.t.Errorf("%s: LPIIS is %v", what, pending)
	}
	if r4.MACInterruptStatus.Load(g.r)&r4.LPIIS != 0 || g.lpiEvents() != 0 {
		g.t.Errorf("%s: the read cleared nothing", what)
	}
}

func (g *rig) setLPI(bits r4.LPIControl) { r4.MACLPIControlStatus.Store(g.r, r4.PLS|bits) }

// TestLPIByBit: LPIEN alone is LPI at once and for as long as it is set, whatever waits.
func TestLPIByBit(t *testing.T) {
	g := lpiRig(t)
	g.wantLPI("start", 0, 0)
	g.setLPI(r4.LPIEN)
	g.wantLPI("LPIEN", r4.TLPIEN, r4.TLPIST)
	f := testFrame(100, 1)
	g.send(f)
	g.step()
	g.clock.Advance(time.Second)
	g.step()
	g.wantSent()
	g.wantLPI("a frame waits", 0, r4.TLPIST)
	g.setLPI(0)
	g.wantLPI("end", 0, 0)
	g.clock.Advance(20*time.Microsecond - 1)
	g.step()
	g.wantSent()
	g.wantLPI("before TW", 0, 0)
	g.clock.Advance(1)
	g.step()
	g.wantLPI("TW", r4.TLPIEX, 0)
	g.wantSent(f)
	if v := r4.MACLPIControlStatus.Load(g.r); v != r4.PLS {
		t.Errorf("MAC_LPI_Control_Status is %v", v)
	}
	g.clean()
}

// TestLPIAutomatic: with LPITXA it begins when nothing is left, a frame ends it, and
// LPIEN is clear then.
func TestLPIAutomatic(t *testing.T) {
	for name, wake := range map[string]func(g *rig) (want []byte){
		"frame": func(g *rig) []byte { f := testFrame(100, 2); g.send(f); return f },
		"pause": func(g *rig) []byte {
			r4.MACQxTxFlow.Store(g.r, r4.TFE|r4.PT.Of(300)|r4.FCBBPA)
			f := pauseTo(pauseDst, 300)
			copy(f[6:], testMAC[:])
			return f
		},
		"ARP": func(g *rig) []byte { g.arpOn(); g.w.inject(arpFrame(bcast, 1)); return arpReply() },
	} {
		t.Run(name, func(t *testing.T) {
			g := lpiRig(t, withARP())
			g.w.full = true
			f := testFrame(100, 1)
			g.send(f)
			g.step()
			g.setLPI(r4.LPIEN | r4.LPITXA)
			g.step()
			g.wantLPI("a frame waits", 0, 0)
			g.w.full = false
			g.step()
			g.wantSent(f)
			g.wantLPI("idle", r4.TLPIEN, r4.TLPIST)
			if v := r4.MACLPIControlStatus.Load(g.r); v&r4.LPIEN == 0 {
				t.Errorf("MAC_LPI_Control_Status is %v", v)
			}
			want := wake(g)
			g.step()
			g.wantSent()
			g.wantLPI("waking", 0, 0)
			g.clock.Advance(20 * time.Microsecond)
			g.step()
			g.wantSent(want)
			g.wantLPI("awake", r4.TLPIEX, 0)
			if v := r4.MACLPIControlStatus.Load(g.r); v&(r4.LPIEN|r4.LPITXA) != r4.LPITXA {
				t.Errorf("MAC_LPI_Control_Status is %v", v)
			}
			g.clock.Advance(time.Second)
			g.step()
			g.wantLPI("a second later", 0, 0)
			g.clean()
		})
	}
}

// TestLPITimer: with LPIATE too it begins when nothing was sent for the time of the entry
// timer, and does so again and again.
func TestLPITimer(t *testing.T) {
	g := lpiRig(t)
	r4.MACLPIEntryTimer.Store(g.r, 1007)
	if v := r4.MACLPIEntryTimer.Load(g.r); v != 1000 {
		t.Errorf("MAC_LPI_Entry_Timer is %d", v)
	}
	g.setLPI(r4.LPIEN | r4.LPITXA | r4.LPIATE)
	for k := range 3 {
		f := testFrame(100, byte(k))
		g.clock.Advance(999 * time.Microsecond)
		g.step()
		g.wantLPI("not yet", 0, 0)
		g.send(f)
		g.step()
		g.wantSent(f)
		g.clock.Advance(1000*time.Microsecond - 1)
		g.step()
		g.wantLPI("not yet again", 0, 0)
		g.clock.Advance(1)
		g.wantLPI("idle", r4.TLPIEN, r4.TLPIST)
		g.send(f)
		g.step()
		g.wantSent()
		g.clock.Advance(20 * time.Microsecond)
		g.step()
		g.wantSent(f)
		g.wantLPI("awake", r4.TLPIEX, 0)
		if v := r4.MACLPIControlStatus.Load(g.r); v&r4.LPIEN == 0 {
			t.Errorf("MAC_LPI_Control_Status is %v", v)
		}
	}
	g.clean()
}

// TestLPILink: not before the link is up for the time of the LS timer, and not without
// it or without a transmitter.
func TestLPILink(t *testing.T) {
	type step struct {
		do     func(g *rig)
		after  time.Duration
		events r4.LPIControl
		state  r4.LPIControl
	}
	down := func(g *rig) { r4.MACLPIControlStatus.Store(g.r, r4.LPIEN|r4.LPITXA) }
	up := func(g *rig) { g.setLPI(r4.LPIEN | r4.LPITXA) }
	for name, steps := range map[string][]step{
		"link goes":                {{up, 0, r4.TLPIEN, r4.TLPIST}, {down, 20 * time.Microsecond, r4.TLPIEX, 0}},
		"link down":                {{down, time.Minute, 0, 0}},
		"link comes":               {{down, 0, 0, 0}, {up, time.Second - 1, 0, 0}, {nil, 1, r4.TLPIEN, r4.TLPIST}},
		"link comes and stays":     {{down, 0, 0, 0}, {up, 600 * time.Millisecond, 0, 0}, {up, 400 * time.Millisecond, r4.TLPIEN, r4.TLPIST}},
		"link comes, goes, comes":  {{down, 0, 0, 0}, {up, 900 * time.Millisecond, 0, 0}, {down, 0, 0, 0}, {up, 900 * time.Millisecond, 0, 0}},
		"a longer timer":           {{func(g *rig) { r4.MACLPITimersControl.Store(g.r, r4.LPILST.Of(1023)); up(g) }, 22 * time.Millisecond, 0, 0}, {nil, time.Millisecond, r4.TLPIEN, r4.TLPIST}},
		"transmitter off":          {{func(g *rig) { r4.MACConfiguration.Update(g.r, r4.TE, 0); up(g) }, time.Second, 0, 0}},
		"transmitter switched off": {{up, 0, r4.TLPIEN, r4.TLPIST}, {func(g *rig) { r4.MACConfiguration.Update(g.r, r4.TE, 0) }, 20 * time.Microsecond, r4.TLPIEX, 0}},
		"slower ticks":             {{func(g *rig) { r4.MAC1USTicCounter.Store(g.r, 249); down(g); up(g) }, 2*time.Second - 1, 0, 0}, {nil, 1, r4.TLPIEN, r4.TLPIST}},
		"flush": {{up, 0, r4.TLPIEN, r4.TLPIST},
			{func(g *rig) { r4.MTLTxQOperationMode.Update(g.mtl(0), 0, r4.FTQ) }, 20 * time.Microsecond, r4.TLPIEX, 0}},
		"reset": {{up, 0, r4.TLPIEN, r4.TLPIST}, {func(g *rig) { g.reset() }, time.Second, 0, 0}},
	} {
		t.Run(name, func(t *testing.T) {
			g := lpiRig(t)
			for i, s := range steps {
				if s.do != nil {
					s.do(g)
				}
				g.step()
				g.clock.Advance(s.after)
				g.step()
				v := r4.MACLPIControlStatus.Load(g.r)
				if v&r4.LPIEvents != s.events || v&r4.TLPIST != s.state {
					t.Errorf("step %d: %v, want %v", i, v, s.events|s.state)
				}
			}
			g.clean()
		})
	}
}

// TestLPIInterrupt: the line is high while an event was not read, if LPIIE allows it.
func TestLPIInterrupt(t *testing.T) {
	for _, c := range []struct {
		name   string
		enable r4.MACInterrupt
		fires  uint64
	}{{"enabled", r4.LPIIS, 1}, {"masked", 0, 0}} {
		g := lpiRig(t)
		r4.MACInterruptEnable.Store(g.r, c.enable)
		var last []uint64
		g.edges(&last)
		g.setLPI(r4.LPIEN)
		if e := g.edges(&last); e[0] != c.fires {
			t.Errorf("%s: %d edges", c.name, e[0])
		}
		if v := r4.DMAInterruptStatus.Load(g.r); (v&r4.MACIS != 0) != (c.fires > 0) {
			t.Errorf("%s: DMA_Interrupt_Status %v", c.name, v)
		}
		if v := r4.MACInterruptStatus.Load(g.r); v != r4.LPIIS {
			t.Errorf("%s: MAC_Interrupt_Status %v", c.name, v)
		}
		g.lpiEvents()
		if v := r4.DMAInterruptStatus.Load(g.r); v != 0 {
			t.Errorf("%s: DMA_Interrupt_Status %v after the read", c.name, v)
		}
		g.setLPI(0)
		g.clock.Advance(time.Millisecond)
		g.step()
		if e := g.edges(&last); e[0] != c.fires {
			t.Errorf("%s: %d edges at the end", c.name, e[0])
		}
		if c.fires == 0 {
			r4.MACInterruptEnable.Store(g.r, r4.LPIIS)
			if e := g.edges(&last); e[0] != 1 {
				t.Errorf("%s: %d edges when it is enabled", c.name, e[0])
			}
		}
		g.clean()
	}
}

// TestLPICounters: microseconds and entries both ways, their interrupts, and RSTONRD.
func TestLPICounters(t *testing.T) {
	g := lpiRig(t)
	want := func(off, v uint32) {
		t.Helper()
		if got := g.r.Load32(off); got != v {
			t.Errorf("%s is %d, want %d", r4.Map.Name(off), got, v)
		}
	}
	g.setLPI(r4.LPIEN)
	g.clock.Advance(1500*time.Microsecond + 700)
	want(r4.TxLPIUSEC, 1500)
	want(r4.TxLPITran, 1)
	g.clock.Advance(300)
	want(r4.TxLPIUSEC, 1501)
	g.setLPI(0)
	g.clock.Advance(time.Second)
	g.step()
	want(r4.TxLPIUSEC, 1501)
	g.setLPI(r4.LPIEN)
	g.clock.Advance(time.Millisecond)
	want(r4.TxLPIUSEC, 2501)
	want(r4.TxLPITran, 2)
	g.d.SetPartnerLPI(true)
	g.clock.Advance(40 * time.Microsecond)
	g.d.SetPartnerLPI(false)
	g.clock.Advance(time.Second)
	g.d.SetPartnerLPI(true)
	want(r4.RxLPIUSEC, 40)
	want(r4.RxLPITran, 2)
	r4.MMCControl.Store(g.r, r4.MMCRstOnRd)
	want(r4.RxLPITran, 2)
	want(r4.RxLPITran, 0)
	r4.MMCControl.Store(g.r, r4.MMCCntPrst)
	want(r4.TxLPITran, 1<<31-16)
	g.setLPI(0)
	g.clock.Advance(time.Millisecond)
	g.step()
	for range 16 {
		g.setLPI(r4.LPIEN)
		g.setLPI(0)
		g.clock.Advance(time.Millisecond)
		g.step()
	}
	if v := r4.MMCTxInterrupt.Load(g.r); v&r4.MMCLPITran == 0 {
		t.Errorf("MMC_Tx_Interrupt is %#x", v)
	}
	r4.MMCControl.Store(g.r, r4.MMCCntRst)
	want(r4.TxLPITran, 0)
	want(r4.TxLPIUSEC, 0)
	g.clean()
}

// TestLPIReceive: LPI of the partner shows until it ends or the link goes.
func TestLPIReceive(t *testing.T) {
	g := lpiRig(t, withPHY(PHYConfig{Address: 1, EEE: true}))
	g.d.SetPartnerLPI(true)
	g.wantLPI("begin", r4.RLPIEN, r4.RLPIST)
	g.d.SetPartnerLPI(true)
	g.wantLPI("again", 0, r4.RLPIST)
	if v := g.mmd(1, mmdPCS, c45Status); v&(pcsRxLPI|pcsRxLPISeen) != pcsRxLPI|pcsRxLPISeen {
		t.Errorf("3.1 is %#x", v)
	}
	g.d.SetPartnerLPI(false)
	g.wantLPI("end", r4.RLPIEX, 0)
	if a, b := g.mmd(1, mmdPCS, c45Status), g.mmd(1, mmdPCS, c45Status); a&pcsRxLPISeen == 0 || b&(pcsRxLPI|pcsRxLPISeen) != 0 {
		t.Errorf("3.1 is %#x, then %#x", a, b)
	}
	g.d.SetPartnerLPI(true)
	g.lpiEvents()
	g.d.SetCable(false)
	g.wantLPI("cable out", r4.RLPIEX, 0)
	g.d.SetPartnerLPI(true)
	g.wantLPI("no link", 0, 0)
	g.clean()
}

// TestLPIMisuse: LPI on a link that did not negotiate EEE.
func TestLPIMisuse(t *testing.T) {
	for _, c := range []struct {
		name string
		phy  PHYConfig
		want []ViolationKind
	}{
		{"negotiated", PHYConfig{EEE: true}, nil},
		{"not the PHY", PHYConfig{}, []ViolationKind{EEEMisuse}},
		{"not the partner", PHYConfig{EEE: true, Partner: Partner{NoEEE: true}}, []ViolationKind{EEEMisuse}},
	} {
		g := lpiRig(t, withPHY(c.phy))
		g.setLPI(r4.LPIEN)
		if v := g.lpiEvents(); v != r4.TLPIEN {
			t.Errorf("%s: %v", c.name, v)
		}
		if got := g.kinds(); !slices.Equal(got, c.want) {
			t.Errorf("%s: %v", c.name, got)
		}
		r4.MACConfiguration.Update(g.r, 0, r4.LM)
	}
	// In loopback nobody else is concerned.
	g := lpiRig(t, withPHY(PHYConfig{}))
	r4.MACConfiguration.Update(g.r, 0, r4.LM)
	g.setLPI(r4.LPIEN)
	g.clean()
}

// TestLPINeedsTheFeature: without it there are no registers, no counters and no LPI.
func TestLPINeedsTheFeature(t *testing.T) {
	for _, has := range []bool{false, true} {
		g := newRig(t, withConfig(func(c *Config) { c.EEE = has }))
		g.open()
		if v := r4.MACHWFeature0.Load(g.r)&r4.EEESEL != 0; v != has {
			t.Errorf("EEESEL %v", v)
		}
		r4.MACInterruptEnable.Store(g.r, r4.LPIIS)
		if v := r4.MACInterruptEnable.Load(g.r); (v&r4.LPIIS != 0) != has {
			t.Errorf("MAC_Interrupt_Enable %v", v)
		}
		r4.MACLPITimersControl.Store(g.r, 0)
		g.setLPI(r4.LPIEN)
		g.d.SetPartnerLPI(true)
		if v := r4.MACLPIControlStatus.Load(g.r); has != (v&(r4.TLPIST|r4.RLPIST) == r4.TLPIST|r4.RLPIST) || !has && v != 0 {
			t.Errorf("MAC_LPI_Control_Status %v", v)
		}
		f := testFrame(60, 1)
		g.send(f)
		g.step()
		if has {
			g.wantSent()
		} else {
			g.wantSent(f)
		}
	}
}

// TestLPILoopback: a MAC in loopback goes into LPI and comes out for the frame that it
// sends to itself, as the self-test of Linux wants.
func TestLPILoopback(t *testing.T) {
	for _, l := range loopbacks {
		g := lpiRig(t)
		l.on(g)
		r4.MACLPIEntryTimer.Store(g.r, 800)
		g.setLPI(r4.LPIEN | r4.LPITXA | r4.LPIATE)
		g.clock.Advance(time.Millisecond)
		g.wantLPI("idle", r4.TLPIEN, r4.TLPIST)
		f := testFrame(100, 1)
		g.send(f)
		g.step()
		g.clock.Advance(20 * time.Microsecond)
		g.step()
		g.mustRecv(f)
		g.clock.Advance(time.Millisecond)
		g.wantLPI("idle again", r4.TLPIEN|r4.TLPIEX, r4.TLPIST)
		g.clean()
	}
}

// TestLPIGoroutine: a model with its own goroutine finds by itself that it is idle, and
// that a frame waits.
func TestLPIGoroutine(t *testing.T) {
	clock := NewManualClock()
	g := newRig(t, withConfig(func(c *Config) { c.EEE, c.Inline, c.Clock = true, false, clock }))
	g.clock = clock
	g.open()
	r4.MACLPITimersControl.Store(g.r, r4.LPITWT.Of(20))
	g.setLPI(r4.LPIEN | r4.LPITXA)
	wait := func(what string, ok func() bool) {
		t.Helper()
		for deadline := time.Now().Add(time.Minute); !ok(); time.Sleep(100 * time.Microsecond) {
			if time.Now().After(deadline) {
				t.Fatal(what)
			}
		}
	}
	state := func() bool { return r4.MACLPIControlStatus.Load(g.r)&r4.TLPIST != 0 }
	wait("no LPI", state)
	g.send(testFrame(60, 1))
	wait("a frame does not wake it", func() bool { return !state() })
	wait("the frame does not leave", func() bool {
		clock.Advance(20 * time.Microsecond)
		n, _ := g.reap()
		return n == 1
	})
}
