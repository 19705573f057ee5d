package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"

	"github.com/gostmmac/gostmmac/hwtest/rig/kernel"
	"github.com/gostmmac/gostmmac/hwtest/rig/note"
	"github.com/gostmmac/gostmmac/hwtest/rig/vfioplatform"
)

// vfioPlatformRig boots one guest and does all cases in it, and the list of hardware tests.
func vfioPlatformRig(ctx context.Context, e env, r *report) {
	m := vfioplatform.Machine{Tree: e.tree, Dir: filepath.Join(e.logs, "vfio-platform")}
	built := r.test(ctx, "programs for arm64", func(ctx context.Context) (err error) {
		if err := os.MkdirAll(m.Dir, 0o755); err != nil {
			return err
		}
		source, err := sourceOf(ctx, hardwareTests)
		if err != nil {
			return err
		}
		m.Skips = filepath.Join(source, "skips", "npcm_gmac.txt")
		if m.Kernel, err = kernel.Open(e.cache, "arm64"); err != nil {
			return err
		}
		return m.Build(ctx)
	})
	var h *vfioplatform.Host
	started := r.test(ctx, "boot", func(ctx context.Context) (err error) {
		if !built {
			return errNotBuilt
		}
		h, err = vfioplatform.Start(ctx, m)
		return err
	})
	guarded := func(name string, run func(ctx context.Context) error) {
		r.test(ctx, name, func(ctx context.Context) error {
			if !started {
				return errNotStarted
			}
			ctx, cancel := context.WithTimeout(ctx, vfioplatform.Guard)
			defer cancel()
			return run(ctx)
		})
	}
	cases := func(list []vfioplatform.Case) {
		for _, c := range list {
			guarded(c.Name, func(ctx context.Context) error { return c.Run(ctx, h) })
		}
	}
	cases(vfioplatform.Before())
	guarded("the list of hardware tests", func(ctx context.Context) error {
		lines, err := h.Hardware(ctx)
		skipped := 0
		for _, l := range lines {
			o, ok := outcomeOf([]byte(l))
			switch {
			case !ok:
			case o.Result == "skipped":
				skipped++ // the file says which these are, or err does
			default:
				r.add("hardware: "+o.Name, o.took(), o.err(), "")
			}
		}
		note.Printf(ctx, "%d are left out, which skips/npcm_gmac.txt names with the reasons", skipped)
		return errors.Join(err, os.WriteFile(filepath.Join(m.Dir, "hwtest.log"), []byte(strings.Join(lines, "\n")+"\n"), 0o644))
	})
	cases(vfioplatform.After())
	if started {
		r.test(context.WithoutCancel(ctx), "end", func(context.Context) error { return h.Close() })
	}
}
