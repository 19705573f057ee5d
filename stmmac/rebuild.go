package stmmac

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"sync/atomic"
)

// registers keeps the accesses that queues and interrupts make to the registers
// away from a MAC that is being rebuilt.
type registers struct {
	mu    sync.RWMutex
	again atomic.Pointer[chan struct{}] // closed when the rebuild under way is over
}

// enter waits until no rebuild is under way and keeps the next from starting
// until leave. Its error is that of ctx, or ErrClosed.
func (m *MAC) enter(ctx context.Context) error {
	r := &m.registers
	for !r.mu.TryRLock() {
		again := r.again.Load()
		if again == nil {
			runtime.Gosched() // a rebuild begins or ends
			continue
		}
		select {
		case <-*again:
		case <-ctx.Done():
			return ctx.Err()
		case <-m.closing:
			return ErrClosed
		}
	}
	return nil
}

func (m *MAC) leave() { m.registers.mu.RUnlock() }

// halt keeps all others away from the rings and the registers.
func (m *MAC) halt() {
	again := make(chan struct{})
	m.registers.again.Store(&again)
	m.registers.mu.Lock()
	for _, q := range m.rx {
		q.ring.Hold()
	}
	for _, q := range m.tx {
		q.ring.Hold()
	}
}

// unhalt lets them in again and wakes those who sleep: what they waited for may
// have come before the rings were rebuilt.
func (m *MAC) unhalt() {
	r := &m.registers
	again := r.again.Swap(nil)
	r.mu.Unlock()
	close(*again)
	m.wakeAll()
}

// wakeAll makes every sleeping queue look again.
func (m *MAC) wakeAll() {
	for _, q := range m.rx {
		q.kick()
	}
	for _, q := range m.tx {
		q.kick()
	}
}

// rebuild stops the MAC, changes the configuration and starts it again with new
// rings: frames that were received wait for Recv, those that were not sent are
// flushed and counted. With orderly the MAC first gets the time to send and to
// store what it has accepted. When the MAC does not start with the new
// configuration it gets the old one back; when it does not start with that
// either it is down, with the reason, until it is closed. The caller holds m.mu.
func (m *MAC) rebuild(ctx context.Context, op string, orderly bool, change func(*Config) (undo func())) error {
	m.halt()
	defer m.unhalt()
	if orderly {
		m.quiesce(ctx)
	}
	if err := m.takeDown(ctx); err != nil {
		return m.fail(m.within(op, err))
	}
	undo := func() {}
	if change != nil {
		undo = change(&m.cfg)
	}
	err := m.restart(ctx)
	if err == nil {
		return nil
	}
	if change != nil {
		undo()
		if again := m.restart(m.life); again == nil {
			return m.within(op, err)
		}
	}
	return m.fail(m.within(op, err))
}

// takeDown stops the DMA and takes everything off the rings. The caller has
// halted the MAC. On an error the device may still use their memory.
func (m *MAC) takeDown(ctx context.Context) error {
	if m.running {
		for _, q := range m.rx {
			q.collectLost()
		}
		if err := m.stop(ctx); err != nil {
			return err
		}
		m.running = false
	}
	for _, q := range m.rx {
		q.ring.Harvest()
	}
	for _, q := range m.tx {
		q.ring.Harvest()
	}
	return nil
}

// restart resets and starts a MAC that was taken down. After an error it is down
// as before.
func (m *MAC) restart(ctx context.Context) error {
	if err := m.reset(ctx, true); err != nil {
		return err
	}
	if m.phy != nil {
		// The PHY may have lost its link in the meantime: a MAC that sent to the
		// old one would send into nothing.
		m.followPHY()
	}
	if err := m.bringUp(); err != nil {
		return errors.Join(err, m.takeDown(context.WithoutCancel(ctx)))
	}
	return nil
}

// resetTries is how often a reset is tried that finds no clock of the PHY.
const resetTries = 3

// reset resets the MAC. That does not end without the clocks of the PHY, so a PHY
// that is looked after is brought up before. Some stop their receive clock while
// they have no link: in loopback, in which the PHY may be left until followPHY,
// they have one. When the MAC has run before, again, a PHY that cannot be brought up
// is no error as long as it has its clocks.
func (m *MAC) reset(ctx context.Context, again bool) error {
	if m.phy == nil || m.hung {
		if err := m.hw.Reset(ctx); err != nil || m.phy == nil {
			return err
		}
		m.hung = false
	}
	for try := 1; ; try++ {
		lame := m.phy.Start(ctx)
		if lame != nil && (!again || ctx.Err() != nil || errors.Is(lame, ErrGone)) {
			return lame
		}
		err := m.hw.Reset(ctx)
		m.notePHY(lame)
		if err == nil || errors.Is(err, ErrGone) {
			return err
		}
		// Until a reset from outside ends this one the PHY cannot be reached.
		if m.dev.Reset(context.WithoutCancel(ctx)) != nil {
			m.hung = true
			return err
		}
		if !errors.Is(err, ErrNoClock) || try == resetTries || m.phy.Loopback(true) != nil {
			m.unloopPHY()
			return err
		}
	}
}

// quiesce lets the MAC send what it has and store what it has received, for as
// long as it may take to stop.
func (m *MAC) quiesce(ctx context.Context) {
	m.hw.StopReceiver()
	deadline := m.cfg.Clock.Now() + m.cfg.StopTimeout
	for m.cfg.Clock.Now() < deadline && !m.idle() {
		if m.cfg.Clock.Sleep(ctx, quiescePoll) != nil {
			return
		}
	}
}

// idle says that the MAC has nothing to send and nothing to store.
func (m *MAC) idle() bool {
	if m.sends() {
		for i, q := range m.tx {
			if m.hw.TxPending(i) || !q.ring.Idle() {
				return false
			}
		}
	}
	for i := range m.rx {
		if m.hw.RxPending(i) {
			return false
		}
	}
	return true
}
