package pagepool

import (
	"bytes"
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// TestBufProperties runs calls against a chunk that is a plain slice.
func TestBufProperties(t *testing.T) {
	p := newPool(t, newBus(t, 0, false), 2, WithBufSize(320), WithSmallPages())
	defer closeAll(t, p)
	b, other := alloc(t, p, 2)[0], alloc0(t, p)
	if other != nil {
		t.Fatal("the pool has a third buffer")
	}
	defer func() { p.Free(b); p.Free(p.at(1)) }()
	rapid.Check(t, func(t *rapid.T) {
		head := rapid.IntRange(0, 320).Draw(t, "headroom")
		if !b.Reset(head) {
			t.Fatalf("no headroom of %d", head)
		}
		b.SetLen(320 - head)
		clear(b.Bytes())
		b.Reset(0)
		b.SetLen(320)
		clear(b.Bytes())
		b.Reset(head)
		chunk := make([]byte, 320)
		off, n := head, 0
		// sizes around the edges, and what no size is
		size := rapid.OneOf(rapid.IntRange(-2, 330), rapid.Just(math.MaxInt), rapid.Just(math.MinInt), rapid.Just(1<<16), rapid.Just(1<<16+1))
		t.Repeat(map[string]func(*rapid.T){
			"SetLen": func(t *rapid.T) {
				k := size.Draw(t, "n")
				want := k >= 0 && k <= 320-off
				if got := b.SetLen(k); got != want {
					t.Fatalf("SetLen(%d) at %d: %v", k, off, got)
				}
				if want {
					n = k
				}
			},
			"Prepend": func(t *rapid.T) {
				k := size.Draw(t, "n")
				got := b.Prepend(k)
				if want := k >= 0 && k <= off; (got != nil) != want {
					t.Fatalf("Prepend(%d) at %d: %v", k, off, got != nil)
				} else if want {
					off, n = off-k, n+k
					if len(got) != k {
						t.Fatalf("Prepend(%d) gave %d bytes", k, len(got))
					}
				}
			},
			"TrimFront": func(t *rapid.T) {
				k := size.Draw(t, "n")
				want := k >= 0 && k <= n
				if got := b.TrimFront(k); got != want {
					t.Fatalf("TrimFront(%d) of %d: %v", k, n, got)
				}
				if want {
					off, n = off+k, n-k
				}
			},
			"Reset": func(t *rapid.T) {
				k := size.Draw(t, "headroom")
				want := k >= 0 && k <= 320
				if got := b.Reset(k); got != want {
					t.Fatalf("Reset(%d): %v", k, got)
				}
				if want {
					off, n = k, 0
				}
			},
			"SetData": func(t *rapid.T) {
				data := rapid.SliceOfN(rapid.Byte(), 0, 330).Draw(t, "data")
				want := len(data) <= 320-off
				if got := b.SetData(data); got != want {
					t.Fatalf("SetData of %d bytes at %d: %v", len(data), off, got)
				}
				if want {
					n = copy(chunk[off:], data)
				}
			},
			"write": func(t *rapid.T) {
				for i := range b.Bytes() {
					v := byte(i*7 + off)
					b.Bytes()[i], chunk[off+i] = v, v
				}
			},
			"": func(t *rapid.T) {
				if b.Len() != n || b.Offset() != off || b.Headroom() != off || b.Tailroom() != 320-off-n {
					t.Fatalf("offset %d, length %d, headroom %d, tailroom %d; want offset %d, length %d", b.Offset(), b.Len(), b.Headroom(), b.Tailroom(), off, n)
				}
				if !bytes.Equal(b.Bytes(), chunk[off:off+n]) {
					t.Fatalf("data %x, want %x", b.Bytes(), chunk[off:off+n])
				}
				if cap(b.Bytes()) != n {
					t.Fatalf("an append to %d bytes could write %d", n, cap(b.Bytes()))
				}
			},
		})
	})
}

// alloc0 returns a buffer, nil when there is none.
func alloc0(t *testing.T, p *Pool) *Buf {
	t.Helper()
	b, err := p.Alloc()
	if err != nil && err != ErrEmpty {
		t.Errorf("alloc: %v", err)
	}
	return b
}

// at returns the buffer of handle h.
func (p *Pool) at(h Handle) *Buf {
	p.mu.Lock()
	defer p.mu.Unlock()
	return At(p.first, h)
}

func TestAllocIsEmpty(t *testing.T) {
	for _, c := range []struct {
		opts           []Option
		size, headroom int
	}{
		{nil, 2048, NetSKBPad + NetIPAlign},
		{[]Option{WithHeadroom(0)}, 2048, 0},
		{[]Option{WithBufSize(256), WithHeadroom(256)}, 256, 256},
		{[]Option{WithBufSize(257)}, roundUp(257, CacheLine), NetSKBPad + NetIPAlign},
		{[]Option{WithBufSize(MaxBufSize), WithHeadroom(XDPHeadroom)}, MaxBufSize, XDPHeadroom},
	} {
		p := newPool(t, newBus(t, 0, false), 1, append(c.opts, WithSmallPages())...)
		if p.BufSize() != c.size {
			t.Errorf("buffers of %d bytes, want %d", p.BufSize(), c.size)
		}
		// the second time the buffer was used
		for range 2 {
			b := alloc(t, p, 1)[0]
			if b.Len() != 0 || b.Headroom() != c.headroom || b.Tailroom() != c.size-c.headroom || b.Next() != nil || b.Chained() || b.Meta != (Meta{}) || b.Owner() != p.Owner("application") {
				t.Errorf("a new buffer of %d: %+v", c.size, b)
			}
			b.Meta = Meta{Flags: 1, VLAN: 2, InnerVLAN: 3, Hash: 4, MSS: 5, HdrLen: 6, Timestamp: 7, Cookie: 8}
			b.SetLen(b.Tailroom())
			p.Free(b)
		}
		closeAll(t, p)
	}
}

// A received buffer is no longer what it was before.
func TestReceived(t *testing.T) {
	p := newPool(t, newBus(t, 0, false), 2)
	defer closeAll(t, p)
	bufs := alloc(t, p, 2)
	b := bufs[0]
	b.SetNext(bufs[1])
	b.SetOwner(p.Owner("rx0"))
	b.Flags = VLANTag | RxTimestamp | RxCsumGood
	app := p.Owner("application")
	b.Received(66, 1514, app, RxCsumGood)
	if b.Offset() != 66 || b.Len() != 1514 || b.Next() != nil || b.Owner() != app || b.Flags != RxCsumGood {
		t.Errorf("offset %d, length %d, owner %#x, flags %#x", b.Offset(), b.Len(), b.Owner(), b.Flags)
	}
	p.FreeBatch(bufs)
}

func TestChain(t *testing.T) {
	p := newPool(t, newBus(t, 0, false), 6, perArena(2), WithSmallPages())
	defer closeAll(t, p)
	bufs := alloc(t, p, 6)
	// backwards through the arenas, with an empty buffer in it
	var want []byte
	for i := range bufs {
		b := bufs[len(bufs)-1-i]
		if i > 0 {
			bufs[len(bufs)-i].SetNext(b)
		}
		if i != 2 {
			data := bytes.Repeat([]byte{byte(i + 1)}, 100+i)
			b.SetData(data)
			want = append(want, data...)
		}
	}
	first := bufs[5]
	seen := 0
	for b := first; b != nil; b = b.Next() {
		if b != bufs[5-seen] {
			t.Errorf("buffer %d of the chain is another", seen)
		}
		seen++
	}
	if seen != 6 || first.FrameLen() != len(want) {
		t.Errorf("%d buffers with %d bytes, want 6 with %d", seen, first.FrameLen(), len(want))
	}
	for _, n := range []int{0, 1, 99, 100, 101, 250, len(want) - 1, len(want), len(want) + 10} {
		got := bytes.Repeat([]byte{0xee}, n+1)
		k := first.CopyTo(got[:n])
		if k != min(n, len(want)) || !bytes.Equal(got[:k], want[:k]) || got[n] != 0xee {
			t.Errorf("copied %d of %d bytes to %d", k, len(want), n)
		}
	}
	bufs[3].SetNext(nil)
	if got := first.FrameLen(); got != 100+101 {
		t.Errorf("a cut chain has %d bytes", got)
	}
	bufs[3].SetNext(bufs[2])
	q := newPool(t, newBus(t, 0, false), 1, WithSmallPages())
	foreign := alloc(t, q, 1)[0]
	if bufs[3].SetNext(foreign) || bufs[3].SetNext(&Buf{}) || bufs[3].Next() != bufs[2] || !bufs[3].Chained() || bufs[0].Chained() {
		t.Error("a buffer of another pool was linked")
	}
	q.Free(foreign)
	closeAll(t, q)
	var none *Buf
	if none.FrameLen() != 0 || none.CopyTo(want) != 0 {
		t.Error("no chain has bytes")
	}

	p.Free(first)
	if n := p.InUse(); n != 0 {
		t.Errorf("%d buffers of a freed chain are in use", n)
	}
	again := alloc(t, p, 6)
	for _, b := range again {
		if b.Next() != nil || !slices.Contains(bufs, b) {
			t.Error("a buffer of a freed chain is not as new")
		}
	}
	p.FreeBatch(again)
	if n := p.Misfreed(); n != 0 {
		t.Errorf("%d misfreed", n)
	}
}

func TestFreeOfBrokenChains(t *testing.T) {
	p := newPool(t, newBus(t, 0, false), 4)
	defer closeAll(t, p)
	q := newPool(t, newBus(t, 0, false), 1)
	defer closeAll(t, q)
	foreign := alloc(t, q, 1)[0]
	for name, c := range map[string]struct {
		link     func(b []*Buf)
		misfreed uint64
		left     int
	}{
		"ring":     {func(b []*Buf) { b[0].SetNext(b[1]); b[1].SetNext(b[2]); b[2].SetNext(b[3]); b[3].SetNext(b[0]) }, 1, 0},
		"tail":     {func(b []*Buf) { b[0].SetNext(b[1]); b[1].SetNext(b[2]); b[2].SetNext(b[1]) }, 1, 1},
		"itself":   {func(b []*Buf) { b[0].SetNext(b[0]) }, 0, 3},
		"foreign":  {func(b []*Buf) { b[0].SetNext(b[1]); b[1].SetNext(foreign) }, 0, 2}, // is not linked
		"freed":    {func(b []*Buf) { b[0].SetNext(b[1]); b[1].SetNext(b[2]); p.Free(b[2]) }, 1, 1},
		"complete": {func(b []*Buf) { b[0].SetNext(b[1]); b[1].SetNext(b[2]); b[2].SetNext(b[3]) }, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			b := alloc(t, p, 4)
			c.link(b)
			before := p.Misfreed()
			p.Free(b[0])
			if got := p.Misfreed() - before; got != c.misfreed {
				t.Errorf("%d misfreed, want %d", got, c.misfreed)
			}
			if got := p.InUse(); got != c.left {
				t.Errorf("%d in use, want %d", got, c.left)
			}
			for _, x := range b {
				if x.Owner() != p.owner {
					x.SetNext(nil)
					p.Free(x)
				}
			}
			if foreign.Owner() != q.Owner("application") || q.InUse() != 1 {
				t.Error("a buffer of another pool was freed")
			}
			// no buffer is in the pool twice
			all := alloc(t, p, 4)
			slices.SortFunc(all, func(x, y *Buf) int { return int(x.chunk) - int(y.chunk) })
			if n := len(slices.Compact(slices.Clone(all))); n != 4 || alloc0(t, p) != nil {
				t.Errorf("%d different buffers", n)
			}
			p.FreeBatch(all)
		})
	}
	q.Free(foreign)
}

// FuzzBuf moves the ends of a buffer with numbers from outside: data never
// leaves the chunk.
func FuzzBuf(f *testing.F) {
	f.Add(64, 1514, 14, 4)
	f.Add(2048, 0, 2048, 1)
	f.Add(math.MaxInt, math.MinInt, -1, 1<<16)
	f.Fuzz(func(t *testing.T, headroom, n, trim, prepend int) {
		p := newPool(t, newBus(t, 0, false), 1, WithSmallPages())
		defer closeAll(t, p)
		b := alloc(t, p, 1)[0]
		defer p.Free(b)
		b.Reset(headroom)
		b.SetLen(n)
		b.TrimFront(trim)
		b.Prepend(prepend)
		if b.Headroom() < 0 || b.Tailroom() < 0 || b.Headroom()+b.Len()+b.Tailroom() != 2048 || len(b.Bytes()) != b.Len() {
			t.Errorf("headroom %d, length %d, tailroom %d", b.Headroom(), b.Len(), b.Tailroom())
		}
	})
}
