package stmmac_test

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/gostmmac/gostmmac/pagepool"
	"github.com/gostmmac/gostmmac/stmmac"
	"github.com/gostmmac/gostmmac/stmmac/sim"
)

// half is a link on which no transmit queue but queue 0 works (case D55).
var half = stmmac.Link{Up: true, Speed: 100}

// TestD55 sends on all queues of a MAC in half duplex, on a device that completes
// frames of queue 0 alone, and in full duplex before and after.
func TestD55(t *testing.T) {
	for _, keep := range []bool{false, true} {
		t.Run(fmt.Sprintf("keep %v", keep), func(t *testing.T) {
			opts := []stmmac.Option{stmmac.WithQueues(4, 4)}
			if keep {
				opts = append(opts, stmmac.WithTxCompletions())
			}
			r := newRig(t, rigConfig{
				bufs: 4096, sim: sim.Config{RxQueues: 4, TxQueues: 4, NoPHY: true, Faults: sim.Faults{HalfDuplexQueue0Only: true}}, opts: opts})
			for round, l := range []stmmac.Link{gigabit, half, {Up: true, Speed: 10}, gigabit, half, {}, half, gigabit} {
				if err := r.mac.SetLink(l); err != nil {
					t.Fatalf("%v: %v", l, err)
				}
				if !l.Up {
					continue
				}
				var want [][]byte
				for q := range 4 {
					for k := range 3 {
						f := frame(60+q, uint64(100*round+10*q+k))
						want = append(want, f)
						if n, err := r.mac.Tx(q).Send([]*pagepool.Buf{r.buf(f, 40)}); n != 1 || err != nil {
							t.Fatalf("%v, queue %d: %d, %v", l, q, n, err)
						}
					}
				}
				r.step()
				sent := r.wire.take()
				if len(sent) != len(want) {
					t.Fatalf("%v: %d frames left, want %d", l, len(sent), len(want))
				}
				for _, f := range want {
					found := false
					for _, s := range sent {
						found = found || bytes.Equal(s, f)
					}
					if !found {
						t.Fatalf("%v: a frame is missing", l)
					}
				}
				if keep {
					got, bufs := 0, make([]*pagepool.Buf, 20)
					for q := range 4 {
						n := r.mac.Tx(q).Reap(bufs)
						r.pool.FreeBatch(bufs[:n])
						got += n
					}
					if got != len(want) {
						t.Fatalf("%v: %d frames came back", l, got)
					}
				}
				r.onlyRx()
				if l == half && r.mac.Tx(3).Space() != r.mac.Tx(0).Space() {
					t.Error("queue 3 has room of its own")
				}
			}
			// As one queue, that has the whole FIFO, and as four.
			const txMode = 0x0d00
			share := r.dev.Load(txMode) >> 16
			if err := r.mac.SetLink(half); err != nil {
				t.Fatal(err)
			}
			if all := r.dev.Load(txMode) >> 16; all != 4*share+3 {
				t.Errorf("queue 0 has %d units of 256 bytes in half duplex, %d in full", all+1, share+1)
			}
		})
	}
}

// TestHalfDuplexWaiters lets all queues send and wait for room while the duplex
// changes: nobody hangs.
func TestHalfDuplexWaiters(t *testing.T) {
	for _, vectors := range []string{"common", "each"} {
		t.Run(vectors, func(t *testing.T) {
			c := newCable(t, sim.Config{RxQueues: 2, TxQueues: 4, NoPHY: true}, vectors, stmmac.WithQueues(2, 4), stmmac.WithRings(64, 8))
			ctx := patience(t)
			const each = 300
			errs := make(chan error, 5)
			for q := range 4 {
				go func() {
					for i := range each {
						b, err := c.pool.Alloc()
						if err == nil {
							b.SetData(frame(60, uint64(q)<<32|uint64(i)))
							err = sendOne(ctx, c.mac[0].Tx(q), b)
						}
						if err != nil {
							errs <- fmt.Errorf("queue %d, frame %d: %w", q, i, err)
							return
						}
					}
					errs <- nil
				}()
			}
			for i := range scale(t, 3000) {
				if err := c.mac[0].SetLink([]stmmac.Link{half, gigabit}[i%2]); err != nil {
					t.Fatal(err)
				}
			}
			for range 4 {
				if err := <-errs; err != nil {
					t.Error(err)
				}
			}
		})
	}
}
