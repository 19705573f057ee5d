package main

import (
	"fmt"
	"strings"

	"github.com/gostmmac/gostmmac/examples/internal/cli"
	"github.com/gostmmac/gostmmac/stmmac/bus"
	"github.com/gostmmac/gostmmac/vfio"
)

// machineAddr is what vfio.Lookup takes for an address, and whether that is of a
// simulated device.
func machineAddr(addr string) (dev string, sim bool, err error) {
	scheme, _, _ := strings.Cut(addr, ":")
	switch scheme {
	case "sim", string(vfio.PCI), string(vfio.Platform):
	default:
		return addr, false, nil
	}
	a, err := bus.Parse(addr)
	if err != nil {
		return "", false, &cli.OpenError{Err: err}
	}
	return a.Location, a.Scheme == "sim", nil
}

// kernel is that of the machine which an opener opens devices of.
func kernel(o *bus.Opener) vfio.Kernel {
	if o.Kernel != nil {
		return o.Kernel
	}
	return vfio.System()
}

// realAddr is machineAddr for commands that cannot do anything with a simulated device.
func realAddr(c *config) (string, error) {
	dev, sim, err := machineAddr(c.addr)
	if sim {
		err = &cli.OpenError{Err: fmt.Errorf("%s is simulated and has no kernel driver; %s list shows the devices of the machine", c.addr, name)}
	}
	return dev, err
}

// address is the address of a device, as all commands take it.
func address(i *vfio.Info) string { return string(i.Bus) + ":" + i.Name }
