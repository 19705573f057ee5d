package sim

import (
	"testing"
)

// mmd reads a register of clause 45 through registers 13 and 14 of clause 22, as Linux
// does (IEEE 802.3 annex 22D), and setMMD writes one.
func (g *rig) mmd(pa, dev uint32, reg uint16) uint16 {
	g.t.Helper()
	g.write22(pa, regMMDControl, uint16(dev))
	g.write22(pa, regMMDData, reg)
	g.write22(pa, regMMDControl, uint16(dev)|mmdNoIncrement)
	return g.read22(pa, regMMDData)
}

func (g *rig) setMMD(pa, dev uint32, reg, v uint16) {
	g.t.Helper()
	g.write22(pa, regMMDControl, uint16(dev))
	g.write22(pa, regMMDData, reg)
	g.write22(pa, regMMDControl, uint16(dev)|mmdNoIncrement)
	g.write22(pa, regMMDData, v)
}

// TestEEENegotiation: what the registers say, in both clauses, and when EEE comes about.
func TestEEENegotiation(t *testing.T) {
	const (
		eee100, eee1000 = 1 << 1, 1 << 2
		eee2500         = 1 << 0
	)
	for _, c := range []struct {
		name       string
		phy        PHYConfig
		advertise  int // 7.60, -1 leaves the value after reset
		can, adv   uint16
		can2, adv2 uint16 // of 2.5 Gbit/s
		lp, lp2    uint16
		active     bool
	}{
		{"gigabit", PHYConfig{EEE: true}, -1, eee100 | eee1000, eee100 | eee1000, 0, 0, eee100 | eee1000, 0, true},
		{"both clauses", PHYConfig{EEE: true, Clause: PHYBoth}, -1, eee100 | eee1000, eee100 | eee1000, eee2500, eee2500,
			eee100 | eee1000, eee2500, true},
		{"clause 45", PHYConfig{EEE: true, Clause: PHYClause45}, -1, eee100, eee100, eee2500, eee2500, eee100 | eee1000, eee2500, true},
		{"no EEE", PHYConfig{}, -1, 0, 0, 0, 0, 0, 0, false},
		{"partner without", PHYConfig{EEE: true, Partner: Partner{NoEEE: true}}, -1, eee100 | eee1000, eee100 | eee1000, 0, 0, 0, 0, false},
		{"partner at 100", PHYConfig{EEE: true, Partner: Partner{Modes: Mode100Full}}, -1, eee100 | eee1000, eee100 | eee1000, 0, 0,
			eee100, 0, true},
		{"partner at 10", PHYConfig{EEE: true, Partner: Partner{Modes: Mode10Full}}, -1, eee100 | eee1000, eee100 | eee1000, 0, 0,
			0, 0, false},
		{"partner in half duplex", PHYConfig{EEE: true, Partner: Partner{Modes: Mode100Half}}, -1, eee100 | eee1000, eee100 | eee1000,
			0, 0, 0, 0, false},
		{"partner that does not negotiate", PHYConfig{EEE: true, Partner: Partner{Modes: Mode100Full, Fixed: true}}, -1,
			eee100 | eee1000, eee100 | eee1000, 0, 0, 0, 0, false},
		{"not advertised", PHYConfig{EEE: true}, 0, eee100 | eee1000, 0, 0, 0, eee100 | eee1000, 0, false},
		{"advertised for another speed", PHYConfig{EEE: true}, eee100, eee100 | eee1000, eee100, 0, 0, eee100 | eee1000, 0, false},
		{"more than it can", PHYConfig{EEE: true}, 0xffff, eee100 | eee1000, eee100 | eee1000, 0, 0, eee100 | eee1000, 0, true},
		{"not able", PHYConfig{}, 0xffff, 0, 0, 0, 0, 0, 0, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.phy.Address = 3
			g := newRig(t, withPHY(c.phy))
			read, write := g.mmd, g.setMMD
			if c.phy.Clause != PHYClause22 {
				read, write = g.read45, g.write45
			}
			if c.advertise >= 0 {
				write(3, mmdAN, anEEEAdvertise, uint16(c.advertise))
				write(3, mmdAN, c45Control, bmcrAN|bmcrRestart)
				if c.phy.Clause == PHYClause22 {
					g.write22(3, regBMCR, bmcrAN|bmcrRestart|bmcrSpeedHigh|bmcrDuplex)
				}
				g.settle()
			}
			want := []struct {
				name string
				dev  uint32
				reg  uint16
				v    uint16
			}{
				{"ability", mmdPCS, pcsEEEAble, c.can}, {"ability 2", mmdPCS, pcsEEEAble2, c.can2},
				{"advertisement", mmdAN, anEEEAdvertise, c.adv}, {"advertisement 2", mmdAN, anEEEAdvertise2, c.adv2},
				{"partner", mmdAN, anEEEPartner, c.lp}, {"partner 2", mmdAN, anEEEPartner2, c.lp2},
			}
			for _, r := range want {
				v := read(3, r.dev, r.reg)
				if !c.phy.EEE && r.dev == mmdPCS && v == noAnswer {
					v = 0
				}
				if v != r.v {
					t.Errorf("%s is %#x, want %#x", r.name, v, r.v)
				}
			}
			if s := g.d.PHYState(); s.EEE != c.active || !s.Link {
				t.Errorf("link %v, EEE %v, want %v", s.Link, s.EEE, c.active)
			}
			g.clean()
		})
	}
}

// TestEEEAdvertisementWaits: what is written counts for the next negotiation, and a reset
// of the PHY brings the ability back.
func TestEEEAdvertisementWaits(t *testing.T) {
	g := newRig(t, withPHY(PHYConfig{Address: 1, EEE: true}))
	active := func(want bool) {
		t.Helper()
		if s := g.d.PHYState(); s.EEE != want {
			t.Errorf("EEE %v", s.EEE)
		}
	}
	active(true)
	g.setMMD(1, mmdAN, anEEEAdvertise, 0)
	active(true)
	g.write22(1, regBMCR, bmcrAN|bmcrRestart|bmcrSpeedHigh|bmcrDuplex)
	active(false)
	g.settle()
	active(false)
	g.write22(1, regBMCR, bmcrReset)
	g.clock.Advance(defaultPHYReset)
	g.settle()
	active(true)
	g.d.SetPartner(Partner{NoEEE: true})
	g.settle()
	active(false)
	g.d.SetPartner(Partner{})
	g.settle()
	active(true)
	g.d.SetCable(false)
	active(false)
	g.clean()
}

// TestMMDAccess: the four functions of register 13, and an MMD that is not there.
func TestMMDAccess(t *testing.T) {
	g := newRig(t, withPHY(PHYConfig{Address: 1, EEE: true, ID: 0x12345678}))
	g.write22(1, regMMDControl, mmdPCS)
	g.write22(1, regMMDData, c45ID1)
	g.want22(1, regWant{regMMDControl, mmdPCS}, regWant{regMMDData, c45ID1})
	g.write22(1, regMMDControl, mmdPCS|mmdNoIncrement)
	g.want22(1, regWant{regMMDData, 0x1234}, regWant{regMMDData, 0x1234})
	g.write22(1, regMMDControl, mmdPCS|mmdIncrement)
	g.want22(1, regWant{regMMDData, 0x1234}, regWant{regMMDData, 0x5678})
	g.write22(1, regMMDControl, mmdPCS)
	g.want22(1, regWant{regMMDData, c45ID1 + 2})

	g.write22(1, regMMDControl, mmdAN)
	g.write22(1, regMMDData, anEEEAdvertise)
	g.write22(1, regMMDControl, mmdAN|mmdWriteIncrement)
	g.want22(1, regWant{regMMDData, 6}, regWant{regMMDData, 6}) // reads do not count
	g.write22(1, regMMDData, 2)
	g.write22(1, regMMDControl, mmdAN)
	g.want22(1, regWant{regMMDData, anEEEAdvertise + 1})
	if v := g.mmd(1, mmdAN, anEEEAdvertise); v != 2 {
		t.Errorf("7.60 is %#x", v)
	}
	if v := g.mmd(1, 30, c45ID1); v != noAnswer {
		t.Errorf("MMD 30 says %#x", v)
	}
	if v := g.mmd(1, mmdPCS, c45Devs1); v != 1<<mmdPMA|1<<mmdPCS|1<<mmdAN|1 {
		t.Errorf("devices %#x", v)
	}
	g.clean()
}
