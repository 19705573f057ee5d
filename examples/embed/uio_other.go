//go:build !linux

package main

import (
	"errors"
	"fmt"
	"runtime"

	"github.com/gostmmac/gostmmac/stmmac"
)

// openUIO fails: UIO is of Linux.
func openUIO(p paths) (stmmac.Device, error) {
	return nil, fmt.Errorf("%s: UIO and u-dma-buf are drivers of the Linux kernel, and this is %s: %w", p.uio, runtime.GOOS, errors.ErrUnsupported)
}
