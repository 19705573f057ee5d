package vfioplatform

import (
	"context"
	"errors"
	"fmt"
	"slices"
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
		// The results of the tests are in the report.
		said := slices.DeleteFunc(slices.Clone(lines), func(l string) bool {
			return !strings.HasPrefix(l, hardwareName+": ") && !strings.Contains(l, "FAIL") && !strings.Contains(l, "_test.go")
		})
		err = fmt.Errorf("%s has failed: %s", hardwareName, strings.Join(said, "\n"))
	}
	return lines, errors.Join(err, h.setNear(ctx, 1500))
}
