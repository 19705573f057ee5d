package vfioplatform

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/gostmmac/gostmmac/hwtest/rig/guest/jobs"
)

func TestCountsOf(t *testing.T) {
	c, err := countsOf([]string{"station: warning: x", "ready", `{"Frames":3,"Padded":1,"Interrupts":4,"Kernel":5,"Lowest":4096,"Pages":6,"Overwritten":7}`})
	if want := (counts{3, 1, 4, 5, 4096, 6, 7}); c != want || err != nil {
		t.Errorf("%+v, %v", c, err)
	}
	for _, lines := range [][]string{nil, {"ready"}, {"{"}} {
		if _, err := countsOf(lines); err == nil {
			t.Errorf("%q: no error", lines)
		}
	}
}

// TestSleeps: interrupts that are wrong in some way are told.
func TestSleeps(t *testing.T) {
	for _, c := range []struct {
		counts counts
		poll   bool
		want   string
	}{
		{counts{Frames: 100, Interrupts: 60, Kernel: 60}, false, ""},
		{counts{Frames: 100, Interrupts: 60, Kernel: 61}, false, "/proc/interrupts counts 61"},
		{counts{Frames: 100, Interrupts: 10, Kernel: 10}, false, "10 interrupts for 100 frames"},
		{counts{Frames: 100}, true, ""},
		{counts{Frames: 100, Interrupts: 1, Kernel: 1}, true, "polls"},
	} {
		if err := c.counts.sleeps(traffic{poll: c.poll}); (err != nil) != (c.want != "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v", c, err)
		}
	}
}

// TestExamine: a failure that is missing, one too many, and another remedy are each told.
func TestExamine(t *testing.T) {
	report := func(findings ...string) []string {
		return []string{`{"findings": [` + strings.Join(findings, ",") + `]}`, "stmmacctl: failures: 1"}
	}
	const good = `{"severity":"ok","check":"vfio","text":"x"}`
	const bad = `{"severity":"failure","check":"driver","text":"x","remedy":"bind it"}`
	for _, c := range []struct {
		lines []string
		want  []lack
		err   string
	}{
		{report(good), nil, ""},
		{report(good, bad), []lack{{"driver", "bind"}}, ""},
		{report(good, bad), nil, "driver is a failure too"},
		{report(good), []lack{{"driver", "bind"}}, "has not found that driver"},
		{report(bad), []lack{{"driver", "unbind"}}, `does not name "unbind"`},
		{report(bad, bad), []lack{{"driver", "bind"}}, "driver is a failure too"},
		{[]string{"no JSON"}, nil, "what doctor says"},
		{nil, nil, "what doctor says"},
	} {
		if err := examine(c.lines, c.want); (err != nil) != (c.err != "") || err != nil && !strings.Contains(err.Error(), c.err) {
			t.Errorf("%q: %v", c.lines, err)
		}
	}
}

// TestAwait: a line is waited for until the program or the context ends.
func TestAwait(t *testing.T) {
	newProgram := func() *program {
		return &program{path: "/bin/x", ended: make(chan struct{}), said: make(chan struct{}, 1)}
	}
	p := newProgram()
	go func() {
		p.say("one")
		p.say("now ready")
	}()
	if line, err := p.await(t.Context(), "ready"); line != "now ready" || err != nil {
		t.Errorf("%q, %v", line, err)
	}
	p = newProgram()
	p.result = jobs.ProgramEnd{Code: 2}
	go func() {
		p.say("broken")
		close(p.ended)
	}()
	if _, err := p.await(t.Context(), "ready"); err == nil || !strings.Contains(err.Error(), "exit status 2: broken") {
		t.Errorf("%v", err)
	}
	if err := p.wait(t.Context(), 0); err == nil || !strings.Contains(err.Error(), "exit status 2: broken") {
		t.Errorf("%v", err)
	}
	if err := p.wait(t.Context(), 2); err != nil {
		t.Error(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	p = newProgram()
	if _, err := p.await(ctx, "ready"); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
	if err := p.wait(ctx, 0); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}

// TestCases: names are what a report is compared by, so they differ.
func TestCases(t *testing.T) {
	seen := map[string]bool{}
	for _, c := range append(Before(), After()...) {
		if c.Name == "" || c.Run == nil || seen[c.Name] {
			t.Errorf("the case %q", c.Name)
		}
		seen[c.Name] = true
	}
}
