package core

import "github.com/gostmmac/gostmmac/mmio"

// MACConfig is the register MAC_Configuration, and the bits of it that a link decides, which
// have other places in each generation.
type MACConfig[T ~uint32] struct {
	Reg    mmio.Reg[T]
	TE, RE T
	Speed  T // all bits of it
	DM, LM T
}

// SetLink sets the register to a link: speed and duplex change only while transmitter and
// receiver are off, and the enables are set in one write with them. While both are off it
// calls off; they stay off if the link is down. The device has taken all of it on return,
// which is false for a device that does not answer.
func (m MACConfig[T]) SetLink(csr mmio.Region, l Link, speed T, loop bool, off func()) bool {
	v := m.Reg.Load(csr)
	if uint32(v) == mmio.AllOnes {
		return false
	}
	if v&(m.TE|m.RE) != 0 {
		v &^= m.TE | m.RE
		m.Reg.Store(csr, v)
	}
	off()
	if !l.Up {
		return m.answers(csr)
	}
	v &^= m.Speed | m.DM | m.LM
	if loop {
		v |= m.LM
	}
	v |= speed | m.TE | m.RE
	if l.FullDuplex {
		v |= m.DM
	}
	m.Reg.Store(csr, v)
	return m.answers(csr)
}

// answers reads the register, so that the device takes the stores before it: who is told of
// the link may send to it.
func (m MACConfig[T]) answers(csr mmio.Region) bool { return uint32(m.Reg.Load(csr)) != mmio.AllOnes }
