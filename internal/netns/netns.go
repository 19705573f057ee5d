package netns

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
)

// NS is a network namespace. It lives until it is closed and every socket and
// TAP that was made in it is closed too. All methods may be called by several
// goroutines, also from inside of [NS.Do].
type NS struct {
	handle *os.File // keeps it alive, and is the way into it
}

// errReturn is that of a function which ended its goroutine.
var errReturn = errors.New("netns: the function did not return: it called runtime.Goexit, as t.FailNow does")

// Close lets go of the namespace. It is safe to call twice. Sockets that were made
// in it go on working and keep it.
func (n *NS) Close() error {
	if err := n.handle.Close(); err != nil && !errors.Is(err, os.ErrClosed) {
		return err
	}
	return nil
}

// Up gives an interface its addresses and sets it up, and sets its MTU in bytes
// unless that is 0. Addresses count at once, without duplicate address detection
// (RFC 4862, 5.4). Its transmit queue becomes long enough for the window of any
// TCP connection, because a TAP drops what does not fit into it.
func (n *NS) Up(name string, mtu int, addrs ...netip.Prefix) error {
	return n.Do(func() error {
		if err := setUp(name, mtu); err != nil {
			return fmt.Errorf("netns: set %s up: %w", name, err)
		}
		for _, a := range addrs {
			if err := addAddr(name, a); err != nil {
				return fmt.Errorf("netns: give %s the address %v: %w", name, a, err)
			}
		}
		return nil
	})
}

// Down sets an interface down. It keeps its IPv4 addresses and loses those of IPv6.
func (n *NS) Down(name string) error {
	return n.Do(func() error { return linkError("set down", name, setDown(name)) })
}

// Delete removes an interface.
func (n *NS) Delete(name string) error {
	return n.Do(func() error { return linkError("delete", name, deleteLink(name)) })
}

// Operational says whether an interface is up, has a link, and sends what it is given (the
// state up of RFC 2863). The flag for that which [net.Interface] has is set too early:
// frames are dropped for a moment after it.
func (n *NS) Operational(name string) (up bool, err error) {
	err = n.Do(func() error {
		up, err = operational(name)
		return linkError("look at", name, err)
	})
	return up, err
}

// Move gives an interface to another namespace, in which it is down and keeps its name.
func (n *NS) Move(name string, to *NS) error {
	return n.Do(func() error { return linkError("move", name, moveLink(name, to)) })
}

// VLAN makes an interface for the frames of parent with a VLAN tag: id 1 to 4094, and
// service chooses the tag of IEEE 802.1ad instead of that of 802.1Q.
func (n *NS) VLAN(name, parent string, id uint16, service bool) error {
	return n.Do(func() error { return linkError("make the VLAN", name, addVLAN(name, parent, id, service)) })
}

// Pair makes two interfaces in the namespace that are joined by a cable (veth(4)).
func (n *NS) Pair(a, b string) error {
	return n.Do(func() error { return linkError("make the pair", a, addPair(a, b)) })
}

// SetHardwareAddr gives an interface a MAC address.
func (n *NS) SetHardwareAddr(name string, addr net.HardwareAddr) error {
	return n.Do(func() error { return linkError("set the address of", name, setHardwareAddr(name, addr)) })
}

// Route sends packets for dst to the gateway via.
func (n *NS) Route(dst netip.Prefix, via netip.Addr) error {
	return n.Do(func() error {
		if err := addRoute(dst, via); err != nil {
			return fmt.Errorf("netns: add the route to %v by %v: %w", dst, via, err)
		}
		return nil
	})
}

func linkError(what, name string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("netns: %s %s: %w", what, name, err)
}

// Listen is net.Listen in the namespace, for "tcp", "tcp4" and "tcp6". The host
// of address is an IP address, because a name would be looked up outside.
func (n *NS) Listen(network, address string) (l net.Listener, err error) {
	var lc net.ListenConfig
	lc.SetMultipathTCP(false)
	err = n.with(address, func() error {
		l, err = lc.Listen(context.Background(), network, address)
		return err
	})
	return l, err
}

// ListenPacket is net.ListenPacket in the namespace, for "udp", "udp4" and "udp6".
// The host of address is an IP address.
func (n *NS) ListenPacket(network, address string) (c net.PacketConn, err error) {
	err = n.with(address, func() error {
		c, err = net.ListenPacket(network, address)
		return err
	})
	return c, err
}

// Dial is net.Dialer.DialContext in the namespace, for TCP and UDP. The host of
// address is an IP address.
func (n *NS) Dial(ctx context.Context, network, address string) (c net.Conn, err error) {
	var d net.Dialer
	d.SetMultipathTCP(false)
	err = n.with(address, func() error {
		c, err = d.DialContext(ctx, network, address)
		return err
	})
	return c, err
}

// with runs f if the address has no name in it.
func (n *NS) with(address string, f func() error) error {
	if _, err := netip.ParseAddrPort(address); err != nil {
		return fmt.Errorf("netns: want an IP address and a port: %w", err)
	}
	return n.Do(f)
}
