package main

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/gostmmac/gostmmac/pagepool"
	"github.com/gostmmac/gostmmac/stmmac"
	"github.com/gostmmac/gostmmac/stmmac/bus"
)

const (
	ringSize = 512
	bufSize  = 2048 // a longer frame lies in several

	// genTimeout is when the generator gives a frame up. It is far above any
	// delay, and a frame that comes after it still counts as received.
	genTimeout = time.Second
	// genFlows is how many priorities the frames have when there are several
	// queues: all, which the driver spreads over the queues.
	genFlows = 8
)

// side is one of the two devices.
type side struct {
	name   string // "A", "B"
	handle *bus.Handle
	mac    *stmmac.MAC
}

// forwarder is two MACs on one pool and what forwards between them.
type forwarder struct {
	cfg   *config
	pool  *pagepool.Pool
	side  [2]*side
	learn *table // nil without -learn
	// workers[d] forward from side d to the other.
	workers [2][]*worker
}

// open opens the devices and their MACs.
func open(ctx context.Context, cfg *config, opener *bus.Opener) (_ *forwarder, err error) {
	f := &forwarder{cfg: cfg}
	defer func() {
		if err != nil {
			err = errors.Join(err, f.close())
		}
	}()
	loop := &opener.Loop
	loop.Sizes, loop.Frames, loop.Timeout = cfg.sizes, cfg.count, genTimeout
	if cfg.queues > 1 {
		loop.Queues, loop.Flows = genFlows, genFlows
		loop.GiveUp = 16 // frames of a flow: a flow has an eighth of the window
	}
	for i := range f.side {
		addr, err := cfg.address(i)
		if err != nil {
			return nil, err
		}
		h, err := opener.Open(ctx, addr)
		if err != nil {
			return nil, fmt.Errorf("open device %s: %w", name(i), err)
		}
		f.side[i] = &side{name: name(i), handle: h}
	}
	if err := f.openMACs(ctx); err != nil {
		return nil, err
	}
	return f, f.plan()
}

func name(i int) string { return string(rune('A' + i)) }

// address is that of a side, with the faults of -fault.
func (c *config) address(i int) (string, error) {
	addr := c.addr[i]
	if c.fault == "" {
		return addr, nil
	}
	if !strings.HasPrefix(addr, "sim:") {
		return "", fmt.Errorf("-fault is for simulated devices, and device %s is %q", name(i), addr)
	}
	return addr + ",fault=" + strings.ReplaceAll(c.fault, ",", "+"), nil
}

func (f *forwarder) openMACs(ctx context.Context) (err error) {
	// What the rings and the caches of their queues hold, and the frames of a
	// batch on their way from one to the other.
	q := f.cfg.queues
	n := 2*q*2*(ringSize+256) + 2*q*f.cfg.batch*(f.cfg.mtu/(bufSize-256)+1)
	if f.pool, err = pagepool.New(f.side[0].handle.Device, n, pagepool.WithBufSize(bufSize)); err != nil {
		return fmt.Errorf("make the buffers: %w", err)
	}
	for _, s := range f.side {
		opts := append(slices.Clone(s.handle.Options), stmmac.WithPool(f.pool), stmmac.WithQueues(q, q),
			stmmac.WithRings(ringSize, ringSize), stmmac.WithMTU(f.cfg.mtu), stmmac.WithPromiscuous(),
			stmmac.WithChecksums(false, false)) // nobody here asks for one or looks at a verdict
		if s.mac, err = stmmac.Open(ctx, s.handle.Device, opts...); err != nil {
			return fmt.Errorf("open the MAC of device %s: %w", s.name, err)
		}
	}
	return nil
}

// plan makes the workers: one a direction and queue.
func (f *forwarder) plan() error {
	if f.cfg.learn {
		f.learn = newTable(learnLimit, ageingTime)
	}
	start, cpu := time.Now(), f.cfg.cpu
	for d := range f.side {
		from, to := f.side[d], f.side[1-d]
		for q := range f.cfg.queues {
			f.workers[d] = append(f.workers[d], &worker{
				name: fmt.Sprintf("%s to %s, queue %d", from.name, to.name, q),
				from: from.mac, rx: from.mac.Rx(q), to: to.mac, tx: to.mac.Tx(q),
				pool: f.pool, batch: f.cfg.batch, poll: f.cfg.poll, cpu: cpu,
				learn: f.learn, side: uint8(d), start: start,
			})
			if cpu >= 0 {
				if err := canPin(cpu); err != nil {
					return fmt.Errorf("-cpu %d: thread %s: %w; the machine has %d CPUs", f.cfg.cpu, f.workers[d][q].name, err, runtime.NumCPU())
				}
				cpu++
			}
		}
	}
	return nil
}

// canPin tries pin on a thread that ends after it.
func canPin(cpu int) error {
	err := make(chan error)
	go func() {
		runtime.LockOSThread()
		err <- pin(cpu)
	}()
	return <-err
}

// close closes what is open: MACs, pool, devices.
func (f *forwarder) close() error {
	var errs []error
	for _, s := range f.side {
		if s != nil && s.mac != nil {
			errs = append(errs, s.fail("close the MAC", s.mac.Close()))
		}
	}
	if f.pool != nil {
		if err := f.pool.Close(); err != nil {
			errs = append(errs, fmt.Errorf("close the pool: %w", err))
		}
	}
	for _, s := range f.side {
		if s != nil {
			errs = append(errs, s.fail("close", s.handle.Close()))
		}
	}
	return errors.Join(errs...)
}

// fail names the device of an error; nil stays nil.
func (s *side) fail(what string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("device %s (%v): %s: %w", s.name, s.handle.Address, what, err)
}
