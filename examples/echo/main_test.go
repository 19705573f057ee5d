package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/netip"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/gostmmac/gostmmac/examples/internal/cli"
	"github.com/gostmmac/gostmmac/examples/internal/clitest"
	"github.com/gostmmac/gostmmac/stmmac/bus"
)

func mustRun(t *testing.T, code int, args ...string) clitest.Outcome {
	t.Helper()
	return clitest.Run(t, run, code, args...)
}

// TestSelf runs server and client on simulated MACs.
func TestSelf(t *testing.T) {
	for _, args := range [][]string{
		{"-port", "7000"},
		{"-mtu", "9000", "-addr", "2001:db8::2/64,192.0.2.1/24"},
		{"-mtu", "576"},
	} {
		t.Run(strings.Join(args, " "), func(t *testing.T) {
			o := mustRun(t, cli.OK, append(args, "-duration", "300ms")...)
			clitest.Says(t, o.Stdout, "echo on TCP and UDP port 7", "all as sent: true", "server: TCP: ", "server: stack: rx_packets", "client: receive queue: packets", "failed: 0")
			if o.Stderr != "" {
				t.Error(o.Stderr)
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
		{[]string{"-dev", "pci:ffff:1f:1f.7"}, []string{"pci", "no such device"}},
		{[]string{"-dev", "nope:0"}, []string{"nope", "not there yet"}},
		{[]string{"-dev", "sim:gmac4,wire=nonsense"}, []string{"nonsense"}},
	} {
		o := mustRun(t, cli.Usage, tc.args...)
		clitest.Says(t, o.Stderr, tc.says...)
		if o.Stdout != "" {
			t.Errorf("echo %v: %s", tc.args, o.Stdout)
		}
	}
	clitest.Says(t, mustRun(t, cli.OK, "-h").Stderr, "-dev", "-addr")
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
		if code := run(ctx, args, &stdout, &stderr); code != cli.OK || stderr.Len() > 0 {
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
