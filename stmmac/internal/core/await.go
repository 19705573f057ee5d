package core

import (
	"context"
	"os"
	"time"

	"github.com/gostmmac/gostmmac/mmio"
)

// Await reads a register until none of the bits of busy is set in it: after first,
// then after twice as long each time, up to most. It returns what it read last, and
// an error if that is not it: ErrGone for a device that does not answer,
// os.ErrDeadlineExceeded after timeout, or that of ctx. The last read is behind the timeout,
// however long one takes and however long the process does not run.
func Await(ctx context.Context, c Clock, timeout, first, most time.Duration, load func() uint32, busy uint32) (uint32, error) {
	deadline := c.Now() + timeout
	for wait := first; ; wait = min(2*wait, most) {
		late := c.Now() >= deadline
		v := load()
		switch {
		case v == mmio.AllOnes:
			return v, ErrGone
		case v&busy == 0:
			return v, nil
		case late:
			return v, os.ErrDeadlineExceeded
		}
		if err := c.Sleep(ctx, wait); err != nil {
			return v, err
		}
	}
}
