package netstack

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"slices"
	"sync"
	"syscall"

	"github.com/rs/zerolog"
	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/header"
	"gvisor.dev/gvisor/pkg/tcpip/network/arp"
	"gvisor.dev/gvisor/pkg/tcpip/network/ipv4"
	"gvisor.dev/gvisor/pkg/tcpip/network/ipv6"
	"gvisor.dev/gvisor/pkg/tcpip/stack"
	"gvisor.dev/gvisor/pkg/tcpip/transport/icmp"
	"gvisor.dev/gvisor/pkg/tcpip/transport/tcp"
	"gvisor.dev/gvisor/pkg/tcpip/transport/udp"

	"github.com/gostmmac/gostmmac/stmmac"
)

// Config is what a [Net] is told.
type Config struct {
	// Addresses are those of the MAC, with the length of the prefix that is on
	// the link: at least one, IPv4 or IPv6, each once.
	Addresses []netip.Prefix
	// Routes lead to what is not on the link.
	Routes []Route
	// Logger gets events that are no packets; the zero value is silent.
	Logger zerolog.Logger
	// Clock is that of the endpoint, see [WithClock]; nil is the machine's.
	Clock stmmac.Clock
}

// Route sends packets for Dst through Gateway, which lies in the prefix of one of
// the addresses or, for IPv6, may be a link-local address. The prefix of length 0
// makes it the default gateway of its family.
type Route struct {
	Dst     netip.Prefix
	Gateway netip.Addr
}

// nicID is the number of the one NIC that a stack of this package has.
const nicID = 1

// Limits of the buffers of a socket in bytes. What a connection needs at most is
// rate times round trip: 6 MiB are 50 ms at 1 Gbit/s. They are limits; memory is
// taken as packets come.
const (
	tcpDefaultBuffer = 1 << 20
	tcpMaxSend       = 6 << 20
	// tcpReceive is the largest window without a scale, 0.5 ms at 1 Gbit/s. With one
	// gVisor takes back what it rounds off a window that it has told, and drops every
	// acknowledgment of a peer that used it (RFC 9293, 3.10.7.4: a receiver without a
	// window has to take valid ones): a connection that is full both ways hangs.
	tcpReceive       = 1<<16 - 1
	udpDefaultBuffer = 208 << 10 // as Linux (net.core.rmem_default)
	udpMaxBuffer     = 4 << 20
)

// Net is a TCP/IP stack on a MAC. Its methods may be called by several
// goroutines.
type Net struct {
	ep    *Endpoint
	stack *stack.Stack
	log   zerolog.Logger

	ctx context.Context // ends with Close
	end context.CancelCauseFunc

	mu     sync.Mutex
	open   map[aborter]struct{} // nil once closed
	closed chan struct{}        // closed when Close is done
}

// aborter is a socket of a Net.
type aborter interface{ abort() }

// Up brings a stack up on a MAC with one receive queue, whose filter lets in the
// multicasts of IPv6 neighbour discovery if there is an IPv6 address (see
// [NewEndpoint]), and returns when its addresses can be used: those of IPv6 are
// looked for on the link for a second first (RFC 4862, 5.4). ctx bounds that wait.
//
// The error of a Config that cannot be is os.ErrInvalid, and that of an address
// that another station has is syscall.EADDRINUSE. Before the MAC is closed the Net
// is.
func Up(ctx context.Context, n NIC, cfg Config) (*Net, error) {
	if err := cfg.check(n.MTU()); err != nil {
		return nil, fmt.Errorf("netstack: up: %w", err)
	}
	opts := []Option{WithLogger(cfg.Logger)}
	if cfg.Clock != nil {
		opts = append(opts, WithClock(cfg.Clock))
	}
	ep, err := NewEndpoint(n, opts...)
	if err != nil {
		return nil, err
	}
	u := &Net{ep: ep, log: cfg.Logger, open: map[aborter]struct{}{}, closed: make(chan struct{})}
	u.ctx, u.end = context.WithCancelCause(context.Background())
	u.stack = newStack(slices.ContainsFunc(cfg.Addresses, func(p netip.Prefix) bool { return p.Addr().Is6() }))
	if err := u.up(ctx, cfg); err != nil {
		return nil, errors.Join(fmt.Errorf("netstack: up: %w", err), u.Close())
	}
	u.log.Info().Stringer("mac", ep.LinkAddress()).Interface("addresses", cfg.Addresses).Msg("up")
	return u, nil
}

// newStack returns a stack without a NIC.
func newStack(linkLocal bool) *stack.Stack {
	s := stack.New(stack.Options{
		NetworkProtocols: []stack.NetworkProtocolFactory{
			ipv4.NewProtocol,
			ipv6.NewProtocolWithOptions(ipv6.Options{
				// Every interface with IPv6 has a link-local address (RFC 4291, 2.1).
				AutoGenLinkLocal: linkLocal,
				DADConfigs:       stack.DefaultDADConfigurations(),
				NDPConfigs:       ipv6.NDPConfigurations{HandleRAs: ipv6.HandlingRAsDisabled},
			}),
			arp.NewProtocol,
		},
		TransportProtocols: []stack.TransportProtocolFactory{
			tcp.NewProtocolCUBIC, udp.NewProtocol, icmp.NewProtocol4, icmp.NewProtocol6,
		},
		// What is sent to an own address comes back without the wire.
		HandleLocal: true,
	})
	mustSet := func(err tcpip.Error) {
		if err != nil {
			// The values are constants, and the protocols are there.
			panic("netstack: " + err.String())
		}
	}
	mustSet(s.SetTransportProtocolOption(tcp.ProtocolNumber, &tcpip.TCPReceiveBufferSizeRangeOption{
		Min: tcp.MinBufferSize, Default: tcpReceive, Max: tcpReceive,
	}))
	mustSet(s.SetTransportProtocolOption(tcp.ProtocolNumber, &tcpip.TCPSendBufferSizeRangeOption{
		Min: tcp.MinBufferSize, Default: tcpDefaultBuffer, Max: tcpMaxSend,
	}))
	mustSet(s.SetOption(tcpip.ReceiveBufferSizeOption{Min: stack.MinBufferSize, Default: udpDefaultBuffer, Max: udpMaxBuffer}))
	mustSet(s.SetOption(tcpip.SendBufferSizeOption{Min: stack.MinBufferSize, Default: udpDefaultBuffer, Max: udpMaxBuffer}))
	return s
}

// check says what is wrong with a Config.
func (c *Config) check(mtu int) error {
	if len(c.Addresses) == 0 {
		return fmt.Errorf("no address: %w", os.ErrInvalid)
	}
	for i, p := range c.Addresses {
		a := p.Addr()
		switch {
		case !p.IsValid() || a.Is4In6() || a.Zone() != "":
			return fmt.Errorf("address %v is none: %w", p, os.ErrInvalid)
		case a.IsUnspecified() || a.IsMulticast() || a.IsLoopback() || a == netip.AddrFrom4([4]byte{255, 255, 255, 255}):
			return fmt.Errorf("address %v is not one of a station: %w", p, os.ErrInvalid)
		case slices.ContainsFunc(c.Addresses[:i], func(q netip.Prefix) bool { return q.Addr() == a }):
			return fmt.Errorf("address %v is given twice: %w", p, os.ErrInvalid)
		case a.Is6() && mtu < header.IPv6MinimumMTU:
			return fmt.Errorf("address %v: IPv6 needs an MTU of %d, and the MAC has %d: %w", p, header.IPv6MinimumMTU, mtu, os.ErrInvalid)
		}
	}
	for _, r := range c.Routes {
		switch {
		case !r.Dst.IsValid() || r.Dst.Addr().Is4In6() || r.Dst.Addr().Zone() != "":
			return fmt.Errorf("route to %v: the destination is no prefix: %w", r.Dst, os.ErrInvalid)
		case r.Dst != r.Dst.Masked():
			return fmt.Errorf("route to %v: the destination has bits behind the prefix, as in %v: %w", r.Dst, r.Dst.Masked(), os.ErrInvalid)
		case r.Gateway.Zone() != "" || r.Gateway.BitLen() != r.Dst.Addr().BitLen():
			return fmt.Errorf("route to %v: gateway %v is no address of its family: %w", r.Dst, r.Gateway, os.ErrInvalid)
		case !c.onLink(r.Gateway):
			return fmt.Errorf("route to %v: gateway %v is not on the link: %w", r.Dst, r.Gateway, os.ErrInvalid)
		}
	}
	return nil
}

// onLink says whether a gateway can be reached without another.
func (c *Config) onLink(gw netip.Addr) bool {
	on, link6 := false, false
	for _, p := range c.Addresses {
		if p.Addr() == gw {
			return false // oneself
		}
		on = on || p.Masked().Contains(gw)
		link6 = link6 || p.Addr().Is6()
	}
	return on || link6 && gw.IsLinkLocalUnicast() && gw.Is6()
}

// up makes the NIC, its addresses and routes.
func (n *Net) up(ctx context.Context, cfg Config) error {
	if err := n.stack.CreateNIC(nicID, n.ep); err != nil {
		return errors.New(err.String())
	}
	// The longest prefix first: gVisor takes the first route that fits.
	var routes []tcpip.Route
	var used []*usable
	for _, p := range cfg.Addresses {
		a := &usable{addr: p, state: make(chan error, 1)}
		used = append(used, a)
		err := n.stack.AddProtocolAddress(nicID, tcpip.ProtocolAddress{
			Protocol:          protocolOf(p.Addr()),
			AddressWithPrefix: tcpip.AddressWithPrefix{Address: address(p.Addr()), PrefixLen: p.Bits()},
		}, stack.AddressProperties{Disp: a})
		if err != nil {
			return fmt.Errorf("address %v: %v", p, err)
		}
		routes = append(routes, tcpip.Route{Destination: subnet(p), NIC: nicID})
	}
	for _, r := range cfg.Routes {
		routes = append(routes, tcpip.Route{Destination: subnet(r.Dst), Gateway: address(r.Gateway), NIC: nicID})
	}
	if slices.ContainsFunc(cfg.Addresses, func(p netip.Prefix) bool { return p.Addr().Is6() }) {
		routes = append(routes, tcpip.Route{Destination: header.IPv6LinkLocalPrefix.Subnet(), NIC: nicID})
	}
	slices.SortStableFunc(routes, func(a, b tcpip.Route) int { return b.Destination.Prefix() - a.Destination.Prefix() })
	n.stack.SetRouteTable(routes)
	for _, a := range used {
		select {
		case err := <-a.state:
			if err != nil {
				return err
			}
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// usable is told when an address can be used. It implements
// [stack.AddressDispatcher].
type usable struct {
	addr  netip.Prefix
	state chan error // room for one
}

func (u *usable) say(err error) {
	select {
	case u.state <- err:
	default:
	}
}

// OnChanged implements [stack.AddressDispatcher].
func (u *usable) OnChanged(_ stack.AddressLifetimes, s stack.AddressAssignmentState) {
	if s == stack.AddressAssigned {
		u.say(nil)
	}
}

// OnRemoved implements [stack.AddressDispatcher].
func (u *usable) OnRemoved(why stack.AddressRemovalReason) {
	if why == stack.AddressRemovalDADFailed {
		u.say(fmt.Errorf("address %v: another station has it: %w", u.addr, syscall.EADDRINUSE))
		return
	}
	u.say(fmt.Errorf("address %v was removed", u.addr))
}

// Stack is the stack itself, for what this package has no method for.
func (n *Net) Stack() *stack.Stack { return n.stack }

// Endpoint is what the stack's one NIC, number 1, is connected to.
func (n *Net) Endpoint() *Endpoint { return n.ep }

// adopt makes s a socket of n, unless n is closed.
func (n *Net) adopt(s aborter) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.open == nil {
		return false
	}
	n.open[s] = struct{}{}
	return true
}

// forget is called for a socket that was closed.
func (n *Net) forget(s aborter) {
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.open, s)
}

// Close ends all sockets, with net.ErrClosed for who waits on one of them and a
// reset for its peer, and returns when nothing of the stack runs any more. The MAC
// stays open. It is safe to call twice, and returns nil.
func (n *Net) Close() error {
	n.mu.Lock()
	open := n.open
	n.open = nil
	n.mu.Unlock()
	if open == nil {
		<-n.closed
		return nil
	}
	defer close(n.closed)
	n.end(errClosed)
	// A device that does not move must not keep the resets that follow, and with
	// them the locks of the stack.
	n.ep.endWaits(errClosed)
	for s := range open {
		s.abort()
	}
	n.stack.Close()
	// Before the NIC is removed: no packet is inside the stack any more then.
	n.ep.Close()
	if err := n.stack.RemoveNIC(nicID); err != nil {
		// Bringing it up has failed before there was one.
		n.log.Debug().Stringer("err", err).Msg("remove the NIC")
	}
	n.stack.Wait()
	n.log.Info().Msg("down")
	return nil
}

func protocolOf(a netip.Addr) tcpip.NetworkProtocolNumber {
	if a.Is4() {
		return ipv4.ProtocolNumber
	}
	return ipv6.ProtocolNumber
}

func address(a netip.Addr) tcpip.Address { return tcpip.AddrFromSlice(a.AsSlice()) }

func subnet(p netip.Prefix) tcpip.Subnet {
	return tcpip.AddressWithPrefix{Address: address(p.Masked().Addr()), PrefixLen: p.Bits()}.Subnet()
}
