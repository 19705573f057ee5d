package gmac4

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/gostmmac/gostmmac/mmio"
	"github.com/gostmmac/gostmmac/stmmac/internal/core"
	"github.com/gostmmac/gostmmac/stmmac/internal/regs"
	"github.com/gostmmac/gostmmac/stmmac/internal/regs/gmac4reg"
)

func byName(list []core.Register) map[string]core.Register {
	m := map[string]core.Register{}
	for _, r := range list {
		m[r.Name] = r
	}
	return m
}

// TestDumpReads: a dump stores nothing, reads every register once, in order, and
// none that a read changes.
func TestDumpReads(t *testing.T) {
	h, f := newHW(core.Config{}, core.Features{
		Version: 0x52, RxQueues: 8, TxQueues: 8, RxChannels: 8, TxChannels: 8, PerfectFilters: 31, HashBins: 256, AddrWidth: 48,
		MDIO: true, MMC: true, RxChecksum: true, FramePreemption: true, EEE: true, Timestamps: true, AV: true,
		L3L4Filters: 8, ARPOffload: true, SplitHeader: true, AddressInsert: true, DoubleVLAN: true, VLANHash: true, HalfDuplex: true, VLANFilters: 32, TimeBasedScheduling: true,
	})
	f.ResetLog()
	list, err := h.Dump()
	if err != nil {
		t.Fatal(err)
	}
	log := f.Log()
	if len(log) != len(list) || len(byName(list)) != len(list) {
		t.Errorf("%d accesses, %d registers, %d names", len(log), len(list), len(byName(list)))
	}
	for i, a := range log {
		if a.Store || a.Off != list[i].Off || i > 0 && a.Off <= log[i-1].Off {
			t.Errorf("access %d is %+v, the register %v", i, a, list[i])
		}
		if got := gmac4reg.Map.Name(a.Off); got != list[i].Name {
			t.Errorf("%s is %s", got, list[i].Name)
		}
	}
	// By the databook's words for them.
	for _, r := range list {
		for _, bad := range []string{"Cntr", "_Cnt", "Packets", "Octets", "Underflow", "Interrupt_Status", "PHYIF", "_Data", "LPI_Control", "PMT", "Timestamp_Status"} {
			if strings.Contains(r.Name, bad) && !strings.HasPrefix(r.Name, "DMA_Interrupt_Status") && !strings.HasPrefix(r.Name, "MTL_Interrupt_Status") {
				t.Errorf("%s was read", r.Name)
			}
		}
	}
	// The largest device has all of the map but those.
	n := 0
	for _, r := range gmac4reg.Map {
		switch {
		case r.Read != regs.ReadPlain:
		case strings.HasPrefix(r.Name, "MAC_Address%d"):
			n += 32
		default:
			n += max(r.Count, 1)
		}
	}
	if n != len(list) {
		t.Errorf("%d registers, want %d", len(list), n)
	}
}

// TestDumpOfSmall: a device without a feature has no registers of it.
func TestDumpOfSmall(t *testing.T) {
	h, f := newHW(core.Config{}, core.Features{Version: 0x40, RxQueues: 1, TxQueues: 2, RxChannels: 1, TxChannels: 2, AddrWidth: 32})
	f.Set(0x1134, uint32(gmac4reg.AIE400|gmac4reg.FBEE))
	f.Set(0x1000, uint32(gmac4reg.SWR|gmac4reg.INTM.Of(2)))
	list, err := h.Dump()
	if err != nil {
		t.Fatal(err)
	}
	got := byName(list)
	for name, want := range map[string]bool{
		"MAC_Configuration": true, "MAC_Address0_High": true, "MAC_Address1_High": false, "MAC_Hash_Table_Reg0": false,
		"MAC_MDIO_Address": false, "MMC_Control": false, "MTL_TxQ1_Operation_Mode": true, "MTL_RxQ1_Operation_Mode": false,
		"MTL_Q1_Interrupt_Control_Status": true, "DMA_CH1_Tx_Control": true, "DMA_CH1_Rx_Control": false, "DMA_CH1_Status": true,
		"DMA_CH2_Status": false, "DMA_CH0_TxDesc_List_Address": true,
		"DMA_Debug_Status0": true, "DMA_Debug_Status1": false, "MAC_VLAN_Incl": false, "MAC_RxQ_Ctrl3": false,
	} {
		if _, ok := got[name]; ok != want {
			t.Errorf("%s: %v, want %v", name, ok, want)
		}
	}
	if s := got["DMA_CH0_Interrupt_Enable"].Bits; s != "FBEE|AIE" {
		t.Error("of 4.00:", s)
	}
	if s := got["DMA_Mode"].String(); s != "DMA_Mode (0x1000) = 0x00020001 SWR|INTM=2" {
		t.Error(s)
	}
	if s := got["MAC_Address0_Low"].String(); s != "MAC_Address0_Low (0x0304) = 0x00000000" {
		t.Error(s)
	}
	h.feat.Version = 0x52
	f.Set(0x1134, uint32(gmac4reg.AIE|gmac4reg.FBEE))
	list, _ = h.Dump()
	if s := byName(list)["DMA_CH0_Interrupt_Enable"].Bits; s != "FBEE|AIE" {
		t.Error("of 5.20:", s)
	}
}

// TestDumpLayout: registers of channels and queues are read where the device has
// them, with the databook's names.
func TestDumpLayout(t *testing.T) {
	lay := regs.Layout{DMABase: 0x1200, DMAStride: 0x100, MTLBase: 0x0e00, MTLStride: 0x80}
	h, f := newHW(core.Config{Layout: lay}, core.Features{Version: 0x52, RxQueues: 2, TxQueues: 2, RxChannels: 2, TxChannels: 2, AddrWidth: 40})
	f.Set(0x1360, 1)
	f.Set(0x0eb0, 2)
	list, err := h.Dump()
	if err != nil {
		t.Fatal(err)
	}
	if !slices.IsSortedFunc(list, func(a, b core.Register) int { return int(a.Off) - int(b.Off) }) {
		t.Error("not in order")
	}
	got := byName(list)
	if r := got["DMA_CH1_Status"]; r.Off != 0x1360 || r.Val != 1 || r.Bits != "TI" {
		t.Error(r)
	}
	if r := got["MTL_RxQ1_Operation_Mode"]; r.Off != 0x0eb0 || r.Val != 2 || r.Bits != "RTC=2" {
		t.Error(r)
	}
	// A register file that ends early is not read beyond its end.
	short, _ := newHW(core.Config{Layout: lay}, h.feat)
	short.csr = mmio.Window(f, 0, 0x1300)
	if list, err = short.Dump(); err != nil || list[len(list)-1].Off >= 0x1300 {
		t.Error(list[len(list)-1], err)
	}
}

// TestDumpGone: the list ends where the device is gone; a register that is all ones
// is one like others while the device answers.
func TestDumpGone(t *testing.T) {
	h, f := newHW(core.Config{}, core.Features{Version: 0x52, RxQueues: 1, TxQueues: 1, RxChannels: 1, TxChannels: 1, AddrWidth: 32})
	f.Set(uint32(gmac4reg.MACAddressLow), mmio.AllOnes)
	list, err := h.Dump()
	if err != nil || byName(list)["MAC_Address0_Low"].Val != mmio.AllOnes {
		t.Fatal(err)
	}
	all := len(list)
	f.OnLoad(uint32(gmac4reg.MACAddressLow), func(uint32) uint32 {
		f.Set(uint32(gmac4reg.MACVersion), mmio.AllOnes)
		return mmio.AllOnes
	})
	list, err = h.Dump()
	if !errors.Is(err, core.ErrGone) || len(list) == 0 || len(list) >= all || list[len(list)-1].Name != "MAC_Address0_High" {
		t.Errorf("%v, %v", err, list)
	}
}
