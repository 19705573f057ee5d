package main

import (
	"context"
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/gostmmac/gostmmac/stmmac/bus"
)

// statistics are the counts of a device.
type statistics struct {
	Device   string            `json:"device"`
	Link     linkState         `json:"link"`
	Counters map[string]uint64 `json:"counters"`
}

// stats prints the counts.
func stats(ctx context.Context, o *bus.Opener, c *config, stdout, _ io.Writer) error {
	return with(ctx, o, c, func(d *device) error {
		d.receive()
		d.awaitLink(ctx, c.wait)
		if c.duration > 0 {
			if err := d.pass(ctx, c.duration, nil); err != nil {
				return err
			}
		}
		s := statistics{Device: c.addr, Link: d.state(), Counters: map[string]uint64{}}
		var names []string
		for name, v := range d.mac.Counters() {
			if v != 0 || !c.nonzero {
				s.Counters[name] = v
				names = append(names, name)
			}
		}
		if c.json {
			return printJSON(stdout, s)
		}
		t := tabwriter.NewWriter(stdout, 0, 0, 2, ' ', 0)
		fmt.Fprintf(t, "%s: link %s\n", s.Device, s.Link.text())
		for _, zero := range []bool{false, true} {
			for _, name := range names {
				if v := s.Counters[name]; (v == 0) == zero {
					fmt.Fprintf(t, "%s\t%d\n", name, v)
				}
			}
		}
		return printed(t.Flush())
	}, c.filter())
}
