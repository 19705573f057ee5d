package linuxmodel

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/gostmmac/gostmmac/hwtest/rig/guest/ethtool"
	"github.com/gostmmac/gostmmac/hwtest/rig/guest/jobs"
	"github.com/gostmmac/gostmmac/hwtest/rig/note"
)

// selfTestRuns is how often the self-tests are run at most: again while some of them timed
// out. They wait 200 ms for a frame and a few seconds for LPI, by the guest's clock, which
// runs on while a loaded machine lets the guest or the model wait. A model at fault fails
// each time.
const selfTestRuns = 3

// linkTimer is longer than the LPI LS timer lasts, 1000 ms of 1000 ticks of the LPI timers:
// without a struct clk the core makes a tick 4096 clocks long.
const linkTimer = 1000 * 1000 * 4096 * time.Second / 25_000_000

// selfTests runs those of the driver, with a link: without one all of them look passed.
func selfTests(ctx context.Context, h *Host) error {
	r := newResults(h.boot)
	for r.runs < selfTestRuns && (r.runs == 0 || len(r.late) > 0) {
		// A frame of the stack restarts the timer at whose end the MAC enters LPI: ARP, which
		// asks for an old neighbour each second, kept it out until the driver gave up. Behind
		// a change of the interface no neighbour is left.
		if err := h.up(ctx, 1500); err != nil {
			return err
		}
		l, err := do(ctx, h, jobs.Link{Space: spaces[0], Interface: interfaces[0]})
		if err != nil {
			return err
		}
		if !l.Up {
			return errors.New("there is no link")
		}
		for _, k := range h.Cards {
			k.Skip(linkTimer)
		}
		all, err := do(ctx, h, jobs.SelfTest{Space: spaces[0], Interface: interfaces[0]})
		if err != nil {
			return err
		}
		r.add(all)
	}
	note.Printf(ctx, "%s", r)
	// They leave the interface as it was.
	return errors.Join(r.err(), h.up(ctx, 1500), h.reach(ctx))
}

// results are what the self-tests of a boot came to.
type results struct {
	boot                 *Boot
	runs                 int
	passed, left, failed []string
	late                 []string       // timed out in each run until now
	waits                map[string]int // runs in which one timed out
}

func newResults(b *Boot) *results { return &results{boot: b, waits: map[string]int{}} }

// timedOut is the result of a self-test that waited in vain (ETIMEDOUT).
const timedOut = -110

// add takes the results of a run: of a second one those alone that timed out before.
func (r *results) add(all []ethtool.Test) {
	again := r.late
	r.late = nil
	for _, t := range all {
		name := plain(t.Name)
		if r.runs > 0 && !slices.Contains(again, name) {
			continue
		}
		why, fails := r.boot.cannot[name], r.boot.fails[name]
		switch {
		case t.Passed():
			r.passed = append(r.passed, name)
		case t.Unsupported() && why != "":
			r.left = append(r.left, name+": "+why)
		case t.Unsupported():
			r.failed = append(r.failed, name+" was left out, and nobody knows why")
		case fails != "":
			r.left = append(r.left, fmt.Sprintf("%s (%d): %s", name, t.Result, fails))
		case t.Result == timedOut:
			r.late = append(r.late, name)
			r.waits[name]++
		default:
			r.failed = append(r.failed, fmt.Sprintf("%s (%d)", name, t.Result))
		}
	}
	r.runs++
}

// String tells of all but failures.
func (r *results) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d passed (%s), %d left out (%s)", len(r.passed), strings.Join(r.passed, ", "), len(r.left), strings.Join(r.left, "; "))
	for _, name := range slices.Sorted(maps.Keys(r.waits)) {
		if slices.Contains(r.passed, name) {
			fmt.Fprintf(&b, "; %s timed out in %d runs before it passed", name, r.waits[name])
		}
	}
	return b.String()
}

// err is what is wrong.
func (r *results) err() error {
	var errs []error
	failed := slices.Clone(r.failed)
	for _, name := range r.late {
		failed = append(failed, fmt.Sprintf("%s (%d, in each of %d runs)", name, timedOut, r.runs))
	}
	if len(failed) > 0 {
		errs = append(errs, fmt.Errorf("failed: %s", strings.Join(failed, ", ")))
	}
	for _, list := range []map[string]string{r.boot.cannot, r.boot.fails} {
		for _, name := range slices.Sorted(maps.Keys(list)) {
			if slices.Contains(r.passed, name) {
				errs = append(errs, fmt.Errorf("%s has passed, and is listed as one that cannot", name))
			}
		}
	}
	if len(r.passed) < r.boot.atLeast {
		errs = append(errs, fmt.Errorf("%d have passed, want %d", len(r.passed), r.boot.atLeast))
	}
	return errors.Join(errs...)
}

// plain is the name of a self-test without its number and padding: " 1. MAC Loopback   ".
func plain(name string) string {
	if _, rest, ok := strings.Cut(name, ". "); ok {
		name = rest
	}
	return strings.TrimSpace(name)
}
