//go:build !linux

package vfio

import "errors"

func (i *Info) readPCI(string) error { return errors.ErrUnsupported }
