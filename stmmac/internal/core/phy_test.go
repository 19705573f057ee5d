package core

import "testing"

func TestLinkModes(t *testing.T) {
	for _, tc := range []struct {
		modes LinkModes
		name  string
		best  Link
	}{
		{0, "none", Link{}},
		{1 << 15, "none", Link{}},
		{Mode10Half, "10baseT/Half", Link{Up: true, Speed: 10}},
		{Mode10Full | Mode10Half, "10baseT/Half 10baseT/Full", Link{Up: true, Speed: 10, FullDuplex: true}},
		{Mode100Half | Mode10Full, "10baseT/Full 100baseT/Half", Link{Up: true, Speed: 100}},
		{Mode100Full | Mode100Half, "100baseT/Half 100baseT/Full", Link{Up: true, Speed: 100, FullDuplex: true}},
		{Mode1000Half | Mode100Full, "100baseT/Full 1000baseT/Half", Link{Up: true, Speed: 1000}},
		{Mode1000Full | Mode1000Half, "1000baseT/Half 1000baseT/Full", Link{Up: true, Speed: 1000, FullDuplex: true}},
		{Mode2500Full | Mode1000Full, "1000baseT/Full 2500baseT/Full", Link{Up: true, Speed: 2500, FullDuplex: true}},
	} {
		if got := tc.modes.String(); got != tc.name {
			t.Errorf("%#x is %q, want %q", uint16(tc.modes), got, tc.name)
		}
		if got := tc.modes.Link(); got != tc.best {
			t.Errorf("%v is %v, want %v", tc.modes, got, tc.best)
		}
		if got := tc.modes.Link().Mode(); got != tc.modes.Best() {
			t.Errorf("%v: the mode of its best link is %v, want %v", tc.modes, got, tc.modes.Best())
		}
	}
	for _, l := range []Link{{}, {Speed: 40, FullDuplex: true}, {Up: true, Speed: 2500}} {
		if m := l.Mode(); m != 0 {
			t.Errorf("%+v is %v", l, m)
		}
	}
}
