package pagepool

import (
	"errors"
	"math"
	"os"
	"testing"
	"unsafe"
)

func TestMemory(t *testing.T) {
	noLeak(t)
	page := os.Getpagesize()
	for _, brings := range []bool{false, true} {
		for _, c := range []struct{ n, align int }{{1, 1}, {16, 16}, {4096, 64}, {page, page}, {page + 1, page}, {3 * page, 128}} {
			m := newBus(t, 0x10_0000, brings)
			mem, err := NewMemory(m, c.n, c.align)
			if err != nil {
				t.Fatal(err)
			}
			b := mem.Bytes()
			at := uintptr(unsafe.Pointer(&b[0]))
			if len(b) != c.n || cap(b) != c.n || at%uintptr(c.align) != 0 || mem.Addr()%uint64(c.align) != 0 {
				t.Errorf("%d of %d bytes at %#x and %#x for %d aligned to %d", len(b), cap(b), at, mem.Addr(), c.n, c.align)
			}
			for i := range b {
				if b[i] != 0 {
					t.Fatalf("byte %d is %#x", i, b[i])
				}
			}
			for _, off := range []int{0, c.n - 1} {
				if got := m.at(mem.Addr() + uint64(off)); got != unsafe.Pointer(&b[off]) {
					t.Errorf("the device reaches %p for offset %d", got, off)
				}
			}
			if !brings && !vmFlags(t, at)["dc"] {
				t.Error("a child of fork gets the memory")
			}
			closeAll(t, mem, mem)
			if mem.Bytes() != nil || m.mapped() != 0 {
				t.Error("a closed memory is there")
			}
		}
	}
}

func TestMemoryRefuses(t *testing.T) {
	noLeak(t)
	m := newBus(t, 0, false)
	for _, c := range []struct{ n, align int }{
		{0, 64}, {-1, 64}, {64, 0}, {64, -64}, {64, 3}, {64, 2 * os.Getpagesize()}, {64, math.MinInt},
	} {
		_, err := NewMemory(m, c.n, c.align)
		wantTyped(t, err, os.ErrInvalid)
	}
	// with the guard pages it is more than an int holds
	for _, n := range []int{math.MaxInt, math.MaxInt - os.Getpagesize(), math.MaxInt - 2*os.Getpagesize()} {
		_, err := NewMemory(m, n, 64)
		wantTyped(t, err, nil)
	}
	if m.maps != 0 {
		t.Error("the device was asked")
	}
}

func TestMemoryFails(t *testing.T) {
	noLeak(t)
	m := newBus(t, 0, false)
	m.mapFails = 1
	_, err := NewMemory(m, 64, 64)
	wantTyped(t, err, errBus)

	m = newBus(t, 0, true)
	m.allocFails = 1
	_, err = NewMemory(m, 64, 64)
	wantTyped(t, err, errBus)

	for _, brings := range []bool{false, true} {
		m = newBus(t, 0, brings)
		mem, err := NewMemory(m, 64, 64)
		if err != nil {
			t.Fatal(err)
		}
		m.unmapFails = true
		wantTyped(t, mem.Close(), errBus)
		if err := mem.Close(); err != nil {
			t.Errorf("closing again: %v", err)
		}
		m.drop()
	}
}

func TestErrors(t *testing.T) {
	e := &Error{Op: "attach", Err: errBus}
	if e.Error() != "pagepool: attach: the bus fails" || !errors.Is(e, errBus) {
		t.Errorf("%q", e.Error())
	}
	l := &LeakError{Holders: map[string]int{"rx0": 2, "application": 1}}
	if got, want := l.Error(), "pagepool: close: 3 buffers are still held (application 1, rx0 2); their memory is kept until they are freed"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
