package bringup

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/gostmmac/gostmmac/mmio"
)

// log makes a log of "W off val" and "R off val", in hexadecimal.
func log(lines ...string) (a []mmio.Access) {
	a, err := parse(strings.Join(lines, "\n"))
	if err != nil {
		panic(err)
	}
	return a
}

// name is a name for every register but that at 10, which takes no part.
func name(off uint32) string {
	if off == 0x10 {
		return ""
	}
	return fmt.Sprintf("reg%x", off)
}

// stock is a bring-up.
var stock = log("R 0020 00000001", "W 0010 00000009", "W 0000 00000001", "W 0004 00000002", "W 0008 00000003", "W 0000 00000004")

func TestCompare(t *testing.T) {
	for _, c := range []struct {
		what     string
		ours     []mmio.Access
		why      Reasons
		reasoned int
		problems []string // a part of each
	}{
		{"the same", stock, Reasons{}, 0, nil},
		{"the same after other values and other reads", log("W 0000 00000008", "W 0004 00000002", "W 0008 00000007", "R 0004 00000002", "W 0008 00000003", "W 0000 00000004"), Reasons{}, 0, nil},
		{"what takes no part", log("W 0000 00000004", "W 0004 00000002", "W 0008 00000003", "W 0010 00000007"), Reasons{}, 0, nil},

		{"a changed order", log("W 0000 00000004", "W 0008 00000003", "W 0004 00000002"), Reasons{}, 0, []string{"reg8 is stored to before reg4"}},
		{"a changed order with a reason", log("W 0000 00000004", "W 0008 00000003", "W 0004 00000002"),
			Reasons{Order: map[string]string{"reg8": "why"}}, 1, nil},
		{"a reason for another register", log("W 0004 00000002", "W 0000 00000004", "W 0008 00000003"),
			Reasons{Order: map[string]string{"reg8": "why"}}, 0, []string{"reg4 is stored to before reg0", "reg8: a reason is listed (order)"}},

		{"a missing write", log("W 0000 00000004", "W 0008 00000003"), Reasons{}, 0, []string{"reg4: only the stock driver stores to it, at last 0x2"}},
		{"a missing write with a reason", log("W 0000 00000004", "W 0008 00000003"), Reasons{StockOnly: map[string]string{"reg4": "why"}}, 1, nil},
		{"a missing write with a reason that is empty", log("W 0000 00000004", "W 0008 00000003"), Reasons{StockOnly: map[string]string{"reg4": ""}}, 0,
			[]string{"reg4: only the stock driver", "reg4: a reason is listed"}},
		{"one more", append(slices.Clone(stock), log("W 000c 00000005")...), Reasons{}, 0, []string{"regc: the stock driver does not store to it, and this one at last 0x5"}},
		{"one more with a reason", append(slices.Clone(stock), log("W 000c 00000005")...), Reasons{OursOnly: map[string]string{"regc": "why"}}, 1, nil},

		{"a changed value", log("W 0000 00000004", "W 0004 00000012", "W 0008 00000003"), Reasons{}, 0, []string{"reg4: the last value is 0x12, that of the stock driver 0x2"}},
		{"a changed value with a reason", log("W 0000 00000004", "W 0004 00000012", "W 0008 00000003"), Reasons{Value: map[string]string{"reg4": "why"}}, 1, nil},
		{"a value that is not the last", log("W 0000 00000004", "W 0004 00000002", "W 0008 00000003", "W 0008 00000004"), Reasons{}, 0, []string{"reg8: the last value is 0x4"}},

		{"surplus reasons", stock, Reasons{StockOnly: map[string]string{"reg0": "why"}, OursOnly: map[string]string{"regc": "why"},
			Order: map[string]string{"reg4": "why"}, Value: map[string]string{"reg8": "why"}}, 0,
			[]string{"reg0: a reason is listed (only the stock driver)", "regc: a reason is listed (only this driver)", "reg4: a reason is listed (order)", "reg8: a reason is listed (value)"}},
		{"a reason of the wrong kind", log("W 0000 00000004", "W 0004 00000012", "W 0008 00000003"), Reasons{Order: map[string]string{"reg4": "why"}}, 0,
			[]string{"reg4: the last value", "reg4: a reason is listed (order)"}},
		{"nothing", nil, Reasons{}, 0, []string{"reg0: only", "reg4: only", "reg8: only"}},
	} {
		r := Compare(stock, c.ours, name, c.why)
		if r.Reasoned != c.reasoned || len(r.Problems) != len(c.problems) || (r.Err() == nil) != (len(c.problems) == 0) {
			t.Errorf("%s: %v: %q", c.what, r, r.Problems)
			continue
		}
		for i, p := range c.problems {
			if !strings.Contains(r.Problems[i], p) || !strings.Contains(r.Err().Error(), p) {
				t.Errorf("%s: problem %d is %q, want %q", c.what, i, r.Problems[i], p)
			}
		}
	}
	if r := Compare(stock, stock, name, Reasons{}); r.Stores != 8 || r.Registers != 3 {
		t.Errorf("%v", r)
	}
}

// TestParse: a line that is none is an error that says where.
func TestParse(t *testing.T) {
	got, err := parse("# a comment\nW 1000 00020101\n\nR 0020 00001032\n")
	want := []mmio.Access{{Off: 0x1000, Val: 0x20101, Store: true}, {Off: 0x20, Val: 0x1032}}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("%v, %v", got, err)
	}
	for _, bad := range []string{"X 0000 00000000", "W 0000", "W 0000 x", "W x 0", "W 0000 00000000 1", "W 0000 100000000"} {
		if got, err := parse("R 0020 00000000\n" + bad); err == nil || !strings.Contains(err.Error(), "line 2") {
			t.Errorf("%q: %v, %v", bad, got, err)
		}
	}
}

// TestLinuxGMAC: the recorded bring-up is whole.
func TestLinuxGMAC(t *testing.T) {
	a, err := LinuxGMAC()
	if err != nil {
		t.Fatal(err)
	}
	stores := slices.Collect(func(yield func(mmio.Access) bool) {
		for _, x := range a {
			if x.Store && !yield(x) {
				return
			}
		}
	})
	if len(a) != 54 || len(stores) != 35 {
		t.Errorf("%d accesses, %d stores", len(a), len(stores))
	}
	if x := stores[0]; x.Off != 0x1000 || x.Val != 0x20101 {
		t.Errorf("the first store is %v", x)
	}
	for _, x := range a {
		if GMACName(x.Off) == "" {
			t.Errorf("%v has no name", x)
		}
	}
	for _, off := range []uint32{0x10, 0x14} {
		if n := GMACName(off); n != "" {
			t.Errorf("%#x, which is the PHY's, is %q", off, n)
		}
	}
}
