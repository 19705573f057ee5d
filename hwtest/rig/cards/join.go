package cards

import (
	"context"
	"time"

	"github.com/gostmmac/gostmmac/stmmac/sim"
)

// lookEvery is how often it is looked what the PHYs of two cards offer each other. A
// negotiation takes longer.
const lookEvery = 5 * time.Millisecond

// Join makes the PHYs of two cards the ends of one cable, until the host is closed: each is
// the partner of the other, and a PHY that is powered down is a cable that was pulled.
// Without it each has a partner that does all.
func (h *Host) Join(a, b int) {
	models := [2]*sim.Model{h.Cards[a].Model(), h.Cards[b].Model()}
	h.serve.Go(func() { join(h.serving, models) })
}

func join(ctx context.Context, models [2]*sim.Model) {
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	var known [2]sim.Partner
	for first := true; ; first = false {
		for i, m := range models {
			s := m.PHYState()
			now := s.Offer
			if s.Reset || now == known[i] && !first {
				continue // a reset is over before anybody sees it
			}
			known[i] = now
			other := models[1-i]
			if now.Modes != 0 {
				other.SetPartner(now)
			}
			other.SetCable(now.Modes != 0)
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}
