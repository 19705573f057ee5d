package vfiotest_test

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/gostmmac/gostmmac/vfio/internal/uapi"
	"github.com/gostmmac/gostmmac/vfio/vfiotest"
)

// bare is a function without an IOMMU.
func bare() vfiotest.PCI {
	p := nic()
	p.Group = -1
	return p
}

func TestNoIOMMU(t *testing.T) {
	r := newRig(t, vfiotest.Config{NoIOMMU: true, CapSysRawIO: true})
	d := r.pci(bare())
	if b, err := fs.ReadFile(r.k.FS(), "sys/kernel/iommu_groups/0/name"); err != nil || string(b) != "vfio-noiommu\n" {
		t.Errorf("name of the group: %q %v", b, err)
	}
	l := r.legacy("noiommu-0", nicName, uapi.NoIOMMU)
	r.command(l.device, 6)
	_, addr := r.memory(3)
	for _, req := range []uint32{uapi.IOMMUMapDMA, uapi.IOMMUUnmapDMA, uapi.IOMMUGetInfo} {
		arg := make([]byte, 32)
		arg[0] = 32
		_, err := r.k.Ioctl(l.container, req, arg)
		r.want(err, unix.ENOTTY)
	}
	frame := r.frames(addr, 3)
	if frame[0]>>63 != 1 || frame[1] != frame[0]+1 || frame[2] != frame[0]+2 {
		t.Fatalf("memory that is together has entries %x", frame)
	}
	pa := frame[0] & (1<<55 - 1) * page
	if got, err := d.DMA(pa+8, 2*page); err != nil || address(got) != addr+8 {
		t.Errorf("DMA: %v", err)
	}
	for _, bad := range []uint64{pa - 1, pa + 3*page, 0} {
		if _, err := d.DMA(bad, 1); !errors.As(err, new(*vfiotest.DMAFault)) {
			t.Errorf("DMA at %#x, which nobody asked for: %v", bad, err)
		}
	}
	r.k.Migrate(uintptr(addr) + page)
	if _, err := d.DMA(pa+page, 1); err == nil {
		t.Error("DMA at an address that the page moved away from")
	}
	now := r.frames(addr, 3)
	if now[0] != frame[0] || now[1] == frame[1] || now[2] != frame[2] {
		t.Errorf("the second page of three moved: %x, was %x", now, frame)
	}
	if got, err := d.DMA(now[1]&(1<<55-1)*page, 1); err != nil || address(got) != addr+page {
		t.Errorf("DMA at the new address: %v", err)
	}
}

// frames reads entries of pagemap.
func (r *rig) frames(addr uint64, n int) []uint64 {
	r.Helper()
	f, err := r.k.FS().Open("proc/self/pagemap")
	if err != nil {
		r.Fatal(err)
	}
	defer f.Close()
	b := make([]byte, 8*n)
	if _, err := f.(io.ReaderAt).ReadAt(b, int64(addr/uint64(r.k.PageSize())*8)); err != nil {
		r.Fatal(err)
	}
	v := make([]uint64, n)
	for i := range v {
		v[i] = binary.NativeEndian.Uint64(b[8*i:])
	}
	return v
}

func TestPagemap(t *testing.T) {
	for _, c := range []struct {
		name  string
		cfg   vfiotest.Config
		check func(f []uint64) bool
	}{
		{"readable", vfiotest.Config{}, func(f []uint64) bool { return f[0]>>63 == 1 && f[0]<<9 != 0 && f[1] == f[0]+1 }},
		{"hidden", vfiotest.Config{Pagemap: vfiotest.PagemapHidden}, func(f []uint64) bool { return f[0] == 1<<63 && f[1] == f[0] }},
		{"scattered", vfiotest.Config{Scatter: true}, func(f []uint64) bool { return f[0]>>63 == 1 && f[1] != f[0]+1 }},
		{"low", vfiotest.Config{PhysBase: 1 << 30}, func(f []uint64) bool { return f[0]&(1<<55-1)*page>>30 == 1 }},
	} {
		r := newRig(t, c.cfg)
		_, addr := r.memory(2)
		if f := r.frames(addr, 2); !c.check(f) {
			t.Errorf("%s: %x", c.name, f)
		}
	}
	r := newRig(t, vfiotest.Config{Pagemap: vfiotest.PagemapAbsent})
	if _, err := r.k.FS().Open("proc/self/pagemap"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("absent: %v", err)
	}
	r = newRig(t, vfiotest.Config{})
	if f := r.frames(page, 1); f[0] != 0 {
		t.Errorf("a page that is not mapped: %x", f)
	}
	f, err := r.k.FS().Open("proc/self/pagemap")
	if err != nil {
		t.Fatal(err)
	}
	for _, bad := range []struct {
		n   int
		off int64
	}{{7, 0}, {8, 4}, {8, -8}} {
		if _, err := f.(io.ReaderAt).ReadAt(make([]byte, bad.n), bad.off); err != unix.EINVAL {
			t.Errorf("%d bytes at %d: %v", bad.n, bad.off, err)
		}
	}
}

func TestHugeMemory(t *testing.T) {
	const huge = 2 << 20
	r := newRig(t, vfiotest.Config{Scatter: true, HugePages: 3})
	mem, err := r.k.HugeMemory(2 * huge)
	if err != nil {
		t.Fatal(err)
	}
	addr := address(mem)
	if addr%huge != 0 || len(mem) != 2*huge {
		t.Fatalf("%d bytes at %#x", len(mem), addr)
	}
	mem[0], mem[len(mem)-1] = 1, 2
	f := r.frames(addr, 2*huge/page)
	for i := range f {
		if together := i > 0 && f[i] == f[i-1]+1; together != (i%(huge/page) != 0) {
			t.Fatalf("page %d: frame %x after %x", i, f[i], f[max(i-1, 0)])
		}
	}
	if f[0]*page%huge != 0 {
		t.Errorf("the first lies at %#x", f[0]*page)
	}
	if _, small := r.memory(1); pageSize(r, addr) != 2048 || pageSize(r, addr+huge+8) != 2048 || pageSize(r, small) != 4 {
		t.Errorf("pages of %d, %d and %d kB", pageSize(r, addr), pageSize(r, addr+huge+8), pageSize(r, small))
	}
	for n, want := range map[int]error{2 * huge: unix.ENOMEM, page: unix.EINVAL, 0: unix.EINVAL, -huge: unix.EINVAL} {
		if _, err := r.k.HugeMemory(n); err != want {
			t.Errorf("%d bytes: %v, want %v", n, err, want)
		}
	}
	r.want(r.k.Munmap(mem[:huge]), unix.EINVAL)
	r.want(r.k.Munmap(mem), nil)
	r.want(r.k.Munmap(nil), unix.EINVAL)
	if f := r.frames(addr, 1); f[0] != 0 {
		t.Errorf("memory that was unmapped has frame %x", f)
	}
	if _, err = r.k.HugeMemory(3 * huge); err != nil {
		t.Errorf("all again: %v", err)
	}
}

// pageSize is what smaps says of an address, in kB.
func pageSize(r *rig, addr uint64) (kib int) {
	r.Helper()
	b, err := fs.ReadFile(r.k.FS(), "proc/self/smaps")
	if err != nil {
		r.Fatal(err)
	}
	inside := false
	for line := range strings.Lines(string(b)) {
		var lo, hi uint64
		if n, _ := fmt.Sscanf(line, "%x-%x ", &lo, &hi); n == 2 {
			inside = lo <= addr && addr < hi
		} else if n, _ := fmt.Sscanf(line, "KernelPageSize: %d kB", &kib); n == 1 && inside {
			return kib
		}
	}
	r.Fatalf("nothing at %#x", addr)
	return 0
}

// TestNoIOMMURights opens what only CAP_SYS_RAWIO may.
func TestNoIOMMURights(t *testing.T) {
	r := newRig(t, vfiotest.Config{NoIOMMU: true})
	r.pci(bare())
	for _, node := range []string{"dev/vfio/noiommu-0", "dev/vfio/devices/noiommu-vfio0"} {
		if _, err := r.k.Open(node); err != unix.EPERM {
			t.Errorf("open %s: %v", node, err)
		}
	}
	r = newRig(t, vfiotest.Config{CapSysRawIO: true})
	if _, err := r.k.AddPCI(bare()); !errors.Is(err, unix.EINVAL) {
		t.Errorf("a VFIO driver without noiommu mode: %v", err)
	}
	p := bare()
	p.Driver = ""
	d := r.pci(p)
	r.want(r.k.WriteFile("sys/bus/pci/devices/"+nicName+"/driver_override", "vfio-pci\n"), nil)
	r.want(r.k.WriteFile("sys/bus/pci/drivers_probe", nicName), unix.EINVAL)
	r.want(r.k.WriteFile("sys/bus/pci/drivers/vfio-pci/bind", nicName), unix.EINVAL)
	r.want(r.k.WriteFile("sys/module/vfio/parameters/enable_unsafe_noiommu_mode", "maybe"), unix.EINVAL)
	r.want(r.k.WriteFile("sys/module/vfio/parameters/enable_unsafe_noiommu_mode", "1"), nil)
	r.want(r.k.WriteFile("sys/bus/pci/drivers_probe", nicName), nil)
	if d.Driver() != "vfio-pci" {
		t.Errorf("with %q", d.Driver())
	}
	r.want(r.k.WriteFile("sys/bus/pci/drivers/vfio-pci/unbind", nicName), nil)
	if names := r.names("sys/kernel/iommu_groups"); len(names) > 0 {
		t.Errorf("groups are left: %v", names)
	}
	if names := r.names("dev/vfio"); slices.ContainsFunc(names, func(n string) bool { return strings.HasPrefix(n, "noiommu") }) {
		t.Errorf("nodes are left: %v", names)
	}
}

// TestGetPA asks an IOAS of a function without an IOMMU for physical addresses: in
// the whole mapping, from a page on, and where pages are scattered.
func TestGetPA(t *testing.T) {
	for _, scatter := range []bool{false, true} {
		r := newRig(t, vfiotest.Config{NoIOMMU: true, CapSysRawIO: true, Scatter: scatter})
		d := r.pci(bare())
		c := r.cdev("noiommu-vfio0")
		r.command(c.device, 6)
		_, addr := r.memory(3)
		r.want(r.mapIOAS(c.iommufd, c.ioas, 0x10000, addr, 3*page), nil)
		for _, x := range []struct {
			iova, most uint64
			want       error
			together   uint64 // unless scattered, when it is at most to the end of the page
		}{
			{0x10000, 1 << 40, nil, 3 * page},
			{0x10008, 1 << 40, nil, 3*page - 8},
			{0x11000, 2 * page, nil, 2 * page},
			{0x10000, page + 1, nil, page + 1},
			{0x12fff, 2, nil, 1},
			{0x10000, 0, unix.EINVAL, 0},
			{0x13000, 1, unix.ENOENT, 0},
			{0xffff, 1, unix.ENOENT, 0},
		} {
			v := uapi.IOASGetPA{Size: 40, IOASID: c.ioas, IOVA: x.iova, Length: x.most}
			_, err := call(r.k, c.iommufd, uapi.IOASNoIOMMUGetPA, &v)
			want := x.together
			if scatter {
				want = min(want, page-x.iova%page)
			}
			if err != x.want || err == nil && v.Length != want {
				t.Errorf("scatter %v: %#x, at most %d: %d bytes %v, want %d %v", scatter, x.iova, x.most, v.Length, err, want, x.want)
			}
			if err != nil {
				continue
			}
			if got, err := d.DMA(v.OutPhys, int(v.Length)); err != nil || address(got) != addr+x.iova-0x10000 {
				t.Errorf("scatter %v: DMA at %#x: %v", scatter, v.OutPhys, err)
			}
		}
		v := uapi.IOASGetPA{Size: 40, IOASID: c.ioas, IOVA: 0x10000, Length: 1}
		r.ok(call(r.k, c.iommufd, uapi.IOASNoIOMMUGetPA, &v))
		u := uapi.IOASUnmapArg{Size: 24, IOASID: c.ioas, IOVA: 0x10000, Length: 3 * page}
		r.ok(call(r.k, c.iommufd, uapi.IOASUnmap, &u))
		if _, err := d.DMA(v.OutPhys, 1); err == nil {
			t.Errorf("scatter %v: DMA to memory that was unmapped", scatter)
		}
		empty := r.ioas(c.iommufd)
		_, err := call(r.k, c.iommufd, uapi.IOASNoIOMMUGetPA, &uapi.IOASGetPA{Size: 40, IOASID: empty, Length: 1})
		r.want(err, unix.ENOENT)
		_, err = call(r.k, c.iommufd, uapi.IOASNoIOMMUGetPA, &uapi.IOASGetPA{Size: 40, IOASID: c.ioas, Flags: 1})
		r.want(err, unix.EOPNOTSUPP)
	}
	for _, c := range []struct {
		rawIO bool
		want  error
	}{{true, unix.EOPNOTSUPP}, {false, unix.EPERM}} {
		r := newRig(t, vfiotest.Config{CapSysRawIO: c.rawIO})
		r.pci(nic())
		dev := r.cdev("vfio0")
		r.command(dev.device, 6)
		_, addr := r.memory(1)
		r.want(r.mapIOAS(dev.iommufd, dev.ioas, 0x10000, addr, page), nil)
		_, err := call(r.k, dev.iommufd, uapi.IOASNoIOMMUGetPA, &uapi.IOASGetPA{Size: 40, IOASID: dev.ioas, IOVA: 0x10000, Length: page})
		r.want(err, c.want)
	}
}

func (r *rig) names(dir string) (all []string) {
	r.Helper()
	entries, err := fs.ReadDir(r.k.FS(), dir)
	if err != nil {
		r.Fatal(err)
	}
	for _, e := range entries {
		all = append(all, e.Name())
	}
	return all
}
