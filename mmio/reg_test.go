package mmio_test

import (
	"testing"

	"github.com/gostmmac/gostmmac/mmio"
)

type control uint32

func TestRegLoadStore(t *testing.T) {
	f := mmio.NewFake(0x20)
	const reg mmio.Reg[control] = 0x10
	for _, v := range []control{0, 1, 0x8000_0000, 0xffff_fffe, 0xa5a5_5a5a} {
		reg.Store(f, v)
		if got := f.Peek(0x10); got != uint32(v) {
			t.Errorf("stored %#x, the register holds %#x", v, got)
		}
		if got := reg.Load(f); got != v {
			t.Errorf("loaded %#x, want %#x", got, v)
		}
	}
	for off := uint32(0); off < 0x20; off += 4 {
		if off != 0x10 && f.Peek(off) != 0 {
			t.Errorf("register %#x was changed too", off)
		}
	}
}

func TestRegUpdate(t *testing.T) {
	const reg mmio.Reg[control] = 4
	for _, c := range []struct{ before, clear, set, after control }{
		{0, 0, 0, 0},
		{0xffff_ffff, 0, 0, 0xffff_ffff},
		{0xffff_ffff, 0xf0, 0, 0xffff_ff0f},
		{0, 0, 0x8000_0001, 0x8000_0001},
		{0x30, 0x70, 0x40, 0x40},
		{0x10, 0x10, 0x10, 0x10}, // a bit in both ends up set
		{0x1234_5678, 0xffff_ffff, 0x9abc_def0, 0x9abc_def0},
	} {
		f := mmio.NewFake(8)
		f.Set(4, uint32(c.before))
		if got := reg.Update(f, c.clear, c.set); got != c.after {
			t.Errorf("%#x clear %#x set %#x returned %#x, want %#x", c.before, c.clear, c.set, got, c.after)
		}
		if got := f.Peek(4); got != uint32(c.after) {
			t.Errorf("%#x clear %#x set %#x left %#x, want %#x", c.before, c.clear, c.set, got, c.after)
		}
		wantLog(t, f.Log(), mmio.Access{Off: 4, Val: uint32(c.before)}, mmio.Access{Off: 4, Val: uint32(c.after), Store: true})
	}
}

func TestRegAt(t *testing.T) {
	for _, c := range []struct {
		base   mmio.Reg[control]
		n      int
		stride uint32
		want   mmio.Reg[control]
	}{
		{0x300, 0, 8, 0x300},
		{0x300, 1, 8, 0x308},
		{0x304, 127, 8, 0x6fc},
		{0x1100, 3, 0x80, 0x1280},
		{0x1100, 5, 0, 0x1100},
	} {
		if got := c.base.At(c.n, c.stride); got != c.want {
			t.Errorf("%#x.At(%d, %#x) = %#x, want %#x", c.base, c.n, c.stride, got, c.want)
		}
	}
}

func TestField(t *testing.T) {
	for _, c := range []struct {
		f    mmio.Field[control]
		v    control
		get  uint32
		x    uint32
		put  control
		of   control
		most uint32
	}{
		{0x0000_0001, 0xffff_ffff, 1, 0, 0xffff_fffe, 0, 1},
		{0x8000_0000, 0x7fff_ffff, 0, 1, 0xffff_ffff, 0x8000_0000, 1},
		{0x0000_ff00, 0x1234_5678, 0x56, 0xab, 0x1234_ab78, 0xab00, 0xff},
		// what the field has no room for is dropped
		{0x0000_0070, 0, 0, 0xff, 0x70, 0x70, 7},
		{0x0000_0070, 0x0f, 0, 8, 0x0f, 0, 7},
		{0xffff_ffff, 0xdead_beef, 0xdead_beef, 1, 1, 1, 0xffff_ffff},
		{0xffff_0000, 0xdead_beef, 0xdead, 0x1_2345, 0x2345_beef, 0x2345_0000, 0xffff},
		// a field of no bits holds nothing
		{0, 0xffff_ffff, 0, 0xffff_ffff, 0xffff_ffff, 0, 0},
	} {
		if got := c.f.Get(c.v); got != c.get {
			t.Errorf("field %#x of %#x is %#x, want %#x", c.f, c.v, got, c.get)
		}
		if got := c.f.Put(c.v, c.x); got != c.put {
			t.Errorf("field %#x of %#x set to %#x gives %#x, want %#x", c.f, c.v, c.x, got, c.put)
		}
		if got := c.f.Of(c.x); got != c.of {
			t.Errorf("field %#x alone set to %#x gives %#x, want %#x", c.f, c.x, got, c.of)
		}
		if got := c.f.Mask(); got != control(c.f) {
			t.Errorf("mask of field %#x is %#x", c.f, got)
		}
		if got := c.f.Max(); got != c.most {
			t.Errorf("field %#x holds at most %#x, want %#x", c.f, got, c.most)
		}
	}
}

// wantLog compares accesses.
func wantLog(t *testing.T, got []mmio.Access, want ...mmio.Access) {
	t.Helper()
	if len(got) != len(want) {
		t.Errorf("%d accesses %v, want %d %v", len(got), got, len(want), want)
		return
	}
	for i := range got {
		if got[i] != want[i] {
			t.Errorf("access %d is %v, want %v", i, got[i], want[i])
		}
	}
}

func BenchmarkRegUpdate(b *testing.B) {
	const reg mmio.Reg[control] = 8
	var m mmio.Region = mmio.Map(words(16))
	b.ReportAllocs()
	for b.Loop() {
		reg.Update(m, 0xff, 1)
	}
}

func TestRegUpdateAllocatesNothing(t *testing.T) {
	const reg mmio.Reg[control] = 8
	for _, r := range []mmio.Region{mmio.Map(words(16)), mmio.Window(mmio.Map(words(32)), 16, 16)} {
		if n := testing.AllocsPerRun(100, func() { reg.Update(r, 0xff, 1) }); n != 0 {
			t.Errorf("Update of %T allocates %v objects", r, n)
		}
	}
}
