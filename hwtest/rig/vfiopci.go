package main

import (
	"context"
	"os"
	"path/filepath"
	"strings"

	"github.com/gostmmac/gostmmac/hwtest/rig/kernel"
	"github.com/gostmmac/gostmmac/hwtest/rig/vfiopci"
)

// vfioPCIRig boots a guest for each way to a device and does all cases in it.
func vfioPCIRig(ctx context.Context, e env, r *report) {
	logs := filepath.Join(e.logs, "vfio-pci")
	var programs *vfiopci.Programs
	built := r.test(ctx, "build", func(ctx context.Context) error {
		if err := os.MkdirAll(logs, 0o755); err != nil {
			return err
		}
		source, err := sourceOf(ctx, hardwareTests)
		if err != nil {
			return err
		}
		programs, err = vfiopci.Build(ctx, logs, source)
		return err
	})
	for _, b := range vfiopci.Boots() {
		if !strings.Contains(b.Name, e.match) {
			continue
		}
		var h *vfiopci.Host
		started := r.test(ctx, b.Name+": boot", func(ctx context.Context) error {
			if !built {
				return errNotStarted
			}
			k, err := kernel.Open(e.cache, "amd64")
			if err != nil {
				return err
			}
			dir := filepath.Join(logs, b.Name)
			if err := os.MkdirAll(dir, 0o755); err != nil {
				return err
			}
			h, err = b.Start(ctx, vfiopci.Machine{Tree: e.tree, Kernel: k, Dir: dir, Programs: programs})
			return err
		})
		for _, c := range b.Cases() {
			r.test(ctx, b.Name+", "+c.Name, func(ctx context.Context) error {
				if !started {
					return errNotStarted
				}
				ctx, cancel := context.WithTimeout(ctx, vfiopci.Guard)
				defer cancel()
				return c.Run(ctx, h)
			})
		}
		if started {
			r.test(context.WithoutCancel(ctx), b.Name+": end", func(context.Context) error { return h.Close() })
		}
	}
}
