package netstack

import (
	"bytes"
	"fmt"
	"net"
	"testing"
	"time"

	"github.com/gostmmac/gostmmac/stmmac"
)

// TestTCP moves bytes both ways at once, with rings, buffers and packets of all
// sizes. With few of them the MAC has no room for all that arrives, as on any wire,
// and TCP sends again; the endpoint drops nothing.
func TestTCP(t *testing.T) {
	const mb = 1 << 20
	for _, tc := range []struct {
		name  string
		c     stationConfig
		bytes int
	}{
		{"plain", stationConfig{}, 12 * mb},
		{"jumbo", stationConfig{mtu: 9000}, 12 * mb},
		{"jumbo in one buffer", stationConfig{mtu: 9000, bufSize: 10 << 10, bufs: 1200}, 8 * mb},
		{"ring of 8", stationConfig{ring: 8}, 128 << 10},
		{"ring of 2", stationConfig{ring: 2}, 32 << 10},
		{"small buffers", stationConfig{bufSize: 256, ring: 128}, 128 << 10},
		{"MTU 68", stationConfig{mtu: 68}, 16 << 10},
		{"few buffers", stationConfig{bufs: 16, ring: 8}, 128 << 10},
		{"frames handed back", stationConfig{opts: []stmmac.Option{stmmac.WithTxCompletions()}}, 1 * mb},
	} {
		t.Run(tc.name, func(t *testing.T) {
			a, b := newNets(t, tc.c)
			ca, cb := connect(t, a, b, addr4[1])
			exchange(t, ca, cb, tc.bytes)
			ca.Close()
			cb.Close()
			for _, s := range []*station{a, b} {
				ep := s.net.Endpoint()
				eventually(t, "all is delivered", func() bool {
					st := ep.Stats()
					return st.RxDelivered == st.RxPackets
				})
				st := ep.Stats()
				if st.Dropped() != 0 {
					t.Errorf("%+v", st)
				}
				if st.TxBytes < uint64(tc.bytes) || st.RxBytes < uint64(tc.bytes) {
					t.Errorf("%+v", st)
				}
				s.settled(t)
			}
		})
	}
}

// TestTCP6 is one connection over IPv6, and one over each on sockets that serve
// both.
func TestTCP6(t *testing.T) {
	a, b := newNets6(t, stationConfig{})
	ca, cb := connect(t, a, b, addr6[1])
	exchange(t, ca, cb, 4<<20)
	l, err := b.net.Listen("tcp", ":80")
	if err != nil {
		t.Fatal(err)
	}
	for _, host := range []string{addr4[1], addr6[1]} {
		ca, err := a.net.DialContext(t.Context(), "tcp", net.JoinHostPort(host, "80"))
		if err != nil {
			t.Fatal(err)
		}
		cb, err := l.Accept()
		if err != nil {
			t.Fatal(err)
		}
		if ca.LocalAddr().String() != cb.RemoteAddr().String() || ca.RemoteAddr().String() != cb.LocalAddr().String() {
			t.Errorf("%v to %v, and %v to %v", ca.LocalAddr(), ca.RemoteAddr(), cb.RemoteAddr(), cb.LocalAddr())
		}
		exchange(t, ca, cb, 100<<10)
	}
	if c, err := l.(*listener).n.Listen("tcp6", "[::]:80"); err == nil {
		t.Error("two listeners of a port")
		c.Close()
	}
}

// echo sends back the datagrams of c until it is closed.
func echo(c net.PacketConn) {
	buf := make([]byte, 1<<16)
	for {
		n, from, err := c.ReadFrom(buf)
		if err != nil {
			return
		}
		c.WriteTo(buf[:n], from)
	}
}

// TestUDP sends datagrams of all sizes, also those that leave in fragments, and
// those of no byte, and gets them back.
func TestUDP(t *testing.T) {
	for _, tc := range []struct {
		mtu   int
		sizes []int
	}{
		{1500, []int{0, 1, 17, 18, 19, 1471, 1472, 1473, 2960, 9000, 65507}},
		{9000, []int{0, 1472, 8972, 8973, 65507}},
	} {
		t.Run(fmt.Sprint(tc.mtu), func(t *testing.T) {
			a, b := newNets6(t, stationConfig{mtu: tc.mtu})
			for i, host := range []string{addr4[1], addr6[1], ""} {
				pc, err := b.net.ListenPacket("udp", net.JoinHostPort(host, "7"))
				if err != nil {
					t.Fatal(err)
				}
				go echo(pc)
				if host == "" {
					host = addr4[1] // a socket for both families
				}
				c, err := a.net.DialContext(t.Context(), "udp", net.JoinHostPort(host, "7"))
				if err != nil {
					t.Fatal(err)
				}
				for _, n := range tc.sizes {
					if i == 1 && n == 65507 {
						n -= 20 // the longer header of IPv6 counts
					}
					want, got := random(n), make([]byte, 1<<16)
					if _, err := c.Write(want); err != nil {
						t.Fatalf("%d bytes: %v", n, err)
					}
					c.SetReadDeadline(time.Now().Add(patience))
					k, err := c.Read(got)
					if err != nil || !bytes.Equal(got[:k], want) {
						t.Fatalf("%d bytes to %s: got %d: %v", n, host, k, err)
					}
				}
				c.Close()
				pc.Close()
			}
			for _, s := range []*station{a, b} {
				if st := s.net.Endpoint().Stats(); st.Dropped() != 0 {
					t.Errorf("%+v", st)
				}
				s.settled(t)
			}
		})
	}
}
