package sim

import (
	r4 "github.com/gostmmac/gostmmac/stmmac/internal/regs/gmac4reg"
)

// maxAttempts is how often a frame is tried (IEEE 802.3, 4.4.2: attemptLimit).
const maxAttempts = 16

// collide is what happens to the next frame in half duplex: the bits of its status,
// and whether it is given up.
func (m *Model) collide() (status r4.TDES3, lost bool) {
	f, k := &m.faults, m.halfSent
	if f.CollideLate != nil && f.CollideLate(k) {
		return r4.TxES | r4.TxLC, true
	}
	if f.Collide == nil {
		return 0, false
	}
	switch n := max(f.Collide(k), 0); {
	case n >= maxAttempts, n > 0 && m.mac.conf&r4.DR != 0:
		return r4.TxES | r4.TxEC, true // CC is valid without EC alone
	default:
		return r4.TxCC.Of(uint32(n)), false
	}
}

// countHalf counts a frame that left or was given up in half duplex.
func (m *Model) countHalf(status r4.TDES3) {
	m.halfSent++
	switch n := r4.TxCC.Get(status); {
	case status&r4.TxLC != 0:
		m.countMMC(r4.TxLateCollisionPackets, 1)
	case status&r4.TxEC != 0:
		m.countMMC(r4.TxExcessiveCollisionPackets, 1)
	case status&r4.TxES != 0:
	case n == 1:
		m.countMMC(r4.TxSingleCollisionGoodPackets, 1)
	case n > 1:
		m.countMMC(r4.TxMultipleCollisionGoodPackets, 1)
	}
}
