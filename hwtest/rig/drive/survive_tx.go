package drive

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/gostmmac/gostmmac/barrier"
	"github.com/gostmmac/gostmmac/hwtest/rig/note"
	"github.com/gostmmac/gostmmac/mmio"
)

// pollDemands sends batches of all sizes up to the window and touches nothing behind each:
// the poll demand of Send alone makes the model look at the list.
func pollDemands(ctx context.Context, b *board) error {
	const rounds = 20
	var demands atomic.Int64
	defer b.dev.see(func(a mmio.Access) {
		if a.Store && a.Off == regTxPoll {
			demands.Add(1)
		}
	})()
	i, sends := 0, 0
	for range rounds {
		for k := 1; k <= window; k++ {
			if err := b.sendAtOnce(ctx, b.frame, i, k); err != nil {
				return err
			}
			sends++
			i += k
		}
	}
	if n := demands.Load(); n != int64(sends) {
		return fmt.Errorf("%d poll demands for %d calls of Send", n, sends)
	}
	note.Printf(ctx, "%d frames in %d calls of Send, each with one poll demand", i, sends)
	return nil
}

// sendAtOnce sends k frames from frame i on in one call of Send, and takes them off the wire.
func (b *board) sendAtOnce(ctx context.Context, of func(i int) []byte, i, k int) error {
	bufs, err := b.batch(of, i, k)
	if err != nil {
		return err
	}
	n, err := b.mac.Tx(0).Send(bufs)
	b.mac.Pool().FreeBatch(bufs[n:])
	if err == nil && n != k {
		err = fmt.Errorf("one call of Send took %d of %d frames", n, k)
	}
	if err != nil {
		return err
	}
	return b.leave(ctx, of, i, k)
}

// noTxBuffer takes the buffer of a frame away just before its poll demand: the model stops
// there and says nothing. The driver sees that the queue stands still and rebuilds the MAC;
// it counts the frame as flushed, and those behind it.
func noTxBuffer(ctx context.Context, b *board) error {
	const rounds, lost = 5, 3
	var failed error // in the calls of see, which are those of Send
	var take atomic.Bool
	slot := 0 // in which the frame lies; each rebuild begins the list anew
	defer b.dev.see(func(a mmio.Access) {
		if !a.Store || a.Off != regTxPoll || !take.Swap(false) {
			return
		}
		list, err := b.list(regTxList)
		if err != nil {
			failed = err
			return
		}
		barrier.StoreOwn(list.word(slot, 2), unmapped)
	})()
	i := 0
	for slot = range rounds {
		for range slot {
			if err := b.sendAtOnce(ctx, b.frame, i, 1); err != nil {
				return err
			}
			i++
		}
		bufs, err := b.batch(b.frame, i, lost)
		if err != nil {
			return err
		}
		take.Store(true)
		if err := errors.Join(send(ctx, b.mac, bufs), failed); err != nil {
			return err
		}
		for b.recoveries() <= uint64(slot) {
			if err := b.mac.Tx(0).Wait(ctx); err != nil {
				return fmt.Errorf("after %d rebuilds: %w; %+v", slot, err, b.mac.Tx(0).Stats())
			}
			if err := ctx.Err(); err != nil {
				return fmt.Errorf("after %d rebuilds: the MAC is not rebuilt: %w", slot, err)
			}
		}
		i += lost
	}
	if err := exchange(ctx, b, 200); err != nil {
		return err
	}
	if err := b.finish(ctx); err != nil {
		return err
	}
	s := b.mac.Tx(0).Stats()
	if s.Flushed != rounds*lost || s.Done != s.Packets {
		return fmt.Errorf("the driver counts %+v, want all of them done, %d flushed among them", s, rounds*lost)
	}
	note.Printf(ctx, "%d rebuilds, %d frames flushed and counted", rounds, s.Flushed)
	return nil
}

// finish waits until no frame is with the device.
func (b *board) finish(ctx context.Context) error {
	for b.mac.Tx(0).Inflight() > 0 {
		if err := b.mac.Tx(0).Wait(ctx); err != nil {
			return fmt.Errorf("%w; %+v", err, b.mac.Tx(0).Stats())
		}
		b.mac.Tx(0).Reap(nil)
	}
	return nil
}

// recoveries is how often the driver has rebuilt the MAC after a fault.
func (b *board) recoveries() uint64 {
	for name, v := range b.mac.Counters() {
		if name == "recoveries" {
			return v
		}
	}
	return 0
}

// noBackPressure sends twice as many frames as QEMU's queue holds while nobody takes one off
// the wire. All are done for the driver, and those behind the end of the queue are gone.
func noBackPressure(ctx context.Context, b *board) error {
	const total, queue = 20_000, 10_000
	for i := 0; i < total; i += window {
		bufs, err := b.batch(upTo(smallest), i, window)
		if err == nil {
			err = send(ctx, b.mac, bufs)
		}
		if err != nil {
			return fmt.Errorf("after %d frames: %w; %+v", i, err, b.mac.Tx(0).Stats())
		}
	}
	if err := b.finish(ctx); err != nil {
		return err
	}
	if s := b.mac.Tx(0).Stats(); s.Packets != total || s.Done != total || b.recoveries() != 0 {
		return fmt.Errorf("the driver counts %+v and %d rebuilds, want %d frames and none", s, b.recoveries(), total)
	}
	// The queue keeps the first ones.
	if err := b.leave(ctx, upTo(smallest), 0, queue); err != nil {
		return err
	}
	// One more finds room now, behind those that are left.
	mark, err := b.batch(upTo(smallest), total, 1)
	if err == nil {
		err = send(ctx, b.mac, mark)
	}
	if err != nil {
		return err
	}
	came := queue
	for {
		got, err := recv(ctx, b.wire)
		if err != nil {
			return fmt.Errorf("after %d frames: %w", came, err)
		}
		if number(got) == total {
			break
		}
		if err := same("sent", came, got, frame(smallest, came)); err != nil {
			return err
		}
		came++
	}
	if came == total {
		return errors.New("no frame was dropped: the model has changed")
	}
	note.Printf(ctx, "all of %d frames done for the driver, %d dropped by QEMU", total, total-came)
	return exchange(ctx, b, 200)
}

// longDoorbells sends batches of more than 64 KiB, of which the whole content is compared.
func longDoorbells(ctx context.Context, b *board) error {
	const rounds, each, size = 50, 64, 1514
	if err := b.version(ctx); err != nil {
		return err
	}
	of := func(i int) []byte { return sized(size, i) }
	for i := range rounds {
		if err := errors.Join(b.sendAtOnce(ctx, of, i*each, each), b.finish(ctx)); err != nil {
			return fmt.Errorf("poll demand %d: %w", i, err)
		}
	}
	note.Printf(ctx, "%d poll demands of %d bytes", rounds, each*size)
	return nil
}
