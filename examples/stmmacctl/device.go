package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/gostmmac/gostmmac/examples/internal/cli"
	"github.com/gostmmac/gostmmac/pagepool"
	"github.com/gostmmac/gostmmac/stmmac"
	"github.com/gostmmac/gostmmac/stmmac/bus"
)

// device is an open device and its MAC.
type device struct {
	handle *bus.Handle
	mac    *stmmac.MAC

	stop     context.CancelFunc // ends the receivers
	drainers sync.WaitGroup
	failed   chan error // the first error of a receiver
}

// with opens the device, does something with it, and gives it back.
func with(ctx context.Context, o *bus.Opener, c *config, do func(d *device) error, opts ...stmmac.Option) error {
	d, err := open(ctx, o, c, opts)
	switch {
	case err == nil:
		err = do(d)
	case ctx.Err() != nil && errors.Is(err, ctx.Err()):
		err = nil // it was ended before it began
	}
	return errors.Join(err, d.close())
}

func open(ctx context.Context, o *bus.Opener, c *config, opts []stmmac.Option) (d *device, err error) {
	d = &device{failed: make(chan error, 1), stop: func() {}}
	if d.handle, err = o.Open(ctx, c.addr); err != nil {
		return d, &cli.OpenError{Err: fmt.Errorf("open the device: %w", err)}
	}
	opts = append(append(d.handle.Options, stmmac.WithQueues(c.queues, c.queues), stmmac.WithMTU(c.mtu)), opts...)
	if d.mac, err = stmmac.Open(ctx, d.handle.Device, opts...); err != nil {
		return d, &cli.OpenError{Err: fmt.Errorf("open the MAC: %w", err)}
	}
	return d, nil
}

// close gives back what is open.
func (d *device) close() error {
	d.stop()
	d.drainers.Wait()
	var errs []error
	if d.mac != nil {
		errs = append(errs, d.mac.Close())
	}
	if d.handle != nil {
		errs = append(errs, cli.Audit(d.handle)...)
		errs = append(errs, d.handle.Close())
	}
	return errors.Join(errs...)
}

// receive frees what arrives, until the device is closed.
func (d *device) receive() {
	ctx, stop := context.WithCancel(context.Background())
	d.stop = stop
	rx, _ := d.mac.NumQueues()
	for i := range rx {
		d.drainers.Go(func() {
			bufs := make([]*pagepool.Buf, 64)
			for {
				if n := d.mac.Rx(i).Recv(bufs); n > 0 {
					d.mac.Pool().FreeBatch(bufs[:n])
				} else if err := d.mac.Rx(i).Wait(ctx); err != nil {
					if ctx.Err() == nil {
						d.fail(err)
					}
					return
				}
			}
		})
	}
}

func (d *device) fail(err error) {
	select {
	case d.failed <- err:
	default:
	}
}

// awaitLink waits for the link, for as long as -wait says. It returns what it is.
func (d *device) awaitLink(ctx context.Context, wait time.Duration) (l stmmac.Link) {
	ctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	for l = range d.mac.Links(ctx) {
		if l.Up {
			break
		}
	}
	return l
}

// pass waits until the duration is over, unless it is 0, ctx ends or done is closed.
// Its error is that of the device.
func (d *device) pass(ctx context.Context, limit time.Duration, done <-chan struct{}) error {
	if limit > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, limit)
		defer cancel()
	}
	var unplugged <-chan struct{}
	if d.handle.TAP != nil {
		unplugged = d.handle.TAP.Done()
	}
	select {
	case <-ctx.Done():
		return nil
	case <-done:
		return nil
	case err := <-d.failed:
		return err
	case <-unplugged:
		return fmt.Errorf("%v: %w", d.handle.Address, d.handle.TAP.Err())
	}
}

// printJSON prints a value.
func printJSON(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return printed(e.Encode(v))
}

// printed says what an error of printing was about.
func printed(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("print the result: %w", err)
}
