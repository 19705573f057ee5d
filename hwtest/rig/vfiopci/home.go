package vfiopci

import (
	"context"
	"errors"
	"fmt"
	"path"
	"strings"

	"github.com/gostmmac/gostmmac/hwtest/rig/cards"
	"github.com/gostmmac/gostmmac/hwtest/rig/guest/jobs"
	"github.com/gostmmac/gostmmac/hwtest/rig/note"
)

// The network of the kernel's driver: the second card has a namespace of its own.
const (
	far      = "far"
	hereAddr = "10.77.0.1"
	farAddr  = "10.77.0.2"
)

// home takes a card from the kernel's driver, which uses it, drives it, and gives it back:
// the kernel's driver works with it again.
func home(ctx context.Context, h *Host) error {
	if err := h.Guest.Load(ctx, h.mac, nil); err != nil {
		return err
	}
	const card = kernels
	name, err := h.iface(ctx, card)
	if err != nil {
		return err
	}
	other, err := h.iface(ctx, card+1)
	if err != nil {
		return err
	}
	if _, err := do(ctx, h, jobs.Space{Space: far}); err != nil {
		return err
	}
	if _, err := do(ctx, h, jobs.Move{Interface: other, To: far}); err != nil {
		return err
	}
	if err := h.up(ctx, far, other, farAddr); err != nil {
		return err
	}
	if err := h.ping(ctx, name); err != nil {
		return fmt.Errorf("before: %w", err)
	}
	if _, err := h.doctor(ctx, nil, card, "driver"); err != nil {
		return err
	}
	// Not while somebody uses it.
	end, err := h.program(ctx, nil, controlBin, "bind", "pci:"+cards.Place(card))
	if err != nil {
		return err
	}
	if end.Code == 0 || !strings.Contains(h.tail(controlBin), "its network interface "+name+" is up") {
		return fmt.Errorf("bind with an interface that is up: exit status %d: %s", end.Code, h.tail(controlBin))
	}
	if _, err := do(ctx, h, jobs.Configure{Interface: name, Down: true}); err != nil {
		return err
	}
	if err := h.bind(ctx, card); err != nil {
		return err
	}
	if _, err := h.doctor(ctx, nil, card); err != nil {
		return err
	}
	var l struct {
		OK     bool
		Frames uint64
	}
	if err := h.value(ctx, nil, &l, controlBin, "-json", "loopback", h.boot.address(card, false)); err != nil {
		return err
	}
	if !l.OK {
		return errors.New("frames were lost in the loopback of the MAC")
	}
	note.Printf(ctx, "%d frames through the loopback", l.Frames)
	if err := h.idle(ctx, card); err != nil {
		return err
	}
	var b struct{ Driver string }
	if err := h.value(ctx, nil, &b, controlBin, "-json", "unbind", "pci:"+cards.Place(card)); err != nil {
		return err
	}
	if b.Driver != kernelDriver {
		return fmt.Errorf("%s went to %q", cards.Place(card), b.Driver)
	}
	if name, err = h.iface(ctx, card); err != nil {
		return err
	}
	if err := h.ping(ctx, name); err != nil {
		return fmt.Errorf("afterwards: %w", err)
	}
	return nil
}

// iface is the network interface of a card.
func (h *Host) iface(ctx context.Context, card int) (name string, err error) {
	names, err := do(ctx, h, jobs.List{Path: "/sys/bus/pci/devices/" + cards.Place(card) + "/net"})
	if err == nil && len(names) != 1 {
		err = fmt.Errorf("%s has the interfaces %q", cards.Place(card), names)
	}
	if err != nil {
		return "", err
	}
	return names[0], nil
}

// up brings an interface up with an address.
func (h *Host) up(ctx context.Context, space, name, addr string) error {
	_, err := do(ctx, h, jobs.Configure{Space: space, Interface: name, Up: true, Addresses: []string{addr + "/24"}})
	if err != nil {
		return err
	}
	_, err = do(ctx, h, jobs.WaitInterface{Space: space, Interface: name, Running: true})
	return err
}

// ping brings the interface of the first card up and pings the second.
func (h *Host) ping(ctx context.Context, name string) error {
	if err := h.up(ctx, "", name, hereAddr); err != nil {
		return err
	}
	for {
		// The other end may see its link later.
		one, err := do(ctx, h, jobs.Ping{To: farAddr, Size: 56, Count: 1, Patience: 500})
		if err != nil {
			return err
		}
		if one.Answered == 1 {
			break
		}
	}
	const count = 20
	p, err := do(ctx, h, jobs.Ping{To: farAddr, Size: 1000, Count: count})
	if err == nil && p.Answered != count {
		err = fmt.Errorf("%+v", p)
	}
	note.Printf(ctx, "%s: %d of %d pings answered", name, p.Answered, count)
	return err
}

// idle says what is wrong with a card that nobody has open: it must not master the bus.
func (h *Host) idle(ctx context.Context, card int) error {
	const command, master = 4, 1 << 2
	space, err := do(ctx, h, jobs.ReadFile{Path: path.Join("/sys/bus/pci/devices", cards.Place(card), "config")})
	if err != nil {
		return err
	}
	if len(space) <= command || space[command]&master != 0 || h.Cards[card].Function().Master() {
		return fmt.Errorf("%s masters the bus after it was closed: the command register is % x", cards.Place(card), space[command:command+2])
	}
	note.Printf(ctx, "bus mastering is off")
	return nil
}
