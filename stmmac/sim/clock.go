package sim

import (
	"container/heap"
	"context"
	"sync"
	"time"

	"github.com/gostmmac/gostmmac/stmmac/internal/core"
)

var _ core.Clock = (*ManualClock)(nil)

// ManualClock is a clock that moves only when it is told to: by Advance, or by
// Sleep, which moves it itself instead of blocking. A driver and a model that
// share one therefore never wait for real time. All methods may be called by
// several goroutines; the functions of AfterFunc run on the goroutine that
// moves the clock, in the order of their times.
type ManualClock struct {
	mu      sync.Mutex
	now     time.Duration
	seq     uint64
	timers  timerHeap
	stepped bool
	step    sync.Mutex // held by the one goroutine that moves the clock
}

// NewManualClock returns a clock that stands at 0.
func NewManualClock() *ManualClock { return &ManualClock{} }

// SetStepped says that another goroutine moves the clock: Sleep then blocks
// until Advance has moved it far enough.
func (c *ManualClock) SetStepped(on bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stepped = on
}

// Now implements core.Clock.
func (c *ManualClock) Now() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

// Sleep moves the clock by d and runs the timers that became due, or blocks
// when SetStepped is on. It returns ctx.Err() if ctx has ended.
func (c *ManualClock) Sleep(ctx context.Context, d time.Duration) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	c.mu.Lock()
	stepped := c.stepped
	c.mu.Unlock()
	if !stepped {
		c.Advance(d)
		return ctx.Err()
	}
	woken := make(chan struct{})
	stop := c.AfterFunc(d, func() { close(woken) })
	select {
	case <-woken:
		return nil
	case <-ctx.Done():
		stop()
		return ctx.Err()
	}
}

// AfterFunc implements core.Clock. A d of 0 or less is due at the next Advance.
func (c *ManualClock) AfterFunc(d time.Duration, f func()) (stop func() bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.seq++
	t := &manualTimer{at: c.now + max(d, 0), seq: c.seq, f: f}
	heap.Push(&c.timers, t)
	return func() bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		if t.index < 0 {
			return false
		}
		heap.Remove(&c.timers, t.index)
		return true
	}
}

// Advance moves the clock by d and runs what became due on the way, with the
// clock at the time of each. A function may set timers and read the clock but
// must not move it.
func (c *ManualClock) Advance(d time.Duration) {
	c.step.Lock()
	defer c.step.Unlock()
	c.mu.Lock()
	end := c.now + max(d, 0)
	for len(c.timers) > 0 && c.timers[0].at <= end {
		t := heap.Pop(&c.timers).(*manualTimer)
		c.now = t.at
		c.mu.Unlock()
		t.f()
		c.mu.Lock()
	}
	c.now = end
	c.mu.Unlock()
}

type manualTimer struct {
	at    time.Duration
	seq   uint64 // timers of one time run in the order they were set
	f     func()
	index int // in the heap; -1 when it has left it
}

type timerHeap []*manualTimer

func (h timerHeap) Len() int { return len(h) }
func (h timerHeap) Less(i, j int) bool {
	if h[i].at != h[j].at {
		return h[i].at < h[j].at
	}
	return h[i].seq < h[j].seq
}
func (h timerHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].index, h[j].index = i, j
}
func (h *timerHeap) Push(x any) {
	t := x.(*manualTimer)
	t.index = len(*h)
	*h = append(*h, t)
}
func (h *timerHeap) Pop() any {
	old := *h
	t := old[len(old)-1]
	old[len(old)-1] = nil
	t.index = -1
	*h = old[:len(old)-1]
	return t
}
