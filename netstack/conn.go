package netstack

import (
	"errors"
	"io"
	"net"
	"net/netip"
	"sync/atomic"
	"syscall"
	"time"

	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/adapters/gonet"
	"gvisor.dev/gvisor/pkg/tcpip/network/ipv4"
	"gvisor.dev/gvisor/pkg/waiter"
)

var (
	_ net.Conn       = (*tcpConn)(nil)
	_ net.Listener   = (*listener)(nil)
	_ net.Conn       = (*udpConn)(nil)
	_ net.PacketConn = (*udpConn)(nil)
)

// socket is what all sockets of a Net have in common.
type socket struct {
	n             *Net
	ep            tcpip.Endpoint
	network       string
	local, remote net.Addr // remote is nil if the socket has none
	closed        atomic.Bool
}

// fail makes err of a call of gonet that of package net: an OpError with an error
// number, net.ErrClosed or os.ErrDeadlineExceeded inside. io.EOF stays what it is
// for as long as the socket is open.
func (s *socket) fail(op string, to net.Addr, err error) error {
	if err == nil {
		return nil
	}
	e := &net.OpError{Op: op, Net: s.network, Source: s.local, Addr: to}
	var gonetErr *net.OpError
	switch {
	case s.closed.Load() || s.n.ctx.Err() != nil:
		e.Err = net.ErrClosed
	case errors.Is(err, io.EOF):
		return io.EOF
	case errors.As(err, &gonetErr) && gonetErr.Timeout():
		e.Err = errTimeout
	case errors.As(err, &gonetErr):
		e.Err = textError(op, gonetErr.Err.Error())
	default:
		e.Err = err
	}
	return e
}

// gone is the error of a call on a socket that was closed, or nil.
func (s *socket) gone(op string) error {
	if s.closed.Load() || s.n.ctx.Err() != nil {
		return s.fail(op, s.remote, net.ErrClosed)
	}
	return nil
}

// close closes the socket, and the second time says so as package net does. A
// socket that was ended with the Net is closed without an error.
func (s *socket) close(self aborter) error {
	if s.closed.Swap(true) {
		return s.fail("close", s.remote, net.ErrClosed)
	}
	if s.n.ctx.Err() == nil {
		s.ep.Close()
	}
	s.n.forget(self)
	return nil
}

// abort ends the socket with its Net: who waits on it returns, and the peer of a
// connection gets a reset.
func (s *socket) abort() { s.ep.Abort() }

// LocalAddr implements [net.Conn] and [net.PacketConn].
func (s *socket) LocalAddr() net.Addr { return s.local }

// Addr implements [net.Listener].
func (s *socket) Addr() net.Addr { return s.local }

// RemoteAddr implements [net.Conn].
func (s *socket) RemoteAddr() net.Addr { return s.remote }

// addrs asks for the addresses while the socket has them. One that is bound to
// none has the unspecified address of its family.
func (s *socket) addrs(isTCP bool, p tcpip.NetworkProtocolNumber) {
	netAddr := func(f tcpip.FullAddress, err tcpip.Error) net.Addr {
		if err != nil {
			return nil
		}
		a, ok := netip.AddrFromSlice(f.Addr.AsSlice())
		if !ok && p == ipv4.ProtocolNumber {
			a = netip.IPv4Unspecified()
		} else if !ok {
			a = netip.IPv6Unspecified()
		}
		return socketAddr{tcp: isTCP, addr: a.Unmap(), port: f.Port}.net()
	}
	s.local = netAddr(s.ep.GetLocalAddress())
	s.remote = netAddr(s.ep.GetRemoteAddress())
}

// tcpConn is a connection. Its type is not exported, but it has CloseRead and
// CloseWrite as net.TCPConn does.
type tcpConn struct {
	socket
	conn *gonet.TCPConn
}

// newTCPConn returns the connection of an endpoint, or net.ErrClosed.
func (n *Net) newTCPConn(network string, p tcpip.NetworkProtocolNumber, ep tcpip.Endpoint, wq *waiter.Queue) (*tcpConn, error) {
	c := &tcpConn{socket: socket{n: n, ep: ep, network: network}, conn: gonet.NewTCPConn(wq, ep)}
	c.addrs(true, p)
	if !n.adopt(c) {
		c.abort()
		return nil, net.ErrClosed
	}
	return c, nil
}

// Read implements [net.Conn].
func (c *tcpConn) Read(b []byte) (int, error) {
	if err := c.gone("read"); err != nil {
		return 0, err
	}
	n, err := c.conn.Read(b)
	return n, c.fail("read", c.remote, err)
}

// Write implements [net.Conn].
func (c *tcpConn) Write(b []byte) (int, error) {
	if err := c.gone("write"); err != nil {
		return 0, err
	}
	n, err := c.conn.Write(b)
	return n, c.fail("write", c.remote, err)
}

// Close implements [net.Conn].
func (c *tcpConn) Close() error { return c.close(c) }

// CloseRead is that of [net.TCPConn].
func (c *tcpConn) CloseRead() error {
	if err := c.gone("close"); err != nil {
		return err
	}
	return c.fail("close", c.remote, c.conn.CloseRead())
}

// CloseWrite is that of [net.TCPConn].
func (c *tcpConn) CloseWrite() error {
	if err := c.gone("close"); err != nil {
		return err
	}
	return c.fail("close", c.remote, c.conn.CloseWrite())
}

// SetDeadline implements [net.Conn].
func (c *tcpConn) SetDeadline(t time.Time) error { return c.set(c.conn.SetDeadline, t) }

// SetReadDeadline implements [net.Conn].
func (c *tcpConn) SetReadDeadline(t time.Time) error { return c.set(c.conn.SetReadDeadline, t) }

// SetWriteDeadline implements [net.Conn].
func (c *tcpConn) SetWriteDeadline(t time.Time) error { return c.set(c.conn.SetWriteDeadline, t) }

func (s *socket) set(f func(time.Time) error, t time.Time) error {
	if err := s.gone("set"); err != nil {
		return err
	}
	return s.fail("set", s.remote, f(t))
}

// listener is a listening socket.
type listener struct {
	socket
	wq    *waiter.Queue
	proto tcpip.NetworkProtocolNumber
}

// Accept implements [net.Listener].
func (l *listener) Accept() (net.Conn, error) {
	entry, ready := waiter.NewChannelEntry(waiter.ReadableEvents | waiter.EventHUp)
	l.wq.EventRegister(&entry)
	defer l.wq.EventUnregister(&entry)
	for {
		if err := l.gone("accept"); err != nil {
			return nil, err
		}
		ep, wq, terr := l.ep.Accept(nil)
		switch terr.(type) {
		case nil:
			c, err := l.n.newTCPConn(l.network, l.proto, ep, wq)
			if err != nil {
				return nil, l.fail("accept", nil, err)
			}
			return c, nil
		case *tcpip.ErrWouldBlock:
			select {
			case <-ready:
			case <-l.n.ctx.Done():
			}
		default:
			return nil, l.fail("accept", nil, syscallError("accept", terr))
		}
	}
}

// Close implements [net.Listener]. Connections that wait for Accept are reset.
func (l *listener) Close() error { return l.close(l) }

// udpConn is a UDP socket, connected or not.
type udpConn struct {
	socket
	conn  *gonet.UDPConn
	proto tcpip.NetworkProtocolNumber
}

// newUDPConn returns the socket of an endpoint, or net.ErrClosed.
func (n *Net) newUDPConn(network string, p tcpip.NetworkProtocolNumber, ep tcpip.Endpoint, wq *waiter.Queue) (*udpConn, error) {
	c := &udpConn{socket: socket{n: n, ep: ep, network: network}, conn: gonet.NewUDPConn(wq, ep), proto: p}
	c.addrs(false, p)
	if !n.adopt(c) {
		c.abort()
		return nil, net.ErrClosed
	}
	return c, nil
}

// Read implements [net.Conn].
func (c *udpConn) Read(b []byte) (int, error) {
	n, _, err := c.ReadFrom(b)
	return n, err
}

// ReadFrom implements [net.PacketConn]. The rest of a datagram that is longer than
// b is lost. An ICMP error for what a connected socket has sent is returned by the
// next call; it does not wake one that waits.
func (c *udpConn) ReadFrom(b []byte) (int, net.Addr, error) {
	if err := c.gone("read"); err != nil {
		return 0, nil, err
	}
	n, from, err := c.conn.ReadFrom(b)
	return n, from, c.fail("read", c.remote, err)
}

// Write implements [net.Conn].
func (c *udpConn) Write(b []byte) (int, error) {
	if err := c.gone("write"); err != nil {
		return 0, err
	}
	n, err := c.conn.Write(b)
	return n, c.fail("write", c.remote, err)
}

// WriteTo implements [net.PacketConn].
func (c *udpConn) WriteTo(b []byte, to net.Addr) (int, error) {
	if err := c.gone("write"); err != nil {
		return 0, err
	}
	if c.remote != nil {
		return 0, c.fail("write", to, net.ErrWriteToConnected)
	}
	u, ok := to.(*net.UDPAddr)
	if !ok || u == nil {
		return 0, c.fail("write", to, syscall.EINVAL)
	}
	ip, ok := netip.AddrFromSlice(u.IP)
	ip = ip.Unmap()
	switch {
	case !ok:
		return 0, c.fail("write", to, &net.AddrError{Err: "missing address", Addr: u.String()})
	case c.proto == ipv4.ProtocolNumber && ip.Is6():
		return 0, c.fail("write", to, syscall.EAFNOSUPPORT)
	case c.proto != ipv4.ProtocolNumber && ip.Is4():
		ip = netip.AddrFrom16(ip.As16()) // mapped
	}
	n, err := c.conn.WriteTo(b, &net.UDPAddr{IP: ip.AsSlice(), Port: u.Port})
	return n, c.fail("write", to, err)
}

// Close implements [net.Conn] and [net.PacketConn].
func (c *udpConn) Close() error { return c.close(c) }

// SetDeadline implements [net.Conn].
func (c *udpConn) SetDeadline(t time.Time) error { return c.set(c.conn.SetDeadline, t) }

// SetReadDeadline implements [net.Conn].
func (c *udpConn) SetReadDeadline(t time.Time) error { return c.set(c.conn.SetReadDeadline, t) }

// SetWriteDeadline implements [net.Conn].
func (c *udpConn) SetWriteDeadline(t time.Time) error { return c.set(c.conn.SetWriteDeadline, t) }
