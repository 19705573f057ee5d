package vfiopci

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/gostmmac/gostmmac/hwtest/rig/guest/jobs"
	"github.com/gostmmac/gostmmac/hwtest/rig/note"
)

// known are the hardware tests that are left out and why, a line each.
func (p *Programs) known() ([]string, error) {
	b, err := os.ReadFile(p.skips)
	if err != nil {
		return nil, err
	}
	return strings.Split(strings.TrimSpace(string(b)), "\n"), nil
}

// hardware runs the list of hardware tests on two cards that a cable joins, or those that a
// pattern of go test -run names. No others are left out than are known, and of the whole
// list all of these.
func (h *Host) hardware(ctx context.Context, card int, pattern string) error {
	// So that it says what hangs before the case is over.
	limit := Guard - time.Minute
	args := []string{"-test.timeout", limit.String(), "-device", h.boot.address(card, false), "-peer", "cable:" + h.boot.address(card+1, false), "-json"}
	if pattern != "" {
		args = append(args, "-test.run", "Hardware/"+pattern)
	}
	end, err := do(ctx, h, jobs.Program{Tag: hwtestBin, Path: "/bin/" + hwtestBin, Args: args, Keep: true, Dir: "/tmp"})
	if err != nil {
		return err
	}
	known, err := h.programs.known()
	if err != nil {
		return err
	}
	var errs []error
	var skipped []string
	passed, seconds := 0, 0.0
	for line := range strings.Lines(end.Output) {
		var o struct {
			Name, Result, Reason string
			Seconds              float64
		}
		if json.Unmarshal([]byte(line), &o) != nil || o.Name == "" {
			continue // what the testing package writes
		}
		seconds += o.Seconds
		what := o.Name + ": " + o.Reason
		switch {
		case o.Result == "passed":
			passed++
		case o.Result == "skipped" && slices.Contains(known, what):
			skipped = append(skipped, what)
		default:
			errs = append(errs, fmt.Errorf("%s %s", o.Result, what))
		}
	}
	if pattern == "" && len(errs) == 0 {
		for _, what := range known {
			if !slices.Contains(skipped, what) {
				errs = append(errs, fmt.Errorf("not skipped: %s", what))
			}
		}
	}
	note.Printf(ctx, "%d hardware tests passed, %d left out as known, in %.0f s", passed, len(skipped), seconds)
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
