package gmac4

import (
	"net"

	"github.com/gostmmac/gostmmac/mmio"
	"github.com/gostmmac/gostmmac/stmmac/internal/core"
	"github.com/gostmmac/gostmmac/stmmac/internal/regs/gmac4reg"
)

// The bits of MAC_Packet_Filter are those of package core.
var _ = [1]struct{}{}[uint32(gmac4reg.PR|gmac4reg.HUC|gmac4reg.HMC|gmac4reg.DAIF|gmac4reg.PM|gmac4reg.DBF|gmac4reg.SAIF|gmac4reg.SAF|gmac4reg.HPF|gmac4reg.VTFE)-
	uint32(core.FilterPR|core.FilterHUC|core.FilterHMC|core.FilterDAIF|core.FilterPM|core.FilterDBF|core.FilterSAIF|core.FilterSAF|core.FilterHPF|core.FilterVTFE)]

// resetFilter notes that the filter registers have their reset values.
func (h *HW) resetFilter() {
	h.filter.Reset(filterRegs{h}, h.feat.PerfectFilters, h.feat.HashBins)
	h.vlan = vlanState{vids: make([]int, h.feat.VLANFilters)}
	for i := range h.vlan.vids {
		h.vlan.vids[i] = vidNone
	}
}

// SetFilter implements core.Hardware.
func (h *HW) SetFilter(f core.Filter) (core.FilterUse, error) {
	if err := f.Check(); err != nil {
		return core.FilterUse{}, h.fail("set filter", "", 0, err)
	}
	want, use, err := h.filter.Plan(&f)
	if err != nil {
		return use, h.fail("set filter", "", 0, err)
	}
	vlan, err := h.planVLANs(&f, &use)
	if err != nil {
		return use, h.fail("set filter", "", 0, err)
	}
	if err := h.filter.Change(want, vlan.sameKind(&h.vlan), func() error { return h.setVLANs(vlan) }); err != nil {
		return use, err
	}
	// The read flushes the stores: the filter is in force when this returns.
	if v := gmac4reg.MACPacketFilter.Load(h.csr); uint32(v) == mmio.AllOnes {
		return use, h.fail("set filter", "MAC_Packet_Filter", uint32(v), core.ErrGone)
	}
	return use, nil
}

// filterRegs implements core.FilterRegs.
type filterRegs struct{ h *HW }

func (r filterRegs) StoreFilter(v core.FilterBits) {
	gmac4reg.MACPacketFilter.Store(r.h.csr, gmac4reg.PacketFilter(v))
}

func (r filterRegs) StoreHash(i int, v uint32) { gmac4reg.MACHashTable.At(i, 4).Store(r.h.csr, v) }

func (r filterRegs) StoreSlot(i int, s core.FilterSlot) {
	var high gmac4reg.AddressHigh
	if s != (core.FilterSlot{}) {
		high = gmac4reg.AE
		if s.Source {
			high |= gmac4reg.SA
		}
	}
	r.h.storeAddress(i, high, s.Addr)
}

// storeAddress writes address register pair i, which takes effect with its low
// half.
func (h *HW) storeAddress(i int, high gmac4reg.AddressHigh, a [6]byte) {
	gmac4reg.MACAddressHigh.At(i, gmac4reg.AddressStride).Store(h.csr, high|gmac4reg.ADDRHI.Of(uint32(a[5])<<8|uint32(a[4])))
	gmac4reg.MACAddressLow.At(i, gmac4reg.AddressStride).Store(h.csr, uint32(a[3])<<24|uint32(a[2])<<16|uint32(a[1])<<8|uint32(a[0]))
}

// SetAddr implements core.Hardware.
func (h *HW) SetAddr(a net.HardwareAddr) error {
	h.storeAddress(0, gmac4reg.AE, [6]byte(a))
	// The read flushes the stores: the address is in force when this returns.
	if v := gmac4reg.MACAddressHigh.Load(h.csr); uint32(v) == mmio.AllOnes {
		return h.fail("set address", "MAC_Address0_High", uint32(v), core.ErrGone)
	}
	return nil
}
