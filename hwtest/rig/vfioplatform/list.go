package vfioplatform

import (
	"context"
	"errors"
	"strings"

	"github.com/gostmmac/gostmmac/hwtest/rig/guest/jobs"
)

// Hardware runs the list of hardware tests in the guest, with the kernel's interface as the
// peer, and returns what it has printed: a JSON object for each test, among other lines. It
// fails if a test does, or if other ones are skipped than the file of the machine says.
func (h *Host) Hardware(ctx context.Context) ([]string, error) {
	// Frames have to come as the wire had them.
	if _, err := do(ctx, h, jobs.SetFeatures{Interface: h.near, Features: map[string]bool{"rx-gro": false}}); err != nil {
		return nil, err
	}
	if err := h.setNear(ctx, longestMTU); err != nil {
		return nil, err
	}
	lines, err := h.run(ctx, 0, hardwareName, "-test.v", "-test.timeout", Guard.String(), "-json", "-device", address,
		"-peer", "af_packet:"+h.near, "-judge", "npcm_gmac", "-skips", "/bin/"+skipsName)
	if err != nil {
		// The lines of the tests themselves are in the report.
		text := lines[max(0, len(lines)-40):]
		err = errors.New(hardwareName + " has failed: " + strings.Join(text, "\n"))
	}
	return lines, errors.Join(err, h.setNear(ctx, 1500))
}
