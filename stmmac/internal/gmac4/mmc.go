package gmac4

import (
	"iter"
	"sync"

	"github.com/gostmmac/gostmmac/mmio"
	"github.com/gostmmac/gostmmac/stmmac/internal/core"
	"github.com/gostmmac/gostmmac/stmmac/internal/regs/gmac4reg"
)

// mmcState are the sums of the MMC counters.
//
// The counters have 32 bits and a read clears them (RSTONRD), so there is one
// reader, and it must come before one wraps: at 2.5 Gbit/s those of octets do
// after 13.7 s, those of packets after 19 minutes.
type mmcState struct {
	mu   sync.Mutex
	have []mmcCounter // in the order of their registers
}

type mmcCounter struct {
	reg  mmio.Reg[uint32]
	name string
	sum  uint64
}

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
func mmcCounters(f *core.Features) []mmcCounter {
	var out []mmcCounter
	for _, b := range mmcBlocks {
		if !f.MMC || !b.has(f) {
			continue
		}
		for off := b.first; off <= b.last; off += 4 {
			if name := gmac4reg.Map.Name(off); name != "" {
				out = append(out, mmcCounter{reg: mmio.Reg[uint32](off), name: name})
			}
		}
	}
	return out
}

// setupMMC masks the interrupts of all counters and starts them from 0. The
// sums stay: they are those since the MAC was opened, whatever was reset.
func (h *HW) setupMMC() {
	h.mmc.mu.Lock()
	defer h.mmc.mu.Unlock()
	if !h.feat.MMC {
		return
	}
	if h.mmc.have == nil {
		h.mmc.have = mmcCounters(&h.feat)
	}
	gmac4reg.MMCRxInterruptMask.Store(h.csr, ^uint32(0))
	gmac4reg.MMCTxInterruptMask.Store(h.csr, ^uint32(0))
	gmac4reg.MMCIPCInterruptMask.Store(h.csr, ^uint32(0))
	if h.feat.FramePreemption {
		gmac4reg.MMCFPETxInterruptMask.Store(h.csr, ^uint32(0))
		gmac4reg.MMCFPERxInterruptMask.Store(h.csr, ^uint32(0))
	}
	gmac4reg.MMCControl.Store(h.csr, gmac4reg.MMCCntRst|gmac4reg.MMCRstOnRd)
}

// ReadCounters implements core.Hardware. It is called once a second while the
// MAC runs, and before a reset, which clears the counters.
func (h *HW) ReadCounters() {
	h.mmc.mu.Lock()
	defer h.mmc.mu.Unlock()
	for i := range h.mmc.have {
		c := &h.mmc.have[i]
		v := c.reg.Load(h.csr)
		if v == mmio.AllOnes && uint32(gmac4reg.MACVersion.Load(h.csr)) == mmio.AllOnes {
			return // the device is gone
		}
		c.sum += uint64(v)
	}
}

// ForgetCounters implements core.Hardware.
func (h *HW) ForgetCounters() {
	h.mmc.mu.Lock()
	defer h.mmc.mu.Unlock()
	for i := range h.mmc.have {
		h.mmc.have[i].sum = 0
	}
}

// Counters implements core.Hardware.
func (h *HW) Counters() iter.Seq2[string, uint64] {
	return func(yield func(string, uint64) bool) {
		h.mmc.mu.Lock()
		have := append([]mmcCounter(nil), h.mmc.have...)
		h.mmc.mu.Unlock()
		for _, c := range have {
			if !yield(c.name, c.sum) {
				return
			}
		}
	}
}
