package debian

import (
	"bufio"
	"bytes"
	"fmt"
	"net/url"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// The suites: QEMU 11 came to Debian 13 by way of its backports.
const (
	suite     = "trixie"
	backports = "trixie-backports"
)

// port is what is different between the architectures of the machine.
type port struct {
	arch   string // Debian's name
	loader string // the dynamic loader in the tree
	triple string // of the folder of libraries
}

func portOf(goarch string) (port, bool) {
	switch goarch {
	case "amd64":
		return port{"amd64", "usr/lib64/ld-linux-x86-64.so.2", "x86_64-linux-gnu"}, true
	case "arm64":
		return port{"arm64", "usr/lib/ld-linux-aarch64.so.1", "aarch64-linux-gnu"}, true
	}
	return port{}, false
}

// sourcesFile is the source of the two suites, for apt.
func sourcesFile(m mirror, archs []string) string {
	s := fmt.Sprintf("Types: deb\nURIs: %s\nSuites: %s %s\nComponents: main\nArchitectures: %s\n", m.uri, suite, backports, strings.Join(archs, " "))
	if m.signedBy != "" {
		s += "Signed-By: " + m.signedBy + "\n"
	}
	return s
}

// aptConfig is the configuration for apt below dir: how the machine's apt reaches its
// mirror, taken from machine (the output of apt-config dump), and nothing else of
// it. So no hook and no preference of the machine's takes part. The first of archs is the
// machine's.
func aptConfig(machine []byte, dir string, archs []string, root bool) string {
	var b strings.Builder
	for s := bufio.NewScanner(bytes.NewReader(machine)); s.Scan(); {
		l := s.Text()
		if strings.HasPrefix(l, "Acquire::") && !strings.HasPrefix(l, "Acquire::IndexTargets") && !strings.HasPrefix(l, "Acquire::Languages") {
			b.WriteString(l + "\n")
		}
	}
	set := func(key, value string) { fmt.Fprintf(&b, "%s %s;\n", key, strconv.Quote(value)) }
	set("Acquire::Languages", "none")
	set("Acquire::Retries", "3")
	set("APT::Update::Error-Mode", "any")
	set("APT::Architecture", archs[0])
	for _, a := range archs {
		set("APT::Architectures::", a)
	}
	set("APT::Install-Recommends", "false")
	set("APT::Install-Suggests", "false")
	if root {
		// The folder is the user's own, and may lie where _apt cannot read.
		set("APT::Sandbox::User", "root")
	}
	for _, d := range [][2]string{
		{"Dir::State", "state"}, {"Dir::State::status", "state/status"}, {"Dir::State::lists", "state/lists"}, {"Dir::Cache", "cache"}, {"Dir::Cache::archives", "cache/archives"}, {"Dir::Log", "log"},
		{"Dir::Etc::main", "etc/apt.conf"}, {"Dir::Etc::parts", "etc/apt.conf.d"}, {"Dir::Etc::preferences", "etc/preferences"},
		{"Dir::Etc::preferencesparts", "etc/preferences.d"}, {"Dir::Etc::sourcelist", "etc/sources.list"}, {"Dir::Etc::sourceparts", "etc/sources.list.d"},
	} {
		set(d[0], filepath.Join(dir, d[1]))
	}
	return b.String()
}

// Package is a package that was unpacked.
type Package struct {
	Name    string `json:"name"`
	Version string `json:"version"`
	Arch    string `json:"arch"`
	SHA256  string `json:"sha256"` // of its file
}

// file is the name that apt gives to the package's file.
func (p Package) file() string {
	return fmt.Sprintf("%s_%s_%s.deb", p.Name, strings.ReplaceAll(url.PathEscape(p.Version), ":", "%3a"), p.Arch)
}

// plan reads which packages apt would install from the output of apt-get -s: lines
// "Inst name (version origin… [arch])".
func plan(out []byte) ([]Package, error) {
	var p []Package
	for s := bufio.NewScanner(bytes.NewReader(out)); s.Scan(); {
		rest, ok := strings.CutPrefix(s.Text(), "Inst ")
		if !ok {
			continue
		}
		name, rest, _ := strings.Cut(rest, " ")
		_, rest, _ = strings.Cut(rest, "(")
		inner, _, closed := strings.Cut(rest, ")")
		f := strings.Fields(inner)
		if name == "" || !closed || len(f) < 2 {
			return nil, fmt.Errorf("apt planned %q, which names no version", s.Text())
		}
		name, _, _ = strings.Cut(name, ":")
		p = append(p, Package{Name: name, Version: f[0], Arch: strings.Trim(f[len(f)-1], "[]")})
	}
	if len(p) == 0 {
		return nil, fmt.Errorf("apt planned to install nothing")
	}
	slices.SortFunc(p, func(a, b Package) int { return strings.Compare(a.Name, b.Name) })
	return p, nil
}

// major is the first number of a version, behind the epoch.
func major(version string) (int, error) {
	if _, v, ok := strings.Cut(version, ":"); ok {
		version = v
	}
	first, _, _ := strings.Cut(version, ".")
	return strconv.Atoi(first)
}
