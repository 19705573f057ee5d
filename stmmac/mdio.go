package stmmac

import (
	"errors"
	"fmt"
	"os"

	"github.com/gostmmac/gostmmac/stmmac/internal/core"
)

// ReadMDIO reads register reg, 0 to 31, of the PHY at addr, 0 to 31, by a frame of
// IEEE 802.3 clause 22. Where no PHY answers it reads 0xffff or 0. Some registers
// are changed by reading them, the link status in register 1 among them.
//
// An error is os.ErrInvalid for what is no address or register or if the CSR clock
// is not known, and errors.ErrUnsupported if the device has no management interface.
// Any goroutine may call it; it waits for a change of the MAC that is under way.
func (m *MAC) ReadMDIO(addr, reg int) (v uint16, err error) {
	err = m.overMDIO("read MDIO", addr, reg, func(b core.MDIOBus) error {
		v, err = b.Read(addr, reg)
		return err
	})
	return v, err
}

// WriteMDIO writes a register as ReadMDIO reads it. What it does to the PHY that
// the MAC follows is as if somebody else had done it: the MAC sees the link that
// comes of it.
func (m *MAC) WriteMDIO(addr, reg int, v uint16) error {
	return m.overMDIO("write MDIO", addr, reg, func(b core.MDIOBus) error { return b.Write(addr, reg, v) })
}

// overMDIO makes an access under the lock that every reset of the MAC has.
func (m *MAC) overMDIO(op string, addr, reg int, access func(core.MDIOBus) error) error {
	const most = 31
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.alive(op); err != nil {
		return err
	}
	switch {
	case !m.feat.MDIO:
		return m.wrap(op, fmt.Errorf("the device has no management interface to a PHY (SMASEL): %w", errors.ErrUnsupported))
	case addr < 0 || addr > most || reg < 0 || reg > most:
		return m.wrap(op, fmt.Errorf("register %d of address %d: neither is over %d or negative: %w", reg, addr, most, os.ErrInvalid))
	}
	if err := access(m.hw.MDIO()); err != nil {
		return m.within(op, err)
	}
	return nil
}
