package stack

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/netip"
	"sync"
	"time"

	"github.com/gostmmac/gostmmac/hwtest/rig/qtest"
)

// size is how many bytes are downloaded.
const size = 10 << 20

// Download serves bytes over TCP from the stack of one board to that of another one,
// and compares their hashes. Frames go from wire to wire.
func Download(ctx context.Context, server, client *qtest.Machine) (err error) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Minute) // a guard against a hang
	a, err := up(ctx, server, pinger)
	if err != nil {
		cancel()
		return err
	}
	defer func() { err = errors.Join(err, a.close()) }()
	b, err := up(ctx, client, answerer)
	if err != nil {
		cancel()
		return err
	}
	defer func() { err = errors.Join(err, b.close()) }()
	var cable sync.WaitGroup
	defer cable.Wait()
	defer cancel()
	for _, w := range [][2]*qtest.Wire{{server.Wire(), client.Wire()}, {client.Wire(), server.Wire()}} {
		cable.Go(func() {
			for {
				f, err := w[0].Recv(ctx)
				if err == nil {
					err = w[1].Send(ctx, f)
				}
				if err != nil {
					return
				}
			}
		})
	}

	l, err := a.net.Listen("tcp", netip.AddrPortFrom(pinger, 80).String())
	if err != nil {
		return err
	}
	sent := make(chan result, 1)
	go func() { sent <- serve(l) }()
	got := fetch(ctx, b)
	l.Close() // or the server waits for a client that has failed
	want := <-sent
	switch {
	case got.err != nil || want.err != nil:
		return errors.Join(got.err, want.err)
	case got.n != size || got.hash != want.hash:
		return fmt.Errorf("%d bytes with the hash %x came of %d with %x", got.n, got.hash[:4], want.n, want.hash[:4])
	}
	return nil
}

// result is what one end saw of the bytes.
type result struct {
	n    int64
	hash [sha256.Size]byte
	err  error
}

func serve(l net.Listener) (r result) {
	c, err := l.Accept()
	if err != nil {
		return result{err: fmt.Errorf("serve: %w", err)}
	}
	defer c.Close()
	h := sha256.New()
	r.n, r.err = io.Copy(io.MultiWriter(c, h), io.LimitReader(rand.NewChaCha8([32]byte{1}), size))
	r.hash = [sha256.Size]byte(h.Sum(nil))
	return r
}

func fetch(ctx context.Context, b *board) (r result) {
	c, err := b.net.DialContext(ctx, "tcp", netip.AddrPortFrom(pinger, 80).String())
	if err != nil {
		return result{err: fmt.Errorf("fetch: %w", err)}
	}
	defer c.Close()
	defer context.AfterFunc(ctx, func() { c.Close() })()
	h := sha256.New()
	r.n, r.err = io.Copy(h, c)
	r.hash = [sha256.Size]byte(h.Sum(nil))
	return r
}
