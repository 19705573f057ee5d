package jobs

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"time"
)

// Interfaces lists the interfaces of a namespace.
type Interfaces struct {
	returns[[]Interface]
	Space string
}

// Interface is one of a namespace.
type Interface struct {
	Name         string
	HardwareAddr string
	MTU          int
	Up           bool
	Running      bool // its flag says that it is up with a link; WaitInterface looks better
	Addresses    []string
}

// Name implements Job.
func (Interfaces) Name() string { return "interfaces" }

func (j Interfaces) run(r run) (any, error) {
	n, err := r.w.space(j.Space)
	if err != nil {
		return nil, err
	}
	all := []Interface{}
	err = n.Do(func() error {
		list, err := net.Interfaces()
		if err != nil {
			return err
		}
		for _, i := range list {
			addrs, err := i.Addrs()
			if err != nil {
				return err
			}
			one := Interface{Name: i.Name, HardwareAddr: i.HardwareAddr.String(), MTU: i.MTU, Up: i.Flags&net.FlagUp != 0, Running: i.Flags&net.FlagRunning != 0}
			for _, a := range addrs {
				one.Addresses = append(one.Addresses, a.String())
			}
			all = append(all, one)
		}
		return nil
	})
	return all, err
}

// Configure changes an interface: down first, if that is asked for, then its MAC address,
// then up with MTU and addresses.
type Configure struct {
	returns[None]
	Space        string
	Interface    string
	Down         bool     `json:",omitempty"`
	HardwareAddr string   `json:",omitempty"`
	Up           bool     `json:",omitempty"`
	MTU          int      `json:",omitempty"` // bytes; 0 leaves it
	Addresses    []string `json:",omitempty"` // with the length of the prefix: 10.0.0.1/24
}

// Name implements Job.
func (Configure) Name() string { return "configure" }

func (j Configure) run(r run) (any, error) {
	n, err := r.w.space(j.Space)
	if err != nil {
		return nil, err
	}
	var addrs []netip.Prefix
	for _, a := range j.Addresses {
		p, err := netip.ParsePrefix(a)
		if err != nil {
			return nil, err
		}
		addrs = append(addrs, p)
	}
	if !j.Up && (j.MTU != 0 || len(addrs) > 0) {
		return nil, fmt.Errorf("MTU and addresses are given to an interface that comes up: %w", os.ErrInvalid)
	}
	if j.Down {
		if err := n.Down(j.Interface); err != nil {
			return nil, err
		}
	}
	if j.HardwareAddr != "" {
		mac, err := net.ParseMAC(j.HardwareAddr)
		if err == nil {
			err = n.SetHardwareAddr(j.Interface, mac)
		}
		if err != nil {
			return nil, err
		}
	}
	if !j.Up {
		return None{}, nil
	}
	return None{}, n.Up(j.Interface, j.MTU, addrs...)
}

// WaitInterface waits until an interface is there, up, and has a link; or no link any more.
// Linux drops what is sent before it has seen the link, so both ends of a cable are waited
// for.
type WaitInterface struct {
	returns[None]
	Space     string
	Interface string
	Running   bool // what is waited for
}

// Name implements Job.
func (WaitInterface) Name() string { return "wait for an interface" }

// pace is how often it looks.
const pace = 10 * time.Millisecond

func (j WaitInterface) run(r run) (any, error) {
	n, err := r.w.space(j.Space)
	if err != nil {
		return nil, err
	}
	tick := time.NewTicker(pace)
	defer tick.Stop()
	for {
		running, err := n.Operational(j.Interface)
		if running == j.Running && (err == nil || !j.Running) {
			return None{}, nil
		}
		select {
		case <-tick.C:
		case <-r.ctx.Done():
			return nil, errors.Join(r.ctx.Err(), err)
		}
	}
}

// Pair makes two interfaces that are joined by a cable (veth(4)).
type Pair struct {
	returns[None]
	Space string
	A, B  string
}

// Name implements Job.
func (Pair) Name() string { return "pair" }

func (j Pair) run(r run) (any, error) {
	n, err := r.w.space(j.Space)
	if err != nil {
		return nil, err
	}
	return None{}, n.Pair(j.A, j.B)
}

// VLAN makes the interface of a VLAN on another one. It needs the module 8021q.
type VLAN struct {
	returns[None]
	Space     string
	Interface string
	Parent    string
	ID        uint16 // 1 to 4094
	Service   bool   `json:",omitempty"` // the tag of IEEE 802.1ad instead of that of 802.1Q
}

// Name implements Job.
func (VLAN) Name() string { return "vlan" }

func (j VLAN) run(r run) (any, error) {
	n, err := r.w.space(j.Space)
	if err != nil {
		return nil, err
	}
	return None{}, n.VLAN(j.Interface, j.Parent, j.ID, j.Service)
}

// Delete removes an interface that was made.
type Delete struct {
	returns[None]
	Space     string
	Interface string
}

// Name implements Job.
func (Delete) Name() string { return "delete" }

func (j Delete) run(r run) (any, error) {
	n, err := r.w.space(j.Space)
	if err != nil {
		return nil, err
	}
	return None{}, n.Delete(j.Interface)
}
