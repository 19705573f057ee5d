//go:build !linux

package ethtool

import "errors"

func open() (int, error)                       { return -1, errors.ErrUnsupported }
func closeSocket(int) error                    { return errors.ErrUnsupported }
func ioctl(int, string, []uint64) (int, error) { return 0, errors.ErrUnsupported }
