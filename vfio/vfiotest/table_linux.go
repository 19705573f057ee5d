package vfiotest

import (
	"cmp"
	"slices"
)

// Mapping is memory of the process that devices can reach.
type Mapping struct {
	Space       string // "container 1", "ioas 2": the IOVA space
	IOVA, Size  uint64 // bytes
	Addr        uint64 // virtual address in the process
	Read, Write bool   // what devices may do
}

func (m *Mapping) last() uint64 { return m.IOVA + m.Size - 1 }

// table has the mappings of an IOVA space in the order of their addresses.
type table struct {
	maps  []Mapping
	bytes uint64
}

// from is the index of the first mapping that ends at iova or later.
func (t *table) from(iova uint64) int {
	i, _ := slices.BinarySearchFunc(t.maps, iova, func(m Mapping, iova uint64) int { return cmp.Compare(m.last(), iova) })
	return i
}

// overlaps says that a mapping has a byte from first to last.
func (t *table) overlaps(first, last uint64) bool {
	i := t.from(first)
	return i < len(t.maps) && t.maps[i].IOVA <= last
}

// bisects says that first or last is inside a mapping that goes beyond it.
func (t *table) bisects(first, last uint64) bool {
	if i := t.from(first); i < len(t.maps) && t.maps[i].IOVA < first {
		return true
	}
	i := t.from(last)
	return i < len(t.maps) && t.maps[i].IOVA <= last && t.maps[i].last() > last
}

func (t *table) add(m Mapping) {
	t.maps = slices.Insert(t.maps, t.from(m.IOVA), m)
	t.bytes += m.Size
}

// remove takes the mappings that start from first to last, and returns their bytes.
func (t *table) remove(first, last uint64) uint64 {
	i := t.from(first)
	if i < len(t.maps) && t.maps[i].IOVA < first {
		i++
	}
	j, n := i, uint64(0)
	for j < len(t.maps) && t.maps[j].IOVA <= last {
		n += t.maps[j].Size
		j++
	}
	t.maps = slices.Delete(t.maps, i, j)
	t.bytes -= n
	return n
}

// lookup finds the memory behind n bytes from iova: one address if the mappings are
// neighbours in the process too.
func (t *table) lookup(iova, n uint64, read, write bool) (addr uint64, why string) {
	if n == 0 || iova+n-1 < iova {
		return 0, "the range is empty or wraps"
	}
	i := t.from(iova)
	if i == len(t.maps) || t.maps[i].IOVA > iova {
		return 0, "nothing is mapped there"
	}
	addr = t.maps[i].Addr + iova - t.maps[i].IOVA
	for end := addr; ; i++ {
		m := &t.maps[i]
		switch {
		case read && !m.Read:
			return 0, "the device may not read there"
		case write && !m.Write:
			return 0, "the device may not write there"
		case end != addr && m.Addr != end:
			return 0, "it crosses mappings that are not adjacent in the process"
		}
		if m.last() >= iova+n-1 {
			return addr, ""
		}
		end = m.Addr + m.Size
		if i+1 == len(t.maps) || t.maps[i+1].IOVA != m.last()+1 {
			return 0, "its end is not mapped"
		}
	}
}

// Mappings returns what is mapped in all containers and IOASes, in the order in
// which these were made and in the order of addresses.
func (k *Kernel) Mappings() []Mapping {
	k.mu.Lock()
	defer k.unlock()
	var all []Mapping
	collect := func(t *table, space string) {
		for _, m := range t.maps {
			m.Space = space
			all = append(all, m)
		}
	}
	for _, c := range k.containers {
		collect(&c.maps, c.name)
	}
	for _, u := range k.iommufds {
		for _, id := range u.ids() {
			if s, ok := u.objects[id].(*ioas); ok {
				collect(&s.maps, s.name)
			}
		}
	}
	return all
}

// mayLock says that the process may lock n more bytes where have are locked.
func (k *Kernel) mayLock(have, n uint64) bool {
	return k.cfg.CapIPCLock || n <= k.cfg.Memlock && have <= k.cfg.Memlock-n
}

// within says that one of the ranges has all from first to last.
func within(ranges []Range, first, last uint64) bool {
	return slices.ContainsFunc(ranges, func(r Range) bool { return r.First <= first && last <= r.Last })
}
