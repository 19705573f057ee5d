package pair

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"sync"

	"github.com/gostmmac/gostmmac/hwtest/rig/chips"
	"github.com/gostmmac/gostmmac/hwtest/rig/debian"
	"github.com/gostmmac/gostmmac/hwtest/rig/guest"
	"github.com/gostmmac/gostmmac/hwtest/rig/guest/jobs"
	"github.com/gostmmac/gostmmac/hwtest/rig/kernel"
	"github.com/gostmmac/gostmmac/stmmac/sim"
)

// Config is what is booted.
type Config struct {
	Tree   *debian.Tree
	Kernel *kernel.Kernel
	Dir    string // a folder for logs, which is there

	Chip    string // by name
	Options chips.Options
	// Sets and Modules are those of the kernel that are loaded, and Params what they are
	// loaded with, by name.
	Sets, Modules []string
	Params        map[string]string
	// Log gets the lines that jobs write; nil drops them.
	Log func(job, line string)
}

// Host is a guest that runs, with its cards.
type Host struct {
	Guest *guest.Guest
	Cards [2]*chips.Card
	// Modules are those that were loaded, in order.
	Modules []kernel.Module

	stop  context.CancelFunc
	serve sync.WaitGroup

	mu   sync.Mutex // guards what follows
	errs []error    // of clients
}

// Start boots the guest and loads the modules. The caller closes it.
func Start(ctx context.Context, c Config) (_ *Host, err error) {
	h := new(Host)
	serving, stop := context.WithCancel(context.WithoutCancel(ctx))
	h.stop = stop
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
	devices, err := h.plug(serving, c, dir)
	if err == nil {
		h.Modules, err = c.Kernel.Load(c.Sets, c.Modules...)
	}
	if err == nil {
		h.Guest, err = guest.Boot(ctx, guest.Config{
			Tree: c.Tree, Kernel: c.Kernel, Dir: c.Dir, Modules: h.Modules, Devices: devices, Log: c.Log,
		})
	}
	// QEMU has connected.
	if err = errors.Join(err, os.RemoveAll(dir)); err != nil {
		return nil, err
	}
	return h, h.Guest.Load(ctx, h.Modules, c.Params)
}

// plug makes the cards and serves them at sockets in a folder.
func (h *Host) plug(ctx context.Context, c Config, dir string) (devices []string, err error) {
	chip, err := chips.Find(c.Chip)
	if err != nil {
		return nil, err
	}
	var ends [2]sim.Wire
	const onCable = 512 // frames
	ends[0], ends[1] = sim.NewPair(onCable)
	for i := range h.Cards {
		o := c.Options
		o.Addr = [6]byte{2, 'r', 'i', 'g', 0, byte(i + 1)}
		o.Report = h.note
		if h.Cards[i], err = chip.New(ends[i], o); err != nil {
			return nil, err
		}
		socket := filepath.Join(dir, fmt.Sprint(i))
		l, err := net.Listen("unix", socket)
		if err != nil {
			return nil, err
		}
		h.serve.Go(func() {
			if err := h.Cards[i].Serve(ctx, l); ctx.Err() == nil {
				h.note(err)
			}
		})
		devices = append(devices, guest.VFIOUser(socket))
	}
	return devices, nil
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
		if c != nil {
			c.Close()
		}
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	return errors.Join(append(errs, h.errs...)...)
}

// Do does a job in the guest.
func Do[R any](ctx context.Context, h *Host, j jobs.Job[R]) (R, error) {
	return guest.Do(ctx, h.Guest, j)
}
