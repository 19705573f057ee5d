package sim

import (
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

// storeMDIO is a store to one of the management registers. No PHY is there, so a
// read finds the bus pulled up.
func (m *Model) storeMDIO(off uint32, r *register, v uint32) {
	m.updateMDIO()
	addr := uint32(r4.MACMDIOAddress)
	misuse := Violation{Kind: MDIOMisuse, Channel: -1, Index: -1}
	if r4.MDIOAddress(m.regs.get(addr))&r4.MDIOGB != 0 {
		m.report(misuse, "%s = %#x while busy", m.regName(off), v)
		return
	}
	m.regs.set(off, v&r.mask)
	a := r4.MDIOAddress(v)
	if off != addr || a&r4.MDIOGB == 0 {
		return
	}
	div := mdcDividers[r4.MDIOCR.Get(a)]
	if mdc := m.cfg.CSRClock / div; mdc > mdcMax {
		m.report(misuse, "MDC at %d Hz: CR %d with a CSR clock of %d Hz", mdc, r4.MDIOCR.Get(a), m.cfg.CSRClock)
	}
	m.mdioDone = m.clock.Now() + time.Duration(mdioBits*div*uint64(time.Second)/m.cfg.CSRClock)
}

// updateMDIO ends the transaction whose time has passed.
func (m *Model) updateMDIO() {
	addr := uint32(r4.MACMDIOAddress)
	a := r4.MDIOAddress(m.regs.get(addr))
	if a&r4.MDIOGB == 0 || m.clock.Now() < m.mdioDone {
		return
	}
	m.regs.set(addr, uint32(a&^r4.MDIOGB))
	if r4.MDIOGOC.Get(a) == r4.MDIOGOCRead {
		data := r4.MDIOData(m.regs.get(uint32(r4.MACMDIOData)))
		m.regs.set(uint32(r4.MACMDIOData), uint32(r4.MDIOGD.Put(data, 0xffff)))
	}
}
