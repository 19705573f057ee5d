package gmac

import (
	"github.com/gostmmac/gostmmac/mmio"
	"github.com/gostmmac/gostmmac/stmmac/internal/core"
	"github.com/gostmmac/gostmmac/stmmac/internal/regs/gmacreg"
)

// initIRQ says what the interrupts of the channel are.
func (h *HW) initIRQ() {
	h.irq.Regs = h.csr
	h.irq.Status, h.irq.Enable = mmio.Reg[uint32](gmacreg.StatusReg), mmio.Reg[uint32](gmacreg.InterruptEnable)
	h.irq.Rx = core.Causes{Status: uint32(gmacreg.RI | gmacreg.RU | gmacreg.RWT | gmacreg.ERI), Enable: uint32(gmacreg.RIE)}
	h.irq.Tx = core.Causes{Status: uint32(gmacreg.TI | gmacreg.TU | gmacreg.ETI), Enable: uint32(gmacreg.TIE)}
	h.irq.Fatal = core.Causes{Status: uint32(gmacreg.FBI), Enable: uint32(gmacreg.FBE)}
	h.irq.Summaries = uint32(gmacreg.NIS | gmacreg.AIS)
	h.irq.Summary = func(e uint32) uint32 { return uint32(summary(gmacreg.Interrupt(e))) }
}

// summary adds the summary enables that the causes in e need.
func summary(e gmacreg.Interrupt) gmacreg.Interrupt {
	const normal = gmacreg.TIE | gmacreg.TUE | gmacreg.RIE | gmacreg.ERE
	causes := e
	if causes&normal != 0 {
		e |= gmacreg.NIE
	}
	if causes&^normal != 0 {
		e |= gmacreg.AIE
	}
	return e
}

// Events implements core.Hardware.
func (h *HW) Events(_ int, mask core.Events) core.Events { return h.irq.Events(mask) }

// Unmask implements core.Hardware.
func (h *HW) Unmask(_ int, e core.Events) error { return h.irq.Unmask(e) }

// Lost implements core.Hardware.
func (h *HW) Lost(int) (missed, full uint32) {
	v := gmacreg.MissedFrame.Load(h.csr)
	if uint32(v) == mmio.AllOnes {
		return 0, 0 // the device is gone
	}
	missed, full = gmacreg.MISFRMCNT.Get(v), gmacreg.OVFFRMCNT.Get(v)
	// A counter that ran over has lost one turn at least.
	if v&gmacreg.MISCNTOVF != 0 {
		missed += gmacreg.MISFRMCNT.Max() + 1
	}
	if v&gmacreg.OVFCNTOVF != 0 {
		full += gmacreg.OVFFRMCNT.Max() + 1
	}
	return missed, full
}
