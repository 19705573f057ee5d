package vfiotest_test

import (
	"bytes"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/gostmmac/gostmmac/vfio/internal/uapi"
	"github.com/gostmmac/gostmmac/vfio/vfiotest"
)

func (r *rig) bind(device, iommufd int) error {
	_, err := call(r.k, device, uapi.DeviceBindIOMMUFD, &uapi.BindIOMMUFD{Argsz: 16, IOMMUFD: int32(iommufd)})
	return err
}

func (r *rig) attach(device int, ioas uint32) error {
	_, err := call(r.k, device, uapi.DeviceAttachPT, &uapi.AttachPT{Argsz: 12, PTID: ioas})
	return err
}

func (r *rig) detach(device int) error {
	_, err := call(r.k, device, uapi.DeviceDetachPT, &uapi.DetachPT{Argsz: 8})
	return err
}

func (r *rig) destroy(iommufd int, id uint32) error {
	_, err := call(r.k, iommufd, uapi.IOMMUDestroy, &uapi.Destroy{Size: 8, ID: id})
	return err
}

func (r *rig) mapIOAS(iommufd int, ioas uint32, iova, addr, n uint64) error {
	_, err := call(r.k, iommufd, uapi.IOASMap, &uapi.IOASMapArg{Size: 40, IOASID: ioas, IOVA: iova, UserVA: addr, Length: n,
		Flags: uapi.IOASMapFixedIOVA | uapi.IOASMapReadable | uapi.IOASMapWriteable})
	return err
}

// TestBindOrder makes the requests of a device node out of their order.
func TestBindOrder(t *testing.T) {
	r := newRig(t, vfiotest.Config{})
	d := r.pci(nic())
	sibling := nic()
	sibling.BDF = "0000:03:00.1"
	r.pci(sibling)
	u, dev := r.open("dev/iommu"), r.open("dev/vfio/devices/vfio0")
	for name, req := range map[string]uint32{
		"info": uapi.DeviceGetInfo, "region info": uapi.DeviceGetRegionInfo, "interrupt info": uapi.DeviceGetIRQInfo,
		"set interrupts": uapi.DeviceSetIRQs, "reset": uapi.DeviceReset, "feature": uapi.DeviceFeature,
		"attach": uapi.DeviceAttachPT, "detach": uapi.DeviceDetachPT, "hot reset": uapi.DeviceHotReset, "unknown": 0x3b7f,
	} {
		arg := make([]byte, 64)
		arg[0] = 64
		if _, err := r.k.Ioctl(dev, req, arg); err != unix.EINVAL {
			t.Errorf("%s before bind: %v", name, err)
		}
	}
	_, err := r.k.Pread(dev, make([]byte, 4), uapi.PCIConfig<<40)
	r.want(err, unix.EINVAL)
	_, err = r.k.Mmap(dev, 0, 0x4000, false)
	r.want(err, unix.EINVAL)

	r.want(r.bind(dev, 3), unix.EBADF)
	r.want(r.bind(dev, -1), unix.EINVAL)
	r.want(r.bind(dev, dev), unix.EBADFD)
	g := r.open("dev/vfio/7")
	r.want(r.bind(dev, u), unix.EBUSY)
	r.close(g)
	r.want(r.bind(dev, u), nil)
	r.want(r.bind(dev, u), unix.EINVAL)
	if d.Resets() != 1 {
		t.Errorf("%d resets by bind", d.Resets())
	}
	_, err = r.k.Open("dev/vfio/7")
	r.want(err, unix.EBUSY)
	second := r.open("dev/vfio/devices/vfio0")
	r.want(r.bind(second, u), unix.EINVAL)
	r.close(second)
	other, u2 := r.open("dev/vfio/devices/vfio1"), r.open("dev/iommu")
	r.want(r.bind(other, u2), unix.EPERM) // the group belongs to u
	r.want(r.bind(other, u), nil)

	_, err = d.DMA(0, 1)
	if err == nil {
		t.Error("DMA without an IOAS")
	}
	r.want(r.attach(dev, 99), unix.ENOENT)
	s := r.ioas(u)
	r.want(r.destroy(u, 99), unix.ENOENT)
	a := uapi.AttachPT{Argsz: 12, PTID: s}
	r.ok(call(r.k, dev, uapi.DeviceAttachPT, &a))
	if a.PTID == s {
		t.Error("attaching did not return the page table")
	}
	r.want(r.attach(other, a.PTID), nil) // the same one
	r.want(r.destroy(u, s), unix.EBUSY)
	r.want(r.destroy(u, a.PTID), unix.EBUSY)
	r.want(r.detach(dev), nil)
	r.want(r.detach(dev), nil)
	r.want(r.destroy(u, s), unix.EBUSY)
	r.close(other) // closing detaches
	r.want(r.destroy(u, s), nil)
	r.want(r.destroy(u, s), unix.ENOENT)
	_, err = call(r.k, dev, uapi.DeviceAttachPT, &uapi.AttachPT{Argsz: 16, Flags: 1, PTID: s})
	r.want(err, unix.EOPNOTSUPP)
	r.close(dev, u, u2)
	r.open("dev/vfio/7")
}

// TestGroupHasNoBind says that bind and attach are for the device's own node.
func TestGroupHasNoBind(t *testing.T) {
	r := newRig(t, vfiotest.Config{})
	r.pci(nic())
	l := r.legacyNIC()
	r.want(r.bind(l.device, r.open("dev/iommu")), unix.EINVAL)
	r.want(r.attach(l.device, 1), unix.ENOTTY)
	r.want(r.detach(l.device), unix.ENOTTY)
}

func TestBindToken(t *testing.T) {
	r := newRig(t, vfiotest.Config{})
	p := nic()
	p.Token = "2ab74924-c335-45f4-9b16-8569e5b08258"
	r.pci(p)
	u, dev := r.open("dev/iommu"), r.open("dev/vfio/devices/vfio0")
	r.want(r.bind(dev, u), unix.EACCES)
	mem, addr := r.memory(1)
	copy(mem, "\x2a\xb7\x49\x24\xc3\x35\x45\xf4\x9b\x16\x85\x69\xe5\xb0\x82\x59")
	for _, c := range []struct {
		argsz uint32
		addr  uint64
		last  byte
		want  error
	}{
		{16, addr, 0x58, unix.EINVAL}, {24, 8, 0x58, unix.EFAULT}, {24, addr, 0x59, unix.EACCES}, {24, addr, 0x58, nil},
	} {
		mem[15] = c.last
		_, err := call(r.k, dev, uapi.DeviceBindIOMMUFD,
			&uapi.BindIOMMUFD{Argsz: c.argsz, Flags: uapi.BindFlagToken, IOMMUFD: int32(u), TokenUUIDPtr: c.addr})
		r.want(err, c.want)
	}
}

func TestMapIOAS(t *testing.T) {
	r := newRig(t, vfiotest.Config{Memlock: 5 * page})
	d := r.pci(nic())
	c := r.cdev("vfio0")
	r.command(c.device, 6)
	mem, addr := r.memory(4)
	r.want(r.mapIOAS(c.iommufd, c.ioas, 0x4000, addr, 2*page), nil)
	const rw = uapi.IOASMapReadable | uapi.IOASMapWriteable
	const fixed = uapi.IOASMapFixedIOVA
	for _, x := range []struct {
		name             string
		size, flags      uint32
		ioas             uint32
		vaddr, iova, len uint64
		want             error
	}{
		{"size", 39, fixed | rw, c.ioas, addr, 0x8000, page, unix.EINVAL},
		{"unknown flag", 40, 8 | fixed | rw, c.ioas, addr, 0x8000, page, unix.EOPNOTSUPP},
		{"no access", 40, fixed, c.ioas, addr, 0x8000, page, unix.EINVAL},
		{"no such IOAS", 40, fixed | rw, 99, addr, 0x8000, page, unix.ENOENT},
		{"no length", 40, fixed | rw, c.ioas, addr, 0x8000, 0, unix.EINVAL},
		{"in a page", 40, fixed | rw, c.ioas, addr + 8, 0x8008, page, unix.EINVAL},
		{"half a page", 40, fixed | rw, c.ioas, addr, 0x8000, page / 2, unix.EINVAL},
		{"other place in a page", 40, fixed | rw, c.ioas, addr + 8, 0x8000, page, unix.EINVAL},
		{"wraps", 40, fixed | rw, c.ioas, addr, 1<<64 - page, 2 * page, unix.EOVERFLOW},
		{"where interrupts go", 40, fixed | rw, c.ioas, addr, 0xfee00000, page, unix.EINVAL},
		{"beyond 39 bits", 40, fixed | rw, c.ioas, addr, 1 << 39, page, unix.EINVAL},
		{"overlap", 40, fixed | rw, c.ioas, addr, 0x5000, page, unix.EEXIST},
		{"too much", 40, fixed | rw, c.ioas, addr, 0x8000, 4 * page, unix.ENOMEM},
		{"no memory", 40, fixed | rw, c.ioas, page, 0x8000, page, unix.EFAULT},
		{"beside", 40, fixed | rw, c.ioas, addr + 2*page, 0x6000, page, nil},
	} {
		_, err := call(r.k, c.iommufd, uapi.IOASMap, &uapi.IOASMapArg{Size: x.size, Flags: x.flags, IOASID: x.ioas, IOVA: x.iova, UserVA: x.vaddr, Length: x.len})
		if err != x.want {
			t.Errorf("%s: %v, want %v", x.name, err, x.want)
		}
	}
	if got, err := d.DMA(0x4000, 3*page); err != nil || address(got) != addr {
		t.Errorf("DMA: %v", err)
	}
	chosen := uapi.IOASMapArg{Size: 40, Flags: rw, IOASID: c.ioas, UserVA: addr + 3*page, Length: page}
	r.ok(call(r.k, c.iommufd, uapi.IOASMap, &chosen))
	mem[3*page] = 77
	var b [1]byte
	if err := d.Bus().Read(chosen.IOVA, b[:]); err != nil || b[0] != 77 || chosen.IOVA == 0 {
		t.Errorf("memory at an address that the kernel chose, %#x: %d %v", chosen.IOVA, b[0], err)
	}
	// The descriptor may go first: the device keeps what is mapped.
	r.close(c.iommufd)
	if err := d.Bus().Read(chosen.IOVA, b[:]); err != nil {
		t.Error(err)
	}
	r.close(c.device)
	if m := r.k.Mappings(); len(m) > 0 {
		t.Errorf("mappings outlive the iommufd: %+v", m)
	}
}

func TestUnmapIOAS(t *testing.T) {
	for _, x := range []struct {
		name     string
		size     uint32
		iova, n  uint64
		want     error
		unmapped uint64
	}{
		{"size", 23, 0x4000, page, unix.EINVAL, 0},
		{"nothing there", 24, 0x1000, page, unix.ENOENT, 0},
		{"no length", 24, 0x4000, 0, unix.EINVAL, 0},
		{"first half", 24, 0x4000, page, unix.ENOENT, 0},
		{"second half", 24, 0x5000, page, unix.ENOENT, 0},
		{"wraps", 24, 1<<64 - page, 2 * page, unix.EOVERFLOW, 0},
		{"one", 24, 0x4000, 2 * page, nil, 2 * page},
		{"both and more", 24, 0, 16 * page, nil, 4 * page},
		{"all", 24, 0, 1<<64 - 1, nil, 4 * page},
	} {
		t.Run(x.name, func(t *testing.T) {
			r := newRig(t, vfiotest.Config{Memlock: 4 * page})
			r.pci(nic())
			c := r.cdev("vfio0")
			_, addr := r.memory(2)
			r.want(r.mapIOAS(c.iommufd, c.ioas, 0x4000, addr, 2*page), nil)
			r.want(r.mapIOAS(c.iommufd, c.ioas, 0x6000, addr, 2*page), nil)
			v := uapi.IOASUnmapArg{Size: x.size, IOASID: c.ioas, IOVA: x.iova, Length: x.n}
			_, err := call(r.k, c.iommufd, uapi.IOASUnmap, &v)
			r.want(err, x.want)
			if err == nil && v.Length != x.unmapped {
				t.Errorf("%#x bytes unmapped, want %#x", v.Length, x.unmapped)
			}
			// What was unmapped may be locked again.
			for at := uint64(0); at < 4*page; at += page {
				var want error
				if at >= x.unmapped {
					want = unix.ENOMEM
				}
				r.want(r.mapIOAS(c.iommufd, c.ioas, 0x100000+at, addr, page), want)
			}
		})
	}
}

// TestAttach holds what an IOAS without a device does not know, and what comes with
// the first: the ranges, the alignment and the charge for memory.
func TestAttach(t *testing.T) {
	r := newRig(t, vfiotest.Config{Memlock: 2 * page})
	r.pci(nic())
	u, dev := r.open("dev/iommu"), r.open("dev/vfio/devices/vfio0")
	r.want(r.bind(dev, u), nil)
	_, addr := r.memory(4)
	low, high, much := r.ioas(u), r.ioas(u), r.ioas(u)
	r.want(r.mapIOAS(u, low, 0, addr, 2*page), nil)
	r.want(r.mapIOAS(u, high, 0xfee00000, addr, page), nil)
	r.want(r.mapIOAS(u, much, 0, addr, 3*page), nil)
	r.want(r.attach(dev, high), unix.EADDRINUSE)
	r.want(r.attach(dev, much), unix.ENOMEM)
	all := []uapi.IOVARange{{Start: 0, Last: 1<<64 - 1}}
	narrow := []uapi.IOVARange{{Start: 0, Last: 0xfedfffff}, {Start: 0xfef00000, Last: 1<<39 - 1}}
	for i, x := range []struct {
		do    func() error
		want  []uapi.IOVARange
		align uint64
	}{
		{func() error { return nil }, all, 1},
		{func() error { return r.attach(dev, low) }, narrow, page},
		{func() error { return r.detach(dev) }, all, 1},
	} {
		r.want(x.do(), nil)
		mem, at := r.memory(1)
		v := uapi.IOASRanges{Size: 32, IOASID: low, AllowedIOVAs: at}
		if _, err := call(r.k, u, uapi.IOASIOVARanges, &v); err != unix.EMSGSIZE || v.NumIOVAs != uint32(len(x.want)) {
			t.Errorf("step %d: no room: %d %v", i, v.NumIOVAs, err)
		}
		v.NumIOVAs = 5
		r.ok(call(r.k, u, uapi.IOASIOVARanges, &v))
		got := make([]uapi.IOVARange, v.NumIOVAs)
		for i := range got {
			copy(uapi.Bytes(&got[i]), mem[16*i:])
		}
		if diff := cmp.Diff(x.want, got); diff != "" || v.OutIOVAAlignment != x.align {
			t.Errorf("step %d: alignment %d, ranges %s", i, v.OutIOVAAlignment, diff)
		}
		if !bytes.Equal(mem[16*len(got):16*len(got)+16], make([]byte, 16)) {
			t.Errorf("step %d: more was written than there is", i)
		}
	}
	r.want(func() error {
		_, err := call(r.k, u, uapi.IOASIOVARanges, &uapi.IOASRanges{Size: 32, IOASID: low, NumIOVAs: 1, AllowedIOVAs: 8})
		return err
	}(), unix.EFAULT)
	_, err := call(r.k, u, uapi.IOASAlloc, &uapi.IOASAllocArg{Size: 12, Flags: 1})
	r.want(err, unix.EOPNOTSUPP)
	_, err = r.k.IoctlInt(u, 0x3b82, 0)
	r.want(err, unix.ENOTTY)
}

// TestMoveIOAS attaches a device to another IOAS without detaching it first.
func TestMoveIOAS(t *testing.T) {
	r := newRig(t, vfiotest.Config{Memlock: 2 * page})
	d := r.pci(nic())
	c := r.cdev("vfio0")
	r.command(c.device, 6)
	_, addr := r.memory(2)
	r.want(r.mapIOAS(c.iommufd, c.ioas, 0, addr, page), nil)
	other := r.ioas(c.iommufd)
	r.want(r.mapIOAS(c.iommufd, other, 0, addr+page, page), nil)
	r.want(r.attach(c.device, other), nil)
	if got, err := d.DMA(0, 1); err != nil || address(got) != addr+page {
		t.Errorf("DMA in the second: %v", err)
	}
	r.want(r.destroy(c.iommufd, c.ioas), nil)
	// The first is not charged any more.
	r.want(r.mapIOAS(c.iommufd, other, page, addr, page), nil)
	r.want(r.mapIOAS(c.iommufd, other, 2*page, addr, page), unix.ENOMEM)
}

// TestChoose lets the kernel choose addresses: it goes around what is mapped, keeps
// the place in a page, and gives up when no range is left.
func TestChoose(t *testing.T) {
	r := newRig(t, vfiotest.Config{IOVARanges: []vfiotest.Range{{0, 3*page - 1}, {0x10000, 0x11fff}}})
	r.pci(nic())
	c := r.cdev("vfio0")
	_, addr := r.memory(2)
	r.want(r.mapIOAS(c.iommufd, c.ioas, page, addr, page), nil)
	choose := func(ioas uint32, vaddr, n uint64) (uint64, error) {
		v := uapi.IOASMapArg{Size: 40, Flags: uapi.IOASMapReadable, IOASID: ioas, UserVA: vaddr, Length: n}
		_, err := call(r.k, c.iommufd, uapi.IOASMap, &v)
		return v.IOVA, err
	}
	for _, want := range []uint64{2 * page, 0x10000, 0x11000} {
		if got, err := choose(c.ioas, addr, page); err != nil || got != want {
			t.Errorf("%#x %v, want %#x", got, err, want)
		}
	}
	_, err := choose(c.ioas, addr, page)
	r.want(err, unix.ENOSPC)
	_, err = choose(c.ioas, addr, 1<<63)
	r.want(err, unix.ENOSPC)
	// Without a device, bytes may be mapped up to the end of all addresses.
	free := r.ioas(c.iommufd)
	if got, err := choose(free, addr+8, 16); err != nil || got%page != 8 {
		t.Errorf("%#x %v", got, err)
	}
	r.want(r.mapIOAS(c.iommufd, free, 2*page, addr, page), nil)
	r.want(r.mapIOAS(c.iommufd, free, 1<<64-page, addr, page), nil)
	if got, err := choose(free, addr, page); err != nil || got != 3*page {
		t.Errorf("%#x %v", got, err)
	}
	_, err = choose(free, addr, 1<<64-page)
	r.want(err, unix.EOVERFLOW)
	r.want(r.destroy(c.iommufd, free), nil)
}
