package mmio

import "context"

// Interrupt is one interrupt vector of a device.
type Interrupt interface {
	// Wait blocks until the vector has fired at least once since the last Wait
	// and returns how often it did, or until ctx ends (ctx.Err()) or the
	// interrupt is closed (net.ErrClosed). One goroutine waits at a time.
	Wait(ctx context.Context) (uint64, error)
	// Unmask lets a level-triggered vector that was masked when it fired fire
	// again. It does nothing on an edge-triggered one (MSI, MSI-X).
	Unmask() error
	// Close unblocks Wait. It is safe to call twice.
	Close() error
}
