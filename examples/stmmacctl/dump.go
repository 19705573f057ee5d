package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/gostmmac/gostmmac/stmmac/bus"
)

// register is a register of the dump.
type register struct {
	Name   string `json:"name"`
	Offset uint32 `json:"offset"`
	Value  uint32 `json:"value"`
	Bits   string `json:"bits,omitempty"`
}

// dump prints the registers.
func dump(ctx context.Context, o *bus.Opener, c *config, stdout, _ io.Writer) error {
	return with(ctx, o, c, func(d *device) error {
		d.receive()
		d.awaitLink(ctx, c.wait)
		var list []register
		for r := range d.mac.Dump() {
			list = append(list, register{r.Name, r.Off, r.Val, r.Bits})
		}
		if err := d.mac.Err(); err != nil || len(list) == 0 {
			return cmp.Or(err, errors.New("the device shows no registers"))
		}
		if c.json {
			return printJSON(stdout, list)
		}
		t := tabwriter.NewWriter(stdout, 0, 0, 2, ' ', 0)
		for _, r := range list {
			fmt.Fprintf(t, "0x%04x  %s\t0x%08x", r.Offset, r.Name, r.Value)
			if r.Bits != "" && r.Value != 0 {
				fmt.Fprintf(t, "  %s", r.Bits)
			}
			fmt.Fprintln(t)
		}
		return printed(t.Flush())
	})
}
