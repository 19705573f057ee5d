package core

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/gostmmac/gostmmac/pagepool"
)

func TestChooseRxLayout(t *testing.T) {
	line := (64 + pagepool.CacheLine - 1) / pagepool.CacheLine * pagepool.CacheLine
	for _, tc := range []struct {
		name                        string
		mtu, chunk, headroom, align int
		start, size, first          int
		single                      bool
	}{
		{"aligned", 1500, 2048, 64, 0, 64, 1984, 1984, false},
		{"ip-align", 1500, 2048, 64, 2, 66, 1920, 1918, true},
		{"xdp", 1500, 2048, 256, 0, 256, 1792, 1792, false},
		{"xdp-ip-align", 1500, 2048, 256, 2, 258, 1728, 1726, true},
		// 1,900 + 26 fits behind 64 and not behind 66: the offset goes, not the frame.
		{"ip-align-does-not-fit", 1900, 2048, 64, 2, line, 1984 &^ (pagepool.CacheLine - 1), 1984 &^ (pagepool.CacheLine - 1), false},
		{"jumbo-in-one", 9000, 9216, 64, 2, 66, 9088 + 0, 9086, true},
		{"jumbo-in-several", 9000, 2048, 64, 2, line, (2048 - line) &^ (pagepool.CacheLine - 1), (2048 - line) &^ (pagepool.CacheLine - 1), false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			l, err := ChooseRxLayout(tc.mtu, tc.chunk, tc.headroom, tc.align, 16320)
			if err != nil {
				t.Fatal(err)
			}
			if l.Start != tc.start || l.Size != tc.size || l.First != tc.first || l.Single != tc.single {
				t.Errorf("got %+v", l)
			}
		})
	}
	if l, err := ChooseRxLayout(1500, 320, 256, 0, 16320); err == nil && l.Size < 64 {
		t.Errorf("a chunk without room gives %+v", l)
	}
	if _, err := ChooseRxLayout(1500, 300, 256, 0, 16320); err == nil {
		t.Error("a chunk without room for a buffer was taken")
	}
}

// TestRxLayoutRules holds what no choice may break, for any sizes.
func TestRxLayoutRules(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		mtu := rapid.IntRange(46, 9000).Draw(t, "mtu")
		chunk := rapid.IntRange(256, 1<<16-128).Draw(t, "chunk") &^ 63
		headroom := rapid.SampledFrom([]int{64, 256}).Draw(t, "headroom")
		align := rapid.IntRange(0, 15).Draw(t, "align")
		limit := rapid.SampledFrom([]int{16320, 8128, 1984}).Draw(t, "limit")
		l, err := ChooseRxLayout(mtu, chunk, headroom, align, limit)
		if err != nil {
			if chunk-headroom >= 64+2*pagepool.CacheLine {
				t.Fatalf("refused: %v", err)
			}
			return
		}
		switch {
		case l.Start < headroom:
			t.Fatalf("headroom of %d", l.Start)
		case l.Size%64 != 0 || l.Size < 64 || l.Size > limit:
			t.Fatalf("size %d", l.Size)
		case l.Start+l.Size > chunk:
			t.Fatalf("%d bytes from %d end behind the chunk of %d", l.Size, l.Start, chunk)
		case l.First > l.Size-l.Start%16:
			t.Fatalf("a first buffer holds %d of %d from %d", l.First, l.Size, l.Start)
		case !l.Single && l.Start%64 != 0 && l.First < l.MaxFrame:
			t.Fatalf("frames may span buffers that start at %d", l.Start)
		case l.Start%16 != 0 && (!l.Single || l.First < l.MaxFrame):
			t.Fatalf("start %d with frames of %d in buffers of %d", l.Start, l.MaxFrame, l.First)
		}
		if spans := l.First < l.MaxFrame; spans && (l.Start%pagepool.CacheLine != 0 || l.Size%pagepool.CacheLine != 0 || l.First != l.Size) {
			t.Fatalf("frames span buffers of %d bytes at %d", l.Size, l.Start)
		}
	})
}
