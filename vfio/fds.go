package vfio

import (
	"context"
	"errors"
	"fmt"
	"os"
)

// FDs are descriptors that a privileged parent opened and handed over, so that this
// process needs no permission of its own. Either Container and Group are given, or
// IOMMUFD and Device; the others are -1. They belong to the domain from then on, also
// after an error.
type FDs struct {
	// Name of the device as in sysfs. Group uses it to open the device.
	Name string
	// Container is /dev/vfio/vfio and Group that of the device. The group may be in
	// the container already, and the IOMMU type set.
	Container, Group int
	// IOMMUFD is /dev/iommu, IOAS an address space in it, 0 to make one.
	IOMMUFD int
	IOAS    uint32
	// Device is the device, from the group or from /dev/vfio/devices; -1 with a
	// Group lets it be opened here.
	Device int
}

// OpenFDs opens a device from descriptors. What sysfs does not tell here, as in a
// sandbox without it, is left empty in the device's Info. In a domain that has a
// device already, Container or IOMMUFD is -1: it is the domain's.
func (m *Domain) OpenFDs(ctx context.Context, fds FDs, opts ...DeviceOption) (*Device, error) {
	i, err := Lookup(m.k, fds.Name)
	if err != nil {
		i = Info{Bus: PCI, Name: fds.Name, Group: -1}
	}
	d, err := m.open(ctx, &i, &fds, opts)
	if err != nil {
		return nil, wrap("open from descriptors", fds.Name, err)
	}
	return d, nil
}

// adopt puts the device of descriptors into the space.
func (m *Domain) adopt(i *Info, fds *FDs, o *deviceOptions) (int, error) {
	legacy := fds.Group >= 0
	switch {
	case legacy && fds.IOMMUFD >= 0, !legacy && fds.Device < 0, fds.Name == "":
		return -1, errors.Join(fmt.Errorf("either a group, or a device for an iommufd, and a name: %w", os.ErrInvalid), closeFDs(m.k, fds))
	case m.space != nil && (fds.Container >= 0 || fds.IOMMUFD >= 0):
		return -1, errors.Join(fmt.Errorf("the domain has a container or iommufd already: %w", os.ErrInvalid), closeFDs(m.k, fds))
	case m.space != nil && legacy != (m.backend == Group):
		return -1, errors.Join(fmt.Errorf("the domain is of kind %v: %w", m.backend, os.ErrInvalid), closeFDs(m.k, fds))
	}
	if m.space == nil {
		b := IOMMUFD
		if legacy {
			b = Group
		}
		s, err := openSpace(m.k, b, i.NoIOMMU(), fds)
		if err != nil {
			fds.Container, fds.IOMMUFD = -1, -1 // openSpace has closed them
			return -1, errors.Join(err, closeFDs(m.k, fds))
		}
		m.space, m.backend, m.reason = s, b, "a parent opened it so"
	}
	fd, err := m.hand(i, fds, o)
	if err != nil {
		return -1, errors.Join(err, closeFDs(m.k, &FDs{Container: -1, IOMMUFD: -1, Group: fds.Group, Device: fds.Device}))
	}
	return fd, nil
}

// hand gives the descriptors of the device to the space.
func (m *Domain) hand(i *Info, fds *FDs, o *deviceOptions) (int, error) {
	var c *container
	switch s := m.space.(type) {
	case *container:
		c = s
	case noContainer:
		c = s.container
	case *ioas:
		return fds.Device, s.adopt(fds.Device, i, o.token)
	case noIOAS:
		return fds.Device, s.adopt(fds.Device, i, o.token)
	}
	node := i.groupNode()
	if c.groups[node] != nil {
		return -1, fmt.Errorf("the group is in the domain already: %w", os.ErrInvalid)
	}
	if err := c.adopt(fds.Group, i); err != nil {
		return -1, err
	}
	c.groups[node] = &group{fd: fds.Group}
	if fds.Device < 0 {
		fd, err := c.attach(i, o.token)
		if err != nil {
			fds.Group = -1 // attach has closed it
		}
		return fd, err
	}
	c.groups[node].devices++
	return fds.Device, nil
}

// closeFDs closes those that were given.
func closeFDs(k Kernel, fds *FDs) error {
	var errs []error
	for _, fd := range []int{fds.Device, fds.Group, fds.Container, fds.IOMMUFD} {
		if fd >= 0 {
			errs = append(errs, k.Close(fd))
		}
	}
	return errors.Join(errs...)
}
