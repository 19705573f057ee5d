package vfiopci

import (
	"fmt"

	"github.com/gostmmac/gostmmac/hwtest/rig/cards"
	"github.com/gostmmac/gostmmac/hwtest/rig/chips"
	"github.com/gostmmac/gostmmac/hwtest/rig/kernel"
	"github.com/gostmmac/gostmmac/stmmac/sim"
)

// Boot is a guest in which cards are reached in one way.
type Boot struct {
	Name string
	// sets are those of the modules of VFIO; nil is Debian's own.
	sets []string
	// iommu is whether the guest has one.
	iommu bool
	// key is the value of iommu= in addresses, and other that of a second domain.
	key, other string
	// backend is what the driver calls the way.
	backend string
	// full is whether the whole list of hardware tests is run.
	full bool
}

// Boots returns all, in the order in which they are run: one way to a device each, because
// the kernel does not go from one to another while a process has a device open, and the
// modules differ.
func Boots() []*Boot {
	return []*Boot{
		{Name: "type1", iommu: true, key: "group", other: "auto", backend: "group", full: true},
		{Name: "iommufd", sets: []string{kernel.VFIO}, iommu: true, key: "iommufd", other: "auto", backend: "iommufd"},
		{Name: "noiommu group", sets: []string{kernel.VFIO}, key: "noiommu-group", other: "noiommu", backend: "group"},
		{Name: "noiommu cdev", sets: []string{kernel.VFIO}, key: "noiommu", other: "noiommu-group", backend: "iommufd"},
	}
}

// Cards by what they are for, two that are joined by a cable each. Those of the generators
// have wires of the rig instead.
const (
	msix, msi, intx = 0, 2, 4
	generators      = 6
	ours            = 8 // how many our driver has
	kernels         = 8 // two that the kernel's driver has, where there is a full list
)

// kind is a kind of interrupts.
type kind struct {
	name  string
	card  int    // the first of two
	vfio  string // what the kernel calls its vectors
	chip  string
	chips chips.Interrupts
}

func kinds() []kind {
	return []kind{
		{"MSI-X", msix, "msix", "yt6801", chips.MSIX},
		// A vector for each queue and direction.
		{"MSI", msi, "msi", "ehl", chips.MSI},
		{"INTx", intx, "intx", "yt6801", chips.INTx},
	}
}

// cards are those of a guest, and the ends of the cables of the generators.
func (b *Boot) cards() (all []cards.Card, ends [2]*socket) {
	const onCable = 512 // frames
	for _, k := range kinds() {
		x, y := sim.NewPair(onCable)
		for _, w := range []sim.Wire{x, y} {
			all = append(all, cards.Card{Chip: k.chip, Wire: w, Options: chips.Options{Only: k.chips, Strict: true}})
		}
	}
	for i := range ends {
		ends[i] = new(socket)
		all = append(all, cards.Card{Chip: "yt6801", Wire: ends[i], Options: chips.Options{Only: chips.MSIX, Strict: true}})
	}
	if b.full {
		// The kernel's driver needs another profile of the model.
		x, y := sim.NewPair(onCable)
		for _, w := range []sim.Wire{x, y} {
			all = append(all, cards.Card{Chip: "yt6801", Wire: w})
		}
	}
	return all, ends
}

// address is that of a card for the driver, in the first domain or in the second.
func (b *Boot) address(card int, other bool) string {
	key := b.key
	if other {
		key = b.other
	}
	return fmt.Sprintf("pci:%s,iommu=%s", cards.Place(card), key)
}
