package sim

import (
	"cmp"
	"context"
	"encoding/binary"
	"net"
	"slices"
	"sync/atomic"
	"time"

	"github.com/gostmmac/gostmmac/stmmac/internal/core"
)

// LoopWire is one end of a loop, a generator and checker around a forwarder: it
// injects the frames of its stream into one MAC and checks the frames of the
// other stream, which the forwarder sends out of this MAC. It is elastic, has
// room for every frame and allocates nothing per frame.
//
// Transmit and Receive may run on two goroutines, and those of the two ends
// too. The other methods may be called by any goroutine at any time.
type LoopWire struct {
	out, in *loopStream
	closed  atomic.Bool

	// The next frame of out and what is known of its window, for Receive alone.
	next, flow, seq uint64
	accounted       uint64
}

// NewLoop returns the wires at A and B of a forwarder. What a injects has to
// come out at b, unchanged and in the order of each flow, and the other way
// around. At most Window frames of each stream are under way: their arrival
// lets the next ones go, as does giving them up.
func NewLoop(cfg LoopConfig) (a, b *LoopWire) {
	cfg.normalize()
	ab := newLoopStream(&cfg, 0, cfg.AddrA)
	ba := newLoopStream(&cfg, 1, cfg.AddrB)
	return &LoopWire{out: ab, in: ba}, &LoopWire{out: ba, in: ab}
}

// normalize puts every value into its range.
func (c *LoopConfig) normalize() {
	mac := [2][6]byte{{2, 0, 0, 0, 0, 0x0a}, {2, 0, 0, 0, 0, 0x0b}}
	for i, a := range []*LoopAddr{&c.AddrA, &c.AddrB} {
		a.Src = cmp.Or(a.Src, mac[i])
		a.Dst = cmp.Or(a.Dst, mac[1-i])
	}
	within := func(v, def, most int) int { return min(max(cmp.Or(v, def), 1), most) }
	c.Queues = min(max(c.Queues, 0), loopMaxQueues)
	c.Flows = within(c.Flows, max(1, c.Queues), loopMaxFlows)
	c.Window = within(c.Window, 256, loopMaxWindow)
	c.GiveUp = within(c.GiveUp, 64, loopMaxWindow)
	if len(c.Sizes) == 0 {
		c.Sizes = []int{loopMinFrame}
	}
	c.Sizes = slices.Clone(c.Sizes)
	for i, n := range c.Sizes {
		c.Sizes[i] = min(max(n, loopMinFrame), maxWireFrame)
	}
	if c.Timeout <= 0 {
		c.Timeout = 100 * time.Millisecond
	}
	if c.Clock == nil {
		c.Clock = core.NewWallClock()
	}
	c.Frames &^= loopStop
}

// Transmit implements [Wire]: it checks a frame of the other end's stream.
func (w *LoopWire) Transmit(f Frame) bool {
	if !w.closed.Load() {
		w.in.check(f)
	}
	return true
}

// Receive implements [Wire]: it injects the next frame of this end's stream.
func (w *LoopWire) Receive() (Frame, bool) {
	s := w.out
	k := w.next
	if s.sent.Load() != k { // stopped
		return Frame{}, false
	}
	if k-w.accounted >= s.window {
		w.accounted = s.look(k)
		if k-w.accounted >= s.window {
			return Frame{}, false
		}
	}
	h, variant, size := s.header(k, w.flow, w.seq)
	b := s.frames[variant][:size:size]
	h.store(b[s.off:])
	if s.queues > 0 {
		binary.BigEndian.PutUint16(b[loopAddrs+2:], s.tci(w.flow))
	}
	after := k + 1
	if after == s.limit {
		after |= loopStop
	}
	if !s.sent.CompareAndSwap(k, after) {
		return Frame{}, false
	}
	w.next++
	if w.flow++; w.flow == s.flows {
		w.flow = 0
		w.seq++
	}
	if !s.armed.Load() {
		s.arm()
	}
	return Frame{Data: b}, true
}

// Elastic implements [Wire].
func (w *LoopWire) Elastic() bool { return true }

// Notify implements [Wire]. After a Receive that had nothing because the window
// was full, f is called once an eighth of the window is free.
func (w *LoopWire) Notify(f func()) { w.out.notify.set(f) }

// Stop stops injecting at this end, for good. Frames that are under way are
// still checked at the other.
func (w *LoopWire) Stop() { w.out.stop() }

// Idle reports whether this end has stopped, because of Stop or of
// [LoopConfig.Frames], and all that it injected arrived or was given up.
func (w *LoopWire) Idle() bool {
	select {
	case <-w.out.idle:
		return true
	default:
		return false
	}
}

// Drain stops injecting and waits until the end is idle, which the [LoopConfig]
// clock ends by giving up what does not arrive. It returns ctx.Err(), or
// net.ErrClosed if the end was closed before it was idle.
func (w *LoopWire) Drain(ctx context.Context) error {
	w.Stop()
	select {
	case <-w.out.idle:
		return nil
	case <-ctx.Done():
	case <-w.out.gone:
	}
	switch {
	case w.Idle():
		return nil
	case ctx.Err() != nil:
		return ctx.Err()
	default:
		return net.ErrClosed
	}
}

// Counters returns the counts of the stream that this end injects and the other
// end checks.
func (w *LoopWire) Counters() LoopCounters { return w.out.counters() }

// Close implements [Wire]. It stops injecting and forgets what is outstanding;
// frames of the other end's stream are not checked any more.
func (w *LoopWire) Close() error {
	w.closed.Store(true)
	w.out.close()
	return nil
}
