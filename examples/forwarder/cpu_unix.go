//go:build unix && !linux

package main

import (
	"errors"
	"fmt"
	"sync/atomic"
	"syscall"
	"time"
)

// cpuScope is what a cpuClock measures.
const cpuScope = "process"

// cpuClock is the CPU time of the process.
type cpuClock struct {
	running      atomic.Bool
	base, passed atomic.Int64 // nanoseconds; passed is what was read last
}

func (c *cpuClock) start() {
	c.base.Store(processTime())
	c.running.Store(true)
}

// stop ends; used stays what it was.
func (c *cpuClock) stop() {
	c.used()
	c.running.Store(false)
}

// used is the time between start and stop, or now. Any goroutine may call it.
func (c *cpuClock) used() time.Duration {
	if c.running.Load() {
		c.passed.Store(processTime() - c.base.Load())
	}
	return time.Duration(c.passed.Load())
}

func processTime() int64 {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return u.Utime.Nano() + u.Stime.Nano()
}

// pin is not there.
func pin(cpu int) error { return fmt.Errorf("bind to CPU %d: %w", cpu, errors.ErrUnsupported) }
