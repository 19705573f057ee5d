package drive

import (
	"context"
	"errors"
	"fmt"

	"github.com/gostmmac/gostmmac/hwtest/rig/note"
	"github.com/gostmmac/gostmmac/stmmac"
)

// Registers of the PHY, IEEE 802.3 22.2.4, and their bits.
const (
	phyBMCR   = 0
	phyID1    = 2
	phyANLPAR = 5

	bmcrReset = 1 << 15
)

// phyAddresses: all addresses but 0 answer with 0, so that a driver that takes any answer
// for a PHY finds 32.
func phyAddresses(ctx context.Context, b *board) error {
	const addresses = 32
	for a := 1; a < addresses; a++ {
		v, err := b.mac.ReadMDIO(a, phyID1)
		if err == nil && v != 0 {
			err = fmt.Errorf("register %d of address %d reads %#x, and the model has changed", phyID1, a, v)
		}
		if err != nil {
			return err
		}
	}
	if i, ok := b.mac.PHY(); !ok || i.Addr != 0 || i.ID != 0x0362_5e6a {
		return fmt.Errorf("the driver found PHY %+v, %v", i, ok)
	}
	if err := b.mac.Close(); err != nil {
		return err
	}
	for _, a := range []int{1, 7, 31} {
		m, err := b.open(ctx, stmmac.WithPHY(stmmac.PHY{Addr: a}))
		if err == nil {
			err = fmt.Errorf("the driver found a PHY at address %d: %w", a, m.Close())
			return err
		}
		if !errors.Is(err, stmmac.ErrNoPHY) {
			return fmt.Errorf("address %d: %w, want %w", a, err, stmmac.ErrNoPHY)
		}
	}
	if err := b.again(ctx); err != nil {
		return err
	}
	note.Printf(ctx, "the driver finds the one at address 0, and none at others")
	return exchange(ctx, b, 100)
}

// waitLink waits until the link is up or not.
func (b *board) waitLink(ctx context.Context, up bool) error {
	for l := range b.mac.Links(ctx) {
		if l.Up == up {
			return nil
		}
	}
	return fmt.Errorf("the link is %v: %s: %w", b.mac.Link(), b.mac.LinkReason(), errors.Join(ctx.Err(), b.mac.Err()))
}

// gigabit checks the link.
func (b *board) gigabit() error {
	if l := b.mac.Link(); !l.Up || l.Speed != 1000 || !l.FullDuplex {
		return fmt.Errorf("the link is %v", l)
	}
	return nil
}

// phyReset resets the PHY behind the driver's back, and by the driver: its control register
// is 0 then, with negotiation off.
func phyReset(ctx context.Context, b *board) error {
	for range 3 {
		if err := b.mac.WriteMDIO(0, phyBMCR, bmcrReset); err != nil {
			return err
		}
		if v, err := b.mac.ReadMDIO(0, phyBMCR); err != nil || v != 0 {
			return fmt.Errorf("BMCR reads %#x after the reset, and the model has changed: %w", v, err)
		}
		if err := b.waitLink(ctx, false); err != nil {
			return err
		}
		why := b.mac.LinkReason()
		if why == "" {
			return errors.New("the link is down for no reason")
		}
		if err := b.mac.Renegotiate(); err != nil {
			return err
		}
		if err := errors.Join(b.waitLink(ctx, true), b.gigabit()); err != nil {
			return err
		}
		if err := exchange(ctx, b, 100); err != nil {
			return err
		}
	}
	for range 3 {
		if err := b.again(ctx, stmmac.WithPHY(stmmac.PHY{Addr: stmmac.AnyPHY, Reset: true})); err != nil {
			return err
		}
		if err := b.gigabit(); err != nil {
			return err
		}
		if err := exchange(ctx, b, 100); err != nil {
			return err
		}
	}
	note.Printf(ctx, "3 resets by somebody else, 3 by the driver")
	return nil
}

// phyForgets: the partner's word is 0 after negotiation was started, so that only 1000BASE-T,
// which has a register of its own, is left in common.
func phyForgets(ctx context.Context, b *board) error {
	for range 3 {
		if err := b.mac.Renegotiate(); err != nil {
			return err
		}
		if v, err := b.mac.ReadMDIO(0, phyANLPAR); err != nil || v != 0 {
			return fmt.Errorf("ANLPAR reads %#x, and the model has changed: %w", v, err)
		}
		if err := errors.Join(b.waitLink(ctx, true), b.gigabit(), exchange(ctx, b, 100)); err != nil {
			return err
		}
		// Without 1000BASE-T there is nothing in common.
		if err := b.mac.SetAdvertise(stmmac.Mode100Full); err != nil {
			return err
		}
		if err := b.waitLink(ctx, false); err != nil {
			return err
		}
		if b.mac.LinkReason() == "" {
			return errors.New("the link is down for no reason")
		}
		if err := b.mac.SetAdvertise(0); err != nil {
			return err
		}
		if err := errors.Join(b.waitLink(ctx, true), b.gigabit(), exchange(ctx, b, 100)); err != nil {
			return err
		}
	}
	return nil
}
