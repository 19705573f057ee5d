package trace

import (
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/gostmmac/gostmmac/internal/bringup"
	"github.com/gostmmac/gostmmac/mmio"
	"github.com/gostmmac/gostmmac/stmmac"
	"github.com/gostmmac/gostmmac/stmmac/sim"
)

// twin is the project's own model with the feature register of QEMU's.
type twin struct {
	*sim.Device
	mu  sync.Mutex
	log []mmio.Access
}

func (d *twin) Region(i int) (mmio.Region, error) {
	r, err := d.Device.Region(i)
	if err != nil {
		return nil, err
	}
	return mmio.Trace(features{r}, func(a mmio.Access) {
		d.mu.Lock()
		defer d.mu.Unlock()
		d.log = append(d.log, a)
	}), nil
}

type features struct{ mmio.Region }

func (f features) Load32(off uint32) uint32 {
	if off == 0x1058 {
		return 0x100d4f37
	}
	return f.Region.Load32(off)
}

// sound is a bring-up of the twin.
func sound(t *testing.T) []mmio.Access {
	t.Helper()
	near, far := sim.NewPair(16)
	dev, err := sim.New(sim.Config{Generation: sim.GMAC, Version: 0x32, NoPHY: true, AddrWidth: 32}, near)
	if err != nil {
		t.Fatal(err)
	}
	d := &twin{Device: dev}
	mac, err := bringUp(t.Context(), d, stmmac.WithLink(stmmac.Link{Up: true, Speed: 1000, FullDuplex: true}))
	if err != nil {
		t.Fatal(err)
	}
	d.mu.Lock()
	log := slices.Clone(d.log)
	d.mu.Unlock()
	if err := errors.Join(mac.Close(), dev.Close(), far.Close()); err != nil {
		t.Error(err)
	}
	return log
}

// TestJudge: a bring-up as it is now is good, and a changed order, a missing store, a changed
// value and a surplus reason are each found.
func TestJudge(t *testing.T) {
	log := sound(t)
	find := func(a []mmio.Access, off uint32) int {
		i := slices.IndexFunc(a, func(x mmio.Access) bool { return x.Store && x.Off == off })
		if i < 0 {
			t.Fatalf("no store to %#x", off)
		}
		return i
	}
	const txList, vlan, mask = 0x1010, 0x1c, 0x3c
	for _, c := range []struct {
		what, want string // want is a part of the error, or "" for none
		change     func(a []mmio.Access, why *bringup.Reasons) []mmio.Access
	}{
		{"nothing", "", func(a []mmio.Access, _ *bringup.Reasons) []mmio.Access { return a }},
		{"order", "Interrupt_Mask is stored to before Transmit_Descriptor_List_Address", func(a []mmio.Access, _ *bringup.Reasons) []mmio.Access {
			i, j := find(a, txList), find(a, mask)
			a[i], a[j] = a[j], a[i]
			return a
		}},
		{"store", "Transmit_Descriptor_List_Address: only the stock driver stores to it", func(a []mmio.Access, _ *bringup.Reasons) []mmio.Access {
			i := find(a, txList)
			return slices.Delete(a, i, i+1)
		}},
		{"value", "VLAN_Tag: the last value is 0x1", func(a []mmio.Access, _ *bringup.Reasons) []mmio.Access {
			a[find(a, vlan)].Val = 1
			return a
		}},
		{"reason", "VLAN_Tag: a reason is listed (value) and there is no such difference", func(a []mmio.Access, why *bringup.Reasons) []mmio.Access {
			why.Value["VLAN_Tag"] = "no VLAN is filtered"
			return a
		}},
	} {
		why := bringup.GMACReasons()
		r, err := judge(c.change(slices.Clone(log), &why), why)
		switch {
		case c.want == "" && err != nil, c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
			t.Errorf("%s: %v, want %q", c.what, err, c.want)
		case r.Stores < 60 || r.Reasoned < 10:
			t.Errorf("%s: %v", c.what, r)
		}
	}
}
