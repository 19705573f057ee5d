//go:build hwtest

package hwtest

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
)

// result is what became of a test.
type result struct {
	Name    string         `json:"name"`
	Result  string         `json:"result"` // passed, failed or skipped
	Reason  string         `json:"reason,omitempty"`
	Seconds float64        `json:"seconds"`
	Figures map[string]any `json:"figures,omitempty"`
}

// report prints results as they come.
type report struct {
	out  io.Writer
	file *os.File // nil: none
	json bool
	all  []result
}

func newReport(f *flags) (*report, error) {
	r := &report{out: os.Stdout, json: f.json}
	if f.report != "" {
		file, err := os.Create(f.report)
		if err != nil {
			return nil, err
		}
		r.file, r.out = file, io.MultiWriter(os.Stdout, file)
	}
	return r, nil
}

func (r *report) add(x result) error {
	r.all = append(r.all, x)
	if r.json {
		return json.NewEncoder(r.out).Encode(x)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%-8s %-32s %7.3f s", x.Result, x.Name, x.Seconds)
	for _, k := range slices.Sorted(maps.Keys(x.Figures)) {
		fmt.Fprintf(&b, "  %s=%v", k, x.Figures[k])
	}
	if x.Reason != "" {
		fmt.Fprintf(&b, "  %s", x.Reason)
	}
	_, err := fmt.Fprintln(r.out, b.String())
	return err
}

// finish prints the sums.
func (r *report) finish() error {
	n := map[string]int{}
	for _, x := range r.all {
		n[x.Result]++
	}
	var err error
	if !r.json {
		_, err = fmt.Fprintf(r.out, "%d passed, %d failed, %d skipped\n", n["passed"], n["failed"], n["skipped"])
	}
	if r.file != nil {
		err = errors.Join(err, r.file.Close())
	}
	return err
}

// skips are the tests that were skipped and why, a line each.
func (r *report) skips() string {
	var lines []string
	for _, x := range r.all {
		if x.Result == "skipped" {
			lines = append(lines, x.Name+": "+x.Reason+"\n")
		}
	}
	slices.Sort(lines)
	return strings.Join(lines, "")
}
