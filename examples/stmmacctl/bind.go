package main

import (
	"cmp"
	"context"
	"fmt"
	"io"

	"github.com/gostmmac/gostmmac/stmmac/bus"
	"github.com/gostmmac/gostmmac/vfio"
)

// binding is a device and the driver that it is with now.
type binding struct {
	Address  string   `json:"address"`
	Driver   string   `json:"driver"` // "" for none
	Node     string   `json:"node,omitempty"`
	Warnings []string `json:"warnings,omitempty"`
}

// bind gives a device to VFIO.
func bind(ctx context.Context, o *bus.Opener, c *config, stdout, _ io.Writer) error {
	dev, err := realAddr(c)
	if err != nil {
		return err
	}
	var opts []vfio.BindOption
	if c.force {
		opts = append(opts, vfio.WithForce())
	}
	b, err := vfio.Bind(ctx, kernel(o), dev, opts...)
	if err != nil {
		return err
	}
	return c.printBinding(stdout, &b.Info, b.Warnings)
}

// unbind gives a device back to its kernel driver.
func unbind(_ context.Context, o *bus.Opener, c *config, stdout, _ io.Writer) error {
	dev, err := realAddr(c)
	if err != nil {
		return err
	}
	// By its address: the driver, and what else may name it, changes.
	i, err := vfio.Lookup(kernel(o), dev)
	if err != nil {
		return err
	}
	if err := vfio.Unbind(kernel(o), i.Name); err != nil {
		return err
	}
	if i, err = vfio.Lookup(kernel(o), i.Name); err != nil {
		return err
	}
	var warnings []string
	if i.Driver == "" {
		warnings = []string{fmt.Sprintf("no driver took it: load one, `sudo modprobe $(cat /sys/bus/%s/devices/%s/modalias)`", i.Bus, i.Name)}
	}
	return c.printBinding(stdout, &i, warnings)
}

// printBinding prints what driver a device is with now.
func (c *config) printBinding(stdout io.Writer, i *vfio.Info, warnings []string) error {
	b := binding{Address: address(i), Driver: i.Driver, Node: describe(i).Node, Warnings: warnings}
	if c.json {
		return printJSON(stdout, b)
	}
	text := fmt.Sprintf("%s: with %s", b.Address, cmp.Or(b.Driver, "no driver"))
	if b.Node != "" {
		text += ", opened by " + b.Node
	}
	for _, w := range b.Warnings {
		text += "\nwarning: " + w
	}
	_, err := fmt.Fprintln(stdout, text)
	return printed(err)
}
