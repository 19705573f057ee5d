package pagepool

import (
	"bytes"
	"errors"
	"testing"
)

// TestAllocFrame copies data into as many buffers as it needs, and takes none when
// there are too few.
func TestAllocFrame(t *testing.T) {
	p := newPool(t, newBus(t, 0, false), 8)
	full := 2048 - NetSKBPad - NetIPAlign
	data := make([]byte, 9*full)
	for i := range data {
		data[i] = byte(i * 7)
	}
	for _, c := range []struct{ n, each, bufs int }{
		{0, 0, 1}, {1, 0, 1}, {full, 0, 1}, {full + 1, 0, 2}, {8 * full, 0, 8}, {300, 100, 3}, {301, 100, 4}, {full, full + 1, 1}, {2 * full, full + 1, 2},
		{8*full + 1, 0, 0}, {900, 100, 0},
	} {
		b, err := p.AllocFrame(data[:c.n], c.each)
		if c.bufs == 0 {
			if !errors.Is(err, ErrEmpty) || b != nil || p.InUse() != 0 {
				t.Errorf("%d bytes by %d: %v, %d buffers in use", c.n, c.each, err, p.InUse())
			}
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		got := make([]byte, b.FrameLen())
		b.CopyTo(got)
		if !bytes.Equal(got, data[:c.n]) || p.InUse() != c.bufs {
			t.Errorf("%d bytes by %d: %d bytes in %d buffers, want %d", c.n, c.each, len(got), p.InUse(), c.bufs)
		}
		p.Free(b)
	}
	if p.Misfreed() != 0 {
		t.Errorf("%d misfreed", p.Misfreed())
	}
	closeAll(t, p)
}
