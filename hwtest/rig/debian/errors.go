package debian

import "errors"

// Reasons that errors wrap, for errors.Is; beside them those of the system
// (os.ErrNotExist, os.ErrPermission, …), exec.ErrNotFound for a program that is missing,
// and errors.ErrUnsupported for a machine that this does not work on.
var (
	// ErrNoMirror: the machine's apt sources name no mirror of Debian.
	ErrNoMirror = errors.New("no mirror of Debian")
	// ErrDisk: the cache folder's file system is too full.
	ErrDisk = errors.New("not enough disk space")
	// ErrIncomplete: the cache folder does not hold everything.
	ErrIncomplete = errors.New("the cache folder is not complete")
	// ErrTooOld: the suites have an older version than what is needed.
	ErrTooOld = errors.New("the version in the suites is too old")
)

// Error is a failure of a call of this package.
type Error struct {
	Op     string // the step: "read the package lists", "download", "unpack", …
	Err    error  // why; wraps an error for errors.Is
	Remedy string // what to do about it, or ""
}

// Error implements error.
func (e *Error) Error() string {
	s := "setup: " + e.Op + ": " + e.Err.Error()
	if e.Remedy != "" {
		s += ": " + e.Remedy
	}
	return s
}

// Unwrap returns the reason.
func (e *Error) Unwrap() error { return e.Err }
