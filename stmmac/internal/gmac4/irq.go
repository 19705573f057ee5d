package gmac4

import (
	"github.com/gostmmac/gostmmac/mmio"
	"github.com/gostmmac/gostmmac/stmmac/internal/core"
	"github.com/gostmmac/gostmmac/stmmac/internal/regs/gmac4reg"
)

// initIRQ says what the interrupts of a channel are.
func (c *channel) initIRQ(summary func(uint32) uint32) {
	c.irq.Regs = c.regs
	c.irq.Status, c.irq.Enable = mmio.Reg[uint32](gmac4reg.DMACHStatus), mmio.Reg[uint32](gmac4reg.DMACHInterruptEnable)
	c.irq.Rx = core.Causes{Status: uint32(gmac4reg.RI | gmac4reg.RBU | gmac4reg.RWT | gmac4reg.ERI), Enable: uint32(gmac4reg.RIE)}
	c.irq.Tx = core.Causes{Status: uint32(gmac4reg.TI | gmac4reg.TBU | gmac4reg.ETI), Enable: uint32(gmac4reg.TIE)}
	c.irq.Fatal = core.Causes{Status: uint32(gmac4reg.FBE | gmac4reg.CDE), Enable: uint32(gmac4reg.FBEE)}
	c.irq.Summaries = uint32(gmac4reg.NIS | gmac4reg.AIS)
	c.irq.Summary = summary
}

// Events implements core.Hardware.
func (h *HW) Events(ch int, mask core.Events) core.Events { return h.ch[ch].irq.Events(mask) }

// Unmask implements core.Hardware.
func (h *HW) Unmask(ch int, e core.Events) error { return h.ch[ch].irq.Unmask(e) }

// Lost implements core.Hardware.
func (h *HW) Lost(ch int) (missed, full uint32) {
	m := gmac4reg.DMACHMissFrameCnt.Load(h.ch[ch].regs)
	o := gmac4reg.MTLRxQMissedOverflow.Load(h.ch[ch].mtl)
	if uint32(m) == mmio.AllOnes || uint32(o) == mmio.AllOnes {
		return 0, 0 // the device is gone
	}
	missed, full = gmac4reg.MFC.Get(m)+gmac4reg.MISPKTCNT.Get(o), gmac4reg.OVFPKTCNT.Get(o)
	// A counter that ran over has lost one turn at least.
	if m&gmac4reg.MFCO != 0 {
		missed += gmac4reg.MFC.Max() + 1
	}
	if o&gmac4reg.MISCNTOVF != 0 {
		missed += gmac4reg.MISPKTCNT.Max() + 1
	}
	if o&gmac4reg.OVFCNTOVF != 0 {
		full += gmac4reg.OVFPKTCNT.Max() + 1
	}
	return missed, full
}
