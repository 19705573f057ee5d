package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// hardwareTests is the package with the list of tests that runs on any device.
const hardwareTests = "github.com/gostmmac/gostmmac/hwtest"

// hardware is that package as a program.
type hardware struct {
	program string
	dir     string // of its source, with the lists of what is skipped
	logs    string
}

// buildHardware builds it, which takes the go command and the module's source.
func buildHardware(ctx context.Context, logs string) (*hardware, error) {
	h := &hardware{program: filepath.Join(logs, "hwtest.test"), logs: logs}
	var err error
	if h.dir, err = sourceOf(ctx, hardwareTests); err != nil {
		return nil, err
	}
	if out, err := exec.CommandContext(ctx, "go", "test", "-c", "-tags", "hwtest", "-o", h.program, hardwareTests).CombinedOutput(); err != nil {
		return nil, fmt.Errorf("build the hardware tests: %w\n%s", err, out)
	}
	return h, nil
}

// withText adds what a command wrote to the error of its end.
func withText(err error) error {
	var end *exec.ExitError
	if errors.As(err, &end) && len(end.Stderr) > 0 {
		return fmt.Errorf("%w: %s", err, strings.TrimSpace(string(end.Stderr)))
	}
	return err
}

// outcome is what it says of each test.
type outcome struct {
	Name, Result, Reason string
	Seconds              float64
}

// outcomeOf reads a line. What the testing package writes is none.
func outcomeOf(line []byte) (o outcome, ok bool) {
	return o, json.Unmarshal(line, &o) == nil && o.Name != ""
}

// took is how long the test took.
func (o outcome) took() time.Duration { return time.Duration(o.Seconds * float64(time.Second)) }

// guard is how long the list may take, far above what it needs.
const guard = 20 * time.Minute

// run runs the list on a device and adds each test of it to the report.
func (h *hardware) run(ctx context.Context, r *report, prefix, device, peer, log string) error {
	out, err := os.Create(filepath.Join(h.logs, log))
	if err != nil {
		return err
	}
	defer out.Close()
	ctx, cancel := context.WithTimeout(ctx, guard)
	defer cancel()
	c := exec.CommandContext(ctx, h.program, "-test.timeout", guard.String(), "-device", device, "-peer", peer, "-json")
	c.Dir = h.dir
	c.Stderr = out
	// It gives the device back before it ends.
	c.Cancel = func() error { return c.Process.Signal(syscall.SIGTERM) }
	c.WaitDelay = time.Minute
	stdout, err := c.StdoutPipe()
	if err != nil {
		return err
	}
	if err := c.Start(); err != nil {
		return fmt.Errorf("run the hardware tests: %w", err)
	}
	failed := 0
	lines := bufio.NewScanner(stdout)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		fmt.Fprintln(out, lines.Text())
		o, ok := outcomeOf(lines.Bytes())
		if !ok {
			continue
		}
		err := o.err()
		if err != nil && !errors.Is(err, errSkip) {
			failed++
		}
		r.add(prefix+o.Name, o.took(), err, "")
	}
	err = errors.Join(lines.Err(), c.Wait())
	if err == nil || failed > 0 {
		return nil // the report has it
	}
	return fmt.Errorf("the hardware tests did not end well: %w: see %s", err, out.Name())
}

// limited says whether a test was skipped for what the judge cannot do.
func (o outcome) limited() bool {
	return strings.HasPrefix(o.Reason, "the judge has no ") || strings.HasPrefix(o.Reason, "the core has no ") || o.Reason == "no process to kill"
}

// err is the result as an error.
func (o outcome) err() error {
	switch o.Result {
	case "passed":
		return nil
	case "skipped":
		if !o.limited() {
			return fmt.Errorf("it was skipped for another reason than what the judge cannot do: %s", o.Reason)
		}
		return fmt.Errorf("%s: %w", o.Reason, errSkip)
	}
	return errors.New(o.Reason)
}
