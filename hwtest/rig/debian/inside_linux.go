package debian

import (
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"syscall"
)

// enter mounts the machine's /dev, because a build needs /dev/null and a user cannot make
// one, and a /proc, which objtool of the kernel reads, and goes inside. A /proc of one's
// own is not allowed where parts of the machine's are hidden. The mounts end with their
// namespace. What fails before the program runs has a status that chroot(1) has for that.
const enter = `root=$1; shift
mount --rbind /dev "$root/dev" || exit 125
mount -t proc proc "$root/proc" 2>/dev/null || mount --rbind /proc "$root/proc" || exit 125
exec chroot "$root" "$@"`

// notEntered is the first exit status that does not come from the program: 125 from
// chroot(1), 126 and 127 for a program that cannot be run.
const notEntered = 125

func inside(ctx context.Context, log io.Writer, dir, program string, args ...string) error {
	c := exec.CommandContext(ctx, "/bin/sh", append([]string{"-c", enter, "sh", dir, program}, args...)...)
	c.Env = []string{"PATH=/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL=C.UTF-8", "HOME=/tmp"}
	c.Stdout, c.Stderr = log, log
	c.WaitDelay = waitDelay
	// A namespace of mounts of its own leaves no trace on the machine, and one of
	// processes ends all of them with the first.
	c.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWPID, Unshareflags: syscall.CLONE_NEWNS}
	if uid := os.Geteuid(); uid != 0 {
		c.SysProcAttr.Cloneflags |= syscall.CLONE_NEWUSER
		c.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: uid, Size: 1}}
		c.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getegid(), Size: 1}}
	}
	err := c.Run()
	var end *exec.ExitError
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.As(err, &end) && end.ExitCode() < notEntered:
		return err
	case err != nil:
		return errors.Join(errEnter, err)
	}
	return nil
}
