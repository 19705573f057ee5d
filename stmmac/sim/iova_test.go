package sim

import (
	"bytes"
	"context"
	"errors"
	"net"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/gostmmac/gostmmac/mmio"
	r4 "github.com/gostmmac/gostmmac/stmmac/internal/regs/gmac4reg"
)

// TestSpace: whatever is mapped and unmapped, mappings lie apart, below their bound
// and off 0, and an access reaches exactly one of them.
func TestSpace(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := Config{AddrWidth: rapid.SampledFrom([]int{32, 40, 48}).Draw(t, "width")}
		c.HighIOVA = c.AddrWidth > 32 && rapid.Bool().Draw(t, "high")
		var s space
		s.init(&c)
		backing := make([]byte, 1<<20)
		type m struct {
			iova uint64
			mem  []byte
		}
		var have []m
		for range rapid.IntRange(1, 40).Draw(t, "steps") {
			if len(have) > 0 && rapid.Bool().Draw(t, "unmap") {
				i := rapid.IntRange(0, len(have)-1).Draw(t, "which")
				if _, err := s.remove(have[i].iova, len(have[i].mem)+1); err == nil {
					t.Fatal("unmapped another length")
				}
				if _, err := s.remove(have[i].iova, len(have[i].mem)); err != nil {
					t.Fatal(err)
				}
				if s.Window(have[i].iova, 1) != nil {
					t.Fatal("reached after unmap")
				}
				have = append(have[:i], have[i+1:]...)
				continue
			}
			n := rapid.IntRange(1, 1<<16).Draw(t, "len")
			mem := backing[rapid.IntRange(0, 1<<19).Draw(t, "off"):][:n]
			page := uint64(rapid.IntRange(0, 4095).Draw(t, "page"))
			iova, err := s.add("x", mem, page, iovaPage, nil)
			if err != nil {
				t.Fatal(err)
			}
			if iova%iovaPage != page {
				t.Fatalf("%#x is not at %#x in its page", iova, page)
			}
			have = append(have, m{iova, mem})
		}
		for i, a := range have {
			end := a.iova + uint64(len(a.mem))
			if a.iova < iovaFirst || (a.iova>>32 != 0) != c.HighIOVA || (end-1)>>c.AddrWidth != 0 || a.iova>>32 != (end-1)>>32 {
				t.Fatalf("mapping at %#x", a.iova)
			}
			w := s.Window(a.iova, len(a.mem))
			if len(w) != len(a.mem) || &w[0] != &a.mem[0] || cap(w) != len(w) {
				t.Fatal("wrong window")
			}
			if s.Window(a.iova, len(a.mem)+1) != nil || s.Window(a.iova-1, 1) != nil || s.Window(end, 1) != nil || s.Window(end-1, -1) != nil {
				t.Fatal("window outside the mapping")
			}
			for j, b := range have {
				if i != j && a.iova < b.iova+uint64(len(b.mem))+iovaGuard && b.iova < end+iovaGuard {
					t.Fatalf("no gap between %#x and %#x", a.iova, b.iova)
				}
			}
		}
	})
}

func TestSpaceIsFinite(t *testing.T) {
	var s space
	s.init(&Config{AddrWidth: 32})
	big := make([]byte, 256<<20) // never touched
	n := 0
	for ; n < 100; n++ {
		if _, err := s.add("MapDMA", big, 0, iovaPage, nil); err != nil {
			var me *MapError
			if !errors.As(err, &me) || !errors.Is(err, ErrNoSpace) {
				t.Fatal(err)
			}
			break
		}
	}
	if n < 12 || n > 15 {
		t.Fatalf("%d mappings of 256 MiB below 4 GiB", n)
	}
	if _, err := s.add("MapDMA", big[:4096], 0, iovaPage, nil); err != nil {
		t.Fatal(err) // a small one still fits
	}
	for _, m := range s.removeAll() {
		if len(m.mem) == 0 {
			t.Fatal("empty mapping")
		}
	}
	if _, err := s.add("MapDMA", big, 0, iovaPage, nil); err != nil {
		t.Fatal(err)
	}
}

func TestMapErrors(t *testing.T) {
	g := newRig(t)
	none := newRig2(t, Config{Inline: true})
	if _, _, err := none.AllocDMA(4096, 0); !errors.Is(err, errors.ErrUnsupported) {
		t.Error(err)
	}
	for _, align := range []int{-1, 3, 1 << 21} {
		if _, _, err := g.d.AllocDMA(10, align); !errors.Is(err, errors.ErrUnsupported) {
			t.Error(align, err)
		}
	}
	if _, err := g.d.MapDMA(nil); !errors.Is(err, ErrEmpty) {
		t.Error(err)
	}
	if _, _, err := g.d.AllocDMA(0, 0); !errors.Is(err, ErrEmpty) {
		t.Error(err)
	}
	if err := g.d.UnmapDMA(0x1234, 5); !errors.Is(err, ErrNotMapped) {
		t.Error(err)
	}
	boom := errors.New("boom")
	g.d.SetFaults(func(f *Faults) { f.FailMap = func(int) error { return boom } })
	var me *MapError
	if _, err := g.d.MapDMA(make([]byte, 10)); !errors.As(err, &me) || !errors.Is(err, boom) || me.Op != "MapDMA" || me.Error() == "" {
		t.Error(err)
	}
	g.d.SetFaults(func(f *Faults) { f.FailMap = nil })
	for _, align := range []int{0, 64, 4096, 65536, 1 << 20} {
		mem, iova, err := g.d.AllocDMA(5000, align)
		if err != nil || len(mem) != 5000 || iova%uint64(max(align, 4096)) != 0 {
			t.Fatal(align, iova, err)
		}
		if !bytes.Equal(mem, make([]byte, 5000)) {
			t.Fatal("memory is not zero")
		}
		if err := g.d.UnmapDMA(iova, 5000); err != nil {
			t.Fatal(err)
		}
		if err := g.d.UnmapDMA(iova, 5000); !errors.Is(err, ErrNotMapped) {
			t.Fatal(err)
		}
	}
	if !g.d.Coherent() {
		t.Error("not coherent")
	}
}

func newRig2(t *testing.T, c Config) *Device {
	t.Helper()
	d, err := New(c, &testWire{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.Close() })
	return d
}

func TestClose(t *testing.T) {
	for _, inline := range []bool{true, false} {
		w := &testWire{}
		d, err := New(Config{Inline: inline, Clock: NewManualClock()}, w)
		if err != nil {
			t.Fatal(err)
		}
		r, err := d.Region(0)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := d.Region(1); !errors.Is(err, errors.ErrUnsupported) {
			t.Error(err)
		}
		if d.NumInterrupts() != 1 {
			t.Error("vectors")
		}
		iova, err := d.MapDMA(make([]byte, 100))
		if err != nil {
			t.Fatal(err)
		}
		for range 2 {
			if err := d.Close(); err != nil {
				t.Fatal(err)
			}
		}
		if w.closed != 1 {
			t.Errorf("wire closed %d times", w.closed)
		}
		r4.DMAMode.Store(r, r4.SWR)
		if v := r4.MACVersion.Load(r); uint32(v) != mmio.AllOnes {
			t.Errorf("MAC_Version %#x", uint32(v))
		}
		if d.Step(10) != 0 {
			t.Error("works after Close")
		}
		if _, err := d.MapDMA(make([]byte, 100)); !errors.Is(err, net.ErrClosed) {
			t.Error(err)
		}
		if err := d.Reset(context.Background()); !errors.Is(err, net.ErrClosed) {
			t.Error(err)
		}
		if err := d.UnmapDMA(iova, 100); err != nil {
			t.Error(err)
		}
	}
}

func TestManualClock(t *testing.T) {
	c := NewManualClock()
	var got []string
	add := func(d time.Duration, s string) func() bool {
		return c.AfterFunc(d, func() { got = append(got, s+c.Now().String()) })
	}
	add(3, "c")
	add(1, "a")
	stop := add(2, "x")
	add(1, "b")
	c.AfterFunc(2, func() { add(2, "d") })
	if !stop() || stop() {
		t.Error("stop")
	}
	if err := c.Sleep(context.Background(), 3); err != nil {
		t.Fatal(err)
	}
	c.Advance(1)
	if s := len(got); s != 4 || got[0] != "a1ns" || got[1] != "b1ns" || got[2] != "c3ns" || got[3] != "d4ns" {
		t.Errorf("%v", got)
	}
	if c.Now() != 4 {
		t.Error(c.Now())
	}
	c.Advance(-5)
	if c.Now() != 4 {
		t.Error("went back")
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := c.Sleep(ctx, 1); !errors.Is(err, context.Canceled) || c.Now() != 4 {
		t.Error(err)
	}
	late := add(0, "z")
	c.Advance(0)
	if late() {
		t.Error("stopped after it ran")
	}

	c.SetStepped(true)
	done := make(chan error)
	go func() { done <- c.Sleep(context.Background(), 10) }()
	for waiting := true; waiting; {
		c.mu.Lock()
		waiting = len(c.timers) == 0
		c.mu.Unlock()
	}
	c.Advance(10)
	if err := <-done; err != nil {
		t.Error(err)
	}
	ctx, cancel = context.WithCancel(context.Background())
	go func() { done <- c.Sleep(ctx, 10) }()
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}
