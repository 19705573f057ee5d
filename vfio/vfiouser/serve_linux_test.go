package vfiouser_test

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/gostmmac/gostmmac/vfio/vfiouser"
)

// descriptors counts the open ones of the process.
func descriptors(t testing.TB) int {
	t.Helper()
	all, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(all)
}

// listen serves on a socket until the test ends.
func listen(t *testing.T, f *vfiouser.Function, dev vfiouser.Device) (path string, stop func() error) {
	t.Helper()
	// The name of a socket is short, and that of a test's folder need not be.
	dir, err := os.MkdirTemp("", "vu")
	if err != nil {
		t.Fatal(err)
	}
	path = filepath.Join(dir, "s")
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	end := make(chan error, 1)
	go func() { end <- f.Serve(ctx, l, dev) }()
	stop = sync.OnceValue(func() error {
		cancel()
		return <-end
	})
	t.Cleanup(func() {
		if err := stop(); !errors.Is(err, context.Canceled) {
			t.Errorf("Serve: %v", err)
		}
		os.RemoveAll(dir)
	})
	return path, stop
}

func dial(t *testing.T, path string) *client {
	t.Helper()
	c, err := net.Dial("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return &client{TB: t, conn: c.(*net.UnixConn)}
}

func (c *client) negotiate() *client {
	c.Helper()
	c.want(version, body(uint16(0), uint16(0), qemuCaps))
	return c
}

// TestReconnect: the device outlives its clients, and what these gave does not.
func TestReconnect(t *testing.T) {
	f, dev := newFunction(t, full())
	path, _ := listen(t, f, dev)
	fd, _ := memfd(t, page, true)
	for i := range 5 {
		c := dial(t, path).negotiate()
		if got := c.read32(0, 0); got != uint32(i) {
			t.Errorf("client %d reads %d", i, got)
		}
		c.write32(0, 0, uint32(i)+1)
		c.master()
		if f.Window(0, 1) != nil {
			t.Errorf("client %d starts with memory", i)
		}
		if errno := c.dmaMap(fd, 0, 0, page, rw); errno != 0 {
			t.Errorf("client %d: %v", i, errno)
		}
		if f.Window(0, 1) == nil {
			t.Errorf("client %d has no window", i)
		}
		if errno := c.irqs(intx, dataEventfd|actionTrigger, 0, 1, nil, c.eventfd()); errno != 0 {
			t.Errorf("client %d: %v", i, errno)
		}
		// The next one connects at once, however slow the server is to see this.
		c.conn.Close()
	}
}

// TestTwoClients: a second one waits until the first is gone; two functions serve one each
// at the same time.
func TestTwoClients(t *testing.T) {
	f, dev := newFunction(t, full())
	path, stop := listen(t, f, dev)
	first := dial(t, path).negotiate()
	second := dial(t, path)
	waiting := second.send(version, 0, body(uint16(0), uint16(0), qemuCaps))
	gone := dial(t, path) // one that does not wait so long
	gone.conn.Close()
	third := dial(t, path)
	ours, theirs := pair(t)
	defer ours.Close()
	if err := f.ServeConn(t.Context(), theirs, dev); !errors.Is(err, vfiouser.ErrBusy) {
		t.Error(err)
	}
	first.write32(0, 0, 1)

	other, otherDev := newFunction(t, full())
	otherPath, _ := listen(t, other, otherDev)
	apart := dial(t, otherPath).negotiate()
	apart.write32(0, 0, 3)
	if a, b := first.read32(0, 0), apart.read32(0, 0); a != 1 || b != 3 {
		t.Errorf("%d and %d", a, b)
	}
	first.conn.Close()
	if r := second.recv(); r.id != waiting || r.flags != isReply {
		t.Errorf("%+v", r)
	}
	second.write32(0, 0, 2)
	second.conn.Close()
	if third.negotiate(); third.read32(0, 0) != 2 {
		t.Error("the third client reads something else")
	}
	if err := stop(); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if _, err := third.read(); err == nil {
		t.Error("a client is served after the end")
	}
	apart.write32(0, 0, 4)
}

// TestReport: Serve goes on after a client that breaks the protocol, and tells of it.
func TestReport(t *testing.T) {
	reports := make(chan error, 1)
	cfg := full()
	cfg.Report = func(err error) { reports <- err }
	f, dev := newFunction(t, cfg)
	path, _ := listen(t, f, dev)
	dial(t, path).negotiate().sendRaw(body(uint16(1), uint16(1), 1, 0, 0))
	if err := <-reports; !errors.Is(err, vfiouser.ErrMessage) {
		t.Error(err)
	}
	dial(t, path).negotiate()
}

// TestServeEnds: with its context, whatever is going on, and with its listener.
func TestServeEnds(t *testing.T) {
	f, dev := newFunction(t, full())
	for name, busy := range map[string]func(c *client){
		"nothing sent":       func(*client) {},
		"half a header":      func(c *client) { c.sendRaw([]byte{1, 0, 1}) },
		"half a message":     func(c *client) { c.sendRaw(body(uint16(1), uint16(version), 100, 0, 0, 7)) },
		"negotiated":         func(c *client) { c.negotiate() },
		"answers not read":   func(c *client) { c.negotiate(); flood(c) },
		"in a handler's DMA": func(c *client) { c.negotiate(); c.master(); c.send(regionRead, 0, body(uint64(0), 1, 4)); c.recv() },
	} {
		dev.mu.Lock()
		dev.read = func(bar int, _ uint64, p []byte) {
			if bar == 1 {
				_ = f.Read(0x100, p)
			}
		}
		dev.mu.Unlock()
		ctx, cancel := context.WithCancel(context.Background())
		c := connect(t, ctx, f, dev)
		busy(c)
		cancel()
		if err := <-c.end; !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v", name, err)
		}
		if err := f.Read(0, make([]byte, 1)); !errors.Is(err, vfiouser.ErrNoClient) {
			t.Errorf("%s: %v", name, err)
		}
	}
	l, err := net.Listen("unix", filepath.Join(t.TempDir(), "s"))
	if err != nil {
		t.Skip(err)
	}
	l.Close()
	var e *vfiouser.Error
	if err := f.Serve(context.Background(), l, dev); !errors.Is(err, net.ErrClosed) || !errors.As(err, &e) {
		t.Error(err)
	}
	tcp, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Skip(err)
	}
	end := make(chan error)
	go func() { end <- f.Serve(context.Background(), tcp, dev) }()
	if c, err := net.Dial("tcp", tcp.Addr().String()); err == nil {
		defer c.Close()
	}
	if err := <-end; !errors.Is(err, errors.ErrUnsupported) {
		t.Error(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if l, err = net.Listen("unix", filepath.Join(t.TempDir(), "s")); err != nil {
		t.Skip(err)
	}
	if err := f.Serve(ctx, l, dev); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// flood sends requests with long answers, which it does not read, until the server reads
// no more.
func flood(c *client) {
	raw, err := c.conn.SyscallConn()
	if err != nil {
		c.Fatal(err)
	}
	m := body(uint16(1), uint16(regionRead), 32, 0, 0, uint64(0), 0, 0x1_0000)
	full := 0
	for full < 1000 {
		err := raw.Control(func(fd uintptr) {
			if _, err := unix.SendmsgN(int(fd), m, nil, nil, unix.MSG_DONTWAIT); err != nil {
				full++
			}
		})
		if err != nil {
			c.Fatal(err)
		}
	}
}

// TestDescriptors: whatever a client sends, and however it goes, the server keeps none.
func TestDescriptors(t *testing.T) {
	f, dev := newFunction(t, full())
	fd, _ := memfd(t, memory, true)
	cut, _ := memfd(t, memory, false)
	var events []int
	for range 20 {
		e, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
		if err != nil {
			t.Fatal(err)
		}
		defer unix.Close(e)
		events = append(events, e)
	}
	round := func() {
		c := start(t, f, dev)
		c.master()
		for i := range uint64(8) {
			c.dmaMap(fd, i*page, i*page, page, rw)
			c.dmaMap(cut, i*page, 1<<30+i*page, page, rw)
			c.dmaMap(fd, 0, 0, page, rw) // it is mapped
		}
		_ = f.Window(0, 16)
		c.call(dmaMap, body(32, rw, uint64(0), uint64(1<<40), uint64(page)), fd, fd, fd)
		c.call(dmaMap, body(3), fd)
		c.call(regionRead, body(uint64(0), 0, 4), fd, fd)
		c.call(99, nil, events...)
		c.irqs(errIRQ, dataEventfd|actionTrigger, 0, 1, nil, events[0])
		c.irqs(msix, dataEventfd|actionTrigger, 0, 16, nil, events[:16]...)
		c.irqs(msix, dataEventfd|actionTrigger, 0, 16, nil, events[4:]...) // replaces them
		c.irqs(msix, dataEventfd|actionTrigger, 60, 16, nil, events[:16]...)
		c.irqs(msix, dataEventfd|actionTrigger, 0, 20, nil, events...)
		c.irqs(intx, dataEventfd|actionTrigger, 0, 1, nil, events[0]) // MSI-X is in use
		c.irqs(intx, dataEventfd|actionUnmask, 0, 1, nil, events[0])
		c.irqs(intx, dataEventfd|actionUnmask, 0, 1, nil, events[1])
		c.irqs(msix, dataNone|actionMask, 0, 1, nil, events[0])
		c.sendRaw(body(uint16(1), uint16(getInfo), 32, isReply, 0), events[:3]...) // the end
		c.hangUp()

		c = start(t, f, dev)
		c.sendRaw(body(uint16(1), uint16(getInfo), 8, 0, 0), events[:3]...)
		c.hangUp()
		c = start(t, f, dev)
		c.sendRaw([]byte{1}, events[:3]...) // half a message
		c.hangUp()
		c = start(t, f, dev)
		for i := range 100 { // more than the queue takes, and the client goes
			c.sendRaw(body(uint16(i), uint16(setIRQs), 16+20, 0, 0, 20, dataEventfd|actionTrigger, msix, 0, 16), events[:16]...)
		}
		c.hangUp()
	}
	round()
	before := descriptors(t)
	for range 20 {
		round()
	}
	if after := descriptors(t); after > before {
		t.Errorf("%d descriptors are open instead of %d", after, before)
	}
	maps, err := os.ReadFile("/proc/self/maps")
	if err != nil {
		t.Fatal(err)
	}
	// The test has mapped each of the two once itself.
	if n := countLines(maps, "vfiouser-test"); n != 2 {
		t.Errorf("%d mappings are left instead of the 2 of the test", n)
	}
}

// TestManyDescriptors: in parts of a message, and more than the kernel passes.
func TestManyDescriptors(t *testing.T) {
	f, dev := newFunction(t, full())
	c := start(t, f, dev)
	fd := c.eventfd()
	many := make([]int, 253)
	for i := range many {
		many[i] = fd
	}
	before := descriptors(t)
	if errno := c.irqs(msix, dataEventfd|actionTrigger, 0, 17, nil, many[:17]...); errno != unix.EINVAL {
		t.Error(errno)
	}
	if errno := c.irqs(msix, dataEventfd|actionTrigger, 0, 70, nil, many...); errno != unix.EINVAL {
		t.Error(errno)
	}
	m := body(uint16(5), uint16(setIRQs), 36, 0, 0, 20, dataEventfd|actionTrigger, msix, 0, 16)
	for i := 0; i < len(m); i += 4 { // one descriptor with every four bytes: 9 in all
		c.sendRaw(m[i:i+4], fd)
	}
	if r := c.recv(); unix.Errno(r.errno) != unix.EINVAL {
		t.Errorf("%+v", r)
	}
	if after := descriptors(t); after != before {
		t.Errorf("%d descriptors are open instead of %d", after, before)
	}
	m = body(uint16(5), uint16(setIRQs), 36, 0, 0, 20, dataEventfd|actionTrigger, msix, 0, 9)
	for i := 0; i < len(m); i += 4 {
		c.sendRaw(m[i:i+4], fd)
	}
	if r := c.recv(); r.flags&isError != 0 {
		t.Errorf("%+v", r)
	}
	f.SignalMSIX(8)
	c.told("the last of nine", fd, 1)
}
