package sim

import (
	r4 "github.com/gostmmac/gostmmac/stmmac/internal/regs/gmac4reg"
	rg "github.com/gostmmac/gostmmac/stmmac/internal/regs/gmacreg"
)

// gmacEvents says events of a channel in the bits of the status register. Up to ETI they
// are the same; the error bits of FBI come from those of the direction.
func gmacEvents(e r4.CHStatus) rg.Status {
	const same = r4.ETI<<1 - 1
	s := rg.Status(e & same)
	if e&r4.ERI != 0 {
		s |= rg.ERI
	}
	if e&r4.FBE != 0 {
		s |= rg.FBI | rg.EB.Of(gmacBusError(e))
	}
	return s
}

// gmacBusError is EB of a bus error: bit 0 the transmitter, 1 a read, 2 a descriptor.
func gmacBusError(e r4.CHStatus) (eb uint32) {
	code := r4.REB.Get(e)
	if tx := r4.TEB.Get(e); tx != 0 {
		code, eb = tx, 1
	}
	if code&busRead != 0 {
		eb |= 2
	}
	if code&busDescriptor != 0 {
		eb |= 4
	}
	return eb
}

// update stores the status with the summaries that follow from it and moves the line.
func (g *gmac) update(st rg.Status) vectors {
	enable := rg.Interrupt(g.m.regs.get(uint32(rg.InterruptEnable)))
	if st&rg.Status(enable)&rg.StatusNormal != 0 {
		st |= rg.NIS
	}
	if st&rg.Status(enable)&rg.StatusAbnormal != 0 {
		st |= rg.AIS
	}
	g.m.regs.set(uint32(rg.StatusReg), uint32(st))
	var line uint8
	if enable&rg.NIE != 0 && st&rg.NIS != 0 || enable&rg.AIE != 0 && st&rg.AIS != 0 {
		line = lineCommon
	}
	return g.m.lines.set(0, line)
}

func (g *gmac) status() rg.Status { return rg.Status(g.m.regs.get(uint32(rg.StatusReg))) }

// raise implements generation.
func (g *gmac) raise(_ int, bits r4.CHStatus) vectors { return g.show(gmacEvents(bits)) }

// show adds events to the status. RI clears ERI.
func (g *gmac) show(events rg.Status) vectors {
	g.m.irqMu.Lock()
	defer g.m.irqMu.Unlock()
	st := g.status() | events
	if events&rg.RI != 0 {
		st &^= rg.ERI
	}
	if events&rg.FBI != 0 {
		st = st&^rg.EB.Mask() | events&rg.EB.Mask()
	}
	return g.update(st)
}

// flushEvents implements generation.
func (g *gmac) flushEvents() vectors {
	m := g.m
	fire := m.flushEvents()
	if g.events != 0 {
		fire |= g.show(g.events)
		g.events = 0
	}
	if s := rg.RS.Of(m.rx[0].state()) | rg.TS.Of(m.tx[0].state()); s != g.shown {
		g.shown = s
		m.irqMu.Lock()
		m.regs.set(uint32(rg.StatusReg), uint32(g.status()&^(rg.RS.Mask()|rg.TS.Mask())|s))
		m.irqMu.Unlock()
	}
	return fire
}

// clearStatus implements generation.
func (g *gmac) clearStatus(_ int, v uint32) {
	g.m.irqMu.Lock()
	st := g.status() &^ (rg.Status(v) & rg.StatusW1C)
	if st&rg.FBI == 0 {
		st &^= rg.EB.Mask() // valid only with FBI
	}
	fire := g.update(st)
	g.m.irqMu.Unlock()
	g.m.fire(fire)
}

// storeEnable implements generation. Setting the enable bit of an event that is pending
// fires the line even if another event holds it high.
func (g *gmac) storeEnable(_ int, off, v uint32) {
	m := g.m
	m.irqMu.Lock()
	was := m.regs.get(off)
	m.regs.set(off, v)
	st := g.status()
	fire := g.update(st)
	if m.cfg.Profile == Linux || uint32(st&(rg.StatusNormal|rg.StatusAbnormal))&v&^was != 0 {
		fire |= m.lines.again(0, lineCommon)
	}
	m.irqMu.Unlock()
	m.fire(fire)
}

// storeLine implements generation: the masks of the MMC block.
func (g *gmac) storeLine(off uint32, r *register, v uint32) {
	m := g.m
	m.irqMu.Lock()
	m.regs.set(off, v&r.mask)
	fire := m.lines.set(m.cfg.channels(), g.sharedLines())
	m.irqMu.Unlock()
	m.fire(fire)
}

// sharedLines implements generation.
func (g *gmac) sharedLines() uint8 {
	if g.m.macPending() != 0 {
		return lineCommon
	}
	return 0
}

// loadIRQ implements generation: Interrupt_Status, and the status of the DMA with GMI,
// which follows the MMC.
func (g *gmac) loadIRQ(id uint32) uint32 {
	m := g.m
	m.irqMu.Lock()
	pending := m.macPending()
	st := g.status()
	m.irqMu.Unlock()
	if id == uint32(rg.StatusReg) {
		if pending != 0 {
			st |= rg.GMI
		}
		if f := m.onStatusLoad.Load(); f != nil {
			(*f)(0)
		}
		return uint32(st)
	}
	var v rg.MACInterrupt
	for _, b := range [...]struct {
		gmac4 r4.MACInterrupt
		gmac  rg.MACInterrupt
	}{{r4.MMCIS, rg.MMCIS}, {r4.MMCRXIS, rg.MMCRXIS}, {r4.MMCTXIS, rg.MMCTXIS}, {r4.MMCRXIPIS, rg.MMCRXIPIS}} {
		if pending&b.gmac4 != 0 {
			v |= b.gmac
		}
	}
	return uint32(v)
}
