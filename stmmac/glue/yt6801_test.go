package glue

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/gostmmac/gostmmac/mmio"
	"github.com/gostmmac/gostmmac/vfio"
)

// linuxUp is what the stock driver of Linux 7.3 does with the block when it probes
// the chip, between its two halves it reads the eFuse.
var (
	linuxReset = []string{"R 152c 00000000", "W 152c 00000000", "W 152c 80000000", "R 1004 00000000", "W 1004 00000001"}
	linuxInit  = []string{"W 1100 00000000", "W 1108 00c800c8", "W 1010 00000001"}
)

// block is the registers of a YT6801 with an eFuse.
func block(efuse []byte) *mmio.Fake {
	f := mmio.NewFake(0x10000)
	f.OnStore(0x1500, func(v uint32) {
		const want = 1 | 1<<2
		if v&0xff != want || v>>16 != 0 {
			f.Set(0x1504, 0)
			return
		}
		b := byte(0)
		if at := int(v >> 8); at < len(efuse) {
			b = efuse[at]
		}
		f.Set(0x1504, uint32(b)<<24|1<<1)
	})
	return f
}

// fuses is an eFuse with records, each an offset and a value.
func fuses(records ...uint32) []byte {
	b := make([]byte, 18)
	for i := 0; i < len(records); i += 2 {
		a, v := records[i], records[i+1]
		b = append(b, byte(a), byte(a>>8), byte(v), byte(v>>8), byte(v>>16), byte(v>>24))
	}
	return b
}

// accesses formats a log without that of the eFuse.
func accesses(log []mmio.Access) []string {
	var all []string
	for _, a := range log {
		if a.Off != 0x1500 && a.Off != 0x1504 {
			op := "R"
			if a.Store {
				op = "W"
			}
			all = append(all, fmt.Sprintf("%s %x %08x", op, a.Off, a.Val))
		}
	}
	return all
}

func same(t *testing.T, what string, f *mmio.Fake, want ...[]string) {
	t.Helper()
	if d := cmp.Diff(slices.Concat(want...), accesses(f.Log())); d != "" {
		t.Errorf("%s (-want +got):\n%s", what, d)
	}
	f.ResetLog()
}

func TestYT6801(t *testing.T) {
	ctx := context.Background()
	f := block(fuses(0x1520, 0x5e9c0a01, 0x1524, 0xffff0242))
	d := &device{r: f, closeErr: os.ErrPermission}
	g := mustFind(t, tree{}, pciInfo(0x1f0a, 0x6801))
	y, err := g.Prepare(ctx, d)
	if err != nil {
		t.Fatal(err)
	}
	// The MAC is not touched: all is below 0x2000.
	same(t, "Prepare", f, []string{"R 1004 00000000", "R 1010 00000000", "R 1100 00000000", "R 1108 00000000"}, linuxReset, linuxInit)
	if c := configOf(t, g.Options(6)); c.HardwareAddr.String() != "02:42:5e:9c:0a:01" {
		t.Errorf("address %v", c.HardwareAddr)
	}
	if r, err := y.Region(0); r != mmio.Region(f) || err != nil || y.NumInterrupts() != 6 {
		t.Error("the device is not that behind it")
	}

	// The reset took everything back.
	f.Set(0x152c, 0)
	f.Set(0x1004, 0)
	d.onReset = func() { same(t, "before the reset", f) }
	if err := y.Reset(ctx); err != nil {
		t.Fatal(err)
	}
	same(t, "Reset", f, linuxReset, linuxInit)

	d.resetErr = errors.ErrUnsupported
	if err := y.Reset(ctx); !errors.Is(err, errors.ErrUnsupported) {
		t.Error(err)
	}
	same(t, "a reset that failed", f)
	d.resetErr, d.onReset = nil, func() { f.Set(0x152c, mmio.AllOnes) }
	if err := y.Reset(ctx); !errors.Is(err, vfio.ErrGone) || !strings.Contains(err.Error(), "0000:03:00.0") {
		t.Error(err)
	}
	f.ResetLog()

	for range 2 {
		if err := y.Close(); !errors.Is(err, os.ErrPermission) {
			t.Error(err)
		}
	}
	same(t, "Close", f, []string{"W 1010 00000000", "W 1108 00000000", "W 1100 00000000", "W 1004 00000000"})
	if d.closes != 1 {
		t.Errorf("closed %d times", d.closes)
	}
	resets := d.resets
	if err := y.Reset(ctx); !errors.Is(err, vfio.ErrClosed) || d.resets != resets {
		t.Errorf("reset after Close: %v", err)
	}
}

// TestYT6801Undo: Close puts back what was found, not what is usual.
func TestYT6801Undo(t *testing.T) {
	f := block(nil)
	for off, v := range map[uint32]uint32{0x1004: 0x81, 0x1010: 0x70, 0x1100: 0xff, 0x1108: 0x123} {
		f.Set(off, v)
	}
	y, err := mustFind(t, tree{}, pciInfo(0x1f0a, 0x6801)).Prepare(context.Background(), &device{r: f})
	if err != nil {
		t.Fatal(err)
	}
	f.ResetLog()
	if err := y.Close(); err != nil {
		t.Error(err)
	}
	same(t, "Close", f, []string{"W 1010 00000070", "W 1108 00000123", "W 1100 000000ff", "W 1004 00000081"})
}

// TestYT6801Trace: the writes are those of the trace of the stock driver that the
// tests of stmmac use for the MAC.
func TestYT6801Trace(t *testing.T) {
	file, err := os.Open("../testdata/linux-yt6801-open.trace")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	var want []string
	for s := bufio.NewScanner(file); s.Scan(); {
		var off, v uint32
		if n, _ := fmt.Sscanf(s.Text(), "W %x %x", &off, &v); n == 2 && off < yt6801Integration.offset {
			want = append(want, fmt.Sprintf("W %x %08x", off, v))
		}
	}
	f := block(nil)
	if _, err := mustFind(t, tree{}, pciInfo(0x1f0a, 0x6801)).Prepare(context.Background(), &device{r: f}); err != nil {
		t.Fatal(err)
	}
	got := slices.DeleteFunc(accesses(f.Log()), func(a string) bool { return a[0] == 'R' })
	if d := cmp.Diff(want, got); d != "" || len(want) == 0 {
		t.Errorf("(-linux +got):\n%s", d)
	}
}

func TestEFuseAddr(t *testing.T) {
	const low, high = 0x1520, 0x1524
	full := make([]uint32, 0, 2*39)
	for i := range uint32(37) {
		full = append(full, 0x3000+4*i, 0xffffffff)
	}
	for _, tc := range []struct {
		name  string
		efuse []byte
		want  string
	}{
		{"empty", nil, ""},
		{"both", fuses(low, 0x33445566, high, 0x1122), "11:22:33:44:55:66"},
		{"the other way round, behind others", fuses(0x1004, 1, high, 0xaabb1122, 0x2000, 2, low, 0x33445566), "11:22:33:44:55:66"},
		{"the first ones", fuses(low, 0x33445566, low, 0, high, 0x1122, high, 0), "11:22:33:44:55:66"},
		{"one half", fuses(low, 0x33445566), ""},
		{"behind the end", fuses(low, 0x33445566, 0, 0, high, 0x1122), ""},
		{"in the last two records", fuses(append(full, low, 0x33445566, high, 0x1122)...), "11:22:33:44:55:66"},
		{"behind the last record", fuses(append(append(full, low, 0x33445566, 0x3000, 0), high, 0x1122)...), ""},
		{"addresses that only look like it", fuses(0x1521, 1, 0x2015, 1), ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			f := block(tc.efuse)
			a, err := readEFuseAddr(context.Background(), f)
			if err != nil || a.String() != tc.want {
				t.Errorf("%v, %v; want %s", a, err, tc.want)
			}
			for _, acc := range f.Log() {
				if acc.Off != 0x1500 && acc.Off != 0x1504 {
					t.Errorf("an access besides: %v", acc)
				}
			}
		})
	}
}

// TestBadAddr: what is no address of a station leaves the choice to stmmac.
func TestBadAddr(t *testing.T) {
	for _, tc := range []struct{ low, high uint32 }{{0, 0}, {0x33445566, 0x0122}, {0xffffffff, 0xffff}} {
		g := mustFind(t, tree{}, pciInfo(0x1f0a, 0x6801))
		if _, err := g.Prepare(context.Background(), &device{r: block(fuses(0x1520, tc.low, 0x1524, tc.high))}); err != nil {
			t.Fatal(err)
		}
		if c := configOf(t, g.Options(6)); c.HardwareAddr != nil {
			t.Errorf("%x %x: %v", tc.high, tc.low, c.HardwareAddr)
		}
	}
	if a := (net.HardwareAddr{2, 0, 0, 0, 0, 0, 0, 1}); isUnicast(a) {
		t.Errorf("%v is no Ethernet address", a)
	}
}

func TestYT6801Errors(t *testing.T) {
	canceled, cancel := context.WithCancel(context.Background())
	cancel()
	for _, tc := range []struct {
		name   string
		ctx    context.Context
		r      func() *mmio.Fake
		is     error
		text   string
		undone bool
	}{
		{"no region", context.Background(), nil, os.ErrNotExist, "region 0", false},
		{"a small region", context.Background(), func() *mmio.Fake { return mmio.NewFake(0x152c) }, errors.ErrUnsupported, "too few", false},
		{"gone", context.Background(), func() *mmio.Fake {
			f := block(nil)
			f.Set(0x152c, mmio.AllOnes)
			return f
		}, vfio.ErrGone, "SYS_RESET", false},
		{"gone while the eFuse is read", context.Background(), func() *mmio.Fake {
			f := block(nil)
			f.OnLoad(0x1504, func(uint32) uint32 { return mmio.AllOnes })
			return f
		}, vfio.ErrGone, "EFUSE_OP_CTRL_1", true},
		{"an eFuse that does not answer", context.Background(), func() *mmio.Fake { return mmio.NewFake(0x10000) }, os.ErrDeadlineExceeded, "byte 18", true},
		{"an eFuse that does not answer before the context ends", canceled, func() *mmio.Fake { return mmio.NewFake(0x10000) }, context.Canceled, "address", true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			d := &device{}
			if tc.r != nil {
				d.r = tc.r()
			}
			y, err := mustFind(t, tree{}, pciInfo(0x1f0a, 0x6801)).Prepare(tc.ctx, d)
			if y != nil || !errors.Is(err, tc.is) || !strings.Contains(err.Error(), tc.text) || !strings.Contains(err.Error(), "0000:03:00.0") {
				t.Fatalf("%v, %v", y, err)
			}
			if d.closes > 0 {
				t.Error("closed")
			}
			if f, ok := d.r.(*mmio.Fake); ok {
				log := accesses(f.Log())
				if got := len(log) > 0 && log[len(log)-1] == "W 1004 00000000"; got != tc.undone {
					t.Errorf("undone: %v, want %v", got, tc.undone)
				}
			}
		})
	}
}
