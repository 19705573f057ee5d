package vfio

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// event is an eventfd in the runtime's poller.
type event struct {
	f    *os.File
	fd   int // its number, while f is open
	word [8]byte
}

func newEvent() (*event, error) {
	fd, err := unix.Eventfd(0, unix.EFD_NONBLOCK|unix.EFD_CLOEXEC)
	if err != nil {
		return nil, os.NewSyscallError("eventfd", err)
	}
	return &event{f: os.NewFile(uintptr(fd), "eventfd"), fd: fd}, nil
}

// wait waits until the event is signalled and returns how often it was since the
// last time. One goroutine waits at a time.
func (e *event) wait(ctx context.Context) (uint64, error) {
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	expired := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		e.f.SetReadDeadline(time.Unix(1, 0)) // fails only when f is closed, which unblocks too
		close(expired)
	})
	_, err := io.ReadFull(e.f, e.word[:])
	if !stop() {
		<-expired // or it would end the next wait
		e.f.SetReadDeadline(time.Time{})
	}
	switch {
	case errors.Is(err, os.ErrClosed):
		return 0, ErrClosed
	case errors.Is(err, os.ErrDeadlineExceeded):
		return 0, ctx.Err()
	case err != nil:
		return 0, err
	}
	return binary.NativeEndian.Uint64(e.word[:]), nil
}

// signal signals the event.
func (e *event) signal() error {
	_, err := e.f.Write(binary.NativeEndian.AppendUint64(nil, 1))
	return err
}

func (e *event) close() error { return e.f.Close() }
