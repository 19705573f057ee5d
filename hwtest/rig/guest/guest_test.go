package guest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/gostmmac/gostmmac/hwtest/rig/debian"
	"github.com/gostmmac/gostmmac/hwtest/rig/kernel"
)

// treeWith is a tree that was made with packages, which are not there.
func treeWith(packages ...string) *debian.Tree {
	return &debian.Tree{Dir: "/tree", Manifest: debian.Manifest{Wanted: packages}}
}

func TestConfig(t *testing.T) {
	good := func(arch string) Config {
		return Config{Tree: treeWith(debian.QEMUArm, debian.QEMUX86), Kernel: &kernel.Kernel{Arch: arch, Release: "7"}, Dir: "/d"}
	}
	for what, c := range map[string]struct {
		arch   string
		change func(c *Config)
		want   error
	}{
		"a PC":               {"amd64", func(*Config) {}, nil},
		"a large PC":         {"amd64", func(c *Config) { c.MiB, c.Processors, c.IOMMU, c.Devices = 4096, 4, true, []string{"x"} }, nil},
		"a board":            {"arm64", func(c *Config) { c.DeviceTree = "/dts-v1/;" }, nil},
		"no tree":            {"amd64", func(c *Config) { c.Tree = nil }, ErrConfig},
		"no kernel":          {"amd64", func(c *Config) { c.Kernel = nil }, ErrConfig},
		"no folder":          {"amd64", func(c *Config) { c.Dir = "" }, ErrConfig},
		"no architecture":    {"vax", func(*Config) {}, ErrConfig},
		"little memory":      {"amd64", func(c *Config) { c.MiB = 64 }, ErrConfig},
		"negative memory":    {"amd64", func(c *Config) { c.MiB = -1 }, ErrConfig},
		"many processors":    {"amd64", func(c *Config) { c.Processors = 17 }, ErrConfig},
		"a board's IOMMU":    {"arm64", func(c *Config) { c.IOMMU = true }, ErrConfig},
		"a board's device":   {"arm64", func(c *Config) { c.Devices = []string{"x"} }, ErrConfig},
		"a PC's device tree": {"amd64", func(c *Config) { c.DeviceTree = "x" }, ErrConfig},
		"no file":            {"amd64", func(c *Config) { c.Files = []*os.File{nil} }, ErrConfig},
		"no QEMU":            {"amd64", func(c *Config) { c.Tree = treeWith(debian.QEMUArm) }, debian.ErrIncomplete},
	} {
		conf := good(c.arch)
		c.change(&conf)
		_, err := conf.complete()
		if !errors.Is(err, c.want) {
			t.Errorf("%s: %v", what, err)
		}
		if c.want == nil {
			continue
		}
		var e *Error
		if g, err := Boot(t.Context(), conf); g != nil || !errors.Is(err, c.want) || !errors.As(err, &e) || !strings.Contains(err.Error(), "guest ") {
			t.Errorf("%s: booted: %v", what, err)
		}
	}
	if !errors.Is(ErrConfig, os.ErrInvalid) {
		t.Error("a wrong configuration is not invalid")
	}
}

func TestArgs(t *testing.T) {
	c := Config{Tree: treeWith(debian.QEMUX86), Kernel: &kernel.Kernel{Arch: "amd64"}, Dir: "/d", IOMMU: true, Devices: []string{VFIOUser("/s", 1)}, Args: []string{"-x"}, CommandLine: "more=1"}
	b, err := c.complete()
	if err != nil {
		t.Fatal(err)
	}
	args := c.args(b, "/d/initrd", "")
	for _, want := range [][]string{
		{"-object", "memory-backend-memfd,id=ram,size=512M,share=on"}, {"-machine", "q35,memory-backend=ram"}, {"-device", "intel-iommu,intremap=on,caching-mode=on"},
		{"-no-reboot"}, {"-serial", "chardev:console"}, {"-serial", "chardev:line"}, {"-device", `{"addr":"1","driver":"vfio-user-pci","socket":{"path":"/s","type":"unix"},"x-msg-timeout":60000,"x-no-posted-writes":true}`},
		{"-x", "-kernel"}, {"-initrd", "/d/initrd"}, {"-smp", "1"},
	} {
		if !slices.ContainsFunc(slices.Collect(windows(args, len(want))), func(w []string) bool { return slices.Equal(w, want) }) {
			t.Errorf("%q is not in %q", want, args)
		}
	}
	line := args[slices.Index(args, "-append")+1]
	for _, want := range []string{"console=ttyS0", "no_timer_check", "tsc=unstable", "clocksource=hpet", "panic=-1", "oops=panic", "gostmmac.line=ttyS1", "intel_iommu=on", "more=1"} {
		if !slices.Contains(strings.Fields(line), want) {
			t.Errorf("%s is not in %q", want, line)
		}
	}
	if slices.Contains(args, "-dtb") {
		t.Error("a PC with a device tree")
	}
	c = Config{Tree: treeWith(debian.QEMUArm), Kernel: &kernel.Kernel{Arch: "arm64"}, Dir: "/d", Args: BackToBack()}
	if b, err = c.complete(); err != nil {
		t.Fatal(err)
	}
	args = c.args(b, "/d/initrd", "/d/dtb")
	if all := strings.Join(args, " "); !strings.Contains(all, "-machine npcm845-evb -m 1024M -bios ") || !strings.HasSuffix(all, "-dtb /d/dtb") ||
		strings.Count(all, "nic,model=npcm-gmac") != 2 || strings.Contains(all, "iommu") {
		t.Errorf("%s", all)
	}
	var device map[string]any
	if err := json.Unmarshal([]byte(VFIOUser(`/a "b"`, 26)), &device); err != nil || device["driver"] != "vfio-user-pci" || device["addr"] != "1a" ||
		device["x-no-posted-writes"] != true {
		t.Errorf("%v, %v", device, err)
	}
}

// windows yields all runs of n values.
func windows(all []string, n int) func(func([]string) bool) {
	return func(yield func([]string) bool) {
		for i := 0; i+n <= len(all); i++ {
			if !yield(all[i : i+n]) {
				return
			}
		}
	}
}

func TestConsole(t *testing.T) {
	var file bytes.Buffer
	c := &console{file: &file}
	text := "[    1.0] booting\r\n[ 2.0] WARNING: CPU: 0 at x.c\r\n" + strings.Repeat("x", 2*longLine) + " BUG: not seen\n[ 3.0] Oops: 0002 [#1]\n[ 3.1] Kernel panic - not syncing: Fatal exception\nthe end"
	for len(text) > 0 {
		n := min(7, len(text))
		if k, err := c.Write([]byte(text[:n])); k != n || err != nil {
			t.Fatal(k, err)
		}
		text = text[n:]
	}
	if got := c.end(); got != "[ 3.0] Oops: 0002 [#1]" {
		t.Errorf("%q", got)
	}
	if got := c.bugs(); !slices.Equal(got, []string{"[ 2.0] WARNING: CPU: 0 at x.c"}) {
		t.Errorf("%q", got)
	}
	if got := c.tail(); !strings.HasPrefix(got, "[    1.0] booting\n") || !strings.HasSuffix(got, "Fatal exception\nthe end") || len(got) > 2*longLine {
		t.Errorf("%d bytes", len(got))
	}
	if !strings.HasSuffix(file.String(), "\nthe end") || c.err() != nil {
		t.Errorf("the file, %v", c.err())
	}
	for range 2 * keptLines {
		if _, err := c.Write([]byte("line\n")); err != nil {
			t.Fatal(err)
		}
	}
	if got := strings.Count(c.tail(), "line"); got != keptLines {
		t.Errorf("%d lines are kept", got)
	}
	full := errors.New("full")
	c = &console{file: failing{full}}
	if _, err := c.Write([]byte("x\n")); err != nil || !errors.Is(c.err(), full) || c.tail() != "x" {
		t.Errorf("a file that is full: %v, %v", err, c.err())
	}
	if c.end() != "" || len(c.bugs()) > 0 {
		t.Error("bad news of nothing")
	}
	// What was provoked is taken out.
	fault := []string{"DMAR: DRHD: handling fault status reg 3", "DMAR: [DMA Read NO_PASID] Request device [00:01.0] fault addr 0x1000"}
	for _, l := range append(fault, "WARNING: at y.c") {
		if _, err := c.Write([]byte(l + "\n")); err != nil {
			t.Fatal(err)
		}
	}
	if got := c.take("DMAR: "); !slices.Equal(got, fault) || len(c.take("DMAR: ")) > 0 || !slices.Equal(c.bugs(), []string{"WARNING: at y.c"}) {
		t.Errorf("taken %q, left %q", got, c.bugs())
	}
}

type failing struct{ err error }

func (f failing) Write([]byte) (int, error) { return 0, f.err }

func FuzzConsole(f *testing.F) {
	f.Add([]byte("a\nKernel panic - not syncing\n\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		whole, parts := &console{file: &bytes.Buffer{}}, &console{file: &bytes.Buffer{}}
		_, _ = whole.Write(b)
		for i := range b {
			_, _ = parts.Write(b[i : i+1])
		}
		if whole.tail() != parts.tail() || whole.end() != parts.end() || !slices.Equal(whole.bugs(), parts.bugs()) {
			t.Errorf("%q and %q", whole.tail(), parts.tail())
		}
	})
}

// TestNoQEMU: what the start of a guest leaves behind when there is no QEMU.
func TestNoQEMU(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("QEMU is started on Linux")
	}
	dir := t.TempDir()
	empty := filepath.Join(dir, "empty")
	if err := os.WriteFile(empty, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	c := Config{Tree: treeWith(debian.QEMUX86), Kernel: &kernel.Kernel{Arch: "amd64", Release: "7"}, Dir: dir, Init: empty}
	if _, err := Boot(t.Context(), c); !errors.Is(err, os.ErrNotExist) || !strings.Contains(err.Error(), "guest amd64, linux 7: start QEMU: ") {
		t.Errorf("%v", err)
	}
	c.Init = filepath.Join(dir, "none")
	if _, err := Boot(t.Context(), c); !errors.Is(err, os.ErrNotExist) || !strings.Contains(err.Error(), "make the initrd") {
		t.Errorf("no program: %v", err)
	}
	c.Init, c.Programs = empty, map[string]string{"a/b": empty}
	if _, err := Boot(t.Context(), c); !errors.Is(err, ErrConfig) {
		t.Errorf("a program in a folder: %v", err)
	}
	c.Programs, c.Modules = nil, []kernel.Module{{Name: "a", File: empty}, {Name: "a", File: empty}}
	if _, err := Boot(t.Context(), c); !errors.Is(err, os.ErrExist) {
		t.Errorf("two modules of one name: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	c.Modules, c.Init = nil, ""
	if _, err := Boot(ctx, c); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	if err := Build(t.Context(), "amd64", filepath.Join(dir, "x"), "no/such/package"); err == nil || !strings.Contains(err.Error(), "no/such/package") {
		t.Errorf("no package: %v", err)
	}
}
