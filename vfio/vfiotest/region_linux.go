package vfiotest

import (
	"fmt"
	"os"
	"slices"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/gostmmac/gostmmac/vfio/internal/uapi"
)

// regionShift: the offset of region i in a device file is i<<40.
const regionShift = 40

type region struct {
	Region
	mem *memory // nil for a region of no bytes
}

// check says what of a region cannot be.
func (r *Region) check(page uint64) error {
	const most = 1 << 36
	if r.Size > most {
		return fmt.Errorf("%d bytes: %w", r.Size, os.ErrInvalid)
	}
	for _, a := range r.Sparse {
		if a.Offset%page != 0 || a.Size%page != 0 || a.Size == 0 || a.Size > r.Size || a.Offset > r.Size-a.Size {
			return fmt.Errorf("area %#x+%#x is not of whole pages inside: %w", a.Offset, a.Size, os.ErrInvalid)
		}
	}
	return nil
}

// mmapable says that some of the region can be mapped.
func (r *Region) mmapable() bool { return r.Size > 0 && (r.Mmap || len(r.Sparse) > 0) }

// mayMap says that n bytes from off can be mapped.
func (r *Region) mayMap(off, n, page uint64) bool {
	areas := r.Sparse
	if len(areas) == 0 && r.mmapable() {
		areas = []Area{{0, roundUp(r.Size, page)}}
	}
	return slices.ContainsFunc(areas, func(a Area) bool {
		return off >= a.Offset && n <= a.Size && off-a.Offset <= a.Size-n
	})
}

func (d *Device) regionInfo(arg []byte) error {
	const size = 32
	v, err := readArg[uapi.RegionInfo](arg, size)
	if err != nil {
		return err
	}
	if v.Index >= uint32(len(d.regions)) || d.bus == pciBus && v.Index == uapi.PCIVGA {
		return unix.EINVAL
	}
	r := &d.regions[v.Index]
	v.Offset, v.Size = uint64(v.Index)<<regionShift, r.Size
	v.Flags, v.CapOffset = 0, 0
	var caps []capability
	switch {
	case d.bus == pciBus && v.Index == uapi.PCIConfig:
		v.Flags, v.Size = uapi.RegionFlagRead|uapi.RegionFlagWrite, uint64(len(d.config))
	case r.Size == 0:
	case d.bus == pciBus && v.Index == uapi.PCIROM:
		v.Flags = uapi.RegionFlagRead
	default:
		v.Flags = uapi.RegionFlagRead | uapi.RegionFlagWrite
		if r.mmapable() {
			v.Flags |= uapi.RegionFlagMmap
		}
		if len(r.Sparse) > 0 {
			b := body(uint32(len(r.Sparse)), uint32(0))
			for _, a := range r.Sparse {
				b = append(b, body(a.Offset, a.Size)...)
			}
			caps = append(caps, capability{uapi.RegionCapSparseMmap, 1, b})
		}
		if r.MSIXMappable {
			caps = append(caps, capability{uapi.RegionCapMSIXMappable, 1, nil})
		}
	}
	if len(caps) > 0 {
		b := chain(size, caps)
		v.Flags |= uapi.RegionFlagCaps
		if need := size + len(b); int(v.Argsz) < need {
			v.Argsz = uint32(need)
		} else {
			v.CapOffset = size
			copy(arg[size:], b)
		}
	}
	writeArg(arg, &v, size)
	return nil
}

// Pread implements vfio.Kernel.
func (k *Kernel) Pread(fd int, p []byte, off int64) (int, error) { return k.access(fd, p, off, false) }

// Pwrite implements vfio.Kernel.
func (k *Kernel) Pwrite(fd int, p []byte, off int64) (int, error) { return k.access(fd, p, off, true) }

func (k *Kernel) access(fd int, p []byte, off int64, write bool) (int, error) {
	name := "pread"
	if write {
		name = "pwrite"
	}
	k.mu.Lock()
	f, ok := k.fds[fd]
	err := k.failure(name)
	var n int
	var hook func(n int)
	switch file, isDevice := f.(*deviceFile); {
	case err != nil:
	case !ok:
		err = unix.EBADF
	case !isDevice || !file.granted || off < 0:
		err = unix.EINVAL
	case len(p) == 0:
	default:
		n, hook, err = file.d.access(p, uint64(off), write)
	}
	if err != nil {
		k.log(name, fileName(f), fd, err)
		k.unlock()
		return -1, err
	}
	k.unlock()
	if hook != nil {
		hook(n)
	}
	return n, nil
}

// access reads or writes at an offset of the device file and returns how much of p
// that is. A hook is what remains to be done without the lock.
func (d *Device) access(p []byte, off uint64, write bool) (n int, hook func(int), err error) {
	index, off := off>>regionShift, off&(1<<regionShift-1)
	if index >= uint64(len(d.regions)) {
		return 0, nil, unix.EINVAL
	}
	r := &d.regions[index]
	isPCI := d.bus == pciBus
	if isPCI && index == uapi.PCIConfig {
		n, err = d.accessConfig(p, off, write)
		return n, nil, err
	}
	switch {
	case off >= r.Size || isPCI && index == uapi.PCIROM && write:
		return 0, nil, unix.EINVAL
	case !d.memoryOn():
		return 0, nil, unix.EIO
	}
	n = int(min(uint64(len(p)), r.Size-off))
	p = p[:n]
	table, size := d.pci.MSIX.Table, uint64(16*d.pci.MSIX.Count)
	if !isPCI || index != uint64(d.pci.MSIX.BAR) {
		table, size = 0, 0
	}
	data := r.mem.data
	return n, func(int) {
		eachAccess(off, p, func(off uint64, p []byte) {
			switch {
			// The kernel keeps the table of MSI-X to itself.
			case off+uint64(len(p)) > table && off < table+size:
				if !write {
					for i := range p {
						p[i] = 0xff
					}
				}
			case write && r.Write != nil:
				r.Write(off, p)
			case !write && r.Read != nil:
				r.Read(off, p)
			case write:
				copy(data[off:], p)
			default:
				copy(p, data[off:])
			}
		})
	}, nil
}

// eachAccess splits p into accesses of 1, 2, 4 or 8 bytes at multiples of their size.
func eachAccess(off uint64, p []byte, do func(off uint64, p []byte)) {
	for len(p) > 0 {
		n := 8
		for n > len(p) || off%uint64(n) != 0 {
			n /= 2
		}
		do(off, p[:n])
		off, p = off+uint64(n), p[n:]
	}
}

// Mmap implements vfio.Kernel.
func (k *Kernel) Mmap(fd int, off int64, n int, readonly bool) ([]byte, error) {
	k.mu.Lock()
	defer k.unlock()
	f := k.fds[fd]
	err := k.failure("mmap")
	var mem []byte
	if err == nil {
		mem, err = k.mmap(f, off, n, readonly)
	}
	k.log("mmap", fileName(f), fd, err)
	return mem, err
}

// vma is a mapping of a region.
type vma struct {
	file     *deviceFile
	mem      []byte
	fd       int // of the region's memory
	off      int64
	readonly bool
	zapped   bool // SIGBUS
}

func (k *Kernel) mmap(f any, off int64, n int, readonly bool) ([]byte, error) {
	if f == nil {
		return nil, unix.EBADF
	}
	file, ok := f.(*deviceFile)
	if !ok {
		return nil, unix.ENODEV
	}
	d, page := file.d, uint64(k.cfg.PageSize)
	index, in := uint64(off)>>regionShift, uint64(off)&(1<<regionShift-1)
	if !file.granted || off < 0 || n <= 0 || in%page != 0 || index >= uint64(len(d.regions)) {
		return nil, unix.EINVAL
	}
	r := &d.regions[index]
	if d.bus == pciBus && index >= uapi.PCIROM || r.mem == nil || !r.mayMap(in, roundUp(uint64(n), page), page) {
		return nil, unix.EINVAL
	}
	v := &vma{file: file, fd: r.mem.fd, off: int64(in), readonly: readonly}
	var err error
	if v.mem, err = unix.Mmap(v.fd, v.off, n, v.prot(), unix.MAP_SHARED); err != nil {
		return nil, errno(err)
	}
	file.users++
	k.vmas[&v.mem[0]] = v
	v.refresh()
	return v.mem, nil
}

// Munmap implements vfio.Kernel.
func (k *Kernel) Munmap(mem []byte) error {
	k.mu.Lock()
	defer k.unlock()
	at := unsafe.SliceData(mem)
	v, huge := k.vmas[at], k.huge[at]
	err := k.failure("munmap")
	var dev string
	switch {
	case err != nil:
	case v != nil && len(mem) == len(v.mem):
		dev = v.file.d.name
		if err = unix.Munmap(v.mem); err == nil {
			k.unmapped(v)
		}
	case huge != nil && len(mem) == len(huge):
		err = k.freeHugeMemory(huge)
	default:
		err = unix.EINVAL
	}
	k.log("munmap", dev, -1, err)
	return err
}

func (k *Kernel) unmapped(v *vma) {
	delete(k.vmas, unsafe.SliceData(v.mem))
	v.file.put()
}

func (v *vma) prot() int {
	if v.readonly {
		return unix.PROT_READ
	}
	return unix.PROT_READ | unix.PROT_WRITE
}

// refresh lets an access fault or not, as the device is.
func (v *vma) refresh() {
	zap := !v.file.d.memoryOn()
	if zap == v.zapped {
		return
	}
	fd, off := v.fd, v.off
	if zap {
		fd, off = v.file.d.k.empty.fd, 0
	}
	_, err := unix.MmapPtr(fd, off, unsafe.Pointer(&v.mem[0]), uintptr(len(v.mem)), v.prot(), unix.MAP_SHARED|unix.MAP_FIXED)
	if err == nil {
		v.zapped = zap
	}
}

// zap brings all mappings of the device up to date.
func (d *Device) zap() {
	for _, v := range d.k.vmas {
		if v.file.d == d {
			v.refresh()
		}
	}
}

// memoryOn says that the device answers to its addresses.
func (d *Device) memoryOn() bool {
	return !d.gone && !d.lowPower && (d.bus != pciBus || d.command()&commandMemory != 0)
}
