package stmmac_test

import (
	"bytes"
	"errors"
	"testing"

	"github.com/gostmmac/gostmmac/pagepool"
	"github.com/gostmmac/gostmmac/stmmac"
	"github.com/gostmmac/gostmmac/stmmac/sim"
)

// programFunc is a program of a test.
type programFunc func(b *pagepool.Buf) stmmac.Verdict

func (f programFunc) Run(bufs []*pagepool.Buf, verdicts []stmmac.Verdict) {
	for i, b := range bufs {
		verdicts[i] = f(b)
	}
}

// TestProgram runs a program on received frames: every verdict, and a frame
// whose start it moves into the headroom.
func TestProgram(t *testing.T) { onEach(t, testProgram) }

func testProgram(t *testing.T) {
	p := programFunc(func(b *pagepool.Buf) stmmac.Verdict {
		switch v := b.Bytes()[21]; v & 3 {
		case 0:
			return stmmac.VerdictDrop
		case 1:
			return stmmac.Verdict(99)
		case 2:
			copy(b.Prepend(200), "moved")
			return stmmac.VerdictPass
		}
		return stmmac.VerdictPass
	})
	r := newRig(t, rigConfig{opts: []stmmac.Option{stmmac.WithProgram(p)}})
	if at := r.mac.Rx(0).Layout().Start; at != pagepool.XDPHeadroom+pagepool.NetIPAlign {
		t.Errorf("frames start at %d", at)
	}
	r.wire.deliver(frames(40, 100, 0)...)
	got := r.recv(50)
	if len(got) != 20 {
		t.Fatalf("%d frames passed", len(got))
	}
	for i, f := range got {
		seq := uint64(i/2*4 + 2 + i%2)
		if want := frame(100, seq); i%2 == 1 && !bytes.Equal(f, want) || i%2 == 0 && (!bytes.HasPrefix(f, []byte("moved")) || !bytes.Equal(f[200:], want)) {
			t.Fatalf("frame %d: % x", seq, f)
		}
	}
	if s := r.mac.Rx(0).Stats(); s.Dropped != 10 || s.Aborted != 10 || s.Drops() != 20 {
		t.Errorf("%+v", s)
	}
	r.settled()
}

// TestProgramPanics closes a MAC whose program panicked: the ring is in order.
func TestProgramPanics(t *testing.T) { onEach(t, testProgramPanics) }

func testProgramPanics(t *testing.T) {
	calls := 0
	p := programFunc(func(*pagepool.Buf) stmmac.Verdict {
		if calls++; calls == 3 {
			panic("program")
		}
		return stmmac.VerdictPass
	})
	r := newRig(t, rigConfig{opts: []stmmac.Option{stmmac.WithProgram(p)}})
	in := frames(5, 60, 1)
	r.wire.deliver(in...)
	r.step()
	bufs := make([]*pagepool.Buf, 5)
	func() {
		defer func() {
			if recover() == nil {
				t.Error("no panic")
			}
		}()
		r.mac.Rx(0).Recv(bufs)
	}()
	r.pool.FreeBatch(bufs) // they were given out
	r.wire.deliver(in...)
	r.same(r.recv(10), in)
	r.settled()
}

// TestOffsets holds where frames start, with and without a program, for every
// alignment.
func TestOffsets(t *testing.T) { onEach(t, testOffsets) }

func testOffsets(t *testing.T) {
	pass := programFunc(func(*pagepool.Buf) stmmac.Verdict { return stmmac.VerdictPass })
	for _, align := range []int{0, 2} {
		for name, opts := range map[string][]stmmac.Option{"plain": nil, "program": {stmmac.WithProgram(pass)}} {
			r := newRig(t, rigConfig{opts: append(opts, stmmac.WithNetIPAlign(align))})
			want := pagepool.NetSKBPad + align
			if name == "program" {
				want = pagepool.XDPHeadroom + align
			}
			if at := r.mac.Rx(0).Layout().Start; at != want {
				t.Errorf("%s with %d: start %d, want %d", name, align, at, want)
			}
			r.wire.deliver(frames(3, 1514, 7)...)
			bufs := make([]*pagepool.Buf, 3)
			r.step()
			n := r.mac.Rx(0).Recv(bufs)
			for _, b := range bufs[:n] {
				if b.Offset() != want || b.Headroom() != want {
					t.Errorf("frame at %d", b.Offset())
				}
			}
			r.pool.FreeBatch(bufs[:n])
		}
	}
}

// TestOversize drops and counts what is longer than the MTU allows, with the
// offset that rules out a second buffer and without.
func TestOversize(t *testing.T) { onEach(t, testOversize) }

func testOversize(t *testing.T) {
	for _, align := range []int{0, 2} {
		for _, bufSize := range []int{2048, 1024} {
			r := newRig(t, rigConfig{bufSize: bufSize, opts: []stmmac.Option{stmmac.WithNetIPAlign(align)}})
			good := frames(5, 1522, 1) // two VLAN tags
			in := append(append([][]byte{}, good[:2]...), frame(1523, 9), frame(3000, 9), good[2], frame(8000, 9), good[3], good[4])
			r.wire.elastic = true
			r.wire.deliver(in...)
			r.same(r.recv(20), good)
			if s := r.mac.Rx(0).Stats(); s.Oversize != 3 || s.Drops() != 3 {
				t.Errorf("align %d, buffers of %d: %+v", align, bufSize, s)
			}
			r.settled()
		}
	}
}

// TestQueues spreads frames by VLAN priority over four queues and sends on all.
func TestQueues(t *testing.T) {
	r := newRig(t, rigConfig{sim: sim.Config{RxQueues: 4, TxQueues: 4}, opts: []stmmac.Option{stmmac.WithQueues(4, 4), stmmac.WithRings(64, 64)}})
	want := make([][][]byte, 4)
	for i := range 64 {
		f := frame(80, uint64(i))
		pcp := i % 9
		q := 0
		if pcp < 8 { // the ninth is untagged
			copy(f[12:], []byte{0x81, 0, byte(pcp << 5), 1})
			q = pcp / 2
		}
		want[q] = append(want[q], f)
		r.wire.deliver(f)
	}
	for q := range 4 {
		r.same(r.recvQ(q, 100), want[q])
	}
	for q := range 4 {
		in := frames(20, 70, uint64(q*100))
		for _, f := range in {
			if n, err := r.mac.Tx(q).Send([]*pagepool.Buf{r.buf(f, len(f))}); n != 1 || err != nil {
				t.Fatal(n, err)
			}
		}
		r.step()
		r.same(r.wire.take(), in)
	}
	r.settled()
	names := map[string]uint64{}
	for n, v := range r.mac.Counters() {
		names[n] = v
	}
	if names["rx3_packets"] == 0 || names["tx3_done"] != 20 {
		t.Errorf("counters %v", names)
	}
}

// TestFilter lets in what is addressed to the MAC, and all when promiscuous.
func TestFilter(t *testing.T) {
	r := newRig(t, rigConfig{})
	other := frame(60, 2)
	copy(other, []byte{2, 0, 0, 0, 0, 9})
	group := frame(60, 3)
	copy(group, []byte{1, 0, 0x5e, 0, 0, 1})
	broadcast := frame(60, 4)
	copy(broadcast, bytes.Repeat([]byte{0xff}, 6))
	own := frame(60, 1)
	all := [][]byte{own, other, group, broadcast}
	for _, on := range []bool{true, false, true} {
		if err := r.mac.SetPromiscuous(on); err != nil {
			t.Fatal(err)
		}
		r.wire.deliver(all...)
		want := all
		if !on {
			want = [][]byte{own, broadcast}
		}
		r.same(r.recv(10), want)
	}
}

// TestZeroCopy forwards buffers between two MACs of one pool whose memory one
// of the devices brings, and grows the pool meanwhile.
func TestZeroCopy(t *testing.T) { onEach(t, testZeroCopy) }

func testZeroCopy(t *testing.T) {
	for _, own := range []bool{false, true} {
		a := newRig(t, rigConfig{sim: sim.Config{OwnMemory: own}, bufs: 1200})
		clock := sim.NewManualClock()
		wire := &testWire{}
		d, err := sim.New(sim.Config{Inline: true, Clock: clock}, wire)
		if err != nil {
			t.Fatal(err)
		}
		b, err := stmmac.Open(t.Context(), d, stmmac.WithGeneration(stmmac.GMAC4), stmmac.WithLink(gigabit), stmmac.WithName("b"), stmmac.WithPool(a.pool), stmmac.WithClock(clock))
		if err != nil {
			t.Fatal(err)
		}
		bufs := make([]*pagepool.Buf, 64)
		for round := range 30 {
			in := frames(60, 60+40*round, uint64(round))
			a.wire.deliver(in...)
			a.step()
			for got := 0; got < len(in); {
				n := a.mac.Rx(0).Recv(bufs)
				if sent, err := b.Tx(0).Send(bufs[:n]); sent != n || n == 0 || err != nil {
					t.Fatal(n, sent, err)
				}
				got += n
			}
			for d.Step(1000) > 0 {
			}
			a.same(wire.take(), in)
			if round == 10 {
				if err := a.pool.Grow(500); err != nil {
					t.Fatal(err)
				}
				// Buffers of the new arena reach both devices.
				held := make([]*pagepool.Buf, a.pool.Size())
				k := a.pool.AllocBatch(held)
				var fresh *pagepool.Buf
				for _, h := range held[:k] {
					if h.Arena() > 0 && fresh == nil {
						fresh = h
						continue
					}
					a.pool.Free(h)
				}
				if fresh == nil {
					t.Fatal("no buffer of the new arena")
				}
				f := frame(99, 99)
				fresh.SetData(f)
				if n, err := b.Tx(0).Send([]*pagepool.Buf{fresh}); n != 1 || err != nil {
					t.Fatal(n, err)
				}
				for d.Step(1000) > 0 {
				}
				a.same(wire.take(), [][]byte{f})
			}
		}
		if v := d.Audit(); len(v) > 0 {
			t.Errorf("audit: %v", v)
		}
		if err := b.Close(); err != nil {
			t.Error(err)
		}
		if err := d.Close(); err != nil {
			t.Error(err)
		}
		a.recv(1) // an idle queue refills all of its ring
		a.settled()
	}
}

// TestSendRefuses holds which frames are never sent, and that those before them
// are.
func TestSendRefuses(t *testing.T) {
	r := newRig(t, rigConfig{opts: []stmmac.Option{stmmac.WithRings(64, 8)}})
	other, err := pagepool.New(r.dev, 4)
	if err != nil {
		t.Fatal(err)
	}
	foreign, err := other.Alloc()
	if err != nil {
		t.Fatal(err)
	}
	foreign.SetData(frame(60, 0))
	cycle := r.buf(frame(100, 0), 50)
	cycle.Next().SetNext(cycle)
	empty := r.buf(frame(60, 0), 30)
	empty.Next().SetLen(0)
	for name, tc := range map[string]struct {
		b    *pagepool.Buf
		want error
	}{
		"foreign":             {foreign, stmmac.ErrForeignBuffer},
		"free":                {nil, stmmac.ErrNotHeld},
		"nil":                 {nil, stmmac.ErrFrameTooShort},
		"13 bytes":            {r.buf(frame(60, 0)[:13], 60), stmmac.ErrFrameTooShort},
		"nothing":             {r.buf(nil, 60), stmmac.ErrFrameTooShort},
		"an empty buffer":     {empty, stmmac.ErrFrameTooShort},
		"longer than the MTU": {r.buf(frame(1523, 0), 1523), stmmac.ErrFrameTooLong},
		"too many buffers":    {r.buf(frame(400, 0), 50), stmmac.ErrFrameTooLong},
		"a cycle":             {cycle, stmmac.ErrNotHeld},
	} {
		good := frame(60, 5)
		first := r.buf(good, 60)
		if name == "free" {
			tc.b = r.buf(frame(60, 0), 60)
			r.pool.Free(tc.b)
		}
		n, err := r.mac.Tx(0).Send([]*pagepool.Buf{first, tc.b, nil})
		if n != 1 {
			t.Errorf("%s: took %d", name, n)
		}
		if !errors.Is(err, tc.want) && !(name == "a cycle" && errors.Is(err, stmmac.ErrFrameTooLong)) {
			t.Errorf("%s: %v, want %v", name, err, tc.want)
		}
		r.step()
		r.same(r.wire.take(), [][]byte{good})
		r.mac.Tx(0).Reap(nil)
		switch {
		case tc.b == nil || name == "free":
		case name == "foreign":
			other.Free(tc.b)
		case name == "a cycle":
			cycle.Next().SetNext(nil)
			r.pool.Free(cycle)
		default:
			r.pool.Free(tc.b)
		}
	}
	if err := other.Close(); err != nil {
		t.Error(err)
	}
	if s := r.mac.Tx(0).Stats(); s.Refused != 9 || s.Packets != 9 {
		t.Errorf("%+v", s)
	}
	r.settled()
}

// TestReap hands finished frames back to the caller.
func TestReap(t *testing.T) {
	r := newRig(t, rigConfig{opts: []stmmac.Option{stmmac.WithTxCompletions(), stmmac.WithRings(64, 8)}})
	bufs := make([]*pagepool.Buf, 8)
	for round := range 40 {
		a, b := r.buf(frame(60, 1), 60), r.buf(frame(200, 2), 70)
		a.Cookie, b.Cookie = uint64(round), uint64(1000+round)
		if n, err := r.mac.Tx(0).Send([]*pagepool.Buf{a, b}); n != 2 || err != nil {
			t.Fatal(n, err)
		}
		if n := r.mac.Tx(0).Reap(bufs); n != 0 {
			t.Fatalf("reaped %d before they were sent", n)
		}
		r.step()
		if n := r.mac.Tx(0).Reap(bufs[:1]); n != 1 || bufs[0] != a || a.Cookie != uint64(round) {
			t.Fatalf("reaped %d", n)
		}
		r.pool.Free(a)
		if n := r.mac.Tx(0).Reap(bufs); n != 1 || bufs[0] != b || b.FrameLen() != 200 || b.Cookie != uint64(1000+round) {
			t.Fatalf("reaped %d", n)
		}
		r.pool.Free(b)
	}
	// Without Reap the ring fills, and Send frees nothing.
	sent := 0
	for range 20 {
		b := r.buf(frame(60, 1), 60)
		n, err := r.mac.Tx(0).Send([]*pagepool.Buf{b})
		if err != nil {
			t.Fatal(err)
		}
		if n == 0 {
			r.pool.Free(b)
		}
		sent += n
		r.step()
	}
	if sent != 7 || r.mac.Tx(0).Space() != 0 || r.mac.Tx(0).Inflight() != 7 {
		t.Errorf("sent %d", sent)
	}
	r.settled()
}
