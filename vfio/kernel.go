package vfio

import "io/fs"

// Kernel is what the package asks of the operating system. [System] is the
// machine's own; vfiotest has one for tests. Its methods may be called by several
// goroutines. Errors are those of the system calls (syscall.Errno, or what wraps
// it).
type Kernel interface {
	// FS is the file system from its root, for what is read below sys, proc and
	// dev: "sys/bus/pci/devices". It implements [fs.ReadLinkFS].
	FS() fs.FS
	// Path is where the operating system finds a file of FS.
	Path(name string) string
	// WriteFile writes an attribute below sys, which exists.
	WriteFile(name, data string) error

	// Open opens a device node of FS, as "dev/vfio/vfio", for reading and writing
	// and closed on exec.
	Open(name string) (fd int, err error)
	// Close closes what Open or an Ioctl returned.
	Close(fd int) error
	// Ioctl makes a request whose argument is a pointer to arg, which may be
	// written to.
	Ioctl(fd int, req uint32, arg []byte) (int, error)
	// IoctlInt makes a request whose argument is a number.
	IoctlInt(fd int, req uint32, arg int) (int, error)
	// Pread and Pwrite access a device at an offset.
	Pread(fd int, p []byte, off int64) (int, error)
	Pwrite(fd int, p []byte, off int64) (int, error)
	// Mmap maps n bytes of a device, shared; writable unless readonly.
	Mmap(fd int, off int64, n int, readonly bool) ([]byte, error)
	// HugeMemory maps n bytes of memory, a multiple of 2 MiB, in huge pages of 2 MiB
	// that are there.
	HugeMemory(n int) ([]byte, error)
	// Munmap undoes Mmap and HugeMemory.
	Munmap(mem []byte) error
	// PageSize is the size of a page of memory in bytes.
	PageSize() int
}
