package barrier_test

import (
	"testing"

	"github.com/gostmmac/gostmmac/barrier"
)

// barriers and accessors name the whole API once, for the tests and benchmarks that go through all of it.
var barriers = []struct {
	name  string
	order func()
}{
	{"DMARead", barrier.DMARead},
	{"DMAWrite", barrier.DMAWrite},
	{"DMARelease", barrier.DMARelease},
	{"DMAFull", barrier.DMAFull},
	{"IORead", barrier.IORead},
	{"IOWrite", barrier.IOWrite},
}

var loads = []struct {
	name string
	load func(*uint32) uint32
}{
	{"LoadOwn", barrier.LoadOwn},
	{"Load32", barrier.Load32},
}

var stores = []struct {
	name  string
	store func(*uint32, uint32)
}{
	{"StoreOwn", barrier.StoreOwn},
	{"Store32", barrier.Store32},
}

// Every bit is seen as 0 and as 1, the top bit decides about sign extension.
var values = []uint32{0, 1, 0x7fffffff, 0x80000000, 0xdeadbeef, 0x55aa33cc, 0xffffffff}

func TestLoadValue(t *testing.T) {
	for _, l := range loads {
		for i := 1; i < 8; i++ {
			var words [9]uint32
			for _, v := range values {
				words[i-1], words[i], words[i+1] = ^v, v, ^v
				if got := l.load(&words[i]); got != v {
					t.Errorf("%s of word %d: %#x, want %#x", l.name, i, got, v)
				}
				if words[i-1] != ^v || words[i] != v || words[i+1] != ^v {
					t.Errorf("%s of word %d changed memory: %#x", l.name, i, words)
				}
			}
		}
	}
}

func TestStoreWidth(t *testing.T) {
	for _, s := range stores {
		for i := 1; i < 8; i++ {
			for _, v := range values {
				var words, want [9]uint32
				for j := range words {
					words[j] = ^v ^ uint32(j)
				}
				want = words
				want[i] = v
				s.store(&words[i], v)
				if words != want {
					t.Errorf("%s(%#x) of word %d: %#x, want %#x", s.name, v, i, words, want)
				}
			}
		}
	}
}

// The compiler must not answer the second load from the first, nor drop the first store.
func TestAccessesAreNotMerged(t *testing.T) {
	for _, s := range stores {
		for _, l := range loads {
			var w uint32
			s.store(&w, 1)
			first := l.load(&w)
			s.store(&w, 2)
			if second := l.load(&w); first != 1 || second != 2 {
				t.Errorf("%s, %s: read %d then %d, want 1 then 2", s.name, l.name, first, second)
			}
		}
	}
}

func TestNoAllocation(t *testing.T) {
	var w uint32
	check := func(name string, f func()) {
		t.Helper()
		if n := testing.AllocsPerRun(100, f); n != 0 {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
	for _, b := range barriers {
		check(b.name, b.order)
	}
	check("LoadOwn", func() { var v uint32; barrier.LoadOwn(&v) })
	check("Load32", func() { var v uint32; barrier.Load32(&v) })
	check("StoreOwn", func() { var v uint32; barrier.StoreOwn(&v, 1); w += v })
	check("Store32", func() { var v uint32; barrier.Store32(&v, 1); w += v })
	if w == 0 {
		t.Error("the stores did not happen")
	}
}
