package phy

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/gostmmac/gostmmac/stmmac/internal/core"
	"github.com/gostmmac/gostmmac/stmmac/sim"
)

func contains(s, part string) bool { return strings.Contains(s, part) }

func withID(hi, lo uint16) *fakePHY {
	p := newPHY()
	p.regs[2], p.regs[3] = hi, lo
	return p
}

// TestFindRejects holds which identifiers are none (case D57), and that nothing
// is written to what was not accepted.
func TestFindRejects(t *testing.T) {
	for _, tc := range []struct {
		hi, lo  uint16
		scanned bool // accepted by a scan
		given   bool // accepted at an address that was given
	}{
		{0x0000, 0x0000, false, false},
		{0xffff, 0xffff, false, false},
		{0x0000, 0xffff, false, false},
		{0xffff, 0x0000, false, false},
		{0x0362, 0x0000, false, false},
		{0x0362, 0xffff, false, false},
		{0xffff, 0x5e6a, false, false},
		{0x0000, 0x8201, false, true}, // RTL8201
		{0x0362, 0x5e6a, true, true},
	} {
		for _, given := range []bool{false, true} {
			bus, clock := &fakeBus{}, sim.NewManualClock()
			bus.phys[5] = withID(tc.hi, tc.lo)
			cfg, want := config(clock), tc.scanned
			if given {
				cfg.Addr, want = 5, tc.given
			}
			p, err := Find(t.Context(), bus, cfg)
			if (err == nil) != want {
				t.Errorf("%#x %#x, given %v: %v", tc.hi, tc.lo, given, err)
			}
			if err == nil && (p.Addr() != 5 || p.ID() != uint32(tc.hi)<<16|uint32(tc.lo)) {
				t.Errorf("found %#x at %d", p.ID(), p.Addr())
			}
			if err != nil && !errors.Is(err, core.ErrNoPHY) {
				t.Error(err)
			}
			if bus.wrote() {
				t.Errorf("%#x %#x, given %v: wrote %v", tc.hi, tc.lo, given, bus.log)
			}
		}
	}
}

func TestFindPrefersLowest(t *testing.T) {
	bus := &fakeBus{absent: 0xffff}
	bus.phys[3], bus.phys[4], bus.phys[31] = withID(0, 0), newPHY(), newPHY()
	p, err := Find(t.Context(), bus, config(sim.NewManualClock()))
	if err != nil || p.Addr() != 4 {
		t.Fatalf("%+v, %v", p, err)
	}
	cfg := config(sim.NewManualClock())
	cfg.Addr = 31
	if p, err = Find(t.Context(), bus, cfg); err != nil || p.Addr() != 31 {
		t.Fatalf("%+v, %v", p, err)
	}
}

// TestFindNothing says what was read and what to look at, after 0.5 s.
func TestFindNothing(t *testing.T) {
	bus, clock := &fakeBus{absent: 0}, sim.NewManualClock()
	for addr := range 9 {
		bus.phys[addr] = withID(0xffff, 0xffff)
	}
	for i := range 4 {
		bus.phys[10+i] = withID(0, uint16(0xfff0*(i+1)))
	}
	_, err := Find(t.Context(), bus, config(clock))
	var e *core.Error
	if !errors.As(err, &e) || !errors.Is(err, core.ErrNoPHY) || e.Dev != "test" {
		t.Fatal(err)
	}
	for _, part := range []string{"0x00000000 at 19", "0xffffffff at 9", "…", "powered", "clock"} {
		if !contains(err.Error(), part) {
			t.Errorf("%q is not in %v", part, err)
		}
	}
	if now := clock.Now(); now < 500*time.Millisecond || now > 600*time.Millisecond {
		t.Errorf("looked for %v", now)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Find(ctx, bus, config(clock)); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// TestFindLate finds a PHY that is let out of its reset late (case D52).
func TestFindLate(t *testing.T) {
	for _, late := range []time.Duration{0, 30 * time.Millisecond, 200 * time.Millisecond} {
		bus, clock := &fakeBus{absent: 0xffff}, sim.NewManualClock()
		clock.AfterFunc(late, func() { bus.phys[7] = newPHY() })
		p, err := Find(t.Context(), bus, config(clock))
		if err != nil || p.Addr() != 7 {
			t.Errorf("%v late: %v", late, err)
		}
		if now := clock.Now(); now > late+20*time.Millisecond {
			t.Errorf("%v late: found after %v", late, now)
		}
	}
}

func TestFindRefuses(t *testing.T) {
	for _, tc := range []struct {
		name string
		set  func(*Config)
		want error
		text string
	}{
		{"address 32", func(c *Config) { c.Addr = 32 }, os.ErrInvalid, "address 32"},
		{"address -2", func(c *Config) { c.Addr = -2 }, os.ErrInvalid, "address -2"},
		{"no clock", func(c *Config) { c.Clock = nil }, os.ErrInvalid, "clock"},
		{"negative interval", func(c *Config) { c.PollInterval = -1 }, os.ErrInvalid, "negative"},
		{"negative timeout", func(c *Config) { c.AutonegTimeout = -1 }, os.ErrInvalid, "negative"},
		{"pause", func(c *Config) { c.Pause = 9 }, os.ErrInvalid, "pause mode 9"},
		{"half duplex", func(c *Config) { c.Modes, c.Advertise = core.Mode100Full, core.Mode100Half }, errors.ErrUnsupported, "100baseT/Half: the MAC"},
		{"forced half duplex", func(c *Config) { c.Modes, c.Forced = core.Mode100Full, &half100 }, errors.ErrUnsupported, "100baseT/Half: the MAC"},
		{"forced 40", func(c *Config) { c.Forced = &core.Link{Speed: 40} }, errors.ErrUnsupported, "40 Mbit/s half duplex"},
		{"2500 by clause 22", func(c *Config) { c.Modes, c.Advertise = allModes, core.Mode2500Full }, os.ErrInvalid, "clause 45"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			bus, cfg := &fakeBus{}, config(sim.NewManualClock())
			tc.set(&cfg)
			_, err := Find(t.Context(), bus, cfg)
			var e *core.Error
			if !errors.Is(err, tc.want) || !errors.As(err, &e) || !contains(err.Error(), tc.text) {
				t.Error(err)
			}
			if len(bus.log) != 0 {
				t.Error("accessed the bus")
			}
		})
	}
}
