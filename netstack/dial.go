package netstack

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"strings"

	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/network/ipv4"
	"gvisor.dev/gvisor/pkg/tcpip/network/ipv6"
	"gvisor.dev/gvisor/pkg/tcpip/transport/tcp"
	"gvisor.dev/gvisor/pkg/tcpip/transport/udp"
	"gvisor.dev/gvisor/pkg/waiter"
)

// listenBacklog is how many connections wait for Accept at most, as on Linux
// (net.core.somaxconn).
const listenBacklog = 4096

// socketAddr is an address of a socket: a network of package net and an address
// and port, of which the address is invalid if it may be any.
type socketAddr struct {
	network string
	tcp     bool
	addr    netip.Addr
	port    uint16
}

// parseAddr reads what the functions of package net take. A host is an address,
// since there are no names.
func parseAddr(ctx context.Context, network, text string) (socketAddr, error) {
	a := socketAddr{network: network, tcp: strings.HasPrefix(network, "tcp")}
	switch network {
	case "tcp", "tcp4", "tcp6", "udp", "udp4", "udp6":
	default:
		return a, fmt.Errorf("%w: %w", net.UnknownNetworkError(network), errors.ErrUnsupported)
	}
	host, service, err := net.SplitHostPort(text)
	if err != nil {
		return a, err
	}
	port, err := net.DefaultResolver.LookupPort(ctx, network, service)
	if err != nil {
		return a, err
	}
	a.port = uint16(port)
	if host == "" {
		return a, nil
	}
	ip, err := netip.ParseAddr(host)
	switch {
	case err != nil:
		return a, fmt.Errorf("%q is no address, and names are not resolved: %w", host, errors.ErrUnsupported)
	case ip.Zone() != "":
		return a, fmt.Errorf("%q: zones: %w; a link-local address is one of the only link", host, errors.ErrUnsupported)
	}
	a.addr = ip.Unmap()
	if a.addr.Is4() && strings.HasSuffix(network, "6") || a.addr.Is6() && strings.HasSuffix(network, "4") {
		return a, &net.AddrError{Err: "address of the other family", Addr: host}
	}
	return a, nil
}

// protocol is the family of the socket. One that may have any address is of IPv6
// and serves IPv4 too, unless its network says which.
func (a socketAddr) protocol() tcpip.NetworkProtocolNumber {
	if a.addr.Is4() || strings.HasSuffix(a.network, "4") {
		return ipv4.ProtocolNumber
	}
	return ipv6.ProtocolNumber
}

// full is the address as gVisor has it.
func (a socketAddr) full() tcpip.FullAddress {
	f := tcpip.FullAddress{Port: a.port}
	if a.addr.IsValid() && !a.addr.IsUnspecified() {
		f.Addr = address(a.addr)
	}
	if a.addr.Is6() && a.addr.IsLinkLocalUnicast() {
		// Of any other, and with IPv4 of all, gVisor would not look whether the
		// address is the stack's.
		f.NIC = nicID
	}
	return f
}

// net is the address as package net has it.
func (a socketAddr) net() net.Addr {
	p := netip.AddrPortFrom(a.addr, a.port)
	if a.tcp {
		return net.TCPAddrFromAddrPort(p)
	}
	return net.UDPAddrFromAddrPort(p)
}

// socket makes a socket for a.
func (n *Net) socket(a socketAddr) (tcpip.Endpoint, *waiter.Queue, error) {
	proto := tcp.ProtocolNumber
	if !a.tcp {
		proto = udp.ProtocolNumber
	}
	wq := new(waiter.Queue)
	ep, err := n.stack.NewEndpoint(proto, a.protocol(), wq)
	if err != nil {
		return nil, nil, syscallError("socket", err)
	}
	if strings.HasSuffix(a.network, "6") {
		ep.SocketOptions().SetV6Only(true)
	}
	if !a.tcp {
		ep.SocketOptions().SetBroadcast(true) // as package net does
	}
	return ep, wq, nil
}

// DialContext connects to an address as net.Dialer.DialContext does, for the
// networks tcp, tcp4, tcp6, udp, udp4 and udp6. The host is an address: a name is
// refused with an error that is errors.ErrUnsupported. Errors are of type
// [*net.OpError].
func (n *Net) DialContext(ctx context.Context, network, addr string) (net.Conn, error) {
	a, err := parseAddr(ctx, network, addr)
	if err == nil && !a.addr.IsValid() {
		err = &net.AddrError{Err: "missing address", Addr: addr}
	}
	if err != nil {
		return nil, &net.OpError{Op: "dial", Net: network, Err: err}
	}
	c, err := n.dial(ctx, a)
	if err != nil {
		return nil, &net.OpError{Op: "dial", Net: network, Addr: a.net(), Err: err}
	}
	return c, nil
}

func (n *Net) dial(ctx context.Context, a socketAddr) (net.Conn, error) {
	if err := n.over(ctx); err != nil {
		return nil, err
	}
	ep, wq, err := n.socket(a)
	if err != nil {
		return nil, err
	}
	entry, writable := waiter.NewChannelEntry(waiter.WritableEvents | waiter.EventHUp | waiter.EventErr)
	wq.EventRegister(&entry)
	defer wq.EventUnregister(&entry)
	terr := ep.Connect(a.full())
	if _, ok := terr.(*tcpip.ErrConnectStarted); ok {
		select {
		case <-writable:
			terr = ep.LastError()
		case <-ctx.Done():
		case <-n.ctx.Done():
		}
		if err := n.over(ctx); err != nil {
			ep.Abort()
			return nil, err
		}
	}
	if terr != nil {
		ep.Close()
		return nil, syscallError("connect", terr)
	}
	// Not in one return: a nil *tcpConn is not a nil net.Conn.
	if a.tcp {
		if c, err := n.newTCPConn(a.network, a.protocol(), ep, wq); err == nil {
			return c, nil
		}
	} else if c, err := n.newUDPConn(a.network, a.protocol(), ep, wq); err == nil {
		return c, nil
	}
	return nil, net.ErrClosed
}

// over says why nothing more is to be done for a call with ctx, or nil.
func (n *Net) over(ctx context.Context) error {
	switch {
	case n.ctx.Err() != nil:
		return net.ErrClosed
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return errTimeout
	}
	return ctx.Err()
}

// Listen listens as net.Listen does, for the networks tcp, tcp4 and tcp6. Errors
// are of type [*net.OpError].
func (n *Net) Listen(network, addr string) (net.Listener, error) {
	a, err := parseAddr(n.ctx, network, addr)
	if err == nil && !a.tcp {
		err = fmt.Errorf("%w: %w", net.UnknownNetworkError(network), errors.ErrUnsupported)
	}
	if err != nil {
		return nil, &net.OpError{Op: "listen", Net: network, Err: err}
	}
	ep, wq, err := n.bind(a)
	if err == nil {
		if terr := ep.Listen(listenBacklog); terr != nil {
			ep.Close()
			err = syscallError("listen", terr)
		}
	}
	if err == nil {
		l := &listener{socket: socket{n: n, ep: ep, network: network}, wq: wq, proto: a.protocol()}
		l.addrs(true, l.proto)
		if n.adopt(l) {
			return l, nil
		}
		l.abort()
		err = net.ErrClosed
	}
	return nil, &net.OpError{Op: "listen", Net: network, Addr: a.net(), Err: err}
}

// ListenPacket listens as net.ListenPacket does, for the networks udp, udp4 and
// udp6. Errors are of type [*net.OpError].
func (n *Net) ListenPacket(network, addr string) (net.PacketConn, error) {
	a, err := parseAddr(n.ctx, network, addr)
	if err == nil && a.tcp {
		err = fmt.Errorf("%w: %w", net.UnknownNetworkError(network), errors.ErrUnsupported)
	}
	if err != nil {
		return nil, &net.OpError{Op: "listen", Net: network, Err: err}
	}
	ep, wq, err := n.bind(a)
	if err == nil {
		var c *udpConn
		if c, err = n.newUDPConn(network, a.protocol(), ep, wq); err == nil {
			return c, nil
		}
	}
	return nil, &net.OpError{Op: "listen", Net: network, Addr: a.net(), Err: err}
}

// bind makes a socket with an address of its own.
func (n *Net) bind(a socketAddr) (tcpip.Endpoint, *waiter.Queue, error) {
	if n.ctx.Err() != nil {
		return nil, nil, net.ErrClosed
	}
	ep, wq, err := n.socket(a)
	if err != nil {
		return nil, nil, err
	}
	if terr := ep.Bind(a.full()); terr != nil {
		ep.Close()
		return nil, nil, syscallError("bind", terr)
	}
	return ep, wq, nil
}

// timeoutError is how a deadline that has passed is reported.
type timeoutError struct{}

var errTimeout error = timeoutError{}

func (timeoutError) Error() string   { return "i/o timeout" }
func (timeoutError) Timeout() bool   { return true }
func (timeoutError) Temporary() bool { return true }
func (timeoutError) Is(target error) bool {
	return target == os.ErrDeadlineExceeded || target == context.DeadlineExceeded
}
