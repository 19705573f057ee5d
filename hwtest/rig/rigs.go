package main

import (
	"context"
	"fmt"

	"github.com/gostmmac/gostmmac/hwtest/rig/debian"
	"github.com/gostmmac/gostmmac/hwtest/rig/kernel"
)

// env is what a rig has at hand.
type env struct {
	tree  *debian.Tree
	cache string // the cache folder
	logs  string // the folder for logs, which is there
	match string // a part of the names of the boots that are run
}

// rig is a judge with what it judges.
type rig struct {
	name  string
	what  string
	needs string
	// packages are what the cache folder holds for it.
	packages []string
	guests   bool // it boots kernels
	run      func(ctx context.Context, e env, r *report)
}

// rigs returns all rigs.
func rigs() []rig {
	return []rig{
		{"qtest", "QEMU's npcm_gmac (GMAC 3.x, normal descriptors) on npcm845-evb and npcm750-evb, reached over qtest",
			"Linux on amd64 or arm64, and what setup brings; no root", []string{debian.QEMUArm}, false, qtestRig},
		{"vfiouser", "QEMU's vfio-user-pci on q35 as the client of vfio/vfiouser, what a guest would do reached over qtest",
			"Linux on amd64 or arm64, and what setup brings; no root", []string{debian.QEMUX86}, false, vfioUserRig},
		{"linux-on-model", "the stock Linux drivers on the models: dwmac-motorcomm on a YT6801, dwmac-intel on Elkhart Lake, and stmmac by a glue on bare MACs",
			"Linux on amd64 or arm64, and what setup brings; no root", append(kernel.Packages(), debian.QEMUX86), true, linuxModelRig},
		{"vfio-pci", "our driver in guests, on the models by the kernel's vfio-pci: type 1, iommufd, without an IOMMU; MSI-X, MSI, INTx",
			"Linux on amd64 or arm64, and what setup brings; no root", append(kernel.Packages(), debian.QEMUX86), true, vfioPCIRig},
		{"vfio-platform", "the kernel's vfio-platform on npcm845-evb, under the driver as a program of the guest, with the stock driver at the other end",
			"Linux on amd64 or arm64, and what setup brings; no root", append(kernel.Packages(), debian.QEMUArm), true, vfioPlatformRig},
	}
}

// choose returns rigs by name, and all without names.
func choose(names []string) (chosen []rig, err error) {
	if len(names) == 0 {
		return rigs(), nil
	}
	for _, n := range names {
		r, ok := find(n)
		if !ok {
			return nil, wrongUsage(fmt.Sprintf("there is no rig %q; rig list names them", n))
		}
		chosen = append(chosen, r)
	}
	return chosen, nil
}

// find returns a rig by name.
func find(name string) (rig, bool) {
	for _, r := range rigs() {
		if r.name == name {
			return r, true
		}
	}
	return rig{}, false
}
