package gmac

import (
	"iter"

	"github.com/gostmmac/gostmmac/stmmac/internal/core"
	"github.com/gostmmac/gostmmac/stmmac/internal/regs/gmacreg"
)

// mmcBlocks are the counters by what a device must have for them.
var mmcBlocks = []core.MMCBlock{
	{First: gmacreg.MMCTxFirst, Last: gmacreg.TxUnderflowError, Has: always},
	{First: gmacreg.TxSingleColG, Last: gmacreg.TxExessCol, Has: halfDuplex},
	{First: gmacreg.TxCarrierError, Last: gmacreg.TxFrameCountG, Has: always},
	{First: gmacreg.TxExcessDef, Last: gmacreg.TxExcessDef, Has: halfDuplex},
	{First: gmacreg.TxPauseFrames, Last: gmacreg.MMCTxLast, Has: always},
	{First: gmacreg.MMCRxFirst, Last: gmacreg.MMCRxLast, Has: always},
	{First: gmacreg.MMCIPCFirst, Last: gmacreg.MMCIPCLast, Has: checksums},
}

func always(*core.Features) bool       { return true }
func halfDuplex(f *core.Features) bool { return f.HalfDuplex }
func checksums(f *core.Features) bool  { return f.RxChecksum }

// mmcCounters are the counters of a device.
func mmcCounters(f *core.Features) []core.MMCCounter {
	return core.MMCCounters(f, mmcBlocks, gmacreg.Map.Name)
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
