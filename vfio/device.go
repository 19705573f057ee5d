package vfio

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/gostmmac/gostmmac/vfio/internal/uapi"
)

// Device is an open device. Its methods may be called by several goroutines.
type Device struct {
	dom  *Domain
	k    Kernel
	info Info
	fd   int
	opt  deviceOptions

	flags      uint32
	numRegions uint32
	numIRQs    uint32
	config     *ConfigSpace // of PCI
	coherent   bool
	wasReset   bool
	ownDomain  bool
	gone       atomic.Bool

	mu      sync.Mutex
	closed  bool
	regions map[int]*region
	irqs    map[uint32]*irqIndex
	maps    []piece
	allocs  []allocation
	master  bool // bus mastering is on
	notices []*notice

	closing  sync.Once
	closeErr error
}

func newDevice(m *Domain, i *Info, fd int, o deviceOptions) *Device {
	return &Device{dom: m, k: m.k, info: *i, fd: fd, opt: o, regions: map[int]*region{}, irqs: map[uint32]*irqIndex{}}
}

// deviceInfo asks what the device is.
func deviceInfo(k Kernel, fd int) (uapi.DeviceInfo, error) {
	var info uapi.DeviceInfo
	info.Argsz = uint32(len(uapi.Bytes(&info)))
	if _, err := k.Ioctl(fd, uapi.DeviceGetInfo, uapi.Bytes(&info)); err != nil {
		return info, &Error{Call: "VFIO_DEVICE_GET_INFO", Err: err}
	}
	return info, nil
}

// start learns what the device is and brings it to rest: whoever had it may have
// died while it was writing to memory.
func (d *Device) start(ctx context.Context) error {
	info, err := deviceInfo(d.k, d.fd)
	if err != nil {
		return err
	}
	d.flags, d.numRegions, d.numIRQs = info.Flags, info.NumRegions, info.NumIRQs
	switch {
	case info.Flags&uapi.DeviceFlagPCI != 0:
		d.info.Bus = PCI
	case info.Flags&uapi.DeviceFlagPlatform != 0:
		d.info.Bus = Platform
	default:
		return fmt.Errorf("the device is neither PCI nor platform (flags %#x): %w", info.Flags, errors.ErrUnsupported)
	}
	d.coherent = !d.dom.space.physical() || isCoherent(d.k, &d.info, runtime.GOARCH)
	if d.opt.coherent != nil && d.dom.space.physical() {
		d.coherent = *d.opt.coherent
	}
	if d.info.Bus == PCI {
		if d.config, err = openConfig(d); err != nil {
			return err
		}
		if err := d.setCommand(0, commandMaster); err != nil {
			return err
		}
	}
	if d.flags&uapi.DeviceFlagReset != 0 {
		if err := d.reset(ctx); err != nil {
			// It may be a reset that works next time, and drivers reset their own.
			d.dom.opt.log.Warn().Str("dev", d.info.Name).Err(err).Msg("reset at open")
		} else {
			d.wasReset = true
		}
	}
	if d.info.Bus == PCI {
		if err := d.setCommand(commandMemory|commandINTxDisable, commandMaster); err != nil {
			return err
		}
	}
	return d.notify()
}

// Info is what sysfs told of the device when it was opened.
func (d *Device) Info() Info { return d.info }

// Domain is the domain of the device.
func (d *Device) Domain() *Domain { return d.dom }

// WasReset says that the device was reset from outside when it was opened. One that
// was not may still be doing what its last owner told it, as far as the IOMMU and
// bus mastering let it: its driver stops it first.
func (d *Device) WasReset() bool { return d.wasReset }

// usable says why the device cannot be used. The caller holds d.mu.
func (d *Device) usable() error {
	switch {
	case d.closed:
		return ErrClosed
	case d.gone.Load():
		return ErrGone
	}
	return nil
}

// Gone says that the device does not answer any more.
func (d *Device) Gone() bool { return d.gone.Load() }

// markGone is called by whoever sees that the device does not answer.
func (d *Device) markGone(err error) {
	if d.gone.CompareAndSwap(false, true) {
		d.dom.opt.log.Error().Str("dev", d.info.Name).Err(err).Msg("device is gone")
	}
}

// Config is the configuration space of a PCI function. For other devices the error
// wraps errors.ErrUnsupported.
func (d *Device) Config() (*ConfigSpace, error) {
	if d.config == nil {
		return nil, &Error{Op: "open configuration space", Dev: d.info.Name, Err: errors.ErrUnsupported}
	}
	return d.config, nil
}

// SetBusMaster lets a PCI function access memory and signal interrupts by
// messages, or keeps it from both; see [WithManualBusMaster].
func (d *Device) SetBusMaster(on bool) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.usable(); err != nil {
		return wrap("set bus mastering", d.info.Name, err)
	}
	return wrap("set bus mastering", d.info.Name, d.setMaster(on))
}

func (d *Device) setMaster(on bool) error {
	if d.config == nil {
		return fmt.Errorf("only PCI functions have it: %w", errors.ErrUnsupported)
	}
	set, clear := uint16(0), uint16(commandMaster)
	if on {
		set, clear = clear, set
	}
	if err := d.setCommand(set, clear); err != nil {
		return err
	}
	d.master = on
	return nil
}

// mayMaster turns bus mastering on while memory is mapped for the function, and off
// while none is. The caller holds d.mu.
func (d *Device) mayMaster() error {
	want := len(d.maps)+len(d.allocs) > 0
	if d.config == nil || d.opt.manualBME || d.master == want || d.gone.Load() {
		return nil
	}
	return d.setMaster(want)
}

// Close gives the device back: interrupts and bus mastering go off, what is still
// mapped for it is unmapped, which the error tells, and the kernel resets it where
// it can. Calls that block end with ErrClosed; registers read as all ones. It is
// safe to call twice and returns the same error then.
func (d *Device) Close() error {
	d.closing.Do(func() {
		err := errors.Join(d.release(), d.dom.remove(d))
		if d.ownDomain {
			err = errors.Join(err, d.dom.Close())
		}
		d.closeErr = wrap("close", d.info.Name, err)
		d.dom.opt.log.Info().Str("dev", d.info.Name).Err(err).Msg("close")
	})
	return d.closeErr
}

// release stops the device and frees what it has, all but its descriptor.
func (d *Device) release() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.closed = true
	var errs []error
	for _, n := range d.notices {
		errs = append(errs, n.close())
	}
	for _, x := range d.irqs {
		errs = append(errs, x.closeAll())
	}
	if d.config != nil && !d.gone.Load() {
		// before memory goes away that the function may be writing to
		errs = append(errs, d.setMaster(false))
	}
	if n := len(d.maps) + len(d.allocs); n > 0 {
		errs = append(errs, fmt.Errorf("%d pieces of memory were still mapped for it: close what uses it first: %w", n, os.ErrInvalid))
	}
	for _, p := range d.maps {
		errs = append(errs, d.dom.unmapDMA(p.of))
	}
	for _, a := range d.allocs {
		errs = append(errs, d.dom.freeSlab(a.slab, a.off))
	}
	d.maps, d.allocs = nil, nil
	for _, r := range d.regions {
		errs = append(errs, r.close())
	}
	return errors.Join(errs...)
}
