package main

import (
	"context"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/gostmmac/gostmmac/examples/internal/cli"
	"github.com/gostmmac/gostmmac/stmmac/bus"
)

const (
	// lookEvery is how often it is looked whether the forwarder is done.
	lookEvery = 5 * time.Millisecond
	// drainFor bounds the wait for the frames that are on their way at the end.
	drainFor = 30 * time.Second
)

// run forwards until there is nothing more to do, -duration is over, ctx ends
// or a device fails. It writes a line a second to live, closes everything and
// returns what happened.
func (f *forwarder) run(ctx context.Context, live io.Writer) *result {
	work, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	failed := make(chan error, len(f.workers[0])+len(f.workers[1]))
	var wg sync.WaitGroup
	start := time.Now()
	for _, w := range f.all() {
		wg.Go(func() {
			if err := w.run(work); err != nil {
				failed <- fmt.Errorf("forward from %s: %w", w.name, err)
			}
		})
	}
	var errs []error
	lines := &liveLines{f: f, w: live, start: start, last: f.look(0)}
	if err := f.watch(ctx, lines, failed); err != nil {
		errs = append(errs, err)
	}
	forwarding := time.Since(start)
	if len(errs) == 0 {
		errs = append(errs, f.drain(failed)...)
	}
	cancel()
	wg.Wait()
	close(failed)
	for err := range failed {
		errs = append(errs, err)
	}
	res := f.result(forwarding)
	for _, s := range f.side {
		for _, err := range cli.Audit(s.handle) {
			errs = append(errs, fmt.Errorf("device %s: %w", s.name, err))
		}
	}
	errs = append(errs, f.close())
	for _, s := range f.side {
		if p := s.handle.Pcap; p != nil {
			errs = append(errs, s.fail("capture file", p.Err()))
		}
	}
	res.note(errs)
	return res
}

func (f *forwarder) all() []*worker {
	return append(append([]*worker(nil), f.workers[0]...), f.workers[1]...)
}

// watch returns when it is time to end. Its error is that of a device.
func (f *forwarder) watch(ctx context.Context, lines *liveLines, failed <-chan error) error {
	var over <-chan time.Time
	if d := f.cfg.duration; d > 0 && (f.cfg.timed || !f.plays()) {
		t := time.NewTimer(d)
		defer t.Stop()
		over = t.C
	}
	second := time.NewTicker(time.Second)
	defer second.Stop()
	look := time.NewTicker(lookEvery)
	defer look.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-over:
			return nil
		case err := <-failed:
			return err
		case <-f.side[0].gone():
			return f.side[0].wireError()
		case <-f.side[1].gone():
			return f.side[1].wireError()
		case <-second.C:
			lines.print()
		case <-look.C:
			if f.done() {
				return nil
			}
		}
	}
}

// plays says whether a capture file is the input.
func (f *forwarder) plays() bool {
	return f.side[0].handle.InputEnd() != nil || f.side[1].handle.InputEnd() != nil
}

// done says whether everything there is was sent: the files are at their end,
// the generators sent -count frames, all of which are accounted for, or as many
// were forwarded from other devices.
func (f *forwarder) done() bool {
	limited := false
	for d, s := range f.side {
		switch h := s.handle; {
		case h.InputEnd() != nil:
			limited = true
			select {
			case <-h.InputEnd():
			default:
				if f.cfg.count == 0 || h.Input() < f.cfg.count {
					return false
				}
			}
		case f.cfg.count == 0, silent(h):
		case h.Loop != nil:
			limited = true
			if !h.Loop.Idle() {
				return false
			}
		default:
			limited = true
			if f.sent(d).packets < f.cfg.count {
				return false
			}
		}
	}
	return limited
}

// silent says whether nothing ever arrives at a device.
func silent(h *bus.Handle) bool {
	wire, given := h.Address.Get("wire")
	return h.Sim != nil && (!given || wire == "null")
}

// drain stops what sends frames and waits until those that are on their way
// have arrived or were given up. Traffic of devices that cannot be told to stop
// is cut off.
func (f *forwarder) drain(failed <-chan error) (errs []error) {
	ctx, cancel := context.WithTimeout(context.Background(), drainFor)
	defer cancel()
	for _, s := range f.side {
		s.handle.StopInput()
	}
	for _, s := range f.side {
		if l := s.handle.Loop; l != nil {
			if err := l.Drain(ctx); err != nil {
				errs = append(errs, s.fail("frames of the generator are still on their way", err))
			}
		}
	}
	look := time.NewTicker(lookEvery)
	defer look.Stop()
	// Twice in a row: the counts are not all read at the same time.
	for settled := 0; settled < 2; {
		select {
		case err := <-failed:
			return append(errs, err)
		case <-ctx.Done():
			return append(errs, fmt.Errorf("frames are still on their way after %v", drainFor))
		case <-look.C:
			settled++
			if !f.settled(0) || !f.settled(1) {
				settled = 0
			}
		}
	}
	return errs
}

// settled says whether all frames that the device of side d took from its wire
// are accounted for: dropped by it, by its driver or by the worker, or sent by
// the other device. Only simulated devices whose input has stopped can tell;
// others count as settled.
func (f *forwarder) settled(d int) bool {
	from, to := f.side[d].handle, f.side[1-d].handle
	if !stoppable(f.side[d]) || from.Sim == nil || to.Sim == nil {
		return true
	}
	in := from.Sim.Stats()
	got, sent := f.got(d), f.sent(d)
	delivered := in.RxFrames + in.RxErrors
	out := to.Sim.Stats()
	n, known := taken(from)
	return (!known || n == delivered+in.RxFiltered+in.RxDropped+in.RxOverflow+in.RxMissed) &&
		delivered == got.packets+got.drops &&
		got.packets == sent.packets+f.workerDrops(d) &&
		sent.packets <= out.TxFrames+out.TxErrors
}

// taken is how many frames a MAC has taken from its wire, if that is known.
func taken(h *bus.Handle) (n uint64, known bool) {
	switch {
	case h.Pcap != nil:
		return h.Input(), true
	case h.TAP != nil && h.Injector == nil:
		return h.TAP.Stats().RxFrames, true
	}
	return 0, false
}

// stoppable says whether StopInput stops what arrives at a side.
func stoppable(s *side) bool {
	return s.handle.Loop != nil || s.handle.Pcap != nil || s.handle.TAP != nil
}

// gone is closed when the TAP interface of a side is deleted. It blocks for ever
// for other wires.
func (s *side) gone() <-chan struct{} {
	if s.handle.TAP == nil {
		return nil
	}
	return s.handle.TAP.Done()
}

func (s *side) wireError() error { return s.fail("forward", s.handle.TAP.Err()) }
