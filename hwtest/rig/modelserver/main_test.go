package main

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestCommandLine(t *testing.T) {
	dir := t.TempDir()
	socket := filepath.Join(dir, "socket")
	taken := filepath.Join(dir, "taken")
	if err := os.WriteFile(taken, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args []string
		code int
		says string
	}{
		{nil, wrong, "-chip and -socket"},
		{[]string{"-chip", "e1000", "-socket", socket}, wrong, "-chip and -socket"},
		{[]string{"-chip", "gmac4"}, wrong, "-chip and -socket"},
		{[]string{"-chip", "gmac4", "-socket", socket, "more"}, wrong, "no other arguments"},
		{[]string{"-x"}, wrong, "-x"},
		{[]string{"-h"}, good, "yt6801"},
		{[]string{"-chip", "gmac4", "-socket", socket, "-addr", "x"}, failed, "-addr x"},
		{[]string{"-chip", "yt6801", "-socket", socket, "-queues", "9"}, failed, "queues"},
		{[]string{"-chip", "gmac4", "-socket", taken}, failed, "taken"},
	} {
		var stderr strings.Builder
		if code := command(t.Context(), c.args, &stderr); code != c.code || !strings.Contains(stderr.String(), c.says) {
			t.Errorf("%q: code %d instead of %d, %q", c.args, code, c.code, stderr.String())
		}
	}
}

// TestReport: the end of the context is the end of the server, and writes the report.
func TestReport(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "report")
	ctx, cancel := context.WithCancel(t.Context())
	var stderr strings.Builder
	code := command(ctx, []string{"-chip", "gmac4", "-socket", filepath.Join(dir, "socket"), "-coverage", file}, onWrite{&stderr, cancel})
	if code != good {
		t.Fatalf("code %d: %s", code, stderr.String())
	}
	text, err := os.ReadFile(file)
	if err != nil || !strings.HasPrefix(string(text), "gmac4: 0 of ") || !strings.Contains(string(text), "MAC_Configuration") {
		t.Errorf("%v\n%.100s", err, text)
	}
}

// onWrite calls a function with each write.
type onWrite struct {
	*strings.Builder
	f func()
}

func (w onWrite) Write(b []byte) (int, error) { w.f(); return w.Builder.Write(b) }
