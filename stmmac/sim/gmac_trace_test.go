package sim

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/gostmmac/gostmmac/internal/bringup"
	rg "github.com/gostmmac/gostmmac/stmmac/internal/regs/gmacreg"
)

// The registers against those of QEMU's npcm_gmac, as the stock Linux driver found them
// when it opened the device: what is not the same has a reason.
func TestGMACAgainstQEMU(t *testing.T) {
	log, err := bringup.LinuxGMAC()
	if err != nil {
		t.Fatal(err)
	}
	differ := map[uint32]string{
		uint32(rg.HWFeatureReg): "wake-up, energy saving and RGMII are not modelled",
		uint32(rg.StatusReg):    "QEMU runs the channels inside the store that starts them",
	}
	g := newGMACRig(t, nil, withConfig(func(c *Config) { c.Profile, c.Version, c.UserVersion = Linux, 0x32, 0x10 }))
	reads, writes := 0, 0
	for _, x := range log {
		if !x.Store {
			reads++
			if got := g.r.Load32(x.Off); got != x.Val && differ[x.Off] == "" {
				t.Errorf("%s reads %#x, with QEMU %#x", rg.Map.Name(x.Off), got, x.Val)
			}
			continue
		}
		writes++
		g.r.Store32(x.Off, x.Val)
		if x.Off == uint32(rg.BusModeReg) {
			g.clock.Advance(resetTime)
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
	if d := cmp.Diff([]string{"LPI_Control_Status", "LPI_Timers_Control"}, missing); d != "" {
		t.Errorf("registers that the model does not have (-want +got):\n%s", d)
	}
}
