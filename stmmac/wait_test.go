package stmmac_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/gostmmac/gostmmac/mmio"
	"github.com/gostmmac/gostmmac/pagepool"
	"github.com/gostmmac/gostmmac/stmmac"
	"github.com/gostmmac/gostmmac/stmmac/sim"
)

// cable is two MACs on two models that run by themselves, back to back, with
// one pool.
type cable struct {
	pool *pagepool.Pool
	dev  [2]*sim.Device
	mac  [2]*stmmac.MAC
}

func eachQueue(rx, tx int) *stmmac.MSI {
	rxv, txv := sim.Vectors(rx, tx)
	return &stmmac.MSI{Rx: rxv, Tx: txv}
}

// newCable opens both; vectors says how interrupts arrive: "common", "each" or
// "none".
func newCable(t *testing.T, cfg sim.Config, vectors string, opts ...stmmac.Option) *cable {
	t.Helper()
	c := &cable{}
	cfg.Generation = on(t).model()
	var wires [2]sim.Wire
	wires[0], wires[1] = sim.NewPair(1024)
	if cfg.RxQueues == 0 {
		cfg.RxQueues, cfg.TxQueues = 1, 1
	}
	if vectors == "each" {
		cfg.NumInterrupts = 1 + cfg.RxQueues + cfg.TxQueues
	}
	for i := range c.dev {
		var err error
		if c.dev[i], err = sim.New(cfg, wires[i]); err != nil {
			t.Fatal(err)
		}
	}
	var err error
	if c.pool, err = pagepool.New(c.dev[0], 4096); err != nil {
		t.Fatal(err)
	}
	for i, d := range c.dev {
		o := []stmmac.Option{
			on(t).options(cfg), stmmac.WithLink(gigabit), stmmac.WithName([]string{"a", "b"}[i]), stmmac.WithPool(c.pool), stmmac.WithPromiscuous(),
		}
		if vectors == "each" {
			o = append(o, stmmac.WithConfig(func(c *stmmac.Config) { c.MSI = eachQueue(cfg.RxQueues, cfg.TxQueues) }))
		}
		var dev stmmac.Device = d
		if vectors == "none" {
			dev = noInterrupts{d}
		}
		if c.mac[i], err = stmmac.Open(t.Context(), dev, append(o, opts...)...); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() { c.close(t) })
	return c
}

func (c *cable) close(t *testing.T) {
	for i := range c.mac {
		if err := c.mac[i].Close(); err != nil {
			t.Error(err)
		}
	}
	if err := c.pool.Close(); err != nil {
		t.Error(err)
	}
	for i := range c.dev {
		for _, v := range c.dev[i].Audit() {
			t.Errorf("audit: %v", v)
		}
		if err := c.dev[i].Close(); err != nil {
			t.Error(err)
		}
	}
}

// noInterrupts hides the vectors of a device.
type noInterrupts struct{ *sim.Device }

func (noInterrupts) NumInterrupts() int { return 0 }

func (noInterrupts) Interrupt(int) (mmio.Interrupt, error) { return nil, errors.ErrUnsupported }

// patience bounds a test that hangs; it is no measure of speed.
func patience(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	t.Cleanup(cancel)
	return ctx
}

// sender is a transmit queue, shared or not.
type sender interface {
	Send([]*pagepool.Buf) (int, error)
	Wait(context.Context) error
	Inflight() int
	Reap([]*pagepool.Buf) int
}

// sendOne sends a frame and waits as long as there is no room for it.
func sendOne(ctx context.Context, q sender, b *pagepool.Buf) error {
	for {
		n, err := q.Send([]*pagepool.Buf{b})
		if err != nil || n == 1 {
			return err
		}
		if err := q.Wait(ctx); err != nil {
			return err
		}
	}
}

// drain waits until the device has sent everything, and counts the frames that
// it reaps.
func drain(ctx context.Context, q sender) (sent int, err error) {
	for q.Inflight() > 0 {
		if err := q.Wait(ctx); err != nil {
			return sent, err
		}
		sent += q.Reap(nil)
	}
	return sent, nil
}

// TestWait sends frames over a cable with both ends asleep in between: none is
// lost and no wake-up is missed, however interrupts arrive.
func TestWait(t *testing.T) {
	for _, vectors := range []string{"common", "each", "none"} {
		t.Run(vectors, func(t *testing.T) {
			c := newCable(t, sim.Config{}, vectors)
			ctx := patience(t)
			count := 2000
			window := make(chan struct{}, 200) // a wire does not wait for a receiver
			var wg sync.WaitGroup
			wg.Go(func() {
				tx := c.mac[0].Tx(0)
				for seq := 0; seq < count; {
					window <- struct{}{}
					b, err := c.pool.Alloc()
					if err != nil {
						t.Error(err)
						return
					}
					b.SetData(frame(60+seq%1400, uint64(seq)))
					if err := sendOne(ctx, tx, b); err != nil {
						t.Error(err)
						return
					}
					seq++
					if seq%97 == 0 { // let the other side fall asleep
						if _, err := drain(ctx, tx); err != nil {
							t.Error(err)
							return
						}
					}
				}
			})
			rx := c.mac[1].Rx(0)
			bufs := make([]*pagepool.Buf, 16)
			for seq := 0; seq < count; {
				n := rx.Recv(bufs)
				if n == 0 {
					if err := rx.Wait(ctx); err != nil {
						t.Fatal(err)
					}
					continue
				}
				for _, b := range bufs[:n] {
					if want := frame(60+seq%1400, uint64(seq)); string(b.Bytes()) != string(want) {
						t.Fatalf("frame %d differs", seq)
					}
					seq++
					<-window
				}
				c.pool.FreeBatch(bufs[:n])
			}
			wg.Wait()
		})
	}
}

// TestWaitEnds holds what ends a Wait: its context, Close, a device that is gone.
func TestWaitEnds(t *testing.T) {
	for _, vectors := range []string{"common", "each", "none"} {
		t.Run(vectors, func(t *testing.T) {
			c := newCable(t, sim.Config{}, vectors)
			ctx, cancel := context.WithCancel(t.Context())
			time.AfterFunc(time.Millisecond, cancel)
			mustFail(t, c.mac[0].Rx(0).Wait(ctx), context.Canceled, "wait to receive")

			var wg sync.WaitGroup
			errs := make(chan error, 2)
			wg.Go(func() {
				for {
					// It may end without an error while the other goroutine is inside a call.
					if err := c.mac[0].Rx(0).Wait(context.Background()); err != nil {
						errs <- err
						return
					}
				}
			})
			wg.Go(func() {
				var err error
				for _, e := range c.mac[0].Rx(0).Frames(context.Background()) {
					err = e
				}
				_ = err // the queue belongs to the other goroutine: it may find nothing
				errs <- c.mac[0].Tx(0).Wait(context.Background())
			})
			time.Sleep(time.Millisecond)
			if err := c.mac[0].Close(); err != nil {
				t.Fatal(err)
			}
			wg.Wait()
			for range 2 {
				mustFail(t, <-errs, stmmac.ErrClosed)
			}
			if n := c.mac[0].Rx(0).Recv(make([]*pagepool.Buf, 4)); n != 0 {
				t.Errorf("a closed queue gave %d frames", n)
			}
			b, err := c.pool.Alloc()
			if err != nil {
				t.Fatal(err)
			}
			b.SetData(frame(60, 0))
			_, err = c.mac[0].Tx(0).Send([]*pagepool.Buf{b})
			mustFail(t, err, stmmac.ErrClosed, "send")
			c.pool.Free(b)
			mustFail(t, c.mac[0].SetLink(stmmac.Link{}), stmmac.ErrClosed)
			mustFail(t, c.mac[0].SetPromiscuous(true), stmmac.ErrClosed)
		})
	}
}

// TestGone unplugs the device under a waiting queue.
func TestGone(t *testing.T) {
	for _, vectors := range []string{"common", "each", "none"} {
		t.Run(vectors, func(t *testing.T) {
			c := newCable(t, sim.Config{}, vectors)
			errs := make(chan error, 1)
			go func() { errs <- c.mac[0].Rx(0).Wait(patience(t)) }()
			time.Sleep(time.Millisecond)
			c.dev[0].Close()
			err := <-errs
			if !errors.Is(err, stmmac.ErrGone) && !errors.Is(err, stmmac.ErrClosed) {
				t.Fatalf("error %v", err)
			}
			// the next call finds out by the registers
			mustFail(t, c.mac[0].Rx(0).Wait(patience(t)), stmmac.ErrGone)
			// and from then on all say so: a ring that is full for ever would tell nothing
			b, err := c.pool.Alloc()
			if err != nil {
				t.Fatal(err)
			}
			b.SetData(frame(60, 0))
			for _, send := range []func([]*pagepool.Buf) (int, error){c.mac[0].Tx(0).Send, c.mac[0].Tx(0).Shared().Send} {
				n, err := send([]*pagepool.Buf{b})
				mustFail(t, err, stmmac.ErrGone)
				if n != 0 {
					t.Errorf("%d frames were taken", n)
				}
			}
			c.pool.Free(b)
			mustFail(t, c.mac[0].Tx(0).Wait(patience(t)), stmmac.ErrGone)
			mustFail(t, c.mac[0].SetMTU(t.Context(), 1400), stmmac.ErrGone)
			if n := c.mac[0].Rx(0).Recv(make([]*pagepool.Buf, 4)); n != 0 {
				t.Errorf("%d frames from a device that is gone", n)
			}
			if err := c.mac[0].Close(); err != nil {
				t.Errorf("close: %v", err)
			}
		})
	}
}

// TestFatalBusError fails the DMA of a channel of a MAC that is not to be rebuilt:
// whoever waits hears of it.
func TestFatalBusError(t *testing.T) {
	c := newCable(t, sim.Config{}, "common", stmmac.WithRecovery(stmmac.Recovery{}))
	c.dev[1].SetFaults(func(f *sim.Faults) {
		f.BusError = func(_ uint64, n int, write bool) bool { return write && n >= 60 }
	})
	b, err := c.pool.Alloc()
	if err != nil {
		t.Fatal(err)
	}
	b.SetData(frame(100, 1))
	if n, err := c.mac[0].Tx(0).Send([]*pagepool.Buf{b}); n != 1 || err != nil {
		t.Fatal(n, err)
	}
	err = c.mac[1].Rx(0).Wait(patience(t))
	mustFail(t, err, stmmac.ErrFatalBus, "b", "channel 0")
	mustFail(t, c.mac[1].Err(), stmmac.ErrFatalBus)
}

// TestShared lets many goroutines send on one queue.
func TestShared(t *testing.T) {
	c := newCable(t, sim.Config{}, "common", stmmac.WithRings(64, 16))
	ctx := patience(t)
	const senders, each = 8, 200
	window := make(chan struct{}, 50)
	var wg sync.WaitGroup
	s := c.mac[0].Tx(0).Shared()
	for g := range senders {
		wg.Go(func() {
			for i := range each {
				window <- struct{}{}
				b, err := c.pool.Alloc()
				if err != nil {
					t.Error(err)
					return
				}
				b.SetData(frame(60, uint64(g)<<32|uint64(i)))
				if err := sendOne(ctx, s, b); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	next := map[uint64]uint64{}
	rx := c.mac[1].Rx(0)
	for got := 0; got < senders*each; {
		bufs := make([]*pagepool.Buf, 32)
		n := rx.Recv(bufs)
		if n == 0 {
			if err := rx.Wait(ctx); err != nil {
				t.Fatal(err, got, c.dev[1].Stats())
			}
		}
		for _, b := range bufs[:n] {
			seq := uint64(0)
			for _, x := range b.Bytes()[14:22] {
				seq = seq<<8 | uint64(x)
			}
			if g := seq >> 32; next[g] != seq&0xffffffff {
				t.Fatalf("sender %d: frame %d, want %d", g, seq&0xffffffff, next[g])
			} else {
				next[g]++
			}
			<-window
			got++
		}
		c.pool.FreeBatch(bufs[:n])
	}
	wg.Wait()
	if _, err := drain(ctx, s); err != nil {
		t.Fatal(err)
	}
	if n := s.Space(); n != 15 {
		t.Errorf("room for %d, want 15", n)
	}
}

// TestLinks follows changes of the link.
func TestLinks(t *testing.T) {
	c := newCable(t, sim.Config{}, "common")
	seen := make(chan stmmac.Link, 10)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for l := range c.mac[0].Links(context.Background()) {
			seen <- l
		}
	}()
	if l := <-seen; !l.Up || l.Speed != 1000 {
		t.Errorf("link %v", l)
	}
	for _, l := range []stmmac.Link{{}, {Up: true, Speed: 100, FullDuplex: true}} {
		if err := c.mac[0].SetLink(l); err != nil {
			t.Fatal(err)
		}
		if got := <-seen; got != l || c.mac[0].Link() != l {
			t.Errorf("link %v, want %v", got, l)
		}
	}
	mustFail(t, c.mac[0].SetLink(stmmac.Link{Up: true, Speed: 1}), errors.ErrUnsupported, "1 Mbit/s")
	c.mac[0].Close()
	<-done
}

// TestStarved takes all buffers from a waiting queue and gives one back.
func TestStarved(t *testing.T) {
	for _, vectors := range []string{"common", "each"} {
		t.Run(vectors, func(t *testing.T) {
			c := newCable(t, sim.Config{}, vectors, stmmac.WithRings(8, 8))
			ctx := patience(t)
			rx := c.mac[1].Rx(0)
			var held []*pagepool.Buf
			hold := func() {
				for {
					b, err := c.pool.Alloc()
					if err != nil {
						break
					}
					held = append(held, b)
				}
			}
			hold()
			// Use up what the ring has.
			tx := c.mac[0].Tx(0)
			for i := 0; i < 7; {
				b := held[len(held)-1]
				b.Reset(pagepool.NetSKBPad)
				b.SetData(frame(60, uint64(i)))
				n, err := tx.Send([]*pagepool.Buf{b})
				if err != nil {
					t.Fatal(err)
				}
				if n == 0 {
					if err := tx.Wait(ctx); err != nil {
						t.Fatal(err)
					}
					continue
				}
				held = held[:len(held)-1]
				i++
			}
			one := make([]*pagepool.Buf, 1)
			for got := 0; got < 7; {
				if rx.Recv(one) == 1 {
					held = append(held, one[0])
					got++
				} else if err := rx.Wait(ctx); err != nil {
					t.Fatal(err)
				}
			}
			if _, err := drain(ctx, tx); err != nil {
				t.Fatal(err)
			}
			hold()
			// Now the queue sleeps without a buffer; one is freed and a frame sent.
			go func() {
				time.Sleep(time.Millisecond)
				c.pool.FreeBatch(held[:100])
				b, err := c.pool.Alloc()
				if err != nil {
					t.Error(err)
					return
				}
				b.SetData(frame(60, 99))
				if n, err := tx.Send([]*pagepool.Buf{b}); n != 1 {
					t.Error(n, err)
				}
			}()
			for rx.Recv(one) == 0 {
				if err := rx.Wait(ctx); err != nil {
					t.Fatal(err)
				}
			}
			c.pool.Free(one[0])
			c.pool.FreeBatch(held[100:])
		})
	}
}
