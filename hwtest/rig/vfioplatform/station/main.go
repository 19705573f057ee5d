package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/gostmmac/gostmmac/hwtest/rig/guest/jobs"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// Exit statuses.
const (
	ok = iota
	failed
	usage
)

// config is what the flags say.
type config struct {
	dev, iface string
	poll, zero bool
	mtu        int
	frames     jobs.Frames
}

// counts are what is printed at the end.
type counts struct {
	Frames int
	Padded int // came back longer, see jobs.FramesResult
	// Interrupts is how often the driver has seen that the device interrupted, and Kernel how
	// often the kernel has.
	Interrupts, Kernel uint64
	// Lowest is the lowest bus address of memory for the device.
	Lowest uint64
	Pages  int // huge pages that were taken
	// Overwritten is how many bytes of them somebody else has written.
	Overwritten int
}

// run does what the arguments say, and returns the exit status.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	c := new(config)
	set := flag.NewFlagSet("station", flag.ContinueOnError)
	set.SetOutput(stderr)
	set.StringVar(&c.dev, "dev", "", "`address` of the device, see package stmmac/bus")
	set.BoolVar(&c.poll, "poll", false, "look for frames instead of waiting for interrupts")
	set.BoolVar(&c.zero, "zero", false, "let the memory of the device begin at physical address 0")
	set.IntVar(&c.mtu, "mtu", 1500, "longest payload in `bytes`")
	set.StringVar(&c.frames.To, "to", "", "frames: `address` of the station at the other end")
	set.IntVar(&c.frames.Min, "min", 14, "frames: the shortest in `bytes`")
	set.IntVar(&c.frames.Max, "max", 1518, "frames: the longest in `bytes`")
	set.StringVar(&c.iface, "iface", "", "intrude: the interface at the other end")
	if err := set.Parse(args); errors.Is(err, flag.ErrHelp) {
		return ok
	} else if err != nil {
		return usage
	}
	work := map[string]func(context.Context, *config, io.Writer, io.Writer) (counts, error){"reflect": reflect, "frames": frames, "intrude": intrude}[set.Arg(0)]
	if set.NArg() != 1 || work == nil || c.dev == "" && set.Arg(0) != "intrude" || (c.iface != "") != (set.Arg(0) == "intrude") {
		fmt.Fprintln(stderr, "station: say -dev ADDR and one of reflect, frames and, with -iface NAME, intrude")
		return usage
	}
	result, err := work(ctx, c, stdout, stderr)
	if err == nil {
		err = json.NewEncoder(stdout).Encode(result)
	}
	if err != nil {
		fmt.Fprintln(stderr, "station:", err)
		return failed
	}
	return ok
}

// reflect is jobs.Reflect on the device.
func reflect(ctx context.Context, c *config, stdout, stderr io.Writer) (counts, error) {
	return with(ctx, c, stderr, func(w *wire) (counts, error) {
		r, err := jobs.Reflect{}.On(ctx, w, func() { fmt.Fprintln(stdout, jobs.Ready) })
		if ctx.Err() != nil && errors.Is(err, ctx.Err()) {
			err = nil // how it ends
		}
		return counts{Frames: r.Frames}, err
	})
}

// frames is jobs.Frames on the device.
func frames(ctx context.Context, c *config, stdout, stderr io.Writer) (counts, error) {
	return with(ctx, c, stderr, func(w *wire) (counts, error) {
		fmt.Fprintln(stdout, jobs.Ready)
		r, err := c.frames.On(ctx, w, w.mac.HardwareAddr(), c.mtu)
		return counts{Frames: r.Frames, Padded: r.Padded}, err
	})
}
