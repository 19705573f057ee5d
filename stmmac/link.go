package stmmac

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/gostmmac/gostmmac/stmmac/internal/core"
	"github.com/gostmmac/gostmmac/stmmac/internal/phy"
)

// Link is the state of the link.
func (m *MAC) Link() Link {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.link
}

// LinkReason says why the link of a MAC with a PHY is down, or is "".
func (m *MAC) LinkReason() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case m.phy == nil || m.link.Up:
		return ""
	case m.phyErr != nil:
		return m.phyErr.Error()
	}
	return m.phy.Reason()
}

// Links yields the state of the link and then each change of it, until ctx
// ends or the MAC is closed. Changes that follow each other faster than they
// are taken are merged.
func (m *MAC) Links(ctx context.Context) iter.Seq[Link] {
	return func(yield func(Link) bool) {
		for {
			m.mu.Lock()
			if m.linkMoved == nil {
				m.linkMoved = make(chan struct{})
			}
			l, moved := m.link, m.linkMoved
			m.mu.Unlock()
			if !yield(l) {
				return
			}
			select {
			case <-moved:
			case <-ctx.Done():
				return
			case <-m.closing:
				return
			}
		}
	}
}

// SetLink sets the state of a fixed link: one without a PHY, as between two
// MACs, or with one that somebody else looks after. A link that is down stops
// the MAC; the queues stay. A MAC that follows its PHY refuses it with
// errors.ErrUnsupported: see [MAC.SetForced].
func (m *MAC) SetLink(l Link) error {
	return m.changeLink("set link", func() error {
		if m.phy != nil {
			return fmt.Errorf("the MAC follows its PHY, whose modes SetForced and SetAdvertise set: %w", errors.ErrUnsupported)
		}
		return m.applyLink(l, false)
	})
}

// Renegotiate makes the PHY negotiate again. The link is down until it has.
func (m *MAC) Renegotiate() error {
	return m.changeLink("renegotiate", func() error {
		return m.withPHY(func(p *phy.PHY) error { return p.Renegotiate() })
	})
}

// SetAdvertise makes the PHY negotiate the modes of modes; 0 is all that PHY and
// MAC have, but 2500 Mbit/s, which has to be named. It ends a forced mode.
func (m *MAC) SetAdvertise(modes LinkModes) error {
	return m.changeLink("set advertise", func() error {
		return m.withPHY(func(p *phy.PHY) error { return p.SetAdvertise(modes) })
	})
}

// SetForced makes the PHY use the speed and duplex of l without negotiation; from
// 1000 Mbit/s on it negotiates this mode alone, since a link needs that there.
func (m *MAC) SetForced(l Link) error {
	return m.changeLink("set forced mode", func() error {
		return m.withPHY(func(p *phy.PHY) error { return p.SetForced(l) })
	})
}

// SetPause says which pause frames are used. With a PHY negotiation starts again
// if that changes what it advertises. Pause frames are used in full duplex only,
// and sent only where a receive queue has 4 KiB of FIFO or more.
func (m *MAC) SetPause(mode PauseMode) error {
	return m.changeLink("set pause", func() error {
		if m.phy != nil {
			return m.withPHY(func(p *phy.PHY) error { return p.SetPause(mode) })
		}
		l := m.link
		switch mode {
		case PauseOff, PauseRx, PauseTx, PauseRxTx:
			l.RxPause = mode == PauseRx || mode == PauseRxTx
			l.TxPause = mode == PauseTx || mode == PauseRxTx
		default:
			return fmt.Errorf("pause mode %d on a fixed link, on which nobody negotiates: %w", mode, errors.ErrUnsupported)
		}
		return m.applyLink(l, false)
	})
}

// SetLoopback makes the MAC receive what it sends, and nothing else; the link
// counts as up meanwhile, and the cable is cut off. The clocks of the PHY must run.
func (m *MAC) SetLoopback(on bool) error {
	return m.changeLink("set loopback", func() error {
		m.looped = on
		m.hw.SetLoopback(on)
		return m.setLink()
	})
}

// changeLink is a change of the link by the application.
func (m *MAC) changeLink(op string, change func() error) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.alive(op); err != nil {
		return err
	}
	if err := change(); err != nil {
		return m.within(op, err)
	}
	return nil
}

// withPHY does something to the PHY, and takes the link over as it is then.
func (m *MAC) withPHY(f func(*phy.PHY) error) error {
	if m.phy == nil {
		return fmt.Errorf("the link is fixed, no PHY is looked after: %w", errors.ErrUnsupported)
	}
	if err := f(m.phy); err != nil {
		return err
	}
	return m.pollPHY()
}

// applyLink makes l the link, or with anew one like the one before. The caller
// holds m.mu.
func (m *MAC) applyLink(l Link, anew bool) error {
	old := m.link
	m.link = l
	program := m.setLink
	if m.needsOneTx(l) != m.oneTx.Load() {
		program = func() error { return m.rebuild(m.life, "change duplex", true, nil) }
	}
	if err := program(); err != nil {
		m.link = old
		return err
	}
	if anew || l != old {
		m.linkChanges.Add(1)
		if m.linkMoved != nil {
			close(m.linkMoved)
			m.linkMoved = nil
		}
		m.log().Info().Stringer("link", l).Msg("link")
	}
	return nil
}

// setLink programs the MAC for its link.
func (m *MAC) setLink() error {
	l := m.link
	if m.looped && !l.Up {
		best := m.hw.LinkModes() &^ (core.HalfDuplexModes | core.Mode2500Full)
		l = best.Best().Link()
	}
	return m.hw.SetLink(l)
}

// findPHY finds the PHY, if one is to be looked after.
func (m *MAC) findPHY(ctx context.Context) error {
	c := m.cfg.PHY
	if c == nil {
		return nil
	}
	m.link = Link{}
	if !m.feat.MDIO {
		return fmt.Errorf("the device has no management interface to a PHY (SMASEL): say what its link is with WithLink: %w", errors.ErrUnsupported)
	}
	p, err := phy.Find(ctx, m.hw.MDIO(), phy.Config{PHY: *c, Name: m.cfg.Name, Modes: m.hw.LinkModes(), Clock: m.cfg.Clock})
	if err != nil {
		return err
	}
	m.phy = p
	return nil
}

// pollPHY takes over the link of the PHY. The caller holds m.mu.
func (m *MAC) pollPHY() error {
	l, changed, err := m.phy.Poll()
	if err != nil {
		return err
	}
	if changed || l != m.link {
		return m.applyLink(l, changed)
	}
	return nil
}

// phyDue is when the PHY is to be looked at again: a link that is down is looked
// at with each tick, since that is when somebody waits for it.
func (m *MAC) phyDue(now time.Duration) time.Duration {
	if !m.link.Up {
		return now
	}
	return now + m.phy.Interval()
}
