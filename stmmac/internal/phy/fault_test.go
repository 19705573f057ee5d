package phy

import (
	"errors"
	"maps"
	"testing"

	"pgregory.net/rapid"

	"github.com/gostmmac/gostmmac/stmmac/internal/core"
	"github.com/gostmmac/gostmmac/stmmac/sim"
)

// life is a PHY from being found to being powered down, by clause 22 with or
// without 2500BASE-T or by clause 45 alone. A failed step is not tried again,
// except finding and powering down: polls do that. It returns the errors.
func life(t *testing.T, fake *fakePHY, set func(*Config), fail func(int, op) int) (bus *fakeBus, errs []error) {
	t.Helper()
	clock := sim.NewManualClock()
	bus = &fakeBus{fail: fail}
	bus.phys[0] = fake
	cfg := config(clock)
	set(&cfg)
	note := func(err error) bool {
		if err != nil {
			errs = append(errs, err)
		}
		return err != nil
	}
	var p *PHY
	for {
		var err error
		if p, err = Find(t.Context(), bus, cfg); !note(err) {
			break
		}
	}
	up := func(want core.Link) {
		t.Helper()
		for range 8 {
			l, _, err := p.Poll()
			if note(err); err == nil && l == want {
				return
			}
		}
		l, _, err := p.Poll()
		t.Fatalf("the link does not become %v: %v, %v, %s", want, l, err, p.Reason())
	}
	full := p.cfg.Advertise.Link()
	full.RxPause, full.TxPause = true, true
	note(p.Start(t.Context()))
	up(full)
	note(p.Renegotiate())
	up(full)
	fake.link, fake.complete = false, false
	up(down)
	fake.link, fake.complete = true, true
	note(p.SetAdvertise(core.Mode100Full))
	up(pause100)
	if p.forcer != nil {
		note(p.Loopback(true))
		up(core.Link{Up: true, Speed: 1000, FullDuplex: true})
		note(p.Loopback(false))
		up(pause100)
		note(p.SetForced(core.Link{Speed: 10}))
		up(core.Link{Up: true, Speed: 10})
	}
	for note(p.PowerDown()) {
	}
	up(down)
	return bus, errs
}

// TestBusErrors lets each access of a life fail once, with the access done and
// not done. The error is returned once, and everything after it is as if it had
// not been.
func TestBusErrors(t *testing.T) {
	for _, kind := range []struct {
		name string
		make func() *fakePHY
		set  func(*Config)
	}{
		{"clause 22", newPHY, func(c *Config) { c.Reset, c.Advertise = true, core.Mode1000Full|core.Mode100Full }},
		{"both", func() *fakePHY { return newPHY45(true) }, func(c *Config) {
			clause45Config(c)
			c.Advertise = core.Mode2500Full | core.Mode100Full
		}},
		{"clause 45", func() *fakePHY { return newPHY45(false) }, func(c *Config) {
			clause45Config(c)
			c.Advertise = core.Mode2500Full | core.Mode100Full
		}},
	} {
		t.Run(kind.name, func(t *testing.T) {
			sleeping := func() *fakePHY {
				p := kind.make()
				p.regs[0], p.sleepReads, p.resetReads = 0x1800, 2, 2
				if p.mmd != nil {
					p.mmd[[2]int{1, 0}] |= 1 << 11
				}
				return p
			}
			good := sleeping()
			bus, errs := life(t, good, kind.set, nil)
			if errs != nil {
				t.Fatal(errs)
			}
			if len(bus.log) < 60 {
				t.Fatalf("only %d accesses", len(bus.log))
			}
			for _, what := range []int{lose, lateFault} {
				for k := range bus.log {
					fake := sleeping()
					_, errs := life(t, fake, kind.set, func(n int, _ op) int {
						if n == k {
							return what
						}
						return pass
					})
					if len(errs) != 1 || !errors.Is(errs[0], errBus) {
						t.Errorf("access %d: %v: errors %v", k, bus.log[k], errs)
					}
					if fake.regs != good.regs || !maps.Equal(fake.mmd, good.mmd) {
						t.Errorf("access %d: %v: registers\n%x %x\nwant\n%x %x", k, bus.log[k], fake.regs, fake.mmd, good.regs, good.mmd)
					}
					if fake.restarts < good.restarts || fake.restarts > good.restarts+1 {
						t.Errorf("access %d: %v: %d restarts, %d without the error", k, bus.log[k], fake.restarts, good.restarts)
					}
				}
			}
		})
	}
}

// TestGarbage: whatever the registers read, nothing panics or loops, and a link
// is up only if they say so and it is one that the MAC can do.
func TestGarbage(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		odd := rapid.OneOf(rapid.Uint16(), rapid.SampledFrom([]uint16{0, 0xffff, 0x1140, 0x796d, 0x0800, 0x780d, badRead}))
		sane := newPHY45(true)
		sane.mmd[[2]int{1, 1}], sane.mmd[[2]int{7, 1}] = 0x0004, 0x002d
		sane.regs[1] = 0x796d
		bus := &garbage{regs: map[[2]int]uint16{}, sane: sane}
		bus.draw = func(usual uint16) uint16 {
			if rapid.IntRange(0, 11).Draw(t, "odd") > 0 {
				return usual
			}
			return odd.Draw(t, "register")
		}
		if rapid.Bool().Draw(t, "clause 45 only") {
			sane.regs[2] = 0
		}
		c := config(sim.NewManualClock())
		c.Addr, c.Modes = 0, core.LinkModes(rapid.IntRange(1, int(allModes)).Draw(t, "modes"))
		c.Clause45, c.Reset = rapid.Bool().Draw(t, "clause 45"), rapid.Bool().Draw(t, "reset")
		c.Pause = core.PauseMode(rapid.IntRange(0, int(core.PauseRxTx)).Draw(t, "pause"))
		p, err := Find(t.Context(), bus, c)
		if err != nil {
			return
		}
		id := p.ID()
		if hi, lo := id>>16, id&0xffff; hi == 0xffff || lo == 0xffff || lo == 0 {
			t.Fatalf("ID %#x was accepted", id)
		}
		_ = p.Start(t.Context())
		for range rapid.IntRange(1, 20).Draw(t, "steps") {
			modes := core.LinkModes(rapid.IntRange(0, int(allModes)).Draw(t, "change"))
			switch rapid.IntRange(0, 9).Draw(t, "do") {
			case 0:
				_ = p.SetAdvertise(modes)
			case 1:
				_ = p.SetForced(modes.Link())
			case 2:
				_ = p.Renegotiate()
			case 3:
				_ = p.Loopback(modes&1 != 0)
			case 4:
				_ = p.PowerDown()
			case 5:
				_ = p.Start(t.Context())
			}
			bus.regs = map[[2]int]uint16{}
			l, _, err := p.Poll()
			if !l.Up || err != nil {
				if l != (core.Link{}) && err == nil {
					t.Fatalf("down with %+v", l)
				}
				continue
			}
			if m := l.Mode(); m == 0 || m&c.Modes == 0 {
				t.Fatalf("link %v, the MAC has %v", l, c.Modes)
			}
			if !l.FullDuplex && (l.RxPause || l.TxPause) {
				t.Fatalf("pause in half duplex: %+v", l)
			}
			if _, ok := p.port.(*clause22); ok {
				bmcr, bmsr := bus.regs[[2]int{-1, 0}], bus.regs[[2]int{-1, 1}]
				if bmcr&(1<<15|1<<11|1<<10) != 0 || bmsr == 0xffff || bmsr&4 == 0 && !p.looped {
					t.Fatalf("up with BMCR %#x, BMSR %#x", bmcr, bmsr)
				}
			}
		}
	})
}

// garbage is a bus that draws each register when it is first read, and keeps it
// until regs is emptied. Most are what was last written, or sane. Writes and
// reads fail now and then.
type garbage struct {
	regs map[[2]int]uint16
	sane *fakePHY
	draw func(usual uint16) uint16
}

// badRead is what a register is drawn as whose read fails.
const badRead = 0xdead

func (g *garbage) get(dev, reg int) (uint16, error) {
	k := [2]int{dev, reg}
	if v, ok := g.regs[k]; ok {
		return v, nil
	}
	usual := g.sane.mmd[k]
	if dev == -1 {
		usual = g.sane.regs[reg]
	}
	v := g.draw(usual)
	g.regs[k] = v
	if v == badRead {
		return 0, errBus
	}
	return v, nil
}

func (g *garbage) Read(_, reg int) (uint16, error)        { return g.get(-1, reg) }
func (g *garbage) Read45(_, dev, reg int) (uint16, error) { return g.get(dev, reg) }

func (g *garbage) Write(_, reg int, v uint16) error {
	g.sane.regs[reg] = v &^ (1<<15 | 1<<9)
	return g.written()
}

func (g *garbage) Write45(_, dev, reg int, v uint16) error {
	g.sane.mmd[[2]int{dev, reg}] = v &^ (1<<15 | 1<<9)
	return g.written()
}

func (g *garbage) written() error {
	if g.draw(0) == badRead {
		return errBus
	}
	return nil
}
