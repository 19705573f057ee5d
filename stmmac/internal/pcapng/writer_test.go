package pcapng_test

import (
	"bytes"
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/gostmmac/gostmmac/internal/pcapngtest"
	"github.com/gostmmac/gostmmac/stmmac/internal/pcapng"
)

// TestFile writes a file and reads it with another hand's reader.
func TestFile(t *testing.T) {
	var file bytes.Buffer
	w, err := pcapng.NewWriter(&file, "test")
	if err != nil {
		t.Fatal(err)
	}
	addr := []byte{2, 0, 0, 0, 0, 1}
	for i, in := range []pcapng.Interface{{Name: "eth rx0", Addr: addr, Speed: 1e9, SnapLen: 96}, {Name: "x"}} {
		if n, err := w.Interface(in); n != i || err != nil {
			t.Fatal(n, err)
		}
	}
	data := func(n int) []byte { return bytes.Repeat([]byte{0xa5}, n) }
	const at = 1_700_000_000_123_456_789
	packets := []pcapng.Packet{
		{Time: at, Data: data(60), Len: 60, Direction: pcapng.Inbound},
		{Time: at + 1, Data: data(96), Len: 1514, Direction: pcapng.Outbound, Interface: 1, Dropped: 7, Comment: "odd"},
		{Time: at + 1<<33, Data: data(61), Len: 61},
		{Time: at + 2, Data: data(0), Len: 62, Comment: strings.Repeat("long", 1<<15)},
		{Time: at + 3, Data: data(63), Len: 63, Dropped: 1 << 40},
	}
	for i := range packets {
		if err := w.Packet(&packets[i]); err != nil {
			t.Fatal(err)
		}
	}
	s := pcapng.Statistics{Time: at + 9, Start: at, End: at + 8, Received: 1 << 33, Dropped: 3}
	if err := w.Statistics(1, s); err != nil {
		t.Fatal(err)
	}
	got, err := pcapngtest.Read(file.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	want := &pcapngtest.File{
		App: "test",
		Interfaces: []pcapngtest.Interface{
			{Name: "eth rx0", Addr: addr, Speed: 1e9, SnapLen: 96, Nanoseconds: true},
			{Name: "x", Nanoseconds: true, Stats: &pcapngtest.Stats{Time: at + 9, Start: at, End: at + 8, Received: 1 << 33, Dropped: 3}},
		},
	}
	for _, p := range packets {
		c := p.Comment[:min(len(p.Comment), 65535)]
		want.Packets = append(want.Packets, pcapngtest.Packet{Interface: p.Interface, Time: p.Time, Data: p.Data, Len: p.Len,
			Flags: uint32(p.Direction), Dropped: p.Dropped, Comment: c})
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

// TestLayout compares a small file with the bytes that the draft says.
func TestLayout(t *testing.T) {
	var file bytes.Buffer
	w, err := pcapng.NewWriter(&file, "ab")
	if err != nil {
		t.Fatal(err)
	}
	w.Interface(pcapng.Interface{Name: "abc"})
	w.Packet(&pcapng.Packet{Time: 0x0102030405060708, Data: []byte{1, 2, 3, 4, 5}, Len: 9, Direction: pcapng.Outbound})
	want := "" +
		"\x0a\x0d\x0d\x0a\x28\x00\x00\x00\x4d\x3c\x2b\x1a\x01\x00\x00\x00\xff\xff\xff\xff\xff\xff\xff\xff" +
		"\x04\x00\x02\x00ab\x00\x00\x00\x00\x00\x00\x28\x00\x00\x00" +
		"\x01\x00\x00\x00\x30\x00\x00\x00\x01\x00\x00\x00\x00\x00\x00\x00" +
		"\x02\x00\x03\x00abc\x00\x09\x00\x01\x00\x09\x00\x00\x00\x0d\x00\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x30\x00\x00\x00" +
		"\x06\x00\x00\x00\x34\x00\x00\x00\x00\x00\x00\x00\x04\x03\x02\x01\x08\x07\x06\x05\x05\x00\x00\x00\x09\x00\x00\x00" +
		"\x01\x02\x03\x04\x05\x00\x00\x00\x02\x00\x04\x00\x02\x00\x00\x00\x00\x00\x00\x00\x34\x00\x00\x00"
	if d := cmp.Diff([]byte(want), file.Bytes()); d != "" {
		t.Error(d)
	}
}

// failing takes n calls.
type failing struct{ n, calls int }

func (f *failing) Write(p []byte) (int, error) {
	if f.calls++; f.calls > f.n {
		return 0, os.ErrPermission
	}
	return len(p), nil
}

// TestError: the first error is that of all calls that follow, and nothing is
// written behind it.
func TestError(t *testing.T) {
	if _, err := pcapng.NewWriter(new(failing), "x"); !errors.Is(err, os.ErrPermission) {
		t.Error(err)
	}
	f := &failing{n: 2}
	w, err := pcapng.NewWriter(f, "x")
	if err != nil {
		t.Fatal(err)
	}
	w.Interface(pcapng.Interface{})
	for _, n := range []int{-1, 1} {
		if err := w.Packet(&pcapng.Packet{Interface: n}); !errors.Is(err, os.ErrInvalid) {
			t.Errorf("interface %d: %v", n, err)
		}
		if err := w.Statistics(n, pcapng.Statistics{}); !errors.Is(err, os.ErrInvalid) {
			t.Errorf("interface %d: %v", n, err)
		}
	}
	f.n = f.calls
	for range 3 {
		if err := w.Packet(&pcapng.Packet{}); !errors.Is(err, os.ErrPermission) {
			t.Error(err)
		}
	}
	if err := w.Statistics(0, pcapng.Statistics{}); !errors.Is(err, os.ErrPermission) || f.calls != f.n+1 {
		t.Error(err, f.calls)
	}
}

// TestAllocations: a packet costs no memory of its own.
func TestAllocations(t *testing.T) {
	w, err := pcapng.NewWriter(&failing{n: 1 << 20}, "x")
	if err != nil {
		t.Fatal(err)
	}
	w.Interface(pcapng.Interface{})
	p := pcapng.Packet{Data: make([]byte, 1514), Len: 1514, Direction: pcapng.Inbound, Dropped: 1, Comment: "bad"}
	w.Packet(&p)
	if n := testing.AllocsPerRun(100, func() { w.Packet(&p) }); n != 0 {
		t.Errorf("%v allocations a packet", n)
	}
}
