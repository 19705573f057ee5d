package callgrind

import (
	"errors"
	"maps"
	"strings"
	"testing"
)

// profile has two positions, two events with Ir second, names defined by cfn and used by fn, a call, a jump, inlined
// code from another file, a recursive function, a left-out trailing cost and a second part.
const profile = `# callgrind format
version: 1
creator: callgrind-3.19.0
cmd:  ./prog -x=1
part: 1

desc: I1 cache:
positions: instr line
events: Dr Ir
summary: 20 2000

ob=(1) /tmp/prog
fl=(1) /src/a.go
fn=(1) example.org/m/drv.(*Queue).Recv
0x401000 10 1 100
+4 +1 0 50
cfn=(2) example.org/m/pool.(*Pool).Get
calls=7 0x402000 20
* * 9 900
fi=(2) /src/inline.go
+4 3 0 25
fe=(1)
jcnd=3/9 +16 12
* *
-4 -2 4 5

fn=(2)
0x402000 20 1 300
+3 * 2

fn=(3) example.org/m/pool.(*Pool).Get'2
0x402000 20 0 20
fn=runtime.main
0x403000 1 0 1000

totals: 8 1500
part: 2
fn=(1)
0x401000 10 0 7
totals: 0 7
`

func TestParse(t *testing.T) {
	got, err := Parse(strings.NewReader(profile))
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]uint64{
		"example.org/m/drv.(*Queue).Recv": 100 + 50 + 25 + 5 + 7,
		"example.org/m/pool.(*Pool).Get":  300 + 20,
		"runtime.main":                    1000,
	}
	if !maps.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestParseMalformed(t *testing.T) {
	const head = "positions: line\nevents: Ir\n"
	for name, text := range map[string]string{
		"empty":              "",
		"no totals":          head + "fn=(1) f\n1 5\n",
		"totals differ":      head + "fn=(1) f\n1 5\ntotals: 6\n",
		"no such event":      "events: Dr Dw\ntotals: 0\n",
		"cost before events": "fn=(1) f\n1 5\n" + head + "totals: 5\n",
		"cost before fn":     head + "1 5\ntotals: 5\n",
		"undefined name":     head + "fn=(1)\n1 5\ntotals: 5\n",
		"undefined callee":   head + "fn=(1) f\ncfn=(2)\ncalls=1 1\n1 5\ntotals: 0\n",
		"not a number":       head + "fn=(1) f\n1 x\ntotals: 5\n",
		"call without cost":  head + "fn=(1) f\ncalls=1 1\nfn=(2) g\n1 5\ntotals: 5\n",
		"ends in a call":     head + "fn=(1) f\n1 5\ntotals: 5\ncalls=1 1\n",
		"unknown line":       head + "garbage\ntotals: 0\n",
		"short cost line":    "positions: instr line\nevents: Ir\nfn=(1) f\n1\ntotals: 0\n",
	} {
		t.Run(name, func(t *testing.T) {
			if got, err := Parse(strings.NewReader(text)); !errors.Is(err, ErrFormat) {
				t.Errorf("got %v, %v, want ErrFormat", got, err)
			}
		})
	}
}

func TestParseKeepsGoNames(t *testing.T) {
	for _, name := range []string{"(*T).M", "main.f[go.shape.int]", "main.it's", "a=b:c"} {
		got, err := Parse(strings.NewReader("events: Ir\nfn=" + name + "\n1 5\ntotals: 5\n"))
		if err != nil || got[name] != 5 {
			t.Errorf("%s: got %v, %v", name, got, err)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add(profile)
	f.Fuzz(func(t *testing.T, text string) {
		got, err := Parse(strings.NewReader(text))
		if err == nil && got == nil {
			t.Error("neither a profile nor an error")
		}
	})
}
