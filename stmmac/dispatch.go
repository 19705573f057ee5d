package stmmac

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime/pprof"
	"strconv"

	"github.com/gostmmac/gostmmac/stmmac/internal/core"
)

// vector is an interrupt vector that serves more than one queue: a goroutine
// waits for it and wakes the queues.
type vector struct {
	number   int
	channels []served
}

type served struct {
	ch    int
	event core.Events
}

// plan enables the interrupt vectors and decides who waits for which.
func (m *MAC) plan() error {
	have := m.dev.NumInterrupts()
	if have == 0 {
		return nil
	}
	common := vector{}
	var direct []*waiter
	var numbers []int
	if c := m.cfg.MSI; c == nil {
		for ch := range max(len(m.rx), len(m.tx)) {
			common.channels = append(common.channels, served{ch, core.EventRx | core.EventTx | core.EventFatal})
		}
	} else {
		if len(c.Rx) < len(m.rx) || len(c.Tx) < len(m.tx) {
			return fmt.Errorf("vectors for %d receive and %d transmit queues are given: %w", len(c.Rx), len(c.Tx), os.ErrInvalid)
		}
		common.number = c.Common
		for ch := range max(len(m.rx), len(m.tx)) {
			common.channels = append(common.channels, served{ch, core.EventFatal})
		}
		for i, q := range m.rx {
			direct, numbers = append(direct, &q.waiter), append(numbers, c.Rx[i])
		}
		for i, q := range m.tx {
			direct, numbers = append(direct, &q.waiter), append(numbers, c.Tx[i])
		}
	}
	seen := map[int]bool{common.number: true}
	for i, w := range direct {
		if seen[numbers[i]] {
			return fmt.Errorf("vector %d is given twice: %w", numbers[i], os.ErrInvalid)
		}
		seen[numbers[i]] = true
		v, err := m.dev.Interrupt(numbers[i])
		if err != nil {
			return fmt.Errorf("interrupt vector %d: %w", numbers[i], err)
		}
		m.vectors = append(m.vectors, v)
		w.direct = v
	}
	v, err := m.dev.Interrupt(common.number)
	if err != nil {
		return fmt.Errorf("interrupt vector %d: %w", common.number, err)
	}
	m.vectors = append(m.vectors, v)
	m.serves = []vector{common}
	return nil
}

// dispatch starts the goroutines that wait for shared vectors.
func (m *MAC) dispatch() {
	for i := range m.serves {
		s := &m.serves[i]
		v := m.vectors[len(m.vectors)-len(m.serves)+i]
		m.dispatched.Go(func() {
			labels := pprof.Labels("dev", m.name(), "vector", strconv.Itoa(s.number))
			pprof.Do(context.Background(), labels, func(ctx context.Context) {
				for {
					if _, err := v.Wait(ctx); err != nil {
						m.lost("wait for an interrupt", err)
						return
					}
					// An event that comes while another holds the line high makes
					// no edge: look until a whole pass finds nothing.
					for again := true; again; {
						again = false
						for _, c := range s.channels {
							again = m.handle(c.ch, c.event) || again
						}
					}
					if err := v.Unmask(); err != nil {
						m.lost("unmask an interrupt", err)
						return
					}
				}
			})
		})
	}
}

// lost says that an interrupt vector has ended: by Close of the MAC, or because
// the device was closed or unplugged under it.
func (m *MAC) lost(op string, err error) {
	switch {
	case m.closed():
	case errors.Is(err, ErrClosed):
		m.fail(m.wrap(op, ErrGone))
	default:
		m.fail(m.wrap(op, err))
	}
}

// handle serves a channel: it wakes the queues whose events it finds, and says
// whether there were any on a device that answers.
func (m *MAC) handle(ch int, mask core.Events) bool {
	m.registers.mu.RLock()
	found := m.hw.Events(ch, mask)
	m.leave()
	switch {
	case found&core.EventGone != 0:
		m.fail(m.wrap("serve an interrupt", ErrGone))
	case found&core.EventFatal != 0:
		m.monitor.report(fmt.Sprintf("channel %d", ch), ErrFatalBus)
	}
	if found&core.EventRx != 0 && ch < len(m.rx) {
		m.rx[ch].signal()
	}
	if found&core.EventTx != 0 && ch < len(m.tx) {
		m.tx[ch].signal()
	}
	return found&^core.EventGone != 0
}
