package mmio_test

import (
	"sync"
	"testing"

	"github.com/gostmmac/gostmmac/mmio"
)

func TestFakeSize(t *testing.T) {
	for size, want := range map[uint32]uint32{0: 0, 3: 0, 4: 4, 0x1003: 0x1000} {
		if got := mmio.NewFake(size).Len(); got != want {
			t.Errorf("a fake of %d bytes has %d", size, got)
		}
	}
}

func TestFakeScripts(t *testing.T) {
	type step struct {
		store bool
		v     uint32 // to store, or that the load returns
		left  uint32 // what the register holds then
	}
	load := func(v, left uint32) step { return step{false, v, left} }
	store := func(v, left uint32) step { return step{true, v, left} }
	for name, c := range map[string]struct {
		script func(f *mmio.Fake)
		before uint32
		steps  []step
	}{
		"plain": {nil, 5, []step{load(5, 5), store(9, 9), load(9, 9)}},
		"write 1 to clear": {func(f *mmio.Fake) { f.W1C(8, 0xff) }, 0x1ff, []step{
			store(0, 0xff),      // zeros leave the bits, the others are plain
			store(0x103, 0x1fc), // ones clear
			store(0x103, 0x1fc), // and do not set
			load(0x1fc, 0x1fc),
		}},
		"read clear": {func(f *mmio.Fake) { f.ReadClear(8, 0xf0) }, 0xff, []step{
			load(0xff, 0x0f), load(0x0f, 0x0f), store(0x31, 0x31), load(0x31, 0x01),
		}},
		"read-only": {func(f *mmio.Fake) { f.ReadOnly(8, 0xff00) }, 0x1200, []step{
			store(0xffff_ffff, 0xffff_12ff), store(0, 0x1200), load(0x1200, 0x1200),
		}},
		"read-only and write 1 to clear": {func(f *mmio.Fake) { f.ReadOnly(8, 0xf0); f.W1C(8, 0x0f) }, 0xff, []step{
			store(0xff, 0xf0), store(0, 0xf0),
		}},
		"self-clearing at once": {func(f *mmio.Fake) { f.SelfClearing(8, 1, 0) }, 0, []step{
			store(3, 3), load(2, 2), load(2, 2),
		}},
		"self-clearing after 1": {func(f *mmio.Fake) { f.SelfClearing(8, 1, 1) }, 0, []step{
			store(1, 1), load(1, 1), load(0, 0), load(0, 0),
			store(1, 1), load(1, 1), load(0, 0), // and again
		}},
		"self-clearing after 3": {func(f *mmio.Fake) { f.SelfClearing(8, 1, 3) }, 0, []step{
			store(1, 1), load(1, 1), load(1, 1), load(1, 1), load(0, 0),
			store(2, 2), load(2, 2), load(2, 2), // other bits stay
		}},
		"self-clearing, stored again": {func(f *mmio.Fake) { f.SelfClearing(8, 1, 2) }, 0, []step{
			store(1, 1), load(1, 1), store(1, 1), load(1, 1), load(1, 1), load(0, 0),
		}},
		"never self-clearing": {func(f *mmio.Fake) { f.SelfClearing(8, 1, -1) }, 0, []step{
			store(1, 1), load(1, 1), load(1, 1), load(1, 1), load(1, 1), load(1, 1), store(0, 0), load(0, 0),
		}},
	} {
		t.Run(name, func(t *testing.T) {
			f := mmio.NewFake(16)
			if c.script != nil {
				c.script(f)
			}
			f.Set(8, c.before)
			for i, s := range c.steps {
				if s.store {
					f.Store32(8, s.v)
				} else if got := f.Load32(8); got != s.v {
					t.Errorf("step %d loads %#x, want %#x", i, got, s.v)
				}
				if got := f.Peek(8); got != s.left {
					t.Errorf("step %d leaves %#x, want %#x", i, got, s.left)
				}
			}
		})
	}
}

// Set and Peek are the hardware's side: they run no script and leave no trace.
func TestFakeSetPeek(t *testing.T) {
	f := mmio.NewFake(16)
	f.W1C(0, mmio.AllOnes)
	f.ReadOnly(4, mmio.AllOnes)
	f.ReadClear(8, mmio.AllOnes)
	f.OnLoad(8, func(uint32) uint32 { t.Error("a hook ran"); return 0 })
	f.OnStore(8, func(uint32) { t.Error("a hook ran") })
	for off := uint32(0); off < 16; off += 4 {
		f.Set(off, 0xff)
		if a, b := f.Peek(off), f.Peek(off); a != 0xff || b != 0xff {
			t.Errorf("register %d holds %#x and then %#x", off, a, b)
		}
	}
	for _, off := range []uint32{1, 16, 0xffff_fffc} {
		f.Set(off, 1)
		if got := f.Peek(off); got != mmio.AllOnes {
			t.Errorf("offset %#x holds %#x, want all ones", off, got)
		}
	}
	wantLog(t, f.Log())
}

// Hooks run without the lock: they may do all that a driver may.
func TestFakeHooks(t *testing.T) {
	f := mmio.NewFake(16)
	f.OnStore(0, func(v uint32) { // a command that answers in another register
		if got := f.Peek(0); got != v {
			t.Errorf("the hook sees %#x, want %#x", got, v)
		}
		f.Store32(4, v*2)
	})
	f.OnLoad(4, func(v uint32) uint32 {
		f.Set(8, f.Peek(8)+1) // counts the reads
		return v | f.Load32(12)
	})
	f.Set(12, 0x100)
	f.Store32(0, 21)
	if got := f.Load32(4); got != 0x12a {
		t.Errorf("loaded %#x, want 0x12a", got)
	}
	if got := f.Peek(8); got != 1 {
		t.Errorf("%d reads, want 1", got)
	}
	wantLog(t, f.Log(),
		mmio.Access{Off: 0, Val: 21, Store: true},
		mmio.Access{Off: 4, Val: 42, Store: true},
		mmio.Access{Off: 12, Val: 0x100},
		mmio.Access{Off: 4, Val: 0x12a})
}

func TestFakeLog(t *testing.T) {
	f := mmio.NewFake(8)
	f.Store32(4, 7)
	f.Load32(4)
	f.Load32(8)
	f.Store32(8, 1)
	f.Load32(2)
	want := []mmio.Access{
		{Off: 4, Val: 7, Store: true}, {Off: 4, Val: 7},
		{Off: 8, Val: mmio.AllOnes}, {Off: 8, Val: 1, Store: true}, {Off: 2, Val: mmio.AllOnes},
	}
	got := f.Log()
	wantLog(t, got, want...)
	got[0].Val = 99 // the log is a copy
	wantLog(t, f.Log(), want...)
	f.ResetLog()
	wantLog(t, f.Log())
	f.Load32(0)
	wantLog(t, f.Log(), mmio.Access{})
}

// The log is in the order in which the accesses took effect: each load returns
// what the last store before it in the log left.
func TestFakeConcurrent(t *testing.T) {
	f := mmio.NewFake(16)
	f.SelfClearing(4, 1, 3)
	f.ReadClear(8, 1)
	f.OnStore(12, func(v uint32) { f.Set(8, v) })
	var wg sync.WaitGroup
	for g := range uint32(8) {
		wg.Go(func() {
			for i := range uint32(200) {
				f.Store32(0, g<<16|i)
				f.Load32(0)
				f.Store32(4, 1)
				f.Load32(4)
				f.Store32(12, i)
				f.Load32(8)
				f.W1C(8, i)
				f.Peek(8)
				if i%64 == 0 {
					f.Log()
				}
			}
		})
	}
	wg.Wait()
	last, loads := uint32(0), 0
	for i, a := range f.Log() {
		switch {
		case a.Off != 0:
		case a.Store:
			last = a.Val
		default:
			loads++
			if a.Val != last {
				t.Fatalf("access %d loaded %#x, the last store before it was %#x", i, a.Val, last)
			}
		}
	}
	if loads != 8*200 {
		t.Errorf("%d loads in the log, want %d", loads, 8*200)
	}
}
