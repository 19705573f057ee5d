package pagepool

import (
	"encoding/binary"
	"testing"

	"pgregory.net/rapid"
)

// TestModel runs calls in any order against a model that knows who holds what.
func TestModel(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		before := dontFork(t)
		brings := rapid.Bool().Draw(rt, "device memory")
		devices := []*bus{newBus(t, 0, brings), newBus(t, 1<<40, false), newBus(t, 1<<50, true)}
		n := rapid.IntRange(1, 40).Draw(rt, "n")
		p, err := New(devices[0], n, perArena(16), WithBufSize(256), WithSmallPages())
		if err != nil {
			rt.Fatal(err)
		}
		size, arenas := n, (n+15)/16
		mappings := map[int]*Mapping{}
		var held []*Buf
		stamp := map[*Buf]uint64{}
		next, misfreed := uint64(1), uint64(0)
		// one cache, of a mapping that stays
		base, err := p.Attach(devices[0])
		if err != nil {
			rt.Fatal(err)
		}
		cache := p.NewCache()
		hold := func(b *Buf) {
			if stamp[b] != 0 {
				rt.Fatal("a buffer that is held was given out")
			}
			b.Reset(p.BufSize() - 8)
			b.SetLen(8)
			binary.NativeEndian.PutUint64(b.Bytes(), next)
			stamp[b] = next
			next++
			held = append(held, b)
		}
		drop := func(rt *rapid.T) *Buf {
			i := rapid.IntRange(0, len(held)-1).Draw(rt, "which")
			b := held[i]
			held[i] = held[len(held)-1]
			held = held[:len(held)-1]
			if got := binary.NativeEndian.Uint64(b.Bytes()); got != stamp[b] {
				rt.Fatalf("a buffer holds %d, %d was written", got, stamp[b])
			}
			delete(stamp, b)
			return b
		}
		rt.Repeat(map[string]func(*rapid.T){
			"alloc": func(rt *rapid.T) {
				bufs := make([]*Buf, rapid.IntRange(0, 20).Draw(rt, "n"))
				for _, b := range bufs[:p.AllocBatch(bufs)] {
					hold(b)
				}
			},
			"free": func(rt *rapid.T) {
				if len(held) == 0 {
					rt.Skip("none held")
				}
				b := drop(rt)
				p.Free(b)
				if rapid.Bool().Draw(rt, "twice") {
					p.Free(b)
					misfreed++
				}
			},
			"free a chain": func(rt *rapid.T) {
				if len(held) < 3 {
					rt.Skip("too few held")
				}
				a, b, c := drop(rt), drop(rt), drop(rt)
				a.SetNext(b)
				b.SetNext(c)
				if a.FrameLen() != 24 {
					rt.Fatalf("a chain of %d bytes", a.FrameLen())
				}
				p.Free(a)
			},
			"take": func(rt *rapid.T) {
				hs := make([]Handle, rapid.IntRange(0, 20).Draw(rt, "n"))
				v := base.View()
				for _, h := range hs[:cache.Take(hs, v.Application())] {
					hold(v.Buf(h))
				}
			},
			"put": func(rt *rapid.T) {
				if len(held) == 0 {
					rt.Skip("none held")
				}
				h, _, ok := base.View().Lookup(drop(rt))
				if !ok {
					rt.Fatal("a buffer is unknown")
				}
				cache.Put([]Handle{h})
			},
			"flush": func(rt *rapid.T) { cache.Flush() },
			"attach": func(rt *rapid.T) {
				i := rapid.IntRange(1, 2).Draw(rt, "device")
				if mappings[i] != nil {
					rt.Skip("attached")
				}
				devices[i].mapFails = 0
				if rapid.Bool().Draw(rt, "fails") {
					devices[i].mapFails = devices[i].maps + rapid.IntRange(1, arenas).Draw(rt, "arena")
					if _, err := p.Attach(devices[i]); err == nil {
						rt.Fatal("attached")
					}
					return
				}
				var err error
				if mappings[i], err = p.Attach(devices[i]); err != nil {
					rt.Fatal(err)
				}
			},
			"detach": func(rt *rapid.T) {
				i := rapid.IntRange(1, 2).Draw(rt, "device")
				if mappings[i] == nil {
					rt.Skip("not attached")
				}
				if err := mappings[i].Close(); err != nil {
					rt.Fatal(err)
				}
				delete(mappings, i)
			},
			"grow": func(rt *rapid.T) {
				if arenas > 20 {
					rt.Skip("large enough")
				}
				k := rapid.IntRange(1, 40).Draw(rt, "n")
				made := (k + 15) / 16
				if mappings[1] != nil && rapid.Bool().Draw(rt, "fails") {
					at := rapid.IntRange(1, made).Draw(rt, "arena")
					devices[1].mapFails = devices[1].maps + at
					if p.Grow(k) == nil {
						rt.Fatal("grown")
					}
					arenas += at - 1
					size += 16 * (at - 1)
					return
				}
				if err := p.Grow(k); err != nil {
					rt.Fatal(err)
				}
				arenas += made
				size += k
			},
			"": func(rt *rapid.T) {
				if p.Size() != size || p.InUse() != len(held) || p.Misfreed() != misfreed {
					rt.Fatalf("size %d, in use %d, misfreed %d; want %d, %d, %d", p.Size(), p.InUse(), p.Misfreed(), size, len(held), misfreed)
				}
				for i, m := range devices {
					want := 0
					if i == 0 || mappings[i] != nil {
						want = arenas
					}
					if m.mapped() != want {
						rt.Fatalf("device %d reaches %d arenas, want %d", i, m.mapped(), want)
					}
				}
				for _, b := range held {
					for i, mp := range mappings {
						_, addr, ok := mp.View().Lookup(b)
						if at := (*uint64)(devices[i].at(addr)); !ok || at == nil || *at != stamp[b] {
							rt.Fatalf("device %d does not reach a buffer", i)
						}
					}
				}
			},
		})
		// whoever holds what: no buffer is lost
		cache.Flush()
		p.FreeBatch(held)
		if got := len(alloc0s(p, size+1)); got != size {
			rt.Fatalf("%d buffers at the end, want %d", got, size)
		}
		for _, mp := range mappings {
			if err := mp.Close(); err != nil {
				rt.Fatal(err)
			}
		}
		if err := base.Close(); err != nil {
			rt.Fatal(err)
		}
		if p.Close() == nil {
			rt.Fatal("closed with all buffers held")
		}
		// the last one takes the memory with it
		for h := range size {
			p.Free(p.nth(h))
		}
		if now := dontFork(t); now != before {
			rt.Fatalf("%d KiB of payload left", now-before)
		}
		for i, m := range devices {
			if m.mapped() != 0 {
				rt.Fatalf("device %d still reaches %d arenas", i, m.mapped())
			}
		}
	})
}

// nth returns buffer i of the pool, counted through all arenas.
func (p *Pool) nth(i int) *Buf {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, a := range p.arenas {
		if i < len(a.records) {
			return &a.records[i]
		}
		i -= len(a.records)
	}
	return nil
}
