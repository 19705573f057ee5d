package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"

	"github.com/gostmmac/gostmmac/stmmac"
)

// uioDevice reaches a MAC through Linux UIO and u-dma-buf. Its methods may be
// called by several goroutines.
type uioDevice struct {
	path    string // of the UIO device
	mapping []byte // the whole pages that the registers lie in
	regs    stmmac.Region
	vectors int
	memory  *reservedMemory

	mu     sync.Mutex
	irq    *interrupt // the last that was given out
	closed bool
}

// openUIO opens the devices that p names. Its error tells all that is missing.
func openUIO(p paths) (stmmac.Device, error) {
	d, err := newUIODevice(p)
	if err != nil {
		return nil, err
	}
	return d, nil
}

func newUIODevice(p paths) (*uioDevice, error) {
	d := &uioDevice{path: p.uio}
	memory, err := openReserved(p)
	d.memory = memory
	if err = errors.Join(d.openRegisters(p), err); err != nil {
		return nil, errors.Join(err, d.release())
	}
	return d, nil
}

// openRegisters maps map 0 of the UIO device. Linux: Documentation/driver-api/uio-howto.rst.
func (d *uioDevice) openRegisters(p paths) error {
	const missing = "give the MAC to a UIO driver (modprobe uio_pdrv_genirq; the package comment says how), or name its device with -uio"
	fail := func(err error) error { return explain("registers", p.uio, err, missing) }
	path, err := filepath.EvalSymlinks(p.uio)
	if err != nil {
		return fail(err)
	}
	dir := filepath.Join(p.sysfs, "class", "uio", filepath.Base(path), "maps", "map0")
	size, err := attribute(filepath.Join(dir, "size"))
	if err != nil {
		return fail(err)
	}
	// The registers of a MAC need not start on a page.
	offset, err := attribute(filepath.Join(dir, "offset"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fail(err)
	}
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return fail(err)
	}
	defer f.Close() // the mapping keeps the device open
	if offset >= size {
		return fail(fmt.Errorf("%s says that the registers start %d bytes into %d: %w", dir, offset, size, os.ErrInvalid))
	}
	if d.mapping, err = mapFile(f, size); err != nil {
		return fail(err)
	}
	d.regs = stmmac.MapRegion(d.mapping[offset:])
	if d.vectors, err = countVectors(f); err != nil {
		return fail(err)
	}
	return nil
}

// Region implements stmmac.Device: there is region 0, until Close.
func (d *uioDevice) Region(i int) (stmmac.Region, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	switch {
	case d.closed:
		return nil, fmt.Errorf("%s: %w", d.path, net.ErrClosed)
	case i != 0:
		return nil, fmt.Errorf("%s: registers %d: %w", d.path, i, os.ErrNotExist)
	}
	return d.regs, nil
}

// NumInterrupts implements stmmac.Device: one, or none if the kernel has no
// interrupt for the device.
func (d *uioDevice) NumInterrupts() int { return d.vectors }

// Interrupt implements stmmac.Device.
func (d *uioDevice) Interrupt(i int) (stmmac.Interrupt, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	switch {
	case d.closed:
		return nil, fmt.Errorf("%s: %w", d.path, net.ErrClosed)
	case i < 0 || i >= d.vectors:
		return nil, fmt.Errorf("%s: interrupt %d: %w", d.path, i, os.ErrNotExist)
	case d.irq != nil && !d.irq.closed.Load():
		return nil, fmt.Errorf("%s: interrupt %d is in use: %w", d.path, i, syscall.EBUSY)
	}
	// An open file of its own, so that closing it unblocks its reader and the
	// next one sees only interrupts that come after it.
	f, err := os.OpenFile(d.path, os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	irq, err := newInterrupt(f)
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	d.irq = irq
	return irq, nil
}

// MapDMA implements stmmac.Device: without an IOMMU no other memory can be
// made reachable.
func (d *uioDevice) MapDMA(mem []byte) (uint64, error) {
	return 0, fmt.Errorf("map %d bytes for %s: no IOMMU stands before the device, it reaches only the memory of %s: %w",
		len(mem), d.path, d.memory.path, errors.ErrUnsupported)
}

// UnmapDMA implements stmmac.Device.
func (d *uioDevice) UnmapDMA(iova uint64, n int) error { return d.memory.release(iova, n) }

// Coherent implements stmmac.Device: openReserved takes no other memory.
func (d *uioDevice) Coherent() bool { return true }

// AllocDMA implements stmmac.Device.
func (d *uioDevice) AllocDMA(n, align int) (mem []byte, iova uint64, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return nil, 0, fmt.Errorf("%s: %w", d.memory.path, net.ErrClosed)
	}
	return d.memory.alloc(n, align)
}

// Reset implements stmmac.Device.
func (d *uioDevice) Reset(context.Context) error {
	return fmt.Errorf("reset %s: UIO has no reset: %w", d.path, errors.ErrUnsupported)
}

// Close implements stmmac.Device. While memory is allocated a MAC still uses
// it, or somebody a buffer: Close then changes nothing and its error is
// syscall.EBUSY.
func (d *uioDevice) Close() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return nil
	}
	if n := d.memory.inUse(); n > 0 {
		return fmt.Errorf("close %s: %d bytes of %s are in use: close the MAC first and free its buffers: %w",
			d.path, n, d.memory.path, syscall.EBUSY)
	}
	d.closed = true
	return d.release()
}

// release gives back what was opened, also when that is not all.
func (d *uioDevice) release() error {
	var errs []error
	if d.irq != nil {
		errs = append(errs, d.irq.Close())
	}
	if d.mapping != nil {
		errs = append(errs, syscall.Munmap(d.mapping))
		d.mapping, d.regs = nil, nil
	}
	if d.memory != nil {
		errs = append(errs, d.memory.close())
	}
	return errors.Join(errs...)
}

// attribute reads a number from a file of sysfs.
func attribute(path string) (uint64, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return 0, err
	}
	s := strings.TrimSpace(string(b))
	v, err := strconv.ParseUint(s, 0, 64)
	if err != nil {
		return 0, fmt.Errorf("%s holds %q and not a number: %w", path, s, os.ErrInvalid)
	}
	return v, nil
}

// mapFile maps the first n bytes of f, shared and writable.
func mapFile(f *os.File, n uint64) ([]byte, error) {
	if n == 0 || n > math.MaxInt {
		return nil, fmt.Errorf("map %d bytes of it: %w", n, os.ErrInvalid)
	}
	fi, err := f.Stat()
	if err != nil {
		return nil, err
	}
	// Devices refuse what they do not have; a file faults when it is accessed.
	if fi.Mode().IsRegular() && uint64(fi.Size()) < n {
		return nil, fmt.Errorf("map %d bytes of a file of %d: %w", n, fi.Size(), os.ErrInvalid)
	}
	// Not Fd, which may end the non-blocking mode that deadlines need.
	conn, err := f.SyscallConn()
	if err != nil {
		return nil, err
	}
	var mem []byte
	e := conn.Control(func(fd uintptr) {
		mem, err = syscall.Mmap(int(fd), 0, int(n), syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_SHARED)
	})
	if err = errors.Join(e, err); err != nil {
		return nil, fmt.Errorf("map %d bytes of it: %w", n, err)
	}
	return mem, nil
}

// explain says what failed with which device, why, and what to do: missing is
// what to do if there is no such device.
func explain(what, path string, err error, missing string) error {
	// The message begins with path already.
	if e := (*fs.PathError)(nil); errors.As(err, &e) && e.Path == path {
		err = e.Err
	}
	todo := ""
	switch {
	case errors.Is(err, fs.ErrNotExist):
		todo = missing
	case errors.Is(err, fs.ErrPermission):
		todo = "run as root, or let a udev rule give the device to your group: " +
			`KERNEL=="` + filepath.Base(path) + `", GROUP="…", MODE="0660"`
	case errors.Is(err, syscall.EBUSY):
		todo = "end the program that has it"
	}
	if todo != "" {
		return fmt.Errorf("%s, %s: %w: %s", what, path, err, todo)
	}
	return fmt.Errorf("%s, %s: %w", what, path, err)
}
