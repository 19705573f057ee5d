package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/gostmmac/gostmmac/hwtest/rig/chips"
	"github.com/gostmmac/gostmmac/stmmac/sim"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := command(ctx, os.Args[1:], os.Stderr)
	stop()
	os.Exit(code)
}

// Exit codes.
const (
	good   = 0
	failed = 1
	wrong  = 2
)

// options are what the command line asks for.
type options struct {
	chip                  chips.Chip
	socket, tap, coverage string
	addr                  string
	queues                int
	single                bool
}

// command serves until ctx ends and returns the exit code.
func command(ctx context.Context, args []string, stderr io.Writer) int {
	var o options
	var name string
	f := flag.NewFlagSet("modelserver", flag.ContinueOnError)
	f.SetOutput(stderr)
	var names []string
	for _, c := range chips.Chips() {
		names = append(names, fmt.Sprintf("%s (%s)", c.Name, c.What))
	}
	f.StringVar(&name, "chip", "", "what to show: "+strings.Join(names, ", "))
	f.StringVar(&o.socket, "socket", "", "path of the Unix socket, which must not be there yet")
	f.StringVar(&o.tap, "tap", "", "name of a TAP interface that the wire ends at; it is made if it is not there")
	f.StringVar(&o.coverage, "coverage", "", "file for the report of registers that were touched")
	f.StringVar(&o.addr, "addr", "02:00:00:00:00:02", "address that the chip keeps for its MAC, where it keeps one")
	f.IntVar(&o.queues, "queues", 0, "queues each way, 1 to 8; 0 is what the chip has")
	f.BoolVar(&o.single, "single", false, "one interrupt vector")
	switch err := f.Parse(args); {
	case errors.Is(err, flag.ErrHelp):
		return good
	case err != nil:
		return wrong
	}
	var err error
	if o.chip, err = chips.Find(name); err != nil || o.socket == "" || f.NArg() > 0 {
		fmt.Fprintln(stderr, "modelserver: -chip and -socket are needed, and no other arguments; -h tells of them")
		return wrong
	}
	if err := serve(ctx, &o, stderr); err != nil {
		fmt.Fprintln(stderr, "modelserver:", err)
		return failed
	}
	return good
}

func serve(ctx context.Context, o *options, stderr io.Writer) (err error) {
	addr, err := net.ParseMAC(o.addr)
	if err != nil || len(addr) != 6 {
		return fmt.Errorf("-addr %s: not an address of a station: %w", o.addr, os.ErrInvalid)
	}
	wire, err := openWire(o.tap)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, wire.Close()) }()
	card, err := o.chip.New(wire, chips.Options{
		Addr: [6]byte(addr), Queues: o.queues, Single: o.single,
		Report: func(err error) { fmt.Fprintln(stderr, "modelserver: client:", err) },
	})
	if err != nil {
		return err
	}
	defer card.Close()
	l, err := net.Listen("unix", o.socket)
	if err != nil {
		return err
	}
	fmt.Fprintf(stderr, "modelserver: %s at %s\n", o.chip.What, o.socket)
	err = card.Serve(ctx, l)
	if ctx.Err() != nil {
		err = nil
	}
	return errors.Join(err, report(o.coverage, card))
}

// openWire is the wire to a TAP interface, or to nothing.
func openWire(tap string) (sim.Wire, error) {
	if tap == "" {
		w, end := sim.NewPair(1)
		return w, end.Close() // what is sent into it is dropped
	}
	return sim.NewTAP(tap)
}

// report writes what was touched to a file.
func report(name string, card *chips.Card) error {
	if name == "" {
		return nil
	}
	var c chips.Coverage
	c.Add(card, "client")
	f, err := os.Create(name)
	if err != nil {
		return err
	}
	_, err = c.WriteTo(f)
	return errors.Join(err, f.Close())
}
