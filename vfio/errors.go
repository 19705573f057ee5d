package vfio

import (
	"errors"
	"fmt"
	"net"
	"strings"
)

// Reasons that errors wrap, for errors.Is; beside them the system's own
// (os.ErrPermission, os.ErrNotExist, syscall.EBUSY, …), os.ErrInvalid for what the
// caller got wrong and errors.ErrUnsupported for what the device, the kernel or
// this package does not have.
var (
	// ErrClosed: the device, its domain or the interrupt was closed. It is
	// net.ErrClosed.
	ErrClosed = net.ErrClosed
	// ErrGone: the device does not answer any more: it was unplugged, or the
	// kernel took its registers away.
	ErrGone = errors.New("device is gone")
	// ErrNoDevice: no device of that name, or none in the domain yet.
	ErrNoDevice = errors.New("no such device")
	// ErrNotViable: another device of the IOMMU group is with a kernel driver.
	ErrNotViable = errors.New("IOMMU group is not viable")
	// ErrMemlock: the process may not lock as much memory as would be mapped.
	ErrMemlock = errors.New("limit of locked memory")
	// ErrNoIOVA: no free range of bus addresses is large enough.
	ErrNoIOVA = errors.New("no bus addresses are free")
	// ErrNotContiguous: memory has gaps on the bus, which only an IOMMU closes.
	ErrNotContiguous = errors.New("memory is not contiguous")
)

// Error is a failure of a call of this package.
type Error struct {
	Op     string // what was asked for: "open", "map DMA", "reset", …
	Dev    string // the device, or ""
	Call   string // the request to the kernel that failed, or ""
	Err    error  // why; wraps an error for errors.Is
	Remedy string // what to do about it, or ""
}

// Error implements error.
func (e *Error) Error() string {
	var parts []string
	switch {
	case e.Dev != "":
		parts = []string{"vfio " + e.Dev, e.Op}
	case e.Op != "":
		parts = []string{"vfio", e.Op}
	}
	for _, p := range []string{e.Call, e.Err.Error(), e.Remedy} {
		if p != "" {
			parts = append(parts, p)
		}
	}
	return strings.Join(parts, ": ")
}

// Unwrap returns the reason.
func (e *Error) Unwrap() error { return e.Err }

// wrap makes err an *Error of op on dev, unless it is one that names its device.
func wrap(op, dev string, err error) error {
	if err == nil {
		return nil
	}
	if e, ok := err.(*Error); ok {
		if e.Dev != "" || e.Op != "" {
			return err
		}
		named := *e
		named.Op, named.Dev = op, dev
		return &named
	}
	return &Error{Op: op, Dev: dev, Err: err}
}

// failed is a request to the kernel that failed, before it is known for what.
func failed(call string, err error, format string, args ...any) *Error {
	return &Error{Call: call, Err: err, Remedy: fmt.Sprintf(format, args...)}
}
