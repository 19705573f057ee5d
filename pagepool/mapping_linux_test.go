package pagepool

import (
	"fmt"
	"testing"
	"unsafe"
)

// wantReach checks that the address of every buffer leads the device to it.
func wantReach(t *testing.T, m *bus, v *View, bufs []*Buf) {
	t.Helper()
	for i, b := range bufs {
		b.SetLen(1)
		h, addr, ok := v.Lookup(b)
		if !ok || v.Buf(h) != b {
			t.Fatalf("buffer %d is unknown", i)
		}
		if got, want := m.at(addr), unsafe.Pointer(&b.Bytes()[0]); got != want {
			t.Errorf("buffer %d is at %p, the device reaches %p", i, want, got)
		}
		if At(v.First(), h) != b || HandleOf(v.First(), b) != h {
			t.Errorf("buffer %d is not that of handle %d", i, h)
		}
		if v.Bus().Chunk(b)+uint64(b.Offset()) != addr {
			t.Errorf("buffer %d lies in arena %d at %#x, not at %#x", i, b.Arena(), b.chunk, addr)
		}
		if addr >= v.End() {
			t.Errorf("buffer %d at %#x lies behind the end %#x", i, addr, v.End())
		}
	}
}

func TestTwoDevices(t *testing.T) {
	noLeak(t)
	for _, brings := range []bool{false, true} {
		t.Run(fmt.Sprintf("brings %v", brings), func(t *testing.T) {
			m1, m2 := newBus(t, 0x10_0000, brings), newBus(t, 0xffff_0000_0000, false)
			p := newPool(t, m1, 8, perArena(4))
			if m1.maps+m2.maps != 0 {
				t.Error("a pool is mapped before a device is attached")
			}
			mp1, mp2 := attach(t, p, m1), attach(t, p, m2)
			if mp1.Pool() != p || mp2.Pool() != p {
				t.Error("a mapping of another pool")
			}
			bufs := alloc(t, p, 8)
			v1, v2 := mp1.View(), mp2.View()
			wantReach(t, m1, v1, bufs)
			wantReach(t, m2, v2, bufs)
			if m1.mapped() != 2 || m2.mapped() != 2 {
				t.Errorf("%d and %d arenas mapped", m1.mapped(), m2.mapped())
			}

			// the pool grows under both
			if err := p.Grow(10); err != nil {
				t.Fatal(err)
			}
			if p.Size() != 18 || m1.mapped() != 5 || m2.mapped() != 5 {
				t.Errorf("%d buffers, %d and %d arenas mapped", p.Size(), m1.mapped(), m2.mapped())
			}
			fresh := alloc(t, p, 10)
			for _, v := range []*View{v1, v2} {
				if _, _, ok := v.Lookup(fresh[0]); ok {
					t.Error("an old view knows a new buffer")
				}
			}
			if mp1.View() == v1 || mp2.View() == v2 {
				t.Error("the views were not replaced")
			}
			// the old views are as they were
			wantReach(t, m1, v1, bufs)
			wantReach(t, m2, v2, bufs)
			bufs = append(bufs, fresh...)
			wantReach(t, m1, mp1.View(), bufs)
			wantReach(t, m2, mp2.View(), bufs)

			// one leaves; the other does not notice
			closeAll(t, mp2)
			if m2.mapped() != 0 {
				t.Errorf("%d arenas still mapped", m2.mapped())
			}
			if _, _, ok := mp2.View().Lookup(bufs[0]); ok {
				t.Error("a closed mapping knows a buffer")
			}
			wantReach(t, m1, mp1.View(), bufs)
			mp2 = attach(t, p, m2)
			wantReach(t, m2, mp2.View(), bufs)
			p.FreeBatch(bufs)
			closeAll(t, mp1, mp2, p)
			if m1.mapped() != 0 || m2.mapped() != 0 {
				t.Errorf("%d and %d left", m1.mapped(), m2.mapped())
			}
		})
	}
}

func TestLookupForeign(t *testing.T) {
	m := newBus(t, 0, false)
	p, q := newPool(t, m, 4, perArena(2)), newPool(t, m, 8, perArena(2))
	mp := attach(t, p, m)
	bufs := alloc(t, q, 8)
	for i, b := range bufs {
		if h, addr, ok := mp.View().Lookup(b); ok {
			t.Errorf("buffer %d of another pool: %#x, %#x", i, h, addr)
		}
	}
	if _, _, ok := mp.View().Lookup(&Buf{}); ok {
		t.Error("a buffer of no pool is known")
	}
	q.FreeBatch(bufs)
	closeAll(t, mp, p, q)
}

// A device whose mapping fails at any arena is not attached, and nothing stays
// mapped.
func TestAttachFails(t *testing.T) {
	noLeak(t)
	m1 := newBus(t, 0, false)
	p := newPool(t, m1, 16, perArena(4))
	mp := attach(t, p, m1)
	for k := 1; k <= 4; k++ {
		m := newBus(t, 0, false)
		m.mapFails = k
		got, err := p.Attach(m)
		if got != nil {
			t.Errorf("attached in spite of arena %d", k)
		}
		wantTyped(t, err, errBus)
		if m.maps != k || m.mapped() != 0 {
			t.Errorf("%d of %d arenas stay mapped", m.mapped(), m.maps)
		}
		bufs := alloc(t, p, 16)
		wantReach(t, m1, mp.View(), bufs)
		p.FreeBatch(bufs)
		mp2 := attach(t, p, m) // only one call fails
		closeAll(t, mp2)
	}
	// what cannot be unmapped either is reported too
	m := newBus(t, 0, false)
	m.mapFails, m.unmapFails = 3, true
	_, err := p.Attach(m)
	wantTyped(t, err, errBus)
	closeAll(t, mp, p)
}

// A pool that cannot map a new arena for all its devices has the arenas that
// were complete, mapped for all, and can try again.
func TestGrowFails(t *testing.T) {
	noLeak(t)
	for _, brings := range []bool{false, true} {
		for k := 1; k <= 3; k++ {
			m1, m2 := newBus(t, 0x1000, brings), newBus(t, 0x1000, false)
			p := newPool(t, m1, 8, perArena(4))
			mp1, mp2 := attach(t, p, m1), attach(t, p, m2)
			m2.mapFails = m2.maps + k
			// memory of the device is mapped for it when it is made
			wantTyped(t, p.Grow(12), errBus)
			arenas := 2 + k - 1
			if p.Size() != 4*arenas || p.Memory().Arenas != arenas {
				t.Errorf("%d buffers in %d arenas, want %d", p.Size(), p.Memory().Arenas, arenas)
			}
			if m1.mapped() != arenas || m2.mapped() != arenas {
				t.Errorf("%d and %d arenas mapped, want %d", m1.mapped(), m2.mapped(), arenas)
			}
			bufs := alloc(t, p, p.Size())
			if alloc0(t, p) != nil {
				t.Error("more buffers than the size")
			}
			wantReach(t, m1, mp1.View(), bufs)
			wantReach(t, m2, mp2.View(), bufs)
			if err := p.Grow(12); err != nil {
				t.Error(err)
			}
			fresh := alloc(t, p, 12)
			wantReach(t, m1, mp1.View(), fresh)
			wantReach(t, m2, mp2.View(), fresh)
			p.FreeBatch(append(bufs, fresh...))
			closeAll(t, mp1, mp2, p)
			if m1.mapped() != 0 || m2.mapped() != 0 {
				t.Errorf("%d and %d left", m1.mapped(), m2.mapped())
			}
		}
	}
}

// A waiter hears of the arenas that a Grow completed before it failed.
func TestGrowFailsWakes(t *testing.T) {
	m := newBus(t, 0, true)
	p := newPool(t, m, 1, perArena(1))
	b := alloc(t, p, 1)[0]
	ch := make(chan struct{}, 1)
	p.NotifyFree(ch)
	m.allocFails = m.alloc + 2
	wantTyped(t, p.Grow(2), errBus)
	if len(ch) != 1 {
		t.Error("not woken")
	}
	p.Free(b)
	closeAll(t, p)
}

func TestAllocDMAFails(t *testing.T) {
	noLeak(t)
	for k := 1; k <= 4; k++ {
		m := newBus(t, 0, true)
		m.allocFails = k
		p, err := New(m, 16, perArena(4))
		if p != nil {
			t.Errorf("a pool in spite of arena %d", k)
		}
		wantTyped(t, err, errBus)
		if m.alloc != k || m.mapped() != 0 {
			t.Errorf("%d of %d arenas stay", m.mapped(), m.alloc)
		}
	}
}

func TestAllocDMAMisshapen(t *testing.T) {
	noLeak(t)
	for name, shape := range map[string]func([]byte, uint64) ([]byte, uint64){
		"too short":                  func(mem []byte, iova uint64) ([]byte, uint64) { return mem[:len(mem)-1], iova },
		"empty":                      func(mem []byte, iova uint64) ([]byte, uint64) { return nil, iova },
		"misaligned on the bus":      func(mem []byte, iova uint64) ([]byte, uint64) { return mem, iova + 32 },
		"misaligned in the process":  func(mem []byte, iova uint64) ([]byte, uint64) { return mem[32:cap(mem):cap(mem)], iova },
		"misaligned and long enough": nil,
	} {
		m := newBus(t, 0x1000, true)
		m.shape = shape
		if shape == nil {
			m = newBus(t, 0x1000, true)
			m.shape = func(mem []byte, iova uint64) ([]byte, uint64) {
				// a slice that is long enough but does not start on a page
				return unsafe.Slice((*byte)(unsafe.Pointer(&mem[32])), len(mem)), iova
			}
		}
		if p, err := New(m, 1); p != nil {
			t.Errorf("%s: a pool", name)
		} else {
			wantTyped(t, err, nil)
		}
		if m.mapped() != 0 {
			t.Errorf("%s: the memory stays", name)
		}
		if mem, err := NewMemory(m, 4096, 64); mem != nil {
			t.Errorf("%s: a memory", name)
		} else {
			wantTyped(t, err, nil)
		}
		if m.mapped() != 0 {
			t.Errorf("%s: the memory stays", name)
		}
	}
}

// A device that cannot be made to forget the memory is reported; the pool can
// still be closed.
func TestUnmapFails(t *testing.T) {
	noLeak(t)
	for _, brings := range []bool{false, true} {
		m1, m2 := newBus(t, 0, brings), newBus(t, 0, false)
		p := newPool(t, m1, 8, perArena(4))
		mp1, mp2 := attach(t, p, m1), attach(t, p, m2)
		m2.unmapFails = true
		wantTyped(t, mp2.Close(), errBus)
		if err := mp2.Close(); err != nil {
			t.Errorf("closing again: %v", err)
		}
		bufs := alloc(t, p, 8)
		wantReach(t, m1, mp1.View(), bufs)
		p.FreeBatch(bufs)
		closeAll(t, mp1)
		m1.unmapFails = true
		err := p.Close()
		if brings {
			wantTyped(t, err, errBus)
		} else if err != nil {
			t.Error(err)
		}
		closeAll(t, p)
		m1.drop()
	}
}
