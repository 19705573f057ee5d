package gmac4

import (
	"errors"
	"os"
	"testing"
	"time"

	"github.com/gostmmac/gostmmac/stmmac/internal/core"
)

func TestRxWatchdog(t *testing.T) {
	for _, c := range []struct {
		hz      uint64
		version uint8
		d       time.Duration
		reg     uint32
		actual  time.Duration
		err     error
	}{
		{125e6, 0x52, 0, 0, 0, nil},
		{125e6, 0x52, time.Nanosecond, 0x10, 32768 * time.Nanosecond, nil},
		{125e6, 0x52, 32 * time.Microsecond, 0x10, 32768 * time.Nanosecond, nil},
		{125e6, 0x52, 100 * time.Microsecond, 49, 100352 * time.Nanosecond, nil},
		{125e6, 0x52, 522 * time.Microsecond, 0xff, 522240 * time.Nanosecond, nil},
		{125e6, 0x52, 600 * time.Microsecond, 1<<16 | 146, 598016 * time.Nanosecond, nil},
		{125e6, 0x52, 2 * time.Millisecond, 2<<16 | 244, 1998848 * time.Nanosecond, nil},
		{125e6, 0x52, 4 * time.Millisecond, 3<<16 | 244, 3997696 * time.Nanosecond, nil},
		{125e6, 0x52, 4200 * time.Microsecond, 0, 0, os.ErrInvalid},
		{125e6, 0x42, 522 * time.Microsecond, 0xff, 522240 * time.Nanosecond, nil},
		{125e6, 0x42, 600 * time.Microsecond, 0, 0, os.ErrInvalid},
		{1e6, 0x52, time.Millisecond, 0x10, 4096 * time.Microsecond, nil},
		{4_096_000_000, 0x52, 100 * time.Microsecond, 3<<16 | 200, 100 * time.Microsecond, nil},
		{125e6, 0x52, time.Duration(1<<63 - 1), 0, 0, os.ErrInvalid},
		{125e6, 0x52, -1, 0, 0, os.ErrInvalid},
		{0, 0x52, time.Millisecond, 0, 0, errors.ErrUnsupported},
		{0, 0x52, 0, 0, 0, nil},
	} {
		h, f := newHW(core.Config{CSRClock: c.hz, RxQueues: 2}, core.Features{Version: c.version})
		actual, err := h.SetRxWatchdog(1, c.d)
		if !errors.Is(err, c.err) || c.err == nil && err != nil || actual != c.actual || f.Peek(0x11b8) != c.reg {
			t.Errorf("%v at %d Hz, %#x: %v, %v, register %#x; want %v, %v, %#x", c.d, c.hz, c.version, actual, err, f.Peek(0x11b8), c.actual, c.err, c.reg)
		}
		if c.err != nil && len(stores(f)) != 0 {
			t.Errorf("refused, and stored %v", stores(f))
		}
	}
	h, _ := newHW(core.Config{CSRClock: 125e6}, core.Features{})
	for _, ch := range []int{-1, 1, 8} {
		if _, err := h.SetRxWatchdog(ch, 0); !errors.Is(err, os.ErrInvalid) {
			t.Errorf("channel %d: %v", ch, err)
		}
	}
}
