package jobs

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"
)

// Program runs a program of the guest to its end; a cancelled job ends it. Its lines go to
// the log, those of standard error too.
type Program struct {
	returns[ProgramEnd]
	// Tag is what the program is called while it runs, for Signal, and stands with a colon
	// before its lines in the log; "" for a program that needs no name.
	Tag  string `json:",omitempty"`
	Path string
	Args []string `json:",omitempty"`
	Env  []string `json:",omitempty"` // beside the guest's
	Dir  string   `json:",omitempty"`
	// Keep returns standard output instead of sending it to the log.
	Keep bool `json:",omitempty"`
	// As is the user that runs it; nil is root.
	As *User `json:",omitempty"`
}

// User is who runs a program, with no capability unless it is root.
type User struct {
	UID, GID uint32
	// Memlock is the limit of locked memory in bytes (RLIMIT_MEMLOCK); 0 is that of root.
	Memlock uint64 `json:",omitempty"`
}

// ProgramEnd is the result of Program.
type ProgramEnd struct {
	Code   int    // the exit status; -1 when a signal ended it
	Signal int    `json:",omitempty"` // that ended it
	Output string `json:",omitempty"` // standard output, when it was to be kept
}

// Name implements Job.
func (Program) Name() string { return "program" }

// outputPatience is for output that what the program started still holds open when the
// program has ended.
const outputPatience = 10 * time.Second

func (j Program) run(r run) (any, error) {
	c := exec.CommandContext(r.ctx, j.Path, j.Args...)
	c.Dir = j.Dir
	c.Env = append(c.Environ(), j.Env...)
	c.WaitDelay = outputPatience
	lines, w := io.Pipe()
	var wg sync.WaitGroup
	wg.Go(func() {
		// Longer lines come in parts.
		s := bufio.NewReaderSize(lines, 1<<16)
		for {
			line, _, err := s.ReadLine()
			if err != nil {
				return
			}
			r.log(j.prefix() + string(line))
		}
	})
	c.Stderr = w
	var kept strings.Builder
	if c.Stdout = w; j.Keep {
		c.Stdout = &kept
	}
	err := j.start(r.w, c)
	if err == nil {
		err = c.Wait()
		r.w.forget(j.Tag)
	}
	_ = w.Close() // never fails
	wg.Wait()
	var end *exec.ExitError
	switch {
	case r.ctx.Err() != nil:
		return nil, r.ctx.Err()
	case errors.As(err, &end):
		return ProgramEnd{end.ExitCode(), signalOf(end.ProcessState), kept.String()}, nil
	case err != nil:
		return nil, err
	}
	return ProgramEnd{Output: kept.String()}, nil
}

func (j Program) prefix() string {
	if j.Tag == "" {
		return ""
	}
	return j.Tag + ": "
}

// start starts the program and keeps it under its tag.
func (j Program) start(w *World, c *exec.Cmd) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.programs[j.Tag] != nil {
		return fmt.Errorf("a program %q runs: %w", j.Tag, os.ErrExist)
	}
	if err := startAs(c, j.As); err != nil {
		return err
	}
	if j.Tag != "" {
		w.programs[j.Tag] = c.Process
	}
	return nil
}

// forget drops a program that has ended.
func (w *World) forget(tag string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.programs, tag)
}

// Signal sends a signal to a program that runs under a tag, and does not wait for what it
// does: the job of the program tells.
type Signal struct {
	returns[None]
	Tag    string
	Number int // as kill(1) takes it: 9, 15
}

// Name implements Job.
func (Signal) Name() string { return "signal" }

func (j Signal) run(r run) (any, error) {
	r.w.mu.Lock()
	defer r.w.mu.Unlock()
	p := r.w.programs[j.Tag]
	if p == nil {
		return nil, fmt.Errorf("no program %q runs: %w", j.Tag, os.ErrNotExist)
	}
	if err := p.Signal(syscall.Signal(j.Number)); err != nil {
		return nil, fmt.Errorf("signal %d to %q: %w", j.Number, j.Tag, err)
	}
	return None{}, nil
}
