package main

import (
	"context"
	"errors"

	"github.com/gostmmac/gostmmac/stmmac"
	"github.com/gostmmac/gostmmac/stmmac/glue"
	"github.com/gostmmac/gostmmac/vfio"
)

// openVFIO opens the device that addr names and that is with vfio-pci or
// vfio-platform, and returns what its chip tells stmmac.Open.
func openVFIO(ctx context.Context, k vfio.Kernel, addr string) (stmmac.Device, []stmmac.Option, error) {
	i, err := vfio.Lookup(k, addr)
	if err != nil {
		return nil, nil, err
	}
	g, err := glue.Find(k, i)
	if err != nil {
		return nil, nil, err
	}
	// Before the device is opened, which resets it.
	if err := errors.Join(g.Support(), g.Missing()); err != nil {
		return nil, nil, err
	}
	d, err := vfio.Open(ctx, i.Name, vfio.WithKernel(k), vfio.WithDevice(g.DeviceOptions()...))
	if err != nil {
		return nil, nil, err
	}
	p, err := g.Prepare(ctx, d)
	if err != nil {
		return nil, nil, errors.Join(err, d.Close())
	}
	return p, g.Options(p.NumInterrupts()), nil
}
