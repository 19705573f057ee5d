//go:build hwtest

package hwtest

import "fmt"

// Registers of IEEE 802.3 clause 22.
const (
	phyStatus    = 1
	phyID1       = 2
	phyID2       = 3
	phyAdvertise = 4
)

func phyTests() []test {
	return []test{
		{"phy/id", []need{mdioNeed(), phyNeed()}, phyID},
		{"phy/registers", []need{mdioNeed(), phyNeed()}, phyRegisters},
		{"phy/addresses", []need{mdioNeed(), phyNeed()}, phyAddresses},
		{"phy/write", []need{mdioNeed(), phyNeed()}, phyWrite},
		{"phy/status", []need{mdioNeed(), phyNeed()}, phyStatusLink},
	}
}

// openFor opens the MAC and returns the address of its PHY.
func openFor(r *rig) int {
	r.openMAC()
	info, ok := r.mac.PHY()
	if !ok {
		r.skip("the core has no PHY") // with phy-loopback nobody follows it
	}
	return info.Addr
}

func (r *rig) mdio(addr, reg int) uint16 {
	v, err := r.mac.ReadMDIO(addr, reg)
	r.must(err)
	return v
}

func phyID(r *rig) {
	addr := openFor(r)
	info, _ := r.mac.PHY()
	id := uint32(r.mdio(addr, phyID1))<<16 | uint32(r.mdio(addr, phyID2))
	if id != info.ID || id == 0 || id == ^uint32(0) {
		r.Errorf("the identifier is %#08x, and %#08x when the MAC was opened", id, info.ID)
	}
	r.figures["id"], r.figures["address"] = fmt.Sprintf("%08x", id), addr
	r.figures["modes"] = info.Abilities.String()
}

// phyRegisters reads every register many times: what no read changes stays.
func phyRegisters(r *rig) {
	addr := openFor(r)
	var values [32]uint16
	for round := range r.scale(100, 4) {
		for reg := range values {
			v := r.mdio(addr, reg)
			if steady := reg == phyID1 || reg == phyID2 || reg == phyAdvertise; steady && round > 0 && v != values[reg] {
				r.Errorf("register %d is %#04x and then %#04x", reg, values[reg], v)
			}
			values[reg] = v
		}
		r.figure("reads", len(values))
	}
	r.figures["values"] = fmt.Sprintf("%04x", values)
}

// phyAddresses looks for PHYs at all addresses.
func phyAddresses(r *rig) {
	addr := openFor(r)
	var found []int
	for a := range 32 {
		hi, lo := r.mdio(a, phyID1), r.mdio(a, phyID2)
		if v := uint32(hi)<<16 | uint32(lo); v != 0 && v&0x1fffffff != 0x1fffffff {
			found = append(found, a)
		}
		if a == addr && (len(found) == 0 || found[len(found)-1] != addr) {
			r.Errorf("no PHY at its address %d", addr)
		}
	}
	r.figures["found"] = found
}

// phyWrite writes bits of the advertisement and reads them back.
func phyWrite(r *rig) {
	addr := openFor(r)
	was := r.mdio(addr, phyAdvertise)
	for _, v := range []uint16{1<<8 | 1, 1<<6 | 1, 1<<5 | 1<<7 | 1, was} {
		r.must(r.mac.WriteMDIO(addr, phyAdvertise, v))
		const modes = 0x01e0
		if got := r.mdio(addr, phyAdvertise); got&modes != v&modes {
			r.Errorf("the advertisement is %#04x behind a write of %#04x", got, v)
		}
	}
}

// phyStatusLink compares the link status of the PHY, which latches low, with the
// link of the MAC.
func phyStatusLink(r *rig) {
	addr := openFor(r)
	r.mdio(addr, phyStatus)
	up := r.mdio(addr, phyStatus)&(1<<2) != 0
	if link := r.mac.Link().Up; link != up {
		r.Errorf("the PHY says that the link is up: %v, the MAC says %v (%s)", up, link, r.mac.LinkReason())
	}
}
