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

// desc is descriptor i of a list of channel 0.
func (r *rig) desc(d direction, i int) *[4]uint32 {
	r.Helper()
	if r.spy == nil {
		r.Fatal("no spy sees the memory of this device")
	}
	return r.spy.desc(r.T, r.gen.list(r.csr(), 0, d), i)
}

// slot is the one of a list that its engine is at, as the registers tell.
func (r *rig) slot(ch int, d direction) int {
	csr := r.csr()
	return int(r.gen.current(csr, ch, d)-r.gen.list(csr, ch, d)) / gmac4reg.DescSize
}

func (r *rig) rxCurrent(ch int) int { return r.slot(ch, receiving) }

// rxOwned is how many of n slots the engine may use.
func (r *rig) rxOwned(ch, n int) int { return r.gen.given(r, ch, n) }

// overflows is how many frames a queue had no room for since the last call, by
// the driver's count.
func (r *rig) overflows(q int) int {
	full := r.mac.Rx(q).Stats().FIFOFull
	if r.full == nil {
		r.full = map[int]uint64{}
	}
	n := full - r.full[q]
	r.full[q] = full
	return int(n)
}

// burst delivers frames while nobody polls and returns after how many of them the
// engine said that it has no descriptor left, 0 if never.
func (r *rig) burst(in [][]byte) (dry int) {
	for i, f := range in {
		r.wire.deliver(f)
		r.step()
		if dry == 0 && r.gen.dry(r.csr(), 0) {
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
	// Frames of many descriptors in a ring that has many: Send looks for finished
	// ones when this frame has no room, however much there is for others.
	t.Run("long chains", func(t *testing.T) {
		r := newRig(t, rigConfig{opts: []stmmac.Option{stmmac.WithRings(16, 16)}})
		var want [][]byte
		for seq := range 10 * rounds {
			f := frame(60*(1+seq%15), uint64(seq))
			b := r.buf(f, 60)
			r.step()
			if k, err := r.mac.Tx(0).Send([]*pagepool.Buf{b}); k != 1 || err != nil {
				t.Fatalf("frame %d of %d descriptors is refused by an idle ring: %d, %v", seq, 1+seq%15, k, err)
			}
			want = append(want, f)
		}
		r.step()
		r.same(r.wire.take(), want)
		r.settled()
	})
	// Wait has nothing to say of a frame that is finished in part.
	t.Run("wait", func(t *testing.T) {
		r := newRig(t, rigConfig{opts: []stmmac.Option{stmmac.WithRings(n, n)}})
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		tx := r.mac.Tx(0)
		r.wire.blocked = true
		if k, err := tx.Send([]*pagepool.Buf{r.buf(frame(180, 1), 60)}); k != 1 || err != nil {
			t.Fatal(k, err)
		}
		r.step()
		if tx.Wait(ended) == nil {
			t.Errorf("Wait returns, and %d frames are finished", tx.Reap(nil))
		}
		r.wire.blocked = false
		r.step()
		if err := tx.Wait(ended); err != nil || tx.Reap(nil) != 1 {
			t.Error(err)
		}
		r.settled()
	})
	t.Run("control", func(t *testing.T) {
		b := newByHand(t, sim.Config{}, n)
		for i := range n {
			copy(b.buf(i, 60), frame(60, uint64(i)))
			b.put(&b.tx, i, i, 60, handTx|60)
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
func TestD07Paused(t *testing.T) { onEach(t, testD07Paused) }

func testD07Paused(t *testing.T) {
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
func TestD07Empty(t *testing.T) { onEach(t, testD07Empty) }

func testD07Empty(t *testing.T) {
	const n, bufs = 8, 20
	for _, vectors := range []int{1, 3} {
		if vectors > 1 && !on(t).limits().vectors {
			continue
		}
		t.Run(fmt.Sprint(vectors, " vectors"), func(t *testing.T) {
			c := rigConfig{bufs: bufs, sim: sim.Config{NumInterrupts: vectors}, opts: []stmmac.Option{stmmac.WithRings(n, n)}}
			if vectors > 1 {
				c.opts = append(c.opts, stmmac.WithConfig(func(c *stmmac.Config) { c.MSI = eachQueue(1, 1) }))
			}
			r := newRig(t, c)
			rx, csr, ctx := r.mac.Rx(0), r.csr(), patience(t)
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
			if got := r.rxOwned(0, n); got != 0 || !r.gen.dry(csr, 0) {
				t.Fatalf("the engine still has %d descriptors", got)
			}
			done := make(chan error, 1)
			empty := rx.Stats().NoBuffer // before Wait can look
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
			await("Wait did not look for buffers", func() bool { return rx.Stats().NoBuffer > empty })

			// Frames go on to arrive, one each millisecond.
			edges, tried := edgesOf(r.dev), rx.Stats().NoBuffer
			storm := frames(5000, 60, 1000)
			lost := 0
			for i, f := range storm {
				r.wire.deliver(f)
				r.step()
				r.clock.Advance(time.Millisecond)
				if i%1000 == 0 {
					lost += r.overflows(0) // eleven bits
				}
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
			if r.gen.dry(csr, 0) {
				t.Error("RBU is still set")
			}
			last := frame(60, 9999)
			r.wire.deliver(last)
			r.step()
			if err := <-done; err != nil {
				t.Fatal(err)
			}
			lost += r.overflows(0)
			if want := int(r.dev.Stats().RxOverflow); lost != want || lost == 0 {
				t.Errorf("the missed counter says %d, the model %d", lost, want)
			}
			r.same(r.recv(6000), append(storm[:len(storm)-lost:len(storm)-lost], last))
			r.wire.deliver(last)
			r.same(r.recv(2), [][]byte{last})
			r.settled()
		})
	}
}

// edgesOf is how often interrupts fired.
func edgesOf(d *sim.Device) (n uint64) {
	for _, k := range d.Stats().Edges {
		n += k
	}
	return n
}

// tagged is a frame with a VLAN tag of a priority.
func tagged(n int, seq uint64, pcp int) []byte {
	f := frame(n, seq)
	copy(f[18:], f[14:])
	binary.BigEndian.PutUint16(f[12:], 0x8100)
	binary.BigEndian.PutUint16(f[14:], uint16(pcp)<<13)
	return f
}

// TestD07Queues: queue 1 runs dry, queue 0 does not notice.
func TestD07Queues(t *testing.T) {
	const n = 8
	r := newRig(t, rigConfig{
		sim:  sim.Config{RxQueues: 2, TxQueues: 2},
		opts: []stmmac.Option{stmmac.WithRings(n, n), stmmac.WithQueues(2, 2)},
	})
	for round := range scale(t, 1000) {
		first, total := uint64(round*1000), 100
		var slow [][]byte
		for i := range total {
			f, g := frame(60, first+uint64(i)), tagged(400, first+uint64(i), 7)
			slow = append(slow, g)
			r.wire.deliver(g, f)
			r.same(r.recvQ(0, 2), [][]byte{f})
		}
		if r.rxOwned(1, n) != 0 {
			t.Fatal("queue 1 is not dry")
		}
		lost := r.overflows(1)
		if r.overflows(0) != 0 || lost == 0 || lost > total-(n-1) {
			t.Fatalf("queue 1 lost %d of %d", lost, total)
		}
		r.same(r.recvQ(1, total), slow[:total-lost])
		g := tagged(400, first+uint64(total), 7)
		r.wire.deliver(g)
		r.same(r.recvQ(1, 2), [][]byte{g})
		if r.rxOwned(1, n) != n-1 {
			t.Fatal("queue 1 was not refilled")
		}
	}
	if k := edgesOf(r.dev); k != 0 {
		t.Errorf("%d interrupts while nobody waits", k)
	}
	r.settled()
}

// TestD07Echo sends what it receives with no buffer to spare: reception would end
// if a queue kept what it has sent to itself.
func TestD07Echo(t *testing.T) { onEach(t, testD07Echo) }

func testD07Echo(t *testing.T) {
	const n = 16
	for _, wait := range []bool{false, true} {
		t.Run(fmt.Sprint("wait ", wait), func(t *testing.T) {
			r := newRig(t, rigConfig{bufs: 4 * n, opts: []stmmac.Option{stmmac.WithRings(n, n)}})
			ended, cancel := context.WithCancel(t.Context())
			cancel()
			bufs := make([]*pagepool.Buf, 8)
			for round := range 100 {
				in := frames(len(bufs), 60, uint64(round*8))
				r.wire.deliver(in...)
				for got, idle := 0, 0; got < len(in); idle++ {
					r.step()
					if wait {
						r.mac.Rx(0).Wait(ended)
						r.clock.Advance(10 * time.Millisecond)
					}
					k := r.mac.Rx(0).Recv(bufs)
					if sent, err := r.mac.Tx(0).Send(bufs[:k]); sent != k || err != nil {
						t.Fatal(sent, err)
					}
					r.step()
					r.mac.Tx(0).Reap(nil)
					got += k
					if idle > 100 {
						t.Fatalf("round %d: reception has ended with %v in use of %d buffers", round, r.pool.Holders(), r.pool.Size())
					}
				}
				r.same(r.wire.take(), in)
			}
			r.settled()
		})
	}
}

// TestD08: an allocation fails once, or a few times in a row, while the ring is
// refilled. The ring has no stock beside what the pool is given before each call.
func TestD08(t *testing.T) {
	const n = 4
	for _, paced := range []bool{true, false} {
		for fails := 1; fails <= 3; fails++ {
			t.Run(fmt.Sprintf("paced %v, %d in a row", paced, fails), func(t *testing.T) {
				for k := 1; k <= 3*n; k++ {
					// Two frames of 900 bytes wait in the FIFO.
					r := newRig(t, rigConfig{bufs: n - 1, sim: sim.Config{RxFIFO: 2048}, opts: []stmmac.Option{stmmac.WithRings(n, n)}})
					if err := r.pool.Grow(32); err != nil {
						t.Fatal(err)
					}
					hoard := make([]*pagepool.Buf, 32)
					if got := r.pool.AllocBatch(hoard); got != len(hoard) {
						t.Fatal(got)
					}
					rx, bufs := r.mac.Rx(0), make([]*pagepool.Buf, 1)
					if !paced {
						bufs = make([]*pagepool.Buf, 3) // so that a refill may get a part
					}
					seq, allocs, failed, given := 0, 0, 0, 0
					// recv takes the frames that are there; the call refills what is empty.
					recv := func(inject bool) (out [][]byte) {
						r.step()
						ready := int(r.dev.Stats().RxFrames) - given
						supply := n - 1 - r.rxOwned(0, n) - ready + min(ready, len(bufs), n-given%n)
						if inject && failed < fails && supply > 0 && allocs+supply >= k {
							supply = max(k-1-allocs, 0)
							failed++
							allocs++
						}
						allocs += supply
						r.pool.FreeBatch(hoard[:supply])
						hoard = hoard[supply:]
						got := rx.Recv(bufs)
						for _, b := range bufs[:got] {
							f := make([]byte, b.FrameLen())
							b.CopyTo(f)
							out = append(out, f)
						}
						hoard = append(hoard, bufs[:got]...)
						given += got
						return out
					}
					deliver := func(count int, atOnce, inject bool) {
						in := frames(count, 900, uint64(seq))
						seq += count
						var got [][]byte
						before := r.dev.Stats().RxOverflow
						if atOnce {
							r.wire.deliver(in...)
						}
						for i := range count + 2*fails + 2 {
							if !atOnce && i < count {
								r.wire.deliver(in[i])
							}
							got = append(got, recv(inject)...)
						}
						lost := int(r.dev.Stats().RxOverflow - before)
						want := 0
						if atOnce {
							want = count - (n - 1) - 2 // neither descriptor nor room in the FIFO
						}
						if lost != want {
							t.Errorf("k %d: %d frames are lost, want %d", k, lost, want)
						}
						r.same(got, in[:count-lost])
					}
					for failed < fails {
						deliver(2*n, !paced, true)
					}
					deliver(4*n, false, false)
					if got := rx.Stats().NoBuffer; got != uint64(fails) {
						t.Errorf("k %d: %d refills without buffers, want %d", k, got, fails)
					}
					if at := given % n; r.rxCurrent(0) != at {
						t.Errorf("k %d: the engine is at slot %d, want %d", k, r.rxCurrent(0), at)
					}
					if got := r.rxOwned(0, n); got != n-1 {
						t.Errorf("k %d: the engine has %d descriptors", k, got)
					}
					r.pool.FreeBatch(hoard)
					r.settled()
				}
			})
		}
	}
}

// TestD09: frames that an overflow cut give all their descriptors back.
func TestD09(t *testing.T) { onEach(t, testD09) }

func testD09(t *testing.T) {
	const n, buf = 16, 256
	events := scale(t, 10_000)/15 + 1
	for _, tc := range []struct {
		name  string
		mode  sim.OverflowMode
		count func(stmmac.RxStats) uint64
	}{
		{"last with error", sim.OverflowLastWithError, func(s stmmac.RxStats) uint64 { return s.Overflow }},
		{"no last", sim.OverflowNoLast, func(s stmmac.RxStats) uint64 { return s.Truncated }},
		// A core that cuts a frame and says so nowhere in the descriptors. Nothing
		// but the FCS could tell; in store and forward, in which the driver runs
		// the FIFO, no MAC passes on a part of a frame, so this form asks only
		// that the ring survives it.
		{"last without error", sim.OverflowLastWithoutError, nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			for bufs := 1; bufs <= 5; bufs++ {
				for cut := 1; cut <= bufs; cut++ {
					r := newRig(t, rigConfig{bufSize: pagepool.NetSKBPad + buf, opts: []stmmac.Option{stmmac.WithRings(n, n)},
						sim: sim.Config{Faults: sim.Faults{Overflow: sim.Overflow{Mode: tc.mode, Every: 2, After: cut}}}})
					if lay := r.mac.Rx(0).Layout(); lay.Size != buf || lay.First != buf {
						t.Fatalf("%+v", lay)
					}
					if !r.gen.storesForward(r.csr(), 0, receiving) {
						t.Fatal("the receive queue does not store and forward")
					}
					r.wire.deliver(frame(60, 1)) // the first is never cut
					r.recv(2)
					for event := range events {
						if event%1000 == 0 {
							r.mac.Rx(0).Stats() // the device counts to 2,047
						}
						seq := uint64(10 + 2*event)
						whole, good := frame(buf*(bufs-1)+100, seq), frame(60+event%1000, seq+1)
						r.wire.deliver(whole, good)
						got := r.recv(3)
						if tc.count == nil && len(got) == 2 {
							if p := got[0]; len(p) >= len(whole) || string(p) != string(whole[:len(p)]) {
								t.Fatalf("%d of %d buffers: a frame of %d bytes came out of one of %d", cut, bufs, len(p), len(whole))
							}
							got = got[1:]
						}
						r.same(got, [][]byte{good})
						if owned := r.rxOwned(0, n); owned != n-1 {
							t.Fatalf("%d of %d buffers, event %d: the engine has %d descriptors", cut, bufs, event, owned)
						}
					}
					s := r.mac.Rx(0).Stats()
					if tc.count != nil && (tc.count(s) != uint64(events) || s.Drops() != uint64(events)) {
						t.Errorf("%d of %d buffers, %d events: %+v", cut, bufs, events, s)
					}
					if k := r.overflows(0); k != events {
						t.Errorf("the overflow counter says %d, want %d", k, events)
					}
					r.settled()
				}
			}
		})
	}
}

// TestD10: a descriptor with an error costs its frame and no other. There is no bit
// for a runt: the MAC drops it, or delivers it as a frame with a bad FCS. A GMAC 3.x
// has one for a giant only without its engine for checksums.
func TestD10(t *testing.T) { onEach(t, testD10) }

func testD10(t *testing.T) {
	const n = 8
	for _, tc := range []struct {
		name  string
		bits  gmac4reg.RDES3
		count func(*stmmac.RxStats) *uint64
	}{
		{"CRC", gmac4reg.RxCE, func(s *stmmac.RxStats) *uint64 { return &s.CRC }},
		{"watchdog", gmac4reg.RxRWT, func(s *stmmac.RxStats) *uint64 { return &s.Watchdog }},
		{"dribble", gmac4reg.RxDE, func(s *stmmac.RxStats) *uint64 { return &s.Dribble }},
		{"overflow", gmac4reg.RxOE, func(s *stmmac.RxStats) *uint64 { return &s.Overflow }},
		{"giant", gmac4reg.RxGP, func(s *stmmac.RxStats) *uint64 { return &s.Giant }},
		{"receive", gmac4reg.RxRE, func(s *stmmac.RxStats) *uint64 { return &s.Receive }},
		{"CRC and dribble", gmac4reg.RxCE | gmac4reg.RxDE, func(s *stmmac.RxStats) *uint64 { return &s.CRC }},
	} {
		opts := []stmmac.Option{stmmac.WithRings(n, n), stmmac.WithChecksums(tc.bits != gmac4reg.RxGP, true)}
		for descs := 1; descs <= 3; descs++ { // of the frame with the error
			t.Run(fmt.Sprintf("%s, %d descriptors", tc.name, descs), func(t *testing.T) {
				var bad uint64
				r := newRig(t, rigConfig{bufSize: pagepool.NetSKBPad + 256, opts: opts,
					sim: sim.Config{Faults: sim.Faults{RxError: func(k uint64) (e gmac4reg.RDES3) {
						if k == bad {
							e = tc.bits
						}
						return e
					}}}})
				var want stmmac.RxStats
				seq, slot := uint64(0), 0
				for k := range 2 * n { // the frame with the error starts at slot k mod n
					bad = ^uint64(0)
					for slot != k%n {
						f := frame(60, seq)
						r.wire.deliver(f)
						r.same(r.recv(2), [][]byte{f})
						seq, slot = seq+1, (slot+1)%n
						want.Packets++
						want.Bytes += 60
					}
					in := [][]byte{frame(256*(descs-1)+100, seq), frame(70, seq+1), frame(300, seq+2)}
					bad = seq
					r.wire.deliver(in...)
					r.same(r.recv(4), in[1:])
					seq, slot = seq+3, (slot+descs+3)%n
					want.Packets += 2
					want.Bytes += 370
					*tc.count(&want)++
					if got := r.mac.Rx(0).Stats(); got != want {
						t.Fatalf("slot %d: got %+v, want %+v", k%n, got, want)
					}
					if at := r.rxCurrent(0); at != slot || r.rxOwned(0, n) != n-1 {
						t.Fatalf("slot %d: the engine is at %d with %d descriptors, want %d with %d", k%n, at, r.rxOwned(0, n), slot, n-1)
					}
				}
				r.settled()
			})
		}
	}
}

// TestD11: all frames that are ready are taken, whatever the budget, without
// another frame or interrupt.
func TestD11(t *testing.T) { onEach(t, testD11) }

func testD11(t *testing.T) {
	for _, n := range []int{16, 512} {
		t.Run(fmt.Sprint("ring of ", n), func(t *testing.T) {
			r := newRig(t, rigConfig{opts: []stmmac.Option{stmmac.WithRings(n, n)}})
			rx, seq := r.mac.Rx(0), uint64(0)
			ended, cancel := context.WithCancel(t.Context())
			cancel()
			sizes := []int{2, 3, 7, 8, 9, 14, 15}
			if n > stmmac.MaxBatch {
				sizes = []int{31, stmmac.MaxBatch - 1, stmmac.MaxBatch, stmmac.MaxBatch + 1, n - 1}
			}
			for _, b := range sizes {
				for _, budget := range []int{1, b - 1, b, b + 1, stmmac.MaxBatch} {
					for start := 0; start < n; start += max(1, n/16) {
						in := frames(b, 60, seq)
						seq += uint64(b)
						r.wire.deliver(in...)
						r.step()
						// The engine stands still from here on. Wait with a context that has
						// ended returns nil only if there is something to take.
						var got [][]byte
						bufs := make([]*pagepool.Buf, budget)
						for rx.Wait(ended) == nil {
							k := rx.Recv(bufs)
							if k == 0 {
								t.Fatalf("%d frames, budget %d: %d taken, and Recv has none where Wait saw one", b, budget, len(got))
							}
							for _, b := range bufs[:k] {
								got = append(got, append([]byte(nil), b.Bytes()...))
							}
							r.pool.FreeBatch(bufs[:k])
						}
						r.same(got, in)
						if t.Failed() {
							t.Fatalf("%d frames, budget %d", b, budget)
						}
						// on to the next slot
						f := frame(61, seq)
						r.wire.deliver(f)
						r.same(r.recv(2), [][]byte{f})
					}
				}
			}
			r.settled()
		})
	}
	for _, vectors := range []string{"common", "each"} {
		if vectors == "each" && !on(t).limits().vectors {
			continue
		}
		t.Run(vectors, func(t *testing.T) {
			const n = 16
			c, ctx := newCable(t, sim.Config{}, vectors, stmmac.WithRings(n, n)), patience(t)
			rounds := scale(t, 100_000)
			arrived := make(chan int)
			var wg sync.WaitGroup
			wg.Go(func() {
				defer close(arrived)
				rx, seq, bufs := c.mac[1].Rx(0), uint64(0), make([]*pagepool.Buf, 4)
				for round := range rounds {
					for left := 2 + round%(n-2); left > 0; {
						k := rx.Recv(bufs)
						if k == 0 {
							if err := rx.Wait(ctx); err != nil {
								t.Errorf("round %d: %d frames are missing: %v", round, left, err)
								return
							}
						}
						for _, b := range bufs[:k] {
							if got := binary.BigEndian.Uint64(b.Bytes()[14:]); got != seq {
								t.Errorf("frame %d, want %d", got, seq)
							}
							seq++
						}
						c.pool.FreeBatch(bufs[:k])
						left -= k
					}
					arrived <- round
				}
			})
			tx, seq := c.mac[0].Tx(0), uint64(0)
			for round := range rounds {
				var batch []*pagepool.Buf
				for range 2 + round%(n-2) {
					batch = append(batch, chain(t, c.pool, frame(60, seq), 60))
					seq++
				}
				for len(batch) > 0 {
					k, err := tx.Send(batch)
					if err != nil {
						t.Fatal(err)
					}
					if batch = batch[k:]; k == 0 {
						if err := tx.Wait(ctx); err != nil {
							t.Fatal(err)
						}
					}
				}
				// No frame of the next round pushes those of this one.
				if _, ok := <-arrived; !ok {
					break
				}
			}
			wg.Wait()
			if _, err := drain(ctx, tx); err != nil {
				t.Fatal(err)
			}
		})
	}
}

// d12Program is a program that lets every frame pass; it costs headroom.
type d12Program struct{}

func (d12Program) Run(bufs []*pagepool.Buf, v []stmmac.Verdict) {
	for i := range bufs {
		v[i] = stmmac.VerdictPass
	}
}

// TestD12: the FCS, or a part of it, lies alone in the last buffer.
func TestD12(t *testing.T) { onEach(t, testD12) }

func testD12(t *testing.T) {
	const n = 128
	for _, size := range []int{128, 256, 512, min(2048, on(t).limits().rxBuf)} {
		for _, strip := range []bool{false, true} {
			for _, program := range []bool{false, true} {
				if size == 128 && !program {
					continue // a chunk is 256 bytes at least: only a program's headroom leaves 128
				}
				t.Run(fmt.Sprintf("buffers of %d, strip %v, program %v", size, strip, program), func(t *testing.T) {
					headroom, opts := pagepool.NetSKBPad, []stmmac.Option{
						stmmac.WithRings(n, n), stmmac.WithMTU(9000), stmmac.WithConfig(func(c *stmmac.Config) { c.StripFCS = strip }),
					}
					if program {
						headroom, opts = pagepool.XDPHeadroom, append(opts, stmmac.WithProgram(d12Program{}))
					}
					r := newRig(t, rigConfig{bufSize: headroom + size, opts: opts})
					if lay := r.mac.Rx(0).Layout(); lay.Size != size || lay.First != size {
						t.Fatalf("%+v", lay)
					}
					count, bytes, bufs := uint64(0), uint64(0), make([]*pagepool.Buf, 4)
					for k := 0; k*size < 9014; k++ {
						for _, d := range []int{-4, -3, -2, -1, 0, 1} {
							l := k*size + d
							if l < 60 || l > 9014 {
								continue
							}
							for _, typed := range []bool{true, false} { // type or, up to 1500 bytes, length
								if l-14 > 1500 && !typed {
									continue
								}
								f := frame(l, uint64(l))
								if !typed {
									binary.BigEndian.PutUint16(f[12:], uint16(l-14))
								}
								r.wire.deliver(f)
								r.step()
								got := r.mac.Rx(0).Recv(bufs)
								if got == 0 {
									got = r.mac.Rx(0).Recv(bufs) // a frame over the end of the ring
								}
								if got != 1 {
									t.Fatalf("%d bytes: %d frames", l, got)
								}
								p := make([]byte, bufs[0].FrameLen())
								bufs[0].CopyTo(p)
								r.same([][]byte{p}, [][]byte{f})
								pieces := 0
								for b := bufs[0]; b != nil; b = b.Next() {
									if pieces++; b.Len() == 0 {
										t.Fatalf("%d bytes: an empty buffer", l)
									}
								}
								if want := (l + size - 1) / size; pieces != want {
									t.Fatalf("%d bytes lie in %d buffers, want %d", l, pieces, want)
								}
								r.pool.Free(bufs[0])
								if got := r.mac.Rx(0).Recv(bufs); got != 0 || r.rxOwned(0, n) != n-1 {
									t.Fatalf("%d bytes: %d frames more, the engine has %d descriptors", l, got, r.rxOwned(0, n))
								}
								count, bytes = count+1, bytes+uint64(l)
							}
						}
					}
					if s := r.mac.Rx(0).Stats(); s.Packets != count || s.Bytes != bytes || s.Drops() != 0 {
						t.Errorf("%d frames of %d bytes: %+v", count, bytes, s)
					}
					r.settled()
				})
			}
		}
	}
}
