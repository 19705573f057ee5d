package stmmac

import (
	"errors"
	"fmt"
	"os"
)

// fitsVLAN checks the configuration of tag stripping against what the device
// has.
func fitsVLAN(c *Config, f *Features, strips bool) error {
	switch {
	case c.VLANStrip && !strips:
		return fmt.Errorf("the device does not take VLAN tags off: %w", errors.ErrUnsupported)
	case c.VLANDouble && !c.VLANStrip:
		return fmt.Errorf("VLANDouble without VLANStrip: %w", os.ErrInvalid)
	case c.VLANDouble && !f.DoubleVLAN:
		return fmt.Errorf("the device handles one VLAN tag of a frame only: %w", errors.ErrUnsupported)
	}
	return nil
}
