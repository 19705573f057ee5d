package vfiotest

import (
	"encoding/binary"
	"fmt"
	"os"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/gostmmac/gostmmac/vfio/internal/uapi"
)

// irq is an interrupt index of a device.
type irq struct {
	flags    uint32 // of IRQInfo
	count    int
	on       bool  // INTx, MSI, MSI-X: the index is the one in use
	fds      []int // eventfd of each vector, -1 for none
	masked   bool
	line     bool // level of the line, for one that has one
	resample *resample
}

func (q *irq) level() bool { return q.flags&uapi.IRQAutomasked != 0 }

func (d *Device) irqInfo(arg []byte) error {
	const size = 16
	v, err := readArg[uapi.IRQInfo](arg, size)
	if err != nil {
		return err
	}
	if v.Index >= uint32(len(d.irqs)) {
		return unix.EINVAL
	}
	q := &d.irqs[v.Index]
	v.Flags, v.Count = q.flags, uint32(q.count)
	writeArg(arg, &v, size)
	return nil
}

// setIRQs serves VFIO_DEVICE_SET_IRQS.
func (d *Device) setIRQs(arg []byte) (int, error) {
	const header = 20
	const kinds = uapi.IRQDataNone | uapi.IRQDataBool | uapi.IRQDataEventfd
	const actions = uapi.IRQActionMask | uapi.IRQActionUnmask | uapi.IRQActionTrigger
	s, err := readArg[uapi.IRQSet](arg, header)
	if err != nil {
		return 0, err
	}
	if s.Index >= uint32(len(d.irqs)) || s.Flags&^(kinds|actions) != 0 {
		return 0, unix.EINVAL
	}
	q := &d.irqs[s.Index]
	if uint64(s.Start) >= uint64(q.count) || uint64(s.Start)+uint64(s.Count) > uint64(q.count) {
		return 0, unix.EINVAL
	}
	size := 0
	switch s.Flags & kinds {
	case uapi.IRQDataNone:
	case uapi.IRQDataBool:
		size = 1
	case uapi.IRQDataEventfd:
		size = 4
	default:
		return 0, unix.EINVAL
	}
	n := size * int(s.Count)
	if int(s.Argsz)-header < n {
		return 0, unix.EINVAL
	}
	if size > 0 && n == 0 {
		return 0, unix.EINVAL
	}
	r := irqRequest{q: q, start: int(s.Start), count: int(s.Count), kind: s.Flags & kinds, data: arg[header : header+n]}
	isLine := s.Index == uapi.PCIINTx || d.bus == platformBus
	switch s.Flags & actions {
	case uapi.IRQActionMask:
		if isLine {
			return 0, d.setMask(r, true)
		}
	case uapi.IRQActionUnmask:
		if isLine {
			return 0, d.setMask(r, false)
		}
	case uapi.IRQActionTrigger:
		switch {
		case d.bus == platformBus:
			return 0, d.triggerPlatform(r)
		case s.Index == uapi.PCIINTx:
			return 0, d.triggerINTx(r)
		case s.Index == uapi.PCIMSI || s.Index == uapi.PCIMSIX:
			return d.triggerMSI(r)
		}
		return 0, d.triggerSingle(r)
	}
	return 0, unix.ENOTTY
}

// irqRequest is a SET_IRQS whose numbers are in range.
type irqRequest struct {
	q            *irq
	start, count int
	kind         uint32
	data         []byte
}

// wants says that the request is for vector i of it: without data all are meant.
func (r *irqRequest) wants(i int) bool { return r.kind != uapi.IRQDataBool || r.data[i] != 0 }

func (r *irqRequest) fd(i int) int { return int(int32(binary.NativeEndian.Uint32(r.data[4*i:]))) }

// one says that the request is for exactly the first vector.
func (r *irqRequest) one() bool { return r.start == 0 && r.count == 1 }

// inUse is the index of a PCI function that is in use, nil for none.
func (d *Device) inUse() *irq {
	for i := range d.irqs {
		if d.irqs[i].on {
			return &d.irqs[i]
		}
	}
	return nil
}

func (d *Device) setMask(r irqRequest, mask bool) error {
	q := r.q
	if d.bus == pciBus && !q.on || !r.one() || !q.level() {
		return unix.EINVAL
	}
	if r.kind == uapi.IRQDataEventfd {
		fd := r.fd(0)
		switch {
		case mask:
			return unix.ENOTTY
		case fd >= 0:
			return d.watch(q, fd)
		}
		d.unwatch(q)
		return nil
	}
	if !r.wants(0) {
		return nil
	}
	q.masked = true
	if !mask {
		d.unmask(q)
	}
	return nil
}

func (d *Device) triggerINTx(r irqRequest) error {
	q := r.q
	if q.on && r.count == 0 && r.kind == uapi.IRQDataNone {
		d.disable(q)
		return nil
	}
	if u := d.inUse(); u != nil && u != q || !r.one() {
		return unix.EINVAL
	}
	if r.kind == uapi.IRQDataEventfd {
		fresh := !q.on
		if fresh {
			q.on, q.masked, q.fds = true, false, []int{-1}
		}
		if err := q.set(0, r.fd(0)); err != nil {
			if fresh {
				d.disable(q)
			}
			return err
		}
		d.deliver(q)
		return nil
	}
	if !q.on {
		return unix.EINVAL
	}
	if r.wants(0) {
		q.signal(0)
	}
	return nil
}

func (d *Device) triggerMSI(r irqRequest) (int, error) {
	q := r.q
	if q.on && r.count == 0 && r.kind == uapi.IRQDataNone {
		d.disable(q)
		return 0, nil
	}
	if u := d.inUse(); u != nil && u != q {
		return 0, unix.EINVAL
	}
	end := r.start + r.count
	if r.kind == uapi.IRQDataEventfd {
		if most := d.k.maxVectors; most > 0 && end > most {
			return most, nil
		}
		fresh := !q.on
		if fresh {
			q.on = true
			q.fds = slices.Repeat([]int{-1}, end)
		}
		if end > len(q.fds) {
			if q.flags&uapi.IRQNoResize != 0 {
				return 0, unix.EINVAL
			}
			q.fds = append(q.fds, slices.Repeat([]int{-1}, end-len(q.fds))...)
		}
		for i := range r.count {
			if err := q.set(r.start+i, r.fd(i)); err != nil {
				for j := range i {
					_ = q.set(r.start+j, -1)
				}
				if fresh {
					d.disable(q)
				}
				return 0, err
			}
		}
		return 0, nil
	}
	if !q.on || end > len(q.fds) {
		return 0, unix.EINVAL
	}
	for i := range r.count {
		if r.wants(i) {
			q.signal(r.start + i)
		}
	}
	return 0, nil
}

// triggerSingle serves the indices of errors and of requests to give the device back.
func (d *Device) triggerSingle(r irqRequest) error {
	q := r.q
	switch r.kind {
	case uapi.IRQDataNone:
		if q.fds[0] < 0 {
			return unix.EINVAL
		}
		if r.count == 0 {
			return q.set(0, -1)
		}
		q.signal(0)
	case uapi.IRQDataBool:
		if r.wants(0) {
			q.signal(0)
		}
	case uapi.IRQDataEventfd:
		if fd := r.fd(0); fd >= -1 {
			return q.set(0, fd)
		}
		return unix.EINVAL
	}
	return nil
}

func (d *Device) triggerPlatform(r irqRequest) error {
	q := r.q
	switch {
	case r.count == 0 && r.kind == uapi.IRQDataNone:
		return q.set(0, -1)
	case !r.one():
		return unix.EINVAL
	case r.kind == uapi.IRQDataEventfd:
		if err := q.set(0, r.fd(0)); err != nil {
			return err
		}
		d.deliver(q)
	case r.wants(0) && q.fds[0] >= 0 && !(q.level() && q.masked):
		q.masked = q.level()
		q.signal(0)
	}
	return nil
}

// set gives a vector an eventfd; a negative one takes it away.
func (q *irq) set(i, fd int) error {
	if q.fds[i] >= 0 {
		_ = unix.Close(q.fds[i])
		q.fds[i] = -1
	}
	if fd < 0 {
		return nil
	}
	dup, err := dupEventfd(fd)
	if err != nil {
		return err
	}
	q.fds[i] = dup
	return nil
}

// disable takes all eventfds of an index away.
func (d *Device) disable(q *irq) {
	for i := range q.fds {
		_ = q.set(i, -1)
	}
	d.unwatch(q)
	if q.on {
		q.on, q.fds = false, nil
	}
}

// signal writes to the eventfd of a vector.
func (q *irq) signal(i int) bool {
	if i < 0 || i >= len(q.fds) || q.fds[i] < 0 {
		return false
	}
	one := binary.NativeEndian.AppendUint64(nil, 1)
	_, err := unix.Write(q.fds[i], one)
	return err == nil
}

// deliver lets a line that is high interrupt, which masks it.
func (d *Device) deliver(q *irq) bool {
	if !q.line || q.masked || d.gone || d.bus == pciBus && d.command()&commandNoINTx != 0 {
		return false
	}
	if !q.signal(0) {
		return false
	}
	q.masked = true
	return true
}

func (d *Device) unmask(q *irq) {
	q.masked = false
	d.deliver(q)
}

// Fire lets the device raise an interrupt and says whether an eventfd was written.
// Index is that of VFIO for PCI (INTx, MSI, MSI-X, errors, request: 0 to 4), and
// the number of the interrupt of a platform device, whose vector is 0. MSI and MSI-X
// are writes of the device and need bus mastering. A line goes up and down again.
func (d *Device) Fire(index, vector int) bool {
	d.k.mu.Lock()
	defer d.k.unlock()
	if index < 0 || index >= len(d.irqs) || d.gone {
		return false
	}
	q := &d.irqs[index]
	switch {
	case q.level():
		if vector != 0 {
			return false
		}
		was := q.line
		q.line = true
		ok := d.deliver(q)
		q.line = was
		return ok
	case d.bus == pciBus && (index == uapi.PCIMSI || index == uapi.PCIMSIX):
		if d.command()&commandMaster == 0 {
			return false
		}
	}
	return q.signal(vector)
}

// SetLine sets the level of an interrupt line: INTx (0) of a PCI function, or an
// interrupt of a platform device. While it is high and not masked it interrupts,
// once, and is masked by that until the driver unmasks it. An edge interrupt comes
// when the line goes up.
func (d *Device) SetLine(index int, high bool) {
	d.k.mu.Lock()
	defer d.k.unlock()
	if index < 0 || index >= len(d.irqs) || d.bus == pciBus && index != uapi.PCIINTx {
		return
	}
	q := &d.irqs[index]
	rises := high && !q.line
	q.line = high
	if d.bus == pciBus {
		d.config[configStatus] &^= statusINTx
		if high {
			d.config[configStatus] |= statusINTx
		}
	}
	switch {
	case q.level():
		d.deliver(q)
	case rises && !d.gone:
		q.signal(0)
	}
}

// dupEventfd is a descriptor of one's own for an eventfd, as the kernel holds it.
func dupEventfd(fd int) (int, error) {
	dup, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return -1, unix.EBADF
	}
	if what, err := os.Readlink(fmt.Sprintf("/proc/self/fd/%d", dup)); err == nil && what != "anon_inode:[eventfd]" {
		_ = unix.Close(dup)
		return -1, unix.EINVAL
	}
	return dup, nil
}
