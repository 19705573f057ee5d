package vfio

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"syscall"

	"github.com/gostmmac/gostmmac/vfio/internal/uapi"
)

// Reset resets the device from outside, by the method that the kernel prefers: the
// function-level reset of a PCI function, the reset of a platform device that its
// reset module knows. The command register is set again as it was. A reset that
// returns no error may yet have done nothing, and drivers check their registers.
// A device that cannot be reset so returns an error that is errors.ErrUnsupported.
// ctx is looked at before: the kernel ends a reset by itself, within 100 ms as a
// rule and a minute at most.
func (d *Device) Reset(ctx context.Context) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.usable(); err != nil {
		return wrap("reset", d.info.Name, err)
	}
	return wrap("reset", d.info.Name, d.reset(ctx))
}

// reset resets. The caller holds d.mu, or is alone.
func (d *Device) reset(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if d.flags&uapi.DeviceFlagReset == 0 {
		e := &Error{Call: "VFIO_DEVICE_RESET", Err: fmt.Errorf("the kernel has no reset for the device: %w", errors.ErrUnsupported)}
		if d.info.Bus == PCI {
			e.Remedy = "a hot reset takes all functions of the bus (HotReset)"
		}
		return e
	}
	if _, err := d.k.IoctlInt(d.fd, uapi.DeviceReset, 0); err != nil {
		return &Error{Call: "VFIO_DEVICE_RESET", Err: err}
	}
	return d.restoreCommand()
}

// restoreCommand sets the command register after a reset, which may have cleared it.
func (d *Device) restoreCommand() error {
	if d.config == nil {
		return nil
	}
	set, clear := uint16(commandMemory), uint16(0)
	if d.master {
		set |= commandMaster
	} else {
		clear |= commandMaster
	}
	if x := d.irqs[uapi.PCIINTx]; x != nil && x.enabled > 0 {
		clear |= commandINTxDisable
	} else {
		set |= commandINTxDisable
	}
	return d.setCommand(set, clear)
}

// Dependent is a function that a hot reset resets too.
type Dependent struct {
	Name  string // "0000:03:00.0"
	Group int    // its IOMMU group; -1 with an iommufd
	// Owned says that the domain may reset it: it is in the domain, or nobody's.
	Owned bool
}

// HotResetSet lists the functions that a hot reset resets together with this one,
// itself among them.
func (d *Device) HotResetSet() ([]Dependent, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.usable(); err != nil {
		return nil, wrap("list hot reset", d.info.Name, err)
	}
	all, err := d.hotResetSet()
	return all, wrap("list hot reset", d.info.Name, err)
}

func (d *Device) hotResetSet() ([]Dependent, error) {
	head := len(uapi.Bytes(&uapi.HotResetInfo{}))
	elem := len(uapi.Bytes(&uapi.DependentDevice{}))
	for n := 16; ; {
		arg := make([]byte, head+n*elem)
		info := uapi.HotResetInfo{Argsz: uint32(len(arg))}
		copy(arg, uapi.Bytes(&info))
		_, err := d.k.Ioctl(d.fd, uapi.DeviceGetHotResetInfo, arg)
		copy(uapi.Bytes(&info), arg)
		const most = 1 << 12
		switch {
		case errors.Is(err, syscall.ENOSPC) && int64(info.Count) > int64(n) && info.Count <= most:
			n = int(info.Count)
			continue
		case err == nil && int64(info.Count) > int64(n):
			err = fmt.Errorf("%d devices in room for %d: %w", info.Count, n, os.ErrInvalid)
		}
		if err != nil {
			e := &Error{Call: "VFIO_DEVICE_GET_PCI_HOT_RESET_INFO", Err: err}
			if errors.Is(err, syscall.ENODEV) || errors.Is(err, syscall.ENOTTY) {
				e.Err = fmt.Errorf("the bus of the device cannot be reset: %w: %w", errors.ErrUnsupported, err)
			}
			return nil, e
		}
		all := make([]Dependent, info.Count)
		for i := range all {
			var dev uapi.DependentDevice
			copy(uapi.Bytes(&dev), arg[head+i*elem:])
			all[i] = Dependent{Name: fmt.Sprintf("%04x:%02x:%02x.%x", dev.Segment, dev.Bus, dev.DevFn>>3, dev.DevFn&7), Group: int(dev.ID)}
			if info.Flags&uapi.HotResetFlagDevID != 0 {
				all[i].Group = -1
				all[i].Owned = int32(dev.ID) != uapi.DevIDNotOwned
			} else {
				all[i].Owned = d.dom.holdsGroup(int(dev.ID))
			}
		}
		return all, nil
	}
}

// HotReset resets the bus of the function, and so all functions on it. Each must be
// in the domain or in a group that is; an error names those that are not.
func (d *Device) HotReset(ctx context.Context) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.usable(); err != nil {
		return wrap("hot reset", d.info.Name, err)
	}
	return wrap("hot reset", d.info.Name, d.hotReset(ctx))
}

func (d *Device) hotReset(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	all, err := d.hotResetSet()
	if err != nil {
		return err
	}
	var foreign []string
	groups := map[int]bool{}
	for _, o := range all {
		if !o.Owned {
			foreign = append(foreign, o.Name)
		}
		groups[o.Group] = true
	}
	if len(foreign) > 0 {
		slices.Sort(foreign)
		return &Error{Call: "VFIO_DEVICE_PCI_HOT_RESET", Err: fmt.Errorf("it would reset %s too: %w", strings.Join(foreign, ", "), fs.ErrPermission),
			Remedy: "open them in the same domain"}
	}
	fds := d.dom.groupFDs(groups)
	head := uapi.HotReset{Count: uint32(len(fds))}
	head.Argsz = uint32(len(uapi.Bytes(&head)) + 4*len(fds))
	arg := append([]byte(nil), uapi.Bytes(&head)...)
	for _, fd := range fds {
		arg = binary.NativeEndian.AppendUint32(arg, uint32(fd))
	}
	if _, err := d.k.Ioctl(d.fd, uapi.DeviceHotReset, arg); err != nil {
		return &Error{Call: "VFIO_DEVICE_PCI_HOT_RESET", Err: err}
	}
	// The other functions of the domain were reset too: their drivers find their
	// registers so and reset on their own.
	return d.restoreCommand()
}

// holdsGroup says whether an IOMMU group is in the container.
func (m *Domain) holdsGroup(n int) bool { return len(m.groupFDs(map[int]bool{n: true})) > 0 }

// groupFDs are the descriptors of groups in the container; none with an iommufd,
// which the kernel finds by itself.
func (m *Domain) groupFDs(groups map[int]bool) []int {
	m.mu.Lock()
	defer m.mu.Unlock()
	var c *container
	switch s := m.space.(type) {
	case *container:
		c = s
	case noContainer:
		c = s.container
	default:
		return nil
	}
	var fds []int
	for _, d := range m.devices {
		if g := c.groups[d.info.groupNode()]; g != nil && groups[d.info.Group] && !slices.Contains(fds, g.fd) {
			fds = append(fds, g.fd)
		}
	}
	return fds
}
