package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/gostmmac/gostmmac/hwtest/rig/debian"
	"github.com/gostmmac/gostmmac/hwtest/rig/kernel"
)

// rigPackage is the package of this command.
const rigPackage = "github.com/gostmmac/gostmmac/hwtest/rig"

// setUp fills the cache folder with what rigs need.
func setUp(ctx context.Context, names []string, dir, mirror string, progress io.Writer) error {
	chosen, err := choose(names)
	if err != nil {
		return err
	}
	o := debian.Options{Dir: dir, Mirror: mirror, Progress: progress}
	guests := false
	for _, r := range chosen {
		o.Packages = append(o.Packages, r.packages...)
		guests = guests || r.guests
	}
	if guests {
		o.Kernels = kernel.Archs()
	}
	tree, err := debian.Setup(ctx, o)
	if err != nil || !guests {
		return err
	}
	source, err := sourceOf(ctx, rigPackage)
	if err != nil {
		return err
	}
	unlock, err := debian.Lock(dir)
	if err != nil {
		return err
	}
	err = kernel.Setup(ctx, kernel.Options{Cache: dir, Tree: tree, Glue: filepath.Join(source, "glue-gpl"), Progress: progress})
	return errors.Join(err, unlock())
}

// sourceOf is the folder with the source of a package, which the go command knows.
func sourceOf(ctx context.Context, pkg string) (string, error) {
	dir, err := exec.CommandContext(ctx, "go", "list", "-f", "{{.Dir}}", pkg).Output()
	if err != nil {
		return "", fmt.Errorf("find the source of %s: %w: run the rig in a checkout of the module", pkg, withText(err))
	}
	return strings.TrimSpace(string(dir)), nil
}
