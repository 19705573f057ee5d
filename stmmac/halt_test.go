package stmmac_test

import (
	"context"
	"errors"
	"os"
	"testing"

	"github.com/gostmmac/gostmmac/mmio"
	"github.com/gostmmac/gostmmac/stmmac"
	r4 "github.com/gostmmac/gostmmac/stmmac/internal/regs/gmac4reg"
	"github.com/gostmmac/gostmmac/stmmac/sim"
)

// TestHalt halts a MAC that somebody has left running: it writes no frame to memory any more,
// and can be opened again.
func TestHalt(t *testing.T) { onEach(t, testHalt) }

func testHalt(t *testing.T) {
	queues := min(4, on(t).limits().queues)
	r := newRig(t, rigConfig{sim: sim.Config{RxQueues: queues, TxQueues: queues}, opts: []stmmac.Option{stmmac.WithQueues(queues, queues)}})
	r.flows(1)
	// Its owner had more queues than whoever finds it.
	r.must(stmmac.Halt(t.Context(), r.via, append(r.opts[:len(r.opts):len(r.opts)], stmmac.WithQueues(1, 1))...))
	if queues > 1 {
		for ch := range queues {
			if r4.DMACHRxControl.Load(r.channel(ch))&r4.SR != 0 || r4.DMACHTxControl.Load(r.channel(ch))&r4.ST != 0 {
				t.Errorf("channel %d runs", ch)
			}
		}
	}
	owned := r.rxOwned(0, 8)
	r.wire.deliver(frame(100, 2))
	r.step()
	if n := r.rxOwned(0, 8); n != owned {
		t.Errorf("%d receive descriptors are the device's, and there were %d", n, owned)
	}
	r.must(r.mac.Close())
	r.wire.mu.Lock()
	r.wire.in = nil
	r.wire.mu.Unlock()
	r.open()
	r.flows(3)
}

// TestHaltTakesTime: a DMA that does not come to rest is reset.
func TestHaltTakesTime(t *testing.T) { onEach(t, testHaltTakesTime) }

func testHaltTakesTime(t *testing.T) {
	r := newRig(t, rigConfig{})
	r.dev.SetFaults(func(f *sim.Faults) { f.RxStopHangs = 1 })
	r.must(stmmac.Halt(t.Context(), r.via, r.opts...))
	if at := r.gen.list(r.csr(), 0, receiving); at != 0 {
		t.Errorf("the list is at %#x: it was not reset", at)
	}
	r.dev.SetFaults(func(f *sim.Faults) { f.RxStopHangs = 0 })
	r.must(r.mac.Close())
	r.open()
	r.flows(1)
}

// TestHaltInReset: there is nothing to do for a MAC that a reset holds.
func TestHaltInReset(t *testing.T) {
	f := mmio.NewFake(0x2000)
	f.Set(0x1000, 1) // Bus_Mode.SWR
	f.ResetLog()
	if err := stmmac.Halt(t.Context(), newFakeDevice(f), stmmac.WithGeneration(stmmac.GMAC)); err != nil {
		t.Error(err)
	}
	for _, a := range f.Log() {
		if a.Store {
			t.Errorf("wrote %+v", a)
		}
	}
}

// TestHaltFails: what is no MAC, or not there, cannot be halted.
func TestHaltFails(t *testing.T) {
	for name, c := range map[string]struct {
		version uint32
		opts    []stmmac.Option
		is      error
	}{
		"gone":          {mmio.AllOnes, []stmmac.Option{stmmac.WithGeneration(stmmac.GMAC)}, stmmac.ErrGone},
		"no MAC":        {0, []stmmac.Option{stmmac.WithGeneration(stmmac.GMAC)}, errors.ErrUnsupported},
		"no generation": {0x1032, nil, os.ErrInvalid},
		"XGMAC":         {0x1032, []stmmac.Option{stmmac.WithGeneration(stmmac.XGMAC)}, errors.ErrUnsupported},
	} {
		f := mmio.NewFake(0x2000)
		f.Set(0x20, c.version)
		err := stmmac.Halt(context.Background(), newFakeDevice(f), append(c.opts, stmmac.WithName("x"))...)
		e := new(stmmac.Error)
		if !errors.Is(err, c.is) || !errors.As(err, &e) || e.Dev != "x" {
			t.Errorf("%s: %v", name, err)
		}
	}
}
