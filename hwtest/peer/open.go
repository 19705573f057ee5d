package peer

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/gostmmac/gostmmac/hwtest/rig/qtest"
	"github.com/gostmmac/gostmmac/stmmac/bus"
)

// phyPoll is how often the MACs of a hardware test look at their PHYs.
const phyPoll = 100 * time.Millisecond

// Kinds are the forms of a peer, for messages.
const Kinds = "mac-loopback, phy-loopback, cable:ADDR2, af_packet:IFACE, tap, sim, qtest, remote:HOST:PORT"

// Check says what is wrong with the text of a peer, without opening anything. The
// error is os.ErrInvalid.
func Check(device, spec string) error {
	_, err := plan(device, spec)
	return err
}

// Open opens the device at an address and the peer that spec names, of which [Kinds]
// are the forms. The caller closes the peer and then the device.
func Open(ctx context.Context, o *bus.Opener, device, spec string) (*bus.Handle, Peer, error) {
	pl, err := plan(device, spec)
	if err != nil {
		return nil, nil, err
	}
	h, err := o.Open(ctx, pl.device)
	if err != nil {
		return nil, nil, err
	}
	p, err := pl.open(ctx, o, h)
	if err != nil {
		return nil, nil, errors.Join(failed("open", spec, err), h.Close())
	}
	return h, p, nil
}

// planned is how a device and a peer are opened.
type planned struct {
	device string
	open   func(ctx context.Context, o *bus.Opener, h *bus.Handle) (Peer, error)
}

func plan(device, spec string) (planned, error) {
	refuse := func(format string, args ...any) (planned, error) {
		return planned{}, failed("open", spec, fmt.Errorf(format+": %w", append(args, os.ErrInvalid)...))
	}
	a, err := bus.Parse(device)
	if err != nil {
		return planned{}, err
	}
	wire, _ := a.Get("wire")
	pl := planned{device: device}
	kind, rest, named := strings.Cut(spec, ":")
	switch {
	case (kind == "mac-loopback" || kind == "phy-loopback") && !named:
		pl.open = func(context.Context, *bus.Opener, *bus.Handle) (Peer, error) {
			return &loopback{name: spec, phy: kind == "phy-loopback"}, nil
		}
	case kind == "cable" && rest != "":
		if _, err := bus.Parse(rest); err != nil {
			return planned{}, err
		}
		pl.open = func(ctx context.Context, o *bus.Opener, _ *bus.Handle) (Peer, error) {
			other, err := o.Open(ctx, rest)
			if err != nil {
				return nil, err
			}
			return openStation(ctx, spec, other)
		}
	case kind == "sim" && !named:
		if a.Scheme != "sim" || wire != "" {
			return refuse("it is the other end of the cable of a device sim:… without wire=, not of %q", device)
		}
		const cable = "wire=pair:hwtest"
		pl.device = device + "," + cable
		pl.open = func(ctx context.Context, o *bus.Opener, h *bus.Handle) (Peer, error) {
			other, err := o.Open(ctx, "sim:gmac4,"+cable)
			if err != nil {
				return nil, err
			}
			s, err := openStation(ctx, spec, other)
			if err != nil {
				return nil, err
			}
			return &simulated{station: s, device: h.Sim}, nil
		}
	case kind == "qtest" && !named:
		if a.Scheme != "qtest" {
			return refuse("it is the other end of the cable of a device qtest:…, not of %q", device)
		}
		pl.open = func(_ context.Context, _ *bus.Opener, h *bus.Handle) (Peer, error) {
			return openBoard(spec, h.Device.(*qtest.Device)), nil
		}
	case kind == "tap" && !named:
		if a.Scheme != "sim" || !strings.HasPrefix(wire, "tap:") {
			return refuse("it is the other end of a device sim:…,wire=tap:NAME, not of %q", device)
		}
		pl.open = func(_ context.Context, _ *bus.Opener, h *bus.Handle) (Peer, error) {
			return openTAP(spec, h.TAP.Name())
		}
	case kind == "af_packet" && rest != "":
		pl.open = func(context.Context, *bus.Opener, *bus.Handle) (Peer, error) { return openPacket(spec, rest) }
	case kind == "remote" && rest != "":
		pl.open = func(ctx context.Context, _ *bus.Opener, _ *bus.Handle) (Peer, error) { return Dial(ctx, rest) }
	default:
		return refuse("it is none of %s", Kinds)
	}
	return pl, nil
}

// OpenStation opens the device at an address as a peer, for [Serve].
func OpenStation(ctx context.Context, o *bus.Opener, device string) (Peer, error) {
	h, err := o.Open(ctx, device)
	if err != nil {
		return nil, err
	}
	return openStation(ctx, device, h)
}

// OpenInterface opens a network interface of this machine as a peer, for [Serve]. It
// needs Linux and the rights of root.
func OpenInterface(name string) (Peer, error) { return openPacket(name, name) }
