package glue

import (
	"context"

	"github.com/gostmmac/gostmmac/stmmac"
)

// integration is how a MAC was built into a chip. The zero value of a field is
// that there is nothing to say.
type integration struct {
	name       string
	generation stmmac.Generation
	own        string   // what of its registers is no such generation's, and why stmmac cannot drive it
	needs      []string // what must be set up outside of the device
	limits     []string // what it cannot do

	// The registers are in region 0, or where one of these says.
	regName  string // the name of the region in reg-names
	firstBAR bool   // the first BAR that there is
	offset   uint32 // bytes from the start of the region to the CSR space

	csrClock  uint64 // Hz
	addrWidth int    // bits of a bus address
	rxFIFO    int    // bytes
	txFIFO    int    // bytes
	axi       stmmac.AXI
	descCache bool
	layout    stmmac.Layout
	phy       *stmmac.PHY
	vectors   *vectors
	noL1      bool // some cards send no MSI while ASPM L1 is on
	queueIRQs bool // interrupt-names has rx-queue-N and tx-queue-N, which are wired

	prepare func(context.Context, *Glue, stmmac.Device) (stmmac.Device, error)
}

// vectors are the interrupt vectors of a device that has one for each queue.
type vectors struct {
	least int // how many the device must offer; with fewer, vector 0 serves everything
	msi   stmmac.MSI
}
