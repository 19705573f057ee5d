package gmac

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/gostmmac/gostmmac/mmio"
	"github.com/gostmmac/gostmmac/stmmac/internal/core"
	"github.com/gostmmac/gostmmac/stmmac/internal/regs/gmacreg"
)

// mdioTimeout bounds the wait before and after an access. One at the slowest MDC
// of a 1 MHz clock takes 1 ms.
const mdioTimeout = 10 * time.Millisecond

// mdio is the station management agent of the MAC, which knows clause 22 only.
type mdio struct{ h *HW }

// MDIO implements core.Hardware.
func (h *HW) MDIO() core.MDIOBus { return mdio{h} }

// Read implements core.MDIOBus.
func (m mdio) Read(addr, reg int) (uint16, error) { return m.access("mdio read", addr, reg, 0, 0) }

// Write implements core.MDIOBus.
func (m mdio) Write(addr, reg int, v uint16) error {
	_, err := m.access("mdio write", addr, reg, gmacreg.GW, v)
	return err
}

// Read45 implements core.MDIOBus.
func (m mdio) Read45(int, int, int) (uint16, error) { return 0, m.no45("mdio read") }

// Write45 implements core.MDIOBus.
func (m mdio) Write45(int, int, int, uint16) error { return m.no45("mdio write") }

func (m mdio) no45(op string) error {
	return m.h.fail(op, "", 0, fmt.Errorf("the management interface of a GMAC 3.x has no clause 45: %w", errors.ErrUnsupported))
}

// access makes one access, with dir = 0 or GW, and returns what was read.
func (m mdio) access(op string, addr, reg int, dir gmacreg.MIIAddress, v uint16) (uint16, error) {
	h := m.h
	where := fmt.Sprintf("PHY %d register %d", addr, reg)
	if !h.feat.MDIO {
		return 0, h.fail(op, "", 0, fmt.Errorf("the MAC was built without MDIO (SMASEL): %w", errors.ErrUnsupported))
	}
	// A field would drop the bits that do not fit, and name another PHY.
	if addr>>5 != 0 || reg>>5 != 0 {
		return 0, h.fail(op, "", 0, fmt.Errorf("%s does not exist: %w", where, os.ErrInvalid))
	}
	cr, err := core.MDCCode(h.cfg.CSRClock)
	if err != nil {
		return 0, h.fail(op, "", 0, err)
	}
	if err := m.idle(op, where); err != nil {
		return 0, err
	}
	// The data go first: the store to the address starts the access. A read
	// stores 0, so that what an absent PHY leaves there is not an older answer.
	gmacreg.GMIIData.Store(h.csr, uint32(v))
	// The store replaces the whole register, so the divider is in each.
	gmacreg.GMIIAddress.Store(h.csr, gmacreg.PA.Of(uint32(addr))|gmacreg.GR.Of(uint32(reg))|gmacreg.CR.Of(cr)|dir|gmacreg.GB)
	if err := m.idle(op, where); err != nil || dir != 0 {
		return 0, err
	}
	d := gmacreg.GMIIData.Load(h.csr)
	if d == mmio.AllOnes && h.gone() {
		return 0, h.fail(op, "GMII_Data", d, core.ErrGone)
	}
	return uint16(d), nil
}

// idle waits until no access runs.
func (m mdio) idle(op, where string) error {
	h := m.h
	v, err := core.Await(context.Background(), h.cfg.Clock, mdioTimeout, 20*time.Microsecond, time.Millisecond,
		func() uint32 { return uint32(gmacreg.GMIIAddress.Load(h.csr)) }, uint32(gmacreg.GB))
	if errors.Is(err, os.ErrDeadlineExceeded) {
		err = fmt.Errorf("%s: GB did not clear within %v: %w", where, mdioTimeout, err)
	}
	if err != nil {
		return h.fail(op, "GMII_Address", v, err)
	}
	return nil
}
