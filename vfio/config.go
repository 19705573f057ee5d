package vfio

import (
	"encoding/binary"
	"errors"
	"fmt"
	"iter"
	"os"

	"github.com/gostmmac/gostmmac/vfio/internal/uapi"
)

// ConfigSpace is the configuration space of a PCI function as VFIO shows it: the
// kernel keeps to itself what the process must not change. Its methods may be
// called by several goroutines; a read-modify-write of one register by
// [ConfigSpace.Update16] only.
type ConfigSpace struct {
	dev    *Device
	offset uint64
	size   uint64
}

// Registers of the header (PCI Local Bus 3.0, 6.1); offsets in bytes.
const (
	ConfigVendorID    = 0x00 // 16 bits
	ConfigDeviceID    = 0x02 // 16 bits
	ConfigCommand     = 0x04 // 16 bits
	ConfigStatus      = 0x06 // 16 bits
	ConfigRevision    = 0x08 // 8 bits
	ConfigBAR0        = 0x10 // 32 bits
	ConfigSubVendorID = 0x2c // 16 bits
	ConfigSubDeviceID = 0x2e // 16 bits
	ConfigCapPointer  = 0x34 // 8 bits
	configExtended    = 0x100
	configEnd         = 0x1000
)

// Bits of Command and Status.
const (
	commandMemory      = 1 << 1
	commandMaster      = 1 << 2
	commandINTxDisable = 1 << 10
	statusCapabilities = 1 << 4
)

// Ids of capabilities (PCI Code and ID Assignment Specification).
const (
	CapPowerManagement = 0x01
	CapMSI             = 0x05
	CapVendor          = 0x09
	CapExpress         = 0x10
	CapMSIX            = 0x11

	ExtCapAER          = 0x0001
	ExtCapDeviceSerial = 0x0003
	ExtCapSRIOV        = 0x0010
	ExtCapLTR          = 0x0018
)

// Capability is an element of the list of capabilities, or of that of the extended
// ones.
type Capability struct {
	ID       uint16
	Version  uint8 // of an extended one
	Extended bool
	Offset   int // in the configuration space
}

func openConfig(d *Device) (*ConfigSpace, error) {
	info, offset, _, err := d.regionInfo(uapi.PCIConfig)
	if err != nil {
		return nil, err
	}
	if info.Size < 0x40 {
		return nil, fmt.Errorf("a configuration space of %d bytes: %w", info.Size, os.ErrInvalid)
	}
	return &ConfigSpace{dev: d, offset: offset, size: min(info.Size, configEnd)}, nil
}

// Len is its size in bytes: 256 or 4096.
func (c *ConfigSpace) Len() int { return int(c.size) }

// access reads or writes a register of len(p) bytes, which it must be aligned to.
func (c *ConfigSpace) access(op string, off int, p []byte, do func(fd int, p []byte, off int64) (int, error)) error {
	n := len(p)
	if off < 0 || off%n != 0 || uint64(off)+uint64(n) > c.size {
		return &Error{Op: op, Dev: c.dev.info.Name, Err: fmt.Errorf("%d bytes at %#x of %d: %w", n, off, c.size, os.ErrInvalid)}
	}
	got, err := do(c.dev.fd, p, int64(c.offset)+int64(off))
	if err == nil && got != n {
		err = fmt.Errorf("%d of %d bytes at %#x: %w", got, n, off, os.ErrInvalid)
	}
	return wrap(op, c.dev.info.Name, err)
}

// Read8, Read16 and Read32 read a register that is aligned to its size. A function
// that is gone reads as all ones.
func (c *ConfigSpace) Read8(off int) (uint8, error) {
	var b [1]byte
	err := c.access("read configuration space", off, b[:], c.dev.k.Pread)
	return b[0], err
}

// Read16 is described at Read8.
func (c *ConfigSpace) Read16(off int) (uint16, error) {
	var b [2]byte
	err := c.access("read configuration space", off, b[:], c.dev.k.Pread)
	return binary.LittleEndian.Uint16(b[:]), err
}

// Read32 is described at Read8.
func (c *ConfigSpace) Read32(off int) (uint32, error) {
	var b [4]byte
	err := c.access("read configuration space", off, b[:], c.dev.k.Pread)
	return binary.LittleEndian.Uint32(b[:]), err
}

// Write8, Write16 and Write32 write a register that is aligned to its size.
func (c *ConfigSpace) Write8(off int, v uint8) error {
	return c.access("write configuration space", off, []byte{v}, c.dev.k.Pwrite)
}

// Write16 is described at Write8.
func (c *ConfigSpace) Write16(off int, v uint16) error {
	return c.access("write configuration space", off, binary.LittleEndian.AppendUint16(nil, v), c.dev.k.Pwrite)
}

// Write32 is described at Write8.
func (c *ConfigSpace) Write32(off int, v uint32) error {
	return c.access("write configuration space", off, binary.LittleEndian.AppendUint32(nil, v), c.dev.k.Pwrite)
}

// Update16 sets and clears bits of a register, by one read and one write of 16
// bits, and of Command too.
func (c *ConfigSpace) Update16(off int, set, clear uint16) error {
	c.dev.mu.Lock()
	defer c.dev.mu.Unlock()
	return c.update16(off, set, clear)
}

func (c *ConfigSpace) update16(off int, set, clear uint16) error {
	v, err := c.Read16(off)
	if err != nil {
		return err
	}
	if v == 0xffff && off == ConfigCommand {
		c.dev.markGone(errors.New("its configuration space reads as all ones"))
		return ErrGone
	}
	if w := v&^clear | set; w != v {
		return c.Write16(off, w)
	}
	return nil
}

// setCommand sets and clears bits of the command register. The caller holds d.mu,
// or is alone.
func (d *Device) setCommand(set, clear uint16) error {
	return d.config.update16(ConfigCommand, set, clear)
}

// Capabilities yields the list of capabilities and then that of the extended ones,
// with the error that ended it too early. A list with a loop ends at the length
// that one without can have.
func (c *ConfigSpace) Capabilities() iter.Seq2[Capability, error] {
	return func(yield func(Capability, error) bool) {
		more, err := c.standard(func(p Capability) bool { return yield(p, nil) })
		if err == nil && more {
			err = c.extended(func(p Capability) bool { return yield(p, nil) })
		}
		if err != nil {
			yield(Capability{}, err)
		}
	}
}

func (c *ConfigSpace) standard(yield func(Capability) bool) (more bool, err error) {
	status, err := c.Read16(ConfigStatus)
	if err != nil || status&statusCapabilities == 0 || status == 0xffff {
		return status != 0xffff, err
	}
	next, err := c.Read8(ConfigCapPointer)
	if err != nil {
		return false, err
	}
	const first, most = 0x40, (0x100 - 0x40) / 4
	for range most {
		off := int(next &^ 3)
		if off < first {
			return true, nil
		}
		head, err := c.Read16(off)
		if err != nil {
			return false, err
		}
		if !yield(Capability{ID: head & 0xff, Offset: off}) {
			return false, nil
		}
		next = uint8(head >> 8)
	}
	return false, fmt.Errorf("the list of capabilities has a loop: %w", os.ErrInvalid)
}

func (c *ConfigSpace) extended(yield func(Capability) bool) error {
	if c.size < configEnd {
		return nil
	}
	off := configExtended
	const most = (configEnd - configExtended) / 4
	for range most {
		head, err := c.Read32(off)
		if err != nil {
			return err
		}
		if head == 0 || head == ^uint32(0) {
			return nil
		}
		if !yield(Capability{ID: uint16(head), Version: uint8(head >> 16 & 0xf), Extended: true, Offset: off}) {
			return nil
		}
		if off = int(head >> 20 &^ 3); off < configExtended {
			return nil
		}
	}
	return fmt.Errorf("the list of extended capabilities has a loop: %w", os.ErrInvalid)
}

// Capability finds the first capability with an id. An error wraps os.ErrNotExist
// when there is none.
func (c *ConfigSpace) Capability(id uint16, extended bool) (Capability, error) {
	for p, err := range c.Capabilities() {
		if err != nil {
			return p, err
		}
		if p.ID == id && p.Extended == extended {
			return p, nil
		}
	}
	return Capability{}, &Error{Op: "find capability", Dev: c.dev.info.Name, Err: fmt.Errorf("id %#x: %w", id, os.ErrNotExist)}
}
