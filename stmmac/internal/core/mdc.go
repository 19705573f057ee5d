package core

import (
	"fmt"
	"os"
)

// maxMDC is the fastest MDC that IEEE 802.3 clause 22.2.2.13 allows, Hz.
const maxMDC = 2_500_000

// mdcDividers are the codes of the field CR, in GMAC 3.x and GMAC4, with the highest CSR clock
// that each is for, by the databook. The faster codes 8 to 15 break the limit
// of IEEE 802.3 and are not used.
var mdcDividers = [...]struct {
	maxHz uint64
	code  uint32
}{
	{35_000_000, 2},  // /16
	{60_000_000, 3},  // /26
	{100_000_000, 0}, // /42
	{150_000_000, 1}, // /62
	{250_000_000, 4}, // /102
	{300_000_000, 5}, // /124
	{500_000_000, 6}, // /204
	{800_000_000, 7}, // /324
}

// MDCCode returns the code of the divider for a CSR clock of hz. A clock below
// the table takes the smallest divider: MDC is then slow, and legal.
func MDCCode(hz uint64) (uint32, error) {
	if hz == 0 {
		return 0, fmt.Errorf("the CSR clock is not known, so the MDC divider cannot be chosen: set Config.CSRClock: %w", os.ErrInvalid)
	}
	for _, d := range mdcDividers {
		if hz <= d.maxHz {
			return d.code, nil
		}
	}
	return 0, fmt.Errorf("no MDC divider keeps a CSR clock of %d Hz below %d Hz: check Config.CSRClock, it may be at most 800 MHz: %w",
		hz, maxMDC, os.ErrInvalid)
}
