package vfio

import (
	"io/fs"
	"os"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// System is the kernel that the program runs on. On other systems than Linux
// every call fails with errors.ErrUnsupported.
func System() Kernel { return system{} }

type system struct{}

func (system) FS() fs.FS               { return os.DirFS("/") }
func (system) Path(name string) string { return "/" + name }
func (system) PageSize() int           { return os.Getpagesize() }

func (system) WriteFile(name, data string) error {
	f, err := os.OpenFile("/"+name, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	// One write: an attribute takes each for a value of its own.
	_, err = f.WriteString(data)
	if e := f.Close(); err == nil {
		err = e
	}
	return err
}

func (system) Open(name string) (int, error) {
	return retry(func() (int, error) { return unix.Open("/"+name, unix.O_RDWR|unix.O_CLOEXEC, 0) })
}

func (system) Close(fd int) error { return unix.Close(fd) }

func (system) Ioctl(fd int, req uint32, arg []byte) (int, error) {
	return ioctl(fd, req, unsafe.Pointer(unsafe.SliceData(arg)))
}

func (system) IoctlInt(fd int, req uint32, arg int) (int, error) {
	return retry(func() (int, error) {
		n, _, e := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), uintptr(req), uintptr(arg))
		return result(n, e)
	})
}

func ioctl(fd int, req uint32, arg unsafe.Pointer) (int, error) {
	return retry(func() (int, error) {
		n, _, e := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), uintptr(req), uintptr(arg))
		return result(n, e)
	})
}

func (system) Pread(fd int, p []byte, off int64) (int, error) {
	return retry(func() (int, error) { return unix.Pread(fd, p, off) })
}

func (system) Pwrite(fd int, p []byte, off int64) (int, error) {
	return retry(func() (int, error) { return unix.Pwrite(fd, p, off) })
}

func (system) Mmap(fd int, off int64, n int, readonly bool) ([]byte, error) {
	prot := unix.PROT_READ
	if !readonly {
		prot |= unix.PROT_WRITE
	}
	return unix.Mmap(fd, off, n, prot, unix.MAP_SHARED)
}

func (system) HugeMemory(n int) ([]byte, error) {
	return unix.Mmap(-1, 0, n, unix.PROT_READ|unix.PROT_WRITE,
		unix.MAP_PRIVATE|unix.MAP_ANONYMOUS|unix.MAP_POPULATE|unix.MAP_HUGETLB|unix.MAP_HUGE_2MB)
}

func (system) Munmap(mem []byte) error { return unix.Munmap(mem) }

func result(n uintptr, e syscall.Errno) (int, error) {
	if e != 0 {
		return -1, e
	}
	return int(n), nil
}

// retry repeats a call that a signal interrupted.
func retry(call func() (int, error)) (int, error) {
	for {
		if n, err := call(); err != unix.EINTR {
			return n, err
		}
	}
}

// keepFromChildren keeps a child of fork from sharing memory that a device writes
// to: the next write of the parent would go to a copy, away from the device. The
// advice fails for what is no ordinary memory, which is not copied either.
func keepFromChildren(mem []byte) { _ = unix.Madvise(mem, unix.MADV_DONTFORK) }
