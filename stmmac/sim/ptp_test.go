package sim

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	r4 "github.com/gostmmac/gostmmac/stmmac/internal/regs/gmac4reg"
)

func withPTP() rigOption {
	return withConfig(func(c *Config) { c.Timestamp, c.PTPClock = true, 50_000_000 })
}

// command sets bits of MAC_Timestamp_Control and lets them take effect.
func (g *rig) command(bits r4.TimestampControl) {
	g.t.Helper()
	r4.MACTimestampControl.Update(g.r, 0, bits)
	if r4.MACTimestampControl.Load(g.r)&bits != bits {
		g.t.Fatalf("%v clears itself at once", bits)
	}
	g.clock.Advance(ptpAccessTime)
	if v := r4.MACTimestampControl.Load(g.r) & bits; v != 0 {
		g.t.Fatalf("%v stays", v)
	}
}

func (g *rig) systemTime() (sec, sub uint32) {
	return r4.MACSystemTimeSec.Load(g.r), r4.MACSystemTimeNs.Load(g.r)
}

// setTime initializes the system time.
func (g *rig) setTime(sec uint32, sub r4.TimeNsUpdate) {
	g.t.Helper()
	r4.MACSystemTimeSecUpdate.Store(g.r, sec)
	r4.MACSystemTimeNsUpdate.Store(g.r, sub)
	g.command(r4.TSINIT)
}

// TestSystemTimeRate: how fast the time runs, in both rollover and both update modes.
func TestSystemTimeRate(t *testing.T) {
	const digital, fine, on = r4.TSCTRLSSR, r4.TSCFUPDT, r4.TSENA
	for _, c := range []struct {
		name   string
		ctl    r4.TimestampControl
		inc    r4.SubSecondIncrement
		addend uint32
		after  time.Duration
		sec    uint32
		sub    uint32
	}{
		{"20 ns a clock", on | digital, r4.SSINC.Of(20), 0, 1500 * time.Millisecond, 101, 500_000_000},
		{"twice as fast", on | digital, r4.SSINC.Of(40), 0, 1500 * time.Millisecond, 103, 0},
		{"half a nanosecond more", on | digital, r4.SSINC.Of(20) | r4.SNSINC.Of(128), 0, time.Second, 101, 25_000_000},
		{"coarse does not look at the addend", on | digital, r4.SSINC.Of(20), 1 << 30, time.Second, 101, 0},
		{"fine at half the clock", on | fine | digital, r4.SSINC.Of(40), 1 << 31, time.Second, 101, 0},
		{"fine, a little slower", on | fine | digital, r4.SSINC.Of(40), 1<<31 - 1<<21, time.Second, 100, 999_023_437},
		{"fine without addend", on | fine | digital, r4.SSINC.Of(40), 0, time.Second, 100, 0},
		{"binary, to the nanosecond below", on, r4.SSINC.Of(43), 0, time.Second, 101, 2_516_351},
		{"no increment", on | digital, 0, 0, time.Second, 100, 0},
		{"off", digital, r4.SSINC.Of(20), 0, time.Second, 100, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			g := newRig(t, withPTP())
			g.open()
			r4.MACTimestampControl.Store(g.r, c.ctl&^r4.TSENA)
			r4.MACSubSecondIncrement.Store(g.r, c.inc)
			r4.MACTimestampAddend.Store(g.r, c.addend)
			g.command(r4.TSADDREG)
			g.setTime(100, 0)
			r4.MACTimestampControl.Update(g.r, 0, c.ctl)
			g.clock.Advance(c.after)
			if sec, sub := g.systemTime(); sec != c.sec || sub != c.sub {
				t.Errorf("%d s and %d, want %d and %d", sec, sub, c.sec, c.sub)
			}
			g.clean()
		})
	}
}

// TestSystemTimeUpdate: adding and subtracting, in the two's complement way of GMAC4.
func TestSystemTimeUpdate(t *testing.T) {
	for _, c := range []struct {
		name     string
		ctl      r4.TimestampControl
		sec, sub uint32
		upSec    uint32
		up       r4.TimeNsUpdate
		wantSec  uint32
		wantSub  uint32
	}{
		{"add", r4.TSCTRLSSR, 10, 500_000_000, 2, 300_000_000, 12, 800_000_000},
		{"add with a carry", r4.TSCTRLSSR, 10, 500_000_000, 2, 700_000_000, 13, 200_000_000},
		{"subtract", r4.TSCTRLSSR, 10, 500_000_000, ^uint32(2) + 1, r4.ADDSUB | (1_000_000_000 - 300_000_000), 8, 200_000_000},
		{"subtract with a borrow", r4.TSCTRLSSR, 10, 500_000_000, ^uint32(2) + 1, r4.ADDSUB | (1_000_000_000 - 700_000_000), 7, 800_000_000},
		{"subtract whole seconds", r4.TSCTRLSSR, 10, 5, ^uint32(3) + 1, r4.ADDSUB | 1_000_000_000, 7, 5},
		{"subtract nanoseconds alone", r4.TSCTRLSSR, 10, 5, 0, r4.ADDSUB | (1_000_000_000 - 5), 10, 0},
		{"around zero", r4.TSCTRLSSR, 0, 0, 0, r4.ADDSUB | (1_000_000_000 - 1), ^uint32(0), 999_999_999},
		{"around the end", r4.TSCTRLSSR, ^uint32(0), 999_999_999, 0, 1, 0, 0},
		{"binary add", 0, 10, 1 << 30, 0, 1 << 30, 11, 0},
		{"binary subtract", 0, 10, 1 << 30, 0, r4.ADDSUB | (1<<31 - 1<<29), 10, 1 << 29},
	} {
		t.Run(c.name, func(t *testing.T) {
			g := newRig(t, withPTP())
			g.open()
			r4.MACTimestampControl.Store(g.r, r4.TSENA|c.ctl)
			g.setTime(c.sec, r4.TimeNsUpdate(c.sub))
			r4.MACSystemTimeSecUpdate.Store(g.r, c.upSec)
			r4.MACSystemTimeNsUpdate.Store(g.r, c.up)
			g.command(r4.TSUPDT)
			if sec, sub := g.systemTime(); sec != c.wantSec || sub != c.wantSub {
				t.Errorf("%d s and %d, want %d and %d", sec, sub, c.wantSec, c.wantSub)
			}
			g.clean()
		})
	}
}

// TestSystemTimeChanges: a change of rate or rollover leaves the time as it is.
func TestSystemTimeChanges(t *testing.T) {
	g := newRig(t, withPTP())
	g.open()
	r4.MACSubSecondIncrement.Store(g.r, r4.SSINC.Of(20))
	r4.MACTimestampControl.Store(g.r, r4.TSENA|r4.TSCTRLSSR)
	g.setTime(5, 0)
	g.clock.Advance(250 * time.Millisecond)
	r4.MACSubSecondIncrement.Store(g.r, r4.SSINC.Of(40))
	g.clock.Advance(250 * time.Millisecond)
	r4.MACTimestampControl.Update(g.r, r4.TSCTRLSSR, 0)
	if sec, sub := g.systemTime(); sec != 5 || sub != 3<<29 {
		t.Errorf("%d s and %d, want 5 and %d", sec, sub, 3<<29)
	}
	r4.MACTimestampControl.Store(g.r, 0)
	g.clock.Advance(time.Hour)
	if sec, _ := g.systemTime(); sec != 5 {
		t.Errorf("%d s after an hour without TSENA", sec)
	}
	g.reset()
	if sec, sub := g.systemTime(); sec != 0 || sub != 0 || r4.MACTimestampControl.Load(g.r) != r4.MACTimestampControlReset {
		t.Errorf("%d s and %d, control %v after reset", sec, sub, r4.MACTimestampControl.Load(g.r))
	}
	g.clean()
}

// TestSystemTimeMisuse: a command while the last one is under way, and times beyond a
// second.
func TestSystemTimeMisuse(t *testing.T) {
	for _, c := range []struct {
		name string
		do   func(g *rig)
		want []ViolationKind
	}{
		{"one after the other", func(g *rig) { g.setTime(1, 2); g.setTime(3, 4) }, nil},
		{"at once", func(g *rig) { g.command(r4.TSINIT | r4.TSADDREG) }, nil},
		{"TSINIT during TSINIT", func(g *rig) {
			r4.MACTimestampControl.Store(g.r, r4.TSINIT)
			r4.MACTimestampControl.Store(g.r, r4.TSINIT)
		}, []ViolationKind{ConfigRunning}},
		{"TSUPDT during TSADDREG", func(g *rig) {
			r4.MACTimestampControl.Store(g.r, r4.TSADDREG)
			r4.MACTimestampControl.Update(g.r, 0, r4.TSUPDT)
		}, []ViolationKind{ConfigRunning}},
		{"a second of nanoseconds", func(g *rig) {
			r4.MACTimestampControl.Store(g.r, r4.TSCTRLSSR)
			g.setTime(1, 1_000_000_000)
		}, []ViolationKind{ConfigInvalid}},
	} {
		g := newRig(t, withPTP())
		g.open()
		c.do(g)
		g.clock.Advance(time.Second)
		if v := r4.MACTimestampControl.Load(g.r) & (r4.TSINIT | r4.TSUPDT | r4.TSADDREG); v != 0 {
			t.Errorf("%s: %v stays", c.name, v)
		}
		if len(c.want) == 0 {
			g.clean()
		} else {
			g.wantKinds(c.want...)
		}
	}
}

// TestSystemTimeNeedsTheFeature: without it the registers read as 0.
func TestSystemTimeNeedsTheFeature(t *testing.T) {
	for _, has := range []bool{false, true} {
		g := newRig(t, withConfig(func(c *Config) { c.Timestamp = has }))
		g.open()
		if v := r4.MACHWFeature0.Load(g.r)&r4.TSSEL != 0; v != has {
			t.Errorf("TSSEL %v", v)
		}
		for off := uint32(0x0b00); off < 0x0b24; off += 4 {
			g.r.Store32(off, ^uint32(0))
			if v := g.r.Load32(off); !has && v != 0 {
				t.Errorf("%#x reads %#x", off, v)
			}
		}
	}
}

// TestSystemTimeRandom: no value of the registers makes the time panic, or its
// subseconds more than a second.
func TestSystemTimeRandom(t *testing.T) {
	g := newRig(t, withPTP(), withConfig(func(c *Config) { c.NoAudit = true }))
	g.open()
	rapid.Check(t, func(rt *rapid.T) {
		for range 20 {
			if rapid.Bool().Draw(rt, "store") {
				off := rapid.Uint32Range(0, 8).Draw(rt, "register")
				g.r.Store32(0x0b00+4*off, rapid.Uint32().Draw(rt, "value"))
			}
			g.clock.Advance(time.Duration(rapid.Int64Range(0, 1e15).Draw(rt, "ns")))
			end := uint32(1 << 31)
			if r4.MACTimestampControl.Load(g.r)&r4.TSCTRLSSR != 0 {
				end = 1_000_000_000
			}
			if _, sub := g.systemTime(); sub >= end {
				rt.Fatalf("%d of %d", sub, end)
			}
		}
	})
}
