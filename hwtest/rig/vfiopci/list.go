package vfiopci

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/gostmmac/gostmmac/hwtest/rig/guest/jobs"
	"github.com/gostmmac/gostmmac/hwtest/rig/note"
)

// hardware runs the list of hardware tests, or those that a pattern of go test -run names, on
// two cards that a cable joins.
func (h *Host) hardware(ctx context.Context, card int, pattern string) error {
	args := []string{"-test.timeout", Guard.String(), "-device", h.boot.address(card, false), "-peer", "cable:" + h.boot.address(card+1, false), "-json"}
	if pattern != "" {
		args = append(args, "-test.run", "Hardware/"+pattern)
	} else {
		args = append(args, "-skips", "/bin/"+skipsFile)
	}
	end, err := do(ctx, h, jobs.Program{Tag: hwtestBin, Path: "/bin/" + hwtestBin, Args: args, Keep: true, Dir: "/tmp"})
	if err != nil {
		return err
	}
	var errs []error
	passed, skipped, seconds := 0, 0, 0.0
	for line := range strings.Lines(end.Output) {
		var o struct {
			Name, Result, Reason string
			Seconds              float64
		}
		if json.Unmarshal([]byte(line), &o) != nil || o.Name == "" {
			continue // what the testing package writes
		}
		seconds += o.Seconds
		switch o.Result {
		case "passed":
			passed++
		case "skipped":
			skipped++
		default:
			errs = append(errs, fmt.Errorf("%s: %s", o.Name, o.Reason))
		}
	}
	note.Printf(ctx, "%d hardware tests passed, %d left out as known, in %.0f s of the guest", passed, skipped, seconds)
	if end.Code != 0 && len(errs) == 0 || passed == 0 {
		errs = append(errs, fmt.Errorf("it ended with status %d, signal %d: %s%s", end.Code, end.Signal, last(end.Output), h.tail(hwtestBin)))
	}
	return errors.Join(append(errs, h.audit())...)
}

// last is the end of a text.
func last(text string) string {
	const most = 2000
	return text[max(0, len(text)-most):]
}
