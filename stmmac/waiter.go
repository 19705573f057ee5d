package stmmac

import (
	"context"
	"runtime"
	"sync"
	"sync/atomic"
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

	longest atomic.Int64 // how long to sleep at most, nanoseconds; 0: no limit
	maxSpin atomic.Int32 // how often to look before sleeping, at most
	spins   int32        // how often lately
	waiters atomic.Int32 // goroutines inside wait

	mu     sync.Mutex
	kicked chan struct{}     // closed and replaced by kick
	naps   map[*nap]struct{} // sleeps on direct
}

func newWaiter(m *MAC, ch int, e core.Events) waiter {
	return waiter{mac: m, ch: ch, event: e, wake: make(chan struct{}, 1), kicked: make(chan struct{}), naps: map[*nap]struct{}{}}
}

// nap is a sleep on the queue's own vector, which kick ends.
type nap struct{ end context.CancelFunc }

// signal wakes the goroutine that sleeps, or keeps the next one from sleeping.
func (w *waiter) signal() {
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

// kick makes all who sleep or are about to look again: what they look at is not
// what it was.
func (w *waiter) kick() {
	w.mu.Lock()
	defer w.mu.Unlock()
	close(w.kicked)
	w.kicked = make(chan struct{})
	for n := range w.naps {
		n.end()
	}
}

// kicks is closed by the next kick.
func (w *waiter) kicks() <-chan struct{} {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.kicked
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
	w.waiters.Add(1)
	defer w.waiters.Add(-1)
	for {
		kicked := w.kicks()
		if err := w.err(op); err != nil {
			return err
		}
		if ready, _ := look(); ready || w.spin(look) {
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
		if err := w.sleep(ctx, kicked, starved); err != nil {
			return &Error{Op: op, Dev: w.mac.cfg.Name, Err: err}
		}
	}
}

// spin looks again before the queue sleeps: twice as often as last time if that
// found something, and half as often if it did not.
func (w *waiter) spin(look func() (ready, starved bool)) bool {
	most := w.maxSpin.Load()
	if most == 0 {
		return false
	}
	const yieldEvery = 64
	w.spins = min(max(w.spins, 1), most)
	for i := range w.spins {
		if ready, _ := look(); ready {
			w.spins = min(2*w.spins, most)
			return true
		}
		if i%yieldEvery == yieldEvery-1 {
			runtime.Gosched()
		}
	}
	w.spins /= 2
	return false
}

// sleep returns when the queue may have something to do. Its error is that of
// ctx.
func (w *waiter) sleep(ctx context.Context, kicked <-chan struct{}, starved bool) error {
	clock := w.mac.cfg.Clock
	if len(w.mac.serves) == 0 && w.direct == nil && !starved {
		return clock.Sleep(ctx, idlePoll)
	}
	if d := time.Duration(w.longest.Load()); d > 0 {
		stop := clock.AfterFunc(d, w.kick)
		defer stop()
	}
	if w.direct != nil && !starved {
		return w.sleepDirect(ctx, kicked)
	}
	if starved {
		stop := clock.AfterFunc(starvedPoll, w.signal)
		defer stop()
	}
	select {
	case <-w.wake:
		w.share()
	case <-kicked:
	case <-w.mac.closing:
	case <-ctx.Done():
		return ctx.Err()
	}
	return nil
}

// sleepDirect sleeps on the queue's own vector.
func (w *waiter) sleepDirect(ctx context.Context, kicked <-chan struct{}) error {
	asleep, end := context.WithCancel(ctx)
	defer end()
	n := &nap{end}
	w.note(n, true)
	defer w.note(n, false)
	select {
	case <-kicked: // before it was known how
		return nil
	default:
	}
	_, err := w.direct.Wait(asleep)
	switch {
	case err == nil:
		w.mac.handle(w.ch, w.event)
		w.share()
		if err := w.direct.Unmask(); err != nil {
			w.mac.lost("unmask an interrupt", err)
		}
	case ctx.Err() != nil:
		return ctx.Err()
	case asleep.Err() == nil:
		w.mac.lost("wait for an interrupt", err)
	}
	return nil
}

// share makes all look again when one of several was woken: it may have been for
// another. There are several only around a change of the duplex.
func (w *waiter) share() {
	if w.waiters.Load() > 1 {
		w.kick()
	}
}

// note says that somebody sleeps on the queue's own vector, or does not any more.
func (w *waiter) note(n *nap, asleep bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if asleep {
		w.naps[n] = struct{}{}
	} else {
		delete(w.naps, n)
	}
}
