package usercheck

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gostmmac/gostmmac/hwtest/rig/qemu"
	"github.com/gostmmac/gostmmac/vfio/vfiouser"
)

// server serves the function on a socket.
type server struct {
	f    *vfiouser.Function
	dev  *device
	path string
	stop func() error
}

// serve starts one.
func serve() (*server, error) {
	f, err := function()
	if err != nil {
		return nil, err
	}
	// The name of a socket has 107 bytes at most.
	dir, err := os.MkdirTemp("", "vu")
	if err != nil {
		return nil, err
	}
	s := &server{f: f, dev: &device{widths: map[int]int{}}, path: filepath.Join(dir, "s")}
	l, err := net.Listen("unix", s.path)
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	ctx, cancel := context.WithCancel(context.Background())
	end := make(chan error, 1)
	go func() { end <- f.Serve(ctx, l, s.dev) }()
	s.stop = func() error {
		cancel()
		err := <-end
		if errors.Is(err, context.Canceled) {
			err = nil
		}
		return errors.Join(err, os.RemoveAll(dir))
	}
	return s, nil
}

// machine is a q35 with the function in slot 4 of its root bus.
type machine struct {
	*server
	board
	qemu *qemu.Process
	conn *qemu.Conn

	mu    sync.Mutex
	lines map[uint64][]bool // what the inputs of the I/O APIC did, since they were taken last
}

const (
	ramSize = 64 << 20
	slot    = 4
	// Where BARs are put: behind the RAM and before what q35 has at the end of 32 bits.
	bar0, bar2 = 0xe000_0000, 0xe100_0000
	// timeout is a guard against a hang.
	timeout = time.Minute
)

// board says what machine it is.
type board struct {
	shared bool // the server can map the RAM
	iommu  bool // there is one
}

// start starts QEMU.
func (s *server) start(c Config, b board) (m *machine, err error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("socketpair: %w", err)
	}
	control := os.NewFile(uintptr(fds[1]), "qtest")
	defer control.Close()
	memory := fmt.Sprintf("memory-backend-ram,id=m,size=%d", ramSize)
	if b.shared {
		memory = fmt.Sprintf("memory-backend-memfd,id=m,size=%d,share=on", ramSize)
	}
	args := []string{
		"-nodefaults", "-no-user-config", "-display", "none", "-serial", "null", "-object", memory, "-machine", "q35,memory-backend=m", "-m", fmt.Sprintf("size=%d", ramSize>>20),
		"-chardev", "socket,id=qt,fd=3", "-qtest", "chardev:qt", "-qtest-log", "none", "-accel", "qtest",
	}
	if b.iommu {
		args = append(args, "-device", "intel-iommu,caching-mode=on,aw-bits=39")
	}
	args = append(args, "-device", fmt.Sprintf(`{"driver":"vfio-user-pci","addr":"%d","x-msg-timeout":%d,"socket":{"type":"unix","path":%q}}`, slot, timeout.Milliseconds(), s.path))
	m = &machine{server: s, board: b, lines: map[uint64][]bool{}}
	if m.qemu, err = qemu.Start(c.Command, c.Env, args, []*os.File{control}, c.Log); err != nil {
		return nil, errors.Join(err, unix.Close(fds[0]))
	}
	if m.conn, err = qemu.NewConn(fds[0], timeout, m.irq); err != nil {
		return nil, errors.Join(err, m.qemu.Close())
	}
	// The first answer comes when the machine is complete.
	if err := m.conn.Command("irq_intercept_in ioapic"); err != nil {
		return nil, errors.Join(m.why(err), m.end())
	}
	return m, nil
}

func (m *machine) irq(n uint64, high bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.lines[n] = append(m.lines[n], high)
}

// why explains an error of the qtest socket.
func (m *machine) why(err error) error {
	if err == nil || m.conn.Reason() == nil {
		return err
	}
	remedy, reason := m.qemu.Gone(err)
	return fmt.Errorf("%w: %s", reason, remedy)
}

// end ends QEMU.
func (m *machine) end() error { return errors.Join(m.conn.Close(), m.qemu.Close()) }

// get sends a request that has a value; do one that has none. The first error is kept by
// the script.
func (s *script) get(format string, args ...any) uint64 {
	if s.err != nil {
		return 0
	}
	v, err := s.m.conn.Value(fmt.Sprintf(format, args...))
	s.err = s.m.why(err)
	return v
}

func (s *script) do(format string, args ...any) {
	if s.err == nil {
		s.err = s.m.why(s.m.conn.Command(fmt.Sprintf(format, args...)))
	}
}

// script is a sequence of accesses and comparisons, which ends with the first error.
type script struct {
	m   *machine
	ctx context.Context
	err error
}

// equal compares.
func (s *script) equal(what string, got, want uint64) {
	if s.err == nil && got != want {
		s.err = fmt.Errorf("%s is %#x instead of %#x", what, got, want)
	}
}

// check keeps an error.
func (s *script) check(what string, err error) {
	if s.err == nil && err != nil {
		s.err = fmt.Errorf("%s: %w", what, err)
	}
}

// until asks again and again until f says yes.
func (s *script) until(what string, f func() bool) {
	for s.err == nil && !f() {
		select {
		case <-s.ctx.Done():
			s.err = fmt.Errorf("%s does not come: %w", what, s.ctx.Err())
		case <-time.After(time.Millisecond):
		}
	}
}

// config reads and setConfig writes n bytes of configuration space, by ports 0xcf8 and
// 0xcfc (PCI Local Bus 3.0, 3.2.2.3.2).
func (s *script) config(off, n int) uint64 {
	s.address(off)
	return s.get("in%c %#x", port(n), 0xcfc+off&3)
}

func (s *script) setConfig(off, n int, v uint64) {
	s.address(off)
	s.do("out%c %#x %#x", port(n), 0xcfc+off&3, v)
}

func (s *script) address(off int) { s.do("outl 0xcf8 %#x", uint32(1<<31|slot<<11)|uint32(off)&^3) }

// port is the suffix of an access of n bytes.
func port(n int) byte { return "?bw?l???q"[n] }

// load reads and store writes n bytes of the machine's address space.
func (s *script) load(addr uint64, n int) uint64 { return s.get("read%c %#x", port(n), addr) }

func (s *script) store(addr uint64, n int, v uint64) { s.do("write%c %#x %#x", port(n), addr, v) }

// capability finds one.
func (s *script) capability(id uint64) int {
	at := s.config(0x34, 1)
	for n := 0; s.err == nil && at != 0 && n < 48; n++ {
		if s.config(int(at), 1) == id {
			return int(at)
		}
		at = s.config(int(at)+1, 1)
	}
	s.check("capabilities", fmt.Errorf("none is %#x", id))
	return 0x40
}

// enable puts the BARs where they are wanted, and turns memory and bus mastering on.
func (s *script) enable() {
	s.setConfig(0x10, 4, bar0)
	s.setConfig(0x18, 4, bar2)
	s.setConfig(0x1c, 4, 0)
	s.setConfig(4, 2, 6)
}

// line takes what the inputs of the I/O APIC did: those of PIRQs are 16 to 23, and the
// pin of the function goes to one of them.
func (s *script) line() []bool {
	s.load(bar0, 4) // what happened is told before the answer
	s.m.mu.Lock()
	defer s.m.mu.Unlock()
	var all []bool
	for n, l := range s.m.lines {
		if n >= 16 && n < 24 {
			all = append(all, l...)
		}
	}
	s.m.lines = map[uint64][]bool{}
	return all
}
