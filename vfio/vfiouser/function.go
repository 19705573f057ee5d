package vfiouser

import (
	"errors"
	"io"
	"sync"
	"sync/atomic"

	"github.com/gostmmac/gostmmac/vfio/internal/uapi"
)

// Function is a PCI function as its client sees it, and what the device behind it reaches
// its host with. Its methods may be called by any number of goroutines.
type Function struct {
	cfg  Config
	dma  table
	busy atomic.Bool // a client is served

	mu     sync.Mutex // configuration space and interrupts
	config *configSpace
	irqs   *irqs
}

// New returns a function that no client is connected to. An error is ErrConfig.
func New(cfg Config) (*Function, error) {
	if err := cfg.complete(); err != nil {
		return nil, &Error{"new", cfg.Name, err, ""}
	}
	space, err := newConfigSpace(&cfg)
	if err != nil {
		return nil, &Error{"new", cfg.Name, err, ""}
	}
	return &Function{cfg: cfg, config: space, irqs: newIRQs(&cfg, space)}, nil
}

// SetINTx sets the level of the interrupt pin. While it is high and the driver has neither
// masked nor disabled it, the client is told, once for each time that it unmasks the
// interrupt. It does nothing on a function without a pin.
func (f *Function) SetINTx(high bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.irqs.line = high && f.cfg.INTx
	f.irqs.flush()
}

// SignalMSI fires MSI vector v, from 0 on. A driver that gave the function fewer vectors
// than it has gets those above modulo that number. A vector that the function does not have
// does nothing.
func (f *Function) SignalMSI(v int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.fireMSI(v)
}

func (f *Function) fireMSI(v int) {
	if v < 0 || v >= f.cfg.MSI.Vectors {
		return
	}
	if on, given, _ := f.config.msiState(); on {
		v %= given
	}
	f.irqs.fire(uapi.PCIMSI, v)
}

// SignalMSIX fires MSI-X vector v, from 0 on. A vector that the function does not have does
// nothing.
func (f *Function) SignalMSIX(v int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.irqs.fire(uapi.PCIMSIX, v)
}

// Signal fires vector v of MSI-X or MSI, whichever the driver has switched on, and nothing
// when it has switched on neither.
func (f *Function) Signal(v int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if on, _ := f.config.msixState(); on {
		f.irqs.fire(uapi.PCIMSIX, v)
	} else if on, _, _ := f.config.msiState(); on {
		f.fireMSI(v)
	}
}

// Withdraw is for a vector of which all events have been dealt with, by whatever means: if it
// fired while it was masked, it is not pending any more (PCI Local Bus 3.0, 6.8.3.5). v is as
// for [Function.Signal].
func (f *Function) Withdraw(v int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if on, _ := f.config.msixState(); on {
		f.irqs.withdraw(uapi.PCIMSIX, v)
	} else if on, given, _ := f.config.msiState(); on && v >= 0 {
		f.irqs.withdraw(uapi.PCIMSI, v%given)
	}
}

// ReportError tells the client of an error that the device does not recover from: QEMU
// stops the machine.
func (f *Function) ReportError() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.irqs.fire(uapi.PCIERR, 0)
}

// RequestRelease asks the client to give the function back: QEMU unplugs it.
func (f *Function) RequestRelease() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.irqs.fire(uapi.PCIREQ, 0)
}

// readConfig reads p at off of the configuration space, which is inside.
func (f *Function) readConfig(off int, p []byte) {
	f.mu.Lock()
	defer f.mu.Unlock()
	copy(p, f.config.b[off:])
	patch := func(at int, v byte) {
		if i := at - off; i >= 0 && i < len(p) {
			p[i] |= v
		}
	}
	if f.irqs.line {
		patch(configStatus, statusINTx)
	}
	if f.config.msi != 0 && f.cfg.MSI.Maskable {
		for i, bits := 0, f.irqs.pendingBits(uapi.PCIMSI, 0); i < 4; i++ {
			patch(f.config.msi+msiPending+i, byte(bits>>(8*i)))
		}
	}
}

// writeConfig writes p at off of the configuration space, which is inside.
func (f *Function) writeConfig(dev Device, off int, p []byte) {
	f.mu.Lock()
	before := f.config.master()
	flr := f.config.write(off, p)
	master := f.config.master()
	f.irqs.configured()
	f.mu.Unlock()
	if flr {
		f.reset(dev)
	} else if master != before {
		f.setMaster(dev, master)
	}
}

// setMaster turns bus mastering on or off. The device holds no window while it is off.
func (f *Function) setMaster(dev Device, on bool) {
	f.dma.setMaster(on)
	if !on {
		dev.DropWindows()
	}
}

// reset resets the function and its device. What the client has set up stays: its memory,
// its eventfds.
func (f *Function) reset(dev Device) {
	f.setMaster(dev, false)
	f.mu.Lock()
	copy(f.config.b, f.config.reset)
	f.irqs.reset()
	f.mu.Unlock()
	dev.Reset()
}

// accessBAR reads or writes p at off of a BAR, which is inside it, in accesses of a word
// that is aligned. Those that are in the MSI-X table or the PBA do not reach the device.
func (f *Function) accessBAR(dev Device, bar int, off uint64, p []byte, write bool) {
	for len(p) > 0 {
		n := 8
		for n > len(p) || off%uint64(n) != 0 {
			n /= 2
		}
		if !f.accessMSIX(bar, off, p[:n], write) {
			if write {
				dev.WriteBAR(bar, off, p[:n])
			} else {
				dev.ReadBAR(bar, off, p[:n])
			}
		}
		p, off = p[n:], off+uint64(n)
	}
}

// accessMSIX does so for the MSI-X table and the PBA, and says whether p is in one. Both
// are aligned to 8 bytes and their sizes are multiples of it, as is p.
func (f *Function) accessMSIX(bar int, off uint64, p []byte, write bool) bool {
	x := &f.cfg.MSIX
	if x.Vectors == 0 || bar != x.BAR {
		return false
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case off >= x.Table && off-x.Table < x.tableSize():
		if write {
			f.irqs.writeTable(off-x.Table, p)
		} else {
			f.irqs.readTable(off-x.Table, p)
		}
	case off >= x.PBA && off-x.PBA < x.pbaSize():
		if !write {
			f.irqs.readPBA(off-x.PBA, p)
		}
	default:
		return false
	}
	return true
}

// report tells Config.Report of err.
func (f *Function) report(err error) {
	if f.cfg.Report != nil {
		f.cfg.Report(err)
	}
}

// fail is an *Error of op for err, unless it is one already.
func (f *Function) fail(op string, err error) error {
	var e *Error
	if err == nil || errors.As(err, &e) {
		return err
	}
	return &Error{op, f.cfg.Name, err, ""}
}

// closeAll closes what a client gave.
func closeAll(all []io.Closer) error {
	var errs []error
	for _, c := range all {
		errs = append(errs, c.Close())
	}
	return errors.Join(errs...)
}
