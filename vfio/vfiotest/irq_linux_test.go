package vfiotest_test

import (
	"fmt"
	"runtime"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/gostmmac/gostmmac/vfio/internal/uapi"
	"github.com/gostmmac/gostmmac/vfio/vfiotest"
)

func TestIRQInfo(t *testing.T) {
	r := newRig(t, vfiotest.Config{})
	r.pci(nic())
	dynamic := nic()
	dynamic.BDF, dynamic.Group, dynamic.MSIX.Dynamic, dynamic.INTx = "0000:04:00.0", 8, true, false
	r.pci(dynamic)
	r.platform(mac())
	pci, dyn := r.legacyNIC(), r.legacy("8", "0000:04:00.0", uapi.Type1v2IOMMU)
	plat := r.legacy("9", macName, uapi.Type1v2IOMMU)
	const msi = uapi.IRQEventfd | uapi.IRQNoResize
	const line = uapi.IRQEventfd | uapi.IRQMaskable | uapi.IRQAutomasked
	for _, c := range []struct {
		fd           int
		index        uint32
		flags, count uint32
		want         error
	}{
		{pci.device, uapi.PCIINTx, line, 1, nil},
		{pci.device, uapi.PCIMSI, msi, 4, nil},
		{pci.device, uapi.PCIMSIX, msi, 8, nil},
		{pci.device, uapi.PCIERR, msi, 1, nil},
		{pci.device, uapi.PCIREQ, msi, 1, nil},
		{pci.device, 5, 0, 0, unix.EINVAL},
		{pci.device, 1<<32 - 1, 0, 0, unix.EINVAL},
		{dyn.device, uapi.PCIINTx, line, 0, nil},
		{dyn.device, uapi.PCIMSIX, uapi.IRQEventfd, 8, nil},
		{plat.device, 0, line, 1, nil},
		{plat.device, 1, uapi.IRQEventfd, 1, nil},
		{plat.device, 2, 0, 0, unix.EINVAL},
	} {
		v := uapi.IRQInfo{Argsz: 16, Index: c.index}
		_, err := call(r.k, c.fd, uapi.DeviceGetIRQInfo, &v)
		if err != c.want || err == nil && (v.Flags != c.flags || v.Count != c.count) {
			t.Errorf("descriptor %d, index %d: %+v %v", c.fd, c.index, v, err)
		}
	}
}

// TestSetIRQsErrors makes requests of a function whose MSI has two vectors enabled,
// of one on which nothing is, and of a platform device.
func TestSetIRQsErrors(t *testing.T) {
	r := newRig(t, vfiotest.Config{})
	r.pci(nic())
	idle := nic()
	idle.BDF, idle.Group, idle.INTx = "0000:04:00.0", 8, false
	r.pci(idle)
	r.platform(mac())
	msi, off := r.legacyNIC().device, r.legacy("8", "0000:04:00.0", uapi.Type1v2IOMMU).device
	plat := r.legacy("9", macName, uapi.Type1v2IOMMU).device
	e := r.eventfd()
	r.ok(setIRQs(r.k, msi, efd|trigger, uapi.PCIMSI, 0, 2, []int32{e, -1}))
	null, err := unix.Open("/dev/null", unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(null)
	for _, c := range []struct {
		name                       string
		fd                         int
		flags, index, start, count uint32
		data                       any
		want                       error
	}{
		{"unknown flag", msi, 1<<6 | none | trigger, uapi.PCIMSI, 0, 1, nil, unix.EINVAL},
		{"no data kind", msi, trigger, uapi.PCIMSI, 0, 1, nil, unix.EINVAL},
		{"two data kinds", msi, none | bools | trigger, uapi.PCIMSI, 0, 1, []byte{1}, unix.EINVAL},
		{"no action", msi, none, uapi.PCIMSI, 0, 1, nil, unix.ENOTTY},
		{"two actions", msi, none | trigger | mask, uapi.PCIMSI, 0, 1, nil, unix.ENOTTY},
		{"no such index", msi, none | trigger, 5, 0, 1, nil, unix.EINVAL},
		{"start beyond", msi, none | trigger, uapi.PCIMSI, 4, 0, nil, unix.EINVAL},
		{"count beyond", msi, none | trigger, uapi.PCIMSI, 3, 2, nil, unix.EINVAL},
		{"count wraps", msi, none | trigger, uapi.PCIMSI, 1, 1<<32 - 1, nil, unix.EINVAL},
		{"too little data", msi, efd | trigger, uapi.PCIMSI, 0, 2, []int32{e}, unix.EINVAL},
		{"no data", msi, bools | trigger, uapi.PCIMSI, 0, 1, nil, unix.EINVAL},
		{"eventfds for none", msi, efd | trigger, uapi.PCIMSI, 0, 0, nil, unix.EINVAL},
		{"mask MSI", msi, none | mask, uapi.PCIMSI, 0, 1, nil, unix.ENOTTY},
		{"unmask MSI-X", msi, none | unmask, uapi.PCIMSIX, 0, 1, nil, unix.ENOTTY},
		{"mask requests", msi, none | mask, uapi.PCIREQ, 0, 1, nil, unix.ENOTTY},
		{"MSI-X beside MSI", msi, efd | trigger, uapi.PCIMSIX, 0, 1, []int32{e}, unix.EINVAL},
		{"INTx beside MSI", msi, efd | trigger, uapi.PCIINTx, 0, 1, []int32{e}, unix.EINVAL},
		{"mask INTx that is off", msi, none | mask, uapi.PCIINTx, 0, 1, nil, unix.EINVAL},
		{"more vectors", msi, efd | trigger, uapi.PCIMSI, 2, 1, []int32{e}, unix.EINVAL},
		{"fire a vector that is off", msi, none | trigger, uapi.PCIMSI, 2, 1, nil, unix.EINVAL},
		{"fire one without an eventfd", msi, none | trigger, uapi.PCIMSI, 1, 1, nil, nil},
		{"not open", msi, efd | trigger, uapi.PCIMSI, 1, 1, []int32{1 << 20}, unix.EBADF},
		{"not an eventfd", msi, efd | trigger, uapi.PCIMSI, 1, 1, []int32{int32(null)}, unix.EINVAL},
		{"disable MSI-X that is off", off, none | trigger, uapi.PCIMSIX, 0, 0, nil, unix.EINVAL},
		{"disable MSI that is off", off, none | trigger, uapi.PCIMSI, 0, 0, nil, unix.EINVAL},
		{"INTx that there is not", off, efd | trigger, uapi.PCIINTx, 0, 1, []int32{e}, unix.EINVAL},
		{"fire requests that are off", off, none | trigger, uapi.PCIREQ, 0, 1, nil, unix.EINVAL},
		{"not an eventfd on an idle index", off, efd | trigger, uapi.PCIMSI, 0, 1, []int32{int32(null)}, unix.EINVAL},
		{"that index is idle still", off, efd | trigger, uapi.PCIMSIX, 0, 1, []int32{e}, nil},
		{"mask an edge", plat, none | mask, 1, 0, 1, nil, unix.EINVAL},
		{"mask by eventfd", plat, efd | mask, 0, 0, 1, []int32{e}, unix.ENOTTY},
		{"second interrupt of an index", plat, none | mask, 0, 1, 1, nil, unix.EINVAL},
		{"no interrupt of an index", plat, none | mask, 0, 0, 0, nil, unix.EINVAL},
		{"disable what is off", plat, none | trigger, 0, 0, 0, nil, nil},
		{"unmask by eventfd", plat, efd | unmask, 0, 0, 1, []int32{e}, nil},
		{"by another one too", plat, efd | unmask, 0, 0, 1, []int32{e}, unix.EBUSY},
		{"by none", plat, efd | unmask, 0, 0, 1, []int32{-1}, nil},
	} {
		if n, err := setIRQs(r.k, c.fd, c.flags, c.index, c.start, c.count, c.data); err != c.want || n > 0 {
			t.Errorf("%s: %d %v, want %v", c.name, n, err, c.want)
		}
	}
	if _, err := call(r.k, msi, uapi.DeviceSetIRQs, &uapi.IRQSet{Argsz: 19, Flags: none | trigger}); err != unix.EINVAL {
		t.Errorf("argsz 19: %v", err)
	}
}

// TestMessages fires vectors of MSI and MSI-X from the device and by loopback.
func TestMessages(t *testing.T) {
	for _, index := range []uint32{uapi.PCIMSI, uapi.PCIMSIX} {
		t.Run(fmt.Sprint(index), func(t *testing.T) {
			r := newRig(t, vfiotest.Config{})
			d := r.pci(nic())
			l := r.legacyNIC()
			e := []int32{r.eventfd(), r.eventfd(), r.eventfd()}
			expect := func(what string, want ...uint64) {
				t.Helper()
				for i := range e {
					if got := r.count(e[i]); got != want[i] {
						t.Errorf("%s: vector %d counts %d, want %d", what, i, got, want[i])
					}
				}
			}
			if d.Fire(int(index), 0) {
				t.Error("fired before it was enabled")
			}
			r.ok(setIRQs(r.k, l.device, efd|trigger, index, 0, 3, e))
			if d.Fire(int(index), 0) {
				t.Error("fired without bus mastering")
			}
			r.command(l.device, 6)
			for vector, want := range map[int]bool{-1: false, 0: true, 2: true, 3: false} {
				if d.Fire(int(index), vector) != want {
					t.Errorf("vector %d fired: %v", vector, !want)
				}
			}
			d.Fire(int(index), 2)
			expect("device", 1, 0, 2)
			r.ok(setIRQs(r.k, l.device, none|trigger, index, 0, 3, nil))
			expect("loopback", 1, 1, 1)
			r.ok(setIRQs(r.k, l.device, bools|trigger, index, 0, 3, []byte{0, 1, 0}))
			expect("some", 0, 1, 0)
			r.ok(setIRQs(r.k, l.device, efd|trigger, index, 1, 1, []int32{-1}))
			r.ok(setIRQs(r.k, l.device, none|trigger, index, 0, 3, nil))
			expect("one removed", 1, 0, 1)
			r.ok(setIRQs(r.k, l.device, none|trigger, index, 0, 0, nil))
			if d.Fire(int(index), 0) {
				t.Error("fired after it was disabled")
			}
			// Another kind may be used now, and is left enabled for the close.
			other := uint32(uapi.PCIMSI + uapi.PCIMSIX - index)
			r.ok(setIRQs(r.k, l.device, efd|trigger, other, 0, 1, e[:1]))
			r.close(l.device)
			if d.Fire(int(other), 0) {
				t.Error("fired after the device was closed")
			}
		})
	}
}

// TestEventfdOutlives closes the eventfd that was given: the kernel has its own.
func TestEventfdOutlives(t *testing.T) {
	r := newRig(t, vfiotest.Config{})
	d := r.pci(nic())
	l := r.legacyNIC()
	given, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	if err != nil {
		t.Fatal(err)
	}
	mine, err := unix.FcntlInt(uintptr(given), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(mine)
	r.ok(setIRQs(r.k, l.device, efd|trigger, uapi.PCIREQ, 0, 1, []int32{int32(given)}))
	if err := unix.Close(given); err != nil {
		t.Fatal(err)
	}
	if !d.Fire(uapi.PCIREQ, 0) || r.count(int32(mine)) != 1 {
		t.Error("the request did not arrive")
	}
}

func TestMaxVectors(t *testing.T) {
	r := newRig(t, vfiotest.Config{})
	r.pci(nic())
	l := r.legacyNIC()
	e := r.eventfd()
	r.k.MaxVectors(2)
	if n, err := setIRQs(r.k, l.device, efd|trigger, uapi.PCIMSIX, 0, 3, []int32{e, e, e}); n != 2 || err != nil {
		t.Errorf("3 vectors of 2: %d %v", n, err)
	}
	// MSI is free: MSI-X was not enabled.
	if n, err := setIRQs(r.k, l.device, efd|trigger, uapi.PCIMSI, 0, 2, []int32{e, e}); n != 0 || err != nil {
		t.Errorf("2 vectors of 2: %d %v", n, err)
	}
}

func TestDynamicMSIX(t *testing.T) {
	r := newRig(t, vfiotest.Config{})
	p := nic()
	p.MSIX.Dynamic = true
	d := r.pci(p)
	l := r.legacyNIC()
	e := r.eventfd()
	r.ok(setIRQs(r.k, l.device, efd|trigger, uapi.PCIMSIX, 0, 1, []int32{-1}))
	r.ok(setIRQs(r.k, l.device, efd|trigger, uapi.PCIMSIX, 5, 1, []int32{e}))
	r.command(l.device, 6)
	if !d.Fire(uapi.PCIMSIX, 5) || r.count(e) != 1 {
		t.Error("the vector that was added did not fire")
	}
}

// TestLine walks a level interrupt through raising, masking and unmasking. Each
// step says how often the eventfd was written by it.
func TestLine(t *testing.T) {
	for _, c := range []struct {
		name   string
		open   func(r *rig) (*vfiotest.Device, int)
		resamp bool
	}{
		{"INTx", func(r *rig) (*vfiotest.Device, int) { return r.pci(nic()), r.legacyNIC().device }, false},
		{"INTx, unmasked by eventfd", func(r *rig) (*vfiotest.Device, int) { return r.pci(nic()), r.legacyNIC().device }, true},
		{"platform", func(r *rig) (*vfiotest.Device, int) {
			return r.platform(mac()), r.legacy("9", macName, uapi.Type1v2IOMMU).device
		}, false},
		{"platform, unmasked by eventfd", func(r *rig) (*vfiotest.Device, int) {
			return r.platform(mac()), r.legacy("9", macName, uapi.Type1v2IOMMU).device
		}, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRig(t, vfiotest.Config{})
			d, fd := c.open(r)
			e, resample := r.eventfd(), r.eventfd()
			d.SetLine(0, true) // before the driver listens
			r.ok(setIRQs(r.k, fd, efd|trigger, 0, 0, 1, []int32{e}))
			if c.resamp {
				r.ok(setIRQs(r.k, fd, efd|unmask, 0, 0, 1, []int32{resample}))
			}
			rearm := func() {
				if !c.resamp {
					r.ok(setIRQs(r.k, fd, none|unmask, 0, 0, 1, nil))
					return
				}
				if _, err := unix.Write(int(resample), []byte{1, 0, 0, 0, 0, 0, 0, 0}); err != nil {
					t.Fatal(err)
				}
				for r.pollIn(resample) { // until the kernel noticed
					runtime.Gosched()
				}
			}
			for i, s := range []struct {
				what string
				do   func()
				want uint64
			}{
				{"high already", func() {}, 1},
				{"higher", func() { d.SetLine(0, true) }, 0},
				{"unmask while high", rearm, 1},
				{"low", func() { d.SetLine(0, false) }, 0},
				{"high while masked", func() { d.SetLine(0, true) }, 0},
				{"low again", func() { d.SetLine(0, false) }, 0},
				{"unmask while low", rearm, 0},
				{"high", func() { d.SetLine(0, true) }, 1},
				{"low", func() { d.SetLine(0, false) }, 0},
				{"unmask", rearm, 0},
				{"mask", func() { r.ok(setIRQs(r.k, fd, none|mask, 0, 0, 1, nil)) }, 0},
				{"high while masked by hand", func() { d.SetLine(0, true) }, 0},
				{"unmask by bool", func() { r.ok(setIRQs(r.k, fd, bools|unmask, 0, 0, 1, []byte{0})) }, 0},
				{"unmask by true", func() { r.ok(setIRQs(r.k, fd, bools|unmask, 0, 0, 1, []byte{1})) }, 1},
			} {
				s.do()
				if got := r.await(e, s.want); got != s.want {
					t.Fatalf("step %d, %s: %d interrupts, want %d", i, s.what, got, s.want)
				}
			}
			r.close(fd)
			d.SetLine(0, false)
			d.SetLine(0, true)
			if got := r.count(e); got != 0 {
				t.Errorf("%d interrupts after the device was closed", got)
			}
		})
	}
}

// pollIn says whether a count is there.
func (r *rig) pollIn(fd int32) bool {
	r.Helper()
	n, err := unix.Poll([]unix.PollFd{{Fd: fd, Events: unix.POLLIN}}, 0)
	if err != nil && err != unix.EINTR {
		r.Fatal(err)
	}
	return n > 0
}

// await is the count of an eventfd; it waits for one that has to come.
func (r *rig) await(fd int32, want uint64) uint64 {
	r.Helper()
	if want > 0 {
		const patience = 60_000 // milliseconds
		if _, err := unix.Poll([]unix.PollFd{{Fd: fd, Events: unix.POLLIN}}, patience); err != nil && err != unix.EINTR {
			r.Fatal(err)
		}
	}
	return r.count(fd)
}

// TestEdge holds that an edge interrupt comes when the line goes up.
func TestEdge(t *testing.T) {
	r := newRig(t, vfiotest.Config{})
	d := r.platform(mac())
	l := r.legacy("9", macName, uapi.Type1v2IOMMU)
	e := r.eventfd()
	r.ok(setIRQs(r.k, l.device, efd|trigger, 1, 0, 1, []int32{e}))
	for i, high := range []bool{true, true, false, true, false, false} {
		d.SetLine(1, high)
		want := map[int]uint64{0: 1, 3: 1}[i]
		if got := r.count(e); got != want {
			t.Errorf("step %d: %d interrupts, want %d", i, got, want)
		}
	}
	if !d.Fire(1, 0) || r.count(e) != 1 {
		t.Error("it did not fire")
	}
	r.ok(setIRQs(r.k, l.device, none|trigger, 1, 0, 0, nil))
	if d.Fire(1, 0) {
		t.Error("it fired after it was disabled")
	}
}

// TestINTxDisable holds that the bit of the command register masks INTx.
func TestINTxDisable(t *testing.T) {
	r := newRig(t, vfiotest.Config{})
	d := r.pci(nic())
	l := r.legacyNIC()
	e := r.eventfd()
	r.ok(setIRQs(r.k, l.device, efd|trigger, uapi.PCIINTx, 0, 1, []int32{e}))
	r.command(l.device, 0x402)
	d.SetLine(0, true)
	if r.count(e) != 0 {
		t.Error("an interrupt while it is disabled")
	}
	if d.Config()[6]&8 == 0 {
		t.Error("the status register does not show the line")
	}
	r.command(l.device, 2)
	if r.count(e) != 1 {
		t.Error("no interrupt when it is enabled again")
	}
	if !d.Fire(uapi.PCIERR, 0) == (d.Fire(uapi.PCIINTx, 0)) {
		t.Error("errors fire without an eventfd, or INTx while it is masked")
	}
}

// TestLoopback fires interrupts that are no messages without the device. INTx is
// signalled as it is; a line of a platform device is masked as by the device.
func TestLoopback(t *testing.T) {
	r := newRig(t, vfiotest.Config{})
	r.pci(nic())
	r.platform(mac())
	pci, plat := r.legacyNIC().device, r.legacy("9", macName, uapi.Type1v2IOMMU).device
	intx, line, failure := r.eventfd(), r.eventfd(), r.eventfd()
	r.ok(setIRQs(r.k, pci, efd|trigger, uapi.PCIINTx, 0, 1, []int32{intx}))
	r.ok(setIRQs(r.k, pci, efd|trigger, uapi.PCIERR, 0, 1, []int32{failure}))
	r.ok(setIRQs(r.k, plat, efd|trigger, 0, 0, 1, []int32{line}))
	for i, s := range []struct {
		fd         int
		e          int32
		index      uint32
		flags      uint32
		count      uint32
		data       any
		want       uint64
		wantErr    error
		wantAfter2 uint64 // after the same request once more
	}{
		{pci, intx, uapi.PCIINTx, none | trigger, 1, nil, 1, nil, 1},
		{pci, intx, uapi.PCIINTx, bools | trigger, 1, []byte{1}, 1, nil, 1},
		{pci, intx, uapi.PCIINTx, bools | trigger, 1, []byte{0}, 0, nil, 0},
		{plat, line, 0, none | trigger, 1, nil, 1, nil, 0},
		{plat, line, 0, none | unmask, 1, nil, 0, nil, 0},
		{plat, line, 0, bools | trigger, 1, []byte{1}, 1, nil, 0},
		{pci, failure, uapi.PCIERR, none | trigger, 1, nil, 1, nil, 1},
		{pci, failure, uapi.PCIERR, bools | trigger, 1, []byte{1}, 1, nil, 1},
		{pci, failure, uapi.PCIERR, bools | trigger, 1, []byte{0}, 0, nil, 0},
		{pci, failure, uapi.PCIERR, efd | trigger, 1, []int32{-2}, 0, unix.EINVAL, 0},
		{pci, failure, uapi.PCIERR, none | trigger, 0, nil, 0, nil, 0}, // disables
		{pci, failure, uapi.PCIERR, none | trigger, 1, nil, 0, unix.EINVAL, 0},
		{pci, failure, uapi.PCIERR, bools | trigger, 1, []byte{1}, 0, nil, 0},
		{pci, intx, uapi.PCIINTx, efd | trigger, 1, []int32{-1}, 0, nil, 0},
		{pci, intx, uapi.PCIINTx, none | trigger, 1, nil, 0, nil, 0}, // it is on still, without an eventfd
		{pci, intx, uapi.PCIINTx, efd | trigger, 1, []int32{1 << 20}, 0, unix.EBADF, 0},
		{pci, intx, uapi.PCIMSI, efd | trigger, 1, []int32{intx}, 0, unix.EINVAL, 0},
		{pci, intx, uapi.PCIINTx, none | trigger, 0, nil, 0, nil, 0},
		{pci, intx, uapi.PCIMSI, efd | trigger, 1, []int32{intx}, 0, nil, 0},
	} {
		_, err := setIRQs(r.k, s.fd, s.flags, s.index, 0, s.count, s.data)
		if got := r.count(s.e); err != s.wantErr || got != s.want {
			t.Errorf("step %d: %d %v, want %d %v", i, got, err, s.want, s.wantErr)
		}
		if s.count == 0 {
			continue // disabling twice is an error of its own
		}
		_, _ = setIRQs(r.k, s.fd, s.flags, s.index, 0, s.count, s.data)
		if got := r.count(s.e); got != s.wantAfter2 {
			t.Errorf("step %d, again: %d, want %d", i, got, s.wantAfter2)
		}
	}
}
