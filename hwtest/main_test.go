//go:build hwtest

package hwtest

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/gostmmac/gostmmac/hwtest/peer"
)

// flags are those of the tests, beside the ones of go test.
type flags struct {
	device, peer string
	judge        string
	json, list   bool
	long         bool
	duration     time.Duration
	report       string
	skips        string
	update       bool
	child        bool
}

// given are the flags. They are a variable because the testing package calls tests
// without any argument of ours.
var given flags

func TestMain(m *testing.M) {
	f := &given
	flag.StringVar(&f.device, "device", "", "address of the device, as in pci:0000:03:00.0 (see package stmmac/bus)")
	flag.StringVar(&f.peer, "peer", "", "what it is wired to: "+peer.Kinds)
	flag.StringVar(&f.judge, "judge", "", "what models the device, if its address does not tell: "+strings.Join(judges, ", "))
	flag.BoolVar(&f.json, "json", false, "print a JSON object for each test; with go test behind -args")
	flag.BoolVar(&f.list, "list", false, "print the tests and what each needs, and end; with go test behind -args")
	flag.BoolVar(&f.long, "long", false, "every size instead of samples, and a hundred rounds instead of ten")
	flag.DurationVar(&f.duration, "duration", time.Second, "how long the tests under load run")
	flag.StringVar(&f.report, "report", "", "write what is printed to this file too")
	flag.StringVar(&f.skips, "skips", "", "file with the tests that are to be skipped, and why: any other set fails; the default for sim:GENERATION and -peer sim, and for qtest: and -peer qtest, is the one in skips")
	flag.BoolVar(&f.update, "update", false, "write that file instead of comparing")
	flag.BoolVar(&f.child, "child", false, "be the process that the test of a killed process kills")
	flag.Parse()
	os.Exit(run(m, f))
}

func run(m *testing.M, f *flags) int {
	switch {
	case f.list:
		printList(os.Stdout)
		return 0
	case f.device == "" || f.peer == "":
		fmt.Fprintln(os.Stderr, "hwtest: say which device and what it is wired to, as in -device sim:gmac4 -peer sim")
		return 2
	case f.judge != "" && !slices.Contains(judges, f.judge):
		fmt.Fprintf(os.Stderr, "hwtest: %q is no judge, those are: %s\n", f.judge, strings.Join(judges, ", "))
		return 2
	}
	if err := peer.Check(f.device, f.peer); err != nil {
		fmt.Fprintln(os.Stderr, "hwtest:", err)
		return 2
	}
	if f.child {
		return beKilled(f)
	}
	return m.Run()
}

// interruptible returns a context that ends with ^C and SIGTERM, and some time before
// go test would end the process: the device has to go back to its kernel driver
// first. A second signal kills.
func interruptible(t *testing.T) context.Context {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	t.Cleanup(stop)
	context.AfterFunc(ctx, stop)
	if end, ok := t.Deadline(); ok {
		const giveBack = 15 * time.Second
		limited, cancel := context.WithDeadlineCause(ctx, end.Add(-giveBack), fmt.Errorf("the time of go test -timeout is up"))
		t.Cleanup(cancel)
		return limited
	}
	return ctx
}
