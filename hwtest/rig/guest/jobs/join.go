package jobs

import (
	"fmt"
	"net"
	"os"
)

// membership is a multicast address that an interface receives.
type membership struct{ space, name, group string }

// Join makes an interface receive frames to a multicast address, until Leave.
type Join struct {
	returns[None]
	Space     string
	Interface string
	Group     string // a MAC address
}

// Name implements Job.
func (Join) Name() string { return "join" }

func (j Join) run(r run) (any, error) {
	group, err := net.ParseMAC(j.Group)
	if err != nil {
		return nil, err
	}
	m := membership{j.Space, j.Interface, group.String()}
	n, err := r.w.space(j.Space)
	if err != nil {
		return nil, err
	}
	r.w.mu.Lock()
	defer r.w.mu.Unlock()
	if r.w.joined[m] != nil {
		return nil, fmt.Errorf("%s has joined %v: %w", j.Interface, group, os.ErrExist)
	}
	e, err := n.Join(j.Interface, group)
	if err != nil {
		return nil, err
	}
	r.w.joined[m] = e
	return None{}, nil
}

// Leave is the end of Join.
type Leave struct {
	returns[None]
	Space     string
	Interface string
	Group     string
}

// Name implements Job.
func (Leave) Name() string { return "leave" }

func (j Leave) run(r run) (any, error) {
	group, err := net.ParseMAC(j.Group)
	if err != nil {
		return nil, err
	}
	m := membership{j.Space, j.Interface, group.String()}
	r.w.mu.Lock()
	defer r.w.mu.Unlock()
	e := r.w.joined[m]
	if e == nil {
		return nil, fmt.Errorf("%s has not joined %v: %w", j.Interface, group, os.ErrNotExist)
	}
	delete(r.w.joined, m)
	return None{}, e.Close()
}
