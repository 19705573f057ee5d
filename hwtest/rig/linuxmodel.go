package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"

	"github.com/gostmmac/gostmmac/hwtest/rig/chips"
	"github.com/gostmmac/gostmmac/hwtest/rig/kernel"
	"github.com/gostmmac/gostmmac/hwtest/rig/linuxmodel"
	"github.com/gostmmac/gostmmac/hwtest/rig/note"
	"github.com/gostmmac/gostmmac/stmmac/sim"
)

// linuxModelRig boots a guest for each chip and does all cases in it. What one leaves behind
// the next one needs, so that behind a failure of the first of them there are more.
func linuxModelRig(ctx context.Context, e env, r *report) {
	var touched chips.Coverage
	for _, b := range linuxmodel.Boots() {
		if !strings.Contains(b.Name, e.match) {
			continue
		}
		var h *linuxmodel.Host
		started := r.test(ctx, b.Name+": boot", func(ctx context.Context) (err error) {
			k, err := kernel.Open(e.cache, "amd64")
			if err != nil {
				return err
			}
			dir := filepath.Join(e.logs, "linux-on-model "+strings.ReplaceAll(b.Name, ",", ""))
			if err := os.MkdirAll(dir, 0o755); err != nil {
				return err
			}
			h, err = b.Start(ctx, linuxmodel.Machine{Tree: e.tree, Kernel: k, Dir: dir})
			return err
		})
		for _, c := range linuxmodel.Cases() {
			r.test(ctx, b.Name+": "+c.Name, func(ctx context.Context) error {
				if !started {
					return errNotStarted
				}
				ctx, cancel := context.WithTimeout(ctx, linuxmodel.Guard)
				defer cancel()
				if err := c.Run(ctx, h); err != nil {
					again, cancel := context.WithTimeout(context.WithoutCancel(ctx), linuxmodel.Guard)
					defer cancel()
					return errors.Join(err, h.Restore(again))
				}
				return nil
			})
		}
		if started {
			h.Cover(&touched)
			r.test(context.WithoutCancel(ctx), b.Name+": end", func(context.Context) error { return h.Close() })
		}
	}
	r.test(ctx, "coverage", func(ctx context.Context) error {
		name := filepath.Join(e.logs, "linux-on-model coverage.txt")
		f, err := os.Create(name)
		if err != nil {
			return err
		}
		_, err = touched.WriteTo(f)
		rest := touched.Untouched(sim.GMAC4)
		note.Printf(ctx, "%s has the registers with their bits; of the %d of GMAC4 nobody touched these %d", name, len(sim.Registers(sim.GMAC4)), len(rest))
		for _, group := range chips.Groups(rest) {
			note.Printf(ctx, "%s", group)
		}
		return errors.Join(err, f.Close())
	})
}
