package sim

import (
	"testing"
	"time"

	"github.com/gostmmac/gostmmac/mmio"
	r4 "github.com/gostmmac/gostmmac/stmmac/internal/regs/gmac4reg"
)

func withPHY(c PHYConfig) rigOption { return withConfig(func(f *Config) { f.PHY = &c }) }

var mdioAddress = mmio.Reg[r4.MDIOAddress](r4.MACMDIOAddress)

// mdio runs a transaction: registers 31:16 and 15:0 of the data, the address bits.
func (g *rig) mdio(a r4.MDIOAddress, ra, data uint16) uint16 {
	g.t.Helper()
	r4.MACMDIOData.Store(g.r, uint32(ra)<<16|uint32(data))
	mdioAddress.Store(g.r, a|r4.MDIOGB|r4.MDIOCR.Of(1))
	for range 100 {
		if mdioAddress.Load(g.r)&r4.MDIOGB == 0 {
			return uint16(r4.MACMDIOData.Load(g.r))
		}
		g.clock.Advance(4 * time.Microsecond)
	}
	g.t.Fatalf("%#x stays busy", uint32(a))
	return 0
}

func at22(pa, reg uint32) r4.MDIOAddress { return r4.MDIOPA.Of(pa) | r4.MDIORDA.Of(reg) }

func (g *rig) read22(pa, reg uint32) uint16 {
	g.t.Helper()
	return g.mdio(at22(pa, reg)|r4.MDIOGOC.Of(r4.MDIOGOCRead), 0, 0)
}

func (g *rig) write22(pa, reg uint32, v uint16) {
	g.t.Helper()
	g.mdio(at22(pa, reg)|r4.MDIOGOC.Of(r4.MDIOGOCWrite), 0, v)
}

func (g *rig) read45(pa, dev uint32, reg uint16) uint16 {
	g.t.Helper()
	return g.mdio(at22(pa, dev)|r4.MDIOC45E|r4.MDIOGOC.Of(r4.MDIOGOCRead), reg, 0)
}

func (g *rig) write45(pa, dev uint32, reg, v uint16) {
	g.t.Helper()
	g.mdio(at22(pa, dev)|r4.MDIOC45E|r4.MDIOGOC.Of(r4.MDIOGOCWrite), reg, v)
}

// settle lets the time pass that a negotiation takes.
func (g *rig) settle() { g.clock.Advance(defaultNegotiation) }

// wantLink compares the link; a speed of 0 is none.
func (g *rig) wantLink(speed int, full bool) {
	g.t.Helper()
	s := g.d.PHYState()
	if s.Link != (speed != 0) || s.Speed != speed || s.FullDuplex != full {
		g.t.Errorf("link %v at %d, full duplex %v; want %d, %v", s.Link, s.Speed, s.FullDuplex, speed, full)
	}
}

type regWant struct {
	reg  uint32
	want uint16
}

func (g *rig) want22(pa uint32, regs ...regWant) {
	g.t.Helper()
	for _, r := range regs {
		if got := g.read22(pa, r.reg); got != r.want {
			g.t.Errorf("register %d is %#04x, want %#04x", r.reg, got, r.want)
		}
	}
}

// TestPHYRegisters: what a driver finds in the default PHY that has had a link for
// long, and nothing at the other addresses.
func TestPHYRegisters(t *testing.T) {
	g := newRig(t)
	g.want22(1,
		regWant{regBMCR, 0x1140},
		regWant{regBMSR, 0x7969}, // the link failed before anybody looked
		regWant{regBMSR, 0x796d},
		regWant{regPHYID1, DefaultPHYID >> 16}, regWant{regPHYID2, DefaultPHYID & 0xffff},
		regWant{regANAR, 0x01e1}, regWant{regANLPAR, 0xcde1},
		regWant{regANER, 0x000f}, regWant{regANER, 0x000d}, // page received clears
		regWant{regMSCR, 0x0300}, regWant{regMSSR, 0x3c00}, regWant{regESR, 0x3000},
		regWant{7, 0}, regWant{13, 0}, regWant{31, 0})
	for pa := range uint32(32) {
		if pa != 1 {
			g.want22(pa, regWant{regBMCR, 0xffff}, regWant{regPHYID1, 0xffff})
		}
	}
	if v := g.read45(1, mmdPMA, c45ID1); v != 0xffff {
		t.Errorf("a clause 22 PHY answers clause 45 with %#x", v)
	}
	g.clean()
}

// TestPHYAbilities: a PHY without gigabit has none of its registers.
func TestPHYAbilities(t *testing.T) {
	g := newRig(t, withPHY(PHYConfig{Address: 31, ID: 0x12345678, Modes: Mode10Half | Mode100Half | Mode100Full}))
	g.read22(31, regBMSR)
	g.want22(31, regWant{regBMCR, 0x3100}, regWant{regBMSR, 0x686d}, regWant{regPHYID1, 0x1234}, regWant{regPHYID2, 0x5678},
		regWant{regANAR, 0x01a1}, regWant{regMSCR, 0}, regWant{regMSSR, 0}, regWant{regESR, 0})
	g.write22(31, regBMCR, 0xffff&^uint16(bmcrReset))
	g.write22(31, regANAR, 0xffff)
	g.write22(31, regMSCR, 0xffff)
	g.write22(31, regPHYID1, 0xffff)
	g.want22(31, regWant{regBMCR, 0x7d80}, regWant{regANAR, 0x2dbf}, regWant{regMSCR, 0}, regWant{regPHYID1, 0x1234})
	g.clean()
}

// TestLatchedLink: a failure shows in one read of BMSR behind it, whatever came after
// it (IEEE 802.3 22.2.4.2.13). A read while the failure lasts ends nothing.
func TestLatchedLink(t *testing.T) {
	g := newRig(t)
	link := func() bool { return g.read22(1, regBMSR)&bmsrLink != 0 }
	link()
	if !link() {
		t.Fatal("no link")
	}
	g.d.SetCable(false)
	for range 2 {
		if link() {
			t.Fatal("a link without a cable")
		}
	}
	g.d.SetCable(true)
	g.settle()
	if link() {
		t.Fatal("the end of the failure does not show")
	}
	if !link() {
		t.Fatal("the failure was read, and still shows")
	}
	g.d.SetCable(false)
	g.d.SetCable(true)
	g.settle()
	g.wantLink(1000, true)
	if link() {
		t.Fatal("the failure does not show")
	}
	if !link() {
		t.Fatal("the failure shows twice")
	}
	g.clean()
}

// TestPHYReset: the bit clears itself after a while; until then nothing is taken;
// registers have their defaults.
func TestPHYReset(t *testing.T) {
	g := newRig(t, withPHY(PHYConfig{Address: 1, ResetTime: 3 * time.Millisecond}))
	g.write22(1, regANAR, 0x0c01)
	g.write22(1, regMSCR, 0)
	g.write22(1, regBMCR, 0x2100)
	g.settle()
	g.wantLink(100, true)
	g.write22(1, regBMCR, 0xa100)
	reset := g.clock.Now()
	g.wantLink(0, false)
	if v := g.read22(1, regBMCR); v != 0x9140 {
		t.Errorf("BMCR is %#x in reset", v)
	}
	if !g.d.PHYState().Reset {
		t.Error("not in reset")
	}
	g.write22(1, regBMCR, 0x0800)
	g.write22(1, regANAR, 1)
	const late = 4 * time.Microsecond // how late mdio may see the end of a write
	g.clock.Advance(reset + 3*time.Millisecond - late - 1 - g.clock.Now())
	if !g.d.PHYState().Reset {
		t.Error("the reset ended early")
	}
	g.clock.Advance(late + 1)
	g.want22(1, regWant{regBMCR, 0x1140}, regWant{regANAR, 0x01e1}, regWant{regMSCR, 0x0300})
	g.wantLink(0, false)
	g.settle()
	g.wantLink(1000, true)
	g.clean()
}

// TestNegotiation resolves what both ends advertise (IEEE 802.3 28B.3).
func TestNegotiation(t *testing.T) {
	const all = 0x0de1
	for _, c := range []struct {
		name       string
		anar, mscr uint16
		partner    Partner
		speed      int
		full       bool
		anlpar     uint16
		mssr       uint16
		aner       uint16 // as read first
		complete   bool
	}{
		{"all", all, 0x300, Partner{}, 1000, true, 0xcde1, 0x3c00, 0xf, true},
		{"gigabit half", all, 0x100, Partner{}, 1000, false, 0xcde1, 0x3c00, 0xf, true},
		{"gigabit half there", all, 0x300, Partner{Modes: Mode1000Half | Mode100Full}, 1000, false, 0xc101, 0x3400, 0xf, true},
		{"100 full", all, 0, Partner{}, 100, true, 0xcde1, 0x0c00, 0xf, true},
		{"100 half wins over 10 full", 0x00c1, 0, Partner{}, 100, false, 0xcde1, 0x0c00, 0xf, true},
		{"10 full", 0x0061, 0, Partner{}, 10, true, 0xcde1, 0x0c00, 0xf, true},
		{"10 half", 0x0021, 0, Partner{}, 10, false, 0xcde1, 0x0c00, 0xf, true},
		{"partner of 100", all, 0x300, Partner{Modes: modesLow | ModePause}, 100, true, 0x45e1, 0, 0x7, true},
		{"partner of 2.5 Gbit/s", all, 0x300, Partner{Modes: Mode2500Full | Mode1000Full}, 1000, true, 0xc001, 0x3800, 0xf, true},
		{"nothing in common", 0x0021, 0, Partner{Modes: Mode100Full | ModeAsymPause}, 0, false, 0x4901, 0, 0x7, false},
		{"nothing but pause", 0x0c01, 0, Partner{}, 0, false, 0xcde1, 0x0c00, 0xf, false},
		{"no selector", 0x01e0, 0x300, Partner{}, 0, false, 0, 0, 0x4, false},
		{"parallel detection of 100", all, 0x300, Partner{Modes: Mode100Full, Fixed: true}, 100, false, 0x0080, 0, 0x4, true},
		{"parallel detection of 10", all, 0x300, Partner{Modes: Mode10Half, Fixed: true}, 10, false, 0x0020, 0, 0x4, true},
		{"parallel detection without half duplex", 0x0d01, 0x300, Partner{Modes: Mode100Full, Fixed: true}, 0, false, 0, 0, 0x4, false},
		{"no parallel detection of gigabit", all, 0x300, Partner{Modes: Mode1000Full, Fixed: true}, 0, false, 0, 0, 0x4, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			g := newRig(t, withPHY(PHYConfig{Address: 1, Unplugged: true, Partner: c.partner}))
			g.write22(1, regANAR, c.anar)
			g.write22(1, regMSCR, c.mscr)
			g.d.SetCable(true)
			g.clock.Advance(defaultNegotiation - 1)
			g.wantLink(0, false)
			if s := g.d.PHYState(); s.Negotiated || s.Partner != 0 {
				t.Errorf("%+v before its time", s)
			}
			g.clock.Advance(1)
			g.wantLink(c.speed, c.full)
			if v := g.read22(1, regBMSR); v&bmsrComplete != 0 != c.complete {
				t.Errorf("BMSR %#x", v)
			}
			g.want22(1, regWant{regANLPAR, c.anlpar}, regWant{regMSSR, c.mssr}, regWant{regANER, c.aner}, regWant{regANER, c.aner &^ anerPage})
			g.clean()
		})
	}
}

// TestRestart: a changed advertisement counts from the next negotiation on, and one
// that is changed after it began comes too late.
func TestRestart(t *testing.T) {
	g := newRig(t)
	g.write22(1, regANAR, 0x0101)
	g.write22(1, regMSCR, 0)
	g.settle()
	g.wantLink(1000, true)
	g.write22(1, regBMCR, 0x1340)
	g.wantLink(0, false)
	if v := g.read22(1, regBMCR); v != 0x1140 {
		t.Errorf("BMCR is %#x: the restart bit clears itself", v)
	}
	if v := g.read22(1, regBMSR); v&bmsrComplete != 0 {
		t.Errorf("complete: BMSR is %#x", v)
	}
	g.write22(1, regANAR, 0x0021)
	g.settle()
	g.wantLink(100, true)
	// Speed and duplex bits mean nothing while negotiation is on.
	g.write22(1, regBMCR, 0x1000)
	g.wantLink(100, true)
	g.write22(1, regBMCR, 0x1200)
	g.settle()
	g.wantLink(10, false)
	g.d.SetPartner(Partner{Modes: Mode100Full})
	g.wantLink(0, false)
	g.settle()
	g.wantLink(0, false)
	g.d.SetPartner(Partner{Modes: 1 << 15}) // no mode: everything
	g.settle()
	g.wantLink(10, false)
	g.clean()
}

// TestForced: without negotiation both ends have to run at one speed; a partner that
// negotiates detects it and takes half duplex.
func TestForced(t *testing.T) {
	for _, c := range []struct {
		bmcr    uint16
		partner Partner
		speed   int
		full    bool
	}{
		{0x2100, Partner{Modes: Mode100Full, Fixed: true}, 100, true},
		{0x2000, Partner{Modes: Mode100Half, Fixed: true}, 100, false},
		{0x2100, Partner{Modes: Mode100Half, Fixed: true}, 100, true}, // each end has its own duplex
		{0x2100, Partner{Modes: Mode10Full, Fixed: true}, 0, false},
		{0x0100, Partner{Modes: Mode10Full | Mode10Half, Fixed: true}, 10, true},
		{0x0000, Partner{}, 10, false},
		{0x2100, Partner{}, 100, true},
		{0x2100, Partner{Modes: Mode100Full}, 0, false},
		{0x2100, Partner{Modes: Mode10Half | Mode1000Full}, 0, false},
		{0x0140, Partner{Modes: Mode1000Full, Fixed: true}, 0, false}, // 40.5.1
		{0x0140, Partner{}, 0, false},
		{0x2140, Partner{}, 0, false}, // reserved
		{0x2300, Partner{}, 100, true},
	} {
		g := newRig(t, withPHY(PHYConfig{Address: 1, Partner: c.partner}))
		g.write22(1, regBMCR, c.bmcr)
		g.settle()
		g.wantLink(c.speed, c.full)
		if v := g.read22(1, regBMSR); v&bmsrComplete != 0 {
			t.Errorf("BMCR %#x: complete without negotiation", c.bmcr)
		}
		g.want22(1, regWant{regBMCR, c.bmcr &^ bmcrRestart}, regWant{regANLPAR, 0})
		if t.Failed() {
			t.Fatalf("BMCR %#x with %+v", c.bmcr, c.partner)
		}
		// Another duplex is another link.
		if c.speed == 100 && c.partner == (Partner{}) {
			g.write22(1, regBMCR, 0x2000)
			g.wantLink(0, false)
			g.settle()
			g.wantLink(100, false)
		}
		g.clean()
	}
}

// TestPowerDown: no link and no clock while the bit is set; the registers answer.
func TestPowerDown(t *testing.T) {
	g := newRig(t, withPHY(PHYConfig{Address: 1}))
	g.write22(1, regBMCR, 0x1940)
	g.settle()
	g.wantLink(0, false)
	if s := g.d.PHYState(); !s.PowerDown {
		t.Errorf("%+v", s)
	}
	g.want22(1, regWant{regBMCR, 0x1940}, regWant{regPHYID1, DefaultPHYID >> 16}, regWant{regBMSR, 0x7949})
	g.reset() // this PHY keeps its clock
	g.d.SetCable(false)
	g.d.SetCable(true)
	g.settle()
	g.wantLink(0, false)
	g.write22(1, regBMCR, 0x1140)
	g.settle()
	g.wantLink(1000, true)
	g.clean()
}

// TestPHYOverReset: a reset of the MAC leaves the PHY alone.
func TestPHYOverReset(t *testing.T) {
	g := newRig(t)
	g.write22(1, regANAR, 0x0101)
	g.write22(1, regMSCR, 0)
	g.write22(1, regBMCR, 0x1340)
	g.settle()
	g.reset()
	g.d.Model.Reset()
	g.wantLink(100, true)
	g.want22(1, regWant{regANAR, 0x0101}, regWant{regMSCR, 0})
	g.clean()
}

// TestClause45: a PHY of 2.5 Gbit/s behind clause 45 alone.
func TestClause45(t *testing.T) {
	g := newRig(t, withPHY(PHYConfig{Address: 4, ID: 0x01e0_c1d2, Clause: PHYClause45}))
	if v := g.read22(4, regPHYID1); v != 0xffff {
		t.Errorf("it answers clause 22 with %#x", v)
	}
	type want struct {
		dev  uint32
		reg  uint16
		want uint16
	}
	check := func(ws ...want) {
		t.Helper()
		for _, w := range ws {
			if v := g.read45(4, w.dev, w.reg); v != w.want {
				t.Errorf("register %d.%d is %#04x, want %#04x", w.dev, w.reg, v, w.want)
			}
		}
	}
	check(
		want{1, 0, 0x2000}, want{1, 1, 0x0002}, want{1, 1, 0x0006}, want{1, 2, 0x01e0}, want{1, 3, 0xc1d2},
		want{1, 4, 0x2060}, want{1, 5, 0x0082}, want{1, 6, 0}, want{1, 8, 0x8200}, want{1, 11, 0x4180}, want{1, 21, 1},
		want{7, 0, 0x1000}, want{7, 1, 0x0069}, want{7, 1, 0x002d}, want{7, 2, 0x01e0}, want{7, 3, 0xc1d2}, want{7, 5, 0x0082},
		want{7, 16, 0x01e1}, want{7, 19, 0xcde1}, want{7, 32, 0x0080}, want{7, 33, 0x3020}, want{7, 1000, 0},
		want{3, 0, 0xffff}, want{0, 2, 0xffff}, want{31, 2, 0xffff})
	g.wantLink(2500, true)

	g.write45(4, 7, 16, 0x0c01|0x0100)
	g.write45(4, 7, 32, 0)
	g.write45(4, 7, 0, 0x1200)
	g.wantLink(0, false)
	g.settle()
	g.wantLink(100, true)
	check(want{7, 0, 0x1000}, want{7, 32, 0}, want{7, 33, 0x0020})

	g.write45(4, 7, 0, 0) // forced
	g.write45(4, 1, 0, 0x0000)
	g.settle()
	g.wantLink(10, true)
	g.write45(4, 1, 0, 0x2040|pmaExt2500)
	g.settle()
	g.wantLink(0, false) // 2.5GBASE-T needs negotiation
	check(want{1, 0, 0x2058})
	g.write45(4, 1, 0, 0x2040|pmaExt2500|pmaLoopback)
	g.settle()
	g.wantLink(2500, true)
	if !g.d.PHYState().Loopback {
		t.Error("no loopback")
	}
	check(want{1, 0, 0x2059})
	g.write45(4, 1, 0, 0x2041)
	g.settle()
	g.wantLink(0, false) // 10 Gbit/s
	g.write45(4, 1, 0, 0x2801)
	if s := g.d.PHYState(); !s.PowerDown || s.Link {
		t.Errorf("%+v", s)
	}
	g.write45(4, 1, 0, 0x8000)
	check(want{1, 0, 0xa000}, want{7, 0, 0x9000})
	g.write45(4, 7, 16, 0)
	g.clock.Advance(defaultPHYReset)
	g.settle()
	g.wantLink(2500, true)
	check(want{1, 0, 0x2000}, want{7, 16, 0x01e1}, want{7, 32, 0x0080})
	g.write45(4, 7, 0, 0x8000)
	if !g.d.PHYState().Reset {
		t.Error("no reset")
	}
	g.clean()
}

// TestBothClauses: one PHY behind two clauses, each with its own latches.
func TestBothClauses(t *testing.T) {
	g := newRig(t, withPHY(PHYConfig{Address: 2, Clause: PHYBoth}))
	if v := g.read45(2, 1, 5); v != 0x0083 {
		t.Errorf("devices in package %#x", v)
	}
	if v := g.read45(2, 1, 4); v != 0x2070 {
		t.Errorf("speed ability %#x", v)
	}
	g.wantLink(2500, true)
	g.write45(2, 7, 32, 0)
	g.write22(2, regBMCR, 0x1340)
	g.settle()
	g.wantLink(1000, true)
	for range 2 {
		g.read22(2, regBMSR)
		g.read22(2, regANER)
	}
	if v := g.read45(2, 7, 1); v != 0x0069 {
		t.Errorf("7.1 is %#x: what clause 22 read is new to clause 45", v)
	}
	if v := g.read45(2, 1, 1); v != 0x0002 {
		t.Errorf("1.1 is %#x", v)
	}
	g.clean()
}

// TestOtherPHYs: those beside the one of the MAC answer and carry no frames.
func TestOtherPHYs(t *testing.T) {
	g := newRig(t, withConfig(func(c *Config) {
		c.PHY = &PHYConfig{Address: 7}
		c.OtherPHYs = []PHYConfig{{Address: 0, ID: 0x11112222}, {Address: 3, Clause: PHYClause45, Unplugged: true}}
	}))
	g.want22(0, regWant{regPHYID1, 0x1111}, regWant{regBMSR, 0x7969}, regWant{regBMSR, 0x796d})
	g.want22(3, regWant{regPHYID1, 0xffff})
	if v := g.read45(3, 7, 1); v != 0x0008 {
		t.Errorf("7.1 is %#x", v)
	}
	g.write22(0, regBMCR, 0x1940)
	g.wantLink(1000, true)
	g.d.SetCable(false)
	g.wantLink(0, false)
	g.write22(0, regBMCR, 0x1140)
	g.settle()
	g.read22(0, regBMSR)
	g.want22(0, regWant{regBMSR, 0x796d})
	g.clean()
}

// TestOffer: what the other end of the cable finds of a PHY.
func TestOffer(t *testing.T) {
	g := newRig(t, withPHY(PHYConfig{Address: 1, EEE: true}))
	offer := func(what string, want Partner) {
		t.Helper()
		if got := g.d.PHYState().Offer; got != want {
			t.Errorf("%s: %+v, want %+v", what, got, want)
		}
	}
	const all = modesLow | modesGigabit
	offer("after reset", Partner{Modes: all})
	g.write22(1, regANAR, anIEEE8023|an100Full|anPause)
	offer("what was written, before it negotiates", Partner{Modes: all})
	g.write22(1, regBMCR, bmcrAN|bmcrRestart)
	offer("negotiating", Partner{Modes: Mode100Full | ModePause | modesGigabit})
	g.write22(1, regMSCR, 0)
	g.write22(1, regBMCR, bmcrAN|bmcrRestart)
	offer("without gigabit", Partner{Modes: Mode100Full | ModePause})
	g.write22(1, regBMCR, bmcrSpeedLow|bmcrDuplex)
	offer("forced", Partner{Modes: Mode100Full, Fixed: true, NoEEE: true})
	g.write22(1, regBMCR, bmcrSpeedHigh|bmcrDuplex)
	offer("forced to what has to be negotiated", Partner{Fixed: true, NoEEE: true})
	g.write22(1, regBMCR, bmcrAN|bmcrPowerDown)
	offer("powered down", Partner{})
	g.write22(1, regBMCR, bmcrAN|bmcrLoopback)
	offer("in loopback", Partner{})
	g.write22(1, regBMCR, bmcrReset)
	offer("in reset", Partner{})
	g.settle()
	offer("after that", Partner{Modes: all})
	// A PHY that gets the offer of another one as its partner agrees with it.
	h := newRig(t, withPHY(PHYConfig{Address: 1, Modes: Mode10Full | Mode100Full}))
	h.d.SetPartner(g.d.PHYState().Offer)
	g.d.SetPartner(h.d.PHYState().Offer)
	g.settle()
	h.settle()
	g.wantLink(100, true)
	h.wantLink(100, true)
	if p := g.d.PHYState(); p.Offer.NoEEE || !h.d.PHYState().Offer.NoEEE {
		t.Errorf("EEE: %+v and %+v", p.Offer, h.d.PHYState().Offer)
	}
}
