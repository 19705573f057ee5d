// Package netstack runs gVisor's TCP/IP stack on a MAC, so that a process gets
// Dial, Listen and ListenPacket without the kernel's stack.
//
// [Up] makes a [Net] of an open MAC and static addresses:
//
//	mac, err := stmmac.Open(ctx, dev, append(opts, stmmac.WithAllMulticast())...)
//	n, err := netstack.Up(ctx, mac, netstack.Config{
//		Addresses: []netip.Prefix{netip.MustParsePrefix("192.0.2.2/24")},
//	})
//	client := http.Client{Transport: &http.Transport{DialContext: n.DialContext}}
//
// Neither names, DHCP and SLAAC nor multicast groups are there yet; a host name
// is refused with an error that is errors.ErrUnsupported. Whoever has a stack of
// his own uses [NewEndpoint] alone.
//
// What goes through the endpoint is copied once in each direction: gVisor has no
// way to take foreign memory. Checksums are verified and computed by gVisor in
// software, whatever the MAC can do; a frame that the MAC found bad is dropped
// and counted. Nothing is dropped without a count.
//
// The package is the only one of the module that knows gVisor. Its types appear
// in [Endpoint], [Net.Stack] and nowhere else, because they change without
// notice: the version in go.mod is one that works, and must not be raised by
// go get -u.
//
// Start reading at Endpoint in endpoint.go; receive.go and send.go are the way of
// a frame, net.go brings the stack up and down, conn.go makes its errors those of
// package net. The package may import stmmac, pagepool, zerolog and gVisor.
package netstack
