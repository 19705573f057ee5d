//go:build !linux

package usercheck

import (
	"context"
	"errors"
	"fmt"
)

// Tests returns a test that is refused.
func Tests() []Test {
	return []Test{{"start", func(context.Context, Config) error {
		return fmt.Errorf("vfio-user: memory and interrupts are shared by files: %w", errors.ErrUnsupported)
	}}}
}
