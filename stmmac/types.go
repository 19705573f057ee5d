package stmmac

import (
	"github.com/gostmmac/gostmmac/stmmac/internal/core"
	"github.com/gostmmac/gostmmac/stmmac/internal/regs"
	"github.com/gostmmac/gostmmac/stmmac/internal/regs/gmac4reg"
	"github.com/gostmmac/gostmmac/stmmac/internal/regs/gmacreg"
)

// Types that the generations share.
type (
	// Error is a failure of a call on a MAC or one of its queues.
	Error = core.Error
	// Config is what opening a MAC needs to know beside what its registers tell.
	Config = core.Config
	// AXI are the parameters of the bus interface.
	AXI = core.AXI
	// Coalesce says how events share interrupts.
	Coalesce = core.Coalesce
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
	// PHY is where a PHY is and what it is told to do.
	PHY = core.PHY
	// LinkModes is a set of speeds and duplexes.
	LinkModes = core.LinkModes
	// PauseMode says which pause frames are used.
	PauseMode = core.PauseMode
	// Filter says which received frames the MAC lets in.
	Filter = core.Filter
	// FilterUse says how the device does a Filter.
	FilterUse = core.FilterUse
	// Register is a register of a device and what it held.
	Register = core.Register
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

// Modes of a link, named as ethtool does.
const (
	Mode10Half   = core.Mode10Half
	Mode10Full   = core.Mode10Full
	Mode100Half  = core.Mode100Half
	Mode100Full  = core.Mode100Full
	Mode1000Full = core.Mode1000Full
	Mode2500Full = core.Mode2500Full
)

// Which pause frames are used.
const (
	PauseAuto = core.PauseAuto // advertise both directions, use what the partner agrees to
	PauseOff  = core.PauseOff  // neither
	PauseRx   = core.PauseRx   // obey those that are received
	PauseTx   = core.PauseTx   // send them
	PauseRxTx = core.PauseRxTx // both
)

// AnyPHY is the address of a PHY that is to be looked for.
const AnyPHY = core.AnyPHY

// MaxBatch is the largest number of buffers that one call of Recv, Send or
// Reap handles.
const MaxBatch = core.MaxBatch

// Reasons that errors wrap, for errors.Is.
var (
	ErrClosed        = core.ErrClosed        // the MAC was closed; net.ErrClosed
	ErrGone          = core.ErrGone          // the device does not answer any more
	ErrNoPHY         = core.ErrNoPHY         // no PHY answers
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
	switch g {
	case GMAC:
		return gmacreg.Map.Name(off)
	case GMAC4:
		return gmac4reg.Map.Name(off)
	}
	return ""
}
