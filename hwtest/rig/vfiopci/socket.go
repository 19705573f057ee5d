package vfiopci

import (
	"sync"

	"github.com/gostmmac/gostmmac/stmmac/sim"
)

// socket is the end of a cable that stays with a card while other wires are plugged into it.
// With none it drops what the card sends.
type socket struct {
	mu     sync.Mutex
	wire   sim.Wire // nil for none
	notify func()
}

// plug puts a wire in the place of the one before, which is closed.
func (s *socket) plug(w sim.Wire) error {
	s.mu.Lock()
	old, f := s.wire, s.notify
	s.wire = w
	s.mu.Unlock()
	if f != nil {
		w.Notify(f)
		f()
	}
	if old != nil {
		return old.Close()
	}
	return nil
}

// now is the wire that is plugged in.
func (s *socket) now() sim.Wire {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.wire
}

// Transmit implements sim.Wire.
func (s *socket) Transmit(f sim.Frame) bool {
	w := s.now()
	return w == nil || w.Transmit(f)
}

// Receive implements sim.Wire.
func (s *socket) Receive() (sim.Frame, bool) {
	if w := s.now(); w != nil {
		return w.Receive()
	}
	return sim.Frame{}, false
}

// Elastic implements sim.Wire: what is plugged in are generators.
func (s *socket) Elastic() bool { return true }

// Notify implements sim.Wire.
func (s *socket) Notify(f func()) {
	s.mu.Lock()
	s.notify = f
	w := s.wire
	s.mu.Unlock()
	if w != nil {
		w.Notify(f)
	}
}

// Close implements sim.Wire.
func (s *socket) Close() error {
	if w := s.now(); w != nil {
		return w.Close()
	}
	return nil
}
