package core

import (
	"runtime"
	"sync/atomic"
)

// A gate lets one goroutine at a time into the calls of a ring, and keeps all
// out while the ring is rebuilt and once it has ended: then its memory is taken
// apart.
type gate struct{ state atomic.Uint32 }

const (
	gateOpen    uint32 = iota
	gateBacklog        // as open, but the next call must not take the short way
	gateBusy           // a call is under way
	gateLooked         // the monitor looks at the ring; calls wait for it, a few memory accesses long
	gateHeld
	gateEnded
)

// enter begins a call. It fails when the ring is held or has ended, or when
// another goroutine is inside a call.
func (g *gate) enter() bool {
	for !g.state.CompareAndSwap(gateOpen, gateBusy) && !g.state.CompareAndSwap(gateBacklog, gateBusy) {
		if !g.again() {
			return false
		}
	}
	return true
}

// again waits while the monitor looks at the ring, and says whether a call that was not
// let in may try again: nothing that the application does not know of fails a call.
func (g *gate) again() bool {
	for {
		switch g.state.Load() {
		case gateLooked:
			runtime.Gosched()
		case gateOpen, gateBacklog:
			return true
		default:
			return false
		}
	}
}

// look lets the monitor in, to read only. It returns what unlook takes, and fails where
// enter does, and while another goroutine is inside a call.
func (g *gate) look() (was uint32, ok bool) {
	for _, was := range [...]uint32{gateOpen, gateBacklog} {
		if g.state.CompareAndSwap(was, gateLooked) {
			return was, true
		}
	}
	return 0, false
}

// unlook ends a look.
func (g *gate) unlook(was uint32) { g.state.Store(was) }

// leave ends a call.
func (g *gate) leave() { g.state.Store(gateOpen) }

// leaveBacklog ends a call of a ring of which the next call must not take the
// short way either.
func (g *gate) leaveBacklog() { g.state.Store(gateBacklog) }

// busy says that another goroutine is inside a call.
func (g *gate) busy() bool { return g.state.Load() == gateBusy }

// Hold waits for the call under way; later ones do nothing until Resume. It
// reports false if the ring has ended. Calls are short: none blocks.
func (g *gate) Hold() bool { return g.shut(gateHeld) }

// Held says that the ring is held.
func (g *gate) Held() bool { return g.state.Load() == gateHeld }

// End waits for the call under way; later ones do nothing.
func (g *gate) End() { g.shut(gateEnded) }

// shut closes the gate from whatever state it is in but ended.
func (g *gate) shut(to uint32) bool {
	for {
		switch s := g.state.Load(); s {
		case gateEnded:
			return false
		case gateBusy, gateLooked:
			runtime.Gosched()
		default:
			if g.state.CompareAndSwap(s, to) {
				return true
			}
		}
	}
}
