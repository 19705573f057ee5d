package phy

import (
	"testing"

	"github.com/gostmmac/gostmmac/stmmac/internal/core"
)

// priority is annex 28B.3 of IEEE 802.3, best first, with the bits by which
// each mode is advertised in registers 4 and 9, and by a partner in 5 and 10.
var priority = []struct {
	mode                 core.LinkModes
	speed                int
	full                 bool
	anar, gbcr, lp, gbsr uint16
}{
	{core.Mode1000Full, 1000, true, 0, 0x0200, 0, 0x0800},
	{core.Mode1000Half, 1000, false, 0, 0x0100, 0, 0x0400},
	{core.Mode100Full, 100, true, 0x0100, 0, 0x0100, 0},
	{core.Mode100Half, 100, false, 0x0080, 0, 0x0080, 0},
	{core.Mode10Full, 10, true, 0x0040, 0, 0x0040, 0},
	{core.Mode10Half, 10, false, 0x0020, 0, 0x0020, 0},
}

// TestResolution drives all sets of modes of both sides through the state
// machine. The link of the fake is always up, also where there is none.
func TestResolution(t *testing.T) {
	b := started(t, newPHY(), nil)
	for local := 1; local < 64; local++ {
		var m core.LinkModes
		var anar, gbcr uint16
		for i, p := range priority {
			if local>>i&1 != 0 {
				m |= p.mode
				anar |= p.anar
				gbcr |= p.gbcr
			}
		}
		if err := b.phy.SetAdvertise(m); err != nil {
			t.Fatal(err)
		}
		if b.fake.regs[4] != anar|0x0c01 || b.fake.regs[9] != gbcr {
			t.Fatalf("%v: ANAR %#x, GBCR %#x", m, b.fake.regs[4], b.fake.regs[9])
		}
		for partner := range 64 {
			b.fake.regs[5], b.fake.regs[10] = 0x4001, 0x3000
			var want core.Link
			for i, p := range priority {
				if partner>>i&1 != 0 {
					b.fake.regs[5] |= p.lp
					b.fake.regs[10] |= p.gbsr
				}
				if !want.Up && local&partner>>i&1 != 0 {
					want = core.Link{Up: true, Speed: p.speed, FullDuplex: p.full}
				}
			}
			got, _, err := b.phy.Poll()
			if err != nil || got != want {
				t.Fatalf("%v with a partner of %06b: %v, %v, want %v (%s)", m, partner, got, err, want, b.phy.Reason())
			}
		}
	}
}

// TestPauseResolution is table 28B-3 of IEEE 802.3, all sixteen rows, in full
// and half duplex and with every way to override it.
func TestPauseResolution(t *testing.T) {
	const pause, asym = 0x0400, 0x0800
	type row struct {
		local, partner uint16
		rx, tx         bool
	}
	var rows []row
	for _, local := range []uint16{0, asym, pause, pause | asym} {
		for _, partner := range []uint16{0, asym, pause, pause | asym} {
			r := row{local: local, partner: partner}
			switch {
			case local == asym && partner == pause|asym:
				r.tx = true
			case local == pause && partner&pause != 0, local == pause|asym && partner&pause != 0:
				r.rx, r.tx = true, true
			case local == pause|asym && partner == asym:
				r.rx = true
			}
			rows = append(rows, r)
		}
	}
	for _, r := range rows {
		for _, mode := range []core.PauseMode{core.PauseAuto, core.PauseOff, core.PauseRx, core.PauseTx, core.PauseRxTx} {
			for _, full := range []bool{true, false} {
				fake := newPHY()
				// A PHY that does not take the bits leaves those of the table.
				fake.anMask, fake.regs[4] = pause|asym, r.local|0x01e1
				fake.regs[5], fake.regs[10] = 0x4181|r.partner, 0
				if !full {
					fake.regs[5] &^= 0x0100
				}
				b := started(t, fake, func(c *Config) { c.Pause = mode })
				got, _, err := b.phy.Poll()
				if err != nil {
					t.Fatal(err)
				}
				want := core.Link{Up: true, Speed: 100, FullDuplex: full}
				if full {
					switch mode {
					case core.PauseAuto:
						want.RxPause, want.TxPause = r.rx, r.tx
					case core.PauseRx:
						want.RxPause = true
					case core.PauseTx:
						want.TxPause = true
					case core.PauseRxTx:
						want.RxPause, want.TxPause = true, true
					}
				}
				if got != want {
					t.Errorf("local %#x, partner %#x, mode %d: %v, want %v", r.local, r.partner, mode, got, want)
				}
			}
		}
	}
}

// TestPauseAdvertised holds which bits ask for a mode.
func TestPauseAdvertised(t *testing.T) {
	for mode, want := range map[core.PauseMode]uint16{
		core.PauseAuto: 0x0c00, core.PauseOff: 0, core.PauseRx: 0x0c00, core.PauseTx: 0x0800, core.PauseRxTx: 0x0400,
	} {
		b := started(t, newPHY(), func(c *Config) { c.Pause = mode })
		if got := b.fake.regs[4]; got != 0x01e1|want {
			t.Errorf("mode %d: ANAR %#x", mode, got)
		}
	}
}

// TestParallelDetection: a partner that does not negotiate makes the link half
// duplex, whatever else it claims, and that link is taken only if half duplex is
// allowed (several transmit queues forbid it).
func TestParallelDetection(t *testing.T) {
	const full = core.Mode10Full | core.Mode100Full | core.Mode1000Full
	for _, tc := range []struct {
		name    string
		lp      uint16
		aner    uint16
		allowed core.LinkModes
		want    core.Link
		reason  string
	}{
		{"100", 0x0080, 0, allModes, half100, ""},
		{"10", 0x0020, 0, allModes, core.Link{Up: true, Speed: 10}, ""},
		{"claims full and pause", 0x0d80, 0, allModes, half100, ""},
		{"100, full duplex only", 0x0080, 0, full | core.Mode2500Full, down, "does not negotiate, so the link is 100baseT/Half"},
		{"unknown speed", 0, 0, allModes, down, "its speed is not known"},
		// A PHY without an expansion register acknowledges all the same.
		{"no expansion register", 0x45e1, 0, allModes, core.Link{Up: true, Speed: 1000, FullDuplex: true, RxPause: true, TxPause: true}, ""},
		{"no acknowledge", 0x05e1, 1, allModes, gigabit, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			fake := newPHY()
			fake.regs[5], fake.regs[6] = tc.lp, tc.aner
			b := started(t, fake, func(c *Config) { c.Modes = tc.allowed &^ core.Mode2500Full })
			b.poll(tc.want, tc.want.Up, tc.reason)
		})
	}
}

// TestHalfDuplexNotAdvertised: what the MAC cannot do is not negotiated.
func TestHalfDuplexNotAdvertised(t *testing.T) {
	b := started(t, newPHY(), func(c *Config) { c.Modes = core.Mode10Full | core.Mode100Full })
	if b.fake.regs[4] != 0x0d41 || b.fake.regs[9] != 0 {
		t.Errorf("ANAR %#x, GBCR %#x", b.fake.regs[4], b.fake.regs[9])
	}
	b.poll(pause100, true, "")
	// Someone else changes what is advertised: that link is not taken.
	b.fake.regs[4], b.fake.regs[5] = 0x00a1, 0x4081
	b.poll(down, true, "was not told to advertise")
}

// TestMasterSlaveFault: the fault is told once by the PHY, and is the reason for
// as long as there is no link.
func TestMasterSlaveFault(t *testing.T) {
	b := started(t, newPHY(), nil)
	b.fake.fault = true
	b.poll(down, false, "MASTER-SLAVE")
	b.fake.link = false
	b.poll(down, false, "MASTER-SLAVE")
	b.fake.link = true
	b.poll(gigabit, true, "")
	b.fake.link, b.fake.complete, b.fake.fault = false, false, true
	b.poll(down, true, "MASTER-SLAVE")
	b.poll(down, false, "MASTER-SLAVE")
	if err := b.phy.Renegotiate(); err != nil {
		t.Fatal(err)
	}
	b.poll(down, false, "no link")
	// A fault that stays keeps the link down.
	b.fake.link, b.fake.regs[10] = true, 0xb800
	b.poll(down, false, "MASTER-SLAVE")
	b.poll(down, false, "MASTER-SLAVE")
}
