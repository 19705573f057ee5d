package vfiotest

import (
	"fmt"
	"maps"
	"math/bits"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/gostmmac/gostmmac/vfio/internal/uapi"
)

// iommufd is an open /dev/iommu. Devices that are bound to it keep it after its
// descriptor was closed.
type iommufd struct {
	k       *Kernel
	open    bool
	bound   []*Device
	next    uint32
	objects map[uint32]any // *ioas, *Device, hwpt
}

// hwpt is the page table that the kernel makes for the devices of an IOAS.
type hwpt struct{ s *ioas }

// ioas is an IOVA space of an iommufd.
type ioas struct {
	u        *iommufd
	name     string
	id, hwpt uint32
	devices  []*Device // attached
	maps     table
}

func (u *iommufd) alloc(o any) uint32 {
	u.next++
	u.objects[u.next] = o
	return u.next
}

func (u *iommufd) ids() []uint32 { return slices.Sorted(maps.Keys(u.objects)) }

// owns says that a device of the group is bound to u: then no one else can use it.
func (u *iommufd) owns(g *group) bool {
	return slices.ContainsFunc(u.bound, func(d *Device) bool { return d.group == g })
}

// forget drops the iommufd when nothing refers to it.
func (u *iommufd) forget() {
	if u.open || len(u.bound) > 0 {
		return
	}
	for _, o := range u.objects {
		if s, ok := o.(*ioas); ok {
			s.clear()
		}
	}
	u.k.iommufds = slices.DeleteFunc(u.k.iommufds, func(o *iommufd) bool { return o == u })
}

// clear drops all mappings.
func (s *ioas) clear() {
	if len(s.devices) > 0 {
		s.u.k.pinned -= s.maps.bytes
	}
	s.maps = table{}
}

// translates says that a device with an IOMMU is attached, whose ranges hold.
func (s *ioas) translates() bool {
	return slices.ContainsFunc(s.devices, func(d *Device) bool { return !d.group.noiommu })
}

// alignment is what addresses and lengths have to be multiples of.
func (s *ioas) alignment() uint64 {
	switch {
	case s.translates():
		return 1 << bits.TrailingZeros64(s.u.k.cfg.IOMMUPageSizes)
	case len(s.devices) > 0:
		return uint64(s.u.k.cfg.PageSize)
	}
	return 1
}

func (s *ioas) ranges() []Range {
	if s.translates() {
		return s.u.k.cfg.IOVARanges
	}
	return []Range{{0, unlimited}}
}

func (u *iommufd) ioas(id uint32) (*ioas, error) {
	s, ok := u.objects[id].(*ioas)
	if !ok {
		return nil, unix.ENOENT
	}
	return s, nil
}

func (u *iommufd) ioctl(req uint32, arg []byte) (int, error) {
	switch req {
	case uapi.IOASAlloc:
		return 0, u.ioasAlloc(arg)
	case uapi.IOASIOVARanges:
		return 0, u.iovaRanges(arg)
	case uapi.IOASMap:
		return 0, u.mapIOAS(arg)
	case uapi.IOASUnmap:
		return 0, u.unmapIOAS(arg)
	case uapi.IOASNoIOMMUGetPA:
		return 0, u.getPA(arg)
	case uapi.IOMMUDestroy:
		return 0, u.destroy(arg)
	}
	return 0, unix.ENOTTY
}

func (u *iommufd) ioasAlloc(arg []byte) error {
	const size = 12
	v, err := readArg[uapi.IOASAllocArg](arg, size)
	if err != nil {
		return err
	}
	if v.Flags != 0 {
		return unix.EOPNOTSUPP
	}
	u.k.spaces++
	s := &ioas{u: u, name: fmt.Sprintf("ioas %d", u.k.spaces)}
	s.id = u.alloc(s)
	v.OutID = s.id
	writeArg(arg, &v, size)
	return nil
}

func (u *iommufd) destroy(arg []byte) error {
	v, err := readArg[uapi.Destroy](arg, 8)
	if err != nil {
		return err
	}
	switch o := u.objects[v.ID].(type) {
	case *ioas:
		if len(o.devices) > 0 {
			return unix.EBUSY
		}
		o.clear()
		delete(u.objects, v.ID)
		return nil
	case nil:
		return unix.ENOENT
	}
	return unix.EBUSY
}

func (u *iommufd) iovaRanges(arg []byte) error {
	const size, each = 32, 16
	v, err := readArg[uapi.IOASRanges](arg, size)
	if err != nil {
		return err
	}
	s, err := u.ioas(v.IOASID)
	if err != nil {
		return err
	}
	ranges := s.ranges()
	var out []byte
	for _, r := range ranges {
		out = append(out, body(r.First, r.Last)...)
	}
	room := v.NumIOVAs
	v.NumIOVAs, v.OutIOVAAlignment = uint32(len(ranges)), s.alignment()
	if n := each * int(min(room, v.NumIOVAs)); n > 0 {
		if err := copyOut(v.AllowedIOVAs, out[:n]); err != nil {
			return err
		}
	}
	writeArg(arg, &v, size)
	if v.NumIOVAs > room {
		return unix.EMSGSIZE
	}
	return nil
}

func (u *iommufd) mapIOAS(arg []byte) error {
	const size = 40
	v, err := readArg[uapi.IOASMapArg](arg, size)
	if err != nil {
		return err
	}
	const known = uapi.IOASMapFixedIOVA | uapi.IOASMapReadable | uapi.IOASMapWriteable
	switch {
	case v.Flags&^known != 0:
		return unix.EOPNOTSUPP
	case v.IOVA == unlimited || v.Length == unlimited:
		return unix.EOVERFLOW
	case v.Flags&(uapi.IOASMapReadable|uapi.IOASMapWriteable) == 0:
		return unix.EINVAL
	}
	s, err := u.ioas(v.IOASID)
	if err != nil {
		return err
	}
	align := s.alignment() - 1
	switch {
	case v.Length == 0:
		return unix.EINVAL
	case v.UserVA+v.Length < v.UserVA:
		return unix.EOVERFLOW
	case v.Flags&uapi.IOASMapFixedIOVA == 0:
		var ok bool
		if v.IOVA, ok = s.choose(v.Length, v.UserVA); !ok {
			return unix.ENOSPC
		}
	}
	last := v.IOVA + v.Length - 1
	switch {
	case (v.IOVA|v.Length)&align != 0 || (v.UserVA-v.IOVA)&align != 0:
		return unix.EINVAL
	case last < v.IOVA:
		return unix.EOVERFLOW
	case !within(s.ranges(), v.IOVA, last):
		return unix.EINVAL
	case s.maps.overlaps(v.IOVA, last):
		return unix.EEXIST
	case len(s.devices) > 0 && !u.k.mayLock(u.k.pinned, v.Length):
		return unix.ENOMEM
	case !mapped(v.UserVA, v.Length):
		return unix.EFAULT
	}
	s.maps.add(Mapping{IOVA: v.IOVA, Size: v.Length, Addr: v.UserVA,
		Read: v.Flags&uapi.IOASMapReadable != 0, Write: v.Flags&uapi.IOASMapWriteable != 0})
	if len(s.devices) > 0 {
		u.k.pinned += v.Length
	}
	writeArg(arg, &v, size)
	return nil
}

// choose finds n free bytes that lie in a page as addr does.
func (s *ioas) choose(n, addr uint64) (uint64, bool) {
	page := max(s.alignment(), uint64(s.u.k.cfg.PageSize))
	for _, r := range s.ranges() {
		at := roundUp(max(r.First, page), page) + addr%page // none at address 0
		for {
			last := at + n - 1
			if at < r.First || last < at || last > r.Last {
				break
			}
			i := s.maps.from(at)
			if i == len(s.maps.maps) || s.maps.maps[i].IOVA > last {
				return at, true
			}
			next := roundUp(s.maps.maps[i].last()+1, page) + addr%page
			if next <= at {
				break // the top of all addresses is taken
			}
			at = next
		}
	}
	return 0, false
}

func (u *iommufd) unmapIOAS(arg []byte) error {
	const size = 24
	v, err := readArg[uapi.IOASUnmapArg](arg, size)
	if err != nil {
		return err
	}
	s, err := u.ioas(v.IOASID)
	if err != nil {
		return err
	}
	last := v.IOVA + v.Length - 1
	if v.IOVA == 0 && v.Length == unlimited {
		last = unlimited
	} else {
		switch {
		case v.IOVA == unlimited || v.Length == unlimited:
			return unix.EOVERFLOW
		case v.Length == 0:
			return unix.EINVAL
		case last < v.IOVA:
			return unix.EOVERFLOW
		case !s.maps.overlaps(v.IOVA, last) || s.maps.bisects(v.IOVA, last):
			return unix.ENOENT
		}
	}
	if n := u.k.short; n != nil {
		u.k.short = nil
		v.Length = *n
	} else {
		v.Length = s.maps.remove(v.IOVA, last)
		if len(s.devices) > 0 {
			u.k.pinned -= v.Length
		}
	}
	writeArg(arg, &v, size)
	return nil
}

func (u *iommufd) getPA(arg []byte) error {
	const size = 40
	v, err := readArg[uapi.IOASGetPA](arg, size)
	if err != nil {
		return err
	}
	switch {
	case !u.k.cfg.CapSysRawIO:
		return unix.EPERM
	case v.Flags != 0:
		return unix.EOPNOTSUPP
	case v.Length == 0:
		return unix.EINVAL
	}
	s, err := u.ioas(v.IOASID)
	if err != nil {
		return err
	}
	i := s.maps.from(v.IOVA)
	if i == len(s.maps.maps) || s.maps.maps[i].IOVA > v.IOVA {
		return unix.ENOENT
	}
	if !slices.ContainsFunc(s.devices, func(d *Device) bool { return d.group.noiommu }) {
		return unix.EOPNOTSUPP
	}
	v.OutPhys, v.Length = u.k.getPA(&s.maps.maps[i], v.IOVA, v.Length)
	writeArg(arg, &v, size)
	return nil
}

// bind serves VFIO_DEVICE_BIND_IOMMUFD.
func (f *deviceFile) bind(arg []byte) error {
	const least, whole = 16, 24
	v, err := readArg[uapi.BindIOMMUFD](arg, least)
	if err != nil {
		return err
	}
	d := f.d
	var token string
	switch {
	case v.Flags&^uapi.BindFlagToken != 0 || v.IOMMUFD < 0 || !f.cdev:
		return unix.EINVAL
	case v.Flags&uapi.BindFlagToken != 0:
		if v.Argsz < whole {
			return unix.EINVAL
		}
		b := make([]byte, 16)
		if err := copyIn(b, v.TokenUUIDPtr); err != nil {
			return err
		}
		token = tokenText(b)
	}
	if d.gone || !d.vfio() {
		return unix.ENODEV
	}
	if d.group.users > 0 {
		return unix.EBUSY
	}
	if f.granted {
		return unix.EINVAL
	}
	file, ok := d.k.fds[int(v.IOMMUFD)]
	if !ok {
		return unix.EBADF
	}
	u, ok := file.(*iommufd)
	switch {
	case !ok:
		return unix.EBADFD
	case d.opens > 0:
		return unix.EINVAL
	case !d.group.noiommu && !d.group.viable():
		return unix.EPERM
	case slices.ContainsFunc(d.group.devices, func(o *Device) bool { return o.iommufd != nil && o.iommufd != u }):
		return unix.EPERM
	}
	if err := d.checkToken(token); err != nil {
		return err
	}
	if err := d.wake(); err != nil {
		return err
	}
	f.granted = true
	d.group.cdevs++
	d.iommufd, d.id = u, u.alloc(d)
	u.bound = append(u.bound, d)
	d.open()
	v.OutDevID = d.id
	writeArg(arg, &v, least)
	return nil
}

// unbindIOMMUFD undoes bind and what followed it.
func (d *Device) unbindIOMMUFD() {
	d.leaveIOAS()
	u := d.iommufd
	delete(u.objects, d.id)
	u.bound = slices.DeleteFunc(u.bound, func(o *Device) bool { return o == d })
	d.iommufd, d.id = nil, 0
	u.forget()
}

func (d *Device) attach(arg []byte) error {
	const least = 12
	v, err := readArg[uapi.AttachPT](arg, least)
	if err != nil {
		return err
	}
	if v.Flags != 0 {
		return unix.EOPNOTSUPP // PASIDs are not modelled
	}
	u := d.iommufd
	var s *ioas
	switch o := u.objects[v.PTID].(type) {
	case *ioas:
		s = o
	case hwpt:
		s = o.s
	default:
		return unix.ENOENT
	}
	if old := d.space; old != s {
		if err := s.mayAttach(d); err != nil {
			return err
		}
		d.leaveIOAS()
		if len(s.devices) == 0 {
			u.k.pinned += s.maps.bytes
			s.hwpt = u.alloc(hwpt{s})
		}
		s.devices = append(s.devices, d)
		d.space = s
	}
	v.PTID = s.hwpt
	writeArg(arg, &v, least)
	return nil
}

// mayAttach checks what is mapped already against what comes with the device.
func (s *ioas) mayAttach(d *Device) error {
	if len(s.devices) == 0 && !s.u.k.mayLock(s.u.k.pinned, s.maps.bytes) {
		return unix.ENOMEM
	}
	if d.group.noiommu {
		return nil
	}
	for _, m := range s.maps.maps {
		if !within(s.u.k.cfg.IOVARanges, m.IOVA, m.last()) {
			return unix.EADDRINUSE
		}
	}
	return nil
}

func (d *Device) leaveIOAS() {
	s := d.space
	if s == nil {
		return
	}
	d.space = nil
	s.devices = slices.DeleteFunc(s.devices, func(o *Device) bool { return o == d })
	if len(s.devices) == 0 {
		s.u.k.pinned -= s.maps.bytes
		delete(s.u.objects, s.hwpt)
	}
}

func (d *Device) detach(arg []byte) error {
	v, err := readArg[uapi.DetachPT](arg, 8)
	if err != nil {
		return err
	}
	if v.Flags != 0 {
		return unix.EOPNOTSUPP
	}
	d.leaveIOAS()
	return nil
}
