package core

import (
	"context"
	"time"
)

// Clock is the one source of time of a driver and of a model. Its methods may
// be called by several goroutines.
type Clock interface {
	// Now is the time since an arbitrary start; it never goes back.
	Now() time.Duration
	// Sleep blocks for d or until ctx ends, and then returns ctx.Err().
	Sleep(ctx context.Context, d time.Duration) error
	// AfterFunc calls f once, on a goroutine of its own or on the one that
	// steps the clock, when d has passed. stop reports whether it kept f from
	// being called.
	AfterFunc(d time.Duration, f func()) (stop func() bool)
}

// WallClock is the clock of the machine.
type WallClock struct{ start time.Time }

// NewWallClock returns the machine's monotonic clock, starting now at 0.
func NewWallClock() WallClock { return WallClock{start: time.Now()} }

// Now implements [Clock].
func (c WallClock) Now() time.Duration { return time.Since(c.start) }

// Sleep implements [Clock].
func (c WallClock) Sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// AfterFunc implements [Clock].
func (c WallClock) AfterFunc(d time.Duration, f func()) (stop func() bool) {
	return time.AfterFunc(d, f).Stop
}
