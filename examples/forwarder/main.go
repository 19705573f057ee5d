package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"runtime/pprof"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/gostmmac/gostmmac/examples/internal/cli"
	"github.com/gostmmac/gostmmac/stmmac"
)

func main() { cli.Main(run) }

// run is the command without the process.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) (code int) {
	cfg, err := parse(args, stderr)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return cli.OK
	case err != nil:
		fmt.Fprintln(stderr, "forwarder:", err)
		return cli.Usage
	}
	if cfg.profile != "" {
		stopProfile, err := profile(cfg.profile)
		if err != nil {
			fmt.Fprintln(stderr, "forwarder: -cpuprofile:", err)
			return cli.Usage
		}
		defer func() {
			if err := stopProfile(); err != nil {
				fmt.Fprintln(stderr, "forwarder: -cpuprofile:", err)
				code = max(code, cli.Failed)
			}
		}()
	}
	f, err := open(ctx, cfg, cli.Opener(stderr, "forwarder"))
	if err != nil {
		return cli.End(stderr, "forwarder", &cli.OpenError{Err: err})
	}
	live := stdout
	if cfg.json {
		live = stderr
	}
	res := f.run(ctx, live)
	for _, e := range res.Errors {
		fmt.Fprintln(stderr, "forwarder:", e)
	}
	write := res.table
	if cfg.json {
		write = res.json
	}
	if err := write(stdout); err != nil {
		fmt.Fprintln(stderr, "forwarder: write the result:", err)
		return cli.Failed
	}
	if !res.good() {
		return cli.Failed
	}
	return cli.OK
}

// config is what the flags say.
type config struct {
	addr     [2]string
	duration time.Duration // 0: no limit
	timed    bool          // -duration was given
	count    uint64        // 0: no limit
	json     bool
	queues   int
	batch    int
	poll     bool
	cpu      int // -1: any
	mtu      int
	sizes    []int // nil: a mix
	fault    string
	learn    bool
	profile  string
}

func parse(args []string, stderr io.Writer) (*config, error) {
	const simulated = "sim:gmac4,wire=gen:loop"
	c := new(config)
	fs := flag.NewFlagSet("forwarder", flag.ContinueOnError)
	fs.SetOutput(io.Discard)
	fs.StringVar(&c.addr[0], "a", simulated, "`address` of device A")
	fs.StringVar(&c.addr[1], "b", simulated, "`address` of device B")
	fs.DurationVar(&c.duration, "duration", 10*time.Second, "how long to forward; 0 is no limit")
	fs.Uint64Var(&c.count, "count", 0, "end after so many `frames` in each direction")
	fs.BoolVar(&c.json, "json", false, "print one JSON object")
	fs.IntVar(&c.queues, "queues", 1, "queues of each MAC, 1 to 8")
	fs.IntVar(&c.batch, "batch", 32, "frames a call, 1 to 256")
	fs.BoolVar(&c.poll, "poll", false, "do not sleep when there is nothing to do")
	fs.IntVar(&c.cpu, "cpu", -1, "bind the forwarding threads to CPUs, from this `number` on")
	fs.IntVar(&c.mtu, "mtu", 1500, "longest payload in `bytes`, 46 to 9000")
	sizes := fs.String("sizes", "", "frame sizes of the generator: `bytes,bytes,...`")
	fs.StringVar(&c.fault, "fault", "", "damage frames at both wires: `rates` as in drop=1e-4,dup=1e-3")
	fs.BoolVar(&c.learn, "learn", false, "forward like a bridge that learns addresses")
	fs.StringVar(&c.profile, "cpuprofile", "", "write a CPU profile to this `file`")
	if err := fs.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			fs.SetOutput(stderr)
			fs.Usage()
			return nil, err
		}
		return nil, fmt.Errorf("%w; -h lists the flags", err)
	}
	counted := false
	fs.Visit(func(f *flag.Flag) {
		c.timed = c.timed || f.Name == "duration"
		counted = counted || f.Name == "count"
	})
	if c.timed {
		c.timed = c.duration > 0
	} else if counted {
		c.duration = 0
	}
	for _, r := range []struct {
		ok   bool
		text string
	}{
		{fs.NArg() == 0, fmt.Sprintf("unexpected argument %q", fs.Arg(0))},
		{c.duration >= 0, "-duration is negative"},
		{!counted || c.count > 0 && c.count < 1<<63, "-count is not above 0"},
		{c.queues >= 1 && c.queues <= 8, "-queues is not 1 to 8"},
		{c.batch >= 1 && c.batch <= stmmac.MaxBatch, fmt.Sprintf("-batch is not 1 to %d", stmmac.MaxBatch)},
		{c.cpu >= -1, "-cpu is not a CPU number"},
		{c.mtu >= 46 && c.mtu <= 9000, "-mtu is not 46 to 9000"},
	} {
		if !r.ok {
			return nil, fmt.Errorf("%s; -h lists the flags", r.text)
		}
	}
	return c, c.parseSizes(*sizes)
}

// parseSizes reads -sizes. The default is the mix of 7 short, 4 middle and 1
// full-size frames that router tests call IMIX.
func (c *config) parseSizes(s string) error {
	longest := max(c.mtu+etherHeader, minFrame)
	if s == "" {
		c.sizes = slices.Concat(slices.Repeat([]int{minFrame}, 7), slices.Repeat([]int{min(590, longest)}, 4), []int{longest})
		return nil
	}
	for text := range strings.SplitSeq(s, ",") {
		n, err := strconv.Atoi(text)
		if err != nil || n < minFrame || n > longest {
			return fmt.Errorf("-sizes: %q is not %d to %d bytes, the longest at -mtu %d", text, minFrame, longest, c.mtu)
		}
		c.sizes = append(c.sizes, n)
	}
	return nil
}

// minFrame is the shortest frame without FCS (IEEE 802.3, minFrameSize).
const minFrame = 60

// profile starts a CPU profile.
func profile(name string) (stop func() error, err error) {
	f, err := os.Create(name)
	if err != nil {
		return nil, err
	}
	if err := pprof.StartCPUProfile(f); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return func() error {
		pprof.StopCPUProfile()
		return f.Close()
	}, nil
}
