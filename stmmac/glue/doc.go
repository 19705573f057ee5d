// Package glue knows the chips that a MAC is built into: by the ids of a PCI
// function or the compatibles of a platform device it tells which MAC that is, what
// no register of it tells, and what has to be done around it.
//
//	i, err := vfio.Lookup(vfio.System(), "1f0a:6801")
//	g, err := glue.Find(nil, i)
//	err = g.Support() // can package stmmac drive it at all?
//	d, err := vfio.Open(ctx, i.Name, vfio.WithDevice(g.DeviceOptions()...))
//	p, err := g.Prepare(ctx, d) // p closes d
//	m, err := stmmac.Open(ctx, p, g.Options(p.NumInterrupts())...)
//
// The tables hold facts of the glue drivers of Linux (drivers/net/ethernet/stmicro/stmmac,
// up to 7.3) and of its device tree bindings; where a fact is from elsewhere, or is not
// sure, the entry says so. Nothing of it was tried on the hardware by this project.
//
// Most chips have parts of a MAC's life outside of it, in blocks that a user of VFIO
// does not reach: clocks, resets, the choice between RGMII and RMII. Those are
// [Glue.Preconditions]. What of them can be seen to be missing is an error.
//
// Start reading at [Find]; pci.go and platform.go are the tables, yt6801.go is a block
// around a MAC. The package may import stmmac, vfio and mmio.
package glue
