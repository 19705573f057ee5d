package stmmac_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/gostmmac/gostmmac/pagepool"
	"github.com/gostmmac/gostmmac/stmmac"
	"github.com/gostmmac/gostmmac/stmmac/sim"
)

// eachGMAC runs a test on a GMAC 3.x with a ring and with a chain of descriptors.
func eachGMAC(t *testing.T, c rigConfig, test func(r *rig)) {
	t.Helper()
	for _, g := range generations {
		if g.model() == sim.GMAC {
			t.Run(g.name, func(t *testing.T) { test(newRig(t, c)) })
		}
	}
}

// TestGMACFrames sends and receives frames of every size of MTU 1500, in order.
func TestGMACFrames(t *testing.T) {
	eachGMAC(t, rigConfig{opts: []stmmac.Option{stmmac.WithRings(32, 32)}}, func(r *rig) {
		var all [][]byte
		for n := 60; n <= 1514; n++ {
			all = append(all, frame(n, uint64(n)))
		}
		for f := all; len(f) > 0; {
			k := min(len(f), 20)
			r.wire.deliver(f[:k]...)
			r.same(r.recv(k), f[:k])
			r.send(f[:k]...)
			r.step()
			r.same(r.wire.take(), f[:k])
			f = f[k:]
		}
		r.settled()
	})
}

// TestGMACRings: rings of all small sizes wrap in both directions, with frames of
// one and of several buffers.
func TestGMACRings(t *testing.T) {
	for _, n := range []int{2, 3, 4, 5, 7, 8, 16, 64} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			eachGMAC(t, rigConfig{opts: []stmmac.Option{stmmac.WithRings(n, n)}}, func(r *rig) {
				for i := range 5 * n {
					f := frame(60+7*i%1400, uint64(i))
					r.wire.deliver(f)
					r.same(r.recv(1), [][]byte{f})
					each := len(f)
					if i%3 == 1 && n > 3 {
						each = len(f)/3 + 1
					}
					if k, err := r.mac.Tx(0).Send([]*pagepool.Buf{r.buf(f, each)}); k != 1 || err != nil {
						t.Fatalf("frame %d: %d, %v", i, k, err)
					}
					r.step()
					r.same(r.wire.take(), [][]byte{f})
				}
				r.settled()
			})
		})
	}
}

// TestGMACFull: a transmit ring takes as many frames as it has slots, since no tail
// names one, and then says that it is full; what it took leaves in order.
func TestGMACFull(t *testing.T) {
	eachGMAC(t, rigConfig{opts: []stmmac.Option{stmmac.WithRings(8, 8), stmmac.WithTxCompletions()}}, func(r *rig) {
		r.wire.blocked = true
		want := frames(8, 100, 1)
		var bufs []*pagepool.Buf
		for _, f := range append(want, frame(100, 9)) {
			bufs = append(bufs, r.buf(f, len(f)))
		}
		if n, err := r.mac.Tx(0).Send(bufs); n != 8 || err != nil {
			t.Fatalf("%d frames, %v", n, err)
		}
		r.pool.Free(bufs[8])
		r.wire.blocked = false
		r.wire.notify()
		r.step()
		r.same(r.wire.take(), want)
		done := make([]*pagepool.Buf, 16)
		if n := r.mac.Tx(0).Reap(done); n != 8 {
			t.Fatalf("%d frames are done", n)
		}
		r.pool.FreeBatch(done[:8])
		r.settled()
	})
}

// TestGMACJumbo: frames of 9,000 bytes lie in several descriptors, since the size of
// a buffer has eleven bits.
func TestGMACJumbo(t *testing.T) {
	c := rigConfig{sim: sim.Config{RxFIFO: 32768, TxFIFO: 32768}, opts: []stmmac.Option{stmmac.WithMTU(9000), stmmac.WithRings(16, 16)}}
	eachGMAC(t, c, func(r *rig) {
		for i, n := range []int{60, 1514, 1919, 1920, 1921, 3840, 5000, 9013, 9014, 60} {
			f := frame(n, uint64(i))
			r.wire.deliver(f)
			r.same(r.recv(1), [][]byte{f})
			if k, err := r.mac.Tx(0).Send([]*pagepool.Buf{r.buf(f, 1900)}); k != 1 || err != nil {
				t.Fatalf("%d bytes: %d, %v", n, k, err)
			}
			r.step()
			r.same(r.wire.take(), [][]byte{f})
		}
		r.recv(1) // and refills
		r.settled()
	})
}

// TestGMACReap: where no status tells what ends a frame, the buffers do.
func TestGMACReap(t *testing.T) {
	eachGMAC(t, rigConfig{opts: []stmmac.Option{stmmac.WithRings(16, 16), stmmac.WithTxCompletions()}}, func(r *rig) {
		for round := range 20 {
			var bufs []*pagepool.Buf
			var want [][]byte
			for i, each := range []int{1000, 300, 500, 1000} {
				f := frame(1000, uint64(round*4+i))
				want = append(want, f)
				bufs = append(bufs, r.buf(f, each))
			}
			if n, err := r.mac.Tx(0).Send(bufs); n != 4 || err != nil {
				t.Fatal(n, err)
			}
			r.step()
			r.same(r.wire.take(), want)
			done := make([]*pagepool.Buf, 8)
			n := r.mac.Tx(0).Reap(done)
			if n != 4 {
				t.Fatalf("%d frames are done", n)
			}
			var got [][]byte
			for _, b := range done[:n] {
				f := make([]byte, b.FrameLen())
				b.CopyTo(f)
				got = append(got, f)
			}
			r.same(got, want)
			r.pool.FreeBatch(done[:n])
		}
		r.settled()
	})
}

// TestGMACSelfTest: the engines for checksums work, and the self-test sees it.
func TestGMACSelfTest(t *testing.T) {
	c := rigConfig{sim: sim.Config{NoPHY: true}, opts: []stmmac.Option{stmmac.WithConfig(func(c *stmmac.Config) { c.SelfTest = true })}}
	eachGMAC(t, c, func(r *rig) {
		f := frame(60, 1)
		copy(f[12:], []byte{8, 0, 0x45, 0, 0, 46, 0, 1, 0, 0, 64, 17, 0, 0, 192, 0, 2, 1, 192, 0, 2, 2, 0x11, 0x11, 0x22, 0x22, 0, 26, 0, 0})
		b := r.buf(f, len(f))
		b.Flags |= pagepool.TxCsum
		if n, err := r.mac.Tx(0).Send([]*pagepool.Buf{b}); n != 1 || err != nil {
			t.Fatal(n, err)
		}
		r.step()
		sent := r.wire.take()
		if len(sent) != 1 || bytes.Equal(sent[0], f) {
			t.Fatalf("sent % x", sent)
		}
		if s := r.mac.Tx(0).Stats(); s.CsumDevice != 1 || s.CsumDriver != 0 {
			t.Errorf("%+v", s)
		}
		for _, want := range []pagepool.Flags{pagepool.RxCsumGood, pagepool.RxCsumBad} {
			r.wire.deliver(sent[0])
			r.step()
			got := make([]*pagepool.Buf, 1)
			if n := r.mac.Rx(0).Recv(got); n != 1 || got[0].Flags&(pagepool.RxCsumGood|pagepool.RxCsumBad) != want {
				t.Fatalf("%d frames, want verdict %#x", n, want)
			}
			r.pool.Free(got[0])
			sent[0][50] ^= 1
		}
	})
}

// TestGMACChange: the MTU, the rings, the address, the filter and the link change
// while the MAC is open.
func TestGMACChange(t *testing.T) {
	c := rigConfig{sim: sim.Config{RxFIFO: 32768, TxFIFO: 32768}}
	eachGMAC(t, c, func(r *rig) {
		both := func(n int) {
			t.Helper()
			f := frame(n, uint64(n))
			r.wire.deliver(f)
			r.same(r.recv(1), [][]byte{f})
			if k, err := r.mac.Tx(0).Send([]*pagepool.Buf{r.buf(f, 1900)}); k != 1 || err != nil {
				t.Fatal(k, err)
			}
			r.step()
			r.same(r.wire.take(), [][]byte{f})
		}
		both(1514)
		if err := r.mac.SetMTU(r.Context(), 9000); err != nil {
			t.Fatal(err)
		}
		both(9014)
		if err := r.mac.SetRings(r.Context(), 12, 20); err != nil {
			t.Fatal(err)
		}
		both(9014)
		if err := r.mac.SetMTU(r.Context(), 1500); err != nil {
			t.Fatal(err)
		}
		both(1514)
		for _, l := range []stmmac.Link{{}, {Up: true, Speed: 100, FullDuplex: true}, {Up: true, Speed: 10}, gigabit} {
			if err := r.mac.SetLink(l); err != nil {
				t.Fatalf("%v: %v", l, err)
			}
			if l.Up {
				both(800)
			}
		}
		r.step()
		r.mac.Tx(0).Reap(nil)
	})
}

// TestGMACWait: a frame wakes who waits for it, and so does the end of sending.
func TestGMACWait(t *testing.T) {
	eachGMAC(t, rigConfig{}, func(r *rig) {
		woken := make(chan error, 1)
		go func() { woken <- r.mac.Rx(0).Wait(r.Context()) }()
		for i := uint64(1); ; i++ {
			r.wire.deliver(frame(60, i))
			r.step()
			select {
			case err := <-woken:
				if err != nil {
					t.Fatal(err)
				}
				if len(r.recv(1)) != 1 {
					t.Error("there is nothing to take")
				}
				r.recv(1 << 20)
				return
			case <-time.After(time.Millisecond):
			}
		}
	})
}

// TestGMACRefuses: what a GMAC 3.x does not have is refused.
func TestGMACRefuses(t *testing.T) {
	for _, c := range []struct {
		what string
		sim  sim.Config
		opt  stmmac.Option
		want error
		word string
	}{
		{"queues", sim.Config{}, stmmac.WithQueues(2, 1), os.ErrInvalid, "the device has 1"},
		{"VLANStrip", sim.Config{}, stmmac.WithConfig(func(c *stmmac.Config) { c.VLANStrip = true }), errors.ErrUnsupported, "VLAN tags"},
		{"MSI", sim.Config{}, stmmac.WithConfig(func(c *stmmac.Config) { c.MSI = &stmmac.MSI{Rx: []int{1}, Tx: []int{2}} }), errors.ErrUnsupported, "vectors"},
		{"StripFCS", sim.Config{Version: 0x36}, stmmac.WithConfig(func(c *stmmac.Config) { c.StripFCS = true }), errors.ErrUnsupported, "FCS"},
		{"MTU", sim.Config{RxFIFO: 4096}, stmmac.WithMTU(9000), os.ErrInvalid, "FIFO"},
		{"watchdog", sim.Config{Version: 0x34}, stmmac.WithCoalesce(stmmac.Coalesce{RxTime: time.Millisecond}), errors.ErrUnsupported, "3.50"},
		{"bins", sim.Config{}, stmmac.WithConfig(func(c *stmmac.Config) { c.HashBins = 65 }), os.ErrInvalid, "65"},
	} {
		t.Run(c.what, func(t *testing.T) {
			clock := sim.NewManualClock()
			c.sim.Generation, c.sim.Inline, c.sim.Clock = sim.GMAC, true, clock
			dev, err := sim.New(c.sim, &testWire{})
			if err != nil {
				t.Fatal(err)
			}
			defer dev.Close()
			m, err := stmmac.Open(context.Background(), dev, gmacSide{}.options(c.sim), stmmac.WithLink(gigabit),
				stmmac.WithClock(rigClock{clock, dev}), stmmac.WithCSRClock(125_000_000), c.opt)
			if err == nil {
				m.Close()
			}
			mustFail(t, err, c.want, c.word)
		})
	}
	t.Run("chain of a GMAC4", func(t *testing.T) {
		clock := sim.NewManualClock()
		dev, err := sim.New(sim.Config{Inline: true, Clock: clock}, &testWire{})
		if err != nil {
			t.Fatal(err)
		}
		defer dev.Close()
		m, err := stmmac.Open(context.Background(), dev, stmmac.WithGeneration(stmmac.GMAC4), stmmac.WithLink(gigabit),
			stmmac.WithClock(rigClock{clock, dev}), stmmac.WithConfig(func(c *stmmac.Config) { c.Chain = true }))
		if err == nil {
			m.Close()
		}
		mustFail(t, err, errors.ErrUnsupported, "chain")
	})
}
