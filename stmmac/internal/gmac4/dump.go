package gmac4

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/gostmmac/gostmmac/mmio"
	"github.com/gostmmac/gostmmac/stmmac/internal/core"
	"github.com/gostmmac/gostmmac/stmmac/internal/regs"
	"github.com/gostmmac/gostmmac/stmmac/internal/regs/gmac4reg"
)

// Dump implements core.Hardware.
func (h *HW) Dump() ([]core.Register, error) {
	list, ok := core.ReadRegisters(h.csr, h.dumpable(), func() bool { return uint32(gmac4reg.MACVersion.Load(h.csr)) == mmio.AllOnes })
	if !ok {
		return list, h.fail("read registers", "MAC_Version", mmio.AllOnes, core.ErrGone)
	}
	return list, nil
}

// dumpable are the registers that this device has and that a read does not
// change, by their offsets.
func (h *HW) dumpable() []core.Dumped {
	var list []core.Dumped
	for _, r := range gmac4reg.Map {
		if r.Read != regs.ReadPlain {
			continue
		}
		for i := range min(h.count(&r), max(r.Count, 1)) {
			d := core.Dumped{Text: r.Text}
			d.Name, d.Off = r.Name, h.place(&r, i)
			if r.Count > 0 {
				d.Name = fmt.Sprintf(r.Name, i)
			}
			if h.feat.Version < version410 && r.Off == gmac4reg.DefaultLayout.DMABase+uint32(gmac4reg.DMACHInterruptEnable) {
				d.Text = func(v uint32) string { return gmac4reg.CHInterrupt(v).Text400() }
			}
			if d.Off < h.csr.Len() {
				list = append(list, d)
			}
		}
	}
	slices.SortStableFunc(list, func(a, b core.Dumped) int { return cmp.Compare(a.Off, b.Off) })
	return list
}

// place is where element i of a register of the map lies in this device.
func (h *HW) place(r *regs.Register, i int) uint32 {
	l := &gmac4reg.DefaultLayout
	switch n := uint32(i); {
	case r.Stride == l.MTLStride && r.Off >= l.MTLBase && r.Off < l.MTLBase+l.MTLStride:
		return h.lay.MTLBase + r.Off - l.MTLBase + n*h.lay.MTLStride
	case r.Stride == l.DMAStride && r.Off >= l.DMABase && r.Off < l.DMABase+l.DMAStride:
		return h.lay.DMABase + r.Off - l.DMABase + n*h.lay.DMAStride
	default:
		return r.Off + n*r.Stride
	}
}

// counts says how many of a register a device has whose number follows from its
// features; the first rule whose words are all in the name holds. There is one of
// the others.
var counts = []struct {
	words []string
	n     func(f *core.Features) int
}{
	{[]string{"MAC_Hash_Table"}, func(f *core.Features) int { return f.HashBins / 32 }},
	{[]string{"MAC_VLAN_Hash_Table"}, func(f *core.Features) int { return one(f.VLANHash) }},
	{[]string{"MAC_VLAN_Incl"}, func(f *core.Features) int { return one(f.AddressInsert) }},
	{[]string{"MAC_Inner_VLAN_Incl"}, func(f *core.Features) int { return one(f.AddressInsert && f.DoubleVLAN) }},
	{[]string{"MAC_Q%d_Tx_Flow_Ctrl"}, func(f *core.Features) int { return f.TxQueues }},
	{[]string{"MAC_TxQ_Prty_Map1"}, func(f *core.Features) int { return one(f.TxQueues > 4) }},
	{[]string{"MAC_RxQ_Ctrl3"}, func(f *core.Features) int { return one(f.RxQueues > 4) }},
	{[]string{"MAC_MDIO_"}, func(f *core.Features) int { return one(f.MDIO) }},
	{[]string{"MAC_Address%d_"}, func(f *core.Features) int { return 1 + f.PerfectFilters }},
	{[]string{"MAC_L3_L4_"}, l3l4Filters},
	{[]string{"MAC_Layer4_"}, l3l4Filters},
	{[]string{"MAC_Layer3_"}, l3l4Filters},
	{[]string{"MAC_ARP_"}, func(f *core.Features) int { return one(f.ARPOffload) }},
	{[]string{"MAC_LPI_"}, func(f *core.Features) int { return one(f.EEE) }},
	{[]string{"MAC_Ext_Cfg1"}, func(f *core.Features) int { return one(f.SplitHeader && f.Version >= version500) }},
	{[]string{"MAC_Timestamp_"}, timestamps},
	{[]string{"MAC_System_Time_"}, timestamps},
	{[]string{"MAC_Sub_Second_"}, timestamps},
	{[]string{"MMC_FPE_"}, func(f *core.Features) int { return one(f.MMC && f.FramePreemption) }},
	{[]string{"MMC_IPC_"}, func(f *core.Features) int { return one(f.MMC && f.RxChecksum) }},
	{[]string{"MMC_"}, func(f *core.Features) int { return one(f.MMC) }},

	{[]string{"MTL_RxQ_DMA_Map1"}, func(f *core.Features) int { return one(f.RxQueues > 4) }},
	{[]string{"MTL_TxQ%d_"}, func(f *core.Features) int { return f.TxQueues }},
	{[]string{"MTL_RxQ%d_"}, func(f *core.Features) int { return f.RxQueues }},
	{[]string{"MTL_Q%d_"}, func(f *core.Features) int { return max(f.RxQueues, f.TxQueues) }},

	{[]string{"DMA_Debug_Status1"}, func(f *core.Features) int { return one(channels(f) > 3) }},
	{[]string{"DMA_Debug_Status2"}, func(f *core.Features) int { return one(channels(f) > 7) }},
	{[]string{"DMA_TBS_CTRL"}, func(f *core.Features) int { return one(f.TimeBasedScheduling) }},
	{[]string{"DMA_CH%d_", "Slot_Function"}, func(f *core.Features) int { return one(f.AV) * f.TxChannels }},
	{[]string{"DMA_CH%d_", "Tx"}, func(f *core.Features) int { return f.TxChannels }},
	{[]string{"DMA_CH%d_", "Rx"}, func(f *core.Features) int { return f.RxChannels }},
	{[]string{"DMA_CH%d_"}, channels},
}

// count is how many of a register of the map this device has.
func (h *HW) count(r *regs.Register) int {
next:
	for _, c := range counts {
		for _, w := range c.words {
			if !strings.Contains(r.Name, w) {
				continue next
			}
		}
		return c.n(&h.feat)
	}
	return max(r.Count, 1)
}

func l3l4Filters(f *core.Features) int { return f.L3L4Filters }
func timestamps(f *core.Features) int  { return one(f.Timestamps) }

func channels(f *core.Features) int { return max(f.RxChannels, f.TxChannels) }

func one(has bool) int {
	if has {
		return 1
	}
	return 0
}
