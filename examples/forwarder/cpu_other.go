//go:build !unix

package main

import (
	"errors"
	"fmt"
	"time"
)

// cpuScope is what a cpuClock measures: nothing here.
const cpuScope = "none"

// cpuClock measures nothing.
type cpuClock struct{}

func (c *cpuClock) start()              {}
func (c *cpuClock) stop()               {}
func (c *cpuClock) used() time.Duration { return 0 }

// pin is not there.
func pin(cpu int) error { return fmt.Errorf("bind to CPU %d: %w", cpu, errors.ErrUnsupported) }
