package jobs

import (
	"bufio"
	"errors"
	"io"
	"os/exec"
	"strings"
	"sync"
	"time"
)

// Program runs a program of the guest to its end; a cancelled job ends it. Its lines go to
// the log, those of standard error too.
type Program struct {
	returns[ProgramEnd]
	Path string
	Args []string `json:",omitempty"`
	Env  []string `json:",omitempty"` // beside the guest's
	Dir  string   `json:",omitempty"`
	// Keep returns standard output instead of sending it to the log.
	Keep bool `json:",omitempty"`
}

// ProgramEnd is the result of Program.
type ProgramEnd struct {
	Code   int    // the exit status; -1 when a signal ended it
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
			r.log(string(line))
		}
	})
	c.Stderr = w
	var kept strings.Builder
	if c.Stdout = w; j.Keep {
		c.Stdout = &kept
	}
	err := c.Run()
	_ = w.Close() // never fails
	wg.Wait()
	var end *exec.ExitError
	switch {
	case r.ctx.Err() != nil:
		return nil, r.ctx.Err()
	case errors.As(err, &end):
		return ProgramEnd{end.ExitCode(), kept.String()}, nil
	case err != nil:
		return nil, err
	}
	return ProgramEnd{Output: kept.String()}, nil
}
