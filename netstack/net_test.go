package netstack

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/gostmmac/gostmmac/stmmac/sim"
)

func TestConfig(t *testing.T) {
	const a4, a6 = "192.0.2.2/24", "2001:db8::2/64"
	route := func(dst, gw string) Route {
		r := Route{Gateway: netip.Addr{}}
		r.Dst, _ = netip.ParsePrefix(dst)
		r.Gateway, _ = netip.ParseAddr(gw)
		return r
	}
	for _, tc := range []struct {
		addrs  []string
		routes []Route
		mtu    int
		want   string // of the error; "" is none
	}{
		{[]string{a4}, nil, 1500, ""},
		{[]string{a4}, nil, 68, ""},
		{[]string{a4, a6, "192.0.2.3/24", "fe80::2/64"}, nil, 1500, ""},
		{[]string{a4, a6}, []Route{route("0.0.0.0/0", "192.0.2.1"), route("::/0", "2001:db8::1"), route("::/0", "fe80::1")}, 1500, ""},
		{nil, nil, 1500, "no address"},
		{[]string{a4, a4}, nil, 1500, "twice"},
		{[]string{a4, "192.0.2.2/32"}, nil, 1500, "twice"},
		{[]string{"0.0.0.0/0"}, nil, 1500, "not one of a station"},
		{[]string{"224.0.0.1/24"}, nil, 1500, "not one of a station"},
		{[]string{"255.255.255.255/24"}, nil, 1500, "not one of a station"},
		{[]string{"127.0.0.1/8"}, nil, 1500, "not one of a station"},
		{[]string{"::1/128"}, nil, 1500, "not one of a station"},
		{[]string{"ff02::1/64"}, nil, 1500, "not one of a station"},
		{[]string{"::ffff:192.0.2.2/120"}, nil, 1500, "is none"},
		{[]string{""}, nil, 1500, "is none"},
		{[]string{a6}, nil, 1279, "1280"},
		{[]string{a4}, []Route{route("", "192.0.2.1")}, 1500, "no prefix"},
		{[]string{a4}, []Route{route("10.1.0.0/8", "192.0.2.1")}, 1500, "10.0.0.0/8"},
		{[]string{a4}, []Route{route("10.0.0.0/8", "2001:db8::1")}, 1500, "no address of its family"},
		{[]string{a4}, []Route{route("10.0.0.0/8", "")}, 1500, "no address of its family"},
		{[]string{a4}, []Route{route("10.0.0.0/8", "192.0.3.1")}, 1500, "not on the link"},
		{[]string{a4}, []Route{route("10.0.0.0/8", "192.0.2.2")}, 1500, "not on the link"},
		{[]string{a4}, []Route{route("::/0", "fe80::1")}, 1500, "not on the link"},
	} {
		cfg := Config{Routes: tc.routes}
		for _, s := range tc.addrs {
			p, _ := netip.ParsePrefix(s)
			cfg.Addresses = append(cfg.Addresses, p)
		}
		err := cfg.check(tc.mtu)
		if tc.want == "" && err != nil || tc.want != "" && (!errors.Is(err, os.ErrInvalid) || !strings.Contains(err.Error(), tc.want)) {
			t.Errorf("%v, %v: %v, want %q", tc.addrs, tc.routes, err, tc.want)
		}
	}
}

// TestErrors holds that errors are those of package net.
func TestErrors(t *testing.T) {
	a, b := newNets(t, stationConfig{})
	past, cancelPast := context.WithDeadline(t.Context(), time.Now().Add(-time.Second))
	defer cancelPast()
	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	soon, cancelSoon := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancelSoon()
	dial := func(ctx context.Context, network, addr string) error {
		c, err := a.net.DialContext(ctx, network, addr)
		if err == nil {
			c.Close()
		}
		return err
	}
	listen := func(network, addr string) error { _, err := a.net.Listen(network, addr); return err }
	listenPacket := func(network, addr string) error { _, err := a.net.ListenPacket(network, addr); return err }
	if err := errors.Join(listen("tcp", ":99"), listenPacket("udp", ":99")); err != nil {
		t.Fatal(err)
	}
	var unknown net.UnknownNetworkError
	for _, tc := range []struct {
		name string
		err  error
		is   error
		op   string
	}{
		{"refused", dial(t.Context(), "tcp", addr4[1]+":1"), syscall.ECONNREFUSED, "dial"},
		{"no route", dial(t.Context(), "tcp", "198.51.100.1:1"), syscall.ENETUNREACH, "dial"},
		{"no station", dial(soon, "tcp", "192.0.2.99:1"), context.DeadlineExceeded, "dial"},
		{"too late", dial(past, "tcp", addr4[1]+":1"), os.ErrDeadlineExceeded, "dial"},
		{"canceled", dial(canceled, "tcp", addr4[1]+":1"), context.Canceled, "dial"},
		{"a name", dial(t.Context(), "tcp", "example.com:80"), errors.ErrUnsupported, "dial"},
		{"a zone", dial(t.Context(), "tcp", "[fe80::1%eth0]:80"), errors.ErrUnsupported, "dial"},
		{"network ip", dial(t.Context(), "ip:icmp", addr4[1]), errors.ErrUnsupported, "dial"},
		{"network unix", dial(t.Context(), "unix", "/x"), errors.ErrUnsupported, "dial"},
		{"no port", dial(t.Context(), "tcp", addr4[1]), nil, "dial"},
		{"no such port", dial(t.Context(), "tcp", addr4[1]+":65536"), nil, "dial"},
		{"no host", dial(t.Context(), "tcp", ":80"), nil, "dial"},
		{"other family", dial(t.Context(), "tcp6", addr4[1]+":80"), nil, "dial"},
		{"port in use", listen("tcp", ":99"), syscall.EADDRINUSE, "listen"},
		{"UDP port in use", listenPacket("udp", ":99"), syscall.EADDRINUSE, "listen"},
		{"not our address", listen("tcp", "192.0.2.77:80"), syscall.EADDRNOTAVAIL, "listen"},
		{"listen on UDP", listen("udp", ":80"), errors.ErrUnsupported, "listen"},
		{"listen for packets on TCP", listenPacket("tcp", ":80"), errors.ErrUnsupported, "listen"},
	} {
		var op *net.OpError
		if !errors.As(tc.err, &op) || op.Op != tc.op || tc.is != nil && !errors.Is(tc.err, tc.is) {
			t.Errorf("%s: %v (%T)", tc.name, tc.err, tc.err)
		}
	}
	if err := dial(t.Context(), "sctp", addr4[1]+":1"); !errors.As(err, &unknown) {
		t.Errorf("%v", err)
	}

	// Those of a connection.
	ca, cb := connect(t, a, b, addr4[1])
	ca.SetReadDeadline(time.Now().Add(10 * time.Millisecond))
	var timeout net.Error
	if _, err := ca.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) || !errors.As(err, &timeout) || !timeout.Timeout() {
		t.Errorf("read deadline: %v", err)
	}
	if _, err := ca.Write([]byte("xy")); err != nil {
		t.Fatal(err)
	}
	cb.Read(make([]byte, 1))
	for { // until the buffers of both ends are full
		ca.SetWriteDeadline(time.Now().Add(10 * time.Millisecond))
		if n, err := ca.Write(make([]byte, 1<<20)); err != nil {
			if !errors.Is(err, os.ErrDeadlineExceeded) || n == 1<<20 {
				t.Errorf("write deadline: %d, %v", n, err)
			}
			break
		}
	}
	ca.SetDeadline(time.Time{})
	cb.Close() // with bytes that nobody has read: a reset
	if _, err := ca.Read(make([]byte, 1)); !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("reset: %v", err)
	}
	ca.Close()

	// Those of UDP.
	u, err := a.net.DialContext(t.Context(), "udp", addr4[1]+":1")
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, "no port there", func() bool {
		u.Write([]byte("x"))
		u.SetReadDeadline(time.Now().Add(time.Millisecond))
		_, err := u.Read(make([]byte, 1))
		return errors.Is(err, syscall.ECONNREFUSED)
	})
	if _, err := u.Write(make([]byte, 70000)); !errors.Is(err, syscall.EMSGSIZE) {
		t.Errorf("too long: %v", err)
	}
	if _, err := u.(net.PacketConn).WriteTo([]byte("x"), u.RemoteAddr()); !errors.Is(err, net.ErrWriteToConnected) {
		t.Errorf("write to on a connected socket: %v", err)
	}
	for _, network := range []string{"udp", "udp4"} {
		p, err := a.net.ListenPacket(network, ":0")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := p.(net.Conn).Write([]byte("x")); !errors.Is(err, syscall.EDESTADDRREQ) {
			t.Errorf("write on a socket that is not connected: %v", err)
		}
		for _, to := range []net.Addr{nil, (*net.UDPAddr)(nil), &net.TCPAddr{IP: net.IPv4zero}, &net.UDPAddr{}} {
			if _, err := p.WriteTo([]byte("x"), to); err == nil {
				t.Errorf("wrote to %v", to)
			}
		}
		for _, ip := range []net.IP{net.ParseIP(addr4[1]), net.ParseIP(addr4[1]).To4()} {
			if _, err := p.WriteTo([]byte("x"), &net.UDPAddr{IP: ip, Port: 1}); err != nil {
				t.Errorf("%s, an IP of %d bytes: %v", network, len(ip), err)
			}
		}
		if _, err := p.WriteTo([]byte("x"), &net.UDPAddr{IP: net.ParseIP(addr6[1]), Port: 1}); err == nil {
			t.Errorf("%s wrote to an address of IPv6 on a stack without", network)
		}
		p.Close()
	}
}

// TestOwnAddress connects to the stack's own address, without the wire.
func TestOwnAddress(t *testing.T) {
	a, _ := newNets(t, stationConfig{})
	ca, cb := connect(t, a, a, addr4[0])
	before := a.net.Endpoint().Stats().TxPackets
	exchange(t, ca, cb, 100<<10)
	if after := a.net.Endpoint().Stats().TxPackets; after > before+10 {
		t.Errorf("%d packets left", after-before)
	}
}

// TestDuplicateAddress brings up a stack whose IPv6 address another station has.
func TestDuplicateAddress(t *testing.T) {
	a, b := newStations(t, stationConfig{})
	a.up(t, Config{Addresses: prefixes(addr6[0] + "/64")})
	_, err := Up(t.Context(), b.mac, Config{Addresses: prefixes(addr6[0] + "/64")})
	if !errors.Is(err, syscall.EADDRINUSE) {
		t.Errorf("%v", err)
	}
	// The MAC can be used again, and the wait has an end.
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if _, err := Up(ctx, b.mac, Config{Addresses: prefixes(addr6[1] + "/64")}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%v", err)
	}
	if _, err := Up(t.Context(), b.mac, Config{}); !errors.Is(err, os.ErrInvalid) {
		t.Errorf("%v", err)
	}
	b.up(t, Config{Addresses: prefixes(addr4[1] + "/24")})
}

// TestGateway routes through a station that only knows how to forward.
func TestGateway(t *testing.T) {
	noGoroutines(t)
	near, far := sim.NewPair(64)
	s := newStation(t, near, 1, stationConfig{})
	s.up(t, Config{Addresses: prefixes(addr4[0] + "/24"), Routes: []Route{
		{netip.MustParsePrefix("0.0.0.0/0"), netip.MustParseAddr("192.0.2.254")},
		{netip.MustParsePrefix("198.51.100.0/24"), netip.MustParseAddr("192.0.2.253")},
	}})
	for dst, gw := range map[string]string{"203.0.113.1": "192.0.2.254", "198.51.100.1": "192.0.2.253", "192.0.2.9": "192.0.2.9"} {
		c, err := s.net.DialContext(t.Context(), "udp", dst+":9")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := c.Write([]byte("x")); err != nil {
			t.Fatal(err)
		}
		want := netip.MustParseAddr(gw).As4()
		eventually(t, fmt.Sprintf("the station asks for %s to reach %s", gw, dst), func() bool {
			f, ok := far.Receive()
			// ARP: the target's protocol address lies at 24 behind the Ethernet header (RFC 826).
			return ok && len(f.Data) >= 42 && f.Data[12] == 0x08 && f.Data[13] == 0x06 && string(f.Data[38:42]) == string(want[:])
		})
	}
}

// TestHTTP is net/http, unchanged, on two stacks.
func TestHTTP(t *testing.T) {
	a, b := newNets(t, stationConfig{})
	l, err := b.net.Listen("tcp", ":80")
	if err != nil {
		t.Fatal(err)
	}
	body := random(1 << 20)
	srv := http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { w.Write(body) })}
	served := make(chan error, 1)
	go func() { served <- srv.Serve(l) }()
	tr := &http.Transport{DialContext: a.net.DialContext}
	for range 3 {
		resp, err := (&http.Client{Transport: tr}).Get("http://" + addr4[1] + "/")
		if err != nil {
			t.Fatal(err)
		}
		got, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if err != nil || string(got) != string(body) {
			t.Fatalf("%d bytes: %v", len(got), err)
		}
	}
	tr.CloseIdleConnections()
	if err := srv.Shutdown(t.Context()); err != nil {
		t.Error(err)
	}
	if err := <-served; !errors.Is(err, http.ErrServerClosed) {
		t.Error(err)
	}
}
