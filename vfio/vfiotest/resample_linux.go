package vfiotest

import (
	"encoding/binary"

	"golang.org/x/sys/unix"
)

// resample is an eventfd whose writes unmask a line. A goroutine waits for them.
type resample struct {
	fd, stop int
	done     chan struct{}
}

// watch makes writes to an eventfd unmask q.
func (d *Device) watch(q *irq, fd int) error {
	if q.resample != nil {
		return unix.EBUSY
	}
	dup, err := dupEventfd(fd)
	if err != nil {
		return err
	}
	stop, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	if err != nil {
		_ = unix.Close(dup)
		return errno(err)
	}
	r := &resample{dup, stop, make(chan struct{})}
	q.resample = r
	go r.run(d, q)
	return nil
}

// unwatch ends that. The goroutine has ended when the lock is free again.
func (d *Device) unwatch(q *irq) {
	r := q.resample
	if r == nil {
		return
	}
	q.resample = nil
	_, _ = unix.Write(r.stop, binary.NativeEndian.AppendUint64(nil, 1))
	d.k.after = append(d.k.after, func() { <-r.done })
}

func (r *resample) run(d *Device, q *irq) {
	defer close(r.done)
	defer unix.Close(r.stop)
	defer unix.Close(r.fd)
	for {
		p := []unix.PollFd{{Fd: int32(r.fd), Events: unix.POLLIN}, {Fd: int32(r.stop), Events: unix.POLLIN}}
		if _, err := unix.Poll(p, -1); err == unix.EINTR {
			continue
		} else if err != nil || p[1].Revents != 0 {
			return
		}
		d.k.mu.Lock()
		// The count goes with the lock held: who sees it gone sees the line unmasked.
		if q.resample == r && r.take() {
			d.unmask(q)
		}
		d.k.unlock()
	}
}

// take reads the eventfd, which another reader may have been faster at.
func (r *resample) take() bool {
	p := []unix.PollFd{{Fd: int32(r.fd), Events: unix.POLLIN}}
	if n, err := unix.Poll(p, 0); err != nil || n == 0 {
		return false
	}
	var b [8]byte
	_, err := unix.Read(r.fd, b[:])
	return err == nil
}
