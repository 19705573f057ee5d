package vfiouser

import (
	"encoding/binary"
	"fmt"
	"math/bits"
)

// Offsets in configuration space, and bits (PCI Local Bus 3.0, 6.1 and 6.2).
const (
	configVendor    = 0x00
	configDevice    = 0x02
	configCommand   = 0x04
	configStatus    = 0x06
	configRevision  = 0x08 // the class lies in the upper 24 bits
	configCacheLine = 0x0c
	configBAR0      = 0x10
	configSubVendor = 0x2c
	configSubDevice = 0x2e
	configCaps      = 0x34
	configLine      = 0x3c
	configPin       = 0x3d
	configHeader    = 0x40
	configLegacy    = 0x100
	configExtended  = 0x1000

	commandMaster = 1 << 2
	commandNoINTx = 1 << 10
	// commandMask has the bits that a function with memory keeps: memory, master,
	// parity, SERR and INTx disable.
	commandMask = 1<<1 | commandMaster | 1<<6 | 1<<8 | commandNoINTx

	statusINTx = 1 << 3
	statusCaps = 1 << 4

	bar64       = 1 << 2
	barPrefetch = 1 << 3
)

// Capabilities (PCI Local Bus 3.0 appendix H) and what is used of them.
const (
	capPM   = 0x01
	capMSI  = 0x05
	capPCIe = 0x10
	capMSIX = 0x11

	msiControl  = 2 // from the start of the capability
	msiMask     = 16
	msiPending  = 20
	msiEnable   = 1 << 0
	msiWide     = 1 << 7
	msiMaskable = 1 << 8

	msixControl  = 2
	msixFuncMask = 1 << 14
	msixEnable   = 1 << 15

	pcieDeviceControl = 8
	pcieFLR           = 1 << 15 // of that register
	pcieCapFLR        = 1 << 28 // of the device capabilities
)

// configSpace is the configuration space as it is stored. Who uses it holds the lock of the
// function.
type configSpace struct {
	b     []byte // current
	reset []byte // after a reset
	mask  []byte // bits that can be written

	// Where capabilities start; 0 is none.
	msi, msix, pcie int
}

// newConfigSpace makes the space of a function whose Config is complete.
func newConfigSpace(c *Config) (*configSpace, error) {
	size := configLegacy
	if c.PCIe {
		size = configExtended
	}
	s := &configSpace{reset: make([]byte, size), mask: make([]byte, size)}
	le := binary.LittleEndian
	r, m := s.reset, s.mask
	le.PutUint16(r[configVendor:], c.Vendor)
	le.PutUint16(r[configDevice:], c.Device)
	le.PutUint16(m[configCommand:], commandMask)
	le.PutUint32(r[configRevision:], c.Class<<8|uint32(c.Revision))
	m[configCacheLine] = 0xff
	for i, b := range c.BARs {
		if b.Size == 0 {
			continue
		}
		at, writable := configBAR0+4*i, ^(b.Size - 1)
		le.PutUint32(m[at:], uint32(writable))
		if b.Prefetch {
			r[at] |= barPrefetch
		}
		if b.Wide {
			r[at] |= bar64
			le.PutUint32(m[at+4:], uint32(writable>>32))
		}
	}
	le.PutUint16(r[configSubVendor:], c.SubVendor)
	le.PutUint16(r[configSubDevice:], c.SubDevice)
	m[configLine] = 0xff
	if c.INTx {
		r[configPin] = 1
	}
	at := configHeader
	for _, k := range s.capabilities(c) {
		end := at + 2 + len(k.Body)
		if end > configLegacy {
			return nil, fmt.Errorf("%w: the capabilities need %d bytes, and there is room for %d", ErrConfig, end-configHeader, configLegacy-configHeader)
		}
		if len(k.Writable) != 0 && len(k.Writable) != len(k.Body) {
			return nil, fmt.Errorf("%w: capability %#x has %d bytes and says of %d what is writable", ErrConfig, k.ID, len(k.Body), len(k.Writable))
		}
		switch k.ID {
		case capMSI:
			s.msi = at
		case capMSIX:
			s.msix = at
		case capPCIe:
			s.pcie = at
		}
		r[at] = k.ID
		copy(r[at+2:], k.Body)
		copy(m[at+2:], k.Writable)
		s.link(at)
		at = (end + 3) &^ 3
	}
	s.b = append([]byte(nil), s.reset...)
	return s, nil
}

// link puts the capability at at at the end of the list.
func (s *configSpace) link(at int) {
	s.reset[configStatus] |= statusCaps
	end := configCaps
	for s.reset[end] != 0 {
		end = int(s.reset[end]) + 1
	}
	s.reset[end] = byte(at)
}

// capabilities lists what Config asks for, in the order of their ids.
func (s *configSpace) capabilities(c *Config) []Capability {
	le := binary.LittleEndian
	var all []Capability
	add := func(id uint8, n int) (body, writable []byte) {
		k := Capability{id, make([]byte, n), make([]byte, n)}
		all = append(all, k)
		return k.Body, k.Writable
	}
	if c.PM {
		// PCI Power Management 1.2, 3.2: version 3; D3hot keeps the state.
		const version, noSoftReset, powerState = 3, 1 << 3, 3
		b, w := add(capPM, 6)
		le.PutUint16(b[0:], version)
		le.PutUint16(b[2:], noSoftReset)
		le.PutUint16(w[2:], powerState)
	}
	if n := c.MSI.Vectors; n > 0 {
		const multipleEnable = 7 << 4
		size, control := 12, uint16(msiWide|(bits.Len(uint(n))-1)<<1)
		if c.MSI.Maskable {
			size, control = 22, control|msiMaskable
		}
		b, w := add(capMSI, size)
		le.PutUint16(b[0:], control)
		le.PutUint16(w[0:], msiEnable|multipleEnable)
		le.PutUint32(w[2:], ^uint32(3)) // the message address, and its upper half
		le.PutUint32(w[6:], ^uint32(0))
		le.PutUint16(w[10:], 0xffff) // the message data
		if c.MSI.Maskable {
			le.PutUint32(w[msiMask-2:], uint32(1<<n-1))
		}
	}
	if c.PCIe {
		all = append(all, pcieCapability())
	}
	if x := c.MSIX; x.Vectors > 0 {
		b, w := add(capMSIX, 10)
		le.PutUint16(b[0:], uint16(x.Vectors-1))
		le.PutUint16(w[0:], msixEnable|msixFuncMask)
		le.PutUint32(b[2:], uint32(x.Table)|uint32(x.BAR))
		le.PutUint32(b[6:], uint32(x.PBA)|uint32(x.BAR))
	}
	return append(all, c.Capabilities...)
}

// pcieCapability is that of an endpoint with one lane of 2.5 GT/s (PCI Express Base 3.0,
// 7.8; offsets without the first two bytes).
func pcieCapability() Capability {
	const (
		size                 = 0x3c - 2
		endpointVersion2     = 2
		roleBased            = 1 << 15
		speed1Width1         = 1<<4 | 1
		deviceCaps           = 4 - 2
		deviceControl        = pcieDeviceControl - 2
		linkCaps             = 12 - 2
		linkControl          = 16 - 2
		linkStatus           = 18 - 2
		deviceControl2       = 0x28 - 2
		linkControl2         = 0x30 - 2
		deviceControlWrites  = 0x7fff
		linkControlWrites    = 0x0fcb
		deviceControl2Writes = 0x001f
		linkControl2Writes   = 0x000f
	)
	le := binary.LittleEndian
	b, w := make([]byte, size), make([]byte, size)
	le.PutUint16(b, endpointVersion2)
	le.PutUint32(b[deviceCaps:], roleBased|pcieCapFLR)
	le.PutUint32(b[linkCaps:], speed1Width1)
	le.PutUint16(b[linkStatus:], speed1Width1)
	le.PutUint16(w[deviceControl:], deviceControlWrites)
	le.PutUint16(w[linkControl:], linkControlWrites)
	le.PutUint16(w[deviceControl2:], deviceControl2Writes)
	le.PutUint16(w[linkControl2:], linkControl2Writes)
	return Capability{capPCIe, b, w}
}

func (s *configSpace) get16(at int) uint16 { return binary.LittleEndian.Uint16(s.b[at:]) }

// write writes p at off, which is inside, and says whether a function-level reset was
// asked for: its bit reads as 0.
func (s *configSpace) write(off int, p []byte) (flr bool) {
	for i, v := range p {
		at := off + i
		s.b[at] = s.b[at]&^s.mask[at] | v&s.mask[at]
		if s.pcie != 0 && at == s.pcie+pcieDeviceControl+1 && v&(pcieFLR>>8) != 0 {
			flr = true
		}
	}
	return flr
}

// master says whether bus mastering is on.
func (s *configSpace) master() bool { return s.get16(configCommand)&commandMaster != 0 }

// intxOff says whether the interrupt pin is disabled.
func (s *configSpace) intxOff() bool { return s.get16(configCommand)&commandNoINTx != 0 }

// msiState says whether MSI is on, how many vectors the driver has given, and which of
// them it masks.
func (s *configSpace) msiState() (on bool, vectors int, masked uint32) {
	if s.msi == 0 {
		return false, 0, 0
	}
	control := s.get16(s.msi + msiControl)
	if control&msiMaskable != 0 {
		masked = binary.LittleEndian.Uint32(s.b[s.msi+msiMask:])
	}
	capable, given := control>>1&7, control>>4&7
	return control&msiEnable != 0, 1 << min(capable, given), masked
}

// msixState says whether MSI-X is on and whether all of it is masked.
func (s *configSpace) msixState() (on, masked bool) {
	if s.msix == 0 {
		return false, false
	}
	control := s.get16(s.msix + msixControl)
	return control&msixEnable != 0, control&msixFuncMask != 0
}
