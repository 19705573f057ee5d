package gmac

import (
	"errors"
	"fmt"
	"os"

	"github.com/gostmmac/gostmmac/stmmac/internal/core"
	"github.com/gostmmac/gostmmac/stmmac/internal/regs/gmacreg"
)

// Setup implements core.Hardware. The order of the steps is binding: it is that
// of the stock Linux driver, which is known to work on every integration.
func (h *HW) Setup(s core.Setup) error {
	switch {
	case len(s.Rx) != 1 || len(s.Tx) != 1:
		return h.fail("set up", "", 0, fmt.Errorf("%d receive and %d transmit queues, and there is one of each: %w", len(s.Rx), len(s.Tx), os.ErrInvalid))
	case s.VectorEach:
		return h.fail("set up", "", 0, fmt.Errorf("the device has one interrupt for everything: %w", errors.ErrUnsupported))
	}
	h.setupBus()
	h.irq.Set(core.EventFatal)
	gmacreg.ReceiveListAddress.Store(h.csr, uint32(s.Rx[0].Mem.Addr()))
	gmacreg.TransmitListAddress.Store(h.csr, uint32(s.Tx[0].Mem.Addr()))
	h.setupMAC(s)
	gmacreg.OperationModeReg.Store(h.csr, h.operation())
	h.setupMMC()
	h.storeRxWatchdog()
	return nil
}

// setupBus programs Bus_Mode and, where something is said of it, AXI_Bus_Mode: a
// device on another bus does not have that.
func (h *HW) setupBus() {
	a := h.cfg.AXI
	pbl := a.PBL
	if pbl == 0 {
		pbl = defaultPBL
	}
	// Without USP the transmit burst length would count for both.
	bus := gmacreg.USP | gmacreg.PBLX8 | gmacreg.PBL.Of(uint32(h.txPBL())) | gmacreg.RPBL.Of(uint32(pbl))
	switch {
	case a.FixedBurst:
		bus |= gmacreg.FB
	case !a.NoMixedBurst && h.feat.Version >= version350:
		bus |= gmacreg.MB
	}
	if a.AlignedBeats {
		bus |= gmacreg.AAL
	}
	gmacreg.BusModeReg.Store(h.csr, bus)
	if a.MaxReads == 0 && a.MaxWrites == 0 && a.BurstLens == 0 {
		return
	}
	lens := a.BurstLens
	if lens == 0 {
		lens = 4 + 8 + 16 + 32
	}
	// BLEN4 is bit 1 and each next one doubles the length.
	axi := gmacreg.AXIMode(lens >> 2 << 1)
	axi |= gmacreg.RDOSRLMT.Of(outstanding(a.MaxReads)) | gmacreg.WROSRLMT.Of(outstanding(a.MaxWrites))
	gmacreg.AXIBusMode.Store(h.csr, axi)
}

func outstanding(n int) uint32 {
	if n == 0 {
		n = 2
	}
	return uint32(n - 1)
}

// setupMAC programs the address and the MAC core, which stays off.
func (h *HW) setupMAC(s core.Setup) {
	h.storeAddress(0, gmacreg.AE, [6]byte(s.Addr))
	h.resetFilter()
	conf := gmacreg.JD | gmacreg.PS | gmacreg.BE | gmacreg.DCRS | gmacreg.JE
	if h.cfg.StripFCS {
		conf |= gmacreg.ACS | gmacreg.CST
	}
	if h.checksRx() {
		conf |= gmacreg.IPC
	}
	gmacreg.MACConfiguration.Update(h.csr, 0, conf)
	if conf&gmacreg.IPC != 0 && gmacreg.MACConfiguration.Load(h.csr)&gmacreg.IPC == 0 {
		// The feature register tells of an engine that is not there. Without it the
		// bits of a verdict mean something else, and the type of any frame would look
		// like a good one.
		h.feat.RxChecksum = false
		h.setVerdicts()
	}
	// No source of the MAC core interrupts: nothing here serves one.
	gmacreg.InterruptMask.Store(h.csr, gmacreg.MACInterruptMaskAll)
	gmacreg.VLANTagReg.Store(h.csr, 0)
}

// operation is Operation_Mode before the DMA is started: frames are stored and
// forwarded in both directions, because in threshold mode an underflow cuts them
// and no checksums are inserted, and those without a descriptor wait in the FIFO.
func (h *HW) operation() gmacreg.Operation {
	v := gmacreg.RSF | gmacreg.DFF | gmacreg.TSF | gmacreg.OSF
	if h.checksRx() {
		v |= gmacreg.DT // frames of which only a checksum is bad come, and say so
	}
	return v | flowThresholds(h.rxFIFO(), core.MaxFrameLen(h.cfg.MTU))
}
