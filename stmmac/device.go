package stmmac

import (
	"context"

	"github.com/gostmmac/gostmmac/mmio"
	"github.com/gostmmac/gostmmac/pagepool"
)

// Region is a range of 32-bit registers.
type Region = mmio.Region

// Interrupt is an interrupt vector.
type Interrupt = mmio.Interrupt

// MapRegion returns the registers that lie in mem, which is mapped from a
// device: for transports that are not of this module. See [mmio.Map].
func MapRegion(mem []byte) Region { return mmio.Map(mem) }

// Device is what a MAC is reached through. It belongs to whoever made it:
// closing a MAC does not close its Device, so that the MAC can be opened again.
// Its methods may be called by several goroutines.
type Device interface {
	// Region returns a range of registers by number: the BAR of a PCI
	// function, the reg entry of a platform device.
	Region(i int) (Region, error)
	// NumInterrupts is how many interrupt vectors there are. With none the
	// queues poll when they wait.
	NumInterrupts() int
	// Interrupt returns a vector, enabled. Closing it disables it; it can be
	// had again then.
	Interrupt(i int) (Interrupt, error)
	// Mapper makes memory reachable for the device.
	pagepool.Mapper
	// Reset resets the device from outside, as a PCI function-level reset
	// does. A device that cannot returns an error that is
	// errors.ErrUnsupported.
	Reset(ctx context.Context) error
	// Close gives the device back. It is safe to call twice.
	Close() error
}
