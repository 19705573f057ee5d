package sim

import (
	"testing"
	"time"

	"github.com/gostmmac/gostmmac/mmio"
	r4 "github.com/gostmmac/gostmmac/stmmac/internal/regs/gmac4reg"
)

const (
	readOp  = r4.MDIOGB | r4.MDIOAddress(r4.MDIOGOCRead<<2)
	writeOp = r4.MDIOGB | r4.MDIOAddress(r4.MDIOGOCWrite<<2)
)

// TestMDIOTime: a frame has 64 bits of MDC, a clause 45 access two frames unless it
// skips the address; busy, and nothing has happened, until the last bit.
func TestMDIOTime(t *testing.T) {
	for _, c := range []struct {
		name string
		hz   uint64
		code uint32
		op   r4.MDIOAddress
		want time.Duration
	}{
		{"clause 22", 125e6, 1, readOp, 64 * 62 * 8},
		{"clause 22, slow divider", 125e6, 4, readOp, 64 * 102 * 8},
		{"clause 22, slow clock", 20e6, 2, readOp, 64 * 16 * 50},
		{"clause 45", 125e6, 1, readOp | r4.MDIOC45E, 128 * 62 * 8},
		{"clause 45, write", 125e6, 1, writeOp | r4.MDIOC45E, 128 * 62 * 8},
		{"clause 45 without address", 125e6, 1, readOp | r4.MDIOC45E | r4.MDIOSKAP, 64 * 62 * 8},
		{"SKAP in clause 22", 125e6, 1, readOp | r4.MDIOSKAP, 64 * 62 * 8},
		{"a clock of 1 Hz", 1, 1, readOp, 64 * 62 * time.Second},
		{"a clock beyond any", 1 << 63, 7, readOp, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			g := newRig(t, withConfig(func(f *Config) { f.CSRClock = c.hz }))
			r4.MACMDIOData.Store(g.r, 0x0002_1234)
			a := c.op | r4.MDIOPA.Of(1) | r4.MDIORDA.Of(regPHYID1) | r4.MDIOCR.Of(c.code)
			mdioAddress.Store(g.r, a)
			g.clock.Advance(c.want - 1)
			if v := mdioAddress.Load(g.r); v != a {
				t.Errorf("MAC_MDIO_Address is %#x before the end, want %#x", v, a)
			}
			if v := r4.MACMDIOData.Load(g.r); v != 0x0002_1234 {
				t.Errorf("MAC_MDIO_Data is %#x before the end", v)
			}
			g.clock.Advance(1)
			if v := mdioAddress.Load(g.r); v != a&^r4.MDIOGB {
				t.Errorf("MAC_MDIO_Address is %#x at the end", v)
			}
		})
	}
}

// TestMDIOWriteNeedsNoRead: a write takes effect although nobody looks at GB again.
func TestMDIOWriteNeedsNoRead(t *testing.T) {
	g := newRig(t)
	r4.MACMDIOData.Store(g.r, 0x0800)
	mdioAddress.Store(g.r, writeOp|r4.MDIOCR.Of(1)|at22(1, regBMCR))
	g.clock.Advance(64*62*8 - 1)
	g.wantLink(1000, true)
	g.clock.Advance(1)
	g.d.Model.mu.Lock()
	down := g.d.mii.down
	g.d.Model.mu.Unlock()
	if !down {
		t.Error("the PHY is not powered down")
	}
	g.clean()
}

// TestMDIOClause45Address: the PHY keeps an address for each MMD; reads with
// increment walk on from it, to the last register and not around.
func TestMDIOClause45Address(t *testing.T) {
	g := newRig(t, withPHY(PHYConfig{Address: 1, Clause: PHYClause45}))
	next := at22(1, mmdPMA) | r4.MDIOC45E | r4.MDIOGOC.Of(r4.MDIOGOCPostRead)
	if v := g.mdio(next, c45ID1, 0); v != DefaultPHYID>>16 {
		t.Errorf("1.2 is %#x", v)
	}
	if v := g.read45(1, mmdAN, anAdvertise); v != 0x01e1 {
		t.Errorf("7.16 is %#x", v)
	}
	for i, want := range []uint16{DefaultPHYID & 0xffff, 0x2060, 0x0082, 0} {
		if v := g.mdio(next|r4.MDIOSKAP, 0x7777, 0); v != want {
			t.Errorf("1.%d is %#x, want %#x", 3+i, v, want)
		}
	}
	same := at22(1, mmdAN) | r4.MDIOC45E | r4.MDIOSKAP | r4.MDIOGOC.Of(r4.MDIOGOCRead)
	if v := g.mdio(same, 0, 0); v != 0x01e1 {
		t.Errorf("7.16 again is %#x", v)
	}
	g.mdio(at22(1, mmdAN)|r4.MDIOC45E|r4.MDIOSKAP|r4.MDIOGOC.Of(r4.MDIOGOCWrite), 0, 0x0101)
	if v := g.read45(1, mmdAN, anAdvertise); v != 0x0101 {
		t.Errorf("7.16 is %#x after the write", v)
	}
	g.mdio(next, 0xffff, 0)
	g.mdio(next|r4.MDIOSKAP, 0, 0)
	if got := g.d.mii.wired.mmd[mmdPMA]; got != 0xffff {
		t.Errorf("the address went on to %#x", got)
	}
	g.clean()
}

// TestMDCOfEveryAccess: case D56, the codes that its table gives, on the boundaries
// of each divider and in both clauses.
func TestMDCOfEveryAccess(t *testing.T) {
	type rate struct {
		hz   uint64
		code uint32
		ok   bool
	}
	rates := []rate{
		{20_000_000, 2, true}, {34_900_000, 2, true}, {35_000_000, 3, true}, {59_900_000, 3, true}, {60_000_000, 0, true},
		{99_900_000, 0, true}, {100_000_000, 1, true}, {149_900_000, 1, true}, {150_000_000, 4, true}, {249_900_000, 4, true},
		{250_000_000, 5, true}, {299_900_000, 5, true}, {300_000_000, 6, true}, {499_900_000, 6, true}, {500_000_000, 7, true},
		{799_900_000, 7, true}, {800_000_000, 7, true},
		// One code less than the table gives, where that is too fast.
		{59_900_000, 2, false}, {99_900_000, 3, false}, {149_900_000, 0, false}, {249_900_000, 1, false}, {299_900_000, 4, false},
		{499_900_000, 5, false}, {799_900_000, 6, false},
		// A code that the transaction wiped (zephyr #92695).
		{150_000_000, 0, false},
	}
	for code, div := range mdcDividers {
		rates = append(rates, rate{mdcMax * div, uint32(code), true}, rate{mdcMax*div + 1, uint32(code), false})
	}
	for _, r := range rates {
		for _, op := range []r4.MDIOAddress{readOp, writeOp, readOp | r4.MDIOC45E, writeOp | r4.MDIOC45E} {
			g := newRig(t, withConfig(func(f *Config) { f.CSRClock = r.hz }))
			good := r4.MDIOCR.Of(7)
			mdioAddress.Store(g.r, op|good) // what came before does not excuse the next
			g.clock.Advance(time.Hour)
			if r.hz <= 324*mdcMax {
				g.clean()
			}
			before := len(g.d.Audit())
			mdioAddress.Store(g.r, op|r4.MDIOCR.Of(r.code))
			if got := len(g.d.Audit()) == before; got != r.ok {
				t.Errorf("CR %d at %d Hz, %#x: accepted %v", r.code, r.hz, op, got)
			}
		}
	}
}

// TestMDIOMisuse: what a driver must not do on the management bus, and what of it
// reaches the PHY.
func TestMDIOMisuse(t *testing.T) {
	write := writeOp | r4.MDIOCR.Of(1) | at22(1, regBMCR)
	const frame = 64 * 62 * 8
	for _, c := range []struct {
		name  string
		do    func(g *rig)
		wrong bool
		write bool // the PHY is powered down by it
	}{
		{"as it should be", func(g *rig) { mdioAddress.Store(g.r, write); g.clock.Advance(frame) }, false, true},
		{"reset behind it", func(g *rig) { mdioAddress.Store(g.r, write); g.clock.Advance(frame); g.reset() }, false, true},
		{"second start while busy", func(g *rig) {
			mdioAddress.Store(g.r, write)
			mdioAddress.Store(g.r, write|r4.MDIORDA.Of(4))
			g.clock.Advance(frame)
		}, true, true},
		{"data while busy", func(g *rig) {
			mdioAddress.Store(g.r, write)
			r4.MACMDIOData.Store(g.r, 0)
			g.clock.Advance(frame)
		}, true, true},
		{"reset in flight", func(g *rig) {
			mdioAddress.Store(g.r, write)
			g.clock.Advance(frame - 1)
			g.reset()
			g.clock.Advance(frame)
			if v := mdioAddress.Load(g.r); v != 0 {
				g.t.Errorf("MAC_MDIO_Address is %#x after the reset", v)
			}
		}, true, false},
		{"reset in flight in a clause 45 access", func(g *rig) {
			mdioAddress.Store(g.r, write|r4.MDIOC45E)
			g.clock.Advance(2*frame - 1)
			g.reset()
		}, true, false},
		{"started during the reset", func(g *rig) {
			r4.DMAMode.Store(g.r, r4.SWR)
			mdioAddress.Store(g.r, write)
			g.clock.Advance(frame)
		}, true, false},
		{"a reset from the bus", func(g *rig) {
			mdioAddress.Store(g.r, write)
			g.d.Model.Reset()
			g.clock.Advance(frame)
		}, false, false},
		{"GOC 0", func(g *rig) { mdioAddress.Store(g.r, write&^r4.MDIOGOC.Mask()); g.clock.Advance(frame) }, true, false},
		{"increment in clause 22", func(g *rig) {
			mdioAddress.Store(g.r, r4.MDIOGOC.Put(write, r4.MDIOGOCPostRead))
			g.clock.Advance(frame)
		}, true, false},
		{"no GB", func(g *rig) { mdioAddress.Store(g.r, write&^r4.MDIOGB); g.clock.Advance(frame) }, false, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			g := newRig(t)
			r4.MACMDIOData.Store(g.r, 0x0800)
			c.do(g)
			var want []ViolationKind
			if c.wrong {
				want = []ViolationKind{MDIOMisuse}
			}
			g.wantKinds(want...)
			if got := g.d.PHYState().PowerDown; got != c.write {
				t.Errorf("powered down: %v", got)
			}
		})
	}
}

// TestNoMDIO: a core without the interface says so and has no registers.
func TestNoMDIO(t *testing.T) {
	g := newRig(t, withConfig(func(c *Config) { c.NoMDIO = true }))
	if r4.MACHWFeature0.Load(g.r)&r4.SMASEL != 0 {
		t.Error("SMASEL is set")
	}
	mdioAddress.Store(g.r, readOp)
	r4.MACMDIOData.Store(g.r, 5)
	if a, d := mdioAddress.Load(g.r), r4.MACMDIOData.Load(g.r); a != 0 || d != 0 {
		t.Errorf("the registers hold %#x and %#x", a, d)
	}
	if s := g.d.Stats(); s.Unknown != 4 {
		t.Errorf("%d accesses of unknown registers", s.Unknown)
	}
	g.clean()
}

// TestMDIORegisterBits: the bits that have no effect are kept.
func TestMDIORegisterBits(t *testing.T) {
	g := newRig(t)
	mdioAddress.Store(g.r, ^r4.MDIOGB)
	if v := mdioAddress.Load(g.r); v != 0x0fff_7f1e {
		t.Errorf("MAC_MDIO_Address keeps %#x", v)
	}
	r4.MACMDIOData.Store(g.r, mmio.AllOnes)
	if v := r4.MACMDIOData.Load(g.r); v != mmio.AllOnes {
		t.Errorf("MAC_MDIO_Data keeps %#x", v)
	}
	g.clean()
}
