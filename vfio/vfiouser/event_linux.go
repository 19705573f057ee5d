package vfiouser

import (
	"errors"
	"fmt"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// event is an eventfd of the client that an interrupt is written to.
type event struct{ fd int }

// checkEvent says what fd is, if it is no eventfd: a write to another kind of file may
// block.
func checkEvent(fd int) error {
	const want = "anon_inode:[eventfd]"
	is, err := os.Readlink(fmt.Sprintf("/proc/self/fd/%d", fd))
	if err != nil {
		return refuse(syscall.EINVAL, "look at the descriptor: %v", err)
	}
	if is != want {
		return refuse(syscall.EINVAL, "the descriptor is %q, and an eventfd is needed", is)
	}
	return nil
}

var eventOne = order.AppendUint64(nil, 1)

// signal adds one. An eventfd that is full has told of interrupts that the client has not
// looked at, so one more says nothing; it is not waited for.
func (e event) signal() {
	p := []unix.PollFd{{Fd: int32(e.fd), Events: unix.POLLOUT}}
	if n, err := unix.Poll(p, 0); err == nil && n == 1 && p[0].Revents&unix.POLLOUT != 0 {
		_, _ = unix.Write(e.fd, eventOne)
	}
}

// Close implements io.Closer.
func (e event) Close() error { return unix.Close(e.fd) }

// watch calls a function whenever an eventfd of the client is written to, until it is
// closed.
type watch struct {
	fd, stop, epoll int
	done            chan struct{}
}

// newWatch takes fd. A goroutine calls f.
func newWatch(fd int, f func()) (*watch, error) {
	w := &watch{fd: fd, stop: -1, epoll: -1, done: make(chan struct{})}
	var err error
	if w.stop, err = unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK); err == nil {
		w.epoll, err = unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	}
	// The edge tells of each write, so the eventfd is not read: that could block.
	for _, c := range []struct {
		fd     int
		events uint32
	}{{w.fd, unix.EPOLLIN | unix.EPOLLET}, {w.stop, unix.EPOLLIN}} {
		if err == nil {
			err = unix.EpollCtl(w.epoll, unix.EPOLL_CTL_ADD, c.fd, &unix.EpollEvent{Events: c.events, Fd: int32(c.fd)})
		}
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("wait for an eventfd: %w", err), w.closeAll())
	}
	go w.run(f)
	return w, nil
}

func (w *watch) run(f func()) {
	defer close(w.done)
	var ev [2]unix.EpollEvent
	for {
		n, err := unix.EpollWait(w.epoll, ev[:], -1)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil {
			return
		}
		for _, e := range ev[:n] {
			if int(e.Fd) == w.stop {
				return
			}
		}
		f()
	}
}

// Close ends the calls and closes the eventfd. It must not be called by f, nor with a lock
// that f takes.
func (w *watch) Close() error {
	_, err := unix.Write(w.stop, eventOne)
	if err == nil {
		<-w.done
	}
	return errors.Join(err, w.closeAll())
}

func (w *watch) closeAll() error {
	var errs []error
	for _, fd := range []int{w.fd, w.stop, w.epoll} {
		if fd >= 0 {
			errs = append(errs, unix.Close(fd))
		}
	}
	return errors.Join(errs...)
}
