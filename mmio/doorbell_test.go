package mmio

import (
	"testing"
	"unsafe"
)

func TestDoorbell(t *testing.T) {
	words := make([]uint32, 4)
	mem := unsafe.Slice((*byte)(unsafe.Pointer(&words[0])), 16)
	fake := NewFake(16)
	for name, r := range map[string]Region{"map": Map(mem), "window": Window(Map(mem), 4, 8), "fake": fake, "window of a fake": Window(fake, 4, 8)} {
		d := NewDoorbell(r, 4)
		d.Ring(0xabcd0000 + r.Len())
		if got := r.Load32(4); got != 0xabcd0000+r.Len() {
			t.Errorf("%s: register has %#x", name, got)
		}
		before := r.Load32(4)
		for _, off := range []uint32{2, 16, 1 << 31, AllOnes} {
			d := NewDoorbell(r, off)
			d.Ring(1)
		}
		if got := r.Load32(4); got != before {
			t.Errorf("%s: a doorbell that is not there wrote %#x", name, got)
		}
	}
	d := NewDoorbell(Map(mem), 0)
	if n := testing.AllocsPerRun(100, func() { d.Ring(1) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
