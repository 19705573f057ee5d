package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/gostmmac/gostmmac/stmmac/bus"
	"github.com/gostmmac/gostmmac/vfio"
)

// Exit statuses.
const (
	OK     = iota
	Failed // what was asked for did not succeed
	Usage  // the arguments are wrong, or what they name cannot be opened
)

// Main runs a command and exits with its status. SIGINT and SIGTERM end the context
// of run; the second one kills.
func Main(run func(ctx context.Context, args []string, stdout, stderr io.Writer) int) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop)
	code := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// OpenError is an error of opening what the arguments name.
type OpenError struct{ Err error }

// Error implements error.
func (e *OpenError) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e *OpenError) Unwrap() error { return e.Err }

// End prints an error, a line for each that it joins, with a hint if it is an
// [OpenError], and returns the exit status; nil prints nothing.
func End(stderr io.Writer, name string, err error) int {
	if err == nil {
		return OK
	}
	for line := range strings.SplitSeq(err.Error(), "\n") {
		fmt.Fprintf(stderr, "%s: %s\n", name, line)
	}
	if open := new(OpenError); !errors.As(err, &open) {
		return Failed
	}
	if h := Hint(err); h != "" {
		fmt.Fprintf(stderr, "%s: %s\n", name, h)
	}
	return Usage
}

// hints are what can be done about errors of opening; the first that fits counts.
var hints = []struct {
	is   error
	text string
}{
	{fs.ErrNotExist, "check the name of the file or device"},
	{fs.ErrPermission, "check who may read and write it, or run as the user who may"},
	{errors.ErrUnsupported, "this is not there yet; the simulated device is sim:gmac4, and -h lists the flags"},
	{syscall.EADDRINUSE, "take an address that no other station has"},
	{fs.ErrInvalid, "correct the address or the flag; a device is like sim:gmac4,wire=tap:tap0, and -h lists the flags"},
}

// Hint says what can be done about an error of opening, or is "": package vfio says
// it itself.
func Hint(err error) string {
	if e := new(vfio.Error); errors.As(err, &e) && e.Remedy != "" {
		return ""
	}
	for _, h := range hints {
		if errors.Is(err, h.is) {
			return h.text
		}
	}
	return ""
}

// Opener opens devices and prints what is dangerous about them.
func Opener(stderr io.Writer, name string) *bus.Opener {
	o := bus.NewOpener()
	o.Warn = func(a bus.Address, text string) { fmt.Fprintf(stderr, "%s: warning: %v: %s\n", name, a, text) }
	return o
}

// Audit is what a simulated device found wrong with its driver, as errors. With
// profile=linux it only takes notes, and other devices find nothing.
func Audit(h *bus.Handle) (errs []error) {
	if p, _ := h.Address.Get("profile"); h.Sim == nil || p == "linux" {
		return nil
	}
	for _, v := range h.Sim.Audit() {
		errs = append(errs, fmt.Errorf("%v: the driver broke a rule of the device: %v", h.Address, v))
	}
	return errs
}
