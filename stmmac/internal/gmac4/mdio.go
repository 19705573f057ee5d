package gmac4

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/gostmmac/gostmmac/mmio"
	"github.com/gostmmac/gostmmac/stmmac/internal/core"
	"github.com/gostmmac/gostmmac/stmmac/internal/regs/gmac4reg"
)

// mdioTimeout bounds the wait before and after an access. The longest frame
// pair, clause 45 at the slowest MDC of a 1 MHz clock, takes 2 ms.
const mdioTimeout = 10 * time.Millisecond

// mdio is the station management agent of the MAC.
type mdio struct{ h *HW }

// MDIO implements core.Hardware.
func (h *HW) MDIO() core.MDIOBus { return mdio{h} }

// LinkModes implements core.Hardware: what SetLink takes.
func (h *HW) LinkModes() core.LinkModes {
	return h.feat.LinkModes(core.Mode1000Full | core.Mode2500Full)
}

// Read implements core.MDIOBus.
func (m mdio) Read(addr, reg int) (uint16, error) {
	return m.access(mdioOp{name: "mdio read", addr: addr, rda: reg, goc: gmac4reg.MDIOGOCRead})
}

// Write implements core.MDIOBus.
func (m mdio) Write(addr, reg int, v uint16) error {
	_, err := m.access(mdioOp{name: "mdio write", addr: addr, rda: reg, goc: gmac4reg.MDIOGOCWrite, val: v})
	return err
}

// Read45 implements core.MDIOBus.
func (m mdio) Read45(addr, dev, reg int) (uint16, error) {
	return m.access(mdioOp{name: "mdio read", addr: addr, rda: dev, ra: reg, c45: gmac4reg.MDIOC45E, goc: gmac4reg.MDIOGOCRead})
}

// Write45 implements core.MDIOBus.
func (m mdio) Write45(addr, dev, reg int, v uint16) error {
	_, err := m.access(mdioOp{name: "mdio write", addr: addr, rda: dev, ra: reg, c45: gmac4reg.MDIOC45E, goc: gmac4reg.MDIOGOCWrite, val: v})
	return err
}

// mdioOp is one access.
type mdioOp struct {
	name string
	addr int // of the PHY
	rda  int // register by clause 22, device by clause 45
	ra   int // register by clause 45
	c45  gmac4reg.MDIOAddress
	goc  uint32
	val  uint16 // to write
}

// where names what is accessed, for errors.
func (o *mdioOp) where() string {
	if o.c45 != 0 {
		return fmt.Sprintf("PHY %d register %d.%d", o.addr, o.rda, o.ra)
	}
	return fmt.Sprintf("PHY %d register %d", o.addr, o.rda)
}

// access makes one access and returns what was read.
func (m mdio) access(o mdioOp) (uint16, error) {
	h := m.h
	if !h.feat.MDIO {
		return 0, h.fail(o.name, "", 0, fmt.Errorf("the MAC was built without MDIO (SMASEL): %w", errors.ErrUnsupported))
	}
	// A field would drop the bits that do not fit, and name another PHY.
	if o.addr>>5 != 0 || o.rda>>5 != 0 || o.ra>>16 != 0 {
		return 0, h.fail(o.name, "", 0, fmt.Errorf("%s does not exist: %w", o.where(), os.ErrInvalid))
	}
	cr, err := core.MDCCode(h.cfg.CSRClock)
	if err != nil {
		return 0, h.fail(o.name, "", 0, err)
	}
	if err := m.idle(&o); err != nil {
		return 0, err
	}
	// The data go first: the store to the address starts the access. A read
	// stores 0, so that what an absent PHY leaves there is not an older answer.
	gmac4reg.MACMDIOData.Store(h.csr, uint32(gmac4reg.MDIORA.Of(uint32(o.ra))|gmac4reg.MDIOGD.Of(uint32(o.val))))
	// The store replaces the whole register, so the divider is in each.
	gmac4reg.MACMDIOAddress.Store(h.csr, uint32(gmac4reg.MDIOPA.Of(uint32(o.addr))|gmac4reg.MDIORDA.Of(uint32(o.rda))|
		gmac4reg.MDIOCR.Of(cr)|gmac4reg.MDIOGOC.Of(o.goc)|o.c45|gmac4reg.MDIOGB))
	if err := m.idle(&o); err != nil || o.goc == gmac4reg.MDIOGOCWrite {
		return 0, err
	}
	d := gmac4reg.MACMDIOData.Load(h.csr)
	if d == mmio.AllOnes {
		// Register 0xffff of clause 45 may hold 0xffff; a device that is gone
		// reads so everywhere.
		if v := gmac4reg.MACMDIOAddress.Load(h.csr); v == mmio.AllOnes {
			return 0, h.fail(o.name, "MAC_MDIO_Address", v, core.ErrGone)
		}
	}
	return uint16(gmac4reg.MDIOGD.Get(gmac4reg.MDIOData(d))), nil
}

// idle waits until no access runs.
func (m mdio) idle(o *mdioOp) error {
	h := m.h
	v, err := core.Await(context.Background(), h.cfg.Clock, mdioTimeout, 20*time.Microsecond, time.Millisecond,
		func() uint32 { return gmac4reg.MACMDIOAddress.Load(h.csr) }, uint32(gmac4reg.MDIOGB))
	if errors.Is(err, os.ErrDeadlineExceeded) {
		err = fmt.Errorf("%s: GB did not clear within %v: %w", o.where(), mdioTimeout, err)
	}
	if err != nil {
		return h.fail(o.name, "MAC_MDIO_Address", v, err)
	}
	return nil
}
