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
	"syscall"

	"github.com/gostmmac/gostmmac/hwtest/peer"
	"github.com/gostmmac/gostmmac/stmmac/bus"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // the second signal kills
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

// run serves until ctx ends, and returns the exit status.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	set := flag.NewFlagSet("remote", flag.ContinueOnError)
	set.SetOutput(stderr)
	listen := set.String("listen", "", "address and port for the test, as in 192.0.2.1:7777")
	iface := set.String("iface", "", "network interface of this machine, which is wired to the device")
	dev := set.String("dev", "", "device of this machine, as in pci:0000:03:00.0 (see package stmmac/bus)")
	if err := set.Parse(args); errors.Is(err, flag.ErrHelp) {
		return ok
	} else if err != nil {
		return usage
	}
	if *listen == "" || (*iface == "") == (*dev == "") || set.NArg() > 0 {
		fmt.Fprintln(stderr, "remote: say -listen HOST:PORT and one of -iface NAME and -dev ADDR")
		return usage
	}
	if err := serve(ctx, *listen, *iface, *dev, stdout, stderr); err != nil {
		fmt.Fprintln(stderr, "remote:", err)
		return failed
	}
	return ok
}

func serve(ctx context.Context, listen, iface, dev string, stdout, stderr io.Writer) (err error) {
	var p peer.Peer
	if iface != "" {
		p, err = peer.OpenInterface(iface)
	} else {
		o := bus.NewOpener()
		o.Warn = func(a bus.Address, text string) { fmt.Fprintf(stderr, "remote: warning: %v: %s\n", a, text) }
		p, err = peer.OpenStation(ctx, o, dev)
	}
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.Close()) }()
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", listen)
	if err != nil {
		return err
	}
	if _, err := fmt.Fprintf(stdout, "%s is served at %v\n", p.Name(), l.Addr()); err != nil {
		return errors.Join(err, l.Close())
	}
	return peer.Serve(ctx, l, p, func(err error) { fmt.Fprintln(stderr, "remote:", err) })
}
