package core

import (
	"runtime"
	"sync/atomic"
	"testing"
)

// TestGateLook has a monitor that looks all the time: no call fails for it, the gate is
// left as it was found, and it ends.
func TestGateLook(t *testing.T) {
	for _, was := range []uint32{gateOpen, gateBacklog} {
		var g gate
		var looks atomic.Uint64
		g.state.Store(was)
		done := make(chan struct{})
		go func() {
			defer close(done)
			for g.state.Load() != gateEnded {
				if s, ok := g.look(); ok {
					runtime.Gosched()
					g.unlook(s)
					looks.Add(1)
				}
			}
		}()
		for n := 0; n < 10_000 || looks.Load() < 1000; n++ {
			if !g.enter() {
				t.Fatal("a call was not let in")
			}
			if g.state.Load() != gateBusy {
				t.Fatal("the monitor is inside a call")
			}
			if _, ok := g.look(); ok {
				t.Fatal("the monitor is let into a call")
			}
			g.state.Store(was)
			runtime.Gosched()
		}
		if !g.Hold() {
			t.Error("the gate has ended")
		}
		if g.enter() || g.again() || !g.Held() {
			t.Error("a call is let into a held gate")
		}
		if _, ok := g.look(); ok {
			t.Error("the monitor is let into a held gate")
		}
		g.state.Store(was)
		g.End()
		<-done
		if g.enter() || g.again() || g.Hold() {
			t.Error("a call is let into a gate that has ended")
		}
	}
}
