package sim

import (
	r4 "github.com/gostmmac/gostmmac/stmmac/internal/regs/gmac4reg"
)

// Touched is a register that was accessed.
type Touched struct {
	Off         uint32
	Name        string // of the databook; "" where the model has no register
	Loaded      bool
	Stored      bool
	Implemented bool // the model has the register
}

// Coverage returns the registers that were accessed so far, in ascending order. It
// is empty with NoAudit.
func (m *Model) Coverage() []Touched {
	var list []Touched
	for i := range m.regs.touched {
		bits := m.regs.touched[i].Load()
		if bits == 0 {
			continue
		}
		off := uint32(i) * 4
		list = append(list, Touched{Off: off, Name: m.gen.mapName(off), Loaded: bits&1 != 0, Stored: bits&2 != 0,
			Implemented: m.regs.desc[i].known})
	}
	return list
}

// mapName implements generation.
func (m *Model) mapName(off uint32) string { return r4.Map.Name(m.mapOff(off)) }

// mapOff is where the register at off lies in the default layout.
func (m *Model) mapOff(off uint32) uint32 {
	r := &m.regs.desc[off/4]
	if !r.known {
		return off
	}
	l := r4.DefaultLayout
	switch {
	case r.id < idMTL || r.id >= 0x1000 && r.id < idDMA:
		return off
	case r.id >= idDMA:
		return r.id + uint32(r.ch)*l.DMAStride
	}
	return r.id + uint32(r.ch)*l.MTLStride
}
