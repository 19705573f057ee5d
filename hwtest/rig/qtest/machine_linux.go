package qtest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gostmmac/gostmmac/mmio"
)

// Machine is a running board. Its methods may be called by several goroutines.
type Machine struct {
	cfg    Config
	conn   *conn
	qmp    *monitor
	ram    ram
	line   level
	wire   *Wire
	cmd    *exec.Cmd
	log    *tail
	closed atomic.Bool
	once   sync.Once

	ended   chan struct{} // closed when QEMU was waited for
	exit    error         // how it ended; after ended
	tended  chan struct{} // closed when the goroutine that tells of its end is done
	closing error         // the result of Close
}

// Versions of the MAC that QEMU models: SNPSVER 3.2, USERVER 1.0.
const (
	regVersion  = 0x20
	wantVersion = 0x1032
)

// Start starts QEMU and returns when the MAC's version register answers. The end of
// ctx ends the start, not the machine.
//
// An error says what QEMU wrote. It is errors.ErrUnsupported where QEMU has no such
// MAC (it came with version 11) or no qtest accelerator, and ErrConfig for a field of
// cfg that is out of range.
func Start(ctx context.Context, cfg Config) (*Machine, error) {
	if err := cfg.complete(); err != nil {
		return nil, &Error{Op: "start", Dev: cfg.dev(), Err: err}
	}
	if err := ctx.Err(); err != nil {
		return nil, &Error{Op: "start", Dev: cfg.dev(), Err: err}
	}
	m := &Machine{cfg: cfg, ended: make(chan struct{}), tended: make(chan struct{})}
	if err := m.start(); err != nil {
		return nil, &Error{Op: "start", Dev: cfg.dev(), Err: err}
	}
	hung := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		m.conn.hangUp()
		m.qmp.close() // fails only when it is closed
		close(hung)
	})
	err := m.meet()
	if !stop() {
		<-hung // or it could meet another file under the same number
		err = &Error{Op: "start", Dev: cfg.dev(), Err: ctx.Err()}
	}
	if err != nil {
		return nil, errors.Join(err, m.Close())
	}
	return m, nil
}

// meet waits for the first answer and turns interrupt messages on.
func (m *Machine) meet() error {
	v, err := m.conn.load(m.base() + regVersion)
	if err != nil {
		return m.gone("start", err)
	}
	if v != wantVersion {
		return &Error{"start", m.cfg.dev(), fmt.Errorf("the version register reads %#x instead of %#x: %w", v, wantVersion, errors.ErrUnsupported),
			"QEMU 11 or later has this MAC"}
	}
	if err := m.conn.command("irq_intercept_out " + m.cfg.Path() + " sysbus-irq"); err != nil {
		return m.gone("intercept the interrupt", err)
	}
	if err := m.qmp.meet(); err != nil {
		return m.gone("start", err)
	}
	return nil
}

// start makes the files and the process.
func (m *Machine) start() (err error) {
	var closers []io.Closer
	defer func() {
		for _, c := range closers {
			c.Close()
		}
	}()
	pair := func(kind int, name string) (ours int, theirs *os.File, err error) {
		fds, err := unix.Socketpair(unix.AF_UNIX, kind|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			return -1, nil, fmt.Errorf("socketpair: %w", err)
		}
		theirs = os.NewFile(uintptr(fds[1]), name)
		closers = append(closers, theirs)
		return fds[0], theirs, nil
	}
	control, qemuControl, err := pair(unix.SOCK_STREAM, "qtest")
	if err != nil {
		return err
	}
	owned := true // control is still to be closed here
	defer func() {
		if owned {
			err = errors.Join(err, unix.Close(control))
		}
	}()
	frames, qemuWire, err := pair(unix.SOCK_DGRAM, "wire")
	if err != nil {
		return err
	}
	if m.wire, err = newWire(m, frames); err != nil {
		return err
	}
	commands, qemuMonitor, err := pair(unix.SOCK_STREAM, "monitor")
	if err != nil {
		return errors.Join(err, m.wire.close())
	}
	if m.qmp, err = newMonitor(commands, m.cfg.Timeout); err != nil {
		return errors.Join(err, m.wire.close())
	}
	mem, err := m.memory()
	if err != nil {
		return errors.Join(err, m.wire.close(), m.qmp.close())
	}
	closers = append(closers, mem)
	out, err := m.openLog()
	if err != nil {
		return errors.Join(err, m.wire.close(), m.qmp.close(), m.ram.close())
	}
	c := exec.Command(m.cfg.Command[0], append(append([]string{}, m.cfg.Command[1:]...), m.cfg.args()...)...)
	c.Env = append(os.Environ(), m.cfg.Env...)
	c.Stdout, c.Stderr = out, out
	c.ExtraFiles = make([]*os.File, fdEnd-fdControl)
	for fd, f := range map[int]*os.File{fdControl: qemuControl, fdRAM: mem, fdWire: qemuWire, fdMonitor: qemuMonitor} {
		c.ExtraFiles[fd-fdControl] = f
	}
	// QEMU goes when this process does, also when it is killed, and not before: ^C on a
	// terminal goes to the group of processes.
	c.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
	m.cmd = c
	started := make(chan error)
	go m.run(started)
	if err := <-started; err != nil {
		return errors.Join(fmt.Errorf("%w: does the program %s exist, for this machine's architecture?", err, m.cfg.Command[0]), m.wire.close(), m.qmp.close(), m.ram.close(), m.log.Close())
	}
	owned = false
	m.conn, err = newConn(control, m.cfg.Timeout, func(n uint64, high bool) {
		if n == 0 {
			m.line.set(high)
		}
	})
	if err != nil {
		return errors.Join(err, m.kill(), m.wire.close(), m.qmp.close(), m.ram.close(), m.log.Close())
	}
	go m.tend()
	return nil
}

// run starts the process and waits for it, on one thread: the kernel sends the signal
// of Pdeathsig when the thread ends that started the process.
func (m *Machine) run(started chan<- error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	err := m.cmd.Start()
	started <- err
	if err == nil {
		m.exit = m.cmd.Wait()
		close(m.ended)
	}
}

// tend tells all who wait when QEMU does not answer any more.
func (m *Machine) tend() {
	defer close(m.tended)
	<-m.conn.dead
	err := m.gone("wait", m.conn.reason())
	m.line.end(err)
	m.wire.end(err)
}

// memory makes the RAM and maps it.
func (m *Machine) memory() (*os.File, error) {
	fd, err := unix.MemfdCreate("gostmmac-board", unix.MFD_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("memfd: %w", err)
	}
	f := os.NewFile(uintptr(fd), "ram")
	if err := f.Truncate(m.cfg.RAM); err != nil {
		return nil, errors.Join(fmt.Errorf("memfd of %d bytes: %w", m.cfg.RAM, err), f.Close())
	}
	mem, err := unix.Mmap(fd, 0, int(m.cfg.RAM), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("map %d bytes: %w", m.cfg.RAM, err), f.Close())
	}
	m.ram.mem, m.ram.unmap = mem, func() error { return unix.Munmap(mem) }
	return f, nil
}

// openLog returns what takes QEMU's output.
func (m *Machine) openLog() (io.Writer, error) {
	m.log = &tail{}
	if m.cfg.Log == "" {
		return m.log, nil
	}
	f, err := os.Create(m.cfg.Log)
	if err != nil {
		return nil, fmt.Errorf("log: %w", err)
	}
	m.log.file = f
	return m.log, nil
}

// gone makes err the error of a call that found QEMU gone.
func (m *Machine) gone(op string, err error) error {
	if m.closed.Load() {
		return &Error{Op: op, Dev: m.cfg.dev(), Err: ErrClosed}
	}
	if errors.Is(err, errors.ErrUnsupported) {
		return &Error{Op: op, Dev: m.cfg.dev(), Err: err, Remedy: m.log.remedy("")}
	}
	if errors.Is(err, io.EOF) || errors.Is(err, unix.EPIPE) || errors.Is(err, unix.ECONNRESET) {
		// The socket ends with the process; how it ended is known in a moment.
		select {
		case <-m.ended:
		case <-time.After(endTime):
		}
		if err = m.kill(); err == nil {
			err = errors.New("it ended")
		}
	}
	return &Error{op, m.cfg.dev(), fmt.Errorf("%w: %w", ErrGone, err), m.log.remedy(m.cfg.Log)}
}

// endTime is how long QEMU gets from closing its socket to its end.
const endTime = 5 * time.Second

// kill ends the process, waits for it and returns how it ended.
func (m *Machine) kill() error {
	// It fails only for a process that was waited for.
	m.cmd.Process.Kill()
	<-m.ended
	return m.exit
}

func (m *Machine) base() uint64 { return regBase + uint64(m.cfg.NIC)*regStride }

// Config is what the machine was started with, with the defaults filled in: another one
// can be started that is like it.
func (m *Machine) Config() Config {
	c := m.cfg
	c.Command, c.Env, c.Args = slices.Clone(c.Command), slices.Clone(c.Env), slices.Clone(c.Args)
	return c
}

// Pid is the process number of QEMU.
func (m *Machine) Pid() int { return m.cmd.Process.Pid }

// Device returns the MAC. Closing it closes the machine.
func (m *Machine) Device() *Device { return &Device{m} }

// Wire returns the cable of the MAC.
func (m *Machine) Wire() *Wire { return m.wire }

// SetCable pulls the cable of the MAC or plugs it in again, which its PHY notices.
func (m *Machine) SetCable(plugged bool) error {
	if err := m.qmp.run("set_link", map[string]any{"name": m.cfg.netdev(), "up": plugged}, ""); err != nil {
		return m.gone("set the cable", err)
	}
	return nil
}

// Close ends QEMU and waits for it. Registers read all ones from then on, and who
// waits for an interrupt or a frame gets ErrClosed. Memory that is allocated stays
// until it is freed. It is safe to call twice.
func (m *Machine) Close() error {
	m.once.Do(func() {
		m.closed.Store(true)
		err := m.conn.close()
		m.kill()
		<-m.tended
		m.closing = errors.Join(err, m.wire.close(), m.qmp.close(), m.ram.close(), m.log.Close())
	})
	return m.closing
}

// Device is the MAC as a device of package stmmac.
type Device struct{ m *Machine }

// Wire returns the cable of the MAC.
func (d *Device) Wire() *Wire { return d.m.wire }

// SetCable is that of the machine.
func (d *Device) SetCable(plugged bool) error { return d.m.SetCable(plugged) }

// Region returns the registers, which are region 0.
func (d *Device) Region(i int) (mmio.Region, error) {
	if i != 0 {
		return nil, &Error{Op: fmt.Sprintf("region %d", i), Dev: d.m.cfg.dev(), Err: errors.ErrUnsupported, Remedy: "the registers are region 0"}
	}
	return region{d.m}, nil
}

// NumInterrupts is 1.
func (d *Device) NumInterrupts() int { return 1 }

// Interrupt returns the vector of the MAC's one interrupt line, which is level
// triggered: it is masked when it fires, and fires again after Unmask while the line
// is high.
func (d *Device) Interrupt(i int) (mmio.Interrupt, error) {
	if i != 0 {
		return nil, &Error{Op: fmt.Sprintf("interrupt %d", i), Dev: d.m.cfg.dev(), Err: errors.ErrUnsupported, Remedy: "there is interrupt 0"}
	}
	v, err := d.m.line.open()
	if err != nil {
		return nil, err
	}
	return v, nil
}

// MapDMA is refused with errors.ErrUnsupported: the board reaches its own RAM alone,
// of which AllocDMA gives parts.
func (d *Device) MapDMA([]byte) (uint64, error) {
	return 0, &Error{"map memory", d.m.cfg.dev(), errNoMap, "use AllocDMA"}
}

// AllocDMA returns n zeroed bytes of the board's RAM, aligned to align (a power of
// two; 0 is a page), between 1 MiB and the end of the RAM.
func (d *Device) AllocDMA(n, align int) ([]byte, uint64, error) {
	mem, at, err := d.m.ram.alloc(n, align)
	if err != nil {
		return nil, 0, &Error{Op: "allocate memory", Dev: d.m.cfg.dev(), Err: err}
	}
	return mem, at, nil
}

// UnmapDMA frees what AllocDMA gave.
func (d *Device) UnmapDMA(iova uint64, n int) error {
	if err := d.m.ram.free(iova, n); err != nil {
		return &Error{Op: "free memory", Dev: d.m.cfg.dev(), Err: err}
	}
	return nil
}

// Coherent reports true: QEMU maps the same pages.
func (d *Device) Coherent() bool { return true }

// PinsDMA reports true, so that nobody locks the memory: the model reaches it by a
// mapping of its own, wherever it lies.
func (d *Device) PinsDMA() bool { return true }

// Reset resets the board, as its reset pin does: the MAC and its PHY lose all that they
// were told. The RAM stays.
func (d *Device) Reset(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return &Error{Op: "reset", Dev: d.m.cfg.dev(), Err: err}
	}
	if err := d.m.qmp.run("system_reset", nil, "RESET"); err != nil {
		return d.m.gone("reset", err)
	}
	return nil
}

// Close closes the machine.
func (d *Device) Close() error { return d.m.Close() }

// region is the registers of the MAC.
type region struct{ m *Machine }

func (r region) Len() uint32 { return regSize }

func (r region) Load32(off uint32) uint32 {
	if off >= regSize || off&3 != 0 {
		return mmio.AllOnes
	}
	v, err := r.m.conn.load(r.m.base() + uint64(off))
	if err != nil {
		return mmio.AllOnes
	}
	return v
}

func (r region) Store32(off, v uint32) {
	if off < regSize && off&3 == 0 {
		// A store to a device that is gone does nothing, as on a bus.
		_ = r.m.conn.store(r.m.base()+uint64(off), v)
	}
}

// tail keeps the end of what is written to it, and writes all of it to a file.
type tail struct {
	mu   sync.Mutex
	file *os.File
	last []byte
}

const tailBytes = 1024

// Write implements io.Writer.
func (t *tail) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.last = append(t.last, b...)
	if n := len(t.last) - tailBytes; n > 0 {
		t.last = append(t.last[:0], t.last[n:]...)
	}
	if t.file != nil {
		return t.file.Write(b)
	}
	return len(b), nil
}

// Close closes the file.
func (t *tail) Close() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.file == nil {
		return nil
	}
	f := t.file
	t.file = nil
	return f.Close()
}

// remedy is the part of an error that shows what QEMU wrote.
func (t *tail) remedy(file string) string {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := strings.TrimSpace(string(t.last))
	if s != "" {
		s = "QEMU wrote: " + s
	}
	if file != "" {
		s = strings.TrimPrefix(s+"; its log is "+file, "; ")
	}
	return s
}
