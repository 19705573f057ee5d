package peer

import (
	"context"

	"github.com/gostmmac/gostmmac/pagepool"
	"github.com/gostmmac/gostmmac/stmmac"
)

// transmit sends frames through queue 0 of a MAC, in as many buffers as each needs,
// and returns when the queue has all of them.
func transmit(ctx context.Context, m *stmmac.MAC, frames [][]byte) error {
	tx := m.Tx(0).Shared()
	for _, f := range frames {
		b, err := m.Pool().AllocFrame(f, 0)
		for err != nil && tx.Inflight() > 0 {
			// The buffers are with the device: those that it has finished come back.
			if err := tx.Wait(ctx); err != nil {
				return err
			}
			tx.Reap(nil)
			b, err = m.Pool().AllocFrame(f, 0)
		}
		if err != nil {
			return err
		}
		for one := []*pagepool.Buf{b}; ; {
			n, err := tx.Send(one)
			if n == 1 {
				break
			}
			if err == nil {
				err = tx.Wait(ctx)
			}
			if err != nil {
				m.Pool().Free(b)
				return err
			}
			tx.Reap(nil)
		}
	}
	return nil
}
