//go:build !linux

package pagepool

import (
	"errors"
	"fmt"
	"runtime"
)

type pageKind uint8

const (
	pagesAuto pageKind = iota
	pagesSmall
)

type reservation struct {
	records, payload []byte
	huge, locked     bool
}

func reserve(records, payload int, kind pageKind, lock bool) (*reservation, error) {
	return nil, fmt.Errorf("DMA memory on %s: %w", runtime.GOOS, errors.ErrUnsupported)
}

func (r *reservation) release() error { return nil }
