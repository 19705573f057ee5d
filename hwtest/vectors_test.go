//go:build hwtest

package hwtest

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/gostmmac/gostmmac/hwtest/peer"
	"github.com/gostmmac/gostmmac/pagepool"
	"github.com/gostmmac/gostmmac/stmmac"
)

func vectorTests() []test {
	vector := core("interrupt", func(e *environment) bool { return e.handle.Device.NumInterrupts() > 0 })
	each := core("interrupt vector for each queue", func(e *environment) bool { return e.handle.Device.NumInterrupts() > 2 })
	severalRx := feature("second receive queue", func(f *stmmac.Features) bool { return f.RxQueues > 1 && f.RxChannels > 1 })
	severalTx := feature("second transmit queue", func(f *stmmac.Features) bool { return f.TxQueues > 1 && f.TxChannels > 1 })
	return []test{
		{"vectors/receive", []need{vector}, vectorRx},
		{"vectors/send", []need{vector}, vectorTx},
		{"vectors/each-queue", []need{each, severalRx, severalTx, can(peer.Tags)}, vectorEach},
		{"vectors/polling", nil, vectorPolling},
		{"vectors/wait-ends", nil, vectorEnds},
		{"queues/send", []need{severalTx}, queuesTx},
		{"queues/receive", []need{severalRx, can(peer.Tags)}, queuesRx},
		{"queues/schedulers", []need{severalTx}, queuesSched},
	}
}

// vectorRx sleeps until the interrupt of each of many frames.
func vectorRx(r *rig) {
	r.openMAC()
	rx, bufs := r.mac.Rx(0), make([]*pagepool.Buf, 16)
	for range r.scale(2000, 100) {
		f := frame(peer.DeviceAddr(), peer.PeerAddr(), shortest, r.next())
		var sent error
		var wait sync.WaitGroup
		wait.Go(func() { sent = r.env.peer.Send(r.env.ctx, f) })
		r.await(rx, bufs, f)
		wait.Wait()
		r.must(sent)
		r.figure("wakes", 1)
	}
}

// await waits on a queue until it has a frame.
func (r *rig) await(rx *stmmac.RxQueue, bufs []*pagepool.Buf, want []byte) {
	r.Helper()
	ctx, cancel := context.WithTimeout(r.env.ctx, patience)
	defer cancel()
	for {
		if err := rx.Wait(ctx); err != nil {
			r.Fatalf("nothing wakes the receive queue: %v", err)
		}
		n := rx.Recv(bufs)
		found := false
		for _, b := range bufs[:n] {
			f := make([]byte, b.FrameLen())
			b.CopyTo(f)
			found = found || compare([][]byte{f}, [][]byte{want}) == nil
		}
		r.mac.Pool().FreeBatch(bufs[:n])
		if found {
			return
		}
	}
}

// vectorTx sleeps until the interrupt for each of many frames that were sent.
func vectorTx(r *rig) {
	r.open()
	tx := r.mac.Tx(0).Shared()
	ctx, cancel := context.WithTimeout(r.env.ctx, patience)
	defer cancel()
	for range r.scale(2000, 100) {
		r.must(r.send(0, []*pagepool.Buf{r.chain(mark(peer.PeerAddr(), peer.DeviceAddr(), r.next()), 0)}))
		for tx.Inflight() > 0 {
			if err := tx.Wait(ctx); err != nil {
				r.Fatalf("nothing wakes the transmit queue: %v", err)
			}
			tx.Reap(nil)
		}
		_, err := r.peerRecv()
		r.must(err)
		r.figure("wakes", 1)
	}
}

// vectorPolling receives without an interrupt.
func vectorPolling(r *rig) {
	r.openMAC()
	r.pump(true)
	var sizes []int
	for i := range r.scale(5000, 300) {
		sizes = append(sizes, shortest+i%1400)
	}
	r.bothWays(sizes...)
}

// vectorEnds ends a wait by its context and by closing the MAC.
func vectorEnds(r *rig) {
	r.openMAC()
	ctx, cancel := context.WithCancel(r.env.ctx)
	ended := make(chan error, 1)
	wait := func(ctx context.Context) {
		rx, bufs := r.mac.Rx(0), make([]*pagepool.Buf, 16)
		for {
			if err := rx.Wait(ctx); err != nil {
				ended <- err
				return
			}
			r.mac.Pool().FreeBatch(bufs[:rx.Recv(bufs)]) // of somebody else
		}
	}
	go wait(ctx)
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		r.Errorf("a wait whose context ended: %v", err)
	}
	go wait(r.env.ctx)
	r.must(r.mac.Close())
	if err := <-ended; !errors.Is(err, stmmac.ErrClosed) {
		r.Errorf("a wait on a MAC that was closed: %v", err)
	}
}

// queues are the numbers of queues that the device has.
func queues(r *rig) (rx, tx int) {
	const most = 8
	f := r.env.features
	return min(f.RxQueues, f.RxChannels, most), min(f.TxQueues, f.TxChannels, most)
}

// queuesTx sends from each queue.
func queuesTx(r *rig) {
	_, n := queues(r)
	r.open(stmmac.WithQueues(1, n))
	for q := range n {
		r.sub(fmt.Sprint(q), func(r *rig) {
			r.tx = q
			var want [][]byte
			for i := range 40 {
				want = append(want, frame(peer.PeerAddr(), peer.DeviceAddr(), shortest+i*36, r.next()))
			}
			r.same("from the queue", r.emit(want...), want)
			if got := r.mac.Tx(q).Stats().Packets; got < uint64(len(want)) {
				r.Errorf("queue %d has counted %d frames of %d", q, got, len(want))
			}
		})
	}
	r.figures["queues"] = n
}

// byPriority sends frames of each priority, whose queue is another one for each, and
// expects them there.
func byPriority(r *rig, n int) {
	for p := range 8 {
		r.sub(fmt.Sprint(p), func(r *rig) {
			var want, got [][]byte
			for i := range 10 {
				want = append(want, tagged(frame(peer.DeviceAddr(), peer.PeerAddr(), shortest+i*100, r.next()), typeVLAN, uint16(p)<<13|5))
			}
			for _, f := range want { // each for itself: several queues keep no order
				r.must(r.env.peer.Send(r.env.ctx, f))
				g, err := r.recv()
				r.must(err)
				if g.queue != p%n {
					r.Errorf("priority %d came to queue %d, want %d", p, g.queue, p%n)
				}
				got = append(got, g.data)
			}
			r.same("to the queue", got, want)
		})
	}
}

// priorities spreads the priorities of tags over n queues.
func priorities(n int) stmmac.Option {
	return stmmac.WithConfig(func(c *stmmac.Config) {
		c.Queues.PriorityQueue = make([]int, 8)
		for p := range c.Queues.PriorityQueue {
			c.Queues.PriorityQueue[p] = p % n
		}
	})
}

// queuesRx receives on each queue.
func queuesRx(r *rig) {
	n, _ := queues(r)
	r.open(stmmac.WithQueues(n, 1), priorities(n))
	byPriority(r, n)
	r.figures["queues"] = n
}

// vectorEach is both with a vector for each queue.
func vectorEach(r *rig) {
	n, m := queues(r)
	r.open(stmmac.WithQueues(n, m), priorities(n))
	byPriority(r, n)
	for q := range m {
		r.tx = q
		f := frame(peer.PeerAddr(), peer.DeviceAddr(), 1000, r.next())
		r.same(fmt.Sprint("queue ", q), r.emit(f), [][]byte{f})
	}
	r.figures["vectors"] = r.env.handle.Device.NumInterrupts()
}

// queuesSched sends from all queues with each scheduler.
func queuesSched(r *rig) {
	_, n := queues(r)
	for _, s := range []stmmac.TxSched{stmmac.TxWRR, stmmac.TxWFQ, stmmac.TxDWRR, stmmac.TxSP} {
		if (s == stmmac.TxWFQ || s == stmmac.TxDWRR) && !r.env.features.DCB {
			continue
		}
		r.sub(s.String(), func(r *rig) {
			r.open(stmmac.WithQueues(1, n), stmmac.WithConfig(func(c *stmmac.Config) { c.Queues.TxSched = s }))
			for i := range 8 * n {
				r.tx = i % n
				f := frame(peer.PeerAddr(), peer.DeviceAddr(), shortest+i*20, r.next())
				r.same(fmt.Sprint("queue ", r.tx), r.emit(f), [][]byte{f})
			}
		})
	}
}
