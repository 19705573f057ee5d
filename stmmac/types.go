package stmmac

import (
	"github.com/gostmmac/gostmmac/stmmac/internal/core"
	"github.com/gostmmac/gostmmac/stmmac/internal/regs"
	"github.com/gostmmac/gostmmac/stmmac/internal/regs/gmac4reg"
)

// Types that the generations share.
type (
	// Error is a failure of a call on a MAC or one of its queues.
	Error = core.Error
	// Config is what opening a MAC needs to know beside what its registers tell.
	Config = core.Config
	// AXI are the parameters of the bus interface.
	AXI = core.AXI
	// Recovery says what becomes of a MAC that met a fault.
	Recovery = core.Recovery
	// MSI says which interrupt vectors of the device serve what.
	MSI = core.MSI
	// Layout says where the registers of channels and queues lie.
	Layout = regs.Layout
	// Generation is a line of the MAC's IP.
	Generation = core.Generation
	// Features is what the feature registers of the device tell.
	Features = core.Features
	// Link is the state of the link.
	Link = core.Link
	// Filter says which received frames the MAC lets in.
	Filter = core.Filter
	// FilterUse says how the device does a Filter.
	FilterUse = core.FilterUse
	// Queues says how several queues share the MAC.
	Queues = core.Queues
	// TxSched is how the MAC chooses between transmit queues.
	TxSched = core.TxSched
	// RxArb is how the MAC chooses between receive queues.
	RxArb = core.RxArb
	// RxStats counts what a receive queue did.
	RxStats = core.RxStats
	// TxStats counts what a transmit queue did.
	TxStats = core.TxStats
	// RxLayout is where in a buffer the device writes.
	RxLayout = core.RxLayout
	// Clock is the source of time of a MAC.
	Clock = core.Clock
)

// Generations.
const (
	MAC100 = core.MAC100
	GMAC   = core.GMAC
	GMAC4  = core.GMAC4
	XGMAC  = core.XGMAC
)

// How the MAC chooses between queues.
const (
	TxWRR  = core.TxWRR
	TxWFQ  = core.TxWFQ
	TxDWRR = core.TxDWRR
	TxSP   = core.TxSP
	RxSP   = core.RxSP
	RxWSP  = core.RxWSP
)

// MaxBatch is the largest number of buffers that one call of Recv, Send or
// Reap handles.
const MaxBatch = core.MaxBatch

// Reasons that errors wrap, for errors.Is.
var (
	ErrClosed        = core.ErrClosed        // the MAC was closed; net.ErrClosed
	ErrGone          = core.ErrGone          // the device does not answer any more
	ErrNoClock       = core.ErrNoClock       // the clocks of the PHY do not run
	ErrFatalBus      = core.ErrFatalBus      // the device met a bus error
	ErrStalled       = core.ErrStalled       // a queue stood still with something to do
	ErrFrameTooLong  = core.ErrFrameTooLong  // longer than the MTU, the FIFO or the ring allows
	ErrFrameTooShort = core.ErrFrameTooShort // shorter than the Ethernet header, or an empty buffer
	ErrForeignBuffer = core.ErrForeignBuffer // of no arena that is mapped for the device
	ErrNoHeadroom    = core.ErrNoHeadroom    // no room in front of a frame for its VLAN tags
	ErrNotHeld       = core.ErrNotHeld       // free, or already with a queue
)

// ParseGeneration returns the generation that an address string names: mac100,
// gmac, gmac4 or xgmac.
func ParseGeneration(s string) (Generation, bool) { return core.ParseGeneration(s) }

// RegName returns the databook name of the register at off in the CSR space of
// a generation, in the databook's layout, or "" if it has none.
func RegName(g Generation, off uint32) string {
	if g != GMAC4 {
		return ""
	}
	return gmac4reg.Map.Name(off)
}
