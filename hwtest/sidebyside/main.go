// Command sidebyside runs the driver and its peers in one process and compares them.
//
//	go run . -set loop          forwarding loops, driver alone, on one core
//	go run . -set loop -json    the same as one JSON object
//
// Timings are comparable inside one run only. On a busy machine run the built program under
// "chrt -f 1". Instruction counts need valgrind and do not depend on the load. The exit status
// is 1 when a run fails or the reference loop is out of calibration, 2 on wrong usage.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"strings"
	"syscall"
)

// batches are the batch sizes of the loop set.
var batches = [...]int{1, 8, 32, 256}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	if len(args) > 0 && args[0] == countFlag {
		if err := countedRun(args[1:]); err != nil {
			fmt.Fprintln(stderr, "sidebyside:", err)
			return 1
		}
		return 0
	}

	flags := flag.NewFlagSet("sidebyside", flag.ContinueOnError)
	flags.SetOutput(stderr)
	set := flags.String("set", "loop", "what to compare: loop")
	asJSON := flags.Bool("json", false, "print one JSON object instead of tables")
	rounds := flags.Int("rounds", 40, "timed slices per contender and batch size")
	packets := flags.Int("packets", 80*burst, fmt.Sprintf("packets per slice, rounded up to a multiple of %d", burst))
	if err := flags.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return 0
		}
		return 2
	}
	if *set != "loop" || flags.NArg() != 0 || *rounds < 1 || *packets < 1 {
		fmt.Fprintln(stderr, "sidebyside: want -set loop, at least one round and one packet, and no arguments")
		return 2
	}

	r := report{
		Set: *set, GoVersion: runtime.Version(), GOOS: runtime.GOOS, GOARCH: runtime.GOARCH, CPUs: runtime.NumCPU(),
		Burst: burst, Rounds: *rounds, PacketsPerSlice: (*packets + burst - 1) / burst * burst,
	}
	table := contenders()
	results, err := measureLoops(ctx, table, r.Rounds, r.PacketsPerSlice/burst, stderr)
	if err != nil {
		fmt.Fprintln(stderr, "sidebyside:", err)
		return 1
	}
	r.Results = results
	err = countInstructions(ctx, table, r.Results, stderr)
	switch {
	case errors.Is(err, exec.ErrNotFound):
		r.CountsSkipped = err.Error()
	case err != nil:
		fmt.Fprintln(stderr, "sidebyside:", err)
		return 1
	}
	r.Calibration = calibrate(r.Results, r.GOARCH)
	r.Overspent = overspent(table, r.Results, r.GOARCH)

	write := r.writeTable
	if *asJSON {
		write = r.writeJSON
	}
	if err := write(stdout); err != nil {
		fmt.Fprintln(stderr, "sidebyside:", err)
		return 1
	}
	if len(r.Overspent) > 0 {
		fmt.Fprintln(stderr, "sidebyside:", strings.Join(r.Overspent, "; "))
		return 1
	}
	if c := r.Calibration; c != nil && !c.OK {
		fmt.Fprintln(stderr, "sidebyside:", c)
		return 1
	}
	return 0
}
