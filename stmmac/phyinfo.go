package stmmac

// PHYInfo is what is known of the PHY that a MAC looks after.
type PHYInfo struct {
	Addr      int       // on the MDIO bus, 0 to 31
	ID        uint32    // registers 2 and 3 (IEEE 802.3 22.2.4.3.1), the first in the upper half
	Abilities LinkModes // what it can do
}

// PHY is the PHY that the MAC looks after; ok is false if its link is fixed.
func (m *MAC) PHY() (info PHYInfo, ok bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.phy == nil {
		return PHYInfo{}, false
	}
	return PHYInfo{Addr: m.phy.Addr(), ID: m.phy.ID(), Abilities: m.phy.Abilities()}, true
}
