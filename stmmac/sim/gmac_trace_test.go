package sim

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	rg "github.com/gostmmac/gostmmac/stmmac/internal/regs/gmacreg"
)

// The registers against those of QEMU's npcm_gmac, as the stock Linux driver found them
// when it opened the device: what is not the same has a reason.
func TestGMACAgainstQEMU(t *testing.T) {
	text, err := os.ReadFile("../testdata/linux-gmac-open.trace")
	if err != nil {
		t.Fatal(err)
	}
	differ := map[uint32]string{
		uint32(rg.HWFeatureReg): "wake-up, energy saving and RGMII are not modelled",
		uint32(rg.StatusReg):    "QEMU runs the channels inside the store that starts them",
	}
	g := newGMACRig(t, nil, withConfig(func(c *Config) { c.Profile, c.Version, c.UserVersion = Linux, 0x32, 0x10 }))
	reads, writes := 0, 0
	for line := range strings.Lines(string(text)) {
		var op string
		var off, v uint32
		if n, _ := fmt.Sscanf(line, "%s %x 0x%x", &op, &off, &v); n != 3 {
			continue
		}
		switch op {
		case "write":
			writes++
			g.r.Store32(off, v)
			if off == uint32(rg.BusModeReg) {
				g.clock.Advance(resetTime)
			}
		case "read":
			reads++
			if got := g.r.Load32(off); got != v && differ[off] == "" {
				t.Errorf("%s reads %#x, with QEMU %#x", rg.Map.Name(off), got, v)
			}
		}
	}
	if reads < 15 || writes < 25 {
		t.Errorf("%d reads and %d writes in the trace", reads, writes)
	}
	// Linux sets the speed with TE and RE on (D53).
	g.wantKinds(ConfigRunning)
	var missing []string
	for _, c := range g.d.Coverage() {
		if !c.Implemented {
			missing = append(missing, c.Name)
		}
	}
	if d := cmp.Diff([]string{"LPI_Control_Status", "LPI_Timers_Control", "Timestamp_Status"}, missing); d != "" {
		t.Errorf("registers that the model does not have (-want +got):\n%s", d)
	}
}
