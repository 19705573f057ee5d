//go:build hwtest

package hwtest

import (
	"errors"
	"fmt"
	"os"
	"strconv"

	"github.com/gostmmac/gostmmac/hwtest/peer"
	"github.com/gostmmac/gostmmac/pagepool"
	"github.com/gostmmac/gostmmac/stmmac"
)

func ringTests() []test {
	return []test{
		{"rings/sizes", nil, ringSizes},
		{"rings/mixed", nil, ringsMixed},
		{"rings/resize", nil, ringResize},
		{"rings/resize-under-load", nil, ringResizeLoad},
		{"rings/full", nil, ringFull},
		{"rings/starved", []need{can(peer.Separate)}, ringStarved},
		{"rings/refused", nil, ringsRefused},
	}
}

// ringOf are the sizes of rings that are tried.
func ringsOf(r *rig) []int {
	if r.env.long {
		return r.sample(2, 1024, 1)
	}
	return []int{2, 3, 4, 5, 7, 8, 9, 16, 31, 64, 255, 256, 511, 512, 1023, 1024}
}

// ringSizes opens the MAC with rings of each size and goes around them: a ring of n
// wraps behind n descriptors.
func ringSizes(r *rig) {
	for _, n := range ringsOf(r) {
		r.sub(strconv.Itoa(n), func(r *rig) {
			r.open(stmmac.WithRings(n, n))
			r.around(n)
		})
	}
}

// around sends more frames than rings of n descriptors have, both ways.
func (r *rig) around(n int) {
	r.Helper()
	// What a ring has no room for waits in the FIFO, which has little.
	r.window = min(16, max(1, n-2))
	const frameAndMark = 2
	r.lockstep = n <= frameAndMark && r.env.lacks(fifo)
	var sizes []int
	for i := range n + n/2 + 5 {
		sizes = append(sizes, shortest+i%37)
	}
	r.bothWays(sizes...)
}

// ringsMixed has a large ring beside a small one.
func ringsMixed(r *rig) {
	for _, c := range [][2]int{{2, 1024}, {1024, 2}, {3, 64}, {100, 7}} {
		r.sub(fmt.Sprintf("%d-%d", c[0], c[1]), func(r *rig) {
			r.open(stmmac.WithRings(c[0], c[1]))
			r.around(min(c[0], c[1]))
		})
	}
}

// ringResize changes the rings of a MAC that runs.
func ringResize(r *rig) {
	r.open()
	for _, c := range [][2]int{{2, 2}, {1024, 1024}, {17, 100}, {512, 512}} {
		r.must(r.mac.SetRings(r.env.ctx, c[0], c[1]))
		r.link()
		r.around(min(c[0], c[1], 64))
	}
}

// ringResizeLoad changes them while frames are under way.
func ringResizeLoad(r *rig) {
	r.open()
	l := startLoad(r)
	for i := range r.scale(100, 8) {
		n := []int{64, 512, 16, 1024}[i%4]
		r.must(r.mac.SetRings(r.env.ctx, n, n))
		r.link()
		l.flows()
		r.figure("changes", 1)
	}
	l.end()
	r.bothWays(shortest, 1514)
}

// ringFull sends more than the ring has room for: the rest stays with the caller.
func ringFull(r *rig) {
	const ring = 16
	r.open(stmmac.WithRings(512, ring))
	var bufs []*pagepool.Buf
	var want [][]byte
	for range 2 * ring {
		f := frame(peer.PeerAddr(), peer.DeviceAddr(), 1514, r.next())
		want, bufs = append(want, f), append(bufs, r.chain(f, 0))
	}
	tx := r.mac.Tx(0).Shared()
	room := tx.Space()
	if room < ring-1 || room > ring {
		r.Errorf("a ring of %d has room for %d", ring, room)
	}
	n, err := tx.Send(bufs)
	r.must(err)
	if n != room {
		r.Errorf("a ring with room for %d took %d frames", room, n)
	}
	r.must(r.send(0, bufs[n:]))
	var got [][]byte
	for range want {
		f, err := r.peerRecv()
		r.must(err)
		got = append(got, f)
	}
	r.same("from the device", got, want)
}

// ringStarved takes all buffers away until the ring is empty, and gives them back:
// the queue goes on.
func ringStarved(r *rig) {
	const ring = 8
	pool, err := pagepool.New(r.env.handle.Device, 2*ring+8)
	r.must(err)
	defer func() {
		r.close()
		if err := pool.Close(); err != nil {
			r.Errorf("%v", err)
		}
	}()
	r.openMAC(stmmac.WithRings(ring, ring), stmmac.WithPool(pool), stmmac.WithConfig(func(c *stmmac.Config) { c.SelfTest = false }))
	var taken []*pagepool.Buf
	for {
		b, err := pool.Alloc()
		if errors.Is(err, pagepool.ErrEmpty) {
			break
		}
		r.must(err)
		taken = append(taken, b)
	}
	var sent [][]byte
	for range ring - 1 { // as many as the ring has room for
		sent = append(sent, frame(peer.DeviceAddr(), peer.PeerAddr(), shortest, r.next()))
	}
	r.must(r.env.peer.Send(r.env.ctx, sent...))
	var held []*pagepool.Buf
	bufs := make([]*pagepool.Buf, ring)
	rx := r.mac.Rx(0)
	for len(held) < len(sent) {
		n := rx.Recv(bufs)
		for _, b := range bufs[:n] {
			if ours(b.Bytes()) {
				held = append(held, b)
			} else {
				taken = append(taken, b)
			}
		}
		if n == 0 {
			r.must(rx.Wait(r.env.ctx))
		}
	}
	var got [][]byte
	for _, b := range held {
		got = append(got, append([]byte(nil), b.Bytes()...))
	}
	r.same("before", got, sent)
	pool.FreeBatch(held)
	pool.FreeBatch(taken)
	if r.env.lacks(fifo) { // nothing waits until the ring has buffers
		pool.FreeBatch(bufs[:rx.Recv(bufs)])
	}
	r.pump(false)
	var more [][]byte
	for range 5 * ring {
		more = append(more, frame(peer.DeviceAddr(), peer.PeerAddr(), shortest, r.next()))
	}
	r.window = 4
	r.same("behind", datas(r.deliver(more...)), more)
	r.figures["no_buffer"] = rx.Stats().NoBuffer
}

// ringsRefused asks for rings that there are not.
func ringsRefused(r *rig) {
	r.open()
	for _, c := range [][2]int{{1, 64}, {64, 1}, {1025, 64}, {64, 1025}, {0, 0}} {
		if err := r.mac.SetRings(r.env.ctx, c[0], c[1]); !errors.Is(err, os.ErrInvalid) {
			r.Errorf("rings of %d and %d: %v", c[0], c[1], err)
		}
	}
	r.bothWays(shortest)
}
