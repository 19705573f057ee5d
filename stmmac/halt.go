package stmmac

import (
	"context"
	"errors"

	"github.com/gostmmac/gostmmac/stmmac/internal/core"
)

// Halt stops the DMA of the MAC behind d and waits until it is at rest. A process that was
// killed may have left it running: it then writes to memory that is somebody else's by now,
// unless an IOMMU or a reset from outside keeps it from that. [Open] halts it too, before it
// makes memory of its own; Halt is for programs that make a pool first. Package glue does it
// for all devices that it prepares.
//
// opts are those of Open, of which the generation must be given. ctx bounds the wait, at the
// end of which the MAC is reset. On an error it may be running; that of a MAC that Open does not
// drive wraps errors.ErrUnsupported.
func Halt(ctx context.Context, d Device, opts ...Option) error {
	o := defaults()
	for _, opt := range opts {
		opt(&o)
	}
	err := validate(&o)
	var hw core.Hardware
	if err == nil {
		hw, err = hardware(&o.Config, d)
	}
	if err == nil {
		if _, err = hw.Identify(); errors.Is(err, ErrNoClock) {
			return nil // a reset that has not ended holds it
		}
	}
	if err == nil {
		hw.Halt()
		err = hw.Halted(ctx)
	}
	return wrap("halt", o.Name, err)
}
