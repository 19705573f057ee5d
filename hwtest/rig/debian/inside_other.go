//go:build !linux

package debian

import (
	"context"
	"errors"
	"io"
)

func inside(context.Context, io.Writer, string, string, ...string) error {
	return errors.Join(errEnter, errors.ErrUnsupported)
}
