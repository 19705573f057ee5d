package vfiotest

import (
	"os"
	"unsafe"

	"golang.org/x/sys/unix"
)

// memory is what is behind a region: a file that can be mapped more than once, and
// the model's own mapping of it.
type memory struct {
	fd   int
	data []byte
}

// newMemory makes n bytes, in whole pages. It lasts until Free.
func (k *Kernel) newMemory(name string, n uint64) (*memory, error) {
	n = roundUp(n, uint64(k.cfg.PageSize))
	fd, err := unix.MemfdCreate(name, unix.MFD_CLOEXEC)
	if err != nil {
		return nil, os.NewSyscallError("memfd_create", err)
	}
	if err := unix.Ftruncate(fd, int64(n)); err != nil {
		_ = unix.Close(fd)
		return nil, os.NewSyscallError("ftruncate", err)
	}
	m := &memory{fd: fd}
	if n > 0 {
		if m.data, err = unix.Mmap(fd, 0, int(n), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED|unix.MAP_NORESERVE); err != nil {
			_ = unix.Close(fd)
			return nil, os.NewSyscallError("mmap", err)
		}
	}
	k.memory = append(k.memory, m)
	return m, nil
}

func (m *memory) close() {
	if m.data != nil {
		_ = unix.Munmap(m.data)
		m.data = nil
	}
	_ = unix.Close(m.fd)
}

func roundUp(n, to uint64) uint64 { return (n + to - 1) &^ (to - 1) }

// at is the address that the kernel was given as a number.
func at(addr uint64) unsafe.Pointer {
	p := uintptr(addr)
	return *(*unsafe.Pointer)(unsafe.Pointer(&p))
}

// userBytes is the memory of the process at an address, which must be mapped.
func userBytes(addr uint64, n int) []byte { return unsafe.Slice((*byte)(at(addr)), n) }

// mapped says that all of the range is mapped in the process. msync with MS_ASYNC
// does nothing but tell.
func mapped(addr, n uint64) bool {
	page := uint64(os.Getpagesize())
	first := addr &^ (page - 1)
	if n == 0 || addr+n < addr || uint64(uintptr(addr+n)) != addr+n {
		return false
	}
	_, _, e := unix.Syscall(unix.SYS_MSYNC, uintptr(first), uintptr(roundUp(addr+n-first, page)), unix.MS_ASYNC)
	return e == 0
}

// copyIn reads memory of the process that may not be there.
func copyIn(p []byte, addr uint64) error {
	if len(p) == 0 {
		return nil
	}
	local := []unix.Iovec{{Base: &p[0]}}
	local[0].SetLen(len(p))
	n, err := unix.ProcessVMReadv(os.Getpid(), local, []unix.RemoteIovec{{Base: uintptr(addr), Len: len(p)}}, 0)
	if err != nil || n != len(p) {
		return unix.EFAULT
	}
	return nil
}

// copyOut writes memory of the process that may not be there.
func copyOut(addr uint64, p []byte) error {
	if len(p) == 0 {
		return nil
	}
	local := []unix.Iovec{{Base: &p[0]}}
	local[0].SetLen(len(p))
	n, err := unix.ProcessVMWritev(os.Getpid(), local, []unix.RemoteIovec{{Base: uintptr(addr), Len: len(p)}}, 0)
	if err != nil || n != len(p) {
		return unix.EFAULT
	}
	return nil
}

// HugeMemory implements vfio.Kernel. The memory is of ordinary pages, which lie as
// huge ones do.
func (k *Kernel) HugeMemory(n int) ([]byte, error) {
	k.mu.Lock()
	defer k.unlock()
	err := k.failure("huge")
	var mem []byte
	switch {
	case err != nil:
	case n <= 0 || n%hugePage != 0:
		err = unix.EINVAL
	case k.freeHuge < n/hugePage:
		err = unix.ENOMEM
	default:
		if mem, err = aligned(n); err == nil {
			k.freeHuge -= n / hugePage
			k.huge[&mem[0]] = mem
			k.phys.addHuge(mem)
		}
	}
	k.log("huge", "", -1, err)
	return mem, err
}

func (k *Kernel) freeHugeMemory(mem []byte) error {
	if err := unix.MunmapPtr(unsafe.Pointer(&mem[0]), uintptr(len(mem))); err != nil {
		return errno(err)
	}
	delete(k.huge, unsafe.SliceData(mem))
	k.freeHuge += len(mem) / hugePage
	k.phys.forget(uint64(uintptr(unsafe.Pointer(unsafe.SliceData(mem)))), uint64(len(mem)))
	return nil
}

// aligned maps n bytes at a multiple of a huge page.
func aligned(n int) ([]byte, error) {
	all, err := unix.MmapPtr(-1, 0, nil, uintptr(n+hugePage), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
	if err != nil {
		return nil, errno(err)
	}
	head := uintptr(roundUp(uint64(uintptr(all)), hugePage)) - uintptr(all)
	start := unsafe.Add(all, head)
	if head > 0 {
		_ = unix.MunmapPtr(all, head)
	}
	if tail := hugePage - head; tail > 0 {
		_ = unix.MunmapPtr(unsafe.Add(start, n), tail)
	}
	return unsafe.Slice((*byte)(start), n), nil
}
