package guest

import (
	"fmt"
	"io"
	"os"

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
