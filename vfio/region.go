package vfio

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/gostmmac/gostmmac/mmio"
	"github.com/gostmmac/gostmmac/vfio/internal/uapi"
)

// Area is a part of a region.
type Area struct{ Offset, Size uint64 }

// RegionInfo is what the kernel tells of a region.
type RegionInfo struct {
	Size        uint64
	Read, Write bool
	// Mapped are the parts that are mapped into the process; the others are
	// accessed by system calls. It is empty before Device.Region was called.
	Mapped []Area
	// MSIXMappable says that the table of MSI-X vectors may be mapped with its BAR.
	MSIXMappable bool
}

// region is a range of registers that is mapped into the process where it can be,
// and read and written by system calls where not. Its accesses are those of
// mmio.Region: a device that is gone, or closed, reads as all ones.
type region struct {
	dev    *Device
	info   RegionInfo
	offset uint64 // in the device's descriptor
	n      uint32
	areas  []area

	// users counts the accesses under way; closed is added to it by close.
	users atomic.Int64

	mu   sync.Mutex // guards word
	word [4]byte
}

const regionClosed = math.MinInt64 / 2

// area is a part of a region that is mapped.
type area struct {
	start, end uint32
	mem        []byte
	regs       mmio.Region
}

// RegionInfo tells of region i without mapping it.
func (d *Device) RegionInfo(i int) (RegionInfo, error) {
	info, _, _, err := d.regionInfo(i)
	return info, wrap(fmt.Sprintf("region %d", i), d.info.Name, err)
}

// NumRegions is how many regions there are, among them those of size 0.
func (d *Device) NumRegions() int { return int(d.numRegions) }

// regionInfo returns what the kernel tells, where the region lies in the device's
// descriptor and what of it can be mapped.
func (d *Device) regionInfo(i int) (info RegionInfo, offset uint64, areas []Area, err error) {
	if i < 0 || i >= int(d.numRegions) {
		return info, 0, nil, fmt.Errorf("there are %d: %w", d.numRegions, os.ErrNotExist)
	}
	raw, answer, err := query(d.k, d.fd, uapi.DeviceGetRegionInfo, "VFIO_DEVICE_GET_REGION_INFO", uapi.RegionInfo{Index: uint32(i)},
		func(r *uapi.RegionInfo) *uint32 { return &r.Argsz })
	if err != nil {
		return info, 0, nil, err
	}
	if raw.Size > math.MaxInt64 || raw.Offset > math.MaxInt64-raw.Size {
		return info, 0, nil, fmt.Errorf("it has %d bytes at %#x: %w", raw.Size, raw.Offset, os.ErrInvalid)
	}
	info = RegionInfo{Size: raw.Size, Read: raw.Flags&uapi.RegionFlagRead != 0, Write: raw.Flags&uapi.RegionFlagWrite != 0}
	if raw.Flags&uapi.RegionFlagMmap != 0 {
		areas = []Area{{0, raw.Size}}
	}
	if raw.Flags&uapi.RegionFlagCaps == 0 {
		return info, raw.Offset, areas, nil
	}
	caps, err := capabilities(answer, raw.CapOffset)
	if err != nil {
		return info, 0, nil, err
	}
	for _, c := range caps {
		switch c.id {
		case uapi.RegionCapMSIXMappable:
			info.MSIXMappable = true
		case uapi.RegionCapSparseMmap:
			pairs, err := c.pairs()
			if err != nil {
				return info, 0, nil, err
			}
			if raw.Flags&uapi.RegionFlagMmap == 0 {
				continue
			}
			areas = nil
			for _, p := range pairs {
				if p[0] > raw.Size || p[1] > raw.Size-p[0] {
					return info, 0, nil, fmt.Errorf("an area of %d bytes at %#x in a region of %d: %w", p[1], p[0], raw.Size, os.ErrInvalid)
				}
				areas = append(areas, Area{p[0], p[1]})
			}
		}
	}
	return info, raw.Offset, areas, nil
}

// Region returns the registers of region i: the BAR of a PCI function, the reg entry
// of a platform device. What cannot be mapped is accessed by system calls, which
// take about a microsecond each. After the device is gone or closed loads return
// all ones and stores do nothing.
func (d *Device) Region(i int) (mmio.Region, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	r, err := d.region(i)
	if err != nil {
		return nil, wrap(fmt.Sprintf("region %d", i), d.info.Name, err)
	}
	return r, nil
}

func (d *Device) region(i int) (*region, error) {
	if err := d.usable(); err != nil {
		return nil, err
	}
	if r := d.regions[i]; r != nil {
		return r, nil
	}
	info, offset, areas, err := d.regionInfo(i)
	switch {
	case err != nil:
		return nil, err
	case info.Size == 0:
		return nil, fmt.Errorf("it has no bytes: %w", os.ErrNotExist)
	case !info.Read && !info.Write:
		return nil, fmt.Errorf("it can neither be read nor written: %w", os.ErrPermission)
	}
	r := &region{dev: d, info: info, offset: offset, n: uint32(min(info.Size, 1<<32-4)) &^ 3}
	for _, a := range areas {
		if err := r.mmap(a); err != nil {
			d.dom.opt.log.Warn().Str("dev", d.info.Name).Int("region", i).Err(err).Msg("not mapped; system calls access it")
		}
	}
	slices.SortFunc(r.areas, func(a, b area) int { return cmp.Compare(a.start, b.start) })
	d.regions[i] = r
	return r, nil
}

// mmap maps a part that starts on a page. The last page of it may be longer than
// the part.
func (r *region) mmap(a Area) error {
	page := uint64(r.dev.k.PageSize())
	if at := r.offset + a.Offset; at%page != 0 || a.Size == 0 || a.Offset >= uint64(r.n) {
		return fmt.Errorf("%d bytes at %#x do not start on a page of %d bytes: %w", a.Size, at, page, os.ErrInvalid)
	}
	size := min(a.Size, uint64(r.n)-a.Offset)
	mem, err := r.dev.k.Mmap(r.dev.fd, int64(r.offset+a.Offset), int((size+page-1)&^(page-1)), !r.info.Write)
	if err != nil {
		return &Error{Call: "mmap", Err: err}
	}
	regs := mmio.Map(mem[:size])
	r.areas = append(r.areas, area{start: uint32(a.Offset), end: uint32(a.Offset) + regs.Len(), mem: mem, regs: regs})
	r.info.Mapped = append(r.info.Mapped, Area{a.Offset, size})
	return nil
}

// Len implements mmio.Region.
func (r *region) Len() uint32 { return r.n }

// Load32 implements mmio.Region.
func (r *region) Load32(off uint32) (v uint32) {
	if off&3 != 0 || off >= r.n || !r.enter() {
		return mmio.AllOnes
	}
	defer r.settle(debug.SetPanicOnFault(true), &v)
	if a := r.mapped(off); a != nil {
		return a.regs.Load32(off - a.start)
	}
	return r.pread(off)
}

// Store32 implements mmio.Region.
func (r *region) Store32(off, v uint32) {
	if off&3 != 0 || off >= r.n || !r.enter() {
		return
	}
	defer r.settle(debug.SetPanicOnFault(true), nil)
	if a := r.mapped(off); a != nil {
		a.regs.Store32(off-a.start, v)
		return
	}
	r.pwrite(off, v)
}

// enter begins an access, which settle ends, unless the device is gone or closed.
func (r *region) enter() bool {
	if r.dev.gone.Load() {
		return false
	}
	if r.users.Add(1) < 0 {
		r.users.Add(-1)
		return false
	}
	return true
}

// settle ends an access. The kernel answers one to mapped registers with SIGBUS when
// it has taken the device away; that fault, and no other, means that the device is
// gone. load is where the value of a load goes.
func (r *region) settle(panics bool, load *uint32) {
	debug.SetPanicOnFault(panics)
	r.users.Add(-1)
	p := recover()
	if p == nil {
		return
	}
	f, ok := p.(interface {
		error
		Addr() uintptr
	})
	if !ok || !r.holds(f.Addr()) {
		panic(p)
	}
	r.dev.markGone(f)
	if load != nil {
		*load = mmio.AllOnes
	}
}

// holds says whether an address lies in the mapped part of the region.
func (r *region) holds(addr uintptr) bool {
	for _, a := range r.areas {
		if base := uintptr(unsafe.Pointer(unsafe.SliceData(a.mem))); addr >= base && addr-base < uintptr(len(a.mem)) {
			return true
		}
	}
	return false
}

// mapped finds the part in which off is mapped, nil if it is in none.
func (r *region) mapped(off uint32) *area {
	for i := range r.areas {
		if a := &r.areas[i]; off >= a.start && off < a.end {
			return a
		}
	}
	return nil
}

func (r *region) pread(off uint32) uint32 {
	r.mu.Lock()
	defer r.mu.Unlock()
	if n, err := r.dev.k.Pread(r.dev.fd, r.word[:], int64(r.offset)+int64(off)); err != nil || n != len(r.word) {
		r.dev.markGone(errors.Join(err, fmt.Errorf("read %d of 4 bytes at %#x", n, off)))
		return mmio.AllOnes
	}
	return binary.NativeEndian.Uint32(r.word[:])
}

func (r *region) pwrite(off, v uint32) {
	r.mu.Lock()
	defer r.mu.Unlock()
	binary.NativeEndian.PutUint32(r.word[:], v)
	if n, err := r.dev.k.Pwrite(r.dev.fd, r.word[:], int64(r.offset)+int64(off)); err != nil || n != len(r.word) {
		r.dev.markGone(errors.Join(err, fmt.Errorf("wrote %d of 4 bytes at %#x", n, off)))
	}
}

// close unmaps the region when the accesses under way have ended.
func (r *region) close() error {
	r.users.Add(regionClosed)
	for r.users.Load() > regionClosed {
		runtime.Gosched()
	}
	var errs []error
	for _, a := range r.areas {
		if err := r.dev.k.Munmap(a.mem); err != nil {
			errs = append(errs, &Error{Call: "munmap", Err: err})
		}
	}
	return errors.Join(errs...)
}
