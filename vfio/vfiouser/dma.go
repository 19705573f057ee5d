package vfiouser

import (
	"os"
	"runtime/debug"
	"sync/atomic"
	"syscall"
	"unsafe"
)

// Read copies len(p) bytes from bus address addr on into p, Write the other way. They take
// no memory of the Go heap, and both may be called by any number of goroutines. Of memory
// that the client shares, an access of 4 or 8 bytes to a multiple of that is one load or
// store; longer ones have no order within them.
//
// The error is a *DMAError: it wraps ErrMaster, ErrNoClient, os.ErrPermission for memory
// that may not be accessed so, the errno of a client that was asked by a message, or
// os.ErrDeadlineExceeded for one that did not answer. What lies before the address that
// failed may have been copied.
func (f *Function) Read(addr uint64, p []byte) error { return f.dma.access(addr, p, false) }

// Write is described at Read.
func (f *Function) Write(addr uint64, p []byte) error { return f.dma.access(addr, p, true) }

// Window returns the n bytes of memory at bus address addr themselves, if they lie in one
// range that the client shares for reading and writing. Otherwise it returns nil, and Read
// and Write are to be used. A window is good until the Device's DropWindows returns. It
// takes no memory of the Go heap; any number of goroutines may call it.
func (f *Function) Window(addr uint64, n int) []byte {
	lo, mem := f.Extent(addr)
	off := addr - lo
	if n < 0 || uint64(n) > uint64(len(mem))-off {
		return nil
	}
	return mem[off : off+uint64(n) : off+uint64(n)]
}

// Maps says whether the client has mapped bus address addr for the function, also while bus
// mastering is off and the function does not reach it.
func (f *Function) Maps(addr uint64) bool {
	t := &f.dma
	t.mu.RLock()
	defer t.mu.RUnlock()
	return t.find(addr) != nil
}

// Master says whether bus mastering is on, without which the function reaches no memory.
func (f *Function) Master() bool {
	t := &f.dma
	t.mu.RLock()
	defer t.mu.RUnlock()
	return t.master
}

// Extent returns the whole range around addr that Window gives parts of, and the bus
// address of its first byte; or nil, and addr.
func (f *Function) Extent(addr uint64) (lo uint64, mem []byte) {
	t := &f.dma
	t.mu.RLock()
	defer t.mu.RUnlock()
	w := t.find(addr)
	if w == nil || !t.master || !w.lends() {
		return addr, nil
	}
	if !w.lent.Load() {
		w.lent.Store(true)
	}
	return w.first, w.mem
}

// access copies piece by piece: each lies in one window or in none.
func (t *table) access(addr uint64, p []byte, write bool) error {
	for len(p) > 0 {
		n, client, err := t.copy(addr, p, write)
		if client != nil {
			err = client.access(addr, p[:n], write)
		}
		if err != nil {
			return &DMAError{write, addr, len(p), err}
		}
		if p = p[n:]; len(p) > 0 && addr+uint64(n) < addr {
			return &DMAError{write, 0, len(p), os.ErrInvalid}
		}
		addr += uint64(n)
	}
	return nil
}

// copy copies what it can of p in one piece and says how much; or whom to ask for how much.
func (t *table) copy(addr uint64, p []byte, write bool) (n int, ask messages, err error) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	if t.client == nil {
		return 0, nil, ErrNoClient
	}
	if !t.master {
		return 0, nil, ErrMaster
	}
	w := t.find(addr)
	if w == nil {
		if i := t.from(addr); i < len(t.windows) {
			p = p[:min(uint64(len(p)), t.windows[i].first-addr)]
		}
		return min(len(p), t.client.limit()), t.client, nil
	}
	if write && !w.write || !write && !w.read {
		return 0, nil, os.ErrPermission
	}
	if room := w.last - addr; uint64(len(p)-1) > room {
		p = p[:room+1]
	}
	if w.mem == nil {
		return min(len(p), t.client.limit()), t.client, nil
	}
	mem := w.mem[addr-w.first:][:len(p)]
	if w.file.shrinks {
		return len(p), nil, guarded(mem, p, write)
	}
	move(mem, p, write)
	return len(p), nil, nil
}

// move copies between memory of the client and p. Words that are aligned are accessed
// whole: a driver in the machine may write them at the same time.
func move(mem, p []byte, write bool) {
	a := unsafe.Pointer(unsafe.SliceData(mem))
	b := unsafe.Pointer(unsafe.SliceData(p))
	switch at := uintptr(a) | uintptr(b); {
	case len(p) == 4 && at%4 == 0:
		if write {
			atomic.StoreUint32((*uint32)(a), *(*uint32)(b))
		} else {
			*(*uint32)(b) = atomic.LoadUint32((*uint32)(a))
		}
	case len(p) == 8 && at%8 == 0:
		if write {
			atomic.StoreUint64((*uint64)(a), *(*uint64)(b))
		} else {
			*(*uint64)(b) = atomic.LoadUint64((*uint64)(a))
		}
	case write:
		copy(mem, p)
	default:
		copy(p, mem)
	}
}

// guarded is move for memory that may be taken away: the kernel then raises SIGBUS, which
// becomes an error. Only faults inside mem do.
func guarded(mem, p []byte, write bool) (err error) {
	panics := debug.SetPanicOnFault(true)
	defer func() {
		debug.SetPanicOnFault(panics)
		r := recover()
		if r == nil {
			return
		}
		f, ok := r.(interface {
			error
			Addr() uintptr
		})
		base := uintptr(unsafe.Pointer(unsafe.SliceData(mem)))
		if !ok || f.Addr() < base || f.Addr()-base >= uintptr(len(mem)) {
			panic(r)
		}
		err = refuse(syscall.EFAULT, "the client has cut the file short")
	}()
	move(mem, p, write)
	return nil
}
