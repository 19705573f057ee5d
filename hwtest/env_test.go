//go:build hwtest

package hwtest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/gostmmac/gostmmac/hwtest/peer"
	"github.com/gostmmac/gostmmac/hwtest/rig/scheme"
	"github.com/gostmmac/gostmmac/stmmac"
	"github.com/gostmmac/gostmmac/stmmac/bus"
	"github.com/gostmmac/gostmmac/vfio"
)

// environment is the device of a run and what it is wired to.
type environment struct {
	*flags
	ctx     context.Context
	opener  *bus.Opener
	address string // of the device, without what the environment does itself
	handle  *bus.Handle
	peer    peer.Peer
	binding *vfio.Binding
	audited int // violations that were reported

	// What the first look at the device found.
	features stmmac.Features
	phy      bool
	hasLink  bool // the link came up
	maxMTU   int  // of a MAC with a queue of each
}

// newEnvironment opens the device and the peer. It takes the device from its kernel
// driver itself, so that closing it in between does not give it back.
func newEnvironment(ctx context.Context, f *flags) (*environment, error) {
	e := &environment{flags: f, ctx: ctx, opener: bus.NewOpener(), address: f.device}
	scheme.Add(e.opener)
	e.opener.Warn = func(a bus.Address, text string) { fmt.Fprintf(os.Stderr, "hwtest: warning: %v: %s\n", a, text) }
	a, err := bus.Parse(f.device)
	if err != nil {
		return nil, err
	}
	if v, _ := a.Get("bind"); v == "on" && (a.Scheme == "pci" || a.Scheme == "platform") {
		if e.binding, err = vfio.Bind(ctx, vfio.System(), a.Location); err != nil {
			return nil, err
		}
		for _, w := range e.binding.Warnings {
			e.opener.Warn(a, w)
		}
		a.Params = slices.DeleteFunc(a.Params, func(p bus.Param) bool { return p.Key == "bind" })
		a.Location = e.binding.Info.Name
		e.address = a.String()
	}
	if err := e.open(); err != nil {
		return nil, errors.Join(err, e.close())
	}
	if err := e.look(); err != nil {
		return nil, errors.Join(err, e.close())
	}
	return e, nil
}

// open opens the device and the peer.
func (e *environment) open() (err error) {
	e.handle, e.peer, err = peer.Open(e.ctx, e.opener, e.address, e.flags.peer)
	return err
}

// shut closes both; they can be opened again.
func (e *environment) shut() error {
	var errs []error
	if e.peer != nil {
		errs = append(errs, e.peer.Close())
	}
	if e.handle != nil {
		errs = append(errs, e.handle.Close())
	}
	e.peer, e.handle, e.audited = nil, nil, 0
	return errors.Join(errs...)
}

// close gives the device back to its kernel driver.
func (e *environment) close() error {
	err := e.shut()
	if e.binding != nil {
		err = errors.Join(err, e.binding.Restore())
	}
	return err
}

// options are those of every MAC.
func (e *environment) options(opts ...stmmac.Option) []stmmac.Option {
	all := append(slices.Clone(e.handle.Options), stmmac.WithHardwareAddr(peer.DeviceAddr()),
		stmmac.WithConfig(func(c *stmmac.Config) {
			if c.PHY != nil {
				c.PHY.PollInterval = phyPoll
			}
			if e.lacks(loopback) {
				c.SelfTest = false // it would find no engine for checksums
			}
		}))
	return slices.Concat(all, e.peer.Options(), opts)
}

// look opens the MAC once to see what there is.
func (e *environment) look() error {
	const standard = 1500
	for _, e.maxMTU = range []int{9000, 7000, 4000, 3000, 2000, standard} {
		m, err := stmmac.Open(e.ctx, e.handle.Device, e.options(stmmac.WithMTU(e.maxMTU))...)
		if err != nil {
			if e.maxMTU > standard && e.ctx.Err() == nil {
				continue // the FIFOs may be too short
			}
			return err
		}
		e.features = m.Features()
		_, e.phy = m.PHY()
		e.hasLink = awaitLink(e.ctx, m, linkPatience)
		return m.Close()
	}
	return nil
}

// isProcess says that the device is a process that ends with this one, or a part of it.
func (e *environment) isProcess() bool {
	return e.isSim() || e.handle.Address.Scheme == scheme.Qtest
}

// isSim says that there is a model instead of a device.
func (e *environment) isSim() bool { return e.handle.Sim != nil }

// protected says that memory of a process that was killed is out of the device's
// reach: by an IOMMU, which loses the mappings with the process.
func (e *environment) protected() bool { return !strings.Contains(e.address, "iommu=noiommu") }

// audit returns what the model found wrong with the driver since the last call.
func (e *environment) audit() (errs []error) {
	if p, _ := e.handle.Address.Get("profile"); !e.isSim() || p == "linux" {
		return nil
	}
	all := e.handle.Sim.Audit()
	for _, v := range all[min(e.audited, len(all)):] {
		errs = append(errs, fmt.Errorf("the driver broke a rule of the device: %v", v))
	}
	e.audited = len(all)
	return errs
}

// mtu is the longest MTU that the device and the peer have.
func (e *environment) mtu() int { return min(e.maxMTU, e.peer.MTU()) }
