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
// ctx ends or l fails; it closes l. A client that connects while another is served waits
// until that one is gone, and is not refused: a process may be gone before the kernel has
// closed its sockets, and the next one is there then. The state of the device outlives a
// client; its memory and its eventfds do not.
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
		if err := f.ServeConn(ctx, conn, dev); err != nil && ctx.Err() == nil {
			f.report(err)
		}
	}
}

// acceptPause is how long Serve waits when the process has no descriptors left.
const acceptPause = 50 * time.Millisecond

// isPassing says whether Accept may work again later.
func isPassing(err error) bool {
	return errors.Is(err, unix.EMFILE) || errors.Is(err, unix.ENFILE) || errors.Is(err, unix.ENOBUFS) ||
		errors.Is(err, unix.ENOMEM) || errors.Is(err, unix.ECONNABORTED)
}
