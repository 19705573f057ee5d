package vfiotest_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"runtime/debug"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/gostmmac/gostmmac/vfio/internal/uapi"
	"github.com/gostmmac/gostmmac/vfio/vfiotest"
)

const config = uapi.PCIConfig << 40

// regionInfo is REGION_INFO with a buffer of n bytes.
func regionInfo(r *rig, fd int, index uint32, n int) (uapi.RegionInfo, []byte, error) {
	r.Helper()
	v := uapi.RegionInfo{Argsz: uint32(n), Index: index}
	arg := make([]byte, n)
	copy(arg, uapi.Bytes(&v))
	_, err := r.k.Ioctl(fd, uapi.DeviceGetRegionInfo, arg)
	copy(uapi.Bytes(&v), arg)
	return v, arg, err
}

func TestRegionInfo(t *testing.T) {
	r := newRig(t, vfiotest.Config{})
	p := nic()
	p.ROM = 0x800
	p.BARs = append(p.BARs, vfiotest.Region{Size: 0x4000, MSIXMappable: true, Mmap: true,
		Sparse: []vfiotest.Area{{Offset: 0, Size: 0x2000}, {Offset: 0x3000, Size: 0x1000}}})
	r.pci(p)
	r.platform(mac())
	pci, plat := r.legacyNIC().device, r.legacy("9", macName, uapi.Type1v2IOMMU).device
	const rw = uapi.RegionFlagRead | uapi.RegionFlagWrite
	for _, c := range []struct {
		fd    int
		index uint32
		size  uint64
		flags uint32
		want  error
	}{
		{pci, 0, 0x4000, rw | uapi.RegionFlagMmap, nil},
		{pci, 1, 0, 0, nil},
		{pci, 2, 0x2000, rw, nil},
		{pci, 3, 0x4000, rw | uapi.RegionFlagMmap | uapi.RegionFlagCaps, nil},
		{pci, 5, 0, 0, nil},
		{pci, uapi.PCIROM, 0x800, uapi.RegionFlagRead, nil},
		{pci, uapi.PCIConfig, 4096, rw, nil},
		{pci, uapi.PCIVGA, 0, 0, unix.EINVAL},
		{pci, 9, 0, 0, unix.EINVAL},
		{pci, 1<<32 - 1, 0, 0, unix.EINVAL},
		{plat, 0, 0x2000, rw | uapi.RegionFlagMmap, nil},
		{plat, 1, 0, 0, unix.EINVAL},
	} {
		v, _, err := regionInfo(r, c.fd, c.index, 128)
		if err != c.want || err == nil && (v.Size != c.size || v.Flags != c.flags || v.Offset != uint64(c.index)<<40) {
			t.Errorf("descriptor %d, region %d: %+v %v", c.fd, c.index, v, err)
		}
	}
	if _, _, err := regionInfo(r, pci, 0, 31); err != unix.EINVAL {
		t.Errorf("31 bytes: %v", err)
	}
	v, _, err := regionInfo(r, pci, 3, 32)
	if err != nil || v.CapOffset != 0 || v.Argsz <= 32 || v.Flags&uapi.RegionFlagCaps == 0 {
		t.Fatalf("32 bytes: %+v %v", v, err)
	}
	v, arg, err := regionInfo(r, pci, 3, int(v.Argsz))
	if err != nil || v.CapOffset == 0 {
		t.Fatalf("as many as asked for: %+v %v", v, err)
	}
	all := caps(r, arg, v.CapOffset)
	if _, ok := all[uapi.RegionCapMSIXMappable]; !ok {
		t.Error("the capability of the MSI-X table is missing")
	}
	want := binary.NativeEndian.AppendUint32(nil, 2)
	for _, n := range []uint64{0, 0x2000, 0x3000, 0x1000} {
		if len(want) == 4 {
			want = append(want, 0, 0, 0, 0)
		}
		want = binary.NativeEndian.AppendUint64(want, n)
	}
	if got := all[uapi.RegionCapSparseMmap]; !bytes.HasPrefix(got, want) {
		t.Errorf("sparse areas: %x", got)
	}
}

func TestDeviceInfo(t *testing.T) {
	r := newRig(t, vfiotest.Config{})
	r.pci(nic())
	r.platform(mac())
	for _, c := range []struct {
		fd    int
		flags uint32
		n     [2]uint32
	}{
		{r.legacyNIC().device, uapi.DeviceFlagPCI | uapi.DeviceFlagReset, [2]uint32{9, 5}},
		{r.legacy("9", macName, uapi.Type1v2IOMMU).device, uapi.DeviceFlagPlatform, [2]uint32{1, 2}},
	} {
		for _, argsz := range []uint32{15, 16, 24} {
			v := uapi.DeviceInfo{Argsz: argsz}
			_, err := call(r.k, c.fd, uapi.DeviceGetInfo, &v)
			if argsz == 15 {
				r.want(err, unix.EINVAL)
			} else if err != nil || v.Flags != c.flags || [2]uint32{v.NumRegions, v.NumIRQs} != c.n {
				t.Errorf("%+v %v", v, err)
			}
		}
	}
}

func TestAccess(t *testing.T) {
	r := newRig(t, vfiotest.Config{})
	p := nic()
	p.ROM = 0x800
	d := r.pci(p)
	l := r.legacyNIC()
	for i := range d.Memory(0) {
		d.Memory(0)[i] = byte(i)
	}
	for _, c := range []struct {
		name  string
		write bool
		off   int64
		n     int
		got   int
		want  error
	}{
		{"start", false, 0, 4, 4, nil},
		{"odd", false, 1, 7, 7, nil},
		{"last", false, 0x3fff, 1, 1, nil},
		{"short", false, 0x3ffc, 8, 4, nil},
		{"nothing", false, 0, 0, 0, nil},
		{"behind", false, 0x4000, 1, -1, unix.EINVAL},
		{"no BAR", false, 1 << 40, 4, -1, unix.EINVAL},
		{"no region", false, 9 << 40, 4, -1, unix.EINVAL},
		{"negative", false, -4, 4, -1, unix.EINVAL},
		{"write", true, 0x100, 4, 4, nil},
		{"write short", true, 0x3ffe, 4, 2, nil},
		{"ROM", false, uapi.PCIROM << 40, 4, 4, nil},
		{"write ROM", true, uapi.PCIROM << 40, 4, -1, unix.EINVAL},
		{"config", false, config, 4096, 4096, nil},
		{"beyond config", false, config + 4094, 4, -1, unix.EFAULT},
		{"behind config", false, config + 4096, 1, -1, unix.EFAULT},
		{"write beyond config", true, config + 4094, 4, -1, unix.EFAULT},
	} {
		b := bytes.Repeat([]byte{0xa5}, c.n)
		do := r.k.Pread
		if c.write {
			do = r.k.Pwrite
		}
		n, err := do(l.device, b, c.off)
		if n != c.got || err != c.want {
			t.Errorf("%s: %d %v, want %d %v", c.name, n, err, c.got, c.want)
		}
		if err == nil && c.off < 0x4000 && !bytes.Equal(b[:n], d.Memory(0)[c.off:int(c.off)+n]) {
			t.Errorf("%s: %x, and memory %x", c.name, b[:n], d.Memory(0)[c.off:int(c.off)+n])
		}
	}
	r.command(l.device, 0)
	for _, do := range []func(int, []byte, int64) (int, error){r.k.Pread, r.k.Pwrite} {
		_, err := do(l.device, make([]byte, 4), 0)
		r.want(err, unix.EIO)
		_, err = do(l.group, make([]byte, 4), 0)
		r.want(err, unix.EINVAL)
		_, err = do(3, make([]byte, 4), 0)
		r.want(err, unix.EBADF)
	}
	// The table of MSI-X reads as ones and cannot be written.
	r.command(l.device, 2)
	b := make([]byte, 8)
	for off, want := range map[int64]byte{0xff8: 0, 0x1000: 0xff, 0x1078: 0xff, 0x1080: 0} {
		r.ok(r.k.Pwrite(l.device, []byte{7, 7, 7, 7, 7, 7, 7, 7}, 2<<40+off))
		if want == 0 {
			want = 7
		}
		r.ok(r.k.Pread(l.device, b, 2<<40+off))
		if !bytes.Equal(b, bytes.Repeat([]byte{want}, 8)) {
			t.Errorf("around the table of MSI-X, %#x: %x", off, b)
		}
	}
}

// TestHooks records how an access is split, and lets a hook use the device.
func TestHooks(t *testing.T) {
	r := newRig(t, vfiotest.Config{})
	var log []string
	p := nic()
	var d *vfiotest.Device
	p.BARs[0].Read = func(off uint64, b []byte) {
		log = append(log, fmt.Sprintf("r%x+%d", off, len(b)))
		for i := range b {
			b[i] = byte(off) + byte(i)
		}
	}
	p.BARs[0].Write = func(off uint64, b []byte) {
		log = append(log, fmt.Sprintf("w%x=%x", off, b))
		d.Fire(uapi.PCIMSI, 0)
	}
	d = r.pci(p)
	l := r.legacyNIC()
	r.command(l.device, 6)
	e := r.eventfd()
	r.ok(setIRQs(r.k, l.device, efd|trigger, uapi.PCIMSI, 0, 1, []int32{e}))
	b := make([]byte, 16)
	r.ok(r.k.Pread(l.device, b, 3))
	r.ok(r.k.Pwrite(l.device, []byte{1, 2, 3, 4}, 0x3ffe))
	if diff := cmp.Diff([]string{"r3+1", "r4+4", "r8+8", "r10+2", "r12+1", "w3ffe=0102"}, log); diff != "" {
		t.Error(diff)
	}
	if want := []byte{3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18}; !bytes.Equal(b, want) {
		t.Errorf("read %v", b)
	}
	if r.count(e) != 1 {
		t.Error("the hook's interrupt did not come")
	}
	if d.Memory(0)[3] != 0 || d.Memory(0)[0x3ffe] != 0 {
		t.Error("hooks reached the memory behind")
	}
}

func TestMmap(t *testing.T) {
	r := newRig(t, vfiotest.Config{})
	p := nic()
	p.BARs = append(p.BARs, vfiotest.Region{Size: 0x8000, Sparse: []vfiotest.Area{{Offset: 0x1000, Size: 0x2000}}},
		vfiotest.Region{Size: 0x1800, Mmap: true})
	d := r.pci(p)
	l := r.legacyNIC()
	for _, c := range []struct {
		name string
		fd   int
		off  int64
		n    int
		want error
	}{
		{"all", l.device, 0, 0x4000, nil},
		{"second page", l.device, 0x1000, 0x1000, nil},
		{"part of a page", l.device, 0x3000, 8, nil},
		{"beyond", l.device, 0x3000, 0x2000, unix.EINVAL},
		{"behind", l.device, 0x4000, 0x1000, unix.EINVAL},
		{"in a page", l.device, 0x800, 0x800, unix.EINVAL},
		{"nothing", l.device, 0, 0, unix.EINVAL},
		{"negative", l.device, -0x1000, 0x1000, unix.EINVAL},
		{"negative size", l.device, 0, -1, unix.EINVAL},
		{"no BAR", l.device, 1 << 40, 0x1000, unix.EINVAL},
		{"not mappable", l.device, 2 << 40, 0x1000, unix.EINVAL},
		{"config", l.device, config, 0x1000, unix.EINVAL},
		{"no region", l.device, 9 << 40, 0x1000, unix.EINVAL},
		{"sparse", l.device, 3<<40 + 0x1000, 0x2000, nil},
		{"part of sparse", l.device, 3<<40 + 0x2000, 0x1000, nil},
		{"hole", l.device, 3 << 40, 0x1000, unix.EINVAL},
		{"into the hole", l.device, 3<<40 + 0x2000, 0x2000, unix.EINVAL},
		{"half a page at the end", l.device, 4 << 40, 0x1800, nil},
		{"group", l.group, 0, 0x1000, unix.ENODEV},
		{"nothing open", 3, 0, 0x1000, unix.EBADF},
	} {
		for _, readonly := range []bool{false, true} {
			mem, err := r.k.Mmap(c.fd, c.off, c.n, readonly)
			if err != c.want {
				t.Errorf("%s, read only %v: %v, want %v", c.name, readonly, err, c.want)
			}
			if err != nil {
				continue
			}
			back := d.Memory(int(c.off >> 40))[c.off&(1<<40-1):]
			back[0] = 42
			if len(mem) != c.n || mem[0] != 42 {
				t.Errorf("%s: %d bytes, the first %d", c.name, len(mem), mem[0])
			}
			if !readonly {
				if mem[0] = 43; back[0] != 43 {
					t.Errorf("%s: the device does not see what was written", c.name)
				}
			}
			r.want(r.k.Munmap(mem), nil)
			r.want(r.k.Munmap(mem), unix.EINVAL)
		}
	}
	if d.Memory(-1) != nil || d.Memory(1) != nil || d.Memory(9) != nil || len(d.Memory(4)) != 0x1800 {
		t.Error("memory of regions")
	}
}

// read reads a byte and says whether that raised a signal.
func read(b *byte) (v byte, fault bool) {
	old := debug.SetPanicOnFault(true)
	defer debug.SetPanicOnFault(old)
	defer func() { fault = recover() != nil }()
	return *b, false
}

// TestSIGBUS walks through what takes the registers away from a mapping, and gives
// them back.
func TestSIGBUS(t *testing.T) {
	r := newRig(t, vfiotest.Config{})
	d := r.pci(nic())
	l := r.legacyNIC()
	feature := func(id uint32) func() {
		return func() {
			r.ok(call(r.k, l.device, uapi.DeviceFeature, &uapi.Feature{Argsz: 8, Flags: uapi.FeatureSet | id}))
		}
	}
	mem, err := r.k.Mmap(l.device, 0, 0x4000, false)
	if err != nil {
		t.Fatal(err)
	}
	mem[0x1000] = 9
	for _, s := range []struct {
		name string
		do   func()
		want bool
	}{
		{"open", func() {}, false},
		{"memory decoding off", func() { r.command(l.device, 4) }, true},
		{"on", func() { r.command(l.device, 2) }, false},
		{"low power", feature(uapi.FeatureLowPowerEntry), true},
		{"memory decoding off in low power", func() { r.command(l.device, 0) }, true},
		{"high power", feature(uapi.FeatureLowPowerExit), true},
		{"on again", func() { r.command(l.device, 2) }, false},
		{"descriptor closed", func() { r.close(l.device) }, false},
		{"unplugged", func() { r.ok(0, d.Unplug()) }, true},
	} {
		s.do()
		if v, fault := read(&mem[0x1000]); fault != s.want || !fault && v != 9 {
			t.Errorf("%s: faults %v, reads %d", s.name, fault, v)
		}
	}
	if d.Memory(0)[0x1000] != 9 {
		t.Error("the model lost its memory")
	}
	r.want(r.k.Munmap(mem), nil)
	if names := r.names("sys/bus/pci/devices"); len(names) > 0 {
		t.Errorf("left in sysfs: %v", names)
	}
}

// TestFakePages maps with pages of 64 KiB.
func TestFakePages(t *testing.T) {
	const big = 1 << 16
	r := newRig(t, vfiotest.Config{PageSize: big})
	p := nic()
	p.BARs[0].Size = 2 * big
	r.pci(p)
	l := r.legacyNIC()
	if r.k.PageSize() != big {
		t.Errorf("pages of %d bytes", r.k.PageSize())
	}
	for off, want := range map[int64]error{0: nil, big: nil, page: unix.EINVAL} {
		_, err := r.k.Mmap(l.device, off, page, false)
		r.want(err, want)
	}
	_, addr := r.memory(64)
	addr = (addr + big - 1) &^ (big - 1)
	for _, c := range []struct {
		iova, vaddr, size uint64
		want              error
	}{{page, addr, big, unix.EINVAL}, {0, addr + page, big, unix.EINVAL}, {0, addr, page, unix.EINVAL}, {0, addr, big, nil}} {
		_, err := call(r.k, l.container, uapi.IOMMUMapDMA, &uapi.Type1Map{Argsz: 32, Flags: readWrite, Vaddr: c.vaddr, IOVA: c.iova, Size: c.size})
		r.want(err, c.want)
	}
}
