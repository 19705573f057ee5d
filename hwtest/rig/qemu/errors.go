package qemu

import (
	"errors"
	"net"
)

// Reasons that errors wrap, for errors.Is.
var (
	// ErrClosed: this side ended it. It is net.ErrClosed.
	ErrClosed = net.ErrClosed
	// ErrGone: QEMU ended, or answers no more.
	ErrGone = errors.New("QEMU is gone")
	// ErrProtocol: what QEMU said is no answer.
	ErrProtocol = errors.New("not an answer of the protocol")
)
