//go:build !linux

package guest

import (
	"errors"
	"io"
	"os"
)

func socketPair() (ours io.ReadWriteCloser, theirs *os.File, err error) {
	return nil, nil, errors.ErrUnsupported
}
