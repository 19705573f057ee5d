package stmmac

import (
	"context"
	"fmt"
	"runtime/pprof"
	"sync/atomic"
	"time"
)

const (
	// quiescePoll is how often an orderly stop looks whether the MAC is idle.
	quiescePoll = 50 * time.Microsecond
	// monitorTick is how often the monitor looks for queues that stand still.
	monitorTick = 100 * time.Millisecond
	// slowTick is how often it reads the counters of the device.
	slowTick = time.Second
)

// monitor watches a MAC, on a goroutine of its own: it rebuilds it after a fault
// and looks for queues that stand still.
type monitor struct {
	m     *MAC
	nudge chan struct{}
	due   atomic.Bool             // a tick has passed
	fault atomic.Pointer[trouble] // a fault that nobody has dealt with yet

	faults []time.Duration // when the MAC was rebuilt because of a fault
	rx, tx []standstill    // by queue
	slow   time.Duration   // when the next slow tick is due
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
	o.rx, o.tx = make([]standstill, len(m.rx)), make([]standstill, len(m.tx))
	o.slow = m.cfg.Clock.Now() + slowTick
	m.dispatched.Go(func() {
		pprof.Do(m.life, pprof.Labels("dev", m.name(), "task", "monitor"), o.run)
	})
}

func (o *monitor) run(ctx context.Context) {
	clock := o.m.cfg.Clock
	tick := func() {
		o.due.Store(true)
		o.wake()
	}
	stop := clock.AfterFunc(monitorTick, tick)
	defer func() { stop() }()
	for {
		select {
		case <-o.nudge:
		case <-ctx.Done():
			return
		}
		if f := o.fault.Swap(nil); f != nil {
			o.recover(f.op, f.err)
		}
		if o.due.Swap(false) {
			o.look(clock.Now())
			stop = clock.AfterFunc(monitorTick, tick)
		}
	}
}

// look looks at a MAC that should be running.
func (o *monitor) look(now time.Duration) {
	m := o.m
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed() || m.Err() != nil {
		return
	}
	if now >= o.slow {
		o.slow = now + slowTick
	}
	for i, q := range m.rx {
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
		if s.seen(now, stuck && m.link.Up && !m.hw.TxPaused(i)) >= m.stallTx() {
			o.rebuild(now, fmt.Sprintf("transmit queue %d", i), ErrStalled)
			return
		}
	}
}

// stallTx is how long a frame may take to leave: in half duplex others may keep
// the line busy.
func (m *MAC) stallTx() time.Duration {
	if !m.link.FullDuplex {
		return max(m.cfg.Recovery.Stall, 5*time.Second)
	}
	return m.cfg.Recovery.Stall
}

// recover deals with a fault that was reported.
func (o *monitor) recover(op string, err error) {
	m := o.m
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.closed() && m.Err() == nil {
		o.rebuild(m.cfg.Clock.Now(), op, err)
	}
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
	m.fail(op, why)
	if err := m.takeDown(context.WithoutCancel(m.life)); err != nil {
		m.log().Error().Err(err).Msg("take down")
	}
}
