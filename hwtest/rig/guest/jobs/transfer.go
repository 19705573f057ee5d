package jobs

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"syscall"
	"time"

	"github.com/gostmmac/gostmmac/internal/netns"
)

// Transfer is one end of a TCP connection that sends and receives at the same time. All
// bytes that arrive are compared with what the other end sends: both have the same Seed.
type Transfer struct {
	returns[TransferResult]
	Space string
	// Listen and Dial are an IP address with a port; one of them is given. Dial tries again
	// while nobody listens, and Listen takes one connection.
	Listen string `json:",omitempty"`
	Dial   string `json:",omitempty"`
	// Send and Receive are bytes.
	Send, Receive int64
	Seed          uint64
	// Echo says that the other end is no Transfer and sends back what it gets.
	Echo bool `json:",omitempty"`
}

// TransferResult is the result of Transfer.
type TransferResult struct {
	Microseconds int64 // from the connection to the last byte
}

// Name implements Job.
func (Transfer) Name() string { return "transfer" }

func (j Transfer) run(r run) (any, error) {
	n, err := r.w.space(j.Space)
	if err != nil {
		return nil, err
	}
	c, err := j.connect(r.ctx, n)
	if err != nil {
		return nil, err
	}
	begin := time.Now()
	stop := context.AfterFunc(r.ctx, func() { _ = c.SetDeadline(time.Unix(1, 0)) }) // the transfer tells
	defer stop()
	// Each direction has a stream of its own.
	mine, theirs := uint64(1), uint64(2)
	if j.Dial != "" {
		mine, theirs = theirs, mine
	}
	if j.Echo {
		theirs = mine
	}
	sent := make(chan error, 1)
	go func() {
		_, err := io.Copy(c, io.LimitReader(newPattern(j.Seed, mine), j.Send))
		if t, ok := c.(*net.TCPConn); ok && err == nil {
			err = t.CloseWrite()
		}
		sent <- err
	}()
	received := expect(c, newPattern(j.Seed, theirs), j.Receive)
	if received != nil {
		_ = c.SetDeadline(time.Unix(1, 0)) // ends the other direction
	}
	err = errors.Join(received, <-sent)
	took := time.Since(begin).Microseconds()
	err = errors.Join(err, c.Close())
	if err != nil && r.ctx.Err() != nil {
		err = errors.Join(r.ctx.Err(), err)
	}
	return TransferResult{took}, err
}

// connect makes the connection.
func (j Transfer) connect(ctx context.Context, n *netns.NS) (net.Conn, error) {
	if j.Listen != "" {
		l, err := n.Listen("tcp", j.Listen)
		if err != nil {
			return nil, err
		}
		stop := context.AfterFunc(ctx, func() { _ = l.Close() }) // Accept tells
		defer stop()
		c, err := l.Accept()
		if ctx.Err() != nil {
			err = errors.Join(ctx.Err(), err)
		}
		if cerr := l.Close(); cerr != nil && !errors.Is(cerr, net.ErrClosed) {
			err = errors.Join(err, cerr)
		}
		return c, err
	}
	tick := time.NewTicker(pace)
	defer tick.Stop()
	for {
		c, err := n.Dial(ctx, "tcp", j.Dial)
		if !errors.Is(err, syscall.ECONNREFUSED) {
			return c, err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil, fmt.Errorf("%w: %w", ctx.Err(), err)
		}
	}
}

// pattern is an endless stream of bytes that a seed determines.
type pattern struct{ r *rand.ChaCha8 }

func newPattern(seed, stream uint64) io.Reader {
	var key [32]byte
	for i := range 8 {
		key[i], key[8+i] = byte(seed>>(8*i)), byte(stream>>(8*i))
	}
	return pattern{rand.NewChaCha8(key)}
}

func (p pattern) Read(b []byte) (int, error) { return p.r.Read(b) }

// expect reads count bytes and then the end, and compares them with what is expected.
func expect(from, want io.Reader, count int64) error {
	a, b := make([]byte, 64<<10), make([]byte, 64<<10)
	for at := int64(0); ; {
		n, err := from.Read(a)
		if _, err := io.ReadFull(want, b[:n]); err != nil {
			return err
		}
		for i := range n {
			if a[i] != b[i] {
				return fmt.Errorf("byte %d is %#02x instead of %#02x", at+int64(i), a[i], b[i])
			}
		}
		at += int64(n)
		switch {
		case at > count || errors.Is(err, io.EOF) && at < count:
			return fmt.Errorf("%d bytes came instead of %d: %w", at, count, io.ErrUnexpectedEOF)
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return fmt.Errorf("behind %d bytes: %w", at, err)
		}
	}
}
