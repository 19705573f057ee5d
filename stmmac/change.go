package stmmac

import (
	"context"
	"fmt"
	"os"

	"github.com/gostmmac/gostmmac/stmmac/internal/core"
)

// change is rebuild for a call named op of the application.
func (m *MAC) change(ctx context.Context, op string, check func() error, set func(*Config) (undo func())) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.alive(op); err != nil {
		return err
	}
	if err := check(); err != nil {
		return wrap(op, m.cfg.Name, err)
	}
	// Close does not wait for what a device that does not obey may take.
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(m.life, cancel)()
	err := m.rebuild(ctx, op, true, set)
	// The end of m.life may reach ctx later than what it ends gives up by itself.
	if err != nil && m.life.Err() != nil {
		return &Error{Op: op, Dev: m.cfg.Name, Err: ErrClosed}
	}
	return err
}

// alive says why nothing can be changed any more, or nil. The caller holds m.mu.
func (m *MAC) alive(op string) error {
	if m.closed() {
		return &Error{Op: op, Dev: m.cfg.Name, Err: ErrClosed}
	}
	return m.Err()
}

// SetMTU changes the longest payload of a frame, 46 to 9000 bytes and at most
// what the FIFOs hold. The rings are rebuilt, so the link is off for a moment;
// frames that were received before wait for Recv, and those that cannot be sent
// in time are counted as flushed. After an error the MAC runs with the old MTU,
// unless Err says that it is down. Buffers that are longer than a frame may be
// are not changed.
func (m *MAC) SetMTU(ctx context.Context, mtu int) error {
	return m.change(ctx, "set MTU", func() error { return m.fitsMTU(mtu) }, func(c *Config) func() {
		old := c.MTU
		c.MTU = mtu
		return func() { c.MTU = old }
	})
}

// SetRings changes the numbers of descriptors in each ring, 2 to 1024, in the
// same way as SetMTU changes the MTU.
func (m *MAC) SetRings(ctx context.Context, rx, tx int) error {
	return m.change(ctx, "set rings", func() error {
		for _, n := range []int{rx, tx} {
			if n < minRing || n > core.MaxRing {
				return fmt.Errorf("a ring of %d descriptors is not in %d..%d: %w", n, minRing, core.MaxRing, os.ErrInvalid)
			}
		}
		return nil
	}, func(c *Config) func() {
		oldRx, oldTx := c.RxRing, c.TxRing
		c.RxRing, c.TxRing = rx, tx
		return func() { c.RxRing, c.TxRing = oldRx, oldTx }
	})
}
