package drive

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/gostmmac/gostmmac/hwtest/rig/qtest"
	"github.com/gostmmac/gostmmac/hwtest/rig/scheme"
	"github.com/gostmmac/gostmmac/pagepool"
	"github.com/gostmmac/gostmmac/stmmac"
)

// Test is a test of the driver on a board that others use before and after it.
type Test struct {
	Name string
	Run  func(ctx context.Context, m *qtest.Machine) error
}

const (
	// frames is how many frames a test of traffic sends each way.
	frames = 10_000
	// window is how many of them are on their way: the model drops what finds no
	// buffer, and QEMU what is more than 10,000 frames behind.
	window = 16
	// descriptor is how many bytes one holds of a frame of several.
	descriptor = 1984
)

// Tests returns the tests. Each opens the MAC and closes it.
func Tests() []Test {
	var all []Test
	add := func(name string, slots int, run func(context.Context, *board) error, opts ...stmmac.Option) {
		all = append(all, named(name, slots, run, opts...))
	}
	add("open, features, PHY and link", 128, identify)
	add("open again, 20 times", 128, reopen)
	for _, l := range []struct {
		name  string
		chain bool
	}{{"ring", false}, {"chain", true}} {
		list := stmmac.WithConfig(func(c *stmmac.Config) { c.Chain = l.chain })
		name := func(what string) string { return what + ", " + l.name }
		add(name("transmit 10000 frames of 60 to 1514 bytes"), 128, transmit, list)
		add(name("receive 10000 frames of 60 to 1514 bytes"), 128, receive, list)
		add(name("echo 10000 frames of 60 to 1514 bytes"), 128, echo, list)
		add(name("echo frames of 60 to 9014 bytes"), 128, few(echo), list, stmmac.WithMTU(9000))
		add(name("echo with rings of 2"), 2, few(echo), list)
		add(name("echo with rings of 1024"), 1024, few(echo), list)
		add(name("echo, many frames an interrupt"), 128, few(echo), list, stmmac.WithCoalesce(stmmac.Coalesce{TxTime: time.Millisecond, TxFrames: 8}))
		add(name("change of MTU between frames"), 128, changeMTU, list)
	}
	return all
}

// named is a test on an open MAC with rings of so many slots.
func named(name string, slots int, run func(context.Context, *board) error, opts ...stmmac.Option) Test {
	return Test{name, func(ctx context.Context, m *qtest.Machine) error { return with(ctx, m, slots, run, opts...) }}
}

// board is an open MAC, and the other end of its cable.
type board struct {
	mac  *stmmac.MAC
	dev  *watched
	wire *qtest.Wire
	n    int // frames to send
	// slots is how many descriptors each ring has.
	slots int
	// open opens the MAC as it was opened for the test, with opts behind.
	open    func(ctx context.Context, opts ...stmmac.Option) (*stmmac.MAC, error)
	machine *qtest.Machine
}

// few makes a test send a tenth of the frames.
func few(run func(context.Context, *board) error) func(context.Context, *board) error {
	return func(ctx context.Context, b *board) error {
		b.n /= 10
		return run(ctx, b)
	}
}

func with(ctx context.Context, m *qtest.Machine, slots int, run func(context.Context, *board) error, opts ...stmmac.Option) (err error) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Minute) // a guard against a hang
	defer cancel()
	opts = slices.Concat(scheme.Options("qtest"), []stmmac.Option{stmmac.WithRings(slots, slots)}, opts)
	b := &board{dev: watch(m.Device()), wire: m.Wire(), n: frames, slots: slots, machine: m}
	b.open = func(ctx context.Context, more ...stmmac.Option) (*stmmac.MAC, error) {
		return stmmac.Open(ctx, b.dev, slices.Concat(opts, more)...)
	}
	if b.mac, err = b.open(ctx); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.mac.Close()) }()
	if err := WaitUp(ctx, b.mac); err != nil {
		return err
	}
	return run(ctx, b)
}

// WaitUp waits until the link of m is up.
func WaitUp(ctx context.Context, m *stmmac.MAC) error {
	for l := range m.Links(ctx) {
		if l.Up {
			return nil
		}
	}
	return fmt.Errorf("the link did not come up: %v", m.LinkReason())
}

// identify checks what the registers and the PHY of the model tell.
func identify(_ context.Context, b *board) error {
	f := b.mac.Features()
	want := stmmac.Link{Up: true, Speed: 1000, FullDuplex: true}
	got := b.mac.Link()
	got.RxPause, got.TxPause = false, false
	switch {
	case f.Version != 0x32 || f.UserID != 0x10:
		return fmt.Errorf("version %#x, user %#x, want 0x32 and 0x10", f.Version, f.UserID)
	case !f.GMII || !f.MDIO || !f.MMC || !f.RxChecksum || !f.TxChecksum || f.RxQueues != 1 || f.TxQueues != 1:
		return fmt.Errorf("features %+v", f)
	case got != want:
		return fmt.Errorf("link %v, want %v", got, want)
	}
	return nil
}

// reopen closes the MAC and opens it again.
func reopen(ctx context.Context, b *board) error {
	for range 20 {
		if err := b.mac.Close(); err != nil {
			return err
		}
		m, err := b.open(ctx)
		if err != nil {
			return err
		}
		b.mac = m
		if err := exchange(ctx, b, 3); err != nil {
			return err
		}
	}
	return nil
}

// changeMTU changes the MTU, which rebuilds the rings, between frames.
func changeMTU(ctx context.Context, b *board) error {
	for _, mtu := range []int{9000, 600, 1500, 46, 1500} {
		if err := b.mac.SetMTU(ctx, mtu); err != nil {
			return err
		}
		if err := WaitUp(ctx, b.mac); err != nil {
			return err
		}
		if err := exchange(ctx, b, 100); err != nil {
			return fmt.Errorf("MTU %d: %w", mtu, err)
		}
	}
	return nil
}

// frame is frame i of the board.
func (b *board) frame(i int) []byte { return frame(b.mac.MTU(), i) }

// frame is frame i of sizes up to an MTU. Each begins with a type of its own, a number
// and what follows from it, so that a wrong byte is one of no frame.
func frame(mtu, i int) []byte {
	const least, header = 60, 14
	return sized(least+i*733%max(1, mtu+header-least+1), i)
}

// sized is frame i with n bytes, 18 or more.
func sized(n, i int) []byte {
	f := append(make([]byte, 0, n), 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2, 0, 0, 0, 0, 1, 0x88, 0xb5,
		byte(i>>24), byte(i>>16), byte(i>>8), byte(i))
	for len(f) < n {
		f = append(f, byte(i*31+len(f)*7+len(f)>>8))
	}
	return f[:n]
}

// number is the number of a frame.
func number(f []byte) int {
	if len(f) < 18 {
		return -1
	}
	return int(binary.BigEndian.Uint32(f[14:]))
}

// upTo makes frames of sizes up to an MTU by their numbers.
func upTo(mtu int) func(i int) []byte { return func(i int) []byte { return frame(mtu, i) } }

func (b *board) check(what string, i int, got []byte) error { return same(what, i, got, b.frame(i)) }

// same compares frame i with what it is to be.
func same(what string, i int, got, want []byte) error {
	if bytes.Equal(got, want) {
		return nil
	}
	return fmt.Errorf("%s: frame %d has %d bytes, % x, want %d, % x", what, i, len(got), got[:min(24, len(got))], len(want), want[:min(24, len(want))])
}

// transmit sends frames by the driver and compares what comes out.
func transmit(ctx context.Context, b *board) error {
	for i := 0; i < b.n; i += window {
		k := min(window, b.n-i)
		bufs, err := b.batch(b.frame, i, k)
		if err == nil {
			err = send(ctx, b.mac, bufs)
		}
		if err == nil {
			err = b.leave(ctx, b.frame, i, k)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// batch makes k frames of the pool from frame i on.
func (b *board) batch(of func(i int) []byte, i, k int) ([]*pagepool.Buf, error) {
	var all []*pagepool.Buf
	for ; len(all) < k; i++ {
		f, err := b.mac.Pool().AllocFrame(of(i), 0)
		if err != nil {
			b.mac.Pool().FreeBatch(all)
			return nil, err
		}
		all = append(all, f)
	}
	return all, nil
}

// leave takes k frames from frame i on off the wire.
func (b *board) leave(ctx context.Context, of func(i int) []byte, i, k int) error {
	for end := i + k; i < end; i++ {
		got, err := recv(ctx, b.wire)
		if err == nil {
			err = same("sent", i, got, of(i))
		}
		if err != nil {
			return fmt.Errorf("before frame %d: %w; %+v", i, err, b.mac.Tx(0).Stats())
		}
	}
	return nil
}

// send sends all of a batch, which the driver frees.
func send(ctx context.Context, m *stmmac.MAC, batch []*pagepool.Buf) error {
	for len(batch) > 0 {
		n, err := m.Tx(0).Send(batch)
		batch = batch[n:]
		if err == nil && n == 0 {
			err = m.Tx(0).Wait(ctx)
		}
		if err != nil {
			m.Pool().FreeBatch(batch)
			return err
		}
	}
	return nil
}

// recv takes a frame of the tests off the wire. Those that the driver tries its MAC with
// when it is opened are let go: the model has no loopback.
func recv(ctx context.Context, w *qtest.Wire) ([]byte, error) {
	for {
		f, err := w.Recv(ctx)
		if err != nil || len(f) >= 14 && f[12] == 0x88 && f[13] == 0xb5 {
			return f, err
		}
	}
}

// receive puts frames on the wire and compares what the driver gives out.
func receive(ctx context.Context, b *board) error {
	for i := 0; i < b.n; {
		k := min(window, b.n-i)
		for j := range k {
			if err := b.wire.Send(ctx, b.frame(i+j)); err != nil {
				return err
			}
		}
		for end := i + k; i < end; {
			n, err := take(ctx, b.mac, func(f *pagepool.Buf) error {
				p := make([]byte, f.FrameLen())
				f.CopyTo(p)
				err := b.check("received", i, p)
				i++
				return err
			})
			if err != nil {
				return fmt.Errorf("after %d frames, %d of the last batch: %w; %+v", i, n, err, b.mac.Rx(0).Stats())
			}
		}
	}
	return nil
}

// take waits for frames, shows them and frees them.
func take(ctx context.Context, m *stmmac.MAC, show func(*pagepool.Buf) error) (int, error) {
	var bufs [window]*pagepool.Buf
	n := m.Rx(0).Recv(bufs[:])
	if n == 0 {
		return 0, m.Rx(0).Wait(ctx)
	}
	defer m.Pool().FreeBatch(bufs[:n])
	for _, f := range bufs[:n] {
		if err := show(f); err != nil {
			return n, err
		}
	}
	return n, nil
}

// echo puts frames on the wire, sends back what the driver gives out in the buffers
// that it came in, and compares what comes out.
func echo(ctx context.Context, b *board) error { return exchange(ctx, b, b.n) }

func exchange(ctx context.Context, b *board, total int) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		var bufs [window]*pagepool.Buf
		for back := 0; back < total; {
			n := b.mac.Rx(0).Recv(bufs[:])
			back += n
			var err error
			if n > 0 {
				err = send(ctx, b.mac, bufs[:n])
			} else {
				err = b.mac.Rx(0).Wait(ctx)
			}
			if err != nil {
				cancel(err)
				return
			}
		}
	}()
	defer func() { <-ended }()
	defer cancel(nil)
	// Of long frames fewer are on their way: each takes several descriptors.
	ahead := max(1, min(window, b.slots/2/(b.mac.MTU()/descriptor+1)))
	for sent, got := 0, 0; got < total; got++ {
		for ; sent < min(total, got+ahead); sent++ {
			if err := b.wire.Send(ctx, b.frame(sent)); err != nil {
				return err
			}
		}
		f, err := recv(ctx, b.wire)
		if err != nil {
			return fmt.Errorf("after %d frames: %w; %+v", got, context.Cause(ctx), b.mac.Rx(0).Stats())
		}
		if err := b.check("echoed", got, f); err != nil {
			return err
		}
	}
	return nil
}
