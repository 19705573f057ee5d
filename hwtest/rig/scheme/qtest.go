package scheme

import (
	"context"
	"fmt"
	"os"
	"strconv"

	"github.com/gostmmac/gostmmac/hwtest/rig/debian"
	"github.com/gostmmac/gostmmac/hwtest/rig/qtest"
	"github.com/gostmmac/gostmmac/stmmac"
	"github.com/gostmmac/gostmmac/stmmac/bus"
)

// Qtest is the scheme of the addresses of GMACs of QEMU.
const Qtest = "qtest"

// Add makes an Opener know the boards. It is called before the Opener is used.
func Add(o *bus.Opener) { o.Schemes[Qtest] = openQtest }

func openQtest(ctx context.Context, a bus.Address) (*bus.Handle, error) {
	c, dir, err := parse(a)
	if err != nil {
		return nil, err
	}
	if dir == "" {
		if dir, err = debian.DefaultDir(); err != nil {
			return nil, &bus.AddressError{Address: a.String(), Err: err}
		}
	}
	tree, err := debian.Open(dir)
	if err != nil {
		return nil, &bus.AddressError{Address: a.String(), Err: err}
	}
	c.Command, c.Env = tree.QEMU()
	m, err := qtest.Start(ctx, c)
	if err != nil {
		return nil, &bus.AddressError{Address: a.String(), Err: err}
	}
	return bus.NewHandle(a, m.Device(), Options(fmt.Sprintf("%s/gmac%d", c.Machine, c.NIC))...), nil
}

// parse reads an address and says which cache folder it names. Whether there is such a
// board is for package qtest to say.
func parse(a bus.Address) (c qtest.Config, dir string, err error) {
	fail := func(part, format string, args ...any) (qtest.Config, string, error) {
		return c, "", &bus.AddressError{Address: a.String(), Part: part, Err: fmt.Errorf(format+": %w", append(args, os.ErrInvalid)...)}
	}
	c.Machine = a.Location
	for _, p := range a.Params {
		switch p.Key {
		case "nic":
			if c.NIC, err = strconv.Atoi(p.Value); err != nil {
				return fail(p.String(), "not the number of a GMAC")
			}
		case "cache":
			dir = p.Value
		case "log":
			c.Log = p.Value
		default:
			return fail(p.String(), "%s= is no key of %s, those are: nic, cache, log", p.Key, a.Scheme)
		}
	}
	return c, dir, nil
}

// Options are how a GMAC of QEMU is opened. What the address of a real one would say is
// in them: the model has neither a CSR clock nor FIFOs.
func Options(name string) []stmmac.Option {
	const (
		csrClock = 125_000_000 // Hz, for which there is an MDC divider
		fifo     = 16384       // bytes, for an MTU of 9000; the feature register tells of more than 2 KiB
	)
	return []stmmac.Option{
		stmmac.WithGeneration(stmmac.GMAC), stmmac.WithCSRClock(csrClock), stmmac.WithName(name),
		stmmac.WithConfig(func(c *stmmac.Config) { c.RxFIFO, c.TxFIFO = fifo, fifo }),
	}
}
