package gmac4

import (
	"iter"

	"github.com/gostmmac/gostmmac/mmio"
	"github.com/gostmmac/gostmmac/stmmac/internal/core"
	"github.com/gostmmac/gostmmac/stmmac/internal/regs/gmac4reg"
)

// mmcBlocks are the counters by what a device must have for them.
var mmcBlocks = []struct {
	first, last uint32
	has         func(f *core.Features) bool
}{
	{gmac4reg.MMCTxFirst, gmac4reg.TxUnderflowErrorPackets, always},
	{gmac4reg.TxSingleCollisionGoodPackets, gmac4reg.TxExcessiveCollisionPackets, halfDuplex},
	{gmac4reg.TxCarrierErrorPackets, gmac4reg.TxPacketCountGood, always},
	{gmac4reg.TxExcessiveDeferralError, gmac4reg.TxExcessiveDeferralError, halfDuplex},
	{gmac4reg.TxPausePackets, gmac4reg.MMCTxLast, always},
	{gmac4reg.MMCRxFirst, gmac4reg.MMCRxLast, always},
	{gmac4reg.TxLPIUSEC, gmac4reg.RxLPITran, func(f *core.Features) bool { return f.EEE }},
	{gmac4reg.RxIPv4GoodPackets, gmac4reg.RxICMPErrorPackets + gmac4reg.IPCOctets, func(f *core.Features) bool { return f.RxChecksum }},
	{gmac4reg.TxFPEFragment, gmac4reg.TxHoldReq, preemption},
	{gmac4reg.RxPacketAssemblyErr, gmac4reg.RxFPEFragment, preemption},
}

func always(*core.Features) bool       { return true }
func halfDuplex(f *core.Features) bool { return f.HalfDuplex }
func preemption(f *core.Features) bool { return f.FramePreemption }

// mmcCounters are the counters of a device. Their names are those of the
// register map.
func mmcCounters(f *core.Features) []core.MMCCounter {
	var out []core.MMCCounter
	for _, b := range mmcBlocks {
		if !f.MMC || !b.has(f) {
			continue
		}
		for off := b.first; off <= b.last; off += 4 {
			if name := gmac4reg.Map.Name(off); name != "" {
				out = append(out, core.MMCCounter{Reg: mmio.Reg[uint32](off), Name: name})
			}
		}
	}
	return out
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
