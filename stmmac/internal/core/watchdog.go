package core

import (
	"errors"
	"fmt"
	"os"
	"time"
)

// The watchdog of the receive interrupt counts up to 255 units of 256 CSR clocks.
// Fewer than 16 do not work everywhere.
const (
	watchdogUnit  = 256
	watchdogLeast = 0x10
	watchdogMost  = 0xff
)

// RxWatchdog returns how many units of 256<<shift CSR clocks of hz the watchdog of a
// receive interrupt has to count for a time, with the least shift of at most last, and
// the time of that. A time shorter than the device can do becomes the shortest, others
// are rounded to the nearest; a longer one is refused with os.ErrInvalid, and any but 0,
// which is off, with errors.ErrUnsupported where hz is 0, not known.
func RxWatchdog(d time.Duration, hz uint64, last int) (n uint32, shift int, actual time.Duration, err error) {
	switch {
	case d == 0:
		return 0, 0, 0, nil
	case d < 0:
		return 0, 0, 0, fmt.Errorf("time %v: %w", d, os.ErrInvalid)
	case hz == 0:
		return 0, 0, 0, fmt.Errorf("the frequency of the CSR clock is not known (Config.CSRClock): %w", errors.ErrUnsupported)
	}
	for ; shift <= last; shift++ {
		unit := float64(int(watchdogUnit)<<shift) / float64(hz) * float64(time.Second)
		n = max(uint32(min(float64(d)/unit+0.5, 1<<20)), watchdogLeast)
		if n <= watchdogMost {
			return n, shift, time.Duration(float64(n) * unit), nil
		}
	}
	longest := float64((int(watchdogMost)<<last)*watchdogUnit) / float64(hz) * float64(time.Second)
	return 0, 0, 0, fmt.Errorf("time %v is longer than %v: %w", d, time.Duration(longest), os.ErrInvalid)
}
