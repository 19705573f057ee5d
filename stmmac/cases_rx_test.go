package stmmac_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/gostmmac/gostmmac/mmio"
	"github.com/gostmmac/gostmmac/pagepool"
	"github.com/gostmmac/gostmmac/stmmac"
	"github.com/gostmmac/gostmmac/stmmac/internal/regs/gmac4reg"
	"github.com/gostmmac/gostmmac/stmmac/sim"
)

// csr is the register space of the model.
func (r *rig) csr() mmio.Region {
	r.Helper()
	m, err := r.dev.Region(0)
	if err != nil {
		r.Fatal(err)
	}
	return m
}

// channel is the registers of a DMA channel.
func (r *rig) channel(ch int) mmio.Region { return gmac4reg.DefaultLayout.DMAChannel(r.csr(), ch) }

// rxCurrent is the slot that the engine is at, as the registers tell.
func (r *rig) rxCurrent(ch int) int {
	c := r.channel(ch)
	return int(gmac4reg.DMACHCurAppRxDesc.Load(c)-gmac4reg.DMACHRxDescListAddr.Load(c)) / gmac4reg.DescSize
}

// rxOwned is how many of n slots the engine may use: those from the current one
// to the tail.
func (r *rig) rxOwned(ch, n int) int {
	c := r.channel(ch)
	tail := int(gmac4reg.DMACHRxDescTailPointer.Load(c)-gmac4reg.DMACHRxDescListAddr.Load(c)) / gmac4reg.DescSize
	return (tail - r.rxCurrent(ch) + n) % n
}

// overflows reads, and so clears, the count of frames that a queue had no room for.
func (r *rig) overflows(q int) int {
	return int(gmac4reg.OVFPKTCNT.Get(gmac4reg.MTLRxQMissedOverflow.Load(gmac4reg.DefaultLayout.MTLQueue(r.csr(), q))))
}

// burst delivers frames while nobody polls and returns after how many of them the
// engine said that it has no descriptor left, 0 if never.
func (r *rig) burst(in [][]byte) (dry int) {
	for i, f := range in {
		r.wire.deliver(f)
		r.step()
		if dry == 0 && gmac4reg.DMACHStatus.Load(r.channel(0))&gmac4reg.RBU != 0 {
			dry = i + 1
		}
	}
	return dry
}

// TestD01: the tail is where the ring ends, not the next slot.
func TestD01(t *testing.T) {
	rounds := scale(t, 10_000)
	for _, n := range []int{2, 3, 4, 7, 8, 64} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			r := newRig(t, rigConfig{opts: []stmmac.Option{stmmac.WithRings(n, n)}})
			if got := r.rxOwned(0, n); got != n-1 {
				t.Fatalf("after Open the engine has %d descriptors", got)
			}
			for round := range rounds {
				in := frames(n-1, 60+round%200, uint64(round*n))
				if dry := r.burst(in); dry != n-1 {
					t.Fatalf("round %d: RBU after frame %d", round, dry)
				}
				if got := r.rxOwned(0, n); got != 0 {
					t.Fatalf("round %d: %d descriptors left", round, got)
				}
				gmac4reg.DMACHStatus.Store(r.channel(0), gmac4reg.RBU)
				batch := round%(n-1) + 1
				for got := 0; got < n-1; {
					bells := r.dev.Stats().RxDoorbells
					out := r.recv(min(batch, n-1-got))
					if len(out) == 0 {
						t.Fatalf("round %d: %d frames of %d", round, got, n-1)
					}
					r.same(out, in[got:][:len(out)])
					got += len(out)
					if owned := r.rxOwned(0, n); r.dev.Stats().RxDoorbells != bells && (owned == 0 || owned > got) {
						t.Fatalf("round %d: %d descriptors after a refill of at most %d", round, owned, got)
					}
				}
				if len(r.recv(1)) != 0 {
					t.Fatal("a frame too many")
				}
				if got := r.rxOwned(0, n); got != n-1 {
					t.Fatalf("round %d: the engine has %d descriptors", round, got)
				}
			}
			r.settled()
		})
	}
	t.Run("control", func(t *testing.T) {
		const n = 8
		r := newRig(t, rigConfig{opts: []stmmac.Option{stmmac.WithRings(n, n)}})
		r.tolerate = []sim.ViolationKind{sim.TailOvertakes}
		c := r.channel(0)
		gmac4reg.DMACHRxDescTailPointer.Store(c, gmac4reg.DMACHRxDescListAddr.Load(c)+gmac4reg.DescSize)
		if dry := r.burst(frames(n-1, 60, 0)); dry != 1 {
			t.Errorf("with the tail at the next slot RBU comes after frame %d", dry)
		}
		if len(r.dev.Audit()) == 0 {
			t.Error("the audit says nothing")
		}
	})
}

// TestD02: a transmit ring is full with one descriptor less than it has.
func TestD02(t *testing.T) {
	const n = 4
	rounds := scale(t, 1000)
	for _, engine := range []bool{true, false} { // what stands still: the engine, or the wire behind it
		for per := 1; per <= 3; per++ { // descriptors of a frame
			for start := range n {
				t.Run(fmt.Sprintf("engine %v, %d descriptors, from slot %d", engine, per, start), func(t *testing.T) {
					r := newRig(t, rigConfig{opts: []stmmac.Option{stmmac.WithRings(n, n)}})
					tx, c := r.mac.Tx(0), r.channel(0)
					for range start {
						r.send(frame(60, 0))
						r.step()
						tx.Reap(nil)
					}
					r.wire.take()
					for round := range rounds {
						r.wire.blocked = true
						var in [][]byte
						var refused *pagepool.Buf
						for refused == nil {
							f := frame(60*per, uint64(round*n+len(in)))
							in = append(in, f)
							b := r.buf(f, 60)
							k, err := tx.Send([]*pagepool.Buf{b})
							if err != nil {
								t.Fatal(err)
							}
							if k == 0 {
								refused = b
							}
							if !engine {
								r.step()
							}
							if gmac4reg.DMACHTxDescTailPointer.Load(c) == gmac4reg.DMACHCurAppTxDesc.Load(c) {
								t.Fatalf("round %d: tail and current are the same with %d frames queued", round, len(in))
							}
							if k := tx.Inflight(); k > n-1 {
								t.Fatalf("round %d: %d descriptors are in use", round, k)
							}
						}
						if k := len(in) - 1; k != (n-1)/per {
							t.Fatalf("round %d: %d frames were taken", round, k)
						}
						r.wire.blocked = false
						r.step()
						r.same(r.wire.take(), in[:len(in)-1])
						// It was refused, not lost.
						if k, err := tx.Send([]*pagepool.Buf{refused}); k != 1 || err != nil {
							t.Fatalf("round %d: %d, %v", round, k, err)
						}
						r.step()
						r.same(r.wire.take(), in[len(in)-1:])
						tx.Reap(nil)
					}
					r.settled()
				})
			}
		}
	}
	t.Run("mixed", func(t *testing.T) {
		r := newRig(t, rigConfig{opts: []stmmac.Option{stmmac.WithRings(n, n)}})
		var want [][]byte
		for seq := range 10 * rounds {
			f := frame(60+seq%3*60, uint64(seq))
			b := r.buf(f, 60)
			for tries := 0; ; tries++ {
				if k, err := r.mac.Tx(0).Send([]*pagepool.Buf{b}); err != nil {
					t.Fatal(err)
				} else if k == 1 {
					break
				}
				if tries == n {
					t.Fatalf("frame %d is refused for ever", seq)
				}
				r.dev.Step(1)
			}
			want = append(want, f)
		}
		r.step()
		r.same(r.wire.take(), want)
		r.settled()
	})
	t.Run("control", func(t *testing.T) {
		b := newBare(t, sim.Config{}, n)
		for i := range n {
			copy(b.buf(i, 60), frame(60, uint64(i)))
			b.put(&b.tx, i, i, 60, bareTx|60)
		}
		b.run()
		b.ring(&b.tx, 0) // the slot behind the last of four
		b.settle(0)
		if k := len(b.wire.sent); k != 0 {
			t.Errorf("the engine sent %d frames of a ring that it must take for empty", k)
		}
	})
}

// TestD07Paused is a consumer that stands still while more frames arrive than the
// ring has descriptors.
func TestD07Paused(t *testing.T) {
	const n = 8
	for _, tc := range []struct{ fifo, kept int }{
		{16384, 13},
		{2048, n - 1 + 4}, // four frames of 500 bytes wait in the FIFO
	} {
		t.Run(fmt.Sprint("FIFO of ", tc.fifo), func(t *testing.T) {
			r := newRig(t, rigConfig{sim: sim.Config{RxFIFO: tc.fifo}, opts: []stmmac.Option{stmmac.WithRings(n, n)}})
			for round := range scale(t, 1000) {
				in := frames(14, 500, uint64(round*14))
				if dry := r.burst(in[:13]); dry != n-1 && round == 0 {
					t.Errorf("RBU after frame %d", dry)
				}
				if lost := r.overflows(0); lost != 13-tc.kept {
					t.Fatalf("the missed counter says %d, want %d", lost, 13-tc.kept)
				}
				r.same(r.recv(14), in[:tc.kept])
				r.wire.deliver(in[13])
				r.same(r.recv(2), in[13:])
				if got := r.rxOwned(0, n); got != n-1 {
					t.Fatalf("the engine has %d descriptors", got)
				}
			}
			r.settled()
		})
	}
}

// TestD07Empty: the pool is empty for five seconds, then the application returns
// buffers and one frame comes; nothing else happens.
func TestD07Empty(t *testing.T) {
	const n, bufs = 8, 20
	for _, vectors := range []int{1, 3} {
		t.Run(fmt.Sprint(vectors, " vectors"), func(t *testing.T) {
			c := rigConfig{bufs: bufs, sim: sim.Config{NumInterrupts: vectors}, opts: []stmmac.Option{stmmac.WithRings(n, n)}}
			if vectors > 1 {
				c.opts = append(c.opts, stmmac.WithConfig(func(c *stmmac.Config) { c.MSI = eachQueue(1, 1) }))
			}
			r := newRig(t, c)
			rx, ch, ctx := r.mac.Rx(0), r.channel(0), patience(t)
			var held []*pagepool.Buf
			one := make([]*pagepool.Buf, 1)
			for seq := range bufs {
				r.wire.deliver(frame(60, uint64(seq)))
				r.step()
				if rx.Recv(one) != 1 {
					t.Fatalf("frame %d is missing", seq)
				}
				held = append(held, one[0])
			}
			if got := r.rxOwned(0, n); got != 0 || gmac4reg.DMACHStatus.Load(ch)&gmac4reg.RBU == 0 {
				t.Fatalf("the engine still has %d descriptors", got)
			}
			done := make(chan error, 1)
			go func() { done <- rx.Wait(ctx) }()
			await := func(what string, f func() bool) {
				t.Helper()
				for !f() {
					if ctx.Err() != nil {
						t.Fatal(what)
					}
					runtime.Gosched()
				}
			}
			empty := rx.Stats().NoBuffer
			await("Wait did not look for buffers", func() bool { return rx.Stats().NoBuffer > empty })

			// Frames go on to arrive, one each millisecond.
			edges, tried := edgesOf(r.dev), rx.Stats().NoBuffer
			storm := frames(5000, 60, 1000)
			for _, f := range storm {
				r.wire.deliver(f)
				r.step()
				r.clock.Advance(time.Millisecond)
			}
			r.clock.Advance(time.Second)
			await("Wait does not look again by the clock", func() bool {
				r.clock.Advance(10 * time.Millisecond)
				return rx.Stats().NoBuffer > tried
			})
			if k := edgesOf(r.dev) - edges; k > 1000 {
				t.Errorf("%d interrupts in five seconds without buffers", k)
			}
			select {
			case err := <-done:
				t.Fatalf("Wait returned without a frame: %v", err)
			default:
			}

			r.pool.FreeBatch(held)
			await("the ring was not refilled", func() bool { return r.rxOwned(0, n) == n-1 })
			if gmac4reg.DMACHStatus.Load(ch)&gmac4reg.RBU != 0 {
				t.Error("RBU is still set")
			}
			last := frame(60, 9999)
			r.wire.deliver(last)
			r.step()
			if err := <-done; err != nil {
				t.Fatal(err)
			}
			got := r.recv(6000)
			lost := r.overflows(0)
			if want := int(r.dev.Stats().RxOverflow); lost != want&gmac4regOverflowMax && want == 0 {
				t.Errorf("the missed counter says %d, the model %d", lost, want)
			}
			kept := len(storm) - int(r.dev.Stats().RxOverflow)
			// The last frame had no room either if the FIFO was still full.
			r.same(got, append(storm[:kept:kept], last)[:len(got)])
			if len(got) < kept {
				t.Errorf("%d frames, want at least %d", len(got), kept)
			}
			r.wire.deliver(last)
			r.same(r.recv(2), [][]byte{last})
			r.settled()
		})
	}
}

const gmac4regOverflowMax = 0x7ff

// edgesOf is how often interrupts fired.
func edgesOf(d *sim.Device) (n uint64) {
	for _, k := range d.Stats().Edges {
		n += k
	}
	return n
}
