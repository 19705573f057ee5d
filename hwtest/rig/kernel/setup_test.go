package kernel

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/gostmmac/gostmmac/hwtest/rig/debian"
)

// fakeCache has packages and programs that make what those of a kernel do.
type fakeCache struct {
	t       *testing.T
	release string // without the architecture
	boot    bool   // the image is in the folder boot
	magic   string // the release of what make builds, "" for the right one
	missing string // a stock module that is not there
	fail    string // a program that fails
	nothing bool   // make builds nothing
	calls   []string
}

func (f *fakeCache) machine() machine {
	return machine{
		kernel: func(arch string) (*debian.Kernel, error) {
			if f.release == "" {
				return nil, debian.ErrIncomplete
			}
			return &debian.Kernel{Arch: arch, Release: f.release + "-" + arch, Version: f.release + "-1",
				Image: []debian.Package{{Name: arch}}, Headers: []debian.Package{{Name: "headers"}}, Source: []debian.Package{{Name: "linux-source-7.4"}}}, nil
		},
		clone:  func(dir string) error { return os.Mkdir(dir, 0o755) },
		unpack: f.unpack, inside: f.inside,
	}
}

func (f *fakeCache) put(text []byte, path ...string) {
	f.t.Helper()
	if err := writeFile(filepath.Join(path...), text); err != nil {
		f.t.Fatal(err)
	}
}

// stockModules are those of the image, by name with what each depends on.
var stockModules = map[string]string{
	"stmmac": "phylink", "phylink": "", "dwmac-motorcomm": "stmmac,libpci-x", "libpci-x": "", "dwmac-intel": "stmmac", "motorcomm": "", "8021q": "garp", "garp": "",
	"macvlan": "", "veth": "", "tun": "", "dummy": "", "vfio-pci": "vfio", "vfio": "", "vfio_iommu_type1": "vfio", "stmmac-platform": "stmmac",
	"dwmac-generic": "stmmac-platform", "irqbypass": "", "unused": "",
}

func (f *fakeCache) unpack(_ context.Context, _ io.Writer, dir string, packages ...debian.Package) error {
	release := f.release + "-" + packages[0].Name
	f.calls = append(f.calls, "unpack "+release)
	for m, depends := range stockModules {
		if m != f.missing {
			f.put(elfModule("name="+ModuleName(m), "depends="+depends, "vermagic="+release+" SMP"), dir, "usr/lib/modules", release, "kernel", m+".ko.xz")
		}
	}
	f.put([]byte("kernel"), image(dir, release))
	if f.boot {
		return move(image(dir, release), filepath.Join(dir, "boot", "vmlinuz-"+release))
	}
	return move(image(dir, release), filepath.Join(dir, "usr/lib/modules", release, "vmlinuz"))
}

func (f *fakeCache) inside(ctx context.Context, _ io.Writer, dir, program string, args ...string) error {
	call := strings.Join(append([]string{filepath.Base(program)}, args...), " ")
	f.calls = append(f.calls, call)
	if err := ctx.Err(); err != nil {
		return err
	}
	if strings.HasPrefix(call, f.fail) && f.fail != "" {
		return errors.New("exit status 2")
	}
	switch filepath.Base(program) {
	case "tar":
		for _, a := range args {
			name, ok := strings.CutPrefix(a, "linux-source-7.4/")
			switch {
			case !ok:
			case name == spanSource:
				f.put([]byte("// SPDX\n#include <a.h>\nno\n#ifdef CONFIG_INTERVAL_TREE_SPAN_ITER\nspans\n#endif\n"), dir, sourceDir, name)
			case filepath.Ext(name) != "":
				f.put([]byte("file"), dir, sourceDir, name)
			default:
				f.put([]byte("of "+name), dir, sourceDir, name, "main.c")
			}
		}
	case "make":
		set := strings.TrimPrefix(args[slices.IndexFunc(args, func(a string) bool { return strings.HasPrefix(a, "M=/") })], "M=/")
		release := strings.TrimPrefix(args[slices.Index(args, "-C")+1], "/usr/src/linux-headers-")
		if f.magic != "" {
			release = f.magic
		}
		if _, err := os.Stat(filepath.Join(dir, set, "Kbuild")); err != nil {
			return err
		}
		built := map[string][]string{Stmmac: {"stmmac", "dwmac-modelpci"}, VFIO: {"vfio", "sub/vfio-pci"}}[set]
		if f.nothing {
			built = nil
		}
		for _, m := range built {
			depends := map[string]string{"stmmac": "phylink", "dwmac-modelpci": "stmmac", "sub/vfio-pci": "vfio,irqbypass"}[m]
			f.put(elfModule("name="+ModuleName(filepath.Base(m)), "depends="+depends, "vermagic="+release+" SMP"), dir, set, m+".ko")
		}
	case "xz":
		for _, a := range args[1:] {
			if err := os.Rename(filepath.Join(dir, a), filepath.Join(dir, strings.TrimSuffix(a, ".xz"))); err != nil {
				return err
			}
		}
	}
	return nil
}

// glue is the folder of the glue.
const glue = "../glue-gpl"

// loaded lists what Load returns.
func loaded(t *testing.T, k *Kernel, sets []string, names ...string) string {
	t.Helper()
	all, err := k.Load(sets, names...)
	if err != nil {
		t.Error(err)
	}
	var s []string
	for _, m := range all {
		rel, err := filepath.Rel(k.dir, m.File)
		if err != nil {
			t.Error(err)
		}
		if _, err := os.Stat(m.File); err != nil {
			t.Error(err)
		}
		s = append(s, filepath.ToSlash(rel))
	}
	return strings.Join(s, " ")
}

func TestSetup(t *testing.T) {
	cache := t.TempDir()
	f := &fakeCache{t: t, release: "7.4.1"}
	if _, err := Open(cache, "amd64"); !errors.Is(err, debian.ErrIncomplete) || !strings.Contains(err.Error(), "rig setup") {
		t.Errorf("an empty folder: %v", err)
	}
	run := func() (progress string) {
		t.Helper()
		f.calls = nil
		var b strings.Builder
		if err := f.machine().setup(t.Context(), Options{Cache: cache, Glue: glue, Progress: &b}); err != nil {
			t.Fatal(err)
		}
		left, err := filepath.Glob(filepath.Join(cache, "*"))
		if err != nil || len(left) != 2 { // kernels and the log
			t.Errorf("left in the folder: %q, %v", left, err)
		}
		return b.String()
	}
	open := func(arch string) *Kernel {
		t.Helper()
		k, err := Open(cache, arch)
		if err != nil {
			t.Fatal(err)
		}
		return k
	}
	if p := run(); !strings.Contains(p, "amd64: build the modules of stmmac\n") || !strings.Contains(p, "arm64: complete: linux 7.4.1-arm64") {
		t.Errorf("progress %q", p)
	}
	amd64, arm64 := open("amd64"), open("arm64")
	if b, err := os.ReadFile(amd64.Image()); string(b) != "kernel" || err != nil || amd64.Release != "7.4.1-amd64" || amd64.Version != "7.4.1-1" {
		t.Errorf("%q, %v, %+v", b, err, amd64)
	}
	for _, c := range []struct{ got, want string }{
		{loaded(t, amd64, []string{Stmmac}, "dwmac-modelpci"), "stock/phylink.ko stmmac/stmmac.ko stmmac/dwmac-modelpci.ko"},
		{loaded(t, amd64, nil, "stmmac"), "stock/phylink.ko stock/stmmac.ko"},
		{loaded(t, amd64, []string{Stmmac, VFIO}, "dwmac_motorcomm", "vfio-pci"), "stock/phylink.ko stmmac/stmmac.ko stock/libpci-x.ko stock/dwmac-motorcomm.ko vfio/vfio.ko stock/irqbypass.ko vfio/vfio-pci.ko"},
		{loaded(t, arm64, nil, "dwmac-generic", "8021q"), "stock/phylink.ko stock/stmmac.ko stock/stmmac-platform.ko stock/dwmac-generic.ko stock/garp.ko stock/8021q.ko"},
	} {
		if c.got != c.want {
			t.Errorf("load %s\ninstead of %s", c.got, c.want)
		}
	}
	for _, c := range []struct{ set, name string }{{"none", "stmmac"}, {Stmmac, "unused"}, {Stmmac, ""}} {
		if m, err := amd64.Load([]string{c.set}, c.name); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%+v: %v, %v", c, m, err)
		}
	}
	if p := run(); p != "" || len(f.calls) > 0 {
		t.Errorf("complete: %q, %q", p, f.calls)
	}

	// Each of these makes one kernel anew.
	for name, change := range map[string]func() error{
		"a module is missing": func() error { return os.Remove(filepath.Join(cache, folder, "arm64/stock/phylink.ko")) },
		"a module is longer": func() error {
			return os.WriteFile(filepath.Join(cache, folder, "amd64/vfio/vfio.ko"), []byte("x"), 0o644)
		},
		"no manifest": func() error { return os.Remove(filepath.Join(cache, folder, "amd64", manifestName)) },
		"a manifest that lies": func() error {
			return (&manifest{Release: "x", Files: []file{{Path: "../../x"}}}).write(filepath.Join(cache, folder, "arm64"))
		},
		"an empty manifest": func() error { return (&manifest{Release: "7.4.1-arm64"}).write(filepath.Join(cache, folder, "arm64")) },
		"half a manifest": func() error {
			return os.WriteFile(filepath.Join(cache, folder, "amd64", manifestName), []byte("{"), 0o644)
		},
		"another recipe": func() error {
			m, err := read(filepath.Join(cache, folder, "arm64"))
			m.Recipe = "x"
			return errors.Join(err, m.write(filepath.Join(cache, folder, "arm64")))
		},
	} {
		if err := change(); err != nil {
			t.Fatal(err)
		}
		run()
		if n := strings.Count(strings.Join(f.calls, "\n"), "unpack"); n != 1 {
			t.Errorf("%s: %d kernels were made: %q", name, n, f.calls)
		}
		open("amd64")
		open("arm64")
	}
	f.release, f.boot = "7.5", true
	run()
	if r := open("amd64").Release; r != "7.5-amd64" {
		t.Error(r)
	}
}

// TestSource: what is laid out for a build.
func TestSource(t *testing.T) {
	cache := t.TempDir()
	f := &fakeCache{t: t, release: "7.4.1"}
	seen := map[string]bool{}
	m := f.machine()
	m.inside = func(ctx context.Context, log io.Writer, dir, program string, args ...string) error {
		if filepath.Base(program) == "make" {
			for _, name := range []string{"stmmac/main.c", "stmmac/Kbuild", "stmmac/Kbuild.glue", "stmmac/dwmac-modelpci.c", "vfio/Kbuild", "vfio/vfio/main.c", "vfio/vfio/Kbuild",
				"vfio/iommu/iommu-priv.h", "vfio/iommu/iommufd/span_iter.c", "vfio/main.c", "vfio/platform/Kbuild"} {
				_, err := os.Stat(filepath.Join(dir, name))
				seen[name] = seen[name] || err == nil
			}
			if b, err := os.ReadFile(filepath.Join(dir, "vfio/iommu/iommufd/span_iter.c")); err == nil && string(b) != "// SPDX\n#include <a.h>\n\nspans\n" {
				t.Errorf("the iterator: %q", b)
			}
		}
		return f.inside(ctx, log, dir, program, args...)
	}
	if err := m.setup(t.Context(), Options{Cache: cache, Glue: glue}); err != nil {
		t.Fatal(err)
	}
	for name, there := range seen {
		if !there {
			t.Errorf("%s was not there", name)
		}
	}
	if _, err := spanIterator("int x;"); err == nil {
		t.Error("an iterator was found in nothing")
	}
}

func TestSetupFails(t *testing.T) {
	for name, c := range map[string]struct {
		fake fakeCache
		glue string
		text string
		want error
	}{
		"no kernel":    {fake: fakeCache{}, want: debian.ErrIncomplete},
		"no glue":      {fake: fakeCache{release: "7"}, glue: t.TempDir(), want: os.ErrNotExist, text: "*.c"},
		"no tar":       {fake: fakeCache{release: "7", fail: "tar"}, text: "kernel for amd64: unpack the source: exit status 2: look at "},
		"no make":      {fake: fakeCache{release: "7", fail: "make"}, text: "build the modules of stmmac"},
		"no module":    {fake: fakeCache{release: "7", nothing: true}, text: "no module came out"},
		"no xz":        {fake: fakeCache{release: "7", fail: "xz"}, text: "Debian's own"},
		"other kernel": {fake: fakeCache{release: "7", magic: "6"}, text: `is for "6" and not for 7-amd64`},
		"no stock":     {fake: fakeCache{release: "7", missing: "garp"}, text: "no module garp", want: os.ErrNotExist},
	} {
		c.fake.t = t
		if c.glue == "" {
			c.glue = glue
		}
		cache := t.TempDir()
		err := c.fake.machine().setup(t.Context(), Options{Cache: cache, Glue: c.glue})
		var e *Error
		if !errors.As(err, &e) || c.want != nil && !errors.Is(err, c.want) || !strings.Contains(err.Error(), c.text) {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := Open(cache, "amd64"); !errors.Is(err, debian.ErrIncomplete) {
			t.Errorf("%s: afterwards %v", name, err)
		}
		if _, err := os.Stat(filepath.Join(cache, "build")); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s: the clone was left: %v", name, err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	f := &fakeCache{t: t, release: "7"}
	if err := f.machine().setup(ctx, Options{Cache: t.TempDir(), Glue: glue}); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}

// TestRecipes: what is built names files that exist, and what changes the result changes
// the sum.
func TestRecipes(t *testing.T) {
	sums := map[string]string{}
	add := func(name string, r recipe, dir string) {
		t.Helper()
		s, err := r.sum(dir)
		if err != nil {
			t.Fatal(err)
		}
		for other, o := range sums {
			if o == s {
				t.Errorf("%s and %s have one sum", name, other)
			}
		}
		sums[name] = s
	}
	for _, r := range recipes() {
		for _, s := range r.sets {
			if _, err := kbuild.ReadFile(fmt.Sprintf("kbuild/%s/%s/Kbuild", r.arch, s.name)); err != nil {
				t.Error(err)
			}
		}
		add(r.arch, r, glue)
		r.stock = append(slices.Clone(r.stock), "x")
		add(r.arch+" with x", r, glue)
	}
	changed := t.TempDir()
	for _, name := range []string{"dwmac-modelpci.c", "Kbuild.glue"} {
		if err := copyFile(filepath.Join(glue, name), filepath.Join(changed, name)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(changed, "dwmac-modelpci.c"), []byte("/* */"), 0o644); err != nil {
		t.Fatal(err)
	}
	add("another glue", recipes()[0], changed)
	if d := cmp.Diff([]string{"amd64", "arm64"}, Archs()); d != "" {
		t.Error(d)
	}
	if !slices.Contains(Packages(), debian.QEMUX86) || !slices.Contains(Packages(), debian.QEMUArm) {
		t.Errorf("no QEMU in %q", Packages())
	}
}

// TestRealKernels looks into the kernels of the cache folder.
func TestRealKernels(t *testing.T) {
	cache := os.Getenv("GOSTMMAC_RIG_CACHE")
	if cache == "" {
		t.Skip("GOSTMMAC_RIG_CACHE names no cache folder; go run ./hwtest/rig setup fills one")
	}
	for _, c := range []struct {
		arch  string
		sets  []string
		names []string
	}{
		{"amd64", []string{Stmmac}, []string{"stmmac", "dwmac-modelpci", "dwmac-motorcomm", "dwmac-intel", "stmmac-pci", "motorcomm"}},
		{"amd64", []string{VFIO}, []string{"iommufd", "vfio-pci", "vfio_iommu_type1", "8021q", "veth"}},
		{"amd64", nil, []string{"dwmac-motorcomm", "dwmac-intel", "vfio-pci", "vfio_iommu_type1"}},
		{"arm64", []string{VFIO}, []string{"vfio-platform", "stmmac-platform", "dwmac-generic"}},
	} {
		k, err := Open(cache, c.arch)
		if errors.Is(err, debian.ErrIncomplete) {
			t.Skip(err)
		} else if err != nil {
			t.Fatal(err)
		}
		modules, err := k.Load(c.sets, c.names...)
		if err != nil {
			t.Fatal(err)
		}
		for _, n := range c.names {
			if !slices.ContainsFunc(modules, func(m Module) bool { return m.Name == ModuleName(n) }) {
				t.Errorf("%s: %s is not in %v", c.arch, n, modules)
			}
		}
	}
}
