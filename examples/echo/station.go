package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"

	"github.com/gostmmac/gostmmac/examples/internal/cli"
	"github.com/gostmmac/gostmmac/netstack"
	"github.com/gostmmac/gostmmac/stmmac"
	"github.com/gostmmac/gostmmac/stmmac/bus"
)

// station is a device with a stack.
type station struct {
	handle *bus.Handle
	mac    *stmmac.MAC
	net    *netstack.Net
}

// openStation opens a device and brings a stack up on it. Its error is an
// [*cli.OpenError], unless ctx ended.
func openStation(ctx context.Context, o *bus.Opener, addr string, mtu int, cfg netstack.Config) (_ *station, err error) {
	s := new(station)
	defer func() {
		if err == nil {
			return
		}
		closed := s.close()
		if ctx.Err() == nil {
			err = &cli.OpenError{Err: err}
		}
		err = errors.Join(err, closed)
	}()
	if s.handle, err = o.Open(ctx, addr); err != nil {
		return nil, fmt.Errorf("open the device: %w", err)
	}
	// IPv6 finds its neighbours by multicasts.
	opts := append(s.handle.Options, stmmac.WithMTU(mtu), stmmac.WithAllMulticast())
	if s.mac, err = stmmac.Open(ctx, s.handle.Device, opts...); err != nil {
		return nil, fmt.Errorf("open the MAC of %s: %w", addr, err)
	}
	if s.net, err = netstack.Up(ctx, s.mac, cfg); err != nil {
		return nil, fmt.Errorf("bring up %s: %w", addr, err)
	}
	return s, nil
}

// close closes what is open: stack, MAC, device.
func (s *station) close() error {
	var errs []error
	if s.net != nil {
		errs = append(errs, s.net.Close())
	}
	if s.mac != nil {
		errs = append(errs, s.mac.Close())
	}
	if h := s.handle; h != nil {
		errs = append(append(errs, cli.Audit(h)...), h.Close())
	}
	return errors.Join(errs...)
}

// wait returns when ctx ends, with nil, or the device fails.
func (s *station) wait(ctx context.Context) error {
	var unplugged <-chan struct{}
	if s.handle.TAP != nil {
		unplugged = s.handle.TAP.Done()
	}
	select {
	case <-ctx.Done():
		return nil
	case <-s.net.Endpoint().Failed():
		return fmt.Errorf("%v: %w", s.handle.Address, s.net.Endpoint().Err())
	case <-unplugged:
		return fmt.Errorf("%v: %w", s.handle.Address, s.handle.TAP.Err())
	}
}

// report prints the counts of the stack and of the MAC's queues that are not 0.
func (s *station) report(w io.Writer, name string) {
	for _, part := range []struct {
		what   string
		counts iter.Seq2[string, uint64]
	}{
		{"stack", s.net.Endpoint().Stats().All()},
		{"receive queue", s.mac.Rx(0).Stats().All()},
		{"transmit queue", s.mac.Tx(0).Stats().All()},
	} {
		fmt.Fprintf(w, "%s: %s:", name, part.what)
		for name, v := range part.counts {
			if v != 0 {
				fmt.Fprintf(w, " %s %d", name, v)
			}
		}
		fmt.Fprintln(w)
	}
}
