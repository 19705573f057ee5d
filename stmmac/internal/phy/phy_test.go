package phy

import (
	"context"
	"errors"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/gostmmac/gostmmac/stmmac/internal/core"
)

func TestBringUp(t *testing.T) {
	b := newBench(t, newPHY(), nil)
	if b.bus.wrote() {
		t.Fatal("Find wrote")
	}
	b.poll(down, false, "powered down")
	if err := b.phy.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	if b.fake.regs[4] != 0x0de1 || b.fake.regs[9] != 0x0300 || b.fake.restarts != 1 {
		t.Errorf("ANAR %#x, GBCR %#x, %d restarts", b.fake.regs[4], b.fake.regs[9], b.fake.restarts)
	}
	if b.phy.Abilities() != allModes&^core.Mode2500Full || b.phy.Interval() != time.Second {
		t.Errorf("abilities %v, interval %v", b.phy.Abilities(), b.phy.Interval())
	}
	b.poll(gigabit, true, "")
	b.poll(gigabit, false, "")
	// A PHY that is set up already keeps its link.
	n := len(b.bus.log)
	if err := b.phy.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, o := range b.bus.log[n:] {
		if o.write {
			t.Errorf("the second start wrote %v", o)
		}
	}
	b.poll(gigabit, false, "")
}

// TestLatch: a link that is lost and back between two polls is a change.
func TestLatch(t *testing.T) {
	b := started(t, newPHY(), nil)
	b.poll(gigabit, true, "")
	b.fake.drop()
	b.poll(gigabit, true, "")
	b.poll(gigabit, false, "")
	b.fake.drop()
	b.fake.regs[10] = 0x3000
	b.poll(pause100, true, "")
	b.fake.link = false
	b.poll(down, true, "no link")
	b.poll(down, false, "no link")
	b.fake.link = true
	b.poll(pause100, true, "")
	b.poll(pause100, false, "")
}

// TestLatchSurvivesError: the read that shows a loss also clears it, so the poll
// that fails behind it must not forget it.
func TestLatchSurvivesError(t *testing.T) {
	for _, kind := range []struct {
		make func() *fakePHY
		set  func(*Config)
		link core.Link
		// how many accesses a poll makes, and the two of them that read the latch
		accesses, first, second int
	}{
		{newPHY, func(*Config) {}, gigabit, 8, 1, 2},
		{func() *fakePHY { return newPHY45(false) }, clause45Config, pause100, 10, 2, 3},
	} {
		for k := range kind.accesses {
			b := started(t, kind.make(), kind.set)
			b.poll(kind.link, true, "")
			failing := func() {
				n := len(b.bus.log)
				b.bus.fail = func(i int, _ op) int {
					if i == n+k {
						return lateFault
					}
					return pass
				}
				if l, changed, err := b.phy.Poll(); !errors.Is(err, errBus) || l != kind.link || changed {
					t.Errorf("access %d failed: %v, %v, %v", k, l, changed, err)
				}
			}
			b.fake.drop()
			failing()
			// Also when it was the read of the status that failed and took the
			// latch with it.
			b.poll(kind.link, true, "")
			b.poll(kind.link, false, "")
			// An error elsewhere is no loss.
			failing()
			b.poll(kind.link, k == kind.first || k == kind.second, "")
		}
	}
}

// TestPowerDownIsDown: a PHY in power-down or isolation has no link, whatever
// its status says (case D58), and one that is gone has none either.
func TestPowerDownIsDown(t *testing.T) {
	for _, tc := range []struct {
		name       string
		bmcr, bmsr uint16
		reason     string
	}{
		{"power-down", 0x0800, 0x780d, "in power-down"},
		{"power-down with negotiation", 0x1940, 0x796d, "in power-down"},
		{"isolate", 0x1540, 0x796d, "isolated"},
		{"both", 0x1d40, 0x796d, "in power-down"},
		{"reset", 0x9140, 0x796d, "in reset"},
		{"negotiation off", 0x0140, 0x796d, "negotiation is off"},
		{"all zero", 0x0000, 0x796d, "negotiation is off"},
		{"loopback", 0x5140, 0x796d, "in loopback"},
		{"negotiation starting", 0x1340, 0x796d, "negotiation is running"},
		{"negotiating", 0x1140, 0x794d, "negotiation is running"},
		{"BMCR all ones", 0xffff, 0x796d, "does not answer"},
		{"BMSR all ones", 0x1140, 0xffff, "does not answer"},
		{"BMSR zero", 0x1140, 0x0000, "does not answer"},
		{"no link", 0x1140, 0x7969, "no link"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			b := started(t, newPHY(), nil)
			b.poll(gigabit, true, "")
			b.phy.port = &clause22{access: &access{bus: constant{0: tc.bmcr, 1: tc.bmsr, 4: 0x0de1, 5: 0xcde1, 6: 5}, addr: 1}}
			b.poll(down, true, tc.reason)
			b.poll(down, false, tc.reason)
		})
	}
}

// constant is a bus on which every register of clause 22 keeps its value.
type constant map[int]uint16

func (c constant) Read(_, reg int) (uint16, error)     { return c[reg], nil }
func (c constant) Write(_, _ int, _ uint16) error      { return nil }
func (c constant) Read45(_, _, _ int) (uint16, error)  { return 0xffff, nil }
func (c constant) Write45(_, _, _ int, _ uint16) error { return nil }

// TestWake powers up what was left in power-down or isolated (case D52).
func TestWake(t *testing.T) {
	for _, bmcr := range []uint16{0x1800, 0x0800, 0x1400, 0x1d40, 0x1a00} {
		fake := newPHY()
		fake.regs[0], fake.sleepReads = bmcr, 9
		b := started(t, fake, nil)
		if fake.regs[0] != 0x1000 {
			t.Errorf("BMCR %#x", fake.regs[0])
		}
		if w := b.bus.writes(0); w[0]&(1<<11|1<<10|1<<15|1<<9) != 0 {
			t.Errorf("woken by %#x", w[0])
		}
		if bmcr&0x0800 != 0 && b.clock.Now() < 50*time.Millisecond {
			t.Errorf("did not wait: %v", b.clock.Now())
		}
		b.poll(gigabit, true, "")
	}
}

// TestWakeFails: a PHY that stays in power-down is an error after 1 s. Polls go
// on trying, and find it when it wakes up.
func TestWakeFails(t *testing.T) {
	fake := newPHY()
	fake.regs[0], fake.stuckAsleep = 0x1800, true
	b := newBench(t, fake, nil)
	err := b.phy.Start(t.Context())
	var e *core.Error
	if !errors.As(err, &e) || !errors.Is(err, core.ErrNoPHY) || e.Reg != "BMCR" || e.Val != 0x1800 || !contains(err.Error(), "power-down") {
		t.Errorf("got %v", err)
	}
	if now := b.clock.Now(); now < time.Second || now > 1100*time.Millisecond {
		t.Errorf("waited %v", now)
	}
	if b.phy.Interval() != time.Second {
		t.Errorf("polls every %v for ever", b.phy.Interval())
	}
	b.poll(down, false, "power-down")
	fake.stuckAsleep = false
	b.poll(down, false, "power-down")
	b.poll(gigabit, true, "")

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	fake.regs[0] = 0x1800
	if err := b.phy.Start(ctx); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if b.phy.Interval() > 10*time.Millisecond {
		t.Errorf("a PHY that wakes up is asked every %v", b.phy.Interval())
	}
	b.poll(gigabit, true, "")
}

// TestReset: a reset loses what was advertised, and in some PHYs negotiation
// and power too; all of it is set up afterwards.
func TestReset(t *testing.T) {
	for _, to := range []uint16{0x1140, 0x0000, 0x1800, 0x2100} {
		fake := newPHY()
		fake.resetReads, fake.resetTo = 7, to
		b := started(t, fake, func(c *Config) { c.Reset = true })
		if fake.regs[0]&(1<<12) == 0 || fake.regs[4] != 0x0de1 || fake.regs[9] != 0x0300 {
			t.Errorf("after a reset to %#x: BMCR %#x, ANAR %#x, GBCR %#x", to, fake.regs[0], fake.regs[4], fake.regs[9])
		}
		if w := b.bus.writes(0); w[0] != 0x8000 || slices.Index(w[1:], 0x8000) >= 0 {
			t.Errorf("BMCR was written %#x", w)
		}
		b.poll(gigabit, true, "")
		b.poll(gigabit, false, "")
		// A reset is a loss of the link also where the PHY does not latch it.
		fake.noDrop, fake.resetTo = true, 0x1140
		if err := b.phy.Start(t.Context()); err != nil {
			t.Error(err)
		}
		b.poll(gigabit, true, "")
	}
	fake := newPHY()
	fake.resetReads = 1e6
	b := newBench(t, fake, func(c *Config) { c.Reset = true })
	err := b.phy.Start(t.Context())
	var e *core.Error
	if !errors.As(err, &e) || !errors.Is(err, core.ErrNoPHY) || e.Val != 0x8000 || !contains(err.Error(), "in reset") {
		t.Errorf("got %v", err)
	}
	if now := b.clock.Now(); now < 500*time.Millisecond || now > 600*time.Millisecond {
		t.Errorf("waited %v", now)
	}
	fake.pending = 1
	b.poll(gigabit, true, "")
}

// TestAutonegNeverCompletes: the link stays down with a reason, and negotiation
// is started once.
func TestAutonegNeverCompletes(t *testing.T) {
	fake := newPHY()
	fake.noComplete = true
	b := started(t, fake, func(c *Config) { c.AutonegTimeout = 3 * time.Second })
	for i := range 10 {
		reason := "is running"
		if i >= 2 {
			reason = "has not completed within 3s"
		}
		b.poll(down, false, reason)
	}
	if fake.restarts != 1 {
		t.Errorf("started %d times", fake.restarts)
	}
	fake.complete = true
	b.poll(gigabit, true, "")
	fake.complete, fake.link = false, false
	b.poll(down, true, "is running")
}

func TestCannotNegotiate(t *testing.T) {
	fake := newPHY()
	fake.regs[1] &^= 1 << 3
	b := newBench(t, fake, nil)
	err := b.phy.Start(t.Context())
	if !errors.Is(err, errors.ErrUnsupported) || !contains(err.Error(), "cannot negotiate") {
		t.Error(err)
	}
	if _, _, err = b.phy.Poll(); !errors.Is(err, errors.ErrUnsupported) || b.phy.Interval() != time.Second {
		t.Errorf("%v, every %v", err, b.phy.Interval())
	}
	if err := b.phy.SetForced(full100); err != nil {
		t.Fatal(err)
	}
	b.poll(full100, true, "")
}

func TestNothingInCommon(t *testing.T) {
	fake := newPHY()
	fake.regs[1] = 0x6049 // 100 Mbit/s only, no extended status
	b := newBench(t, fake, func(c *Config) { c.Advertise = core.Mode10Full })
	if err := b.phy.Start(t.Context()); !errors.Is(err, errors.ErrUnsupported) {
		t.Error(err)
	}
	if fake.restarts != 0 || b.bus.wrote() {
		t.Error("negotiation of nothing was started")
	}
	if err := b.phy.SetAdvertise(core.Mode10Full | core.Mode100Full); err != nil {
		t.Fatal(err)
	}
	b.poll(pause100, true, "")
	// What MAC and PHY have changes nothing when it is refused.
	for _, err := range []error{
		b.phy.SetAdvertise(core.Mode10Full), b.phy.SetForced(core.Link{Speed: 10}), b.phy.SetAdvertise(core.Mode2500Full),
		b.phy.SetForced(core.Link{Speed: 2500, FullDuplex: true}), b.phy.SetForced(core.Link{Speed: 7}),
		b.phy.SetModes(core.Mode10Full),
	} {
		if !errors.Is(err, errors.ErrUnsupported) {
			t.Error(err)
		}
	}
	if err := b.phy.SetPause(77); !errors.Is(err, os.ErrInvalid) {
		t.Error(err)
	}
	b.poll(pause100, false, "")
}

func TestForced(t *testing.T) {
	for _, tc := range []struct {
		link core.Link
		bmcr uint16
	}{
		{core.Link{Speed: 10}, 0x0000},
		{core.Link{Speed: 10, FullDuplex: true}, 0x0100},
		{core.Link{Speed: 100}, 0x2000},
		{core.Link{Speed: 100, FullDuplex: true}, 0x2100},
	} {
		forced := tc.link
		b := started(t, newPHY(), func(c *Config) { c.Forced = &forced })
		forced.Speed = 1 // the configuration is a copy
		want := tc.link
		want.Up = true
		if b.fake.regs[0] != tc.bmcr || b.fake.restarts != 0 {
			t.Errorf("%v: BMCR %#x, %d restarts", tc.link, b.fake.regs[0], b.fake.restarts)
		}
		b.poll(want, true, "")
		// A second start keeps the link.
		if err := b.phy.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		b.poll(want, false, "")
		b.fake.drop()
		b.poll(want, true, "")
		b.fake.link = false
		b.poll(down, true, "no link")
		b.fake.link = true
		b.poll(want, true, "")
		if err := b.phy.SetPause(core.PauseTx); err != nil {
			t.Fatal(err)
		}
		if want.TxPause = want.FullDuplex; want.FullDuplex {
			b.poll(want, true, "")
		}
		if err := b.phy.Renegotiate(); !errors.Is(err, os.ErrInvalid) {
			t.Error(err)
		}
		// Somebody turns negotiation on, or changes the speed.
		for _, v := range []uint16{0x1000 | tc.bmcr, tc.bmcr ^ 0x2000, tc.bmcr ^ 0x0100, tc.bmcr&^0x2000 | 0x0040, tc.bmcr | 0x2040} {
			b.fake.regs[0] = v
			if l, _, err := b.phy.Poll(); err != nil || l.Up || !contains(b.phy.Reason(), "forced mode") {
				t.Errorf("BMCR %#x: %v, %v, %q", v, l, err, b.phy.Reason())
			}
		}
		if err := b.phy.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		b.poll(want, true, "")
		// Back to negotiation.
		if err := b.phy.SetAdvertise(0); err != nil {
			t.Fatal(err)
		}
		if b.fake.restarts != 1 {
			t.Errorf("%d restarts", b.fake.restarts)
		}
		b.poll(core.Link{Up: true, Speed: 1000, FullDuplex: true, TxPause: true}, true, "")
	}
}

// TestForcedGigabit negotiates the one mode, as 1000BASE-T has to.
func TestForcedGigabit(t *testing.T) {
	b := started(t, newPHY(), func(c *Config) { c.Forced = &core.Link{Speed: 1000, FullDuplex: true} })
	if b.fake.regs[4] != 0x0c01 || b.fake.regs[9] != 0x0200 || b.fake.regs[0] != 0x1000 {
		t.Errorf("ANAR %#x, GBCR %#x, BMCR %#x", b.fake.regs[4], b.fake.regs[9], b.fake.regs[0])
	}
	b.poll(gigabit, true, "")
	if err := b.phy.Renegotiate(); err != nil || b.fake.restarts != 2 {
		t.Errorf("%v, %d restarts", err, b.fake.restarts)
	}
	b.poll(gigabit, true, "")
}

func TestRenegotiate(t *testing.T) {
	b := started(t, newPHY(), nil)
	b.poll(gigabit, true, "")
	for i := range 3 {
		if err := b.phy.Renegotiate(); err != nil || b.fake.restarts != i+2 {
			t.Errorf("%v, %d restarts", err, b.fake.restarts)
		}
		b.poll(gigabit, true, "")
		b.poll(gigabit, false, "")
	}
	// Also of a PHY that takes no notice: the MAC is set up anew.
	b.fake.noDrop = true
	if err := b.phy.Renegotiate(); err != nil {
		t.Error(err)
	}
	b.poll(gigabit, true, "")
	b.fake.noDrop, b.fake.restarts = false, 4
	if err := b.phy.SetAdvertise(core.Mode10Full | core.Mode100Full); err != nil || b.fake.restarts != 5 {
		t.Errorf("%v, %d restarts", err, b.fake.restarts)
	}
	b.poll(pause100, true, "")
	if err := b.phy.SetPause(core.PauseOff); err != nil || b.fake.restarts != 6 {
		t.Errorf("%v, %d restarts", err, b.fake.restarts)
	}
	b.poll(full100, true, "")
	// The same again changes nothing.
	err := errors.Join(b.phy.SetPause(core.PauseOff), b.phy.SetAdvertise(core.Mode10Full|core.Mode100Full))
	if err != nil || b.fake.restarts != 6 {
		t.Errorf("%v, %d restarts", err, b.fake.restarts)
	}
	b.poll(full100, false, "")
	// The same link in another way is a change.
	b.fake.noDrop = true
	if err := b.phy.SetForced(full100); err != nil {
		t.Error(err)
	}
	b.poll(full100, true, "")
	b.poll(full100, false, "")
}

// TestSetModes: more transmit queues take half duplex away.
func TestSetModes(t *testing.T) {
	b := started(t, newPHY(), nil)
	b.fake.regs[5], b.fake.regs[10] = 0x4081, 0
	b.poll(half100, true, "")
	if err := b.phy.SetModes(core.Mode100Full | core.Mode1000Full); err != nil {
		t.Fatal(err)
	}
	if b.fake.regs[4] != 0x0d01 || b.fake.regs[9] != 0x0200 {
		t.Errorf("ANAR %#x, GBCR %#x", b.fake.regs[4], b.fake.regs[9])
	}
	b.poll(down, true, "no mode in common")
	if err := b.phy.SetForced(full100); err != nil {
		t.Fatal(err)
	}
	if err := b.phy.SetModes(core.Mode1000Full); !errors.Is(err, errors.ErrUnsupported) {
		t.Error(err)
	}
	b.poll(full100, true, "")
}

func TestLoopback(t *testing.T) {
	b := started(t, newPHY(), nil)
	b.fake.link = false
	b.poll(down, false, "no link")
	want := core.Link{Up: true, Speed: 1000, FullDuplex: true}
	for range 2 {
		if err := b.phy.Loopback(true); err != nil || b.fake.regs[0] != 0x4140 {
			t.Errorf("%v, BMCR %#x", err, b.fake.regs[0])
		}
	}
	b.poll(want, true, "")
	b.poll(want, false, "")
	if err := b.phy.Renegotiate(); !errors.Is(err, os.ErrInvalid) {
		t.Error(err)
	}
	// A start does not end it.
	if err := b.phy.Start(t.Context()); err != nil || b.fake.regs[0] != 0x4140 {
		t.Errorf("%v, BMCR %#x", err, b.fake.regs[0])
	}
	b.poll(want, true, "")
	// What is changed meanwhile holds afterwards.
	if err := b.phy.SetAdvertise(core.Mode100Full); err != nil || b.fake.regs[0] != 0x4140 {
		t.Errorf("%v, BMCR %#x", err, b.fake.regs[0])
	}
	b.fake.regs[0] = 0x1140
	b.poll(down, true, "not in loopback")
	if err := b.phy.Loopback(false); err != nil || b.fake.regs[0] != 0x1000 || b.fake.regs[4] != 0x0d01 {
		t.Errorf("%v, BMCR %#x, ANAR %#x", err, b.fake.regs[0], b.fake.regs[4])
	}
	b.fake.link = true
	b.poll(pause100, true, "")

	if err := b.phy.SetModes(core.Mode100Full | core.Mode10Half); err != nil {
		t.Fatal(err)
	}
	b.fake.regs[1] &^= 1<<14 | 1<<12 | 1<<8
	if err := b.phy.Loopback(true); !errors.Is(err, errors.ErrUnsupported) {
		t.Error(err)
	}
}

func TestPowerDown(t *testing.T) {
	b := started(t, newPHY(), nil)
	b.poll(gigabit, true, "")
	if err := b.phy.PowerDown(); err != nil || b.fake.regs[0] != 0x1800 {
		t.Errorf("%v, BMCR %#x", err, b.fake.regs[0])
	}
	n := len(b.bus.log)
	b.poll(down, true, "on request")
	// A change waits for the start.
	if err := errors.Join(b.phy.SetAdvertise(core.Mode100Full), b.phy.Renegotiate()); err != nil || len(b.bus.log) != n {
		t.Errorf("%v, accesses %v", err, b.bus.log[n:])
	}
	if err := b.phy.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	b.poll(pause100, true, "")
	b.bus.phys[1], b.bus.absent = nil, 0xffff
	n = len(b.bus.log)
	if err := b.phy.PowerDown(); !errors.Is(err, core.ErrNoPHY) || len(b.bus.log) != n+1 {
		t.Errorf("%v, accesses %v", err, b.bus.log[n:])
	}
	b.poll(down, true, "does not answer")
	err := b.phy.Start(t.Context())
	if !errors.Is(err, core.ErrNoPHY) || !contains(err.Error(), "does not answer") {
		t.Error(err)
	}
	// Zero registers are those of a bus without its clock.
	b.bus.absent = 0
	if err := b.phy.Start(t.Context()); !errors.Is(err, core.ErrNoPHY) {
		t.Error(err)
	}
	for _, o := range b.bus.log[n+1:] {
		if o.write {
			t.Errorf("wrote %v", o)
		}
	}
}

// TestLeftInLoopback ends the loopback that a dead owner left on.
func TestLeftInLoopback(t *testing.T) {
	fake := newPHY()
	fake.regs[0], fake.regs[4] = 0x5140, 0x0de1
	b := started(t, fake, nil)
	if fake.regs[0] != 0x1000 || fake.restarts != 1 {
		t.Errorf("BMCR %#x, %d restarts", fake.regs[0], fake.restarts)
	}
	b.poll(gigabit, true, "")
}

// TestForcedRefused: the PHY lacks what the configuration forces.
func TestForcedRefused(t *testing.T) {
	fake := newPHY()
	fake.regs[1] = 0x1849 // 10 Mbit/s
	b := newBench(t, fake, func(c *Config) { c.Forced = &full100 })
	if err := b.phy.Start(t.Context()); !errors.Is(err, errors.ErrUnsupported) || b.bus.wrote() {
		t.Errorf("%v, accesses %v", err, b.bus.log)
	}
}

// TestAccessStopsAtError: nothing is read or written behind a failure until its
// error was taken.
func TestAccessStopsAtError(t *testing.T) {
	bus := &fakeBus{fail: func(n int, _ op) int { return lose - n }}
	bus.phys[0] = newPHY45(true)
	a := &access{bus: bus}
	if v := a.read(regBMCR); v != 0 {
		t.Errorf("read %#x", v)
	}
	a.write(regANAR, 1)
	a.write45(devAN, regANAdv, 1)
	if a.read(regBMSR)|a.read45(devAN, regStat1) != 0 || a.update(regGBCR, 0, 1) || a.update45(devAN, regNBTCtrl, 0, 1) || len(bus.log) != 1 {
		t.Errorf("accesses %v", bus.log)
	}
	if err := a.take(); !errors.Is(err, errBus) || !contains(err.Error(), "PHY 0: read BMCR") || a.take() != nil {
		t.Error(err)
	}
	if v := a.read(regBMCR); v != 0x1140 {
		t.Errorf("read %#x", v)
	}
}

// TestKeepsOtherBits: what of the registers is the PHY's stays.
func TestKeepsOtherBits(t *testing.T) {
	fake := newPHY()
	fake.regs[4], fake.regs[9] = 0x91e1, 0xfc00
	started(t, fake, nil)
	if fake.regs[4] != 0x9de1 || fake.regs[9] != 0x1f00 {
		t.Errorf("ANAR %#x, GBCR %#x", fake.regs[4], fake.regs[9])
	}
}
