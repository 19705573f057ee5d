package debian

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// paragraph is what apt-cache shows of a package.
func paragraph(name, version, arch, depends string) string {
	s := fmt.Sprintf("Package: %s\nSource: linux\nVersion: %s\nArchitecture: %s\n", name, version, arch)
	if depends != "" {
		s += "Depends: " + depends + "\n"
	}
	return s + "Description: x\n y: z\n\nPackage: other\nVersion: 1\nArchitecture: all\n"
}

// shownKernels has the kernels 7.4 for both architectures, in two layouts.
func shownKernels() map[string]string {
	const v = "7.4.1-1~bpo"
	m := map[string]string{
		"linux-image-amd64:amd64": paragraph("linux-image-amd64", v, "amd64", "linux-base-amd64 (= "+v+"), linux-image-7.4.1+deb-amd64 (= "+v+")"),
		"linux-image-arm64:arm64": paragraph("linux-image-arm64", v, "arm64", "linux-image-7.4.1+deb-arm64"),
	}
	add := func(key, name, arch, depends string) { m[key+"="+v] = paragraph(name, v, arch, depends) }
	add("linux-image-7.4.1+deb-amd64:amd64", "linux-image-7.4.1+deb-amd64", "amd64", "dracut | linux-initramfs-tool, linux-base (>= 4), linux-modules-7.4.1+deb-amd64 (= "+v+")")
	add("linux-modules-7.4.1+deb-amd64:amd64", "linux-modules-7.4.1+deb-amd64", "amd64", "kmod, linux-image-7.4.1+deb-amd64")
	add("linux-image-7.4.1+deb-arm64:arm64", "linux-image-7.4.1+deb-arm64", "arm64", "kmod")
	add("linux-headers-7.4.1+deb-amd64:amd64", "linux-headers-7.4.1+deb-amd64", "amd64", "gcc-14-for-host, linux-headers-7.4.1+deb-common, linux-kbuild-7.4.1+deb")
	add("linux-headers-7.4.1+deb-arm64:arm64", "linux-headers-7.4.1+deb-arm64", "arm64", "linux-headers-7.4.1+deb-common, linux-kbuild-7.4.1+deb")
	add("linux-headers-7.4.1+deb-common", "linux-headers-7.4.1+deb-common", "all", "")
	add("linux-kbuild-7.4.1+deb", "linux-kbuild-7.4.1+deb", "amd64", "pahole")
	add("linux-source-7.4", "linux-source-7.4", "all", "binutils")
	return m
}

func names(packages []Package) string {
	var all []string
	for _, p := range packages {
		all = append(all, p.Name+":"+p.Arch)
	}
	return strings.Join(all, " ")
}

func TestKernels(t *testing.T) {
	needPort(t)
	dir := t.TempDir()
	f := &fakeMachine{t: t, kernels: shownKernels()}
	m := f.machine()
	m.free = func(string) (uint64, error) { return needBytes + needForKernels, nil }
	tree, err := m.setup(t.Context(), Options{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tree.Kernel("amd64"); !errors.Is(err, ErrIncomplete) || !strings.Contains(err.Error(), "rig setup") {
		t.Errorf("no kernel was asked for: %v", err)
	}
	get := func(kernels ...string) *Tree {
		t.Helper()
		f.calls = nil
		tree, err := m.setup(t.Context(), Options{Dir: dir, Kernels: kernels})
		if err != nil {
			t.Fatal(err)
		}
		opened, err := Open(dir)
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(tree.Manifest, opened.Manifest); d != "" {
			t.Errorf("the manifest that was written (-want +got):\n%s", d)
		}
		return tree
	}
	get("arm64")
	tree = get("amd64")
	if !strings.HasPrefix(f.saw[len(f.saw)-1], "Types: deb\n") || !strings.Contains(f.saw[len(f.saw)-1], "Architectures: "+runtime.GOARCH+" ") {
		t.Errorf("sources %q", f.saw[len(f.saw)-1])
	}
	amd64, err := tree.Kernel("amd64")
	if err != nil {
		t.Fatal(err)
	}
	arm64, err := tree.Kernel("arm64")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ got, want string }{
		{amd64.Release, "7.4.1+deb-amd64"}, {amd64.Version, "7.4.1-1~bpo"}, {arm64.Release, "7.4.1+deb-arm64"},
		{names(amd64.Image), "linux-image-7.4.1+deb-amd64:amd64 linux-modules-7.4.1+deb-amd64:amd64"},
		{names(arm64.Image), "linux-image-7.4.1+deb-arm64:arm64"},
		{names(amd64.Headers), "linux-headers-7.4.1+deb-amd64:amd64 linux-headers-7.4.1+deb-common:all linux-kbuild-7.4.1+deb:amd64"},
		{names(arm64.Headers), "linux-headers-7.4.1+deb-arm64:arm64 linux-headers-7.4.1+deb-common:all linux-kbuild-7.4.1+deb:amd64"},
		{names(arm64.Source), "linux-source-7.4:all"},
	} {
		if c.got != c.want {
			t.Errorf("%q instead of %q", c.got, c.want)
		}
	}
	if len(amd64.Image[1].SHA256) != 64 {
		t.Errorf("%+v", amd64.Image[1])
	}

	// A suite that moves on is not looked at while all is there.
	clear(f.kernels)
	get("amd64", "arm64")
	if len(f.calls) > 0 {
		t.Errorf("complete: %q", f.calls)
	}
	if err := os.RemoveAll(filepath.Join(dir, treeName)); err != nil {
		t.Fatal(err)
	}
	get("amd64")
	if slices.ContainsFunc(f.calls, func(c string) bool { return strings.HasPrefix(c, "apt") }) || len(f.calls) == 0 {
		t.Errorf("without the tree: %q", f.calls)
	}
	gone := filepath.Join(dir, archives, amd64.Image[1].file())
	if err := os.Remove(gone); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(dir); !errors.Is(err, ErrIncomplete) || !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a package of a kernel is missing: %v", err)
	}
	if _, err := m.setup(t.Context(), Options{Dir: dir}); err == nil || !strings.Contains(err.Error(), "look for the kernel for amd64: apt-cache: exit status 100: E: No packages found") {
		t.Errorf("a package of a kernel is missing, and those in the suites: %v", err)
	}
}

func TestKernelsFail(t *testing.T) {
	needPort(t)
	for name, c := range map[string]struct {
		change func(*machine, *fakeMachine, *Options)
		want   error
		text   string
	}{
		"no disk": {func(m *machine, _ *fakeMachine, _ *Options) {
			m.free = func(string) (uint64, error) { return needBytes, nil }
		}, ErrDisk, "MiB are free"},
		"no architecture": {func(_ *machine, _ *fakeMachine, o *Options) { o.Kernels = []string{"vax"} }, errors.ErrUnsupported, "vax"},
		"no release": {func(_ *machine, f *fakeMachine, _ *Options) {
			f.kernels["linux-image-amd64:amd64"] = paragraph("linux-image-amd64", "1", "amd64", "linux-image-x-arm64")
		}, errors.ErrUnsupported, "no image of a release"},
		"no paragraph": {func(_ *machine, f *fakeMachine, _ *Options) {
			f.kernels["linux-source-7.4=7.4.1-1~bpo"] = "Package: -y\n"
		}, os.ErrNotExist, "linux-source-7.4"},
		"no download": {func(_ *machine, f *fakeMachine, _ *Options) { f.fail, f.err = "sh", exec.ErrNotFound }, exec.ErrNotFound, "download the kernel"},
	} {
		f := &fakeMachine{t: t, kernels: shownKernels()}
		m, o := f.machine(), Options{Dir: t.TempDir(), Kernels: []string{"amd64"}}
		m.free = func(string) (uint64, error) { return needBytes + needForKernels, nil }
		c.change(&m, f, &o)
		if _, err := m.setup(t.Context(), o); !errors.Is(err, c.want) || !strings.Contains(err.Error(), c.text) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestCloneAndAwk(t *testing.T) {
	dir := t.TempDir()
	tree := &Tree{Dir: filepath.Join(dir, "tree")}
	bin := filepath.Join(tree.Dir, "usr/bin")
	if err := errors.Join(os.MkdirAll(bin, 0o755), alternatives(tree.Dir), os.WriteFile(filepath.Join(bin, "mawk"), []byte("m"), 0o755), alternatives(tree.Dir)); err != nil {
		t.Fatal(err)
	}
	clone := filepath.Join(dir, "clone")
	if err := tree.CloneTo(clone); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(filepath.Join(clone, "usr/bin/awk"))
	if string(b) != "m" || err != nil {
		t.Errorf("%q, %v", b, err)
	}
	if err := tree.CloneTo(clone); !errors.Is(err, fs.ErrExist) {
		t.Errorf("a second time: %v", err)
	}
	if got := tree.Program("dtc"); !strings.HasSuffix(got[len(got)-1], "/tree/usr/bin/dtc") {
		t.Error(got)
	}
	if err := tree.Unpack(t.Context(), &bytes.Buffer{}, clone, Package{Name: "none", Version: "1", Arch: "all"}); err == nil {
		t.Error("unpacked what is not there")
	}
}

// TestInside runs a program in a clone of the tree of the cache folder.
func TestInside(t *testing.T) {
	cache := os.Getenv("GOSTMMAC_RIG_CACHE")
	if cache == "" {
		t.Skip("GOSTMMAC_RIG_CACHE names no cache folder; go run ./hwtest/rig setup fills one")
	}
	tree, err := Open(cache)
	if err != nil {
		t.Fatal(err)
	}
	if err := tree.Has("dash"); err != nil {
		t.Skip(err)
	}
	// Links do not leave a file system.
	dir, err := os.MkdirTemp(cache, "test")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	clone := filepath.Join(dir, "clone")
	if err := tree.CloneTo(clone); err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	if err := Inside(t.Context(), &log, clone, "/usr/bin/sh", "-c", "echo x >/dev/null && pwd && echo inside"); err != nil || log.String() != "/\ninside\n" {
		t.Errorf("%v, %q", err, log.String())
	}
	if err := Inside(t.Context(), &log, clone, "/usr/bin/sh", "-c", "exit 3"); err == nil || !strings.HasSuffix(err.Error(), "exit status 3") {
		t.Errorf("%v", err)
	}
	if err := Inside(t.Context(), &log, clone, "/no/program"); !errors.Is(err, errEnter) || !strings.Contains(err.Error(), "namespaces") {
		t.Errorf("no program: %v", err)
	}
	if err := Inside(t.Context(), &log, clone, "/usr/bin/test", "-r", "/proc/self/status"); err != nil {
		t.Errorf("/proc: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := Inside(ctx, &log, clone, "/usr/bin/sh"); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil || bytes.Contains(mounts, []byte(clone)) {
		t.Errorf("left behind in the mounts: %v\n%s", err, mounts)
	}
}
