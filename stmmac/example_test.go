package stmmac_test

import (
	"context"
	"fmt"
	"log"

	"github.com/gostmmac/gostmmac/pagepool"
	"github.com/gostmmac/gostmmac/stmmac"
	"github.com/gostmmac/gostmmac/stmmac/sim"
)

// Open a MAC, receive a batch of frames and send it back. The device here is
// simulated, with a cable to a second one.
func Example() {
	ctx := context.Background()
	near, far := sim.NewPair(64)
	defer far.Close()
	dev, err := sim.New(sim.Config{}, near)
	if err != nil {
		log.Fatal(err)
	}
	defer dev.Close()

	mac, err := stmmac.Open(ctx, dev, stmmac.WithGeneration(stmmac.GMAC4), stmmac.WithLink(stmmac.Link{Up: true, Speed: 1000, FullDuplex: true}), stmmac.WithPromiscuous())
	if err != nil {
		log.Fatal(err)
	}
	defer mac.Close()

	far.Transmit(sim.Frame{Data: frame(60, 42)}) // somebody sends to us

	rx, tx := mac.Rx(0), mac.Tx(0)
	bufs := make([]*pagepool.Buf, 32)
	for {
		n := rx.Recv(bufs) // never blocks
		if n == 0 {
			if err := rx.Wait(ctx); err != nil {
				log.Fatal(err)
			}
			continue
		}
		fmt.Println("received", bufs[0].Len(), "bytes")
		sent, err := tx.Send(bufs[:n]) // the same buffers, no copy
		if err != nil {
			log.Fatal(err)
		}
		mac.Pool().FreeBatch(bufs[sent:n]) // what the ring had no room for
		break
	}
	for tx.Inflight() > 0 {
		if err := tx.Wait(ctx); err != nil {
			log.Fatal(err)
		}
		tx.Reap(nil)
	}
	fmt.Println("sent", tx.Stats().Done)
	// Output:
	// received 60 bytes
	// sent 1
}
