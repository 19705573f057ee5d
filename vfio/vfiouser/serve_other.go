//go:build !linux

package vfiouser

import (
	"context"
	"errors"
	"net"
)

// Serve is refused with errors.ErrUnsupported.
func (f *Function) Serve(context.Context, net.Listener, Device) error {
	return f.unsupported("serve")
}

// ServeConn is refused with errors.ErrUnsupported.
func (f *Function) ServeConn(context.Context, *net.UnixConn, Device) error {
	return f.unsupported("serve a connection")
}

func (f *Function) unsupported(op string) error {
	return &Error{op, f.cfg.Name, errors.ErrUnsupported, "memory and interrupts are shared by files, as Linux does it"}
}
