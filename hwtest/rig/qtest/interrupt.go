package qtest

import (
	"context"
	"sync"
)

// level is the interrupt line of the MAC and the vector that it drives: level
// triggered, and masked when it fires, as vfio gives out the line of a platform
// device.
type level struct {
	mu    sync.Mutex
	high  bool
	v     *vector // the one that is given out, or nil
	ended error   // the machine is gone for this reason
}

// set follows the line.
func (l *level) set(high bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.high = high
	l.look()
}

// look fires the vector when the line is high and nothing masks it.
func (l *level) look() {
	if v := l.v; l.high && v != nil && !v.masked {
		v.masked = true
		v.fired++
		select {
		case v.ready <- struct{}{}:
		default:
		}
	}
}

// open returns the vector, enabled: a line that is high fires at once.
func (l *level) open() (*vector, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ended != nil {
		return nil, l.ended
	}
	if l.v == nil {
		l.v = &vector{line: l, ready: make(chan struct{}, 1), closed: make(chan struct{})}
		l.look()
	}
	return l.v, nil
}

// end ends every wait with err.
func (l *level) end(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ended == nil {
		l.ended = err
	}
	l.drop(l.v, err)
}

// drop closes v for the reason err.
func (l *level) drop(v *vector, err error) {
	if v == nil || v.err != nil {
		return
	}
	v.err = err
	close(v.closed)
	if l.v == v {
		l.v = nil
	}
}

// vector implements mmio.Interrupt.
type vector struct {
	line          *level
	ready, closed chan struct{}

	// under line.mu
	masked bool
	fired  uint64
	err    error // why it is closed
}

// take returns what has fired since the last take.
func (v *vector) take() (uint64, error) {
	v.line.mu.Lock()
	defer v.line.mu.Unlock()
	if v.err != nil {
		return 0, v.err
	}
	n := v.fired
	v.fired = 0
	return n, nil
}

// Wait implements mmio.Interrupt.
func (v *vector) Wait(ctx context.Context) (uint64, error) {
	for {
		if n, err := v.take(); n > 0 || err != nil {
			return n, err
		}
		select {
		case <-v.ready:
		case <-v.closed:
		case <-ctx.Done():
			return 0, ctx.Err()
		}
	}
}

// Unmask implements mmio.Interrupt: a line that is still high fires again.
func (v *vector) Unmask() error {
	v.line.mu.Lock()
	defer v.line.mu.Unlock()
	if v.err != nil {
		return v.err
	}
	v.masked = false
	v.line.look()
	return nil
}

// Close implements mmio.Interrupt.
func (v *vector) Close() error {
	v.line.mu.Lock()
	defer v.line.mu.Unlock()
	v.line.drop(v, ErrClosed)
	return nil
}
