package vfiouser

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"golang.org/x/sys/unix"
)

// Serve accepts clients on l, of Unix sockets, and serves them one after the other until
// ctx ends or l fails; it closes l. A client that comes while another is connected is hung
// up on, which Config.Report is told. The state of the device outlives a client; its
// memory and its eventfds do not.
//
// The result is ctx.Err() when ctx has ended, or the error of l. Every call of dev has
// returned then.
func (f *Function) Serve(ctx context.Context, l net.Listener, dev Device) error {
	stop := context.AfterFunc(ctx, func() { l.Close() })
	defer func() {
		if stop() {
			l.Close()
		}
	}()
	serving, cancel := context.WithCancel(ctx)
	var current *served
	defer func() {
		cancel()
		current.wait()
	}()
	for {
		c, err := l.Accept()
		if ctx.Err() != nil {
			if err == nil {
				c.Close()
			}
			return ctx.Err()
		}
		if isPassing(err) {
			f.report(f.fail("accept", err))
			select {
			case <-ctx.Done():
			case <-time.After(acceptPause):
			}
			continue
		}
		if err != nil {
			return f.fail("accept", err)
		}
		conn, ok := c.(*net.UnixConn)
		if !ok {
			c.Close()
			return &Error{"accept", f.cfg.Name, fmt.Errorf("%w: a connection over %s", errors.ErrUnsupported, c.LocalAddr().Network()), "listen on a Unix socket"}
		}
		if current != nil && !current.over() {
			c.Close()
			f.report(&Error{"accept", f.cfg.Name, ErrBusy, "a function has one client at a time"})
			continue
		}
		current.wait()
		current = &served{conn, make(chan struct{})}
		go func(s *served) {
			defer close(s.done)
			f.reportEnd(f.ServeConn(serving, conn, dev))
		}(current)
	}
}

// reportEnd reports an error, if there is one that is not the end of the context.
func (f *Function) reportEnd(err error) {
	if err != nil && !errors.Is(err, context.Canceled) && !errors.Is(err, context.DeadlineExceeded) {
		f.report(err)
	}
}

// acceptPause is how long Serve waits when the process has no descriptors left.
const acceptPause = 50 * time.Millisecond

// isPassing says whether Accept may work again later.
func isPassing(err error) bool {
	return errors.Is(err, unix.EMFILE) || errors.Is(err, unix.ENFILE) || errors.Is(err, unix.ENOBUFS) ||
		errors.Is(err, unix.ENOMEM) || errors.Is(err, unix.ECONNABORTED)
}

// served is a client that is being served.
type served struct {
	conn *net.UnixConn
	done chan struct{}
}

// wait waits for the end.
func (s *served) wait() {
	if s != nil {
		<-s.done
	}
}

// over says whether the client has hung up: then what it sent last may still be served.
// Whoever connects after it hung up is not refused, however slow the server is.
func (s *served) over() bool {
	select {
	case <-s.done:
		return true
	default:
	}
	raw, err := s.conn.SyscallConn()
	if err != nil {
		return true
	}
	gone := true
	// An error says that the connection was closed here.
	_ = raw.Control(func(fd uintptr) {
		p := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLRDHUP}}
		n, err := unix.Poll(p, 0)
		gone = err != nil || n > 0 && p[0].Revents&(unix.POLLRDHUP|unix.POLLHUP|unix.POLLERR|unix.POLLNVAL) != 0
	})
	return gone
}
