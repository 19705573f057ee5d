//go:build hwtest

package hwtest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"

	"github.com/gostmmac/gostmmac/hwtest/peer"
	"github.com/gostmmac/gostmmac/pagepool"
	"github.com/gostmmac/gostmmac/stmmac"
)

func frameTests() []test {
	return []test{
		{"frames/sizes", nil, frameSizes},
		{"frames/short", []need{modelled(padding)}, framesShort},
		{"frames/tagged-sizes", []need{can(peer.Tags)}, framesTagged},
		{"frames/burst", nil, framesBurst},
		{"frames/multi-buffer-send", nil, framesGather},
		{"frames/multi-buffer-receive", nil, framesScatter},
		{"frames/refused", nil, framesRefused},
		{"frames/completions", nil, framesCompletions},
		{"frames/both-ways", []need{can(peer.Separate)}, framesBothWays},
		{"frames/echo", []need{can(peer.Separate)}, framesEcho},
	}
}

// frameSizes sends frames of every size up to that of a frame with a tag, if the peer sends
// such without one.
func frameSizes(r *rig) {
	r.open()
	for _, n := range r.sample(shortest, min(1514+4, r.env.peer.MTU()+headerLen), 53) {
		r.sub(strconv.Itoa(n), func(r *rig) { r.bothWays(n, n) })
	}
}

// framesShort sends what the device has to pad.
func framesShort(r *rig) {
	r.open()
	for _, n := range r.sample(24, shortest-1, 7) {
		f := frame(peer.PeerAddr(), peer.DeviceAddr(), n, r.next())
		r.same(fmt.Sprint(n, " bytes"), r.emit(f), [][]byte{peer.Padded(f)})
	}
	// What has no payload at all.
	f := frame(peer.PeerAddr(), peer.DeviceAddr(), 24, r.next())[:headerLen]
	r.same("a header", r.emit(f), [][]byte{peer.Padded(f)})
}

// framesTagged sends frames with one and two tags in their bytes.
func framesTagged(r *rig) {
	r.open()
	for _, n := range r.sample(shortest, 1514, 181) {
		one := tagged(frame(peer.PeerAddr(), peer.DeviceAddr(), n, r.next()), typeVLAN, 0x6123)
		two := tagged(one, typeSVLAN, 0x2007)
		if n > 1510 {
			two = one
		}
		r.same("from the device", r.emit(one, two), [][]byte{one, two})
		one = tagged(frame(peer.DeviceAddr(), peer.PeerAddr(), n, r.next()), typeVLAN, 0x6123)
		r.same("to the device", datas(r.deliver(one)), [][]byte{one})
	}
}

// framesBurst sends many frames in one call.
func framesBurst(r *rig) {
	r.open()
	for range r.scale(100, 5) {
		var want [][]byte
		var bufs []*pagepool.Buf
		for i := range 64 {
			f := frame(peer.PeerAddr(), peer.DeviceAddr(), shortest+i*5, r.next())
			want, bufs = append(want, f), append(bufs, r.chain(f, 0))
		}
		r.same("a burst", r.emitBufs(bufs...), want)
		r.figure("frames", len(want))
	}
}

// framesGather sends frames in many buffers, also of one byte.
func framesGather(r *rig) {
	r.open()
	for _, each := range []int{1, 2, 3, 7, 8, 64, 65, 256, 1000} {
		r.sub(strconv.Itoa(each), func(r *rig) {
			for _, n := range []int{shortest, 61, 64, 65, 500, 1514} {
				if n/each > 200 {
					continue
				}
				f := frame(peer.PeerAddr(), peer.DeviceAddr(), n, r.next())
				r.same(fmt.Sprint(n, " bytes"), r.emitBufs(r.chain(f, each)), [][]byte{f})
			}
		})
	}
}

// framesScatter receives frames in several buffers each.
func framesScatter(r *rig) {
	for _, size := range []int{256, 512, 1024} {
		r.sub(strconv.Itoa(size), func(r *rig) {
			r.open(stmmac.WithBufSize(size))
			lay := r.mac.Rx(0).Layout()
			if lay.First >= lay.MaxFrame {
				r.Errorf("frames of MTU %d are to fit into a buffer of %d bytes: %+v", r.mac.MTU(), size, lay)
			}
			for _, n := range r.sample(shortest, 1514, 97) {
				f := frame(peer.DeviceAddr(), peer.PeerAddr(), n, r.next())
				r.same(fmt.Sprint(n, " bytes"), datas(r.deliver(f)), [][]byte{f})
			}
			// Those that end with a buffer or just behind it.
			for k := range 3 {
				for d := -9; d <= 9; d++ {
					n := lay.First + k*lay.Size + d
					if n < shortest || n > 1514 {
						continue
					}
					f := frame(peer.DeviceAddr(), peer.PeerAddr(), n, r.next())
					r.same(fmt.Sprint(n, " bytes"), datas(r.deliver(f)), [][]byte{f})
				}
			}
		})
	}
}

// framesRefused offers what can never be sent: it stays with the caller, and the
// queue goes on.
func framesRefused(r *rig) {
	r.open()
	pool := r.mac.Pool()
	for _, c := range []struct {
		what string
		n    int
		want error
	}{{"too long", 1514 + 9, stmmac.ErrFrameTooLong}, {"too short", headerLen - 1, stmmac.ErrFrameTooShort}} {
		b := r.chain(make([]byte, c.n), 0)
		if n, err := r.mac.Tx(0).Shared().Send([]*pagepool.Buf{b}); n != 0 || !errors.Is(err, c.want) {
			r.Errorf("a frame that is %s: %d were taken, %v", c.what, n, err)
		}
		pool.Free(b)
	}
	b := r.chain(make([]byte, shortest), 0)
	pool.Free(b)
	if n, err := r.mac.Tx(0).Shared().Send([]*pagepool.Buf{b}); n != 0 || !errors.Is(err, stmmac.ErrNotHeld) {
		r.Errorf("a buffer that is free: %d were taken, %v", n, err)
	}
	r.bothWays(shortest)
}

// framesCompletions takes every frame back that was sent, once.
func framesCompletions(r *rig) {
	r.open(stmmac.WithTxCompletions(), stmmac.WithRings(64, 64))
	const rounds = 10
	tx, back := r.mac.Tx(0).Shared(), make([]*pagepool.Buf, 64)
	for round := range rounds {
		want := map[uint64]bool{}
		for i := range 16 {
			b := r.chain(frame(peer.PeerAddr(), peer.DeviceAddr(), shortest+i, r.next()), 0)
			b.Cookie = uint64(round*100 + i)
			want[b.Cookie] = true
			n, err := tx.Send([]*pagepool.Buf{b})
			r.must(err)
			if n != 1 {
				r.Fatalf("a ring of 64 has no room for 16")
			}
		}
		for len(want) > 0 {
			n := tx.Reap(back)
			for _, b := range back[:n] {
				if !want[b.Cookie] {
					r.Fatalf("frame %d came back twice, or was not sent", b.Cookie)
				}
				delete(want, b.Cookie)
			}
			r.mac.Pool().FreeBatch(back[:n])
			if n == 0 {
				r.must(tx.Wait(r.env.ctx))
			}
		}
		for range 16 { // and they have left
			_, err := r.peerRecv()
			r.must(err)
		}
	}
}

// framesBothWays sends in both directions at once and compares content and order.
func framesBothWays(r *rig) {
	r.open()
	n := r.scale(10000, 1000)
	var to, from [][]byte
	for i := range n {
		size := shortest + i*131%1455
		to = append(to, frame(peer.PeerAddr(), peer.DeviceAddr(), size, uint64(i)))
		from = append(from, frame(peer.DeviceAddr(), peer.PeerAddr(), size, uint64(n+i)))
	}
	// Each direction has numbers of its own for its marks.
	out := &rig{T: r.T, env: r.env, shared: r.shared, mac: r.mac, window: r.window, seq: 1 << 32}
	var left [][]byte
	var errOut error
	var wait sync.WaitGroup
	wait.Go(func() { left, errOut = out.tryEmit(to...) })
	got, errIn := r.tryDeliver(from...)
	wait.Wait()
	r.must(errors.Join(errOut, errIn))
	r.same("from the device", left, to)
	r.same("to the device", datas(got), from)
	r.figure("frames", 2*n)
}

// framesEcho has the peer send every frame back, and compares what comes.
func framesEcho(r *rig) {
	r.open()
	ctx, stop := context.WithCancel(r.env.ctx)
	var echo sync.WaitGroup
	defer func() { stop(); echo.Wait() }()
	e, itself := r.env.peer.(peer.Echoer)
	if itself {
		r.must(e.Echo(ctx, true))
		defer func() { r.must(e.Echo(r.env.ctx, false)) }()
	} else {
		echo.Go(func() { sendBack(ctx, r.env.peer) })
	}
	for i := range r.scale(10000, 500) {
		f := frame(peer.PeerAddr(), peer.DeviceAddr(), shortest+i*131%1455, r.next())
		r.must(r.send(0, []*pagepool.Buf{r.chain(f, 0)}))
		got, err := r.recv()
		r.must(err)
		back := bytes.Clone(f)
		copy(back, f[6:12])
		copy(back[6:], f[:6])
		r.same("the echo", [][]byte{got.data}, [][]byte{back})
		r.figure("frames", 2)
	}
	if p, ok := r.env.peer.(*peer.Remote); ok {
		c, err := p.Counts(ctx)
		r.must(err)
		r.figures["remote"] = c
	}
}

// sendBack sends the frames of the device back, with their addresses swapped.
func sendBack(ctx context.Context, p peer.Peer) {
	for {
		f, err := p.Recv(ctx)
		if err != nil {
			return // the test finds that nothing comes back
		}
		if !bytes.Equal(f[6:12], peer.DeviceAddr()) {
			continue
		}
		copy(f[6:12], f[:6])
		copy(f, peer.DeviceAddr())
		if p.Send(ctx, f) != nil {
			return
		}
	}
}
