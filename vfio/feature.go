package vfio

import (
	"errors"
	"fmt"
	"syscall"

	"github.com/gostmmac/gostmmac/vfio/internal/uapi"
)

// feature sets a feature of the device.
func (d *Device) feature(op string, index uint32, data []byte) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.usable(); err != nil {
		return wrap(op, d.info.Name, err)
	}
	head := uapi.Feature{Flags: index | uapi.FeatureSet}
	head.Argsz = uint32(len(uapi.Bytes(&head)) + len(data))
	arg := append(append([]byte(nil), uapi.Bytes(&head)...), data...)
	if _, err := d.k.Ioctl(d.fd, uapi.DeviceFeature, arg); err != nil {
		if errors.Is(err, syscall.ENOTTY) {
			err = fmt.Errorf("the kernel or the device has no such feature: %w: %w", errors.ErrUnsupported, err)
		}
		return wrap(op, d.info.Name, &Error{Call: "VFIO_DEVICE_FEATURE", Err: err})
	}
	return nil
}

// EnterLowPower lets the kernel put the device into a low power state (D3cold where
// the platform can). Until [Device.ExitLowPower], or until an access wakes it, its
// registers may read as all ones; its interrupts do not come.
func (d *Device) EnterLowPower() error {
	return d.feature("enter low power", uapi.FeatureLowPowerEntry, nil)
}

// ExitLowPower wakes the device. What it was told before may be forgotten.
func (d *Device) ExitLowPower() error {
	return d.feature("exit low power", uapi.FeatureLowPowerExit, nil)
}

// SetVFToken sets the token that virtual functions of this physical function are
// opened with; see [WithVFToken].
func (d *Device) SetVFToken(t VFToken) error {
	return d.feature("set VF token", uapi.FeatureVFToken, t[:])
}
