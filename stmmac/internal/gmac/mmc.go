package gmac

import (
	"iter"

	"github.com/gostmmac/gostmmac/mmio"
	"github.com/gostmmac/gostmmac/stmmac/internal/core"
	"github.com/gostmmac/gostmmac/stmmac/internal/regs/gmacreg"
)

// mmcBlocks are the counters by what a device must have for them.
var mmcBlocks = []struct {
	first, last uint32
	has         func(f *core.Features) bool
}{
	{gmacreg.MMCTxFirst, gmacreg.TxUnderflowError, always},
	{gmacreg.TxSingleColG, gmacreg.TxExessCol, halfDuplex},
	{gmacreg.TxCarrierError, gmacreg.TxFrameCountG, always},
	{gmacreg.TxExcessDef, gmacreg.TxExcessDef, halfDuplex},
	{gmacreg.TxPauseFrames, gmacreg.MMCTxLast, always},
	{gmacreg.MMCRxFirst, gmacreg.MMCRxLast, always},
	{gmacreg.MMCIPCFirst, gmacreg.MMCIPCLast, checksums},
}

func always(*core.Features) bool       { return true }
func halfDuplex(f *core.Features) bool { return f.HalfDuplex }
func checksums(f *core.Features) bool  { return f.RxChecksum }

// mmcCounters are the counters of a device. Their names are those of the
// register map.
func mmcCounters(f *core.Features) []core.MMCCounter {
	var out []core.MMCCounter
	for _, b := range mmcBlocks {
		if !f.MMC || !b.has(f) {
			continue
		}
		for off := b.first; off <= b.last; off += 4 {
			if name := gmacreg.Map.Name(off); name != "" {
				out = append(out, core.MMCCounter{Reg: mmio.Reg[uint32](off), Name: name})
			}
		}
	}
	return out
}

// setupMMC masks the interrupts of all counters, which none is after a reset, and
// starts them from 0.
func (h *HW) setupMMC() {
	if !h.feat.MMC {
		return
	}
	h.mmc.Start(func() []core.MMCCounter { return mmcCounters(&h.feat) }, func() {
		gmacreg.MMCRxInterruptMask.Store(h.csr, ^uint32(0))
		gmacreg.MMCTxInterruptMask.Store(h.csr, ^uint32(0))
		gmacreg.MMCIPCInterruptMask.Store(h.csr, ^uint32(0))
		gmacreg.MMCControl.Store(h.csr, gmacreg.MMCCntRst|gmacreg.MMCRstOnRd)
	})
}

// ReadCounters implements core.Hardware. It is called once a second while the
// MAC runs, and before a reset, which clears the counters.
func (h *HW) ReadCounters() { h.mmc.Read(h.csr, h.gone) }

// ForgetCounters implements core.Hardware.
func (h *HW) ForgetCounters() { h.mmc.Forget() }

// Counters implements core.Hardware.
func (h *HW) Counters() iter.Seq2[string, uint64] { return h.mmc.All() }
