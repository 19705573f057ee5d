package vfiotest

import (
	"math/bits"

	"golang.org/x/sys/unix"

	"github.com/gostmmac/gostmmac/vfio/internal/uapi"
)

// pageSizes are those that a container shows: none is smaller than a page.
func (k *Kernel) pageSizes() uint64 {
	sizes := k.cfg.IOMMUPageSizes
	if page := uint64(k.cfg.PageSize); sizes&(page-1) != 0 {
		sizes = sizes&^(page-1) | page
	}
	return sizes
}

// smallest is the smallest page that can be mapped.
func (k *Kernel) smallest() uint64 { return 1 << bits.TrailingZeros64(k.pageSizes()) }

func (c *container) info(arg []byte) error {
	const least, whole = 16, 24
	v, err := readArg[uapi.Type1Info](arg, least)
	if err != nil {
		return err
	}
	ranges := body(uint32(len(c.k.cfg.IOVARanges)), uint32(0))
	for _, r := range c.k.cfg.IOVARanges {
		ranges = append(ranges, body(r.First, r.Last)...)
	}
	const maxBitmap = 1 << 28 // bytes of dirty bitmap that a request may have
	caps := chain(whole, []capability{
		{uapi.Type1CapMigration, 1, body(uint32(0), uint32(0), c.k.smallest(), uint64(maxBitmap))},
		{uapi.Type1CapDMAAvail, 1, body(uint32(c.k.cfg.EntryLimit - len(c.maps.maps)))},
		{uapi.Type1CapIOVARange, 1, ranges},
	})
	v.Flags = uapi.Type1InfoPageSizes | uapi.Type1InfoCaps
	v.PageSizes = c.k.pageSizes()
	n := least
	if v.Argsz >= whole {
		n = whole
	}
	v.CapOffset = 0
	if need := whole + len(caps); int(v.Argsz) < need {
		v.Argsz = uint32(need)
	} else {
		v.CapOffset = whole
		copy(arg[whole:], caps)
	}
	writeArg(arg, &v, n)
	return nil
}

func (c *container) mapDMA(arg []byte) error {
	m, err := readArg[uapi.Type1Map](arg, 32)
	if err != nil {
		return err
	}
	mask := c.k.smallest() - 1
	last := m.IOVA + m.Size - 1
	switch {
	case m.Flags&^(uapi.MapRead|uapi.MapWrite) != 0 || m.Flags == 0:
		return unix.EINVAL
	case m.Size == 0 || (m.Size|m.IOVA|m.Vaddr)&mask != 0:
		return unix.EINVAL
	case last < m.IOVA || m.Vaddr+m.Size-1 < m.Vaddr:
		return unix.EINVAL
	case c.maps.overlaps(m.IOVA, last):
		return unix.EEXIST
	case len(c.maps.maps) >= c.k.cfg.EntryLimit:
		return unix.ENOSPC
	case !within(c.k.cfg.IOVARanges, m.IOVA, last):
		return unix.EINVAL
	case !c.k.mayLock(c.k.locked, m.Size):
		return unix.ENOMEM
	case !mapped(m.Vaddr, m.Size):
		return unix.EFAULT
	}
	c.maps.add(Mapping{IOVA: m.IOVA, Size: m.Size, Addr: m.Vaddr, Read: m.Flags&uapi.MapRead != 0, Write: m.Flags&uapi.MapWrite != 0})
	c.k.locked += m.Size
	return nil
}

const unmapAll = 1 << 1 // VFIO_DMA_UNMAP_FLAG_ALL

func (c *container) unmapDMA(arg []byte) error {
	const size = 24
	u, err := readArg[uapi.Type1Unmap](arg, size)
	if err != nil {
		return err
	}
	mask := c.k.smallest() - 1
	first, last := u.IOVA, u.IOVA+u.Size-1
	switch {
	case u.Flags&^unmapAll != 0:
		return unix.EINVAL
	case u.Flags == unmapAll:
		if u.IOVA != 0 || u.Size != 0 {
			return unix.EINVAL
		}
		first, last = 0, unlimited
	case u.Size == 0 || (u.Size|u.IOVA)&mask != 0 || last < first:
		return unix.EINVAL
	case c.typ == uapi.Type1v2IOMMU && c.maps.bisects(first, last):
		return unix.EINVAL
	}
	if n := c.k.short; n != nil {
		c.k.short = nil
		u.Size = *n
	} else {
		u.Size = c.maps.remove(first, last)
		c.k.locked -= u.Size
	}
	writeArg(arg, &u, size)
	return nil
}
