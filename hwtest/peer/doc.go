// Package peer is what the device of a hardware test is wired to, behind one
// interface: its own loopback, another device, an interface of the Linux kernel, or
// one of these on another machine.
//
//	h, p, err := peer.Open(ctx, bus.NewOpener(), "pci:0000:03:00.0", "af_packet:eth1")
//	mac, err := stmmac.Open(ctx, h.Device, append(h.Options, p.Options()...)...)
//	err = p.Attach(ctx, mac)
//	err = p.Send(ctx, frame) // arrives at mac
//
// Start reading at [Peer] and [Open]; message.go is the protocol to another machine.
// The package may import stmmac, its bus and sim, pagepool and golang.org/x/sys.
package peer
