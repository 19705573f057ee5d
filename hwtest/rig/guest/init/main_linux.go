package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/gostmmac/gostmmac/hwtest/rig/guest/channel"
	"github.com/gostmmac/gostmmac/hwtest/rig/guest/jobs"
)

func main() {
	if os.Getpid() != 1 {
		fmt.Fprintln(os.Stderr, "init: it is the first program of a guest of the rigs, and nothing else")
		os.Exit(1)
	}
	if err := serve(); err != nil {
		// The end of process 1 is a panic of the kernel, which ends the machine.
		fmt.Fprintln(os.Stderr, "init:", err)
		os.Exit(1)
	}
}

// mounts are what programs expect to be there.
var mounts = []struct{ kind, place string }{
	{"proc", "/proc"}, {"sysfs", "/sys"}, {"devtmpfs", "/dev"}, {"tmpfs", "/tmp"}, {"tmpfs", "/run"}, {"debugfs", "/sys/kernel/debug"}, {"hugetlbfs", "/dev/hugepages"},
}

// optional are those that a kernel may not have.
func optional(kind string) bool { return kind == "debugfs" || kind == "hugetlbfs" }

func prepare() error {
	for _, m := range mounts {
		err := os.MkdirAll(m.place, 0o755)
		if err == nil {
			err = unix.Mount(m.kind, m.place, m.kind, 0, "")
		}
		if err != nil && !optional(m.kind) {
			return fmt.Errorf("mount %s: %w", m.place, err)
		}
	}
	return os.Setenv("PATH", "/bin")
}

func serve() error {
	if err := prepare(); err != nil {
		return err
	}
	commandLine, err := os.ReadFile("/proc/cmdline")
	if err != nil {
		return err
	}
	name := lineName(string(commandLine))
	if name == "" {
		return errors.New("the kernel's command line has no gostmmac.line=")
	}
	line, err := openLine("/dev/" + name)
	if err != nil {
		return err
	}
	w, err := jobs.NewWorld()
	if err != nil {
		return err
	}
	// A restart and not the end of power: QEMU ends with it on every board (-no-reboot).
	w.PowerOff = func() error { return unix.Reboot(unix.LINUX_REBOOT_CMD_RESTART) }
	return errors.Join(errors.New("the line to the rig ended"), channel.Serve(context.Background(), line, w.Run))
}

// lineName is the name of the serial line in the kernel's command line, or "".
func lineName(commandLine string) string {
	for _, word := range strings.Fields(commandLine) {
		if v, ok := strings.CutPrefix(word, "gostmmac.line="); ok && !strings.ContainsRune(v, '/') {
			return v
		}
	}
	return ""
}

// openLine opens a serial line for bytes as they are.
func openLine(file string) (io.ReadWriter, error) {
	f, err := os.OpenFile(file, os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		return nil, err
	}
	rc, err := f.SyscallConn()
	if err != nil {
		return nil, err
	}
	var failed error
	err = rc.Control(func(fd uintptr) { failed = raw(int(fd)) })
	return f, errors.Join(err, failed)
}
