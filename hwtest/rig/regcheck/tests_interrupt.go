package regcheck

import (
	"context"
	"errors"
	"fmt"

	"github.com/gostmmac/gostmmac/mmio"
)

// fires waits for the interrupt and looks for the bits that caused it.
func (b *Board) fires(ctx context.Context, v mmio.Interrupt, want uint32) error {
	if _, err := v.Wait(ctx); err != nil {
		return fmt.Errorf("waiting for the interrupt with %#x: %w", want, err)
	}
	if got := b.regs.Load32(dmaStatus); got&want != want {
		return fmt.Errorf("the interrupt came with status %#x instead of %#x", got, want)
	}
	return nil
}

// quiet says whether the interrupt has not fired. It does not wait: an interrupt comes
// before the answer of the access that causes it.
func quiet(v mmio.Interrupt) error {
	ended, end := context.WithCancel(context.Background())
	end()
	n, err := v.Wait(ended)
	if errors.Is(err, context.Canceled) {
		return nil
	}
	return errors.Join(err, fmt.Errorf("the interrupt fired %d times", n))
}

// cycle goes through the life of an interrupt: cause makes it happen, and it is caused by
// the bits of want.
func (b *Board) cycle(ctx context.Context, want uint32, cause func(i int) error) (err error) {
	v, err := b.Device.Interrupt(0)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, v.Close()) }()
	b.regs.Store32(dmaIntEnable, want)
	if err := quiet(v); err != nil {
		return fmt.Errorf("before its cause: %w", err)
	}
	for i := range 20 {
		if err := cause(i); err != nil {
			return err
		}
		if err := b.fires(ctx, v, want); err != nil {
			return err
		}
		if err := quiet(v); err != nil {
			return fmt.Errorf("masked: %w", err)
		}
		// The line is high until its cause is cleared.
		if err := v.Unmask(); err != nil {
			return err
		}
		if err := b.fires(ctx, v, want); err != nil {
			return fmt.Errorf("unmasked with its cause pending: %w", err)
		}
		b.regs.Store32(dmaStatus, want|intTI|intTU|intRI|intNIS)
		if err := v.Unmask(); err != nil {
			return err
		}
		if err := quiet(v); err != nil {
			return fmt.Errorf("with its cause cleared: %w", err)
		}
	}
	// What is not enabled does not interrupt.
	b.regs.Store32(dmaIntEnable, 0)
	if err := cause(20); err != nil {
		return err
	}
	if err := b.poll(ctx, dmaStatus, want&^intNIS, want&^intNIS); err != nil {
		return err
	}
	return quiet(v)
}

func transmitInterrupt(ctx context.Context, b *Board, m mode) error {
	d, err := newDescs(b, m, 8)
	if err != nil {
		return err
	}
	b.start(nil, d)
	at := 0
	return b.cycle(ctx, intTI|intNIS, func(i int) error {
		f := fill(100+i, i)
		at = d.postTx(at, f, maxBuffer, txIC)
		b.regs.Store32(dmaTxPoll, 1)
		got, err := b.Wire.Recv(ctx)
		if err != nil {
			return err
		}
		return same(got, f)
	})
}

func receiveInterrupt(ctx context.Context, b *Board, m mode) error {
	d, err := newDescs(b, m, 32)
	if err != nil {
		return err
	}
	for i := range d.n {
		d.postRx(i)
	}
	b.start(d, nil)
	// Nobody touches a register between the frame and its interrupt.
	return b.cycle(ctx, intRI|intNIS, func(i int) error { return b.Wire.Send(ctx, fill(100+i, i)) })
}
