package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"sync/atomic"

	"github.com/gostmmac/gostmmac/netstack"
	"github.com/gostmmac/gostmmac/stmmac/bus"
)

// server echoes what comes to its port.
type server struct {
	tcp net.Listener
	udp net.PacketConn

	conns, bytes, datagrams, datagramBytes, failed atomic.Uint64
}

// listen opens the sockets, for all addresses of n.
func listen(n *netstack.Net, port uint16) (*server, error) {
	s := new(server)
	var err error
	addr := fmt.Sprintf(":%d", port)
	if s.tcp, err = n.Listen("tcp", addr); err != nil {
		return nil, err
	}
	if s.udp, err = n.ListenPacket("udp", addr); err != nil {
		return nil, errors.Join(err, s.tcp.Close())
	}
	return s, nil
}

// serve echoes until the sockets are closed, which the stack below does when it is
// closed. It returns when all connections have ended.
func (s *server) serve() {
	var wg sync.WaitGroup
	wg.Go(s.serveUDP)
	for {
		c, err := s.tcp.Accept()
		if errors.Is(err, net.ErrClosed) {
			break
		} else if err != nil {
			s.failed.Add(1)
			continue
		}
		s.conns.Add(1)
		wg.Go(func() { s.serveConn(c) })
	}
	wg.Wait()
}

// serveConn echoes until the peer has said that it sends no more.
func (s *server) serveConn(c net.Conn) {
	defer c.Close()
	buf := make([]byte, 64<<10)
	for {
		n, err := c.Read(buf)
		if errors.Is(err, io.EOF) || errors.Is(err, net.ErrClosed) {
			return
		}
		if err == nil {
			_, err = c.Write(buf[:n])
		}
		if err != nil {
			s.failed.Add(1)
			return
		}
		s.bytes.Add(uint64(n))
	}
}

func (s *server) serveUDP() {
	buf := make([]byte, 64<<10) // longer than any datagram
	for {
		n, from, err := s.udp.ReadFrom(buf)
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err == nil {
			_, err = s.udp.WriteTo(buf[:n], from)
		}
		if err != nil {
			s.failed.Add(1)
			continue
		}
		s.datagrams.Add(1)
		s.datagramBytes.Add(uint64(n))
	}
}

// report prints what was echoed.
func (s *server) report(w io.Writer) {
	fmt.Fprintf(w, "server: TCP: %d bytes of %d connections; UDP: %d bytes in %d datagrams; failed: %d\n",
		s.bytes.Load(), s.conns.Load(), s.datagramBytes.Load(), s.datagrams.Load(), s.failed.Load())
}

// echo serves on the device of the flags until ctx ends or the device fails.
func echo(ctx context.Context, o *bus.Opener, cfg *config, w io.Writer) error {
	st, err := openStation(ctx, o, cfg.dev, cfg.mtu, cfg.net)
	if err != nil {
		if ctx.Err() != nil {
			return nil // nothing has failed
		}
		return err
	}
	return serve(ctx, st, cfg, w, st.wait)
}

// serve serves on st while work runs, prints the counts and closes st. The context
// of work ends when the time is over.
func serve(ctx context.Context, st *station, cfg *config, w io.Writer, work func(context.Context) error) error {
	s, err := listen(st.net, cfg.port)
	if err != nil {
		return errors.Join(err, st.close())
	}
	ended := make(chan struct{})
	go func() { defer close(ended); s.serve() }()
	fmt.Fprintf(w, "%v, %v: echo on TCP and UDP port %d of", st.handle.Address, st.mac.HardwareAddr(), cfg.port)
	for _, p := range cfg.net.Addresses {
		fmt.Fprintf(w, " %v", p)
	}
	fmt.Fprintln(w)
	if cfg.duration > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, cfg.duration)
		defer cancel()
	}
	err = work(ctx)
	st.report(w, "server")
	err = errors.Join(err, st.close())
	<-ended
	s.report(w)
	return err
}
