package gmac

import (
	"errors"
	"fmt"
	"net"

	"github.com/gostmmac/gostmmac/mmio"
	"github.com/gostmmac/gostmmac/stmmac/internal/core"
	"github.com/gostmmac/gostmmac/stmmac/internal/regs/gmacreg"
)

// The bits of MAC_Frame_Filter are those of package core.
var _ = [1]struct{}{}[uint32(gmacreg.PR|gmacreg.HUC|gmacreg.HMC|gmacreg.DAIF|gmacreg.PM|gmacreg.DBF|gmacreg.SAIF|gmacreg.SAF|gmacreg.HPF)-
	uint32(core.FilterPR|core.FilterHUC|core.FilterHMC|core.FilterDAIF|core.FilterPM|core.FilterDBF|core.FilterSAIF|core.FilterSAF|core.FilterHPF)]

// resetFilter notes that the filter registers have their reset values.
func (h *HW) resetFilter() {
	h.filter.Reset(filterRegs{h}, h.feat.PerfectFilters, h.feat.HashBins)
}

// SetFilter implements core.Hardware. No register tells whether the device filters
// VLANs, so it is not asked to.
func (h *HW) SetFilter(f core.Filter) (core.FilterUse, error) {
	if err := f.Check(); err != nil {
		return core.FilterUse{}, h.fail("set filter", "", 0, err)
	}
	if len(f.VLANs) > 0 {
		return core.FilterUse{}, h.fail("set filter", "", 0, fmt.Errorf("a filter of VLANs: %w", errors.ErrUnsupported))
	}
	want, use, err := h.filter.Plan(&f)
	if err != nil {
		return use, h.fail("set filter", "", 0, err)
	}
	if err := h.filter.Change(want, true, func() error { return nil }); err != nil {
		return use, err
	}
	// The read flushes the stores: the filter is in force when this returns.
	if v := gmacreg.MACFrameFilter.Load(h.csr); uint32(v) == mmio.AllOnes {
		return use, h.fail("set filter", "MAC_Frame_Filter", uint32(v), core.ErrGone)
	}
	return use, nil
}

// filterRegs implements core.FilterRegs.
type filterRegs struct{ h *HW }

func (r filterRegs) StoreFilter(v core.FilterBits) {
	gmacreg.MACFrameFilter.Store(r.h.csr, gmacreg.FrameFilter(v))
}

// StoreHash: a table of 64 bins lies in two registers, the upper half first, and a
// larger one elsewhere.
func (r filterRegs) StoreHash(i int, v uint32) {
	switch {
	case r.h.feat.HashBins > 64:
		gmacreg.HashTableReg.At(i, 4).Store(r.h.csr, v)
	case i == 0:
		gmacreg.HashTableLow.Store(r.h.csr, v)
	default:
		gmacreg.HashTableHigh.Store(r.h.csr, v)
	}
}

func (r filterRegs) StoreSlot(i int, s core.FilterSlot) {
	var high gmacreg.AddressHigh
	if s != (core.FilterSlot{}) {
		high = gmacreg.AE
		if s.Source {
			high |= gmacreg.SA
		}
	}
	r.h.storeAddress(i, high, s.Addr)
}

// storeAddress writes address register pair i, which takes effect with its low
// half.
func (h *HW) storeAddress(i int, high gmacreg.AddressHigh, a [6]byte) {
	hi, lo := gmacreg.AddressAt(i)
	hi.Store(h.csr, high|gmacreg.ADDRHI.Of(uint32(a[5])<<8|uint32(a[4])))
	lo.Store(h.csr, uint32(a[3])<<24|uint32(a[2])<<16|uint32(a[1])<<8|uint32(a[0]))
}

// SetAddr implements core.Hardware.
func (h *HW) SetAddr(a net.HardwareAddr) error {
	h.storeAddress(0, gmacreg.AE, [6]byte(a))
	// The read flushes the stores: the address is in force when this returns.
	if v := gmacreg.MACAddressHigh.Load(h.csr); uint32(v) == mmio.AllOnes {
		return h.fail("set address", "MAC_Address0_High", uint32(v), core.ErrGone)
	}
	return nil
}
