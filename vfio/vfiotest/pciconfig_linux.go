package vfiotest

import (
	"encoding/binary"
	"fmt"
	"os"
	"slices"
	"strconv"

	"golang.org/x/sys/unix"

	"github.com/gostmmac/gostmmac/vfio/internal/uapi"
)

// Offsets in configuration space, and bits (PCI Local Bus 3.0, section 6.2).
const (
	configSize      = 4096
	configCommand   = 0x04
	configStatus    = 0x06
	configRevision  = 0x08
	configBAR0      = 0x10
	configSubsystem = 0x2c
	configROM       = 0x30
	configCaps      = 0x34
	configLine      = 0x3c
	configPin       = 0x3d

	commandMemory = 1 << 1
	commandMaster = 1 << 2
	commandNoINTx = 1 << 10
	commandMask   = 0x0547 // what a function keeps of a write
	statusINTx    = 1 << 3
	statusCaps    = 1 << 4

	capPM, capMSI, capPCIe, capMSIX = 0x01, 0x05, 0x10, 0x11
)

// makeConfig fills the configuration space. All capabilities lie from 0x40 on.
func (d *Device) makeConfig() error {
	p := &d.pci
	c := make([]byte, configSize)
	m := make([]byte, configSize)
	d.config, d.mask = c, m
	le := binary.LittleEndian
	le.PutUint16(c[0:], p.Vendor)
	le.PutUint16(c[2:], p.Device)
	le.PutUint16(m[configCommand:], commandMask)
	c[configStatus] = statusCaps
	le.PutUint32(c[configRevision:], p.Class<<8)
	le.PutUint16(c[configSubsystem:], p.SubVendor)
	le.PutUint16(c[configSubsystem+2:], p.SubDev)
	m[configLine] = 0xff
	if p.INTx {
		c[configPin] = 1
	}
	for i := 0; i < len(p.BARs); i++ {
		r := &d.regions[i]
		if r.Size == 0 {
			continue
		}
		at := configBAR0 + 4*i
		writable := ^(powerOf2(max(r.Size, 16)) - 1)
		le.PutUint32(c[at:], uint32(r.Base))
		le.PutUint32(m[at:], uint32(writable))
		if r.Wide {
			if i+1 >= uapi.PCIROM || i+1 < len(p.BARs) && p.BARs[i+1].Size != 0 {
				return fmt.Errorf("vfiotest: %s: BAR %d takes the place of two: %w", d.name, i, os.ErrInvalid)
			}
			const type64 = 4
			c[at] |= type64
			le.PutUint32(c[at+4:], uint32(r.Base>>32))
			le.PutUint32(m[at+4:], uint32(writable>>32))
			i++
		}
	}
	if r := &d.regions[uapi.PCIROM]; r.Size > 0 {
		const minROM = 2048
		le.PutUint32(c[configROM:], uint32(r.Base))
		le.PutUint32(m[configROM:], uint32(^(powerOf2(max(r.Size, minROM))-1))|1)
	}

	// Each capability: its id, 0 for the pointer, its body; and what is writable.
	var caps [][]byte
	caps = append(caps, []byte{capPM, 0, 3, 0, 0, 0, 0, 0})
	if p.MSI > 0 {
		log := 0
		for 1<<log < p.MSI {
			log++
		}
		const wide = 1 << 7 // 64-bit addresses
		msi := make([]byte, 14)
		msi[0], msi[2] = capMSI, byte(log<<1|wide)
		caps = append(caps, msi)
	}
	if x := p.MSIX; x.Count > 0 {
		if x.BAR < 0 || x.BAR >= len(p.BARs) || x.Table%8 != 0 || x.PBA%8 != 0 || x.Table+uint64(16*x.Count) > p.BARs[x.BAR].Size {
			return fmt.Errorf("vfiotest: %s: the MSI-X table is not inside a BAR: %w", d.name, os.ErrInvalid)
		}
		msix := make([]byte, 12)
		msix[0] = capMSIX
		le.PutUint16(msix[2:], uint16(x.Count-1))
		le.PutUint32(msix[4:], uint32(x.Table)|uint32(x.BAR))
		le.PutUint32(msix[8:], uint32(x.PBA)|uint32(x.BAR))
		caps = append(caps, msix)
	}
	pcie := make([]byte, 60)
	pcie[0], pcie[2] = capPCIe, 2
	if p.FLR {
		le.PutUint32(pcie[4:], 1<<28)
	}
	caps = append(caps, pcie)
	own := len(caps)
	for _, x := range p.Capabilities {
		if len(x) == 0 {
			return fmt.Errorf("vfiotest: %s: a capability without an id: %w", d.name, os.ErrInvalid)
		}
		caps = append(caps, slices.Insert(slices.Clone(x), 1, 0))
	}
	at, link := 0x40, configCaps
	for i, b := range caps {
		if at+len(b) > 256 {
			return fmt.Errorf("vfiotest: %s: the capabilities do not fit: %w", d.name, os.ErrInvalid)
		}
		c[link] = byte(at)
		copy(c[at:], b)
		if i >= own {
			for j := 2; j < len(b); j++ {
				m[at+j] = 0xff
			}
		}
		link = at + 1
		at = (at + len(b) + 3) &^ 3
	}
	return nil
}

func (d *Device) command() uint16 { return binary.LittleEndian.Uint16(d.config[configCommand:]) }

// setCommand changes the command register and what follows from it.
func (d *Device) setCommand(v uint16) {
	binary.LittleEndian.PutUint16(d.config[configCommand:], v)
	d.zap()
	if q := &d.irqs[uapi.PCIINTx]; q.on {
		d.deliver(q)
	}
}

// accessConfig reads or writes configuration space.
func (d *Device) accessConfig(p []byte, off uint64, write bool) (int, error) {
	switch {
	case off >= configSize || uint64(len(p)) > configSize-off:
		return 0, unix.EFAULT
	case d.gone:
		return 0, unix.EIO
	case !write:
		return copy(p, d.config[off:]), nil
	}
	for i, v := range p {
		at := int(off) + i
		d.config[at] = d.config[at]&^d.mask[at] | v&d.mask[at]
	}
	d.setCommand(d.command())
	return len(p), nil
}

// Config is a copy of the configuration space of a PCI function, 4096 bytes; nil for
// a platform device.
func (d *Device) Config() []byte {
	d.k.mu.Lock()
	defer d.k.unlock()
	return slices.Clone(d.config)
}

// Command is the command register of a PCI function.
func (d *Device) Command() uint16 {
	d.k.mu.Lock()
	defer d.k.unlock()
	if d.bus != pciBus {
		return 0
	}
	return d.command()
}

// address takes the name of a function apart.
func (d *Device) address() (segment uint16, bus, devfn uint8) {
	hex := func(s string) uint64 {
		n, _ := strconv.ParseUint(s, 16, 32) // AddPCI held the form
		return n
	}
	n := len(d.name)
	return uint16(hex(d.name[:n-8])), uint8(hex(d.name[n-7 : n-5])), uint8(hex(d.name[n-4:n-2])<<3 | hex(d.name[n-1:]))
}
