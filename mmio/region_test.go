package mmio_test

import (
	"encoding/binary"
	"fmt"
	"testing"
	"unsafe"

	"github.com/gostmmac/gostmmac/mmio"
)

// words returns n bytes of memory that start at a multiple of four.
func words(n int) []byte {
	w := make([]uint32, (n+3)/4)
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(w))), len(w)*4)[:n]
}

func TestMap(t *testing.T) {
	mem := words(16)
	r := mmio.Map(mem)
	if r.Len() != 16 {
		t.Fatalf("16 bytes make a region of %d", r.Len())
	}
	for off := uint32(0); off < 16; off += 4 {
		r.Store32(off, 0x1100_0000+off)
		if got := binary.NativeEndian.Uint32(mem[off:]); got != 0x1100_0000+off {
			t.Errorf("the memory at %d holds %#x", off, got)
		}
		binary.NativeEndian.PutUint32(mem[off:], 0x2200_0000+off)
		if got := r.Load32(off); got != 0x2200_0000+off {
			t.Errorf("offset %d loads %#x", off, got)
		}
	}
}

func TestMapLengths(t *testing.T) {
	mem := words(64)
	for _, c := range []struct {
		mem  []byte
		want uint32
	}{
		{nil, 0},
		{mem[:0], 0},
		{mem[:3], 0},
		{mem[:4], 4},
		{mem[:7], 4},
		{mem[:64], 64},
		{mem[4:20], 16},
		{mem[1:33], 0},
		{mem[2:34], 0},
		{mem[3:35], 0},
	} {
		if got := mmio.Map(c.mem).Len(); got != c.want {
			t.Errorf("%d bytes at %p make a region of %d, want %d", len(c.mem), c.mem, got, c.want)
		}
	}
}

// regions returns regions of 16 bytes of every kind, each with the memory or
// the registers in front of and behind it.
func regions() map[string]struct {
	r    mmio.Region
	peek func(off int) uint32
} {
	type kind = struct {
		r    mmio.Region
		peek func(off int) uint32
	}
	mem, part := words(48), words(48)
	f, inner := mmio.NewFake(16), mmio.NewFake(48)
	traced := mmio.NewFake(48)
	at := func(mem []byte) func(int) uint32 {
		return func(off int) uint32 { return binary.NativeEndian.Uint32(mem[16+off:]) }
	}
	return map[string]kind{
		"map":    {mmio.Map(mem[16:32]), at(mem)},
		"window": {mmio.Window(mmio.Map(part), 16, 16), at(part)},
		"fake": {f, func(off int) uint32 {
			if off < 0 || off >= 16 {
				return 0
			}
			return f.Peek(uint32(off))
		}},
		"window of fake":  {mmio.Window(inner, 16, 16), func(off int) uint32 { return inner.Peek(uint32(16 + off)) }},
		"window of trace": {mmio.Window(mmio.Trace(traced, func(mmio.Access) {}), 16, 16), func(off int) uint32 { return traced.Peek(uint32(16 + off)) }},
	}
}

func TestOutOfRange(t *testing.T) {
	for name, k := range regions() {
		t.Run(name, func(t *testing.T) {
			for off := uint32(0); off < 16; off += 4 {
				k.r.Store32(off, 0x0101_0101)
			}
			for _, off := range []uint32{1, 2, 3, 5, 13, 14, 15, 16, 17, 20, 1 << 31, 0xffff_fff0, 0xffff_fffc, 0xffff_ffff} {
				if got := k.r.Load32(off); got != mmio.AllOnes {
					t.Errorf("offset %#x loads %#x, want all ones", off, got)
				}
				k.r.Store32(off, 0xdead_dead)
			}
			for off := -16; off < 32; off += 4 {
				want := uint32(0)
				if off >= 0 && off < 16 {
					want = 0x0101_0101
				}
				if got := k.peek(off); got != want {
					t.Errorf("offset %d holds %#x, want %#x", off, got, want)
				}
			}
		})
	}
}

func TestWindow(t *testing.T) {
	const size = 32
	for _, kind := range []string{"map", "fake", "trace"} {
		for _, c := range []struct{ off, n, want uint32 }{
			{0, size, size},
			{0, 0xffff_ffff, size},
			{8, 8, 8},
			{8, 7, 4},
			{8, 3, 0},
			{24, 100, 8},
			{28, 4, 4},
			{size, 4, 0},
			{size + 4, 4, 0},
			{0xffff_fffc, 8, 0},
			// registers do not start between two multiples of four
			{1, 8, 0},
			{2, 8, 0},
			{7, 8, 0},
		} {
			t.Run(fmt.Sprintf("%s %d+%d", kind, c.off, c.n), func(t *testing.T) {
				r := region(kind, size)
				for off := uint32(0); off < size; off += 4 {
					r.Store32(off, off)
				}
				w := mmio.Window(r, c.off, c.n)
				if w.Len() != c.want {
					t.Fatalf("length %d, want %d", w.Len(), c.want)
				}
				for off := uint32(0); off < size; off += 4 {
					want := mmio.AllOnes
					if off < c.want {
						want = c.off + off
					}
					if got := w.Load32(off); got != want {
						t.Errorf("offset %d loads %#x, want %#x", off, got, want)
					}
				}
			})
		}
	}
}

func region(kind string, size uint32) mmio.Region {
	switch kind {
	case "map":
		return mmio.Map(words(int(size)))
	case "trace":
		return mmio.Trace(mmio.NewFake(size), func(mmio.Access) {})
	}
	return mmio.NewFake(size)
}

// A window of a window is one of the region below, cut where the outer ends.
func TestWindowNests(t *testing.T) {
	for _, kind := range []string{"map", "fake", "trace"} {
		r := region(kind, 64)
		r.Store32(24, 0x77)
		r.Store32(28, 0x88)
		r.Store32(32, 0x99)
		w := mmio.Window(mmio.Window(mmio.Window(r, 8, 40), 8, 16), 8, 64)
		if w.Len() != 8 {
			t.Errorf("%s: length %d, want 8", kind, w.Len())
		}
		for off, want := range map[uint32]uint32{0: 0x77, 4: 0x88, 8: mmio.AllOnes} {
			if got := w.Load32(off); got != want {
				t.Errorf("%s: offset %d loads %#x, want %#x", kind, off, got, want)
			}
		}
		w.Store32(4, 0xab)
		w.Store32(8, 0xcd)
		if a, b := r.Load32(28), r.Load32(32); a != 0xab || b != 0x99 {
			t.Errorf("%s: stores through the window left %#x and %#x", kind, a, b)
		}
	}
}

// odd is a region of a user whose length is no multiple of four.
type odd struct{ mmio.Region }

func (odd) Len() uint32 { return 10 }

func TestWindowOfOddLength(t *testing.T) {
	if got := mmio.Window(odd{mmio.NewFake(16)}, 4, 100).Len(); got != 4 {
		t.Errorf("length %d, want 4: the register at 8 is not inside", got)
	}
}
