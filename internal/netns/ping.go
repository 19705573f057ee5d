package netns

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync/atomic"
	"time"
)

// ICMP types of an echo (RFC 792, RFC 4443).
const (
	icmpEcho        = 8
	icmpEchoReply   = 0
	icmpv6Echo      = 128
	icmpv6EchoReply = 129
	icmpHeader      = 8
)

// pings counts the echo requests of this process, so that no two are the same.
var pings atomic.Uint32

// Ping sends one ICMP echo request with size bytes of payload (0 to 65507) and
// waits until its answer came with the same payload, or ctx ended. With IPv4 a
// packet of size bytes has size + 28, with IPv6 size + 48; one that is longer than
// the MTU goes in fragments.
func (n *NS) Ping(ctx context.Context, to netip.Addr, size int) error {
	const most = 65507 // RFC 791: 65535 less the headers
	if size < 0 || size > most {
		return fmt.Errorf("netns: ping with %d bytes is not 0 to %d", size, most)
	}
	network, any, request, reply := "ip4:icmp", "0.0.0.0", byte(icmpEcho), byte(icmpEchoReply)
	if !to.Is4() {
		network, any, request, reply = "ip6:ipv6-icmp", "::", icmpv6Echo, icmpv6EchoReply
	}
	var c net.PacketConn
	err := n.Do(func() (err error) {
		c, err = net.ListenPacket(network, any)
		return err
	})
	if err != nil {
		return fmt.Errorf("netns: ping %v: %w", to, err)
	}
	stop := context.AfterFunc(ctx, func() { _ = c.SetDeadline(time.Unix(1, 0)) }) // the reader tells
	err = echo(c, to, size, request, reply)
	stop()
	if ctx.Err() != nil && err != nil {
		err = ctx.Err()
	}
	if err = errors.Join(err, c.Close()); err != nil {
		return fmt.Errorf("netns: ping %v with %d bytes: %w", to, size, err)
	}
	return nil
}

// echo sends the request and waits for its answer; other messages pass by.
func echo(c net.PacketConn, to netip.Addr, size int, request, reply byte) error {
	m := make([]byte, icmpHeader+size)
	m[0] = request
	serial := pings.Add(1)
	binary.BigEndian.PutUint32(m[4:], serial) // identifier and sequence number
	for i := range m[icmpHeader:] {
		m[icmpHeader+i] = byte(serial) + byte(i) + byte(i>>8)
	}
	if request == icmpEcho { // the kernel computes that of ICMPv6
		binary.BigEndian.PutUint16(m[2:], internetChecksum(m))
	}
	if _, err := c.WriteTo(m, &net.IPAddr{IP: to.AsSlice()}); err != nil {
		return err
	}
	const ipv4Header = 60 // at most; it is read with the message and then cut off
	got := make([]byte, ipv4Header+len(m)+1)
	for {
		k, from, err := c.ReadFrom(got)
		if err != nil {
			return err
		}
		if k < icmpHeader || got[0] != reply || !bytes.Equal(got[4:8], m[4:8]) {
			continue
		}
		if !bytes.Equal(got[icmpHeader:k], m[icmpHeader:]) {
			return fmt.Errorf("%v answered with another payload, of %d bytes", from, k-icmpHeader)
		}
		return nil
	}
}

// internetChecksum is that of RFC 1071.
func internetChecksum(b []byte) uint16 {
	sum := uint32(0)
	for ; len(b) > 1; b = b[2:] {
		sum += uint32(binary.BigEndian.Uint16(b))
	}
	if len(b) > 0 {
		sum += uint32(b[0]) << 8
	}
	for sum > 0xffff {
		sum = sum>>16 + sum&0xffff
	}
	return ^uint16(sum)
}
