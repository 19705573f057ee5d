package qemu

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// Conn is the qtest socket: one request at a time, each answered by a line, with
// lines about interrupts in between. The file blocks and is read by the goroutine
// that asks, which halves the time of a round trip against a goroutine that
// reads; a second one looks for lines only while nobody asks.
type Conn struct {
	irq func(n uint64, high bool) // called with mu held

	mu    sync.Mutex // the socket and what follows
	fd    int
	in    lines
	out   []byte
	err   error // why there are no answers any more
	armed bool  // the watcher hears of the socket

	hung    atomic.Bool // this end hung up
	epoll   int
	watched chan struct{} // closed when the watcher ended
	dead    chan struct{} // closed with the first error
}

// NewConn takes the socket fd, which it closes. irq is called for each change of an
// interrupt line, one call at a time, in order.
func NewConn(fd int, timeout time.Duration, irq func(n uint64, high bool)) (*Conn, error) {
	c := &Conn{irq: irq, fd: fd, watched: make(chan struct{}), dead: make(chan struct{})}
	tv := unix.NsecToTimeval(int64(timeout))
	err := unix.SetNonblock(fd, false)
	if err == nil {
		err = errors.Join(unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &tv),
			unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_SNDTIMEO, &tv))
	}
	if err == nil {
		c.epoll, err = unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	}
	if err != nil {
		return nil, errors.Join(err, unix.Close(fd))
	}
	ev := unix.EpollEvent{Events: unix.EPOLLIN | unix.EPOLLONESHOT}
	if err := unix.EpollCtl(c.epoll, unix.EPOLL_CTL_ADD, fd, &ev); err != nil {
		return nil, errors.Join(err, unix.Close(c.epoll), unix.Close(fd))
	}
	c.armed = true
	go c.watch()
	return c, nil
}

// watch reads what comes while nobody asks. It is told of one event and then no
// more until it is armed again, and a request disarms it, so that it does not
// wake for answers. The end of the socket wakes it always.
func (c *Conn) watch() {
	defer close(c.watched)
	var ev [1]unix.EpollEvent
	for {
		n, err := unix.EpollWait(c.epoll, ev[:], -1)
		if errors.Is(err, unix.EINTR) || err == nil && n == 0 {
			continue
		}
		c.mu.Lock()
		c.armed = false
		if err != nil {
			c.fail(err)
		}
		c.drain()
		c.arm(true)
		ended := c.err != nil
		c.mu.Unlock()
		if ended {
			return
		}
	}
}

// arm turns the watcher on or off. mu is held.
func (c *Conn) arm(on bool) {
	if c.err != nil || c.armed == on {
		return
	}
	ev := unix.EpollEvent{Events: unix.EPOLLONESHOT}
	if on {
		ev.Events |= unix.EPOLLIN
	}
	if err := unix.EpollCtl(c.epoll, unix.EPOLL_CTL_MOD, c.fd, &ev); err != nil {
		c.fail(err)
		return
	}
	c.armed = on
}

// drain handles the lines that are there, without waiting. mu is held.
func (c *Conn) drain() {
	for c.err == nil {
		if b := c.in.next(); b != nil {
			l, err := parse(b)
			if err == nil && (l.kind == answer || l.kind == failed) {
				err = fmt.Errorf("%w: %q, and nothing was asked", ErrProtocol, b)
			}
			if err != nil {
				c.fail(err)
				return
			}
			c.irq(l.value, l.kind == raised)
			continue
		}
		if !c.read(unix.MSG_DONTWAIT) {
			return
		}
	}
}

// read reads once and says whether there is more to look at. mu is held.
func (c *Conn) read(flags int) bool {
	room := c.in.room()
	if room == nil {
		c.fail(fmt.Errorf("%w: a line of more than %d bytes", ErrProtocol, maxLine))
		return false
	}
	for {
		n, _, err := unix.Recvfrom(c.fd, room, flags)
		switch {
		case errors.Is(err, unix.EINTR):
			continue
		case errors.Is(err, unix.EAGAIN) && flags&unix.MSG_DONTWAIT != 0:
			return false
		case errors.Is(err, unix.EAGAIN):
			c.fail(fmt.Errorf("%w: no answer in time", os.ErrDeadlineExceeded))
			return false
		case err != nil:
			c.fail(err)
			return false
		case n == 0:
			if c.hung.Load() {
				c.fail(ErrClosed)
			} else {
				c.fail(io.EOF)
			}
			return false
		}
		c.in.grow(n)
		return true
	}
}

// fail ends the connection for the reason err. mu is held.
func (c *Conn) fail(err error) {
	if c.err == nil {
		c.err = err
		// The watcher, and QEMU, hear of it.
		unix.Shutdown(c.fd, unix.SHUT_RDWR)
		close(c.dead)
	}
}

// ask sends the request in c.out and returns its answer. mu is held.
func (c *Conn) ask() (line, error) {
	if c.err != nil {
		return line{}, c.err
	}
	c.arm(false)
	defer c.arm(true)
	for b := c.out; len(b) > 0 && c.err == nil; {
		// MSG_NOSIGNAL: a QEMU that is gone is an error, not a signal.
		n, err := unix.SendmsgN(c.fd, b, nil, nil, unix.MSG_NOSIGNAL)
		switch {
		case errors.Is(err, unix.EINTR):
		case errors.Is(err, unix.EAGAIN):
			c.fail(fmt.Errorf("%w: a request was not taken in time", os.ErrDeadlineExceeded))
		case err != nil:
			c.fail(err)
		default:
			b = b[n:]
		}
	}
	for c.err == nil {
		b := c.in.next()
		if b == nil {
			c.read(0)
			continue
		}
		l, err := parse(b)
		switch {
		case err != nil:
			c.fail(err)
		case l.kind == raised || l.kind == lowered:
			c.irq(l.value, l.kind == raised)
		default:
			return l, nil
		}
	}
	return line{}, c.err
}

// Load32 reads the 32-bit word at addr of the board's address space.
//
// The answer was written by QEMU behind the model's access, and the kernel's lock of
// the socket orders it before all that this process does next.
func (c *Conn) Load32(addr uint64) (uint32, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.out = append(c.out[:0], "readl 0x"...)
	c.out = append(strconv.AppendUint(c.out, addr, 16), '\n')
	l, err := c.ask()
	if err != nil {
		return 0, err
	}
	if l.kind != answer || !l.valid {
		err := fmt.Errorf("%w: readl answered without a value (%s)", ErrProtocol, l.text)
		c.fail(err)
		return 0, err
	}
	return uint32(l.value), nil
}

// Store32 writes the 32-bit word at addr. What this process stored to memory before is
// visible to QEMU when it has the request: the kernel's lock of the socket orders
// them.
func (c *Conn) Store32(addr uint64, v uint32) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.out = append(c.out[:0], "writel 0x"...)
	c.out = append(strconv.AppendUint(c.out, addr, 16), " 0x"...)
	c.out = append(strconv.AppendUint(c.out, uint64(v), 16), '\n')
	l, err := c.ask()
	if err == nil && l.kind != answer {
		err = fmt.Errorf("%w: writel answered %q", ErrProtocol, l.text)
		c.fail(err)
	}
	return err
}

// Command sends a request that has no value to return. Its error is
// errors.ErrUnsupported when QEMU refuses it.
func (c *Conn) Command(request string) error {
	_, err := c.answer(request)
	return err
}

// Value sends a request that returns a value.
func (c *Conn) Value(request string) (uint64, error) {
	l, err := c.answer(request)
	if err == nil && !l.valid {
		err = fmt.Errorf("%w: %s answered without a value", ErrProtocol, request)
	}
	return l.value, err
}

func (c *Conn) answer(request string) (line, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.out = append(append(c.out[:0], request...), '\n')
	l, err := c.ask()
	if err == nil && l.kind != answer {
		err = fmt.Errorf("%s: %s: %w", request, l.text, errors.ErrUnsupported)
	}
	return l, err
}

// Dead is closed when there are no answers any more.
func (c *Conn) Dead() <-chan struct{} { return c.dead }

// Reason is why the connection ended, or nil.
func (c *Conn) Reason() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err
}

// HangUp ends the connection without waiting for a request that is under way, which
// fails.
func (c *Conn) HangUp() error {
	c.hung.Store(true)
	err := unix.Shutdown(c.fd, unix.SHUT_RDWR)
	if errors.Is(err, unix.ENOTCONN) { // the other end was closed before
		return nil
	}
	return err
}

// Close ends the connection for the reason ErrClosed and frees its files.
func (c *Conn) Close() error {
	err := c.HangUp()
	c.mu.Lock()
	c.fail(ErrClosed)
	c.mu.Unlock()
	<-c.watched
	return errors.Join(err, unix.Close(c.epoll), unix.Close(c.fd))
}
