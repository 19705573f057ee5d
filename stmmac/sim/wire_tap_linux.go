package sim

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"

	"golang.org/x/sys/unix"
)

const (
	tapDevice = "/dev/net/tun"
	// tapNameMax is IFNAMSIZ without the NUL.
	tapNameMax = unix.IFNAMSIZ - 1
)

// TAPWire is a cable from a MAC to a TAP interface of the Linux kernel: what the
// kernel sends on the interface arrives at the MAC, and what the MAC transmits
// arrives at the interface. It is elastic: frames wait in the kernel until the MAC
// has room. The wire loses none of them, but the kernel itself drops what does not
// fit into the transmit queue of the interface (500 frames unless it is told
// otherwise). Frames that are shorter than 60 bytes are padded with zeros, because
// the kernel leaves that to the hardware.
//
// The kernel is told that there are no offloads, so checksums are complete and
// frames no longer than the interface's MTU and their headers.
//
// Transmit and Receive do not block or allocate, and may run on two goroutines;
// the other methods may be called by any goroutine at any time. A goroutine that
// sleeps in the runtime's poller notifies of frames; Close ends it.
type TAPWire struct {
	name   string
	file   *os.File
	conn   syscall.RawConn
	notify wireNotify

	readable atomic.Bool   // the kernel may have a frame
	drained  chan struct{} // it has none: wait for the next
	watcher  sync.WaitGroup
	ready    func(uintptr) bool
	poll     [1]unix.PollFd

	stopped, unplugged, closed atomic.Bool

	done     chan struct{}
	mu       sync.Mutex // end, which comes once
	err      error
	closing  sync.Once
	closeErr error

	// For Receive alone. A frame that fills the buffer is too long.
	buf  [maxWireFrame + 1]byte
	rn   int
	rerr error
	read func(uintptr)

	// For Transmit alone.
	out   []byte
	werr  error
	write func(uintptr)

	rxFrames, rxBytes, rxTooLong           atomic.Uint64
	txFrames, txBytes, txRefused, txBadFCS atomic.Uint64
}

// NewTAP plugs a wire into the TAP interface name, which has 1 to 15 bytes, in the
// network namespace of the calling thread. If there is none it is made, is down,
// and goes when the wire is closed; an interface that was made persistent before
// stays. With a %d in the name the kernel chooses the number, see [TAPWire.Name].
//
// The error is a [*TAPError]. It wraps os.ErrInvalid for a name that cannot be,
// os.ErrNotExist without /dev/net/tun, os.ErrPermission without CAP_NET_ADMIN
// unless the interface belongs to the user, EBUSY while another program uses it,
// and EINVAL if it is not a TAP interface with one queue.
func NewTAP(name string) (*TAPWire, error) { return newTAP(tapDevice, name) }

func newTAP(device, name string) (*TAPWire, error) {
	fail := func(op string, err error) (*TAPWire, error) { return nil, &TAPError{name, op, err} }
	if err := tapName(name); err != nil {
		return fail("check the name", err)
	}
	fd, err := unix.Open(device, unix.O_RDWR|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	switch {
	case errors.Is(err, fs.ErrNotExist), err == unix.ENXIO, err == unix.ENODEV:
		return fail("open "+device, fmt.Errorf("%w: the kernel has no TAP here; load its module tun (%w)", fs.ErrNotExist, err))
	case errors.Is(err, fs.ErrPermission):
		return fail("open "+device, fmt.Errorf("%w: run as root or as a user who may open it", err))
	case err != nil:
		return fail("open "+device, err)
	}
	name, op, err := tapAttach(fd, name)
	if err != nil {
		return fail(op, errors.Join(err, unix.Close(fd)))
	}
	w := &TAPWire{name: name, drained: make(chan struct{}, 1), done: make(chan struct{})}
	// Only now: the poller does not take a file without an interface.
	w.file = os.NewFile(uintptr(fd), device)
	if w.conn, err = w.file.SyscallConn(); err != nil {
		return fail("poll", errors.Join(err, w.file.Close()))
	}
	// Once, because a closure that is made for a frame would be an allocation.
	w.ready = w.isReady
	w.read = func(fd uintptr) { w.rn, w.rerr = unix.Read(int(fd), w.buf[:]) }
	w.write = func(fd uintptr) { _, w.werr = unix.Write(int(fd), w.out) }
	w.watcher.Go(w.watch)
	return w, nil
}

// tapName checks a name as the kernel does (dev_valid_name), to say what is wrong.
func tapName(name string) error {
	switch {
	case name == "":
		return fmt.Errorf("%w: it is empty", os.ErrInvalid)
	case len(name) > tapNameMax:
		return fmt.Errorf("%w: it has %d bytes, an interface has at most %d", os.ErrInvalid, len(name), tapNameMax)
	case name == ".", name == "..", strings.ContainsAny(name, "/: \t\n\v\f\r\x00"):
		return fmt.Errorf("%w: . and .. and names with a slash, a colon or a space are none of an interface", os.ErrInvalid)
	}
	return nil
}

// tapAttach makes fd the other end of the interface and returns its name.
func tapAttach(fd int, name string) (real, op string, err error) {
	req, err := unix.NewIfreq(name)
	if err != nil {
		return name, "check the name", err
	}
	req.SetUint16(unix.IFF_TAP | unix.IFF_NO_PI)
	err = unix.IoctlIfreq(fd, unix.TUNSETIFF, req)
	switch {
	case errors.Is(err, fs.ErrPermission):
		err = fmt.Errorf("%w: run as root (it needs CAP_NET_ADMIN), or let root make it once with: ip tuntap add %s mode tap user USER", err, name)
	case err == unix.EBUSY:
		err = fmt.Errorf("%w: another program has it open", err)
	case err == unix.EINVAL:
		err = fmt.Errorf("%w: there is an interface of this name that is not a TAP interface with one queue", err)
	}
	if err != nil {
		return name, "create or attach", err
	}
	// Who had a persistent interface before may have left offloads, with which
	// frames come without checksums, and a limit that would refuse frames.
	if err := unix.IoctlSetInt(fd, unix.TUNSETOFFLOAD, 0); err != nil {
		return name, "turn offloads off", err
	}
	if err := unix.IoctlSetPointerInt(fd, unix.TUNSETSNDBUF, math.MaxInt32); err != nil {
		return name, "set the send buffer", err
	}
	return req.Name(), "", nil
}

// Name is the name that the interface has when the wire is made.
func (w *TAPWire) Name() string { return w.name }

// Receive implements [Wire].
func (w *TAPWire) Receive() (Frame, bool) {
	if !w.readable.Load() || w.stopped.Load() || w.unplugged.Load() {
		return Frame{}, false
	}
	if w.conn.Control(w.read) != nil { // closed
		return Frame{}, false
	}
	switch n := w.rn; {
	case w.rerr == unix.EAGAIN || w.rerr == unix.EINTR:
		w.rest()
		return Frame{}, false
	case w.rerr != nil:
		w.end(w.rerr)
		return Frame{}, false
	case n == len(w.buf):
		// The watcher looks whether there is another, so that there is no loop
		// here that the kernel could keep going.
		w.rxTooLong.Add(1)
		w.rest()
		return Frame{}, false
	default:
		if n < minPadded {
			clear(w.buf[n:minPadded])
			n = minPadded
		}
		w.rxFrames.Add(1)
		w.rxBytes.Add(uint64(n))
		return Frame{Data: w.buf[:n:n]}, true
	}
}

// rest leaves it to the watcher to say when the kernel has a frame.
func (w *TAPWire) rest() {
	w.readable.Store(false)
	select {
	case w.drained <- struct{}{}:
	default:
	}
}

// Transmit implements [Wire]. It always takes the frame: the kernel handles it
// before the call returns or refuses it.
func (w *TAPWire) Transmit(f Frame) bool {
	switch {
	case w.closed.Load():
		return true
	case f.BadFCS:
		w.txBadFCS.Add(1)
		return true
	case w.unplugged.Load():
		w.txRefused.Add(1)
		return true
	}
	w.out = f.Data
	err := w.conn.Control(w.write)
	w.out = nil
	switch {
	case err != nil: // closed
	case w.werr != nil:
		w.txRefused.Add(1)
		if w.werr == unix.EBADFD {
			w.end(w.werr)
		}
	default:
		w.txFrames.Add(1)
		w.txBytes.Add(uint64(len(f.Data)))
	}
	return true
}

// Elastic implements [Wire].
func (w *TAPWire) Elastic() bool { return true }

// Notify implements [Wire]. f is called when a frame is there after a Receive that
// had none; there is always room.
func (w *TAPWire) Notify(f func()) {
	w.notify.set(f)
	if w.readable.Load() {
		w.notify.call() // the watcher may have looked before f was there
	}
}

// watch sleeps while the kernel has no frame.
func (w *TAPWire) watch() {
	for {
		if err := w.conn.Read(w.ready); err != nil {
			w.end(unix.EBADFD) // nothing is said of a wire that was closed
			return
		}
		if w.poll[0].Revents&unix.POLLERR != 0 { // a MAC that does not listen would not find out
			w.end(unix.EBADFD)
			return
		}
		w.readable.Store(true)
		w.notify.call()
		select {
		case <-w.drained:
		case <-w.done:
			return
		}
	}
}

// isReady looks whether there is something to read, an error included.
func (w *TAPWire) isReady(fd uintptr) bool {
	w.poll[0] = unix.PollFd{Fd: int32(fd), Events: unix.POLLIN}
	n, err := unix.Poll(w.poll[:], 0)
	return err == nil && n > 0
}

// end tells that no frame will ever come any more.
func (w *TAPWire) end(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	select {
	case <-w.done:
		return
	default:
	}
	if !w.closed.Load() {
		if err == unix.EBADFD {
			err = fmt.Errorf("%w: the interface is gone", err)
		}
		w.err = &TAPError{w.name, "read", err}
	}
	close(w.done)
}

// Done is closed when the interface is gone, which [TAPWire.Err] then says, or the
// wire is closed.
func (w *TAPWire) Done() <-chan struct{} { return w.done }

// Err is what ended the wire before it was closed: a [*TAPError] that wraps EBADFD
// once the interface was deleted. It is nil while there is no error.
func (w *TAPWire) Err() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.err
}

// Stop keeps frames from arriving at the MAC, for good: they stay in the kernel.
// What the MAC transmits goes on.
func (w *TAPWire) Stop() { w.stopped.Store(true) }

// SetCarrier pulls the cable out or plugs it in again: the interface has no carrier,
// nothing is read and what the MAC transmits is refused.
func (w *TAPWire) SetCarrier(up bool) error {
	value := 0
	if up {
		value = 1
	}
	w.unplugged.Store(!up)
	var failed error
	if w.conn.Control(func(fd uintptr) { failed = unix.IoctlSetPointerInt(int(fd), unix.TUNSETCARRIER, value) }) != nil {
		failed = os.ErrClosed // the only error that there is
	}
	if failed != nil {
		return &TAPError{w.name, "set the carrier", failed}
	}
	if up && w.readable.Load() {
		w.notify.call()
	}
	return nil
}

// Stats returns the counts so far.
func (w *TAPWire) Stats() TAPStats {
	return TAPStats{
		RxFrames: w.rxFrames.Load(), RxBytes: w.rxBytes.Load(), RxTooLong: w.rxTooLong.Load(),
		TxFrames: w.txFrames.Load(), TxBytes: w.txBytes.Load(), TxRefused: w.txRefused.Load(), TxBadFCS: w.txBadFCS.Load(),
	}
}

// Close implements [Wire]. When it returns, an interface that the wire made is gone.
// It does not return the error that [TAPWire.Err] tells.
func (w *TAPWire) Close() error {
	w.closing.Do(func() {
		w.closed.Store(true)
		w.end(nil)
		if err := w.file.Close(); err != nil {
			w.closeErr = &TAPError{w.name, "close", err}
		}
		w.watcher.Wait()
	})
	return w.closeErr
}
