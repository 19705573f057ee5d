package stmmac

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"

	"github.com/gostmmac/gostmmac/stmmac/internal/core"
)

// SetFilter replaces the whole filter. Frames that the filters before and after
// both let in are not lost. An address or VLAN that stands in its list n times
// is let in until it was left or removed n times.
//
// An error is os.ErrInvalid for what is no address or VLAN of its kind, and
// errors.ErrUnsupported for what the device cannot filter: more source
// addresses, or more addresses of an inverse filter, than it has perfect
// filters, or more VLANs than it has filters where it has no VLAN hash table.
// The filter stays as it was then. More addresses than perfect filters are no
// error otherwise; see [MAC.FilterUse].
func (m *MAC) SetFilter(f Filter) error {
	return m.changeFilter("set filter", func(g *Filter) error {
		*g = f.Clone()
		return nil
	})
}

// Filter returns the filter as it is set.
func (m *MAC) Filter() Filter {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.filter.Clone()
}

// FilterUse says how exactly the device does the filter.
func (m *MAC) FilterUse() FilterUse {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.filterUse
}

// SetPromiscuous lets all frames in, or only what the rest of the filter says.
func (m *MAC) SetPromiscuous(on bool) error {
	return m.changeFilter("set promiscuous", func(f *Filter) error {
		f.Promiscuous = on
		return nil
	})
}

// SetAllMulticast lets all multicasts in, or only those of the groups joined.
func (m *MAC) SetAllMulticast(on bool) error {
	return m.changeFilter("set all multicast", func(f *Filter) error {
		f.AllMulticast = on
		return nil
	})
}

// JoinGroup lets in the frames of a multicast group. Each call needs one of
// LeaveGroup.
func (m *MAC) JoinGroup(group net.HardwareAddr) error {
	return m.changeFilter("join group", func(f *Filter) error {
		f.Multicast = append(f.Multicast, bytes.Clone(group))
		return nil
	})
}

// LeaveGroup undoes one JoinGroup. The error for a group that was not joined is
// os.ErrNotExist.
func (m *MAC) LeaveGroup(group net.HardwareAddr) error {
	return m.changeFilter("leave group", func(f *Filter) (err error) {
		f.Multicast, err = without(f.Multicast, group)
		return err
	})
}

// AddUnicast lets in the frames for one more address of this station. Each call
// needs one of RemoveUnicast.
func (m *MAC) AddUnicast(a net.HardwareAddr) error {
	return m.changeFilter("add unicast", func(f *Filter) error {
		f.Unicast = append(f.Unicast, bytes.Clone(a))
		return nil
	})
}

// RemoveUnicast undoes one AddUnicast. The error for an address that was not
// added is os.ErrNotExist.
func (m *MAC) RemoveUnicast(a net.HardwareAddr) error {
	return m.changeFilter("remove unicast", func(f *Filter) (err error) {
		f.Unicast, err = without(f.Unicast, a)
		return err
	})
}

func without(l []net.HardwareAddr, a net.HardwareAddr) ([]net.HardwareAddr, error) {
	i := slices.IndexFunc(l, func(b net.HardwareAddr) bool { return bytes.Equal(a, b) })
	if i < 0 {
		return l, fmt.Errorf("address %v: %w", a, os.ErrNotExist)
	}
	return slices.Delete(l, i, i+1), nil
}

// AddVLAN lets in the frames of a VLAN, 0 to 4095. While there is one, tagged
// frames of others are dropped; frames without a tag are not filtered. A device
// with a single VLAN filter refuses VLAN 0. Each call needs one of RemoveVLAN.
func (m *MAC) AddVLAN(vid uint16) error {
	return m.changeFilter("add VLAN", func(f *Filter) error {
		f.VLANs = append(f.VLANs, vid)
		return nil
	})
}

// RemoveVLAN undoes one AddVLAN. With the last one all VLANs come in again. The
// error for a VLAN that was not added is os.ErrNotExist.
func (m *MAC) RemoveVLAN(vid uint16) error {
	return m.changeFilter("remove VLAN", func(f *Filter) error {
		i := slices.Index(f.VLANs, vid)
		if i < 0 {
			return fmt.Errorf("VLAN %d: %w", vid, os.ErrNotExist)
		}
		f.VLANs = slices.Delete(f.VLANs, i, i+1)
		if len(f.VLANs) == 0 {
			f.InverseVLAN = false
		}
		return nil
	})
}

// changeFilter applies a change to the filter, or leaves it as it was.
func (m *MAC) changeFilter(op string, change func(*Filter) error) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.alive(op); err != nil {
		return err
	}
	f := m.filter.Clone()
	if err := change(&f); err != nil {
		return &Error{Op: op, Dev: m.cfg.Name, Err: err}
	}
	use, err := m.hw.SetFilter(f)
	if err != nil {
		return m.during(op, err)
	}
	m.filter = f
	m.noteFilter(use)
	return nil
}

// during returns the error of a step of the hardware as that of the call op.
func (m *MAC) during(op string, err error) error {
	e := Error{Op: op, Dev: m.cfg.Name, Err: err}
	var step *Error
	if errors.As(err, &step) {
		e.Reg, e.Val, e.Err = step.Reg, step.Val, step.Err
	}
	return &e
}

// noteFilter keeps how the device does the filter, and tells when it starts to
// let in more than was asked for. The caller holds m.mu.
func (m *MAC) noteFilter(use core.FilterUse) {
	was := m.filterUse
	m.filterUse = use
	if use.Promiscuous && !was.Promiscuous || use.AllMulticast && !was.AllMulticast {
		m.filterFull++
		m.log().Warn().Bool("promiscuous", use.Promiscuous).Bool("all multicast", use.AllMulticast).
			Int("filters", m.feat.PerfectFilters).Msg("more addresses than filters")
	}
}

// HardwareAddr is the MAC's address.
func (m *MAC) HardwareAddr() net.HardwareAddr {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.addr)
}

// SetHardwareAddr changes the MAC's address, from the next frame on. An error
// is os.ErrInvalid if a is no unicast address of six bytes. The address that
// the device had is forgotten, until it is reset from outside.
func (m *MAC) SetHardwareAddr(a net.HardwareAddr) error {
	const op = "set hardware address"
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.alive(op); err != nil {
		return err
	}
	if !core.IsUnicast(a) {
		return &Error{Op: op, Dev: m.cfg.Name, Err: fmt.Errorf("%v is no unicast address of six bytes: %w", a, os.ErrInvalid)}
	}
	if err := m.hw.SetAddr(a); err != nil {
		return m.during(op, err)
	}
	m.addr = slices.Clone(a)
	return nil
}
