package linuxmodel

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
	"github.com/gostmmac/gostmmac/hwtest/rig/guest/ethtool"
	"github.com/gostmmac/gostmmac/hwtest/rig/guest/jobs"
	"github.com/gostmmac/gostmmac/hwtest/rig/kernel"
	"github.com/gostmmac/gostmmac/stmmac/sim"
)

// Boot is a guest with two cards.
type Boot struct {
	Name string
	chip string
	opts chips.Options
	// driver is the module that takes the cards, params what it is loaded with.
	driver, params string
	// bound is the name by which the driver calls itself.
	bound string
	iommu bool
	// cannot are the self-tests that the driver leaves out, with its own condition; it runs
	// all others, and they pass, at least as many as atLeast.
	cannot  map[string]string
	atLeast int
	// step is that of the lengths of frames that are compared; 0 is 1, which takes minutes.
	step int
}

// Machine is what a boot needs.
type Machine struct {
	Tree   *debian.Tree
	Kernel *kernel.Kernel
	Dir    string // a folder for the logs of this boot, which is there
}

// modules are what every driver stands on.
var modules = []string{"stmmac", "8021q"}

// Host is a guest that runs, with its cards.
type Host struct {
	boot  *Boot
	guest *guest.Guest
	cards [2]*chips.Card
	stop  context.CancelFunc
	serve sync.WaitGroup
	// modules are those that were loaded, the driver last; stations are the MAC addresses.
	modules  []kernel.Module
	stations [2]string
	tests    []ethtool.Test // results of the self-tests
	ready    chan struct{}  // a job is ready for what it waits for

	mu   sync.Mutex // guards what follows
	errs []error    // of clients
}

// Start boots the guest and loads the driver. The caller closes it.
func (b *Boot) Start(ctx context.Context, m Machine) (_ *Host, err error) {
	h := &Host{boot: b, ready: make(chan struct{}, 1)}
	serving, stop := context.WithCancel(context.WithoutCancel(ctx))
	h.stop = stop
	defer func() {
		if err != nil {
			err = errors.Join(err, h.Close())
		}
	}()
	chip, err := chips.Find(b.chip)
	if err != nil {
		return nil, err
	}
	var ends [2]sim.Wire
	const onCable = 512 // frames
	ends[0], ends[1] = sim.NewPair(onCable)
	// The paths of sockets are short.
	dir, err := os.MkdirTemp("", "rig")
	if err != nil {
		return nil, err
	}
	var devices []string
	for i := range h.cards {
		o := b.opts
		o.Addr = [6]byte{2, 'r', 'i', 'g', 0, byte(i + 1)}
		o.Report = h.note
		if h.cards[i], err = chip.New(ends[i], o); err != nil {
			return nil, errors.Join(err, os.RemoveAll(dir))
		}
		socket := filepath.Join(dir, fmt.Sprint(i))
		l, err := net.Listen("unix", socket)
		if err != nil {
			return nil, errors.Join(err, os.RemoveAll(dir))
		}
		h.serve.Go(func() {
			if err := h.cards[i].Serve(serving, l); serving.Err() == nil {
				h.note(err)
			}
		})
		devices = append(devices, guest.VFIOUser(socket))
	}
	h.modules, err = m.Kernel.Load([]string{"stmmac"}, append(modules[:len(modules):len(modules)], b.driver)...)
	if err == nil {
		h.guest, err = guest.Boot(ctx, guest.Config{
			Tree: m.Tree, Kernel: m.Kernel, Dir: m.Dir, Modules: h.modules, Devices: devices, IOMMU: b.iommu,
			Log: func(_, line string) {
				if line == jobs.Ready {
					h.ready <- struct{}{} // one at a time is
				}
			},
		})
	}
	// QEMU has connected.
	if err = errors.Join(err, os.RemoveAll(dir)); err != nil {
		return nil, err
	}
	return h, h.load(ctx, h.modules)
}

// load loads modules, the driver with its parameters.
func (h *Host) load(ctx context.Context, modules []kernel.Module) error {
	return h.guest.Load(ctx, modules, map[string]string{kernel.ModuleName(h.boot.driver): h.boot.params})
}

// note keeps an error of a client.
func (h *Host) note(err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.errs = append(h.errs, err)
}

// Restore brings the interfaces back into the state between cases, behind one that failed.
func (h *Host) Restore(ctx context.Context) error { return h.up(ctx, 1500) }

// Close ends the guest and the cards. It returns what was wrong with the protocol, and what
// the guest's kernel said that tells of a bug.
func (h *Host) Close() error {
	var errs []error
	if h.guest != nil {
		errs = append(errs, h.guest.Close())
		for _, line := range h.guest.Warnings() {
			errs = append(errs, fmt.Errorf("the kernel of the guest says: %s", line))
		}
	}
	h.stop()
	h.serve.Wait()
	for _, c := range h.cards {
		if c != nil {
			c.Close()
		}
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	return errors.Join(append(errs, h.errs...)...)
}

// Cover adds what the driver has touched of the models to a report.
func (h *Host) Cover(c *chips.Coverage) {
	for _, k := range h.cards {
		c.Add(k, h.boot.driver)
	}
}

// do does a job in the guest.
func do[R any](ctx context.Context, h *Host, j jobs.Job[R]) (R, error) {
	return guest.Do(ctx, h.guest, j)
}

// only is the error of a job whose result does not matter.
func only[R any](_ R, err error) error { return err }
