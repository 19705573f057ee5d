package gmac4

import (
	"context"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/gostmmac/gostmmac/mmio"
	"github.com/gostmmac/gostmmac/stmmac/internal/core"
	"github.com/gostmmac/gostmmac/stmmac/internal/regs/gmac4reg"
)

// tickClock goes only as far as its sleepers ask.
type tickClock struct {
	mu  sync.Mutex
	now time.Duration
}

func (c *tickClock) Now() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *tickClock) Sleep(ctx context.Context, d time.Duration) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now += d
	return ctx.Err()
}

func (c *tickClock) AfterFunc(time.Duration, func()) func() bool { return func() bool { return true } }

// newHW returns the hardware of scripted registers with the given features, as
// after a reset.
func newHW(cfg core.Config, f core.Features) (*HW, *mmio.Fake) {
	fake := mmio.NewFake(0x2000)
	cfg.Clock = &tickClock{}
	cfg.RxQueues, cfg.TxQueues = max(cfg.RxQueues, 1), max(cfg.TxQueues, 1)
	h := New(&cfg, fake)
	h.feat = f
	h.feat.VLANFilters = max(f.VLANFilters, 1)
	h.resetFilter()
	fake.Set(uint32(gmac4reg.MACVersion), 0x52)
	return h, fake
}

// stores are the stores of a fake by register name, oldest first.
func stores(f *mmio.Fake) (out []mmio.Access) {
	for _, a := range f.Log() {
		if a.Store {
			out = append(out, a)
		}
	}
	return out
}

func addr(t *testing.T, s string) net.HardwareAddr {
	t.Helper()
	a, err := net.ParseMAC(s)
	if err != nil {
		t.Fatal(err)
	}
	return a
}
