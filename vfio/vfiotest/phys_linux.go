package vfiotest

import "unsafe"

// physical gives pages of the process physical addresses when they are asked for.
// Without an IOMMU, devices reach those pages and no others.
type physical struct {
	page    uint64 // bytes
	base    uint64 // of the first gigabyte that is asked about
	scatter bool
	origin  uint64 // virtual address of that gigabyte
	known   bool   // origin is
	next    uint64 // frames given out by scattering and migration
	frames  map[uint64]uint64
	pages   map[uint64]uint64 // the reverse
	huge    map[uint64]bool   // huge pages of the process, by number
}

const (
	physBits = 52 // the most that amd64 and arm64 have
	// scattered pages start there: no linear one is as high unless it lies a
	// petabyte away.
	scatterBase = 1 << 50
)

// of is the physical address of the page at addr, which is mapped.
func (p *physical) of(addr uint64) uint64 {
	v := addr / p.page
	if f, ok := p.frames[v]; ok {
		return f*p.page + addr%p.page
	}
	if p.frames == nil {
		p.frames, p.pages = map[uint64]uint64{}, map[uint64]uint64{}
	}
	var f uint64
	switch block := addr / hugePage; {
	case p.scatter && p.huge[block] && p.page < hugePage:
		// The pages of a huge one stay together.
		n := hugePage / p.page
		first := roundUp(p.fresh(), n)
		p.next = first + n - scatterBase/p.page
		for i := range n {
			p.frames[block*n+i], p.pages[first+i] = first+i, block*n+i
		}
		return p.of(addr)
	case p.scatter:
		f = p.fresh()
	default:
		if !p.known {
			p.origin, p.known = addr&^(gib-1), true
		}
		f = (p.base + v*p.page - p.origin) & (1<<physBits - 1) / p.page
	}
	p.frames[v], p.pages[f] = f, v
	return f*p.page + addr%p.page
}

// addHuge notes huge pages.
func (p *physical) addHuge(mem []byte) {
	if p.huge == nil {
		p.huge = map[uint64]bool{}
	}
	for i := 0; i < len(mem); i += hugePage {
		p.huge[uint64(uintptr(unsafe.Pointer(&mem[i])))/hugePage] = true
	}
}

// forget drops what is known of memory that was unmapped.
func (p *physical) forget(addr, n uint64) {
	for v := addr / p.page; v < (addr+n)/p.page; v++ {
		if f, ok := p.frames[v]; ok {
			delete(p.pages, f)
			delete(p.frames, v)
		}
	}
	for b := addr / hugePage; b < (addr+n)/hugePage; b++ {
		delete(p.huge, b)
	}
}

// fresh is a frame that continues no other.
func (p *physical) fresh() uint64 {
	p.next += 2
	return scatterBase/p.page + p.next
}

// at is the virtual address of n bytes from a physical one, if they are known pages
// that are neighbours.
func (p *physical) at(addr, n uint64) (virt uint64, why string) {
	if n == 0 || addr+n < addr {
		return 0, "the range is empty or wraps"
	}
	v, ok := p.pages[addr/p.page]
	if !ok {
		return 0, "the process did not ask for the physical address of such a page"
	}
	virt = v*p.page + addr%p.page
	for f := addr/p.page + 1; f <= (addr+n-1)/p.page; f++ {
		v++
		if w, ok := p.pages[f]; !ok || w != v {
			return 0, "it crosses pages that are not adjacent in the process"
		}
	}
	if !mapped(virt, n) {
		return 0, "the process unmapped the memory"
	}
	return virt, ""
}

// Migrate gives the page of the process at addr another physical address, as the
// kernel may do with memory that is not pinned. What was told before is stale.
func (k *Kernel) Migrate(addr uintptr) {
	k.mu.Lock()
	defer k.unlock()
	p := &k.phys
	k.phys.of(uint64(addr))
	v := uint64(addr) / p.page
	delete(p.pages, p.frames[v])
	f := p.fresh()
	p.frames[v], p.pages[f] = f, v
}

// pagemapEntry is the entry of /proc/self/pagemap for a page.
func (k *Kernel) pagemapEntry(page uint64) uint64 {
	const present, frame = 1 << 63, 1<<55 - 1
	size := uint64(k.cfg.PageSize)
	if page > unlimited/size || !mapped(page*size, size) {
		return 0
	}
	if k.cfg.Pagemap == PagemapHidden {
		return present
	}
	return present | k.phys.of(page*size)/size&frame
}

// getPA serves IOMMU_IOAS_NOIOMMU_GET_PA on an address that is mapped at m.
func (k *Kernel) getPA(m *Mapping, iova, most uint64) (pa, n uint64) {
	addr := m.Addr + iova - m.IOVA
	left := min(m.IOVA+m.Size-iova, most)
	pa = k.phys.of(addr)
	n = k.phys.page - addr%k.phys.page
	for n < left && k.phys.of(addr+n) == pa+n {
		n += k.phys.page
	}
	return pa, min(n, left)
}
