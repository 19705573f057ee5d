package main

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/gostmmac/gostmmac/vfio"
	"github.com/gostmmac/gostmmac/vfio/vfiotest"
)

// TestVFIO opens devices of a fake kernel: one that is not there, one that nobody
// knows, and a chip of which the MAC does not answer. Nothing stays open.
func TestVFIO(t *testing.T) {
	k, err := vfiotest.New(t.TempDir(), vfiotest.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer k.Free()
	chip := vfiotest.PCI{BDF: "0000:03:00.0", Vendor: 0x1f0a, Device: 0x6801, Group: 1, Driver: "vfio-pci", FLR: true,
		BARs: []vfiotest.Region{{Size: 0x10000, Read: func(off uint64, p []byte) {
			clear(p)
			if off == 0x1504 { // EFUSE_OP_CTRL_1 of the chip: done
				p[0] = 2
			}
		}, Write: func(uint64, []byte) {}}}}
	other := vfiotest.PCI{BDF: "0000:04:00.0", Vendor: 0x1af4, Device: 0x1041, Group: 2, Driver: "vfio-pci"}
	for _, p := range []vfiotest.PCI{chip, other} {
		if _, err := k.AddPCI(p); err != nil {
			t.Fatal(err)
		}
	}
	for _, tc := range []struct {
		dev  string
		is   error
		says string
	}{
		{"0000:05:00.0", vfio.ErrNoDevice, "no PCI function"},
		{other.BDF, errors.ErrUnsupported, "1af4:1041"},
		{chip.BDF, nil, "MAC_Version"},
	} {
		var out strings.Builder
		err := run(context.Background(), config{vfio: tc.dev, kernel: k, mtu: 1500}, &out)
		if err == nil || tc.is != nil && !errors.Is(err, tc.is) || !strings.Contains(err.Error(), tc.says) {
			t.Errorf("%s: %v", tc.dev, err)
		}
		if n := k.OpenFDs(); n != 0 || len(k.Mappings()) != 0 {
			t.Errorf("%s: %d descriptors and %v are left", tc.dev, n, k.Mappings())
		}
	}
}
