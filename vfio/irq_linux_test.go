package vfio_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gostmmac/gostmmac/mmio"
	"github.com/gostmmac/gostmmac/vfio"
	"github.com/gostmmac/gostmmac/vfio/internal/uapi"
	"github.com/gostmmac/gostmmac/vfio/vfiotest"
)

// patience is longer than anything takes on a machine that is busy.
func patience(t testing.TB) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	t.Cleanup(cancel)
	return ctx
}

// fires says whether an interrupt comes that was not waited for yet: nothing that is
// to come takes time, as the fake kernel has written to the eventfd by then.
func fires(t testing.TB, v mmio.Interrupt) uint64 {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	n, err := v.Wait(ctx)
	if err != nil && !errors.Is(err, context.DeadlineExceeded) {
		t.Error(err)
	}
	return n
}

func interrupt(t testing.TB, d *vfio.Device, i int) *vfio.Interrupt {
	t.Helper()
	v, err := d.Interrupt(i)
	if err != nil {
		t.Fatal(err)
	}
	return v.(*vfio.Interrupt)
}

// TestKinds chooses the kind of interrupts and how many there are.
func TestKinds(t *testing.T) {
	k := newKernel(t, vfiotest.Config{})
	full := card("0000:03:00.0", 14)
	noX := card("0000:04:00.0", 15)
	noX.MSIX.Count = 0
	line := card("0000:05:00.0", 16)
	line.MSI, line.MSIX.Count = 0, 0
	none := card("0000:06:00.0", 17)
	none.INTx, none.MSI, none.MSIX.Count = false, 0, 0
	many := card("0000:07:00.0", 18)
	many.MSIX = vfiotest.MSIX{Count: 64, BAR: 2, PBA: 8 * kib}
	for _, p := range []vfiotest.PCI{full, noX, line, none, many} {
		addPCI(t, k, p)
	}
	for _, c := range []struct {
		dev   string
		kind  vfio.IRQKind
		limit int
		n     int
		level bool
	}{
		{full.BDF, vfio.AutoIRQ, 0, 6, false}, {full.BDF, vfio.AutoIRQ, 2, 2, false}, {full.BDF, vfio.MSI, 0, 8, false}, {full.BDF, vfio.INTx, 0, 1, true},
		{noX.BDF, vfio.AutoIRQ, 0, 8, false}, {noX.BDF, vfio.MSIX, 0, 0, false}, {line.BDF, vfio.AutoIRQ, 0, 1, true}, {none.BDF, vfio.AutoIRQ, 0, 0, false},
		{many.BDF, vfio.AutoIRQ, 0, 32, false},
	} {
		d, err := vfio.Open(t.Context(), c.dev, vfio.WithKernel(k), vfio.WithDevice(vfio.WithInterrupts(c.kind, c.limit)))
		if err != nil {
			t.Fatal(err)
		}
		if n := d.NumInterrupts(); n != c.n {
			t.Errorf("%s %v limit %d: %d vectors, want %d", c.dev, c.kind, c.limit, n, c.n)
		}
		for _, i := range []int{-1, c.n} {
			if _, err := d.Interrupt(i); !errors.Is(err, os.ErrNotExist) {
				t.Errorf("%s %v: vector %d: %v", c.dev, c.kind, i, err)
			}
		}
		if c.n > 0 {
			v := interrupt(t, d, c.n-1)
			if v.Level() != c.level {
				t.Errorf("%s %v: level %v", c.dev, c.kind, v.Level())
			}
			must(t, v.Test(patience(t)))
			if _, err := d.Interrupt(c.n - 1); !errors.Is(err, unix.EBUSY) {
				t.Errorf("the vector was had twice: %v", err)
			}
		}
		must(t, d.Close())
	}
}

// TestMSI is V16: vectors come one by one, are counted, and end with the last.
func TestMSI(t *testing.T) {
	for name, dynamic := range map[string]bool{"fixed": false, "dynamic": true} {
		t.Run(name, func(t *testing.T) {
			k := newKernel(t, vfiotest.Config{})
			p := card("0000:03:00.0", 14)
			p.MSIX.Dynamic = dynamic
			hw := addPCI(t, k, p)
			d := open(t, k, p.BDF)
			must(t, d.SetBusMaster(true)) // messages are memory writes
			a, b := interrupt(t, d, 1), interrupt(t, d, 4)
			for range 3 {
				hw.Fire(uapi.PCIMSIX, 1)
			}
			if hw.Fire(uapi.PCIMSIX, 2) {
				t.Error("a vector that nobody has was delivered")
			}
			if n := fires(t, a); n != 3 {
				t.Errorf("vector 1 fired %d times", n)
			}
			if n := fires(t, b); n != 0 {
				t.Errorf("vector 4 fired %d times", n)
			}
			must(t, a.Unmask()) // does nothing
			must(t, a.Close())
			must(t, a.Close())
			if _, err := a.Wait(t.Context()); !errors.Is(err, vfio.ErrClosed) {
				t.Errorf("wait on a closed vector: %v", err)
			}
			if hw.Fire(uapi.PCIMSIX, 1) {
				t.Error("a closed vector was delivered")
			}
			hw.Fire(uapi.PCIMSIX, 4)
			if n := fires(t, b); n != 1 {
				t.Errorf("vector 4 fired %d times after vector 1 was closed", n)
			}
			a = interrupt(t, d, 1)
			hw.Fire(uapi.PCIMSIX, 1)
			if n := fires(t, a); n != 1 {
				t.Errorf("a vector that was had again fired %d times", n)
			}
			must(t, a.Close())
			hw.Fire(uapi.PCIMSIX, 4) // pending while it is closed
			must(t, b.Close())
			if hw.Fire(uapi.PCIMSIX, 4) {
				t.Error("a vector was delivered after all were closed")
			}
		})
	}
}

// TestFewVectors meets a machine that has fewer vectors than the device, from the beginning
// or from some time on: as many are told as there are.
func TestFewVectors(t *testing.T) {
	for name, c := range map[string]struct {
		kind  vfio.IRQKind
		index int
		known bool // from the beginning
		want  error
	}{
		"MSI": {vfio.MSI, uapi.PCIMSI, true, os.ErrNotExist}, "MSI-X": {vfio.MSIX, uapi.PCIMSIX, true, os.ErrNotExist},
		"MSI, later": {vfio.MSI, uapi.PCIMSI, false, unix.ENOSPC},
	} {
		t.Run(name, func(t *testing.T) {
			k := newKernel(t, vfiotest.Config{})
			hw := addPCI(t, k, card("0000:03:00.0", 14))
			d := open(t, k, hw.Name(), vfio.WithDevice(vfio.WithInterrupts(c.kind, 0)))
			must(t, d.SetBusMaster(true))
			all := map[vfio.IRQKind]int{vfio.MSI: 8, vfio.MSIX: 6}[c.kind]
			if c.known {
				k.MaxVectors(2)
				all = 2
			}
			if n := d.NumInterrupts(); n != all {
				t.Errorf("%d vectors, want %d", n, all)
			}
			k.MaxVectors(2)
			if _, err := d.Interrupt(5); !errors.Is(err, c.want) {
				t.Errorf("vector 5 of 2: %v", err)
			}
			v := interrupt(t, d, 1)
			hw.Fire(c.index, 1)
			if n := fires(t, v); n != 1 || d.NumInterrupts() != 2 {
				t.Errorf("fired %d times, %d vectors", n, d.NumInterrupts())
			}
		})
	}
}

// TestLine is V15: a line is unmasked once for each event, after its cause was
// cleared, and no event is lost or comes for ever.
func TestLine(t *testing.T) {
	for name, opts := range map[string][]vfio.DeviceOption{"ioctl": nil, "eventfd": {vfio.WithUnmaskEventfd()}} {
		for _, bus := range []vfio.Bus{vfio.PCI, vfio.Platform} {
			t.Run(name+"/"+string(bus), func(t *testing.T) {
				k := newKernel(t, vfiotest.Config{})
				var hw *vfiotest.Device
				if bus == vfio.PCI {
					hw = addPCI(t, k, card("0000:03:00.0", 14))
					opts = append(opts, vfio.WithInterrupts(vfio.INTx, 0))
				} else {
					hw = addPlatform(t, k, board("mac", 3))
				}
				d := open(t, k, hw.Name(), vfio.WithDevice(opts...))
				v := interrupt(t, d, 0)
				must(t, v.Unmask()) // nothing has fired
				if n := fires(t, v); n != 0 {
					t.Errorf("it fired %d times of itself", n)
				}
				wait := func(want uint64) {
					t.Helper()
					if n, err := v.Wait(patience(t)); n != want || err != nil {
						t.Errorf("%d, %v; want %d", n, err, want)
					}
				}
				hw.SetLine(0, true)
				wait(1)
				if n := fires(t, v); n != 0 {
					t.Errorf("a masked line fired %d times", n)
				}
				hw.SetLine(0, false) // the cause is cleared
				must(t, v.Unmask())
				must(t, v.Unmask())
				if n := fires(t, v); n != 0 {
					t.Errorf("fired %d times after its cause was cleared", n)
				}
				// A new cause comes before the line is unmasked.
				hw.SetLine(0, true)
				wait(1)
				must(t, v.Unmask())
				wait(1)
				// Unmasked too early: it fires again, and is not lost after that.
				must(t, v.Unmask())
				wait(1)
				hw.SetLine(0, false)
				must(t, v.Unmask())
				hw.SetLine(0, true)
				wait(1)
				hw.SetLine(0, false)
				must(t, v.Unmask())
				for range 2 {
					must(t, v.Test(patience(t)))
				}
				must(t, v.Close())
			})
		}
	}
}

// TestLineIsHadAgain closes a line that has fired and was not unmasked: the kernel keeps that
// of a platform device masked for whoever has it next.
func TestLineIsHadAgain(t *testing.T) {
	for name, opts := range map[string][]vfio.DeviceOption{"ioctl": nil, "eventfd": {vfio.WithUnmaskEventfd()}} {
		for _, bus := range []vfio.Bus{vfio.PCI, vfio.Platform} {
			for _, seen := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s/%s/seen %v", name, bus, seen), func(t *testing.T) {
					k := newKernel(t, vfiotest.Config{})
					var hw *vfiotest.Device
					if bus == vfio.PCI {
						hw = addPCI(t, k, card("0000:03:00.0", 14))
						opts = append(opts, vfio.WithInterrupts(vfio.INTx, 0))
					} else {
						hw = addPlatform(t, k, board("mac", 3))
					}
					d := open(t, k, hw.Name(), vfio.WithDevice(opts...))
					v := interrupt(t, d, 0)
					hw.SetLine(0, true)
					if seen {
						if n, err := v.Wait(patience(t)); n != 1 || err != nil {
							t.Fatal(n, err)
						}
					}
					hw.SetLine(0, false)
					must(t, v.Close())
					v = interrupt(t, d, 0)
					if n := fires(t, v); n != 0 {
						t.Errorf("it fired %d times without a cause", n)
					}
					hw.SetLine(0, true)
					if n := fires(t, v); n != 1 {
						t.Errorf("it fired %d times", n)
					}
					hw.SetLine(0, false)
					must(t, v.Close())
				})
			}
		}
	}
}

// TestLineIsNotHad: a line that cannot be unmasked at first is free again.
func TestLineIsNotHad(t *testing.T) {
	k := newKernel(t, vfiotest.Config{})
	hw := addPlatform(t, k, board("mac", 3))
	d := open(t, k, hw.Name())
	k.FailNext("VFIO_DEVICE_SET_IRQS", nil)
	k.FailNext("VFIO_DEVICE_SET_IRQS", unix.EIO)
	_, err := d.Interrupt(0)
	mustFail(t, err, unix.EIO, "interrupt 0", "VFIO_DEVICE_SET_IRQS")
	must(t, interrupt(t, d, 0).Test(patience(t)))
}

// TestWaitEnds ends Wait by its context and by Close.
func TestWaitEnds(t *testing.T) {
	k := newKernel(t, vfiotest.Config{})
	addPCI(t, k, card("0000:03:00.0", 14))
	d := open(t, k, "0000:03:00.0")
	v := interrupt(t, d, 0)
	for range 100 {
		ctx, cancel := context.WithCancel(t.Context())
		errs := make(chan error)
		go func() { _, err := v.Wait(ctx); errs <- err }()
		cancel()
		if err := <-errs; !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
	}
	must(t, v.Test(patience(t))) // the deadlines left nothing behind
	errs := make(chan error)
	go func() { _, err := v.Wait(t.Context()); errs <- err }()
	must(t, d.Close())
	if err := <-errs; !errors.Is(err, vfio.ErrClosed) {
		t.Error(err)
	}
}

// TestNotices calls what was asked for when the kernel reports an error or wants the
// device back; the latter may close the device.
func TestNotices(t *testing.T) {
	k := newKernel(t, vfiotest.Config{})
	hw := addPCI(t, k, card("0000:03:00.0", 14))
	failed, closed := make(chan struct{}), make(chan error)
	var d *vfio.Device
	var opened atomic.Bool
	d, err := vfio.Open(t.Context(), hw.Name(), vfio.WithKernel(k), vfio.WithDevice(
		vfio.OnError(func() { failed <- struct{}{} }),
		vfio.OnRequest(func() {
			if opened.Load() {
				closed <- d.Close()
			}
		})))
	if err != nil {
		t.Fatal(err)
	}
	opened.Store(true)
	hw.Fire(uapi.PCIERR, 0)
	<-failed
	hw.Fire(uapi.PCIERR, 0)
	<-failed
	hw.Fire(uapi.PCIREQ, 0)
	must(t, <-closed)
	if hw.Fire(uapi.PCIERR, 0) {
		t.Error("a closed device still hears of errors")
	}
}

// TestIRQRefused goes through what the kernel can answer.
func TestIRQRefused(t *testing.T) {
	k := newKernel(t, vfiotest.Config{})
	addPCI(t, k, card("0000:03:00.0", 14))
	d := open(t, k, "0000:03:00.0")
	k.FailNext("VFIO_DEVICE_SET_IRQS", unix.ENOMEM)
	_, err := d.Interrupt(0)
	mustFail(t, err, unix.ENOMEM, "interrupt 0", "VFIO_DEVICE_SET_IRQS")
	v := interrupt(t, d, 0)
	k.FailNext("VFIO_DEVICE_SET_IRQS", unix.EIO)
	mustFail(t, v.Test(t.Context()), unix.EIO, "test interrupt")
	must(t, v.Close())
	k.FailNext("VFIO_DEVICE_SET_IRQS", unix.EIO)
	_, err = vfio.Open(t.Context(), "0000:03:00.0", vfio.WithKernel(k), vfio.WithDevice(vfio.OnError(func() {})))
	if err == nil {
		t.Error("opened without the notice that was asked for")
	}
}
