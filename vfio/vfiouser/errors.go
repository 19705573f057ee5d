package vfiouser

import (
	"errors"
	"fmt"
	"syscall"
)

// Reasons that errors wrap, for errors.Is; beside them those of the system
// (os.ErrDeadlineExceeded for a client that does not answer, os.ErrPermission for memory
// that may not be accessed so, net.ErrClosed, …), errors.ErrUnsupported, and the
// syscall.Errno that a command was refused with or that a client answered.
var (
	// ErrConfig: a field of Config describes no PCI function.
	ErrConfig = errors.New("wrong configuration")
	// ErrBusy: a client is served already.
	ErrBusy = errors.New("another client is served")
	// ErrNoClient: no client is connected, so there is no memory.
	ErrNoClient = errors.New("no client")
	// ErrMaster: bus mastering is off (PCI command register, bit 2).
	ErrMaster = errors.New("bus mastering is off")
	// ErrMessage: a message of the client is no command, or no answer to what it was
	// asked. The connection ends.
	ErrMessage = errors.New("not a message of the protocol")
)

// Error is a failure of a call of this package or the refusal of a client's command.
type Error struct {
	Op     string // the call or the command: "serve", "DMA_MAP", …
	Dev    string // the function: Config.Name
	Err    error  // why; wraps an error for errors.Is
	Remedy string // what to do about it, or ""
}

// Error implements error.
func (e *Error) Error() string {
	s := "vfio-user " + e.Dev + ": " + e.Op + ": " + e.Err.Error()
	if e.Remedy != "" {
		s += ": " + e.Remedy
	}
	return s
}

// Unwrap returns the reason.
func (e *Error) Unwrap() error { return e.Err }

// DMAError is a DMA access that failed.
type DMAError struct {
	Write bool
	Addr  uint64 // bus address
	Len   int    // bytes
	Err   error  // why; wraps an error for errors.Is
}

// Error implements error.
func (e *DMAError) Error() string {
	op := "read"
	if e.Write {
		op = "write"
	}
	return fmt.Sprintf("DMA %s of %d bytes at %#x: %v", op, e.Len, e.Addr, e.Err)
}

// Unwrap returns the reason.
func (e *DMAError) Unwrap() error { return e.Err }

// refusal is why a command is not done, with the errno of the reply.
type refusal struct {
	errno syscall.Errno
	why   string
}

func (r *refusal) Error() string { return r.why + ": " + r.errno.Error() }

func (r *refusal) Unwrap() error { return r.errno }

// refuse makes a refusal. EINVAL is the kernel's answer to nearly all that is wrong with a
// request, and so it is here.
func refuse(errno syscall.Errno, format string, args ...any) error {
	return &refusal{errno, fmt.Sprintf(format, args...)}
}

// errnoOf is the errno of a reply.
func errnoOf(err error) syscall.Errno {
	var e syscall.Errno
	if errors.As(err, &e) && e != 0 {
		return e
	}
	return syscall.EINVAL
}
