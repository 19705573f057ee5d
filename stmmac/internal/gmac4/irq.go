package gmac4

import (
	"github.com/gostmmac/gostmmac/mmio"
	"github.com/gostmmac/gostmmac/stmmac/internal/core"
	"github.com/gostmmac/gostmmac/stmmac/internal/regs/gmac4reg"
)

// causes says which status and enable bits an event consists of. RBU belongs
// to it: with no descriptor left no frame can raise RI.
func causes(e core.Events) (st gmac4reg.CHStatus, en gmac4reg.CHInterrupt) {
	if e&core.EventRx != 0 {
		st |= gmac4reg.RI | gmac4reg.RBU | gmac4reg.RWT | gmac4reg.ERI
		en |= gmac4reg.RIE
	}
	if e&core.EventTx != 0 {
		st |= gmac4reg.TI | gmac4reg.TBU | gmac4reg.ETI
		en |= gmac4reg.TIE
	}
	if e&core.EventFatal != 0 {
		st |= gmac4reg.FBE | gmac4reg.CDE
		en |= gmac4reg.FBEE
	}
	return st, en
}

// Events implements core.Hardware.
func (h *HW) Events(ch int, mask core.Events) core.Events {
	c := &h.ch[ch]
	c.mu.Lock()
	defer c.mu.Unlock()
	status := gmac4reg.DMACHStatus.Load(c.regs)
	if uint32(status) == mmio.AllOnes {
		return core.EventGone
	}
	var found core.Events
	var clear gmac4reg.CHStatus
	var off gmac4reg.CHInterrupt
	for _, e := range [...]core.Events{core.EventRx, core.EventTx, core.EventFatal} {
		st, en := causes(e & mask)
		// What is not enabled holds no line, and Unmask clears it.
		if status&st != 0 && c.enable&en != 0 {
			found |= e
			clear |= status & st
			off |= en
		}
	}
	if found == 0 {
		return 0
	}
	c.enable = h.summary(c.enable &^ (off | gmac4reg.NIE400 | gmac4reg.AIE | gmac4reg.NIE))
	gmac4reg.DMACHInterruptEnable.Store(c.regs, c.enable)
	// Only what was read is cleared, and the summaries with it: an event that
	// came in between stays.
	gmac4reg.DMACHStatus.Store(c.regs, clear|status&(gmac4reg.NIS|gmac4reg.AIS))
	return found
}

// Unmask implements core.Hardware.
func (h *HW) Unmask(ch int, e core.Events) error {
	c := &h.ch[ch]
	st, en := causes(e)
	c.mu.Lock()
	defer c.mu.Unlock()
	status := gmac4reg.DMACHStatus.Load(c.regs)
	if uint32(status) == mmio.AllOnes {
		return core.ErrGone
	}
	if c.enable&en == en {
		// What is pending has raised the line, which only Events lowers: lowered
		// here, the edge of another event could fall between two of its looks.
		return nil
	}
	if clear := status & st; clear != 0 {
		gmac4reg.DMACHStatus.Store(c.regs, clear|status&(gmac4reg.NIS|gmac4reg.AIS))
	}
	c.enable = h.summary(c.enable | en)
	gmac4reg.DMACHInterruptEnable.Store(c.regs, c.enable)
	// The read flushes both stores: what the device does from here on raises an
	// interrupt, and what it did before is seen by looking at the ring now.
	gmac4reg.DMACHInterruptEnable.Load(c.regs)
	return nil
}

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
