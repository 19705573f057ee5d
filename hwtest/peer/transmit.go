package peer

import (
	"context"
	"fmt"

	"github.com/gostmmac/gostmmac/pagepool"
	"github.com/gostmmac/gostmmac/stmmac"
)

// transmit sends frames through queue 0 of a MAC, in as many buffers as each needs,
// and returns when the queue has all of them.
func transmit(ctx context.Context, m *stmmac.MAC, frames [][]byte) error {
	tx := m.Tx(0).Shared()
	for _, f := range frames {
		b, err := Chain(m.Pool(), f, 0)
		for err != nil && tx.Inflight() > 0 {
			// The buffers are with the device: those that it has finished come back.
			if err := tx.Wait(ctx); err != nil {
				return err
			}
			tx.Reap(nil)
			b, err = Chain(m.Pool(), f, 0)
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

// Chain is a frame in buffers of at most each bytes, or with 0 of as many as fit.
func Chain(pool *pagepool.Pool, f []byte, each int) (*pagepool.Buf, error) {
	var head, tail *pagepool.Buf
	for len(f) > 0 || head == nil {
		b, err := pool.Alloc()
		if err != nil {
			if head != nil {
				pool.Free(head)
			}
			return nil, err
		}
		n := min(len(f), b.Tailroom()+b.Len())
		if each > 0 {
			n = min(n, each)
		}
		if !b.SetData(f[:n]) {
			pool.Free(b)
			if head != nil {
				pool.Free(head)
			}
			return nil, fmt.Errorf("%d bytes do not fit a buffer", n)
		}
		f = f[n:]
		if head == nil {
			head = b
		} else {
			tail.SetNext(b)
		}
		tail = b
	}
	return head, nil
}
