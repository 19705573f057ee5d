package main

import (
	"context"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/gostmmac/gostmmac/examples/internal/cli"
	"github.com/gostmmac/gostmmac/stmmac/bus"
	"github.com/gostmmac/gostmmac/vfio"
)

// doctor prints what keeps a device from being opened.
func doctor(_ context.Context, o *bus.Opener, c *config, stdout, _ io.Writer) error {
	dev, sim, err := machineAddr(c.addr)
	if err != nil {
		return err
	}
	var r vfio.Report
	if sim {
		r.Findings = []vfio.Finding{{Check: "device", Dev: c.addr, Text: "a simulated device needs nothing of the machine"}}
	} else if r, err = vfio.Explain(kernel(o), dev); err != nil {
		return &cli.OpenError{Err: err}
	} else if i, err := vfio.Lookup(kernel(o), dev); err == nil && dev != "" {
		r.Findings = append(r.Findings, chip(kernel(o), i)...)
	}
	if c.json {
		err = printJSON(stdout, r)
	} else {
		err = printed(printFindings(stdout, r))
	}
	if err == nil && r.Failed() {
		err = fmt.Errorf("%s: %s", orMachine(c.addr), summary(r))
	}
	return err
}

func orMachine(addr string) string {
	if addr == "" {
		return "this machine"
	}
	return addr
}

// count is how many findings have a severity.
func count(r vfio.Report, s vfio.Severity) (n int) {
	for _, f := range r.Findings {
		if f.Severity == s {
			n++
		}
	}
	return n
}

// summary counts the findings, the worst first.
func summary(r vfio.Report) string {
	return fmt.Sprintf("failures: %d, warnings: %d, ok: %d", count(r, vfio.Failure), count(r, vfio.Warning), count(r, vfio.OK))
}

// printFindings prints the findings by severity, the worst last, where it is seen.
// A report without a failure ends with its summary.
func printFindings(w io.Writer, r vfio.Report) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, s := range []vfio.Severity{vfio.OK, vfio.Warning, vfio.Failure} {
		for _, f := range r.Findings {
			if f.Severity != s {
				continue
			}
			text := f.Text
			if f.Dev != "" {
				text = f.Dev + ": " + text
			}
			fmt.Fprintf(t, "%v\t%s\t%s\n", f.Severity, f.Check, text)
			if f.Remedy == "" {
				continue
			}
			for line := range strings.SplitSeq(f.Remedy, "\n") {
				fmt.Fprintf(t, "\t\t  %s\n", line)
			}
		}
	}
	if !r.Failed() {
		// A line without cells does not widen the columns.
		fmt.Fprintln(t, summary(r))
	}
	return t.Flush()
}
