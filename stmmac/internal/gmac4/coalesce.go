package gmac4

import (
	"fmt"
	"os"
	"time"

	"github.com/gostmmac/gostmmac/stmmac/internal/core"
	"github.com/gostmmac/gostmmac/stmmac/internal/regs/gmac4reg"
)

// From 5.00 on the watchdog of the receive interrupt counts in units of 256, 512,
// 1024 or 2048 CSR clocks (RWTU), before that of 256.
const (
	version500  = 0x50
	rwtMaxShift = 3
)

// SetRxWatchdog implements core.Hardware. A time shorter than the device can do
// becomes the shortest, others are rounded to the nearest; a longer one is
// refused with os.ErrInvalid, and any without a CSR clock with
// errors.ErrUnsupported.
func (h *HW) SetRxWatchdog(ch int, d time.Duration) (time.Duration, error) {
	v, actual, err := h.rxWatchdog(d)
	if err == nil && (ch < 0 || ch >= h.rx) {
		err = fmt.Errorf("receive channel %d of %d: %w", ch, h.rx, os.ErrInvalid)
	}
	if err != nil {
		return 0, h.fail("set receive watchdog", "", 0, err)
	}
	h.ch[ch].watchdog = v
	h.storeRxWatchdog(ch)
	return actual, nil
}

// storeRxWatchdog programs the watchdog of a channel; 0 is off, for rings in
// which every descriptor has IOC.
func (h *HW) storeRxWatchdog(ch int) {
	gmac4reg.DMACHRxWatchdogTimer.Store(h.ch[ch].regs, uint32(h.ch[ch].watchdog))
}

// rxWatchdog returns the register value for a time, and the time of that value.
func (h *HW) rxWatchdog(d time.Duration) (gmac4reg.RxWatchdog, time.Duration, error) {
	last := 0
	if h.feat.Version >= version500 {
		last = rwtMaxShift
	}
	n, shift, actual, err := core.RxWatchdog(d, h.cfg.CSRClock, last)
	return gmac4reg.RWTF.Of(n) | gmac4reg.RWTU.Of(uint32(shift)), actual, err
}
