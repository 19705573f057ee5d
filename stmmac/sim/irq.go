package sim

import (
	r4 "github.com/gostmmac/gostmmac/stmmac/internal/regs/gmac4reg"
)

// The status bits of the two summaries (databook: DMA_CHx_Status, NIS and AIS).
// Their enable bits have the same places.
const (
	normalEvents   = r4.TI | r4.TBU | r4.RI | r4.ERI
	abnormalEvents = r4.TPS | r4.RBU | r4.RPS | r4.RWT | r4.ETI | r4.FBE | r4.CDE
)

// The lines of a channel.
const (
	lineCommon = 1 << iota
	lineRx
	lineTx
	lineCount = iota
)

// lineState is which interrupt lines are high; it is guarded by Model.irqMu.
type lineState struct {
	cfg   *Config
	intm  uint32
	high  []uint8 // lines of each channel, and behind them of MAC and MTL together
	level []int   // sources that hold the line of a vector
	edges []uint64
}

func (l *lineState) init(c *Config) {
	l.cfg = c
	l.high = make([]uint8, c.channels()+1)
	l.level = make([]int, c.NumInterrupts)
	l.edges = make([]uint64, c.NumInterrupts)
}

// vectors is a set of interrupt vectors, one bit each.
type vectors uint32

func (l *lineState) vector(src int, line uint8) int {
	switch {
	case l.cfg.NumInterrupts == 1 || line == lineCommon:
		return 0
	case line == lineRx:
		return 1 + src
	}
	return 1 + l.cfg.RxQueues + src
}

// set gives a source its lines and returns the vectors that fire: in the strict
// profile those whose wired line rises, in the other those of every source that does.
func (l *lineState) set(src int, now uint8) (fire vectors) {
	was := l.high[src]
	l.high[src] = now
	for i := range lineCount {
		line := uint8(1) << i
		switch {
		case now&^was&line != 0:
			v := l.vector(src, line)
			l.level[v]++
			if l.level[v] == 1 || l.cfg.Profile == Linux {
				fire |= 1 << v
			}
		case was&^now&line != 0:
			l.level[l.vector(src, line)]--
		}
	}
	return fire
}

// again returns the vectors of the lines that are high among some of a source.
func (l *lineState) again(src int, lines uint8) (fire vectors) {
	for i := range lineCount {
		if line := uint8(1) << i; l.high[src]&lines&line != 0 {
			fire |= 1 << l.vector(src, line)
		}
	}
	return fire
}

// enables splits DMA_CHx_Interrupt_Enable: the enabled events by the places of
// their status bits, and the two summary enables, which 4.00 has one bit higher.
func (m *Model) enables(v uint32) (events r4.CHStatus, nie, aie bool) {
	e := r4.CHInterrupt(v)
	n, a := r4.NIE, r4.AIE
	if m.cfg.Version < 0x41 {
		n, a = r4.NIE400, r4.AIE400
	}
	return r4.CHStatus(v) & (normalEvents | abnormalEvents), e&n != 0, e&a != 0
}

// updateChannel stores the status of a channel with the summaries that follow from
// it and moves the lines. A summary stays until it is cleared, and comes back
// while an enabled event is pending.
func (m *Model) updateChannel(ch int, st r4.CHStatus) vectors {
	events, nie, aie := m.enables(m.regs.get(chOff(m, r4.DMACHInterruptEnable, ch)))
	if st&events&normalEvents != 0 {
		st |= r4.NIS
	}
	if st&events&abnormalEvents != 0 {
		st |= r4.AIS
	}
	m.regs.set(chOff(m, r4.DMACHStatus, ch), uint32(st))
	var lines uint8
	if aie && st&r4.AIS != 0 {
		lines |= lineCommon
	}
	if m.lines.intm == 0 {
		if nie && st&r4.NIS != 0 {
			lines |= lineCommon
		}
		return m.lines.set(ch, lines)
	}
	if nie {
		p := st & events
		if p&(r4.TBU|r4.ERI) != 0 {
			lines |= lineCommon
		}
		if p&r4.RI != 0 {
			lines |= lineRx
		}
		if p&r4.TI != 0 {
			lines |= lineTx
		}
	}
	return m.lines.set(ch, lines)
}

// RaiseStatus sets status bits of a channel as an event does.
func (m *Model) RaiseStatus(ch int, bits r4.CHStatus) {
	if ch < 0 || ch >= m.cfg.channels() {
		return
	}
	m.fire(m.gen.raise(ch, bits))
}

func (m *Model) raise(ch int, bits r4.CHStatus) vectors {
	m.irqMu.Lock()
	defer m.irqMu.Unlock()
	return m.updateChannel(ch, r4.CHStatus(m.regs.get(chOff(m, r4.DMACHStatus, ch)))|bits)
}

// clearStatus is a store to DMA_CHx_Status.
func (m *Model) clearStatus(ch int, v uint32) {
	m.irqMu.Lock()
	st := r4.CHStatus(m.regs.get(chOff(m, r4.DMACHStatus, ch))) &^ (r4.CHStatus(v) & r4.StatusW1C)
	if st&r4.FBE == 0 {
		st &^= r4.TEB.Mask() | r4.REB.Mask() // valid only with FBE
	}
	fire := m.updateChannel(ch, st)
	m.irqMu.Unlock()
	m.fire(fire)
}

// storeEnable is a store to DMA_CHx_Interrupt_Enable. Setting the enable bit of an
// event that is pending fires its line even if another event holds it high.
func (m *Model) storeEnable(ch int, off, v uint32) {
	m.irqMu.Lock()
	was, _, _ := m.enables(m.regs.get(off))
	m.regs.set(off, v)
	st := r4.CHStatus(m.regs.get(chOff(m, r4.DMACHStatus, ch)))
	fire := m.updateChannel(ch, st)
	now, _, _ := m.enables(v)
	switch fresh := st & now &^ was; {
	case m.cfg.Profile == Linux:
		fire |= m.lines.again(ch, lineCommon|lineRx|lineTx)
	case fresh != 0 && m.lines.intm == 0:
		fire |= m.lines.again(ch, lineCommon)
	case fresh != 0:
		var lines uint8
		if fresh&r4.RI != 0 {
			lines |= lineRx
		}
		if fresh&r4.TI != 0 {
			lines |= lineTx
		}
		if fresh&^(r4.RI|r4.TI) != 0 {
			lines |= lineCommon
		}
		fire |= m.lines.again(ch, lines)
	}
	m.irqMu.Unlock()
	m.fire(fire)
}

// storeLine is a store to a register of the MAC, MTL or MMC on which the common line
// depends.
func (m *Model) storeLine(off uint32, r *register, v uint32) {
	m.irqMu.Lock()
	now := v & r.mask
	if r.id == idMTL+uint32(r4.MTLQInterruptCtrl) {
		const w1c = uint32(r4.TXUNFIS | r4.RXOVFIS)
		now |= m.regs.get(off) & w1c &^ v
	}
	m.regs.set(off, now)
	fire := m.lines.set(m.cfg.channels(), m.sharedLines())
	m.irqMu.Unlock()
	m.fire(fire)
}

// raiseQueue sets a bit of MTL_Qx_Interrupt_Control_Status.
func (m *Model) raiseQueue(q int, bit r4.MTLQInterrupt) {
	m.irqMu.Lock()
	defer m.irqMu.Unlock()
	off := mtlOff(m, r4.MTLQInterruptCtrl, q)
	m.regs.set(off, m.regs.get(off)|uint32(bit))
	m.pending |= m.lines.set(m.cfg.channels(), m.sharedLines())
}

// raiseShared looks again at what MMC and MTL have pending.
func (m *Model) raiseShared() {
	m.irqMu.Lock()
	defer m.irqMu.Unlock()
	m.pending |= m.lines.set(m.cfg.channels(), m.gen.sharedLines())
}

func (m *Model) sharedLines() uint8 {
	if m.macEnabled() != 0 || m.mtlPending() != 0 {
		return lineCommon
	}
	return 0
}

// macEnabled are the events of MAC_Interrupt_Status that raise the line.
func (m *Model) macEnabled() r4.MACInterrupt {
	v := m.macPending()
	if r4.MACInterrupt(m.regs.get(uint32(r4.MACInterruptEnable)))&r4.LPIIS == 0 {
		v &^= r4.LPIIS
	}
	return v
}

// macPending is MAC_Interrupt_Status: of its events the model has those of MMC, which
// are masked in MMC alone, and those of LPI, which MAC_Interrupt_Enable masks.
func (m *Model) macPending() r4.MACInterrupt {
	var v r4.MACInterrupt
	if m.mmc(uint32(r4.MMCRxInterrupt))&^m.mmc(uint32(r4.MMCRxInterruptMask)) != 0 {
		v |= r4.MMCRXIS | r4.MMCIS
	}
	if !m.cfg.NoRxChecksum && m.mmc(uint32(r4.MMCIPCInterrupt))&^m.mmc(uint32(r4.MMCIPCInterruptMask)) != 0 {
		v |= r4.MMCRXIPIS | r4.MMCIS
	}
	if m.mmc(uint32(r4.MMCTxInterrupt))&^m.mmc(uint32(r4.MMCTxInterruptMask)) != 0 {
		v |= r4.MMCTXIS | r4.MMCIS
	}
	if m.cfg.EEE && m.lpiControl()&r4.LPIEvents != 0 {
		v |= r4.LPIIS
	}
	return v
}

// mtlPending is MTL_Interrupt_Status: a bit for each queue with an enabled event.
func (m *Model) mtlPending() (v uint32) {
	for q := range m.cfg.channels() {
		s := r4.MTLQInterrupt(m.regs.get(mtlOff(m, r4.MTLQInterruptCtrl, q)))
		if s&r4.TXUNFIS != 0 && s&r4.TXUIE != 0 || s&r4.RXOVFIS != 0 && s&r4.RXOIE != 0 {
			v |= 1 << q
		}
	}
	return v
}

// loadIRQ is the load of one of the interrupt summaries.
func (m *Model) loadIRQ(id uint32) uint32 {
	m.irqMu.Lock()
	defer m.irqMu.Unlock()
	switch id {
	case uint32(r4.MTLInterruptStatus):
		return m.mtlPending()
	case uint32(r4.MACInterruptStatus):
		return uint32(m.macPending())
	}
	var v r4.DMAInterrupt
	for c := range m.cfg.channels() {
		if m.lines.high[c] != 0 {
			v |= 1 << c
		}
	}
	if m.mtlPending() != 0 {
		v |= r4.MTLIS
	}
	if m.macEnabled() != 0 {
		v |= r4.MACIS
	}
	return uint32(v)
}

// setINTM changes the interrupt mode; the lines of all channels move to it.
func (m *Model) setINTM(mode uint32) {
	m.irqMu.Lock()
	defer m.irqMu.Unlock()
	if m.lines.intm == mode {
		return
	}
	m.lines.intm = mode
	for c := range m.cfg.channels() {
		m.pending |= m.updateChannel(c, r4.CHStatus(m.regs.get(chOff(m, r4.DMACHStatus, c))))
	}
}

// dropLines lowers all lines, at reset.
func (m *Model) dropLines() {
	m.irqMu.Lock()
	defer m.irqMu.Unlock()
	m.lines.intm = 0
	for src := range m.lines.high {
		m.lines.set(src, 0)
	}
	m.pending = 0
}

// fire calls the host's interrupt function; no lock is held.
func (m *Model) fire(v vectors) {
	if v == 0 {
		return
	}
	m.irqMu.Lock()
	for i := range m.lines.edges {
		m.lines.edges[i] += uint64(v >> i & 1)
	}
	m.irqMu.Unlock()
	for i := 0; v != 0; i, v = i+1, v>>1 {
		if v&1 != 0 {
			m.irq(i)
		}
	}
}

// flushEvents shows the status bits that a step collected and returns the vectors
// to fire once the lock of the engines is free.
func (m *Model) flushEvents() vectors {
	fire := m.pending
	m.pending = 0
	for c := range m.tx {
		if t := &m.tx[c]; t.events != 0 {
			fire |= m.gen.raise(c, t.events)
			t.events = 0
		}
	}
	for c := range m.rx {
		if r := &m.rx[c]; r.events != 0 {
			fire |= m.gen.raise(c, r.events)
			r.events = 0
		}
	}
	return fire
}

// Line says whether the line of an interrupt vector is high: an event that is enabled is
// pending. For a host whose lines are level triggered.
func (m *Model) Line(vector int) bool {
	m.irqMu.Lock()
	defer m.irqMu.Unlock()
	return vector >= 0 && vector < len(m.lines.level) && m.lines.level[vector] > 0
}
