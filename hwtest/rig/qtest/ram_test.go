package qtest

import (
	"errors"
	"slices"
	"testing"
	"unsafe"

	"pgregory.net/rapid"
)

// Memory that is given out lies inside the RAM, above 1 MiB, aligned, zeroed and apart.
func TestRAM(t *testing.T) {
	const size = 4 << 20
	rapid.Check(t, func(t *rapid.T) {
		unmapped := 0
		r := ram{mem: make([]byte, size), unmap: func() error { unmapped++; return nil }}
		base := uintptr(unsafe.Pointer(unsafe.SliceData(r.mem)))
		type part struct {
			mem []byte
			at  uint64
		}
		var held []part
		free := func(i int) {
			p := held[i]
			held = slices.Delete(held, i, i+1)
			if err := r.free(p.at, len(p.mem)); err != nil {
				t.Fatal(err)
			}
		}
		for range rapid.IntRange(1, 50).Draw(t, "steps") {
			if len(held) > 0 && rapid.IntRange(0, 2).Draw(t, "free") == 0 {
				free(rapid.IntRange(0, len(held)-1).Draw(t, "which"))
				continue
			}
			n := rapid.IntRange(1, 1<<20).Draw(t, "n")
			align := rapid.SampledFrom([]int{0, 1, 64, 4096, 1 << 16, 1 << 20}).Draw(t, "align")
			mem, at, err := r.alloc(n, align)
			if errors.Is(err, ErrNoMemory) {
				continue
			}
			if err != nil {
				t.Fatal(err)
			}
			switch {
			case len(mem) != n || cap(mem) != n:
				t.Fatalf("%d bytes are %d of %d", n, len(mem), cap(mem))
			case at < lowestDMA || at+uint64(n) > size:
				t.Fatalf("%d bytes at %#x", n, at)
			case at%uint64(max(align, pageSize)) != 0:
				t.Fatalf("%#x is not aligned to %d", at, align)
			case uint64(uintptr(unsafe.Pointer(unsafe.SliceData(mem)))-base) != at:
				t.Fatalf("address %#x is not the offset", at)
			case slices.ContainsFunc(mem, func(b byte) bool { return b != 0 }):
				t.Fatal("not zeroed")
			}
			for _, p := range held {
				if at < p.at+uint64(len(p.mem)) && p.at < at+uint64(n) {
					t.Fatalf("%#x+%d overlaps %#x+%d", at, n, p.at, len(p.mem))
				}
			}
			for i := range mem {
				mem[i] = 0xa5
			}
			held = append(held, part{mem, at})
		}
		if err := r.close(); err != nil {
			t.Fatal(err)
		}
		for len(held) > 0 {
			if unmapped != 0 {
				t.Fatal("unmapped while memory is held")
			}
			free(0)
		}
		if unmapped != 1 {
			t.Fatalf("unmapped %d times", unmapped)
		}
		if _, _, err := r.alloc(1, 0); !errors.Is(err, ErrClosed) {
			t.Fatalf("after close: %v", err)
		}
	})
}

func TestRAMRefuses(t *testing.T) {
	r := ram{mem: make([]byte, 4<<20)}
	for _, c := range []struct {
		n, align int
		want     error
	}{{0, 0, ErrConfig}, {-1, 0, ErrConfig}, {1, 3, ErrConfig}, {1, -1, ErrConfig}, {3<<20 + 1, 0, ErrNoMemory}, {1 << 30, 0, ErrNoMemory}, {1, 1 << 30, ErrNoMemory}} {
		if _, _, err := r.alloc(c.n, c.align); !errors.Is(err, c.want) {
			t.Errorf("%d bytes aligned to %d: %v, want %v", c.n, c.align, err, c.want)
		}
	}
	mem, at, err := r.alloc(3<<20, 0)
	if err != nil || len(mem) != 3<<20 || at != 1<<20 {
		t.Fatalf("all of it: %d bytes at %#x, %v", len(mem), at, err)
	}
	for _, c := range []struct {
		at uint64
		n  int
	}{{at + 4096, 4096}, {at, 4096}, {0, 3 << 20}, {at, 0}, {at, -1}} {
		if err := r.free(c.at, c.n); !errors.Is(err, ErrConfig) {
			t.Errorf("free %d bytes at %#x: %v", c.n, c.at, err)
		}
	}
}
