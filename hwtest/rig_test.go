//go:build hwtest

package hwtest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/gostmmac/gostmmac/hwtest/peer"
	"github.com/gostmmac/gostmmac/pagepool"
	"github.com/gostmmac/gostmmac/stmmac"
)

// Bounds in time. They only decide how long a test that fails takes.
const (
	patience     = 20 * time.Second // for a frame that must come
	linkPatience = 10 * time.Second
	phyPoll      = 50 * time.Millisecond
)

// rig is what a test has in its hands: the MAC of the device and its peer.
type rig struct {
	*testing.T
	env *environment
	*shared

	mac    *stmmac.MAC
	tx     int // the queue that emit sends on
	window int // frames under way at once
	// lockstep keeps the mark behind frames back until they have arrived.
	lockstep bool
	in       chan received // what the receive queues had, of the stations of the test
	seq      uint64

	stop  context.CancelFunc
	pumps sync.WaitGroup
	load  *load // the last one
}

// shared is what the subtests of a test have in common.
type shared struct {
	figures map[string]any
	reason  string // of the first failure
}

// received is a frame that a receive queue had.
type received struct {
	queue int
	data  []byte
	meta  pagepool.Meta
}

// Errorf is that of testing.T and keeps the first reason for the report.
func (r *rig) Errorf(format string, args ...any) {
	r.Helper()
	r.note(fmt.Sprintf(format, args...))
	r.T.Errorf(format, args...)
}

// Fatalf is that of testing.T and keeps the first reason for the report.
func (r *rig) Fatalf(format string, args ...any) {
	r.Helper()
	r.note(fmt.Sprintf(format, args...))
	r.T.Fatalf(format, args...)
}

// skip skips the test for something that it found missing.
func (r *rig) skip(reason string) {
	r.Helper()
	r.reason = reason
	r.T.Skip(reason)
}

func (r *rig) note(text string) {
	if r.reason == "" {
		r.reason = text
	}
}

// must fails the test on an error.
func (r *rig) must(err error) {
	r.Helper()
	if err != nil {
		r.Fatalf("%v", err)
	}
}

// sub runs a subtest on the same MAC, or on its own if it opens one.
func (r *rig) sub(name string, f func(r *rig)) {
	r.Run(name, func(t *testing.T) {
		s := &rig{T: t, env: r.env, shared: r.shared, mac: r.mac, tx: r.tx, window: r.window, in: r.in, seq: r.seq, lockstep: r.lockstep}
		if s.mac == nil {
			defer s.close()
		}
		f(s)
		r.seq = s.seq
	})
	r.must(context.Cause(r.env.ctx))
}

// open opens the MAC, attaches the peer, waits for the link and starts to receive.
func (r *rig) open(opts ...stmmac.Option) {
	r.Helper()
	r.openMAC(opts...)
	r.pump(false)
}

// openMAC is open without receiving: what arrives stays on the queues.
func (r *rig) openMAC(opts ...stmmac.Option) {
	r.Helper()
	if !r.env.peer.Can(peer.Separate) {
		opts = append([]stmmac.Option{stmmac.WithPromiscuous()}, opts...) // what it sends is for another station
	}
	m, err := stmmac.Open(r.env.ctx, r.env.handle.Device, r.env.options(opts...)...)
	r.must(err)
	r.mac, r.window, r.tx = m, 16, 0
	r.must(r.env.peer.Attach(r.env.ctx, m))
	r.link()
}

// link waits for the link, where there is one, and for that of the peer.
func (r *rig) link() {
	r.Helper()
	if r.env.hasLink && !awaitLink(r.env.ctx, r.mac, linkPatience) {
		r.Fatalf("the link does not come up: %s", r.mac.LinkReason())
	}
	if l, ok := r.env.peer.(peer.Linked); ok {
		ctx, cancel := context.WithTimeout(r.env.ctx, linkPatience)
		defer cancel()
		var mode stmmac.LinkModes
		if r.env.phy {
			mode = r.mac.Link().Mode()
		}
		r.must(l.AwaitLink(ctx, mode))
	}
}

// awaitLink waits for the link and says whether it came.
func awaitLink(ctx context.Context, m *stmmac.MAC, limit time.Duration) bool {
	return awaitLinkThat(ctx, m, limit, func(l stmmac.Link) bool { return l.Up })
}

func awaitLinkThat(ctx context.Context, m *stmmac.MAC, limit time.Duration, ok func(stmmac.Link) bool) bool {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	for l := range m.Links(ctx) {
		if ok(l) {
			return true
		}
	}
	return false
}

// pump moves what the receive queues have to r.in, by interrupts or by polling.
func (r *rig) pump(poll bool) {
	ctx, stop := context.WithCancel(r.env.ctx)
	m, in := r.mac, make(chan received, 8192)
	r.stop, r.in = stop, in
	rx, _ := m.NumQueues()
	for q := range rx {
		r.pumps.Go(func() { pumpQueue(ctx, m, q, in, poll) })
	}
}

func pumpQueue(ctx context.Context, m *stmmac.MAC, q int, in chan<- received, poll bool) {
	bufs := make([]*pagepool.Buf, 64)
	for ctx.Err() == nil {
		n := m.Rx(q).Recv(bufs)
		for _, b := range bufs[:n] {
			f := make([]byte, b.FrameLen())
			b.CopyTo(f)
			if !ours(f) {
				continue
			}
			select {
			case in <- received{q, f, b.Meta}:
			case <-ctx.Done():
			}
		}
		m.Pool().FreeBatch(bufs[:n])
		switch {
		case n > 0:
		case poll:
			time.Sleep(20 * time.Microsecond)
			if m.Err() != nil {
				return
			}
		case m.Rx(q).Wait(ctx) != nil:
			return // the sender finds the reason
		}
	}
}

// ours says whether a frame is of one of the two stations, or of those of the filters.
func ours(f []byte) bool {
	if len(f) < headerLen {
		return false
	}
	src := f[6:12]
	return bytes.Equal(src, peer.DeviceAddr()) || bytes.Equal(src, peer.PeerAddr()) || bytes.Equal(src[:4], station(0)[:4])
}

// close closes the MAC and looks for what was left behind.
func (r *rig) close() {
	r.Helper()
	if r.stop != nil {
		r.stop()
	}
	if r.mac == nil {
		return
	}
	if r.load != nil {
		r.load.abort() // of a test that failed: the next ones must not see its frames
		r.load = nil
	}
	if err := r.mac.Err(); err != nil {
		r.Errorf("the MAC failed: %v", err)
	}
	r.pumps.Wait() // they hold buffers
	err := r.mac.Close()
	if err != nil {
		r.Errorf("close: %v", err)
	}
	r.mac, r.stop = nil, nil
	for _, err := range r.env.audit() {
		r.Errorf("%v", err)
	}
}

// next is a new number for a frame.
func (r *rig) next() uint64 { r.seq++; return r.seq }

// deliver makes the peer send frames and returns those of them that arrive, or an
// error when the marks behind them do not.
func (r *rig) tryDeliver(frames ...[]byte) (got []received, err error) {
	for chunk := range slices.Chunk(frames, r.window) {
		m := mark(peer.DeviceAddr(), peer.PeerAddr(), r.next())
		if r.lockstep {
			err = r.env.peer.Send(r.env.ctx, chunk...)
			for i := 0; err == nil && i < len(chunk); i++ {
				var f received
				if f, err = r.recv(); err == nil {
					got = append(got, f)
				}
			}
			chunk = nil
		}
		if err == nil {
			err = r.env.peer.Send(r.env.ctx, append(slices.Clone(chunk), m)...)
		}
		if err != nil {
			return got, err
		}
		for {
			f, err := r.recv()
			if err != nil {
				return got, err
			}
			if bytes.Equal(f.data, m) {
				break
			}
			if !isMark(f.data) {
				got = append(got, f)
			}
		}
	}
	return got, nil
}

func (r *rig) deliver(frames ...[]byte) []received {
	r.Helper()
	got, err := r.tryDeliver(frames...)
	r.must(err)
	return got
}

// recv waits for the next frame of the two stations at the device.
func (r *rig) recv() (received, error) {
	timeout := time.NewTimer(patience)
	defer timeout.Stop()
	select {
	case f := <-r.in:
		return f, nil
	case <-r.env.ctx.Done():
		return received{}, context.Cause(r.env.ctx)
	case <-timeout.C:
		return received{}, errors.Join(fmt.Errorf("no frame arrived at the device within %v (%v)", patience, r.mac.Link()), r.mac.Err())
	}
}

// tryEmit makes the device send frames and returns those of them that the peer gets.
func (r *rig) tryEmit(frames ...[]byte) (got [][]byte, err error) {
	for chunk := range slices.Chunk(frames, r.window) {
		var bufs []*pagepool.Buf
		for _, f := range chunk {
			b, err := r.mac.Pool().AllocFrame(f, 0)
			if err != nil {
				r.mac.Pool().FreeBatch(bufs)
				return got, err
			}
			bufs = append(bufs, b)
		}
		more, err := r.tryEmitBufs(bufs)
		got = append(got, more...)
		if err != nil {
			return got, err
		}
	}
	return got, nil
}

func (r *rig) emit(frames ...[]byte) [][]byte {
	r.Helper()
	got, err := r.tryEmit(frames...)
	r.must(err)
	return got
}

// tryEmitBufs sends buffers and a mark, and returns what the peer gets before it.
func (r *rig) tryEmitBufs(bufs []*pagepool.Buf) (got [][]byte, err error) {
	m := mark(peer.PeerAddr(), peer.DeviceAddr(), r.next())
	b, err := r.mac.Pool().AllocFrame(m, 0)
	if err != nil {
		r.mac.Pool().FreeBatch(bufs)
		return nil, err
	}
	if err := r.send(r.tx, append(bufs, b)); err != nil {
		return nil, err
	}
	for {
		f, err := r.peerRecv()
		if err != nil || bytes.Equal(f, m) {
			return got, err
		}
		if !isMark(f) {
			got = append(got, f)
		}
	}
}

func (r *rig) emitBufs(bufs ...*pagepool.Buf) [][]byte {
	r.Helper()
	got, err := r.tryEmitBufs(bufs)
	r.must(err)
	return got
}

// send sends all buffers, and waits for room.
func (r *rig) send(q int, bufs []*pagepool.Buf) error {
	tx := r.mac.Tx(q).Shared()
	ctx, cancel := context.WithTimeout(r.env.ctx, patience)
	defer cancel()
	for {
		n, err := tx.Send(bufs)
		bufs = bufs[n:]
		if len(bufs) == 0 {
			return nil
		}
		if err == nil {
			err = tx.Wait(ctx)
		}
		if err != nil {
			r.mac.Pool().FreeBatch(bufs)
			return err
		}
		tx.Reap(nil)
	}
}

// peerRecv waits for the next frame of the device at the peer.
func (r *rig) peerRecv() ([]byte, error) {
	if !r.env.peer.Can(peer.Separate) {
		f, err := r.recv()
		return f.data, err
	}
	ctx, cancel := context.WithTimeout(r.env.ctx, patience)
	defer cancel()
	for {
		f, err := r.env.peer.Recv(ctx)
		if err != nil {
			return nil, fmt.Errorf("no frame of the device arrived at the peer: %w", errors.Join(err, r.mac.Err()))
		}
		if len(f) >= 14 && bytes.Equal(f[6:12], peer.DeviceAddr()) {
			return f, nil
		}
	}
}

// chain is a frame in buffers of at most each bytes, or with 0 of as many as fit.
func (r *rig) chain(f []byte, each int) *pagepool.Buf {
	r.Helper()
	b, err := r.mac.Pool().AllocFrame(f, each)
	r.must(err)
	return b
}

// same fails unless the frames that came are those that were sent, in their order.
func (r *rig) same(what string, got, want [][]byte) {
	r.Helper()
	if err := compare(got, want); err != nil {
		r.Fatalf("%s: %v", what, err)
	}
}

// datas are the bytes of received frames.
func datas(l []received) (out [][]byte) {
	for _, f := range l {
		out = append(out, f.data)
	}
	return out
}

// bothWays sends frames of sizes in each direction and compares what comes.
func (r *rig) bothWays(sizes ...int) {
	r.Helper()
	var to, from [][]byte
	for _, n := range sizes {
		to = append(to, frame(peer.PeerAddr(), peer.DeviceAddr(), n, r.next()))
		from = append(from, frame(peer.DeviceAddr(), peer.PeerAddr(), n, r.next()))
	}
	r.same("from the device", r.emit(to...), to)
	r.same("to the device", datas(r.deliver(from...)), from)
	r.figure("frames", len(to)+len(from))
}

// figure adds to a figure of the report.
func (r *rig) figure(name string, n int) {
	old, _ := r.figures[name].(int)
	r.figures[name] = old + n
}

// scale is n in a long run and less of it otherwise.
func (r *rig) scale(long, short int) int {
	if r.env.long {
		return long
	}
	return short
}

// sample are the numbers from lo to hi: all of them in a long run, with a step
// otherwise, and always both ends.
func (r *rig) sample(lo, hi, step int) (out []int) {
	if r.env.long {
		step = 1
	}
	for n := lo; n < hi; n += step {
		out = append(out, n)
	}
	return append(out, hi)
}
