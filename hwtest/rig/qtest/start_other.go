//go:build !linux

package qtest

import (
	"context"
	"errors"

	"github.com/gostmmac/gostmmac/mmio"
)

// MaxFrame is the longest frame that a wire carries: the limit of QEMU's net layer.
const MaxFrame = 68 << 10

// refused is what every call returns outside of Linux.
func refused(op string) error {
	return &Error{op, NPCM845, errors.ErrUnsupported, "memfd and the files that QEMU inherits need Linux"}
}

// Machine is a running board. There is none outside of Linux.
type Machine struct{}

// Start is refused with errors.ErrUnsupported.
func Start(context.Context, Config) (*Machine, error) { return nil, refused("start") }

// Config is empty.
func (m *Machine) Config() Config { return Config{} }

// Pid is the process number of QEMU.
func (m *Machine) Pid() int { return 0 }

// Device returns the MAC.
func (m *Machine) Device() *Device { return &Device{} }

// Wire returns the cable of the MAC.
func (m *Machine) Wire() *Wire { return &Wire{} }

// Close does nothing.
func (m *Machine) Close() error { return nil }

// SetCable is refused with errors.ErrUnsupported.
func (m *Machine) SetCable(bool) error { return refused("set the cable") }

// Device is the MAC as a device of package stmmac.
type Device struct{}

// Wire returns the cable of the MAC.
func (d *Device) Wire() *Wire { return &Wire{} }

// SetCable is refused with errors.ErrUnsupported.
func (d *Device) SetCable(bool) error { return refused("set the cable") }

// Region is refused with errors.ErrUnsupported.
func (d *Device) Region(int) (mmio.Region, error) { return nil, refused("region") }

// NumInterrupts is 0.
func (d *Device) NumInterrupts() int { return 0 }

// Interrupt is refused with errors.ErrUnsupported.
func (d *Device) Interrupt(int) (mmio.Interrupt, error) { return nil, refused("interrupt") }

// MapDMA is refused with errors.ErrUnsupported.
func (d *Device) MapDMA([]byte) (uint64, error) { return 0, refused("map memory") }

// AllocDMA is refused with errors.ErrUnsupported.
func (d *Device) AllocDMA(n, align int) ([]byte, uint64, error) {
	return nil, 0, refused("allocate memory")
}

// UnmapDMA is refused with errors.ErrUnsupported.
func (d *Device) UnmapDMA(uint64, int) error { return refused("free memory") }

// Coherent reports true.
func (d *Device) Coherent() bool { return true }

// PinsDMA reports true.
func (d *Device) PinsDMA() bool { return true }

// Reset is refused with errors.ErrUnsupported.
func (d *Device) Reset(context.Context) error { return refused("reset") }

// Close does nothing.
func (d *Device) Close() error { return nil }

// Wire is the cable of a MAC.
type Wire struct{}

// Send is refused with errors.ErrUnsupported.
func (w *Wire) Send(context.Context, []byte) error { return refused("send") }

// Recv is refused with errors.ErrUnsupported.
func (w *Wire) Recv(context.Context) ([]byte, error) { return nil, refused("receive") }
