package gmac4

import (
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/gostmmac/gostmmac/stmmac/internal/regs/gmac4reg"
)

// The watchdog of the receive interrupt counts CSR clocks in units of 256, and
// from 5.00 on also of 512, 1024 and 2048 (RWTU). Fewer than 16 units do not
// work everywhere.
const (
	version500  = 0x50
	rwtUnit     = 256
	rwtLeast    = 0x10
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
	switch {
	case d == 0:
		return 0, 0, nil
	case d < 0:
		return 0, 0, fmt.Errorf("time %v: %w", d, os.ErrInvalid)
	case h.cfg.CSRClock == 0:
		return 0, 0, fmt.Errorf("the frequency of the CSR clock is not known (Config.CSRClock): %w", errors.ErrUnsupported)
	}
	last := 0
	if h.feat.Version >= version500 {
		last = rwtMaxShift
	}
	hz := float64(h.cfg.CSRClock)
	for shift := 0; shift <= last; shift++ {
		unit := float64(int(rwtUnit)<<shift) / hz * float64(time.Second)
		n := max(uint32(min(float64(d)/unit+0.5, 1<<20)), rwtLeast)
		if n <= gmac4reg.RWTF.Max() {
			return gmac4reg.RWTF.Of(n) | gmac4reg.RWTU.Of(uint32(shift)), time.Duration(float64(n) * unit), nil
		}
	}
	longest := float64(gmac4reg.RWTF.Max()<<last*rwtUnit) / hz * float64(time.Second)
	return 0, 0, fmt.Errorf("time %v is longer than %v: %w", d, time.Duration(longest), os.ErrInvalid)
}
