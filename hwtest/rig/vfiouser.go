package main

import (
	"context"
	"path/filepath"

	"github.com/gostmmac/gostmmac/hwtest/rig/usercheck"
)

// vfioUserRig runs the tests of the vfio-user server, each on machines of its own.
func vfioUserRig(ctx context.Context, e env, r *report) {
	command, environ := e.tree.System("x86_64")
	for _, t := range usercheck.Tests() {
		r.test(ctx, t.Name, func(ctx context.Context) error {
			return t.Run(ctx, usercheck.Config{Command: command, Env: environ, Log: filepath.Join(e.logs, "qemu-q35.log")})
		})
	}
}
