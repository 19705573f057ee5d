package main

import (
	"bytes"
	"context"
	"net/netip"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/gostmmac/gostmmac/examples/internal/cli"
	"github.com/gostmmac/gostmmac/examples/internal/clitest"
	"github.com/gostmmac/gostmmac/internal/netns"
	"github.com/gostmmac/gostmmac/internal/pcapngtest"
	"github.com/gostmmac/gostmmac/stmmac/bus"
)

// TestTAPCapture captures what the kernel sends when it pings a group: the file has
// its echo request, and grows while the command runs.
func TestTAPCapture(t *testing.T) {
	netns.CheckLeaks(t)
	ns := netns.ForTest(t)
	o := bus.NewOpener()
	plain := o.Schemes["sim"]
	o.Schemes["sim"] = func(ctx context.Context, a bus.Address) (h *bus.Handle, err error) {
		err = ns.Do(func() error {
			h, err = plain(ctx, a)
			return err
		})
		return h, err
	}
	file := filepath.Join(t.TempDir(), "x.pcapng")
	ctx, cancel := context.WithTimeout(context.Background(), clitest.Patience)
	defer cancel()
	running, stop := context.WithCancel(ctx)
	code := make(chan int, 1)
	var stdout, stderr bytes.Buffer
	go func() {
		code <- runWith(running, o, []string{"capture", file, "sim:gmac4,wire=tap:tap0"}, &stdout, &stderr)
	}()
	must := func(err error) {
		t.Helper()
		if err != nil {
			stop()
			t.Fatalf("%v; status %d: %s%s", err, <-code, &stdout, &stderr)
		}
	}
	packets := func() []pcapngtest.Packet {
		b, err := os.ReadFile(file)
		if err != nil || len(b) == 0 {
			return nil // the command has not come so far
		}
		f, err := pcapngtest.Read(b)
		if err != nil {
			return nil // a block is being written
		}
		return f.Packets
	}
	for _, err := os.Stat(file); err != nil; _, err = os.Stat(file) {
		must(ctx.Err())
		time.Sleep(time.Millisecond)
	}
	must(ns.Up("tap0", 1500, netip.MustParsePrefix("fd00::1/64")))
	// Nobody answers: the pings go on until one is seen.
	pinging, enough := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for pinging.Err() == nil {
			once, cancel := context.WithTimeout(pinging, 50*time.Millisecond)
			_ = ns.Ping(once, netip.MustParseAddr("ff05::1"), 56)
			cancel()
		}
	}()
	isPing := func(p pcapngtest.Packet) bool {
		const etherType, nextHeader, icmpType = 12, 14 + 6, 14 + 40
		return len(p.Data) == 14+40+8+56 && bytes.Equal(p.Data[:6], []byte{0x33, 0x33, 0, 0, 0, 1}) && p.Flags == 1 &&
			bytes.Equal(p.Data[etherType:][:2], []byte{0x86, 0xdd}) && p.Data[nextHeader] == 58 && p.Data[icmpType] == 128
	}
	seen := false
	for ; !seen && ctx.Err() == nil; time.Sleep(time.Millisecond) {
		for _, p := range packets() {
			seen = seen || isPing(p)
		}
	}
	enough()
	<-done
	must(ctx.Err())
	stop()
	if got := <-code; got != cli.OK || stderr.Len() > 0 {
		t.Errorf("status %d: %s%s", got, &stdout, &stderr)
	}
	b, err := os.ReadFile(file)
	must(err)
	f, err := pcapngtest.Read(b)
	if err != nil || f.Interfaces[0].Stats == nil || f.Interfaces[0].Stats.Received != uint64(len(f.Packets)) {
		t.Errorf("%+v, %v", f, err)
	}
}
