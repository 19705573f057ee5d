package qtest

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// MaxFrame is the longest frame that a wire carries: the limit of QEMU's net layer.
const MaxFrame = 68 << 10

// Wire is the cable of a MAC. A frame starts with the destination address and has
// no preamble and no frame check sequence; the model makes neither padding nor a
// check sequence, so what is sent is what arrives. Send and Recv may be called at
// the same time, each by several goroutines.
type Wire struct {
	m    *Machine
	conn *net.UnixConn

	send, recv sync.Mutex
	buf        []byte // of recv

	mu  sync.Mutex
	err error // QEMU is gone for this reason
}

// wireBuffer is what the kernel may hold of frames in each direction, in bytes, where
// it allows as much.
const wireBuffer = 4 << 20

func newWire(m *Machine, fd int) (*Wire, error) {
	// Smaller buffers only make the sender wait earlier.
	_ = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_SNDBUF, wireBuffer)
	_ = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUF, wireBuffer)
	f := os.NewFile(uintptr(fd), "wire")
	defer f.Close()
	c, err := net.FileConn(f) // has a file of its own
	if err != nil {
		return nil, fmt.Errorf("wire: %w", err)
	}
	u, ok := c.(*net.UnixConn)
	if !ok {
		return nil, errors.Join(fmt.Errorf("wire: %T is no socket of the right kind", c), c.Close())
	}
	return &Wire{m: m, conn: u, buf: make([]byte, MaxFrame)}, nil
}

// Send puts a frame of 1 to MaxFrame bytes on the wire. It waits while the MAC takes
// none and the few frames that the kernel holds are there already, until ctx ends.
func (w *Wire) Send(ctx context.Context, frame []byte) error {
	if len(frame) == 0 || len(frame) > MaxFrame {
		return &Error{Op: "send", Dev: w.m.cfg.dev(), Err: fmt.Errorf("%w: a frame of %d bytes", ErrConfig, len(frame))}
	}
	w.send.Lock()
	defer w.send.Unlock()
	return w.wait(ctx, "send", w.conn.SetWriteDeadline, func() error {
		_, err := w.conn.Write(frame)
		return err
	})
}

// Recv waits for the next frame that the MAC sent, until ctx ends. The frame belongs
// to the caller.
func (w *Wire) Recv(ctx context.Context) ([]byte, error) {
	w.recv.Lock()
	defer w.recv.Unlock()
	var frame []byte
	err := w.wait(ctx, "receive", w.conn.SetReadDeadline, func() error {
		n, err := w.conn.Read(w.buf)
		frame = append([]byte(nil), w.buf[:n]...)
		return err
	})
	if err != nil {
		return nil, err
	}
	return frame, nil
}

// wait calls f and ends it by a deadline that has passed when ctx ends or QEMU does.
func (w *Wire) wait(ctx context.Context, op string, set func(time.Time) error, f func() error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	expired := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		set(time.Unix(1, 0)) // fails only when the socket is closed, which ends f too
		close(expired)
	})
	err := f()
	if !stop() {
		<-expired // or it would end the next call
		w.mu.Lock()
		if w.err == nil {
			set(time.Time{})
		}
		w.mu.Unlock()
	}
	if err == nil {
		return nil
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case w.err != nil:
		return w.err
	case errors.Is(err, os.ErrDeadlineExceeded):
		return ctx.Err()
	case errors.Is(err, net.ErrClosed), errors.Is(err, unix.ECONNREFUSED), errors.Is(err, unix.ECONNRESET), errors.Is(err, unix.EPIPE):
		return w.m.gone(op, err)
	}
	return &Error{Op: op, Dev: w.m.cfg.dev(), Err: err}
}

// end ends all calls with err.
func (w *Wire) end(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.err == nil {
		w.err = err
		w.conn.SetDeadline(time.Unix(1, 0)) // fails only when it is closed, which ends them too
	}
}

func (w *Wire) close() error { return w.conn.Close() }
