package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/gostmmac/gostmmac/hwtest/rig/guest/jobs"
	"github.com/gostmmac/gostmmac/pagepool"
	"github.com/gostmmac/gostmmac/stmmac"
)

// wire is the first queues of a MAC as a wire of package jobs.
type wire struct {
	mac      *stmmac.MAC
	poll     bool
	ctx      context.Context // ends with Close
	close    context.CancelFunc
	deadline time.Time // of Recv
	bufs     [stmmac.MaxBatch]*pagepool.Buf
	next, n  int // those of bufs that were received and not taken yet
}

var _ jobs.Wire = (*wire)(nil)

func newWire(ctx context.Context, m *stmmac.MAC, poll bool) *wire {
	w := &wire{mac: m, poll: poll}
	w.ctx, w.close = context.WithCancel(ctx)
	return w
}

// awaitLink waits for the link.
func (w *wire) awaitLink(ctx context.Context) error {
	for l := range w.mac.Links(ctx) {
		if l.Up {
			return nil
		}
	}
	return fmt.Errorf("the link does not come up: %s: %w", w.mac.LinkReason(), ctx.Err())
}

// Send implements jobs.Wire. It waits for room.
func (w *wire) Send(frame []byte) error {
	tx := w.mac.Tx(0)
	tx.Reap(nil)
	b, err := w.mac.Pool().AllocFrame(frame, 0)
	if err != nil {
		return err
	}
	for {
		n, err := tx.Send([]*pagepool.Buf{b})
		if n == 1 {
			return err
		}
		if err == nil {
			err = tx.Wait(w.ctx)
		}
		if err != nil {
			w.mac.Pool().Free(b)
			return err
		}
		tx.Reap(nil)
	}
}

// pause is how long a wire that polls leaves the processor to others: guests have one.
const pause = 20 * time.Microsecond

// Recv implements jobs.Wire.
func (w *wire) Recv(buf []byte) ([]byte, error) {
	rx := w.mac.Rx(0)
	for w.next == w.n {
		w.next, w.n = 0, rx.Recv(w.bufs[:])
		switch {
		case w.n > 0:
		case w.poll:
			if err := w.late(); err != nil {
				return nil, err
			}
			time.Sleep(pause)
		default:
			if err := w.wait(rx); err != nil {
				return nil, err
			}
		}
	}
	b := w.bufs[w.next]
	w.next++
	defer w.mac.Pool().Free(b)
	n := b.FrameLen()
	if n > len(buf) {
		return nil, fmt.Errorf("a frame of %d bytes for %d: %w", n, len(buf), io.ErrShortBuffer)
	}
	b.CopyTo(buf[:n])
	return buf[:n], nil
}

// late says why Recv must not look any longer.
func (w *wire) late() error {
	switch {
	case w.ctx.Err() != nil:
		return w.ctx.Err()
	case !w.deadline.IsZero() && time.Now().After(w.deadline):
		return os.ErrDeadlineExceeded
	}
	return w.mac.Err()
}

// wait sleeps until there is something to look at.
func (w *wire) wait(rx *stmmac.RxQueue) error {
	ctx, cancel := w.ctx, context.CancelFunc(func() {})
	if !w.deadline.IsZero() {
		ctx, cancel = context.WithDeadline(w.ctx, w.deadline)
	}
	defer cancel()
	err := rx.Wait(ctx)
	if err != nil && w.ctx.Err() == nil && ctx.Err() != nil {
		return os.ErrDeadlineExceeded
	}
	return err
}

// SetReadDeadline implements jobs.Wire.
func (w *wire) SetReadDeadline(t time.Time) error {
	w.deadline = t
	return nil
}

// drop frees the frames that nobody has taken.
func (w *wire) drop() {
	w.mac.Pool().FreeBatch(w.bufs[w.next:w.n])
	w.next = w.n
}

// Close implements jobs.Wire.
func (w *wire) Close() error {
	w.close()
	return nil
}
