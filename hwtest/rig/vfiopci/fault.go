package vfiopci

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/gostmmac/gostmmac/hwtest/rig/cards"
	"github.com/gostmmac/gostmmac/hwtest/rig/note"
	"github.com/gostmmac/gostmmac/hwtest/rig/vfiopci/said"
	"github.com/gostmmac/gostmmac/stmmac/sim"
)

// fault takes the memory of a card from it while frames come in: the IOMMU refuses what it
// does then, the kernel of the guest says so, and the driver calls it a bus error.
func fault(ctx context.Context, h *Host) error {
	const card = msix
	var f said.Fault
	if err := h.value(ctx, nil, &f, stationBin, "fault", h.boot.address(card, false), h.boot.address(card+1, false)); err != nil {
		return err
	}
	if !f.Fatal {
		return fmt.Errorf("the driver says %q", f.Error)
	}
	said := h.Guest.TakeWarnings("DMAR: ")
	if len(said) == 0 {
		return errors.New("the kernel of the guest says nothing of a fault")
	}
	// The model calls it a fault of its driver.
	outside := h.violations(card)
	if !slices.ContainsFunc(outside, func(v sim.Violation) bool { return v.Kind == sim.DMAOutside }) {
		return fmt.Errorf("%s was not refused any memory: %v", cards.Place(card), outside)
	}
	note.Printf(ctx, "behind %d frames: %s; the kernel: %s", f.Frames, f.Error, said[len(said)-1])
	return h.audit()
}
