package stmmac_test

import (
	"fmt"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/gostmmac/gostmmac/pagepool"
	"github.com/gostmmac/gostmmac/stmmac"
	"github.com/gostmmac/gostmmac/stmmac/sim"
)

// sourceWire has an endless supply of one frame and swallows what is sent.
type sourceWire struct {
	f    sim.Frame
	left int
	sent int
}

func (w *sourceWire) Transmit(sim.Frame) bool { w.sent++; return true }

func (w *sourceWire) Receive() (sim.Frame, bool) {
	if w.left == 0 {
		return sim.Frame{}, false
	}
	w.left--
	return w.f, true
}

func (w *sourceWire) Elastic() bool { return true }
func (w *sourceWire) Notify(func()) {}
func (w *sourceWire) Close() error  { return nil }

// burst is how many frames the model lets arrive before the driver runs.
const burst = 256

// forwardRig is a MAC on an inline model that the benchmark steps: only the
// driver is timed.
type forwardRig struct {
	wire *sourceWire
	dev  *sim.Device
	pool *pagepool.Pool
	mac  *stmmac.MAC
	bufs []*pagepool.Buf
}

func newForwardRig(b testing.TB, length, batch int, opts ...stmmac.Option) *forwardRig {
	b.Helper()
	clock := sim.NewManualClock()
	r := &forwardRig{wire: &sourceWire{f: sim.Frame{Data: frame(length, 1)}}, bufs: make([]*pagepool.Buf, batch)}
	var err error
	if r.dev, err = sim.New(sim.Config{Inline: true, Clock: clock, NoAudit: true, RxFIFO: 65536}, r.wire); err != nil {
		b.Fatal(err)
	}
	if r.pool, err = pagepool.New(r.dev, 4096, pagepool.WithBufSize(2048)); err != nil {
		b.Fatal(err)
	}
	opts = append([]stmmac.Option{stmmac.WithGeneration(stmmac.GMAC4), stmmac.WithLink(gigabit), stmmac.WithPool(r.pool), stmmac.WithClock(clock),
		stmmac.WithPromiscuous()}, opts...)
	if r.mac, err = stmmac.Open(b.Context(), r.dev, opts...); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		if err := r.mac.Close(); err != nil {
			b.Error(err)
		}
		if err := r.pool.Close(); err != nil {
			b.Error(err)
		}
		r.dev.Close()
	})
	return r
}

// arrive lets the model receive a burst.
func (r *forwardRig) arrive() {
	r.wire.left = burst
	for r.dev.Step(1<<20) > 0 {
	}
}

// depart lets the model send what it was given, and returns how many frames.
func (r *forwardRig) depart() int {
	n := r.wire.sent
	for r.dev.Step(1<<20) > 0 {
	}
	return r.wire.sent - n
}

// forward is the body of a forwarder: receive, touch, send.
func (r *forwardRig) forward() int {
	rx, tx := r.mac.Rx(0), r.mac.Tx(0)
	total := 0
	for {
		n := rx.Recv(r.bufs)
		if n == 0 {
			return total
		}
		for _, b := range r.bufs[:n] {
			b.Bytes()[0] ^= 1
		}
		sent, err := tx.Send(r.bufs[:n])
		if err != nil {
			return -1
		}
		if sent < n {
			r.pool.FreeBatch(r.bufs[sent:n])
		}
		total += sent
	}
}

// round times one burst.
func (r *forwardRig) round(b testing.TB) time.Duration {
	r.arrive()
	start := time.Now()
	n := r.forward()
	took := time.Since(start)
	if sent := r.depart(); n != burst || sent != burst {
		b.Fatalf("forwarded %d of %d, sent %d", n, burst, sent)
	}
	return took
}

// BenchmarkForward is the driver alone: ns/packet counts neither the model nor
// the wire. An op is a burst of 256 packets.
func BenchmarkForward(b *testing.B) {
	for _, batch := range []int{1, 8, 32, 256} {
		b.Run(fmt.Sprintf("batch=%d", batch), func(b *testing.B) { benchForward(b, 60, batch) })
	}
	for _, size := range []int{512, 1514} {
		b.Run(fmt.Sprintf("batch=32/size=%d", size), func(b *testing.B) { benchForward(b, size, 32) })
	}
	b.Run("batch=32/ring=1024", func(b *testing.B) { benchForward(b, 60, 32, stmmac.WithRings(1024, 1024)) })
}

func benchForward(b *testing.B, size, batch int, opts ...stmmac.Option) {
	r := newForwardRig(b, size, batch, opts...)
	for range 8 {
		r.round(b)
	}
	samples := make([]time.Duration, 0, 1<<16)
	b.ReportAllocs()
	b.ResetTimer()
	var total time.Duration
	for range b.N {
		d := r.round(b)
		total += d
		if len(samples) < cap(samples) {
			samples = append(samples, d)
		}
	}
	b.StopTimer()
	slices.Sort(samples)
	b.ReportMetric(float64(total.Nanoseconds())/float64(b.N*burst), "ns/packet")
	b.ReportMetric(float64(samples[len(samples)/4].Nanoseconds())/burst, "p25-ns/packet")
}

// BenchmarkForwardUnderGC reports the time of a batch of 32 packets without and
// with a garbage collector that never rests, over a heap of 500,000 linked
// objects.
func BenchmarkForwardUnderGC(b *testing.B) {
	for _, busy := range []bool{false, true} {
		b.Run(fmt.Sprintf("gc=%v", busy), func(b *testing.B) {
			type node struct{ next *node }
			var heap *node
			for range 500_000 {
				heap = &node{heap}
			}
			stop := make(chan struct{})
			var wg sync.WaitGroup
			if busy {
				wg.Go(func() {
					for {
						select {
						case <-stop:
							return
						default:
							runtime.GC()
						}
					}
				})
			}
			r := newForwardRig(b, 60, 32)
			samples := make([]time.Duration, 0, 1<<18)
			b.ResetTimer()
			for range b.N {
				r.arrive()
				for {
					start := time.Now()
					n := r.mac.Rx(0).Recv(r.bufs)
					if n == 0 {
						break
					}
					for _, p := range r.bufs[:n] {
						p.Bytes()[0] ^= 1
					}
					if sent, err := r.mac.Tx(0).Send(r.bufs[:n]); sent != n {
						b.Fatal(sent, err)
					}
					if d := time.Since(start); n == 32 && len(samples) < cap(samples) {
						samples = append(samples, d)
					}
				}
				r.depart()
			}
			b.StopTimer()
			close(stop)
			wg.Wait()
			slices.Sort(samples)
			for _, q := range []struct {
				name string
				at   float64
			}{{"p50", 0.5}, {"p99", 0.99}, {"p99.9", 0.999}} {
				b.ReportMetric(float64(samples[int(q.at*float64(len(samples)-1))].Nanoseconds()), q.name+"-ns/batch")
			}
			runtime.KeepAlive(heap)
		})
	}
}

// BenchmarkEmptyPoll is a Recv that finds nothing.
func BenchmarkEmptyPoll(b *testing.B) {
	r := newForwardRig(b, 60, 32)
	rx := r.mac.Rx(0)
	for b.Loop() {
		rx.Recv(r.bufs)
	}
}

// TestNoAllocations holds that the way of a frame does not allocate.
func TestNoAllocations(t *testing.T) {
	for _, batch := range []int{1, 8, 32, 256} {
		r := newForwardRig(t, 60, batch)
		for range 8 {
			r.round(t)
		}
		var before, after runtime.MemStats
		var allocs uint64
		const rounds = 50
		for range rounds {
			r.arrive()
			runtime.ReadMemStats(&before)
			n := r.forward()
			runtime.ReadMemStats(&after)
			allocs += after.Mallocs - before.Mallocs
			if sent := r.depart(); n != burst || sent != burst {
				t.Fatalf("forwarded %d, sent %d", n, sent)
			}
		}
		// The runtime allocates now and then on its own.
		if allocs/rounds != 0 {
			t.Errorf("batch %d: %d allocations in %d packets", batch, allocs, rounds*burst)
		}
	}
	// Frames of several buffers and frames that are dropped.
	r := newRig(t, rigConfig{bufSize: 512, bufs: 2048, opts: []stmmac.Option{stmmac.WithMTU(9000)}})
	r.wire.elastic = true
	bufs := make([]*pagepool.Buf, 32)
	in := frames(16, 3000, 1)
	avg := testing.AllocsPerRun(50, func() {
		r.wire.in = r.wire.in[:0]
		for n := r.mac.Rx(0).Recv(bufs); n > 0; n = r.mac.Rx(0).Recv(bufs) {
			sent, err := r.mac.Tx(0).Send(bufs[:n])
			if err != nil || sent != n {
				t.Fatal(sent, err)
			}
		}
		r.mac.Tx(0).Reap(nil)
	})
	r.wire.deliver(in...)
	r.step()
	n := testing.AllocsPerRun(1, func() {
		for n := r.mac.Rx(0).Recv(bufs); n > 0; n = r.mac.Rx(0).Recv(bufs) {
			sent, err := r.mac.Tx(0).Send(bufs[:n])
			if err != nil || sent != n {
				t.Fatal(sent, err)
			}
		}
	})
	if avg != 0 || n != 0 {
		t.Errorf("%v and %v allocations", avg, n)
	}
	r.step()
	r.same(r.wire.take(), in)
	r.settled()
}
