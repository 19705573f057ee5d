package netstack

import (
	"errors"
	"io"
	"net"
	"sync"
	"syscall"
	"testing"
	"time"

	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/header"
	"gvisor.dev/gvisor/pkg/tcpip/stack"

	"github.com/gostmmac/gostmmac/stmmac/sim"
)

// TestCloseUnblocks closes a Net while a goroutine is inside every call that
// blocks: each returns net.ErrClosed.
func TestCloseUnblocks(t *testing.T) {
	a, b := newNets(t, stationConfig{})
	ca, cb := connect(t, a, b, addr4[1])
	defer cb.Close()
	l, err := a.net.Listen("tcp", ":80")
	if err != nil {
		t.Fatal(err)
	}
	pc, err := a.net.ListenPacket("udp", ":80")
	if err != nil {
		t.Fatal(err)
	}
	full, fullPeer := connect(t, a, b, addr4[1]) // nobody reads at its other end
	defer fullPeer.Close()
	calls := map[string]func() error{
		"read":      func() error { _, err := ca.Read(make([]byte, 1)); return err },
		"accept":    func() error { _, err := l.Accept(); return err },
		"read from": func() error { _, _, err := pc.ReadFrom(make([]byte, 1)); return err },
		"write":     func() error { _, err := full.Write(make([]byte, 64<<20)); return err },
		// nobody has the address
		"dial": func() error { _, err := a.net.DialContext(t.Context(), "tcp", "192.0.2.99:80"); return err },
	}
	errs := make(map[string]chan error)
	for name, call := range calls {
		c := make(chan error, 1)
		errs[name] = c
		go func() { c <- call() }()
	}
	// Whether they are inside or not yet, the outcome is the same.
	time.Sleep(20 * time.Millisecond)
	var wg sync.WaitGroup
	for range 3 {
		wg.Go(func() {
			if err := a.net.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	for name, c := range errs {
		if err := <-c; !errors.Is(err, net.ErrClosed) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name, call := range calls {
		var op *net.OpError
		if err := call(); !errors.Is(err, net.ErrClosed) || !errors.As(err, &op) {
			t.Errorf("%s after Close: %v", name, err)
		}
	}
	if _, err := a.net.Listen("tcp", ":81"); !errors.Is(err, net.ErrClosed) {
		t.Errorf("listen after Close: %v", err)
	}
	if _, err := a.net.ListenPacket("udp", ":81"); !errors.Is(err, net.ErrClosed) {
		t.Errorf("listen packet after Close: %v", err)
	}
	// The first Close of a socket is not to blame, the second is.
	for _, c := range []io.Closer{ca, l, pc, full} {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
		if err := c.Close(); !errors.Is(err, net.ErrClosed) {
			t.Errorf("second Close of a socket: %v", err)
		}
	}
	// The peer was told.
	cb.SetReadDeadline(time.Now().Add(patience))
	if _, err := cb.Read(make([]byte, 1)); !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("the peer of a connection that was ended: %v", err)
	}
	a.settled(t)
}

// TestSocketClose closes each kind of socket while a goroutine waits on it.
func TestSocketClose(t *testing.T) {
	a, b := newNets(t, stationConfig{})
	ca, cb := connect(t, a, b, addr4[1])
	l, err := a.net.Listen("tcp4", "192.0.2.1:80")
	if err != nil {
		t.Fatal(err)
	}
	pc, err := a.net.ListenPacket("udp4", ":80")
	if err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		name  string
		call  func() error
		close io.Closer
	}{
		{"read", func() error { _, err := ca.Read(make([]byte, 1)); return err }, ca},
		{"accept", func() error { _, err := l.Accept(); return err }, l},
		{"read from", func() error { _, _, err := pc.ReadFrom(make([]byte, 1)); return err }, pc},
	} {
		c := make(chan error, 1)
		go func() { c <- tc.call() }()
		time.Sleep(10 * time.Millisecond)
		if err := tc.close.Close(); err != nil {
			t.Error(err)
		}
		if err := <-c; !errors.Is(err, net.ErrClosed) {
			t.Errorf("%s: %v", tc.name, err)
		}
	}
	if err := ca.SetDeadline(time.Now()); !errors.Is(err, net.ErrClosed) {
		t.Errorf("set deadline: %v", err)
	}
	if n, err := cb.Read(make([]byte, 1)); err != io.EOF {
		t.Errorf("the peer of a connection that was closed: %d, %v", n, err)
	}
	cb.Close()
	if n := len(a.net.open); n != 0 {
		t.Errorf("%d sockets are still known", n)
	}
}

// TestCloseUnderTraffic closes one Net, or the MAC below it, in the middle of bulk
// traffic both ways.
func TestCloseUnderTraffic(t *testing.T) {
	for _, first := range []string{"net", "mac"} {
		t.Run(first, func(t *testing.T) {
			a, b := newNets(t, stationConfig{ring: 32})
			var wg sync.WaitGroup
			for range 4 {
				ca, cb := connect(t, a, b, addr4[1])
				for _, c := range []net.Conn{ca, cb} {
					wg.Go(func() { io.Copy(io.Discard, c) })
					wg.Go(func() {
						for buf := random(64 << 10); ; {
							if _, err := c.Write(buf); err != nil {
								return
							}
						}
					})
				}
			}
			eventually(t, "traffic flows", func() bool {
				return a.net.Endpoint().Stats().RxPackets > 500 && b.net.Endpoint().Stats().RxPackets > 500
			})
			if first == "mac" {
				if err := a.mac.Close(); err != nil {
					t.Error(err)
				}
				<-a.net.Endpoint().Failed()
				if err := a.net.Endpoint().Err(); !errors.Is(err, net.ErrClosed) {
					t.Errorf("receiving has ended: %v", err)
				}
			}
			if err := a.net.Close(); err != nil {
				t.Error(err)
			}
			if err := b.net.Close(); err != nil {
				t.Error(err)
			}
			wg.Wait()
			if first == "net" {
				a.settled(t)
			}
			b.settled(t)
		})
	}
}

// echoRequest is an ICMP echo request from addr4[1], whose station has the address
// 02:…:02, to addr4[0], padded to the least length of a frame.
func echoRequest(payload int) []byte {
	const l4 = header.EthernetMinimumSize + header.IPv4MinimumSize
	f := make([]byte, l4+header.ICMPv4MinimumSize+payload)
	header.Ethernet(f).Encode(&header.EthernetFields{
		SrcAddr: "\x02\x00\x00\x00\x00\x02", DstAddr: "\x02\x00\x00\x00\x00\x01", Type: header.IPv4ProtocolNumber,
	})
	ip := header.IPv4(f[header.EthernetMinimumSize:])
	ip.Encode(&header.IPv4Fields{
		TotalLength: uint16(len(ip)), TTL: 64, Protocol: uint8(header.ICMPv4ProtocolNumber),
		SrcAddr: tcpip.AddrFrom4([4]byte{192, 0, 2, 2}), DstAddr: tcpip.AddrFrom4([4]byte{192, 0, 2, 1}),
	})
	ip.SetChecksum(^ip.CalculateChecksum())
	icmp := header.ICMPv4(f[l4:])
	icmp.SetType(header.ICMPv4Echo)
	icmp.SetChecksum(header.ICMPv4Checksum(icmp, 0))
	return append(f, make([]byte, max(0, 60-len(f)))...)
}

// TestRemoveNIC removes the NIC from a stack, or destroys the stack, while echo
// requests arrive. Answering one takes a lock of the stack that RemoveNIC holds
// when it detaches the endpoint.
func TestRemoveNIC(t *testing.T) {
	for name, end := range map[string]func(*stack.Stack){
		"remove":  func(s *stack.Stack) { s.RemoveNIC(nicID); s.Destroy() },
		"destroy": (*stack.Stack).Destroy,
	} {
		t.Run(name, func(t *testing.T) {
			noGoroutines(t)
			wa, wb := sim.NewPair(64)
			a := newStation(t, wa, 1, stationConfig{})
			stop := make(chan struct{})
			var wg sync.WaitGroup
			wg.Go(func() {
				for f := echoRequest(32); ; {
					select {
					case <-stop:
						return
					default:
					}
					if !wb.Transmit(sim.Frame{Data: f}) {
						time.Sleep(10 * time.Microsecond)
					}
					for _, ok := wb.Receive(); ok; _, ok = wb.Receive() {
					}
				}
			})
			for range 50 {
				ep, err := NewEndpoint(a.mac)
				if err != nil {
					t.Fatal(err)
				}
				s := newStack(false)
				if err := s.CreateNIC(nicID, ep); err != nil {
					t.Fatal(err)
				}
				s.AddProtocolAddress(nicID, tcpip.ProtocolAddress{
					Protocol:          header.IPv4ProtocolNumber,
					AddressWithPrefix: tcpip.AddrFrom4([4]byte{192, 0, 2, 1}).WithPrefix(),
				}, stack.AddressProperties{})
				s.SetRouteTable([]tcpip.Route{{Destination: header.IPv4EmptySubnet, NIC: nicID}})
				s.AddStaticNeighbor(nicID, header.IPv4ProtocolNumber, tcpip.AddrFrom4([4]byte{192, 0, 2, 2}), "\x02\x00\x00\x00\x00\x02")
				eventually(t, "echoes are answered", func() bool { return ep.Stats().TxPackets > 0 })
				ended := make(chan struct{})
				go func() { end(s); close(ended) }()
				select {
				case <-ended:
				case <-time.After(patience):
					t.Fatal("the end of the stack hangs")
				}
				if ep.IsAttached() {
					t.Error("still attached")
				}
				ep.Close() // the second time
			}
			close(stop)
			wg.Wait()
		})
	}
}
