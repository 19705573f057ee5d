package barrier_test

import (
	"os"
	"runtime"
	"runtime/debug"
	"syscall"
	"testing"
	"unsafe"
)

// guarded returns one accessible page between two that are not.
func guarded(t *testing.T) (page, behind []byte) {
	t.Helper()
	size := os.Getpagesize()
	mem, err := syscall.Mmap(-1, 0, 3*size, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_PRIVATE|syscall.MAP_ANON)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := syscall.Munmap(mem); err != nil {
			t.Error(err)
		}
	})
	page, behind = mem[size:2*size], mem[2*size:]
	for _, guard := range [][]byte{mem[:size], behind} {
		if err := syscall.Mprotect(guard, syscall.PROT_NONE); err != nil {
			t.Fatal(err)
		}
	}
	return page, behind
}

// faults reports whether f faults. A fault is a panic here, as it is for a driver that survives the loss of its device.
func faults(f func()) (fault bool) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if r := recover(); r != nil {
			if _, ok := r.(runtime.Error); !ok {
				panic(r)
			}
			fault = true
		}
	}()
	f()
	return false
}

// An access wider than 32 bits, or one that starts lower, meets a page without access.
func TestWidthAtPageEdges(t *testing.T) {
	page, _ := guarded(t)
	for _, off := range []int{0, len(page) - 4} {
		p := (*uint32)(unsafe.Pointer(&page[off]))
		for _, s := range stores {
			if faults(func() { s.store(p, 0x80000001) }) {
				t.Errorf("%s at offset %#x touches a neighbouring page", s.name, off)
			}
			for _, l := range loads {
				var got uint32
				if faults(func() { got = l.load(p) }) || got != 0x80000001 {
					t.Errorf("%s at offset %#x: %#x, want 0x80000001 and no fault", l.name, off, got)
				}
			}
		}
	}
}

// A fault inside an accessor unwinds through its frame.
func TestFaultIsRecoverable(t *testing.T) {
	_, behind := guarded(t)
	p := (*uint32)(unsafe.Pointer(unsafe.SliceData(behind)))
	for _, l := range loads {
		if !faults(func() { l.load(p) }) {
			t.Errorf("%s made no access", l.name)
		}
	}
	for _, s := range stores {
		if !faults(func() { s.store(p, 1) }) {
			t.Errorf("%s made no access", s.name)
		}
	}
}
