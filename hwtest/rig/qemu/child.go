package qemu

import "os/exec"

// Child is a process that ends when this one does, however that ends. Its methods may be
// called by several goroutines.
type Child struct {
	cmd   *exec.Cmd
	ended chan struct{} // closed when it was waited for
	exit  error         // how it ended; after ended
}

// Pid is the process number.
func (c *Child) Pid() int { return c.cmd.Process.Pid }

// Ended is closed when the process has ended.
func (c *Child) Ended() <-chan struct{} { return c.ended }

// Kill ends the process, waits for it and returns how it ended: nil if it had ended by
// itself, in good order.
func (c *Child) Kill() error {
	// It fails only for a process that was waited for.
	_ = c.cmd.Process.Kill()
	<-c.ended
	return c.exit
}
