package debian

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
)

func TestAptConfig(t *testing.T) {
	dump := `APT "";
Acquire "";
Acquire::http::Proxy "http://proxy.example:3128";
Acquire::https::Verify-Peer "true";
Acquire::Languages "";
Acquire::Languages:: "en";
Acquire::IndexTargets::deb::DEP-11::MetaKey "x";
Acquire::Check-Valid-Until "false";
DPkg::Post-Invoke:: "rm -rf /";
APT::Update::Post-Invoke:: "touch /hook";
Dir::Etc "etc/apt";
`
	got := aptConfig([]byte(dump), "/c/apt", []string{"amd64", "arm64"}, true)
	for _, want := range []string{`Acquire::http::Proxy "http://proxy.example:3128";`, `Acquire::https::Verify-Peer "true";`, `Acquire::Check-Valid-Until "false";`,
		`APT::Sandbox::User "root";`, `Dir::State "/c/apt/state";`, `APT::Architecture "amd64";`, `APT::Architectures:: "amd64";`, `APT::Architectures:: "arm64";`, `APT::Update::Error-Mode "any";`} {
		if !strings.Contains(got, want+"\n") {
			t.Errorf("%s is not in\n%s", want, got)
		}
	}
	for _, not := range []string{"Invoke", "DEP-11", `"en"`, `Dir::Etc "`} {
		if strings.Contains(got, not) {
			t.Errorf("%s is in\n%s", not, got)
		}
	}
	if strings.Contains(aptConfig(nil, "/c", []string{"amd64"}, false), "Sandbox") {
		t.Error("a user who is not root has no sandbox to turn off")
	}
}

func TestPlan(t *testing.T) {
	out := "Reading package lists...\nInst qemu-system-arm (1:11.1.3+ds-1~bpo13+1 Debian Backports:stable-backports [amd64])\nInst seabios (1.17 Debian:13.6/stable, Debian:x [all]) []\nInst libc6:amd64 (2.41-12 Debian:13.6/stable [amd64]) [x]\nConf seabios (1.17 x [all])\n"
	got, err := plan([]byte(out))
	want := []Package{{"libc6", "2.41-12", "amd64", ""}, {"qemu-system-arm", "1:11.1.3+ds-1~bpo13+1", "amd64", ""}, {"seabios", "1.17", "all", ""}}
	if d := cmp.Diff(want, got); d != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, d)
	}
	if f := want[1].file(); f != "qemu-system-arm_1%3a11.1.3+ds-1~bpo13+1_amd64.deb" {
		t.Error(f)
	}
	for _, out := range []string{"", "nothing to do\n", "Inst \n", "Inst x\n", "Inst x (1\n", "Inst x (1)\n", "Inst x ()\n"} {
		if p, err := plan([]byte(out)); err == nil {
			t.Errorf("%q is %v", out, p)
		}
	}
	for v, want := range map[string]int{"1:11.1.3+ds": 11, "7.2": 7, "12": 12} {
		if n, err := major(v); n != want || err != nil {
			t.Errorf("%s: %d, %v", v, n, err)
		}
	}
}

// fakeMachine has an apt of which a package is a file with the name of one in it.
type fakeMachine struct {
	t       *testing.T
	calls   []string
	version string
	fail    string // the call that fails
	err     error  // with this
	saw     []string
	kernels map[string]string // what apt-cache shows
}

func (f *fakeMachine) machine() machine {
	return machine{
		etc:  fstest.MapFS{"sources.list": &fstest.MapFile{Data: []byte("deb http://user:secret@b.example/debian bookworm main\n")}},
		goos: "linux", goarch: runtime.GOARCH, free: func(string) (uint64, error) { return needBytes, nil }, exists: func(string) bool { return false },
		lock: func(string) (func() error, error) { return func() error { return nil }, nil }, run: f.run,
	}
}

func (f *fakeMachine) run(ctx context.Context, log io.Writer, env []string, name string, args ...string) ([]byte, error) {
	call := strings.Join(append([]string{filepath.Base(name)}, args...), " ")
	if strings.HasPrefix(call, "dpkg-deb") {
		call = "dpkg-deb -x " + filepath.Base(args[1])
	} else if strings.HasPrefix(call, "ld-linux") {
		call = filepath.Base(args[2]) + " " + args[len(args)-1]
	}
	f.calls = append(f.calls, call)
	if f.fail != "" && strings.HasPrefix(call, f.fail) {
		fmt.Fprintln(log, "doing\nE: it went wrong\nmore")
		return nil, f.err
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	apt := func(path string) string {
		conf := strings.TrimPrefix(strings.Join(env, ""), "APT_CONFIG=")
		return filepath.Join(filepath.Dir(conf), path)
	}
	version := f.version
	if version == "" {
		version = "1:11.1"
	}
	packages := []Package{{"libc6", "2.41", "amd64", ""}}
	for _, a := range args {
		if strings.HasPrefix(a, "qemu-system-") {
			packages = append(packages, Package{a, version, "amd64", ""})
		}
	}
	switch {
	case name == "apt-cache":
		shown, ok := f.kernels[args[len(args)-1]]
		if !ok {
			fmt.Fprintln(log, "E: No packages found")
			return nil, errors.New("exit status 100")
		}
		return []byte(shown), nil
	case name == "sh":
		for _, a := range args[4:] {
			name, version, _ := strings.Cut(a, "=")
			name, arch, ok := strings.Cut(name, ":")
			if !ok {
				arch = "all"
			}
			p := Package{Name: name, Version: version, Arch: arch}
			if err := os.WriteFile(filepath.Join(args[3], p.file()), []byte(name), 0o644); err != nil {
				return nil, err
			}
		}
	case call == "apt-config dump":
		return []byte("Acquire::Retries \"9\";\n"), nil
	case call == "apt-get -q update":
		b, err := os.ReadFile(apt("etc/sources.list.d/1.sources"))
		f.saw = append(f.saw, string(b))
		return nil, err
	case strings.HasPrefix(call, "apt-get -s"):
		var out string
		for _, p := range packages {
			out += fmt.Sprintf("Inst %s (%s Debian [%s])\n", p.Name, p.Version, p.Arch)
		}
		return []byte(out), nil
	case strings.HasPrefix(call, "apt-get --download-only"):
		for _, p := range packages {
			if err := os.WriteFile(apt("cache/archives/"+p.file()), []byte(p.Name+p.Version), 0o644); err != nil {
				return nil, err
			}
		}
	case strings.HasPrefix(call, "dpkg-deb"):
		b, err := os.ReadFile(args[1])
		if err != nil {
			return nil, err
		}
		file := filepath.Join(args[2], "usr", string(b))
		return nil, errors.Join(os.MkdirAll(filepath.Dir(file), 0o755), os.WriteFile(file, b, 0o644))
	}
	return nil, nil
}

func needPort(t *testing.T) {
	t.Helper()
	if _, ok := portOf(runtime.GOARCH); !ok {
		t.Skip("there is no QEMU of Debian's for ", runtime.GOARCH)
	}
}

func TestSetup(t *testing.T) {
	needPort(t)
	dir := filepath.Join(t.TempDir(), "a", "cache")
	if _, err := Open(dir); !errors.Is(err, ErrIncomplete) || !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a folder that is not there: %v", err)
	}
	fetch := []string{"apt-config dump", "apt-get -q update", "apt-get -s -q -y -t trixie-backports install qemu-system-arm", "apt-get --download-only -q -y -t trixie-backports install qemu-system-arm"}
	unpack := func(v string) []string {
		return []string{"dpkg-deb -x libc6_2.41_amd64.deb", "dpkg-deb -x qemu-system-arm_1%3a" + v + "_amd64.deb", "qemu-system-aarch64 --version"}
	}
	f := &fakeMachine{t: t}
	step := func(name string, want ...string) *Tree {
		t.Helper()
		f.calls = nil
		var progress strings.Builder
		tree, err := f.machine().setup(t.Context(), Options{Dir: dir, Progress: &progress})
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if d := cmp.Diff(want, f.calls); d != "" {
			t.Errorf("%s: calls (-want +got):\n%s", name, d)
		}
		if (len(want) == 0) != (progress.Len() == 0) || strings.Contains(progress.String(), "secret") {
			t.Errorf("%s: progress %q", name, progress.String())
		}
		opened, err := Open(dir)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if d := cmp.Diff(tree.Manifest, opened.Manifest); d != "" {
			t.Errorf("%s: the manifest that was written (-want +got):\n%s", name, d)
		}
		return tree
	}
	tree := step("empty", append(fetch, unpack("11.1")...)...)
	if len(f.saw) != 1 || !strings.Contains(f.saw[0], "URIs: http://user:secret@b.example/debian\nSuites: trixie trixie-backports\n") {
		t.Errorf("sources %q", f.saw)
	}
	m := tree.Manifest
	if m.Version(QEMUArm) != "1:11.1" || m.Version("none") != "" || len(m.Packages[0].SHA256) != 64 || m.Mirror != "http://b.example/debian" || len(m.Files) != 2 {
		t.Errorf("%+v", m)
	}
	command, env := tree.QEMU()
	if !strings.HasPrefix(command[0], dir) || len(env) != 1 {
		t.Errorf("%q %q", command, env)
	}
	step("complete")

	file := filepath.Join(dir, treeName, "usr", "libc62.41")
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(dir); !errors.Is(err, ErrIncomplete) {
		t.Errorf("a file is missing: %v", err)
	}
	step("a file is missing", unpack("11.1")...)
	if err := os.WriteFile(file, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	step("a file is shorter", unpack("11.1")...)

	// The suites have moved on, and the packages that were kept are damaged.
	f.version = "1:12.0"
	if err := errors.Join(os.RemoveAll(filepath.Join(dir, treeName)), os.WriteFile(filepath.Join(dir, aptName, "cache/archives/libc6_2.41_amd64.deb"), []byte("x"), 0o644)); err != nil {
		t.Fatal(err)
	}
	tree = step("damaged", append(fetch, unpack("12.0")...)...)
	if v := tree.Manifest.Version(QEMUArm); v != "1:12.0" {
		t.Error(v)
	}
	archives, err := os.ReadDir(filepath.Join(dir, aptName, "cache/archives"))
	if err != nil || len(archives) != 3 { // two packages and the folder partial
		t.Errorf("%d files are kept: %v, %v", len(archives), archives, err)
	}
	if err := os.WriteFile(filepath.Join(dir, manifestName), []byte("{"), 0o644); err != nil {
		t.Fatal(err)
	}
	step("no manifest", append(fetch, unpack("12.0")...)...)
	if err := os.WriteFile(filepath.Join(dir, manifestName), []byte(`{"arch":"vax"}`), 0o644); err != nil {
		t.Fatal(err)
	}
	step("another manifest", append(fetch, unpack("12.0")...)...)
	b, err := os.ReadFile(filepath.Join(dir, manifestName))
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, manifestName), []byte(strings.Replace(string(b), "\"qemu-system-arm\"", "\"--option\"", 1)), 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
	step("an option in the manifest", append(fetch, unpack("12.0")...)...)
}

// TestPackages: a folder gets what is asked for beside what it holds.
func TestPackages(t *testing.T) {
	needPort(t)
	dir := t.TempDir()
	f := &fakeMachine{t: t}
	get := func(tree *Tree, call string, packages ...string) *Tree {
		t.Helper()
		if tree != nil {
			if err := tree.Has(packages...); (err == nil) != (call == "") || err != nil && (!errors.Is(err, ErrIncomplete) || !strings.Contains(err.Error(), "rig setup")) {
				t.Errorf("%q: %v", packages, err)
			}
		}
		f.calls = nil
		tree, err := f.machine().setup(t.Context(), Options{Dir: dir, Packages: packages})
		if err != nil {
			t.Fatal(err)
		}
		if call == "" && len(f.calls) > 0 || call != "" && !slices.Contains(f.calls, "apt-get -s -q -y -t trixie-backports install "+call) {
			t.Errorf("%q: calls %q", packages, f.calls)
		}
		if err := tree.Has(packages...); err != nil {
			t.Error(err)
		}
		return tree
	}
	tree := get(nil, QEMUX86, QEMUX86, QEMUX86)
	if !slices.Contains(f.calls, "qemu-system-x86_64 --version") || slices.Contains(f.calls, "qemu-system-aarch64 --version") {
		t.Errorf("%q", f.calls)
	}
	tree = get(tree, QEMUArm+" "+QEMUX86, QEMUArm)
	if !slices.Contains(f.calls, "qemu-system-x86_64 --version") || !slices.Contains(f.calls, "qemu-system-aarch64 --version") {
		t.Errorf("%q", f.calls)
	}
	tree = get(tree, "", QEMUX86)
	get(tree, "", QEMUArm, QEMUX86)
}

// TestManifestIsNotTrusted: it names no file outside.
func TestManifestIsNotTrusted(t *testing.T) {
	tree := Tree{Dir: t.TempDir(), Manifest: Manifest{Files: []File{{"../x", 0}}}}
	if err := tree.check(); !errors.Is(err, ErrIncomplete) {
		t.Error(err)
	}
	s := setup{apt: t.TempDir()}
	if s.whole([]Package{{Name: "../../x", Version: "1", Arch: "all"}}) {
		t.Error("a package outside is whole")
	}
}

func TestSetupFails(t *testing.T) {
	needPort(t)
	boom := errors.New("exit status 100")
	for name, c := range map[string]struct {
		fake   fakeMachine
		change func(*machine, *Options)
		want   error
		text   string // of the error
	}{
		"no apt":       {fake: fakeMachine{fail: "apt-config", err: &exec.Error{Name: "apt-config", Err: exec.ErrNotFound}}, want: exec.ErrNotFound, text: "install apt"},
		"no network":   {fake: fakeMachine{fail: "apt-get -q update", err: boom}, want: boom, text: "read the package lists: apt-get: exit status 100: E: it went wrong: look at "},
		"no plan":      {fake: fakeMachine{fail: "apt-get -s", err: boom}, want: boom, text: "plan"},
		"no download":  {fake: fakeMachine{fail: "apt-get --download", err: boom}, want: boom, text: "download"},
		"no dpkg-deb":  {fake: fakeMachine{fail: "dpkg-deb", err: exec.ErrNotFound}, want: exec.ErrNotFound, text: "dpkg"},
		"QEMU is lame": {fake: fakeMachine{fail: "qemu-system", err: boom}, want: boom, text: "try qemu-system-arm"},
		"too old":      {fake: fakeMachine{version: "1:10.0"}, want: ErrTooOld, text: "1:10.0"},
		"no package":   {change: func(_ *machine, o *Options) { o.Packages = []string{QEMUX86, "-y"} }, want: os.ErrInvalid, text: "-y"},
		"no disk":      {change: func(m *machine, _ *Options) { m.free = func(string) (uint64, error) { return needBytes - 1, nil } }, want: ErrDisk, text: "MiB are free"},
		"no look":      {change: func(m *machine, _ *Options) { m.free = func(string) (uint64, error) { return 0, boom } }, want: boom},
		"no lock":      {change: func(m *machine, _ *Options) { m.lock = func(string) (func() error, error) { return nil, boom } }, want: boom},
		"no mirror":    {change: func(m *machine, _ *Options) { m.etc = fstest.MapFS{} }, want: ErrNoMirror, text: "-mirror"},
		"no address":   {change: func(_ *machine, o *Options) { o.Mirror = "debian" }, want: ErrNoMirror},
		"two lines":    {change: func(_ *machine, o *Options) { o.Mirror = "http://b.example/\nTrusted: yes" }, want: ErrNoMirror},
		"no Linux":     {change: func(m *machine, _ *Options) { m.goos = "plan9" }, want: errors.ErrUnsupported, text: "plan9"},
		"no port":      {change: func(m *machine, _ *Options) { m.goarch = "vax" }, want: errors.ErrUnsupported, text: "vax"},
		"a colon":      {change: func(_ *machine, o *Options) { o.Dir += ":" }, want: errors.ErrUnsupported, text: "-cache"},
		"no folder":    {change: func(_ *machine, o *Options) { o.Dir = filepath.Join(o.Dir, "file", "x") }, want: errors.ErrUnsupported, text: "-cache"},
	} {
		dir := t.TempDir()
		m, o := c.fake.machine(), Options{Dir: dir}
		if c.change != nil {
			c.change(&m, &o)
		}
		if name == "no folder" {
			if err := os.WriteFile(filepath.Join(dir, "file"), nil, 0o644); err != nil {
				t.Fatal(err)
			}
			c.want = nil // the system's
		}
		var e *Error
		_, err := m.setup(t.Context(), o)
		if err == nil || c.want != nil && !errors.Is(err, c.want) || !errors.As(err, &e) || !strings.Contains(err.Error(), c.text) {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := Open(dir); !errors.Is(err, ErrIncomplete) {
			t.Errorf("%s: afterwards %v", name, err)
		}
	}
}

func TestSetupIsCancelled(t *testing.T) {
	needPort(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	f := &fakeMachine{t: t}
	if _, err := f.machine().setup(ctx, Options{Dir: t.TempDir()}); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

func TestMirrorOfTheUser(t *testing.T) {
	needPort(t)
	f := &fakeMachine{t: t}
	m := f.machine()
	m.exists = func(string) bool { return true }
	if _, err := m.setup(t.Context(), Options{Dir: t.TempDir(), Mirror: "https://m.example/debian"}); err != nil {
		t.Fatal(err)
	}
	if len(f.saw) != 1 || !strings.Contains(f.saw[0], "URIs: https://m.example/debian\n") || !strings.Contains(f.saw[0], "Signed-By: "+debianKeyring+"\n") {
		t.Errorf("sources %q", f.saw)
	}
}

// TestThisMachine: what the machine's own functions do.
func TestThisMachine(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("setup needs Linux")
	}
	m := thisMachine()
	dir := t.TempDir()
	if n, err := m.free(dir); n == 0 || err != nil {
		t.Errorf("%d bytes, %v", n, err)
	}
	if _, err := m.free(filepath.Join(dir, "x")); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
	unlock, err := m.lock(filepath.Join(dir, "lock"))
	if err != nil {
		t.Fatal(err)
	}
	locked := make(chan error)
	go func() {
		unlock, err := m.lock(filepath.Join(dir, "lock"))
		if err == nil {
			err = unlock()
		}
		locked <- err
	}()
	if err := errors.Join(unlock(), <-locked); err != nil {
		t.Error(err)
	}
	if !m.exists(dir) || m.exists(filepath.Join(dir, "x")) {
		t.Error("what exists")
	}
	var log strings.Builder
	out, err := m.run(t.Context(), &log, []string{"X=y"}, os.Args[0], "-test.run=^$")
	if err != nil || !strings.Contains(string(out), "PASS") || !strings.Contains(log.String(), string(out)) {
		t.Errorf("%q, %q, %v", out, log.String(), err)
	}
	if _, err := m.run(t.Context(), &log, nil, "gostmmac-no-such-program"); !errors.Is(err, exec.ErrNotFound) {
		t.Error(err)
	}
}
