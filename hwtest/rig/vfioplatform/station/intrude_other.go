//go:build !linux

package main

import (
	"context"
	"errors"
	"io"
)

func intrude(context.Context, *config, io.Writer, io.Writer) (counts, error) {
	return counts{}, errors.ErrUnsupported
}
