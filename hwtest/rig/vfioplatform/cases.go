package vfioplatform

import (
	"context"
	"time"
)

// Case is what is done with a guest that was started, in the order of the list: what one
// leaves behind the next one needs.
type Case struct {
	Name string
	Run  func(ctx context.Context, h *Host) error
}

// Guard is how long a case may take: far more than it needs.
const Guard = 4 * time.Minute

// Cases returns the list.
func Cases() []Case {
	return []Case{
		{"try", func(ctx context.Context, h *Host) error {
			return h.try(ctx)
		}},
		{"killed", killed},
		{"frames", func(ctx context.Context, h *Host) error { return h.bothWays(ctx, traffic{mtu: 1500, min: 14}) }},
		{"frames, polling", func(ctx context.Context, h *Host) error {
			return h.bothWays(ctx, traffic{mtu: 1500, min: 14, poll: true})
		}},
	}
}
