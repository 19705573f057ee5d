package gmac

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/gostmmac/gostmmac/mmio"
	"github.com/gostmmac/gostmmac/stmmac/internal/core"
	"github.com/gostmmac/gostmmac/stmmac/internal/regs"
	"github.com/gostmmac/gostmmac/stmmac/internal/regs/gmacreg"
)

// Dump implements core.Hardware.
func (h *HW) Dump() ([]core.Register, error) {
	list, ok := core.ReadRegisters(h.csr, h.dumpable(), h.gone)
	if !ok {
		return list, h.fail("read registers", "Version", mmio.AllOnes, core.ErrGone)
	}
	return list, nil
}

// dumpable are the registers that this device has and that a read does not
// change, by their offsets.
func (h *HW) dumpable() []core.Dumped {
	var list []core.Dumped
	for _, r := range gmacreg.Map {
		if r.Read != regs.ReadPlain || !h.has(&r) {
			continue
		}
		for i := range max(r.Count, 1) {
			d := core.Dumped{Text: r.Text}
			d.Name, d.Off = r.Name, r.Off+uint32(i)*r.Stride
			if r.Count > 0 {
				d.Name = fmt.Sprintf(r.Name, i)
			}
			if d.Off < h.csr.Len() && h.hasAt(d.Off) {
				list = append(list, d)
			}
		}
	}
	slices.SortStableFunc(list, func(a, b core.Dumped) int { return cmp.Compare(a.Off, b.Off) })
	return list
}

// has says whether the device has a register, by the name that it or the first of
// its kind has, where that follows from the features.
func (h *HW) has(r *regs.Register) bool {
	f := &h.feat
	switch {
	case strings.HasPrefix(r.Name, "GMII_"):
		return f.MDIO
	case strings.HasPrefix(r.Name, "MMC_IPC_"):
		return f.MMC && f.RxChecksum
	case strings.HasPrefix(r.Name, "MMC_"):
		return f.MMC
	case r.Off == uint32(gmacreg.HashTableHigh), r.Off == uint32(gmacreg.HashTableLow):
		return f.HashBins == 64
	case r.Off == uint32(gmacreg.LPITimersControl):
		return f.EEE
	case r.Off == uint32(gmacreg.ANControl):
		return f.PCS
	case r.Off == uint32(gmacreg.ReceiveWatchdog):
		return f.Version >= version350
	case r.Off == uint32(gmacreg.AXIBusMode), r.Off == uint32(gmacreg.AHBAXIStatus):
		a := &h.cfg.AXI
		return a.MaxReads != 0 || a.MaxWrites != 0 || a.BurstLens != 0
	}
	return true
}

// hasAt is has for elements of an array, by their offset.
func (h *HW) hasAt(off uint32) bool {
	f := &h.feat
	if first := uint32(gmacreg.HashTableReg); off >= first && off < first+4*gmacreg.HashWords {
		return f.HashBins > 64 && int(off-first)*8 < f.HashBins
	}
	for i := range gmacreg.AddressCount {
		if high, low := gmacreg.AddressAt(i); off == uint32(high) || off == uint32(low) {
			return i <= f.PerfectFilters
		}
	}
	return true
}
