package vfiopci

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/gostmmac/gostmmac/hwtest/rig/cards"
	"github.com/gostmmac/gostmmac/hwtest/rig/guest/jobs"
	"github.com/gostmmac/gostmmac/hwtest/rig/note"
	"github.com/gostmmac/gostmmac/hwtest/rig/vfiopci/said"
)

// Signals.
const (
	sigkill = 9
	sigterm = 15
)

// ended is what a program that ran beside the rig came to.
type ended struct {
	jobs.ProgramEnd
	err error
}

// begin starts a program and returns where its end is told.
func (h *Host) begin(ctx context.Context, name string, args ...string) <-chan ended {
	end := make(chan ended, 1)
	go func() {
		p, err := h.program(ctx, nil, name, args...)
		end <- ended{p, err}
	}()
	return end
}

// poll looks until something is so.
func poll(ctx context.Context, what string, so func() bool) error {
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !so() {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return fmt.Errorf("%s: %w", what, ctx.Err())
		}
	}
	return nil
}

// kill kills the forwarder while frames go through it: the cards reach no memory any more,
// and that of the next process stays as it is although frames wait for them all the time.
func kill(ctx context.Context, h *Host) error {
	const soon = time.Second
	ends, err := h.loop(0, soon)
	if err != nil {
		return err
	}
	one, two := h.boot.address(generators, false), h.boot.address(generators+1, false)
	end := h.begin(ctx, forwarderBin, "-json", "-duration", "0", "-a", one, "-b", two)
	const some = 500
	err = poll(ctx, "frames go through", func() bool {
		return len(end) > 0 || ends[0].Counters().Received > some && ends[1].Counters().Received > some
	})
	if err != nil {
		return err
	}
	rings := h.rings()
	for i, at := range rings {
		if at == 0 || !h.Cards[generators+i].Function().Maps(at) {
			return fmt.Errorf("%s: its ring is at %#x, where nothing is mapped", cards.Place(generators+i), at)
		}
	}
	if _, err := do(ctx, h, jobs.Signal{Tag: forwarderBin, Number: sigkill}); err != nil {
		return err
	}
	if e := <-end; e.err != nil || e.Signal != sigkill {
		return fmt.Errorf("it was not killed: %+v", e)
	}
	note.Printf(ctx, "killed behind %d frames", ends[0].Counters().Received+ends[1].Counters().Received)
	var before [2]uint64
	for i, at := range rings {
		f := h.Cards[generators+i].Function()
		if err := poll(ctx, "bus mastering goes off", func() bool { return !f.Master() }); err != nil {
			return err
		}
		if h.boot.iommu {
			if err := poll(ctx, "the mapping of the ring goes away", func() bool { return !f.Maps(at) }); err != nil {
				return err
			}
		}
		var b [4]byte
		if err := f.Read(at, b[:]); err == nil {
			return fmt.Errorf("%s still reads its ring at %#x", cards.Place(generators+i), at)
		}
		before[i] = h.Cards[generators+i].Model().Stats().RxFrames
	}
	if err := h.watch(ctx, one, two); err != nil {
		return err
	}
	for i, n := range before {
		if now := h.Cards[generators+i].Model().Stats().RxFrames; now != n {
			return fmt.Errorf("%s received %d frames for nobody", cards.Place(generators+i), now-n)
		}
	}
	return h.audit()
}

// rings are the addresses of the first receive rings of the cards of the generators.
func (h *Host) rings() (at [2]uint64) {
	const high, low = 0x1118, 0x111c // DMA_CH0_RxDesc_List_HAddress, _Address
	for i := range at {
		m := h.Cards[generators+i].Model()
		at[i] = uint64(m.Load(high))<<32 | uint64(m.Load(low))
	}
	return at
}

// watch opens the cards in a new process, which maps memory and lets them reach it, and looks
// for writes.
func (h *Host) watch(ctx context.Context, addrs ...string) error {
	watching := h.await(stationBin, said.Watching)
	end := h.begin(ctx, stationBin, append([]string{"watch"}, addrs...)...)
	select {
	case <-watching:
	case e := <-end:
		return fmt.Errorf("it does not come so far: %+v", e)
	}
	for i := range h.ends {
		if f := h.Cards[generators+i].Function(); !f.Master() {
			return errors.New("the cards do not reach the memory that is watched")
		}
	}
	// What a card might still do it has done by then.
	const long = time.Second
	if err := rest(ctx, long); err != nil {
		return err
	}
	if _, err := do(ctx, h, jobs.Signal{Tag: stationBin, Number: sigterm}); err != nil {
		return err
	}
	e := <-end
	var w said.Watch
	if err := errors.Join(e.err, decode(e.Output, &w)); err != nil || e.Code != 0 {
		return fmt.Errorf("watch: %+v: %w", e, err)
	}
	if w.Changed > 0 || w.Bytes == 0 {
		return fmt.Errorf("%d of %d bytes of a new process were written, first at %#x", w.Changed, w.Bytes, w.At)
	}
	note.Printf(ctx, "nothing of %d MiB of a new process was written", w.Bytes>>20)
	return nil
}

// rest waits.
func rest(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
