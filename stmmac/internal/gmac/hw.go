package gmac

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"time"

	"github.com/gostmmac/gostmmac/mmio"
	"github.com/gostmmac/gostmmac/stmmac/internal/core"
	"github.com/gostmmac/gostmmac/stmmac/internal/regs/gmacreg"
)

// Versions that this package drives: 3.00 to 3.70.
const (
	minVersion = 0x30
	maxVersion = 0x3f
	version350 = 0x35
	version370 = 0x37
)

// HW is the register side of a GMAC 3.x with one DMA channel. It implements
// core.Hardware.
type HW struct {
	cfg  *core.Config
	csr  mmio.Region
	feat core.Features
	// rxFloor is what the feature register says the receive FIFO has at least,
	// bytes; 0 if it does not.
	rxFloor int

	irq      core.ChannelIRQ
	watchdog gmacreg.Watchdog // of the receive interrupt; Setup programs it again
	loop     bool             // the next SetLink sets LM
	// verdicts is what the low byte of the receive status says of checksums.
	verdicts [256]uint8

	filter core.AddressFilter
	mmc    core.MMC
}

var _ core.Hardware = (*HW)(nil)

// New returns the hardware of the CSR space csr. It accesses nothing.
func New(cfg *core.Config, csr mmio.Region) *HW {
	h := &HW{cfg: cfg, csr: csr}
	h.initIRQ()
	return h
}

func (h *HW) fail(op, reg string, val uint32, err error) error {
	return &core.Error{Op: op, Dev: h.cfg.Name, Reg: reg, Val: val, Err: err}
}

// gone says that the device does not answer.
func (h *HW) gone() bool { return uint32(gmacreg.VersionReg.Load(h.csr)) == mmio.AllOnes }

// Identify implements core.Hardware.
func (h *HW) Identify() (core.Features, error) {
	v := gmacreg.VersionReg.Load(h.csr)
	ver := gmacreg.SNPSVER.Get(v)
	fail := func(format string, args ...any) (core.Features, error) {
		return core.Features{}, h.fail("identify", "Version", uint32(v), fmt.Errorf(format, args...))
	}
	switch {
	case uint32(v) == mmio.AllOnes:
		return fail("%w or its memory space is disabled", core.ErrGone)
	case ver == 0 && gmacreg.BusModeReg.Load(h.csr)&gmacreg.SWR != 0:
		return fail("a reset that somebody started has not ended: %w: check that the PHY is powered, out of reset and drives its receive clock",
			core.ErrNoClock)
	case ver == 0:
		return fail("no MAC at offset %#x of region %d, or its clock is off: %w", h.cfg.CSROffset, h.cfg.RegionNo, errors.ErrUnsupported)
	case ver < minVersion || ver > maxVersion:
		return fail("version %x.%x0 is not a GMAC 3.x: %w", ver>>4, ver&0xf, errors.ErrUnsupported)
	}
	f := gmacreg.HWFeatureReg.Load(h.csr)
	if f&gmacreg.ENHDESSEL != 0 {
		return core.Features{}, h.fail("identify", "HW_Feature", uint32(f),
			fmt.Errorf("the device was built for enhanced descriptors (ENHDESSEL), which the driver does not have yet: %w", errors.ErrUnsupported))
	}
	h.feat, h.rxFloor = features(h.cfg, v, f), 0
	if f&gmacreg.RXFIFOSIZE != 0 {
		h.rxFloor = rxFIFOAbove2K
	}
	return h.feat, nil
}

// Limits implements core.Hardware. A buffer size has eleven bits, and that of a
// receive buffer is a multiple of the bus width; no register tells that, so of the
// cache line.
func (h *HW) Limits() core.Limits {
	return core.Limits{
		DescSize: gmacreg.DescSize, RingAlign: 64,
		MaxRxBuf: gmacreg.MaxBufferSize &^ 63, MaxTxBuf: gmacreg.MaxBufferSize, MaxMTU: 9000,
		Chain: true, StripFCS: h.feat.Version >= version370,
	}
}

// AddrWidth implements core.Hardware: descriptors and lists have 32-bit addresses.
func (h *HW) AddrWidth() int {
	if w := h.cfg.AddrWidth; w != 0 {
		return min(w, h.feat.AddrWidth)
	}
	return h.feat.AddrWidth
}

// Addr implements core.Hardware.
func (h *HW) Addr() net.HardwareAddr {
	hi := gmacreg.MACAddressHigh.Load(h.csr)
	lo := gmacreg.MACAddressLow.Load(h.csr)
	return net.HardwareAddr{byte(lo), byte(lo >> 8), byte(lo >> 16), byte(lo >> 24), byte(hi), byte(hi >> 8)}
}

// Halt implements core.Hardware.
func (h *HW) Halt() {
	gmacreg.OperationModeReg.Update(h.csr, gmacreg.ST|gmacreg.SR, 0)
	gmacreg.MACConfiguration.Update(h.csr, gmacreg.TE|gmacreg.RE, 0)
}

// Reset implements core.Hardware.
func (h *HW) Reset(ctx context.Context) error {
	gmacreg.BusModeReg.Update(h.csr, 0, gmacreg.SWR)
	v, err := core.Await(ctx, h.cfg.Clock, h.cfg.ResetTimeout, 10*time.Microsecond, 10*time.Millisecond,
		func() uint32 { return uint32(gmacreg.BusModeReg.Load(h.csr)) }, uint32(gmacreg.SWR))
	if errors.Is(err, os.ErrDeadlineExceeded) {
		err = fmt.Errorf("SWR did not clear within %v: %w: check that the PHY is powered, out of reset and drives its receive clock",
			h.cfg.ResetTimeout, core.ErrNoClock)
	}
	if err != nil {
		return h.fail("reset", "Bus_Mode", v, err)
	}
	return nil
}

// Start implements core.Hardware.
func (h *HW) Start() { gmacreg.OperationModeReg.Update(h.csr, 0, gmacreg.SR|gmacreg.ST) }

// Stop implements core.Hardware. The receiver goes first so that the FIFO runs
// empty; when the DMA does not come to rest in time a reset ends it.
func (h *HW) Stop(ctx context.Context) error {
	if h.gone() {
		return h.fail("stop", "Version", mmio.AllOnes, core.ErrGone)
	}
	h.StopReceiver()
	h.irq.Set(0)
	gmacreg.OperationModeReg.Update(h.csr, gmacreg.ST|gmacreg.SR, 0)
	rests := h.rests(ctx)
	gmacreg.MACConfiguration.Update(h.csr, gmacreg.TE, 0)
	return h.orReset(ctx, rests)
}

// Halted implements core.Hardware.
func (h *HW) Halted(ctx context.Context) error { return h.orReset(ctx, h.rests(ctx)) }

// rests waits until the DMA, whose start bits are clear, is at rest, and says whether it is.
func (h *HW) rests(ctx context.Context) bool {
	_, err := core.Await(ctx, h.cfg.Clock, h.cfg.StopTimeout, 50*time.Microsecond, 50*time.Microsecond,
		func() uint32 { return uint32(gmacreg.StatusReg.Load(h.csr)) }, uint32(gmacreg.RS.Mask()|gmacreg.TS.Mask()))
	return err == nil || errors.Is(err, core.ErrGone)
}

// orReset gives up on an orderly stop of a DMA that does not rest, also when ctx ended: memory
// must neither be given back nor taken under a running engine.
func (h *HW) orReset(ctx context.Context, rests bool) error {
	if rests {
		return nil
	}
	return h.Reset(context.WithoutCancel(ctx))
}

// macConfig is MAC_Configuration, as a link decides it.
func macConfig() core.MACConfig[gmacreg.Configuration] {
	return core.MACConfig[gmacreg.Configuration]{
		Reg: gmacreg.MACConfiguration, TE: gmacreg.TE, RE: gmacreg.RE, Speed: gmacreg.SpeedMask, DM: gmacreg.DM, LM: gmacreg.LM,
	}
}

// SetLink implements core.Hardware.
func (h *HW) SetLink(l core.Link) error {
	speed, ok := speedBits(l.Speed)
	if err := h.feat.CheckLink(l, ok); err != nil {
		return h.fail("set link", "", 0, err)
	}
	answers := macConfig().SetLink(h.csr, l, speed, h.loop, func() {
		h.drain()
		h.setFlow(l)
	})
	if !answers {
		return h.fail("set link", "MAC_Configuration", mmio.AllOnes, core.ErrGone)
	}
	if !l.Up {
		return nil
	}
	// A device that held frames back while the receiver was off need not look at
	// them again because it is on (QEMU's does not): it does so when the DMA is
	// started, which it may be twice. The read makes it take that too.
	gmacreg.OperationModeReg.Update(h.csr, 0, 0)
	gmacreg.OperationModeReg.Load(h.csr)
	return nil
}

func speedBits(mbit int) (gmacreg.Configuration, bool) {
	switch mbit {
	case 10:
		return gmacreg.PS, true
	case 100:
		return gmacreg.PS | gmacreg.FES, true
	case 1000:
		return 0, true
	}
	return 0, false
}

// drainTime is how long the longest frame takes at 10 Mbit/s, and some more.
const drainTime = 10 * time.Millisecond

// drain waits until the frames that were on the line when transmitter and
// receiver were turned off are over, or for drainTime: the link is set in any case.
func (h *HW) drain() {
	core.Await(context.Background(), h.cfg.Clock, drainTime, time.Microsecond, drainTime,
		func() uint32 { return uint32(gmacreg.DebugReg.Load(h.csr)) }, uint32(gmacreg.TPESTS|gmacreg.RPESTS))
}

// LinkModes implements core.Hardware: what SetLink takes.
func (h *HW) LinkModes() core.LinkModes { return h.feat.LinkModes(core.Mode1000Full) }

// SetLoopback implements core.Hardware.
func (h *HW) SetLoopback(on bool) { h.loop = on }

// StopReceiver implements core.Hardware.
func (h *HW) StopReceiver() { gmacreg.MACConfiguration.Update(h.csr, gmacreg.RE, 0) }

// debug reads what the MAC is doing; a device that is gone does nothing.
func (h *HW) debug() gmacreg.Debug {
	v := gmacreg.DebugReg.Load(h.csr)
	if uint32(v) == mmio.AllOnes {
		return 0
	}
	return v
}

// RxPending implements core.Hardware.
func (h *HW) RxPending(int) bool {
	return h.debug()&(gmacreg.RXFSTS.Mask()|gmacreg.RRCSTS.Mask()|gmacreg.RWCSTS) != 0
}

// TxPending implements core.Hardware.
func (h *HW) TxPending(int) bool { return h.debug()&(gmacreg.TXFSTS|gmacreg.TWCSTS) != 0 }

// TxPaused implements core.Hardware.
func (h *HW) TxPaused(int) bool { return h.debug()&gmacreg.TXPAUSED != 0 }

// DivideTxFIFO implements core.Hardware: there is one queue.
func (h *HW) DivideTxFIFO(int) {}
