package bus

import (
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParse(t *testing.T) {
	for _, tc := range []struct {
		in   string
		want Address
	}{
		{"sim:gmac4", Address{Scheme: "sim", Location: "gmac4"}},
		{"sim:gmac4,wire=gen:x", Address{"sim", "gmac4", []Param{{"wire", "gen:x"}}}},
		{"sim:gmac4,wire=pcap,in=a b.pcap,out=", Address{"sim", "gmac4", []Param{{"wire", "pcap"}, {"in", "a b.pcap"}, {"out", ""}}}},
		{"sim:gmac4,fault=drop=1e-4+crc=1", Address{"sim", "gmac4", []Param{{"fault", "drop=1e-4+crc=1"}}}},
		{"pci:0000:03:00.0", Address{Scheme: "pci", Location: "0000:03:00.0"}},
		{"platform:f0804000.ethernet,irq=each", Address{"platform", "f0804000.ethernet", []Param{{"irq", "each"}}}},
		{"a-1:=", Address{Scheme: "a-1", Location: "="}},
	} {
		got, err := Parse(tc.in)
		if err != nil {
			t.Errorf("Parse(%q): %v", tc.in, err)
			continue
		}
		if d := cmp.Diff(tc.want, got); d != "" {
			t.Errorf("Parse(%q) (-want +got):\n%s", tc.in, d)
		}
		if got.String() != tc.in {
			t.Errorf("Parse(%q).String() = %q", tc.in, got)
		}
	}
}

func TestParseErrors(t *testing.T) {
	for _, tc := range []struct{ in, part, text string }{
		{"", "", "no scheme"},
		{"gmac4", "", "no scheme"},
		{":gmac4", "scheme", "empty"},
		{"Sim:gmac4", "scheme", "lower-case"},
		{"1sim:gmac4", "scheme", "lower-case"},
		{"si m:gmac4", "scheme", "lower-case"},
		{"sim:", "location", "empty"},
		{"sim:,wire=gen", "location", "empty"},
		{"sim:gmac4,", `""`, "not key=value"},
		{"sim:gmac4,wire", `"wire"`, "not key=value"},
		{"sim:gmac4,,rxq=1", `""`, "not key=value"},
		{"sim:gmac4,=gen", `"=gen"`, "key is empty"},
		{"sim:gmac4,Wire=gen", `"Wire=gen"`, "lower-case"},
		{"sim:gmac4,rxq=1,txq=1,rxq=2", `"rxq=2"`, "given twice"},
	} {
		_, err := Parse(tc.in)
		var e *AddressError
		if !errors.As(err, &e) || !errors.Is(err, os.ErrInvalid) {
			t.Errorf("Parse(%q): %v, not an *AddressError that is os.ErrInvalid", tc.in, err)
			continue
		}
		if e.Address != tc.in || e.Part != tc.part || !strings.Contains(e.Err.Error(), tc.text) {
			t.Errorf("Parse(%q) = %#v %v, want part %q and %q", tc.in, e, err, tc.part, tc.text)
		}
	}
}

func TestGet(t *testing.T) {
	a, err := Parse("sim:gmac4,in=,rxq=2")
	if err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		key, value string
		ok         bool
	}{{"in", "", true}, {"rxq", "2", true}, {"out", "", false}} {
		if v, ok := a.Get(tc.key); v != tc.value || ok != tc.ok {
			t.Errorf("Get(%q) = %q, %v", tc.key, v, ok)
		}
	}
}

func FuzzAddress(f *testing.F) {
	for _, s := range []string{
		"sim:gmac4,wire=gen:x", "sim:gmac4,wire=pcap,in=a.pcap,out=b.pcap", "sim:gmac4,fault=drop=1e-4+seed=0x7",
		"pci:0000:03:00.0", "platform:f0804000.ethernet", ":", "sim:", "sim:gmac4,", "sim:gmac4,version=5.20,version=4.00",
		"sim:gmac4,irq=each,rxq=8,txq=9,profile=linux,bus=16,width=32,rxfifo=1,txfifo=99999999999999999999",
		"sim:gmac4,version=9.90", "sim:gmac4,wire=pair:", "sim:xgmac", "\x00:\xff",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		a, err := Parse(s)
		if err != nil {
			var e *AddressError
			if !errors.As(err, &e) || !errors.Is(err, os.ErrInvalid) || e.Address != s {
				t.Fatalf("Parse(%q): %#v", s, err)
			}
			return
		}
		if a.String() != s {
			t.Fatalf("Parse(%q).String() = %q", s, a)
		}
		b, err := Parse(a.String())
		if err != nil || !cmp.Equal(a, b) {
			t.Fatalf("Parse(%q) twice: %v and %v, %v", s, a, b, err)
		}
		// What is checked without opening anything must not panic either.
		if _, err := parseSim(a); err != nil {
			var e *AddressError
			if !errors.As(err, &e) || !errors.Is(err, os.ErrInvalid) && !errors.Is(err, errors.ErrUnsupported) {
				t.Fatalf("parseSim(%q): %v", s, err)
			}
		}
	})
}
