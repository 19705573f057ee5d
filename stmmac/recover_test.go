package stmmac_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/gostmmac/gostmmac/pagepool"
	"github.com/gostmmac/gostmmac/stmmac"
	"github.com/gostmmac/gostmmac/stmmac/sim"
)

// flows fails unless a frame gets through the MAC in both directions.
func (r *rig) flows(seq uint64) {
	r.Helper()
	r.wire.deliver(frame(100, seq))
	r.same(r.recv(1), frames(1, 100, seq))
	r.wire.take()
	r.send(frame(200, seq))
	r.step()
	r.same(r.wire.take(), frames(1, 200, seq))
	for q := range r.numTx() {
		r.mac.Tx(q).Reap(nil)
	}
}

// failOnce makes the next access that match selects fail.
func (r *rig) failOnce(match func(n int, write bool) bool) {
	r.tolerate = []sim.ViolationKind{sim.DMAOutside} // what a failed access looks like
	r.dev.SetFaults(func(f *sim.Faults) {
		done := false
		f.BusError = func(_ uint64, n int, write bool) bool {
			if done || !match(n, write) {
				return false
			}
			done = true
			return true
		}
	})
}

// polled is a device without interrupts: the monitor alone sees its faults, so
// that a test steps through them.
func polled(d *sim.Device) stmmac.Device { return noInterrupts{d} }

// onlyRx fails if anybody but the receive rings holds buffers.
func (r *rig) onlyRx() {
	r.Helper()
	r.step()
	for q := range r.numTx() {
		r.mac.Tx(q).Reap(nil)
	}
	for name, n := range r.pool.Holders() {
		if !strings.Contains(name, " rx") {
			r.Errorf("%s holds %d buffers", name, n)
		}
	}
}

// TestBusErrorRecovery fails one DMA access of each kind (case D62): the MAC is
// rebuilt, what was received before is kept, and traffic is back within a second.
func TestBusErrorRecovery(t *testing.T) { onEach(t, testBusErrorRecovery) }

func testBusErrorRecovery(t *testing.T) {
	for _, tc := range []struct {
		name  string
		match func(n int, write bool) bool
	}{
		{"receive buffer", func(n int, write bool) bool { return write && n >= 60 }},
		{"receive descriptor", func(n int, write bool) bool { return write && n == 16 }},
		{"transmit buffer", func(n int, write bool) bool { return !write && n >= 60 }},
		{"transmit descriptor", func(n int, write bool) bool { return !write && n == 16 }},
	} {
		for _, queues := range queueCounts(t, 1, 4) {
			t.Run(fmt.Sprintf("%s, %d queues", tc.name, queues), func(t *testing.T) {
				r := newRig(t, rigConfig{wrap: polled, sim: sim.Config{RxQueues: queues, TxQueues: queues},
					opts: []stmmac.Option{stmmac.WithQueues(queues, queues)}})
				r.flows(0)
				r.wire.deliver(frames(3, 90, 10)...)
				r.step() // in the ring, not taken
				r.failOnce(tc.match)
				r.wire.deliver(frame(91, 20))
				r.send(frame(92, 21))
				start := r.clock.Now()
				for recoveries(r.mac) == 0 && r.clock.Now() < start+time.Second {
					r.pass(10 * time.Millisecond)
				}
				if n := recoveries(r.mac); n != 1 {
					t.Fatalf("%d recoveries", n)
				}
				got := r.recv(4)
				if len(got) < 3 {
					t.Fatalf("%d of the frames before the fault are left", len(got))
				}
				r.same(got[:3], frames(3, 90, 10))
				r.flows(1)
				if took := r.clock.Now() - start; took > time.Second {
					t.Errorf("traffic is back after %v", took)
				}
				r.onlyRx()
				s := r.mac.Tx(0).Stats()
				if s.Packets != s.Done {
					t.Errorf("%d frames were sent, %d are done", s.Packets, s.Done)
				}
			})
		}
	}
}

func recoveries(m *stmmac.MAC) (n uint64) {
	for name, v := range m.Counters() {
		if name == "recoveries" {
			n = v
		}
	}
	return n
}

// TestRepeatedFaults takes the MAC down at the fifth fault within ten seconds, and
// not when the faults are rare (case D62).
func TestRepeatedFaults(t *testing.T) { onEach(t, testRepeatedFaults) }

func testRepeatedFaults(t *testing.T) {
	for _, tc := range []struct {
		every time.Duration
		down  bool
	}{{time.Second, true}, {2600 * time.Millisecond, false}} {
		t.Run(tc.every.String(), func(t *testing.T) {
			r := newRig(t, rigConfig{wrap: polled})
			for i := range 5 {
				r.failOnce(func(n int, write bool) bool { return write && n >= 60 })
				r.wire.deliver(frame(100, uint64(i)))
				r.pass(tc.every)
			}
			err := r.mac.Err()
			if !tc.down {
				if err != nil {
					t.Fatal(err)
				}
				r.flows(9)
				return
			}
			mustFail(t, err, stmmac.ErrFatalBus, "fault 5", "stays down")
			mustFail(t, r.mac.Rx(0).Wait(t.Context()), stmmac.ErrFatalBus)
			mustFail(t, r.mac.Tx(0).Wait(t.Context()), stmmac.ErrFatalBus)
			b := r.buf(frame(60, 1), 60)
			n, err := r.mac.Tx(0).Send([]*pagepool.Buf{b})
			mustFail(t, err, stmmac.ErrFatalBus)
			if n != 0 || r.mac.Rx(0).Recv(make([]*pagepool.Buf, 4)) != 0 {
				t.Error("a MAC that is down moves frames")
			}
			r.pool.Free(b)
			if n := r.pool.InUse(); n != 0 {
				t.Errorf("%d buffers are in use: %v", n, r.pool.Holders())
			}
			mustFail(t, r.mac.SetMTU(t.Context(), 1400), stmmac.ErrFatalBus)
			// Closed and opened again it works.
			if err := r.mac.Close(); err != nil {
				t.Fatal(err)
			}
			r.dev.SetFaults(func(f *sim.Faults) { f.BusError = nil })
			r.open()
			r.flows(9)
		})
	}
}

// TestTxStall keeps frames in the MAC for ever (case D28): the queue is rebuilt
// and its frames are flushed, each once.
func TestTxStall(t *testing.T) { onEach(t, testTxStall) }

func testTxStall(t *testing.T) {
	for _, inflight := range []int{1, 7, 500} {
		for _, keep := range []bool{false, true} {
			t.Run(fmt.Sprintf("%d in flight, keep %v", inflight, keep), func(t *testing.T) {
				var opts []stmmac.Option
				if keep {
					opts = append(opts, stmmac.WithTxCompletions())
				}
				r := newRig(t, rigConfig{opts: opts})
				r.dev.SetFaults(func(f *sim.Faults) { f.TxNeverCompletes = true })
				r.send(frames(inflight, 80, 0)...)
				r.step()
				r.pass(300 * time.Millisecond)
				if n := recoveries(r.mac); n != 0 {
					t.Fatalf("%d recoveries after 300 ms", n)
				}
				r.pass(300 * time.Millisecond)
				r.dev.SetFaults(func(f *sim.Faults) { f.TxNeverCompletes = false })
				if n := recoveries(r.mac); n != 1 {
					t.Fatalf("%d recoveries after 600 ms", n)
				}
				if s := r.mac.Tx(0).Stats(); s.Flushed != uint64(inflight) || s.Done != s.Packets {
					t.Errorf("counts %+v", s)
				}
				if keep {
					if n := r.mac.Tx(0).Inflight(); n != inflight {
						t.Errorf("%d buffers wait for Reap, want %d", n, inflight)
					}
					bufs := make([]*pagepool.Buf, 600)
					if n := r.mac.Tx(0).Reap(bufs); n != inflight {
						t.Fatalf("%d frames came back, want %d", n, inflight)
					}
					r.pool.FreeBatch(bufs[:inflight])
				}
				if n := r.mac.Tx(0).Inflight(); n != 0 {
					t.Errorf("%d buffers are in flight in the end", n)
				}
				r.onlyRx()
				r.flows(1)
			})
		}
	}
}

// TestNoClockWhileRebuilding loses the clock of the PHY and meets a fault: the MAC
// is down and says why.
func TestNoClockWhileRebuilding(t *testing.T) {
	r := newRig(t, rigConfig{wrap: polled})
	r.failOnce(func(n int, write bool) bool { return write && n >= 60 })
	r.wire.deliver(frame(100, 0))
	r.step()
	r.dev.SetClockGated(true)
	r.pass(100 * time.Millisecond)
	mustFail(t, r.mac.Err(), stmmac.ErrNoClock, "SWR", "PHY")
	if err := r.mac.Close(); err != nil {
		t.Fatal(err)
	}
	_, err := stmmac.Open(t.Context(), r.via, r.opts...)
	mustFail(t, err, stmmac.ErrNoClock, "reset", "PHY")
	r.dev.SetClockGated(false)
	r.clock.Advance(time.Millisecond)
	r.open()
	r.flows(1)
}

// TestSetMTU changes the MTU while frames are under way (case D49): what was
// received is kept, what was sent leaves, and frames of the new length pass.
func TestSetMTU(t *testing.T) {
	for _, queues := range []int{1, 2} {
		t.Run(fmt.Sprintf("%d queues", queues), func(t *testing.T) {
			r := newRig(t, rigConfig{sim: sim.Config{RxQueues: queues, TxQueues: queues, RxFIFO: 32 << 10, TxFIFO: 32 << 10},
				opts: []stmmac.Option{stmmac.WithQueues(queues, queues)}})
			for i, mtu := range []int{9000, 1500, 46, 576, 2000, 1500} {
				seq := uint64(i) * 100
				r.wire.deliver(frames(3, 60, seq)...)
				r.step()
				r.send(frames(4, 60, seq+10)...)
				if err := r.mac.SetMTU(t.Context(), mtu); err != nil {
					t.Fatal(err)
				}
				if n := r.mac.MTU(); n != mtu {
					t.Fatalf("MTU %d, want %d", n, mtu)
				}
				r.same(r.recv(3), frames(3, 60, seq))
				r.same(r.wire.take(), frames(4, 60, seq+10))
				long := mtu + 14
				r.wire.deliver(frame(long, seq+20), frame(long+9, seq+21), frame(long, seq+22))
				r.same(r.recv(3), [][]byte{frame(long, seq+20), frame(long, seq+22)})
				if _, err := r.mac.Tx(0).Send([]*pagepool.Buf{r.buf(frame(long, seq), 1500)}); err != nil {
					t.Fatal(err)
				}
				b := r.buf(frame(long+9, seq), 1500)
				_, err := r.mac.Tx(0).Send([]*pagepool.Buf{b})
				mustFail(t, err, stmmac.ErrFrameTooLong)
				r.pool.Free(b)
				r.step()
				r.same(r.wire.take(), [][]byte{frame(long, seq)})
				r.settled()
			}
			for _, mtu := range []int{45, 9001, -1} {
				err := r.mac.SetMTU(t.Context(), mtu)
				var e *stmmac.Error
				if !errors.As(err, &e) || e.Op != "set MTU" || r.mac.MTU() != 1500 {
					t.Errorf("MTU %d: %v", mtu, err)
				}
			}
			r.flows(1000)
		})
	}
}

// TestSetMTUFails has no clock for the reset: the call fails, and what the MAC
// does then depends on whether the clock comes back in time for the old MTU.
func TestSetMTUFails(t *testing.T) { onEach(t, testSetMTUFails) }

func testSetMTUFails(t *testing.T) {
	for _, back := range []bool{true, false} {
		t.Run(fmt.Sprintf("clock comes back %v", back), func(t *testing.T) {
			r := newRig(t, rigConfig{})
			r.dev.SetClockGated(true)
			if back {
				// The reset gives up after a second.
				r.clock.AfterFunc(1500*time.Millisecond, func() { r.dev.SetClockGated(false) })
			}
			err := r.mac.SetMTU(t.Context(), 2000)
			mustFail(t, err, stmmac.ErrNoClock, "set MTU")
			if !back {
				mustFail(t, r.mac.Err(), stmmac.ErrNoClock)
				r.dev.SetClockGated(false)
				return
			}
			if err := r.mac.Err(); err != nil || r.mac.MTU() != 1500 {
				t.Fatalf("MTU %d, %v", r.mac.MTU(), err)
			}
			r.flows(1)
			r.wire.deliver(frame(2014, 2))
			if n := len(r.recv(1)); n != 0 {
				t.Error("a frame of the refused MTU came")
			}
		})
	}
}

func TestSetRings(t *testing.T) {
	r := newRig(t, rigConfig{})
	for i, n := range []int{2, 1024, 3, 512} {
		if err := r.mac.SetRings(t.Context(), n, n); err != nil {
			t.Fatal(err)
		}
		r.base = r.pool.InUse()
		if r.base != n-1 {
			t.Errorf("%d buffers in a ring of %d", r.base, n)
		}
		for k := range 5 {
			r.flows(uint64(10*i + k))
		}
		if got := r.mac.Tx(0).Space(); got != n-1 {
			t.Errorf("room for %d in a ring of %d", got, n)
		}
		r.onlyRx()
	}
	mustFail(t, r.mac.SetRings(t.Context(), 1, 8), os.ErrInvalid, "set rings")
	mustFail(t, r.mac.SetRings(t.Context(), 8, 1025), os.ErrInvalid)
	r.flows(99)
}

// TestChangeUnderWaiters rebuilds MACs whose queues sleep and work: nobody hangs,
// and frames that were sent afterwards arrive.
func TestChangeUnderWaiters(t *testing.T) {
	for _, vectors := range []string{"common", "each", "none"} {
		t.Run(vectors, func(t *testing.T) {
			c := newCable(t, sim.Config{}, vectors)
			ctx := patience(t)
			done := make(chan error, 1)
			last := uint64(1 << 40)
			go func() {
				for b, err := range c.mac[1].Rx(0).Frames(ctx) {
					if err != nil {
						done <- err
						return
					}
					end := string(b.Bytes()) == string(frame(60, last))
					c.pool.Free(b)
					if end {
						done <- nil
						return
					}
				}
			}()
			for i := range scale(t, 1000) {
				mtu := 1400 + i%2*100
				if err := c.mac[i%2].SetMTU(ctx, mtu); err != nil {
					t.Fatal(err)
				}
				b := chain(t, c.pool, frame(60, uint64(i)), 60)
				if err := sendOne(ctx, c.mac[0].Tx(0).Shared(), b); err != nil {
					t.Fatal(err)
				}
			}
			// What was on the cable while the receiver was off is lost.
			for {
				b := chain(t, c.pool, frame(60, last), 60)
				if err := sendOne(ctx, c.mac[0].Tx(0).Shared(), b); err != nil {
					t.Fatal(err)
				}
				select {
				case err := <-done:
					if err != nil {
						t.Fatal(err)
					}
					return
				case <-time.After(time.Millisecond):
				}
			}
		})
	}
}

// TestWaitWhileRebuilding ends a Wait that finds a rebuild under way by its own
// context.
func TestWaitWhileRebuilding(t *testing.T) { onEach(t, testWaitWhileRebuilding) }

func testWaitWhileRebuilding(t *testing.T) {
	r := newRig(t, rigConfig{})
	r.clock.SetStepped(true)
	r.dev.SetClockGated(true)
	ctx, cancel := context.WithCancel(t.Context())
	changed := make(chan error, 1)
	go func() { changed <- r.mac.SetMTU(ctx, 1400) }()
	for !r.mac.Rebuilding() {
		time.Sleep(time.Millisecond)
	}
	waited := make(chan error, 1)
	wctx, wcancel := context.WithCancel(t.Context())
	go func() { waited <- r.mac.Rx(0).Wait(wctx) }()
	wcancel()
	mustFail(t, <-waited, context.Canceled)
	r.dev.SetClockGated(false)
	cancel()
	r.clock.SetStepped(false)
	for done := false; !done; {
		select {
		case err := <-changed:
			// The clock may be back before the change hears of the end.
			if err != nil {
				mustFail(t, err, context.Canceled)
			}
			done = true
		default:
			r.clock.Advance(time.Millisecond)
		}
	}
	r.flows(1)
}
