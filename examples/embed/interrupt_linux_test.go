package main

import (
	"context"
	"encoding/binary"
	"errors"
	"net"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// kernel is the other side of a UIO device.
type kernel struct{ f *os.File }

// newPair returns a file that behaves like one of a UIO device, and what is
// behind it: words are not merged, and both sides can be polled.
func newPair(t *testing.T) (*os.File, kernel) {
	t.Helper()
	fds, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_SEQPACKET|syscall.SOCK_NONBLOCK|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	a, b := os.NewFile(uintptr(fds[0]), "uio"), os.NewFile(uintptr(fds[1]), "kernel")
	t.Cleanup(func() { a.Close(); b.Close() })
	return a, kernel{b}
}

// fire makes the device readable, with count interrupts since it was made.
func (k kernel) fire(t *testing.T, count uint32) {
	t.Helper()
	if _, err := k.f.Write(binary.NativeEndian.AppendUint32(nil, count)); err != nil {
		t.Fatal(err)
	}
}

// control returns what was last written.
func (k kernel) control(t *testing.T) uint32 {
	t.Helper()
	var word [8]byte
	n, err := k.f.Read(word[:])
	if err != nil || n != 4 {
		t.Fatalf("%d bytes were written to the device: %v", n, err)
	}
	return binary.NativeEndian.Uint32(word[:])
}

func TestInterrupt(t *testing.T) {
	f, k := newPair(t)
	v, err := newInterrupt(f)
	if err != nil {
		t.Fatal(err)
	}
	if got := k.control(t); got != 1 {
		t.Errorf("%d was written, want 1: it is not enabled", got)
	}
	for _, c := range []struct {
		count uint32
		want  uint64
	}{{1 << 31, 1}, {1<<31 + 1, 1}, {1<<32 - 1, 1<<31 - 2}, {1, 2}} {
		k.fire(t, c.count)
		if n, err := v.Wait(t.Context()); n != c.want || err != nil {
			t.Errorf("count %d: fired %d times, want %d: %v", c.count, n, c.want, err)
		}
		if err := v.Unmask(); err != nil {
			t.Error(err)
		}
		if got := k.control(t); got != 1 {
			t.Errorf("%d was written, want 1", got)
		}
	}
	if err := errors.Join(v.Close(), v.Close()); err != nil {
		t.Error(err)
	}
	if got := k.control(t); got != 0 {
		t.Errorf("%d was written, want 0: it is not masked", got)
	}
	if _, err := v.Wait(t.Context()); !errors.Is(err, net.ErrClosed) {
		t.Error("wait after Close:", err)
	}
	if err := v.Unmask(); !errors.Is(err, net.ErrClosed) {
		t.Error("unmask after Close:", err)
	}
}

// endsWhenAsked is a context that ends behind the first look at whether it has.
type endsWhenAsked struct {
	context.Context
	cancel context.CancelFunc
}

func (c *endsWhenAsked) Err() error {
	defer c.cancel()
	return c.Context.Err()
}

// TestInterruptContext ends a Wait; the next one is not disturbed.
func TestInterruptContext(t *testing.T) {
	f, k := newPair(t)
	v, err := newInterrupt(f)
	if err != nil {
		t.Fatal(err)
	}
	defer v.Close()
	for i := range 100 {
		ctx, cancel := context.WithCancel(t.Context())
		if _, err := v.Wait(&endsWhenAsked{ctx, cancel}); !errors.Is(err, context.Canceled) {
			t.Fatal("wait:", err)
		}
		k.fire(t, uint32(i))
		if n, err := v.Wait(t.Context()); n != 1 || err != nil {
			t.Fatalf("wait after a wait that ended: %d, %v", n, err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	k.fire(t, 100)
	if _, err := v.Wait(ctx); !errors.Is(err, context.Canceled) {
		t.Error("wait with a context that has ended:", err)
	}
	if n, err := v.Wait(t.Context()); n != 1 || err != nil {
		t.Errorf("the interrupt was lost: %d, %v", n, err)
	}
}

func TestInterruptCloseUnblocks(t *testing.T) {
	f, _ := newPair(t)
	v, err := newInterrupt(f)
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error)
	started := make(chan struct{})
	go func() {
		close(started)
		_, err := v.Wait(context.Background())
		done <- err
	}()
	<-started
	if err := v.Close(); err != nil {
		t.Error(err)
	}
	if err := <-done; !errors.Is(err, net.ErrClosed) {
		t.Error(err)
	}
}

// TestInterruptGone has a device that the kernel took away.
func TestInterruptGone(t *testing.T) {
	f, k := newPair(t)
	v, err := newInterrupt(f)
	if err != nil {
		t.Fatal(err)
	}
	defer v.Close()
	k.control(t)
	k.f.Close()
	if _, err := v.Wait(t.Context()); err == nil || errors.Is(err, net.ErrClosed) {
		t.Error("wait:", err)
	}
	if err := v.Unmask(); !errors.Is(err, syscall.EPIPE) {
		t.Error("unmask:", err)
	}
}

func TestCountVectors(t *testing.T) {
	f, k := newPair(t)
	if n, err := countVectors(f); n != 1 || err != nil {
		t.Errorf("%d, %v", n, err)
	}
	if got := k.control(t); got != 0 {
		t.Errorf("%d was written, want 0: it is not masked", got)
	}
	k.f.Close()
	if n, err := countVectors(f); n != 0 || !errors.Is(err, syscall.EPIPE) {
		t.Errorf("a device that is gone: %d, %v", n, err)
	}

	path := filepath.Join(t.TempDir(), "file")
	write(t, path, []byte("untouched"))
	file, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if n, err := countVectors(file); n != 0 || err != nil {
		t.Errorf("a file: %d, %v", n, err)
	}
	if _, err := newInterrupt(file); !errors.Is(err, os.ErrNoDeadline) {
		t.Error("the interrupt of a file:", err)
	}
	if got, err := os.ReadFile(path); string(got) != "untouched" {
		t.Errorf("the file holds %q, %v", got, err)
	}
}
