package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/netip"
	"strings"
	"time"

	"github.com/gostmmac/gostmmac/examples/internal/cli"
	"github.com/gostmmac/gostmmac/netstack"
	"github.com/gostmmac/gostmmac/stmmac/bus"
)

func main() { cli.Main(run) }

// run is the command without the process.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	return runWith(ctx, cli.Opener(stderr, "echo"), args, stdout, stderr)
}

// runWith is run with the devices of an opener.
func runWith(ctx context.Context, o *bus.Opener, args []string, stdout, stderr io.Writer) int {
	cfg, err := parse(args, stderr)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return cli.OK
	case err != nil:
		fmt.Fprintln(stderr, "echo:", err)
		return cli.Usage
	}
	serve := echo
	if cfg.dev == "" {
		serve = selfTest
	}
	return cli.End(stderr, "echo", serve(ctx, o, cfg, stdout))
}

// config is what the flags say.
type config struct {
	dev      string
	net      netstack.Config
	port     uint16
	mtu      int
	duration time.Duration // 0: no limit
}

func parse(args []string, stderr io.Writer) (*config, error) {
	c := new(config)
	fs := flag.NewFlagSet("echo", flag.ContinueOnError)
	fs.SetOutput(io.Discard)
	fs.StringVar(&c.dev, "dev", "", "`address` of the device; two simulated ones on a cable without it")
	addrs := fs.String("addr", "192.0.2.2/24", "addresses of the server: `prefix,prefix,...`")
	gateways := fs.String("gw", "", "default gateways: `address,address`")
	port := fs.Uint("port", 7, "port, 1 to 65535")
	fs.IntVar(&c.mtu, "mtu", 1500, "longest packet in `bytes`, 68 to 9000")
	fs.DurationVar(&c.duration, "duration", 5*time.Second, "how long; 0 is no limit, and the default with -dev")
	if err := fs.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			fs.SetOutput(stderr)
			fs.Usage()
			return nil, err
		}
		return nil, fmt.Errorf("%w; -h lists the flags", err)
	}
	timed := false
	fs.Visit(func(f *flag.Flag) { timed = timed || f.Name == "duration" })
	if c.dev != "" && !timed {
		c.duration = 0
	}
	c.port = uint16(*port)
	for _, r := range []struct {
		ok   bool
		text string
	}{
		{fs.NArg() == 0, fmt.Sprintf("unexpected argument %q", fs.Arg(0))},
		{*port >= 1 && *port <= 65535, "-port is not 1 to 65535"},
		{c.mtu >= 68 && c.mtu <= 9000, "-mtu is not 68 to 9000"},
		{c.duration >= 0, "-duration is negative"},
	} {
		if !r.ok {
			return nil, fmt.Errorf("%s; -h lists the flags", r.text)
		}
	}
	for text := range strings.SplitSeq(*addrs, ",") {
		p, err := netip.ParsePrefix(text)
		if err != nil {
			return nil, fmt.Errorf("-addr: %w; an address is like 192.0.2.2/24 or 2001:db8::2/64", err)
		}
		c.net.Addresses = append(c.net.Addresses, p)
	}
	if *gateways == "" {
		return c, nil
	}
	for text := range strings.SplitSeq(*gateways, ",") {
		gw, err := netip.ParseAddr(text)
		if err != nil {
			return nil, fmt.Errorf("-gw: %w", err)
		}
		all := netip.PrefixFrom(netip.IPv6Unspecified(), 0)
		if gw.Is4() {
			all = netip.PrefixFrom(netip.IPv4Unspecified(), 0)
		}
		for _, r := range c.net.Routes {
			if r.Dst == all {
				return nil, fmt.Errorf("-gw: %v and %v are of one family", r.Gateway, gw)
			}
		}
		c.net.Routes = append(c.net.Routes, netstack.Route{Dst: all, Gateway: gw})
	}
	return c, nil
}
