package debian

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Kernel is a kernel of the suites with what builds modules for it. Its packages are
// kept as they are and are not part of the tree: [Tree.Unpack] puts them somewhere.
type Kernel struct {
	Arch    string    `json:"arch"`    // Debian's name
	Release string    `json:"release"` // what uname -r says
	Version string    `json:"version"` // of the packages
	Image   []Package `json:"image"`   // the kernel and its modules
	Headers []Package `json:"headers"` // with programs for the machine that builds
	Source  []Package `json:"source"`  // one, with /usr/src/linux-source-….tar.xz
}

// packages are all packages of the kernel, those that two kernels share too.
func (k *Kernel) packages() []Package { return slices.Concat(k.Image, k.Headers, k.Source) }

// kernelArchs are the architectures of which Kernels can be asked for.
var kernelArchs = []string{"amd64", "arm64"}

// Kernel returns the kernel for an architecture. One that the folder was filled without is
// an error that is ErrIncomplete.
func (t *Tree) Kernel(arch string) (*Kernel, error) {
	for i, k := range t.Manifest.Kernels {
		if k.Arch == arch {
			return &t.Manifest.Kernels[i], nil
		}
	}
	return nil, &Error{"open " + filepath.Dir(t.Dir), fmt.Errorf("%w: it was filled without the kernel for %s", ErrIncomplete, arch), "go run ./hwtest/rig setup adds it"}
}

// archs are the architectures of the kernels.
func (m *Manifest) archs() []string {
	var all []string
	for _, k := range m.Kernels {
		all = append(all, k.Arch)
	}
	return all
}

// kept are the packages that the folder keeps: those of the tree and those of the kernels,
// each once.
func (m *Manifest) kept() []Package {
	all := slices.Clone(m.Packages)
	for _, k := range m.Kernels {
		all = append(all, k.packages()...)
	}
	slices.SortFunc(all, func(a, b Package) int { return strings.Compare(a.file(), b.file()) })
	return slices.Compact(all)
}

// fetchKernels looks for the newest kernels of the backports and downloads them.
func (s *setup) fetchKernels(ctx context.Context) ([]Kernel, error) {
	var all []Kernel
	for _, arch := range s.Kernels {
		k, err := s.findKernel(ctx, arch)
		if err != nil {
			return nil, err
		}
		s.say("downloading linux %s of version %s with headers and source", k.Release, k.Version)
		args := []string{"-c", `cd "$1" && shift && exec apt-get -q download "$@"`, "sh", filepath.Dir(s.archive(Package{}))}
		for _, p := range k.packages() {
			args = append(args, p.Name+qualifier(p)+"="+p.Version)
		}
		if _, err := s.call(ctx, "download the kernel for "+arch, "sh", args...); err != nil {
			return nil, err
		}
		for _, list := range [][]Package{k.Image, k.Headers, k.Source} {
			for i := range list {
				if list[i].SHA256, err = sum(s.archive(list[i])); err != nil {
					return nil, &Error{"look at the kernel for " + arch, err, ""}
				}
			}
		}
		all = append(all, k)
	}
	return all, nil
}

// qualifier is the architecture behind the name of a package, as apt takes it.
func qualifier(p Package) string {
	if p.Arch == "all" {
		return ""
	}
	return ":" + p.Arch
}

// findKernel looks up which packages make the kernel. The package linux-image-<arch> depends
// on the image of one release. That one, and the headers of the release, depend on others
// with the release in the name: which these are has changed over time.
func (s *setup) findKernel(ctx context.Context, arch string) (k Kernel, err error) {
	op := "look for the kernel for " + arch
	meta, err := s.show(ctx, op, "linux-image-"+arch+":"+arch)
	if err != nil {
		return k, err
	}
	k = Kernel{Arch: arch, Version: meta.Version}
	for _, d := range meta.depends {
		if r, ok := strings.CutPrefix(d, "linux-image-"); ok && strings.HasSuffix(r, "-"+arch) {
			k.Release = r
		}
	}
	base := strings.TrimSuffix(k.Release, "-"+arch)
	number := strings.SplitN(base, ".", 3)
	if len(number) < 2 {
		return k, &Error{op, fmt.Errorf("linux-image-%s %s depends on no image of a release: %w", arch, k.Version, errors.ErrUnsupported), ""}
	}
	if k.Image, err = s.closure(ctx, op, k, base, "linux-image-"+k.Release); err != nil {
		return k, err
	}
	if k.Headers, err = s.closure(ctx, op, k, base, "linux-headers-"+k.Release); err != nil {
		return k, err
	}
	source, err := s.show(ctx, op, fmt.Sprintf("linux-source-%s.%s=%s", number[0], number[1], k.Version))
	k.Source = []Package{source.Package}
	return k, err
}

// closure is a package of a kernel with all that it needs of the same kernel.
func (s *setup) closure(ctx context.Context, op string, k Kernel, base, name string) ([]Package, error) {
	var all []Package
	names := []string{name}
	for i := 0; i < len(names); i++ {
		qualified := names[i]
		if strings.HasSuffix(qualified, "-"+k.Arch) {
			qualified += ":" + k.Arch
		}
		p, err := s.show(ctx, op, qualified+"="+k.Version)
		if err != nil {
			return nil, err
		}
		all = append(all, p.Package)
		for _, d := range p.depends {
			if strings.HasPrefix(d, "linux-") && strings.Contains(d, base) && !slices.Contains(names, d) {
				names = append(names, d)
			}
		}
	}
	return all, nil
}

// stanza is what apt knows of a version of a package.
type stanza struct {
	Package
	depends []string // names, of alternatives the first
}

// show returns what apt would take for name, which may have an architecture and a version.
func (s *setup) show(ctx context.Context, op, name string) (stanza, error) {
	out, err := s.call(ctx, op, "apt-cache", "-o", "APT::Default-Release="+backports, "--no-all-versions", "show", name)
	if err != nil {
		return stanza{}, err
	}
	p, err := parseStanza(out)
	if err != nil {
		return stanza{}, &Error{op, fmt.Errorf("%s: %w", name, err), ""}
	}
	return p, nil
}

// parseStanza reads the first paragraph of the output of apt-cache show.
func parseStanza(out []byte) (p stanza, err error) {
	lines := bufio.NewScanner(bytes.NewReader(out))
	lines.Buffer(nil, 1<<20)
	for lines.Scan() && lines.Text() != "" {
		key, value, _ := strings.Cut(lines.Text(), ": ")
		switch key {
		case "Package":
			p.Name = value
		case "Version":
			p.Version = value
		case "Architecture":
			p.Arch = value
		case "Depends":
			for d := range strings.SplitSeq(value, ",") {
				if f := strings.Fields(d); len(f) > 0 {
					name, _, _ := strings.Cut(f[0], ":")
					p.depends = append(p.depends, name)
				}
			}
		}
	}
	if err := lines.Err(); err != nil {
		return stanza{}, err
	}
	if !areNames([]string{p.Name}) || p.Version == "" || p.Arch == "" {
		return stanza{}, fmt.Errorf("apt knows no package, version and architecture: %w", os.ErrNotExist)
	}
	return p, nil
}
