package glue

import (
	"slices"

	"github.com/gostmmac/gostmmac/stmmac"
	"github.com/gostmmac/gostmmac/vfio"
)

// DeviceOptions are what the chip tells vfio.Domain.Open: no memory is mapped above
// what its bus addresses reach.
func (g *Glue) DeviceOptions() []vfio.DeviceOption {
	if g.AddrWidth == 0 {
		return nil
	}
	return []vfio.DeviceOption{vfio.WithAddrWidth(g.AddrWidth)}
}

// Options are what the chip tells stmmac.Open. n is how many interrupt vectors the
// device offers (NumInterrupts): with enough of them each queue gets the one that it
// is wired to, else vector 0 serves everything. Options after these override them.
func (g *Glue) Options(n int) []stmmac.Option {
	is, region, offset, clock, width := g.is, g.Region, g.CSROffset, g.CSRClock, g.AddrWidth
	opts := []stmmac.Option{
		stmmac.WithName(g.info.Name),
		stmmac.WithGeneration(g.Generation),
		stmmac.WithConfig(func(c *stmmac.Config) {
			c.RegionNo, c.CSROffset, c.CSRClock, c.AddrWidth = region, offset, clock, width
			c.RxFIFO, c.TxFIFO = is.rxFIFO, is.txFIFO
			c.AXI, c.DescCache, c.Layout = is.axi, is.descCache, is.layout
		}),
	}
	if v := is.vectors; v != nil && n >= v.least {
		opts = append(opts, stmmac.WithConfig(func(c *stmmac.Config) {
			c.MSI = &stmmac.MSI{Common: v.msi.Common, Rx: slices.Clone(v.msi.Rx), Tx: slices.Clone(v.msi.Tx)}
		}))
	}
	switch {
	case g.link != nil:
		opts = append(opts, stmmac.WithLink(*g.link))
	case is.phy != nil:
		opts = append(opts, stmmac.WithPHY(*is.phy))
	}
	if g.addr != nil {
		opts = append(opts, stmmac.WithHardwareAddr(slices.Clone(g.addr)))
	}
	return opts
}
