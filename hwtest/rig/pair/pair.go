package pair

import (
	"context"
	"errors"

	"github.com/gostmmac/gostmmac/hwtest/rig/cards"
	"github.com/gostmmac/gostmmac/hwtest/rig/chips"
	"github.com/gostmmac/gostmmac/hwtest/rig/debian"
	"github.com/gostmmac/gostmmac/hwtest/rig/guest"
	"github.com/gostmmac/gostmmac/hwtest/rig/kernel"
	"github.com/gostmmac/gostmmac/stmmac/sim"
)

// Config is what is booted.
type Config struct {
	Tree   *debian.Tree
	Kernel *kernel.Kernel
	Dir    string // a folder for logs, which is there

	Chips   [2]string // by name
	Options chips.Options
	// IOMMU and CommandLine are those of guest.Config.
	IOMMU       bool
	CommandLine string
	// Sets and Modules are those of the kernel that are loaded, and Params what they are
	// loaded with, by name.
	Sets, Modules []string
	Params        map[string]string
	// Log gets the lines that jobs write; nil drops them.
	Log func(job, line string)
}

// Start boots the guest and loads the modules. The caller closes it.
func Start(ctx context.Context, c Config) (*cards.Host, error) {
	const onCable = 512 // frames
	a, b := sim.NewPair(onCable)
	h, err := cards.Start(ctx, cards.Config{
		Guest: guest.Config{Tree: c.Tree, Kernel: c.Kernel, Dir: c.Dir, IOMMU: c.IOMMU, CommandLine: c.CommandLine, Log: c.Log},
		Cards: []cards.Card{{Chip: c.Chips[0], Wire: a, Options: c.Options}, {Chip: c.Chips[1], Wire: b, Options: c.Options}},
		Sets:  c.Sets, Modules: c.Modules,
	})
	if err != nil {
		return nil, err
	}
	if err := h.Guest.Load(ctx, h.Modules, c.Params); err != nil {
		return nil, errors.Join(err, h.Close())
	}
	return h, nil
}
