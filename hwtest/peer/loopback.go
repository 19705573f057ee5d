package peer

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/gostmmac/gostmmac/stmmac"
)

// Standard names of IEEE 802.3 clause 22.
const (
	regControl  = 0
	regStatus   = 1
	regPHYID1   = 2
	regPHYID2   = 3
	regExtended = 15

	ctrlLoopback  = 1 << 14
	ctrlSpeed100  = 1 << 13
	ctrlPower     = 1 << 11 // power down
	ctrlFull      = 1 << 8
	ctrlSpeed1G   = 1 << 6
	ctrlNegotiate = 1<<12 | 1<<9 // negotiation, and start it now

	statusExtended = 1 << 8
	statusLink     = 1 << 2
	extended1G     = 1<<13 | 1<<15 // full duplex, over copper or fibre
)

// loopback is the device itself: what it sends comes back.
type loopback struct {
	name string
	phy  bool // inside the PHY, not inside the MAC
	mac  *stmmac.MAC
}

func (l *loopback) Name() string { return l.name }

func (l *loopback) Can(a Ability) bool { return a == Tags || a == Jumbo }

func (l *loopback) MTU() int { return maxMTU }

// Options fix the link of a PHY in loopback: it has none, and negotiates nothing.
func (l *loopback) Options() []stmmac.Option {
	if !l.phy {
		return nil
	}
	return []stmmac.Option{stmmac.WithLink(stmmac.Link{})}
}

func (l *loopback) Attach(ctx context.Context, m *stmmac.MAC) error {
	l.mac = m
	if !l.phy {
		return failed("loop the MAC back", l.name, m.SetLoopback(true))
	}
	return failed("loop the PHY back", l.name, loopPHY(ctx, m))
}

// loopPHY loops back the PHY that answers at the lowest address, at the highest speed
// that it and the MAC have in full duplex.
func loopPHY(ctx context.Context, m *stmmac.MAC) error {
	addr, err := findPHY(m)
	if err != nil {
		return err
	}
	status, err := m.ReadMDIO(addr, regStatus)
	if err != nil {
		return err
	}
	link, control := stmmac.Link{Up: true, Speed: 100, FullDuplex: true}, uint16(ctrlLoopback|ctrlFull|ctrlSpeed100)
	if status&statusExtended != 0 && m.Features().GMII {
		e, err := m.ReadMDIO(addr, regExtended)
		if err != nil {
			return err
		}
		if e&extended1G != 0 {
			link.Speed, control = 1000, ctrlLoopback|ctrlFull|ctrlSpeed1G
		}
	}
	if err := m.WriteMDIO(addr, regControl, control); err != nil {
		return err
	}
	if err := settle(ctx, m, addr); err != nil {
		return err
	}
	return m.SetLink(link)
}

// settle waits until the PHY says that it has a link, or for a while: not every PHY
// says so of its loopback.
func settle(ctx context.Context, m *stmmac.MAC, addr int) error {
	const patience, pause = 500 * time.Millisecond, 5 * time.Millisecond
	for range patience / pause {
		status, err := m.ReadMDIO(addr, regStatus)
		if err != nil || status&statusLink != 0 {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(pause):
		}
	}
	return nil
}

func findPHY(m *stmmac.MAC) (int, error) {
	for addr := range 32 {
		hi, err := m.ReadMDIO(addr, regPHYID1)
		if err != nil {
			return 0, err
		}
		lo, err := m.ReadMDIO(addr, regPHYID2)
		if err != nil {
			return 0, err
		}
		if id := uint32(hi)<<16 | uint32(lo); id&0x1fffffff != 0x1fffffff && id != 0 {
			return addr, nil
		}
	}
	return 0, stmmac.ErrNoPHY
}

func (l *loopback) Send(ctx context.Context, frames ...[]byte) error {
	if l.mac == nil {
		return failed("send", l.name, fmt.Errorf("no MAC is attached: %w", errors.ErrUnsupported))
	}
	return failed("send", l.name, transmit(ctx, l.mac, frames))
}

func (l *loopback) Recv(context.Context) ([]byte, error) {
	return nil, failed("receive", l.name, fmt.Errorf("frames come back to the device: %w", errors.ErrUnsupported))
}

func (l *loopback) Close() error { return nil }
