package chips

import (
	"context"
	"sync/atomic"
	"time"
)

// clock is the machine's clock for a model, which can jump ahead. Its methods may be called
// by any number of goroutines.
type clock struct {
	start time.Time
	ahead atomic.Int64 // ns
}

func newClock() *clock { return &clock{start: time.Now()} }

// Now is the time since the start.
func (c *clock) Now() time.Duration { return time.Since(c.start) + time.Duration(c.ahead.Load()) }

// Sleep blocks for d or until ctx ends, and then returns ctx.Err().
func (c *clock) Sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// AfterFunc calls f when d has passed. A jump does not make it earlier: what a model does
// late it does as if it were in time.
func (c *clock) AfterFunc(d time.Duration, f func()) (stop func() bool) {
	return time.AfterFunc(d, f).Stop
}

func (c *clock) skip(d time.Duration) { c.ahead.Add(int64(d)) }
