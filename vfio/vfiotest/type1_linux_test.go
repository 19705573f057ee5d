package vfiotest_test

import (
	"encoding/binary"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/gostmmac/gostmmac/vfio/internal/uapi"
	"github.com/gostmmac/gostmmac/vfio/vfiotest"
)

// TestContainerOrder makes the requests of a container out of their order.
func TestContainerOrder(t *testing.T) {
	r := newRig(t, vfiotest.Config{NoIOMMU: true, CapSysRawIO: true})
	r.pci(nic())
	loose := nic()
	loose.BDF, loose.Group = "0000:04:00.0", -1
	r.pci(loose) // gets group 0, without an IOMMU
	c, g := r.open("dev/vfio/vfio"), r.open("dev/vfio/7")
	_, addr := r.memory(1)
	mapOne := func() error {
		_, err := call(r.k, c, uapi.IOMMUMapDMA, &uapi.Type1Map{Argsz: 32, Flags: readWrite, Vaddr: addr, IOVA: 0, Size: page})
		return err
	}
	setIOMMU := func(typ int) error { _, err := r.k.IoctlInt(c, uapi.SetIOMMU, typ); return err }
	extension := func(want int, ext ...int) {
		t.Helper()
		for _, e := range ext {
			if got, err := r.k.IoctlInt(c, uapi.CheckExtension, e); err != nil || got != want {
				t.Errorf("extension %d: %d %v, want %d", e, got, err, want)
			}
		}
	}
	if v, err := r.k.IoctlInt(c, uapi.GetAPIVersion, 0); err != nil || v != uapi.APIVersion {
		t.Errorf("version %d %v", v, err)
	}
	extension(1, uapi.Type1IOMMU, uapi.Type1v2IOMMU, uapi.NoIOMMU)
	extension(0, 0, 2, 7, -1)
	r.want(setIOMMU(uapi.Type1v2IOMMU), unix.EINVAL)
	r.want(mapOne(), unix.EINVAL)
	_, err := deviceFD(r.k, g, nicName)
	r.want(err, unix.EINVAL)
	_, err = r.k.IoctlInt(g, uapi.GroupUnsetContainer, 0)
	r.want(err, unix.EINVAL)

	_, err = setContainer(r.k, g, 3)
	r.want(err, unix.EBADF)
	_, err = setContainer(r.k, g, g)
	r.want(err, unix.EBADFD)
	r.ok(setContainer(r.k, g, c))
	_, err = setContainer(r.k, g, c)
	r.want(err, unix.EINVAL)
	extension(0, uapi.NoIOMMU)
	r.want(mapOne(), unix.EINVAL)
	_, err = deviceFD(r.k, g, nicName)
	r.want(err, unix.EINVAL)
	for _, typ := range []int{uapi.NoIOMMU, 0, 2, 6, -1} {
		r.want(setIOMMU(typ), unix.ENODEV)
	}
	r.want(setIOMMU(uapi.Type1v2IOMMU), nil)
	r.want(setIOMMU(uapi.Type1v2IOMMU), unix.EINVAL)
	r.want(mapOne(), nil)
	_, err = r.k.IoctlInt(c, 0x3b7f, 0)
	r.want(err, unix.ENOTTY)
	noiommu := r.open("dev/vfio/noiommu-0")
	_, err = setContainer(r.k, noiommu, c)
	r.want(err, unix.EPERM)

	d := r.ok(deviceFD(r.k, g, nicName))
	_, err = r.k.IoctlInt(g, uapi.GroupUnsetContainer, 0)
	r.want(err, unix.EBUSY)
	r.close(d)
	r.ok(r.k.IoctlInt(g, uapi.GroupUnsetContainer, 0))
	if m := r.k.Mappings(); len(m) > 0 {
		t.Errorf("mappings outlive the last group: %+v", m)
	}
	r.want(mapOne(), unix.EINVAL)
}

func TestMapDMA(t *testing.T) {
	const limit = 8
	r := newRig(t, vfiotest.Config{EntryLimit: limit, Memlock: 6 * page, IOVARanges: []vfiotest.Range{{0, 0xffff}, {0x20000, 1<<64 - 1}}})
	r.pci(nic())
	l := r.legacyNIC()
	_, addr := r.memory(8)
	hole, _ := unix.Mmap(-1, 0, page, unix.PROT_READ, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
	gone := address(hole)
	if err := unix.Munmap(hole); err != nil {
		t.Fatal(err)
	}
	r.mapDMA(l.container, 0x4000, addr, 2*page, readWrite)
	for _, c := range []struct {
		name             string
		argsz, flags     uint32
		vaddr, iova, len uint64
		want             error
	}{
		{"argsz", 31, readWrite, addr, 0x8000, page, unix.EINVAL},
		{"argsz beyond", 33, readWrite, addr, 0x8000, page, unix.EFAULT},
		{"no flags", 32, 0, addr, 0x8000, page, unix.EINVAL},
		{"unknown flag", 32, 8 | readWrite, addr, 0x8000, page, unix.EINVAL},
		{"no size", 32, readWrite, addr, 0x8000, 0, unix.EINVAL},
		{"size of half a page", 32, readWrite, addr, 0x8000, page / 2, unix.EINVAL},
		{"address in a page", 32, readWrite, addr + 8, 0x8000, page, unix.EINVAL},
		{"iova in a page", 32, readWrite, addr, 0x8008, page, unix.EINVAL},
		{"iova wraps", 32, readWrite, addr, 1<<64 - page, 2 * page, unix.EINVAL},
		{"address wraps", 32, readWrite, 1<<64 - page, 0x8000, 2 * page, unix.EINVAL},
		{"the same", 32, readWrite, addr, 0x4000, 2 * page, unix.EEXIST},
		{"first page", 32, readWrite, addr, 0x4000, page, unix.EEXIST},
		{"last page", 32, readWrite, addr, 0x5000, page, unix.EEXIST},
		{"around", 32, readWrite, addr, 0x3000, 4 * page, unix.EEXIST},
		{"between ranges", 32, readWrite, addr, 0x10000, page, unix.EINVAL},
		{"across the end of a range", 32, readWrite, addr, 0xf000, 2 * page, unix.EINVAL},
		{"too much", 32, readWrite, addr, 0x8000, 5 * page, unix.ENOMEM},
		{"no memory", 32, readWrite, gone, 0x8000, page, unix.EFAULT},
		{"right below", 32, uapi.MapRead, addr, 0x3000, page, nil},
		{"right above", 32, uapi.MapWrite, addr, 0x6000, page, nil},
		{"last page of all", 32, readWrite, addr, 1<<64 - page, page, nil},
		{"the rest of the limit", 32, readWrite, addr, 0, page, nil},
		{"one more", 32, readWrite, addr, 0x9000, page, unix.ENOMEM},
	} {
		_, err := call(r.k, l.container, uapi.IOMMUMapDMA,
			&uapi.Type1Map{Argsz: c.argsz, Flags: c.flags, Vaddr: c.vaddr, IOVA: c.iova, Size: c.len})
		if err != c.want {
			t.Errorf("%s: %v, want %v", c.name, err, c.want)
		}
	}
	want := []vfiotest.Mapping{
		{Space: "container 1", IOVA: 0, Size: page, Addr: addr, Read: true, Write: true},
		{Space: "container 1", IOVA: 0x3000, Size: page, Addr: addr, Read: true},
		{Space: "container 1", IOVA: 0x4000, Size: 2 * page, Addr: addr, Read: true, Write: true},
		{Space: "container 1", IOVA: 0x6000, Size: page, Addr: addr, Write: true},
		{Space: "container 1", IOVA: 1<<64 - page, Size: page, Addr: addr, Read: true, Write: true},
	}
	if diff := cmp.Diff(want, r.k.Mappings()); diff != "" {
		t.Error(diff)
	}
}

func TestEntryLimit(t *testing.T) {
	const limit = 3
	r := newRig(t, vfiotest.Config{EntryLimit: limit})
	r.pci(nic())
	l := r.legacyNIC()
	_, addr := r.memory(1)
	for i := range uint64(limit) {
		if left := avail(r, l.container); left != limit-uint32(i) {
			t.Errorf("%d entries left of %d after %d", left, limit, i)
		}
		r.mapDMA(l.container, i*page, addr, page, readWrite)
	}
	_, err := call(r.k, l.container, uapi.IOMMUMapDMA, &uapi.Type1Map{Argsz: 32, Flags: readWrite, Vaddr: addr, IOVA: limit * page, Size: page})
	r.want(err, unix.ENOSPC)
}

func TestUnmapDMA(t *testing.T) {
	for _, c := range []struct {
		name       string
		typ        int
		argsz      uint32
		flags      uint32
		iova, size uint64
		want       error
		unmapped   uint64
	}{
		{"argsz", 3, 23, 0, 0x4000, page, unix.EINVAL, 0},
		{"unknown flag", 3, 24, 4, 0x4000, page, unix.EINVAL, 0},
		{"no size", 3, 24, 0, 0x4000, 0, unix.EINVAL, 0},
		{"half a page", 3, 24, 0, 0x4000, 8, unix.EINVAL, 0},
		{"in a page", 3, 24, 0, 0x4008, page, unix.EINVAL, 0},
		{"wraps", 3, 24, 0, 1<<64 - page, 2 * page, unix.EINVAL, 0},
		{"nothing there", 3, 24, 0, 0x1000, page, nil, 0},
		{"first half", 3, 24, 0, 0x4000, page, unix.EINVAL, 0},
		{"second half", 3, 24, 0, 0x5000, page, unix.EINVAL, 0},
		{"one and a half", 3, 24, 0, 0x4000, 3 * page, unix.EINVAL, 0},
		{"second half in version 1", 1, 24, 0, 0x5000, page, nil, 0},
		{"first half in version 1", 1, 24, 0, 0x4000, page, nil, 2 * page},
		{"a mapping", 3, 24, 0, 0x4000, 2 * page, nil, 2 * page},
		{"both and more", 3, 24, 0, 0, 16 * page, nil, 4 * page},
		{"all", 3, 24, 2, 0, 0, nil, 4 * page},
		{"all with an address", 3, 24, 2, page, 0, unix.EINVAL, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRig(t, vfiotest.Config{})
			r.pci(nic())
			l := r.legacy("7", nicName, c.typ)
			_, addr := r.memory(2)
			r.mapDMA(l.container, 0x4000, addr, 2*page, readWrite)
			r.mapDMA(l.container, 0x6000, addr, 2*page, readWrite)
			u := uapi.Type1Unmap{Argsz: c.argsz, Flags: c.flags, IOVA: c.iova, Size: c.size}
			_, err := call(r.k, l.container, uapi.IOMMUUnmapDMA, &u)
			r.want(err, c.want)
			if err == nil && u.Size != c.unmapped {
				t.Errorf("%#x bytes unmapped, want %#x", u.Size, c.unmapped)
			}
			left := uint64(0)
			for _, m := range r.k.Mappings() {
				left += m.Size
			}
			if left != 4*page-c.unmapped {
				t.Errorf("%#x bytes are mapped", left)
			}
		})
	}
}

// TestShortUnmap lets an unmapping lie.
func TestShortUnmap(t *testing.T) {
	r := newRig(t, vfiotest.Config{})
	r.pci(nic())
	l := r.legacyNIC()
	_, addr := r.memory(1)
	r.mapDMA(l.container, 0, addr, page, readWrite)
	r.k.ShortUnmap(0)
	for i, want := range []uint64{0, page} {
		u := uapi.Type1Unmap{Argsz: 24, Size: page}
		r.ok(call(r.k, l.container, uapi.IOMMUUnmapDMA, &u))
		if u.Size != want || len(r.k.Mappings()) != 1-i {
			t.Errorf("unmapping %d: size %d, %d mappings left", i, u.Size, len(r.k.Mappings()))
		}
	}
}

// info is IOMMU_GET_INFO with a buffer of n bytes.
func info(r *rig, container, n int) (uapi.Type1Info, []byte, error) {
	r.Helper()
	arg := make([]byte, n)
	binary.NativeEndian.PutUint32(arg, uint32(n))
	_, err := r.k.Ioctl(container, uapi.IOMMUGetInfo, arg)
	var v uapi.Type1Info
	copy(uapi.Bytes(&v), arg)
	return v, arg, err
}

// caps reads a chain of capabilities: the bytes behind each header by its id.
func caps(r *rig, arg []byte, at uint32) map[uint16][]byte {
	r.Helper()
	all := map[uint16][]byte{}
	for at != 0 {
		if int(at)+8 > len(arg) || len(all) > 9 {
			r.Fatalf("a capability at %d of %d bytes", at, len(arg))
		}
		var h uapi.CapHeader
		copy(uapi.Bytes(&h), arg[at:])
		all[h.ID] = arg[at+8:]
		at = h.Next
	}
	return all
}

func avail(r *rig, container int) uint32 {
	r.Helper()
	v, arg, err := info(r, container, 512)
	if err != nil {
		r.Fatal(err)
	}
	return binary.NativeEndian.Uint32(caps(r, arg, v.CapOffset)[uapi.Type1CapDMAAvail])
}

func TestIOMMUInfo(t *testing.T) {
	ranges := []vfiotest.Range{{0, 0xfedfffff}, {0xfef00000, 1<<39 - 1}}
	for _, c := range []struct {
		name  string
		cfg   vfiotest.Config
		sizes uint64
	}{
		{"default", vfiotest.Config{}, 1<<12 | 1<<21 | 1<<30},
		{"pages of 64 KiB", vfiotest.Config{PageSize: 1 << 16, IOVARanges: ranges}, 1<<16 | 1<<21 | 1<<30},
		{"of both", vfiotest.Config{PageSize: 1 << 14, IOMMUPageSizes: 1 << 16, IOVARanges: ranges}, 1 << 16},
	} {
		r := newRig(t, c.cfg)
		r.pci(nic())
		l := r.legacyNIC()
		if _, _, err := info(r, l.container, 15); err != unix.EINVAL {
			t.Errorf("%s: 15 bytes: %v", c.name, err)
		}
		var need int
		for _, n := range []int{16, 24, 64} {
			v, _, err := info(r, l.container, n)
			if err != nil || v.PageSizes != c.sizes || v.Flags != uapi.Type1InfoPageSizes|uapi.Type1InfoCaps || v.CapOffset != 0 || int(v.Argsz) <= n {
				t.Errorf("%s: %d bytes: %+v %v", c.name, n, v, err)
			}
			need = int(v.Argsz)
		}
		v, arg, err := info(r, l.container, need)
		if err != nil || v.CapOffset == 0 || int(v.Argsz) != need {
			t.Fatalf("%s: %d bytes as asked for: %+v %v", c.name, need, v, err)
		}
		b := caps(r, arg, v.CapOffset)[uapi.Type1CapIOVARange]
		if n := binary.NativeEndian.Uint32(b); int(n) != len(ranges) {
			t.Fatalf("%s: %d ranges", c.name, n)
		}
		for i, want := range ranges {
			at := 8 + 16*i
			got := vfiotest.Range{First: binary.NativeEndian.Uint64(b[at:]), Last: binary.NativeEndian.Uint64(b[at+8:])}
			if got != want {
				t.Errorf("%s: range %d: %#x, want %#x", c.name, i, got, want)
			}
		}
	}
}
