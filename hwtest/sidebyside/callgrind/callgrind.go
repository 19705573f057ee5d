// Package callgrind counts the instructions that a Go program executes, function
// by function, with valgrind's callgrind. The count does not depend on the load of the machine.
package callgrind

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// Error says which step of a count failed. A missing valgrind is Op "find" and wraps exec.ErrNotFound.
type Error struct {
	Op  string // "find", "run" or "parse"
	Bin string // the program that was to be counted
	Err error
}

func (e *Error) Error() string { return "callgrind: " + e.Op + " (" + e.Bin + "): " + e.Err.Error() }

func (e *Error) Unwrap() error { return e.Err }

// stderrTail is how much of a failed program's stderr an error quotes, in bytes.
const stderrTail = 2048

// Count runs bin with args to its end under callgrind and returns the instructions executed in the functions whose
// symbol name match accepts: the sum and the self cost of each. Valgrind shows Go symbols with
// their import path (example.org/m/pkg.(*T).Method); a dot in the last element of the path is written %2e.
//
// bin has to be linked without cgo, and must not use instructions that valgrind lacks. It runs without asynchronous
// preemption, without garbage collection and with one P, so that two runs differ only in the work they do. It inherits
// the environment otherwise. Cancelling ctx kills it. Every error is an *Error.
func Count(ctx context.Context, bin string, args []string, match func(fn string) bool) (uint64, map[string]uint64, error) {
	valgrind, err := exec.LookPath("valgrind")
	if err != nil {
		return 0, nil, &Error{"find", bin, err}
	}
	dir, err := os.MkdirTemp("", "callgrind")
	if err != nil {
		return 0, nil, &Error{"run", bin, err}
	}
	defer os.RemoveAll(dir)
	out := filepath.Join(dir, "callgrind.out")

	args = append([]string{"--tool=callgrind", "--quiet", "--callgrind-out-file=" + out, "--", bin}, args...)
	if err := run(ctx, valgrind, args); err != nil {
		return 0, nil, &Error{"run", bin, err}
	}

	f, err := os.Open(out)
	if err != nil {
		return 0, nil, &Error{"parse", bin, err}
	}
	defer f.Close()
	self, err := Parse(f)
	if err != nil {
		return 0, nil, &Error{"parse", bin, err}
	}
	var sum uint64
	matched := make(map[string]uint64)
	for fn, n := range self {
		if match(fn) {
			matched[fn] = n
			sum += n
		}
	}
	return sum, matched, nil
}

// The Go runtime reads the time stamp counter with RDTSCP when a lock of its own is contended, and valgrind may not
// know that instruction: a run that met it says so, and is made again.
const (
	rdtscp   = "instruction bytes: 0xf 0x1 0xf9" // as the runtime prints the signal
	attempts = 10
)

// run runs valgrind with args.
func run(ctx context.Context, valgrind string, args []string) error {
	for try := 1; ; try++ {
		cmd := exec.CommandContext(ctx, valgrind, args...)
		cmd.Env = append(os.Environ(), "GODEBUG=asyncpreemptoff=1", "GOGC=off", "GOMAXPROCS=1")
		var stderr bytes.Buffer
		cmd.Stderr = &stderr
		err := cmd.Run()
		switch {
		case err == nil:
			return nil
		case ctx.Err() != nil:
			return ctx.Err()
		case try < attempts && bytes.Contains(stderr.Bytes(), []byte(rdtscp)):
			continue
		}
		tail := stderr.Bytes()
		tail = tail[max(0, len(tail)-stderrTail):]
		return fmt.Errorf("%w: %s", err, strings.TrimSpace(string(tail)))
	}
}
