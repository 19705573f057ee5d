package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/signal"
	"syscall"

	"github.com/gostmmac/gostmmac/hwtest/rig/vfiopci/said"
	"github.com/gostmmac/gostmmac/vfio"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// Exit statuses.
const (
	good   = 0
	failed = 1
	wrong  = 2
)

const usage = "usage: station exchange [-frames N] ADDR ADDR2 | station watch ADDR... | station fault ADDR ADDR2"

// run does what args say and prints what was found.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	if len(args) == 0 {
		fmt.Fprintln(stderr, usage)
		return wrong
	}
	f := flag.NewFlagSet("station "+args[0], flag.ContinueOnError)
	f.SetOutput(stderr)
	frames := f.Int("frames", 256, "frames in each direction")
	if err := f.Parse(args[1:]); err != nil {
		return wrong
	}
	var found any
	var err error
	switch verb, n := args[0], f.NArg(); {
	case verb == "exchange" && n == 2 && *frames > 0:
		found, err = exchange(ctx, f.Arg(0), f.Arg(1), *frames)
	case verb == "watch" && n > 0:
		found, err = watch(ctx, f.Args(), stderr)
	case verb == "fault" && n == 2:
		found, err = fault(ctx, f.Arg(0), f.Arg(1))
	default:
		fmt.Fprintln(stderr, usage)
		return wrong
	}
	code := good
	if err != nil {
		found, code = failure(err), failed
	}
	if err := json.NewEncoder(stdout).Encode(found); err != nil {
		fmt.Fprintln(stderr, "station:", err)
		return failed
	}
	return code
}

// failure says what kind of error it is.
func failure(err error) said.Failure {
	f := said.Failure{
		Text:       err.Error(),
		Permission: errors.Is(err, fs.ErrPermission), Memlock: errors.Is(err, vfio.ErrMemlock),
		NoDevice: errors.Is(err, vfio.ErrNoDevice), NotViable: errors.Is(err, vfio.ErrNotViable),
	}
	// One that says what was tried may be around one that says why.
	for e := new(vfio.Error); errors.As(err, &e); err = e.Err {
		f.Device, f.Call, f.Remedy = cmp.Or(f.Device, e.Dev), cmp.Or(e.Call, f.Call), cmp.Or(f.Remedy, e.Remedy)
	}
	return f
}
