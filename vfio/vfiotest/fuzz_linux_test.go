package vfiotest_test

import (
	"encoding/binary"
	"sync"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/gostmmac/gostmmac/vfio/internal/uapi"
	"github.com/gostmmac/gostmmac/vfio/vfiotest"
)

// all is a kernel with a device of each kind, open in each way.
func all(t testing.TB) (*vfiotest.Kernel, []*vfiotest.Device, []int) {
	k, err := vfiotest.New(t.TempDir(), vfiotest.Config{NoIOMMU: true, CapSysRawIO: true, EntryLimit: 16})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(k.Free)
	var devices []*vfiotest.Device
	add := func(d *vfiotest.Device, err error) {
		if err != nil {
			t.Fatal(err)
		}
		devices = append(devices, d)
	}
	p := nic()
	add(k.AddPCI(p))
	p.BDF, p.Group, p.SRIOV = "0000:04:00.0", 8, true
	add(k.AddPCI(p))
	p.BDF, p.Group = "0000:05:00.0", -1
	add(k.AddPCI(p))
	add(k.AddPlatform(mac()))
	var fds []int
	for _, name := range []string{"dev/vfio/vfio", "dev/iommu", "dev/vfio/7", "dev/vfio/noiommu-0", "dev/vfio/9", "dev/vfio/devices/vfio1"} {
		fd, err := k.Open(name)
		if err != nil {
			t.Fatal(err)
		}
		fds = append(fds, fd)
	}
	c, u, g, platform, cdev := fds[0], fds[1], fds[2], fds[4], fds[5]
	for _, err := range []error{
		second(setContainer(k, g, c)), second(setContainer(k, platform, c)), second(k.IoctlInt(c, uapi.SetIOMMU, uapi.Type1v2IOMMU)),
		second(call(k, cdev, uapi.DeviceBindIOMMUFD, &uapi.BindIOMMUFD{Argsz: 16, IOMMUFD: int32(u)})),
		second(call(k, u, uapi.IOASAlloc, &uapi.IOASAllocArg{Size: 12})),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	for name, group := range map[string]int{nicName: g, macName: platform} {
		fd, err := deviceFD(k, group, name)
		if err != nil {
			t.Fatal(err)
		}
		fds = append(fds, fd)
	}
	return k, devices, fds
}

func second(_ int, err error) error { return err }

// requests are all that there are, and one that there is not.
var requests = []uint32{
	uapi.GetAPIVersion, uapi.CheckExtension, uapi.SetIOMMU, uapi.GroupGetStatus, uapi.GroupSetContainer, uapi.GroupUnsetContainer,
	uapi.GroupGetDeviceFD, uapi.DeviceGetInfo, uapi.DeviceGetRegionInfo, uapi.DeviceGetIRQInfo, uapi.DeviceSetIRQs, uapi.DeviceReset,
	uapi.DeviceGetHotResetInfo, uapi.DeviceHotReset, uapi.IOMMUUnmapDMA, uapi.DeviceFeature, uapi.DeviceBindIOMMUFD, uapi.DeviceAttachPT,
	uapi.DeviceDetachPT, uapi.IOMMUDestroy, uapi.IOASAlloc, uapi.IOASIOVARanges, uapi.IOASMap, uapi.IOASUnmap, uapi.IOASNoIOMMUGetPA, 0x3b7f,
}

// FuzzIoctl makes one request after the other, each of a byte for the descriptor, one
// for the request, one for the length and that many bytes; closes, opens, maps and
// hardware events are mixed in. Nothing may panic, and after all is closed nothing
// may be left.
func FuzzIoctl(f *testing.F) {
	arg := func(fd, req byte, b []byte) []byte { return append([]byte{fd, req, byte(len(b))}, b...) }
	f.Add(arg(6, 8, uapi.Bytes(&uapi.RegionInfo{Argsz: 32})))
	f.Add(arg(0, 13, uapi.Bytes(&uapi.Type1Map{Argsz: 32, Flags: 3, Vaddr: page, Size: page})))
	f.Add(arg(1, 22, uapi.Bytes(&uapi.IOASMapArg{Size: 40, Flags: 7, IOASID: 2, UserVA: page, Length: page})))
	f.Add(arg(6, 10, uapi.Bytes(&uapi.IRQSet{Argsz: 20, Flags: none | trigger, Count: 1})))
	f.Add(arg(1, 21, uapi.Bytes(&uapi.IOASRanges{Size: 32, IOASID: 2, NumIOVAs: 1 << 31, AllowedIOVAs: 64})))
	f.Add([]byte{6, 11, 0, 200, 1, 2, 201, 0, 0, 202, 3, 0, 203, 9, 9})
	f.Fuzz(fuzzOne)
}

func fuzzOne(t *testing.T, b []byte) {
	k, devices, fds := all(t)
	eventfd, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(eventfd)
	var maps [][]byte
	for len(b) >= 3 {
		who, what, n := b[0], b[1], int(b[2])
		b = b[3:]
		n = min(n, len(b))
		// A copy of exactly that size: what is written beyond it is found.
		arg := append(make([]byte, 0, n), b[:n]...)
		b = b[n:]
		fd, d := fds[int(who)%len(fds)], devices[int(what)%len(devices)]
		switch who {
		case 200:
			d.SetLine(int(what)-1, n%2 == 0)
			d.Fire(int(what)%7-1, n)
		case 201:
			_ = k.Close(fds[int(what)%len(fds)])
		case 202:
			if mem, err := k.Mmap(fds[int(what)%len(fds)], int64(n)<<38, 4096, n%2 == 0); err == nil {
				maps = append(maps, mem)
			}
		case 203:
			var p [8]byte
			off := int64(0)
			for i, v := range arg {
				off |= int64(v) << (8 * (i % 8))
			}
			_, _ = k.Pwrite(fds[int(what)%len(fds)], p[:], off)
			_, _ = k.Pread(fds[int(what)%len(fds)], p[:], off)
		case 204:
			if what%5 == 0 {
				if err := d.Unplug(); err != nil {
					t.Fatal(err)
				}
			}
		default:
			req := requests[int(what)%len(requests)]
			if req == uapi.DeviceSetIRQs && n >= 24 {
				binary.NativeEndian.PutUint32(arg[20:], uint32(eventfd))
			}
			got, err := k.Ioctl(fd, req, arg)
			if req == uapi.GroupGetDeviceFD && err == nil {
				fds = append(fds, got)
			}
			_, _ = k.IoctlInt(fd, req, int(int8(what)))
		}
	}
	for _, m := range maps {
		if err := k.Munmap(m); err != nil {
			t.Fatal(err)
		}
	}
	for _, fd := range fds {
		_ = k.Close(fd)
	}
	if k.OpenFDs() != 0 || k.OpenMaps() != 0 || len(k.Mappings()) != 0 {
		t.Fatalf("%d descriptors, %d maps, %v", k.OpenFDs(), k.OpenMaps(), k.Mappings())
	}
	for _, d := range devices {
		if d.IsOpen() {
			t.Fatalf("%s is open", d.Name())
		}
	}
}

// TestConcurrent does everything at once, for the race detector.
func TestConcurrent(t *testing.T) {
	k, devices, fds := all(t)
	eventfd, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(eventfd)
	nicFD := 0
	for _, fd := range fds[6:] {
		if v := (uapi.DeviceInfo{Argsz: 24}); second(call(k, fd, uapi.DeviceGetInfo, &v)) == nil && v.Flags&uapi.DeviceFlagPCI != 0 {
			nicFD = fd
		}
	}
	mem, err := unix.Mmap(-1, 0, page, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Munmap(mem)
	d := devices[0]
	var wg sync.WaitGroup
	for i, f := range []func(i int){
		func(int) {
			m := uapi.Type1Map{Argsz: 32, Flags: readWrite, Vaddr: address(mem), Size: page}
			_, _ = call(k, fds[0], uapi.IOMMUMapDMA, &m)
			u := uapi.Type1Unmap{Argsz: 24, Size: page}
			_, _ = call(k, fds[0], uapi.IOMMUUnmapDMA, &u)
		},
		func(i int) {
			var b [8]byte
			if i%2 == 0 {
				_ = d.Bus().Read(0, b[:])
			} else {
				_ = d.Bus().Write(8, b[:])
			}
		},
		func(i int) {
			_, _ = setIRQs(k, nicFD, efd|trigger, uapi.PCIINTx, 0, 1, []int32{int32(eventfd)})
			_, _ = setIRQs(k, nicFD, efd|unmask, uapi.PCIINTx, 0, 1, []int32{int32(eventfd)})
			_, _ = setIRQs(k, nicFD, none|trigger, uapi.PCIINTx, 0, 0, nil)
		},
		func(i int) { d.SetLine(0, i%2 == 0); d.Fire(uapi.PCIREQ, 0) },
		func(i int) { _, _ = k.Pwrite(nicFD, []byte{byte(i % 8), 0}, config+4); d.Command() },
		func(int) {
			if m, err := k.Mmap(nicFD, 0, page, false); err == nil {
				if err := k.Munmap(m); err != nil {
					t.Error(err)
				}
			}
		},
		func(int) {
			if fd, err := deviceFD(k, fds[2], nicName); err == nil {
				_ = k.Close(fd)
			}
		},
		func(int) { _ = k.WriteFile(pciDir+"/driver_override", "vfio-pci"); k.Mappings(); k.Calls() },
		func(i int) { k.FailNext("pread", unix.EIO); _, _ = k.Pread(nicFD, make([]byte, 4), int64(i)%64) },
	} {
		wg.Add(1)
		go func() {
			defer wg.Done()
			const rounds = 200
			for n := range rounds {
				f(n + i)
			}
		}()
	}
	wg.Wait()
}
