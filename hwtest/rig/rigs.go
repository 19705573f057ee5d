package main

import (
	"context"

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
	run      func(ctx context.Context, e env, r *report)
}

// rigs returns all rigs.
func rigs() []rig {
	return []rig{
		{"qtest", "QEMU's npcm_gmac (GMAC 3.x, normal descriptors) on npcm845-evb and npcm750-evb, reached over qtest",
			"Linux on amd64 or arm64, and what setup brings; no root", []string{debian.QEMUArm}, qtestRig},
		{"vfiouser", "QEMU's vfio-user-pci on q35 as the client of vfio/vfiouser, what a guest would do reached over qtest",
			"Linux on amd64 or arm64, and what setup brings; no root", []string{debian.QEMUX86}, vfioUserRig},
		{"linux-on-model", "the stock Linux drivers on the models: dwmac-motorcomm, dwmac-intel, and a glue for bare MACs",
			"Linux on amd64 or arm64, and what setup brings; no root", []string{debian.QEMUX86}, linuxModelRig},
	}
}

// packages are what all rigs need together, and what the kernels of guests are made with.
func packages() []string {
	all := kernel.Packages()
	for _, r := range rigs() {
		all = append(all, r.packages...)
	}
	return all
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
