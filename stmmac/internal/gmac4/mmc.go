package gmac4

import (
	"iter"

	"github.com/gostmmac/gostmmac/mmio"
	"github.com/gostmmac/gostmmac/stmmac/internal/core"
	"github.com/gostmmac/gostmmac/stmmac/internal/regs/gmac4reg"
)

// mmcBlocks are the counters by what a device must have for them.
var mmcBlocks = []core.MMCBlock{
	{First: gmac4reg.MMCTxFirst, Last: gmac4reg.TxUnderflowErrorPackets, Has: always},
	{First: gmac4reg.TxSingleCollisionGoodPackets, Last: gmac4reg.TxExcessiveCollisionPackets, Has: halfDuplex},
	{First: gmac4reg.TxCarrierErrorPackets, Last: gmac4reg.TxPacketCountGood, Has: always},
	{First: gmac4reg.TxExcessiveDeferralError, Last: gmac4reg.TxExcessiveDeferralError, Has: halfDuplex},
	{First: gmac4reg.TxPausePackets, Last: gmac4reg.MMCTxLast, Has: always},
	{First: gmac4reg.MMCRxFirst, Last: gmac4reg.MMCRxLast, Has: always},
	{First: gmac4reg.TxLPIUSEC, Last: gmac4reg.RxLPITran, Has: func(f *core.Features) bool { return f.EEE }},
	{First: gmac4reg.RxIPv4GoodPackets, Last: gmac4reg.RxICMPErrorPackets + gmac4reg.IPCOctets, Has: func(f *core.Features) bool { return f.RxChecksum }},
	{First: gmac4reg.TxFPEFragment, Last: gmac4reg.TxHoldReq, Has: preemption},
	{First: gmac4reg.RxPacketAssemblyErr, Last: gmac4reg.RxFPEFragment, Has: preemption},
}

func always(*core.Features) bool       { return true }
func halfDuplex(f *core.Features) bool { return f.HalfDuplex }
func preemption(f *core.Features) bool { return f.FramePreemption }

// mmcCounters are the counters of a device.
func mmcCounters(f *core.Features) []core.MMCCounter {
	return core.MMCCounters(f, mmcBlocks, gmac4reg.Map.Name)
}

// setupMMC masks the interrupts of all counters and starts them from 0. The
// sums stay: they are those since the MAC was opened, whatever was reset.
func (h *HW) setupMMC() {
	if !h.feat.MMC {
		return
	}
	h.mmc.Start(func() []core.MMCCounter { return mmcCounters(&h.feat) }, func() {
		gmac4reg.MMCRxInterruptMask.Store(h.csr, ^uint32(0))
		gmac4reg.MMCTxInterruptMask.Store(h.csr, ^uint32(0))
		gmac4reg.MMCIPCInterruptMask.Store(h.csr, ^uint32(0))
		if h.feat.FramePreemption {
			gmac4reg.MMCFPETxInterruptMask.Store(h.csr, ^uint32(0))
			gmac4reg.MMCFPERxInterruptMask.Store(h.csr, ^uint32(0))
		}
		gmac4reg.MMCControl.Store(h.csr, gmac4reg.MMCCntRst|gmac4reg.MMCRstOnRd)
	})
}

// ReadCounters implements core.Hardware. It is called once a second while the
// MAC runs, and before a reset, which clears the counters.
func (h *HW) ReadCounters() {
	h.mmc.Read(h.csr, func() bool { return uint32(gmac4reg.MACVersion.Load(h.csr)) == mmio.AllOnes })
}

// ForgetCounters implements core.Hardware.
func (h *HW) ForgetCounters() { h.mmc.Forget() }

// Counters implements core.Hardware.
func (h *HW) Counters() iter.Seq2[string, uint64] { return h.mmc.All() }
