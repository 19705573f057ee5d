package main

import (
	"runtime"
	"testing"
)

// TestCPUClock reads the clock of a thread from another.
func TestCPUClock(t *testing.T) {
	var c cpuClock
	if c.used() != 0 {
		t.Error("used before it started")
	}
	started, stop, stopped := make(chan bool), make(chan bool), make(chan bool)
	go func() {
		runtime.LockOSThread() // the thread ends with this function
		c.start()
		close(started)
		for x := 1; ; x++ {
			select {
			case <-stop:
				c.stop()
				close(stopped)
				return
			default:
			}
		}
	}()
	<-started
	first := c.used()
	for c.used() == first {
		runtime.Gosched()
	}
	close(stop)
	<-stopped
	last := c.used()
	if last <= first {
		t.Errorf("%v after %v", last, first)
	}
	if again := c.used(); again != last {
		t.Errorf("went on to %v from %v when it had stopped", again, last)
	}
}

func TestPin(t *testing.T) {
	if err := canPin(1 << 20); err == nil {
		t.Error("bound to CPU 1048576")
	}
}
