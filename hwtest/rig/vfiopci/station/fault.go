package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/gostmmac/gostmmac/hwtest/peer"
	"github.com/gostmmac/gostmmac/hwtest/rig/vfiopci/said"
	"github.com/gostmmac/gostmmac/stmmac"
)

// taker is a device that knows what is mapped for it and can take it away behind the back
// of whoever mapped it.
type taker struct {
	stmmac.Device

	mu     sync.Mutex
	pieces []taken
}

// taken is memory that is mapped.
type taken struct {
	at uint64
	n  int
}

// MapDMA implements stmmac.Device.
func (d *taker) MapDMA(mem []byte) (uint64, error) {
	at, err := d.Device.MapDMA(mem)
	if err == nil {
		d.mu.Lock()
		d.pieces = append(d.pieces, taken{at, len(mem)})
		d.mu.Unlock()
	}
	return at, err
}

// UnmapDMA implements stmmac.Device. What was taken away is not there to be unmapped.
func (d *taker) UnmapDMA(at uint64, n int) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	i := slices.Index(d.pieces, taken{at, n})
	if i < 0 {
		return nil
	}
	d.pieces = slices.Delete(d.pieces, i, i+1)
	return d.Device.UnmapDMA(at, n)
}

// PinsDMA says that what is mapped stays where it is, as behind an IOMMU.
func (d *taker) PinsDMA() bool { return true }

// take takes all of it away.
func (d *taker) take() (first uint64, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.pieces) == 0 {
		return 0, errors.New("nothing is mapped for the device")
	}
	first = d.pieces[0].at
	var errs []error
	for _, p := range d.pieces {
		errs = append(errs, d.Device.UnmapDMA(p.at, p.n))
	}
	d.pieces = nil
	return first, errors.Join(errs...)
}

// fault lets frames come in, takes the memory from the device, which then still may master
// the bus because of a page that is left, and lets frames come in until the driver says
// that the device has failed.
func fault(ctx context.Context, addr, addr2 string) (*said.Fault, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	var d *taker
	p, err := openPair(ctx, addr, addr2, func(real stmmac.Device) stmmac.Device {
		d = &taker{Device: real}
		return d
	})
	if err != nil {
		return nil, err
	}
	f, err := p.fail(ctx, d)
	if closed := p.close(); err == nil && closed != nil {
		f.Close = closed.Error()
	} else {
		err = errors.Join(err, closed)
	}
	return f, err
}

func (p *pair) fail(ctx context.Context, d *taker) (_ *said.Fault, err error) {
	const frames = 64
	var e said.Exchange
	for n := 0; n < frames; n += window {
		if err := p.both(ctx, n, frames, &e); err != nil {
			return nil, err
		}
	}
	_, _, unmap, err := memoryFor(d.Device)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, unmap()) }()
	f := &said.Fault{Frames: e.Frames}
	if f.Rings, err = d.take(); err != nil {
		return nil, err
	}
	sending, stop := context.WithCancel(ctx)
	sent := make(chan error, 1)
	go func() { sent <- p.sendUntil(sending) }()
	for {
		n := p.mac.Rx(0).Recv(p.bufs[:])
		p.mac.Pool().FreeBatch(p.bufs[:n])
		if n > 0 {
			continue
		}
		if err = p.mac.Rx(0).Wait(ctx); err != nil {
			break
		}
	}
	stop()
	f.Error, f.Fatal = err.Error(), errors.Is(err, stmmac.ErrFatalBus)
	if err := <-sent; err != nil {
		return nil, err
	}
	if ctx.Err() != nil {
		return nil, fmt.Errorf("the driver did not see that the device failed: %w", ctx.Err())
	}
	return f, nil
}

// sendUntil sends a frame to the device now and then, until ctx ends.
func (p *pair) sendUntil(ctx context.Context) error {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for n := 0; ; n++ {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		if err := p.other.Send(ctx, frame(peer.DeviceAddr(), peer.PeerAddr(), n)); err != nil && ctx.Err() == nil {
			return err
		}
	}
}
