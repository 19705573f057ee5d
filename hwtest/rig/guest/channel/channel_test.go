package channel

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
)

// pair starts a guest with a handler and returns a client of it, and the rig's end of the line.
func pair(t *testing.T, handle Handler, log func(job, line string)) (*Client, net.Conn) {
	t.Helper()
	here, there := net.Pipe()
	served := make(chan error, 1)
	go func() { served <- Serve(context.Background(), there, handle) }()
	c := NewClient(here, log)
	if err := c.Ready(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(here.Close(), <-served); err != nil {
			t.Error(err)
		}
		if err := c.Do(t.Context(), "late", nil, nil); !errors.Is(err, ErrClosed) {
			t.Errorf("behind the end: %v", err)
		}
	})
	return c, here
}

type numbers struct{ A, B int }

func add(_ context.Context, job string, args json.RawMessage, log func(string)) (any, error) {
	var n numbers
	if err := json.Unmarshal(args, &n); err != nil {
		return nil, err
	}
	if job != "add" {
		return nil, fmt.Errorf("job %s: %w", job, &os.PathError{Op: "open", Path: "x", Err: syscall.ENODEV})
	}
	log("one\ntwo")
	log("")
	return n.A + n.B, nil
}

func TestDo(t *testing.T) {
	var logged []string
	c, _ := pair(t, add, func(job, line string) { logged = append(logged, job+": "+line) })
	var sum int
	if err := c.Do(t.Context(), "add", numbers{2, 3}, &sum); err != nil || sum != 5 {
		t.Errorf("%d, %v", sum, err)
	}
	// The answer comes behind the log.
	if got := strings.Join(logged, "|"); got != "add: one\ntwo|add: " {
		t.Errorf("log %q", got)
	}
	if err := c.Do(t.Context(), "add", numbers{}, nil); err != nil {
		t.Error(err)
	}
	err := c.Do(t.Context(), "none", numbers{}, nil)
	var e *JobError
	if !errors.As(err, &e) || !errors.Is(err, syscall.ENODEV) || e.Job != "none" || err.Error() != "none in the guest: job none: open x: no such device" {
		t.Errorf("%v", err)
	}
	if err := c.Do(t.Context(), "add", "text", nil); !errors.As(err, &e) || e.Unwrap() != nil {
		t.Errorf("%v", err)
	}
	var text string
	if err := c.Do(t.Context(), "add", numbers{}, &text); err == nil || !strings.Contains(err.Error(), "result of add") {
		t.Errorf("a number as a text: %v", err)
	}
	if err := c.Do(t.Context(), "add", func() {}, nil); err == nil {
		t.Error("a function as arguments")
	}
}

func TestManyJobs(t *testing.T) {
	c, _ := pair(t, add, nil)
	var wg sync.WaitGroup
	for i := range 50 {
		wg.Go(func() {
			var sum int
			if err := c.Do(t.Context(), "add", numbers{i, i}, &sum); err != nil || sum != 2*i {
				t.Errorf("%d: %d, %v", i, sum, err)
			}
		})
	}
	wg.Wait()
}

func TestCancel(t *testing.T) {
	started, ended := make(chan struct{}), make(chan error, 1)
	c, _ := pair(t, func(ctx context.Context, job string, _ json.RawMessage, _ func(string)) (any, error) {
		if job == "quick" {
			return nil, nil
		}
		close(started)
		<-ctx.Done()
		ended <- ctx.Err()
		return nil, ctx.Err()
	}, nil)
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-started
		cancel()
	}()
	if err := c.Do(ctx, "slow", nil, nil); !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), "slow in the guest") {
		t.Errorf("%v", err)
	}
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("in the guest: %v", err)
	}
	if err := c.Do(t.Context(), "quick", nil, nil); err != nil {
		t.Errorf("the next job: %v", err)
	}
}

// TestEnd: what waits when the guest dies ends, with the reason.
func TestEnd(t *testing.T) {
	here, there := net.Pipe()
	c := NewClient(here, nil)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := c.Ready(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("ready before the guest is: %v", err)
	}
	dead := errors.New("kernel panic")
	go func() {
		_, _ = there.Read(make([]byte, 1))
		c.End(dead)
		c.End(errors.New("second"))
		_ = there.Close()
	}()
	err := c.Do(t.Context(), "job", nil, nil)
	if !errors.Is(err, ErrClosed) || !errors.Is(err, dead) {
		t.Errorf("%v", err)
	}
	if err := c.Do(t.Context(), "job", nil, nil); !errors.Is(err, dead) {
		t.Errorf("later: %v", err)
	}
	if err := c.Ready(t.Context()); !errors.Is(err, dead) {
		t.Errorf("ready after the end: %v", err)
	}
	if err := here.Close(); err != nil {
		t.Error(err)
	}
}

// TestServeEnds: the end of the line cancels jobs, and is waited for.
func TestServeEnds(t *testing.T) {
	here, there := net.Pipe()
	started, ended := make(chan struct{}), false
	served := make(chan error)
	go func() { _, _ = io.Copy(io.Discard, here) }() // what the guest says
	go func() {
		served <- Serve(context.Background(), there, func(ctx context.Context, _ string, _ json.RawMessage, _ func(string)) (any, error) {
			close(started)
			<-ctx.Done()
			ended = true
			return nil, nil
		})
	}()
	if _, err := io.WriteString(here, "noise\n{\"id\":1,\"job\":\"wait\"}\n{\"id\":1,\"job\":\"wait\"}\n"); err != nil {
		t.Fatal(err)
	}
	<-started
	if err := here.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-served; err != nil || !ended {
		t.Errorf("%v, ended %v", err, ended)
	}
	here, there = net.Pipe()
	go func() { _, _ = io.Copy(io.Discard, here) }()
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	go func() { served <- Serve(ctx, there, add) }()
	if _, err := io.WriteString(here, "{\"id\":1,\"job\":\"add\"}\n"); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(<-served, here.Close()); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}

// TestNoise: what firmware writes to the line harms nothing, also without a newline.
func TestNoise(t *testing.T) {
	here, there := net.Pipe()
	c := NewClient(here, nil)
	go func() {
		s := newStream(there)
		m, err := s.read()
		if err == nil {
			_, err = io.WriteString(there, "SeaBIOS\x1b[2J\r\n{\"id\":\n{}\n[]\n{\"id\":99,\"done\":true}\n{\"id\":7,\"log\":\"x\"}\nno newline")
		}
		if err == nil {
			err = s.write(message{ID: m.ID, Done: true, Result: json.RawMessage(`"yes"`)})
		}
		if err != nil {
			t.Error(err)
		}
	}()
	var answer string
	if err := c.Do(t.Context(), "job", nil, &answer); err != nil || answer != "yes" {
		t.Errorf("%q, %v", answer, err)
	}
	if err := errors.Join(here.Close(), there.Close()); err != nil {
		t.Error(err)
	}
}

// TestTooLong: a result that does not fit into a line is an error of its job.
func TestTooLong(t *testing.T) {
	c, _ := pair(t, func(context.Context, string, json.RawMessage, func(string)) (any, error) {
		return strings.Repeat("x", maxLine), nil
	}, nil)
	var e *JobError
	if err := c.Do(t.Context(), "job", nil, nil); !errors.As(err, &e) || !strings.Contains(err.Error(), "bytes") {
		t.Errorf("%v", err)
	}
	if err := c.Do(t.Context(), "job", strings.Repeat("x", maxLine), nil); err == nil || errors.As(err, &e) {
		t.Errorf("arguments: %v", err)
	}
}

// FuzzServe: whatever comes over the line, the guest goes on or ends well, and what it
// says are messages.
func FuzzServe(f *testing.F) {
	f.Add([]byte(`{"id":1,"job":"add","args":{"A":1}}` + "\n" + `{"id":1,"cancel":true}`))
	f.Add([]byte(`{"id":2,"job":"x","args":null}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		var out bytes.Buffer
		rw := struct {
			io.Reader
			io.Writer
		}{bytes.NewReader(b), &out}
		if err := Serve(t.Context(), rw, add); err != nil {
			t.Error(err)
		}
		for line := range bytes.Lines(out.Bytes()) {
			var m message
			if len(line) > 1 && (json.Unmarshal(line, &m) != nil || m.ID == 0 && !m.Hello) {
				t.Errorf("%q", line)
			}
		}
	})
}
