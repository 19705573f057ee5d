package stmmac_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/gostmmac/gostmmac/mmio"
	"github.com/gostmmac/gostmmac/stmmac"
	"github.com/gostmmac/gostmmac/stmmac/internal/regs"
	"github.com/gostmmac/gostmmac/stmmac/internal/regs/gmac4reg"
	"github.com/gostmmac/gostmmac/stmmac/sim"
)

// modelHas are the registers of the map that the model has, found by reading them
// all, without those that a read changes.
func modelHas(r *rig, lay regs.Layout) map[string]uint32 {
	csr, err := r.dev.Region(0)
	r.must(err)
	has := map[string]uint32{}
	for _, e := range gmac4reg.Map {
		for i := range max(e.Count, 1) {
			off, name := e.Off+uint32(i)*e.Stride, e.Name
			switch d := gmac4reg.DefaultLayout; {
			case strings.HasPrefix(name, "MTL_") && e.Count > 0:
				off = e.Off - d.MTLBase + lay.MTLBase + uint32(i)*lay.MTLStride
			case strings.HasPrefix(name, "DMA_") && e.Count > 0:
				off = e.Off - d.DMABase + lay.DMABase + uint32(i)*lay.DMAStride
			}
			if e.Count > 0 {
				name = fmt.Sprintf(e.Name, i)
			}
			before := r.dev.Stats().Unknown
			csr.Load32(off)
			if off < csr.Len() && r.dev.Stats().Unknown == before && e.Read == regs.ReadPlain {
				has[name] = off
			}
		}
	}
	return has
}

// TestDump compares the registers of a dump with those that the model has.
func TestDump(t *testing.T) {
	moved := regs.Layout{DMABase: 0x8100, DMAStride: 0x1000, MTLBase: 0x8000 + 0xd00 - 0x800, MTLStride: 0x1000}
	var all sim.Config
	all.EnableAll()
	for name, c := range map[string]sim.Config{
		"one queue": {},
		"all":       all,
		"eight":     {RxQueues: 8, TxQueues: 8, HashBins: 256},
		"two, five": {RxQueues: 2, TxQueues: 5, HashBins: 128, AddrWidth: 40},
		"bare": {AddrWidth: 32, NoRxChecksum: true, NoTxChecksum: true, NoVLANInsert: true, NoDoubleVLAN: true, NoVLANHash: true,
			VLANFilters: 1, NoMDIO: true, Version: 0x40},
		"moved": {RxQueues: 2, TxQueues: 2, Layout: moved},
	} {
		t.Run(name, func(t *testing.T) {
			lay := gmac4reg.DefaultLayout
			if c.Layout != (regs.Layout{}) {
				lay = c.Layout
			}
			r := newRig(t, rigConfig{sim: c, opts: []stmmac.Option{stmmac.WithConfig(func(cfg *stmmac.Config) { cfg.Layout = c.Layout })}})
			before := r.dev.Stats()
			got := map[string]uint32{}
			for reg := range r.mac.Dump() {
				got[reg.Name] = reg.Off
			}
			after := r.dev.Stats()
			if after.Unknown != before.Unknown || after.Stores != before.Stores || after.Loads-before.Loads != uint64(len(got)) {
				t.Errorf("%d registers: %+v, then %+v", len(got), before, after)
			}
			want := modelHas(r, lay)
			// The model has these whatever its number of queues.
			for name, least := range map[string]int{"MAC_TxQ_Prty_Map1": 5, "MAC_RxQ_Ctrl3": 5, "MTL_RxQ_DMA_Map1": 5, "DMA_Debug_Status1": 4, "DMA_Debug_Status2": 8} {
				if max(c.RxQueues, c.TxQueues) < least || name[:4] != "DMA_" && !strings.Contains(name, "TxQ") && c.RxQueues < least {
					delete(want, name)
				}
			}
			for name := range maps.Keys(want) {
				if got[name] != want[name] {
					t.Errorf("%s is at %#x in the dump and at %#x in the model", name, got[name], want[name])
				}
			}
			for name := range maps.Keys(got) {
				if _, ok := want[name]; !ok {
					t.Errorf("the model has no %s", name)
				}
			}
			r.flows(1)
		})
	}
}

// TestDumpValues: what the driver has programmed is in the dump, by the databook's
// words, and the counts that a read would clear are still there.
func TestDumpValues(t *testing.T) {
	r := newRig(t, rigConfig{sim: sim.Config{RxQueues: 2, TxQueues: 2}, opts: []stmmac.Option{stmmac.WithQueues(2, 2)}})
	r.flows(1)
	regs := map[string]stmmac.Register{}
	for range 2 {
		for reg := range r.mac.Dump() {
			regs[reg.Name] = reg
		}
	}
	for name, want := range map[string][]string{
		"MAC_Configuration":        {"RE", "TE", "DM", "JE", "IPC"},
		"MAC_Packet_Filter":        {"PR"},
		"MAC_Version":              {"SNPSVER=82"},
		"MTL_TxQ1_Operation_Mode":  {"TSF", "TXQEN=2", "TQS=31"},
		"MTL_RxQ0_Operation_Mode":  {"RSF", "DIS_TCP_EF", "RQS=31"},
		"DMA_CH1_Tx_Control":       {"ST", "OSF"},
		"DMA_CH0_Rx_Control":       {"SR", "RBSZ="},
		"DMA_CH0_Interrupt_Enable": {"FBEE", "AIE"},
		"DMA_SysBus_Mode":          {"BLEN16", "MB", "EAME", "RD_OSR_LMT=1"},
	} {
		words := strings.Split(regs[name].Bits, "|")
		for _, w := range want {
			if !slices.ContainsFunc(words, func(s string) bool { return s == w || strings.HasSuffix(w, "=") && strings.HasPrefix(s, w) }) {
				t.Errorf("no %s in %v", w, regs[name])
			}
		}
	}
	for name, v := range r.mac.Counters() {
		if name == "Rx_Packets_Count_Good_Bad" && v != 1 {
			t.Errorf("%s is %d", name, v)
		}
	}
	n := 0
	for range r.mac.Dump() {
		if n++; n == 3 {
			break
		}
	}
	// The body of the loop may change the MAC.
	for range r.mac.Dump() {
		r.must(r.mac.SetMTU(t.Context(), 2000))
		break
	}
	r.must(r.mac.Close())
	loads := r.dev.Stats().Loads
	for reg := range r.mac.Dump() {
		t.Error(reg)
	}
	if r.dev.Stats().Loads != loads {
		t.Error("registers of a closed MAC were read")
	}
}

// vanishing is a device whose registers are gone once it says so.
type vanishing struct {
	stmmac.Device
	gone bool
}

func (d *vanishing) Region(i int) (stmmac.Region, error) {
	r, err := d.Device.Region(i)
	return vanishingRegion{r, d}, err
}

type vanishingRegion struct {
	stmmac.Region
	d *vanishing
}

func (r vanishingRegion) Load32(off uint32) uint32 {
	if r.d.gone {
		return mmio.AllOnes
	}
	return r.Region.Load32(off)
}

// TestDumpGone: the dump of a device that is gone is empty, and the MAC is down.
func TestDumpGone(t *testing.T) {
	v := &vanishing{}
	r := newRig(t, rigConfig{wrap: func(d *sim.Device) stmmac.Device { v.Device = d; return v }})
	v.gone = true
	for reg := range r.mac.Dump() {
		t.Error(reg)
	}
	mustFail(t, r.mac.Err(), stmmac.ErrGone, "dump", "MAC_Version")
	v.gone = false // so that it can be closed
}
