package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/gostmmac/gostmmac/stmmac"
	"github.com/gostmmac/gostmmac/vfio"
)

// paths say where the transport finds its devices.
type paths struct {
	uio    string // device file of the registers and the interrupt
	dmabuf string // device file of the memory that the MAC reaches
	sysfs  string // where sysfs is mounted
}

type config struct {
	paths
	vfio       string      // the device to open by VFIO instead
	kernel     vfio.Kernel // that has it
	generation stmmac.Generation
	mtu        int
	csrClock   uint64
}

func main() {
	c := config{generation: stmmac.GMAC4, kernel: vfio.System()}
	c.sysfs = "/sys"
	flag.StringVar(&c.vfio, "vfio", "", "`device` to open by VFIO instead, as 0000:03:00.0; its chip tells the generation and the clock")
	flag.StringVar(&c.uio, "uio", "/dev/uio0", "UIO `device` of the MAC")
	flag.StringVar(&c.dmabuf, "dmabuf", "/dev/udmabuf0", "u-dma-buf `device` with the memory for rings and buffers")
	flag.Func("generation", "`generation` of the MAC: mac100, gmac, gmac4 or xgmac (default gmac4)", func(s string) error {
		g, ok := stmmac.ParseGeneration(s)
		if !ok {
			return fmt.Errorf("is none of mac100, gmac, gmac4, xgmac")
		}
		c.generation = g
		return nil
	})
	flag.IntVar(&c.mtu, "mtu", 1500, "longest payload of a frame in `bytes`")
	flag.Uint64Var(&c.csrClock, "csr-clock", 0, "clock of the MAC's register interface in `Hz`; 0: unknown, then the link is taken for fixed, 1000 Mbit/s")
	flag.Parse()
	if flag.NArg() > 0 {
		fmt.Fprintf(os.Stderr, "embed: unexpected argument %q\n", flag.Arg(0))
		os.Exit(2)
	}

	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, c, os.Stdout)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "embed:", err)
		os.Exit(1)
	}
}

// run echoes until ctx ends, which is no error, and gives everything back. more
// are options of the MAC beside those that c says.
func run(ctx context.Context, c config, out io.Writer, more ...stmmac.Option) (err error) {
	dev, opts, err := open(ctx, c)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, dev.Close()) }()

	mac, err := stmmac.Open(ctx, dev, append(append(opts, stmmac.WithMTU(c.mtu)), more...)...)
	if err != nil {
		return err
	}
	// Deferred later, so closed earlier: the device outlives its MAC.
	defer func() { err = errors.Join(err, mac.Close()) }()

	fmt.Fprintf(out, "%s: %v, %v; ^C ends\n", c.name(), mac.HardwareAddr(), mac.Link())
	counts, err := echo(ctx, mac.Rx(0), mac.Tx(0), mac.Pool())
	if ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		err = nil
	}
	fmt.Fprintf(out, "echoed %d, to a group %d, refused %d\n", counts.echoed, counts.group, counts.refused)
	for name, v := range mac.Counters() {
		if v != 0 {
			fmt.Fprintf(out, "%-16s %d\n", name, v)
		}
	}
	return err
}

// name is how messages call the device.
func (c *config) name() string {
	if c.vfio != "" {
		return c.vfio
	}
	return c.uio
}

// open opens the device, and returns what it takes to open its MAC.
func open(ctx context.Context, c config) (stmmac.Device, []stmmac.Option, error) {
	if c.vfio != "" {
		return openVFIO(ctx, c.kernel, c.vfio)
	}
	dev, err := openUIO(c.paths)
	if err != nil {
		return nil, nil, err
	}
	link := stmmac.WithLink(stmmac.Link{Up: true, Speed: 1000, FullDuplex: true})
	if c.csrClock != 0 {
		link = stmmac.WithPHY(stmmac.PHY{Addr: stmmac.AnyPHY})
	}
	return dev, []stmmac.Option{stmmac.WithName(c.uio), stmmac.WithGeneration(c.generation), stmmac.WithCSRClock(c.csrClock), link}, nil
}
