package ours

import (
	"github.com/gostmmac/gostmmac/pagepool"
	"github.com/gostmmac/gostmmac/stmmac"
)

// Forward receives up to the given number of packets from rx in batches of
// len(bufs), changes the first byte of each and sends them on tx. What tx does
// not take is dropped. It returns the number of packets sent, and returns early
// when nothing is left to receive.
//
// It must not be inlined: the profile counts it by the name of this package.
//
//go:noinline
func Forward(rx *stmmac.RxQueue, tx *stmmac.TxQueue, pool *pagepool.Pool, bufs []*pagepool.Buf, packets int) (int, error) {
	sent := 0
	for done := 0; done < packets; {
		n := rx.Recv(bufs[:min(len(bufs), packets-done)])
		if n == 0 {
			break
		}
		for _, b := range bufs[:n] {
			b.Bytes()[0]++
		}
		taken, err := tx.Send(bufs[:n])
		if taken < n {
			pool.FreeBatch(bufs[taken:n])
		}
		if err != nil {
			return sent + taken, err
		}
		done += n
		sent += taken
	}
	return sent, nil
}
