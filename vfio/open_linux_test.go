package vfio_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/gostmmac/gostmmac/vfio"
	"github.com/gostmmac/gostmmac/vfio/vfiotest"
)

// bounds reads the first two fields of a line of smaps.
func bounds(line string) (lo, hi uintptr, ok bool) {
	first, _, _ := strings.Cut(line, " ")
	a, b, found := strings.Cut(first, "-")
	if !found {
		return 0, 0, false
	}
	l, err1 := strconv.ParseUint(a, 16, 64)
	h, err2 := strconv.ParseUint(b, 16, 64)
	return uintptr(l), uintptr(h), err1 == nil && err2 == nil
}

var backends = map[string]vfio.Backend{"group": vfio.Group, "iommufd": vfio.IOMMUFD}

// TestOpen drives a device of each bus by each backend through everything that a
// driver does: registers, memory, and giving it back.
func TestOpen(t *testing.T) {
	for name, backend := range backends {
		for _, bus := range []vfio.Bus{vfio.PCI, vfio.Platform} {
			t.Run(fmt.Sprint(name, "/", bus), func(t *testing.T) {
				k := newKernel(t, vfiotest.Config{})
				var hw *vfiotest.Device
				if bus == vfio.PCI {
					hw = addPCI(t, k, card("0000:03:00.0", 14))
				} else {
					hw = addPlatform(t, k, board("f0804000.ethernet", 3))
				}
				d := open(t, k, hw.Name(), vfio.WithBackend(backend))
				if b, why := d.Domain().Backend(); b != backend || why != "it was asked for" {
					t.Errorf("backend %v because %q", b, why)
				}
				if d.Info().Bus != bus || d.WasReset() != (bus == vfio.PCI) {
					t.Errorf("%+v, reset %v", d.Info(), d.WasReset())
				}
				r, err := d.Region(0)
				if err != nil {
					t.Fatal(err)
				}
				r.Store32(0x1004, 0x12345678)
				if got := hw.Memory(0)[0x1004:0x1008]; string(got) != "\x78\x56\x34\x12" || r.Load32(0x1004) != 0x12345678 {
					t.Errorf("the device has % x, and reads as %#x", got, r.Load32(0x1004))
				}
				mem := memory(t, 16*kib)
				iova, err := d.MapDMA(mem)
				if err != nil {
					t.Fatal(err)
				}
				if iova == 0 || iova >= 1<<32 {
					t.Errorf("bus address %#x", iova)
				}
				if err := hw.Bus().Write(iova+5, []byte("packet")); err != nil {
					t.Error(err)
				}
				if got := string(mem[5:11]); got != "packet" {
					t.Errorf("the device wrote %q", got)
				}
				if !d.Coherent() || !d.PinsDMA() || d.MaxContiguousDMA() != 0 {
					t.Error("behind an IOMMU memory is not coherent, pinned and whole")
				}
				if _, _, err := d.AllocDMA(4096, 64); !errors.Is(err, errors.ErrUnsupported) {
					t.Errorf("AllocDMA: %v", err)
				}
				if !strings.Contains(vmFlags(t, mem), " dc ") {
					t.Errorf("a child of fork would share the memory: VmFlags%s", vmFlags(t, mem))
				}
				must(t, d.UnmapDMA(iova, len(mem)))
				if err := hw.Bus().Write(iova, []byte("late")); err == nil {
					t.Error("the device reaches memory that was unmapped")
				}
				must(t, d.Close())
				must(t, d.Close())
				if r.Load32(0x1004) != ^uint32(0) {
					t.Error("a closed device does not read as all ones")
				}
				r.Store32(0x1004, 1)
				_, err = d.MapDMA(mem)
				mustFail(t, err, vfio.ErrClosed)
				_, err = d.Region(0)
				mustFail(t, err, vfio.ErrClosed)
				_, err = d.Interrupt(0)
				mustFail(t, err, vfio.ErrClosed)
				mustFail(t, d.Reset(t.Context()), vfio.ErrClosed)
				if n := d.NumInterrupts(); n != 0 {
					t.Errorf("a closed device has %d interrupts", n)
				}
			})
		}
	}
}

// TestAuto chooses how to reach a device, and says why so.
func TestAuto(t *testing.T) {
	for name, c := range map[string]struct {
		cfg  vfiotest.Config
		fail string
		want vfio.Backend
		why  string
	}{
		"both":          {vfiotest.Config{}, "", vfio.IOMMUFD, "/dev/vfio/devices/vfio0, and /dev/iommu is there"},
		"no iommufd":    {vfiotest.Config{Type1: true}, "", vfio.Group, "there is no /dev/iommu"},
		"no group":      {vfiotest.Config{IOMMUFD: true}, "", vfio.IOMMUFD, "/dev/iommu is there"},
		"no permission": {vfiotest.Config{}, "open", vfio.Group, "cannot be opened"},
	} {
		t.Run(name, func(t *testing.T) {
			k := newKernel(t, c.cfg)
			addPCI(t, k, card("0000:03:00.0", 14))
			if c.fail != "" {
				k.FailNext(c.fail, unix.EACCES)
			}
			d := open(t, k, "03:00.0")
			if b, why := d.Domain().Backend(); b != c.want || !strings.Contains(why, c.why) {
				t.Errorf("%v because %q, want %v because %q", b, why, c.want, c.why)
			}
		})
	}
	t.Run("neither", func(t *testing.T) {
		k := newKernel(t, vfiotest.Config{})
		addPCI(t, k, card("0000:03:00.0", 14))
		k.FailNext("open", unix.EACCES)
		k.FailNext("open", unix.EACCES)
		_, err := vfio.Open(t.Context(), "03:00.0", vfio.WithKernel(k))
		mustFail(t, err, fs.ErrPermission, "/dev/iommu", "/dev/vfio/vfio", "udev")
	})
}

// TestGroupOrder is V01: the kernel wants a group in the container and the type of
// IOMMU set before it maps or gives devices out.
func TestGroupOrder(t *testing.T) {
	k := newKernel(t, vfiotest.Config{Type1: true})
	addPCI(t, k, card("0000:03:00.0", 14))
	m := newDomain(t, k)
	if len(k.Calls()) != 0 {
		t.Errorf("a domain without devices made calls (V18): %v", k.Calls())
	}
	if b, why := m.Backend(); b != vfio.Auto || why == "" {
		t.Errorf("%v because %q", b, why)
	}
	d := join(t, m, "0000:03:00.0")
	_, err := d.MapDMA(memory(t, 4*kib))
	must(t, err)
	want := []string{"VFIO_GET_API_VERSION", "VFIO_GROUP_GET_STATUS", "VFIO_GROUP_SET_CONTAINER", "VFIO_CHECK_EXTENSION", "VFIO_SET_IOMMU",
		"VFIO_GROUP_GET_DEVICE_FD", "VFIO_IOMMU_MAP_DMA"}
	got := calls(k, func(c vfiotest.Call) bool {
		for _, w := range want {
			if c.Name == w {
				return true
			}
		}
		return false
	})
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	// Closing with memory mapped is told, and yet done: bus mastering goes off first.
	err = d.Close()
	mustFail(t, err, os.ErrInvalid, "1 pieces of memory were still mapped")
	if again := d.Close(); again != err {
		t.Errorf("a second close says %v", again)
	}
}

// TestCloseOrder is V08: device, group, container; and all of them each time.
func TestCloseOrder(t *testing.T) {
	k := newKernel(t, vfiotest.Config{Type1: true})
	hw := addPCI(t, k, card("0000:03:00.0", 14))
	rounds := 10
	if os.Getenv("GOSTMMAC_LONG") != "" {
		rounds = 1000
	}
	t.Logf("%d rounds", rounds)
	for range rounds {
		before := len(k.Calls())
		d, err := vfio.Open(t.Context(), hw.Name(), vfio.WithKernel(k))
		if err != nil {
			t.Fatal(err)
		}
		_, err = d.Region(0)
		must(t, err)
		must(t, d.Close())
		var closed []string
		for _, c := range k.Calls()[before:] {
			if c.Name == "close" {
				closed = append(closed, c.Dev)
			}
		}
		if diff := cmp.Diff([]string{"0000:03:00.0", "group 14", "container"}, closed); diff != "" {
			t.Fatalf("(-want +got):\n%s", diff)
		}
		if n := k.OpenFDs(); n != 0 {
			t.Fatalf("%d descriptors leaked", n)
		}
	}
}

// TestBusy is V08: a group that another process has.
func TestBusy(t *testing.T) {
	for name, backend := range backends {
		t.Run(name, func(t *testing.T) {
			k := newKernel(t, vfiotest.Config{})
			addPCI(t, k, card("0000:03:00.0", 14))
			open(t, k, "0000:03:00.0", vfio.WithBackend(backend))
			_, err := vfio.Open(t.Context(), "0000:03:00.0", vfio.WithKernel(k), vfio.WithBackend(backend))
			var e *vfio.Error
			if !errors.As(err, &e) || e.Dev != "0000:03:00.0" || e.Op != "open" {
				t.Errorf("%#v", err)
			}
		})
	}
}

// TestNotViable is V06: a group of which another device is with a kernel driver.
func TestNotViable(t *testing.T) {
	for name, backend := range backends {
		t.Run(name, func(t *testing.T) {
			k := newKernel(t, vfiotest.Config{})
			addPCI(t, k, card("0000:03:00.0", 14))
			addPCI(t, k, vfiotest.PCI{BDF: "0000:00:1c.0", Class: 0x060400, Group: 14, Driver: "pcieport"})
			addPCI(t, k, vfiotest.PCI{BDF: "0000:03:00.1", Group: 14})
			usb := addPCI(t, k, vfiotest.PCI{BDF: "0000:03:00.2", Class: 0x0c0330, Group: 14, Driver: "xhci_hcd"})
			_, err := vfio.Open(t.Context(), "0000:03:00.0", vfio.WithKernel(k), vfio.WithBackend(backend))
			if backend == vfio.Group {
				mustFail(t, err, vfio.ErrNotViable, "0000:03:00.2", "xhci_hcd")
			} else if err == nil {
				t.Fatal("a group that is not viable was opened")
			}
			for _, other := range []string{"0000:00:1c.0", "0000:03:00.1"} {
				if strings.Contains(err.Error(), other) {
					t.Errorf("%q names %s, which is in nobody's way", err, other)
				}
			}
			must(t, k.WriteFile("sys/bus/pci/devices/"+usb.Name()+"/driver/unbind", usb.Name()))
			open(t, k, "0000:03:00.0", vfio.WithBackend(backend))
		})
	}
}

// TestNotBound opens a device that is with its kernel driver: the error says what to
// do about it.
func TestNotBound(t *testing.T) {
	for _, c := range []struct {
		cfg   vfiotest.Config
		group int
		says  []string
	}{
		{vfiotest.Config{}, 14, []string{"dwmac-motorcomm", "stmmacctl bind"}},
		{vfiotest.Config{}, -1, []string{"IOMMU"}},
	} {
		k := newKernel(t, c.cfg)
		p := card("0000:03:00.0", c.group)
		p.Driver = p.Native
		addPCI(t, k, p)
		_, err := vfio.Open(t.Context(), p.BDF, vfio.WithKernel(k))
		mustFail(t, err, fs.ErrNotExist, append(c.says, p.BDF)...)
		if b, err := vfio.Bind(t.Context(), k, p.BDF); c.group >= 0 {
			must(t, err)
			must(t, open(t, k, p.BDF).Close())
			must(t, b.Restore())
		}
	}
}

// TestAttachRefused is V07, and what else the kernel answers when a device is to be
// put into a space: the message says what to look at, and nothing stays open.
func TestAttachRefused(t *testing.T) {
	for _, c := range []struct {
		backend vfio.Backend
		call    string
		errno   error
		is      error
		text    string
	}{
		{vfio.Group, "VFIO_GROUP_SET_CONTAINER", unix.EINVAL, unix.EINVAL, "dmesg"},
		{vfio.Group, "VFIO_GROUP_SET_CONTAINER", unix.EPERM, fs.ErrPermission, "allow_unsafe_interrupts"},
		{vfio.Group, "VFIO_SET_IOMMU", unix.EPERM, fs.ErrPermission, "allow_unsafe_interrupts"},
		{vfio.Group, "VFIO_GROUP_GET_DEVICE_FD", unix.ENODEV, unix.ENODEV, "stmmacctl bind"},
		{vfio.Group, "VFIO_GROUP_GET_STATUS", unix.EIO, unix.EIO, ""},
		{vfio.Group, "VFIO_GET_API_VERSION", unix.ENOTTY, unix.ENOTTY, ""},
		{vfio.Group, "VFIO_IOMMU_GET_INFO", unix.EIO, unix.EIO, ""},
		{vfio.Group, "VFIO_DEVICE_GET_INFO", unix.EIO, unix.EIO, ""},
		{vfio.Group, "VFIO_DEVICE_GET_REGION_INFO", unix.EIO, unix.EIO, ""},
		{vfio.IOMMUFD, "VFIO_DEVICE_BIND_IOMMUFD", unix.EINVAL, unix.EINVAL, "coherent"},
		{vfio.IOMMUFD, "VFIO_DEVICE_ATTACH_IOMMUFD_PT", unix.EINVAL, unix.EINVAL, "dmesg"},
		{vfio.IOMMUFD, "IOMMU_IOAS_ALLOC", unix.ENOMEM, unix.ENOMEM, ""},
		{vfio.IOMMUFD, "IOMMU_IOAS_IOVA_RANGES", unix.EIO, unix.EIO, ""},
	} {
		t.Run(c.call, func(t *testing.T) {
			k := newKernel(t, vfiotest.Config{})
			addPCI(t, k, card("0000:03:00.0", 14))
			k.FailNext(c.call, c.errno)
			_, err := vfio.Open(t.Context(), "0000:03:00.0", vfio.WithKernel(k), vfio.WithBackend(c.backend))
			mustFail(t, err, c.is, "0000:03:00.0", c.call, c.text)
			if n := k.OpenFDs(); n != 0 {
				t.Errorf("%d descriptors are left open", n)
			}
			open(t, k, "0000:03:00.0", vfio.WithBackend(c.backend))
		})
	}
}

// TestCommand is V09: a function is at rest when it is opened, decodes its memory,
// and is bus master while, and only while, memory is mapped for it.
func TestCommand(t *testing.T) {
	const mem, master, nointx = 1 << 1, 1 << 2, 1 << 10
	p := card("0000:03:00.0", 14)
	p.NoMemory = true // the function comes out of a reset with all off
	k := newKernel(t, vfiotest.Config{})
	hw := addPCI(t, k, p)
	d, err := vfio.Open(t.Context(), hw.Name(), vfio.WithKernel(k))
	if err != nil {
		t.Fatal(err)
	}
	check := func(when string, want uint16) {
		t.Helper()
		if got := hw.Command() & (mem | master | nointx); got != want {
			t.Errorf("%s: command %#x, want %#x", when, got, want)
		}
	}
	check("opened", mem|nointx)
	a, b := memory(t, 4*kib), memory(t, 4*kib)
	ia, err := d.MapDMA(a)
	must(t, err)
	check("mapped", mem|master|nointx)
	ib, err := d.MapDMA(b)
	must(t, err)
	must(t, d.UnmapDMA(ia, len(a)))
	check("one of two unmapped", mem|master|nointx)
	must(t, d.Reset(t.Context()))
	check("reset", mem|master|nointx)
	must(t, d.UnmapDMA(ib, len(b)))
	check("all unmapped", mem|nointx)
	must(t, d.Reset(t.Context()))
	check("reset without memory", mem|nointx)
	v, err := d.Interrupt(0)
	must(t, err)
	check("MSI-X", mem|nointx)
	must(t, v.Close())
	_, err = d.MapDMA(a)
	must(t, err)
	mustFail(t, d.Close(), os.ErrInvalid, "still mapped")
	check("closed", nointx)

	d = open(t, k, hw.Name(), vfio.WithDevice(vfio.WithInterrupts(vfio.INTx, 0), vfio.WithManualBusMaster()))
	v, err = d.Interrupt(0)
	must(t, err)
	check("INTx", mem)
	ia, err = d.MapDMA(a)
	must(t, err)
	check("mapped, by hand", mem)
	must(t, d.SetBusMaster(true))
	check("by hand", mem|master)
	must(t, d.Reset(t.Context()))
	check("reset, by hand", mem|master)
	must(t, v.Close())
	check("INTx closed", mem|master|nointx)
	must(t, d.UnmapDMA(ia, len(a)))
	must(t, d.SetBusMaster(false))
	check("off by hand", mem|nointx)
}

// TestReset is V17: resets that are not there, fail or do nothing.
func TestReset(t *testing.T) {
	p := card("0000:03:00.0", 14)
	p.FLR = false
	k := newKernel(t, vfiotest.Config{})
	addPCI(t, k, p)
	hw := addPCI(t, k, card("0000:04:00.0", 15))
	addPlatform(t, k, board("mac", 3))

	d := open(t, k, "0000:03:00.0")
	if d.WasReset() {
		t.Error("a function without a reset was reset")
	}
	mustFail(t, d.Reset(t.Context()), errors.ErrUnsupported, "hot reset")
	mustFail(t, open(t, k, "mac").Reset(t.Context()), errors.ErrUnsupported, "VFIO_DEVICE_RESET")

	k.FailNext("VFIO_DEVICE_RESET", unix.EAGAIN)
	d = open(t, k, hw.Name())
	if d.WasReset() {
		t.Error("a reset that failed counts")
	}
	n := hw.Resets()
	must(t, d.Reset(t.Context()))
	if hw.Resets() != n+1 {
		t.Errorf("%d resets", hw.Resets()-n)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	mustFail(t, d.Reset(ctx), context.Canceled)
	mustFail(t, d.HotReset(ctx), context.Canceled)
	if _, err := vfio.Open(ctx, hw.Name(), vfio.WithKernel(k)); !errors.Is(err, context.Canceled) {
		t.Errorf("open: %v", err)
	}
}

// TestHotReset resets a bus: all that is on it must be the domain's.
func TestHotReset(t *testing.T) {
	for name, backend := range backends {
		t.Run(name, func(t *testing.T) {
			k := newKernel(t, vfiotest.Config{})
			a := addPCI(t, k, card("0000:03:00.0", 14))
			b := addPCI(t, k, card("0000:03:00.1", 15))
			m := newDomain(t, k, vfio.WithBackend(backend))
			d := join(t, m, a.Name())
			mustFail(t, d.HotReset(t.Context()), fs.ErrPermission, b.Name(), "same domain")
			join(t, m, b.Name())
			set, err := d.HotResetSet()
			must(t, err)
			if len(set) != 2 || !set[0].Owned || !set[1].Owned {
				t.Errorf("%+v", set)
			}
			na, nb := a.Resets(), b.Resets()
			must(t, d.HotReset(t.Context()))
			if a.Resets() != na+1 || b.Resets() != nb+1 {
				t.Errorf("%d and %d resets", a.Resets()-na, b.Resets()-nb)
			}
		})
	}
	k := newKernel(t, vfiotest.Config{})
	addPlatform(t, k, board("mac", 3))
	mustFail(t, open(t, k, "mac").HotReset(t.Context()), errors.ErrUnsupported)
}

// TestVFToken opens a virtual function, which needs the token of its physical one.
func TestVFToken(t *testing.T) {
	const uuid = "83d8f4f2-509f-382f-3c1e-e6bfe0fa1001"
	token, err := vfio.ParseVFToken(uuid)
	if err != nil || token.String() != uuid {
		t.Fatal(token, err)
	}
	for _, bad := range []string{"", uuid[1:], uuid + "0", strings.ReplaceAll(uuid, "-", ""), strings.Replace(uuid, "8", "g", 1), "83d8f4f-2509f-382f-3c1e-e6bfe0fa1001"} {
		if _, err := vfio.ParseVFToken(bad); !errors.Is(err, os.ErrInvalid) {
			t.Errorf("%q: %v", bad, err)
		}
	}
	for name, backend := range backends {
		t.Run(name, func(t *testing.T) {
			k := newKernel(t, vfiotest.Config{})
			p := card("0000:03:10.0", 20)
			p.Token = uuid
			addPCI(t, k, p)
			if _, err := vfio.Open(t.Context(), p.BDF, vfio.WithKernel(k), vfio.WithBackend(backend)); err == nil {
				t.Fatal("opened without a token")
			}
			d := open(t, k, p.BDF, vfio.WithBackend(backend), vfio.WithDevice(vfio.WithVFToken(token)))
			mustFail(t, d.SetVFToken(token), errors.ErrUnsupported)
		})
	}
	k := newKernel(t, vfiotest.Config{})
	p := card("0000:03:00.0", 14)
	p.SRIOV = true
	addPCI(t, k, p)
	must(t, open(t, k, p.BDF).SetVFToken(token))
}

// TestLowPower puts a function to sleep and wakes it.
func TestLowPower(t *testing.T) {
	k := newKernel(t, vfiotest.Config{})
	addPCI(t, k, card("0000:03:00.0", 14))
	addPlatform(t, k, board("mac", 3))
	d := open(t, k, "0000:03:00.0")
	must(t, d.EnterLowPower())
	must(t, d.ExitLowPower())
	mustFail(t, open(t, k, "mac").EnterLowPower(), errors.ErrUnsupported)
}

// TestOptions refuses what cannot be.
func TestOptions(t *testing.T) {
	k := newKernel(t, vfiotest.Config{})
	addPCI(t, k, card("0000:03:00.0", 14))
	for _, o := range []vfio.DeviceOption{vfio.WithAddrWidth(11), vfio.WithAddrWidth(65), vfio.WithInterrupts(vfio.MSI, -1), vfio.WithInterrupts(vfio.MSI, 33), vfio.WithInterrupts(9, 1)} {
		_, err := vfio.Open(t.Context(), "0000:03:00.0", vfio.WithKernel(k), vfio.WithDevice(o))
		mustFail(t, err, os.ErrInvalid)
	}
	for _, o := range []vfio.Option{vfio.WithKernel(nil), vfio.WithBackend(7)} {
		_, err := vfio.NewDomain(o)
		mustFail(t, err, os.ErrInvalid)
	}
	m := newDomain(t, k)
	must(t, m.Close())
	_, err := m.Open(t.Context(), "0000:03:00.0")
	mustFail(t, err, vfio.ErrClosed)
}

// TestFDs opens devices from descriptors of a parent, at each stage that it can have
// brought them to.
func TestFDs(t *testing.T) {
	const name = "0000:03:00.0"
	for stage, c := range map[string]struct {
		fds func(t *testing.T, k *vfiotest.Kernel) vfio.FDs
		ok  bool
	}{
		"container and group": {func(t *testing.T, k *vfiotest.Kernel) vfio.FDs {
			return vfio.FDs{Name: name, Container: node(t, k, "dev/vfio/vfio"), Group: node(t, k, "dev/vfio/14"), IOMMUFD: -1, Device: -1}
		}, true},
		"iommufd and node": {func(t *testing.T, k *vfiotest.Kernel) vfio.FDs {
			return vfio.FDs{Name: name, Container: -1, Group: -1, IOMMUFD: node(t, k, "dev/iommu"), Device: node(t, k, "dev/vfio/devices/vfio0")}
		}, true},
		"node alone": {func(t *testing.T, k *vfiotest.Kernel) vfio.FDs {
			return vfio.FDs{Name: name, Container: -1, Group: -1, IOMMUFD: -1, Device: node(t, k, "dev/vfio/devices/vfio0")}
		}, true},
		"group twice over": {func(t *testing.T, k *vfiotest.Kernel) vfio.FDs {
			return vfio.FDs{Name: name, Container: node(t, k, "dev/vfio/vfio"), Group: node(t, k, "dev/vfio/14"), IOMMUFD: node(t, k, "dev/iommu"), Device: -1}
		}, false},
		"nothing": {func(*testing.T, *vfiotest.Kernel) vfio.FDs {
			return vfio.FDs{Name: name, Container: -1, Group: -1, IOMMUFD: -1, Device: -1}
		}, false},
		"no name": {func(t *testing.T, k *vfiotest.Kernel) vfio.FDs {
			return vfio.FDs{Container: node(t, k, "dev/vfio/vfio"), Group: node(t, k, "dev/vfio/14"), IOMMUFD: -1, Device: -1}
		}, false},
		"wrong descriptors": {func(t *testing.T, k *vfiotest.Kernel) vfio.FDs {
			return vfio.FDs{Name: name, Container: node(t, k, "dev/vfio/14"), Group: node(t, k, "dev/vfio/vfio"), IOMMUFD: -1, Device: -1}
		}, false},
	} {
		t.Run(stage, func(t *testing.T) {
			k := newKernel(t, vfiotest.Config{})
			hw := addPCI(t, k, card(name, 14))
			m := newDomain(t, k)
			d, err := m.OpenFDs(t.Context(), c.fds(t, k))
			if (err == nil) != c.ok {
				t.Fatal(err)
			}
			if err != nil {
				if n := k.OpenFDs(); n != 0 {
					t.Errorf("%d descriptors are left open", n)
				}
				return
			}
			mem := memory(t, 4*kib)
			iova, err := d.MapDMA(mem)
			must(t, err)
			must(t, hw.Bus().Write(iova, []byte{1}))
			must(t, d.UnmapDMA(iova, len(mem)))
			must(t, d.Close())
		})
	}
}

func node(t *testing.T, k *vfiotest.Kernel, name string) int {
	t.Helper()
	fd, err := k.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	return fd
}

// TestSystem says that descriptors of the real kernel do not pass to children (V14).
func TestSystem(t *testing.T) {
	k := vfio.System()
	fd, err := k.Open("dev/null")
	if err != nil {
		t.Fatal(err)
	}
	defer k.Close(fd)
	if flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0); err != nil || flags&unix.FD_CLOEXEC == 0 {
		t.Errorf("flags %#x, %v", flags, err)
	}
	if _, err := k.Ioctl(fd, 0x3b64, nil); !errors.Is(err, unix.ENOTTY) {
		t.Errorf("ioctl: %v", err)
	}
	if _, err := k.IoctlInt(fd, 0x3b65, 1); !errors.Is(err, unix.ENOTTY) {
		t.Errorf("ioctl: %v", err)
	}
	if n, err := k.Pwrite(fd, []byte("x"), 0); n != 1 || err != nil {
		t.Errorf("pwrite: %d, %v", n, err)
	}
	if n, err := k.Pread(fd, make([]byte, 4), 0); n != 0 || err != nil {
		t.Errorf("pread: %d, %v", n, err)
	}
	if _, err := k.Open("dev/vfio/no such node"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("open: %v", err)
	}
	if _, err := vfio.List(k); err != nil {
		t.Errorf("list: %v", err)
	}
}
