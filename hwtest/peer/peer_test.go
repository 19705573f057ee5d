package peer

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/gostmmac/gostmmac/stmmac"
	"github.com/gostmmac/gostmmac/stmmac/bus"
)

func TestCheck(t *testing.T) {
	for _, c := range []struct {
		device, spec string
		ok           bool
	}{
		{"sim:gmac4", "sim", true},
		{"sim:gmac4,rxq=1", "sim", true},
		{"sim:gmac4,wire=null", "sim", false},
		{"pci:0000:03:00.0", "sim", false},
		{"sim:gmac4", "mac-loopback", true},
		{"pci:0000:03:00.0", "phy-loopback", true},
		{"sim:gmac4", "mac-loopback:x", false},
		{"sim:gmac4,wire=tap:tap0", "tap", true},
		{"sim:gmac4", "tap", false},
		{"qtest:npcm845-evb", "qtest", true},
		{"sim:gmac", "qtest", false},
		{"qtest:npcm845-evb", "sim", false},
		{"pci:0000:03:00.0", "cable:pci:0000:04:00.0", true},
		{"pci:0000:03:00.0", "cable:x", false},
		{"pci:0000:03:00.0", "cable", false},
		{"pci:0000:03:00.0", "af_packet:eth0", true},
		{"pci:0000:03:00.0", "af_packet:", false},
		{"pci:0000:03:00.0", "remote:[2001:db8::1]:7777", true},
		{"pci:0000:03:00.0", "", false},
		{"gmac4", "mac-loopback", false},
	} {
		if err := Check(c.device, c.spec); (err == nil) != c.ok || err != nil && !errors.Is(err, os.ErrInvalid) {
			t.Errorf("%s and %s: %v", c.device, c.spec, err)
		}
	}
}

// sample is a frame of n bytes from one of the stations to the other.
func sample(dst, src net.HardwareAddr, n int) []byte {
	f := bytes.Repeat([]byte{byte(n)}, n)
	copy(f, dst)
	copy(f[6:], src)
	copy(f[12:], []byte{0x88, 0xb5})
	return f
}

// open opens a device and its peer and a MAC on it.
func open(t *testing.T, device, spec string) (*stmmac.MAC, Peer) {
	t.Helper()
	h, p, err := Open(t.Context(), bus.NewOpener(), device, spec)
	if err != nil {
		t.Fatal(err)
	}
	m, err := stmmac.Open(t.Context(), h.Device, append(append(h.Options, stmmac.WithHardwareAddr(DeviceAddr()), stmmac.WithPromiscuous()), p.Options()...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(m.Close(), p.Close(), p.Close(), h.Close()); err != nil {
			t.Error(err)
		}
	})
	if err := p.Attach(t.Context(), m); err != nil {
		t.Fatal(err)
	}
	if l, ok := p.(Linked); ok {
		if err := l.AwaitLink(t.Context(), 0); err != nil {
			t.Fatal(err)
		}
	}
	if p.Can(Separate) {
		for l := range m.Links(t.Context()) {
			if l.Up {
				break
			}
		}
	}
	return m, p
}

// take is the next frame of a MAC.
func take(t *testing.T, m *stmmac.MAC) []byte {
	t.Helper()
	for b, err := range m.Rx(0).Frames(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		f := make([]byte, b.FrameLen())
		b.CopyTo(f)
		m.Pool().Free(b)
		return f
	}
	return nil
}

func TestPeers(t *testing.T) {
	for _, spec := range []string{"sim", "mac-loopback", "phy-loopback"} {
		t.Run(spec, func(t *testing.T) {
			m, p := open(t, "sim:gmac4", spec)
			if p.Name() != spec {
				t.Errorf("name %q", p.Name())
			}
			for _, n := range []int{60, 1514} {
				want := sample(DeviceAddr(), PeerAddr(), n)
				if err := p.Send(t.Context(), want); err != nil {
					t.Fatal(err)
				}
				if d := cmp.Diff(want, take(t, m)); d != "" {
					t.Error(d)
				}
			}
			if !p.Can(Separate) {
				if _, err := p.Recv(t.Context()); !errors.Is(err, errors.ErrUnsupported) {
					t.Error(err)
				}
				return
			}
			want := sample(PeerAddr(), DeviceAddr(), 100)
			if err := transmit(t.Context(), m, [][]byte{want}); err != nil {
				t.Fatal(err)
			}
			if got, err := p.Recv(t.Context()); err != nil || !bytes.Equal(got, want) {
				t.Errorf("%x, %v", got, err)
			}
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			if _, err := p.Recv(ctx); !errors.Is(err, context.Canceled) {
				t.Error(err)
			}
		})
	}
}

// fake is a peer in the hands of a test.
type fake struct {
	sent chan []byte
	in   chan []byte
}

func newFake() *fake { return &fake{make(chan []byte, 4*queued), make(chan []byte, 4*queued)} }

func (f *fake) Name() string                              { return "fake" }
func (f *fake) Can(a Ability) bool                        { return a == Separate || a == Tags || a == Cable }
func (f *fake) MTU() int                                  { return 1500 }
func (f *fake) Options() []stmmac.Option                  { return nil }
func (f *fake) Attach(context.Context, *stmmac.MAC) error { return nil }
func (f *fake) Close() error                              { return nil }

func (f *fake) Send(_ context.Context, frames ...[]byte) error {
	for _, x := range frames {
		f.sent <- bytes.Clone(x)
	}
	return nil
}

func (f *fake) Recv(ctx context.Context) ([]byte, error) {
	select {
	case x := <-f.in:
		return x, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// served is a server for a fake, and its address.
func served(t *testing.T, note func(error)) (*fake, string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	f := newFake()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- Serve(ctx, l, f, note) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return f, l.Addr().String()
}

func TestRemote(t *testing.T) {
	f, addr := served(t, func(err error) { t.Error(err) })
	r, err := Dial(t.Context(), addr)
	if err != nil {
		t.Fatal(err)
	}
	if !r.Can(Separate) || !r.Can(Tags) || r.Can(Cable) || r.Can(Jumbo) || r.MTU() != 1500 {
		t.Errorf("%+v", r.hello)
	}
	// Frames before watch are nobody's.
	f.in <- sample(PeerAddr(), DeviceAddr(), 60)
	for {
		c, err := r.Counts(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if c.Foreign == 1 {
			break
		}
	}
	if err := r.Attach(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	to := [][]byte{sample(DeviceAddr(), PeerAddr(), 60), sample(DeviceAddr(), PeerAddr(), maxFrame)}
	if err := r.Send(t.Context(), to...); err != nil {
		t.Fatal(err)
	}
	for _, want := range to {
		if d := cmp.Diff(want, <-f.sent); d != "" {
			t.Error(d)
		}
	}
	// What is said is done in order, so the answer of count says that watch is set.
	if _, err := r.Counts(t.Context()); err != nil {
		t.Fatal(err)
	}
	from := sample(PeerAddr(), DeviceAddr(), 777)
	f.in <- sample(PeerAddr(), net.HardwareAddr{2, 9, 9, 9, 9, 9}, 70)
	f.in <- from
	if got, err := r.Recv(t.Context()); err != nil || !bytes.Equal(got, from) {
		t.Errorf("%d bytes, %v", len(got), err)
	}
	if err := r.Echo(t.Context(), true); err != nil {
		t.Fatal(err)
	}
	f.in <- from
	back := <-f.sent
	if !bytes.Equal(back[:6], DeviceAddr()) || !bytes.Equal(back[6:12], PeerAddr()) || !bytes.Equal(back[12:], from[12:]) {
		t.Errorf("echo % x", back[:20])
	}
	for {
		c, err := r.Counts(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if c.Sent == 3 {
			if d := cmp.Diff(Counts{Sent: 3, Received: 2, Foreign: 2}, c); d != "" {
				t.Error(d)
			}
			break
		}
	}
	// A second client is told why not.
	if _, err := Dial(t.Context(), addr); err == nil || !bytes.Contains([]byte(err.Error()), []byte("another test")) {
		t.Error(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := r.Recv(ctx); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if err := errors.Join(r.Close(), r.Close()); err != nil {
		t.Error(err)
	}
	if _, err := r.Recv(t.Context()); err == nil {
		t.Error("a frame from a connection that is closed")
	}
}

// TestRemoteSlow has a client that reads nothing: the server drops, and goes on.
func TestRemoteSlow(t *testing.T) {
	f, addr := served(t, nil)
	r, err := Dial(t.Context(), addr)
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Attach(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Counts(t.Context()); err != nil {
		t.Fatal(err)
	}
	const n = 3 * queued
	for i := range n {
		x := sample(PeerAddr(), DeviceAddr(), 60)
		binary.BigEndian.PutUint32(x[14:], uint32(i))
		f.in <- x
	}
	for {
		c, err := r.Counts(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if c.Received == n {
			break
		}
	}
	last := -1
	for len(r.frames) > 0 {
		x, err := r.Recv(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		k := int(binary.BigEndian.Uint32(x[14:]))
		if k <= last {
			t.Fatalf("frame %d behind %d", k, last)
		}
		last = k
	}
	if err := r.Close(); err != nil {
		t.Error(err)
	}
}

// TestHostileClients sends what is not of the protocol: the server hangs up and
// serves the next.
func TestHostileClients(t *testing.T) {
	var mu sync.Mutex
	var noted []error
	f, addr := served(t, func(err error) {
		mu.Lock()
		defer mu.Unlock()
		noted = append(noted, err)
	})
	hostile := [][]byte{
		{0, 0, 0}, {99, 0, 0}, {byte(kindHello), 0, 10}, {byte(kindFrame), 0, 13}, {byte(kindFrame), 0xff, 0xff}, {byte(kindWatch), 0, 7},
		{byte(kindCounts), 0, 32}, append([]byte{byte(kindCounts), 0, 32}, make([]byte, 32)...), []byte("GET / HTTP/1.1\r\n\r\n"),
	}
	for _, h := range hostile {
		for { // the one before may be served still
			c, err := net.Dial("tcp", addr)
			if err != nil {
				t.Fatal(err)
			}
			in := bufio.NewReader(c)
			k, _, err := readMessage(in, make([]byte, maxFrame))
			if err == nil && k == kindHello {
				if _, err := c.Write(h); err != nil {
					t.Error(err)
				}
				if err := c.(*net.TCPConn).CloseWrite(); err != nil {
					t.Log(err) // the server was faster
				}
				// Until the server has hung up, with a reset if it did not read all.
				_, _ = io.Copy(io.Discard, in)
				if err := c.Close(); err != nil {
					t.Error(err)
				}
				break
			}
			if err := c.Close(); err != nil {
				t.Fatal(err)
			}
		}
	}
	for {
		r, err := Dial(t.Context(), addr)
		if err != nil {
			continue // the last one is served still
		}
		if err := r.Close(); err != nil {
			t.Error(err)
		}
		break
	}
	mu.Lock()
	defer mu.Unlock()
	if len(noted) != len(hostile) {
		t.Errorf("%d errors of %d clients: %v", len(noted), len(hostile), noted)
	}
	for _, err := range noted {
		if !errors.Is(err, errProtocol) && !errors.Is(err, io.ErrUnexpectedEOF) && !errors.Is(err, net.ErrClosed) {
			t.Error(err)
		}
	}
	if len(f.sent) != 0 {
		t.Errorf("%d frames were sent", len(f.sent))
	}
}

// TestHostileServers answers a client with what is not of the protocol.
func TestHostileServers(t *testing.T) {
	good := hello{can: []Ability{Separate}, mtu: 1500}.encode()
	other := bytes.Clone(good)
	other[len(magic)] = version + 1
	for _, h := range [][]byte{
		{0, 0, 0}, []byte("220 smtp\r\n"), {byte(kindHello), 0, 9}, append([]byte{byte(kindHello), 0, 10}, make([]byte, 10)...),
		append([]byte{byte(kindHello), 0, 10}, other...), append([]byte{byte(kindHello), 0, 10}, hello{mtu: minMTU - 1}.encode()...), append([]byte{byte(kindRefused), 0, 2}, "no"...), append([]byte{byte(kindFrame), 0, 14}, make([]byte, 14)...), {},
	} {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		var server sync.WaitGroup
		server.Go(func() {
			c, err := l.Accept()
			if err != nil {
				t.Error(err)
				return
			}
			if _, err := c.Write(h); err != nil {
				t.Error(err)
			}
			if err := c.Close(); err != nil {
				t.Error(err)
			}
		})
		if r, err := Dial(t.Context(), l.Addr().String()); err == nil {
			t.Errorf("% x was taken as %+v", h, r.hello)
		}
		server.Wait()
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	}
}

func TestMessages(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		k := kind(rapid.IntRange(1, 7).Draw(t, "kind"))
		least, most, _ := bodies(k)
		body := rapid.SliceOfN(rapid.Byte(), least, min(most, 300)).Draw(t, "body")
		var b bytes.Buffer
		w := bufio.NewWriter(&b)
		if err := errors.Join(writeMessage(w, k, body), w.Flush()); err != nil {
			t.Fatal(err)
		}
		k2, got, err := readMessage(bufio.NewReader(&b), make([]byte, maxFrame))
		if err != nil || k2 != k || !bytes.Equal(got, body) {
			t.Fatalf("%d % x, %v; want %d % x", k2, got, err, k, body)
		}
	})
	if err := writeMessage(bufio.NewWriter(io.Discard), kindFrame, make([]byte, maxFrame+1)); !errors.Is(err, errProtocol) {
		t.Error(err)
	}
}

func FuzzMessages(f *testing.F) {
	f.Add([]byte{byte(kindFrame), 0, 14})
	f.Fuzz(func(t *testing.T, b []byte) {
		in, buf := bufio.NewReader(bytes.NewReader(b)), make([]byte, maxFrame)
		for {
			k, body, err := readMessage(in, buf)
			if err != nil {
				return
			}
			if k == kindHello {
				_, _ = decodeHello(body)
			}
		}
	})
}
