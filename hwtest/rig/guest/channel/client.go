package channel

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"
	"syscall"
)

// JobError is the error of a job in the guest.
type JobError struct {
	Job  string
	Text string
	// Errno is the error number of the guest's Linux in it, or 0.
	Errno syscall.Errno
}

// Error implements error.
func (e *JobError) Error() string { return e.Job + " in the guest: " + e.Text }

// Unwrap returns the error number, for errors.Is, or nil.
func (e *JobError) Unwrap() error {
	if e.Errno == 0 {
		return nil
	}
	return e.Errno
}

// ErrClosed is the error of jobs when the other end has gone or the client was ended.
var ErrClosed = errors.New("channel: closed")

// Client is the rig's end. All methods may be called by several goroutines.
type Client struct {
	s *stream
	// log gets the lines of jobs, with their names. It is called by one goroutine.
	log func(job, line string)

	mu      sync.Mutex
	last    uint64
	waiting map[uint64]*call
	err     error // why it ended
	ended   chan struct{}

	ready chan struct{}
}

// call is a job that runs.
type call struct {
	job    string
	answer chan message // of room 1
}

// NewClient makes a client on a stream, which it reads until the stream ends. log may be nil.
func NewClient(rw io.ReadWriter, log func(job, line string)) *Client {
	c := &Client{s: newStream(rw), log: log, waiting: map[uint64]*call{}, ended: make(chan struct{}), ready: make(chan struct{})}
	go c.read()
	return c
}

// Ready waits until the guest has said that it is there. Jobs that are asked for earlier
// may be lost.
func (c *Client) Ready(ctx context.Context) error {
	select {
	case <-c.ready:
		return nil
	case <-c.ended:
		return c.failed()
	case <-ctx.Done():
		return ctx.Err()
	}
}

// read hands out what comes.
func (c *Client) read() {
	for first := true; ; {
		m, err := c.s.read()
		if err != nil {
			c.End(err)
			return
		}
		if m.Hello && first {
			close(c.ready)
			first = false
		}
		c.mu.Lock()
		w := c.waiting[m.ID]
		if w != nil && m.Done {
			delete(c.waiting, m.ID)
		}
		c.mu.Unlock()
		switch {
		case w == nil: // a job that nobody waits for any more
		case m.Done:
			w.answer <- m
		case m.Log != nil && c.log != nil:
			c.log(w.job, *m.Log)
		}
	}
}

// End ends all jobs with an error that is ErrClosed and wraps why, now and later. The
// first call counts. It does not close the stream.
func (c *Client) End(why error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err != nil {
		return
	}
	c.err = fmt.Errorf("%w: %w", ErrClosed, why)
	close(c.ended)
}

// failed is why it ended.
func (c *Client) failed() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err
}

// Do runs a job in the guest and waits for its end: args become JSON, and the result is
// decoded into result unless that is nil. When ctx ends, the job is cancelled and Do
// returns without waiting for it. A job that fails is a *JobError.
func (c *Client) Do(ctx context.Context, job string, args, result any) error {
	raw, err := json.Marshal(args)
	if err != nil {
		return fmt.Errorf("channel: arguments of %s: %w", job, err)
	}
	w := &call{job, make(chan message, 1)}
	c.mu.Lock()
	if err := c.err; err != nil {
		c.mu.Unlock()
		return fmt.Errorf("%s: %w", job, err)
	}
	c.last++
	id := c.last
	c.waiting[id] = w
	c.mu.Unlock()
	if err := c.s.write(message{ID: id, Job: job, Args: raw}); err != nil {
		c.forget(id)
		if !errors.Is(err, errTooLong) { // so the line is dead
			c.End(err)
			err = c.failed()
		}
		return fmt.Errorf("%s: %w", job, err)
	}
	select {
	case m := <-w.answer:
		switch {
		case m.Error != nil:
			return &JobError{Job: job, Text: m.Error.Text, Errno: syscall.Errno(m.Error.Errno)}
		case result == nil:
			return nil
		}
		if err := json.Unmarshal(m.Result, result); err != nil {
			return fmt.Errorf("channel: result of %s: %w", job, err)
		}
		return nil
	case <-c.ended:
		return fmt.Errorf("%s: %w", job, c.failed())
	case <-ctx.Done():
		c.forget(id)
		// The line may be why it takes so long.
		go func() { _ = c.s.write(message{ID: id, Cancel: true}) }()
		return fmt.Errorf("%s in the guest: %w", job, ctx.Err())
	}
}

func (c *Client) forget(id uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.waiting, id)
}
