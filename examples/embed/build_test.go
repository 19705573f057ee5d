package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
)

// goCommand runs the go command with more in its environment.
func goCommand(t *testing.T, more []string, args ...string) string {
	t.Helper()
	path, err := exec.LookPath("go")
	if err != nil {
		t.Skip("the go command is not in PATH: ", err)
	}
	cmd := exec.Command(path, args...)
	cmd.Env = append(os.Environ(), more...)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v go %v: %v\n%s", more, strings.Join(args, " "), err, stderr.String())
	}
	return string(out)
}

// TestDependencies holds what a program that embeds the driver is made of: the
// packages of it that it names, and that none of the heavy ones comes along.
func TestDependencies(t *testing.T) {
	const module = "github.com/gostmmac/gostmmac/"
	for _, goos := range []string{"linux", "darwin"} {
		env := []string{"GOOS=" + goos, "CGO_ENABLED=0"}
		var direct []string
		for _, p := range strings.Fields(goCommand(t, env, "list", "-f", `{{join .Imports "\n"}}`, ".")) {
			if first, _, _ := strings.Cut(p, "/"); strings.Contains(first, ".") {
				direct = append(direct, p)
			}
		}
		slices.Sort(direct)
		if want := []string{module + "pagepool", module + "stmmac", module + "stmmac/glue", module + "vfio"}; !slices.Equal(direct, want) {
			t.Errorf("%s: imports %v, want %v", goos, direct, want)
		}
		deps := strings.Fields(goCommand(t, env, "list", "-deps", "."))
		if !slices.Contains(deps, module+"mmio") {
			t.Fatalf("%s: the list of dependencies is not one: %v", goos, deps)
		}
		for _, p := range deps {
			for elem := range strings.SplitSeq(p, "/") {
				if slices.Contains([]string{"gvisor.dev", "gvisor", "netstack", "sim", "xdp", "ebpf"}, elem) {
					t.Errorf("%s: depends on %s", goos, p)
				}
			}
		}
	}
}

// TestBuilds builds the program for every platform that the driver is for, and
// logs how large it is.
func TestBuilds(t *testing.T) {
	if testing.Short() {
		t.Skip("builds the standard library for ten platforms")
	}
	dir := t.TempDir()
	var table strings.Builder
	for _, target := range []string{
		"linux/amd64", "linux/arm64", "linux/arm/5", "linux/arm/6", "linux/arm/7",
		"linux/riscv64", "linux/loong64", "linux/386", "darwin/arm64", "windows/amd64",
	} {
		p := strings.Split(target, "/")
		env := []string{"CGO_ENABLED=0", "GOOS=" + p[0], "GOARCH=" + p[1]}
		if len(p) == 3 {
			env = append(env, "GOARM="+p[2])
		}
		file := filepath.Join(dir, strings.Join(p, "-"))
		goCommand(t, env, "build", "-buildvcs=false", "-trimpath", "-ldflags", "-s -w", "-o", file, ".")
		fi, err := os.Stat(file)
		if err != nil {
			t.Error(err)
			continue
		}
		fmt.Fprintf(&table, "%-15s %9d bytes\n", target, fi.Size())
	}
	t.Logf("%s, CGO_ENABLED=0 -trimpath -ldflags \"-s -w\":\n%s", runtime.Version(), table.String())
}
