package stmmac_test

import (
	"errors"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/gostmmac/gostmmac/pagepool"
	"github.com/gostmmac/gostmmac/stmmac"
	r4 "github.com/gostmmac/gostmmac/stmmac/internal/regs/gmac4reg"
	"github.com/gostmmac/gostmmac/stmmac/sim"
)

// csrClock gives the watchdog its unit: 256 cycles are 2.048 us.
var csrClock = stmmac.WithCSRClock(125_000_000)

// event says whether a status bit of channel 0 is set, and clears it. The device
// has no interrupts, so nobody else does.
func (r *rig) event(bit r4.CHStatus) bool {
	const status = 0x1100 + uint32(r4.DMACHStatus)
	set := r4.CHStatus(r.dev.Load(status))&bit != 0
	r.dev.Store(status, uint32(bit))
	return set
}

// TestRxCoalesce counts the receive interrupts of a sleeping queue: frames share
// one by number and by time.
func TestRxCoalesce(t *testing.T) {
	for _, tc := range []struct {
		name  string
		c     stmmac.Coalesce
		burst int           // frames that arrive at once
		after time.Duration // when the interrupt has come at the latest
		early bool          // it comes without any time passing
	}{
		{"each frame", stmmac.Coalesce{}, 1, 0, true},
		{"by time", stmmac.Coalesce{RxTime: 100 * time.Microsecond}, 1, 102 * time.Microsecond, false},
		{"by time, many", stmmac.Coalesce{RxTime: 100 * time.Microsecond}, 40, 102 * time.Microsecond, false},
		{"each fourth or by time", stmmac.Coalesce{RxTime: 400 * time.Microsecond, RxFrames: 4}, 8, 0, true},
		{"fewer than four", stmmac.Coalesce{RxTime: 400 * time.Microsecond, RxFrames: 64}, 3, 410 * time.Microsecond, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r := newRig(t, rigConfig{wrap: polled, opts: []stmmac.Option{csrClock, stmmac.WithCoalesce(tc.c), stmmac.WithRings(128, 8)}})
			r.wire.deliver(frame(60, 0)) // slot 0, which interrupts with RxFrames
			r.recv(1)
			r.clock.Advance(time.Millisecond)
			r.event(r4.RI)
			r.wire.deliver(frames(tc.burst, 60, 1)...)
			r.step()
			if early := r.event(r4.RI); early != tc.early {
				t.Fatalf("an interrupt at once: %v", early)
			}
			r.clock.Advance(tc.after)
			if !tc.early && !r.event(r4.RI) {
				t.Fatalf("no interrupt after %v", tc.after)
			}
			r.same(r.recv(tc.burst), frames(tc.burst, 60, 1))
		})
	}
}

// TestSetCoalesce changes how frames share interrupts while buffers are with the
// device: no frame waits for ever, whatever its descriptor says.
func TestSetCoalesce(t *testing.T) {
	c := newCable(t, sim.Config{}, "each", csrClock, stmmac.WithRings(16, 16))
	ctx := patience(t)
	one := make([]*pagepool.Buf, 1)
	for i := range scale(t, 2000) {
		set := [...]stmmac.Coalesce{
			{}, {RxTime: time.Millisecond}, {RxTime: 50 * time.Microsecond, RxFrames: 3},
			{TxTime: time.Millisecond, TxFrames: 7}, {Spin: 100},
		}[i%5]
		if _, err := c.mac[i%2].SetCoalesce(set); err != nil {
			t.Fatal(err)
		}
		b := chain(t, c.pool, frame(60, uint64(i)), 60)
		if err := sendOne(ctx, c.mac[0].Tx(0).Shared(), b); err != nil {
			t.Fatal(err)
		}
		for c.mac[1].Rx(0).Recv(one) == 0 {
			if err := c.mac[1].Rx(0).Wait(ctx); err != nil {
				t.Fatalf("frame %d: %v", i, err)
			}
		}
		c.pool.Free(one[0])
		if _, err := drain(ctx, c.mac[0].Tx(0)); err != nil {
			t.Fatalf("frame %d: %v", i, err)
		}
	}
}

func TestSetCoalesceRounds(t *testing.T) {
	r := newRig(t, rigConfig{opts: []stmmac.Option{csrClock}})
	for _, tc := range []struct{ ask, get time.Duration }{
		{0, 0}, {time.Nanosecond, 32768 * time.Nanosecond}, {100 * time.Microsecond, 100352 * time.Nanosecond}, {3 * time.Millisecond, 2998272 * time.Nanosecond},
	} {
		got, err := r.mac.SetCoalesce(stmmac.Coalesce{RxTime: tc.ask})
		if err != nil || got.RxTime != tc.get {
			t.Errorf("%v: %v, %v; want %v", tc.ask, got.RxTime, err, tc.get)
		}
	}
	for _, c := range []stmmac.Coalesce{
		{RxTime: -1}, {RxFrames: 1}, {TxFrames: 2}, {TxTime: 1}, {Spin: -1}, {Spin: 1<<20 + 1}, {RxTime: time.Second},
	} {
		_, err := r.mac.SetCoalesce(c)
		var e *stmmac.Error
		if !errors.Is(err, os.ErrInvalid) || !errors.As(err, &e) {
			t.Errorf("%+v: %v", c, err)
		}
	}
	bare := newRig(t, rigConfig{})
	_, err := bare.mac.SetCoalesce(stmmac.Coalesce{RxTime: time.Millisecond})
	mustFail(t, err, errors.ErrUnsupported, "CSR clock")
	bare.flows(1)
}

// TestTxCoalesce counts the transmit interrupts of a queue that sleeps after each
// frame.
func TestTxCoalesce(t *testing.T) {
	for _, tc := range []struct{ frames, sent, want int }{{1, 12, 12}, {4, 12, 3}, {5, 12, 2}} {
		t.Run(fmt.Sprintf("%d share", tc.frames), func(t *testing.T) {
			set := stmmac.Coalesce{}
			if tc.frames > 1 {
				set = stmmac.Coalesce{TxFrames: tc.frames, TxTime: time.Millisecond}
			}
			r := newRig(t, rigConfig{wrap: polled, opts: []stmmac.Option{stmmac.WithCoalesce(set)}})
			got := 0
			for i := range tc.sent {
				r.send(frame(60, uint64(i)))
				r.step()
				if r.event(r4.TI) {
					got++
				}
			}
			if got != tc.want {
				t.Errorf("%d interrupts, want %d", got, tc.want)
			}
			r.mac.Tx(0).Reap(nil)
		})
	}
}

// TestSpin: a queue looks at its ring before it sleeps as often as pays.
func TestSpin(t *testing.T) { onEach(t, testSpin) }

func testSpin(t *testing.T) {
	r := newRig(t, rigConfig{opts: []stmmac.Option{stmmac.WithCoalesce(stmmac.Coalesce{Spin: 64})}})
	looks := func() uint64 { return r.dev.Stats().Stores }
	for i := range 8 {
		r.wire.deliver(frame(60, uint64(i)))
		r.step()
		before := looks()
		if err := r.mac.Rx(0).Wait(t.Context()); err != nil {
			t.Fatal(err)
		}
		if looks() != before {
			t.Error("a register was written although there was a frame")
		}
		r.recv(1)
	}
}
