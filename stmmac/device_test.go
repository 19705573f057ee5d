package stmmac_test

import (
	"context"
	"errors"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/gostmmac/gostmmac/mmio"
)

// fakeDevice is a Device of scripted registers whose memory nobody reads: for
// tests of what the driver writes where.
type fakeDevice struct {
	region mmio.Region

	mu      sync.Mutex
	next    uint64
	mapped  map[uint64]int
	memory  map[uint64][]byte // what was mapped, for tests that play the device
	resets  int
	failMap int // the call of MapDMA, counted from 1, that fails
	calls   int
}

func newFakeDevice(r mmio.Region) *fakeDevice {
	return &fakeDevice{region: r, next: 0x10000000, mapped: map[uint64]int{}, memory: map[uint64][]byte{}}
}

func (d *fakeDevice) Region(i int) (mmio.Region, error) {
	if i != 0 {
		return nil, os.ErrNotExist
	}
	return d.region, nil
}

func (d *fakeDevice) NumInterrupts() int { return 0 }

func (d *fakeDevice) Interrupt(int) (mmio.Interrupt, error) { return nil, errors.ErrUnsupported }

func (d *fakeDevice) MapDMA(mem []byte) (uint64, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.calls++; d.calls == d.failMap {
		return 0, os.ErrPermission
	}
	a := d.next
	d.next += uint64(len(mem)+0xffff) &^ 0xffff
	d.mapped[a] = len(mem)
	d.memory[a] = mem
	return a, nil
}

func (d *fakeDevice) UnmapDMA(iova uint64, n int) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.mapped[iova] != n {
		return os.ErrInvalid
	}
	delete(d.mapped, iova)
	delete(d.memory, iova)
	return nil
}

func (d *fakeDevice) Coherent() bool { return true }

func (d *fakeDevice) AllocDMA(int, int) ([]byte, uint64, error) {
	return nil, 0, errors.ErrUnsupported
}

func (d *fakeDevice) Reset(context.Context) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.resets++
	return nil
}

func (d *fakeDevice) Close() error { return nil }

// mustUnmap fails the test if a mapping was left.
func (d *fakeDevice) mustUnmap(t *testing.T) {
	t.Helper()
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.mapped) != 0 {
		t.Errorf("mappings left: %v", d.mapped)
	}
}

// fakeGMAC4 returns the registers of a GMAC4 5.20 with four queues, whose reset
// ends after three reads.
func fakeGMAC4() *mmio.Fake {
	f := mmio.NewFake(0x2000)
	f.Set(0x0110, 0x1052)
	f.Set(0x011c, 1<<0|1<<1|1<<2|1<<5|1<<8) // MII, GMII, half duplex, SMA, MMC
	f.Set(0x0120, 7|7<<6|1<<14|1<<24)       // 16 KiB FIFOs, 40 bits, 64 bins
	f.Set(0x0124, 3|3<<6|3<<12|3<<18)       // four of each
	for _, off := range []uint32{0x0110, 0x011c, 0x0120, 0x0124, 0x0128} {
		f.ReadOnly(off, ^uint32(0))
	}
	f.SelfClearing(0x1000, 1, 3)
	for ch := range uint32(8) {
		f.W1C(0x1160+0x80*ch, 0xffff)
	}
	return f
}

// stepClock is a clock that goes only as far as its sleepers ask.
type stepClock struct {
	mu  sync.Mutex
	now time.Duration
}

func (c *stepClock) Now() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *stepClock) Sleep(ctx context.Context, d time.Duration) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now += d
	return ctx.Err()
}

func (c *stepClock) AfterFunc(time.Duration, func()) func() bool {
	return func() bool { return true }
}
