package vfiotest

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/gostmmac/gostmmac/vfio"
)

// Kernel is a vfio.Kernel. Its methods may be called by several goroutines; one
// lock orders all that it does.
//
// Its file descriptors are numbers that the process cannot have otherwise and
// that do not come again after Close. Eventfds that it is given are real.
type Kernel struct {
	dir string
	cfg Config

	mu      sync.Mutex
	closed  *sync.Cond // a device was closed
	after   []func()   // to be done when mu is free
	nextFD  int
	fds     map[int]any // *container, *group, *deviceFile, *iommufd
	devices []*Device
	removed []*Device // through their attribute; a rescan finds them
	groups  map[int]*group
	drivers map[string]bool // "pci/vfio-pci"
	spaces  int             // IOVA spaces that were made, for their names
	// containers and iommufds are those that a descriptor or a device refers to.
	containers []*container
	iommufds   []*iommufd
	phys       physical
	locked     uint64 // bytes that containers charge
	pinned     uint64 // bytes that IOASes charge
	vmas       map[*byte]*vma
	memory     []*memory // all there is
	huge       map[*byte][]byte
	freeHuge   int     // huge pages
	empty      *memory // a file of no bytes: a mapping of it raises SIGBUS

	calls      []Call
	fail       map[string][]error
	maxVectors int
	short      *uint64
}

var _ vfio.Kernel = (*Kernel)(nil)

// firstFD is above fs.nr_open's default, the most that RLIMIT_NOFILE can be.
const firstFD = 1 << 20

// New makes a kernel without devices, whose file system (sys, proc, dev) is
// written to dir, which must be empty. Free it after use.
func New(dir string, cfg Config) (*Kernel, error) {
	if !cfg.Type1 && !cfg.IOMMUFD {
		cfg.Type1, cfg.IOMMUFD = true, true
	}
	machine := os.Getpagesize()
	if cfg.PageSize == 0 {
		cfg.PageSize = machine
	}
	if cfg.PageSize < machine || cfg.PageSize&(cfg.PageSize-1) != 0 {
		return nil, fmt.Errorf("vfiotest: pages of %d bytes where the machine's have %d: %w", cfg.PageSize, machine, os.ErrInvalid)
	}
	if cfg.IOMMUPageSizes == 0 {
		cfg.IOMMUPageSizes = 1<<12 | 1<<21 | 1<<30
	}
	if len(cfg.IOVARanges) == 0 {
		cfg.IOVARanges = defaultRanges()
	}
	for i, r := range cfg.IOVARanges {
		if r.First > r.Last || i > 0 && r.First <= cfg.IOVARanges[i-1].Last {
			return nil, fmt.Errorf("vfiotest: IOVA ranges do not ascend: %w", os.ErrInvalid)
		}
	}
	if cfg.EntryLimit == 0 {
		cfg.EntryLimit = defaultEntries
	}
	if cfg.HugePages == 0 {
		cfg.HugePages = defaultHuge
	}
	if cfg.Memlock == 0 {
		cfg.Memlock = unlimited
	}
	if cfg.PhysBase == 0 {
		cfg.PhysBase = 4 * gib
	}
	if cfg.PhysBase%gib != 0 {
		return nil, fmt.Errorf("vfiotest: physical base %#x is no multiple of 1 GiB: %w", cfg.PhysBase, os.ErrInvalid)
	}
	k := &Kernel{dir: dir, cfg: cfg, nextFD: firstFD, fds: map[int]any{}, groups: map[int]*group{}, drivers: map[string]bool{},
		vmas: map[*byte]*vma{}, huge: map[*byte][]byte{}, freeHuge: cfg.HugePages, fail: map[string][]error{},
		phys: physical{page: uint64(cfg.PageSize), base: cfg.PhysBase, scatter: cfg.Scatter}}
	k.closed = sync.NewCond(&k.mu)
	if err := k.writeTree(); err != nil {
		return nil, err
	}
	var err error
	if k.empty, err = k.newMemory("vfiotest-gone", 0); err != nil {
		return nil, err
	}
	return k, nil
}

// Free gives back what the process has for the kernel and its devices: memory,
// which must not be used any more, and eventfds. Descriptors that are open are
// closed. It is for the end of a test.
func (k *Kernel) Free() {
	k.mu.Lock()
	defer k.unlock()
	for _, v := range k.vmas {
		_ = unix.Munmap(v.mem)
		k.unmapped(v)
	}
	for _, fd := range slices.Sorted(maps.Keys(k.fds)) {
		k.closeFD(fd)
	}
	for _, mem := range k.huge {
		_ = k.freeHugeMemory(mem)
	}
	for _, d := range k.devices {
		d.regions = nil
	}
	for _, m := range k.memory {
		m.close()
	}
	for _, d := range k.removed {
		d.regions = nil
	}
	k.devices, k.removed, k.memory = nil, nil, nil
}

// unlock frees the lock and does what had to wait for that.
func (k *Kernel) unlock() {
	after := k.after
	k.after = nil
	k.mu.Unlock()
	for _, f := range after {
		f()
	}
}

// PageSize implements vfio.Kernel.
func (k *Kernel) PageSize() int { return k.cfg.PageSize }

// Path implements vfio.Kernel. What is below proc/self comes from FS alone.
func (k *Kernel) Path(name string) string { return filepath.Join(k.dir, filepath.FromSlash(name)) }

func (k *Kernel) install(file any) int {
	fd := k.nextFD
	k.nextFD++
	k.fds[fd] = file
	return fd
}

// Open implements vfio.Kernel.
func (k *Kernel) Open(name string) (int, error) {
	k.mu.Lock()
	defer k.unlock()
	var fd int
	err := k.failure("open")
	if err == nil {
		fd, err = k.open(name)
	}
	k.log("open", name, fd, err)
	if err != nil {
		return -1, err
	}
	return fd, nil
}

func (k *Kernel) open(name string) (int, error) {
	if !fs.ValidPath(name) || !strings.HasPrefix(name, "dev/") {
		return -1, unix.ENOENT
	}
	if _, err := os.Stat(k.Path(name)); err != nil {
		return -1, unix.ENOENT
	}
	switch dir, node := path.Split(name); {
	case name == "dev/vfio/vfio":
		k.spaces++
		c := &container{k: k, name: fmt.Sprintf("container %d", k.spaces), open: true}
		k.containers = append(k.containers, c)
		return k.install(c), nil
	case name == "dev/iommu":
		u := &iommufd{k: k, open: true, objects: map[uint32]any{}}
		k.iommufds = append(k.iommufds, u)
		return k.install(u), nil
	case dir == "dev/vfio/":
		n, err := strconv.Atoi(strings.TrimPrefix(node, noiommuPrefix))
		if g := k.groups[n]; err == nil && g != nil {
			return k.openGroup(g)
		}
	case dir == "dev/vfio/devices/":
		for _, d := range k.devices {
			if d.cdevName() == node {
				return k.openCdev(d)
			}
		}
	}
	return -1, unix.ENXIO
}

// noiommuPrefix starts the names of nodes of devices without an IOMMU.
const noiommuPrefix = "noiommu-"

// Close implements vfio.Kernel.
func (k *Kernel) Close(fd int) error {
	k.mu.Lock()
	defer k.unlock()
	f, ok := k.fds[fd]
	if !ok {
		k.log("close", "", fd, unix.EBADF)
		return unix.EBADF
	}
	k.log("close", fileName(f), fd, nil)
	k.closeFD(fd)
	return nil
}

func (k *Kernel) closeFD(fd int) {
	f := k.fds[fd]
	delete(k.fds, fd)
	switch f := f.(type) {
	case *container:
		f.open = false
		f.forget()
	case *group:
		f.put()
	case *deviceFile:
		f.put()
	case *iommufd:
		f.open = false
		f.forget()
	}
}

// Ioctl implements vfio.Kernel.
func (k *Kernel) Ioctl(fd int, req uint32, arg []byte) (int, error) { return k.ioctl(fd, req, arg, -1) }

// IoctlInt implements vfio.Kernel.
func (k *Kernel) IoctlInt(fd int, req uint32, arg int) (int, error) {
	return k.ioctl(fd, req, nil, arg)
}

func (k *Kernel) ioctl(fd int, req uint32, arg []byte, num int) (int, error) {
	k.mu.Lock()
	defer k.unlock()
	var n int
	f, ok := k.fds[fd]
	name := requestName(f, req)
	err := k.failure(name)
	dev := fileName(f)
	switch {
	case err != nil:
	case !ok:
		err = unix.EBADF
	default:
		switch f := f.(type) {
		case *container:
			n, err = f.ioctl(req, arg, num)
		case *group:
			n, err = f.ioctl(req, arg)
		case *deviceFile:
			n, err = f.ioctl(req, arg)
		case *iommufd:
			n, err = f.ioctl(req, arg)
		}
	}
	k.log(name, dev, fd, err)
	if err != nil {
		return -1, err
	}
	return n, nil
}

// OpenFDs is how many descriptors are open.
func (k *Kernel) OpenFDs() int {
	k.mu.Lock()
	defer k.unlock()
	return len(k.fds)
}

// OpenMaps is how many mappings of regions there are. Each keeps its device open
// after the descriptor was closed.
func (k *Kernel) OpenMaps() int {
	k.mu.Lock()
	defer k.unlock()
	return len(k.vmas)
}

// errno is the error of a system call that failed in earnest.
func errno(err error) error {
	var e unix.Errno
	if errors.As(err, &e) {
		return e
	}
	return unix.EIO
}
