package linuxmodel

import (
	"context"

	"github.com/gostmmac/gostmmac/hwtest/rig/cards"
	"github.com/gostmmac/gostmmac/hwtest/rig/chips"
	"github.com/gostmmac/gostmmac/hwtest/rig/debian"
	"github.com/gostmmac/gostmmac/hwtest/rig/guest/jobs"
	"github.com/gostmmac/gostmmac/hwtest/rig/kernel"
	"github.com/gostmmac/gostmmac/hwtest/rig/pair"
)

// Boot is a guest with two cards.
type Boot struct {
	Name string
	chip string
	// other is the chip at the other end; "" is the same.
	other string
	opts  chips.Options
	iommu bool
	// driver is the module that takes the cards, params what it is loaded with.
	driver, params string
	core           string // what the module stmmac is loaded with
	// cannot are the self-tests that the driver leaves out, with its own condition; it runs
	// all others, and they pass, at least as many as atLeast.
	cannot  map[string]string
	atLeast int
	// fails are those that the driver makes fail by itself, with the reason.
	fails map[string]string
	// step is that of the lengths of frames that are compared; 0 is 1, which takes minutes.
	step int
	// mtu is the longest that is tried; 0 is 9000.
	mtu int
}

// Machine is what a boot needs.
type Machine struct {
	Tree   *debian.Tree
	Kernel *kernel.Kernel
	Dir    string // a folder for the logs of this boot, which is there
}

// modules are what every driver stands on.
var modules = []string{core, "8021q"}

const core = "stmmac"

// Host is a guest that runs, with its cards.
type Host struct {
	*cards.Host
	boot     *Boot
	stations [2]string     // the MAC addresses
	ready    chan struct{} // a job is ready for what it waits for
}

// Start boots the guest and loads the driver. The caller closes it.
func (b *Boot) Start(ctx context.Context, m Machine) (*Host, error) {
	ends := [2]string{b.chip, b.other}
	if b.other == "" {
		ends[1] = b.chip
	}
	h := &Host{boot: b, ready: make(chan struct{}, 1)}
	p, err := pair.Start(ctx, pair.Config{
		Tree: m.Tree, Kernel: m.Kernel, Dir: m.Dir, Chips: ends, Options: b.opts, IOMMU: b.iommu,
		CommandLine: "ipv6.disable=1", // it speaks by itself
		Sets:        []string{"stmmac"}, Modules: append(modules[:len(modules):len(modules)], b.driver), Params: b.loadWith(),
		Log: func(_, line string) {
			if line == jobs.Ready {
				h.ready <- struct{}{} // one at a time is
			}
		},
	})
	if err != nil {
		return nil, err
	}
	h.Host = p
	return h, nil
}

func (b *Boot) loadWith() map[string]string {
	return map[string]string{b.driver: b.params, core: b.core}
}

// Restore brings the interfaces back into the state between cases, behind one that failed.
func (h *Host) Restore(ctx context.Context) error { return h.up(ctx, 1500) }

// Cover adds what the driver has touched of the models to a report.
func (h *Host) Cover(c *chips.Coverage) {
	for _, k := range h.Cards {
		c.Add(k, h.boot.driver)
	}
}

// do does a job in the guest.
func do[R any](ctx context.Context, h *Host, j jobs.Job[R]) (R, error) {
	return cards.Do(ctx, h.Host, j)
}

// only is the error of a job whose result does not matter.
func only[R any](_ R, err error) error { return err }
