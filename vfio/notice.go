package vfio

import (
	"context"
	"errors"
	"sync"

	"github.com/gostmmac/gostmmac/vfio/internal/uapi"
)

// notice calls a function whenever the kernel signals an interrupt that is not the
// device's: an error, or that it is wanted back.
type notice struct {
	x    *irqIndex
	e    *event
	done sync.WaitGroup
}

// notify installs what OnError and OnRequest asked for.
func (d *Device) notify() error {
	for _, n := range []struct {
		index uint32
		call  func()
	}{{uapi.PCIERR, d.opt.onError}, {uapi.PCIREQ, d.opt.onRequest}} {
		if n.call == nil || d.info.Bus != PCI {
			continue
		}
		info, err := d.irqInfo(n.index)
		if err != nil {
			return err
		}
		if info.Count == 0 {
			continue // a function without AER, a kernel without requests
		}
		x := &irqIndex{dev: d, index: n.index}
		e, err := newEvent()
		if err != nil {
			return err
		}
		if err := x.setFD(uapi.IRQActionTrigger, 0, e.fd); err != nil {
			return errors.Join(err, e.close())
		}
		t := &notice{x: x, e: e}
		t.done.Go(func() {
			for {
				if _, err := e.wait(context.Background()); err != nil {
					return // closed
				}
				n.call()
			}
		})
		d.notices = append(d.notices, t)
	}
	return nil
}

// close ends the calls. It does not wait for one that is under way, which may be
// what closes the device.
func (n *notice) close() error {
	if n.x.dev.gone.Load() {
		return n.e.close()
	}
	_, err := n.x.request(uapi.IRQSet{Flags: uapi.IRQDataNone | uapi.IRQActionTrigger, Index: n.x.index}, nil)
	return errors.Join(err, n.e.close())
}
