package guest

import (
	"errors"
	"os"
)

// Reasons that errors wrap, for errors.Is; beside them channel.JobError for a job that
// failed in the guest, the errors of ctx, and errors.ErrUnsupported elsewhere than on Linux.
var (
	// ErrConfig: a field of Config is missing or out of range.
	ErrConfig error = configError{}
	// ErrPanic: the kernel of the guest panicked or oopsed.
	ErrPanic = errors.New("the guest's kernel panicked")
	// ErrGone: QEMU is not there any more.
	ErrGone = errors.New("the guest is gone")
)

type configError struct{}

func (configError) Error() string        { return "guest: the configuration" }
func (configError) Is(target error) bool { return target == os.ErrInvalid }

// Error is a failure of a call of this package.
type Error struct {
	Op    string // what was done
	Guest string // the architecture and the kernel
	Err   error  // why
	// Console is the end of what the guest's console and QEMU said, or "".
	Console string
	Remedy  string // what to do about it, or ""
}

// Error implements error.
func (e *Error) Error() string {
	s := "guest " + e.Guest + ": " + e.Op + ": " + e.Err.Error()
	if e.Remedy != "" {
		s += ": " + e.Remedy
	}
	if e.Console != "" {
		s += "\nthe console ended with:\n" + e.Console
	}
	return s
}

// Unwrap returns the reason.
func (e *Error) Unwrap() error { return e.Err }
