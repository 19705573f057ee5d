package qtest

import (
	"context"
	"errors"
	"testing"

	"github.com/gostmmac/gostmmac/mmio"
)

// fired returns how often v has fired, without waiting.
func fired(t *testing.T, v mmio.Interrupt) uint64 {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	n, err := v.Wait(ctx)
	if err != nil && !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	return n
}

// The vector is that of vfio for a level: it fires once and is masked until Unmask, which
// fires it again while the line is high.
func TestLevel(t *testing.T) {
	var l level
	l.set(true)
	v, err := l.open()
	if err != nil {
		t.Fatal(err)
	}
	unmask := func() {
		if err := v.Unmask(); err != nil {
			t.Fatal(err)
		}
	}
	for i, step := range []struct {
		do   func()
		want uint64
	}{
		{func() {}, 1}, // it was high when it was opened
		{func() {}, 0},
		{func() { l.set(true) }, 0},               // no change
		{func() { l.set(false); l.set(true) }, 0}, // masked
		{unmask, 1},
		{func() { l.set(false) }, 0},
		{unmask, 0},
		{unmask, 0},
		{func() { l.set(true) }, 1},
		{func() {
			l.set(false)
			unmask()
			l.set(true)
			l.set(false)
			unmask()
			l.set(true)
		}, 2},
	} {
		step.do()
		if got := fired(t, v); got != step.want {
			t.Errorf("step %d: fired %d times, want %d", i, got, step.want)
		}
	}
	again, err := l.open()
	if err != nil || again != v {
		t.Errorf("the same vector was not given out again: %v", err)
	}
	if err := errors.Join(v.Close(), v.Close()); err != nil {
		t.Error(err)
	}
	if _, err := v.Wait(t.Context()); !errors.Is(err, ErrClosed) {
		t.Errorf("wait after close: %v", err)
	}
	if err := v.Unmask(); !errors.Is(err, ErrClosed) {
		t.Errorf("unmask after close: %v", err)
	}
	if again, err = l.open(); err != nil || again == v {
		t.Fatalf("opened again: %v", err)
	}
	if got := fired(t, again); got != 1 {
		t.Errorf("the line is high and the new vector fired %d times", got)
	}
	l.end(ErrGone)
	if _, err := again.Wait(t.Context()); !errors.Is(err, ErrGone) {
		t.Errorf("wait after the end: %v", err)
	}
	if _, err := l.open(); !errors.Is(err, ErrGone) {
		t.Errorf("open after the end: %v", err)
	}
}

func TestLevelWakes(t *testing.T) {
	for name, wake := range map[string]func(l *level, v *vector){
		"line":  func(l *level, _ *vector) { l.set(true) },
		"close": func(_ *level, v *vector) { v.Close() },
		"end":   func(l *level, _ *vector) { l.end(ErrGone) },
	} {
		var l level
		v, err := l.open()
		if err != nil {
			t.Fatal(err)
		}
		done := make(chan error)
		go func() {
			_, err := v.Wait(t.Context())
			done <- err
		}()
		wake(&l, v)
		if err := <-done; (err == nil) != (name == "line") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
