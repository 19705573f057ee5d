package main

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gostmmac/gostmmac/examples/internal/cli"
	"github.com/gostmmac/gostmmac/examples/internal/clitest"
	"github.com/gostmmac/gostmmac/internal/netns"
	"github.com/gostmmac/gostmmac/stmmac/bus"
)

// tapRig is the command on one end of a TAP interface and a namespace with Linux'
// own stack on the other.
type tapRig struct {
	*netns.NS
	t      *testing.T
	ctx    context.Context
	cancel context.CancelFunc
	handle *bus.Handle
	rest   chan string // what it prints behind the first line
	code   chan int
	stderr bytes.Buffer
}

var (
	kernelAddrs = []netip.Prefix{netip.MustParsePrefix("10.0.0.1/24"), netip.MustParsePrefix("fd00::1/64")}
	serverAddrs = []string{"10.0.0.2", "fd00::2"}
)

// newTAPRig starts the command and brings the kernel's end up when it serves.
func newTAPRig(t *testing.T, mtu int) *tapRig {
	t.Helper()
	netns.CheckLeaks(t)
	g := &tapRig{NS: netns.ForTest(t), t: t, rest: make(chan string, 1), code: make(chan int, 1)}
	limit, cancelLimit := context.WithTimeout(context.Background(), clitest.Patience)
	t.Cleanup(cancelLimit)
	g.ctx = limit
	run, cancel := context.WithCancel(limit)
	g.cancel = cancel
	o := bus.NewOpener()
	simulated := o.Schemes["sim"]
	o.Schemes["sim"] = func(ctx context.Context, a bus.Address) (h *bus.Handle, err error) {
		err = g.Do(func() error {
			h, err = simulated(ctx, a)
			return err
		})
		g.handle = h
		return h, err
	}
	r, w := io.Pipe()
	go func() {
		code := runWith(run, o, []string{
			"-dev", "sim:gmac4,wire=tap:tap0", "-mtu", fmt.Sprint(mtu), "-addr", serverAddrs[0] + "/24," + serverAddrs[1] + "/64",
		}, w, &g.stderr)
		w.Close()
		g.code <- code
	}()
	out := bufio.NewReader(r)
	line, err := out.ReadString('\n')
	go func() {
		all, _ := io.ReadAll(out)
		g.rest <- string(all)
	}()
	if err != nil || !strings.Contains(line, "echo on TCP and UDP port 7 of 10.0.0.2/24 fd00::2/64") {
		t.Fatalf("%q, %v, status %d: %s", line, err, <-g.code, &g.stderr)
	}
	t.Cleanup(func() {
		cancel()
		select {
		case <-g.code:
		default: // the test has taken it
		}
	})
	g.must(g.Up("tap0", mtu, kernelAddrs...))
	return g
}

func (g *tapRig) must(err error) {
	g.t.Helper()
	if err != nil {
		g.t.Fatal(err)
	}
}

// finish waits for the end of the command and returns what it printed.
func (g *tapRig) finish(code int) string {
	g.t.Helper()
	if got := <-g.code; got != code {
		g.t.Errorf("status %d, want %d: %s", got, code, &g.stderr)
	}
	return <-g.rest
}

func random(n int) []byte {
	p := make([]byte, n)
	rand.NewChaCha8([32]byte{byte(rand.Uint32()), byte(n)}).Read(p)
	return p
}

// dial makes a connection of the kernel that does not hang for ever.
func (g *tapRig) dial(network, host string) net.Conn {
	g.t.Helper()
	c, err := g.Dial(g.ctx, network, netip.AddrPortFrom(netip.MustParseAddr(host), 7).String())
	g.must(err)
	g.must(c.SetDeadline(time.Now().Add(clitest.Patience)))
	return c
}

// tcp sends n bytes over a connection of the kernel and compares the hash of what
// comes back.
func (g *tapRig) tcp(host string, n int) {
	c, err := g.Dial(g.ctx, "tcp", netip.AddrPortFrom(netip.MustParseAddr(host), 7).String())
	if err != nil {
		g.t.Error(err)
		return
	}
	defer c.Close()
	c.SetDeadline(time.Now().Add(clitest.Patience))
	data := random(n)
	var wg sync.WaitGroup
	wg.Go(func() {
		if _, err := c.Write(data); err != nil {
			g.t.Error(err)
		}
		if err := c.(interface{ CloseWrite() error }).CloseWrite(); err != nil {
			g.t.Error(err)
		}
	})
	h := sha256.New()
	got, err := io.Copy(h, c)
	if want := sha256.Sum256(data); err != nil || got != int64(n) || !bytes.Equal(h.Sum(nil), want[:]) {
		g.t.Errorf("%s: %d bytes of %d come back: %v", host, got, n, err)
	}
	wg.Wait()
}

// udp sends datagrams of the kernel and compares what comes back.
func (g *tapRig) udp(host string, sizes ...int) {
	g.t.Helper()
	c := g.dial("udp", host)
	defer c.Close()
	got := make([]byte, 1<<16)
	for _, n := range sizes {
		want := random(n)
		if _, err := c.Write(want); err != nil {
			g.t.Fatalf("%s: %d bytes: %v", host, n, err)
		}
		k, err := c.Read(got)
		if err != nil || !bytes.Equal(got[:k], want) {
			g.t.Fatalf("%s: %d bytes, %d come back: %v", host, n, k, err)
		}
	}
}

// TestTAP lets the kernel ping the command, and echo over TCP and UDP.
func TestTAP(t *testing.T) {
	for _, mtu := range []int{1500, 9000} {
		t.Run(fmt.Sprint(mtu), func(t *testing.T) {
			g := newTAPRig(t, mtu)
			for _, host := range serverAddrs {
				for _, n := range []int{0, 56, 1452, 1453, 1472, 1473, 4000, 8952, 8972} {
					if err := g.Ping(g.ctx, netip.MustParseAddr(host), n); err != nil {
						t.Error(err)
					}
				}
				g.udp(host, 0, 1, 18, 1452, 1472, 1473, 8972, 8973, 60000)
			}
			const bytes = 6 << 20
			var wg sync.WaitGroup
			for _, host := range append(serverAddrs, serverAddrs[0]) {
				wg.Go(func() { g.tcp(host, bytes) })
			}
			wg.Wait()
			g.cancel()
			clitest.Says(t, g.finish(cli.OK), "rx_delivered", fmt.Sprintf("TCP: %d bytes of 3 connections", 3*bytes), "in 18 datagrams", "failed: 0")
			wire, mac := g.handle.TAP.Stats(), g.handle.Sim.Stats()
			if mac.RxErrors+mac.RxDropped+mac.RxOverflow+mac.RxMissed+mac.TxErrors != 0 || wire.RxFrames == 0 || wire.TxBadFCS != 0 {
				t.Errorf("%+v, %+v", wire, mac)
			}
		})
	}
}

// TestTAPFull has a client of the kernel that reads nothing until the server, which can
// send no more and so reads no more, has no room left to receive: then everything comes
// back.
func TestTAPFull(t *testing.T) {
	g := newTAPRig(t, 1500)
	for i := range 4 {
		c := g.dial("tcp", serverAddrs[i%2])
		var written, ended atomic.Int64
		var wg sync.WaitGroup
		wg.Go(func() {
			defer ended.Store(1)
			chunk := random(1 << 10)
			for range (24<<20 + 333*i) >> 10 {
				n, err := c.Write(chunk)
				written.Add(int64(n))
				if err != nil {
					t.Error(err)
					return
				}
			}
			if err := c.(interface{ CloseWrite() error }).CloseWrite(); err != nil {
				t.Error(err)
			}
		})
		for last := int64(-1); written.Load() != last; time.Sleep(200 * time.Millisecond) {
			last = written.Load()
		}
		if ended.Load() != 0 {
			t.Error("the client was never held up")
		}
		got, err := io.Copy(io.Discard, c)
		wg.Wait()
		if err != nil || got != written.Load() {
			t.Fatalf("%d bytes of %d come back: %v", got, written.Load(), err)
		}
		c.Close()
	}
	g.cancel()
	clitest.Says(t, g.finish(cli.OK), "of 4 connections", "failed: 0")
}

// TestTAPUnreachable reads what the command says of a port on which nobody listens
// (RFC 1122, 4.1.3.1 and 4.2.3.9 by way of the kernel).
func TestTAPUnreachable(t *testing.T) {
	g := newTAPRig(t, 1500)
	for _, host := range serverAddrs {
		to := netip.AddrPortFrom(netip.MustParseAddr(host), 8).String()
		if c, err := g.Dial(g.ctx, "tcp", to); err == nil || !strings.Contains(err.Error(), "refused") {
			t.Errorf("TCP to %s: %v, %v", to, c, err)
		}
		c, err := g.Dial(g.ctx, "udp", to)
		g.must(err)
		c.SetDeadline(time.Now().Add(clitest.Patience))
		c.Write([]byte("x"))
		if _, err := c.Read(make([]byte, 1)); err == nil || !strings.Contains(err.Error(), "refused") {
			t.Errorf("UDP to %s: %v", to, err)
		}
		c.Close()
	}
	// The interface goes away: the command ends and says why.
	g.must(g.Delete("tap0"))
	g.finish(cli.Failed)
	clitest.Says(t, g.stderr.String(), "tap0")
}
