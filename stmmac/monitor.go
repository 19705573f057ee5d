package stmmac

import (
	"context"
	"errors"
	"fmt"
	"runtime/pprof"
	"sync/atomic"
	"time"

	"github.com/gostmmac/gostmmac/stmmac/internal/core"
)

const (
	// quiescePoll is how often an orderly stop looks whether the MAC is idle.
	quiescePoll = 50 * time.Microsecond
	// monitorTick is how often the monitor looks for queues that stand still.
	monitorTick = 100 * time.Millisecond
	// countersTick is how often it reads the counters of the device: the fastest,
	// of 32 bits, wraps after 13.7 s at 2.5 Gbit/s.
	countersTick = time.Second
)

// monitor watches a MAC, on a goroutine of its own: it rebuilds it after a fault
// and looks for queues that stand still.
type monitor struct {
	m     *MAC
	nudge chan struct{}
	due   atomic.Bool             // a tick has passed
	fault atomic.Pointer[trouble] // a fault that nobody has dealt with yet

	// Guarded by the mutex of the MAC.
	stop   func() bool     // of the tick
	faults []time.Duration // when the MAC was rebuilt because of a fault
	rx, tx []standstill    // by queue
	phy    time.Duration   // when the PHY is to be looked at
	counts time.Duration   // when the counters of the device are to be read
}

// trouble is a fault that was reported.
type trouble struct {
	op  string
	err error
}

// standstill is how a queue was last seen.
type standstill struct {
	mark  uint64
	since time.Duration
	still bool // since is valid
}

// seen notes what a look at a queue found, and returns for how long it has stood
// still.
func (s *standstill) seen(now time.Duration, still bool) time.Duration {
	if !still || !s.still {
		s.since, s.still = now, still
	}
	return now - s.since
}

func (o *monitor) init(m *MAC) {
	o.m, o.nudge = m, make(chan struct{}, 1)
}

// report says that the device met a fault. Any goroutine may call it.
func (o *monitor) report(op string, err error) {
	o.fault.CompareAndSwap(nil, &trouble{op, err})
	o.wake()
}

func (o *monitor) wake() {
	select {
	case o.nudge <- struct{}{}:
	default:
	}
}

// start starts the goroutine. It ends when the MAC is closed.
func (o *monitor) start() {
	m := o.m
	o.arm()
	o.rx, o.tx = make([]standstill, len(m.rx)), make([]standstill, len(m.tx))
	m.dispatched.Go(func() {
		pprof.Do(m.life, pprof.Labels("dev", m.name(), "task", "monitor"), o.run)
	})
}

func (o *monitor) run(ctx context.Context) {
	for {
		select {
		case <-o.nudge:
			o.pass()
		case <-ctx.Done():
			o.m.mu.Lock()
			o.stop()
			o.m.mu.Unlock()
			return
		}
	}
}

// arm makes the next tick come.
func (o *monitor) arm() {
	o.stop = o.m.cfg.Clock.AfterFunc(monitorTick, func() {
		o.due.Store(true)
		o.wake()
	})
}

// pass deals with what was reported and with the tick that has passed. What was
// reported before it began has been dealt with when it returns.
func (o *monitor) pass() {
	m := o.m
	m.mu.Lock()
	defer m.mu.Unlock()
	f, due := o.fault.Swap(nil), o.due.Swap(false)
	if m.closed() {
		return
	}
	if m.Err() == nil {
		now := m.cfg.Clock.Now()
		if f != nil {
			o.rebuild(now, f.op, f.err)
		}
		if due && m.Err() == nil {
			o.look(now)
		}
	}
	if due {
		o.arm()
	}
}

// look looks at a MAC that should be running. The caller holds m.mu.
func (o *monitor) look(now time.Duration) {
	m := o.m
	if now >= o.counts {
		o.counts = now + countersTick
		m.readCounters()
	}
	// A link that is down is looked for with each tick: somebody waits for it.
	if m.phy != nil && (!m.link.Up || now >= o.phy) {
		o.lookPHY()
		o.phy = now + m.phy.Interval()
	}
	if m.Err() != nil {
		return
	}
	for ch := range max(len(m.rx), len(m.tx)) {
		// An interrupt tells of a bus error at once, where there are interrupts.
		switch found := m.hw.Events(ch, core.EventFatal); {
		case found&core.EventGone != 0:
			m.fail(m.wrap("look at the channels", ErrGone))
			return
		case found&core.EventFatal != 0:
			o.rebuild(now, fmt.Sprintf("channel %d", ch), ErrFatalBus)
			return
		}
	}
	for i, q := range m.rx {
		// The counters of lost frames have eleven bits, and begin anew.
		q.collectLost()
		// An idle queue stands still too: only with a frame in front of it that
		// is a fault.
		s := &o.rx[i]
		var stuck bool
		s.mark, stuck = q.ring.Stuck(s.mark)
		if s.seen(now, stuck && m.hw.RxPending(i)) >= m.cfg.Recovery.Stall {
			o.rebuild(now, fmt.Sprintf("receive queue %d", i), ErrStalled)
			return
		}
	}
	for i, q := range m.tx {
		s := &o.tx[i]
		var stuck bool
		s.mark, stuck = q.ring.Stuck(s.mark)
		if s.seen(now, stuck && m.sends() && !m.hw.TxPaused(i)) >= m.stallTx() {
			if m.phy != nil && o.linkMoved() {
				return // with a link at the next look the frame has to be gone
			}
			o.rebuild(now, fmt.Sprintf("transmit queue %d", i), ErrStalled)
			return
		}
	}
}

// lookPHY follows the PHY. One that cannot be read is asked again; the link is
// what it was.
func (o *monitor) lookPHY() {
	m := o.m
	err := m.pollPHY()
	if errors.Is(err, ErrGone) {
		m.fail(m.within("look at the PHY", err))
	}
	m.notePHY(err)
}

// linkMoved looks at the PHY whether it was the link that kept frames from leaving:
// its loss is no fault of the MAC.
func (o *monitor) linkMoved() bool {
	before := o.m.linkChanges.Load()
	o.lookPHY()
	return o.m.Err() != nil || o.m.linkChanges.Load() != before
}

// notePHY keeps the error of the last look at the PHY, nil if there was none.
func (m *MAC) notePHY(err error) {
	if err != nil && !errors.Is(err, ErrGone) {
		m.phyErrors.Add(1)
		if m.phyErr == nil {
			m.log().Warn().Err(err).Msg("PHY")
		}
	}
	m.phyErr = err
}

// stallTx is how long a frame may take to leave: in half duplex others may keep
// the line busy.
func (m *MAC) stallTx() time.Duration {
	if m.link.Up && !m.link.FullDuplex && !m.looped {
		return max(m.cfg.Recovery.Stall, 5*time.Second)
	}
	return m.cfg.Recovery.Stall
}

// rebuild rebuilds the MAC because of a fault, or takes it down when there were
// too many of them. The caller holds m.mu.
func (o *monitor) rebuild(now time.Duration, op string, why error) {
	m := o.m
	for len(o.faults) > 0 && now-o.faults[0] >= m.cfg.Recovery.Window {
		o.faults = o.faults[1:]
	}
	o.faults = append(o.faults, now)
	m.faults.Add(1)
	if n := len(o.faults); n > m.cfg.Recovery.Limit {
		if n > 1 {
			why = fmt.Errorf("%w, fault %d within %v: the MAC stays down", why, n, m.cfg.Recovery.Window)
		}
		m.down(op, why)
		return
	}
	m.log().Warn().Str("op", op).Err(why).Msg("rebuild")
	if err := m.rebuild(m.life, op, false, nil); err != nil {
		return
	}
	clear(o.rx)
	clear(o.tx)
	m.recoveries.Add(1)
}

// down stops the MAC for good: everything comes off the rings, and whoever waits
// hears why. The caller holds m.mu.
func (m *MAC) down(op string, why error) {
	m.halt()
	defer m.unhalt()
	m.fail(m.wrap(op, why))
	if err := m.takeDown(context.WithoutCancel(m.life)); err != nil {
		m.log().Error().Err(err).Msg("take down")
	}
}
