package main

import (
	"math/rand"
	"slices"
	"testing"
)

func TestExtents(t *testing.T) {
	const base = 0x1_0000_0000
	type step struct {
		free     bool
		addr, n  uint64
		align    uint64
		fails    bool
		wantFree []extent
	}
	for name, steps := range map[string][]step{
		"first fit": {
			{n: 0x100, align: 1, addr: base, wantFree: []extent{{base + 0x100, 0xf00}}},
			{n: 0x100, align: 1, addr: base + 0x100, wantFree: []extent{{base + 0x200, 0xe00}}},
			{free: true, addr: base, n: 0x100, wantFree: []extent{{base, 0x100}, {base + 0x200, 0xe00}}},
			{n: 0x101, align: 1, addr: base + 0x200, wantFree: []extent{{base, 0x100}, {base + 0x301, 0xcff}}},
			{n: 0x80, align: 1, addr: base, wantFree: []extent{{base + 0x80, 0x80}, {base + 0x301, 0xcff}}},
		},
		"alignment leaves a piece before and behind": {
			{n: 1, align: 1, addr: base, wantFree: []extent{{base + 1, 0xfff}}},
			{n: 0x400, align: 0x400, addr: base + 0x400, wantFree: []extent{{base + 1, 0x3ff}, {base + 0x800, 0x800}}},
			{n: 0x800, align: 0x800, addr: base + 0x800, wantFree: []extent{{base + 1, 0x3ff}}},
		},
		"all of it": {
			{n: 0x1000, align: 0x1000, addr: base},
			{n: 1, align: 1, fails: true},
			{free: true, addr: base, n: 0x1000, wantFree: []extent{{base, 0x1000}}},
		},
		"too much": {
			{n: 0x1001, align: 1, fails: true, wantFree: []extent{{base, 0x1000}}},
			{n: 1 << 63, align: 1, fails: true, wantFree: []extent{{base, 0x1000}}},
			{n: ^uint64(0), align: 1, fails: true, wantFree: []extent{{base, 0x1000}}},
			{n: 1, align: 1 << 63, fails: true, wantFree: []extent{{base, 0x1000}}},
		},
		"enough in pieces is not enough": {
			{n: 0x800, align: 1, addr: base, wantFree: []extent{{base + 0x800, 0x800}}},
			{n: 0x400, align: 1, addr: base + 0x800, wantFree: []extent{{base + 0xc00, 0x400}}},
			{free: true, addr: base, n: 0x800, wantFree: []extent{{base, 0x800}, {base + 0xc00, 0x400}}},
			{n: 0x900, align: 1, fails: true, wantFree: []extent{{base, 0x800}, {base + 0xc00, 0x400}}},
			{free: true, addr: base + 0x800, n: 0x400, wantFree: []extent{{base, 0x1000}}},
		},
		"only what was allocated is freed": {
			{n: 0x200, align: 1, addr: base, wantFree: []extent{{base + 0x200, 0xe00}}},
			{free: true, addr: base, n: 0x100, fails: true, wantFree: []extent{{base + 0x200, 0xe00}}},
			{free: true, addr: base + 0x100, n: 0x100, fails: true, wantFree: []extent{{base + 0x200, 0xe00}}},
			{free: true, addr: base + 0x200, n: 0xe00, fails: true, wantFree: []extent{{base + 0x200, 0xe00}}},
			{free: true, addr: base, n: 0x200, wantFree: []extent{{base, 0x1000}}},
			{free: true, addr: base, n: 0x200, fails: true, wantFree: []extent{{base, 0x1000}}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			x := newExtents(base, 0x1000)
			for i, s := range steps {
				addr, ok := s.addr, false
				if s.free {
					ok = x.release(s.addr, s.n)
				} else {
					addr, ok = x.alloc(s.n, s.align)
				}
				if ok == s.fails || ok && addr != s.addr || !slices.Equal(x.free, s.wantFree) {
					t.Fatalf("step %d: %#x, %v, free %#x; want %#x, %v, %#x", i, addr, ok, x.free, s.addr, !s.fails, s.wantFree)
				}
			}
		})
	}
}

// TestExtentsProperties allocates and frees at random, with every byte's owner
// written down in a plain array to compare with.
func TestExtentsProperties(t *testing.T) {
	const base, size = 0x8000_0100, 4096
	rnd := rand.New(rand.NewSource(1))
	for range 50 {
		x := newExtents(base, size)
		var taken [size]bool
		var live []extent
		// fits says whether n bytes fit at i.
		fits := func(i, n uint64) bool { return i+n <= size && !slices.Contains(taken[i:i+n], true) }
		mark := func(e extent, v bool) {
			for i := e.addr - base; i < e.addr-base+e.n; i++ {
				taken[i] = v
			}
		}
		for range 300 {
			if len(live) > 0 && rnd.Intn(2) == 0 {
				i := rnd.Intn(len(live))
				if !x.release(live[i].addr, live[i].n) {
					t.Fatalf("%#x was not freed", live[i])
				}
				mark(live[i], false)
				live = slices.Delete(live, i, i+1)
			} else {
				n, align := uint64(1+rnd.Intn(600)), uint64(1)<<rnd.Intn(10)
				want, found := uint64(0), false
				for i := uint64(0); i < size && !found; i++ {
					if (base+i)%align == 0 && fits(i, n) {
						want, found = base+i, true
					}
				}
				addr, ok := x.alloc(n, align)
				if ok != found || ok && addr != want {
					t.Fatalf("%d bytes aligned to %d: %#x, %v; the first that fit are at %#x, %v", n, align, addr, ok, want, found)
				}
				if ok {
					mark(extent{addr, n}, true)
					live = append(live, extent{addr, n})
				}
			}
			used := uint64(0)
			for _, e := range live {
				used += e.n
			}
			if x.inUse() != used {
				t.Fatalf("%d bytes in use, want %d", x.inUse(), used)
			}
			for i, e := range x.free {
				if e.n == 0 || !fits(e.addr-base, e.n) || i > 0 && x.free[i-1].addr+x.free[i-1].n >= e.addr {
					t.Fatalf("free list %#x", x.free)
				}
				used += e.n
			}
			if used != size {
				t.Fatalf("%d of %d bytes are neither free nor in use", size-used, size)
			}
		}
		for _, e := range live {
			x.release(e.addr, e.n)
		}
		if want := []extent{{base, size}}; !slices.Equal(x.free, want) || x.largest() != size {
			t.Fatalf("all was freed, and the free list is %#x", x.free)
		}
	}
}
