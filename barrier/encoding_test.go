package barrier_test

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// needGo returns the path of the go command.
func needGo(t *testing.T) string {
	t.Helper()
	if testing.Short() {
		t.Skip("-short: builds the package once for every port")
	}
	path, err := exec.LookPath("go")
	if err != nil {
		t.Skip("needs the go command: ", err)
	}
	return path
}

// crossBuild runs the go command on this package for another port and returns all that it printed.
func crossBuild(t *testing.T, goos, goarch, goarm string, args ...string) string {
	t.Helper()
	cmd := exec.Command(needGo(t), args...)
	cmd.Env = append(os.Environ(), "GOOS="+goos, "GOARCH="+goarch, "GOARM="+goarm, "CGO_ENABLED=0", "GOFLAGS=",
		"GOEXPERIMENT=", "GOWORK=off")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v for %s/%s: %v\n%s", cmd.Args, goos, goarch, err, out)
	}
	return string(out)
}

// sources returns the files of the package without its tests. Reading them also tells the test cache that a result hangs on
// the files of other ports, which the go command in the child process reads unseen.
func sources(t *testing.T) map[string][]byte {
	t.Helper()
	texts := make(map[string][]byte)
	for _, pattern := range []string{"*.go", "*.s"} {
		files, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			if strings.HasSuffix(file, "_test.go") {
				continue
			}
			if texts[file], err = os.ReadFile(file); err != nil {
				t.Fatal(err)
			}
		}
	}
	return texts
}

// api returns the exported functions that a file declares, with or without a body.
func api(t *testing.T, file string) []string {
	t.Helper()
	f, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, d := range f.Decls {
		if fn, ok := d.(*ast.FuncDecl); ok && fn.Name.IsExported() {
			names = append(names, fn.Name.Name)
		}
	}
	slices.Sort(names)
	return names
}

// symbol is one function in the listing of the assembler or the compiler (-S).
type symbol struct {
	code      []byte
	mnemonics []string
}

var (
	reSymbol = regexp.MustCompile(`^\S*barrier\.(\w+) STEXT .*size=(\d+) `)
	reOther  = regexp.MustCompile(`^\S`)
	reInsn   = regexp.MustCompile(`^\t0x[0-9a-f]+ \d{5} \([^)]*\)\t(\S+)`)
	reDump   = regexp.MustCompile(`^\t0x[0-9a-f]{4,} ([0-9a-f]{2} [0-9a-f ]{45}) `)
)

func parseListing(t *testing.T, listing string) map[string]symbol {
	t.Helper()
	symbols := make(map[string]symbol)
	name, size := "", 0
	for line := range strings.Lines(listing) {
		line = strings.TrimRight(line, "\n")
		switch {
		case reSymbol.MatchString(line):
			m := reSymbol.FindStringSubmatch(line)
			name = m[1]
			size, _ = strconv.Atoi(m[2])
			if _, twice := symbols[name]; twice {
				t.Fatalf("%s is listed twice", name)
			}
			symbols[name] = symbol{}
		case reOther.MatchString(line):
			name = ""
		case name != "" && reInsn.MatchString(line):
			s := symbols[name]
			s.mnemonics = append(s.mnemonics, reInsn.FindStringSubmatch(line)[1])
			symbols[name] = s
		case name != "" && reDump.MatchString(line):
			b, err := hex.DecodeString(strings.ReplaceAll(reDump.FindStringSubmatch(line)[1], " ", ""))
			if err != nil {
				t.Fatalf("%q: %v", line, err)
			}
			s := symbols[name]
			s.code = append(s.code, b...)
			symbols[name] = s
			if len(s.code) > size {
				t.Fatalf("%s: %d bytes listed, size %d", name, len(s.code), size)
			}
		}
	}
	return symbols
}

// bytesOf returns an encoding of the table in memory order.
func (tg *target) bytesOf(t *testing.T, enc string) []byte {
	t.Helper()
	b, err := hex.DecodeString(enc)
	if err != nil {
		t.Fatalf("%s: table entry %q: %v", tg.name, enc, err)
	}
	if !tg.bytes {
		slices.Reverse(b)
	}
	return b
}

// compare says how code differs from want, instruction by instruction; "" if it does not.
func (tg *target) compare(t *testing.T, code []byte, want []insn) string {
	t.Helper()
	rest := code
	for n, in := range want {
		after, ok := bytes.CutPrefix(rest, tg.bytesOf(t, in.enc))
		if !ok && in.short != "" {
			after, ok = bytes.CutPrefix(rest, tg.bytesOf(t, in.short))
		}
		if !ok {
			return fmt.Sprintf("instruction %d is not %q (%s): % x at offset %d of % x",
				n, in.text, in.enc, rest, len(code)-len(rest), code)
		}
		rest = after
	}
	if tg.padded && len(rest) < 16 {
		rest = bytes.TrimLeft(rest, "\x00")
	}
	if len(rest) != 0 {
		return fmt.Sprintf("% x follows the last instruction", rest)
	}
	return ""
}

// TestEncodings compares every byte that the assembler makes of every function, on every port that has assembly, with the
// table. The build is a real one, so the build constraints are judged as well.
func TestEncodings(t *testing.T) {
	needGo(t)
	sources(t)
	names := api(t, "barrier_asm.go")
	for _, tg := range targets {
		t.Run(tg.name, func(t *testing.T) {
			if have := slices.Sorted(maps.Keys(tg.code)); !slices.Equal(have, names) {
				t.Fatalf("the table has %v, the package %v", have, names)
			}
			symbols := parseListing(t, crossBuild(t, tg.goos, tg.goarch, tg.goarm, "build", "-asmflags=-S", "."))
			if have := slices.Sorted(maps.Keys(symbols)); !slices.Equal(have, names) {
				t.Fatalf("the assembly has %v, the package %v", have, names)
			}
			for name, want := range tg.code {
				if diff := tg.compare(t, symbols[name].code, want); diff != "" {
					t.Errorf("%s: %s", name, diff)
				}
			}
		})
	}
}

var (
	reEncoding = regexp.MustCompile(`encoding: \[([^\]]*)\]`)
	reTarget   = regexp.MustCompile(`unable to get target|unknown target|No available targets`)
)

// llvmEncode assembles lines with llvm-mc and returns one encoding for each.
func llvmEncode(t *testing.T, llvm string, args, lines []string) [][]byte {
	t.Helper()
	cmd := exec.Command(llvm, append([]string{"--show-encoding"}, args...)...)
	cmd.Stdin = strings.NewReader(strings.Join(lines, "\n") + "\n")
	out, err := cmd.CombinedOutput()
	if err != nil {
		if reTarget.Match(out) {
			t.Skipf("this llvm-mc has no target %v", args)
		}
		t.Fatalf("%v: %v\n%s", cmd.Args, err, out)
	}
	var encodings [][]byte
	for _, m := range reEncoding.FindAllSubmatch(out, -1) {
		b, err := hex.DecodeString(strings.NewReplacer("0x", "", ",", "").Replace(string(m[1])))
		if err != nil {
			t.Fatalf("%q: %v", m[0], err)
		}
		encodings = append(encodings, b)
	}
	if len(encodings) != len(lines) {
		t.Fatalf("%d encodings for %d lines:\n%s", len(encodings), len(lines), out)
	}
	return encodings
}

// TestEncodingTable has an assembler that is not Go's judge the table.
func TestEncodingTable(t *testing.T) {
	llvm, err := exec.LookPath("llvm-mc")
	if err != nil {
		t.Skip("needs llvm-mc: ", err)
	}
	for _, tg := range targets {
		t.Run(tg.name, func(t *testing.T) {
			check := func(args []string, table map[string]string) {
				texts := slices.Sorted(maps.Keys(table))
				for i, got := range llvmEncode(t, llvm, args, texts) {
					if want := tg.bytesOf(t, table[texts[i]]); !bytes.Equal(got, want) {
						t.Errorf("%q: table % x, llvm-mc % x", texts[i], want, got)
					}
				}
			}
			long, short := map[string]string{}, map[string]string{}
			for _, insns := range tg.code {
				for _, in := range insns {
					if in.text != "" { // a literal has none
						long[in.text] = in.enc
					}
					if in.short != "" {
						short[in.shortText] = in.short
					}
				}
			}
			check(tg.llvm, long)
			if len(short) != 0 {
				check(append(slices.Clone(tg.llvm), "--mattr=+c"), short)
			}
		})
	}
}

// TestFallback builds the ports without assembly. Where the fence is an instruction that the compiler lists as SYNC (sync on
// ppc64x and mips, bcr on s390x), each function must hold it as often as its documentation says.
func TestFallback(t *testing.T) {
	needGo(t)
	sources(t)
	if asm, generic := api(t, "barrier_asm.go"), api(t, "barrier_generic.go"); !slices.Equal(asm, generic) {
		t.Fatalf("barrier_generic.go has %v, barrier_asm.go %v", generic, asm)
	}
	for _, port := range []struct {
		goos, goarch, goarm string
		sync                int // fence instructions of one fence
	}{
		{goos: "linux", goarch: "ppc64le", sync: 2},
		{goos: "linux", goarch: "mips64le", sync: 4},
		{goos: "linux", goarch: "s390x", sync: 1},
		{goos: "netbsd", goarch: "arm", goarm: "5"},
	} {
		t.Run(port.goos+"-"+port.goarch, func(t *testing.T) {
			symbols := parseListing(t, crossBuild(t, port.goos, port.goarch, port.goarm, "build", "-gcflags=-S", "."))
			for _, name := range api(t, "barrier_generic.go") {
				s, ok := symbols[name]
				if !ok {
					t.Errorf("%s is missing", name)
					continue
				}
				if port.sync == 0 {
					continue
				}
				fences := port.sync
				switch name {
				case "LoadOwn", "StoreOwn":
					fences = 0
				case "Load32", "Store32":
					fences *= 2
				}
				have := 0
				for _, m := range s.mnemonics {
					if m == "SYNC" {
						have++
					}
				}
				if have != fences {
					t.Errorf("%s has %d fences, want %d: %v", name, have, fences, s.mnemonics)
				}
			}
		})
	}
}

// TestVetPorts runs go vet, which compares the assembly with its declarations, for every port that has its own files. It
// works on a copy without tests: they would have the standard library compiled for each port.
func TestVetPorts(t *testing.T) {
	needGo(t)
	dir := t.TempDir()
	for file, text := range sources(t) {
		if err := os.WriteFile(filepath.Join(dir, file), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "go.mod"), []byte("module barrier\n\ngo 1.26\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tg := range targets {
		t.Run(tg.name, func(t *testing.T) {
			crossBuild(t, tg.goos, tg.goarch, tg.goarm, "-C", dir, "vet", ".")
		})
	}
	t.Run("fallback", func(t *testing.T) {
		crossBuild(t, "linux", "ppc64le", "", "-C", dir, "vet", ".")
	})
}
