package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/gostmmac/gostmmac/examples/internal/cli"
	"github.com/gostmmac/gostmmac/stmmac"
	"github.com/gostmmac/gostmmac/stmmac/bus"
)

func main() { cli.Main(run) }

// run is the command without the process.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	return runWith(ctx, cli.Opener(stderr, name), args, stdout, stderr)
}

const name = "stmmacctl"

// runWith is run with the devices of an opener, and on the machine of its kernel.
func runWith(ctx context.Context, o *bus.Opener, args []string, stdout, stderr io.Writer) int {
	cfg, err := parse(args, o, stderr)
	if errors.Is(err, flag.ErrHelp) {
		return cli.OK
	} else if err != nil {
		cli.End(stderr, name, err)
		return cli.Usage
	}
	return cli.End(stderr, name, commands[cfg.command].do(ctx, o, cfg, stdout, stderr))
}

// command is what the first word can be.
type command struct {
	do      func(ctx context.Context, o *bus.Opener, c *config, stdout, stderr io.Writer) error
	flags   []string // beside -json and those of all commands that open a device
	file    bool     // it has a FILE
	machine bool     // it opens no device, and looks at the machine that it runs on
	addr    presence
}

// presence says whether there is an ADDR.
type presence int

const (
	required presence = iota
	optional
	absent
)

var commands = map[string]command{
	"stats":    {do: stats, flags: []string{"wait", "duration", "nonzero", "promisc"}},
	"link":     {do: link, flags: []string{"wait", "duration", "set", "renegotiate", "watch"}},
	"dump":     {do: dump, flags: []string{"wait"}},
	"loopback": {do: loopback, flags: []string{"wait"}},
	"capture":  {do: capture, flags: []string{"duration", "snaplen", "promisc"}, file: true},
	"doctor":   {do: doctor, machine: true, addr: optional},
	"list":     {do: list, flags: []string{"all"}, machine: true, addr: absent},
	"bind":     {do: bind, flags: []string{"force"}, machine: true},
	"unbind":   {do: unbind, machine: true},
}

// known are the flags of a command.
func (c command) known() []string {
	if c.machine {
		return slices.Concat(c.flags, []string{"json"})
	}
	return slices.Concat(c.flags, []string{"json", "queues", "mtu", "wire"})
}

// filter is what -promisc says.
func (c *config) filter() stmmac.Option {
	return stmmac.WithConfig(func(o *stmmac.Config) { o.Promiscuous = c.promisc })
}

// config is what the arguments say.
type config struct {
	command, addr, file string
	json                bool
	queues, mtu         int
	wire                string
	wait, duration      time.Duration
	nonzero             bool
	set                 *linkMode
	renegotiate, watch  bool
	snaplen             int
	promisc             bool
	all, force          bool
}

func parse(args []string, o *bus.Opener, stderr io.Writer) (*config, error) {
	c := new(config)
	fs := flag.NewFlagSet(name, flag.ContinueOnError)
	fs.SetOutput(io.Discard)
	fs.BoolVar(&c.json, "json", false, "print JSON")
	fs.IntVar(&c.queues, "queues", 1, "receive and transmit queues, 1 to 8")
	fs.IntVar(&c.mtu, "mtu", 1500, "longest payload in `bytes`, 46 to 9000")
	fs.StringVar(&c.wire, "wire", "", "the `wire` of a simulated device")
	fs.DurationVar(&c.wait, "wait", 2*time.Second, "how long to wait for the link first, and in loopback for a frame")
	fs.DurationVar(&c.duration, "duration", 0, "stats, link -watch, capture: how long")
	fs.BoolVar(&c.nonzero, "nonzero", false, "stats: leave out what is 0")
	set := fs.String("set", "", "link: the `mode`, as in 100/full, auto or down")
	fs.BoolVar(&c.renegotiate, "renegotiate", false, "link: negotiate again")
	fs.BoolVar(&c.watch, "watch", false, "link: print each change")
	fs.IntVar(&c.snaplen, "snaplen", 0, "capture: `bytes` of a frame that are kept; 0: all")
	fs.BoolVar(&c.promisc, "promisc", true, "stats, capture: let all frames in")
	fs.BoolVar(&c.all, "all", false, "list: all devices, not Ethernet controllers alone")
	fs.BoolVar(&c.force, "force", false, "bind: take a device whose network interface is up")
	var words []string
	for rest := args; ; {
		if err := fs.Parse(rest); err != nil {
			if errors.Is(err, flag.ErrHelp) {
				fmt.Fprintf(stderr, "usage: %[1]s [flags] stats|link|dump|loopback ADDR\n       %[1]s [flags] capture FILE ADDR\n"+
					"       %[1]s [-json] doctor [ADDR]\n       %[1]s [-json] [-all] list\n       %[1]s [-json] [-force] bind ADDR\n       %[1]s [-json] unbind ADDR\n", name)
				fs.SetOutput(stderr)
				fs.PrintDefaults()
				return nil, err
			}
			return nil, fmt.Errorf("%w; -h lists the flags", err)
		}
		if fs.NArg() == 0 {
			break
		}
		words = append(words, fs.Arg(0))
		rest = fs.Args()[1:]
	}
	if err := c.words(words, o); err != nil {
		return nil, fmt.Errorf("%w; -h shows how it is called", err)
	}
	var err error
	fs.Visit(func(f *flag.Flag) {
		if known := commands[c.command].known(); !slices.Contains(known, f.Name) {
			err = fmt.Errorf("-%s is not for %s, which has %s; -h lists the flags", f.Name, c.command, "-"+strings.Join(known, ", -"))
		}
	})
	if err != nil {
		return nil, err
	}
	for _, r := range []struct {
		ok   bool
		text string
	}{
		{c.queues >= 1 && c.queues <= 8, "-queues is not 1 to 8"},
		{c.mtu >= 46 && c.mtu <= 9000, "-mtu is not 46 to 9000"},
		{c.wait >= 0, "-wait is negative"},
		{c.duration >= 0, "-duration is negative"},
		{c.snaplen >= 0 && c.snaplen <= 9022, "-snaplen is not 0 to 9022"},
		{*set == "" || !c.renegotiate, "-set and -renegotiate exclude each other"},
		{c.duration == 0 || c.command != "link" || c.watch, "-duration of link is for -watch"},
		{c.wire == "" || strings.HasPrefix(c.addr, "sim:"), fmt.Sprintf("-wire is for simulated devices, and the device is %q", c.addr)},
		{c.file != "-" || !c.json, "the file is the standard output, which leaves no room for -json"},
	} {
		if !r.ok {
			return nil, fmt.Errorf("%s; -h lists the flags", r.text)
		}
	}
	if c.wire != "" {
		c.addr += ",wire=" + c.wire
	}
	if *set != "" {
		if c.set, err = parseMode(*set); err != nil {
			return nil, err
		}
	}
	return c, nil
}

// words finds the command, the address and the file among the arguments that are no
// flags, in whatever order they are.
func (c *config) words(words []string, o *bus.Opener) error {
	i := slices.IndexFunc(words, func(w string) bool { _, ok := commands[w]; return ok })
	if i < 0 {
		return fmt.Errorf("none of %q is a command, those are %s", words, strings.Join(slices.Sorted(maps.Keys(commands)), ", "))
	}
	c.command = words[i]
	words = slices.Delete(slices.Clone(words), i, i+1)
	if commands[c.command].file {
		if len(words) != 2 {
			return fmt.Errorf("%s takes a file and the address of a device, and not %q", c.command, words)
		}
		c.file, c.addr = words[0], words[1]
		isAddr := func(w string) bool {
			scheme, _, ok := strings.Cut(w, ":")
			return ok && o.Schemes[scheme] != nil
		}
		if isAddr(c.file) && !isAddr(c.addr) {
			c.file, c.addr = c.addr, c.file
		}
		return nil
	}
	switch addr := commands[c.command].addr; {
	case addr == absent && len(words) > 0:
		return fmt.Errorf("%s takes no %q", c.command, words)
	case addr != required && len(words) == 0:
		return nil
	case len(words) != 1:
		return fmt.Errorf("%s takes the address of a device, and not %q", c.command, words)
	}
	c.addr = words[0]
	return nil
}

// linkMode is what -set says.
type linkMode struct {
	auto bool
	link stmmac.Link
}

// modes are the values of -set that name a speed and duplex.
var modes = map[string]stmmac.LinkModes{
	"10/half": stmmac.Mode10Half, "10/full": stmmac.Mode10Full, "100/half": stmmac.Mode100Half, "100/full": stmmac.Mode100Full,
	"1000/full": stmmac.Mode1000Full, "2500/full": stmmac.Mode2500Full,
}

func parseMode(s string) (*linkMode, error) {
	m, ok := modes[s]
	switch {
	case s == "auto":
		return &linkMode{auto: true}, nil
	case s == "down":
		return new(linkMode), nil
	case !ok:
		return nil, fmt.Errorf("-set: %q is none of auto, down, %s", s, strings.Join(slices.Sorted(maps.Keys(modes)), ", "))
	}
	return &linkMode{link: m.Link()}, nil
}
