//go:build !linux

package vfio

import (
	"context"
	"errors"
)

// event is an eventfd, which only Linux has.
type event struct{ fd int }

func newEvent() (*event, error)                     { return nil, errors.ErrUnsupported }
func (*event) wait(context.Context) (uint64, error) { return 0, errors.ErrUnsupported }
func (*event) signal() error                        { return errors.ErrUnsupported }
func (*event) close() error                         { return nil }
