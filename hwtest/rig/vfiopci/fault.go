package vfiopci

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

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
	if !f.Fatal || f.Close != "" {
		return fmt.Errorf("the driver says %q, and when it is closed %q", f.Error, f.Close)
	}
	kernel, err := h.faultOf(ctx, card)
	if err != nil {
		return err
	}
	// The model calls it a fault of its driver.
	outside := h.violations(card)
	if !slices.ContainsFunc(outside, func(v sim.Violation) bool { return v.Kind == sim.DMAOutside }) {
		return fmt.Errorf("%s was not refused any memory: %v", cards.Place(card), outside)
	}
	note.Printf(ctx, "behind %d frames: %s; the kernel: %s", f.Frames, f.Error, kernel)
	return h.audit()
}

// faultOf takes what the kernel of the guest says of faults of a card, which is provoked
// then, and returns the line that says which. The console is slower than the card.
func (h *Host) faultOf(ctx context.Context, card int) (line string, err error) {
	take := func() bool {
		for _, l := range h.Guest.TakeWarnings("DMAR: ") {
			if strings.Contains(l, "DMAR: [DMA ") && strings.Contains(l, cards.Place(card)) {
				line = l
			}
		}
		return line != ""
	}
	if err := poll(ctx, "the kernel of the guest says nothing of a fault of "+cards.Place(card), take); err != nil {
		return "", err
	}
	const more = 200 * time.Millisecond
	err = rest(ctx, more)
	take()
	return line, err
}
