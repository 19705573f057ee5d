package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/netip"
	"os"
	"strconv"
	"time"

	"github.com/gostmmac/gostmmac/examples/internal/cli"
	"github.com/gostmmac/gostmmac/netstack"
	"github.com/gostmmac/gostmmac/stmmac/bus"
)

// answerWithin is when a datagram counts as lost, and a connection as dead. The
// cable loses nothing, so it is far above any delay.
const answerWithin = 30 * time.Second

// selfTest runs the server and a client on two simulated MACs until ctx ends.
func selfTest(ctx context.Context, o *bus.Opener, cfg *config, w io.Writer) error {
	const dev = "sim:gmac4,wire=pair:echo"
	peers := netstack.Config{}
	for _, p := range cfg.net.Addresses {
		other, err := neighbour(p)
		if err != nil {
			return &cli.OpenError{Err: err}
		}
		peers.Addresses = append(peers.Addresses, other)
	}
	st, err := openStation(ctx, o, dev, cfg.mtu, cfg.net)
	if err != nil {
		return err
	}
	peer, err := openStation(ctx, o, dev, cfg.mtu, peers)
	if err != nil {
		return errors.Join(err, st.close())
	}
	return serve(ctx, st, cfg, w, func(ctx context.Context) error {
		c := &client{net: peer.net, port: cfg.port}
		err := c.run(ctx, cfg.net.Addresses)
		fmt.Fprintf(w, "client: TCP: %d bytes; UDP: %d bytes in %d datagrams, all as sent: %v\n",
			c.bytes, c.datagramBytes, c.datagrams, err == nil)
		if err == nil && (c.bytes == 0 || c.datagrams == 0) {
			err = errors.New("the time was too short for an echo")
		}
		peer.report(w, "client")
		return errors.Join(err, peer.close())
	})
}

// neighbour is another address of the prefix of p.
func neighbour(p netip.Prefix) (netip.Prefix, error) {
	for _, a := range []netip.Addr{p.Addr().Prev(), p.Addr().Next()} {
		// Not the first of the prefix: that is its network.
		if p.Masked().Contains(a) && a != p.Masked().Addr() {
			return netip.PrefixFrom(a, p.Bits()), nil
		}
	}
	return p, fmt.Errorf("-addr: %v has no room for a second station: %w", p, os.ErrInvalid)
}

// client sends to the server and compares what comes back.
type client struct {
	net  *netstack.Net
	port uint16

	bytes, datagrams, datagramBytes uint64
}

// run takes turns between the addresses of the server, and UDP and TCP, until ctx
// ends.
func (c *client) run(ctx context.Context, servers []netip.Prefix) error {
	data := make([]byte, 256<<10)
	var seed [32]byte
	rand.NewChaCha8(seed).Read(data)
	for i := 0; ctx.Err() == nil; i++ {
		addr := net.JoinHostPort(servers[i%len(servers)].Addr().String(), strconv.Itoa(int(c.port)))
		// A turn is short, and is brought to its end.
		turn, cancel := context.WithTimeout(context.WithoutCancel(ctx), answerWithin)
		err := errors.Join(c.udp(turn, addr, data[i%1000:]), c.tcp(turn, addr, data))
		cancel()
		if err != nil {
			return err
		}
	}
	return nil
}

// dial connects to the server until the deadline of ctx.
func (c *client) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	conn, err := c.net.DialContext(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	limit, _ := ctx.Deadline()
	if err := conn.SetDeadline(limit); err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	return conn, nil
}

// udp sends datagrams of several lengths, of which the longest leaves in
// fragments.
func (c *client) udp(ctx context.Context, addr string, data []byte) error {
	conn, err := c.dial(ctx, "udp", addr)
	if err != nil {
		return err
	}
	defer conn.Close()
	got := make([]byte, 64<<10)
	for _, n := range []int{0, 1, 18, 56, 1472, 1473, 8000} {
		want := data[:n]
		if _, err := conn.Write(want); err != nil {
			return err
		}
		k, err := conn.Read(got)
		if err != nil {
			return fmt.Errorf("a datagram of %d bytes: %w", n, err)
		}
		if !bytes.Equal(got[:k], want) {
			return fmt.Errorf("a datagram of %d bytes comes back changed, with %d", n, k)
		}
		c.datagrams++
		c.datagramBytes += uint64(n)
	}
	return nil
}

// tcp sends data and reads it back at the same time.
func (c *client) tcp(ctx context.Context, addr string, data []byte) error {
	conn, err := c.dial(ctx, "tcp", addr)
	if err != nil {
		return err
	}
	defer conn.Close()
	wrote := make(chan error, 1)
	go func() {
		_, err := conn.Write(data)
		if err == nil {
			err = conn.(interface{ CloseWrite() error }).CloseWrite()
		}
		wrote <- err
	}()
	got, err := io.ReadAll(conn)
	if err != nil {
		conn.Close() // so that the writer ends
	}
	if err := errors.Join(err, <-wrote); err != nil {
		return err
	}
	if !bytes.Equal(got, data) {
		return fmt.Errorf("%d bytes of TCP come back changed, %d of them", len(data), len(got))
	}
	c.bytes += uint64(len(data))
	return nil
}
