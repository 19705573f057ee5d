package pagepool

import (
	"errors"
	"os"
	"testing"
	"unsafe"
)

// pinning is a bus that pins what it maps.
type pinning struct{ *bus }

func (pinning) PinsDMA() bool { return true }

// narrow is a bus on which n bytes lie together at most.
type narrow struct {
	*bus
	n int
}

func (b narrow) MaxContiguousDMA() int { return b.n }

// Memory that a device pins is not locked as well: it would be charged twice.
func TestPinned(t *testing.T) {
	p := newPool(t, pinning{newBus(t, 0, false)}, 64, WithSmallPages())
	b := alloc(t, p, 1)[0]
	b.Reset(0)
	b.SetLen(1)
	if flags := vmFlags(t, uintptr(unsafe.Pointer(&b.Bytes()[0]))); flags["lo"] || p.Memory().Locked {
		t.Errorf("the pool is locked: %v, VmFlags %v", p.Memory().Locked, flags)
	}
	p.Free(b)
	closeAll(t, p)

	m, err := NewMemory(pinning{newBus(t, 0, false)}, 4096, 16)
	if err != nil {
		t.Fatal(err)
	}
	if flags := vmFlags(t, uintptr(unsafe.Pointer(&m.Bytes()[0]))); flags["lo"] {
		t.Errorf("the ring memory is locked: VmFlags %v", flags)
	}
	closeAll(t, m)
}

// Arenas are no larger than what lies together for the device.
func TestContiguous(t *testing.T) {
	const most = 64 << 10
	m := narrow{newBus(t, 0, true), most}
	p := newPool(t, m, 100)
	info := p.Memory()
	if want := (100 + most/stride(2048) - 1) / (most / stride(2048)); info.Arenas != want || info.Bytes > info.Arenas*most {
		t.Errorf("%+v, want %d arenas of at most %d bytes", info, want, most)
	}
	if p.Size() != 100 {
		t.Errorf("%d buffers", p.Size())
	}
	closeAll(t, p)

	if _, err := New(narrow{newBus(t, 0, true), 1024}, 1); !errors.Is(err, os.ErrInvalid) {
		t.Errorf("a buffer that is larger than what lies together: %v", err)
	}
	p = newPool(t, narrow{newBus(t, 0, true), 0}, 100)
	if n := p.Memory().Arenas; n != 1 {
		t.Errorf("%d arenas where there is no limit", n)
	}
	closeAll(t, p)
}
