package stmmac

import (
	"fmt"
	"os"
	"time"
)

// maxSpin bounds Coalesce.Spin.
const maxSpin = 1 << 20

// checkCoalesce checks what needs no device.
func checkCoalesce(c *Coalesce) error {
	switch {
	case c.RxTime < 0 || c.TxTime < 0 || c.RxFrames < 0 || c.TxFrames < 0:
		return fmt.Errorf("%+v has a negative value: %w", *c, os.ErrInvalid)
	case c.RxFrames > 0 && c.RxTime == 0:
		return fmt.Errorf("interrupts for each %d receive buffers without RxTime: the frames before would wait for ever: %w", c.RxFrames, os.ErrInvalid)
	case (c.TxFrames > 1) != (c.TxTime > 0):
		return fmt.Errorf("frames share an interrupt with both TxFrames and TxTime or with neither, not with %d and %v: %w",
			c.TxFrames, c.TxTime, os.ErrInvalid)
	case c.Spin < 0 || c.Spin > maxSpin:
		return fmt.Errorf("%d looks before a sleep (Spin) are not in 0..%d: %w", c.Spin, maxSpin, os.ErrInvalid)
	}
	return nil
}

// SetCoalesce changes how events share interrupts. It returns it as the device
// does it: RxTime is rounded. No frame is lost.
func (m *MAC) SetCoalesce(c Coalesce) (Coalesce, error) {
	const op = "set coalesce"
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.alive(op); err != nil {
		return Coalesce{}, err
	}
	if err := checkCoalesce(&c); err != nil {
		return Coalesce{}, m.wrap(op, err)
	}
	m.halt()
	defer m.unhalt()
	defer m.resume()
	c, err := m.coalesce(c)
	if err != nil {
		return Coalesce{}, m.within(op, err)
	}
	return c, nil
}

// shortest asks for the shortest time of the receive watchdog.
const shortest = time.Nanosecond

// coalesce programs how events share interrupts. The caller has halted the MAC.
func (m *MAC) coalesce(c Coalesce) (Coalesce, error) {
	watchdog := c.RxTime
	if watchdog == 0 && m.rxShared {
		// Buffers that do not interrupt may be with the device still.
		watchdog = shortest
	}
	m.rxShared = m.rxShared || watchdog > 0
	for i := range m.rx {
		actual, err := m.hw.SetRxWatchdog(i, watchdog)
		if err != nil {
			return c, err
		}
		if c.RxTime > 0 {
			c.RxTime = actual
		}
	}
	m.cfg.Coalesce = c
	m.coalesceRings(c)
	return c, nil
}

// coalesceRings says which descriptors interrupt. The rings are held.
func (m *MAC) coalesceRings(c Coalesce) {
	for _, q := range m.rx {
		every := 1
		if c.RxTime > 0 {
			every = c.RxFrames
		}
		q.ring.SetInterrupts(every)
		q.maxSpin.Store(int32(c.Spin))
	}
	for _, q := range m.tx {
		q.ring.SetInterrupts(max(c.TxFrames, 1))
		q.maxSpin.Store(int32(c.Spin))
		q.longest.Store(int64(c.TxTime))
	}
}
