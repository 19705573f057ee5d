package vfiopci

import (
	"context"
	"fmt"

	"github.com/gostmmac/gostmmac/hwtest/rig/cards"
	"github.com/gostmmac/gostmmac/hwtest/rig/guest/jobs"
	"github.com/gostmmac/gostmmac/hwtest/rig/note"
	"github.com/gostmmac/gostmmac/hwtest/rig/vfiopci/said"
)

// exchange sends frames between two cards with one kind of interrupts.
func (h *Host) exchange(ctx context.Context, k kind) error {
	const frames = 512
	var e said.Exchange
	if err := h.station(ctx, nil, &e, k.card, frames); err != nil {
		return err
	}
	if e.Frames != 2*frames || e.Backend != h.boot.backend {
		return fmt.Errorf("%d frames by the back end %s (%s)", e.Frames, e.Backend, e.Because)
	}
	note.Printf(ctx, "%d frames, back end %s (%s)", e.Frames, e.Backend, e.Because)
	for i := range 2 {
		place := cards.Place(k.card + i)
		n := e.Interrupts[k.vfio][place]
		note.Printf(ctx, "%d interrupts of %s", n, place)
		// Whoever receives sleeps when a window of 16 frames is sent; on a busy machine it
		// may not sleep yet.
		if least := uint64(frames / 16 / 4); n < least {
			return fmt.Errorf("%d %s interrupts of %s for %d frames, want %d: %v", n, k.name, place, e.Frames, least, e.Interrupts)
		}
		for other, by := range e.Interrupts {
			if other != k.vfio && by[place] > 0 {
				return fmt.Errorf("%s has %d interrupts of another kind: %s", place, by[place], other)
			}
		}
	}
	return h.audit()
}

// station exchanges frames between a card and the one behind it.
func (h *Host) station(ctx context.Context, as *jobs.User, e *said.Exchange, card, frames int) error {
	return h.value(ctx, as, e, stationBin, h.stationArgs(card, frames)...)
}

func (h *Host) stationArgs(card, frames int) []string {
	return []string{"exchange", "-frames", fmt.Sprint(frames), h.boot.address(card, false), h.boot.address(card+1, false)}
}
