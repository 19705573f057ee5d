package gmac4

import (
	"github.com/gostmmac/gostmmac/stmmac/internal/core"
	"github.com/gostmmac/gostmmac/stmmac/internal/regs/gmac4reg"
)

// Setup implements core.Hardware. The order of the steps is binding: it is that
// of the stock Linux driver, which is known to work on every integration.
func (h *HW) Setup(s core.Setup) error {
	h.setupBus(s.VectorEach)
	for i := range h.channels() {
		c := &h.ch[i]
		gmac4reg.DMACHControl.Store(c.regs, gmac4reg.PBLx8)
		c.irq.Set(core.EventFatal)
	}
	pbl := uint32(h.cfg.AXI.PBL)
	if pbl == 0 {
		pbl = 32
	}
	for i, m := range s.Rx {
		c := h.ch[i].regs
		gmac4reg.DMACHRxControl.Store(c, gmac4reg.RXPBL.Of(pbl))
		gmac4reg.DMACHRxDescListHAddr.Store(c, uint32(m.Mem.Addr()>>32))
		gmac4reg.DMACHRxDescListAddr.Store(c, uint32(m.Mem.Addr()))
		gmac4reg.DMACHRxDescTailPointer.Store(c, uint32(m.Mem.Addr())+s.RxTails[i]*descSize)
	}
	for i, m := range s.Tx {
		c := h.ch[i].regs
		gmac4reg.DMACHTxControl.Store(c, gmac4reg.TXPBL.Of(uint32(h.txPBL()))|gmac4reg.OSP)
		gmac4reg.DMACHTxDescListHAddr.Store(c, uint32(m.Mem.Addr()>>32))
		gmac4reg.DMACHTxDescListAddr.Store(c, uint32(m.Mem.Addr()))
		gmac4reg.DMACHTxDescTailPointer.Store(c, uint32(m.Mem.Addr()))
	}
	h.setupMAC(s)
	h.setupQueues()
	for i := range h.rx {
		c := &h.ch[i]
		gmac4reg.MTLRxQOperationMode.Store(c.mtl, gmac4reg.DISTCPEF|gmac4reg.RSF|
			gmac4reg.RQS.Of(uint32(h.rxShare()/256-1))|flowThresholds(h.rxShare(), core.MaxFrameLen(h.cfg.MTU)))
		gmac4reg.DMACHRxControl.Update(c.regs, gmac4reg.RBSZ.Mask(), gmac4reg.RBSZ.Of(uint32(s.RxSize)))
	}
	for i := range h.tx {
		gmac4reg.MTLTxQOperationMode.Store(h.ch[i].mtl, txMode(h.txShare()))
	}
	h.setupMMC()
	for i := range s.Rx {
		h.storeRxWatchdog(i)
	}
	for i, m := range s.Tx {
		gmac4reg.DMACHTxDescRingLength.Store(h.ch[i].regs, uint32(m.N-1))
	}
	for i, m := range s.Rx {
		gmac4reg.DMACHRxDescRingLength.Store(h.ch[i].regs, uint32(m.N-1))
	}
	return nil
}

// setupBus programs DMA_SysBus_Mode and DMA_Mode.
func (h *HW) setupBus(vectorEach bool) {
	a := h.cfg.AXI
	var bus gmac4reg.SysBusMode
	if a.FixedBurst {
		bus |= gmac4reg.FB
	}
	if !a.NoMixedBurst {
		bus |= gmac4reg.MB
	}
	if a.AlignedBeats {
		bus |= gmac4reg.AAL
	}
	if h.AddrWidth() > 32 {
		bus |= gmac4reg.EAME
	}
	gmac4reg.DMASysBusMode.Store(h.csr, bus)

	var mode gmac4reg.DMAModeVal
	if vectorEach {
		mode = gmac4reg.INTM.Of(1)
	}
	if h.cfg.DescCache && h.feat.Version >= version520 {
		mode |= gmac4reg.DCHE
	}
	gmac4reg.DMAMode.Store(h.csr, mode)

	lens := a.BurstLens
	if lens == 0 {
		lens = 4 + 8 + 16 + 32
	}
	// BLEN4 is bit 1 and each next one doubles the length.
	bus |= gmac4reg.SysBusMode(lens >> 2 << 1)
	bus = gmac4reg.RDOSRLMT.Put(bus, outstanding(a.MaxReads))
	bus = gmac4reg.WROSRLMT.Put(bus, outstanding(a.MaxWrites))
	gmac4reg.DMASysBusMode.Store(h.csr, bus)
}

func outstanding(n int) uint32 {
	if n == 0 {
		n = 2
	}
	return uint32(n - 1)
}

// AddrWidth is the number of address bits that the device can use.
func (h *HW) AddrWidth() int {
	if w := h.cfg.AddrWidth; w != 0 {
		return min(w, h.feat.AddrWidth)
	}
	return h.feat.AddrWidth
}

// setupMAC programs the address and the MAC core, which stays off.
func (h *HW) setupMAC(s core.Setup) {
	h.storeAddress(0, gmac4reg.AE, [6]byte(s.Addr))
	h.resetFilter()
	for i := range max(h.feat.HashBins/32, 2) {
		gmac4reg.MACHashTable.At(i, 4).Store(h.csr, 0)
	}
	conf := gmac4reg.JD | gmac4reg.PS | gmac4reg.BE | gmac4reg.DCRS | gmac4reg.JE
	if h.cfg.StripFCS {
		conf |= gmac4reg.ACS | gmac4reg.CST
	}
	if h.checksRx() {
		conf |= gmac4reg.IPC
	}
	gmac4reg.MACConfiguration.Update(h.csr, 0, conf)
	if tags := h.TxOffloads(); tags.Tag {
		// The tags are those of the descriptors; what the MAC has after a reset is
		// the tag of the register.
		gmac4reg.MACVLANIncl.Store(h.csr, gmac4reg.VLTI)
		if tags.InnerTag {
			gmac4reg.MACInnerVLANIncl.Store(h.csr, gmac4reg.VLTI)
		}
	}
	if h.cfg.CSRClock != 0 {
		gmac4reg.MAC1USTicCounter.Store(h.csr, uint32(h.cfg.CSRClock/1_000_000-1))
	}
	// No source of the MAC core interrupts: nothing here serves one.
	gmac4reg.MACInterruptEnable.Store(h.csr, 0)
}

// rxShare and txShare are the bytes of FIFO that a queue has: the hardware
// takes sizes in units of 256 bytes.
func (h *HW) rxShare() int {
	return share(core.FIFOSize(h.cfg.RxFIFO, h.feat.RxFIFO, h.feat.RxQueues), h.rx, gmac4reg.RQS.Max())
}
func (h *HW) txShare() int { return h.txShareOf(h.tx) }

// txShareOf is the share of each of n queues.
func (h *HW) txShareOf(n int) int {
	return share(core.FIFOSize(h.cfg.TxFIFO, h.feat.TxFIFO, h.feat.TxQueues), n, gmac4reg.TQS.Max())
}

// share is the part of a FIFO that one of its queues has; most is the largest code.
func share(fifo, queues int, most uint32) int {
	return min(max(fifo/queues&^255, 256), 256*int(most+1))
}

// MaxFrame implements core.Hardware: with store and forward a frame has to fit
// into its queue, on both sides.
func (h *HW) MaxFrame() int { return min(h.rxShare(), h.txShare()) }

// summary adds the summary enables that the causes in e need: they moved by
// one bit in 4.10.
func (h *HW) summary(e gmac4reg.CHInterrupt) gmac4reg.CHInterrupt {
	nie, aie := gmac4reg.NIE, gmac4reg.AIE
	if h.feat.Version < version410 {
		nie, aie = gmac4reg.NIE400, gmac4reg.AIE400
	}
	const normal = gmac4reg.TIE | gmac4reg.TBUE | gmac4reg.RIE | gmac4reg.ERIE
	if e&normal != 0 {
		e |= nie
	}
	if e&^(normal|nie) != 0 {
		e |= aie
	}
	return e
}
