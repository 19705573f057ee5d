package vfiouser

import (
	"errors"
	"math"
	"math/bits"
	"syscall"

	"golang.org/x/sys/unix"
)

// Bounds on what a client can make the process map: other parts of it need address space
// too, and the kernel allows some 65,530 mappings for all of them.
const (
	maxFiles  = 256
	maxMapped = 1 << (16 + bits.UintSize*3/8) // bytes: 1 TiB with 64 bits, 256 MiB with 32
)

// inode tells files apart: each message has a descriptor of its own for the same one.
type inode struct{ dev, ino uint64 }

// memory are the files that are mapped for a client. One goroutine uses it.
type memory struct {
	files  map[inode]*file
	count  int
	mapped uint64
}

// open returns the file behind fd, mapped at least up to end and for writing if that is
// asked for, or nil if its memory is to be reached by messages. It does not keep fd.
func (m *memory) open(fd int, end uint64, write bool) (*file, error) {
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return nil, refuse(syscall.EINVAL, "look at the file: %v", err)
	}
	var fs unix.Statfs_t
	if err := unix.Fstatfs(fd, &fs); err != nil {
		return nil, refuse(syscall.EINVAL, "look at the file system: %v", err)
	}
	// A page of another file system may take for ever to come, or never come.
	if kind := uint32(fs.Type); st.Mode&unix.S_IFMT != unix.S_IFREG || kind != unix.TMPFS_MAGIC && kind != unix.HUGETLBFS_MAGIC {
		return nil, nil
	}
	size := uint64(st.Size)
	if end > size {
		return nil, refuse(syscall.EINVAL, "the file has %d bytes and %d are mapped", size, end)
	}
	id := inode{uint64(st.Dev), st.Ino}
	if f := m.files[id]; f != nil && end <= uint64(len(f.mem)) && (f.writable || !write) {
		return f, nil
	}
	if m.count >= maxFiles || size > maxMapped-m.mapped || size > math.MaxInt {
		return nil, refuse(syscall.ENOMEM, "%d bytes beside %d in %d files: the limits are %d and %d", size, m.mapped, m.count, uint64(maxMapped), maxFiles)
	}
	f := &file{writable: true, shrinks: true}
	mem, err := unix.Mmap(fd, 0, int(size), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if !write && (errors.Is(err, unix.EACCES) || errors.Is(err, unix.EPERM)) {
		f.writable = false
		mem, err = unix.Mmap(fd, 0, int(size), unix.PROT_READ, unix.MAP_SHARED)
	}
	if err != nil {
		return nil, refuse(errnoOf(err), "map %d bytes of the file", size)
	}
	if seals, err := unix.FcntlInt(uintptr(fd), unix.F_GET_SEALS, 0); err == nil && seals&unix.F_SEAL_SHRINK != 0 {
		f.shrinks = false
	}
	f.mem = mem
	m.files[id] = f
	m.count++
	m.mapped += size
	f.unmap = func() {
		if m.files[id] == f {
			delete(m.files, id)
		}
		m.count--
		m.mapped -= size
		// It was mapped so, so this cannot fail.
		_ = unix.Munmap(mem)
	}
	return f, nil
}
