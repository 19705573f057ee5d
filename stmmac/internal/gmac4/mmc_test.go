package gmac4

import (
	"sync"
	"testing"

	"github.com/gostmmac/gostmmac/mmio"
	"github.com/gostmmac/gostmmac/stmmac/internal/core"
	"github.com/gostmmac/gostmmac/stmmac/internal/regs/gmac4reg"
)

func TestMMCNames(t *testing.T) {
	for _, c := range []struct {
		feat core.Features
		n    int
		some map[string]uint32
	}{
		{core.Features{}, 0, nil},
		{core.Features{MMC: true}, 46, map[string]uint32{"Tx_Octet_Count_Good_Bad": 0x714, "Rx_Control_Packets_Good": 0x7e4}},
		{core.Features{MMC: true, HalfDuplex: true}, 52, map[string]uint32{"Tx_Late_Collision_Packets": 0x758, "Tx_Excessive_Deferral_Error": 0x76c}},
		{core.Features{MMC: true, EEE: true}, 50, map[string]uint32{"Rx_LPI_Tran_Cntr": 0x7f8}},
		{core.Features{MMC: true, RxChecksum: true}, 74, map[string]uint32{"RxIPv4_Good_Packets": 0x810, "RxICMP_Error_Octets": 0x884}},
		{core.Features{MMC: true, FramePreemption: true}, 52, map[string]uint32{"MMC_Tx_Hold_Req_Cntr": 0x8ac, "MMC_Rx_FPE_Fragment_Cntr": 0x8d4}},
		{core.Features{MMC: true, HalfDuplex: true, EEE: true, RxChecksum: true, FramePreemption: true}, 90, nil},
	} {
		got := map[string]uint32{}
		last := uint32(0)
		for _, m := range mmcCounters(&c.feat) {
			if uint32(m.Reg) <= last {
				t.Errorf("%s at %#x stands behind %#x", m.Name, m.Reg, last)
			}
			last = uint32(m.Reg)
			got[m.Name] = last
		}
		if len(got) != c.n {
			t.Errorf("%+v has %d counters, want %d", c.feat, len(got), c.n)
		}
		for name, off := range c.some {
			if got[name] != off {
				t.Errorf("%s is at %#x, want %#x", name, got[name], off)
			}
		}
	}
}

// TestMMCSums: every counter is read once and added, over resets too, and what
// a device that is gone reads as is not.
func TestMMCSums(t *testing.T) {
	h, f := newHW(core.Config{}, core.Features{MMC: true, HalfDuplex: true, EEE: true, RxChecksum: true, FramePreemption: true})
	h.setupMMC()
	for _, off := range []uint32{0x70c, 0x710, 0x800, 0x8a4, 0x8c4} {
		if f.Peek(off) != mmio.AllOnes {
			t.Errorf("%s is %#x", gmac4reg.Map.Name(off), f.Peek(off))
		}
	}
	if v := gmac4reg.MMCControl.Load(f); v != gmac4reg.MMCCntRst|gmac4reg.MMCRstOnRd {
		t.Errorf("MMC_Control %v", v)
	}
	for _, c := range h.mmc.Counters() {
		f.ReadClear(uint32(c.Reg), mmio.AllOnes)
	}
	count := func(n uint32) {
		for i, c := range h.mmc.Counters() {
			f.Set(uint32(c.Reg), n+uint32(i))
		}
		h.ReadCounters()
	}
	want := func(sum func(i int) uint64) {
		t.Helper()
		i := 0
		for name, v := range h.Counters() {
			if v != sum(i) {
				t.Errorf("%s is %d, want %d", name, v, sum(i))
			}
			i++
		}
		if i != 90 {
			t.Errorf("%d counters", i)
		}
	}
	count(1000)
	count(0xffff0000)
	h.setupMMC()
	count(7)
	h.ReadCounters() // nothing more
	sum := func(i int) uint64 { return 1000 + 0xffff0000 + 7 + 3*uint64(i) }
	want(sum)

	// All ones is a count while the device answers.
	f.Set(uint32(h.mmc.Counters()[0].Reg), mmio.AllOnes)
	h.ReadCounters()
	first := func(i int) uint64 {
		if i == 0 {
			return sum(0) + 0xffffffff
		}
		return sum(i)
	}
	want(first)
	f.Set(uint32(gmac4reg.MACVersion), mmio.AllOnes)
	count(mmio.AllOnes - 89) // the last counter reads all ones
	for range h.Counters() {
		break
	}
	gone := func(i int) uint64 {
		if i == 89 {
			return first(i)
		}
		return first(i) + 0xffffffff - 89 + uint64(i)
	}
	want(gone)
}

// TestMMCReaders: readers at the same time share what was counted.
func TestMMCReaders(t *testing.T) {
	h, f := newHW(core.Config{}, core.Features{MMC: true})
	h.setupMMC()
	off := uint32(gmac4reg.RxPacketsCountGoodBad)
	f.OnLoad(off, func(uint32) uint32 { return 1 })
	f.ResetLog()
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 20 {
				h.ReadCounters()
				for range h.Counters() {
				}
			}
		})
	}
	wg.Wait()
	loads := uint64(0)
	for _, a := range f.Log() {
		if a.Off == off {
			loads++
		}
	}
	for name, v := range h.Counters() {
		if name == "Rx_Packets_Count_Good_Bad" && (v != loads || v != 80) {
			t.Errorf("%d counted in %d reads", v, loads)
		}
	}
}
