package phy

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/gostmmac/gostmmac/stmmac/internal/core"
)

// Config is what a PHY is used with.
type Config struct {
	core.PHY
	// Name is how errors call the device of the MAC.
	Name string
	// Modes are what the MAC can do as it is set up. Half duplex is negotiated,
	// and accepted, only if it is in here.
	Modes core.LinkModes
	// Clock is the source of time.
	Clock core.Clock
}

const (
	// maxReset is how long a reset of a PHY may take, IEEE 802.3 clause
	// 22.2.4.1.1. A PHY that is just let out of a reset by a pin gets as long.
	maxReset = 500 * time.Millisecond
	// maxWake is how long a PHY may take to leave power-down: clause 22.2.4.1.5
	// leaves it open, and 0.5 s is what it may take until it answers at all.
	maxWake = time.Second
	// stepTime is how often a PHY is asked that is on its way.
	stepTime = 10 * time.Millisecond

	defaultPoll    = time.Second
	defaultAutoneg = 5 * time.Second
)

// Find looks for the PHY on the bus: at Addr, or at all addresses, where the
// lowest is taken. It gives a PHY 0.5 s to answer. It writes nothing. The error
// is core.ErrNoPHY if none answers, one of the bus, or says what of the
// configuration MAC and PHY cannot do.
func Find(ctx context.Context, bus Bus, cfg Config) (*PHY, error) {
	p := &PHY{cfg: cfg}
	if err := p.validate(); err != nil {
		return nil, p.fail("find PHY", err)
	}
	first, last := cfg.Addr, cfg.Addr
	if cfg.Addr == core.AnyPHY {
		first, last = 0, 31
	}
	for deadline := cfg.Clock.Now() + maxReset; ; {
		late := cfg.Clock.Now() >= deadline
		seen := map[uint32]int{}
		for addr := first; addr <= last; addr++ {
			a := &access{bus: bus, addr: addr}
			v, found := p.probe(a)
			if err := a.take(); err != nil {
				return nil, err
			}
			if found {
				if err := p.check(); err != nil {
					return nil, err
				}
				return p, nil
			}
			seen[v]++
		}
		if late {
			return nil, p.fail("find PHY", noPHY(seen, cfg.Clause45))
		}
		if err := cfg.Clock.Sleep(ctx, stepTime); err != nil {
			return nil, p.fail("find PHY", err)
		}
	}
}

// validate checks the configuration and sets its defaults.
func (p *PHY) validate() error {
	c := &p.cfg
	switch {
	case c.Addr < core.AnyPHY || c.Addr > 31:
		return fmt.Errorf("PHY address %d is not in 0..31, nor -1 for any: %w", c.Addr, os.ErrInvalid)
	case c.Clock == nil || c.PollInterval < 0 || c.AutonegTimeout < 0:
		return fmt.Errorf("no clock, or a negative time: %w", os.ErrInvalid)
	case c.Pause > core.PauseRxTx:
		return fmt.Errorf("pause mode %d: %w", c.Pause, os.ErrInvalid)
	}
	c.PollInterval = cmp.Or(c.PollInterval, defaultPoll)
	c.AutonegTimeout = cmp.Or(c.AutonegTimeout, defaultAutoneg)
	if err := p.checkModes(c.Advertise); err != nil {
		return err
	}
	if c.Forced == nil {
		return nil
	}
	forced := *c.Forced
	c.Forced = &forced
	return p.checkForced(forced)
}

// checkModes refuses modes that the MAC does not have.
func (p *PHY) checkModes(m core.LinkModes) error {
	if more := m &^ p.cfg.Modes; more != 0 {
		return fmt.Errorf("%v: the MAC as it is set up has %v: %w", more, p.cfg.Modes, errors.ErrUnsupported)
	}
	if m&core.Mode2500Full != 0 && !p.cfg.Clause45 {
		return fmt.Errorf("%v has its registers in clause 45, which is not asked for: %w", core.Mode2500Full, os.ErrInvalid)
	}
	return nil
}

func (p *PHY) checkForced(l core.Link) error {
	m := l.Mode()
	if m == 0 {
		l.Up = true
		return fmt.Errorf("no mode is %v: %w", l, errors.ErrUnsupported)
	}
	return p.checkModes(m)
}

// probe looks for a PHY at one address. It returns what it read there as an
// identifier.
func (p *PHY) probe(a *access) (seen uint32, found bool) {
	if p.cfg.Clause45 {
		return p.probe45(a)
	}
	id := a.id22()
	if a.err != nil || !p.accept(id) {
		return id, false
	}
	p.id, p.addr = id, a.addr
	p.use22(&clause22{access: a})
	return id, true
}

func (a *access) id22() uint32 {
	hi, lo := a.read(regPHYID1), a.read(regPHYID2)
	return uint32(hi)<<16 | uint32(lo)
}

// accept says whether id is that of a PHY. Nobody drives the bus, or its clock
// is off, where a half is all ones or zero (case D57). Only at an address that
// was given the upper half may be zero: a few old PHYs have no OUI.
func (p *PHY) accept(id uint32) bool {
	hi, lo := id>>16, id&0xffff
	if hi == silent || lo == silent || lo == 0 {
		return false
	}
	return hi != 0 || p.cfg.Addr != core.AnyPHY
}

func (p *PHY) use22(c *clause22) { p.port, p.forcer = c, c }

// probe45 looks for a PHY by the devices that its package has.
func (p *PHY) probe45(a *access) (seen uint32, found bool) {
	for _, dev := range []int{devPMA, devPCS, devAN, devVendor1} {
		lo, hi := a.read45(dev, regDevs1), a.read45(dev, regDevs2)
		if a.err != nil {
			return 0, false
		}
		seen = uint32(hi)<<16 | uint32(lo)
		if lo == silent || hi == silent || seen&(1<<dev) == 0 {
			continue
		}
		id := uint32(a.read45(dev, regDevID1))<<16 | uint32(a.read45(dev, regDevID2))
		if a.err != nil || !p.accept(id) {
			seen = id
			continue
		}
		p.id, p.addr = id, a.addr
		if seen&devsClause22 != 0 && p.accept(a.id22()) {
			p.use22(&clause22{access: a, multi: seen&(1<<devAN) != 0})
		} else {
			p.port = &clause45{access: a}
		}
		p.devs = seen
		return id, a.err == nil
	}
	return seen, false
}

// check refuses what the PHY that was found cannot do.
func (p *PHY) check() error {
	const need = 1<<devPMA | 1<<devAN
	if _, ok := p.port.(*clause45); ok && p.devs&need != need {
		return p.fail("find PHY", fmt.Errorf("PHY %d has neither registers of clause 22 nor the devices PMA and AN of clause 45 (devices in package %#x): %w",
			p.addr, p.devs, errors.ErrUnsupported))
	}
	return p.checkPort()
}

// checkPort refuses a forced mode at a PHY that has no registers for it.
func (p *PHY) checkPort() error {
	if l := p.cfg.Forced; l != nil && !negotiatesOnly(*l) && p.forcer == nil {
		return p.fail("force", p.noForce())
	}
	return nil
}

func (p *PHY) noForce() error {
	return fmt.Errorf("PHY %d has registers of clause 45 only, and those have no duplex: %w", p.addr, errors.ErrUnsupported)
}

// noPHY says what was read where nobody answers.
func noPHY(seen map[uint32]int, c45 bool) error {
	// the most frequent first
	ids := slices.SortedFunc(maps.Keys(seen), func(a, b uint32) int {
		return cmp.Or(cmp.Compare(seen[b], seen[a]), cmp.Compare(a, b))
	})
	var b strings.Builder
	for i, id := range ids {
		if i == 4 {
			fmt.Fprintf(&b, ", …")
			break
		}
		if i > 0 {
			b.WriteString(", ")
		}
		fmt.Fprintf(&b, "%#08x at %d", id, seen[id])
	}
	what := "the identifiers read"
	if c45 {
		what = "by clause 45 the devices or identifiers read"
	}
	return fmt.Errorf("%w: %s %s addresses: check that the PHY is powered, out of reset and at that address, and that the MDIO bus has its clock and pull-up",
		core.ErrNoPHY, what, b.String())
}
