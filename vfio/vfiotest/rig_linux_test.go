package vfiotest_test

import (
	"encoding/binary"
	"errors"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/gostmmac/gostmmac/vfio/internal/uapi"
	"github.com/gostmmac/gostmmac/vfio/vfiotest"
)

const (
	nicName = "0000:03:00.0"
	macName = "f0804000.ethernet"
	page    = 4096
)

// nic is a function with all that a test may want.
func nic() vfiotest.PCI {
	return vfiotest.PCI{
		BDF: nicName, Vendor: 0x1f0a, Device: 0x6801, Group: 7, Driver: "vfio-pci", Native: "dwmac-motorcomm",
		BARs: []vfiotest.Region{{Size: 0x4000, Mmap: true}, {}, {Size: 0x2000}},
		INTx: true, MSI: 4, MSIX: vfiotest.MSIX{Count: 8, BAR: 2, Table: 0x1000, PBA: 0x1800}, FLR: true,
	}
}

// mac is a platform device with a level and an edge interrupt.
func mac() vfiotest.Platform {
	return vfiotest.Platform{
		Name: macName, Compatible: []string{"snps,dwmac-5.20", "snps,dwmac"}, Group: 9, Driver: "vfio-platform",
		Regions: []vfiotest.Region{{Size: 0x2000, Mmap: true}}, RegNames: []string{"stmmaceth"},
		Interrupts: []vfiotest.Interrupt{{Level: true}, {}}, IRQNames: []string{"macirq", "eth_wake_irq"},
	}
}

// rig is a kernel and what a test does with it by hand.
type rig struct {
	*testing.T
	k *vfiotest.Kernel
}

func newRig(t *testing.T, cfg vfiotest.Config) *rig {
	t.Helper()
	k, err := vfiotest.New(t.TempDir(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(k.Free)
	return &rig{t, k}
}

func (r *rig) pci(p vfiotest.PCI) *vfiotest.Device {
	r.Helper()
	d, err := r.k.AddPCI(p)
	if err != nil {
		r.Fatal(err)
	}
	return d
}

func (r *rig) platform(p vfiotest.Platform) *vfiotest.Device {
	r.Helper()
	d, err := r.k.AddPlatform(p)
	if err != nil {
		r.Fatal(err)
	}
	return d
}

func (r *rig) open(name string) int {
	r.Helper()
	fd, err := r.k.Open(name)
	if err != nil {
		r.Fatalf("open %s: %v", name, err)
	}
	return fd
}

func (r *rig) close(fds ...int) {
	r.Helper()
	for _, fd := range fds {
		if err := r.k.Close(fd); err != nil {
			r.Fatalf("close: %v", err)
		}
	}
}

// ok fails the test for an error.
func (r *rig) ok(n int, err error) int {
	r.Helper()
	if err != nil {
		r.Fatal(err)
	}
	return n
}

// want fails the test for another error than want, which may be nil.
func (r *rig) want(err, want error) {
	r.Helper()
	if !errors.Is(err, want) {
		r.Errorf("got %v, want %v", err, want)
	}
}

// legacy is a device that was opened by its group.
type legacy struct{ container, group, device int }

func (r *rig) legacy(node, name string, typ int) legacy {
	r.Helper()
	l := legacy{container: r.open("dev/vfio/vfio"), group: r.open("dev/vfio/" + node)}
	r.ok(setContainer(r.k, l.group, l.container))
	r.ok(r.k.IoctlInt(l.container, uapi.SetIOMMU, typ))
	l.device = r.ok(deviceFD(r.k, l.group, name))
	return l
}

func (r *rig) legacyNIC() legacy { r.Helper(); return r.legacy("7", nicName, uapi.Type1v2IOMMU) }

// cdev is a device that was opened by its own node.
type cdev struct {
	iommufd, device int
	ioas            uint32
}

func (r *rig) cdev(node string) cdev {
	r.Helper()
	c := cdev{iommufd: r.open("dev/iommu"), device: r.open("dev/vfio/devices/" + node)}
	r.ok(call(r.k, c.device, uapi.DeviceBindIOMMUFD, &uapi.BindIOMMUFD{Argsz: 24, IOMMUFD: int32(c.iommufd)}))
	c.ioas = r.ioas(c.iommufd)
	r.ok(call(r.k, c.device, uapi.DeviceAttachPT, &uapi.AttachPT{Argsz: 16, PTID: c.ioas}))
	return c
}

func (r *rig) ioas(iommufd int) uint32 {
	r.Helper()
	a := uapi.IOASAllocArg{Size: 12}
	r.ok(call(r.k, iommufd, uapi.IOASAlloc, &a))
	return a.OutID
}

// call makes a request with a structure.
func call[T any](k *vfiotest.Kernel, fd int, req uint32, arg *T) (int, error) {
	return k.Ioctl(fd, req, uapi.Bytes(arg))
}

func setContainer(k *vfiotest.Kernel, group, container int) (int, error) {
	fd := int32(container)
	return call(k, group, uapi.GroupSetContainer, &fd)
}

func deviceFD(k *vfiotest.Kernel, group int, name string) (int, error) {
	return k.Ioctl(group, uapi.GroupGetDeviceFD, append([]byte(name), 0))
}

// setIRQs makes a SET_IRQS; data is numbers of 32 bits, or bytes.
func setIRQs(k *vfiotest.Kernel, fd int, flags, index, start, count uint32, data any) (int, error) {
	arg := make([]byte, 20)
	if data != nil {
		arg, _ = binary.Append(arg, binary.NativeEndian, data)
	}
	set := uapi.IRQSet{Argsz: uint32(len(arg)), Flags: flags, Index: index, Start: start, Count: count}
	copy(arg, uapi.Bytes(&set))
	return k.Ioctl(fd, uapi.DeviceSetIRQs, arg)
}

const (
	none    = uapi.IRQDataNone
	bools   = uapi.IRQDataBool
	efd     = uapi.IRQDataEventfd
	trigger = uapi.IRQActionTrigger
	mask    = uapi.IRQActionMask
	unmask  = uapi.IRQActionUnmask
)

// eventfd is a real one.
func (r *rig) eventfd() int32 {
	r.Helper()
	fd, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	if err != nil {
		r.Fatal(err)
	}
	r.Cleanup(func() { _ = unix.Close(fd) })
	return int32(fd)
}

// count is what was added to an eventfd since the last call.
func (r *rig) count(fd int32) uint64 {
	r.Helper()
	var b [8]byte
	switch _, err := unix.Read(int(fd), b[:]); err {
	case nil:
	case unix.EAGAIN:
		return 0
	default:
		r.Fatal(err)
	}
	return binary.NativeEndian.Uint64(b[:])
}

// memory maps pages of the process and returns them with their address.
func (r *rig) memory(pages int) ([]byte, uint64) {
	r.Helper()
	mem, err := unix.Mmap(-1, 0, pages*page, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS|unix.MAP_POPULATE)
	if err != nil {
		r.Fatal(err)
	}
	r.Cleanup(func() { _ = unix.Munmap(mem) })
	return mem, address(mem)
}

// command writes the command register.
func (r *rig) command(device int, v uint16) {
	r.Helper()
	r.ok(r.k.Pwrite(device, binary.LittleEndian.AppendUint16(nil, v), uapi.PCIConfig<<40+4))
}
