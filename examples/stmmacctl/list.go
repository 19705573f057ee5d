package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/gostmmac/gostmmac/examples/internal/cli"
	"github.com/gostmmac/gostmmac/stmmac/bus"
	"github.com/gostmmac/gostmmac/vfio"
)

// listed is a device in the list.
type listed struct {
	Address    string   `json:"address"`
	ID         string   `json:"id,omitempty"` // vendor:device, of PCI
	Compatible []string `json:"compatible,omitempty"`
	Driver     string   `json:"driver,omitempty"`
	Group      *int     `json:"iommu_group,omitempty"`
	Interfaces []string `json:"interfaces,omitempty"`
	Node       string   `json:"node,omitempty"` // by which VFIO opens it
}

// list prints the devices of the machine.
func list(_ context.Context, o *bus.Opener, c *config, stdout, _ io.Writer) error {
	all, err := vfio.List(kernel(o))
	if err != nil {
		return &cli.OpenError{Err: err}
	}
	if !c.all {
		all = slices.DeleteFunc(all, func(i vfio.Info) bool { return !ethernet(&i) })
	}
	devices := []listed{}
	for i := range all {
		devices = append(devices, describe(&all[i]))
	}
	if c.json {
		return printJSON(stdout, devices)
	}
	if len(devices) == 0 {
		what := "this machine has no Ethernet controller on PCI or the platform bus; -all lists all devices"
		if c.all {
			what = "this machine has no device on PCI or the platform bus"
		}
		_, err := fmt.Fprintln(stdout, what)
		return printed(err)
	}
	t := tabwriter.NewWriter(stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "ADDRESS\tID\tDRIVER\tGROUP\tINTERFACE\tNODE")
	for _, d := range devices {
		group := ""
		if d.Group != nil {
			group = strconv.Itoa(*d.Group)
		}
		id := d.ID
		if len(d.Compatible) > 0 {
			id = d.Compatible[0]
		}
		row := []string{d.Address, id, d.Driver, group, strings.Join(d.Interfaces, ","), d.Node}
		for n := range row {
			row[n] = cmp.Or(row[n], "-")
		}
		fmt.Fprintln(t, strings.Join(row, "\t"))
	}
	return printed(t.Flush())
}

// describe is what of a device is listed.
func describe(i *vfio.Info) listed {
	d := listed{Address: address(i), Compatible: i.Compatible, Driver: i.Driver, Interfaces: i.Interfaces}
	if i.Bus == vfio.PCI {
		d.ID = fmt.Sprintf("%04x:%04x", i.Vendor, i.Device)
	}
	if i.Group >= 0 {
		d.Group = &i.Group
	}
	bound := i.Driver == "vfio-"+string(i.Bus)
	switch {
	case i.Cdev != "":
		d.Node = "/dev/vfio/devices/" + i.Cdev
	case bound && i.Group >= 0 && i.NoIOMMU():
		d.Node = fmt.Sprintf("/dev/vfio/noiommu-%d", i.Group)
	case bound && i.Group >= 0:
		d.Node = fmt.Sprintf("/dev/vfio/%d", i.Group)
	}
	return d
}

// marks are what compatibles of DesignWare MACs have in common: one of these is a
// part of each.
var marks = []string{"dwmac", "dwxgmac", "stmmac", "gmac", "eqos", "ethqos", "dwc-qos-ethernet", "-mgbe"}

// ethernet says that a device is an Ethernet controller, or seems to be one.
func ethernet(i *vfio.Info) bool {
	const class = 0x0200
	if i.Bus == vfio.PCI {
		return i.Class>>8 == class
	}
	return len(i.Interfaces) > 0 || slices.ContainsFunc(i.Compatible, func(c string) bool {
		return slices.ContainsFunc(marks, func(m string) bool { return strings.Contains(c, m) })
	})
}
