package peer

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// slow is how long a client may take to take a message.
const slow = 10 * time.Second

// Serve lets clients use p over the connections of l, one at a time, until ctx ends;
// others are refused. Who can connect can send any frame on the wire of p, so l
// listens where only the tester is. Errors of clients go to note, which may be nil.
// It closes l, and p stays open. A nil error says that ctx ended.
func Serve(ctx context.Context, l net.Listener, p Peer, note func(error)) error {
	defer context.AfterFunc(ctx, func() { _ = l.Close() })()
	turn := make(chan struct{}, 1)
	var clients sync.WaitGroup
	defer clients.Wait()
	for {
		conn, err := l.Accept()
		if err != nil {
			if ctx.Err() != nil {
				return nil
			}
			return failed("accept", p.Name(), errors.Join(err, l.Close()))
		}
		// The client before may have hung up a moment ago.
		const moment = time.Second
		select {
		case turn <- struct{}{}:
		case <-time.After(moment):
			refuse(conn, "another test is using this peer")
			continue
		}
		clients.Go(func() {
			if err := serve(ctx, conn, p); err != nil && ctx.Err() == nil && note != nil {
				note(failed("serve "+conn.RemoteAddr().String(), p.Name(), err))
			}
			<-turn // behind the note, so that notes come in the order of clients
		})
	}
}

// refuse says why and hangs up; whether that arrives does not matter.
func refuse(conn net.Conn, why string) {
	_ = conn.SetWriteDeadline(time.Now().Add(slow))
	w := bufio.NewWriter(conn)
	_ = writeMessage(w, kindRefused, []byte(why))
	_ = w.Flush()
	_ = conn.Close()
}

// session is one client.
type session struct {
	p    Peer
	conn net.Conn
	out  chan message
	echo atomic.Bool

	sending sync.Mutex // around p.Send, which both directions call

	mu    sync.Mutex // guards what follows
	watch []byte     // nil: nothing is passed on
	count Counts
}

type message struct {
	k    kind
	body []byte
}

func serve(ctx context.Context, conn net.Conn, p Peer) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	s := &session{p: p, conn: conn, out: make(chan message, queued)}
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
	var all sync.WaitGroup
	for _, f := range []func(context.Context) error{s.fromClient, s.fromWire, s.toClient} {
		all.Go(func() { cancel(f(ctx)) })
	}
	all.Wait()
	if err := context.Cause(ctx); !errors.Is(err, io.EOF) {
		return err
	}
	return nil
}

// fromClient does what the client says, until it hangs up.
func (s *session) fromClient(ctx context.Context) error {
	in, buf := bufio.NewReader(s.conn), make([]byte, maxFrame)
	for {
		k, b, err := readMessage(in, buf)
		if err != nil {
			return err
		}
		switch k {
		case kindFrame:
			if err := s.send(ctx, b); err != nil {
				return err
			}
		case kindWatch:
			s.mu.Lock()
			s.watch = slices.Clone(b)
			s.mu.Unlock()
		case kindEcho:
			s.echo.Store(b[0] != 0)
		case kindCount:
			s.mu.Lock()
			m := message{kindCounts, s.count.encode()}
			s.mu.Unlock()
			select {
			case s.out <- m:
			case <-ctx.Done():
				return ctx.Err()
			}
		default:
			return fmt.Errorf("message of kind %d from a client: %w", k, errProtocol)
		}
	}
}

func (s *session) send(ctx context.Context, f []byte) error {
	s.sending.Lock()
	defer s.sending.Unlock()
	if err := s.p.Send(ctx, f); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.count.Sent++
	return nil
}

// fromWire passes frames on, or back.
func (s *session) fromWire(ctx context.Context) error {
	for {
		f, err := s.p.Recv(ctx)
		if err != nil {
			return err
		}
		if !s.want(f) {
			continue
		}
		if s.echo.Load() {
			back := slices.Clone(f)
			copy(back, f[6:12])
			copy(back[6:], f[:6])
			if err := s.send(ctx, back); err != nil {
				return err
			}
			continue
		}
		select {
		case s.out <- message{kindFrame, f}:
		default:
			s.mu.Lock()
			s.count.Dropped++
			s.mu.Unlock()
		}
	}
}

// want says whether a frame is of the source that is watched, and counts it.
func (s *session) want(f []byte) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.watch == nil || len(f) < minFrame || len(f) > maxFrame || !bytes.Equal(f[6:12], s.watch) {
		s.count.Foreign++
		return false
	}
	s.count.Received++
	return true
}

// toClient writes what is for the client, and first who this is.
func (s *session) toClient(ctx context.Context) error {
	w := bufio.NewWriter(s.conn)
	h := hello{mtu: s.p.MTU()}
	for _, a := range abilities() {
		if s.p.Can(a) {
			h.can = append(h.can, a)
		}
	}
	m := message{kindHello, h.encode()}
	for {
		if err := errors.Join(s.conn.SetWriteDeadline(time.Now().Add(slow)), writeMessage(w, m.k, m.body)); err != nil {
			return err
		}
		if len(s.out) == 0 {
			if err := w.Flush(); err != nil {
				return err
			}
		}
		select {
		case m = <-s.out:
		case <-ctx.Done():
			return nil
		}
	}
}
