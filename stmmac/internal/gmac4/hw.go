package gmac4

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"time"
	"unsafe"

	"github.com/gostmmac/gostmmac/mmio"
	"github.com/gostmmac/gostmmac/stmmac/internal/core"
	"github.com/gostmmac/gostmmac/stmmac/internal/regs"
	"github.com/gostmmac/gostmmac/stmmac/internal/regs/gmac4reg"
)

// Versions that this package drives: 4.00 to 5.30.
const (
	minVersion = 0x40
	maxVersion = 0x53
	version410 = 0x41
	version520 = 0x52
)

// maxQueues is how many queues and channels the register map has room for.
const maxQueues = 8

// HW is the register side of a GMAC4. It implements core.Hardware.
type HW struct {
	cfg  *core.Config
	csr  mmio.Region
	lay  regs.Layout
	feat core.Features

	rx, tx int // channels in use
	ch     [maxQueues]channel
	loop   bool // the next SetLink sets LM

	filter core.AddressFilter
	vlan   vlanState
	mmc    core.MMC
}

// channel is one DMA channel.
type channel struct {
	regs     mmio.Region
	mtl      mmio.Region
	irq      core.ChannelIRQ
	watchdog gmac4reg.RxWatchdog // of the receive interrupt; Setup programs it again
}

var _ core.Hardware = (*HW)(nil)

// New returns the hardware of the CSR space csr. It accesses nothing.
func New(cfg *core.Config, csr mmio.Region) *HW {
	h := &HW{cfg: cfg, csr: csr, lay: cfg.Layout, rx: cfg.RxQueues, tx: cfg.TxQueues}
	if h.lay == (regs.Layout{}) {
		h.lay = gmac4reg.DefaultLayout
	}
	summary := func(e uint32) uint32 { return uint32(h.summary(gmac4reg.CHInterrupt(e))) }
	for i := range h.ch {
		h.ch[i].regs = h.lay.DMAChannel(csr, i)
		h.ch[i].mtl = h.lay.MTLQueue(csr, i)
		h.ch[i].initIRQ(summary)
	}
	return h
}

func (h *HW) fail(op, reg string, val uint32, err error) error {
	return &core.Error{Op: op, Dev: h.cfg.Name, Reg: reg, Val: val, Err: err}
}

// Identify implements core.Hardware.
func (h *HW) Identify() (core.Features, error) {
	v := gmac4reg.MACVersion.Load(h.csr)
	ver := gmac4reg.SNPSVER.Get(v)
	switch {
	case uint32(v) == mmio.AllOnes:
		return core.Features{}, h.fail("identify", "MAC_Version", uint32(v),
			fmt.Errorf("%w or its memory space is disabled", core.ErrGone))
	case ver == 0 && gmac4reg.DMAMode.Load(h.csr)&gmac4reg.SWR != 0:
		return core.Features{}, h.fail("identify", "MAC_Version", uint32(v), fmt.Errorf(
			"a reset that somebody started has not ended: %w: check that the PHY is powered, out of reset and drives its receive clock",
			core.ErrNoClock))
	case ver == 0:
		return core.Features{}, h.fail("identify", "MAC_Version", uint32(v),
			fmt.Errorf("no MAC at offset %#x of region %d, or its clock is off: %w", h.cfg.CSROffset, h.cfg.RegionNo, errors.ErrUnsupported))
	case ver < minVersion || ver > maxVersion:
		return core.Features{}, h.fail("identify", "MAC_Version", uint32(v),
			fmt.Errorf("version %x.%x0 is not a GMAC4 or GMAC5 (4.00 to 5.30): %w", ver>>4, ver&0xf, errors.ErrUnsupported))
	}
	h.feat = readFeatures(h.csr, v)
	return h.feat, nil
}

// Limits implements core.Hardware.
func (h *HW) Limits() core.Limits {
	return core.Limits{
		DescSize: descSize, RingAlign: 64,
		MaxRxBuf: gmac4reg.MaxRBSZ, MaxTxBuf: gmac4reg.MaxBufLen, MaxMTU: 9000,
		VLANStrip: true, StripFCS: true, VectorEach: true,
	}
}

// Addr implements core.Hardware.
func (h *HW) Addr() net.HardwareAddr {
	hi := gmac4reg.MACAddressHigh.Load(h.csr)
	lo := gmac4reg.MACAddressLow.Load(h.csr)
	return net.HardwareAddr{byte(lo), byte(lo >> 8), byte(lo >> 16), byte(lo >> 24), byte(hi), byte(hi >> 8)}
}

// channels is how many DMA channels are in use.
func (h *HW) channels() int { return max(h.rx, h.tx) }

// Halt implements core.Hardware.
func (h *HW) Halt() {
	for i := range max(h.feat.RxChannels, h.feat.TxChannels) {
		gmac4reg.DMACHTxControl.Update(h.ch[i].regs, gmac4reg.ST, 0)
		gmac4reg.DMACHRxControl.Update(h.ch[i].regs, gmac4reg.SR, 0)
	}
	gmac4reg.MACConfiguration.Update(h.csr, gmac4reg.TE|gmac4reg.RE, 0)
}

// Reset implements core.Hardware.
func (h *HW) Reset(ctx context.Context) error {
	gmac4reg.DMAMode.Update(h.csr, 0, gmac4reg.SWR)
	v, err := core.Await(ctx, h.cfg.Clock, h.cfg.ResetTimeout, 10*time.Microsecond, 10*time.Millisecond,
		func() uint32 { return uint32(gmac4reg.DMAMode.Load(h.csr)) }, uint32(gmac4reg.SWR))
	if errors.Is(err, os.ErrDeadlineExceeded) {
		err = fmt.Errorf("SWR did not clear within %v: %w: check that the PHY is powered, out of reset and drives its receive clock",
			h.cfg.ResetTimeout, core.ErrNoClock)
	}
	if err != nil {
		return h.fail("reset", "DMA_Mode", v, err)
	}
	return nil
}

// ring describes a ring whose tail pointer is the register tail of channel ch.
// The doorbell contains the barrier that orders the stores of the OWN words
// before that of the tail.
func (h *HW) ring(ch int, tail mmio.Reg[uint32], m core.RingMemory) ring {
	slots := unsafe.Pointer(unsafe.SliceData(m.Mem.Bytes()))
	return ring{slots: slots, n: uint32(m.N), core: core.Ring{
		Format: h.format(), Words: unsafe.Add(slots, des3),
		Bell: mmio.NewDoorbell(h.ch[ch].regs, uint32(tail)), Base: uint32(m.Mem.Addr()), Step: descSize,
		Spare: 1, // the tail names it
	}}
}

// RxDescs implements core.Hardware. The size of the buffers is a register.
func (h *HW) RxDescs(ch int, m core.RingMemory, _ int) core.RxDescs {
	return &rxDescs{
		ring: h.ring(ch, gmac4reg.DMACHRxDescTailPointer, m), interrupts: 1,
		outer: h.cfg.VLANStrip, inner: h.cfg.VLANDouble,
	}
}

// TxDescs implements core.Hardware.
func (h *HW) TxDescs(ch int, m core.RingMemory) core.TxDescs {
	return &txDescs{h.ring(ch, gmac4reg.DMACHTxDescTailPointer, m)}
}

// macConfig is MAC_Configuration, as a link decides it.
func macConfig() core.MACConfig[gmac4reg.Configuration] {
	return core.MACConfig[gmac4reg.Configuration]{
		Reg: gmac4reg.MACConfiguration, TE: gmac4reg.TE, RE: gmac4reg.RE, Speed: gmac4reg.SpeedMask, DM: gmac4reg.DM, LM: gmac4reg.LM,
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
	return nil
}

// SetLoopback implements core.Hardware.
func (h *HW) SetLoopback(on bool) { h.loop = on }

// drainTime is how long the longest frame takes at 10 Mbit/s, and some more.
const drainTime = 10 * time.Millisecond

// drain waits until the frames that were on the line when transmitter and
// receiver were turned off are over, or for drainTime: the link is set in any case.
func (h *HW) drain() {
	core.Await(context.Background(), h.cfg.Clock, drainTime, time.Microsecond, drainTime,
		func() uint32 { return uint32(gmac4reg.MACDebug.Load(h.csr)) }, uint32(gmac4reg.TPESTS|gmac4reg.RPESTS))
}

func speedBits(mbit int) (gmac4reg.Configuration, bool) {
	switch mbit {
	case 10:
		return gmac4reg.PS, true
	case 100:
		return gmac4reg.PS | gmac4reg.FES, true
	case 1000:
		return 0, true
	case 2500:
		return gmac4reg.FES, true
	}
	return 0, false
}

// Start implements core.Hardware.
func (h *HW) Start() {
	for i := range h.rx {
		gmac4reg.DMACHRxControl.Update(h.ch[i].regs, 0, gmac4reg.SR)
	}
	for i := range h.tx {
		gmac4reg.DMACHTxControl.Update(h.ch[i].regs, 0, gmac4reg.ST)
	}
}

// Stop implements core.Hardware. The receiver goes first so that the FIFOs run
// empty; when the DMA does not come to rest in time a reset ends it.
func (h *HW) Stop(ctx context.Context) error {
	if uint32(gmac4reg.MACVersion.Load(h.csr)) == mmio.AllOnes {
		return h.fail("stop", "MAC_Version", mmio.AllOnes, core.ErrGone)
	}
	gmac4reg.MACConfiguration.Update(h.csr, gmac4reg.RE, 0)
	for i := range h.channels() {
		c := &h.ch[i]
		c.irq.Set(0)
		gmac4reg.DMACHTxControl.Update(c.regs, gmac4reg.ST, 0)
		gmac4reg.DMACHRxControl.Update(c.regs, gmac4reg.SR, 0)
	}
	rests := h.rests(ctx, h.channels())
	gmac4reg.MACConfiguration.Update(h.csr, gmac4reg.TE, 0)
	return h.orReset(ctx, rests)
}

// Halted implements core.Hardware.
func (h *HW) Halted(ctx context.Context) error {
	return h.orReset(ctx, h.rests(ctx, max(h.feat.RxChannels, h.feat.TxChannels)))
}

// rests waits until the DMA of the first channels, whose start bits are clear, is at rest, and
// says whether it is.
func (h *HW) rests(ctx context.Context, channels int) bool {
	deadline := h.cfg.Clock.Now() + h.cfg.StopTimeout
	for {
		late := h.cfg.Clock.Now() >= deadline
		if !h.running(channels) {
			return true
		}
		if late || h.cfg.Clock.Sleep(ctx, 50*time.Microsecond) != nil {
			return false
		}
	}
}

// orReset gives up on an orderly stop of a DMA that does not rest, also when ctx ended: memory
// must neither be given back nor taken under a running engine.
func (h *HW) orReset(ctx context.Context, rests bool) error {
	if rests {
		return nil
	}
	return h.Reset(context.WithoutCancel(ctx))
}

// StopReceiver implements core.Hardware.
func (h *HW) StopReceiver() { gmac4reg.MACConfiguration.Update(h.csr, gmac4reg.RE, 0) }

// RxPending implements core.Hardware. Receive queue ch feeds channel ch.
func (h *HW) RxPending(ch int) bool {
	v := gmac4reg.MTLRxQDebug.Load(h.ch[ch].mtl)
	return uint32(v) != mmio.AllOnes && (gmac4reg.PRXQ.Get(v) != 0 || gmac4reg.RXQSTS.Get(v) != 0)
}

// TxPending implements core.Hardware.
func (h *HW) TxPending(ch int) bool {
	v := gmac4reg.MTLTxQDebug.Load(h.ch[ch].mtl)
	return uint32(v) != mmio.AllOnes && v&(gmac4reg.TXQSTS|gmac4reg.TWCSTS) != 0
}

// TxPaused implements core.Hardware.
func (h *HW) TxPaused(ch int) bool {
	v := gmac4reg.MTLTxQDebug.Load(h.ch[ch].mtl)
	return uint32(v) != mmio.AllOnes && v&gmac4reg.TXQPAUSED != 0
}

// running says whether a DMA process of one of the first channels is not stopped.
func (h *HW) running(channels int) bool {
	for i := range channels {
		reg, shift := debugStatus(i)
		if v := reg.Load(h.csr); v != mmio.AllOnes && v>>shift&0xff != 0 {
			return true
		}
	}
	return false
}

// debugStatus says where the receive and transmit process states of a channel
// stand: four bits each, 0 is stopped.
func debugStatus(ch int) (mmio.Reg[uint32], uint) {
	switch {
	case ch < 3:
		return gmac4reg.DMADebugStatus0, uint(8 + 8*ch)
	case ch < 7:
		return gmac4reg.DMADebugStatus1, uint(8 * (ch - 3))
	}
	return gmac4reg.DMADebugStatus2, 0
}
