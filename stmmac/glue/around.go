package glue

import "github.com/gostmmac/gostmmac/stmmac"

// around is a device that another one wraps. What a Mapper may have beside its
// methods (see pagepool.Mapper) is that of the device behind it.
type around struct{ stmmac.Device }

// Unwrap returns the device behind.
func (a around) Unwrap() stmmac.Device { return a.Device }

// PinsDMA says whether memory that is mapped stays in place and in memory.
func (a around) PinsDMA() bool {
	p, ok := a.Device.(interface{ PinsDMA() bool })
	return ok && p.PinsDMA()
}

// MaxContiguousDMA is the most bytes that can lie together on the bus, 0 for any
// number.
func (a around) MaxContiguousDMA() int {
	if c, ok := a.Device.(interface{ MaxContiguousDMA() int }); ok {
		return c.MaxContiguousDMA()
	}
	return 0
}
