package main

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/gostmmac/gostmmac/examples/internal/cli"
)

// writePcap writes a capture file of its own making: big-endian, nanoseconds.
func writePcap(t *testing.T, name string, frames [][]byte) {
	t.Helper()
	b := []byte{0xa1, 0xb2, 0x3c, 0x4d, 0, 2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x40, 0, 0, 0, 0, 1}
	for i, f := range frames {
		for _, v := range []int{i, i * 1000, len(f), len(f)} {
			b = binary.BigEndian.AppendUint32(b, uint32(v))
		}
		b = append(b, f...)
	}
	if err := os.WriteFile(name, b, 0o666); err != nil {
		t.Fatal(err)
	}
}

// readPcap reads a capture file of either byte order.
func readPcap(t *testing.T, name string) (frames [][]byte) {
	t.Helper()
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if len(b) < 24 {
		t.Fatalf("%s has %d bytes", name, len(b))
	}
	var order binary.ByteOrder = binary.LittleEndian
	if b[0] == 0xa1 {
		order = binary.BigEndian
	}
	if link := order.Uint32(b[20:]); link != 1 {
		t.Fatalf("%s: link type %d", name, link)
	}
	for b = b[24:]; len(b) > 0; {
		if len(b) < 16 {
			t.Fatalf("%s: record of %d bytes", name, len(b))
		}
		n, orig := order.Uint32(b[8:]), order.Uint32(b[12:])
		if uint32(len(b)-16) < n || n != orig {
			t.Fatalf("%s: record of %d bytes with %d and %d", name, len(b)-16, n, orig)
		}
		frames = append(frames, b[16:16+n])
		b = b[16+n:]
	}
	return frames
}

// mixedFrames are frames of all kinds and of lengths from 60 to longest.
func mixedFrames(n, longest int, seed uint64) (frames [][]byte) {
	rnd := rand.New(rand.NewPCG(seed, 0))
	// Behind the addresses: what makes the kind.
	kinds := []struct {
		name string
		head []byte
	}{
		{"ARP", []byte{0x08, 0x06, 0, 1, 8, 0, 6, 4, 0, 1}},
		{"IPv4", []byte{0x08, 0x00, 0x45, 0, 0, 40, 1, 2, 0x40, 0, 64, 6}},
		{"IPv4 first fragment", []byte{0x08, 0x00, 0x45, 0, 0, 40, 1, 2, 0x20, 0, 64, 17}},
		{"IPv4 last fragment", []byte{0x08, 0x00, 0x45, 0, 0, 40, 1, 2, 0x00, 0xb9, 64, 17}},
		{"IPv6", []byte{0x86, 0xdd, 0x60, 0, 0, 0, 0, 20, 6, 64}},
		{"IPv6 fragment", []byte{0x86, 0xdd, 0x60, 0, 0, 0, 0, 20, 44, 64}},
		{"VLAN", []byte{0x81, 0x00, 0x60, 0x05, 0x08, 0x00, 0x45, 0}},
		{"priority tag", []byte{0x81, 0x00, 0xe0, 0x00, 0x86, 0xdd, 0x60, 0}},
		{"two tags", []byte{0x88, 0xa8, 0x00, 0x64, 0x81, 0x00, 0x00, 0x05, 0x08, 0x00}},
		{"LLC", []byte{0x00, 0x2e, 0x42, 0x42, 0x03}},
		{"LLDP", []byte{0x88, 0xcc, 0x02, 0x07}},
		{"unknown type", []byte{0xfe, 0xfe}},
	}
	addrs := [][]byte{
		{0x02, 0, 0, 0, 0, 1}, {0x02, 0, 0, 0, 0, 2}, {0xff, 0xff, 0xff, 0xff, 0xff, 0xff},
		{0x33, 0x33, 0, 0, 0, 1}, {0x01, 0x80, 0xc2, 0, 0, 0x0e}, {0, 0, 0, 0, 0, 0},
	}
	for i := range n {
		size := 60 + i%64 // each of the short ones
		switch i % 4 {
		case 1:
			size = 60 + rnd.IntN(longest-59)
		case 2: // around the ends of receive buffers
			size = min(longest, max(60, 1920*(1+rnd.IntN(5))-10+rnd.IntN(20)))
		case 3:
			size = longest - i/4%16
		}
		f := make([]byte, size)
		for k := range f {
			f[k] = byte(rnd.Uint32())
		}
		copy(f, addrs[rnd.IntN(len(addrs))])
		copy(f[6:], addrs[rnd.IntN(2)])
		copy(f[12:], kinds[i%len(kinds)].head)
		binary.BigEndian.PutUint32(f[56:], uint32(i)) // no two are the same
		frames = append(frames, f)
	}
	return frames
}

func compareFrames(t *testing.T, got, want [][]byte) {
	t.Helper()
	for i := range min(len(got), len(want)) {
		if !bytes.Equal(got[i], want[i]) {
			t.Fatalf("frame %d of %d bytes came out with %d:\nwant %x\ngot  %x", i, len(want[i]), len(got[i]), want[i], got[i])
		}
	}
	if len(got) != len(want) {
		t.Fatalf("%d frames came out of %d", len(got), len(want))
	}
}

func TestPcap(t *testing.T) {
	for _, extra := range [][]string{nil, {"-poll"}, {"-batch", "1"}, {"-batch", "256"}} {
		t.Run(fmt.Sprint(extra), func(t *testing.T) {
			dir := t.TempDir()
			in, out := filepath.Join(dir, "A.pcap"), filepath.Join(dir, "B.pcap")
			frames := mixedFrames(1200, 9014, 1)
			writePcap(t, in, frames)
			args := append([]string{"-json", "-mtu", "9000", "-a", "sim:gmac4,wire=pcap,in=" + in, "-b", "sim:gmac4,wire=pcap,out=" + out}, extra...)
			r := mustRun(t, cli.OK, args...).result(t)
			compareFrames(t, readPcap(t, out), frames)
			if r.Packets != uint64(len(frames)) || r.Lost != 0 || len(r.Drops) != 0 {
				t.Errorf("%+v", r)
			}
		})
	}
}

func TestPcapBothWays(t *testing.T) {
	dir := t.TempDir()
	path := func(name string) string { return filepath.Join(dir, name) }
	a, b := mixedFrames(1000, 1514, 2), mixedFrames(3000, 1514, 3)
	writePcap(t, path("a"), a)
	writePcap(t, path("b"), b)
	mustRun(t, cli.OK, "-a", "sim:gmac4,wire=pcap,in="+path("a")+",out="+path("a2"), "-b", "sim:gmac4,wire=pcap,irq=each,in="+path("b")+",out="+path("b2"))
	compareFrames(t, readPcap(t, path("b2")), a)
	compareFrames(t, readPcap(t, path("a2")), b)
}

func TestPcapEmpty(t *testing.T) {
	dir := t.TempDir()
	in, out := filepath.Join(dir, "a"), filepath.Join(dir, "b")
	writePcap(t, in, nil)
	mustRun(t, cli.OK, "-a", "sim:gmac4,wire=pcap,in="+in, "-b", "sim:gmac4,wire=pcap,out="+out)
	if got := readPcap(t, out); len(got) != 0 {
		t.Errorf("%d frames", len(got))
	}
}

// TestPcapDrops has frames that do not fit: they are lost, by reason, and the
// others are not.
func TestPcapDrops(t *testing.T) {
	dir := t.TempDir()
	in, out := filepath.Join(dir, "a"), filepath.Join(dir, "b")
	var frames, good [][]byte
	for i, f := range mixedFrames(200, 1514, 4) {
		frames, good = append(frames, f), append(good, f)
		if i%20 == 0 {
			frames = append(frames, mixedFrames(4, 5000, uint64(i))[3], f[:50])
		}
	}
	writePcap(t, in, frames)
	r := mustRun(t, cli.Failed, "-json", "-a", "sim:gmac4,wire=pcap,in="+in, "-b", "sim:gmac4,wire=pcap,out="+out).result(t)
	compareFrames(t, readPcap(t, out), good)
	if r.Lost != 20 || r.Drops["rx_oversize"] != 10 || r.Drops["mac_error"] != 10 || r.Directions[0].Lost != 20 {
		t.Errorf("%+v", r)
	}
}

func TestPcapLearn(t *testing.T) {
	dir := t.TempDir()
	path := func(name string) string { return filepath.Join(dir, name) }
	const x, y, z = 0x020000000001, 0x020000000002, 0x020000000003
	lldp := etherFrame(0x0180c200000e, x, -1)
	frames := [][]byte{
		etherFrame(y, x, -1), // unknown
		etherFrame(x, y, -1), // known here
		etherFrame(z, y, -1), // unknown
		lldp,
		etherFrame(x, y, 7), // unknown in this VLAN
	}
	writePcap(t, path("a"), frames)
	args := []string{"-json", "-a", "sim:gmac4,wire=pcap,in=" + path("a"), "-b", "sim:gmac4,wire=pcap,out=" + path("b")}
	r := mustRun(t, cli.OK, append(args, "-learn")...).result(t)
	compareFrames(t, readPcap(t, path("b")), [][]byte{frames[0], frames[2], frames[4]})
	if r.Filtered != 2 || r.Lost != 0 || len(r.Drops) != 0 {
		t.Errorf("%+v", r)
	}
	r = mustRun(t, cli.OK, args...).result(t)
	compareFrames(t, readPcap(t, path("b")), frames)
	if r.Filtered != 0 {
		t.Errorf("%+v", r)
	}
}

// TestPcapCut plays a file that ends inside a record, and one without a header.
func TestPcapCut(t *testing.T) {
	dir := t.TempDir()
	in, out := filepath.Join(dir, "a"), filepath.Join(dir, "b")
	frames := mixedFrames(100, 1514, 5)
	writePcap(t, in, frames)
	whole, err := os.ReadFile(in)
	if err != nil {
		t.Fatal(err)
	}
	addrs := []string{"-a", "sim:gmac4,wire=pcap,in=" + in, "-b", "sim:gmac4,wire=pcap,out=" + out}
	if err := os.WriteFile(in, whole[:len(whole)-1], 0o666); err != nil {
		t.Fatal(err)
	}
	o := mustRun(t, cli.Failed, addrs...)
	o.says(t, "device A", in, "pcap data at offset", "unexpected EOF")
	compareFrames(t, readPcap(t, out), frames[:99])
	if err := os.WriteFile(in, whole[:23], 0o666); err != nil {
		t.Fatal(err)
	}
	mustRun(t, cli.Usage, addrs...).says(t, "open device A", in, "unexpected EOF")
}
