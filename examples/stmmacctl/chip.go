package main

import (
	"errors"
	"fmt"

	"github.com/gostmmac/gostmmac/stmmac/glue"
	"github.com/gostmmac/gostmmac/vfio"
)

// chip reports which MAC a device has, and what its chip needs that VFIO does not give.
func chip(k vfio.Kernel, i vfio.Info) []vfio.Finding {
	var all []vfio.Finding
	add := func(s vfio.Severity, text, remedy string) {
		all = append(all, vfio.Finding{Severity: s, Check: "mac", Dev: i.Name, Text: text, Remedy: remedy})
	}
	fault := func(s vfio.Severity, err error) {
		if e := new(vfio.Error); errors.As(err, &e) {
			add(s, e.Err.Error(), e.Remedy)
		} else {
			add(s, err.Error(), "")
		}
	}
	g, err := glue.Find(k, i)
	if err != nil {
		fault(vfio.Warning, err)
		return all
	}
	if err := g.Support(); err != nil {
		fault(vfio.Failure, err)
	} else {
		add(vfio.OK, fmt.Sprintf("it is a %s, generation %v", g.Name, g.Generation), "")
	}
	for _, err := range each(g.Missing()) {
		fault(vfio.Failure, err)
	}
	for _, p := range g.Preconditions {
		add(vfio.Warning, "this must hold, and VFIO does not see to it: "+p, "")
	}
	for _, l := range g.Limits {
		add(vfio.OK, l, "")
	}
	return all
}

// each are the errors that err joins.
func each(err error) []error {
	if err == nil {
		return nil
	}
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok {
		return []error{err}
	}
	var all []error
	for _, e := range joined.Unwrap() {
		all = append(all, each(e)...)
	}
	return all
}
