package vfio

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"syscall"

	"github.com/gostmmac/gostmmac/mmio"
	"github.com/gostmmac/gostmmac/vfio/internal/uapi"
)

// IRQKind is how a PCI function signals interrupts.
type IRQKind uint8

// Kinds of interrupts.
const (
	AutoIRQ IRQKind = iota // MSI-X where there is one, else MSI, else INTx
	INTx                   // a line; the kernel masks it when it fires
	MSI                    // messages, whose number is fixed when the first is used
	MSIX                   // messages; they need bus mastering, as those of MSI do
)

// String returns "auto", "INTx", "MSI" or "MSI-X".
func (k IRQKind) String() string {
	switch k {
	case AutoIRQ:
		return "auto"
	case INTx:
		return "INTx"
	case MSI:
		return "MSI"
	case MSIX:
		return "MSI-X"
	}
	return fmt.Sprintf("interrupt kind %d", uint8(k))
}

// maxVectors bounds how many vectors a function uses, for each of which there is a
// descriptor.
const maxVectors = 32

// irqIndex is an interrupt index of the kernel: all vectors of a kind, or one
// interrupt of a platform device.
type irqIndex struct {
	dev     *Device
	index   uint32
	flags   uint32
	vectors []*Interrupt // by vector; nil for those that are not open
	enabled int          // vectors that the kernel has set up
}

// irqInfo asks about an index. One that the kernel does not have counts 0.
func (d *Device) irqInfo(index uint32) (uapi.IRQInfo, error) {
	info := uapi.IRQInfo{Index: index}
	info.Argsz = uint32(len(uapi.Bytes(&info)))
	if _, err := d.k.Ioctl(d.fd, uapi.DeviceGetIRQInfo, uapi.Bytes(&info)); err != nil {
		if errors.Is(err, syscall.EINVAL) {
			return uapi.IRQInfo{Index: index}, nil
		}
		return info, &Error{Call: "VFIO_DEVICE_GET_IRQ_INFO", Err: err}
	}
	return info, nil
}

// line finds the index that interrupt i of the device belongs to, and its vector
// there. The caller holds d.mu.
func (d *Device) line(i int) (*irqIndex, int, error) {
	if d.info.Bus != PCI {
		if i < 0 || i >= int(d.numIRQs) {
			return nil, 0, fmt.Errorf("there are %d: %w", d.numIRQs, os.ErrNotExist)
		}
		x, err := d.irqIndex(uint32(i))
		if err == nil && len(x.vectors) == 0 {
			err = fmt.Errorf("the kernel has no interrupt of this number: %w", os.ErrNotExist)
		}
		return x, 0, err
	}
	kinds := []IRQKind{MSIX, MSI, INTx}
	if d.opt.irq != AutoIRQ {
		kinds = []IRQKind{d.opt.irq}
	}
	for _, k := range kinds {
		x, err := d.irqIndex([...]uint32{INTx: uapi.PCIINTx, MSI: uapi.PCIMSI, MSIX: uapi.PCIMSIX}[k])
		switch {
		case err != nil:
			return nil, 0, err
		case len(x.vectors) == 0:
			continue
		case i < 0 || i >= len(x.vectors):
			return nil, 0, fmt.Errorf("there are %d of %v: %w", len(x.vectors), k, os.ErrNotExist)
		}
		return x, i, nil
	}
	return nil, 0, fmt.Errorf("the function has no %v: %w", d.opt.irq, os.ErrNotExist)
}

func (d *Device) irqIndex(index uint32) (*irqIndex, error) {
	if x := d.irqs[index]; x != nil {
		return x, nil
	}
	info, err := d.irqInfo(index)
	if err != nil {
		return nil, err
	}
	n := int(min(info.Count, maxVectors))
	if d.opt.vectors > 0 {
		n = min(n, d.opt.vectors)
	}
	if info.Flags&uapi.IRQEventfd == 0 {
		n = 0
	}
	x := &irqIndex{dev: d, index: index, flags: info.Flags}
	if n > 1 && info.Flags&uapi.IRQNoResize != 0 {
		if n, err = x.available(n); err != nil {
			return nil, err
		}
	}
	x.vectors = make([]*Interrupt, n)
	d.irqs[index] = x
	return x, nil
}

// available is how many of n vectors the machine has for the device, which the kernel says
// when they are set up: without interrupt remapping a PC has one of MSI for each function,
// whatever that has. Those of an index that can grow are asked for one by one.
func (x *irqIndex) available(n int) (int, error) {
	got, err := x.set(uapi.IRQActionTrigger, 0, slices.Repeat([]int32{-1}, n))
	switch {
	case err != nil:
		return 0, err
	case got > 0 && got < n:
		return got, nil
	case got != 0:
		return 0, fmt.Errorf("the machine has %d vectors left for the device, of %d: %w", got, n, syscall.ENOSPC)
	}
	return n, x.off()
}

// off turns the index off.
func (x *irqIndex) off() error {
	_, err := x.request(uapi.IRQSet{Flags: uapi.IRQDataNone | uapi.IRQActionTrigger, Index: x.index}, nil)
	return err
}

// NumInterrupts is how many interrupts the device has: the vectors of the kind that
// it uses, or those of a platform device.
func (d *Device) NumInterrupts() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.usable() != nil {
		return 0
	}
	if d.info.Bus != PCI {
		n := 0
		for ; n < int(d.numIRQs); n++ {
			// By index until the first that is missing, as the kernel counts them.
			if x, err := d.irqIndex(uint32(n)); err != nil || len(x.vectors) == 0 {
				break
			}
		}
		return n
	}
	x, _, err := d.line(0)
	if err != nil {
		return 0
	}
	return len(x.vectors)
}

// Interrupt returns interrupt i, enabled: a *[Interrupt]. One that is open already
// fails with syscall.EBUSY.
func (d *Device) Interrupt(i int) (mmio.Interrupt, error) {
	v, err := d.interrupt(i)
	if err != nil {
		return nil, wrap(fmt.Sprintf("interrupt %d", i), d.info.Name, err)
	}
	return v, nil
}

func (d *Device) interrupt(i int) (*Interrupt, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.usable(); err != nil {
		return nil, err
	}
	x, n, err := d.line(i)
	if err != nil {
		return nil, err
	}
	if x.vectors[n] != nil {
		return nil, fmt.Errorf("it is in use: %w", syscall.EBUSY)
	}
	for _, o := range d.irqs {
		if d.info.Bus == PCI && o != x && o.enabled > 0 && o.index <= uapi.PCIMSIX {
			return nil, fmt.Errorf("interrupts of another kind are in use: %w", syscall.EBUSY)
		}
	}
	return x.open(n)
}

// open makes the kernel signal vector n by an eventfd.
func (x *irqIndex) open(n int) (v *Interrupt, err error) {
	v = &Interrupt{index: x, vector: n, level: x.flags&uapi.IRQAutomasked != 0}
	if v.event, err = newEvent(); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, v.closeFiles())
			v = nil
		}
	}()
	d := x.dev
	if d.info.Bus == PCI && x.index == uapi.PCIINTx {
		if err = d.setCommand(0, commandINTxDisable); err != nil {
			return v, err
		}
	}
	if err = x.enable(n, v); err != nil {
		return v, err
	}
	if err = v.ready(); err != nil {
		return v, errors.Join(err, x.disable(n))
	}
	x.vectors[n] = v
	return v, nil
}

// ready lets a line fire, and again for each Unmask. The kernel remembers of an interrupt of a
// platform device that it was masked when it was closed.
func (v *Interrupt) ready() (err error) {
	if !v.level {
		return nil
	}
	if err := v.act(uapi.IRQActionUnmask); err != nil || !v.index.dev.opt.resample {
		return err
	}
	if v.unmask, err = newEvent(); err != nil {
		return err
	}
	return v.index.setFD(uapi.IRQActionUnmask, v.vector, v.unmask.fd)
}

// enable sets vector n up. Those of MSI, and of MSI-X on kernels that cannot add
// any, are set up together with the first.
func (x *irqIndex) enable(n int, v *Interrupt) error {
	if n < x.enabled || x.flags&uapi.IRQNoResize == 0 {
		if err := x.setFD(uapi.IRQActionTrigger, n, v.event.fd); err != nil {
			return err
		}
		x.enabled = max(x.enabled, n+1)
		return nil
	}
	for count := len(x.vectors); ; {
		fds := slices.Repeat([]int32{-1}, count)
		fds[n] = int32(v.event.fd)
		got, err := x.set(uapi.IRQActionTrigger, 0, fds)
		switch {
		case err != nil:
			return err
		case got == 0:
			x.enabled = count
			return nil
		case got <= n || got >= count:
			return fmt.Errorf("the machine has %d vectors left for the device: %w", got, syscall.ENOSPC)
		}
		// It had as many when it was asked, and may have fewer now.
		x.vectors, count = x.vectors[:got], got
	}
}

// setFD makes an eventfd stand for an action on one vector; -1 ends that.
func (x *irqIndex) setFD(action uint32, n, fd int) error {
	got, err := x.set(action, n, []int32{int32(fd)})
	if err == nil && got > 0 {
		err = fmt.Errorf("the machine has %d vectors left for the device: %w", got, syscall.ENOSPC)
	}
	return err
}

// set makes a request with the eventfds of the vectors from start on; with none it
// takes no data. A number above 0 is how many vectors there could be.
func (x *irqIndex) set(action uint32, start int, fds []int32) (int, error) {
	s := uapi.IRQSet{Flags: action | uapi.IRQDataEventfd, Index: x.index, Start: uint32(start), Count: uint32(len(fds))}
	return x.request(s, fds)
}

func (x *irqIndex) request(s uapi.IRQSet, fds []int32) (int, error) {
	s.Argsz = uint32(len(uapi.Bytes(&s)) + 4*len(fds))
	arg := append([]byte(nil), uapi.Bytes(&s)...)
	for _, fd := range fds {
		arg = binary.NativeEndian.AppendUint32(arg, uint32(fd))
	}
	n, err := x.dev.k.Ioctl(x.dev.fd, uapi.DeviceSetIRQs, arg)
	if err != nil {
		return n, &Error{Call: "VFIO_DEVICE_SET_IRQS", Err: err}
	}
	return n, nil
}

// disable takes vector n back, and turns the index off with the last.
func (x *irqIndex) disable(n int) error {
	x.vectors[n] = nil
	if x.dev.gone.Load() {
		return nil // nobody is there to be told
	}
	if slices.ContainsFunc(x.vectors, func(v *Interrupt) bool { return v != nil }) {
		return x.setFD(uapi.IRQActionTrigger, n, -1)
	}
	x.enabled = 0
	err := x.off()
	if x.dev.info.Bus == PCI && x.index == uapi.PCIINTx {
		err = errors.Join(err, x.dev.setCommand(commandINTxDisable, 0))
	}
	return err
}

// closeAll closes the vectors that are open. The caller holds d.mu.
func (x *irqIndex) closeAll() error {
	var errs []error
	for _, v := range x.vectors {
		if v != nil {
			v.once.Do(func() { v.closeErr = v.end() })
			errs = append(errs, v.closeErr)
		}
	}
	return errors.Join(errs...)
}

// Interrupt is an interrupt of a device. One goroutine waits at a time; the other
// methods may be called by several.
type Interrupt struct {
	index  *irqIndex
	vector int
	level  bool // the kernel masks it when it fires
	event  *event
	unmask *event // WithUnmaskEventfd

	mu     sync.Mutex
	masked bool // it has fired and was not unmasked

	once     sync.Once
	closeErr error
}

// Wait implements mmio.Interrupt.
func (v *Interrupt) Wait(ctx context.Context) (uint64, error) {
	n, err := v.event.wait(ctx)
	if err == nil && v.level {
		v.mu.Lock()
		v.masked = true
		v.mu.Unlock()
	}
	return n, err
}

// Unmask implements mmio.Interrupt: it lets a line that has fired fire again, once
// for each time that Wait has returned. The cause in the device is cleared first,
// or it fires at once. Messages are not masked.
func (v *Interrupt) Unmask() error {
	if !v.level {
		return nil
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if !v.masked {
		return nil
	}
	x := v.index
	var err error
	if v.unmask != nil {
		err = v.unmask.signal()
	} else {
		err = v.act(uapi.IRQActionUnmask)
	}
	if err != nil {
		return wrap("unmask interrupt", x.dev.info.Name, err)
	}
	v.masked = false
	return nil
}

// act makes a request for the vector that takes no data.
func (v *Interrupt) act(action uint32) error {
	x := v.index
	_, err := x.request(uapi.IRQSet{Flags: uapi.IRQDataNone | action, Index: x.index, Start: uint32(v.vector), Count: 1}, nil)
	return err
}

// Level says that the interrupt is a line, which the kernel masks when it fires.
func (v *Interrupt) Level() bool { return v.level }

// Test makes the kernel fire the interrupt without the device, waits for it until
// ctx ends and unmasks it: it shows that the way from the kernel to here is whole.
func (v *Interrupt) Test(ctx context.Context) error {
	x := v.index
	if v.level {
		// by request: what an eventfd asks for the kernel does some time later
		if err := v.act(uapi.IRQActionUnmask); err != nil {
			return wrap("test interrupt", x.dev.info.Name, err)
		}
	}
	if err := v.act(uapi.IRQActionTrigger); err != nil {
		return wrap("test interrupt", x.dev.info.Name, err)
	}
	if _, err := v.Wait(ctx); err != nil {
		return wrap("test interrupt", x.dev.info.Name, err)
	}
	return v.Unmask()
}

// Close implements mmio.Interrupt: it disables the interrupt.
func (v *Interrupt) Close() error {
	d := v.index.dev
	d.mu.Lock()
	defer d.mu.Unlock()
	v.once.Do(func() { v.closeErr = v.end() })
	return wrap("close interrupt", d.info.Name, v.closeErr)
}

// end takes the interrupt back. The caller holds the lock of the device.
func (v *Interrupt) end() error {
	var err error
	if v.unmask != nil && !v.index.dev.gone.Load() {
		// That of a platform device stays when the trigger goes.
		err = v.index.setFD(uapi.IRQActionUnmask, v.vector, -1)
	}
	return errors.Join(err, v.index.disable(v.vector), v.closeFiles())
}

func (v *Interrupt) closeFiles() error {
	err := v.event.close()
	if v.unmask != nil {
		err = errors.Join(err, v.unmask.close())
	}
	return err
}
