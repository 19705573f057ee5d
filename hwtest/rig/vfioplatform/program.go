package vfioplatform

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"syscall"

	"github.com/gostmmac/gostmmac/hwtest/rig/guest/jobs"
)

// program is a program that runs in the guest.
type program struct {
	host  *Host
	name  string
	path  string
	ended chan struct{} // closed when result and err are there

	result jobs.ProgramEnd
	err    error

	mu    sync.Mutex // guards what follows
	lines []string
	said  chan struct{} // of room 1: there is a new line
}

func (p *program) say(line string) {
	line = strings.TrimPrefix(line, p.name+": ")
	p.mu.Lock()
	defer p.mu.Unlock()
	p.lines = append(p.lines, line)
	select {
	case p.said <- struct{}{}:
	default:
	}
}

// output are the lines that it has written, also to standard error.
func (p *program) output() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.lines)
}

// start starts a program by name as a user, 0 for root. One at a time runs.
func (h *Host) start(ctx context.Context, user uint32, name string, args ...string) *program {
	p := &program{host: h, name: name, path: "/bin/" + name, ended: make(chan struct{}), said: make(chan struct{}, 1)}
	h.mu.Lock()
	h.program = p
	h.mu.Unlock()
	go func() {
		defer close(p.ended)
		job := jobs.Program{Tag: name, Path: p.path, Args: args}
		if user != 0 {
			job.As = &jobs.User{UID: user, GID: user}
		}
		p.result, p.err = do(ctx, h, job)
	}()
	return p
}

// await waits for a line that has a text, and returns it.
func (p *program) await(ctx context.Context, text string) (string, error) {
	for {
		ended := false
		select {
		case <-p.ended:
			ended = true
		default:
		}
		lines := p.output()
		if i := slices.IndexFunc(lines, func(l string) bool { return strings.Contains(l, text) }); i >= 0 {
			return lines[i], nil
		}
		if ended {
			return "", fmt.Errorf("%s has ended without saying %q: %w", p.path, text, p.failure())
		}
		select {
		case <-p.said:
		case <-p.ended:
		case <-ctx.Done():
			return "", fmt.Errorf("%s has not said %q: %w: %q", p.path, text, ctx.Err(), lines)
		}
	}
}

// failure is how it ended, as an error in any case.
func (p *program) failure() error {
	if p.err != nil {
		return p.err
	}
	return fmt.Errorf("exit status %d: %s", p.result.Code, strings.Join(p.output(), "\n"))
}

// wait waits for its end. Another exit status than the one that is wanted is an error.
func (p *program) wait(ctx context.Context, code int) error {
	select {
	case <-p.ended:
	case <-ctx.Done():
		return fmt.Errorf("%s does not end: %w: %q", p.path, ctx.Err(), p.output())
	}
	if p.err != nil || p.result.Code != code {
		return fmt.Errorf("%s: %w", p.path, p.failure())
	}
	return nil
}

// signal sends it a signal.
func (p *program) signal(ctx context.Context, s syscall.Signal) error {
	_, err := do(ctx, p.host, jobs.Signal{Tag: p.name, Number: int(s)})
	return err
}

// stop asks it to end, and wants the exit status 0.
func (p *program) stop(ctx context.Context) error {
	if err := p.signal(ctx, syscall.SIGTERM); err != nil {
		return errors.Join(err, p.wait(ctx, 0))
	}
	return p.wait(ctx, 0)
}

// run runs a program to its end, wants an exit status, and returns what it has written.
func (h *Host) run(ctx context.Context, code int, name string, args ...string) ([]string, error) {
	return h.runAs(ctx, 0, code, name, args...)
}

func (h *Host) runAs(ctx context.Context, user uint32, code int, name string, args ...string) ([]string, error) {
	p := h.start(ctx, user, name, args...)
	err := p.wait(ctx, code)
	return p.output(), err
}
