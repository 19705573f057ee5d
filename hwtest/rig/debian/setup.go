package debian

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"
)

// Options says what Setup does.
type Options struct {
	// Dir is the cache folder, which is made when it is not there. It must be
	// given.
	Dir string
	// Mirror is the address of a mirror of Debian; "" takes that of the
	// machine's apt sources.
	Mirror string
	// Packages are what the folder is to hold, with all that they depend on, beside
	// what it holds already; none is QEMUArm alone.
	Packages []string
	// Kernels are architectures in Debian's words, amd64 or arm64, of which the folder is
	// to hold the newest kernel of the backports with headers and source, beside those
	// that it holds already.
	Kernels []string
	// Progress gets a line for each step.
	Progress io.Writer
}

// machine is what Setup needs of the machine it runs on.
type machine struct {
	etc    fs.FS // /etc/apt
	goos   string
	goarch string
	root   bool
	free   func(dir string) (uint64, error) // bytes that may be written below dir
	lock   func(file string) (unlock func() error, err error)
	exists func(file string) bool
	// run runs a program and returns its standard output; log gets the rest.
	run func(ctx context.Context, log io.Writer, env []string, name string, args ...string) ([]byte, error)
}

func thisMachine() machine {
	return machine{
		etc: os.DirFS("/etc/apt"), goos: runtime.GOOS, goarch: runtime.GOARCH, root: os.Geteuid() == 0, free: freeBytes, lock: lockFile,
		exists: func(f string) bool { _, err := os.Stat(f); return err == nil },
		run: func(ctx context.Context, log io.Writer, env []string, name string, args ...string) ([]byte, error) {
			var out bytes.Buffer
			c := exec.CommandContext(ctx, name, args...)
			// What the program started may hold its output open when it is ended.
			c.WaitDelay = waitDelay
			c.Env = append(append(os.Environ(), "LC_ALL=C.UTF-8", "DEBIAN_FRONTEND=noninteractive"), env...)
			// Two goroutines copy the two streams.
			shared := &locked{w: log}
			c.Stdout, c.Stderr = io.MultiWriter(&out, shared), shared
			err := c.Run()
			if ctx.Err() != nil {
				err = ctx.Err()
			}
			return out.Bytes(), err
		},
	}
}

// waitDelay is how long the output of a program that was ended is waited for.
const waitDelay = 5 * time.Second

// locked is a writer for several goroutines.
type locked struct {
	mu sync.Mutex
	w  io.Writer
}

func (l *locked) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.w.Write(b)
}

// What a cache folder takes: 45 MB of packages, 35 MB of lists, and twice a tree of
// 239 MB while it is made anew (Debian 13 with both packages of QEMU 11.1).
const needBytes = 700 << 20

// What kernels take beside that: 420 MB of packages with those of the tools that build
// modules, 450 MB of these tools in a tree, and 1 GB while modules are built.
const needForKernels = 2500 << 20

// debianKeyring is where the package debian-archive-keyring puts Debian's keys.
const debianKeyring = "/usr/share/keyrings/debian-archive-keyring.gpg"

// setup is one run of Setup.
type setup struct {
	machine
	Options
	port port
	apt  string
	log  *os.File
	env  []string
	// begin is only for what is shown.
	begin time.Time
}

// Setup fills a cache folder with QEMU and what it depends on, and returns its tree. A
// folder that holds everything is not touched. One of which a part is missing is
// repaired, from the packages that it keeps when these are whole, else with those that
// the suites have now. Two calls for one folder, of any process, wait for each other.
func Setup(ctx context.Context, o Options) (*Tree, error) { return thisMachine().setup(ctx, o) }

func (m machine) setup(ctx context.Context, o Options) (t *Tree, err error) {
	s := &setup{machine: m, Options: o, begin: time.Now()}
	if s.Progress == nil {
		s.Progress = io.Discard
	}
	var ok bool
	if s.port, ok = portOf(m.goarch); !ok || m.goos != "linux" {
		return nil, &Error{"start", fmt.Errorf("QEMU for %s/%s: %w", m.goos, m.goarch, errors.ErrUnsupported), "use a machine with Linux on amd64 or arm64"}
	}
	if s.Dir, err = filepath.Abs(o.Dir); err != nil {
		return nil, &Error{"start", err, ""}
	}
	if strings.ContainsAny(s.Dir, ":;\"\n") {
		return nil, &Error{"start", fmt.Errorf("the folder %q: the dynamic loader and apt take no such name: %w", s.Dir, errors.ErrUnsupported), "name another with -cache"}
	}
	s.apt = filepath.Join(s.Dir, aptName)
	for _, d := range []string{"etc/apt.conf.d", "etc/preferences.d", "etc/sources.list.d", "state/lists/partial", "cache/archives/partial", "log"} {
		if err := os.MkdirAll(filepath.Join(s.apt, d), 0o755); err != nil {
			return nil, &Error{"make the cache folder", err, "name another with -cache"}
		}
	}
	unlock, err := s.lock(filepath.Join(s.Dir, lockName))
	if err != nil {
		return nil, &Error{"lock the cache folder", err, ""}
	}
	defer func() { err = errors.Join(err, unlock()) }()

	if len(s.Packages) == 0 {
		s.Packages = []string{QEMUArm}
	}
	old, err := read(s.Dir)
	if err == nil {
		if err = errors.Join(old.lacks(s.Packages), old.hasKernels(s.Kernels), old.check()); err == nil {
			return old, nil
		}
		s.Packages = slices.Concat(s.Packages, old.Manifest.Wanted)
		s.Kernels = slices.Concat(s.Kernels, old.Manifest.archs())
	}
	s.Packages, s.Kernels = sorted(s.Packages), sorted(s.Kernels)
	if !areNames(s.Packages) {
		return nil, &Error{"start", fmt.Errorf("%w: one of %q is no name of a package", os.ErrInvalid, s.Packages), ""}
	}
	for _, arch := range s.Kernels {
		if !slices.Contains(kernelArchs, arch) {
			return nil, &Error{"start", fmt.Errorf("a kernel for %q: %w", arch, errors.ErrUnsupported), fmt.Sprintf("there are those for %q", kernelArchs)}
		}
	}
	s.say("%v", err)
	if s.log, err = os.Create(filepath.Join(s.Dir, "setup.log")); err != nil {
		return nil, &Error{"make the log", err, ""}
	}
	defer func() { err = errors.Join(err, s.log.Close()) }()
	if n, err := s.free(s.Dir); err != nil {
		return nil, &Error{"look for disk space", err, ""}
	} else if need := s.need(); n < need {
		return nil, &Error{"look for disk space", fmt.Errorf("%w: %d MiB are free in %s and %d are needed", ErrDisk, n>>20, s.Dir, need>>20), "free some, or name a folder elsewhere with -cache"}
	}
	manifest := &Manifest{}
	if old != nil && slices.Equal(old.Manifest.Wanted, s.Packages) && slices.Equal(old.Manifest.archs(), s.Kernels) && s.whole(old.Manifest.kept()) {
		s.say("the packages that the folder keeps are whole")
		manifest = &old.Manifest
	} else if manifest, err = s.fetch(ctx); err != nil {
		return nil, err
	}
	return s.unpack(ctx, manifest)
}

// sorted returns names in order, each once.
func sorted(names []string) []string { return slices.Compact(slices.Sorted(slices.Values(names))) }

// areNames says whether all are names of packages (Debian Policy 5.6.1), and so no options
// of apt.
func areNames(all []string) bool {
	return len(all) > 0 && !slices.ContainsFunc(all, func(n string) bool {
		return len(n) < 2 || strings.Trim(n, "abcdefghijklmnopqrstuvwxyz0123456789+-.") != "" || strings.ContainsAny(n[:1], "+-.")
	})
}

// need is how many bytes must be free.
func (s *setup) need() uint64 {
	if len(s.Kernels) > 0 {
		return needBytes + needForKernels
	}
	return needBytes
}

// say reports what is done now, with the seconds since the start.
func (s *setup) say(format string, args ...any) {
	fmt.Fprintf(s.Progress, "rig setup: %3.0f s: "+format+"\n", append([]any{time.Since(s.begin).Seconds()}, args...)...)
}

// fetch downloads the packages.
func (s *setup) fetch(ctx context.Context) (*Manifest, error) {
	from, err := s.source()
	if err != nil {
		return nil, err
	}
	conf, err := s.call(ctx, "read the configuration of apt", "apt-config", "dump")
	if err != nil {
		return nil, err
	}
	for name, content := range map[string]string{
		"rig.conf":                     aptConfig(conf, s.apt, s.archs(), s.root),
		"etc/sources.list.d/1.sources": sourcesFile(from, s.archs()),
		"state/status":                 "", // nothing is installed
	} {
		if err := os.WriteFile(filepath.Join(s.apt, name), []byte(content), 0o600); err != nil {
			return nil, &Error{"configure apt", err, ""}
		}
	}
	s.env = []string{"APT_CONFIG=" + filepath.Join(s.apt, "rig.conf")}

	s.say("reading the package lists of %s and %s", suite, backports)
	if _, err := s.call(ctx, "read the package lists", "apt-get", "-q", "update"); err != nil {
		return nil, err
	}
	install := append([]string{"-q", "-y", "-t", backports, "install"}, s.Packages...)
	out, err := s.call(ctx, "plan", "apt-get", append([]string{"-s"}, install...)...)
	if err != nil {
		return nil, err
	}
	packages, err := plan(out)
	if err != nil {
		return nil, &Error{"plan", err, ""}
	}
	m := &Manifest{Arch: s.port.arch, Suites: []string{suite, backports}, Mirror: public(from.uri), Wanted: s.Packages, Packages: packages}
	for _, p := range s.Packages {
		if v := m.Version(p); systems[p] != "" {
			if n, err := major(v); err != nil || n < minQEMU {
				return nil, &Error{"plan", fmt.Errorf("%w: %s %q, and %d is needed", ErrTooOld, p, v, minQEMU), "name a mirror that has " + backports + " with -mirror"}
			}
		}
	}
	s.say("downloading %d packages, among them %s", len(packages), m.wanted())
	if _, err := s.call(ctx, "download", "apt-get", append([]string{"--download-only"}, install...)...); err != nil {
		return nil, err
	}
	for i := range packages {
		if packages[i].SHA256, err = sum(s.archive(packages[i])); err != nil {
			return nil, &Error{"look at the packages", err, ""}
		}
	}
	if m.Kernels, err = s.fetchKernels(ctx); err != nil {
		return nil, err
	}
	return m, nil
}

// archs are the architectures of packages, that of the machine first.
func (s *setup) archs() []string {
	all := []string{s.port.arch}
	for _, a := range s.Kernels {
		if !slices.Contains(all, a) {
			all = append(all, a)
		}
	}
	return all
}

// source returns the mirror.
func (s *setup) source() (mirror, error) {
	from := mirror{uri: s.Mirror}
	if s.Mirror == "" {
		var err error
		if from, err = findMirror(s.etc); err != nil {
			return mirror{}, &Error{"look for a mirror", err, "name one with -mirror"}
		}
	} else if u, err := url.Parse(s.Mirror); err != nil || u.Scheme == "" || strings.ContainsAny(s.Mirror, " \t\r\n") {
		return mirror{}, &Error{"look for a mirror", fmt.Errorf("%w: %q is no address", ErrNoMirror, s.Mirror), "write scheme://host/path"}
	}
	if from.signedBy == "" && s.exists(debianKeyring) {
		from.signedBy = debianKeyring
	}
	return from, nil
}

// public is an address without user and password.
func public(uri string) string {
	u, err := url.Parse(uri)
	if err != nil {
		return ""
	}
	u.User = nil
	return u.String()
}

// archive is where apt keeps the file of a package.
func (s *setup) archive(p Package) string {
	return filepath.Join(s.Dir, archives, p.file())
}

// whole says whether the files of all packages are there as they were.
func (s *setup) whole(packages []Package) bool {
	return !slices.ContainsFunc(packages, func(p Package) bool {
		if p.file() != filepath.Base(p.file()) {
			return true
		}
		got, err := sum(s.archive(p))
		return err != nil || got != p.SHA256
	})
}

// unpack makes the tree beside the old one, tries it and puts it in its place. The
// manifest is written last, so a folder with one was complete.
func (s *setup) unpack(ctx context.Context, m *Manifest) (*Tree, error) {
	s.say("unpacking %d packages", len(m.Packages))
	place, fresh := filepath.Join(s.Dir, treeName), filepath.Join(s.Dir, treeName+".new")
	manifest := filepath.Join(s.Dir, manifestName)
	if err := errors.Join(os.RemoveAll(fresh), os.Mkdir(fresh, 0o755)); err != nil {
		return nil, &Error{"unpack", err, ""}
	}
	for _, p := range m.Packages {
		if _, err := s.call(ctx, "unpack "+p.Name, "dpkg-deb", "-x", s.archive(p), fresh); err != nil {
			return nil, err
		}
	}
	err := alternatives(fresh)
	if err == nil {
		m.Files, err = files(fresh)
	}
	if err != nil {
		return nil, &Error{"unpack", err, ""}
	}
	if err := os.Remove(manifest); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, &Error{"unpack", err, ""}
	}
	if err := errors.Join(os.RemoveAll(place), os.Rename(fresh, place)); err != nil {
		return nil, &Error{"unpack", err, ""}
	}
	t := &Tree{Dir: place, Manifest: *m, port: s.port}
	for _, p := range m.Wanted {
		if systems[p] == "" {
			continue
		}
		var command []string
		command, s.env = t.System(systems[p])
		if _, err := s.call(ctx, "try "+p, command[0], append(command[1:], "--version")...); err != nil {
			return nil, err
		}
	}
	b, err := json.MarshalIndent(m, "", " ")
	if err == nil {
		err = os.WriteFile(manifest+".new", append(b, '\n'), 0o644)
	}
	if err == nil {
		err = os.Rename(manifest+".new", manifest)
	}
	if err != nil {
		return nil, &Error{"write the manifest", err, ""}
	}
	if err := s.tidy(m); err != nil {
		return nil, &Error{"remove what is not needed any more", err, ""}
	}
	s.say("complete: %s in %s", m.wanted(), place)
	return t, nil
}

// alternatives makes the links by which Debian's packages would let one of them be the
// program of a common name, if they were installed.
func alternatives(dir string) error {
	const mawk, awk = "usr/bin/mawk", "usr/bin/awk"
	if _, err := os.Lstat(filepath.Join(dir, mawk)); errors.Is(err, os.ErrNotExist) {
		return nil
	}
	return os.Symlink(filepath.Base(mawk), filepath.Join(dir, awk))
}

// tidy removes the package lists, apt's caches and packages that are not in the tree.
func (s *setup) tidy(m *Manifest) error {
	keep := map[string]bool{}
	for _, p := range m.kept() {
		keep[p.file()] = true
	}
	errs := []error{os.RemoveAll(filepath.Join(s.apt, "state/lists"))}
	for _, pattern := range []string{archives + "/*.deb", aptName + "/cache/*.bin"} {
		found, err := filepath.Glob(filepath.Join(s.Dir, pattern))
		errs = append(errs, err)
		for _, f := range found {
			if !keep[filepath.Base(f)] {
				errs = append(errs, os.Remove(f))
			}
		}
	}
	return errors.Join(errs...)
}

// call runs a program. Its error shows the end of what the program wrote.
func (s *setup) call(ctx context.Context, op, name string, args ...string) ([]byte, error) {
	fmt.Fprintf(s.log, "== %s %s\n", name, strings.Join(args, " "))
	var said bytes.Buffer
	out, err := s.run(ctx, io.MultiWriter(s.log, &said), s.env, name, args...)
	switch {
	case err == nil:
		return out, nil
	case errors.Is(err, exec.ErrNotFound):
		return nil, &Error{op, err, "install apt and dpkg, or use a machine with Debian or Ubuntu"}
	case ctx.Err() != nil:
		return nil, &Error{op, err, ""}
	}
	return nil, &Error{op, fmt.Errorf("%s: %w: %s", name, err, complaint(said.String())), "look at " + s.log.Name() + "; another mirror can be named with -mirror"}
}

// complaint is what a program said is wrong: the lines that apt marks, else the last.
func complaint(said string) string {
	var marked []string
	all := strings.Split(strings.TrimSpace(said), "\n")
	for _, l := range all {
		if strings.HasPrefix(l, "E: ") || strings.HasPrefix(l, "W: ") {
			marked = append(marked, l)
		}
	}
	if len(marked) == 0 {
		marked = all
	}
	return strings.Join(marked[max(0, len(marked)-5):], "; ")
}

// sum is the SHA-256 of a file in hexadecimal.
func sum(file string) (string, error) {
	f, err := os.Open(file)
	if err != nil {
		return "", err
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}
