package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"syscall"
)

// reservedMemory is the buffer of a u-dma-buf device: contiguous, at a known bus
// address, and the only memory that the MAC is told of. Its methods may be
// called by several goroutines.
type reservedMemory struct {
	path string
	mem  []byte
	bus  uint64 // bus address of mem[0]

	mu      sync.Mutex
	extents *extents
}

// Bits of the attribute sync_mode of u-dma-buf: how a file that was opened with
// O_SYNC is mapped.
const (
	syncModeMask = 3

	syncCached       = 0 // as ordinary memory
	syncUncached     = 1 // as registers: of arm and arm64 device memory
	syncWriteCombine = 2 // uncached, and otherwise as ordinary memory
	syncCoherent     = 3 // as the kernel maps DMA memory: the same as 2, or cached if that is coherent
)

// openReserved opens the memory that p names. It takes only memory in which the
// CPU and the device see what the other wrote without cache maintenance.
func openReserved(p paths) (*reservedMemory, error) {
	const missing = "load u-dma-buf with a buffer of 8 MiB (insmod u-dma-buf.ko udmabuf0=8388608), or name its device with -dmabuf"
	fail := func(err error) (*reservedMemory, error) { return nil, explain("memory", p.dmabuf, err, missing) }
	path, err := filepath.EvalSymlinks(p.dmabuf)
	if err != nil {
		return fail(err)
	}
	dir := filepath.Join(p.sysfs, "class", "u-dma-buf", filepath.Base(path))
	var bus, size, mode uint64
	for _, a := range []struct {
		name string
		v    *uint64
	}{{"phys_addr", &bus}, {"size", &size}, {"sync_mode", &mode}} {
		if *a.v, err = attribute(filepath.Join(dir, a.name)); err != nil {
			return fail(err)
		}
	}
	// Not every kernel lets the module know.
	coherent, err := attribute(filepath.Join(dir, "dma_coherent"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fail(err)
	}
	switch mode & syncModeMask {
	case syncUncached:
		// Device memory of arm and arm64 faults on unaligned access and on the
		// block zeroing (DC ZVA) that Go's clear uses.
		return fail(fmt.Errorf("sync_mode %d maps it as registers are, where memory cannot be cleared or copied: echo %d > %s: %w",
			mode, syncWriteCombine, filepath.Join(dir, "sync_mode"), errors.ErrUnsupported))
	case syncCached:
		if coherent == 0 {
			return fail(fmt.Errorf("sync_mode %d maps it cached, and the device does not see the caches: echo %d > %s: %w",
				mode, syncWriteCombine, filepath.Join(dir, "sync_mode"), errors.ErrUnsupported))
		}
	case syncWriteCombine, syncCoherent:
	}
	if bus%uint64(os.Getpagesize()) != 0 || bus+size < bus {
		return fail(fmt.Errorf("%d bytes at the bus address %#x: %w", size, bus, os.ErrInvalid))
	}
	f, err := os.OpenFile(path, os.O_RDWR|os.O_SYNC, 0)
	if err != nil {
		return fail(err)
	}
	defer f.Close() // the mapping keeps the device open
	mem, err := mapFile(f, size)
	if err != nil {
		return fail(err)
	}
	return &reservedMemory{path: p.dmabuf, mem: mem, bus: bus, extents: newExtents(bus, size)}, nil
}

// alloc returns n bytes whose bus address is a multiple of align, a power of two.
func (r *reservedMemory) alloc(n, align int) (mem []byte, addr uint64, err error) {
	if n <= 0 || align <= 0 || align&(align-1) != 0 {
		return nil, 0, fmt.Errorf("%s: %d bytes aligned to %d: %w", r.path, n, align, os.ErrInvalid)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	addr, ok := r.extents.alloc(uint64(n), uint64(align))
	if !ok {
		return nil, 0, fmt.Errorf("%s: %d bytes are needed, and of its %d the longest free piece has %d: make the buffer larger: %w",
			r.path, n, len(r.mem), r.extents.largest(), syscall.ENOMEM)
	}
	i := addr - r.bus
	return r.mem[i : i+uint64(n) : i+uint64(n)], addr, nil
}

// release frees what alloc returned.
func (r *reservedMemory) release(addr uint64, n int) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if n <= 0 || !r.extents.release(addr, uint64(n)) {
		return fmt.Errorf("%s: %d bytes at %#x were not allocated: %w", r.path, n, addr, os.ErrInvalid)
	}
	return nil
}

// inUse is the number of bytes that are allocated.
func (r *reservedMemory) inUse() uint64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.extents.inUse()
}

// close unmaps the memory. It is safe to call twice.
func (r *reservedMemory) close() error {
	if r.mem == nil {
		return nil
	}
	err := syscall.Munmap(r.mem)
	r.mem = nil
	return err
}
