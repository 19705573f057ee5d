package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/gostmmac/gostmmac/hwtest/rig/debian"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := command(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

const usage = "usage: rig setup [-cache DIR] [-mirror ADDRESS] [NAME…] | rig cache | rig list | rig run [-cache DIR] NAME…"

// Exit codes.
const (
	good   = 0
	failed = 1
	wrong  = 2
)

// command runs what args ask for and returns the exit code.
func command(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	if len(args) == 0 {
		fmt.Fprintln(stderr, usage)
		return wrong
	}
	f := flag.NewFlagSet("rig "+args[0], flag.ContinueOnError)
	f.SetOutput(stderr)
	var run func() error
	switch args[0] {
	case "setup":
		cache := cacheFlag(f)
		mirror := f.String("mirror", "", "address of a mirror of Debian, instead of that of the machine's apt sources")
		run = func() error {
			dir, err := cache()
			if err != nil {
				return err
			}
			return setUp(ctx, f.Args(), dir, *mirror, stderr)
		}
	case "cache":
		cache := cacheFlag(f)
		run = func() error {
			dir, err := cache()
			if err == nil {
				fmt.Fprintln(stdout, dir)
			}
			return err
		}
	case "list":
		run = func() error {
			for _, r := range rigs() {
				fmt.Fprintf(stdout, "%-15s %s\n%-15s needs %s\n", r.name, r.what, "", r.needs)
			}
			return nil
		}
	case "run":
		cache := cacheFlag(f)
		match := f.String("match", "", "run only the boots whose names have this text, of rigs that boot guests")
		run = func() error {
			dir, err := cache()
			if err != nil {
				return err
			}
			return runRigs(ctx, f.Args(), dir, *match, stdout)
		}
	default:
		fmt.Fprintln(stderr, usage)
		return wrong
	}
	switch err := f.Parse(args[1:]); {
	case errors.Is(err, flag.ErrHelp):
		return good
	case err != nil:
		return wrong
	}
	err := run()
	var use wrongUsage
	switch {
	case errors.As(err, &use):
		fmt.Fprintf(stderr, "rig: %v\n%s\n", err, usage)
		return wrong
	case errors.Is(err, errTests):
		return failed // the report has said which
	case err != nil:
		fmt.Fprintln(stderr, "rig:", err)
		return failed
	}
	return good
}

// wrongUsage is an error of the command line.
type wrongUsage string

func (w wrongUsage) Error() string { return string(w) }

// cacheFlag adds the flag for the cache folder.
func cacheFlag(f *flag.FlagSet) func() (string, error) {
	dir := f.String("cache", "", "cache folder (default gostmmac-rig in the user's cache folder)")
	return func() (string, error) {
		if *dir != "" {
			return filepath.Abs(*dir)
		}
		return debian.DefaultDir()
	}
}

// runRigs runs rigs by name.
func runRigs(ctx context.Context, names []string, dir, match string, out io.Writer) error {
	if len(names) == 0 {
		return wrongUsage("run needs the name of a rig")
	}
	chosen, err := choose(names)
	if err != nil {
		return err
	}
	tree, err := debian.Open(dir)
	if err != nil {
		return err
	}
	for _, r := range chosen {
		if err := tree.Has(r.packages...); err != nil {
			return err
		}
	}
	logs := filepath.Join(dir, "logs")
	if err := os.MkdirAll(logs, 0o755); err != nil {
		return fmt.Errorf("make the folder for logs: %w", err)
	}
	var errs []error
	for _, r := range chosen {
		fmt.Fprintf(out, "== %s: %s\n", r.name, strings.TrimSpace(r.what))
		rep, err := newReport(out, filepath.Join(logs, r.name+".log"))
		if err != nil {
			return err
		}
		r.run(ctx, env{tree: tree, cache: dir, logs: logs, match: match}, rep)
		errs = append(errs, rep.end())
	}
	return errors.Join(errs...)
}
