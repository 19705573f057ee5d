package peer

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/gostmmac/gostmmac/pagepool"
	"github.com/gostmmac/gostmmac/stmmac"
	"github.com/gostmmac/gostmmac/stmmac/bus"
	"github.com/gostmmac/gostmmac/stmmac/sim"
)

// station is another device at the other end of a cable, with a MAC that lets all
// frames through.
type station struct {
	name   string
	handle *bus.Handle
	mac    *stmmac.MAC
	mtu    int
	bufs   []*pagepool.Buf

	mu     sync.Mutex      // guards what follows
	waits  []*pagepool.Buf // received and not given out
	closed bool
	err    error // of Close
}

// openStation opens the MAC of a device; closing the station closes both.
func openStation(ctx context.Context, name string, h *bus.Handle) (*station, error) {
	const jumbo, standard = maxMTU, 1500
	s := &station{name: name, handle: h, bufs: make([]*pagepool.Buf, 64)}
	opts := append(h.Options, stmmac.WithHardwareAddr(PeerAddr()), stmmac.WithPromiscuous(), stmmac.WithChecksums(false, false),
		stmmac.WithRings(1024, 512), stmmac.WithConfig(func(c *stmmac.Config) {
			if c.PHY != nil {
				c.PHY.PollInterval = phyPoll
			}
		}))
	for _, s.mtu = range []int{jumbo, standard} {
		m, err := stmmac.Open(ctx, h.Device, append(opts, stmmac.WithMTU(s.mtu))...)
		if err == nil {
			s.mac = m
			return s, nil
		}
		if s.mtu == standard || ctx.Err() != nil {
			return nil, failed("open", name, errors.Join(err, h.Close()))
		}
	}
	return s, nil
}

func (s *station) Name() string { return s.name }

func (s *station) Can(a Ability) bool {
	_, phy := s.mac.PHY()
	switch a {
	case Cable, Partner:
		// What a simulated PHY is wired to is a model of its own.
		return phy && s.handle.Sim == nil
	case Jumbo:
		return s.mtu == maxMTU
	case Separate, Pause, Tags:
		return true
	}
	return false
}

func (s *station) MTU() int { return s.mtu }

func (s *station) Options() []stmmac.Option { return nil }

func (s *station) Attach(context.Context, *stmmac.MAC) error { return nil }

// AwaitLink implements Linked.
func (s *station) AwaitLink(ctx context.Context, mode stmmac.LinkModes) error {
	if !s.Can(Partner) {
		mode = 0
	}
	for l := range s.mac.Links(ctx) {
		if l.Up && (mode == 0 || l.Mode() == mode) {
			return nil
		}
	}
	return failed("wait for the link", s.name, fmt.Errorf("it is %v (%s), want %v: %w", s.mac.Link(), s.mac.LinkReason(), mode, errors.Join(ctx.Err(), s.mac.Err())))
}

// Plug turns the PHY off, which the partner sees as a cable that was pulled.
func (s *station) Plug(plugged bool) error {
	info, _ := s.mac.PHY()
	control := uint16(ctrlPower)
	if plugged {
		control = ctrlNegotiate
	}
	return failed("switch the PHY", s.name, s.mac.WriteMDIO(info.Addr, regControl, control))
}

func (s *station) SetModes(m stmmac.LinkModes, fixed bool) error {
	if fixed {
		return failed("set the mode", s.name, s.mac.SetForced(m.Link()))
	}
	return failed("set the modes", s.name, s.mac.SetAdvertise(m))
}

func (s *station) Send(ctx context.Context, frames ...[]byte) error {
	return failed("send", s.name, transmit(ctx, s.mac, frames))
}

func (s *station) Recv(ctx context.Context) ([]byte, error) {
	rx := s.mac.Rx(0)
	for {
		if f, ok := s.next(rx); ok {
			return f, nil
		}
		if err := rx.Wait(ctx); err != nil {
			return nil, failed("receive", s.name, err)
		}
	}
}

// next takes a frame that was received, if there is one.
func (s *station) next(rx *stmmac.RxQueue) ([]byte, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, false
	}
	if len(s.waits) == 0 {
		s.waits = s.bufs[:rx.Recv(s.bufs)]
	}
	if len(s.waits) == 0 {
		return nil, false
	}
	b := s.waits[0]
	s.waits = s.waits[1:]
	f := make([]byte, b.FrameLen())
	b.CopyTo(f)
	s.mac.Pool().Free(b)
	return f, true
}

func (s *station) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.closed {
		s.closed = true
		s.mac.Pool().FreeBatch(s.waits)
		s.waits = nil
		s.err = failed("close", s.name, errors.Join(s.mac.Close(), s.handle.Close()))
	}
	return s.err
}

// simulated is the other end of a simulated cable: the model of the device knows
// what the other end of its cable is set to.
type simulated struct {
	*station
	device *sim.Device
}

func (s *simulated) Can(a Ability) bool {
	if a == Cable || a == Partner {
		return true
	}
	return s.station.Can(a)
}

func (s *simulated) Plug(plugged bool) error {
	s.device.SetCable(plugged)
	return nil
}

func (s *simulated) SetModes(m stmmac.LinkModes, fixed bool) error {
	// The two packages number the modes alike.
	s.device.SetPartner(sim.Partner{Modes: sim.LinkModes(m), Fixed: fixed})
	return nil
}
