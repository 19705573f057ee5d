package main

import (
	"context"
	"errors"

	"github.com/gostmmac/gostmmac/pagepool"
	"github.com/gostmmac/gostmmac/stmmac"
)

// counts are of frames.
type counts struct {
	echoed  uint64 // given to the device to send
	group   uint64 // sent to a group address, or without one: dropped
	refused uint64 // that the device can never send: dropped
}

// echo sends every frame back to where it came from, in the buffer that it was
// received in, until ctx ends or the MAC fails.
func echo(ctx context.Context, rx *stmmac.RxQueue, tx *stmmac.TxQueue, pool *pagepool.Pool) (c counts, err error) {
	var batch [stmmac.MaxBatch]*pagepool.Buf
	for {
		n := rx.Recv(batch[:])
		if n == 0 {
			if err := rx.Wait(ctx); err != nil {
				return c, err
			}
			continue
		}
		k := 0
		for _, b := range batch[:n] {
			if !turn(b.Bytes()) {
				pool.Free(b)
				c.group++
				continue
			}
			batch[k] = b
			k++
		}
		for rest := batch[:k]; len(rest) > 0; {
			n, err := tx.Send(rest)
			rest = rest[n:]
			c.echoed += uint64(n)
			switch {
			case errors.Is(err, stmmac.ErrClosed):
				pool.FreeBatch(rest)
				return c, err
			case err != nil: // rest[0] can never be sent
				pool.Free(rest[0])
				rest = rest[1:]
				c.refused++
			case len(rest) > 0:
				// The ring is full. Nothing is received meanwhile, so that a
				// sender that is too fast loses frames in the MAC, where it
				// costs nothing.
				if err := tx.Wait(ctx); err != nil {
					pool.FreeBatch(rest)
					return c, err
				}
			}
		}
	}
}

const addrLen = 6 // bytes of a MAC address, IEEE 802

// turn swaps the destination and the source, with which an Ethernet frame
// starts. It leaves the frame alone and reports false when the destination is a
// group address, which must not be a source (IEEE 802.3 clause 3.2.3), or when
// the frame ends before its addresses do.
func turn(frame []byte) bool {
	if len(frame) < 2*addrLen || frame[0]&1 != 0 {
		return false
	}
	dst, src := [addrLen]byte(frame), [addrLen]byte(frame[addrLen:])
	copy(frame, src[:])
	copy(frame[addrLen:], dst[:])
	return true
}
