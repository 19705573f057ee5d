package vfio

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strconv"
	"strings"
	"syscall"
)

// holder is a process that has a device node open.
type holder struct {
	PID  int
	Comm string // its name: 15 bytes at most, and what it likes
}

// String formats the process as "pid 1234 (qemu-system-x86)".
func (h holder) String() string {
	if h.Comm == "" {
		return fmt.Sprintf("pid %d", h.PID)
	}
	// The name is the process's own choice and goes to a terminal.
	name := strconv.QuoteToGraphic(h.Comm)
	return fmt.Sprintf("pid %d (%s)", h.PID, name[1:len(name)-1])
}

// holders are the other processes that have a node, as "dev/vfio/12", open, and how
// many processes may not be looked at.
func holders(k Kernel, node string) (held []holder, unread int) {
	held, _, unread = openers(k, node)
	return held, unread
}

// openers is holders, and whether this process is one too.
func openers(k Kernel, node string) (held []holder, self bool, unread int) {
	fsys := k.FS()
	me := linkBase(fsys, "proc/self")
	for _, name := range names(fsys, "proc") {
		pid, err := strconv.Atoi(name)
		if err != nil || pid <= 0 {
			continue
		}
		has, err := hasOpen(k, path.Join("proc", name, "fd"), node)
		switch {
		case name == me:
			self = has
		case has:
			comm, _ := attribute(fsys, path.Join("proc", name, "comm"))
			held = append(held, holder{PID: pid, Comm: comm})
		case err != nil && !processEnded(err):
			unread++
		}
	}
	return held, self, unread
}

// processEnded says that a process ended while it was looked at.
func processEnded(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ESRCH)
}

// hasOpen says whether one of the file descriptors of a process is the node.
func hasOpen(k Kernel, dir, node string) (bool, error) {
	fds, err := fs.ReadDir(k.FS(), dir)
	if err != nil {
		return false, err
	}
	var first error
	for _, fd := range fds {
		to, err := fs.ReadLink(k.FS(), path.Join(dir, fd.Name()))
		if err == nil && (to == "/"+node || to == k.Path(node)) {
			return true, nil
		}
		if first == nil && err != nil && !processEnded(err) {
			first = err
		}
	}
	return false, first
}

// busy says for people who has a node open.
func busy(k Kernel, node string) string {
	held, self, unread := openers(k, node)
	all := make([]string, len(held))
	for i, h := range held {
		all[i] = h.String()
	}
	look := fmt.Sprintf("`sudo fuser -v /%s` shows it", node)
	switch {
	case len(held) > 0:
		return "it is held by " + strings.Join(all, " and ")
	case self:
		return "it is held by this process, which has it open already"
	case unread > 0:
		return fmt.Sprintf("it is held by one of %d processes that this user may not look at: %s", unread, look)
	}
	return "no process that can be seen here holds it, one outside of this container may: " + look + " there"
}
