package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

func TestQuantile(t *testing.T) {
	samples := []float64{1, 2, 3, 4, 5, 6, 7, 8}
	for q, want := range map[float64]float64{0: 1, 0.25: 2, 0.5: 4, 1: 8} {
		if got := quantile(samples, q); got != want {
			t.Errorf("quantile %v is %v, want %v", q, got, want)
		}
	}
	if got := quantile(samples[2:3], 0.25); got != 3 {
		t.Errorf("quantile of one sample is %v, want it", got)
	}
}

func TestCalibrate(t *testing.T) {
	at := func(batch int, n float64) []result {
		return []result{{Contender: "other", Batch: 32, Instructions: new(float64)},
			{Contender: calibrationContender, Batch: batch, Instructions: &n}}
	}
	for n, ok := range map[float64]bool{196.9: false, 197: true, 219: true, 241: true, 241.1: false} {
		if c := calibrate(at(32, n), "amd64"); c == nil || c.OK != ok {
			t.Errorf("%v instructions: %v, want OK %v", n, c, ok)
		}
	}
	if c := calibrate(at(8, 219), "amd64"); c != nil {
		t.Errorf("judged another batch size: %v", c)
	}
	if c := calibrate(at(32, 219), "arm64"); c != nil {
		t.Errorf("judged other instructions: %v", c)
	}
	if c := calibrate([]result{{Contender: calibrationContender, Batch: 32}}, "amd64"); c != nil {
		t.Errorf("judged without a count: %v", c)
	}
}

func TestInPackages(t *testing.T) {
	match := inPackages([]string{"example.org/m/drv", "gopkg.in/yaml.v3"})
	for fn, want := range map[string]bool{
		"example.org/m/drv.Recv":                true,
		"example.org/m/drv.(*Queue).Recv.func1": true,
		"example.org/m/drv.get[go.shape.int]":   true,
		"gopkg.in/yaml%2ev3.Marshal":            true,
		"example.org/m/drv2.Recv":               false,
		"example.org/m/drv/sim.Step":            false,
		"example.org/m.drv":                     false,
		"runtime.memmove":                       false,
	} {
		if got := match(fn); got != want {
			t.Errorf("%s: %v, want %v", fn, got, want)
		}
	}
}

// stub is a contender that loses packets and allocates as told.
type stub struct {
	loses, allocs int
	arrive        error
	waste         []*[64]byte
}

func (s *stub) Arrive() error { return s.arrive }

func (s *stub) Forward(int) int {
	s.waste = s.waste[:0]
	for range s.allocs {
		s.waste = append(s.waste, new([64]byte))
	}
	return burst
}

func (s *stub) Depart() (int, error) { return burst - s.loses, nil }
func (s *stub) Close() error         { return nil }

func measureStub(t *testing.T, s *stub) ([]result, error) {
	t.Helper()
	s.waste = make([]*[64]byte, 0, s.allocs)
	table := []contender{{name: "stub", open: func() (loop, error) { return s, nil }}}
	return measureLoops(t.Context(), table, 2, 1, io.Discard)
}

func TestMeasureCountsAllocations(t *testing.T) {
	for _, want := range []int{0, 3} {
		results, err := measureStub(t, &stub{allocs: want})
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range results {
			if r.AllocsPerRound != uint64(want) {
				t.Errorf("batch %d: %d allocations per round, want %d", r.Batch, r.AllocsPerRound, want)
			}
		}
	}
}

func TestMeasureRefusesLoss(t *testing.T) {
	if _, err := measureStub(t, &stub{loses: 1}); err == nil {
		t.Error("a contender that loses packets is timed")
	}
	if _, err := measureStub(t, &stub{arrive: io.ErrUnexpectedEOF}); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("got %v, want the device's error", err)
	}
}

func TestUsage(t *testing.T) {
	for _, args := range [][]string{{"-set", "none"}, {"-rounds", "0"}, {"-packets", "0"}, {"extra"}, {"-nonsense"}} {
		var stdout, stderr bytes.Buffer
		if code := run(t.Context(), args, &stdout, &stderr); code != 2 || stdout.Len() != 0 || stderr.Len() == 0 {
			t.Errorf("%v: status %d, %q", args, code, &stdout)
		}
	}
	var stderr bytes.Buffer
	if code := run(t.Context(), []string{"-h"}, io.Discard, &stderr); code != 0 || strings.Contains(stderr.String(), countFlag) {
		t.Errorf("-h: status %d, %s", code, &stderr)
	}
	for _, args := range [][]string{{}, {"none", "1", "1"}, {"ixystyle", "0", "1"}, {"ixystyle", "257", "1"}, {"ixystyle", "1", "x"}} {
		if code := run(t.Context(), append([]string{countFlag}, args...), io.Discard, io.Discard); code != 1 {
			t.Errorf("counted run %v: status %d", args, code)
		}
	}
}

func decode(t *testing.T, b []byte) report {
	t.Helper()
	var r report
	if err := json.Unmarshal(b, &r); err != nil {
		t.Fatalf("%v: %s", err, b)
	}
	if want := len(contenders()) * len(batches); len(r.Results) != want {
		t.Fatalf("%d results, want %d", len(r.Results), want)
	}
	return r
}

func TestRunWithoutValgrind(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	var stdout, stderr bytes.Buffer
	if code := run(t.Context(), []string{"-json", "-rounds", "2", "-packets", "300"}, &stdout, &stderr); code != 0 {
		t.Fatalf("status %d: %s", code, &stderr)
	}
	r := decode(t, stdout.Bytes())
	if !strings.Contains(r.CountsSkipped, "valgrind") || r.Calibration != nil || r.PacketsPerSlice != 2*burst {
		t.Errorf("skipped %q, calibration %v, %d packets", r.CountsSkipped, r.Calibration, r.PacketsPerSlice)
	}
	stdout.Reset()
	if code := run(t.Context(), []string{"-rounds", "1", "-packets", "1"}, &stdout, io.Discard); code != 0 {
		t.Fatalf("status %d", code)
	}
	if !strings.Contains(stdout.String(), "instruction counts skipped: ") {
		t.Errorf("the table does not say so:\n%s", &stdout)
	}
}

// The reference loop is in calibration and allocates nothing, counted by the program as it is used.
func TestCalibration(t *testing.T) {
	if _, err := exec.LookPath("valgrind"); err != nil {
		t.Skip(err)
	}
	bin := filepath.Join(t.TempDir(), "sidebyside")
	build := exec.CommandContext(t.Context(), "go", "build", "-o", bin, ".")
	build.Env = append(build.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	cmd := exec.CommandContext(t.Context(), bin, "-json", "-rounds", "1", "-packets", "256")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v: %s", err, &stderr)
	}
	r := decode(t, out)
	for _, res := range r.Results {
		if res.Instructions == nil || len(res.Functions) == 0 {
			t.Fatalf("%s, batch %d: not counted", res.Contender, res.Batch)
		}
		t.Logf("%s, batch %d: %.1f instructions per packet", res.Contender, res.Batch, *res.Instructions)
		if res.Contender == calibrationContender && res.AllocsPerRound != 0 {
			t.Errorf("batch %d: %d allocations per round", res.Batch, res.AllocsPerRound)
		}
	}
	if runtime.GOARCH == "amd64" && (r.Calibration == nil || !r.Calibration.OK) {
		t.Errorf("calibration: %v", r.Calibration)
	}
}
