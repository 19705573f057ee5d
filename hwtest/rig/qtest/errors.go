package qtest

import (
	"errors"
	"strings"

	"github.com/gostmmac/gostmmac/hwtest/rig/qemu"
)

// Reasons that errors wrap, for errors.Is.
var (
	// ErrClosed: the machine was closed. It is net.ErrClosed.
	ErrClosed = qemu.ErrClosed
	// ErrGone: QEMU ended, or answers no more.
	ErrGone = qemu.ErrGone
	// ErrNoMemory: the RAM of the board has no free range that is large enough.
	ErrNoMemory = errors.New("the RAM of the board is full")
	// ErrConfig: a field of Config is out of range.
	ErrConfig = errors.New("wrong configuration")
)

// Error is a failure of a call on a machine.
type Error struct {
	Op     string // what was asked for: "start", "load", "allocate", …
	Dev    string // the MAC, for example npcm845-evb/gmac0
	Err    error  // why; wraps an error for errors.Is
	Remedy string // what to do about it, or ""
}

// Error implements error.
func (e *Error) Error() string {
	parts := []string{"qtest " + e.Dev, e.Op, e.Err.Error()}
	if e.Remedy != "" {
		parts = append(parts, e.Remedy)
	}
	return strings.Join(parts, ": ")
}

// Unwrap returns the reason.
func (e *Error) Unwrap() error { return e.Err }
