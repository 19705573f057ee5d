package vfiotest_test

import (
	"fmt"
	"slices"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/gostmmac/gostmmac/vfio/internal/uapi"
	"github.com/gostmmac/gostmmac/vfio/vfiotest"
)

func TestViable(t *testing.T) {
	type neighbour struct {
		class  uint32
		driver string
	}
	for _, c := range []struct {
		name string
		with []neighbour
		want bool
	}{
		{"alone", nil, true},
		{"with VFIO", []neighbour{{0x020000, "vfio-pci"}}, true},
		{"without a driver", []neighbour{{0x020000, ""}}, true},
		{"with a kernel driver", []neighbour{{0x020000, "igc"}}, false},
		{"bridge", []neighbour{{0x060400, "pcieport"}}, true},
		{"bridge with another driver", []neighbour{{0x060400, "shpchp"}}, false},
		{"no bridge", []neighbour{{0x060100, "pcieport"}}, false},
		{"one of three", []neighbour{{0x060400, "pcieport"}, {0x020000, "igc"}, {0x020000, ""}}, false},
	} {
		r := newRig(t, vfiotest.Config{})
		r.pci(nic())
		for i, n := range c.with {
			r.pci(vfiotest.PCI{BDF: fmt.Sprintf("0000:03:01.%d", i), Class: n.class, Driver: n.driver, Group: 7})
		}
		g := r.open("dev/vfio/7")
		s := uapi.GroupStatus{Argsz: 8}
		r.ok(call(r.k, g, uapi.GroupGetStatus, &s))
		if got := s.Flags == uapi.GroupViable; got != c.want {
			t.Errorf("%s: flags %#x", c.name, s.Flags)
		}
		var want error
		if !c.want {
			want = unix.EPERM
		}
		if _, err := setContainer(r.k, g, r.open("dev/vfio/vfio")); err != want {
			t.Errorf("%s: SET_CONTAINER: %v, want %v", c.name, err, want)
		}
		u := r.open("dev/iommu")
		r.close(g)
		d := r.open("dev/vfio/devices/vfio0")
		if _, err := call(r.k, d, uapi.DeviceBindIOMMUFD, &uapi.BindIOMMUFD{Argsz: 16, IOMMUFD: int32(u)}); err != want {
			t.Errorf("%s: BIND_IOMMUFD: %v, want %v", c.name, err, want)
		}
	}
}

func TestGroupErrors(t *testing.T) {
	r := newRig(t, vfiotest.Config{})
	r.pci(nic())
	other := nic()
	other.BDF, other.Driver = "0000:05:00.0", "dwmac-motorcomm"
	other.Group = 8
	r.pci(other)
	for name, want := range map[string]error{
		"dev/vfio/8": unix.ENOENT, "dev/vfio/noiommu-7": unix.ENOENT, "dev/null": unix.ENOENT,
		"sys/bus/pci/drivers_probe": unix.ENOENT, "dev/vfio": unix.ENXIO, "/dev/vfio/vfio": unix.ENOENT, "dev/../dev/iommu": unix.ENOENT,
	} {
		if _, err := r.k.Open(name); err != want {
			t.Errorf("open %s: %v, want %v", name, err, want)
		}
	}
	l := r.legacyNIC()
	_, err := r.k.Open("dev/vfio/7")
	r.want(err, unix.EBUSY)
	for _, c := range []struct {
		name string
		req  uint32
		arg  []byte
		want error
	}{
		{"status of 7 bytes", uapi.GroupGetStatus, uapi.Bytes(&uapi.GroupStatus{Argsz: 7}), unix.EINVAL},
		{"no status", uapi.GroupGetStatus, nil, unix.EFAULT},
		{"no descriptor", uapi.GroupSetContainer, nil, unix.EFAULT},
		{"unknown", 0x3b7f, nil, unix.ENOTTY},
		{"device's request", uapi.DeviceReset, nil, unix.ENOTTY},
		{"no device", uapi.GroupGetDeviceFD, []byte("0000:05:00.0\x00"), unix.ENODEV},
		{"no end", uapi.GroupGetDeviceFD, []byte(nicName), unix.EFAULT},
		{"token", uapi.GroupGetDeviceFD, []byte(nicName + " vf_token=2ab74924-c335-45f4-9b16-8569e5b08258\x00"), unix.EINVAL},
		{"option", uapi.GroupGetDeviceFD, []byte(nicName + " fast\x00"), unix.EINVAL},
	} {
		if _, err := r.k.Ioctl(l.group, c.req, c.arg); err != c.want {
			t.Errorf("%s: %v, want %v", c.name, err, c.want)
		}
	}
	for _, fd := range []int{-1, 0, 1 << 20 >> 1, 1 << 30} {
		if _, err := r.k.IoctlInt(fd, uapi.DeviceReset, 0); err != unix.EBADF {
			t.Errorf("descriptor %d: %v", fd, err)
		}
		if err := r.k.Close(fd); err != unix.EBADF {
			t.Errorf("close %d: %v", fd, err)
		}
	}
}

func TestToken(t *testing.T) {
	const uuid, wrong = "2ab74924-c335-45f4-9b16-8569e5b08258", "2ab74924-c335-45f4-9b16-8569e5b08259"
	vf := nic()
	vf.Token = uuid
	pf := nic()
	pf.SRIOV = true
	for _, c := range []struct {
		name    string
		p       vfiotest.PCI
		options string
		want    error
	}{
		{"right", vf, " vf_token=" + uuid, nil},
		{"wrong", vf, " vf_token=" + wrong, unix.EACCES},
		{"missing", vf, "", unix.EACCES},
		{"malformed", vf, " vf_token=" + uuid[1:], unix.EINVAL},
		{"twice", vf, " vf_token=" + uuid + " vf_token=" + uuid, unix.EINVAL},
		{"physical function", pf, " vf_token=" + uuid, nil},
		{"physical function without", pf, "", nil},
		{"neither", nic(), " vf_token=" + uuid, unix.EINVAL},
	} {
		r := newRig(t, vfiotest.Config{})
		r.pci(c.p)
		g, k := r.open("dev/vfio/7"), r.open("dev/vfio/vfio")
		r.ok(setContainer(r.k, g, k))
		r.ok(r.k.IoctlInt(k, uapi.SetIOMMU, uapi.Type1v2IOMMU))
		if _, err := deviceFD(r.k, g, nicName+c.options); err != c.want {
			t.Errorf("%s: %v, want %v", c.name, err, c.want)
		}
	}
}

// TestCloseOrder closes container, group, two descriptors of the device and a mapping
// in every order. The group is free when all but the container are closed, and the
// mappings of memory are gone then.
func TestCloseOrder(t *testing.T) {
	r := newRig(t, vfiotest.Config{})
	d := r.pci(nic())
	_, addr := r.memory(1)
	order := []int{0, 1, 2, 3, 4}
	for permute(order, func() {
		l := r.legacyNIC()
		second := r.ok(deviceFD(r.k, l.group, nicName))
		bar, err := r.k.Mmap(l.device, 0, 0x4000, false)
		if err != nil {
			t.Fatal(err)
		}
		r.mapDMA(l.container, 0, addr, page, readWrite)
		closers := []func(){
			func() { r.close(l.container) }, func() { r.close(l.group) }, func() { r.close(l.device) },
			func() { r.close(second) }, func() { r.ok(0, r.k.Munmap(bar)) },
		}
		held := map[int]bool{1: true, 2: true, 3: true, 4: true}
		for _, i := range order {
			closers[i]()
			delete(held, i)
			if fd, err := r.k.Open("dev/vfio/7"); (err == nil) != (len(held) == 0) {
				t.Fatalf("order %v, after %d: open: %v", order, i, err)
			} else if err == nil {
				r.close(fd)
			}
			open := held[2] || held[3] || held[4]
			if d.IsOpen() != open {
				t.Fatalf("order %v, after %d: device open: %v", order, i, d.IsOpen())
			}
			if n := len(r.k.Mappings()); (n == 1) != (len(held) > 0) {
				t.Fatalf("order %v, after %d: %d mappings", order, i, n)
			}
		}
		if r.k.OpenFDs() != 0 || r.k.OpenMaps() != 0 {
			t.Fatalf("order %v: %d descriptors, %d maps", order, r.k.OpenFDs(), r.k.OpenMaps())
		}
	}) {
	}
}

// permute calls f and moves on to the next permutation, until there is none.
func permute(p []int, f func()) bool {
	f()
	i := len(p) - 2
	for i >= 0 && p[i] > p[i+1] {
		i--
	}
	if i < 0 {
		return false
	}
	j := len(p) - 1
	for p[j] < p[i] {
		j--
	}
	p[i], p[j] = p[j], p[i]
	slices.Reverse(p[i+1:])
	return true
}
