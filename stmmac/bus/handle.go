package bus

import (
	"errors"
	"sync"
	"sync/atomic"

	"github.com/gostmmac/gostmmac/stmmac"
	"github.com/gostmmac/gostmmac/stmmac/sim"
)

var _ stmmac.Device = (*sim.Device)(nil)

// Handle is an open device and how to open its MAC.
type Handle struct {
	Address Address
	Device  stmmac.Device
	// Options are what the address tells stmmac.Open: generation, name and
	// interrupt vectors.
	Options []stmmac.Option

	// What is behind a simulated device; nil for others.
	Sim      *sim.Device
	Loop     *sim.LoopWire // with wire=gen
	Pcap     *sim.PcapWire // with wire=pcap
	TAP      *sim.TAPWire  // with wire=tap
	Injector *sim.Injector // with fault=

	source   *source
	closers  []func() error // in this order
	closing  sync.Once
	closeErr error
}

// NewHandle is the handle of a device of a [Scheme] of one's own; closing it closes the
// device.
func NewHandle(a Address, d stmmac.Device, opts ...stmmac.Option) *Handle {
	return &Handle{Address: a, Device: d, Options: opts, closers: []func() error{d.Close}}
}

// InputEnd is closed when the MAC has taken the last frame that wire=pcap plays
// to it, including those that fault= held back: from then on none arrives. It
// is nil, and so blocks for ever, for other devices.
func (h *Handle) InputEnd() <-chan struct{} {
	if h.source == nil {
		return nil
	}
	return h.source.end
}

// Input is how many frames the MAC has taken from wire=pcap, and 0 for other
// devices.
func (h *Handle) Input() uint64 {
	if h.source == nil {
		return 0
	}
	return h.source.taken.Load()
}

// StopInput keeps frames of wire=gen, wire=pcap and wire=tap from arriving, for good.
// Those that the MAC sends still go where they went.
func (h *Handle) StopInput() {
	if h.Loop != nil {
		h.Loop.Stop()
	}
	if h.source != nil {
		h.source.stop.Store(true)
	}
	if h.TAP != nil {
		h.TAP.Stop()
	}
}

// Close closes the device and then what it is plugged into. It returns their
// errors, among them that of a capture file that could not be written. It is
// safe to call twice and returns the same error then.
func (h *Handle) Close() error {
	h.closing.Do(func() {
		var errs []error
		for _, c := range h.closers {
			errs = append(errs, c())
		}
		h.closeErr = errors.Join(errs...)
	})
	return h.closeErr
}

// source is a wire=pcap as the device sees it: it knows what was taken and when
// the end was reached. The end of the file is not enough, because an injector
// holds frames back.
type source struct {
	sim.Wire
	pcap  *sim.PcapWire
	taken atomic.Uint64
	stop  atomic.Bool
	end   chan struct{}
	once  sync.Once
}

// Receive implements sim.Wire.
func (s *source) Receive() (sim.Frame, bool) {
	stop := s.stop.Load()
	if !stop {
		if f, ok := s.Wire.Receive(); ok {
			s.taken.Add(1)
			return f, true
		}
	}
	if stop || s.pcap.Drained() {
		s.once.Do(func() { close(s.end) })
	}
	return sim.Frame{}, false
}

// nullWire is a wire on which nothing arrives and what is sent is dropped.
type nullWire struct{}

func (nullWire) Transmit(sim.Frame) bool    { return true }
func (nullWire) Receive() (sim.Frame, bool) { return sim.Frame{}, false }
func (nullWire) Elastic() bool              { return true }
func (nullWire) Notify(func())              {}
func (nullWire) Close() error               { return nil }
