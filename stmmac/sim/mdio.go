package sim

import (
	"math"
	"math/bits"
	"time"

	r4 "github.com/gostmmac/gostmmac/stmmac/internal/regs/gmac4reg"
)

// mdcDividers are the dividers of the CSR clock by the code in CR (databook:
// MAC_MDIO_Address).
var mdcDividers = [16]uint64{42, 62, 16, 26, 102, 124, 204, 324, 4, 6, 8, 10, 12, 14, 16, 18}

// mdcMax is the fastest management clock that IEEE 802.3 22.3.4 allows.
const mdcMax = 2_500_000

// mdioBits is the length of a management frame with its preamble.
const mdioBits = 64

var mdioMisuse = Violation{Kind: MDIOMisuse, Channel: -1, Index: -1}

// storeMDIO is a store to one of the management registers.
func (m *Model) storeMDIO(off uint32, r *register, v uint32) {
	m.runPHY()
	if r4.MDIOAddress(m.regs.get(m.at.mdioAddress))&r4.MDIOGB != 0 {
		m.report(mdioMisuse, "%s = %#x while busy", m.regName(off), v)
		return
	}
	a := m.gen.mdioCommand(v)
	start := off == m.at.mdioAddress && a&r4.MDIOGB != 0
	if start && m.resetting.Load() { // a reset came before the lock
		m.report(mdioMisuse, "%s = %#x during the software reset", m.regName(off), v)
		return
	}
	m.regs.set(off, v&r.mask)
	if start {
		m.startMDIO(a)
	}
}

// startMDIO starts a transaction: a frame, in clause 45 one with the address before it.
func (m *Model) startMDIO(a r4.MDIOAddress) {
	clock, div := m.cfg.CSRClock, mdcDividers[r4.MDIOCR.Get(a)]
	if clock/div > mdcMax || clock/div == mdcMax && clock%div != 0 {
		m.report(mdioMisuse, "MDC at %d Hz: CR %d with a CSR clock of %d Hz", clock/div, r4.MDIOCR.Get(a), clock)
	}
	frames := uint64(1)
	switch goc := r4.MDIOGOC.Get(a); {
	case goc == 0 || goc == r4.MDIOGOCPostRead && a&r4.MDIOC45E == 0:
		m.report(mdioMisuse, "GOC %d is no operation of clause 22 or 45: %#x", goc, uint32(a))
	case a&(r4.MDIOC45E|r4.MDIOSKAP) == r4.MDIOC45E:
		frames = 2
	}
	switch f := &m.faults.PHY; {
	case f.BusGated:
		m.regs.set(m.at.mdioAddress, m.regs.get(m.at.mdioAddress)&^uint32(r4.MDIOGB))
		if mdioReads(a) {
			m.setMDIOData(0)
		}
		return
	case f.BusyForever:
		return
	}
	hi, lo := bits.Mul64(frames*mdioBits*div, uint64(time.Second))
	d := time.Duration(math.MaxInt64 / 2)
	if hi < clock { // else it does not end in any time that counts
		if q, _ := bits.Div64(hi, lo, clock); q < uint64(d) {
			d = time.Duration(q)
		}
	}
	m.mdioDone = m.clock.Now() + max(d, 1)
	m.afterPHY()
}

func mdioReads(a r4.MDIOAddress) bool {
	goc := r4.MDIOGOC.Get(a)
	return goc == r4.MDIOGOCRead || goc == r4.MDIOGOCPostRead
}

func (m *Model) setMDIOData(v uint16) {
	data := r4.MDIOData(m.regs.get(m.at.mdioData))
	m.regs.set(m.at.mdioData, uint32(r4.MDIOGD.Put(data, uint32(v))))
}

// finishMDIO ends the transaction; at its end the PHY has taken the write or given
// the data.
func (m *Model) finishMDIO(now time.Duration) {
	m.mdioDone = 0
	v := m.regs.get(m.at.mdioAddress)
	a := m.gen.mdioCommand(v)
	m.regs.set(m.at.mdioAddress, v&^uint32(r4.MDIOGB))
	data := r4.MDIOData(m.regs.get(m.at.mdioData))
	c45 := a&r4.MDIOC45E != 0
	p := m.mii.bus[r4.MDIOPA.Get(a)]
	if p != nil && p == m.mii.wired {
		m.mii.gating = true
	}
	if p != nil && !p.answers(c45) {
		p = nil
	}
	reg := r4.MDIORDA.Get(a)
	if p != nil && c45 && a&r4.MDIOSKAP == 0 {
		p.mmd[reg] = uint16(r4.MDIORA.Get(data))
	}
	switch r4.MDIOGOC.Get(a) {
	case r4.MDIOGOCWrite:
		if p != nil && !c45 {
			p.write22(reg, uint16(r4.MDIOGD.Get(data)), now)
		} else if p != nil {
			p.write45(reg, p.mmd[reg], uint16(r4.MDIOGD.Get(data)), now)
		}
	case r4.MDIOGOCRead, r4.MDIOGOCPostRead:
		m.setMDIOData(m.readMDIO(p, c45, reg))
		if p != nil && c45 && r4.MDIOGOC.Get(a) == r4.MDIOGOCPostRead && p.mmd[reg] != noAnswer {
			p.mmd[reg]++ // at the last one it stays
		}
	}
}

// readMDIO is what a read finds on the bus; p is nil if nobody answers.
func (m *Model) readMDIO(p *phy, c45 bool, reg uint32) uint16 {
	v := uint16(noAnswer)
	f := &m.faults.PHY
	switch {
	case f.AllOnes:
	case f.Garbage != 0:
		v = uint16(m.mii.garbage.Uint32())
	case p != nil && c45:
		v = p.read45(reg, p.mmd[reg])
	case p != nil:
		v = p.read22(reg)
	case f.AbsentZero:
		v = 0
	}
	return v
}

// cutMDIO ends a transaction by a software reset.
func (m *Model) cutMDIO() {
	m.runPHY()
	if m.mdioDone != 0 {
		m.report(mdioMisuse, "a transaction is in flight when SWR starts: %s is %#x",
			m.regName(m.at.mdioAddress), m.regs.get(m.at.mdioAddress))
	}
}
