package gmac4

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// arch is how the disassembler of a GOARCH writes memory accesses.
type arch struct {
	name  string
	desc  string // the register of the first argument: the descriptor
	width map[string]int
}

var arches = []arch{
	{"amd64", "AX", map[string]int{"MOVB": 1, "MOVW": 2, "MOVL": 4, "MOVQ": 8, "MOVUPS": 16, "MOVNTIL": 4, "ANDL": 4, "ORL": 4, "TESTL": 4, "CMPL": 4, "BTL": 4}},
	{"arm64", "R0", map[string]int{"MOVB": 1, "MOVBU": 1, "MOVH": 2, "MOVHU": 2, "MOVW": 4, "MOVWU": 4, "MOVD": 8, "STPW": 8, "LDPW": 8, "STP": 16, "LDP": 16}},
	{"riscv64", "X10", map[string]int{"MOVB": 1, "MOVBU": 1, "MOVH": 2, "MOVHU": 2, "MOVW": 4, "MOVWU": 4, "MOV": 8}},
}

// access is one access to the descriptor in a leaf.
type access struct {
	off, width int
	store      bool
	insn       string
}

var (
	memOperand = regexp.MustCompile(`^(-?(?:0x)?[0-9a-f]*)\(([A-Z0-9]+)\)$`)
	forbidden  = regexp.MustCompile(`^(LOCK|XCHG|CALL|BL |JAL|AMO|LR|SC|SWP|CAS|LDADD|LDAX|STLX|STLR|MFENCE|SFENCE)`)
)

// accesses lists what a function does with the descriptor. It fails on locked
// instructions, on calls and on instructions that it cannot judge.
func (a arch) accesses(lines []string) ([]access, error) {
	var out []access
	for _, insn := range lines {
		if forbidden.MatchString(insn) {
			return nil, fmt.Errorf("%s does not belong into a leaf", insn)
		}
		mnemonic, rest, _ := strings.Cut(insn, " ")
		ops := splitOperands(rest)
		for i, op := range ops {
			m := memOperand.FindStringSubmatch(op)
			if m == nil {
				if strings.Contains(op, "("+a.desc+")") {
					return nil, fmt.Errorf("%s: unknown form of an access", insn)
				}
				continue
			}
			if m[2] != a.desc {
				continue
			}
			if mnemonic == "LEAQ" || strings.HasPrefix(mnemonic, "NOP") { // compute or do nothing
				continue
			}
			w, ok := a.width[mnemonic]
			if !ok {
				return nil, fmt.Errorf("%s: unknown width", insn)
			}
			off := 0
			if m[1] != "" {
				n, err := strconv.ParseInt(m[1], 0, 32)
				if err != nil {
					return nil, fmt.Errorf("%s: %w", insn, err)
				}
				off = int(n)
			}
			out = append(out, access{off, w, i == len(ops)-1 && i > 0, insn})
		}
	}
	return out, nil
}

func splitOperands(s string) []string {
	var out []string
	depth, start := 0, 0
	for i, r := range s {
		switch r {
		case '(':
			depth++
		case ')':
			depth--
		case ',':
			if depth == 0 {
				out = append(out, strings.TrimSpace(s[start:i]))
				start = i + 1
			}
		}
	}
	return append(out, strings.TrimSpace(s[start:]))
}

// The rules of a leaf.
var (
	ownOnly = func(x access) error {
		if !x.store || x.off != des3 || x.width != 4 {
			return fmt.Errorf("%s is not a lone store of the OWN word", x.insn)
		}
		return nil
	}
	bodyOnly = func(x access) error {
		if !x.store || x.off < 0 || x.off+x.width > des3 {
			return fmt.Errorf("%s covers the OWN word, another descriptor or is a load", x.insn)
		}
		return nil
	}
	// GMAC 3.x has OWN in the first word.
	ownFirst = func(x access) error {
		if !x.store || x.off != 0 || x.width != 4 {
			return fmt.Errorf("%s is not a lone store of the OWN word", x.insn)
		}
		return nil
	}
	bodyBehind = func(x access) error {
		if !x.store || x.off < 4 || x.off+x.width > descSize {
			return fmt.Errorf("%s covers the OWN word, another descriptor or is a load", x.insn)
		}
		return nil
	}
	// The leaves that load get a pointer to the OWN word itself.
	ownLoad = func(x access) error {
		if x.store || x.off != 0 || x.width != 4 {
			return fmt.Errorf("%s is not a load of the OWN word alone", x.insn)
		}
		return nil
	}
)

var leaves = map[string]map[string]func(access) error{
	"gmac4": {
		"writeRxBodies": bodyOnly, "giveRx": ownOnly,
		"writeTxWhole": bodyOnly, "giveTxWhole": ownOnly,
		"writeTxOne": bodyOnly, "giveTxOne": ownOnly,
		"writeTxBodies": bodyOnly, "giveTx": ownOnly,
	},
	"gmac": {
		"writeRxBodies": bodyBehind, "writeControl": bodyBehind, "writeLinks": bodyBehind,
		"writeTxWhole": bodyBehind, "writeTxOne": bodyBehind, "writeTxBodies": bodyBehind,
		"give": ownFirst, "giveTx": ownFirst,
	},
	"core": {"loadDone": ownLoad, "loadFrames": ownLoad, "loadSent": ownLoad},
}

func (a arch) judge(lines []string, rule func(access) error) error {
	acc, err := a.accesses(lines)
	if err != nil {
		return err
	}
	if len(acc) == 0 {
		return fmt.Errorf("no access to the descriptor in %s found:\n%s", a.desc, strings.Join(lines, "\n"))
	}
	for _, x := range acc {
		if err := rule(x); err != nil {
			return err
		}
	}
	return nil
}

// disassemble builds a package for a GOARCH and returns the instructions of
// its functions by name.
func disassemble(t *testing.T, dir, goarch, pkg string) map[string][]string {
	t.Helper()
	obj := filepath.Join(t.TempDir(), goarch+".a")
	build := exec.Command("go", "build", "-o", obj, ".")
	build.Dir = dir
	build.Env = append(os.Environ(), "GOOS=linux", "GOARCH="+goarch, "CGO_ENABLED=0", "GOFLAGS=")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build for %s: %v\n%s", goarch, err, out)
	}
	out, err := exec.Command("go", "tool", "objdump", "-s", regexp.QuoteMeta(pkg)+`\.`, obj).Output()
	if err != nil {
		t.Fatalf("objdump for %s: %v", goarch, err)
	}
	fns := map[string][]string{}
	var cur string
	for line := range strings.Lines(string(out)) {
		if name, ok := strings.CutPrefix(line, "TEXT "); ok {
			name, _, _ = strings.Cut(name, "(SB)")
			cur = name[strings.LastIndex(name, ".")+1:]
			continue
		}
		f := strings.Split(strings.TrimSpace(line), "\t")
		var words []string
		for _, w := range f {
			if w = strings.TrimSpace(w); w != "" {
				words = append(words, w)
			}
		}
		if len(words) >= 4 && cur != "" {
			fns[cur] = append(fns[cur], words[3])
		}
	}
	return fns
}

func needGo(t *testing.T) {
	t.Helper()
	if _, err := exec.LookPath("go"); err != nil {
		t.Skip("the go command is not in PATH: ", err)
	}
}

// TestLeaves disassembles the functions that access descriptors: the OWN word
// is loaded and stored alone, and nothing is locked.
func TestLeaves(t *testing.T) {
	needGo(t)
	for _, a := range arches {
		t.Run(a.name, func(t *testing.T) {
			for pkg, rules := range leaves {
				fns := disassemble(t, "../"+pkg, a.name, pkg)
				for name, rule := range rules {
					if len(fns[name]) == 0 {
						t.Errorf("%s.%s is not there: was it inlined?", pkg, name)
						continue
					}
					if err := a.judge(fns[name], rule); err != nil {
						t.Errorf("%s.%s: %v", pkg, name, err)
					}
				}
			}
		})
	}
}

// TestLeafJudge is the negative control: stores that the compiler merges must
// be found.
func TestLeafJudge(t *testing.T) {
	needGo(t)
	dir := t.TempDir()
	src := `package merged

import "unsafe"

type desc struct{ d0, d1, d2, d3 uint32 }

//go:noinline
func next(d unsafe.Pointer, addr uint32) {
	r := (*[2]desc)(d)
	r[0].d3 = 1 << 31
	r[1].d0 = addr
}

//go:noinline
func whole(d unsafe.Pointer, a, b uint32) {
	r := (*desc)(d)
	r.d2 = 7
	r.d3 = 1 << 31
}

var Keep = []any{next, whole}
`
	for name, text := range map[string]string{"merged.go": src, "go.mod": "module merged\n\ngo 1.26\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	for _, a := range arches[:2] { // riscv64 merges nothing
		fns := disassemble(t, dir, a.name, "merged")
		for _, name := range []string{"next", "whole"} {
			if len(fns[name]) == 0 {
				t.Fatalf("%s: %s is not there", a.name, name)
			}
			if err := a.judge(fns[name], ownOnly); err == nil {
				t.Errorf("%s: %s passes as a lone store:\n%s", a.name, name, strings.Join(fns[name], "\n"))
			}
		}
	}
	locked := []string{"XCHGL BX, 0xc(AX)", "RET"}
	if err := arches[0].judge(locked, ownOnly); err == nil {
		t.Error("XCHG passes")
	}
}
