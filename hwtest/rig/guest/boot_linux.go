package guest

import (
	"fmt"
	"io"
	"os"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"
)

// socketPair makes two joined ends, of which QEMU gets the second.
func socketPair() (ours io.ReadWriteCloser, theirs *os.File, err error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, fmt.Errorf("socketpair: %w", err)
	}
	// Reads of ours wait in the poller, so that closing it ends them.
	if err := unix.SetNonblock(fds[0], true); err != nil {
		return nil, nil, fmt.Errorf("socketpair: %w", err)
	}
	return os.NewFile(uintptr(fds[0]), "guest"), os.NewFile(uintptr(fds[1]), "QEMU"), nil
}

// start starts the process and waits for it on one thread: with Pdeathsig it gets the signal
// when the thread ends that started it, which then is when this process does, also by
// SIGKILL. A group of its own keeps ^C of a terminal from it.
func start(p *process) error {
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
	started := make(chan error)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := p.cmd.Start()
		started <- err
		if err == nil {
			p.exit = p.cmd.Wait()
			close(p.ended)
		}
	}()
	return <-started
}
