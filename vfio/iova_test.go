package vfio

import (
	"errors"
	"math"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/gostmmac/gostmmac/vfio/internal/uapi"
)

const kib, mib, gib = 1 << 10, 1 << 20, 1 << 30

// x86 is what an Intel or AMD machine has: a hole for messages below 4 GiB.
var x86 = []uapi.IOVARange{{Start: 0, Last: 0xfedfffff}, {Start: 0xfef00000, Last: 1<<39 - 1}}

func newIOVAs(t testing.TB, page uint64, ranges ...uapi.IOVARange) *iovas {
	t.Helper()
	s := new(iovas)
	if err := s.setRanges(ranges, page); err != nil {
		t.Fatal(err)
	}
	return s
}

func TestIOVA(t *testing.T) {
	type want struct {
		n, vaddr, end uint64
		iova          uint64 // 0: none
	}
	for name, c := range map[string]struct {
		page   uint64
		ranges []uapi.IOVARange
		want   []want
	}{
		"from below, never 0": {4 * kib, x86, []want{
			{4 * kib, 0, 0, firstIOVA}, {4 * kib, 0, 0, firstIOVA + 4*kib}, {12 * kib, 0, 0, firstIOVA + 8*kib}}},
		"as the memory lies to its huge page": {4 * kib, x86, []want{
			{2 * mib, 6 * mib, 0, 2 * mib}, {4 * mib, 7*mib + 4*kib, 0, 5*mib + 4*kib}, {64 * kib, 0x123450000, 0, firstIOVA}}},
		"over the hole": {4 * kib, x86, []want{
			{0xfed00000, 0, 0, firstIOVA}, {mib, 0, 0, 0xfef00000}, {3 * mib, mib, 0, 0xff100000}}},
		"32 bits": {4 * kib, x86, []want{
			{3 * gib, 0, 1 << 32, 2 * mib}, {gib, 0, 1 << 32, 0}, {0x3e000000, 0, 1 << 32, 0xc0200000}, {gib, 0, 0, 4 * gib}}},
		"pages of 64 KiB":     {64 * kib, x86, []want{{64 * kib, 0, 0, firstIOVA}, {4 * kib, 0, 0, 0}}},
		"a small window":      {4 * kib, []uapi.IOVARange{{Start: 0x100000, Last: 0x102fff}}, []want{{4 * kib, 0, 0, 0x100000}, {12 * kib, 0, 0, 0}, {8 * kib, 0, 0, 0x101000}, {4 * kib, 0, 0, 0}}},
		"all of 64 bits":      {4 * kib, []uapi.IOVARange{{Start: 1 << 63, Last: math.MaxUint64}}, []want{{1 << 62, 0, 0, 1 << 63}, {1 << 62, 0, 0, 3 << 62}, {4 * kib, 0, 0, 0}}},
		"nothing":             {4 * kib, nil, []want{{4 * kib, 0, 0, 0}}},
		"a range upside down": {4 * kib, []uapi.IOVARange{{Start: 0x5000, Last: 0x1000}}, []want{{4 * kib, 0, 0, 0}}},
		"ranges that touch":   {4 * kib, []uapi.IOVARange{{Start: 0x100000, Last: 0x1fffff}, {Start: 0, Last: 0x1fffff}}, []want{{mib, mib / 2, 0, firstIOVA}}},
		"no bytes":            {4 * kib, x86, []want{{0, 0, 0, 0}}},
	} {
		t.Run(name, func(t *testing.T) {
			s := newIOVAs(t, c.page, c.ranges...)
			for i, w := range c.want {
				got, err := s.alloc(w.n, w.vaddr, w.end)
				if (err == nil) != (w.iova != 0) || got != w.iova {
					t.Errorf("%d: %#x bytes for %#x: %#x, %v; want %#x", i, w.n, w.vaddr, got, err, w.iova)
				}
				if err != nil && w.n%c.page == 0 && w.n > 0 && !errors.Is(err, ErrNoIOVA) {
					t.Errorf("%d: %v", i, err)
				}
			}
		})
	}
}

// A device that joins may take addresses away, but none that are in use.
func TestIOVANarrowed(t *testing.T) {
	s := newIOVAs(t, 4*kib, x86...)
	at, err := s.alloc(mib, 0, 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.setRanges([]uapi.IOVARange{{Start: at + 4096, Last: 1<<32 - 1}}, 4*kib); !errors.Is(err, ErrNoIOVA) {
		t.Errorf("a range that is in use was taken away: %v", err)
	}
	if d := cmp.Diff(x86, s.ranges); d != "" {
		t.Errorf("the ranges changed (-want +got):\n%s", d)
	}
	if err := s.setRanges([]uapi.IOVARange{{Start: at, Last: at + mib - 1}}, 4*kib); err != nil {
		t.Error(err)
	}
}

// What is given out lies in the ranges, is apart, aligned and used again.
func TestIOVAProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		page := uint64(1) << rapid.IntRange(12, 16).Draw(t, "page")
		var ranges []uapi.IOVARange
		for range rapid.IntRange(1, 4).Draw(t, "ranges") {
			start := rapid.Uint64Range(0, 1<<36).Draw(t, "start")
			ranges = append(ranges, uapi.IOVARange{Start: start, Last: start + rapid.Uint64Range(0, 1<<32).Draw(t, "length")})
		}
		s := new(iovas)
		if err := s.setRanges(ranges, page); err != nil {
			t.Fatal(err)
		}
		type piece struct{ at, n uint64 }
		var live []piece
		for range 100 {
			if len(live) > 0 && rapid.Bool().Draw(t, "free") {
				i := rapid.IntRange(0, len(live)-1).Draw(t, "which")
				s.release(live[i].at)
				live = slices.Delete(live, i, i+1)
				continue
			}
			n := page * rapid.Uint64Range(1, 4096).Draw(t, "pages")
			end := rapid.SampledFrom([]uint64{0, 1 << 32}).Draw(t, "end")
			at, err := s.alloc(n, page*rapid.Uint64Range(0, 1<<20).Draw(t, "vaddr"), end)
			if err != nil {
				continue
			}
			if at == 0 || at%page != 0 || at+n-1 > end-1 {
				t.Fatalf("%#x bytes at %#x, page %#x, end %#x", n, at, page, end)
			}
			if !slices.ContainsFunc(s.ranges, func(r uapi.IOVARange) bool { return r.Start <= at && at+n-1 <= r.Last }) {
				t.Fatalf("%#x bytes at %#x are outside of %v", n, at, ranges)
			}
			for _, o := range live {
				if at < o.at+o.n && o.at < at+n {
					t.Fatalf("%#x bytes at %#x overlap %#x at %#x", n, at, o.n, o.at)
				}
			}
			live = append(live, piece{at, n})
		}
		for _, p := range live {
			s.release(p.at)
		}
		if s.inUse() != 0 {
			t.Fatalf("%d bytes leaked", s.inUse())
		}
	})
}
