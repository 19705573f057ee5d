package gostmmac

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"go/ast"
	"go/format"
	"go/parser"
	"go/token"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const module = "github.com/gostmmac/gostmmac"

var update = flag.Bool("update", false, "rewrite the golden file of the API")

// allowed says what each package may import beside the standard library; an
// entry ends in /... for a tree. A package that is not listed may import
// nothing.
var allowed = map[string][]string{
	"barrier":                         {},
	"mmio":                            {"barrier"},
	"pagepool":                        {"barrier", "golang.org/x/sys/..."},
	"vfio":                            {"mmio", "vfio/internal/uapi", "golang.org/x/sys/...", "github.com/u-root/u-root/pkg/pci", "github.com/rs/zerolog"},
	"vfio/internal/uapi":              {},
	"vfio/vfiotest":                   {"vfio", "vfio/internal/uapi", "mmio", "golang.org/x/sys/..."},
	"vfio/vfiouser":                   {"vfio/internal/uapi", "mmio", "golang.org/x/sys/..."},
	"stmmac":                          {"mmio", "barrier", "pagepool", "github.com/rs/zerolog", "stmmac/internal/..."},
	"stmmac/internal/regs":            {"mmio"},
	"stmmac/internal/regs/gmac4reg":   {"mmio", "stmmac/internal/regs"},
	"stmmac/internal/regs/gmacreg":    {"mmio", "stmmac/internal/regs"},
	"stmmac/internal/checksum":        {"pagepool"},
	"stmmac/internal/pcapng":          {},
	"stmmac/internal/core":            {"mmio", "barrier", "pagepool", "stmmac/internal/checksum", "stmmac/internal/regs", "github.com/rs/zerolog"},
	"stmmac/internal/phy":             {"stmmac/internal/core"},
	"stmmac/internal/gmac":            {"mmio", "barrier", "pagepool", "stmmac/internal/core", "stmmac/internal/regs/..."},
	"stmmac/internal/gmac4":           {"mmio", "barrier", "pagepool", "stmmac/internal/core", "stmmac/internal/regs/..."},
	"stmmac/sim":                      {"mmio", "barrier", "pagepool", "golang.org/x/sys/...", "stmmac/internal/regs/...", "stmmac/internal/core"},
	"stmmac/glue":                     {"stmmac", "vfio", "mmio"},
	"stmmac/bus":                      {"stmmac", "stmmac/sim", "stmmac/glue", "vfio"},
	"netstack":                        {"stmmac", "pagepool", "github.com/rs/zerolog", "gvisor.dev/gvisor/..."},
	"hwtest":                          {}, // what is imported has the build tag
	"hwtest/peer":                     {"hwtest/rig/qtest", "stmmac", "stmmac/bus", "stmmac/sim", "pagepool", "golang.org/x/sys/..."},
	"hwtest/remote":                   {"hwtest/peer", "stmmac/bus"},
	"internal/bringup":                {"mmio", "stmmac"},       // and only tests and rigs import it
	"internal/netns":                  {"golang.org/x/sys/..."}, // and only tests and rigs import it
	"internal/pcapngtest":             {},                       // and only tests import it
	"hwtest/rig":                      {"hwtest/rig/debian", "hwtest/rig/chips", "hwtest/rig/drive", "hwtest/rig/kernel", "hwtest/rig/linuxmodel", "hwtest/rig/note", "hwtest/rig/qtest", "hwtest/rig/regcheck", "hwtest/rig/scheme", "hwtest/rig/stack", "hwtest/rig/trace", "hwtest/rig/usercheck", "stmmac/sim", "hwtest/rig/vfioplatform", "hwtest/rig/vfiopci"},
	"hwtest/rig/vfiopci":              {"hwtest/rig/cards", "hwtest/rig/chips", "hwtest/rig/debian", "hwtest/rig/guest", "hwtest/rig/guest/jobs", "hwtest/rig/kernel", "hwtest/rig/note", "hwtest/rig/vfiopci/said", "stmmac/sim", "vfio"},
	"hwtest/rig/vfiopci/said":         {},
	"hwtest/rig/vfiopci/station":      {"hwtest/peer", "hwtest/rig/vfiopci/said", "pagepool", "stmmac", "stmmac/bus", "vfio", "golang.org/x/sys/..."},
	"hwtest/rig/linuxmodel":           {"hwtest/rig/cards", "hwtest/rig/chips", "hwtest/rig/debian", "hwtest/rig/guest/ethtool", "hwtest/rig/guest/jobs", "hwtest/rig/kernel", "hwtest/rig/note", "hwtest/rig/pair", "stmmac/sim"},
	"hwtest/rig/vfioplatform":         {"hwtest/rig/debian", "hwtest/rig/guest", "hwtest/rig/guest/jobs", "hwtest/rig/kernel", "hwtest/rig/note"},
	"hwtest/rig/vfioplatform/station": {"hwtest/rig/guest/jobs", "internal/netns", "mmio", "pagepool", "stmmac", "stmmac/bus", "vfio"},
	"hwtest/rig/pair":                 {"hwtest/rig/cards", "hwtest/rig/chips", "hwtest/rig/debian", "hwtest/rig/guest", "hwtest/rig/kernel", "stmmac/sim", "hwtest/rig/guest/jobs"},
	"hwtest/rig/cards":                {"hwtest/rig/chips", "hwtest/rig/guest", "hwtest/rig/guest/jobs", "hwtest/rig/kernel", "stmmac/sim"},
	"hwtest/rig/chips":                {"mmio", "stmmac/sim", "vfio/vfiouser"},
	"hwtest/rig/modelserver":          {"hwtest/rig/chips", "stmmac/sim"},
	"hwtest/rig/scheme":               {"hwtest/rig/debian", "hwtest/rig/qtest", "stmmac", "stmmac/bus"},
	"hwtest/rig/drive":                {"barrier", "hwtest/rig/note", "hwtest/rig/scheme", "hwtest/rig/qtest", "mmio", "pagepool", "stmmac"},
	"hwtest/rig/note":                 {},
	"hwtest/rig/trace":                {"hwtest/rig/drive", "hwtest/rig/note", "hwtest/rig/qtest", "internal/bringup", "mmio", "stmmac"},
	"hwtest/rig/stack":                {"hwtest/rig/scheme", "hwtest/rig/qtest", "netstack", "stmmac"},
	"hwtest/rig/debian":               {},
	"hwtest/rig/kernel":               {"hwtest/rig/debian"},
	"hwtest/rig/qemu":                 {"golang.org/x/sys/..."},
	"hwtest/rig/qtest":                {"mmio", "hwtest/rig/qemu", "golang.org/x/sys/..."},
	"hwtest/rig/usercheck":            {"hwtest/rig/qemu", "vfio/vfiouser", "golang.org/x/sys/..."},
	"hwtest/rig/guest":                {"hwtest/rig/debian", "hwtest/rig/kernel", "hwtest/rig/qemu", "hwtest/rig/guest/channel", "hwtest/rig/guest/initrd", "hwtest/rig/guest/jobs", "golang.org/x/sys/..."},
	"hwtest/rig/guest/channel":        {},
	"hwtest/rig/guest/ethtool":        {"golang.org/x/sys/..."},
	"hwtest/rig/guest/init":           {"hwtest/rig/guest/channel", "hwtest/rig/guest/jobs", "golang.org/x/sys/..."},
	"hwtest/rig/guest/initrd":         {},
	"hwtest/rig/guest/jobs":           {"hwtest/rig/guest/ethtool", "internal/netns", "golang.org/x/sys/..."},
	"hwtest/rig/regcheck":             {"barrier", "mmio", "stmmac"},
	"examples/echo":                   {"examples/internal/cli", "stmmac", "stmmac/bus", "stmmac/sim", "netstack", "pagepool", "github.com/rs/zerolog"},
	"examples/internal/cli":           {"stmmac/bus", "vfio"},
	"examples/internal/clitest":       {}, // and only tests import it
	"examples/stmmacctl":              {"stmmac", "stmmac/bus", "stmmac/glue", "pagepool", "vfio", "examples/internal/cli"},
	"examples/forwarder":              {"examples/internal/cli", "stmmac", "stmmac/bus", "stmmac/sim", "pagepool", "github.com/rs/zerolog", "golang.org/x/sys/..."},
}

// testOnly may be imported by tests beside what their package may, and beside
// all packages of the module.
var testOnly = []string{"github.com/google/go-cmp/...", "pgregory.net/rapid", "golang.org/x/sys/..."}

type listed struct {
	ImportPath, Dir                    string
	Imports, TestImports, XTestImports []string
	Standard                           bool
}

func list(t *testing.T) []listed {
	t.Helper()
	out, err := exec.Command("go", "list", "-json=ImportPath,Dir,Imports,TestImports,XTestImports", "./...").Output()
	if errors.Is(err, exec.ErrNotFound) {
		t.Skip("the go command is not in PATH: ", err)
	} else if err != nil {
		t.Fatal(err)
	}
	var pkgs []listed
	for d := json.NewDecoder(bytes.NewReader(out)); ; {
		var p listed
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			return pkgs
		} else if err != nil {
			t.Fatal(err)
		}
		pkgs = append(pkgs, p)
	}
}

func standard(path string) bool {
	first, _, _ := strings.Cut(path, "/")
	return !strings.Contains(first, ".")
}

func matches(path string, patterns []string) bool {
	path = strings.TrimPrefix(path, module+"/")
	for _, p := range patterns {
		if tree, ok := strings.CutSuffix(p, "/..."); ok && (path == tree || strings.HasPrefix(path, tree+"/")) || path == p {
			return true
		}
	}
	return false
}

// TestImports holds the allowed imports of every package.
func TestImports(t *testing.T) {
	for _, p := range list(t) {
		name := strings.TrimPrefix(strings.TrimPrefix(p.ImportPath, module), "/")
		if name == "" {
			name = "."
		}
		ok, known := allowed[name]
		if !known && name != "." {
			t.Errorf("%s is not in the table of allowed imports", name)
		}
		for _, imp := range p.Imports {
			if !standard(imp) && !matches(imp, ok) {
				t.Errorf("%s imports %s", name, imp)
			}
		}
		for _, imp := range slices.Concat(p.TestImports, p.XTestImports) {
			if !standard(imp) && !strings.HasPrefix(imp, module) && !matches(imp, testOnly) && !matches(imp, ok) {
				t.Errorf("a test of %s imports %s", name, imp)
			}
		}
		if _, err := os.Stat(filepath.Join(p.Dir, "doc.go")); err != nil {
			t.Errorf("%s has no doc.go", name)
		}
	}
}

// TestNoGVisor holds that who imports no netstack links no gVisor: its API changes
// often, and it is larger than all else together.
func TestNoGVisor(t *testing.T) {
	const gvisor = "gvisor.dev/"
	var free []string
	for name, imports := range allowed {
		if name != "netstack" && !mayReach(imports, "netstack") {
			free = append(free, "./"+name)
		}
	}
	for _, p := range deps(t, free...) {
		if strings.HasPrefix(p, gvisor) {
			t.Errorf("one of %v depends on %s", free, p)
		}
	}
	if !slices.ContainsFunc(deps(t, "./netstack"), func(p string) bool { return strings.HasPrefix(p, gvisor) }) {
		t.Error("netstack does not depend on gVisor: the list is not that of dependencies")
	}
}

// mayReach says whether imports, or what they may import, have a package.
func mayReach(imports []string, pkg string) bool {
	return slices.ContainsFunc(imports, func(i string) bool { return i == pkg || mayReach(allowed[i], pkg) })
}

// deps lists what packages depend on.
func deps(t *testing.T, packages ...string) []string {
	t.Helper()
	out, err := exec.Command("go", append([]string{"list", "-deps"}, packages...)...).Output()
	if errors.Is(err, exec.ErrNotFound) {
		t.Skip("the go command is not in PATH: ", err)
	} else if err != nil {
		t.Fatal(err)
	}
	return strings.Fields(string(out))
}

// TestAPI compares the exported declarations of the packages that users import
// with api.golden, so that a change of the API is a change of that file.
// internal/core is in it because stmmac shows its types by alias.
func TestAPI(t *testing.T) {
	var b bytes.Buffer
	for _, dir := range []string{"barrier", "mmio", "pagepool", "vfio", "vfio/vfiotest", "vfio/vfiouser", "stmmac", "stmmac/internal/core", "stmmac/sim", "stmmac/glue", "stmmac/bus", "netstack"} {
		if err := exported(&b, dir); err != nil {
			t.Fatal(err)
		}
	}
	if *update {
		if err := os.WriteFile("api.golden", b.Bytes(), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile("api.golden")
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(string(want), b.String()); d != "" {
		t.Errorf("the exported API changed; if that is meant, run go test . -update (-old +new):\n%s", d)
	}
}

// exported prints the exported declarations of a package on Linux, without
// comments and bodies.
func exported(w *bytes.Buffer, dir string) error {
	fset := token.NewFileSet()
	w.WriteString("== " + dir + "\n")
	var files []string
	err := fs.WalkDir(os.DirFS(dir), ".", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && path != ".":
			return fs.SkipDir
		case strings.HasSuffix(path, ".go") && !strings.HasSuffix(path, "_test.go") &&
			!strings.HasSuffix(path, "_other.go") && !strings.HasSuffix(path, "_generic.go"):
			files = append(files, path)
		}
		return nil
	})
	if err != nil {
		return err
	}
	var decls []string
	for _, file := range files {
		f, err := parser.ParseFile(fset, filepath.Join(dir, file), nil, 0)
		if err != nil {
			return err
		}
		ast.FileExports(f)
		for _, d := range f.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok {
				fn.Body = nil
			} else if g := d.(*ast.GenDecl); g.Tok == token.IMPORT {
				continue
			}
			var one bytes.Buffer
			if err := format.Node(&one, fset, d); err != nil {
				return err
			}
			decls = append(decls, one.String())
		}
	}
	slices.Sort(decls)
	for _, d := range slices.Compact(decls) {
		w.WriteString(d + "\n")
	}
	return nil
}
