package peer

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/gostmmac/gostmmac/stmmac"
)

// queued is how many frames wait in a direction at most.
const queued = 1024

// greeting is how long the other side may take to say hello.
const greeting = 10 * time.Second

// Remote is a peer on another machine.
type Remote struct {
	name  string
	hello hello
	conn  net.Conn

	mu  sync.Mutex // guards out
	out *bufio.Writer

	frames chan []byte
	counts chan Counts
	ended  chan struct{} // closed when the reader has ended
	err    error         // why; written before ended is closed
}

// Dial connects to what runs [Serve] at HOST:PORT.
func Dial(ctx context.Context, address string) (*Remote, error) {
	name := "remote:" + address
	var d net.Dialer
	conn, err := d.DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, failed("connect", name, fmt.Errorf("run `go run ./hwtest/remote` there: %w", err))
	}
	r := &Remote{name: name, conn: conn, out: bufio.NewWriter(conn), frames: make(chan []byte, queued),
		counts: make(chan Counts, 1), ended: make(chan struct{})}
	in := bufio.NewReader(conn)
	buf := make([]byte, maxFrame)
	limit, cancel := context.WithTimeout(ctx, greeting)
	defer cancel()
	ended := follow(limit, conn.SetReadDeadline)
	k, b, err := readMessage(in, buf)
	switch {
	case err != nil:
	case k == kindHello:
		r.hello, err = decodeHello(b)
	case k == kindRefused:
		err = fmt.Errorf("refused: %q", b)
	default:
		err = errProtocol
	}
	if ended(); err == nil {
		err = limit.Err() // the deadline is that of the past then
	}
	if err != nil {
		return nil, failed("connect", name, errors.Join(err, conn.Close()))
	}
	go r.read(in, buf)
	return r, nil
}

// read takes messages until the connection ends. A reader of frames that is too slow
// makes the server drop them.
func (r *Remote) read(in *bufio.Reader, buf []byte) {
	defer close(r.ended)
	for {
		k, b, err := readMessage(in, buf)
		switch {
		case err != nil:
		case k == kindFrame:
			r.queue(slices.Clone(b))
		case k == kindCounts:
			select {
			case <-r.counts: // nobody waited for them
			default:
			}
			r.counts <- decodeCounts(b)
		case k == kindRefused:
			err = fmt.Errorf("hung up: %q", b)
		default:
			err = fmt.Errorf("message of kind %d from a server: %w", k, errProtocol)
		}
		if err != nil {
			r.err = err
			return
		}
	}
}

// queue keeps a frame for Recv. When there is no room the oldest goes: what is asked
// for comes last.
func (r *Remote) queue(f []byte) {
	for {
		select {
		case r.frames <- f:
			return
		default:
		}
		select {
		case <-r.frames:
		default:
		}
	}
}

func (r *Remote) write(ctx context.Context, op string, k kind, bodies ...[]byte) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	defer follow(ctx, r.conn.SetWriteDeadline)()
	var err error
	for _, b := range bodies {
		if err = writeMessage(r.out, k, b); err != nil {
			break
		}
	}
	if err == nil {
		err = r.out.Flush()
	}
	if err != nil && ctx.Err() != nil {
		err = ctx.Err()
	}
	return failed(op, r.name, err)
}

// Name implements Peer.
func (r *Remote) Name() string { return r.name }

// Can implements Peer. The cable and the modes of another machine cannot be set.
func (r *Remote) Can(a Ability) bool {
	return a != Cable && a != Partner && slices.Contains(r.hello.can, a)
}

// MTU implements Peer.
func (r *Remote) MTU() int { return r.hello.mtu }

// Options implements Peer.
func (r *Remote) Options() []stmmac.Option { return nil }

// Attach implements Peer.
func (r *Remote) Attach(ctx context.Context, _ *stmmac.MAC) error {
	return r.write(ctx, "watch", kindWatch, DeviceAddr())
}

// Echo implements Echoer. Like Counts it belongs to one goroutine at a time.
func (r *Remote) Echo(ctx context.Context, on bool) error {
	b := []byte{0}
	if on {
		b[0] = 1
	}
	if err := r.write(ctx, "echo", kindEcho, b); err != nil {
		return err
	}
	_, err := r.Counts(ctx) // the answer says that the message before was read
	return err
}

// Counts asks the other side for its counts. One goroutine at a time may call it.
// Behind a call whose context ended the next one may get the counts of that one.
func (r *Remote) Counts(ctx context.Context) (Counts, error) {
	const op = "count"
	if err := r.write(ctx, op, kindCount, nil); err != nil {
		return Counts{}, err
	}
	select {
	case c := <-r.counts:
		return c, nil
	case <-r.ended:
		return Counts{}, failed(op, r.name, r.err)
	case <-ctx.Done():
		return Counts{}, failed(op, r.name, ctx.Err())
	}
}

// Send implements Peer.
func (r *Remote) Send(ctx context.Context, frames ...[]byte) error {
	return r.write(ctx, "send", kindFrame, frames...)
}

// Recv implements Peer.
func (r *Remote) Recv(ctx context.Context) ([]byte, error) {
	select {
	case f := <-r.frames:
		return f, nil
	default:
	}
	select {
	case f := <-r.frames:
		return f, nil
	case <-r.ended:
		return nil, failed("receive", r.name, r.err)
	case <-ctx.Done():
		return nil, failed("receive", r.name, ctx.Err())
	}
}

// Close implements Peer.
func (r *Remote) Close() error {
	err := r.conn.Close()
	<-r.ended
	if errors.Is(err, net.ErrClosed) {
		return nil
	}
	return failed("close", r.name, err)
}
