package netstack

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/netip"
	"os"
	"runtime"
	"sync"
	"testing"
	"time"

	"gvisor.dev/gvisor/pkg/refs"

	"github.com/gostmmac/gostmmac/pagepool"
	"github.com/gostmmac/gostmmac/stmmac"
	"github.com/gostmmac/gostmmac/stmmac/sim"
)

func TestMain(m *testing.M) {
	refs.SetLeakMode(refs.LeaksPanic)
	code := m.Run()
	if code == 0 { // what a test that failed left behind would hide why
		refs.DoLeakCheck()
	}
	os.Exit(code)
}

// patience is when a test that hangs is ended.
const patience = 20 * time.Second

// eventually waits until ok says so. It is for what other goroutines still have
// to do; the time that they take decides nothing.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !ok(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			buf := make([]byte, 1<<20)
			t.Fatalf("%s: not after %v\n%s", what, patience, buf[:runtime.Stack(buf, true)])
		}
	}
}

// noGoroutines fails if the test leaves a goroutine behind. It is called first, so
// that it looks last.
func noGoroutines(t *testing.T) {
	before := runtime.NumGoroutine()
	t.Cleanup(func() {
		eventually(t, "goroutines end", func() bool { return runtime.NumGoroutine() <= before })
	})
}

// station is a simulated MAC and, if it was brought up, a stack on it.
type station struct {
	dev  *sim.Device
	pool *pagepool.Pool
	mac  *stmmac.MAC
	net  *Net
	base int // buffers in use when the MAC was open and idle
}

// stationConfig is what a test says of a station; the zero value is a MAC of MTU
// 1500 with rings of 512.
type stationConfig struct {
	mtu, ring, bufs, bufSize int
	opts                     []stmmac.Option
	clock                    stmmac.Clock
}

// newStation opens a MAC on a wire. When the test ends, it closes everything and
// fails if a buffer, a mapping or the audit is not clean.
func newStation(t *testing.T, w sim.Wire, last byte, c stationConfig) *station {
	t.Helper()
	or := func(v *int, d int) {
		if *v == 0 {
			*v = d
		}
	}
	or(&c.mtu, 1500)
	or(&c.ring, 512)
	or(&c.bufs, 2048)
	or(&c.bufSize, 2048)
	s := new(station)
	var err error
	if s.dev, err = sim.New(sim.Config{Clock: c.clock}, w); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.dev.Close() }) // also when the test ends before the station is up
	if s.pool, err = pagepool.New(s.dev, c.bufs, pagepool.WithBufSize(c.bufSize)); err != nil {
		t.Fatal(err)
	}
	opts := []stmmac.Option{
		stmmac.WithGeneration(stmmac.GMAC4), stmmac.WithName(fmt.Sprint("sim", last)), stmmac.WithPool(s.pool),
		stmmac.WithHardwareAddr([]byte{2, 0, 0, 0, 0, last}), stmmac.WithAllMulticast(),
		stmmac.WithMTU(c.mtu), stmmac.WithRings(c.ring, c.ring),
		stmmac.WithLink(stmmac.Link{Up: true, Speed: 1000, FullDuplex: true}),
	}
	if c.clock != nil {
		opts = append(opts, stmmac.WithClock(c.clock))
	}
	if s.mac, err = stmmac.Open(t.Context(), s.dev, append(opts, c.opts...)...); err != nil {
		t.Fatal(err)
	}
	s.base = s.pool.InUse()
	t.Cleanup(func() { s.finish(t) })
	return s
}

func (s *station) finish(t *testing.T) {
	if s.net != nil {
		if err := s.net.Close(); err != nil {
			t.Error(err)
		}
	}
	if err := s.mac.Close(); err != nil {
		t.Error(err)
	}
	if err := s.pool.Close(); err != nil {
		t.Error(err)
	}
	if n := s.pool.Misfreed(); n != 0 {
		t.Errorf("%d buffers were freed twice", n)
	}
	for _, v := range s.dev.Audit() {
		t.Errorf("audit: %v", v)
	}
	if err := s.dev.Close(); err != nil {
		t.Error(err)
	}
}

// up brings the stack of a station up.
func (s *station) up(t *testing.T, cfg Config) {
	t.Helper()
	var err error
	if s.net, err = Up(t.Context(), s.mac, cfg); err != nil {
		t.Fatal(err)
	}
}

var (
	addr4 = [2]string{"192.0.2.1", "192.0.2.2"}
	addr6 = [2]string{"2001:db8::1", "2001:db8::2"}
)

func prefixes(list ...string) (p []netip.Prefix) {
	for _, s := range list {
		p = append(p, netip.MustParsePrefix(s))
	}
	return p
}

// newStations opens two MACs on a cable.
func newStations(t *testing.T, c stationConfig) (a, b *station) {
	t.Helper()
	noGoroutines(t)
	wa, wb := sim.NewPair(512)
	return newStation(t, wa, 1, c), newStation(t, wb, 2, c)
}

// newNets brings two stacks up on a cable, at addr4[0] and addr4[1].
func newNets(t *testing.T, c stationConfig) (a, b *station) {
	t.Helper()
	a, b = newStations(t, c)
	a.up(t, Config{Addresses: prefixes(addr4[0] + "/24")})
	b.up(t, Config{Addresses: prefixes(addr4[1] + "/24")})
	return a, b
}

// newNets6 is newNets with IPv6 beside IPv4.
func newNets6(t *testing.T, c stationConfig) (a, b *station) {
	t.Helper()
	a, b = newStations(t, c)
	up6(t, a, b)
	return a, b
}

// up6 brings stations up with addresses of both families, at once: each looks for
// a second whether its address is in use.
func up6(t *testing.T, stations ...*station) {
	t.Helper()
	var wg sync.WaitGroup
	errs := make([]error, len(stations))
	for i, s := range stations {
		wg.Go(func() {
			s.net, errs[i] = Up(t.Context(), s.mac, Config{Addresses: prefixes(addr4[i]+"/24", addr6[i]+"/64")})
		})
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}

// settled checks that all buffers are back that only the traffic had.
func (s *station) settled(t *testing.T) {
	t.Helper()
	tx := s.mac.Tx(0).Shared()
	eventually(t, "buffers come back", func() bool {
		tx.Reap(nil)
		return tx.Inflight() == 0 && s.pool.InUse() <= s.base
	})
}

// random returns n bytes that no test sees twice.
func random(n int) []byte {
	var seed [32]byte
	for i := range seed {
		seed[i] = byte(rand.Uint32())
	}
	p := make([]byte, n)
	rand.NewChaCha8(seed).Read(p)
	return p
}

// exchange sends n bytes from each end of a connection to the other, at once, and
// compares the hashes.
func exchange(t *testing.T, a, b net.Conn, n int) {
	t.Helper()
	var wg sync.WaitGroup
	one := func(from, to net.Conn) {
		data := random(n)
		wg.Go(func() {
			if _, err := from.Write(data); err != nil {
				t.Error(err)
			}
			if err := from.(*tcpConn).CloseWrite(); err != nil {
				t.Error(err)
			}
		})
		wg.Go(func() {
			h := sha256.New()
			got, err := io.Copy(h, to)
			if err != nil || got != int64(n) {
				t.Errorf("received %d bytes of %d: %v", got, n, err)
			}
			if sum := sha256.Sum256(data); !bytes.Equal(sum[:], h.Sum(nil)) {
				t.Error("the bytes are others")
			}
		})
	}
	one(a, b)
	one(b, a)
	wg.Wait()
}

// connect returns both ends of a connection from a to b.
func connect(t *testing.T, a, b *station, addr string) (ca, cb net.Conn) {
	t.Helper()
	l, err := b.net.Listen("tcp", net.JoinHostPort(addr, "0"))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if ca, err = a.net.DialContext(t.Context(), "tcp", l.Addr().String()); err != nil {
		t.Fatal(err)
	}
	if cb, err = l.Accept(); err != nil {
		t.Fatal(err)
	}
	return ca, cb
}
