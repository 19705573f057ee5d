package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/netip"
	"os"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/gostmmac/gostmmac/stmmac/bus"
)

// patience is when a test that hangs is ended.
const patience = 2 * time.Minute

// outcome is what run left behind.
type outcome struct{ stdout, stderr string }

// mustRun runs the command, and checks its status and that it leaves no goroutine
// behind.
func mustRun(t *testing.T, code int, args ...string) outcome {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	before := runtime.NumGoroutine()
	var stdout, stderr bytes.Buffer
	got := run(ctx, args, &stdout, &stderr)
	if ctx.Err() != nil {
		t.Fatalf("echo %v does not end", args)
	}
	if got != code {
		t.Fatalf("echo %v: status %d, want %d\n%s%s", args, got, code, &stdout, &stderr)
	}
	// A goroutine that was told to end may take its time.
	for end := time.Now().Add(patience); runtime.NumGoroutine() > before; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			buf := make([]byte, 1<<20)
			t.Fatalf("%d goroutines before and %d after:\n%s", before, runtime.NumGoroutine(), buf[:runtime.Stack(buf, true)])
		}
	}
	return outcome{stdout.String(), stderr.String()}
}

// says checks that a text contains all texts.
func says(t *testing.T, in string, texts ...string) {
	t.Helper()
	for _, s := range texts {
		if !strings.Contains(in, s) {
			t.Errorf("no %q in:\n%s", s, in)
		}
	}
}

// TestSelf runs server and client on simulated MACs.
func TestSelf(t *testing.T) {
	for _, args := range [][]string{
		{"-port", "7000"},
		{"-mtu", "9000", "-addr", "2001:db8::2/64,192.0.2.1/24"},
		{"-mtu", "576"},
	} {
		t.Run(strings.Join(args, " "), func(t *testing.T) {
			o := mustRun(t, exitOK, append(args, "-duration", "300ms")...)
			says(t, o.stdout, "echo on TCP and UDP port 7", "all as sent: true", "server: TCP: ", "server: stack: rx_packets", "client: receive queue: packets", "failed: 0")
			if o.stderr != "" {
				t.Error(o.stderr)
			}
		})
	}
}

func TestUsage(t *testing.T) {
	for _, tc := range []struct {
		args []string
		says []string
	}{
		{[]string{"-nonsense"}, []string{"-nonsense", "-h lists"}},
		{[]string{"eth0"}, []string{"eth0"}},
		{[]string{"-port", "0"}, []string{"-port", "65535"}},
		{[]string{"-port", "65536"}, []string{"-port"}},
		{[]string{"-mtu", "67"}, []string{"-mtu"}},
		{[]string{"-mtu", "9001"}, []string{"-mtu"}},
		{[]string{"-duration", "-1s"}, []string{"-duration"}},
		{[]string{"-addr", "192.0.2.2"}, []string{"-addr", "192.0.2.2/24"}},
		{[]string{"-addr", "192.0.2.2/32"}, []string{"second station", "-h lists"}},
		{[]string{"-addr", "127.0.0.1/8", "-dev", "sim:gmac4"}, []string{"not one of a station"}},
		{[]string{"-addr", "2001:db8::2/64", "-mtu", "1000", "-dev", "sim:gmac4"}, []string{"1280"}},
		{[]string{"-gw", "nobody"}, []string{"-gw"}},
		{[]string{"-gw", "192.0.2.1,192.0.2.3"}, []string{"one family"}},
		{[]string{"-gw", "192.0.3.1", "-dev", "sim:gmac4"}, []string{"not on the link"}},
		{[]string{"-dev", "sim"}, []string{"no scheme", "sim:gmac4"}},
		{[]string{"-dev", "pci:0000:03:00.0"}, []string{"pci", "not there yet"}},
		{[]string{"-dev", "sim:gmac4,wire=nonsense"}, []string{"nonsense"}},
	} {
		o := mustRun(t, exitUsage, tc.args...)
		says(t, o.stderr, tc.says...)
		if o.stdout != "" {
			t.Errorf("echo %v: %s", tc.args, o.stdout)
		}
	}
	says(t, mustRun(t, exitOK, "-h").stderr, "-dev", "-addr")
}

// TestInterrupt ends a server without a limit of time as ^C does, and one that is
// still looking whether its address is in use.
func TestInterrupt(t *testing.T) {
	for _, args := range [][]string{
		{"-dev", "sim:gmac4"},
		{"-dev", "sim:gmac4", "-addr", "2001:db8::2/64"},
		{"-dev", "sim:gmac4", "-duration", "10ms"},
	} {
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		var stdout, stderr bytes.Buffer
		if code := run(ctx, args, &stdout, &stderr); code != exitOK || stderr.Len() > 0 {
			t.Errorf("echo %v: status %d\n%s%s", args, code, &stdout, &stderr)
		}
		cancel()
	}
}

// TestDeviceFails closes the device under a server.
func TestDeviceFails(t *testing.T) {
	o := bus.NewOpener()
	c, err := parse([]string{"-dev", "sim:gmac4"}, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	st, err := openStation(t.Context(), o, c.dev, c.mtu, c.net)
	if err != nil {
		t.Fatal(err)
	}
	err = serve(t.Context(), st, c, io.Discard, func(ctx context.Context) error {
		st.mac.Close()
		return st.wait(ctx)
	})
	if err == nil || !strings.Contains(err.Error(), c.dev) {
		t.Errorf("%v", err)
	}
}

func TestNeighbour(t *testing.T) {
	for in, want := range map[string]string{
		"192.0.2.2/24": "192.0.2.1/24", "192.0.2.1/24": "192.0.2.2/24", "192.0.2.1/30": "192.0.2.2/30",
		"2001:db8::2/64": "2001:db8::1/64", "2001:db8::1/64": "2001:db8::2/64", "0.0.0.1/0": "0.0.0.2/0",
	} {
		got, err := neighbour(netip.MustParsePrefix(in))
		if err != nil || got.String() != want {
			t.Errorf("%s: %v, %v", in, got, err)
		}
	}
	if _, err := neighbour(netip.MustParsePrefix("192.0.2.2/32")); !errors.Is(err, os.ErrInvalid) {
		t.Errorf("%v", err)
	}
}

func TestHint(t *testing.T) {
	for _, err := range []error{os.ErrNotExist, os.ErrPermission, errors.ErrUnsupported, os.ErrInvalid, syscall.EADDRINUSE} {
		if hint(&openError{err}) == "" {
			t.Errorf("no hint for %v", err)
		}
	}
	if h := hint(io.EOF); h != "" {
		t.Errorf("a hint for an error that nothing is known of: %s", h)
	}
}
