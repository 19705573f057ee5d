package cards

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"sync"

	"github.com/gostmmac/gostmmac/hwtest/rig/chips"
	"github.com/gostmmac/gostmmac/hwtest/rig/guest"
	"github.com/gostmmac/gostmmac/hwtest/rig/guest/jobs"
	"github.com/gostmmac/gostmmac/hwtest/rig/kernel"
	"github.com/gostmmac/gostmmac/stmmac/sim"
)

// Config is what is booted.
type Config struct {
	// Guest is the guest, but for its modules and the cards among its devices.
	Guest guest.Config
	// Cards are the functions 0000:00:01.0, 0000:00:02.0 and so on, in this order.
	Cards []Card
	// Sets and Modules are those of the kernel that the guest has; none is loaded.
	Sets, Modules []string
}

// Card is a card of the guest.
type Card struct {
	Chip string // by name
	Wire sim.Wire
	// Options of the chip. Without an address it has one of its own, and what it reports
	// is the rig's.
	Options chips.Options
}

// Host is a guest that runs, with its cards.
type Host struct {
	Guest *guest.Guest
	Cards []*chips.Card
	// Modules are those that the guest has, in the order in which they are loaded.
	Modules []kernel.Module

	serving context.Context // ends with the host
	stop    context.CancelFunc
	serve   sync.WaitGroup

	mu   sync.Mutex // guards what follows
	errs []error    // of clients
}

// Place is where the guest has a card, by its number.
func Place(card int) string { return fmt.Sprintf("0000:00:%02x.0", card+1) }

// Start boots the guest. The caller closes it.
func Start(ctx context.Context, c Config) (_ *Host, err error) {
	h := new(Host)
	h.serving, h.stop = context.WithCancel(context.WithoutCancel(ctx))
	defer func() {
		if err != nil {
			err = errors.Join(err, h.Close())
		}
	}()
	// The paths of sockets are short.
	dir, err := os.MkdirTemp("", "rig")
	if err != nil {
		return nil, err
	}
	g := c.Guest
	for i := 0; i < len(c.Cards) && err == nil; i++ {
		var device string
		device, err = h.plug(c.Cards[i], i, dir)
		g.Devices = append(g.Devices[:len(g.Devices):len(g.Devices)], device)
	}
	if err == nil {
		h.Modules, err = c.Guest.Kernel.Load(c.Sets, c.Modules...)
	}
	if err == nil {
		g.Modules = h.Modules
		h.Guest, err = guest.Boot(ctx, g)
	}
	// QEMU has connected.
	if err = errors.Join(err, os.RemoveAll(dir)); err != nil {
		return nil, err
	}
	return h, nil
}

// plug makes a card and serves it at a socket in a folder. It returns the device of QEMU.
func (h *Host) plug(c Card, number int, dir string) (device string, err error) {
	chip, err := chips.Find(c.Chip)
	if err != nil {
		return "", err
	}
	o := c.Options
	if o.Addr == [6]byte{} {
		o.Addr = [6]byte{2, 'r', 'i', 'g', 0, byte(number + 1)}
	}
	o.Report = h.note
	k, err := chip.New(c.Wire, o)
	if err != nil {
		return "", err
	}
	h.Cards = append(h.Cards, k)
	socket := filepath.Join(dir, fmt.Sprint(number))
	l, err := net.Listen("unix", socket)
	if err != nil {
		return "", err
	}
	h.serve.Go(func() {
		if err := k.Serve(h.serving, l); h.serving.Err() == nil {
			h.note(err)
		}
	})
	return guest.VFIOUser(socket, number+1), nil
}

// note keeps an error of a client.
func (h *Host) note(err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.errs = append(h.errs, err)
}

// Close ends the guest and the cards. It returns what was wrong with the protocol, and what
// the guest's kernel said that tells of a bug.
func (h *Host) Close() error {
	var errs []error
	if h.Guest != nil {
		errs = append(errs, h.Guest.Close())
		for _, line := range h.Guest.Warnings() {
			errs = append(errs, fmt.Errorf("the kernel of the guest says: %s", line))
		}
	}
	h.stop()
	h.serve.Wait()
	for _, c := range h.Cards {
		c.Close()
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	return errors.Join(append(errs, h.errs...)...)
}

// Do does a job in the guest.
func Do[R any](ctx context.Context, h *Host, j jobs.Job[R]) (R, error) {
	return guest.Do(ctx, h.Guest, j)
}
