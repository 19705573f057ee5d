package channel

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"
)

// Handler runs a job. What it returns becomes JSON. It may call log from any goroutine until
// it returns. Many run at a time.
type Handler func(ctx context.Context, job string, args json.RawMessage, log func(line string)) (result any, err error)

// Serve is the guest's end: it runs the jobs that are asked for, until the stream ends,
// which is no error, or ctx does. Then it cancels the jobs that run and waits for them.
// The stream has to be closed for it to see the end of ctx.
func Serve(ctx context.Context, rw io.ReadWriter, handle Handler) error {
	s := newStream(rw)
	ctx, cancel := context.WithCancel(ctx)
	var mu sync.Mutex
	running := map[uint64]context.CancelFunc{}
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel()
	var failed error // of a write, which the next read may not show
	end := func(m message) {
		err := s.write(m)
		if err != nil && m.Result != nil {
			// What cannot be sent, for example because it is too long, is an error of the job.
			err = s.write(message{ID: m.ID, Done: true, Error: failureOf(err)})
		}
		mu.Lock()
		defer mu.Unlock()
		failed = errors.Join(failed, err)
		delete(running, m.ID)
	}
	if err := s.write(message{Hello: true}); err != nil {
		return err
	}
	for {
		m, err := s.read()
		mu.Lock()
		err = errors.Join(err, failed)
		mu.Unlock()
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		}
		mu.Lock()
		stop := running[m.ID]
		if m.Job != "" && stop == nil {
			ctx, stop := context.WithCancel(ctx)
			running[m.ID] = stop
			wg.Go(func() {
				defer stop()
				end(run(ctx, s, m, handle))
			})
		}
		mu.Unlock()
		if m.Cancel && stop != nil {
			stop()
		}
	}
}

// run runs a job and returns the message of its end.
func run(ctx context.Context, s *stream, m message, handle Handler) message {
	done := message{ID: m.ID, Done: true}
	result, err := handle(ctx, m.Job, m.Args, func(line string) {
		_ = s.write(message{ID: m.ID, Log: &line}) // the end of the job tells
	})
	if err == nil {
		done.Result, err = json.Marshal(result)
		if err != nil {
			err = fmt.Errorf("channel: %w", err)
		}
	}
	if err != nil {
		done.Result, done.Error = nil, failureOf(err)
	}
	return done
}
