package stmmac

import (
	"context"
	"iter"
	"sync"

	"github.com/gostmmac/gostmmac/pagepool"
	"github.com/gostmmac/gostmmac/stmmac/internal/core"
)

// RxQueue is a receive queue. It belongs to one goroutine at a time, except
// for Stats; a call that finds another under way does nothing.
type RxQueue struct {
	waiter
	mem      core.RingMemory
	ring     *core.RxRing
	program  Program
	verdicts [MaxBatch]Verdict

	lost         sync.Mutex // guards what the device lost
	missed, full uint64
}

// Recv moves received frames to dst, at most [MaxBatch] of them, and returns
// how many. It never blocks and does not allocate. The caller owns the buffers
// and frees them to the MAC's pool or sends them. Frames that are damaged or
// too long are dropped and counted. Why none comes any more from a device that
// failed is told by Wait.
func (q *RxQueue) Recv(dst []*pagepool.Buf) int { return q.ring.Recv(dst) }

// filter runs the program on bufs, moves the frames that pass to the front and
// frees the others.
func (q *RxQueue) filter(bufs []*pagepool.Buf) int {
	v := q.verdicts[:len(bufs)]
	clear(v)
	q.program.Run(bufs, v)
	pass, dropped, aborted := 0, 0, 0
	for i, b := range bufs {
		switch v[i] {
		case VerdictPass:
			bufs[pass], bufs[i] = b, bufs[pass]
			pass++
		case VerdictDrop:
			dropped++
		default:
			aborted++
		}
	}
	if pass < len(bufs) {
		q.mac.Pool().FreeBatch(bufs[pass:])
		q.ring.CountVerdicts(dropped, aborted)
	}
	return pass
}

// Wait blocks until Recv has something to look at. It returns an error when
// ctx ends (ctx.Err()), the MAC is closed (ErrClosed), or the device failed
// (ErrFatalBus, ErrGone). A queue whose ring ran out of buffers goes on when
// one comes back to the pool.
func (q *RxQueue) Wait(ctx context.Context) error {
	return q.wait(ctx, "wait to receive", func() (ready, starved bool) {
		ready, starved = q.ring.Look()
		if starved {
			q.mac.Pool().NotifyFree(q.wake)
		}
		return ready, starved
	})
}

// Frames yields received frames one at a time, waiting for each, until ctx
// ends or the MAC is closed; the last element is then the error. The loop's
// body owns the frame. It is for convenience: Recv takes batches.
func (q *RxQueue) Frames(ctx context.Context) iter.Seq2[*pagepool.Buf, error] {
	return func(yield func(*pagepool.Buf, error) bool) {
		var one [1]*pagepool.Buf
		for {
			if q.Recv(one[:]) == 1 {
				if !yield(one[0], nil) {
					return
				}
				continue
			}
			if err := q.Wait(ctx); err != nil {
				yield(nil, err)
				return
			}
		}
	}
}

// Layout is where in its buffers the queue receives.
func (q *RxQueue) Layout() RxLayout { return q.ring.Layout() }

// Stats returns the counts. Any goroutine may call it, also after Close. It
// reads two registers.
func (q *RxQueue) Stats() RxStats {
	s := q.ring.Stats()
	if !q.mac.closed() && q.mac.registers.mu.TryRLock() {
		q.collectLost()
		q.mac.leave()
	}
	q.lost.Lock()
	defer q.lost.Unlock()
	s.Missed, s.FIFOFull = q.missed, q.full
	return s
}

// collectLost adds what the device has counted since it was last read: reading
// clears it, and so does a reset.
func (q *RxQueue) collectLost() {
	q.lost.Lock()
	defer q.lost.Unlock()
	missed, full := q.mac.hw.Lost(q.ch)
	q.missed += uint64(missed)
	q.full += uint64(full)
}

// forget frees what waits for Recv and sets the counts to 0. The ring is held.
func (q *RxQueue) forget() {
	q.ring.Forget()
	q.lost.Lock()
	defer q.lost.Unlock()
	q.missed, q.full = 0, 0
}
