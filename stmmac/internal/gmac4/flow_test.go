package gmac4

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/gostmmac/gostmmac/stmmac/internal/core"
	"github.com/gostmmac/gostmmac/stmmac/internal/regs/gmac4reg"
)

func TestFlowThresholds(t *testing.T) {
	for _, c := range []struct {
		size, mtu   int
		stop, start int // bytes below the end; 0: no pauses
	}{
		{2048, 1500, 0, 0},
		{3840, 576, 0, 0},
		{4096, 576, 1536, 2560},  // others send 1,518 bytes all the same
		{4096, 1500, 1536, 2560}, // as the stock driver
		{4096, 2000, 2048, 3072},
		{4096, 3500, 0, 0},
		{8192, 1500, 3584, 5120},
		{8192, 7000, 7168, 7680},
		{8192, 9000, 0, 0},
		{16384, 1500, 3584, 5120},
		{16384, 9000, 9216, 12800},
		{32768, 9000, 14336, 23552},
		{65536, 9000, 18944, 28160},
		{262144, 1500, 3584, 5120},
		{262144, 9000, 18944, 28160},
	} {
		v := flowThresholds(c.size, core.MaxFrameLen(c.mtu))
		stop, start := 0, 0
		if v&gmac4reg.EHFC != 0 {
			stop, start = 1024+512*int(gmac4reg.RFA.Get(v)), 1024+512*int(gmac4reg.RFD.Get(v))
		}
		if stop != c.stop || start != c.start {
			t.Errorf("%d bytes, MTU %d: %d and %d, want %d and %d", c.size, c.mtu, stop, start, c.stop, c.start)
		}
	}
	// What must hold for every queue: a frame has room when the pause is asked
	// for, it ends below where it began and above empty, and a queue that holds
	// two frames and a half has pauses.
	for size := 256; size <= 256<<10; size += 256 {
		for mtu := 46; mtu <= 9000; mtu += 37 {
			frame := max(core.MaxFrameLen(mtu), 1526)
			v := flowThresholds(size, core.MaxFrameLen(mtu))
			if v&gmac4reg.EHFC == 0 {
				if v != 0 || size >= 4096 && 2*size >= 5*frame {
					t.Fatalf("%d bytes, frames of %d: %#x", size, frame, v)
				}
				continue
			}
			stop, start := 1024+512*int(gmac4reg.RFA.Get(v)), 1024+512*int(gmac4reg.RFD.Get(v))
			if size < 4096 || stop < frame || start <= stop || start >= size || gmac4reg.RFD.Get(v) > 62 ||
				v != gmac4reg.EHFC|gmac4reg.RFA.Of(uint32(stop-1024)/512)|gmac4reg.RFD.Of(uint32(start-1024)/512) {
				t.Fatalf("%d bytes, frames of %d: %#x, pause at %d and go on at %d below the end", size, frame, v, stop, start)
			}
		}
	}
}

func TestSetFlow(t *testing.T) {
	up := core.Link{Up: true, Speed: 1000, FullDuplex: true}
	for _, c := range []struct {
		link   func(l *core.Link)
		rx, tx string
	}{
		{func(*core.Link) {}, "00000000", "00000000"},
		{func(l *core.Link) { l.RxPause = true }, "00000001", "00000000"},
		{func(l *core.Link) { l.TxPause = true }, "00000000", "ffff0002"},
		{func(l *core.Link) { l.RxPause, l.TxPause = true, true }, "00000001", "ffff0002"},
		{func(l *core.Link) { l.RxPause, l.TxPause, l.Speed, l.FullDuplex = true, true, 100, false }, "00000000", "00000000"},
		{func(l *core.Link) { l.RxPause, l.TxPause, l.Up = true, true, false }, "00000000", "00000000"},
	} {
		h, f := newHW(core.Config{}, core.Features{HalfDuplex: true})
		l := up
		c.link(&l)
		if err := h.SetLink(l); err != nil {
			t.Fatal(err)
		}
		// They are set before the MAC is turned on.
		want := []string{"MAC_Rx_Flow_Ctrl " + c.rx, "MAC_Q0_Tx_Flow_Ctrl " + c.tx}
		if got := named(stores(f)); len(got) < 2 || cmp.Diff(want, got[:2]) != "" {
			t.Errorf("%v: %v, want %v", l, got, want)
		}
	}
}
