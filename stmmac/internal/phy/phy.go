package phy

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/gostmmac/gostmmac/stmmac/internal/core"
)

// state is how far a PHY has been brought up.
type state uint8

const (
	off       state = iota // not started, or powered down on request
	starting               // to be woken, reset if that is wanted, and set up
	resetting              // a software reset was started
	running
)

// PHY is a PHY that [Find] found. Its methods are called by one goroutine at a
// time.
type PHY struct {
	cfg  Config
	port port
	// forcer is the port too, or nil: clause 45 has no duplex
	forcer forcer
	addr   int
	id     uint32
	devs   uint32 // devices in package of clause 45

	state     state
	since     time.Duration // when the state began; running: when the link went down, or negotiation started
	control   control       // as last read
	able      core.LinkModes
	allowed   core.LinkModes // what was advertised or forced
	wantReset bool
	restart   bool // negotiation has to be started
	looped    bool // the loopback is wanted

	link     core.Link // as last reported
	lost     bool      // the link was down since it was last reported
	roleFail bool      // a MASTER-SLAVE fault since the link was up; the PHY tells it once
	reason   string
	failed   bool // the last Poll ended with an error
}

// Addr is the address of the PHY on the bus.
func (p *PHY) Addr() int { return p.addr }

// ID is the identifier of the PHY, registers 2 and 3, the first in the upper
// half.
func (p *PHY) ID() uint32 { return p.id }

// Reason says why the link was down at the last Poll, or is "" if it was up.
func (p *PHY) Reason() string { return p.reason }

// Abilities are the modes that the PHY has, known once it is started.
func (p *PHY) Abilities() core.LinkModes { return p.able }

// Interval is how long to wait until the next Poll: the PollInterval of the
// configuration, or less while the PHY is on its way out of power-down or reset.
func (p *PHY) Interval() time.Duration {
	onItsWay := (p.state == starting || p.state == resetting) && !p.failed && p.cfg.Clock.Now()-p.since < maxWake
	if onItsWay {
		return min(stepTime, p.cfg.PollInterval)
	}
	return p.cfg.PollInterval
}

func (p *PHY) fail(op string, err error) error {
	return &core.Error{Op: op, Dev: p.cfg.Name, Err: err}
}

func (p *PHY) enter(s state) {
	p.state, p.since = s, p.cfg.Clock.Now()
}

// Start powers the PHY up, takes it out of isolation, resets it if the
// configuration says so, and sets up what it negotiates, or its forced mode. It
// returns when that is done, not when there is a link. A PHY that advertises
// already what it is to advertise keeps its link. Start may be called again, to
// bring up a PHY that was powered down or lost what it was told.
//
// It waits for at most 1 s for power and 0.5 s for the reset. After an error
// Poll goes on where Start stopped.
func (p *PHY) Start(ctx context.Context) error {
	p.wantReset = p.cfg.Reset
	p.enter(starting)
	for p.state != running {
		moved, err := p.step()
		switch {
		case err != nil:
			return err
		case moved:
			continue
		}
		limit := maxWake
		if p.state == resetting {
			limit = maxReset
		}
		if p.cfg.Clock.Now()-p.since >= limit {
			return &core.Error{Op: "start PHY", Dev: p.cfg.Name, Reg: p.controlName(), Val: uint32(p.control.val),
				Err: fmt.Errorf("%w: PHY %d: %s for %v: check its power, its reset pin and its straps", core.ErrNoPHY, p.addr, p.reason, limit)}
		}
		if err := p.cfg.Clock.Sleep(ctx, stepTime); err != nil {
			return p.fail("start PHY", err)
		}
	}
	return nil
}

func (p *PHY) controlName() string {
	if _, ok := p.port.(*clause45); ok {
		return reg45Name(devPMA, regCtrl1)
	}
	return regNames[regBMCR]
}

// Reasons why a link is down.
const (
	whyOff       = "the PHY was powered down on request"
	whySilent    = "the PHY does not answer any more"
	whyResetting = "the PHY is in reset"
	whyAsleep    = "the PHY is in power-down"
	whyIsolated  = "the PHY is isolated from the MAC"
	whyAutoneg   = "negotiation is off in the PHY, which lost what it was told"
	whyForced    = "the PHY is not in the forced mode, it lost what it was told"
	whyLoopback  = "the PHY is not in loopback, it lost what it was told"
	whyRunning   = "negotiation is running"
	whyNoLink    = "no link"
	whyRole      = "the partners do not agree on which of them is the master (MASTER-SLAVE configuration fault)"
)

// unfit says why a PHY in state c carries no frames, or is "".
func (c control) unfit() string {
	switch {
	case c.silent:
		return whySilent
	case c.resetting:
		return whyResetting
	case c.asleep:
		return whyAsleep
	case c.isolated:
		return whyIsolated
	}
	return ""
}

// step takes one step of bringing the PHY up. It has not moved when it has to
// wait for the PHY.
func (p *PHY) step() (moved bool, err error) {
	p.control = p.port.control()
	if err := p.port.take(); err != nil {
		return false, err
	}
	c := p.control
	p.reason = c.unfit()
	switch {
	case c.silent || c.resetting:
		return false, nil
	case p.state == resetting:
		// A reset may power the PHY down again, by its straps.
		p.wantReset = false
		p.enter(starting)
		return true, nil
	case c.asleep || c.isolated:
		p.lost = true
		p.port.wake(c)
		return false, p.port.take()
	case p.wantReset:
		p.port.reset(c)
		if err := p.port.take(); err != nil {
			return false, err
		}
		p.lost = true
		p.enter(resetting)
		return true, nil
	}
	return p.setUp()
}

// setUp writes what the PHY is to do, and starts negotiation if that changed.
func (p *PHY) setUp() (moved bool, err error) {
	a := p.port.abilities()
	if err := p.port.take(); err != nil {
		return false, err
	}
	if a.silent {
		p.reason = whySilent
		return false, nil
	}
	p.able = a.modes
	switch {
	case p.looped:
		err = p.setLoopback()
	case p.cfg.Forced != nil && !negotiatesOnly(*p.cfg.Forced):
		err = p.setForced(*p.cfg.Forced)
	default:
		err = p.setAutoneg(a)
	}
	if err != nil {
		return false, err
	}
	p.enter(running)
	p.roleFail = false
	return true, nil
}

func (p *PHY) setLoopback() error {
	m := p.able & p.cfg.Modes &^ (core.HalfDuplexModes | core.Mode2500Full)
	if m == 0 {
		return p.fail("loopback", fmt.Errorf("PHY %d has %v, the MAC %v, and no full duplex in common: %w",
			p.addr, p.able, p.cfg.Modes, errors.ErrUnsupported))
	}
	p.allowed, p.lost = m.Best(), true
	p.forcer.loop(m.Link())
	return p.port.take()
}

func (p *PHY) setForced(l core.Link) error {
	m := l.Mode()
	if m&p.able == 0 {
		return p.fail("force", fmt.Errorf("PHY %d has %v, not %v: %w", p.addr, p.able, m, errors.ErrUnsupported))
	}
	p.allowed = m
	if p.forcer.force(p.control, l) {
		p.lost = true
	}
	return p.port.take()
}

func (p *PHY) setAutoneg(a abilities) error {
	m := p.wanted() & a.modes
	switch {
	case !a.autoneg:
		return p.fail("negotiate", fmt.Errorf("PHY %d cannot negotiate: force a mode: %w", p.addr, errors.ErrUnsupported))
	case m == 0:
		return p.fail("negotiate", fmt.Errorf("PHY %d has %v, and %v is wanted: %w", p.addr, a.modes, p.wanted(), errors.ErrUnsupported))
	}
	p.allowed = m
	if p.port.advertise(m, advertised(p.cfg.Pause)) {
		// Remembered also when a write failed: the next try finds nothing to change.
		p.restart = true
	}
	if err := p.port.take(); err != nil {
		return err
	}
	if !p.restart && p.control.autoneg && !p.control.looped {
		return nil
	}
	p.restart, p.lost = true, true
	p.port.negotiate()
	if err := p.port.take(); err != nil {
		return err
	}
	p.restart = false
	return nil
}

// negotiatesOnly says whether a forced mode has to be negotiated.
func negotiatesOnly(l core.Link) bool { return l.Speed >= 1000 }

// wanted are the modes to advertise, if the PHY has them.
func (p *PHY) wanted() core.LinkModes {
	switch {
	case p.cfg.Forced != nil:
		return p.cfg.Forced.Mode()
	case p.cfg.Advertise != 0:
		return p.cfg.Advertise
	}
	return p.cfg.Modes &^ core.Mode2500Full
}

// Poll reads the state of the link. Changed says that the link is another one
// than at the last Poll, or that it was lost in between and is back: the MAC
// then has to set it up again. A PHY that is not yet brought up is taken some
// steps further.
//
// An error is one of the bus or of what the PHY cannot do; the link is then
// that of the last Poll, nothing that was seen is forgotten, and the next Poll
// goes on. A PHY that stops answering is no error: its link is down.
func (p *PHY) Poll() (l core.Link, changed bool, err error) {
	l, reason, err := p.look()
	p.failed = err != nil
	if err != nil {
		return p.link, false, err
	}
	if l.Up {
		p.roleFail = false
	}
	changed = l != p.link || l.Up && p.lost
	p.link, p.lost, p.reason = l, false, reason
	return l, changed, nil
}

// look finds the link, or the reason why there is none.
func (p *PHY) look() (core.Link, string, error) {
	switch p.state {
	case off:
		return core.Link{}, whyOff, nil
	case starting, resetting:
		if err := p.advance(); err != nil || p.state != running {
			return core.Link{}, p.reason, err
		}
	}
	p.control = p.port.control()
	s := p.port.status()
	if s.lost && !p.looped {
		p.lost = true
	}
	if err := p.port.take(); err != nil {
		return core.Link{}, "", err
	}
	c := p.control
	switch why := c.unfit(); {
	case why != "":
		return core.Link{}, why, nil
	case s.silent:
		return core.Link{}, whySilent, nil
	case p.looped && !c.looped:
		return core.Link{}, whyLoopback, nil
	case p.looped:
		// The link to the partner does not matter, and many PHYs show none.
		return p.allowed.Link(), "", nil
	case c.looped:
		return core.Link{}, "the PHY is in loopback", nil
	case p.cfg.Forced != nil && !negotiatesOnly(*p.cfg.Forced):
		return p.lookForced(s)
	}
	return p.lookAutoneg(s)
}

// advance takes steps until one has to wait for the PHY.
func (p *PHY) advance() error {
	for p.state != running {
		if moved, err := p.step(); err != nil || !moved {
			return err
		}
	}
	return nil
}

func (p *PHY) lookForced(s status) (core.Link, string, error) {
	l := p.control.forced
	switch {
	case p.control.autoneg || l.Mode() != p.allowed:
		return core.Link{}, whyForced, nil
	case !s.up:
		return core.Link{}, whyNoLink, nil
	}
	return applyPause(l, p.cfg.Pause), "", nil
}

func (p *PHY) lookAutoneg(s status) (core.Link, string, error) {
	switch {
	case !p.control.autoneg:
		return core.Link{}, whyAutoneg, nil
	case s.up && s.complete && !p.control.starting:
		n := p.port.negotiated()
		if err := p.port.take(); err != nil {
			return core.Link{}, "", err
		}
		l, reason := resolve(n, p.allowed)
		p.roleFail = p.roleFail || n.roleFail
		return applyPause(l, p.cfg.Pause), reason, nil
	}
	if p.link.Up {
		p.since = p.cfg.Clock.Now()
	}
	fault := p.port.roleFail()
	if err := p.port.take(); err != nil {
		return core.Link{}, "", err
	}
	p.roleFail = p.roleFail || fault
	switch {
	case p.roleFail:
		return core.Link{}, whyRole, nil
	case s.complete && !p.control.starting:
		return core.Link{}, whyNoLink, nil
	case p.cfg.Clock.Now()-p.since >= p.cfg.AutonegTimeout:
		// It is not started again: the PHY does that by itself, for ever.
		return core.Link{}, fmt.Sprintf("negotiation has not completed within %v: no partner, or a bad cable", p.cfg.AutonegTimeout), nil
	}
	return core.Link{}, whyRunning, nil
}

// apply sets the PHY up anew after a change of what it is to do. One that is not
// running gets it when it is started.
func (p *PHY) apply() error {
	if p.state != running {
		return nil
	}
	p.enter(starting)
	return p.advance()
}

// Renegotiate starts negotiation again, as ethtool -r does. With a forced mode
// that is not negotiated, or in loopback, there is nothing to negotiate.
func (p *PHY) Renegotiate() error {
	if p.looped || p.cfg.Forced != nil && !negotiatesOnly(*p.cfg.Forced) {
		return p.fail("renegotiate", fmt.Errorf("PHY %d is in a forced mode or in loopback: %w", p.addr, os.ErrInvalid))
	}
	p.restart = true
	return p.apply()
}

// SetAdvertise negotiates the modes of m, of which the PHY needs to have one; 0
// is all as in core.PHY. It ends a forced mode. Negotiation starts again if that
// changes what is advertised.
func (p *PHY) SetAdvertise(m core.LinkModes) error {
	if err := p.checkModes(m); err != nil {
		return p.fail("advertise", err)
	}
	if p.able != 0 && m != 0 && m&p.able == 0 {
		return p.fail("advertise", fmt.Errorf("PHY %d has %v, not %v: %w", p.addr, p.able, m, errors.ErrUnsupported))
	}
	p.cfg.Advertise, p.cfg.Forced = m, nil
	return p.apply()
}

// SetForced sets the speed and duplex of l without negotiation; from 1000
// Mbit/s on it negotiates this mode alone.
func (p *PHY) SetForced(l core.Link) error {
	if err := p.checkForced(l); err != nil {
		return p.fail("force", err)
	}
	if !negotiatesOnly(l) && p.forcer == nil {
		return p.fail("force", p.noForce())
	}
	if p.able != 0 && l.Mode()&p.able == 0 {
		return p.fail("force", fmt.Errorf("PHY %d has %v, not %v: %w", p.addr, p.able, l.Mode(), errors.ErrUnsupported))
	}
	p.cfg.Forced = &l
	return p.apply()
}

// SetPause changes the pause frames. Negotiation starts again if that changes
// what is advertised.
func (p *PHY) SetPause(m core.PauseMode) error {
	if m > core.PauseRxTx {
		return p.fail("set pause", fmt.Errorf("pause mode %d: %w", m, os.ErrInvalid))
	}
	p.cfg.Pause = m
	return p.apply()
}

// SetModes says what the MAC can do from now on: the number of transmit queues
// decides about half duplex. Modes that are named in the configuration and that
// the MAC does not have any more are refused.
func (p *PHY) SetModes(m core.LinkModes) error {
	old := p.cfg.Modes
	p.cfg.Modes = m
	err := p.checkModes(p.cfg.Advertise)
	if err == nil && p.cfg.Forced != nil {
		err = p.checkForced(*p.cfg.Forced)
	}
	if err != nil {
		p.cfg.Modes = old
		return p.fail("set modes", err)
	}
	return p.apply()
}

// Loopback turns the loopback of the PHY (BMCR bit 14) on or off. While it is on
// the link is up at the best full duplex mode of MAC and PHY up to 1000 Mbit/s.
func (p *PHY) Loopback(on bool) error {
	if on && p.forcer == nil {
		return p.fail("loopback", p.noForce())
	}
	if p.looped == on {
		return nil
	}
	p.looped = on
	return p.apply()
}

// PowerDown powers the PHY down (BMCR bit 11) until Start. Its receive clock may
// stop with it: the MAC has to be stopped before, and cannot be reset after.
func (p *PHY) PowerDown() error {
	c := p.port.control()
	if err := p.port.take(); err != nil {
		return err
	}
	if c.silent {
		return p.fail("power down", fmt.Errorf("%w: PHY %d", core.ErrNoPHY, p.addr))
	}
	p.port.sleep(c)
	if err := p.port.take(); err != nil {
		return err
	}
	p.enter(off)
	return nil
}
