package core

import (
	"errors"
	"fmt"
	"math/bits"
	"strings"
	"time"
)

// MDIOBus is the management interface between a MAC and its PHYs, IEEE 802.3
// clauses 22.2.4, 22.3.4 and 45.3. Addresses of PHYs, MDIO manageable devices
// and clause 22 registers are 0 to 31, clause 45 registers 0 to 65535. Every
// access is bounded in time; an error is that of the bus, not of the PHY: one
// that is absent reads 0xffff or 0. The caller makes one access at a time, and
// none while the MAC is being reset.
type MDIOBus interface {
	// Read reads register reg of the PHY at addr by clause 22.
	Read(addr, reg int) (uint16, error)
	// Write writes a register by clause 22.
	Write(addr, reg int, v uint16) error
	// Read45 reads register reg of device dev of the PHY at addr by clause 45.
	Read45(addr, dev, reg int) (uint16, error)
	// Write45 writes a register by clause 45.
	Write45(addr, dev, reg int, v uint16) error
}

// LinkModes is a set of modes of a copper link.
type LinkModes uint16

// Modes, from the least to the most preferred of IEEE 802.3 annex 28B.3.
const (
	Mode10Half LinkModes = 1 << iota
	Mode10Full
	Mode100Half
	Mode100Full
	Mode1000Half
	Mode1000Full
	Mode2500Full
)

// HalfDuplexModes are all modes of half duplex.
const HalfDuplexModes = Mode10Half | Mode100Half | Mode1000Half

// linkModes describes the modes in the order of their bits, with the names of
// ethtool.
var linkModes = [...]struct {
	name  string
	speed int
	full  bool
}{
	{"10baseT/Half", 10, false},
	{"10baseT/Full", 10, true},
	{"100baseT/Half", 100, false},
	{"100baseT/Full", 100, true},
	{"1000baseT/Half", 1000, false},
	{"1000baseT/Full", 1000, true},
	{"2500baseT/Full", 2500, true},
}

// String names the modes as ethtool does: "100baseT/Half 100baseT/Full", or
// "none".
func (m LinkModes) String() string {
	var names []string
	for i, d := range linkModes {
		if m&(1<<i) != 0 {
			names = append(names, d.name)
		}
	}
	if names == nil {
		return "none"
	}
	return strings.Join(names, " ")
}

// Best returns the mode of the set that negotiation prefers, as a set of one,
// or the empty set.
func (m LinkModes) Best() LinkModes {
	m &= 1<<len(linkModes) - 1
	if m == 0 {
		return 0
	}
	return 1 << (bits.Len16(uint16(m)) - 1)
}

// Link returns the best mode of the set as a link that is up, without pause,
// or a link that is down if the set is empty.
func (m LinkModes) Link() Link {
	best := m.Best()
	if best == 0 {
		return Link{}
	}
	d := linkModes[bits.TrailingZeros16(uint16(best))]
	return Link{Up: true, Speed: d.speed, FullDuplex: d.full}
}

// Mode returns the mode of a link's speed and duplex, or the empty set if it is
// none of them.
func (l Link) Mode() LinkModes {
	for i, d := range linkModes {
		if d.speed == l.Speed && d.full == l.FullDuplex {
			return 1 << i
		}
	}
	return 0
}

// PauseMode says which pause frames (IEEE 802.3 annex 31B) are used. They are
// used in full duplex only.
type PauseMode uint8

// Ways to use pause frames. All but the first hold whatever the partner says.
const (
	PauseAuto PauseMode = iota // advertise both directions, use what the partner agrees to
	PauseOff                   // neither
	PauseRx                    // obey those that are received
	PauseTx                    // send them
	PauseRxTx                  // both
)

// AnyPHY is the Addr of a PHY that is to be looked for.
const AnyPHY = -1

// PHY is where a PHY is and what it is told to do. The zero value is the PHY
// at address 0, which negotiates all that it and the MAC can do.
type PHY struct {
	// Addr is the address on the MDIO bus, 0 to 31, or AnyPHY: the lowest at
	// which one answers.
	Addr int
	// Clause45 finds the PHY by clause 45 and uses its registers of 2500baseT.
	Clause45 bool
	// Reset resets the PHY by software each time it is brought up.
	Reset bool
	// Advertise is what is negotiated; 0: all that MAC and PHY can do, except
	// 2500baseT/Full, which has to be named: no register of the MAC tells
	// whether its clocks are made for it.
	Advertise LinkModes
	// Forced, if not nil, turns negotiation off and sets its Speed and
	// FullDuplex. From 1000 Mbit/s on a link needs negotiation (IEEE 802.3
	// clauses 28D.5 and 40.5): there it advertises this mode alone.
	Forced *Link
	// Pause is which pause frames are used.
	Pause PauseMode
	// PollInterval is how often the PHY is asked for its link; 0: 1 s.
	PollInterval time.Duration
	// AutonegTimeout is after how long a negotiation that does not complete is
	// given as the reason why the link is down; 0: 5 s. It goes on after that.
	AutonegTimeout time.Duration
}

// LinkModes are the modes of a MAC with these features, which with GMII has those of
// gmii. A device whose features name neither MII nor GMII is not believed.
func (f *Features) LinkModes(gmii LinkModes) LinkModes {
	const mii = Mode10Half | Mode10Full | Mode100Half | Mode100Full
	var m LinkModes
	if f.MII {
		m |= mii
	}
	if f.GMII {
		m |= gmii
	}
	if m == 0 {
		m = mii | gmii
	}
	if !f.HalfDuplex {
		m &^= HalfDuplexModes
	}
	return m
}

// CheckLink refuses a link that a MAC with these features cannot have; speed says
// whether it has its speed.
func (f *Features) CheckLink(l Link, speed bool) error {
	switch {
	case !l.Up:
		return nil
	case !speed:
		return fmt.Errorf("%d Mbit/s: %w", l.Speed, errors.ErrUnsupported)
	case !l.FullDuplex && (l.Speed > 100 || !f.HalfDuplex):
		return fmt.Errorf("half duplex at %d Mbit/s: %w", l.Speed, errors.ErrUnsupported)
	}
	return nil
}
