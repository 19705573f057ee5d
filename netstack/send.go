package netstack

import (
	"context"
	"errors"
	"time"

	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/stack"

	"github.com/gostmmac/gostmmac/pagepool"
	"github.com/gostmmac/gostmmac/stmmac"
)

const (
	// txBatch is how many frames are sent at a time.
	txBatch = 32
	// sendPatience is how long a sender waits for a device that finishes nothing
	// before it drops what it has: as long as Linux waits before it resets one
	// (net/sched/sch_generic.c, watchdog_timeo). It bounds the wait in every
	// case, also that of two stacks each of which waits for the other to receive.
	sendPatience = 5 * time.Second
	// poolPoll is how long a sender sleeps that needs more buffers than are free,
	// but not none.
	poolPoll = time.Millisecond
)

// Reasons why a wait of a sender ends.
var (
	errClosed  = errors.New("the endpoint is closed")
	errStalled = errors.New("the device finishes nothing")
)

// WritePackets implements [stack.LinkWriter]. It copies the packets into DMA
// buffers and returns how many the ring took. While the ring is full or the pool
// is empty it takes back what the device has finished, by itself, and sleeps
// otherwise, so it needs nobody who receives. It drops a packet only with a count
// and an error: ErrClosedForSend when the endpoint or the MAC is closed,
// ErrMessageTooLong for a packet that can never be sent, ErrNetworkUnreachable
// when there is no room and the link is down or the device has failed, and
// ErrNoBufferSpace when there is no room and the device has finished nothing for 5
// s. After that, packets for which there is no room are dropped without another
// wait until the device moves again. The error is that of the last packet dropped;
// those behind a packet that is too long are sent.
//
// The packets stay the caller's.
func (e *Endpoint) WritePackets(pkts stack.PacketBufferList) (int, tcpip.Error) {
	e.senders.RLock()
	defer e.senders.RUnlock()
	all := pkts.AsSlice()
	if !e.sendable {
		return 0, e.dropped(len(all), &tcpip.ErrClosedForSend{})
	}
	bufs := e.batches.Get().(*[txBatch]*pagepool.Buf)
	defer e.batches.Put(bufs)
	var last tcpip.Error
	sent := 0
	for len(all) > 0 {
		n, k := 0, 0 // packets looked at, frames made of them
		for n < min(len(all), txBatch) {
			b, err := e.frame(all[n], k == 0)
			if err != nil {
				last = e.dropped(1, err)
			} else if b != nil {
				bufs[k] = b
				k++
			} else {
				break // no buffer is free: send what there is first
			}
			n++
		}
		done, err := e.send(bufs[:k])
		sent += done
		if err != nil {
			last = err
		}
		all = all[n:]
	}
	return sent, last
}

// dropped counts packets that are not sent, by the error that says so.
func (e *Endpoint) dropped(n int, err tcpip.Error) tcpip.Error {
	c := &e.c.txNoRoom
	switch err.(type) {
	case *tcpip.ErrClosedForSend:
		c = &e.c.txClosed
	case *tcpip.ErrMessageTooLong:
		c = &e.c.txRefused
	case *tcpip.ErrNetworkUnreachable:
		c = &e.c.txNoLink
	}
	c.Add(uint64(n))
	return err
}

// frame copies a packet into buffers. When none is free it waits, if it may, or
// returns nil.
func (e *Endpoint) frame(pkt *stack.PacketBuffer, wait bool) (*pagepool.Buf, tcpip.Error) {
	head, err := e.alloc(pkt.Size(), wait)
	if head == nil {
		return nil, err
	}
	views, off := pkt.AsViewList()
	b, room := head, head.Tailroom()
	for v := views.Front(); v != nil; v = v.Next() {
		data := v.AsSlice()
		// The first views may hold room for headers that nobody used.
		skip := min(off, len(data))
		off -= skip
		for data = data[skip:]; len(data) > 0; {
			if room == 0 {
				b = b.Next()
				room = b.Tailroom()
			}
			at := b.Len()
			n := min(len(data), room)
			b.SetLen(at + n)
			copy(b.Bytes()[at:], data[:n])
			data, room = data[n:], room-n
		}
	}
	return head, nil
}

// alloc returns a chain of empty buffers with room for size bytes, or nil when
// there are not as many free and it may not wait.
func (e *Endpoint) alloc(size int, wait bool) (*pagepool.Buf, tcpip.Error) {
	var one [1]*pagepool.Buf
	if e.pool.AllocBatch(one[:]) == 1 {
		if one[0].Tailroom() >= size {
			return one[0], nil
		}
		if b := e.lengthen(one[0], size); b != nil {
			return b, nil
		}
	}
	if !wait {
		return nil, nil
	}
	return e.allocWait(size)
}

// lengthen links buffers to head until the chain has room for size bytes. When
// there are not as many free it frees all: those who wait for a part each would
// wait for each other.
func (e *Endpoint) lengthen(head *pagepool.Buf, size int) *pagepool.Buf {
	tail := head
	for size -= head.Tailroom(); size > 0; {
		b, err := e.pool.Alloc()
		if err != nil {
			e.pool.Free(head)
			return nil
		}
		tail.SetNext(b)
		tail = b
		size -= b.Tailroom()
	}
	return head
}

// allocWait is alloc when there are too few free buffers.
func (e *Endpoint) allocWait(size int) (*pagepool.Buf, tcpip.Error) {
	w := e.newWait()
	defer w.end()
	select {
	case e.turn <- struct{}{}:
		defer func() { <-e.turn }()
	case <-w.ctx.Done():
		return nil, e.gaveUp(w.ctx, w.ctx.Err())
	}
	for {
		e.tx.Reap(nil)
		first, err := e.pool.Alloc()
		some := err == nil
		if some {
			if b := e.lengthen(first, size); b != nil {
				return b, nil
			}
		} else if errors.Is(err, pagepool.ErrClosed) {
			return nil, &tcpip.ErrClosedForSend{}
		}
		if size > e.pool.Size()*e.pool.BufSize() {
			return nil, &tcpip.ErrMessageTooLong{}
		}
		if err := e.mayWait(); err != nil {
			return nil, err
		}
		e.c.txPoolWaits.Add(1)
		if e.tx.Inflight() > 0 {
			err = e.tx.Wait(w.ctx)
		} else {
			err = e.waitFreed(w.ctx, some)
		}
		if err != nil {
			return nil, e.gaveUp(w.ctx, err)
		}
	}
}

// waitFreed waits until a buffer comes back to the pool. With some, there are
// free ones, and so the pool would not wait: they are looked for again after a
// while.
func (e *Endpoint) waitFreed(ctx context.Context, some bool) error {
	if some {
		stop := e.after(poolPoll, func() {
			select {
			case e.freed <- struct{}{}:
			default:
			}
		})
		defer stop()
	} else {
		e.pool.NotifyFree(e.freed)
	}
	select {
	case <-e.freed:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// send sends frames and returns how many the ring took; it frees the others. It
// sleeps while the ring is full.
func (e *Endpoint) send(bufs []*pagepool.Buf) (sent int, last tcpip.Error) {
	var w *sendWait
	defer func() { w.end() }()
	for len(bufs) > 0 {
		bytes := 0
		for _, b := range bufs {
			bytes += b.FrameLen()
		}
		n, err := e.tx.Send(bufs)
		if n > 0 {
			e.stalled.Store(false)
			sent += n
			bufs = bufs[n:]
			for _, b := range bufs {
				bytes -= b.FrameLen()
			}
			e.c.txPackets.Add(uint64(n))
			e.c.txBytes.Add(uint64(bytes))
			w.end() // the next wait has all its time again
			w = nil
		}
		switch {
		case err == nil && len(bufs) == 0:
		case err == nil:
			if err := e.mayWait(); err != nil {
				e.pool.FreeBatch(bufs)
				return sent, e.dropped(len(bufs), err)
			}
			if w == nil {
				w = e.newWait()
			}
			e.c.txRingWaits.Add(1)
			// Send itself takes back what is finished, except on a MAC that was
			// opened to hand it out.
			if err := e.tx.Wait(w.ctx); err != nil {
				e.pool.FreeBatch(bufs)
				return sent, e.dropped(len(bufs), e.gaveUp(w.ctx, err))
			}
			e.tx.Reap(nil)
		case refused(err):
			e.pool.Free(bufs[0])
			bufs = bufs[1:]
			last = e.dropped(1, &tcpip.ErrMessageTooLong{})
		default:
			e.pool.FreeBatch(bufs)
			return sent, e.dropped(len(bufs), e.gaveUp(e.waits, err))
		}
	}
	return sent, last
}

// refused says whether err of Send is about the first frame, and not about the
// device.
func refused(err error) bool {
	return errors.Is(err, stmmac.ErrFrameTooLong) || errors.Is(err, stmmac.ErrFrameTooShort) ||
		errors.Is(err, stmmac.ErrForeignBuffer) || errors.Is(err, stmmac.ErrNotHeld)
}

// mayWait says why a sender for whom there is no room must not even begin to wait.
func (e *Endpoint) mayWait() tcpip.Error {
	switch {
	case !e.nic.Link().Up:
		return &tcpip.ErrNetworkUnreachable{}
	case e.stalled.Load():
		return &tcpip.ErrNoBufferSpace{}
	}
	return nil
}

// sendWait bounds the waits of a sender.
type sendWait struct {
	ctx    context.Context
	cancel context.CancelCauseFunc
	stop   func() bool
}

func (e *Endpoint) newWait() *sendWait {
	w := new(sendWait)
	w.ctx, w.cancel = context.WithCancelCause(e.waits)
	w.stop = e.after(sendPatience, func() { w.cancel(errStalled) })
	return w
}

func (w *sendWait) end() {
	if w != nil {
		w.stop()
		w.cancel(nil)
	}
}

// gaveUp says why a wait, or Send, ended with err.
func (e *Endpoint) gaveUp(ctx context.Context, err error) tcpip.Error {
	switch {
	case errors.Is(err, stmmac.ErrClosed):
		return &tcpip.ErrClosedForSend{}
	case ctx.Err() == nil:
		return &tcpip.ErrNetworkUnreachable{} // the device has failed
	case errors.Is(context.Cause(ctx), errStalled):
		if !e.stalled.Swap(true) {
			e.log.Warn().Dur("after", sendPatience).Msg("the device finishes no frame: dropping what it has no room for")
		}
		return &tcpip.ErrNoBufferSpace{}
	default:
		return &tcpip.ErrClosedForSend{}
	}
}
