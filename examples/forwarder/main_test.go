package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/gostmmac/gostmmac/examples/internal/cli"
	"github.com/gostmmac/gostmmac/examples/internal/clitest"
	"github.com/gostmmac/gostmmac/pagepool"
	"github.com/gostmmac/gostmmac/stmmac"
	"github.com/gostmmac/gostmmac/stmmac/bus"
)

// asCommand in the environment makes the test binary the command itself.
const asCommand = "FORWARDER_TEST_COMMAND"

func TestMain(m *testing.M) {
	if os.Getenv(asCommand) != "" {
		main()
	}
	os.Exit(m.Run())
}

// outcome is what run left behind.
type outcome struct{ clitest.Outcome }

func mustRun(t *testing.T, code int, args ...string) outcome {
	t.Helper()
	return outcome{clitest.Run(t, run, code, args...)}
}

// result is the JSON object, which has to be all there is on stdout.
func (o outcome) result(t *testing.T) result {
	t.Helper()
	var r result
	d := json.NewDecoder(strings.NewReader(o.Stdout))
	d.DisallowUnknownFields()
	if err := d.Decode(&r); err != nil {
		t.Fatalf("%v in %s", err, o.Stdout)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		t.Fatalf("more than one object: %s", o.Stdout)
	}
	return r
}

// says checks that the errors contain all texts.
func (o outcome) says(t *testing.T, texts ...string) {
	t.Helper()
	clitest.Says(t, o.Stderr, texts...)
}

func TestGenerator(t *testing.T) {
	const gen = "sim:gmac4,wire=gen:x"
	for _, args := range [][]string{
		nil,
		{"-poll"},
		{"-queues", "3"},
		{"-queues", "8", "-poll", "-learn"},
		{"-learn", "-batch", "256"},
		{"-batch", "1"},
		{"-mtu", "9000"},
		{"-mtu", "46", "-sizes", "60"},
		{"-sizes", "60,61,1513,1514"},
		{"-a", gen + ",irq=each", "-b", gen + ",irq=each,bus=16", "-queues", "2"},
		{"-a", gen + ",profile=linux", "-b", gen + ",version=4.00,width=32,bus=4"},
	} {
		t.Run(strings.Join(args, " "), func(t *testing.T) {
			const count = 20000
			r := mustRun(t, cli.OK, append([]string{"-json", "-count", "20000"}, args...)...).result(t)
			if r.Packets != 2*count || r.Lost+r.Corrupted+r.Duplicated+r.Reordered+r.Foreign+r.Filtered != 0 ||
				len(r.Drops) != 0 || len(r.Errors) != 0 || len(r.Directions) != 2 {
				t.Errorf("%+v", r)
			}
			for _, d := range r.Directions {
				if d.Packets != count || !d.Checked || d.Bytes < 60*count {
					t.Errorf("%+v", d)
				}
			}
			if r.Bytes != r.Directions[0].Bytes+r.Directions[1].Bytes || r.DurationS <= 0 || r.PPS <= 0 || r.Mbps <= 0 {
				t.Errorf("%+v", r)
			}
			if r.CPUScope != "none" && r.CPUNsPerPacket <= 0 {
				t.Errorf("CPU %v ns of %s", r.CPUNsPerPacket, r.CPUScope)
			}
		})
	}
}

// TestQueues checks that several queues share the work.
func TestQueues(t *testing.T) {
	f, _ := openTest(t, []string{"-count", "4000", "-queues", "4"})
	res := f.run(testContext(t), io.Discard)
	if !res.good() {
		t.Fatalf("%+v", res)
	}
	for d := range f.workers {
		for q, w := range f.workers[d] {
			if n := w.tx.Stats().Packets; n != 1000 {
				t.Errorf("%d frames from side %d through queue %d", n, d, q)
			}
		}
	}
}

func TestFaults(t *testing.T) {
	for _, tc := range []struct {
		fault string
		want  func(*result) *uint64 // the one counter that rises
	}{
		{"drop", func(r *result) *uint64 { return &r.Lost }},
		{"crc", func(r *result) *uint64 { return &r.Lost }},
		{"corrupt", func(r *result) *uint64 { return &r.Corrupted }},
		{"dup", func(r *result) *uint64 { return &r.Duplicated }},
		{"reorder", func(r *result) *uint64 { return &r.Reordered }},
	} {
		t.Run(tc.fault, func(t *testing.T) {
			r := mustRun(t, cli.Failed, "-json", "-count", "20000", "-fault", tc.fault+"=1e-3,seed=3").result(t)
			injected := uint64(0)
			for _, d := range r.Directions {
				injected += d.Injected[tc.fault]
			}
			got := tc.want(&r)
			if *got == 0 || *got > injected || tc.fault != "reorder" && *got != injected {
				t.Errorf("%d counted of %d injected", *got, injected)
			}
			if drops := r.Drops["mac_error"]; tc.fault == "crc" && drops != injected || tc.fault != "crc" && len(r.Drops) > 0 {
				t.Errorf("drops %v, %d injected", r.Drops, injected)
			}
			*got = 0
			if r.Lost+r.Corrupted+r.Duplicated+r.Reordered+r.Foreign != 0 || len(r.Errors) != 0 {
				t.Errorf("others too: %+v", r)
			}
		})
	}
	t.Run("all", func(t *testing.T) {
		o := mustRun(t, cli.Failed, "-count", "20000", "-fault", "drop=1e-3,crc=1e-3,corrupt=1e-3,dup=1e-3,reorder=1e-3")
		for _, s := range []string{"injected from A to B", "mac_error", "FAILED"} {
			if !strings.Contains(o.Stdout, s) {
				t.Errorf("no %q in\n%s", s, o.Stdout)
			}
		}
	})
	t.Run("none", func(t *testing.T) { mustRun(t, cli.OK, "-count", "1000", "-fault", "drop=0") })
}

func TestUsage(t *testing.T) {
	const sim = "sim:gmac4"
	for _, tc := range []struct {
		args []string
		says []string
	}{
		{[]string{"-nonsense"}, []string{"-nonsense"}},
		{[]string{"eth0"}, []string{"eth0"}},
		{[]string{"-duration", "soon"}, []string{"duration"}},
		{[]string{"-duration", "-1s"}, []string{"-duration"}},
		{[]string{"-count", "0"}, []string{"-count"}},
		{[]string{"-queues", "0"}, []string{"-queues", "1 to 8"}},
		{[]string{"-queues", "9"}, []string{"-queues"}},
		{[]string{"-batch", "0"}, []string{"-batch"}},
		{[]string{"-batch", "257"}, []string{"-batch", "256"}},
		{[]string{"-cpu", "-2"}, []string{"-cpu"}},
		{[]string{"-cpu", "1000000"}, []string{"-cpu", "1000000", "CPUs"}},
		{[]string{"-mtu", "45"}, []string{"-mtu"}},
		{[]string{"-mtu", "9001"}, []string{"-mtu"}},
		{[]string{"-sizes", "60,1515"}, []string{"-sizes", "1515"}},
		{[]string{"-sizes", "59"}, []string{"-sizes"}},
		{[]string{"-sizes", "big"}, []string{"-sizes", "big"}},
		{[]string{"-cpuprofile", "/nonexistent/x"}, []string{"-cpuprofile", "/nonexistent/x"}},
		{[]string{"-a", "nope:x"}, []string{"device A", "nope", "those known are: pci, platform, sim"}},
		{[]string{"-a", sim, "-b", "nonsense"}, []string{"device B", "nonsense", "scheme"}},
		{[]string{"-a", sim + ",color=red"}, []string{"device A", "color", "rxfifo"}},
		{[]string{"-a", "sim:xgmac"}, []string{"device A", "xgmac"}},
		{[]string{"-a", sim + ",wire=pcap,in=/nonexistent/x"}, []string{"device A", "/nonexistent/x", "check the name"}},
		{[]string{"-fault", "fire=1"}, []string{"device A", "fire"}},
		{[]string{"-fault", "drop=2"}, []string{"device A", "drop"}},
		{[]string{"-fault", "drop=1", "-a", sim + ",fault=dup=1"}, []string{"device A", "fault= is given twice"}},
		{[]string{"-fault", "drop=1", "-a", "pci:0000:03:00.0"}, []string{"-fault", "device A"}},
		{[]string{"-queues", "2", "-mtu", "9000"}, []string{"MAC of device A", "use fewer queues"}},
		{[]string{"-queues", "2", "-b", sim + ",rxq=1"}, []string{"MAC of device B", "2 receive queues"}},
	} {
		t.Run(strings.Join(tc.args, " "), func(t *testing.T) {
			o := mustRun(t, cli.Usage, append([]string{"-json"}, tc.args...)...)
			o.says(t, append(tc.says, "forwarder: ")...)
			if o.Stdout != "" {
				t.Errorf("on stdout: %s", o.Stdout)
			}
		})
	}
	mustRun(t, cli.OK, "-h").says(t, "-cpuprofile", "-learn", "-queues")
}

// TestProfile checks that there is a profile, also of a run that fails.
func TestProfile(t *testing.T) {
	name := filepath.Join(t.TempDir(), "p")
	mustRun(t, cli.Failed, "-count", "2000", "-fault", "drop=0.01", "-cpuprofile", name)
	if info, err := os.Stat(name); err != nil || info.Size() == 0 {
		t.Errorf("%v, %v", info, err)
	}
}

// TestCancel ends a run without a limit.
func TestCancel(t *testing.T) {
	for _, args := range [][]string{{"-json", "-duration", "0"}, {"-json", "-duration", "0", "-poll"}} {
		ctx, cancel := context.WithCancel(testContext(t))
		var stdout, stderr bytes.Buffer
		code := run(ctx, args, &stdout, writerFunc(func(b []byte) (int, error) {
			cancel() // at the first line
			return stderr.Write(b)
		}))
		cancel()
		r := outcome{clitest.Outcome{Stdout: stdout.String()}}.result(t)
		if code != cli.OK || r.Packets == 0 || r.Lost != 0 || !strings.Contains(stderr.String(), "packets/s") {
			t.Errorf("%v: status %d, %+v\n%s", args, code, r, &stderr)
		}
	}
}

// TestCancelPcap ends a run before the file is at its end: what was read is
// written.
func TestCancelPcap(t *testing.T) {
	dir := t.TempDir()
	in, out := filepath.Join(dir, "a"), filepath.Join(dir, "b")
	frames := mixedFrames(3000, 1514, 6)
	writePcap(t, in, frames)
	ctx, cancel := context.WithCancel(context.Background())
	cfg := mustParse(t, "-a", "sim:gmac4,wire=pcap,in="+in, "-b", "sim:gmac4,wire=pcap,out="+out)
	f, err := open(ctx, cfg, bus.NewOpener())
	if err != nil {
		t.Fatal(err)
	}
	cancel()
	r := f.run(ctx, io.Discard)
	if !r.good() {
		t.Fatalf("%+v", r)
	}
	got := readPcap(t, out)
	compareFrames(t, got, frames[:len(got)])
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(b []byte) (int, error) { return f(b) }

func testContext(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), clitest.Patience)
	t.Cleanup(cancel)
	return ctx
}

func mustParse(t *testing.T, args ...string) *config {
	t.Helper()
	cfg, err := parse(args, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	return cfg
}

// openTest opens a forwarder; its run closes it.
func openTest(t *testing.T, args []string) (*forwarder, *bus.Opener) {
	t.Helper()
	o := bus.NewOpener()
	f, err := open(context.Background(), mustParse(t, args...), o)
	if err != nil {
		t.Fatal(err)
	}
	return f, o
}

// TestBackPressure forwards to a cable whose other end nobody unloads until
// everything is full: the worker waits and drops nothing.
func TestBackPressure(t *testing.T) {
	for _, extra := range [][]string{nil, {"-poll"}} {
		in := filepath.Join(t.TempDir(), "a")
		frames := mixedFrames(4000, 1514, 7)
		writePcap(t, in, frames)
		f, o := openTest(t, append([]string{"-a", "sim:gmac4,wire=pcap,in=" + in, "-b", "sim:gmac4,wire=pair:x"}, extra...))
		results := make(chan *result, 1)
		ctx := testContext(t)
		go func() { results <- f.run(ctx, io.Discard) }()
		sender := f.workers[0][0].tx
		for full := uint64(512 + ringSize - 1); sender.Stats().Packets < full; time.Sleep(time.Millisecond) {
			if ctx.Err() != nil {
				t.Fatalf("only %d frames sent", sender.Stats().Packets)
			}
		}
		// A device without a driver takes what arrives.
		h, err := o.Open(ctx, "sim:gmac4,wire=pair:x")
		if err != nil {
			t.Fatal(err)
		}
		r := <-results
		if !r.good() || r.Packets != uint64(len(frames)) || len(r.Drops) > 0 {
			t.Errorf("%v: %+v", extra, r)
		}
		if err := h.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestStopWhileFull ends a worker that waits for room for ever.
func TestStopWhileFull(t *testing.T) {
	in := filepath.Join(t.TempDir(), "a")
	writePcap(t, in, mixedFrames(4000, 1514, 9))
	f, _ := openTest(t, []string{"-a", "sim:gmac4,wire=pcap,in=" + in, "-b", "sim:gmac4,wire=pair:x"})
	w := f.workers[0][0]
	ctx, cancel := context.WithCancel(testContext(t))
	ended := make(chan error, 1)
	go func() { ended <- w.run(ctx) }()
	for w.tx.Stats().Packets < 512+ringSize-1 || w.rx.Stats().Packets == w.tx.Stats().Packets {
		time.Sleep(time.Millisecond)
		if ctx.Err() != nil {
			t.Fatalf("%+v", w.tx.Stats())
		}
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if got, sent := w.rx.Stats().Packets, w.tx.Stats().Packets; w.dropped[dropStopped].Load() != got-sent {
		t.Errorf("%d received, %d sent, %d dropped", got, sent, w.dropped[dropStopped].Load())
	}
	if err := f.close(); err != nil { // also: no buffer is missing
		t.Error(err)
	}
}

// TestRefused forwards to a MAC with a smaller MTU: what it refuses is dropped
// and counted, the rest goes on in order.
func TestRefused(t *testing.T) {
	dir := t.TempDir()
	in, out := filepath.Join(dir, "a"), filepath.Join(dir, "b")
	frames := mixedFrames(1000, 9014, 8)
	writePcap(t, in, frames)
	ctx, cancel := context.WithCancel(testContext(t))
	opener := bus.NewOpener()
	f := &forwarder{cfg: mustParse(t)}
	var err error
	for i, p := range []struct {
		addr string
		mtu  int
	}{{"sim:gmac4,wire=pcap,in=" + in, 9000}, {"sim:gmac4,wire=pcap,out=" + out, 1500}} {
		s := &side{name: name(i)}
		f.side[i] = s
		if s.handle, err = opener.Open(ctx, p.addr); err != nil {
			t.Fatal(err)
		}
		if f.pool == nil {
			if f.pool, err = pagepool.New(s.handle.Device, 8192); err != nil {
				t.Fatal(err)
			}
		}
		if s.mac, err = stmmac.Open(ctx, s.handle.Device, append(s.handle.Options, stmmac.WithPool(f.pool), stmmac.WithMTU(p.mtu), stmmac.WithPromiscuous(), stmmac.WithChecksums(false, false))...); err != nil {
			t.Fatal(err)
		}
	}
	if err := f.plan(); err != nil {
		t.Fatal(err)
	}
	w := f.workers[0][0]
	ended := make(chan error, 1)
	go func() { ended <- w.run(ctx) }()
	<-f.side[0].handle.InputEnd()
	for settled := 0; settled < 2; time.Sleep(time.Millisecond) {
		settled++
		if !f.settled(0) {
			settled = 0
		}
		if ctx.Err() != nil {
			t.Fatal("does not settle")
		}
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	var fit [][]byte
	for _, b := range frames {
		if len(b) <= 1500+14+8 {
			fit = append(fit, b)
		}
	}
	if n := w.dropped[dropTooLong].Load(); n != uint64(len(frames)-len(fit)) || n == 0 {
		t.Errorf("%d dropped of %d", n, len(frames)-len(fit))
	}
	x := f.direction(0)
	if x.Drops["tx_too_long"] != x.Lost || x.Lost != uint64(len(frames)-len(fit)) {
		t.Errorf("%+v", x)
	}
	if err := f.close(); err != nil {
		t.Error(err)
	}
	compareFrames(t, readPcap(t, out), fit)
}

// TestDeviceFails gives a device that works a bus error.
func TestDeviceFails(t *testing.T) {
	for _, args := range [][]string{nil, {"-poll"}, {"-a", "sim:gmac4,wire=gen,irq=each", "-b", "sim:gmac4,wire=gen,irq=each"}} {
		f, _ := openTest(t, append(args, "-duration", "0"))
		results := make(chan *result, 1)
		ctx := testContext(t)
		go func() { results <- f.run(ctx, io.Discard) }()
		for f.workers[0][0].tx.Stats().Packets == 0 {
			time.Sleep(time.Millisecond)
		}
		setFault(f.side[1].handle.Sim.SetFaults, "BusError", func(uint64, int, bool) bool { return true })
		r := <-results
		if ctx.Err() != nil {
			t.Fatal("nobody noticed")
		}
		if r.good() || !strings.Contains(strings.Join(r.Errors, "\n"), stmmac.ErrFatalBus.Error()) {
			t.Errorf("%+v", r)
		}
	}
}

// setFault turns a switch of a model on. The forwarder does not know package sim.
func setFault[T any](set func(func(*T)), name string, value any) {
	set(func(faults *T) { reflect.ValueOf(faults).Elem().FieldByName(name).Set(reflect.ValueOf(value)) })
}

func TestReasons(t *testing.T) {
	if refused(nil) {
		t.Error("no error is a refusal")
	}
	for _, tc := range []struct {
		err     error
		refused bool
		why     string
	}{
		{stmmac.ErrFrameTooLong, true, "tx_too_long"},
		{stmmac.ErrFrameTooShort, true, "tx_too_short"},
		{stmmac.ErrForeignBuffer, true, "tx_refused"},
		{stmmac.ErrNotHeld, true, "tx_refused"},
		{stmmac.ErrClosed, false, ""},
		{stmmac.ErrGone, false, ""},
		{stmmac.ErrFatalBus, false, ""},
	} {
		err := error(&stmmac.Error{Op: "send", Err: tc.err})
		if refused(err) != tc.refused || tc.refused && reason(err).String() != tc.why {
			t.Errorf("%v: %v, %v", err, refused(err), reason(err))
		}
	}
}

// TestDropNames checks that the counts of the driver that drops picks are all
// that the driver adds up.
func TestDropNames(t *testing.T) {
	rx := stmmac.RxStats{CRC: 1, Overflow: 1, Watchdog: 1, Giant: 1, Dribble: 1, Receive: 1, Other: 1,
		Length: 1, Oversize: 1, Truncated: 1, Context: 1, Aborted: 1, Dropped: 1, NoBuffer: 1}
	if n := uint64(len(rxDrops)); n != rx.Drops() {
		t.Errorf("%d names for %d reasons", n, rx.Drops())
	}
	for _, name := range rxDrops {
		found := false
		for n, v := range rx.All() {
			found = found || n == name && v == 1
		}
		if !found {
			t.Errorf("there is no count %q", name)
		}
	}
	tx := stmmac.TxStats{Underflow: 1, Collision: 1, Carrier: 1, Deferral: 1, Jabber: 1, Flushed: 1, Checksum: 1, Other: 1}
	if n := uint64(len(txDrops)); n != tx.Errors() {
		t.Errorf("%d names for %d reasons", n, tx.Errors())
	}
	for _, name := range txDrops {
		found := false
		for n, v := range tx.All() {
			found = found || n == name && v == 1
		}
		if !found {
			t.Errorf("there is no count %q", name)
		}
	}
}

// TestSignal ends the process of the command with a signal.
func TestSignal(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("no signals")
	}
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for _, sig := range []os.Signal{os.Interrupt, syscall.SIGTERM} {
		cmd := exec.CommandContext(testContext(t), exe, "-duration", "0")
		cmd.Env = append(os.Environ(), asCommand+"=1")
		var mu sync.Mutex
		var out bytes.Buffer
		cmd.Stderr = os.Stderr
		cmd.Stdout = writerFunc(func(b []byte) (int, error) {
			mu.Lock()
			defer mu.Unlock()
			if out.Len() == 0 {
				_ = cmd.Process.Signal(sig) // at the first line; Run tells if it did not end
			}
			return out.Write(b)
		})
		if err := cmd.Run(); err != nil {
			t.Errorf("%v: %v", sig, err)
		}
		if s := out.String(); !strings.Contains(s, "every frame arrived once") {
			t.Errorf("%v: %s", sig, s)
		}
	}
}
