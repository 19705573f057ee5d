package sim

import (
	"context"
	"errors"
	"fmt"
	"net"
	"testing"
	"time"

	r4 "github.com/gostmmac/gostmmac/stmmac/internal/regs/gmac4reg"
)

// edges is how often each vector fired since the last call.
func (g *rig) edges(last *[]uint64) []uint64 {
	now := g.d.Stats().Edges
	d := make([]uint64, len(now))
	for i := range now {
		d[i] = now[i]
		if *last != nil {
			d[i] -= (*last)[i]
		}
	}
	*last = now
	return d
}

func TestInterruptLines(t *testing.T) {
	const (
		ti, ri, rbu, fbe = r4.TI, r4.RI, r4.RBU, r4.FBE
	)
	all := r4.TIE | r4.RIE | r4.RBUE | r4.FBEE
	type step struct {
		raise  r4.CHStatus
		clear  r4.CHStatus
		enable r4.CHInterrupt // 0: no store
		status r4.CHStatus
		fire   []uint64
	}
	none := []uint64{0}
	one := []uint64{1}
	for name, c := range map[string]struct {
		cfg   func(*Config)
		intm  uint32
		init  r4.CHInterrupt
		steps []step
	}{
		"masked events set no summary": {init: 0, steps: []step{
			{raise: ti | rbu, status: ti | rbu, fire: none},
		}},
		"without the summary enable no interrupt": {init: all, steps: []step{
			{raise: ti, status: ti | r4.NIS, fire: none},
			{enable: all | r4.NIE, status: ti | r4.NIS, fire: one},
		}},
		"level until cleared": {init: all | r4.NIE | r4.AIE, steps: []step{
			{raise: ti, status: ti | r4.NIS, fire: one},
			{raise: ti, status: ti | r4.NIS, fire: none},
			{raise: ri, status: ti | ri | r4.NIS, fire: none},
			{clear: ti | r4.NIS, status: ri | r4.NIS, fire: none}, // NIS comes back
			{clear: ri, status: r4.NIS, fire: none},               // and stays until cleared
			{raise: ti, status: ti | r4.NIS, fire: none},
			{clear: ti | r4.NIS, status: 0, fire: none},
			{raise: ti, status: ti | r4.NIS, fire: one},
		}},
		"abnormal": {init: all | r4.NIE | r4.AIE, steps: []step{
			{raise: rbu, status: rbu | r4.AIS, fire: one},
			{clear: rbu | r4.AIS, status: 0, fire: none},
			{raise: fbe | 5<<19, status: fbe | r4.AIS | 5<<19, fire: one},
			{clear: fbe | r4.AIS, status: 0, fire: none},
		}},
		"enabling a pending event fires": {init: r4.TIE | r4.NIE, steps: []step{
			{raise: ti, status: ti | r4.NIS, fire: one},
			{raise: ri, status: ti | ri | r4.NIS, fire: none},
			{enable: r4.TIE | r4.RIE | r4.NIE, status: ti | ri | r4.NIS, fire: one},
			{enable: r4.TIE | r4.RIE | r4.NIE, status: ti | ri | r4.NIS, fire: none},
			{enable: r4.RIE | r4.NIE, status: ti | ri | r4.NIS, fire: none},
		}},
		"the linux profile fires at every enable store": {cfg: func(c *Config) { c.Profile = Linux }, init: r4.TIE | r4.NIE, steps: []step{
			{raise: ti, status: ti | r4.NIS, fire: one},
			{enable: r4.TIE | r4.NIE, status: ti | r4.NIS, fire: one},
		}},
		"4.00 has its enables one bit higher": {cfg: func(c *Config) { c.Version = 0x40 }, init: r4.TIE | r4.RBUE | r4.NIE400, steps: []step{
			{raise: ti, status: ti | r4.NIS, fire: one},
			{raise: rbu, status: ti | rbu | r4.NIS | r4.AIS, fire: none},
			{clear: ti | r4.NIS, status: rbu | r4.AIS, fire: none},
			{enable: r4.RBUE | r4.AIE400, status: rbu | r4.AIS, fire: one},
		}},
		"a vector for each direction": {cfg: func(c *Config) { c.NumInterrupts = 3 }, intm: 1, init: all | r4.NIE | r4.AIE, steps: []step{
			{raise: ri, status: ri | r4.NIS, fire: []uint64{0, 1, 0}},
			{raise: ti, status: ri | ti | r4.NIS, fire: []uint64{0, 0, 1}},
			{raise: rbu, status: ri | ti | rbu | r4.NIS | r4.AIS, fire: []uint64{1, 0, 0}},
			{clear: ri | r4.NIS, status: ti | rbu | r4.NIS | r4.AIS, fire: []uint64{0, 0, 0}},
			{raise: ri, status: ri | ti | rbu | r4.NIS | r4.AIS, fire: []uint64{0, 1, 0}},
		}},
		"all lines on one vector": {intm: 1, init: all | r4.NIE | r4.AIE, steps: []step{
			{raise: ri, status: ri | r4.NIS, fire: one},
			{raise: ti, status: ri | ti | r4.NIS, fire: none},
			{clear: ri | ti | r4.NIS, status: 0, fire: none},
			{raise: ti, status: ti | r4.NIS, fire: one},
		}},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := c.cfg
			if cfg == nil {
				cfg = func(*Config) {}
			}
			g := newRig(t, withConfig(cfg))
			g.setup()
			r4.DMAMode.Store(g.r, r4.INTM.Of(c.intm))
			r4.DMACHInterruptEnable.Store(g.ch(0), c.init)
			var last []uint64
			g.edges(&last)
			for i, s := range c.steps {
				g.d.RaiseStatus(0, s.raise)
				if s.clear != 0 {
					r4.DMACHStatus.Store(g.ch(0), s.clear)
				}
				if s.enable != 0 {
					r4.DMACHInterruptEnable.Store(g.ch(0), s.enable)
				}
				if got := r4.DMACHStatus.Load(g.ch(0)); got != s.status {
					t.Errorf("step %d: status %#x, want %#x", i, uint32(got), uint32(s.status))
				}
				if got := g.edges(&last); fmt.Sprint(got) != fmt.Sprint(s.fire) {
					t.Errorf("step %d: fired %v, want %v", i, got, s.fire)
				}
			}
		})
	}
}

// TestSharedVector: in the strict profile two channels hold one line, which rises
// once; in the linux profile each channel fires.
func TestSharedVector(t *testing.T) {
	for _, c := range []struct {
		p    Profile
		want uint64
	}{{Strict, 1}, {Linux, 2}} {
		g := newRig(t, withProfile(c.p), withConfig(func(c *Config) { c.RxQueues, c.TxQueues = 2, 2 }))
		for ch := range 2 {
			r4.DMACHInterruptEnable.Store(g.ch(ch), r4.RIE|r4.NIE)
		}
		g.d.RaiseStatus(0, r4.RI)
		g.d.RaiseStatus(1, r4.RI)
		if got := g.d.Stats().Edges[0]; got != c.want {
			t.Errorf("%v: %d edges, want %d", c.p, got, c.want)
		}
		if v := r4.DMAInterruptStatus.Load(g.r); v != 3 {
			t.Errorf("%v: DMA_Interrupt_Status %#x", c.p, uint32(v))
		}
		g.d.RaiseStatus(9, r4.RI) // no such channel
	}
}

// TestStatusRace is an event between a driver's read and its clear (D63).
func TestStatusRace(t *testing.T) {
	g := newRig(t)
	g.setup()
	r4.DMACHInterruptEnable.Store(g.ch(0), r4.RIE|r4.TIE|r4.NIE)
	armed := true
	g.d.SetFaults(func(f *Faults) {
		f.OnStatusLoad = func(ch int) {
			if armed {
				armed = false
				g.d.RaiseStatus(ch, r4.TI)
			}
		}
	})
	g.d.RaiseStatus(0, r4.RI)
	if v := r4.DMACHStatus.Load(g.ch(0)); v != r4.RI|r4.NIS {
		t.Fatalf("status %#x", uint32(v))
	}
	r4.DMACHStatus.Store(g.ch(0), r4.RI|r4.NIS)
	if v := r4.DMACHStatus.Load(g.ch(0)); v != r4.TI|r4.NIS {
		t.Fatalf("status %#x: the event is lost", uint32(v))
	}
	g.d.SetFaults(func(f *Faults) { f.OnStatusLoad = nil })
}

// TestRxWatchdog: frames without IOC raise RI after the time in the register, once,
// and a frame with IOC stops the watchdog.
func TestRxWatchdog(t *testing.T) {
	g := newRig(t, withConfig(func(c *Config) { c.CSRClock = 100_000_000 }))
	g.setup()
	r4.DMACHRxWatchdogTimer.Store(g.ch(0), 0x10) // 16 · 256 cycles of 10 ns
	const wait = 16 * 256 * 10 * time.Nanosecond
	iocAt := 2
	for i := range g.n - 1 {
		d3 := rxRead &^ uint32(r4.RxIOC)
		if i == iocAt {
			d3 = rxRead
		}
		g.arm(i, d3)
	}
	g.rxTail = g.n - 1
	r4.DMACHRxDescTailPointer.Store(g.ch(0), g.ringTail(g.rxBase, g.rxTail))
	r4.DMACHInterruptEnable.Store(g.ch(0), r4.RIE|r4.NIE)
	g.run()
	f := testFrame(60, 1)
	g.w.inject(f)
	g.step()
	g.clock.Advance(wait / 2)
	g.w.inject(f) // does not restart the watchdog
	g.step()
	g.clock.Advance(wait/2 - 1)
	if s := g.status(); s&r4.RI != 0 {
		t.Fatalf("RI too early: %#x", uint32(s))
	}
	g.clock.Advance(1)
	if s := g.status(); s != r4.RI|r4.NIS {
		t.Fatalf("status %#x when the watchdog ran out", uint32(s))
	}
	if e := g.d.Stats().Edges[0]; e != 1 {
		t.Fatalf("%d edges", e)
	}
	g.w.inject(f) // the one with IOC
	g.step()
	if s := g.status(); s != r4.RI|r4.NIS {
		t.Fatalf("status %#x with IOC", uint32(s))
	}
	g.clock.Advance(10 * wait)
	if s := g.status(); s != 0 {
		t.Fatalf("status %#x: the watchdog ran on", uint32(s))
	}
	r4.DMACHRxWatchdogTimer.Store(g.ch(0), 0)
	g.w.inject(f)
	g.step()
	g.clock.Advance(time.Second)
	if s := g.status(); s != 0 {
		t.Fatalf("status %#x with the watchdog off", uint32(s))
	}
	// A later core counts in multiples of the unit.
	r4.DMACHRxWatchdogTimer.Store(g.ch(0), uint32(r4.RWTU.Of(2)|r4.RWTF.Of(0x10)))
	g.w.inject(f)
	g.step()
	g.clock.Advance(4*wait - 1)
	early := g.status()
	g.clock.Advance(1)
	if s := g.status(); early != 0 || s&r4.RI == 0 {
		t.Fatalf("with RWTU: %#x then %#x", uint32(early), uint32(s))
	}
	g.clean()
}

func TestVector(t *testing.T) {
	g := newRig(t)
	if _, err := g.d.Interrupt(1); !errors.Is(err, errors.ErrUnsupported) {
		t.Error(err)
	}
	if _, err := g.d.Interrupt(-1); !errors.Is(err, errors.ErrUnsupported) {
		t.Error(err)
	}
	v, err := g.d.Interrupt(0)
	if err != nil {
		t.Fatal(err)
	}
	g.setup()
	r4.DMACHInterruptEnable.Store(g.ch(0), r4.TIE|r4.NIE)
	for range 3 {
		g.d.RaiseStatus(0, r4.TI)
		g.status()
	}
	if n, err := v.Wait(context.Background()); n != 3 || err != nil {
		t.Fatal(n, err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if n, err := v.Wait(ctx); n != 0 || !errors.Is(err, context.Canceled) {
		t.Fatal(n, err)
	}
	if v.Unmask() != nil || v.Close() != nil || v.Close() != nil {
		t.Fatal("unmask or close")
	}
	if _, err := v.Wait(context.Background()); !errors.Is(err, net.ErrClosed) {
		t.Fatal(err)
	}
	v, err = g.d.Interrupt(0) // again
	if err != nil {
		t.Fatal(err)
	}
	g.d.RaiseStatus(0, r4.TI)
	if n, err := v.Wait(context.Background()); n != 1 || err != nil {
		t.Fatal(n, err)
	}
	blocked := make(chan error)
	go func() {
		_, err := v.Wait(context.Background())
		blocked <- err
	}()
	g.d.Close()
	if err := <-blocked; !errors.Is(err, net.ErrClosed) {
		t.Fatal(err)
	}
	if _, err := g.d.Interrupt(0); !errors.Is(err, net.ErrClosed) {
		t.Fatal(err)
	}
}
