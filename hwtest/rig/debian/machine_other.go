//go:build !linux

package debian

import "errors"

func freeBytes(string) (uint64, error) { return 0, errors.ErrUnsupported }

func lockFile(string) (unlock func() error, err error) { return nil, errors.ErrUnsupported }
