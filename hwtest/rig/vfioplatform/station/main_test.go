package main

import (
	"context"
	"errors"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/gostmmac/gostmmac/hwtest/rig/guest/jobs"
	"github.com/gostmmac/gostmmac/stmmac"
	"github.com/gostmmac/gostmmac/stmmac/bus"
)

func TestArguments(t *testing.T) {
	for _, c := range []struct {
		args   string
		code   int
		stderr string
	}{
		{"", usage, "say -dev"}, {"reflect", usage, "say -dev"}, {"-dev sim:gmac", usage, "say -dev"}, {"-dev sim:gmac walk", usage, "say -dev"},
		{"-dev sim:gmac reflect frames", usage, "say -dev"}, {"-x", usage, "-x"}, {"-h", ok, "-poll"},
		{"-dev sim:gmac -iface lo reflect", usage, "say -dev"}, {"intrude", usage, "say -dev"},
		{"-dev sim:gmac reflect", failed, "no device of VFIO"}, {"-dev sim:none frames", failed, "none"},
	} {
		var stdout, stderr strings.Builder
		if code := run(t.Context(), strings.Fields(c.args), &stdout, &stderr); code != c.code || !strings.Contains(stderr.String(), c.stderr) || stdout.Len() > 0 {
			t.Errorf("%q: %d, %q, %q", c.args, code, stdout.String(), stderr.String())
		}
	}
}

func TestInterruptsOf(t *testing.T) {
	const text = `            CPU0
  15:          8  GICv2      46 Level     eth0
  16:       1027  GICv2      47 Level     vfio-irq[16](f0804000.ethernet)
 Err:          0
`
	if n, err := interruptsOf(text, "f0804000.ethernet"); n != 1027 || err != nil {
		t.Errorf("%d, %v", n, err)
	}
	if _, err := interruptsOf(text, "f0802000.ethernet"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a device that is not there: %v", err)
	}
}

// end opens an end of a cable between two models.
func end(t *testing.T, o *bus.Opener, poll bool) *wire {
	t.Helper()
	h, err := o.Open(t.Context(), "sim:gmac,wire=pair:x")
	if err != nil {
		t.Fatal(err)
	}
	m, err := stmmac.Open(t.Context(), h.Device, append(h.Options, stmmac.WithPromiscuous(), stmmac.WithMTU(1900))...)
	if err != nil {
		t.Fatal(err)
	}
	w := newWire(t.Context(), m, poll)
	t.Cleanup(func() {
		w.drop()
		if err := errors.Join(w.Close(), m.Close(), h.Close()); err != nil {
			t.Error(err)
		}
	})
	return w
}

// TestFrames: frames come back whole, by interrupts and by polling.
func TestFrames(t *testing.T) {
	for _, poll := range []bool{false, true} {
		o := bus.NewOpener()
		a, b := end(t, o, poll), end(t, o, poll)
		for _, w := range []*wire{a, b} {
			if err := w.awaitLink(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		ctx, cancel := context.WithCancel(t.Context())
		reflected := make(chan error, 1)
		ready := make(chan struct{})
		var r jobs.ReflectResult
		go func() {
			var err error
			r, err = jobs.Reflect{}.On(ctx, b, func() { close(ready) })
			reflected <- err
		}()
		<-ready
		f, err := jobs.Frames{To: b.mac.HardwareAddr().String(), Min: 60, Max: 1918, Step: 3}.On(t.Context(), a, a.mac.HardwareAddr(), 1900)
		cancel()
		if err := <-reflected; !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		const want = (1918-60)/3 + 1
		if err != nil || f.Frames != want || r.Frames != want {
			t.Errorf("polling %v: %+v, %+v, %v", poll, f, r, err)
		}
	}
}

// TestWireIsLate: nothing comes, and Recv ends by its deadline and by its context.
func TestWireIsLate(t *testing.T) {
	for _, poll := range []bool{false, true} {
		o := bus.NewOpener()
		w := end(t, o, poll)
		end(t, o, poll)
		if err := w.SetReadDeadline(time.Now().Add(time.Millisecond)); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Recv(make([]byte, 2000)); !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("polling %v: late: %v", poll, err)
		}
		if err := errors.Join(w.SetReadDeadline(time.Time{}), w.Close()); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Recv(make([]byte, 2000)); !errors.Is(err, context.Canceled) {
			t.Errorf("polling %v: closed: %v", poll, err)
		}
	}
}

// TestIntrudeWithoutInterface: what cannot be opened is an error.
func TestIntrudeWithoutInterface(t *testing.T) {
	want := "none"
	if runtime.GOOS != "linux" {
		want = errors.ErrUnsupported.Error()
	}
	var stdout, stderr strings.Builder
	if code := run(t.Context(), []string{"-iface", "none", "intrude"}, &stdout, &stderr); code != failed || !strings.Contains(stderr.String(), want) {
		t.Errorf("%d, %q", code, stderr.String())
	}
}
