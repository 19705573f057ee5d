package main

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// interrupt is the interrupt of a UIO device, which the kernel masks when it
// fires. Reading four bytes waits for it and returns how often it has fired
// since the device was made; writing 1 unmasks it and 0 masks it.
// Linux: Documentation/driver-api/uio-howto.rst.
type interrupt struct {
	f    *os.File
	word [4]byte // of Wait
	last uint32  // the count that was read last
	seen bool    // last is valid

	closed   atomic.Bool
	once     sync.Once
	closeErr error
}

// countVectors returns how many interrupts the UIO device f has, 0 or 1, and
// masks it: nobody waits for it yet. One that cannot be waited for in the
// poller or be masked is none, and queues poll.
func countVectors(f *os.File) (int, error) {
	if f.SetReadDeadline(time.Time{}) != nil {
		return 0, nil // a file that the kernel cannot poll
	}
	switch err := control(f, 0); {
	case err == nil:
		return 1, nil
	case errors.Is(err, syscall.EIO), errors.Is(err, syscall.ENOSYS):
		return 0, nil // the kernel has no interrupt for it, or no way to mask it
	default:
		return 0, fmt.Errorf("mask its interrupt: %w", err)
	}
}

// newInterrupt unmasks the interrupt of f, which belongs to it from then on.
func newInterrupt(f *os.File) (*interrupt, error) {
	if err := f.SetReadDeadline(time.Time{}); err != nil {
		return nil, fmt.Errorf("%s cannot be waited for: %w", f.Name(), err)
	}
	v := &interrupt{f: f}
	if err := v.Unmask(); err != nil {
		return nil, err
	}
	return v, nil
}

// control writes on to the interrupt control of a UIO device.
func control(f *os.File, on uint32) error {
	var word [4]byte
	binary.NativeEndian.PutUint32(word[:], on)
	_, err := f.Write(word[:])
	if errors.Is(err, os.ErrClosed) {
		return net.ErrClosed
	}
	return err
}

// Wait implements stmmac.Interrupt.
func (v *interrupt) Wait(ctx context.Context) (uint64, error) {
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	expired := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		v.f.SetReadDeadline(time.Unix(1, 0)) // fails only when f is closed, which unblocks too
		close(expired)
	})
	_, err := io.ReadFull(v.f, v.word[:])
	if !stop() {
		<-expired // or it would end the next Wait
		v.f.SetReadDeadline(time.Time{})
	}
	switch {
	case errors.Is(err, os.ErrClosed):
		return 0, net.ErrClosed
	case errors.Is(err, os.ErrDeadlineExceeded):
		return 0, ctx.Err()
	case err != nil:
		return 0, err
	}
	count := binary.NativeEndian.Uint32(v.word[:])
	n := count - v.last
	if !v.seen {
		// What the count was before is not known; masked, it fires once.
		n, v.seen = 1, true
	}
	v.last = count
	return uint64(n), nil
}

// Unmask implements stmmac.Interrupt.
func (v *interrupt) Unmask() error {
	if err := control(v.f, 1); err != nil {
		return fmt.Errorf("unmask the interrupt of %s: %w", v.f.Name(), err)
	}
	return nil
}

// Close implements stmmac.Interrupt. It masks the interrupt.
func (v *interrupt) Close() error {
	v.once.Do(func() {
		v.closeErr = errors.Join(control(v.f, 0), v.f.Close())
		v.closed.Store(true)
	})
	return v.closeErr
}
