package stmmac

import (
	"context"
	"sync"

	"github.com/gostmmac/gostmmac/pagepool"
	"github.com/gostmmac/gostmmac/stmmac/internal/core"
)

// TxQueue is a transmit queue. It belongs to one goroutine at a time, except
// for Stats; a call that finds another under way does nothing. See
// [TxQueue.Shared] for several senders.
type TxQueue struct {
	waiter
	mem    core.RingMemory
	ring   *core.TxRing
	shared SharedTx
}

// Send takes a prefix of src, at most [MaxBatch] buffers, and returns how many
// frames that was; it never blocks and does not allocate. Fewer than len(src)
// without an error mean that the ring is full: the caller keeps the rest and
// tries again, after Wait if it likes. With an error, src[n] can never be sent
// (ErrFrameTooLong, ErrFrameTooShort, ErrForeignBuffer, ErrNotHeld,
// ErrNoHeadroom), the MAC is closed (ErrClosed) or the device failed (ErrGone,
// ErrFatalBus); the caller keeps src[n] and all behind it. Buffers that were taken go back to the pool when the device is done
// with them. Checksums and tags that the driver itself puts into a frame are among
// its bytes from then on.
//
// In half duplex a MAC sends from queue 0 alone: what is sent on another queue
// leaves there, and comes back to whoever reaps.
func (q *TxQueue) Send(src []*pagepool.Buf) (int, error) { return q.ring.Send(src) }

// fail makes the error of Send.
func (q *TxQueue) fail(err error) error { return &Error{Op: "send", Dev: q.mac.cfg.Name, Err: err} }

// away is Send while the ring takes nothing: another goroutine is inside a call,
// it is being rebuilt or has ended, or its frames go by queue 0.
func (q *TxQueue) away(src []*pagepool.Buf) (int, error) {
	if to := q.outlet(); to != q {
		return to.ring.Send(src)
	}
	return 0, q.err("send")
}

// outlet is the queue by which the frames of q leave.
func (q *TxQueue) outlet() *TxQueue {
	if q.mac.oneTx.Load() {
		return q.mac.tx[0]
	}
	return q
}

// Reap takes frames that the device has finished off the ring and returns how
// many. With a dst of at least one they go to the caller, who owns them then;
// with nil they go to the pool. Send does the latter by itself, unless the MAC
// was opened with WithTxCompletions.
func (q *TxQueue) Reap(dst []*pagepool.Buf) int { return q.outlet().ring.Reap(dst) }

// Space is how many buffers Send can take now; none while the MAC is being changed.
func (q *TxQueue) Space() int { return q.outlet().ring.Space() }

// Inflight is how many buffers are with the device or wait for Reap; of a frame that
// a change of the MAC took off the ring only the first one counts. While the MAC is
// being changed it is 0.
func (q *TxQueue) Inflight() int { return q.outlet().ring.Inflight() }

// Wait blocks until the device has finished a frame that was not reaped, or
// none is in flight. It returns an error when ctx ends (ctx.Err()), the MAC is
// closed (ErrClosed), or the device failed (ErrFatalBus, ErrGone).
func (q *TxQueue) Wait(ctx context.Context) error {
	one := q.mac.oneTx.Load()
	if one {
		// Several queues wait for one ring.
		return q.mac.tx[0].shared.Wait(ctx)
	}
	return q.wait(ctx, "wait to send", func() (ready, starved bool) {
		return q.ring.Look() || q.mac.oneTx.Load() != one, false
	})
}

// Stats returns the counts. Any goroutine may call it, also after Close.
func (q *TxQueue) Stats() TxStats { return q.ring.Stats() }

// Shared returns the queue for use by many goroutines. While one uses it the
// queue itself must not be used.
func (q *TxQueue) Shared() *SharedTx { return &q.shared }

// SharedTx is a transmit queue behind a lock, which stands outside the code of
// the ring.
type SharedTx struct {
	q    *TxQueue
	mu   sync.Mutex
	turn chan struct{} // holds one token: whoever has it may sleep
}

// Send is [TxQueue.Send].
func (s *SharedTx) Send(src []*pagepool.Buf) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.q.Send(src)
}

// Reap is [TxQueue.Reap].
func (s *SharedTx) Reap(dst []*pagepool.Buf) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.q.Reap(dst)
}

// Space is [TxQueue.Space].
func (s *SharedTx) Space() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.q.Space()
}

// Inflight is [TxQueue.Inflight].
func (s *SharedTx) Inflight() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.q.Inflight()
}

// Wait is [TxQueue.Wait] for several goroutines: they sleep one at a time, and
// the lock is held only while the ring is looked at.
func (s *SharedTx) Wait(ctx context.Context) error {
	if to := &s.q.outlet().shared; to != s {
		return to.Wait(ctx)
	}
	select {
	case s.turn <- struct{}{}:
	case <-ctx.Done():
		return &Error{Op: "wait to send", Dev: s.q.mac.cfg.Name, Err: ctx.Err()}
	}
	defer func() { <-s.turn }()
	one := s.q.mac.oneTx.Load()
	return s.q.wait(ctx, "wait to send", func() (ready, starved bool) {
		s.mu.Lock()
		defer s.mu.Unlock()
		return s.q.ring.Look() || s.q.mac.oneTx.Load() != one, false
	})
}
