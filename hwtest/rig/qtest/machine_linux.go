package qtest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"sync"
	"sync/atomic"

	"golang.org/x/sys/unix"

	"github.com/gostmmac/gostmmac/hwtest/rig/qemu"
	"github.com/gostmmac/gostmmac/mmio"
)

// Machine is a running board. Its methods may be called by several goroutines.
type Machine struct {
	cfg    Config
	conn   *qemu.Conn
	qmp    *qemu.Monitor
	ram    ram
	line   level
	wire   *Wire
	qemu   *qemu.Process
	closed atomic.Bool
	once   sync.Once

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
	m := &Machine{cfg: cfg, tended: make(chan struct{})}
	if err := m.start(); err != nil {
		return nil, &Error{Op: "start", Dev: cfg.dev(), Err: err}
	}
	hung := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		m.conn.HangUp()
		m.qmp.Close() // fails only when it is closed
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
	v, err := m.conn.Load32(m.base() + regVersion)
	if err != nil {
		return m.gone("start", err)
	}
	if v != wantVersion {
		return &Error{"start", m.cfg.dev(), fmt.Errorf("the version register reads %#x instead of %#x: %w", v, wantVersion, errors.ErrUnsupported),
			"QEMU 11 or later has this MAC"}
	}
	if err := m.conn.Command("irq_intercept_out " + m.cfg.Path() + " sysbus-irq"); err != nil {
		return m.gone("intercept the interrupt", err)
	}
	if err := m.qmp.Meet(); err != nil {
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
	if m.qmp, err = qemu.NewMonitor(commands, m.cfg.Timeout); err != nil {
		return errors.Join(err, m.wire.close())
	}
	mem, err := m.memory()
	if err != nil {
		return errors.Join(err, m.wire.close(), m.qmp.Close())
	}
	closers = append(closers, mem)
	files := make([]*os.File, fdEnd-fdControl)
	for fd, f := range map[int]*os.File{fdControl: qemuControl, fdRAM: mem, fdWire: qemuWire, fdMonitor: qemuMonitor} {
		files[fd-fdControl] = f
	}
	if m.qemu, err = qemu.Start(m.cfg.Command, m.cfg.Env, m.cfg.args(), files, m.cfg.Log); err != nil {
		return errors.Join(err, m.wire.close(), m.qmp.Close(), m.ram.close())
	}
	owned = false
	m.conn, err = qemu.NewConn(control, m.cfg.Timeout, func(n uint64, high bool) {
		if n == 0 {
			m.line.set(high)
		}
	})
	if err != nil {
		return errors.Join(err, m.qemu.Close(), m.wire.close(), m.qmp.Close(), m.ram.close())
	}
	go m.tend()
	return nil
}

// tend tells all who wait when QEMU does not answer any more.
func (m *Machine) tend() {
	defer close(m.tended)
	<-m.conn.Dead()
	err := m.gone("wait", m.conn.Reason())
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

// gone makes err the error of a call that found QEMU gone.
func (m *Machine) gone(op string, err error) error {
	if m.closed.Load() {
		return &Error{Op: op, Dev: m.cfg.dev(), Err: ErrClosed}
	}
	if errors.Is(err, errors.ErrUnsupported) {
		return &Error{Op: op, Dev: m.cfg.dev(), Err: err, Remedy: m.qemu.Wrote()}
	}
	remedy, reason := m.qemu.Gone(err)
	return &Error{op, m.cfg.dev(), reason, remedy}
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
func (m *Machine) Pid() int { return m.qemu.Pid() }

// Device returns the MAC. Closing it closes the machine.
func (m *Machine) Device() *Device { return &Device{m} }

// Wire returns the cable of the MAC.
func (m *Machine) Wire() *Wire { return m.wire }

// SetCable pulls the cable of the MAC or plugs it in again, which its PHY notices.
func (m *Machine) SetCable(plugged bool) error {
	if err := m.qmp.Run("set_link", map[string]any{"name": m.cfg.netdev(), "up": plugged}, ""); err != nil {
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
		err := m.conn.Close()
		err = errors.Join(err, m.qemu.Close())
		<-m.tended
		m.closing = errors.Join(err, m.wire.close(), m.qmp.Close(), m.ram.close())
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
	if err := d.m.qmp.Run("system_reset", nil, "RESET"); err != nil {
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
	v, err := r.m.conn.Load32(r.m.base() + uint64(off))
	if err != nil {
		return mmio.AllOnes
	}
	return v
}

func (r region) Store32(off, v uint32) {
	if off < regSize && off&3 == 0 {
		// A store to a device that is gone does nothing, as on a bus.
		_ = r.m.conn.Store32(r.m.base()+uint64(off), v)
	}
}
