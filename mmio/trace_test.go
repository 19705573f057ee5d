package mmio_test

import (
	"testing"

	"github.com/gostmmac/gostmmac/mmio"
)

func TestAccessString(t *testing.T) {
	for want, a := range map[string]mmio.Access{
		"R 0000 00000000":     {},
		"W 1104 deadbeef":     {Off: 0x1104, Val: 0xdeadbeef, Store: true},
		"R fffffffc ffffffff": {Off: 0xffff_fffc, Val: mmio.AllOnes},
	} {
		if got := a.String(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// A store is shown before it is done and a load after, so that what the device
// does in response appears behind its cause.
func TestTraceOrder(t *testing.T) {
	f := mmio.NewFake(16)
	var order []string
	f.OnStore(8, func(uint32) { order = append(order, "stored") })
	f.OnLoad(8, func(v uint32) uint32 {
		order = append(order, "loaded")
		return v + 1
	})
	r := mmio.Trace(f, func(a mmio.Access) { order = append(order, a.String()) })
	if r.Len() != 16 {
		t.Errorf("length %d", r.Len())
	}
	r.Store32(8, 4)
	if got := r.Load32(8); got != 5 {
		t.Errorf("loaded %d, want 5", got)
	}
	want := []string{"W 0008 00000004", "stored", "loaded", "R 0008 00000005"}
	if len(order) != len(want) {
		t.Fatalf("order %q, want %q", order, want)
	}
	for i := range want {
		if order[i] != want[i] {
			t.Fatalf("order %q, want %q", order, want)
		}
	}
}

// Offsets in a trace are those of the region that is traced.
func TestTraceOffsets(t *testing.T) {
	var outer, inner []mmio.Access
	f := mmio.NewFake(64)
	below := mmio.Trace(f, func(a mmio.Access) { inner = append(inner, a) })
	r := mmio.Trace(mmio.Window(below, 16, 16), func(a mmio.Access) { outer = append(outer, a) })
	r.Store32(4, 9)
	r.Load32(4)
	r.Load32(16)
	wantLog(t, outer, mmio.Access{Off: 4, Val: 9, Store: true}, mmio.Access{Off: 4, Val: 9}, mmio.Access{Off: 16, Val: mmio.AllOnes})
	// the window lets nothing through that lies outside of it
	wantLog(t, inner, mmio.Access{Off: 20, Val: 9, Store: true}, mmio.Access{Off: 20, Val: 9})
}
