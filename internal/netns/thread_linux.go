package netns

import (
	"errors"
	"fmt"
	"os"
	"runtime"

	"golang.org/x/sys/unix"
)

// New makes a namespace in which only the loopback interface is up. The error of
// a process that is not root is os.ErrPermission.
func New() (*NS, error) {
	n := new(NS)
	err := onThread(func() error {
		if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
			if errors.Is(err, os.ErrPermission) {
				return fmt.Errorf("netns: make a network namespace: %w; run as root (it needs CAP_SYS_ADMIN)", err)
			}
			return fmt.Errorf("netns: make a network namespace: %w", err)
		}
		f, err := os.Open("/proc/thread-self/ns/net")
		if err != nil {
			return fmt.Errorf("netns: %w", err)
		}
		n.handle = f
		return nil
	})
	if err != nil {
		return nil, err
	}
	if err := n.Up("lo", 0); err != nil {
		return nil, errors.Join(err, n.Close())
	}
	return n, nil
}

// Current returns the namespace that the process is in.
func Current() (*NS, error) {
	f, err := os.Open("/proc/self/ns/net")
	if err != nil {
		return nil, fmt.Errorf("netns: %w", err)
	}
	return &NS{f}, nil
}

// Do runs f on a thread in the namespace and returns its error. What f makes
// there stays there, wherever it is used later: sockets, TAPs. Goroutines that f
// starts are not in the namespace. Calls may overlap and nest.
func (n *NS) Do(f func() error) error {
	rc, err := n.handle.SyscallConn()
	if err != nil {
		return fmt.Errorf("netns: %w", err)
	}
	return onThread(func() error {
		var entered error
		if rc.Control(func(fd uintptr) { entered = unix.Setns(int(fd), unix.CLONE_NEWNET) }) != nil {
			return fmt.Errorf("netns: %w", os.ErrClosed) // the only error that there is
		}
		if entered != nil {
			return fmt.Errorf("netns: enter the network namespace: %w", entered)
		}
		return f()
	})
}

// onThread runs f on a thread of its own that ends after it, because a goroutine
// that ends locked takes its thread with it. The first thread of the process is
// never taken: it cannot end, and /proc/self and /proc/net show its namespace.
func onThread(f func() error) error {
	result := make(chan error, 1)
	var run func()
	run = func() {
		runtime.LockOSThread()
		if unix.Gettid() == unix.Getpid() {
			// This goroutine sits on the first thread until the other one runs,
			// which is therefore on another.
			taken := make(chan struct{})
			go func() {
				close(taken)
				run()
			}()
			<-taken
			runtime.UnlockOSThread()
			return
		}
		err := errReturn
		defer func() { result <- err }()
		err = f()
	}
	go run()
	return <-result
}
