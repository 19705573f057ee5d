package vfiotest_test

import (
	"os"
	"testing"

	"github.com/gostmmac/gostmmac/vfio/internal/uapi"
	"github.com/gostmmac/gostmmac/vfio/vfiotest"
)

// TestFree counts the descriptors of the process around kernels on which everything
// was left open. The first only warms up what the runtime opens for itself.
func TestFree(t *testing.T) {
	open := func() int {
		entries, err := os.ReadDir("/proc/self/fd")
		if err != nil {
			t.Skip("the machine does not tell what is open: ", err)
		}
		return len(entries)
	}
	r := &rig{T: t}
	level, resample := r.eventfd(), r.eventfd()
	var before int
	for i := range 3 {
		k, err := vfiotest.New(t.TempDir(), vfiotest.Config{})
		if err != nil {
			t.Fatal(err)
		}
		r := &rig{t, k}
		r.pci(nic())
		d := r.platform(mac())
		l, p := r.legacyNIC(), r.legacy("9", macName, uapi.Type1v2IOMMU)
		r.ok(setIRQs(k, p.device, efd|trigger, 0, 0, 1, []int32{level}))
		r.ok(setIRQs(k, p.device, efd|unmask, 0, 0, 1, []int32{resample}))
		r.ok(setIRQs(k, l.device, efd|trigger, uapi.PCIMSI, 0, 2, []int32{level, -1}))
		if _, err := k.Mmap(l.device, 0, page, false); err != nil {
			t.Fatal(err)
		}
		if _, err := k.HugeMemory(2 << 20); err != nil {
			t.Fatal(err)
		}
		k.Free()
		if k.OpenFDs() != 0 || k.OpenMaps() != 0 || d.IsOpen() || d.Memory(0) != nil {
			t.Errorf("round %d: %d descriptors, %d maps", i, k.OpenFDs(), k.OpenMaps())
		}
		if n := open(); i == 0 {
			before = n
		} else if n != before {
			t.Errorf("round %d: %d descriptors of the process, %d before", i, n, before)
		}
	}
}

// TestReopen opens and closes a device often: nothing piles up.
func TestReopen(t *testing.T) {
	r := newRig(t, vfiotest.Config{})
	d := r.pci(nic())
	const rounds = 100
	for range rounds {
		l := r.legacyNIC()
		r.close(l.container, l.device, l.group)
		c := r.cdev("vfio0")
		r.close(c.iommufd, c.device)
	}
	if d.Resets() != 4*rounds || r.k.OpenFDs() != 0 {
		t.Errorf("%d resets, %d descriptors", d.Resets(), r.k.OpenFDs())
	}
}
