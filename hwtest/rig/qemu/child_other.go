//go:build !linux

package qemu

import (
	"errors"
	"os/exec"
)

// StartChild is refused with errors.ErrUnsupported.
func StartChild(*exec.Cmd) (*Child, error) { return nil, errors.ErrUnsupported }
