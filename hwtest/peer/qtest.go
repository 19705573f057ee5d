package peer

import (
	"context"
	"sync"

	"github.com/gostmmac/gostmmac/hwtest/rig/qtest"
	"github.com/gostmmac/gostmmac/stmmac"
)

// board is the other end of the cable of a GMAC that QEMU models. It takes frames off
// the wire as they come: QEMU loses those that nobody takes.
type board struct {
	name  string
	dev   *qtest.Device
	wire  *qtest.Wire
	stop  context.CancelFunc
	ended chan struct{}

	mu     sync.Mutex // guards what follows
	frames [][]byte   // that came and were not given out
	err    error      // after the last of them
	more   chan struct{}
}

func openBoard(name string, d *qtest.Device) *board {
	ctx, stop := context.WithCancel(context.Background())
	b := &board{name: name, dev: d, wire: d.Wire(), stop: stop, ended: make(chan struct{}), more: make(chan struct{}, 1)}
	go b.take(ctx)
	return b
}

// take keeps the frames that the MAC sends, of which there are a few thousand at most in
// a test.
func (b *board) take(ctx context.Context) {
	defer close(b.ended)
	for {
		f, err := b.wire.Recv(ctx)
		b.mu.Lock()
		if err == nil {
			b.frames = append(b.frames, f)
		}
		b.err = err
		b.mu.Unlock()
		select {
		case b.more <- struct{}{}:
		default:
		}
		if err != nil {
			return
		}
	}
}

func (b *board) Name() string { return b.name }

func (b *board) Can(a Ability) bool {
	switch a {
	case Separate, Tags, Jumbo, Pause, Cable:
		return true
	}
	return false
}

func (b *board) MTU() int { return maxMTU }

func (b *board) Options() []stmmac.Option { return nil }

func (b *board) Attach(context.Context, *stmmac.MAC) error { return nil }

func (b *board) Send(ctx context.Context, frames ...[]byte) error {
	for _, f := range frames {
		if err := b.wire.Send(ctx, Padded(f)); err != nil {
			return failed("send", b.name, err)
		}
	}
	return nil
}

func (b *board) Recv(ctx context.Context) ([]byte, error) {
	for {
		b.mu.Lock()
		if len(b.frames) > 0 {
			f := b.frames[0]
			b.frames = b.frames[1:]
			b.mu.Unlock()
			return f, nil
		}
		err := b.err
		b.mu.Unlock()
		if err != nil {
			return nil, failed("receive", b.name, err)
		}
		select {
		case <-b.more:
		case <-b.ended:
		case <-ctx.Done():
			return nil, failed("receive", b.name, ctx.Err())
		}
	}
}

// Plug implements Puller.
func (b *board) Plug(plugged bool) error {
	return failed("set the cable", b.name, b.dev.SetCable(plugged))
}

// Close ends the receiving. The wire is the device's.
func (b *board) Close() error {
	b.stop()
	<-b.ended
	return nil
}
