package stmmac

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"github.com/gostmmac/gostmmac/stmmac/internal/core"
	"github.com/gostmmac/gostmmac/stmmac/internal/phy"
)

// Link is the state of the link. A MAC that failed has none.
func (m *MAC) Link() Link {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.linkNow()
}

func (m *MAC) linkNow() Link {
	if m.Err() != nil {
		return Link{}
	}
	return m.link
}

// LinkReason says why the link of a MAC with a PHY, or of one that failed, is
// down, or is "".
func (m *MAC) LinkReason() string {
	if err := m.Err(); err != nil {
		return err.Error()
	}
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
// are taken are merged. A link that was lost and is back at the next look at
// the PHY is yielded again.
func (m *MAC) Links(ctx context.Context) iter.Seq[Link] {
	return func(yield func(Link) bool) {
		for {
			m.mu.Lock()
			if m.linkMoved == nil {
				m.linkMoved = make(chan struct{})
			}
			moved, failed := m.linkMoved, m.failed
			l := m.linkNow()
			if m.Err() != nil {
				failed = nil // that is known
			}
			m.mu.Unlock()
			if !yield(l) {
				return
			}
			select {
			case <-moved:
			case <-failed:
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

// SetLoopback makes the MAC receive what it sends, and nothing else: in full
// duplex without pause frames, also while the link is down. [MAC.Link] goes on to
// tell the state of the link. The clocks of the PHY must run.
func (m *MAC) SetLoopback(on bool) error {
	return m.changeLink("set loopback", func() error {
		m.looped = on
		m.hw.SetLoopback(on)
		return m.setLink()
	})
}

// sends says that the transmitter is on.
func (m *MAC) sends() bool { return m.link.Up || m.looped }

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
	err := m.pollPHY()
	m.notePHY(err)
	return err
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
		m.tellLink()
	}
	return nil
}

// tellLink tells of a change of the link.
func (m *MAC) tellLink() {
	m.linkChanges.Add(1)
	if m.linkMoved != nil {
		close(m.linkMoved)
		m.linkMoved = nil
	}
	m.log().Info().Stringer("link", m.link).Msg("link")
}

// setLink programs the MAC for its link.
func (m *MAC) setLink() error {
	l := m.link
	if m.looped {
		if !l.Up {
			best := m.hw.LinkModes() &^ (core.HalfDuplexModes | core.Mode2500Full)
			l = best.Best().Link()
		}
		// Its own frames must not make it defer, and its own pauses not pause it.
		l.FullDuplex, l.RxPause, l.TxPause = true, false, false
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

// followPHY is pollPHY for a MAC that is programmed afterwards. A PHY that cannot be
// read is asked again at the next look; the link is what it was.
func (m *MAC) followPHY() {
	m.unloopPHY()
	l, changed, err := m.phy.Poll()
	if m.notePHY(err); err != nil {
		return
	}
	moved := changed || l != m.link
	if m.link = l; moved {
		m.tellLink()
	}
}

// unloopPHY ends the loopback of the PHY, if reset needed it. When that fails the
// next look at the PHY goes on with it.
func (m *MAC) unloopPHY() {
	if err := m.phy.Loopback(false); err != nil {
		m.notePHY(err)
	}
}
