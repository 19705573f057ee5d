package phy

import (
	"errors"
	"testing"

	"github.com/gostmmac/gostmmac/stmmac/internal/core"
	"github.com/gostmmac/gostmmac/stmmac/sim"
)

// newPHY45 is a PHY of 10/100/2500 by clause 45. With22 it has the registers of
// clause 22 too, and so 1000.
func newPHY45(with22 bool) *fakePHY {
	p := newPHY()
	devs := uint16(1<<1 | 1<<3 | 1<<7)
	if with22 {
		devs |= 1
	}
	p.no22 = !with22
	p.mmd = map[[2]int]uint16{
		{1, 0}: 0x2058, {1, 2}: 0x03a1, {1, 3}: 0xb4a1, {1, 5}: devs, {1, 11}: 0x41a0, {1, 21}: 0x0003,
		{7, 0}: 0x3000, {7, 1}: 0x0009, {7, 16}: 0x91e1, {7, 19}: 0xcde1, {7, 32}: 0x1182, {7, 33}: 0x0020,
	}
	return p
}

func clause45Config(c *Config) { c.Clause45, c.Modes = true, allModes }

var link2500 = core.Link{Up: true, Speed: 2500, FullDuplex: true, RxPause: true, TxPause: true}

// TestClause45Both: a PHY with registers of both clauses negotiates 2500BASE-T
// by clause 45, if that is asked for, and the rest by clause 22.
func TestClause45Both(t *testing.T) {
	b := started(t, newPHY45(true), clause45Config)
	if b.phy.ID() != 0x03a1b4a1 || b.phy.Abilities() != allModes {
		t.Errorf("ID %#x, abilities %v", b.phy.ID(), b.phy.Abilities())
	}
	// Not named, so not advertised; 5G and 10G neither.
	if got := b.fake.mmd[[2]int{7, 32}]; got != 0x0002 {
		t.Errorf("7.32 is %#x", got)
	}
	b.poll(gigabit, true, "")
	if err := b.phy.SetAdvertise(core.Mode2500Full | core.Mode100Full); err != nil {
		t.Fatal(err)
	}
	if got := b.fake.mmd[[2]int{7, 32}]; got != 0x0082 || b.fake.regs[4] != 0x0d01 || b.fake.regs[9] != 0 {
		t.Errorf("7.32 is %#x, ANAR %#x, GBCR %#x", got, b.fake.regs[4], b.fake.regs[9])
	}
	b.poll(link2500, true, "")
	b.fake.mmd[[2]int{7, 33}] = 0
	b.poll(pause100, true, "")
	b.fake.mmd[[2]int{7, 33}] = 0x8020
	b.poll(down, true, "MASTER-SLAVE")
	b.fake.mmd[[2]int{7, 33}] = 0x0020
	b.poll(link2500, true, "")
	if err := b.phy.SetForced(core.Link{Speed: 2500, FullDuplex: true}); err != nil {
		t.Fatal(err)
	}
	if b.fake.regs[4] != 0x0c01 || b.fake.regs[0] != 0x1000 {
		t.Errorf("ANAR %#x, BMCR %#x", b.fake.regs[4], b.fake.regs[0])
	}
	b.poll(link2500, true, "")
	// The loopback is by clause 22, which has no 2500.
	if err := b.phy.Loopback(true); err != nil || b.fake.regs[0] != 0x4140 {
		t.Errorf("%v, BMCR %#x", err, b.fake.regs[0])
	}
}

// TestClause45Without2500: neither a PMA without the extended register nor one
// without the bit in it has 2500BASE-T.
func TestClause45Without2500(t *testing.T) {
	for _, reg := range []int{11, 21} {
		fake := newPHY45(true)
		fake.mmd[[2]int{1, reg}] &^= 1<<14 | 1
		b := started(t, fake, clause45Config)
		if b.phy.Abilities() != allModes&^core.Mode2500Full {
			t.Errorf("1.%d: %v", reg, b.phy.Abilities())
		}
	}
}

// TestClause45Only is a PHY that does not answer by clause 22.
func TestClause45Only(t *testing.T) {
	const able = allModes &^ (core.Mode1000Half | core.Mode1000Full)
	b := started(t, newPHY45(false), func(c *Config) {
		clause45Config(c)
		c.Advertise = core.Mode10Full | core.Mode2500Full
	})
	m := b.fake.mmd
	if b.phy.Abilities() != able {
		t.Errorf("abilities %v", b.phy.Abilities())
	}
	// Next pages, and enable of extended ones, stay as the PHY has them.
	if m[[2]int{7, 16}] != 0x9c41 || m[[2]int{7, 32}] != 0x0082 || m[[2]int{7, 0}] != 0x3000 || b.fake.restarts != 1 {
		t.Errorf("7.16 %#x, 7.32 %#x, 7.0 %#x, %d restarts", m[[2]int{7, 16}], m[[2]int{7, 32}], m[[2]int{7, 0}], b.fake.restarts)
	}
	b.poll(link2500, true, "")
	b.fake.drop()
	b.poll(link2500, true, "")
	m[[2]int{7, 33}] = 0
	b.poll(core.Link{Up: true, Speed: 10, FullDuplex: true, RxPause: true, TxPause: true}, true, "")
	if err := b.phy.SetAdvertise(able &^ core.Mode2500Full); err != nil {
		t.Fatal(err)
	}
	m[[2]int{7, 1}], m[[2]int{7, 19}] = 0x0008, 0x0081
	b.poll(half100, true, "")
	b.fake.link, b.fake.complete = false, false
	b.poll(down, true, "is running")
	m[[2]int{7, 33}] = 0x8000
	b.poll(down, false, "MASTER-SLAVE")
	m[[2]int{7, 33}], b.fake.link, b.fake.complete = 0, true, true
	b.poll(half100, true, "")
	for reg, reason := range map[[2]int]string{{1, 0}: "does not answer", {7, 0}: "does not answer", {7, 1}: "does not answer"} {
		old := m[reg]
		m[reg] = 0xffff
		b.poll(down, true, reason)
		m[reg] = old
		b.poll(half100, true, "")
	}
	m[[2]int{7, 0}] &^= 1 << 12
	b.poll(down, true, "negotiation is off")
	if err := b.phy.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	b.poll(half100, true, "")
	if err := b.phy.PowerDown(); err != nil || m[[2]int{1, 0}] != 0x2858 {
		t.Errorf("%v, 1.0 %#x", err, m[[2]int{1, 0}])
	}
	b.poll(down, true, "on request")
	if err := b.phy.Start(t.Context()); err != nil || m[[2]int{1, 0}] != 0x2058 {
		t.Errorf("%v, 1.0 %#x", err, m[[2]int{1, 0}])
	}
	b.poll(half100, true, "")
	for _, err := range []error{b.phy.Loopback(true), b.phy.SetForced(full100)} {
		if !errors.Is(err, errors.ErrUnsupported) {
			t.Error(err)
		}
	}
	b.poll(half100, false, "")
	for _, o := range b.bus.log {
		if o.write && o.dev == -1 {
			t.Errorf("wrote by clause 22: %v", o)
		}
	}
}

func TestClause45Reset(t *testing.T) {
	b := newBench(t, newPHY45(false), func(c *Config) {
		clause45Config(c)
		c.Reset = true
	})
	b.clock.AfterFunc(50e6, func() { b.fake.mmd[[2]int{1, 0}] = 0x2058 })
	if err := b.phy.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, o := range b.bus.log {
		if o.write && o.dev == 1 && o.reg == 0 && o.val == 0xa058 {
			n++
		}
	}
	if n != 1 || b.clock.Now() < 50e6 {
		t.Errorf("%d resets, %v", n, b.clock.Now())
	}
}

func TestClause45Find(t *testing.T) {
	for _, tc := range []struct {
		name string
		set  func(p *fakePHY, c *Config)
		want error
		text string
	}{
		{"clause 22 PHY", func(p *fakePHY, _ *Config) { p.mmd = nil }, core.ErrNoPHY, "by clause 45"},
		{"no devices", func(p *fakePHY, _ *Config) { p.mmd[[2]int{1, 5}] = 0 }, core.ErrNoPHY, "0x00000000 at 32"},
		{"all ones", func(p *fakePHY, _ *Config) { p.mmd[[2]int{1, 6}] = 0xffff }, core.ErrNoPHY, "at 32"},
		{"no identifier", func(p *fakePHY, _ *Config) { p.mmd[[2]int{1, 2}] = 0xffff }, core.ErrNoPHY, "at 32"},
		{"no AN", func(p *fakePHY, _ *Config) { p.mmd[[2]int{1, 5}] &^= 1 << 7 }, errors.ErrUnsupported, "neither registers of clause 22"},
		{"forced", func(_ *fakePHY, c *Config) { c.Forced = &full100 }, errors.ErrUnsupported, "have no duplex"},
		{"other device", func(p *fakePHY, _ *Config) {
			p.mmd[[2]int{7, 5}], p.mmd[[2]int{7, 2}], p.mmd[[2]int{7, 3}] = p.mmd[[2]int{1, 5}], 1, 2
			delete(p.mmd, [2]int{1, 5})
		}, nil, ""},
		// It claims registers of clause 22 and has none.
		{"false claim", func(p *fakePHY, _ *Config) { p.mmd[[2]int{1, 5}] |= 1 }, nil, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			bus, cfg := &fakeBus{}, config(sim.NewManualClock())
			clause45Config(&cfg)
			bus.phys[9] = newPHY45(false)
			tc.set(bus.phys[9], &cfg)
			p, err := Find(t.Context(), bus, cfg)
			if !errors.Is(err, tc.want) || err != nil && !contains(err.Error(), tc.text) {
				t.Fatal(err)
			}
			if err == nil && (p.Addr() != 9 || p.forcer != nil) {
				t.Errorf("at %d, by clause 22: %v", p.Addr(), p.forcer != nil)
			}
			if bus.wrote() {
				t.Error("wrote")
			}
		})
	}
}
