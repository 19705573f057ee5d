package gmac4

import (
	"context"
	"errors"
	"math"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gostmmac/gostmmac/mmio"
	"github.com/gostmmac/gostmmac/stmmac/internal/core"
	"github.com/gostmmac/gostmmac/stmmac/sim"
)

const (
	mdioAddress = 0x0200
	mdioData    = 0x0204
)

// newMDIO returns the bus of a MAC on scripted registers with a CSR clock of
// 125 MHz (code 1).
func newMDIO() (*HW, *mmio.Fake, *sim.ManualClock) {
	f, clock := mmio.NewFake(0x2000), sim.NewManualClock()
	h := New(&core.Config{Name: "test", RxQueues: 1, TxQueues: 1, CSRClock: 125_000_000, Clock: clock}, f)
	h.feat.MDIO = true
	f.SelfClearing(mdioAddress, 1, 0)
	return h, f, clock
}

func TestMDIOAccess(t *testing.T) {
	w := func(off, v uint32) mmio.Access { return mmio.Access{Off: off, Val: v, Store: true} }
	r := func(off, v uint32) mmio.Access { return mmio.Access{Off: off, Val: v} }
	const cr = 1 << 8
	for _, tc := range []struct {
		name   string
		do     func(core.MDIOBus) (uint16, error)
		want   uint16
		answer bool
		log    []mmio.Access
	}{
		{"read", func(b core.MDIOBus) (uint16, error) { return b.Read(31, 17) }, 0xbeef, true, []mmio.Access{
			r(mdioAddress, 0), w(mdioData, 0), w(mdioAddress, 31<<21|17<<16|cr|3<<2|1),
			r(mdioAddress, 31<<21|17<<16|cr|3<<2), r(mdioData, 0xbeef)}},
		{"write", func(b core.MDIOBus) (uint16, error) { return 0, b.Write(1, 31, 0x1234) }, 0, false, []mmio.Access{
			r(mdioAddress, 0), w(mdioData, 0x1234), w(mdioAddress, 1<<21|31<<16|cr|1<<2|1),
			r(mdioAddress, 1<<21|31<<16|cr|1<<2)}},
		{"read45", func(b core.MDIOBus) (uint16, error) { return b.Read45(2, 7, 0x8020) }, 0xbeef, true, []mmio.Access{
			r(mdioAddress, 0), w(mdioData, 0x8020<<16), w(mdioAddress, 2<<21|7<<16|cr|3<<2|2|1),
			r(mdioAddress, 2<<21|7<<16|cr|3<<2|2), r(mdioData, 0x8020<<16|0xbeef)}},
		{"write45", func(b core.MDIOBus) (uint16, error) { return 0, b.Write45(0, 31, 0xffff, 0xa55a) }, 0, false, []mmio.Access{
			r(mdioAddress, 0), w(mdioData, 0xffff<<16|0xa55a), w(mdioAddress, 31<<16|cr|1<<2|2|1),
			r(mdioAddress, 31<<16|cr|1<<2|2)}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			h, f, _ := newMDIO()
			if tc.answer {
				f.OnStore(mdioAddress, func(uint32) { f.Set(mdioData, f.Peek(mdioData)|0xbeef) })
			}
			got, err := tc.do(h.MDIO())
			if err != nil || got != tc.want {
				t.Errorf("got %#x, %v", got, err)
			}
			if log := f.Log(); !slices.Equal(log, tc.log) {
				t.Errorf("accesses\n%v\nwant\n%v", log, tc.log)
			}
		})
	}
}

// TestMDIOAbsentPHY: the register keeps what was stored when nobody answers, so
// that an older answer is never taken for one of an absent PHY.
func TestMDIOAbsentPHY(t *testing.T) {
	h, f, _ := newMDIO()
	f.Set(mdioData, 0x0362)
	if v, err := h.MDIO().Read(3, 2); err != nil || v != 0 {
		t.Errorf("got %#x, %v", v, err)
	}
}

// TestMDCDivider holds MDC at 2.5 MHz or below in every access (case D56).
func TestMDCDivider(t *testing.T) {
	// Dividers by code, from the databook.
	dividers := [8]float64{42, 62, 16, 26, 102, 124, 204, 324}
	for _, tc := range []struct {
		mhz  float64
		code uint32
	}{
		{1, 2}, {2.5, 2}, {20, 2}, {34.9, 2}, {35, 2}, {35.1, 3}, {59.9, 3}, {60, 3}, {60.1, 0}, {99.9, 0}, {100, 0}, {125, 1},
		{149.9, 1}, {150, 1}, {150.1, 4}, {250, 4}, {250.1, 5}, {299.9, 5}, {300, 5}, {300.1, 6}, {500, 6}, {500.1, 7}, {799, 7}, {800, 7},
	} {
		h, f, _ := newMDIO()
		h.cfg.CSRClock = uint64(math.Round(tc.mhz * 1e6))
		b := h.MDIO()
		for range 2 {
			_, err1 := b.Read(0, 1)
			err2 := b.Write(0, 0, 0)
			_, err3 := b.Read45(0, 1, 5)
			err4 := b.Write45(0, 7, 0, 0)
			if err := errors.Join(err1, err2, err3, err4); err != nil {
				t.Fatalf("%v MHz: %v", tc.mhz, err)
			}
		}
		stores := 0
		for _, a := range f.Log() {
			if !a.Store || a.Off != mdioAddress {
				continue
			}
			stores++
			code := a.Val >> 8 & 0xf
			if code != tc.code {
				t.Errorf("%v MHz: code %d, want %d", tc.mhz, code, tc.code)
			}
			if mdc := tc.mhz / dividers[code]; mdc > 2.5 {
				t.Errorf("%v MHz: MDC is %v MHz", tc.mhz, mdc)
			}
		}
		if stores != 8 {
			t.Errorf("%v MHz: %d accesses, want 8", tc.mhz, stores)
		}
	}
}

func TestMDIORefuses(t *testing.T) {
	for _, tc := range []struct {
		name string
		set  func(*HW)
		do   func(core.MDIOBus) error
		want error
		text string
	}{
		{"no CSR clock", func(h *HW) { h.cfg.CSRClock = 0 }, nil, os.ErrInvalid, "set Config.CSRClock"},
		{"CSR clock too fast", func(h *HW) { h.cfg.CSRClock = 800_000_001 }, nil, os.ErrInvalid, "at most 800 MHz"},
		{"no MDIO", func(h *HW) { h.feat.MDIO = false }, nil, errors.ErrUnsupported, "SMASEL"},
		{"address 32", nil, func(b core.MDIOBus) error { _, err := b.Read(32, 0); return err }, os.ErrInvalid, "PHY 32 register 0"},
		{"address -1", nil, func(b core.MDIOBus) error { return b.Write(-1, 0, 0) }, os.ErrInvalid, "PHY -1"},
		{"register 32", nil, func(b core.MDIOBus) error { _, err := b.Read(0, 32); return err }, os.ErrInvalid, "register 32"},
		{"device 32", nil, func(b core.MDIOBus) error { _, err := b.Read45(0, 32, 0); return err }, os.ErrInvalid, "register 32.0"},
		{"register 65536", nil, func(b core.MDIOBus) error { return b.Write45(0, 1, 1<<16, 0) }, os.ErrInvalid, "register 1.65536"},
		{"register -1", nil, func(b core.MDIOBus) error { _, err := b.Read45(0, 1, -1); return err }, os.ErrInvalid, "register 1.-1"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			h, f, _ := newMDIO()
			if tc.set != nil {
				tc.set(h)
			}
			do := tc.do
			if do == nil {
				do = func(b core.MDIOBus) error { _, err := b.Read(0, 0); return err }
			}
			err := do(h.MDIO())
			var e *core.Error
			if !errors.Is(err, tc.want) || !errors.As(err, &e) || !strings.Contains(err.Error(), tc.text) {
				t.Errorf("got %v", err)
			}
			if log := f.Log(); len(log) != 0 {
				t.Errorf("accesses %v", log)
			}
		})
	}
}

// TestMDIOBusy bounds the wait before and the wait after an access.
func TestMDIOBusy(t *testing.T) {
	for _, before := range []bool{true, false} {
		h, f, clock := newMDIO()
		f.SelfClearing(mdioAddress, 1, -1)
		if before {
			f.Set(mdioAddress, 0x0061_0401)
		}
		_, err := h.MDIO().Read(3, 1)
		var e *core.Error
		if !errors.As(err, &e) || !errors.Is(err, os.ErrDeadlineExceeded) || e.Reg != "MAC_MDIO_Address" || e.Val&1 == 0 || e.Dev != "test" {
			t.Errorf("before %v: %v", before, err)
		}
		if now := clock.Now(); now < 10*time.Millisecond || now > 11*time.Millisecond {
			t.Errorf("before %v: waited %v", before, now)
		}
		stored := slices.ContainsFunc(f.Log(), func(a mmio.Access) bool { return a.Store })
		if stored == before {
			t.Errorf("before %v: stored %v", before, stored)
		}
		// A bus that recovers is used again.
		f.Set(mdioAddress, 0)
		f.SelfClearing(mdioAddress, 1, 3)
		if _, err := h.MDIO().Read(3, 1); err != nil {
			t.Error(err)
		}
	}
}

func TestMDIOGone(t *testing.T) {
	// after counts the loads until the device is gone.
	for after := range 3 {
		h, f, clock := newMDIO()
		n := 0
		gone := func(v uint32) uint32 {
			if n++; n > after {
				return mmio.AllOnes
			}
			return v
		}
		f.OnLoad(mdioAddress, gone)
		f.OnLoad(mdioData, gone)
		_, err := h.MDIO().Read(0, 2)
		var e *core.Error
		if !errors.Is(err, core.ErrGone) || !errors.As(err, &e) || e.Reg != "MAC_MDIO_Address" || e.Val != mmio.AllOnes {
			t.Errorf("after %d loads: %v", after, err)
		}
		if clock.Now() > 0 {
			t.Errorf("after %d loads: waited %v for a device that is gone", after, clock.Now())
		}
	}
	// All ones in the data alone is an answer.
	h, f, _ := newMDIO()
	f.OnLoad(mdioData, func(uint32) uint32 { return mmio.AllOnes })
	if v, err := h.MDIO().Read45(0, 30, 0xffff); err != nil || v != 0xffff {
		t.Errorf("got %#x, %v", v, err)
	}
}

var errBroken = errors.New("no sleep")

// brokenClock is a clock whose Sleep fails.
type brokenClock struct{ *sim.ManualClock }

func (brokenClock) Sleep(context.Context, time.Duration) error { return errBroken }

// TestMDIOClockEnds: a clock that does not sleep ends the wait.
func TestMDIOClockEnds(t *testing.T) {
	h, f, _ := newMDIO()
	f.SelfClearing(mdioAddress, 1, -1)
	h.cfg.Clock = brokenClock{sim.NewManualClock()}
	if err := h.MDIO().Write(0, 0, 0); !errors.Is(err, errBroken) {
		t.Errorf("got %v", err)
	}
}

// TestLinkModes holds that every mode named is one that SetLink takes.
func TestLinkModes(t *testing.T) {
	all := core.Mode10Half | core.Mode10Full | core.Mode100Half | core.Mode100Full | core.Mode1000Full | core.Mode2500Full
	for _, tc := range []struct {
		feat core.Features
		tx   int
		want core.LinkModes
	}{
		{core.Features{MII: true, GMII: true, HalfDuplex: true}, 1, all},
		{core.Features{MII: true, GMII: true, HalfDuplex: true}, 2, all},
		{core.Features{MII: true, GMII: true}, 1, all &^ core.HalfDuplexModes},
		{core.Features{MII: true, HalfDuplex: true}, 1, core.Mode10Half | core.Mode10Full | core.Mode100Half | core.Mode100Full},
		{core.Features{GMII: true, HalfDuplex: true}, 1, core.Mode1000Full | core.Mode2500Full},
		{core.Features{HalfDuplex: true}, 1, all},
		{core.Features{}, 4, all &^ core.HalfDuplexModes},
	} {
		h, _, _ := newMDIO()
		h.feat, h.tx = tc.feat, tc.tx
		got := h.LinkModes()
		if got != tc.want {
			t.Errorf("%+v with %d queues: %v, want %v", tc.feat, tc.tx, got, tc.want)
		}
		for m := core.LinkModes(1); m != 0; m <<= 1 {
			if got&m == 0 {
				continue
			}
			if err := h.SetLink(m.Link()); err != nil {
				t.Errorf("%v: %v", m, err)
			}
		}
	}
}
