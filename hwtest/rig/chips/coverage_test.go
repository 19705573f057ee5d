package chips

import (
	"slices"
	"strings"
	"testing"

	"github.com/gostmmac/gostmmac/stmmac/sim"
)

// TestCoverage: the report names what was touched, of two cards together, and by whom, and
// all else.
func TestCoverage(t *testing.T) {
	a, b := newCard(t, "gmac4", Options{}), newCard(t, "yt6801", Options{})
	a.load(0x110)
	a.store(0x90, 1) // MAC_Rx_Flow_Ctrl.RFE
	b.store(ytBlock+0x90, 2)
	b.load(ytBlock + 0x90)
	a.load(0x0ffc)
	var c Coverage
	if n := len(c.Untouched(sim.GMAC4)); n != len(sim.Registers(sim.GMAC4)) {
		t.Errorf("%d registers are untouched before anything", n)
	}
	c.Add(a, "linux")
	c.Add(b, "vfio")
	c.Add(b, "vfio")
	var out strings.Builder
	if _, err := c.WriteTo(&out); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"000110 MAC_Version                        loaded by linux; loaded: SNPSVER=82\n",
		"MAC_Rx_Flow_Ctrl                   loaded and stored by linux, vfio; loaded: UP; stored: RFE UP\n",
		"000ffc unknown register at 0x000ffc       loaded by linux; the model does not have it\n",
		"\n       MAC_Configuration\n",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("there is no %q in\n%.600s", want, out.String())
		}
	}
	if rest := c.Untouched(sim.GMAC4); slices.Contains(rest, "MAC_Version") || !slices.Contains(rest, "MAC_Configuration") {
		t.Errorf("untouched: %v", rest)
	}
	if strings.Contains(out.String(), "GMAC:") || len(c.Untouched(sim.GMAC)) != len(sim.Registers(sim.GMAC)) {
		t.Error("a generation of which there was no card was touched")
	}
}
