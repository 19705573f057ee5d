package qemu

import (
	"os/exec"
	"runtime"
	"syscall"
)

// StartChild starts a process.
func StartChild(cmd *exec.Cmd) (*Child, error) {
	// It goes when this process does, also when that is killed, and not before: ^C on a
	// terminal goes to the group of processes.
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
	c := &Child{cmd: cmd, ended: make(chan struct{})}
	started := make(chan error)
	go c.run(started)
	if err := <-started; err != nil {
		return nil, err
	}
	return c, nil
}

// run starts the process and waits for it, on one thread: the kernel sends the signal
// of Pdeathsig when the thread ends that started the process.
func (c *Child) run(started chan<- error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	err := c.cmd.Start()
	started <- err
	if err == nil {
		c.exit = c.cmd.Wait()
		close(c.ended)
	}
}
