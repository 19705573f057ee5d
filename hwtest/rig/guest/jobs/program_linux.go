package jobs

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"

	"golang.org/x/sys/unix"
)

// startAs starts a program as a user. One is started at a time: the limits of this process
// are those of the program meanwhile.
func startAs(c *exec.Cmd, u *User) error {
	if u == nil {
		return c.Start()
	}
	c.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: u.UID, Gid: u.GID}}
	if u.Memlock == 0 {
		return c.Start()
	}
	var own unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_MEMLOCK, &own); err != nil {
		return fmt.Errorf("read the limit of locked memory: %w", err)
	}
	if err := unix.Setrlimit(unix.RLIMIT_MEMLOCK, &unix.Rlimit{Cur: u.Memlock, Max: u.Memlock}); err != nil {
		return fmt.Errorf("set the limit of locked memory to %d: %w", u.Memlock, err)
	}
	return errors.Join(c.Start(), unix.Setrlimit(unix.RLIMIT_MEMLOCK, &own))
}

// signalOf is the signal that ended a process, 0 for none.
func signalOf(s *os.ProcessState) int {
	if w, ok := s.Sys().(syscall.WaitStatus); ok && w.Signaled() {
		return int(w.Signal())
	}
	return 0
}
