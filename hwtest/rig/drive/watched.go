package drive

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/gostmmac/gostmmac/hwtest/rig/qtest"
	"github.com/gostmmac/gostmmac/mmio"
)

// watched is a board's MAC of which the test sees the registers, the interrupts and the
// memory as the driver uses them. Its methods may be called by several goroutines.
type watched struct {
	*qtest.Device
	// seen, if not nil, is called after every load and before every store of the driver.
	seen atomic.Pointer[func(mmio.Access)]
	// fired counts the interrupts that the driver took.
	fired atomic.Uint64

	mu    sync.Mutex
	spans map[uint64][]byte // of AllocDMA, by bus address
}

func watch(d *qtest.Device) *watched { return &watched{Device: d, spans: map[uint64][]byte{}} }

// see makes f see the accesses of the driver until the function that it returns is called.
// The calls of f are not serialised.
func (d *watched) see(f func(mmio.Access)) (stop func()) {
	d.seen.Store(&f)
	return func() { d.seen.Store(nil) }
}

// Region returns the registers as the driver has them.
func (d *watched) Region(i int) (mmio.Region, error) {
	r, err := d.Device.Region(i)
	if err != nil {
		return nil, err
	}
	return mmio.Trace(r, func(a mmio.Access) {
		if f := d.seen.Load(); f != nil {
			(*f)(a)
		}
	}), nil
}

// Interrupt returns a vector that counts.
func (d *watched) Interrupt(i int) (mmio.Interrupt, error) {
	v, err := d.Device.Interrupt(i)
	if err != nil {
		return nil, err
	}
	return counted{v, &d.fired}, nil
}

// counted is an interrupt vector that counts how often it fired.
type counted struct {
	mmio.Interrupt
	n *atomic.Uint64
}

// Wait implements mmio.Interrupt.
func (c counted) Wait(ctx context.Context) (uint64, error) {
	n, err := c.Interrupt.Wait(ctx)
	c.n.Add(n)
	return n, err
}

// AllocDMA notes what it gives.
func (d *watched) AllocDMA(n, align int) ([]byte, uint64, error) {
	mem, at, err := d.Device.AllocDMA(n, align)
	if err == nil {
		d.mu.Lock()
		defer d.mu.Unlock()
		d.spans[at] = mem
	}
	return mem, at, err
}

// UnmapDMA forgets it.
func (d *watched) UnmapDMA(iova uint64, n int) error {
	d.mu.Lock()
	delete(d.spans, iova)
	d.mu.Unlock()
	return d.Device.UnmapDMA(iova, n)
}

// at is n bytes of the driver's memory by bus address.
func (d *watched) at(bus uint64, n int) ([]byte, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for start, mem := range d.spans {
		if off := bus - start; bus >= start && off < uint64(len(mem)) && uint64(n) <= uint64(len(mem))-off {
			return mem[off:][:n], nil
		}
	}
	return nil, fmt.Errorf("the driver has no memory of %d bytes at %#x", n, bus)
}
