package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/gostmmac/gostmmac/mmio"
	"github.com/gostmmac/gostmmac/stmmac"
	"github.com/gostmmac/gostmmac/stmmac/bus"
	"github.com/gostmmac/gostmmac/vfio"
)

// device is one of VFIO whose interrupts are counted, and the memory that it is given.
type device struct {
	*vfio.Device
	fired  atomic.Uint64
	before atomic.Uint64 // what the kernel had counted when the interrupt was enabled
	lowest atomic.Uint64 // bus address of its memory
}

// Interrupt implements stmmac.Device.
func (d *device) Interrupt(i int) (mmio.Interrupt, error) {
	v, err := d.Device.Interrupt(i)
	if err != nil {
		return nil, err
	}
	n, err := d.kernelCount()
	if err != nil {
		return nil, errors.Join(err, v.Close())
	}
	d.before.Store(n)
	return &vector{v, &d.fired}, nil
}

// kernelCount is how often the device has interrupted since the machine was booted, as the
// kernel counts.
func (d *device) kernelCount() (uint64, error) {
	b, err := os.ReadFile("/proc/interrupts")
	if err != nil {
		return 0, err
	}
	return interruptsOf(string(b), d.Info().Name)
}

// interruptsOf finds the count of a device that is with VFIO in the text of /proc/interrupts of
// a machine with one processor: " 16:  2195  GICv2  47 Level  vfio-irq[16](f0804000.ethernet)".
func interruptsOf(text, name string) (uint64, error) {
	for l := range strings.Lines(text) {
		if f := strings.Fields(l); len(f) > 2 && strings.HasSuffix(f[len(f)-1], "("+name+")") {
			return strconv.ParseUint(f[1], 10, 64)
		}
	}
	return 0, fmt.Errorf("/proc/interrupts has no %s: %w", name, os.ErrNotExist)
}

// settled returns the counts of the driver and of the kernel when they are the same, or after
// a while: an interrupt is counted by the kernel first.
func (d *device) settled() (driver, kernel uint64, err error) {
	for end := time.Now().Add(patience); ; time.Sleep(time.Millisecond) {
		n, err := d.kernelCount()
		driver, kernel = d.fired.Load(), n-d.before.Load()
		if err != nil || driver == kernel || time.Now().After(end) {
			return driver, kernel, err
		}
	}
}

// AllocDMA implements stmmac.Device.
func (d *device) AllocDMA(n, align int) ([]byte, uint64, error) {
	mem, at, err := d.Device.AllocDMA(n, align)
	if err == nil {
		d.note(at)
	}
	return mem, at, err
}

// MapDMA implements stmmac.Device.
func (d *device) MapDMA(mem []byte) (uint64, error) {
	at, err := d.Device.MapDMA(mem)
	if err == nil {
		d.note(at)
	}
	return at, err
}

// takeOthers takes huge pages until there is the one at physical address 0, which alone it
// gives back: the kernel gives out first what came back last. The others come back when release
// is called, which has to be before the device is closed.
func (d *device) takeOthers() (release func() error, err error) {
	n := d.MaxContiguousDMA()
	var others []uint64
	release = func() error {
		var errs []error
		for _, at := range others {
			errs = append(errs, d.UnmapDMA(at, n))
		}
		return errors.Join(errs...)
	}
	for {
		_, at, err := d.Device.AllocDMA(n, 1)
		switch {
		case err != nil:
			return nil, errors.Join(fmt.Errorf("none of the %d huge pages before is at physical address 0: %w", len(others), err), release())
		case at != 0:
			others = append(others, at)
			continue
		}
		if err := d.UnmapDMA(at, n); err != nil {
			return nil, errors.Join(err, release())
		}
		return release, nil
	}
}

func (d *device) note(at uint64) {
	for old := d.lowest.Load(); at < old && !d.lowest.CompareAndSwap(old, at); old = d.lowest.Load() {
	}
}

// vector is an interrupt that is counted.
type vector struct {
	mmio.Interrupt
	fired *atomic.Uint64
}

// Wait implements mmio.Interrupt.
func (v *vector) Wait(ctx context.Context) (uint64, error) {
	n, err := v.Interrupt.Wait(ctx)
	v.fired.Add(n)
	return n, err
}

// opener opens devices and says what is dangerous about them.
func opener(stderr io.Writer) *bus.Opener {
	o := bus.NewOpener()
	o.Warn = func(a bus.Address, text string) { fmt.Fprintf(stderr, "station: warning: %v: %s\n", a, text) }
	return o
}

// patience is for a link that must come.
const patience = 30 * time.Second

// with opens the device and its MAC, waits for the link, does something with it, and gives
// all back.
func with(ctx context.Context, c *config, stderr io.Writer, do func(*wire) (counts, error)) (result counts, err error) {
	h, err := opener(stderr).Open(ctx, c.dev)
	if err != nil {
		return result, err
	}
	defer func() { err = errors.Join(err, h.Close()) }()
	v, isVFIO := h.Device.(*vfio.Device)
	if !isVFIO {
		return result, fmt.Errorf("%s is a %T and no device of VFIO: %w", c.dev, h.Device, errors.ErrUnsupported)
	}
	d := &device{Device: v}
	d.lowest.Store(^uint64(0))
	if c.zero {
		release, failed := d.takeOthers()
		if failed != nil {
			return result, failed
		}
		defer func() { err = errors.Join(err, release()) }()
	}
	m, err := stmmac.Open(ctx, d, append(h.Options, stmmac.WithMTU(c.mtu))...)
	if err != nil {
		return result, err
	}
	up, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	w := newWire(ctx, m, c.poll)
	if err = w.awaitLink(up); err == nil {
		result, err = do(w)
	}
	w.drop()
	var failed error
	result.Interrupts, result.Kernel, failed = d.settled()
	result.Lowest = d.lowest.Load()
	err = errors.Join(err, failed, m.Err(), w.Close(), m.Close())
	return result, err
}
