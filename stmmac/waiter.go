package stmmac

import (
	"context"
	"sync"
	"time"

	"github.com/gostmmac/gostmmac/mmio"
	"github.com/gostmmac/gostmmac/stmmac/internal/core"
)

// starvedPoll is how long a queue without buffers sleeps before it looks for
// some again: a returned buffer wakes it too, unless it lies in a cache.
const starvedPoll = 10 * time.Millisecond

// idlePoll is how often a queue without interrupts looks at its ring.
const idlePoll = 50 * time.Microsecond

// waiter is what both kinds of queue need to sleep and to end.
type waiter struct {
	mac    *MAC
	ch     int
	event  core.Events
	wake   chan struct{}
	direct mmio.Interrupt // a vector that serves only this queue

	mu    sync.Mutex
	rouse context.CancelFunc // ends the sleep on direct; nil while there is none
}

func newWaiter(m *MAC, ch int, e core.Events) waiter {
	return waiter{mac: m, ch: ch, event: e, wake: make(chan struct{}, 1)}
}

// signal wakes the goroutine that sleeps, or keeps the next one from sleeping.
func (w *waiter) signal() {
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

// kick is signal, and ends a sleep on the queue's own vector too.
func (w *waiter) kick() {
	w.signal()
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.rouse != nil {
		w.rouse()
	}
}

// err says why waiting is over, or nil.
func (w *waiter) err(op string) error {
	if w.mac.closed() {
		return &Error{Op: op, Dev: w.mac.cfg.Name, Err: ErrClosed}
	}
	return w.mac.Err()
}

// wait sleeps until look finds something to do; starved says that no interrupt
// can come.
func (w *waiter) wait(ctx context.Context, op string, look func() (ready, starved bool)) error {
	for {
		if err := w.err(op); err != nil {
			return err
		}
		if ready, _ := look(); ready {
			return nil
		}
		if err := ctx.Err(); err != nil {
			return &Error{Op: op, Dev: w.mac.cfg.Name, Err: err}
		}
		// Clear, enable, flush; and then look again, since what happened before
		// the clearing raises no interrupt any more.
		if err := w.mac.enter(ctx); err != nil {
			return &Error{Op: op, Dev: w.mac.cfg.Name, Err: err}
		}
		if w.err(op) != nil { // a rebuild has failed meanwhile
			w.mac.leave()
			continue
		}
		err := w.mac.hw.Unmask(w.ch, w.event)
		w.mac.leave()
		if err != nil {
			w.mac.fail(w.mac.wrap(op, err))
			continue
		}
		ready, starved := look()
		if ready {
			return nil
		}
		if err := w.sleep(ctx, starved); err != nil {
			return &Error{Op: op, Dev: w.mac.cfg.Name, Err: err}
		}
	}
}

// sleep returns when the queue may have something to do. Its error is that of
// ctx.
func (w *waiter) sleep(ctx context.Context, starved bool) error {
	clock := w.mac.cfg.Clock
	if len(w.mac.serves) == 0 && w.direct == nil && !starved {
		return clock.Sleep(ctx, idlePoll)
	}
	if w.direct != nil && !starved {
		return w.sleepDirect(ctx)
	}
	if starved {
		stop := clock.AfterFunc(starvedPoll, w.signal)
		defer stop()
	}
	select {
	case <-w.wake:
	case <-w.mac.closing:
	case <-ctx.Done():
		return ctx.Err()
	}
	return nil
}

// sleepDirect sleeps on the queue's own vector.
func (w *waiter) sleepDirect(ctx context.Context) error {
	nap, rouse := context.WithCancel(ctx)
	defer rouse()
	w.setRouse(rouse)
	defer w.setRouse(nil)
	select {
	case <-w.wake: // kicked before it was known how
		return nil
	default:
	}
	_, err := w.direct.Wait(nap)
	switch {
	case err == nil:
		w.mac.handle(w.ch, w.event)
		if err := w.direct.Unmask(); err != nil {
			w.mac.lost("unmask an interrupt", err)
		}
	case ctx.Err() != nil:
		return ctx.Err()
	case nap.Err() == nil:
		w.mac.lost("wait for an interrupt", err)
	}
	return nil
}

func (w *waiter) setRouse(f context.CancelFunc) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.rouse = f
}
