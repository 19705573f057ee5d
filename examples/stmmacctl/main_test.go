package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/gostmmac/gostmmac/examples/internal/cli"
	"github.com/gostmmac/gostmmac/examples/internal/clitest"
	"github.com/gostmmac/gostmmac/internal/pcapngtest"
	"github.com/gostmmac/gostmmac/pagepool"
	"github.com/gostmmac/gostmmac/stmmac"
	"github.com/gostmmac/gostmmac/stmmac/bus"
	"github.com/gostmmac/gostmmac/stmmac/sim"
)

func mustRun(t *testing.T, code int, args ...string) clitest.Outcome {
	t.Helper()
	return mustRunWith(t, bus.NewOpener(), code, args...)
}

func mustRunWith(t *testing.T, o *bus.Opener, code int, args ...string) clitest.Outcome {
	t.Helper()
	out := clitest.Run(t, func(ctx context.Context, args []string, stdout, stderr io.Writer) int {
		return runWith(ctx, o, args, stdout, stderr)
	}, code, args...)
	if code == cli.OK && out.Stderr != "" && args[0] != "-h" && !strings.Contains(strings.Join(args, " "), "capture -") {
		t.Errorf("%v: %s", args, out.Stderr)
	}
	return out
}

func decode(t *testing.T, text string, v any) {
	t.Helper()
	d := json.NewDecoder(strings.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(v); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
}

// faulty is an opener whose devices have faults.
func faulty(set func(*sim.Faults)) *bus.Opener {
	o := bus.NewOpener()
	plain := o.Schemes["sim"]
	o.Schemes["sim"] = func(ctx context.Context, a bus.Address) (*bus.Handle, error) {
		h, err := plain(ctx, a)
		if err == nil {
			h.Sim.SetFaults(set)
		}
		return h, err
	}
	return o
}

// eventually calls f with longer and longer times, until it is content.
func eventually(t *testing.T, f func(limit string) bool) {
	t.Helper()
	for limit := 50 * time.Millisecond; !f(limit.String()); limit *= 2 {
		if limit > clitest.Patience {
			t.Fatal("it does not happen")
		}
	}
}

func TestStats(t *testing.T) {
	out := mustRun(t, cli.OK, "stats", "-wait", "1m", "sim:gmac4").Stdout
	clitest.Says(t, out, "sim:gmac4: link 1000 Mbit/s full duplex", "rx0_packets", "Rx_CRC_Error_Packets", "recoveries")
	var s statistics
	eventually(t, func(limit string) bool {
		decode(t, mustRun(t, cli.OK, "-json", "stats", "sim:gmac4,wire=gen", "-duration", limit, "-wait", "1m", "-queues", "2").Stdout, &s)
		return s.Counters["rx0_packets"] != 0
	})
	if s.Counters["rx0_packets"] == 0 || s.Counters["Rx_Packets_Count_Good_Bad"] < s.Counters["rx0_packets"] || !s.Link.Up || s.Link.PHY == nil {
		t.Errorf("%+v", s)
	}
	if _, ok := s.Counters["tx1_packets"]; !ok {
		t.Error("the zeros are missing")
	}
	eventually(t, func(limit string) bool {
		out = mustRun(t, cli.OK, "-wire", "gen", "-nonzero", "-duration", limit, "sim:gmac4", "stats").Stdout
		return strings.Contains(out, "rx0_packets")
	})
	if clitest.Says(t, out, "rx0_packets"); strings.Contains(out, "tx0_packets") || strings.HasPrefix(out, "rx0") {
		t.Error(out)
	}
}

func TestDump(t *testing.T) {
	out := mustRun(t, cli.OK, "dump", "-wait", "1m", "sim:gmac4,rxq=2,txq=2").Stdout
	clitest.Says(t, out, "0x0000  MAC_Configuration", "RE|TE", "DMA_CH1_Status", "0x1160", "TXQEN=2")
	if strings.Contains(out, "DMA_CH2_Status") || strings.Contains(out, "Rx_CRC_Error_Packets") {
		t.Error(out)
	}
	var list []register
	decode(t, mustRun(t, cli.OK, "dump", "-json", "-wait", "1m", "sim:gmac4").Stdout, &list)
	if len(list) < 100 || list[0].Name != "MAC_Configuration" || !strings.Contains(list[0].Bits, "RE") {
		t.Errorf("%+v", list)
	}
}

func TestLink(t *testing.T) {
	clitest.Says(t, mustRun(t, cli.OK, "link", "-wait", "1m", "sim:gmac4").Stdout, "link: 1000 Mbit/s full duplex", "PHY: address 1, identifier 0x", "1000baseT/Full")
	clitest.Says(t, mustRun(t, cli.OK, "link", "sim:gmac4,phy=none").Stdout, "1000 Mbit/s", "the link is fixed")
	clitest.Says(t, mustRun(t, cli.OK, "link", "-set", "down", "-wait", "0s", "sim:gmac4,phy=none").Stdout, "link: down")
	clitest.Says(t, mustRun(t, cli.OK, "link", "-set", "100/half", "sim:gmac4,phy=none").Stdout, "100 Mbit/s half")
	clitest.Says(t, mustRun(t, cli.OK, "link", "-set", "auto", "-wait", "1m", "sim:gmac4").Stdout, "1000 Mbit/s full")
	clitest.Says(t, mustRun(t, cli.Failed, "link", "-renegotiate", "sim:gmac4,phy=none").Stderr, "fixed")
	clitest.Says(t, mustRun(t, cli.OK, "link", "-renegotiate", "-wait", "0s", "sim:gmac4").Stdout, "link: ")
	var s linkState
	decode(t, mustRun(t, cli.OK, "link", "-json", "-set", "100/full", "-wait", "1m", "sim:gmac4").Stdout, &s)
	if !s.Up || s.Speed != 100 || !s.FullDuplex {
		t.Errorf("%+v", s)
	}
	decode(t, mustRun(t, cli.OK, "link", "-json", "-watch", "-duration", "10ms", "sim:gmac4,phy=none").Stdout, &s)
	if !s.Up || s.Speed != 1000 {
		t.Errorf("%+v", s)
	}
}

// TestLinkWatch follows a link that goes down and comes up again.
func TestLinkWatch(t *testing.T) {
	o := bus.NewOpener()
	plain := o.Schemes["sim"]
	handles := make(chan *bus.Handle, 1)
	o.Schemes["sim"] = func(ctx context.Context, a bus.Address) (*bus.Handle, error) {
		h, err := plain(ctx, a)
		handles <- h
		return h, err
	}
	ctx, cancel := context.WithTimeout(t.Context(), clitest.Patience)
	defer cancel()
	r, w := io.Pipe()
	code := make(chan int, 1)
	var stderr bytes.Buffer
	go func() {
		code <- runWith(ctx, o, []string{"link", "-watch", "-json", "-wait", "1m", "sim:gmac4"}, w, &stderr)
		w.Close()
	}()
	h, d := <-handles, json.NewDecoder(r)
	for _, up := range []bool{true, false, true} {
		var s linkState
		if err := d.Decode(&s); err != nil || s.Up != up || (s.Reason == "") != up {
			t.Fatalf("%+v, %v, want up %v: %s", s, err, up, &stderr)
		}
		h.Sim.SetCable(!up)
	}
	cancel()
	go io.Copy(io.Discard, r)
	if got := <-code; got != cli.OK || stderr.Len() > 0 {
		t.Errorf("status %d: %s", got, &stderr)
	}
}

func TestLoopback(t *testing.T) {
	clitest.Says(t, mustRun(t, cli.OK, "loopback", "-wait", "1m", "sim:gmac4").Stdout, "1455 frames", "lost 0, changed 0", "by the device 1455", "every frame came back unchanged")
	var r loopResult
	decode(t, mustRun(t, cli.OK, "loopback", "-json", "-wait", "1m", "-queues", "2", "-mtu", "3000", "sim:gmac4,txfifo=8192").Stdout, &r)
	if !r.OK || r.Frames != 2*2955 || r.Bytes != 2*(60+3014)*2955/2 || r.ByDevice == 0 || r.ByDriver == 0 || r.ByDevice+r.ByDriver != r.Frames || r.PPS <= 0 {
		t.Errorf("%+v", r)
	}
	decode(t, mustRun(t, cli.OK, "loopback", "-json", "-wait", "1m", "-mtu", "46", "sim:gmac4,wire=gen,phy=none").Stdout, &r)
	if r.Frames != 1 {
		t.Errorf("%+v", r)
	}
}

// TestLoopbackFails: a checksum engine that is wrong in each hundredth frame passes
// the self-test of the driver, and not this one; a MAC that sends nothing ends it.
func TestLoopbackFails(t *testing.T) {
	out := mustRunWith(t, faulty(func(f *sim.Faults) { f.TxChecksumCorrupts = 100 }), cli.Failed, "loopback", "-wait", "1m", "sim:gmac4")
	clitest.Says(t, out.Stdout, "lost 0, changed 14", "FAILED")
	clitest.Says(t, out.Stderr, "stmmacctl: sim:gmac4: loopback failed")

	silent := faulty(func(f *sim.Faults) { f.TxNeverCompletes = true })
	var r loopResult
	decode(t, mustRunWith(t, silent, cli.Failed, "loopback", "-json", "-wait", "20ms", "sim:gmac4,phy=none").Stdout, &r)
	if r.OK || r.Lost != r.Frames || r.Frames != window {
		t.Errorf("%+v", r)
	}
}

// TestCompare gives the test of the loopback frames that are not as they should be.
func TestCompare(t *testing.T) {
	c, err := parse([]string{"loopback", "sim:gmac4"}, bus.NewOpener(), io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	err = with(t.Context(), bus.NewOpener(), c, func(d *device) error {
		lt := &loopTest{d: d, frame: make([]byte, 1514), each: 1455, res: loopResult{Frames: 5}}
		give := func(frame []byte, f pagepool.Flags) {
			t.Helper()
			b, err := d.mac.Pool().AllocFrame(frame, 0)
			if err != nil {
				t.Fatal(err)
			}
			b.Flags |= f
			lt.compare(b)
			d.mac.Pool().Free(b)
		}
		give(lt.make(0), pagepool.RxCsumGood)
		bad := bytes.Clone(lt.make(1))
		bad[udpAt+7] ^= 1
		give(bad, 0)
		give(lt.make(1), 0) // again
		give(lt.make(4), pagepool.RxCsumBad)
		give(lt.make(4)[:59], 0)
		alien := bytes.Clone(lt.make(4))
		alien[0] ^= 2
		give(alien, 0)
		if r := lt.res; r.Changed != 1 || r.Misjudged != 1 || r.Lost != 2 || r.Foreign != 3 || lt.next != 5 {
			t.Errorf("%+v, next %d", r, lt.next)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

// TestSum compares with an example of RFC 1071, section 3.
func TestSum(t *testing.T) {
	if s := sum(0, []byte{0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7}); s != 0xddf2 {
		t.Errorf("%#x", s)
	}
	if s := sum(0xffff, []byte{0x01, 0x02, 0x03}); s != 0x0402 {
		t.Errorf("%#x", s)
	}
}

func TestCapture(t *testing.T) {
	file := filepath.Join(t.TempDir(), "x.pcapng")
	read := func() *pcapngtest.File {
		t.Helper()
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		f, err := pcapngtest.Read(b)
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
	var r captureResult
	eventually(t, func(limit string) bool {
		decode(t, mustRun(t, cli.OK, "capture", file, "sim:gmac4,wire=gen", "-duration", limit, "-snaplen", "20", "-json").Stdout, &r)
		return r.Frames > r.Dropped
	})
	f := read()
	if n := uint64(len(f.Packets)); n == 0 || n != r.Frames-r.Dropped || r.File != file || len(f.Interfaces) != 2 || len(f.Packets[0].Data) != 20 || f.Packets[0].Len != 60 {
		t.Errorf("%+v, %d packets, %+v", r, len(f.Packets), f.Interfaces)
	}
	// The generator's frames are for another station.
	clitest.Says(t, mustRun(t, cli.OK, "sim:gmac4,wire=gen", "capture", "-promisc=false", "-duration", "20ms", file).Stdout, "0 frames, 0 of them dropped", file)
	if f = read(); len(f.Packets) != 0 || f.Interfaces[0].Stats == nil {
		t.Errorf("%+v", f)
	}
	out := mustRun(t, cli.OK, "capture", "-", "-duration", "20ms", "sim:gmac4,wire=gen")
	clitest.Says(t, out.Stderr, "frames")
	if _, err := pcapngtest.Read([]byte(out.Stdout)); err != nil {
		t.Error(err)
	}
	o := mustRun(t, cli.Usage, "capture", filepath.Join(t.TempDir(), "no", "x"), "sim:gmac4")
	clitest.Says(t, o.Stderr, "no such file", "check the name")
}

// full takes so many bytes.
type full struct{ n int }

func (f *full) Write(p []byte) (int, error) {
	if f.n -= len(p); f.n < 0 {
		return 0, io.ErrShortWrite
	}
	return len(p), nil
}

// TestOutputFails: what cannot be printed or written is said.
func TestOutputFails(t *testing.T) {
	for _, args := range [][]string{
		{"stats"}, {"stats", "-json"}, {"dump"}, {"dump", "-json"}, {"link"}, {"link", "-json"}, {"link", "-watch"}, {"link", "-watch", "-json"},
		{"loopback", "-mtu", "46"}, {"loopback", "-mtu", "46", "-json"}, {"capture", "-", "-wire", "gen"},
	} {
		var stderr bytes.Buffer
		room := 0
		if args[0] == "capture" {
			room = 500
		}
		if code := run(t.Context(), append(args, "sim:gmac4"), &full{room}, &stderr); code != cli.Failed || !strings.Contains(stderr.String(), "short write") {
			t.Errorf("%v: status %d: %s", args, code, &stderr)
		}
	}
}

func TestUsage(t *testing.T) {
	for _, tc := range []struct {
		args []string
		says []string
	}{
		{nil, []string{"command", "stats", "capture"}},
		{[]string{"nonsense", "sim:gmac4"}, []string{"nonsense", "-h shows"}},
		{[]string{"stats"}, []string{"address"}},
		{[]string{"stats", "sim:gmac4", "more"}, []string{"more"}},
		{[]string{"capture", "sim:gmac4"}, []string{"a file"}},
		{[]string{"stats", "-nonsense", "sim:gmac4"}, []string{"-nonsense", "-h lists"}},
		{[]string{"stats", "-watch", "sim:gmac4"}, []string{"-watch is not for stats"}},
		{[]string{"capture", "-wait", "1s", "x", "sim:gmac4"}, []string{"-wait is not for capture"}},
		{[]string{"dump", "-duration", "1s", "sim:gmac4"}, []string{"-duration is not for dump"}},
		{[]string{"stats", "-queues", "0", "sim:gmac4"}, []string{"-queues", "1 to 8"}},
		{[]string{"stats", "-mtu", "9001", "sim:gmac4"}, []string{"-mtu"}},
		{[]string{"stats", "-wait", "-1s", "sim:gmac4"}, []string{"-wait"}},
		{[]string{"stats", "-duration", "-1s", "sim:gmac4"}, []string{"-duration"}},
		{[]string{"link", "-duration", "1s", "sim:gmac4"}, []string{"-watch"}},
		{[]string{"link", "-set", "40/full", "sim:gmac4"}, []string{"40/full", "100/half", "auto"}},
		{[]string{"link", "-set", "auto", "-renegotiate", "sim:gmac4"}, []string{"exclude"}},
		{[]string{"capture", "-snaplen", "9023", "x", "sim:gmac4"}, []string{"-snaplen"}},
		{[]string{"capture", "-json", "-", "sim:gmac4"}, []string{"-json"}},
		{[]string{"stats", "-wire", "gen", "pci:0000:03:00.0"}, []string{"-wire"}},
		{[]string{"stats", "sim"}, []string{"no scheme", "sim:gmac4"}},
		{[]string{"stats", "pci:ffff:ff:1f.7"}, []string{"no PCI function", "stmmacctl list"}},
		{[]string{"stats", "sim:gmac4,rxq=1", "-queues", "2"}, []string{"2 receive queues", "correct"}},
	} {
		o := mustRun(t, cli.Usage, tc.args...)
		clitest.Says(t, o.Stderr, tc.says...)
		if o.Stdout != "" {
			t.Errorf("%v: %s", tc.args, o.Stdout)
		}
	}
	clitest.Says(t, mustRun(t, cli.OK, "-h").Stderr, "capture FILE ADDR", "-snaplen")
}

// TestInterrupt ends what has no limit of time as ^C does.
func TestInterrupt(t *testing.T) {
	file := filepath.Join(t.TempDir(), "x.pcapng")
	for _, args := range [][]string{
		{"capture", file, "sim:gmac4"}, {"link", "-watch", "sim:gmac4"}, {"stats", "-duration", "1h", "sim:gmac4"},
		{"dump", "-wait", "1h", "sim:gmac4,phy=none"},
	} {
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		var stdout, stderr bytes.Buffer
		if code := run(ctx, args, &stdout, &stderr); code != cli.OK || stderr.Len() > 0 {
			t.Errorf("%v: status %d\n%s%s", args, code, &stdout, &stderr)
		}
		cancel()
		if code := run(ctx, args, &stdout, &stderr); code != cli.OK || stderr.Len() > 0 {
			t.Errorf("%v: status %d\n%s%s", args, code, &stdout, &stderr)
		}
	}
}

// TestDeviceFails: a receiver that fails ends what goes on.
func TestDeviceFails(t *testing.T) {
	c, err := parse([]string{"stats", "sim:gmac4"}, bus.NewOpener(), io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	err = with(t.Context(), bus.NewOpener(), c, func(d *device) error {
		d.receive()
		d.mac.Close()
		return d.pass(t.Context(), 0, nil)
	})
	if !errors.Is(err, stmmac.ErrClosed) {
		t.Error(err)
	}
}
