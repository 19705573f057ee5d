package gmac

import (
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/gostmmac/gostmmac/stmmac/internal/core"
	"github.com/gostmmac/gostmmac/stmmac/internal/regs/gmacreg"
)

// SetRxWatchdog implements core.Hardware. A time shorter than the device can do
// becomes the shortest, others are rounded to the nearest; a longer one is
// refused with os.ErrInvalid, and any without a CSR clock or before 3.50 with
// errors.ErrUnsupported.
func (h *HW) SetRxWatchdog(ch int, d time.Duration) (time.Duration, error) {
	n, actual, err := h.rxWatchdog(ch, d)
	if err != nil {
		return 0, h.fail("set receive watchdog", "", 0, err)
	}
	h.watchdog = gmacreg.RIWT.Of(n)
	h.storeRxWatchdog()
	return actual, nil
}

// rxWatchdog returns the register value for a time, and the time of that value.
func (h *HW) rxWatchdog(ch int, d time.Duration) (uint32, time.Duration, error) {
	switch {
	case ch != 0:
		return 0, 0, fmt.Errorf("receive channel %d of 1: %w", ch, os.ErrInvalid)
	case d != 0 && h.feat.Version < version350:
		return 0, 0, fmt.Errorf("version %x.%x0 has no receive watchdog, 3.50 is the first: %w",
			h.feat.Version>>4, h.feat.Version&0xf, errors.ErrUnsupported)
	}
	n, _, actual, err := core.RxWatchdog(d, h.cfg.CSRClock, 0)
	return n, actual, err
}

// storeRxWatchdog programs the watchdog, where there is one; 0 is off, for rings in
// which every descriptor interrupts.
func (h *HW) storeRxWatchdog() {
	if h.feat.Version >= version350 {
		gmacreg.ReceiveWatchdog.Store(h.csr, h.watchdog)
	}
}
