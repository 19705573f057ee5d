package drive

import (
	"context"
	"fmt"

	"github.com/gostmmac/gostmmac/hwtest/rig/note"
	"github.com/gostmmac/gostmmac/pagepool"
)

// from takes from c, and to gives to it. They say no when ctx ends first.
func from(ctx context.Context, c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	case <-ctx.Done():
		return false
	}
}

func to(ctx context.Context, c chan<- struct{}) bool {
	select {
	case c <- struct{}{}:
		return true
	case <-ctx.Done():
		return false
	}
}

// sticky receives frames one at a time, each of which comes when the driver sleeps with its
// interrupt enabled, and counts interrupts: one that is lost makes Wait sleep for ever, and a
// line that stays high for want of a cleared summary interrupts for ever.
//
// Nothing like that can be done for sent frames: the model is done with them before the
// store of the poll demand has returned, so nobody ever sleeps for one.
func sticky(ctx context.Context, b *board) error {
	const total = 500
	regs, err := b.regs()
	if err != nil {
		return err
	}
	s, q := &sender{b: b, mtu: smallest}, &sequence{mtu: smallest}
	before := b.dev.fired.Load()
	asleep, taken := make(chan struct{}), make(chan struct{})
	err = together(ctx, func(ctx context.Context) error {
		for range total {
			if !from(ctx, asleep) {
				return nil
			}
			// In this order: the interrupt of the frame before, if it comes late, clears
			// the enable and then the status.
			for regs.Load32(regStatus)&intRI != 0 || regs.Load32(regIntEnable)&intRI == 0 {
				if ctx.Err() != nil {
					return nil
				}
			}
			if err := s.send(ctx, 1); err != nil {
				return err
			}
			if !from(ctx, taken) {
				return nil
			}
		}
		return nil
	}, func(ctx context.Context) error {
		for i := range total {
			if !to(ctx, asleep) {
				return nil
			}
			if err := q.fill(ctx, b, i+1); err != nil {
				return err
			}
			if n := b.mac.Rx(0).Recv(make([]*pagepool.Buf, 1)); n != 0 {
				return fmt.Errorf("a frame came behind frame %d that was not sent", i)
			}
			if !to(ctx, taken) {
				return nil
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	for range 100 {
		regs.Load32(regStatus)
	}
	// The model interrupts in the first of its two steps. A driver that looks before the
	// second sleeps on, and needs another interrupt or looks again by itself. A frame that
	// comes while the interrupt of the one before is served has none of its own.
	n := b.dev.fired.Load() - before
	if n == 0 || n > 2*total {
		return fmt.Errorf("%d interrupts for %d frames, each waited for", n, total)
	}
	// At rest the line is low: the summaries were cleared with their causes.
	if v := regs.Load32(regStatus); v&(statusNIS|statusAIS) != 0 && regs.Load32(regIntEnable)&intRI != 0 {
		return fmt.Errorf("the status is %#x at rest, with the interrupt enabled", v)
	}
	note.Printf(ctx, "%d frames, %d interrupts", total, n)
	return b.received(total, 0)
}
