//go:build !linux

package main

import (
	"errors"

	"github.com/gostmmac/gostmmac/stmmac"
)

func memoryFor(stmmac.Device) ([]byte, uint64, func() error, error) {
	return nil, 0, nil, errors.ErrUnsupported
}
