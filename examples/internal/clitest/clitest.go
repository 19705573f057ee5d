package clitest

import (
	"bytes"
	"context"
	"io"
	"runtime"
	"strings"
	"testing"
	"time"
)

// Patience is when a test that hangs is ended.
const Patience = 5 * time.Minute

// Command is a command without its process.
type Command func(ctx context.Context, args []string, stdout, stderr io.Writer) int

// Outcome is what a command printed.
type Outcome struct{ Stdout, Stderr string }

// Run runs a command, and checks its status and that it leaves no goroutine behind.
func Run(t *testing.T, run Command, code int, args ...string) Outcome {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), Patience)
	defer cancel()
	before := runtime.NumGoroutine()
	var stdout, stderr bytes.Buffer
	got := run(ctx, args, &stdout, &stderr)
	if ctx.Err() != nil {
		t.Fatalf("%v does not end", args)
	}
	if got != code {
		t.Fatalf("%v: status %d, want %d\n%s%s", args, got, code, &stdout, &stderr)
	}
	// A goroutine that was told to end may take its time.
	for end := time.Now().Add(Patience); runtime.NumGoroutine() > before; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			buf := make([]byte, 1<<20)
			t.Fatalf("%v: %d goroutines before and %d after:\n%s", args, before, runtime.NumGoroutine(), buf[:runtime.Stack(buf, true)])
		}
	}
	return Outcome{stdout.String(), stderr.String()}
}

// Says checks that a text contains all texts.
func Says(t *testing.T, in string, texts ...string) {
	t.Helper()
	for _, s := range texts {
		if !strings.Contains(in, s) {
			t.Errorf("no %q in:\n%s", s, in)
		}
	}
}
