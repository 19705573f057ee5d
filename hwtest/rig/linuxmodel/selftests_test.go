package linuxmodel

import (
	"strings"
	"testing"

	"github.com/gostmmac/gostmmac/hwtest/rig/guest/ethtool"
)

// TestResults: what passes, is left out and fails, and that only what timed out gets another
// chance, with a word on it.
func TestResults(t *testing.T) {
	const pass, no, late, bad = 0, -95, -110, -22
	boot := &Boot{cannot: map[string]string{"B": "no b"}, fails: map[string]string{"C": "never c"}, atLeast: 2}
	for _, c := range []struct {
		name string
		runs [][4]int64 // of A, B, C, D
		says []string
		errs []string // none is none
	}{
		{"all well", [][4]int64{{pass, no, bad, pass}}, []string{"2 passed (A, D)", "2 left out (B: no b; C (-22): never c)"}, nil},
		{"late, then well", [][4]int64{{late, no, bad, pass}, {pass, no, bad, bad}}, []string{"2 passed (D, A)", "A timed out in 1 runs before it passed"}, nil},
		{"late at last", [][4]int64{{late, no, bad, pass}, {late, no, bad, pass}, {pass, no, bad, late}}, []string{"A timed out in 2 runs"}, nil},
		{"late each time", [][4]int64{{late, no, bad, pass}, {late, no, bad, pass}, {late, no, bad, pass}}, []string{"1 passed (D)"},
			[]string{"A (-110, in each of 3 runs)", "1 have passed, want 2"}},
		{"late, then wrong", [][4]int64{{late, no, bad, pass}, {bad, no, bad, pass}}, nil, []string{"failed: A (-22)"}},
		{"what is said to fail is not repeated", [][4]int64{{pass, no, late, pass}}, []string{"C (-110): never c"}, nil},
		{"wrong", [][4]int64{{bad, no, bad, pass}}, nil, []string{"failed: A (-22)"}},
		{"left out", [][4]int64{{no, no, bad, pass}}, nil, []string{"A was left out, and nobody knows why"}},
		{"better than said", [][4]int64{{pass, pass, pass, pass}}, nil, []string{"B has passed, and is listed", "C has passed, and is listed"}},
	} {
		r := newResults(boot)
		for i, run := range c.runs {
			if more := r.runs == 0 || len(r.late) > 0; !more {
				t.Errorf("%s: there is no run %d", c.name, i+1)
			}
			var all []ethtool.Test
			for k, name := range []string{" 1. A     ", " 2. B ", "10. C", "11. D  "} {
				all = append(all, ethtool.Test{Name: name, Result: run[k]})
			}
			r.add(all)
		}
		if len(c.errs) == 0 && len(r.late) > 0 {
			t.Errorf("%s: %v timed out", c.name, r.late)
		}
		for _, want := range c.says {
			if !strings.Contains(r.String(), want) {
				t.Errorf("%s: %q has no %q", c.name, r, want)
			}
		}
		err := r.err()
		if (err != nil) != (len(c.errs) > 0) {
			t.Errorf("%s: %v", c.name, err)
		}
		for _, want := range c.errs {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v has no %q", c.name, err, want)
			}
		}
	}
}
