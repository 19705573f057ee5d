//go:build !linux

package jobs

import (
	"errors"
	"os"
	"os/exec"
)

func startAs(c *exec.Cmd, u *User) error {
	if u != nil {
		return errors.ErrUnsupported
	}
	return c.Start()
}

func signalOf(*os.ProcessState) int { return 0 }
