package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gostmmac/gostmmac/examples/internal/cli"
	"github.com/gostmmac/gostmmac/internal/netns"
	"github.com/gostmmac/gostmmac/stmmac/bus"
)

// tapHost is a Linux machine on one side of the forwarder: a network namespace
// whose only way out is a TAP interface.
type tapHost struct {
	*netns.NS
	name   string // of the interface
	v4, v6 netip.Prefix
}

// tapRig is a forwarder between two machines.
type tapRig struct {
	t      *testing.T
	ctx    context.Context
	host   [2]*tapHost
	f      *forwarder
	cancel context.CancelFunc
	ended  chan *result
}

// newTAPRig starts the command of args with TAP interfaces.
func newTAPRig(t *testing.T, mtu int, args ...string) *tapRig {
	t.Helper()
	netns.CheckLeaks(t)
	g := &tapRig{t: t, ctx: testContext(t), ended: make(chan *result, 1)}
	for i, name := range []string{"tapA", "tapB"} {
		g.host[i] = &tapHost{
			NS: netns.ForTest(t), name: name,
			v4: netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 0, 0, byte(1 + i)}), 24),
			v6: netip.MustParsePrefix(fmt.Sprintf("fd00::%d/64", 1+i)),
		}
	}
	o := bus.NewOpener()
	simulated := o.Schemes["sim"]
	o.Schemes["sim"] = func(ctx context.Context, a bus.Address) (h *bus.Handle, err error) {
		wire, _ := a.Get("wire")
		for _, host := range g.host {
			if wire == "tap:"+host.name {
				err = host.Do(func() error {
					h, err = simulated(ctx, a)
					return err
				})
			}
		}
		return h, err
	}
	args = append([]string{"-duration", "0", "-mtu", fmt.Sprint(mtu), "-a", "sim:gmac4,wire=tap:tapA", "-b", "sim:gmac4,wire=tap:tapB"}, args...)
	var err error
	if g.f, err = open(g.ctx, mustParse(t, args...), o); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(g.ctx)
	g.cancel = cancel
	// Both are up before anything is forwarded: one that is down refuses what
	// the other's kernel has to say of itself.
	for _, host := range g.host {
		if err := host.Up(host.name, mtu, host.v4, host.v6); err != nil {
			t.Fatal(errors.Join(err, g.f.close()))
		}
	}
	go func() { g.ended <- g.f.run(ctx, io.Discard) }()
	t.Cleanup(func() { g.stop() })
	return g
}

func (g *tapRig) must(err error) {
	g.t.Helper()
	if err != nil {
		g.t.Fatal(err)
	}
}

// stop ends the forwarder, if it runs.
func (g *tapRig) stop() *result {
	g.cancel()
	if g.ended == nil {
		return nil
	}
	r := <-g.ended
	g.ended = nil
	return r
}

// nothingLost ends the forwarder and looks at every counter of a loss that there is.
// The kernel of each side may count unknown frames as dropped, because it has no use for
// them.
func (g *tapRig) nothingLost(unknown uint64) *result {
	g.t.Helper()
	for _, host := range g.host {
		c, err := host.Counters(host.name)
		if err != nil || c.RxDropped > unknown || c.RxErrors+c.TxErrors+c.TxDropped != 0 {
			g.t.Errorf("%s: %+v, %v", host.name, c, err)
		}
	}
	r := g.stop()
	if !r.good() || r.Lost != 0 || len(r.Drops) != 0 || len(r.Errors) != 0 || r.Filtered != 0 {
		g.t.Errorf("%+v", r)
	}
	for d := range g.f.side {
		from, to := g.f.side[d].handle, g.f.side[1-d].handle
		in, out, rx, tx := from.TAP.Stats(), to.TAP.Stats(), from.Sim.Stats(), to.Sim.Stats()
		if n := in.RxFrames; n == 0 || rx.RxFrames != n || r.Directions[d].Packets != n || tx.TxFrames != n || out.TxFrames != n {
			g.t.Errorf("%s: wire %d, MAC %d, forwarded %d, MAC %d, wire %d", r.Directions[d].Name,
				n, rx.RxFrames, r.Directions[d].Packets, tx.TxFrames, out.TxFrames)
		}
		if rx.RxErrors+rx.RxDropped+rx.RxFiltered+rx.RxOverflow+rx.RxMissed+tx.TxErrors != 0 {
			g.t.Errorf("%s: %+v, %+v", r.Directions[d].Name, rx, tx)
		}
		if v := from.Sim.Audit(); len(v) > 0 {
			g.t.Errorf("audit: %v", v)
		}
	}
	return r
}

// dial opens a TCP connection from one side to the other.
func (g *tapRig) dial() (a, b net.Conn) {
	g.t.Helper()
	l, err := g.host[1].Listen("tcp", netip.AddrPortFrom(g.host[1].v4.Addr(), 0).String())
	g.must(err)
	defer l.Close()
	a, err = g.host[0].Dial(g.ctx, "tcp", l.Addr().String())
	g.must(err)
	b, err = l.Accept()
	g.must(err)
	stop := context.AfterFunc(g.ctx, func() { a.Close(); b.Close() })
	g.t.Cleanup(func() { stop(); a.Close(); b.Close() })
	return a, b
}

// exchange sends n bytes in both directions of a connection at once, compares what
// arrives by its hash and returns how long it took. progress is called for each part
// that arrives at a, with how many bytes did.
func (g *tapRig) exchange(n int, progress func(int)) time.Duration {
	g.t.Helper()
	a, b := g.dial()
	ends := [2]net.Conn{a, b}
	var sent, got [2][sha256.Size]byte
	var errs [4]error
	var wg sync.WaitGroup
	start := time.Now()
	for i, c := range ends {
		wg.Go(func() {
			rnd := rand.NewChaCha8([32]byte{byte(n), byte(i)})
			sum := sha256.New()
			sent[i], errs[i] = [32]byte{}, func() error {
				buf := make([]byte, 64<<10)
				for left := n; left > 0; {
					part := buf[:min(left, len(buf))]
					_, _ = rnd.Read(part) // it has no errors
					_, _ = sum.Write(part)
					if _, err := c.Write(part); err != nil {
						return err
					}
					left -= len(part)
				}
				return c.(*net.TCPConn).CloseWrite()
			}()
			sum.Sum(sent[i][:0])
		})
		wg.Go(func() {
			sum := sha256.New()
			total := 0
			errs[2+i] = func() error {
				buf := make([]byte, 64<<10)
				for {
					k, err := c.Read(buf)
					_, _ = sum.Write(buf[:k])
					total += k
					if progress != nil && i == 0 {
						progress(total)
					}
					if errors.Is(err, io.EOF) && total == n {
						return nil
					}
					if err != nil {
						return fmt.Errorf("after %d of %d bytes: %w", total, n, err)
					}
				}
			}()
			sum.Sum(got[i][:0])
		})
	}
	wg.Wait()
	g.must(errors.Join(errs[:]...))
	for i := range ends {
		if sent[i] != got[1-i] {
			g.t.Errorf("from %s: sent %x, got %x", name(i), sent[i], got[1-i])
		}
	}
	return time.Since(start)
}

// pings sends echo requests of the kernel's own making both ways.
func (g *tapRig) pings(sizes ...int) {
	g.t.Helper()
	for i, host := range g.host {
		peer := g.host[1-i]
		for _, size := range sizes {
			for _, to := range []netip.Addr{peer.v4.Addr(), peer.v6.Addr()} {
				if err := host.Ping(g.ctx, to, size); err != nil {
					g.t.Errorf("from %s: %v", host.name, err)
				}
			}
		}
	}
}

// datagrams sends UDP packets of all sizes, which the other side sends back.
func (g *tapRig) datagrams(sizes ...int) {
	g.t.Helper()
	for _, addr := range []netip.Addr{g.host[1].v4.Addr(), g.host[1].v6.Addr()} {
		server, err := g.host[1].ListenPacket("udp", netip.AddrPortFrom(addr, 0).String())
		g.must(err)
		client, err := g.host[0].Dial(g.ctx, "udp", server.LocalAddr().String())
		g.must(err)
		stop := context.AfterFunc(g.ctx, func() { client.Close(); server.Close() })
		echoed := make(chan error, 1)
		go func() {
			buf := make([]byte, 1<<16)
			for {
				n, from, err := server.ReadFrom(buf)
				if err == nil {
					_, err = server.WriteTo(buf[:n], from)
				}
				if err != nil {
					echoed <- err
					return
				}
			}
		}()
		buf := make([]byte, 1<<16)
		for k, size := range sizes {
			packet := bytes.Repeat([]byte{byte(k), byte(size)}, size/2+1)[:size]
			if _, err := client.Write(packet); err != nil {
				g.t.Fatalf("%d bytes to %v: %v", size, addr, err)
			}
			if n, err := client.Read(buf); err != nil || !bytes.Equal(buf[:n], packet) {
				g.t.Fatalf("%d bytes to %v: %d came back, %v", size, addr, n, err)
			}
		}
		stop()
		g.must(errors.Join(client.Close(), server.Close()))
		<-echoed
	}
}

// TestTAPPing has packets of every length at which something changes: the shortest
// frame, the MTU, two fragments and many.
func TestTAPPing(t *testing.T) {
	for _, tc := range []struct {
		mtu       int
		ping, udp []int
	}{
		{1500, []int{0, 1, 17, 18, 19, 56, 1451, 1452, 1453, 1471, 1472, 1473, 1480, 2952, 8972},
			[]int{0, 1, 18, 1452, 1453, 1472, 1473, 8972, 65507}},
		{9000, []int{56, 1472, 1473, 1884, 1885, 3932, 3933, 8000, 8951, 8952, 8953, 8971, 8972, 8973},
			[]int{1, 1472, 8952, 8953, 8972, 8973, 65507}},
	} {
		t.Run(fmt.Sprint("MTU ", tc.mtu), func(t *testing.T) {
			g := newTAPRig(t, tc.mtu)
			g.pings(tc.ping...)
			g.datagrams(tc.udp...)
			g.nothingLost(0)
		})
	}
}

func TestTAPTCP(t *testing.T) {
	for _, tc := range []struct{ mtu, bytes int }{{1500, 100e6}, {9000, 30e6}} {
		t.Run(fmt.Sprint("MTU ", tc.mtu), func(t *testing.T) {
			n := tc.bytes
			if testing.Short() {
				n /= 10
			}
			g := newTAPRig(t, tc.mtu)
			took := g.exchange(n, nil)
			r := g.nothingLost(0)
			t.Logf("%d bytes each way in %v, %d frames", n, took.Round(time.Millisecond), r.Packets)
		})
	}
}

// TestTAPQueues has TCP in one queue and tagged frames in the other.
func TestTAPQueues(t *testing.T) {
	g := newTAPRig(t, 1500, "-queues", "2")
	const frames = 2000
	tagged := func(k int) []byte {
		b := []byte{2, 0, 0, 0, 0, 0xb, 2, 0, 0, 0, 0, 0xa, 0x81, 0x00, 6 << 5, 5, 0x88, 0xb5} // priority 6, local experimental
		b = binary.BigEndian.AppendUint32(b, uint32(k))
		return append(b, bytes.Repeat([]byte{byte(k)}, 60-len(b)+k*7%1458)...)
	}
	var ends [2]*netns.Ether
	for i, host := range g.host {
		e, err := host.OpenEther(host.name)
		g.must(err)
		stop := context.AfterFunc(g.ctx, func() { e.Close() })
		defer e.Close()
		defer stop()
		ends[i] = e
	}
	var wg sync.WaitGroup
	for _, e := range ends {
		wg.Go(func() {
			for k := range frames {
				if err := e.Send(tagged(k)); err != nil {
					t.Errorf("frame %d: %v", k, err)
				}
			}
		})
		wg.Go(func() {
			buf := make([]byte, 1<<14)
			for k := 0; k < frames; {
				f, err := e.Recv(buf)
				if err != nil {
					t.Errorf("frame %d: %v", k, err)
					return
				}
				if f[12] != 0x81 {
					continue
				}
				if !bytes.Equal(f, tagged(k)) {
					t.Errorf("instead of frame %d there is %x", k, f[:20])
					return
				}
				k++
			}
		})
	}
	g.exchange(10e6, nil)
	wg.Wait()
	for d := range g.f.workers {
		tcp, other := g.f.workers[d][0].rx.Stats().Packets, g.f.workers[d][1].rx.Stats().Packets
		if tcp == 0 || other != frames {
			t.Errorf("side %d: %d frames in queue 0, %d in queue 1", d, tcp, other)
		}
	}
	g.nothingLost(frames)
}

// TestTAPDown sets an interface down and up again in the middle of a transfer: TCP
// repeats what was lost, and nothing is lost but what the interface refused.
func TestTAPDown(t *testing.T) {
	g := newTAPRig(t, 1500)
	a, tap := g.host[0], g.f.side[0].handle.TAP
	// B has to have something to send when A is down, which its buffers and those of
	// A (a few MB) must not have taken already.
	const n, part = 40e6, 10e6
	next := int(part)
	g.exchange(n, func(total int) {
		if total < next || next > n/2 {
			return
		}
		next += part
		before := tap.Stats().TxRefused
		if err := a.Down(a.name); err != nil {
			t.Error(err)
		}
		for tap.Stats().TxRefused == before { // B goes on sending, and repeating
			if g.ctx.Err() != nil {
				t.Error("nothing refused")
				break
			}
			time.Sleep(time.Millisecond)
		}
		if err := a.Up(a.name, 0); err != nil {
			t.Error(err)
		}
	})
	g.must(a.Ping(g.ctx, g.host[1].v4.Addr(), 56))
	r := g.stop()
	refused := r.Drops["wire_refused"]
	if refused == 0 || r.Lost != refused || len(r.Drops) != 1 || len(r.Errors) != 0 || r.Directions[0].Lost != 0 || r.good() {
		t.Errorf("%+v", r)
	}
}

// TestTAPDeleted deletes an interface under traffic: the forwarder ends and says why.
func TestTAPDeleted(t *testing.T) {
	for i := range 2 {
		g := newTAPRig(t, 1500)
		a, b := g.dial()
		var wg sync.WaitGroup
		for _, c := range []net.Conn{a, b} {
			wg.Go(func() { _, _ = io.Copy(c, rand.NewChaCha8([32]byte{1})) }) // until it is closed
			wg.Go(func() { _, _ = io.Copy(io.Discard, c) })
		}
		for g.f.side[0].mac.Rx(0).Stats().Packets < 1000 {
			g.must(g.ctx.Err())
			time.Sleep(time.Millisecond)
		}
		gone := g.host[i]
		g.must(gone.Delete(gone.name))
		r := <-g.ended
		g.ended = nil
		if len(r.Errors) != 1 || r.good() {
			t.Errorf("%+v", r)
		}
		for _, s := range []string{"device " + name(i), gone.name, "gone"} {
			if len(r.Errors) > 0 && !strings.Contains(r.Errors[0], s) {
				t.Errorf("no %q in %s", s, r.Errors[0])
			}
		}
		g.must(errors.Join(a.Close(), b.Close()))
		wg.Wait()
	}
}

func TestTAPUsage(t *testing.T) {
	mustRun(t, cli.Usage, "-a", "sim:gmac4,wire=tap:sixteen-bytes-xx").says(t, "device A", "sixteen-bytes-xx")
	mustRun(t, cli.Usage, "-a", "sim:gmac4,wire=tap").says(t, "device A", "tap:x")
}
