package main

import (
	"context"
	"errors"
	"runtime"
	"sync/atomic"
	"time"

	"github.com/gostmmac/gostmmac/pagepool"
	"github.com/gostmmac/gostmmac/stmmac"
)

// worker forwards the frames of a receive queue of one MAC to a transmit queue
// of the other. Both MACs use one pool, so a frame is sent from the buffer in
// which it was received.
type worker struct {
	name  string
	from  *stmmac.MAC
	rx    *stmmac.RxQueue
	to    *stmmac.MAC
	tx    *stmmac.TxQueue
	pool  *pagepool.Pool
	batch int
	poll  bool // look again instead of sleeping
	cpu   int  // to run on; -1 is any

	learn *table // nil: all frames go to the other side
	side  uint8
	start time.Time

	clock   cpuClock
	empty   uint // looks that found nothing to do, with poll
	dropped [numDrops]atomic.Uint64
}

// run forwards until ctx ends or a device fails.
func (w *worker) run(ctx context.Context) error {
	// The CPU time is that of a thread. It ends with this goroutine, because it
	// stays bound to its CPU.
	runtime.LockOSThread()
	if w.cpu >= 0 {
		if err := pin(w.cpu); err != nil {
			return err
		}
	}
	w.clock.start()
	defer w.clock.stop()

	bufs := make([]*pagepool.Buf, w.batch)
	for {
		n := w.rx.Recv(bufs)
		if n == 0 {
			if err := w.wait(ctx, w.rx.Wait); err != nil {
				return ended(ctx, err)
			}
			continue
		}
		frames := bufs[:n]
		if w.learn != nil {
			frames = w.filter(frames)
		}
		for len(frames) > 0 {
			n, err := w.tx.Send(frames)
			frames = frames[n:]
			if refused(err) { // frames[0], for good
				w.drop(frames[:1], reason(err))
				frames = frames[1:]
				continue
			}
			if err == nil && len(frames) > 0 { // the ring is full
				err = w.wait(ctx, w.tx.Wait)
			}
			if err != nil {
				w.drop(frames, dropStopped)
				return ended(ctx, err)
			}
		}
	}
}

// wait sleeps until there is something to do, or returns at once with poll.
func (w *worker) wait(ctx context.Context, sleep func(context.Context) error) error {
	if !w.poll {
		return sleep(ctx)
	}
	// Who polls hears of the end only by asking, and with fewer CPUs than
	// workers has to let the others run.
	const askEvery = 1024
	if w.empty++; w.empty%askEvery != 0 {
		return nil
	}
	runtime.Gosched()
	if err := ctx.Err(); err != nil {
		return err
	}
	return errors.Join(w.from.Err(), w.to.Err())
}

// filter frees the frames that stay on their side and returns the others.
func (w *worker) filter(frames []*pagepool.Buf) []*pagepool.Buf {
	n := w.learn.split(w.side, frames, time.Since(w.start))
	if n < len(frames) {
		w.drop(frames[n:], dropFiltered)
	}
	return frames[:n]
}

func (w *worker) drop(frames []*pagepool.Buf, why dropReason) {
	w.pool.FreeBatch(frames)
	w.dropped[why].Add(uint64(len(frames)))
}

// dropReason is why a frame that was received is not sent.
type dropReason int

const (
	dropTooLong dropReason = iota
	dropTooShort
	dropRefused  // for another reason
	dropStopped  // the forwarder ended before there was room in the ring
	dropFiltered // its destination is on its own side: not a loss
	numDrops
)

func (r dropReason) String() string {
	return [numDrops]string{"tx_too_long", "tx_too_short", "tx_refused", "stopped", "filtered"}[r]
}

// reason says why Send refused a frame.
func reason(err error) dropReason {
	switch {
	case errors.Is(err, stmmac.ErrFrameTooLong):
		return dropTooLong
	case errors.Is(err, stmmac.ErrFrameTooShort):
		return dropTooShort
	}
	return dropRefused
}

// refused says whether an error of Send is about a frame and not the device.
func refused(err error) bool {
	return err != nil && !errors.Is(err, stmmac.ErrClosed) && !errors.Is(err, stmmac.ErrGone) && !errors.Is(err, stmmac.ErrFatalBus)
}

// ended is err, or nil if the worker was told to stop.
func ended(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	return err
}
