package phy

import "github.com/gostmmac/gostmmac/stmmac/internal/core"

// port is a PHY's registers as far as it matters by which clause they are
// reached. Its methods do nothing after a failed access until take has returned
// the error; what they return after a failure says nothing, unless noted.
type port interface {
	take() error
	// control reads what state the PHY is in.
	control() control
	// wake takes the PHY out of power-down and isolation, sleep powers it down,
	// reset starts a software reset. All begin with the state c of the PHY.
	wake(c control)
	sleep(c control)
	reset(c control)
	// abilities reads what the PHY can do.
	abilities() abilities
	// advertise sets what is negotiated and says, also after a failure, whether
	// that is something else than before. It takes effect by negotiate.
	advertise(m core.LinkModes, p pauseBits) (changed bool)
	// negotiate turns negotiation on and starts it.
	negotiate()
	// status reads the link. Lost is right also after a failure.
	status() status
	// negotiated reads what both sides advertise.
	negotiated() negotiated
	// roleFail reads whether the partners could not agree on master and slave.
	roleFail() bool
}

// forcer is a port that can do without a partner.
type forcer interface {
	// force turns negotiation off and sets speed and duplex, and says whether
	// they changed.
	force(c control, l core.Link) (changed bool)
	// loop turns the loopback on, at the speed and duplex of l.
	loop(l core.Link)
}

// control is the state of a PHY.
type control struct {
	reg, val  uint16
	silent    bool // nobody answers
	resetting bool
	asleep    bool // in power-down
	isolated  bool
	looped    bool
	autoneg   bool // negotiation is on
	starting  bool // negotiation was started, and that bit is still set
	forced    core.Link
}

// abilities are what a PHY can do.
type abilities struct {
	silent  bool // nobody answers
	autoneg bool
	modes   core.LinkModes
}

// status is the state of the link.
type status struct {
	silent   bool // nobody answers
	lost     bool // the link was down at some time since the last status
	up       bool
	complete bool // negotiation
}

// negotiated is what both sides of a link advertise.
type negotiated struct {
	local, partner           core.LinkModes
	localPause, partnerPause pauseBits
	partnerAN                bool // the partner negotiates
	roleFail                 bool
}

// pauseBits are PAUSE and ASM_DIR as advertised: anPause and anAsymDir.
type pauseBits uint16
