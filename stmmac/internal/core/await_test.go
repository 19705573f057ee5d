package core

import (
	"context"
	"errors"
	"os"
	"testing"
	"time"
)

// slowClock is a clock that only sleeping and what the test does move.
type slowClock struct {
	Clock
	now time.Duration
}

func (c *slowClock) Now() time.Duration { return c.now }

func (c *slowClock) Sleep(ctx context.Context, d time.Duration) error {
	c.now += d
	return ctx.Err()
}

// TestAwait: what a register says is believed if it was read behind the deadline. A read may
// take longer than the whole wait: the process was not running, or the device is that of a
// virtual machine.
func TestAwait(t *testing.T) {
	const busy, timeout = 1, 10 * time.Millisecond
	for _, c := range []struct {
		name     string
		read     time.Duration // how long a read takes
		clears   time.Duration // when the bit clears
		want     error
		lastRead time.Duration // the latest that the last read begins
	}{
		{"at once", 0, 0, nil, 0},
		{"in time", 0, timeout / 2, nil, timeout},
		{"too late", 0, time.Hour, os.ErrDeadlineExceeded, 2 * timeout},
		{"with slow reads", 3 * timeout, timeout / 2, nil, 5 * timeout},
		{"never, with slow reads", 3 * timeout, time.Hour, os.ErrDeadlineExceeded, 5 * timeout},
	} {
		clock, last := new(slowClock), time.Duration(0)
		v, err := Await(t.Context(), clock, timeout, time.Microsecond, time.Millisecond, func() uint32 {
			last = clock.now
			v := uint32(0x10)
			if clock.now < c.clears {
				v |= busy
			}
			clock.now += c.read
			return v
		}, busy)
		if !errors.Is(err, c.want) || (err == nil) != (c.want == nil) || (v&busy == 0) != (err == nil) || last > c.lastRead {
			t.Errorf("%s: %#x, %v, the last read at %v", c.name, v, err, last)
		}
	}
	if _, err := Await(t.Context(), new(slowClock), timeout, 1, 1, func() uint32 { return ^uint32(0) }, busy); !errors.Is(err, ErrGone) {
		t.Errorf("a device that is gone: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Await(ctx, new(slowClock), timeout, 1, 1, func() uint32 { return busy }, busy); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}
