//go:build hwtest

package hwtest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/gostmmac/gostmmac/hwtest/peer"
	"github.com/gostmmac/gostmmac/pagepool"
)

// load is traffic in both directions from which frames may be lost, while something
// is changed, and of which none may arrive changed.
type load struct {
	r    *rig
	stop context.CancelFunc
	all  sync.WaitGroup

	mu       sync.Mutex // guards what follows
	errs     []error
	arrived  int
	returned int // at the peer
}

// startLoad starts the traffic.
func startLoad(r *rig) *load {
	ctx, stop := context.WithCancel(r.env.ctx)
	l := &load{r: r, stop: stop}
	r.load = l
	first := r.seq
	r.seq += 1 << 20
	l.all.Go(func() { l.fromDevice(ctx, first) })
	l.all.Go(func() { l.atDevice(ctx) })
	if r.env.peer.Can(peer.Separate) {
		l.all.Go(func() { l.fromPeer(ctx, first+1<<19) })
		l.all.Go(func() { l.atPeer(ctx) })
	}
	return l
}

// loadSize is the size of a frame of the load by its number.
func loadSize(seq uint64) int { return shortest + int(seq*97%1455) }

func (l *load) fail(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.errs = append(l.errs, err)
}

// loadPause is between frames, so that a slow receiver is not flooded.
const loadPause = 100 * time.Microsecond

func (l *load) fromDevice(ctx context.Context, seq uint64) {
	m := l.r.mac
	tx := m.Tx(0).Shared()
	for ; ctx.Err() == nil; time.Sleep(loadPause) {
		seq++
		b, err := m.Pool().AllocFrame(frame(peer.PeerAddr(), peer.DeviceAddr(), loadSize(seq), seq), 0)
		if errors.Is(err, pagepool.ErrEmpty) {
			tx.Reap(nil)
			continue
		}
		n := 0
		if err == nil {
			n, err = tx.Send([]*pagepool.Buf{b})
		}
		if n == 0 && b != nil {
			m.Pool().Free(b)
			tx.Reap(nil)
		}
		if err != nil {
			l.fail(fmt.Errorf("send: %w", err))
			return
		}
	}
}

func (l *load) atDevice(ctx context.Context) {
	for {
		select {
		case f := <-l.r.in:
			l.arrive(f.data, &l.arrived)
		case <-ctx.Done():
			return
		}
	}
}

func (l *load) fromPeer(ctx context.Context, seq uint64) {
	for ; ctx.Err() == nil; time.Sleep(loadPause) {
		seq++
		err := l.r.env.peer.Send(ctx, frame(peer.DeviceAddr(), peer.PeerAddr(), loadSize(seq), seq))
		if err != nil && ctx.Err() == nil {
			l.fail(err)
			return
		}
	}
}

func (l *load) atPeer(ctx context.Context) {
	for ctx.Err() == nil {
		f, err := l.r.env.peer.Recv(ctx)
		switch {
		case err == nil && ours(f):
			l.arrive(f, &l.returned)
		case err != nil && ctx.Err() == nil:
			l.fail(err)
			return
		}
	}
}

func (l *load) arrive(f []byte, n *int) {
	var err error
	if !isMark(f) {
		err = checkFrame(f)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	*n++
	if err != nil {
		l.errs = append(l.errs, err)
	}
}

// flows waits until some more frames have arrived at each end that receives.
func (l *load) flows() {
	l.r.Helper()
	const some = 20
	count := func() (int, int) {
		l.mu.Lock()
		defer l.mu.Unlock()
		return l.arrived, l.returned
	}
	a, b := count()
	for end := time.Now().Add(patience); ; time.Sleep(time.Millisecond) {
		a2, b2 := count()
		if a2 >= a+some && (b2 >= b+some || !l.r.env.peer.Can(peer.Separate)) {
			return
		}
		if time.Now().After(end) {
			l.stop()
			l.r.Fatalf("within %v %d frames arrived at the device and %d at the peer: %v", patience, a2-a, b2-b, l.r.mac.Err())
		}
		l.r.must(context.Cause(l.r.env.ctx))
	}
}

// end ends the traffic and waits until what is left of it has arrived.
func (l *load) end() {
	l.r.Helper()
	l.abort()
	for i, err := range l.errs {
		if i < 3 {
			l.r.Errorf("under load: %v", err)
		}
	}
	l.r.figure("frames", l.arrived+l.returned)
	l.r.flush()
}

// abort ends the traffic.
func (l *load) abort() {
	l.stop()
	l.all.Wait()
}

// flush takes what is left on the wire, up to a mark each way.
func (r *rig) flush() {
	r.Helper()
	r.deliver(frame(peer.DeviceAddr(), peer.PeerAddr(), shortest, r.next()))
	r.emit(frame(peer.PeerAddr(), peer.DeviceAddr(), shortest, r.next()))
}
