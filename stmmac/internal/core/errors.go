package core

import (
	"errors"
	"fmt"
	"net"
)

// Reasons that errors of the driver wrap, for errors.Is.
var (
	// ErrClosed: the MAC was closed. It is net.ErrClosed.
	ErrClosed = net.ErrClosed
	// ErrGone: the device does not answer any more.
	ErrGone = errors.New("device is gone")
	// ErrNoClock: the reset of the DMA does not end, which it does only while
	// the clocks of the PHY run.
	ErrNoClock = errors.New("no clock from the PHY")
	// ErrNoPHY: no PHY answers on the MDIO bus, or the one that did stopped.
	ErrNoPHY = errors.New("no PHY answers")
	// ErrFatalBus: the device met a bus error and stopped the channel.
	ErrFatalBus = errors.New("fatal bus error")
	// ErrStalled: a queue stood still with something to do.
	ErrStalled = errors.New("stands still")
	// ErrFrameTooLong: a frame is longer than the MTU, the FIFO or the ring allows.
	ErrFrameTooLong = errors.New("frame too long")
	// ErrFrameTooShort: a frame is shorter than its Ethernet header, or one of
	// its buffers is empty.
	ErrFrameTooShort = errors.New("frame too short")
	// ErrNoHeadroom: the driver has to put VLAN tags in front of a frame whose
	// buffer has no room for them there.
	ErrNoHeadroom = errors.New("no headroom for the VLAN tags")
	// ErrNotHeld: a buffer is free or already with a queue.
	ErrNotHeld = errors.New("buffer is not the caller's")
	// ErrForeignBuffer: a buffer is of no arena that is mapped for the device.
	ErrForeignBuffer = errors.New("buffer is not mapped for this device")
)

// Error is a failure of a call on a MAC or one of its queues.
type Error struct {
	Op  string // the call, or the step of it: "open", "reset", "send", …
	Dev string // the device as the user named it
	Reg string // the register that showed the failure, or ""
	Val uint32 // what it held
	Err error  // why; wraps an error for errors.Is
}

// Error implements error.
func (e *Error) Error() string {
	s := "stmmac: " + e.Op
	if e.Dev != "" {
		s = "stmmac " + e.Dev + ": " + e.Op
	}
	if e.Reg != "" {
		s += fmt.Sprintf(": %s=%#08x", e.Reg, e.Val)
	}
	return s + ": " + e.Err.Error()
}

// Unwrap returns the reason.
func (e *Error) Unwrap() error { return e.Err }
