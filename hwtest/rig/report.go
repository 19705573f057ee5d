package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/gostmmac/gostmmac/hwtest/rig/note"
)

// errTests says that tests failed.
var errTests = errors.New("tests failed")

// errSkip marks the error of a test that cannot run: what the judge does not model.
var errSkip = errors.New("skipped")

// report counts tests and prints a line for each, to the user and to a log.
type report struct {
	out                     io.Writer
	log                     *os.File
	passed, failed, skipped int
	stopped                 error // why the tests behind it were not run
}

func newReport(out io.Writer, log string) (*report, error) {
	f, err := os.Create(log)
	if err != nil {
		return nil, fmt.Errorf("make the log: %w", err)
	}
	return &report{out: io.MultiWriter(out, f), log: f}, nil
}

// limit is how long one test may take: a guard against a hang, far above what any needs.
const limit = 5 * time.Minute

// test runs a test, and says whether it passed. Once ctx has ended no test is run; one that
// ends because of that has failed.
func (r *report) test(ctx context.Context, name string, f func(ctx context.Context) error) bool {
	if err := ctx.Err(); err != nil {
		r.stopped = err
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	ctx, notes := note.Take(ctx)
	begin := time.Now()
	err := f(ctx)
	r.add(name, time.Since(begin), err, notes.String())
	return err == nil
}

// add reports a test that took so long, ended with err and said something, or "".
func (r *report) add(name string, took time.Duration, err error, said string) {
	took = took.Round(time.Millisecond)
	if said != "" {
		said = ": " + said
	}
	switch {
	case err == nil:
		r.passed++
		fmt.Fprintf(r.out, "ok    %s (%v)%s\n", name, took, said)
	case errors.Is(err, errSkip):
		r.skipped++
		fmt.Fprintf(r.out, "skip  %s: %s\n", name, strings.TrimSuffix(err.Error(), ": "+errSkip.Error()))
	default:
		r.failed++
		fmt.Fprintf(r.out, "FAIL  %s (%v): %v%s\n", name, took, err, said)
	}
}

// end prints the counts and closes the log.
func (r *report) end() error {
	if r.stopped != nil {
		fmt.Fprintf(r.out, "not all tests were run: %v\n", r.stopped)
	}
	fmt.Fprintf(r.out, "%d passed, %d failed, %d skipped\n", r.passed, r.failed, r.skipped)
	err := r.log.Close()
	if r.failed > 0 || r.passed == 0 || r.stopped != nil {
		err = errors.Join(err, errTests)
	}
	return err
}
