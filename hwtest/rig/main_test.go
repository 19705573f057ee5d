package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gostmmac/gostmmac/hwtest/rig/debian"
	"github.com/gostmmac/gostmmac/hwtest/rig/note"
	"github.com/gostmmac/gostmmac/hwtest/rig/usercheck"
	"github.com/gostmmac/gostmmac/hwtest/rig/vfioplatform"
)

func TestCommandLine(t *testing.T) {
	empty := t.TempDir()
	file := filepath.Join(empty, "file")
	if err := os.WriteFile(file, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args           []string
		code           int
		stdout, stderr string // parts of the output
	}{
		{nil, wrong, "", "usage"},
		{[]string{"walk"}, wrong, "", "usage"},
		{[]string{"-h"}, wrong, "", "usage"},
		{[]string{"setup", "-h"}, good, "", "-mirror"},
		{[]string{"setup", "-x"}, wrong, "", "-x"},
		{[]string{"setup", "x"}, wrong, "", `no rig "x"`},
		{[]string{"setup", "-cache", filepath.Join(file, "x")}, failed, "", "rig: setup: "},
		{[]string{"list"}, good, "qtest", ""},
		{[]string{"cache", "-cache", empty}, good, empty + "\n", ""},
		{[]string{"run"}, wrong, "", "name of a rig"},
		{[]string{"run", "-cache", empty, "none"}, wrong, "", `no rig "none"`},
		{[]string{"run", "-cache", empty, "qtest"}, failed, "", "go run ./hwtest/rig setup"},
	} {
		var stdout, stderr strings.Builder
		code := command(t.Context(), c.args, &stdout, &stderr)
		if code != c.code || !strings.Contains(stdout.String(), c.stdout) || !strings.Contains(stderr.String(), c.stderr) {
			t.Errorf("%q: code %d instead of %d, stdout %q, stderr %q", c.args, code, c.code, stdout.String(), stderr.String())
		}
	}
}

func TestReport(t *testing.T) {
	for name, c := range map[string]struct {
		errs []error
		want string
		fail bool
	}{
		"good":    {[]error{nil, nil, fmt.Errorf("no PTP: %w", errSkip)}, "2 passed, 0 failed, 1 skipped\n", false},
		"bad":     {[]error{nil, errors.New("x")}, "1 passed, 1 failed, 0 skipped\n", true},
		"skipped": {[]error{errSkip}, "0 passed, 0 failed, 1 skipped\n", true},
		"nothing": {nil, "0 passed, 0 failed, 0 skipped\n", true},
	} {
		var out strings.Builder
		file := filepath.Join(t.TempDir(), "log")
		r, err := newReport(&out, file)
		if err != nil {
			t.Fatal(err)
		}
		for i, e := range c.errs {
			if ok := r.test(t.Context(), fmt.Sprint("test ", i), func(ctx context.Context) error {
				if _, limited := ctx.Deadline(); !limited {
					t.Error("a test without a limit")
				}
				return e
			}); ok != (e == nil) {
				t.Errorf("%s: test %d: %v", name, i, ok)
			}
		}
		if err := r.end(); errors.Is(err, errTests) != c.fail {
			t.Errorf("%s: %v", name, err)
		}
		log, err := os.ReadFile(file)
		if err != nil || string(log) != out.String() || !strings.HasSuffix(out.String(), c.want) || strings.Count(out.String(), "\n") != len(c.errs)+1 {
			t.Errorf("%s: %v, log %q, output %q", name, err, log, out.String())
		}
	}
	if _, err := newReport(io.Discard, filepath.Join(t.TempDir(), "x", "log")); !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
}

// TestReportNotes: what a test says stands in its line, also when it fails.
func TestReportNotes(t *testing.T) {
	var out strings.Builder
	r, err := newReport(&out, filepath.Join(t.TempDir(), "log"))
	if err != nil {
		t.Fatal(err)
	}
	r.test(t.Context(), "good", func(ctx context.Context) error {
		note.Printf(ctx, "%d frames", 3)
		return nil
	})
	r.test(t.Context(), "bad", func(ctx context.Context) error {
		note.Printf(ctx, "4 frames")
		return errors.New("one is missing")
	})
	if err := r.end(); !errors.Is(err, errTests) {
		t.Error(err)
	}
	if l := strings.Split(out.String(), "\n"); !strings.HasSuffix(l[0], "): 3 frames") || !strings.HasSuffix(l[1], "): one is missing: 4 frames") {
		t.Errorf("%q", l)
	}
}

func TestReportIsStopped(t *testing.T) {
	var out strings.Builder
	r, err := newReport(&out, filepath.Join(t.TempDir(), "log"))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	pass := func(context.Context) error { return nil }
	r.test(ctx, "first", pass)
	cancel()
	if r.test(ctx, "second", pass) {
		t.Error("a test passed after the end")
	}
	if err := r.end(); !errors.Is(err, errTests) || !strings.HasSuffix(out.String(), "not all tests were run: context canceled\n1 passed, 0 failed, 0 skipped\n") {
		t.Errorf("%v, output %q", err, out.String())
	}
}

// Names of tests are what a report is compared by, so they differ.
func TestNames(t *testing.T) {
	seen := map[string]bool{}
	for _, test := range qtestTests() {
		if test.name == "" || seen[test.name] {
			t.Errorf("the name %q again", test.name)
		}
		seen[test.name] = true
	}
	if len(seen) < 20 {
		t.Errorf("%d tests", len(seen))
	}
}

// TestVFIOUserRigWithoutQEMU: every test fails.
func TestVFIOUserRigWithoutQEMU(t *testing.T) {
	dir := t.TempDir()
	var out strings.Builder
	r, err := newReport(&out, filepath.Join(dir, "log"))
	if err != nil {
		t.Fatal(err)
	}
	vfioUserRig(t.Context(), env{tree: noTree(dir), logs: dir}, r)
	if err := r.end(); !errors.Is(err, errTests) || r.failed != len(usercheck.Tests()) || r.passed != 0 {
		t.Errorf("%v, %d failed\n%s", err, r.failed, out.String())
	}
}

// TestQtestRigWithoutQEMU: what does not start fails, and so does all that runs on it.
func TestQtestRigWithoutQEMU(t *testing.T) {
	dir := t.TempDir()
	var out strings.Builder
	r, err := newReport(&out, filepath.Join(dir, "log"))
	if err != nil {
		t.Fatal(err)
	}
	qtestRig(t.Context(), env{tree: noTree(dir), cache: dir, logs: dir}, r)
	want := 2*(2+len(qtestTests())) + 1 // and what needs both
	if err := r.end(); !errors.Is(err, errTests) || r.failed != want || r.passed != 1 {
		t.Errorf("%v, %d failed instead of %d\n%s", err, r.failed, want, out.String())
	}
}

// TestVFIOPlatformRigWithoutKernel: what is not there fails, and so does all that needs it.
func TestVFIOPlatformRigWithoutKernel(t *testing.T) {
	dir := t.TempDir()
	var out strings.Builder
	r, err := newReport(&out, filepath.Join(dir, "log"))
	if err != nil {
		t.Fatal(err)
	}
	vfioPlatformRig(t.Context(), env{tree: noTree(dir), cache: dir, logs: dir}, r)
	want := 3 + len(vfioplatform.Before()) + len(vfioplatform.After()) // and the programs, the boot and the list
	if err := r.end(); !errors.Is(err, errTests) || r.failed != want || r.passed != 0 || r.skipped != 0 {
		t.Errorf("%v, %d failed instead of %d\n%s", err, r.failed, want, out.String())
	}
	if !strings.Contains(out.String(), "rig setup makes it") {
		t.Errorf("it does not say what to do:\n%s", out.String())
	}
}

func noTree(dir string) *debian.Tree { return &debian.Tree{Dir: dir} }
