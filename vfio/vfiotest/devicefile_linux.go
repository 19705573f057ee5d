package vfiotest

import (
	"encoding/hex"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/gostmmac/gostmmac/vfio/internal/uapi"
)

// deviceFile is an open device. Mappings of it count as users: they keep it open
// after its descriptor was closed.
type deviceFile struct {
	d       *Device
	cdev    bool // it was opened by its own node
	granted bool // it may be used: from the group, or bound to an iommufd
	users   int
}

func (k *Kernel) openCdev(d *Device) (int, error) {
	switch {
	case d.gone:
		return -1, unix.ENODEV
	case d.group != nil && d.group.noiommu && !k.cfg.CapSysRawIO:
		return -1, unix.EPERM
	}
	return k.install(&deviceFile{d: d, cdev: true, users: 1}), nil
}

// put drops a user; the last one closes the device.
func (f *deviceFile) put() {
	f.users--
	if f.users > 0 || !f.granted {
		return
	}
	f.granted = false
	g := f.d.group
	if f.cdev {
		f.d.unbindIOMMUFD()
		g.cdevs--
		f.d.close()
	} else {
		f.d.close()
		g.put()
	}
}

func (f *deviceFile) ioctl(req uint32, arg []byte) (int, error) {
	d := f.d
	if req == uapi.DeviceBindIOMMUFD {
		return 0, f.bind(arg)
	}
	if !f.granted {
		return 0, unix.EINVAL
	}
	switch req {
	case uapi.DeviceAttachPT:
		if f.cdev {
			return 0, d.attach(arg)
		}
	case uapi.DeviceDetachPT:
		if f.cdev {
			return 0, d.detach(arg)
		}
	case uapi.DeviceFeature:
		return 0, d.feature(arg)
	case uapi.DeviceGetInfo:
		return 0, d.info(arg)
	case uapi.DeviceGetRegionInfo:
		return 0, d.regionInfo(arg)
	case uapi.DeviceGetIRQInfo:
		return 0, d.irqInfo(arg)
	case uapi.DeviceSetIRQs:
		return d.setIRQs(arg)
	case uapi.DeviceReset:
		switch {
		case !d.resettable():
			return 0, unix.EINVAL
		case d.gone:
			return 0, unix.ENODEV
		}
		d.reset()
		return 0, nil
	case uapi.DeviceGetHotResetInfo:
		if d.bus == pciBus {
			return 0, f.hotResetInfo(arg)
		}
	case uapi.DeviceHotReset:
		if d.bus == pciBus {
			return 0, f.hotReset(arg)
		}
	}
	return 0, unix.ENOTTY
}

func (d *Device) info(arg []byte) error {
	const least = 16
	v, err := readArg[uapi.DeviceInfo](arg, least)
	if err != nil {
		return err
	}
	v.Flags = uapi.DeviceFlagPlatform
	if d.bus == pciBus {
		v.Flags = uapi.DeviceFlagPCI
	}
	if d.resettable() {
		v.Flags |= uapi.DeviceFlagReset
	}
	v.NumRegions, v.NumIRQs = uint32(len(d.regions)), uint32(len(d.irqs))
	v.CapOffset = 0
	writeArg(arg, &v, min(int(v.Argsz), 24))
	return nil
}

// feature serves VFIO_DEVICE_FEATURE.
func (d *Device) feature(arg []byte) error {
	const header = 8
	v, err := readArg[uapi.Feature](arg, header)
	if err != nil {
		return err
	}
	const get, set, probe = uapi.FeatureGet, uapi.FeatureSet, uapi.FeatureProbe
	if v.Flags&^(uapi.FeatureMask|get|set|probe) != 0 || v.Flags&probe == 0 && v.Flags&(get|set) == get|set {
		return unix.EINVAL
	}
	if d.bus != pciBus {
		return unix.ENOTTY
	}
	id := v.Flags & uapi.FeatureMask
	var size uint32
	switch id {
	case uapi.FeatureVFToken:
		if !d.pci.SRIOV {
			return unix.ENOTTY
		}
		size = 16
	case uapi.FeatureLowPowerEntry, uapi.FeatureLowPowerExit:
	case uapi.FeatureLowPowerEntryWake:
		size = 8
	default:
		return unix.ENOTTY
	}
	switch {
	case v.Flags&get != 0: // all can only be set
		return unix.EINVAL
	case v.Flags&probe != 0:
		return nil
	case v.Flags&set == 0 || v.Argsz-header < size:
		return unix.EINVAL
	}
	data := arg[header : header+int(size)]
	switch id {
	case uapi.FeatureLowPowerEntryWake:
		var wake struct {
			FD int32
			_  uint32
		}
		copy(uapi.Bytes(&wake), data)
		if wake.FD >= 0 {
			fd, err := dupEventfd(int(wake.FD))
			if err != nil {
				return err
			}
			_ = unix.Close(fd) // nothing wakes the device
		}
		fallthrough
	case uapi.FeatureLowPowerEntry:
		if d.lowPower {
			return unix.EINVAL
		}
		d.lowPower = true
		d.zap()
	case uapi.FeatureLowPowerExit:
		d.lowPower = false
		d.zap()
	}
	return nil
}

// busOf is the bus of a function, "0000:03": what a hot reset is for.
func (d *Device) busOf() string { return d.name[:len(d.name)-5] }

// onBus lists the functions that a hot reset of the device resets.
func (d *Device) onBus() []*Device {
	return slices.DeleteFunc(slices.Clone(d.k.devices), func(o *Device) bool { return o.bus != pciBus || o.busOf() != d.busOf() })
}

func (f *deviceFile) hotResetInfo(arg []byte) error {
	const header, each = 12, 8
	v, err := readArg[uapi.HotResetInfo](arg, header)
	if err != nil {
		return err
	}
	all := f.d.onBus()
	v.Flags, v.Count = 0, uint32(len(all))
	if v.Argsz < header+each*uint32(len(all)) {
		writeArg(arg, &v, header)
		return unix.ENOSPC
	}
	if f.cdev {
		v.Flags = uapi.HotResetFlagDevID | uapi.HotResetFlagDevIDOwned
	}
	for i, o := range all {
		e := uapi.DependentDevice{}
		e.Segment, e.Bus, e.DevFn = o.address()
		switch {
		case !f.cdev && o.group == nil:
			return unix.EPERM
		case !f.cdev:
			e.ID = uint32(o.group.num)
		case o.iommufd == f.d.iommufd:
			e.ID = o.id
		case f.d.iommufd.owns(o.group):
			e.ID = uapi.DevIDOwned
		default:
			notOwned := int32(uapi.DevIDNotOwned)
			e.ID = uint32(notOwned)
			v.Flags &^= uapi.HotResetFlagDevIDOwned
		}
		copy(arg[header+each*i:], uapi.Bytes(&e))
	}
	writeArg(arg, &v, header)
	return nil
}

// hotReset resets all functions of the bus if the caller has them all.
func (f *deviceFile) hotReset(arg []byte) error {
	const header = 12
	v, err := readArg[uapi.HotReset](arg, header)
	if err != nil {
		return err
	}
	all := f.d.onBus()
	if v.Flags != 0 || f.cdev != (v.Count == 0) || v.Count > uint32(len(all)) {
		return unix.EINVAL
	}
	if uint64(len(arg)) < header+4*uint64(v.Count) {
		return unix.EFAULT
	}
	var given []*group
	for i := range int(v.Count) {
		var fd int32
		copy(uapi.Bytes(&fd), arg[header+4*i:])
		file, ok := f.d.k.fds[int(fd)]
		if !ok {
			return unix.EBADF
		}
		g, ok := file.(*group)
		if !ok {
			return unix.EINVAL
		}
		given = append(given, g)
	}
	for _, o := range all {
		owned := slices.Contains(given, o.group)
		if f.cdev {
			owned = f.d.iommufd.owns(o.group)
		}
		switch {
		case !o.vfio():
			return unix.ENODEV
		case !owned:
			return unix.EINVAL
		case o.gone:
			return unix.ENODEV
		}
	}
	for _, o := range all {
		o.resetNow()
	}
	return nil
}

// tokenText is the token of BIND_IOMMUFD as text.
func tokenText(b []byte) string {
	s := hex.EncodeToString(b)
	return s[:8] + "-" + s[8:12] + "-" + s[12:16] + "-" + s[16:20] + "-" + s[20:]
}
