package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"

	"github.com/gostmmac/gostmmac/hwtest/rig/kernel"
	"github.com/gostmmac/gostmmac/hwtest/rig/vfioplatform"
)

// vfioPlatformRig boots one guest and does all cases in it.
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
	for _, c := range vfioplatform.Cases() {
		r.test(ctx, c.Name, func(ctx context.Context) error {
			if !started {
				return errNotStarted
			}
			ctx, cancel := context.WithTimeout(ctx, vfioplatform.Guard)
			defer cancel()
			return errors.Join(c.Run(ctx, h))
		})
	}
	if started {
		r.test(context.WithoutCancel(ctx), "end", func(context.Context) error { return h.Close() })
	}
}
