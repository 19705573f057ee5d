package sim

import (
	"cmp"
	"slices"

	"github.com/gostmmac/gostmmac/stmmac/internal/regs"
	r4 "github.com/gostmmac/gostmmac/stmmac/internal/regs/gmac4reg"
	rg "github.com/gostmmac/gostmmac/stmmac/internal/regs/gmacreg"
)

// Touched is a register that was accessed.
type Touched struct {
	Off         uint32
	Name        string // of the databook; "" where the model has no register
	Loaded      bool
	Stored      bool
	Implemented bool // the model has the register

	// Bits that were set in what was loaded and stored, all together, by their names,
	// as "RE|TE|0x100"; "" where nothing was, and where no bit has a name.
	LoadedBits, StoredBits string
}

// Coverage returns the registers that were accessed so far, in ascending order. It
// is empty with NoAudit.
func (m *Model) Coverage() []Touched {
	var list []Touched
	for i := range m.regs.touched {
		u := &m.regs.touched[i]
		how := u.how.Load()
		if how == 0 {
			continue
		}
		off := uint32(i) * 4
		t := Touched{Off: off, Name: m.gen.mapName(off), Loaded: how>>loaded&1 != 0, Stored: how>>stored&1 != 0,
			Implemented: m.regs.desc[i].known}
		if text := m.gen.mapText(off); text != nil {
			for how, to := range []*string{&t.LoadedBits, &t.StoredBits} {
				if v := u.bits[how].Load(); v != 0 {
					*to = text(v)
				}
			}
		}
		list = append(list, t)
	}
	return list
}

// Registers returns the names of the databook for all registers of a generation, in
// ascending order of their offsets, those of every channel, queue and filter that a MAC
// can have.
func Registers(g Generation) []string {
	table := r4.Map
	if g == GMAC {
		table = rg.Map
	}
	type named struct {
		off  uint32
		name string
	}
	var all []named
	for _, r := range table {
		for i := range max(r.Count, 1) {
			off := r.Off + uint32(i)*r.Stride
			all = append(all, named{off, table.Name(off)})
		}
	}
	slices.SortFunc(all, func(a, b named) int { return cmp.Compare(a.off, b.off) })
	var names []string
	for _, n := range all {
		if len(names) == 0 || names[len(names)-1] != n.name { // two registers at one place
			names = append(names, n.name)
		}
	}
	return names
}

// mapText implements generation.
func (m *Model) mapText(off uint32) func(uint32) string { return textOf(r4.Map, m.mapOff(off)) }

// textOf is what tells the value of the register at off, or nil.
func textOf(t regs.Table, off uint32) func(uint32) string {
	if r, _ := t.Find(off); r != nil {
		return r.Text
	}
	return nil
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
