package pagepool

import (
	"errors"
	"fmt"
	"net"
	"sort"
	"strings"
)

// ErrClosed is returned by calls on a pool that was closed. It is
// [net.ErrClosed].
var ErrClosed = net.ErrClosed

// ErrEmpty is returned when the pool has no free buffer.
var ErrEmpty = errors.New("no free buffer")

// Error is a failure of a call on a pool or its memory.
type Error struct {
	Op  string // the call or the step of it: "new", "map", "attach", …
	Err error  // why
}

// Error implements error.
func (e *Error) Error() string { return "pagepool: " + e.Op + ": " + e.Err.Error() }

// Unwrap returns the reason.
func (e *Error) Unwrap() error { return e.Err }

// LeakError is returned by [Pool.Close] while buffers are held. Their memory
// stays in the process, mapped for no device, until the last one is freed.
type LeakError struct {
	Holders map[string]int // buffers held, by holder
}

// Error implements error.
func (e *LeakError) Error() string {
	names := make([]string, 0, len(e.Holders))
	total := 0
	for n, c := range e.Holders {
		names = append(names, fmt.Sprintf("%s %d", n, c))
		total += c
	}
	sort.Strings(names)
	return fmt.Sprintf("pagepool: close: %d buffers are still held (%s); their memory is kept until they are freed",
		total, strings.Join(names, ", "))
}
