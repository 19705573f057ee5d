package guest

import (
	"bytes"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/gostmmac/gostmmac/hwtest/rig/debian"
	"github.com/gostmmac/gostmmac/hwtest/rig/guest/initrd"
	"github.com/gostmmac/gostmmac/hwtest/rig/kernel"
)

//go:embed npcm845.dts
var twoGMACs string

// initPackage is the guest's first program.
const initPackage = "github.com/gostmmac/gostmmac/hwtest/rig/guest/init"

// Build builds a program of the module, by its import path, for guests of an architecture (in
// Go's words) into the file out: it needs nothing but a kernel. args are further arguments of
// go build. It has to be run in a checkout of the module.
func Build(ctx context.Context, goarch, out, pkg string, args ...string) error {
	all := append([]string{"build", "-trimpath", "-ldflags=-s -w", "-o", out}, append(args, pkg)...)
	return goCommand(ctx, goarch, all)
}

// BuildTest builds the tests of a package as a program, as Build does.
func BuildTest(ctx context.Context, goarch, out, pkg string, args ...string) error {
	all := append([]string{"test", "-c", "-trimpath", "-o", out}, append(args, pkg)...)
	return goCommand(ctx, goarch, all)
}

func goCommand(ctx context.Context, goarch string, args []string) error {
	c := exec.CommandContext(ctx, "go", args...)
	c.Env = append(os.Environ(), "GOOS=linux", "GOARCH="+goarch, "CGO_ENABLED=0")
	out, err := c.CombinedOutput()
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err != nil {
		return fmt.Errorf("go %s for %s: %w: %s", args[0], goarch, err, bytes.TrimSpace(out))
	}
	return nil
}

// modulePath is where the guest has a module.
func modulePath(m kernel.Module) string { return "/modules/" + m.Name + ".ko" }

// writeInitrd makes the guest's files.
func (c *Config) writeInitrd(file, init string) (err error) {
	f, err := os.Create(file)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	w := initrd.NewWriter(f)
	// A program has no standard output before these are there.
	errs := []error{w.CharDevice("dev/console", 0o600, 5, 1), w.CharDevice("dev/null", 0o666, 1, 3), w.Copy("init", 0o755, init)}
	for _, m := range c.Modules {
		errs = append(errs, w.Copy(modulePath(m), 0o644, m.File))
	}
	for _, name := range slices.Sorted(maps.Keys(c.Programs)) {
		if name == "" || strings.Contains(name, "/") {
			return fmt.Errorf("%w: a program %q", ErrConfig, name)
		}
		errs = append(errs, w.Copy("bin/"+name, 0o755, c.Programs[name]))
	}
	return errors.Join(append(errs, w.Close())...)
}

// compile makes the binary of a device tree.
func compile(ctx context.Context, tree *debian.Tree, source, dir string) (dtb string, err error) {
	dts, dtb := filepath.Join(dir, "board.dts"), filepath.Join(dir, "board.dtb")
	if err := os.WriteFile(dts, []byte(source), 0o644); err != nil {
		return "", err
	}
	dtc := tree.Program("dtc")
	out, err := exec.CommandContext(ctx, dtc[0], append(dtc[1:], "-q", "-I", "dts", "-O", "dtb", "-o", dtb, dts)...).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("compile the device tree: %w: %s", err, bytes.TrimSpace(out))
	}
	return dtb, nil
}
