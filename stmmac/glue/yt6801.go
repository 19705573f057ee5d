package glue

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/gostmmac/gostmmac/mmio"
	"github.com/gostmmac/gostmmac/stmmac"
	"github.com/gostmmac/gostmmac/vfio"
)

// yt6801Integration is a GMAC 5.x at 0x2000 of BAR 0, behind a block of Motorcomm's
// own.
var yt6801Integration = integration{
	name: "Motorcomm YT6801", generation: stmmac.GMAC4, offset: 0x2000,
	needs: []string{"ASPM L1 is off on its PCIe link: some cards send no MSI with it"},
	noL1:  true,
	// The crystal that the chip needs; Linux chooses the MDC divider for 20 to
	// 35 MHz and calls it likely. It computes the receive watchdog from 125 MHz: if
	// that is right, an RxTime passes five times as fast as it was asked for.
	csrClock: 25_000_000,
	// Vectors 0, 4 and 5 are those of Linux, which uses one queue each way; 1 to 3
	// for the other receive channels are by their numbering.
	vectors: &vectors{least: 6, msi: stmmac.MSI{Common: 5, Rx: []int{0, 1, 2, 3}, Tx: []int{4}}},
	prepare: prepareYT6801,
}

// Registers of the block, offsets in BAR 0. Names and bits are those of Linux
// (dwmac-motorcomm.c); there is no public data sheet.
const (
	ephyCtrl      mmio.Reg[ephyControl]    = 0x1004
	oobWOLCtrl    mmio.Reg[oobWOLControl]  = 0x1010
	mgmtIntCtrl0  mmio.Reg[mgmtIntControl] = 0x1100
	intModeration mmio.Reg[moderation]     = 0x1108
	efuseOpCtrl0  mmio.Reg[efuseCommand]   = 0x1500
	efuseOpCtrl1  mmio.Reg[efuseResult]    = 0x1504
	sysReset      mmio.Reg[systemReset]    = 0x152c
)

// yt6801Block is where the block ends.
const yt6801Block = 0x1530

type (
	ephyControl    uint32
	oobWOLControl  uint32
	mgmtIntControl uint32
	moderation     uint32
	efuseCommand   uint32
	efuseResult    uint32
	systemReset    uint32
)

const (
	ephyRunning     ephyControl   = 1 << 0  // clear: the PHY and the MDIO bus are in reset
	oobWOLDisable   oobWOLControl = 1 << 0  // while it is clear the DMA raises no interrupt
	systemReleased  systemReset   = 1 << 31 // clear: the MAC and the block are in reset
	rxModeration                  = mmio.Field[moderation](0xfff)
	txModeration                  = mmio.Field[moderation](0xfff << 16)
	moderationValue               = 200 // of unknown unit; Linux's for both directions
)

// yt6801 is the device with its block set up.
type yt6801 struct {
	around
	name string
	regs mmio.Region
	was  yt6801State

	mu       sync.Mutex // held while the block is written to
	closed   bool
	closeErr error
}

// yt6801State is what Close puts back.
type yt6801State struct {
	ephy   ephyControl
	wol    oobWOLControl
	intr   mgmtIntControl
	pacing moderation
}

// prepareYT6801 brings the block up as Linux does when it probes the chip: the order
// and the values are those of a trace of the stock driver's accesses. That the MAC's
// address is read between reset and set-up is from its source.
func prepareYT6801(ctx context.Context, g *Glue, d stmmac.Device) (stmmac.Device, error) {
	fail := func(err error, remedy string) (stmmac.Device, error) { return nil, g.fail("prepare", err, remedy) }
	regs, err := d.Region(0)
	if err != nil {
		return fail(fmt.Errorf("region 0: %w", err), "")
	}
	if n := regs.Len(); n < yt6801Block {
		return fail(fmt.Errorf("region 0 has %d bytes, too few for the block around the MAC: %w", n, errors.ErrUnsupported), "")
	}
	y := &yt6801{around: around{d}, name: g.info.Name, regs: regs, was: yt6801State{
		ephy: ephyCtrl.Load(regs), wol: oobWOLCtrl.Load(regs), intr: mgmtIntCtrl0.Load(regs), pacing: intModeration.Load(regs),
	}}
	if err := y.reset(); err != nil {
		return fail(err, "see whether lspci still shows it, and the kernel log")
	}
	addr, err := readEFuseAddr(ctx, regs)
	if err != nil {
		y.undo()
		return fail(fmt.Errorf("read the MAC's address: %w", err), "power the machine off and on")
	}
	if isUnicast(addr) {
		g.addr = addr
	}
	y.init()
	return y, nil
}

// reset resets the MAC and the block and lets the PHY run. Linux waits for nothing
// in between; the read of EPHY_CTRL makes the device take the writes before it.
func (y *yt6801) reset() error {
	v := sysReset.Load(y.regs)
	if uint32(v) == mmio.AllOnes {
		return fmt.Errorf("SYS_RESET reads all ones: %w", vfio.ErrGone)
	}
	sysReset.Store(y.regs, v&^systemReleased)
	sysReset.Store(y.regs, v|systemReleased)
	ephyCtrl.Update(y.regs, 0, ephyRunning)
	return nil
}

// init lets the interrupts of the MAC through.
func (y *yt6801) init() {
	mgmtIntCtrl0.Store(y.regs, 0)
	intModeration.Store(y.regs, rxModeration.Of(moderationValue)|txModeration.Of(moderationValue))
	oobWOLCtrl.Store(y.regs, oobWOLDisable)
}

// undo puts the block back as it was found, so that the firmware's wake-on-LAN
// works again.
func (y *yt6801) undo() {
	oobWOLCtrl.Store(y.regs, y.was.wol)
	intModeration.Store(y.regs, y.was.pacing)
	mgmtIntCtrl0.Store(y.regs, y.was.intr)
	ephyCtrl.Store(y.regs, y.was.ephy)
}

// Reset implements stmmac.Device: a reset from outside takes the block too, and
// without it neither the PHY nor an interrupt would come back.
func (y *yt6801) Reset(ctx context.Context) error {
	y.mu.Lock()
	defer y.mu.Unlock()
	if y.closed {
		return &vfio.Error{Op: "reset", Dev: y.name, Err: vfio.ErrClosed}
	}
	if err := y.Device.Reset(ctx); err != nil {
		return err
	}
	if err := y.reset(); err != nil {
		return &vfio.Error{Op: "reset", Dev: y.name, Err: err}
	}
	y.init()
	return nil
}

// Close implements stmmac.Device.
func (y *yt6801) Close() error {
	y.mu.Lock()
	defer y.mu.Unlock()
	if !y.closed {
		y.closed = true
		// Writes to a device that is gone go nowhere.
		y.undo()
		y.closeErr = y.Device.Close()
	}
	return y.closeErr
}
