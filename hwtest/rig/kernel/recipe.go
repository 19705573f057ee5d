package kernel

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/gostmmac/gostmmac/hwtest/rig/debian"
)

// kbuild has a folder <arch>/<set> for each set of modules: files that take the place of
// those of the kernel's source or stand beside them.
//
//go:embed kbuild
var kbuild embed.FS

// Sets of modules that are built.
const (
	Stmmac = "stmmac"
	VFIO   = "vfio"
)

// part is a file or folder of the kernel's source that is part of a set.
type part struct{ from, to string }

// set is what is built in one folder.
type set struct {
	name  string
	parts []part
	glue  bool // the glue is beside it
	// spans says where the iterator over spans of an interval tree goes, which kernels
	// without iommufd do not have.
	spans string
}

// recipe is what is kept of a kernel and built for it.
type recipe struct {
	arch string
	sets []set
	// stock are modules of Debian's that are kept, beside those that they and the sets need.
	stock []string
}

const (
	stmmacSource = "drivers/net/ethernet/stmicro/stmmac"
	vfioSource   = "drivers/vfio"
	iommuSource  = "drivers/iommu"
	spanSource   = "lib/interval_tree.c"
)

// recipes returns those of all architectures.
func recipes() []recipe {
	common := []string{"stmmac", "motorcomm", "8021q", "macvlan", "veth", "tun", "dummy", "vfio-pci", "vfio_iommu_type1"}
	return []recipe{
		{arch: "amd64", stock: append([]string{"dwmac-motorcomm", "dwmac-intel"}, common...), sets: []set{
			{name: Stmmac, parts: []part{{stmmacSource, "."}}, glue: true},
			{name: VFIO, spans: "iommu/iommufd/span_iter.c", parts: []part{
				{vfioSource, "vfio"}, {iommuSource + "/iommufd", "iommu/iommufd"},
				{iommuSource + "/iommu-priv.h", "iommu/iommu-priv.h"}, {iommuSource + "/iommu-pages.h", "iommu/iommu-pages.h"},
			}},
		}},
		{arch: "arm64", stock: append([]string{"stmmac-platform", "dwmac-generic"}, common...), sets: []set{
			{name: VFIO, parts: []part{{vfioSource, "."}}},
		}},
	}
}

// Archs are the architectures of the kernels, in Debian's words.
func Archs() []string {
	var all []string
	for _, r := range recipes() {
		all = append(all, r.arch)
	}
	return all
}

// Packages are what the cache folder's tree has to have for the kernels: what builds
// modules, and QEMU with the compiler of device trees that guests start with.
func Packages() []string {
	return []string{
		debian.QEMUArm, debian.QEMUX86,
		"base-files", "binutils", "coreutils", "dash", "device-tree-compiler", "findutils", "gcc-14-aarch64-linux-gnu", "gcc-14-x86-64-linux-gnu",
		"grep", "libelf1t64", "libssl3t64", "make", "mawk", "sed", "tar", "xz-utils", "zlib1g",
	}
}

// sources are the paths of the kernel's source that the recipe takes.
func (r recipe) sources() []string {
	all := []string{spanSource}
	for _, s := range r.sets {
		for _, p := range s.parts {
			all = append(all, p.from)
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// sum tells one recipe from another: all that is not the kernel's own goes into it.
func (r recipe) sum(glue string) (string, error) {
	h := sha256.New()
	fmt.Fprintf(h, "%+v\n", r)
	add := func(name string, b []byte) { fmt.Fprintf(h, "%s %d\n%s", name, len(b), b) }
	err := fs.WalkDir(kbuild, path.Join("kbuild", r.arch), func(p string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := kbuild.ReadFile(p)
		add(p, b)
		return err
	})
	if err != nil {
		return "", err
	}
	if slices.ContainsFunc(r.sets, func(s set) bool { return s.glue }) {
		files, err := glueFiles(glue)
		if err != nil {
			return "", err
		}
		for _, f := range files {
			b, err := os.ReadFile(f)
			if err != nil {
				return "", err
			}
			add(filepath.Base(f), b)
		}
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// spanIterator cuts the iterator out of the source of interval trees: the first lines,
// which include its headers, and what is only compiled with its option.
func spanIterator(source string) (string, error) {
	const option = "#ifdef CONFIG_INTERVAL_TREE_SPAN_ITER"
	var head []string
	for l := range strings.Lines(source) {
		if strings.HasPrefix(l, "#include") || strings.HasPrefix(l, "// SPDX") {
			head = append(head, l)
		}
	}
	_, rest, found := strings.Cut(source, option)
	body, _, closed := strings.Cut(rest, "#endif")
	if !found || !closed || len(head) == 0 {
		return "", fmt.Errorf("%s of the kernel's source has no part with %q", spanSource, option)
	}
	return strings.Join(head, "") + body, nil
}
