package vfio

import (
	"errors"
	"io/fs"
	"math"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
)

const limitsText = `Limit                     Soft Limit           Hard Limit           Units
Max processes             15413                15413                processes
Max locked memory         8388608              16777216             bytes
Max address space         unlimited            unlimited            bytes
`

const statusText = "Name:\tx\nUid:\t1000\t1000\t1000\t1000\nVmLck:\t    1024 kB\nVmPin:\t    2048 kB\nCapEff:\t0000000000004000\n"

func TestParseMemlock(t *testing.T) {
	limits := func(soft string) string { return strings.Replace(limitsText, "8388608 ", soft+" ", 1) }
	for _, tc := range []struct {
		name, limits, status string
		want                 memlock
		fails                bool
	}{
		{"all", limitsText, statusText, memlock{limit: 8 << 20, locked: 1 << 20, pinned: 2 << 20, exempt: true}, false},
		{"without limit", limits("unlimited"), "VmLck:\t0 kB\n", memlock{limit: math.MaxUint64}, false},
		{"an old kernel", limits("0"), "VmLck: 4 kB\nCapEff: 0000000000000000\n", memlock{locked: 4096}, false},
		{"fields that make no sense", limits("1"), "VmLck: 4 MB\nVmPin: 99999999999999999999 kB\nCapEff: xyz\n", memlock{limit: 1}, false},
		{"too much to count", limits("1"), "VmLck: 36028797018963968 kB\n", memlock{limit: 1}, false},
		{"every other capability", limits("1"), "CapEff: ffffffffffffbfff\n", memlock{limit: 1}, false},
		{"no line", "Max processes 1 1 processes\n", statusText, memlock{}, true},
		{"no number", limits("-5"), statusText, memlock{}, true},
		{"a line that ends", "Max locked memory ", statusText, memlock{}, true},
		{"nothing", "", "", memlock{}, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, err := parseMemlock(tc.limits, tc.status)
			if (err != nil) != tc.fails {
				t.Fatal(err)
			}
			if d := cmp.Diff(tc.want, got, cmp.AllowUnexported(memlock{})); d != "" {
				t.Errorf("-want +got:\n%s", d)
			}
		})
	}
}

func TestMemlockCheck(t *testing.T) {
	const mib = 1 << 20
	for _, tc := range []struct {
		name string
		m    memlock
		need uint64
		says []string // of the error, nothing for none
	}{
		{"enough", memlock{limit: 64 * mib, locked: 32 * mib}, 32 * mib, nil},
		{"one byte too many", memlock{limit: 64 * mib, locked: 32 * mib}, 32*mib + 1,
			[]string{"33554433 bytes more", "33554432 of 67108864 are used", "--memlock=134217728:134217728`", "LimitMEMLOCK=128M", "memlock 131072'", "cap_ipc_lock+ep", "smaller pool"}},
		{"what is pinned counts", memlock{limit: 4 * mib, pinned: 4 * mib}, 1, []string{"4194304 of 4194304", "LimitMEMLOCK=8M"}},
		{"the smallest limit", memlock{limit: 64 << 10}, 65 << 10, []string{"66560 bytes more", "LimitMEMLOCK=1M", "memlock 1024'"}},
		{"a limit lowered since", memlock{limit: 1, locked: 2}, 0, []string{"0 bytes more"}},
		{"exempt", memlock{exempt: true}, math.MaxUint64, nil},
		{"without limit", memlock{limit: math.MaxUint64, locked: 5}, math.MaxUint64, nil},
		{"more than there can be", memlock{limit: 8, locked: 8}, math.MaxUint64, []string{"LimitMEMLOCK=infinity", "memlock unlimited'", "--memlock=unlimited:unlimited`"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			err := tc.m.check(tc.m.used(), tc.need)
			if (err != nil) != (tc.says != nil) || err != nil && !errors.Is(err, ErrMemlock) {
				t.Fatal(err)
			}
			if err == nil {
				return
			}
			text := strings.ReplaceAll(err.Error(), `"`, `'`)
			for _, s := range tc.says {
				if !strings.Contains(text, s) {
					t.Errorf("no %q in %q", s, text)
				}
			}
			if e := new(Error); !errors.As(wrap("map DMA", "x", err), &e) || e.Dev != "x" {
				t.Errorf("it cannot be named: %#v", err)
			}
		})
	}
}

// mapKernel is a kernel of files in memory.
type mapKernel struct {
	Kernel // nothing
	m      fstest.MapFS
}

func (k mapKernel) FS() fs.FS { return k.m }

func TestReadMemlock(t *testing.T) {
	for _, tc := range []struct {
		name   string
		files  map[string]string
		exempt bool
		fails  bool
	}{
		{"the machine's own users", map[string]string{"limits": limitsText, "status": statusText, "uid_map": "         0          0 4294967295\n"}, true, false},
		{"no user namespaces", map[string]string{"limits": limitsText, "status": statusText}, true, false},
		{"a container with users of its own", map[string]string{"limits": limitsText, "status": statusText, "uid_map": "0 100000 65536\n"}, false, false},
		{"no limits", map[string]string{"status": statusText}, false, true},
		{"no status", map[string]string{"limits": limitsText}, false, true},
		{"limits of something else", map[string]string{"limits": "?", "status": statusText}, false, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			m := fstest.MapFS{}
			for name, text := range tc.files {
				m["proc/self/"+name] = &fstest.MapFile{Data: []byte(text)}
			}
			got, err := readMemlock(mapKernel{m: m})
			if (err != nil) != tc.fails || got.exempt != tc.exempt {
				t.Errorf("%+v, %v", got, err)
			}
			if e := new(Error); err != nil && (!errors.As(err, &e) || e.Remedy == "") {
				t.Errorf("%#v", err)
			}
		})
	}
}

func FuzzMemlock(f *testing.F) {
	f.Add(limitsText, statusText, uint64(1<<20))
	f.Add("Max locked memory  18446744073709551615 x bytes", "VmLck:\t18014398509481983 kB\nVmPin: 1 kB", uint64(math.MaxUint64))
	f.Fuzz(func(t *testing.T, limits, status string, need uint64) {
		m, err := parseMemlock(limits, status)
		if err != nil {
			if m != (memlock{}) {
				t.Errorf("%+v with %v", m, err)
			}
			return
		}
		// Without limits of arithmetic: what is used and needed is within the limit.
		fits := m.exempt || m.limit == unlimited || float64(m.used())+float64(need) <= float64(m.limit)
		if err := m.check(m.used(), need); (err == nil) != fits && m.limit < 1<<52 {
			t.Errorf("%+v, need %d: %v", m, need, err)
		}
		parseProcess(status)
	})
}
