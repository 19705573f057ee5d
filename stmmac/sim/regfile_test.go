package sim

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/gostmmac/gostmmac/mmio"
	"github.com/gostmmac/gostmmac/stmmac/internal/regs"
	r4 "github.com/gostmmac/gostmmac/stmmac/internal/regs/gmac4reg"
)

func TestFeaturesAndReset(t *testing.T) {
	g := newRig(t, withConfig(func(c *Config) {
		c.Version, c.UserVersion = 0x51, 0x10
		c.RxQueues, c.TxQueues = 4, 2
		c.RxFIFO, c.TxFIFO = 32768, 4096
		c.AddrWidth, c.HashBins = 40, 256
		c.Address = [6]byte{2, 3, 4, 5, 6, 7}
	}))
	for off, want := range map[uint32]uint32{
		uint32(r4.MACVersion):                   0x1051,
		uint32(r4.MACHWFeature0):                0x7 | 1<<4 | 1<<5 | 1<<8 | 1<<14 | 1<<16 | 31<<18 | 1<<27, // all but PHY kind, PCS, power, time
		uint32(r4.MACHWFeature1):                8 | 5<<6 | 1<<14 | 1<<16 | 3<<24,
		uint32(r4.MACHWFeature2):                3 | 1<<6 | 3<<12 | 1<<18,
		uint32(r4.MACHWFeature3):                5 | 1<<5,
		uint32(r4.MACAddressHigh):               0x80000706,
		uint32(r4.MACAddressLow):                0x05040302,
		uint32(r4.MACAddressHigh) + 8:           0x0000ffff,
		uint32(r4.MACAddressLow) + 8:            0xffffffff,
		uint32(r4.MACRxQCtrl0):                  0,
		uint32(r4.DMAMode):                      0,
		0x0d00 + uint32(r4.MTLTxQOperationMode): 0, // several queues start disabled
		0x1ffc:                                  0,
		0x0700 + 0x1c8:                          0, // no such counter
	} {
		if got := g.r.Load32(off); got != want {
			t.Errorf("%#x is %#x after reset, want %#x", off, got, want)
		}
	}
	bare := newRig(t, withConfig(bareConfig))
	for off, want := range map[uint32]uint32{0x011c: 0x7 | 1<<5 | 1<<8 | 31<<18, 0x0128: 0} {
		if got := bare.r.Load32(off); got != want {
			t.Errorf("%#x of a core without offloads is %#x, want %#x", off, got, want)
		}
	}
	if got := newRig(t).r.Load32(0x0d00); got != uint32(r4.TXQEN.Of(2)) {
		t.Errorf("the only transmit queue starts as %#x", got)
	}
	for _, off := range []uint32{g.r.Len(), g.r.Len() + 4, 2, 0xffff_fffe} {
		g.r.Store32(off, 1)
		if got := g.r.Load32(off); got != mmio.AllOnes {
			t.Errorf("%#x loads %#x", off, got)
		}
	}
}

// bareConfig leaves out what a core may lack.
func bareConfig(c *Config) {
	c.NoRxChecksum, c.NoTxChecksum = true, true
	c.NoVLANInsert, c.NoDoubleVLAN, c.NoVLANHash, c.VLANFilters = true, true, true, 1
}

// TestMasks: every register keeps its writable bits alone.
func TestMasks(t *testing.T) {
	g := newRig(t, withConfig(func(c *Config) { c.RxQueues, c.TxQueues = 2, 2 }))
	ch, q := g.ch(1), g.mtl(1)
	bare := newRig(t, withConfig(bareConfig))
	single := newRig(t, withConfig(func(c *Config) { c.VLANFilters = 1 }))
	full := newRig(t, withConfig((*Config).EnableAll))
	for _, c := range []struct {
		name  string
		r     mmio.Region
		off   uint32
		store uint32
		want  uint32
	}{
		{"everything in the features", full.r, uint32(r4.MACHWFeature3), 0, 0x08000025},
		{"unknown", g.r, 0x0030, 0xffffffff, 0},
		{"version", g.r, uint32(r4.MACVersion), 0, 0x52},
		{"feature", g.r, uint32(r4.MACHWFeature3), 0xffffffff, 0x25},
		{"configuration without ARPEN", g.r, uint32(r4.MACConfiguration), 0xffffffff, 0x7fffff7f},
		{"configuration without IPC and SARC", bare.r, uint32(r4.MACConfiguration), 0xffffffff, 0x07ffff7f},
		{"VLAN control", g.r, 0x50, 0xfffffffe, 0xbf7f007e},
		{"VLAN tag", single.r, 0x50, 0xffffffff, 0xbf7fffff},
		{"VLAN tag without hash and inner tag", bare.r, 0x50, 0xffffffff, 0x017fffff},
		{"VLAN data", g.r, 0x54, 0xffffffff, 0x0f1fffff},
		{"VLAN data of one filter", single.r, 0x54, 0xffffffff, 0},
		{"VLAN hash", g.r, 0x58, 0xffffffff, 0xffff},
		{"no VLAN hash", bare.r, 0x58, 0xffffffff, 0},
		{"VLAN insertion", g.r, 0x60, 0xffffffff, 0x001fffff},
		{"inner VLAN insertion", g.r, 0x64, 0xffffffff, 0x001fffff},
		{"no VLAN insertion", bare.r, 0x60, 0xffffffff, 0},
		{"IPC mask", g.r, 0x800, 0xffffffff, 0x3fff3fff},
		{"no IPC mask", bare.r, 0x800, 0xffffffff, 0},
		{"no IPC counter", bare.r, 0x810, 0xffffffff, 0},
		{"hash", g.r, uint32(r4.MACHashTable) + 4, 0xffffffff, 0xffffffff},
		{"hash beyond the bins", g.r, uint32(r4.MACHashTable) + 8, 0xffffffff, 0},
		{"queue enable", g.r, uint32(r4.MACRxQCtrl0), 0xffffffff, 0xf},
		{"priorities", g.r, uint32(r4.MACRxQCtrl2), 0xffffffff, 0xffff},
		{"priorities of queues that are not there", g.r, uint32(r4.MACRxQCtrl3), 0xffffffff, 0},
		{"queue map", g.r, uint32(r4.MTLRxQDMAMap0), 0xffffffff, 0x1717},
		{"TQS", q, uint32(r4.MTLTxQOperationMode), 0x01ff0000, 63 << 16},
		{"RQS", q, uint32(r4.MTLRxQOperationMode), 0x3ff00000, 63 << 20},
		{"RBSZ", ch, uint32(r4.DMACHRxControl), uint32(r4.RBSZ.Of(0x3fff)), uint32(r4.RBSZ.Of(0x3ff8))},
		{"tail", ch, uint32(r4.DMACHTxDescTailPointer), 0xffffffff, 0xfffffff8},
		{"list", ch, uint32(r4.DMACHRxDescListAddr), 0x12345678 | 7, 0x12345678},
		{"list high", ch, uint32(r4.DMACHRxDescListHAddr), 0xffffffff, 0xffff},
		{"ring length", ch, uint32(r4.DMACHRxDescRingLength), 0xffffffff, 1023},
		{"enables", ch, uint32(r4.DMACHInterruptEnable), 0xffffffff, 0xffc7},
		{"split header", ch, uint32(r4.DMACHControl), uint32(r4.SPH | r4.PBLx8 | r4.DSL.Of(5)), uint32(r4.PBLx8 | r4.DSL.Of(5))},
		{"everything in the configuration", full.r, uint32(r4.MACConfiguration), 0xffffffff, 0xffffff7f},
		{"filter without layers 3 and 4", g.r, uint32(r4.MACPacketFilter), 0xffffffff, 0x800107ff},
		{"filter", full.r, uint32(r4.MACPacketFilter), 0xffffffff, 0x803107ff},
		{"extension without split header", g.r, uint32(r4.MACExtConfiguration), 0xffffffff, 0x3f003fff},
		{"extension", full.r, uint32(r4.MACExtConfiguration), 0xffffffff, 0x3f703fff},
		{"split", full.r, uint32(r4.MACExtCfg1), 0xffffffff, 0x37f},
		{"no split", g.r, uint32(r4.MACExtCfg1), 0xffffffff, 0},
		{"split header on", full.ch(0), uint32(r4.DMACHControl), uint32(r4.SPH | r4.PBLx8), uint32(r4.SPH | r4.PBLx8)},
		{"ARP address", full.r, uint32(r4.MACARPAddress), 0xffffffff, 0xffffffff},
		{"no ARP address", g.r, uint32(r4.MACARPAddress), 0xffffffff, 0},
		{"ports", full.r, 0x0a54, 0xffffffff, 0xffffffff},
		{"no ports", g.r, 0x0a54, 0xffffffff, 0},
		{"LPI", full.r, uint32(r4.MACLPIControlStatus), 0xfffeffff, 0x003a0000},
		{"no LPI", g.r, uint32(r4.MACLPIControlStatus), 0xffffffff, 0},
		{"LPI timers", full.r, uint32(r4.MACLPITimersControl), 0xffffffff, 0x03ffffff},
		{"LPI entry timer", full.r, uint32(r4.MACLPIEntryTimer), 0xffffffff, 0x000ffff8},
		{"interrupts without LPI and time", g.r, uint32(r4.MACInterruptEnable), 0xffffffff, 0x6009},
		{"interrupts", full.r, uint32(r4.MACInterruptEnable), 0xffffffff, 0x7029},
		{"MMC mask without LPI", g.r, uint32(r4.MMCTxInterruptMask), 0xffffffff, 0x03ffffff},
		{"MMC mask", full.r, uint32(r4.MMCTxInterruptMask), 0xffffffff, 0x0fffffff},
		{"sub-second increment", full.r, uint32(r4.MACSubSecondIncrement), 0xffffffff, 0x00ffff00},
		{"timestamp control", full.r, uint32(r4.MACTimestampControl), 0xffffffd3, 0x0007ff03},
		{"segmentation", ch, uint32(r4.DMACHTxControl), uint32(r4.TSE | r4.EDSE | r4.OSP), uint32(r4.OSP)},
		{"enhanced descriptors", full.ch(0), uint32(r4.DMACHTxControl), uint32(r4.TSE | r4.EDSE | r4.OSP), uint32(r4.EDSE | r4.OSP)},
		{"fetch time", full.r, uint32(r4.DMATBSControl), 0xffffffff, 0xffffff71},
		{"no fetch time", g.r, uint32(r4.DMATBSControl), 0xffffffff, 0},
		{"current descriptor", ch, uint32(r4.DMACHCurAppTxDesc), 0xffffffff, 0},
		{"address high", g.r, uint32(r4.MACAddressHigh), 0x00001234, 0x80001234},
		{"address high 1", g.r, uint32(r4.MACAddressHigh) + 8, 0xffffffff, 0xff07ffff},
		{"status", ch, uint32(r4.DMACHStatus), 0xffffffff, 0},
	} {
		c.r.Store32(c.off, c.store)
		if got := c.r.Load32(c.off); got != c.want {
			t.Errorf("%s: stored %#x, holds %#x, want %#x", c.name, c.store, got, c.want)
		}
	}
	old := newRig(t, withConfig(func(c *Config) { c.Version = 0x40; c.AddrWidth = 32 }))
	r4.DMACHInterruptEnable.Store(old.ch(0), ^r4.CHInterrupt(0))
	if got := r4.DMACHInterruptEnable.Load(old.ch(0)); got != 0x1bfc7 {
		t.Errorf("enables of 4.00 hold %#x", uint32(got))
	}
	r4.DMASysBusMode.Store(old.r, r4.EAME)
	if r4.DMASysBusMode.Load(old.r)&r4.EAME != 0 {
		t.Error("a core of 32 address bits has EAME")
	}
}

// TestRegisterNames: every register of a model with all features has the databook's name.
func TestRegisterNames(t *testing.T) {
	g := newRig(t, withConfig(func(c *Config) { c.EnableAll(); c.RxQueues, c.TxQueues = 8, 8 }))
	for i := range g.d.regs.desc {
		if off := uint32(i) * 4; g.d.regs.desc[i].known && g.d.mapName(off) == "" {
			t.Errorf("the register at %#x has no name", off)
		}
	}
}

func TestConfigErrors(t *testing.T) {
	for name, c := range map[string]Config{
		"version":         {Version: 0x37},
		"queues":          {RxQueues: 9},
		"negative queues": {TxQueues: -1},
		"fifo":            {RxFIFO: 5000},
		"small fifo":      {TxFIFO: 128},
		"width":           {AddrWidth: 64},
		"bus":             {BusBytes: 3},
		"bins":            {HashBins: 32},
		"vectors":         {NumInterrupts: 2},
		"filters":         {L3L4Filters: 9},
		"fewer filters":   {L3L4Filters: -1},
		"PTP clock":       {PTPClock: 1e9 + 1},
		"profile":         {Profile: 7},
		"no time":         {TBS: true},
		"high":            {AddrWidth: 32, HighIOVA: true},
		"layout":          {Layout: regs.Layout{DMABase: 0x1101, DMAStride: 0x80, MTLBase: 0xd00, MTLStride: 0x40}},
		"low layout":      {Layout: regs.Layout{DMABase: 0x10, DMAStride: 0x80, MTLBase: 0xd00, MTLStride: 0x40}},
		"far layout":      {Layout: regs.Layout{DMABase: 0xfffffff0, DMAStride: 0x80, MTLBase: 0xd00, MTLStride: 0x40}},
		"overlap": {RxQueues: 8, TxQueues: 8,
			Layout: regs.Layout{DMABase: 0x1100, DMAStride: 0x40, MTLBase: 0xd00, MTLStride: 0x40}},
	} {
		c.Inline = true
		var ce *ConfigError
		if _, err := New(c, &testWire{}); !errors.As(err, &ce) || ce.Error() == "" {
			t.Errorf("%s: %v", name, err)
		}
	}
	var ce *ConfigError
	if _, err := New(Config{}, nil); !errors.As(err, &ce) {
		t.Error("no wire:", err)
	}
	if _, err := NewModel(Config{}, nil, nil, &testWire{}); !errors.As(err, &ce) {
		t.Error("no memory:", err)
	}
}

// TestMovedLayout: the registers of the Qualcomm EMAC, where queues and channels
// lie interleaved.
func TestMovedLayout(t *testing.T) {
	g := newRig(t, withConfig(func(c *Config) {
		c.RxQueues, c.TxQueues = 4, 4
		c.Layout = regs.Layout{DMABase: 0x8100, DMAStride: 0x1000, MTLBase: 0x8000, MTLStride: 0x1000}
	}))
	g.open()
	f := testFrame(100, 1)
	g.w.inject(f)
	g.step()
	g.mustRecv(f)
	g.send(f)
	g.step()
	if n, _ := g.reap(); n != 1 {
		t.Fatal("not sent")
	}
	names := map[string]bool{}
	for _, c := range g.d.Coverage() {
		names[c.Name] = true
		if !c.Implemented && c.Name != "" {
			t.Errorf("%s is touched and not there", c.Name)
		}
	}
	for _, want := range []string{"DMA_CH0_RxDesc_Tail_Pointer", "MTL_TxQ0_Operation_Mode", "MAC_Configuration"} {
		if !names[want] {
			t.Errorf("coverage lacks %s: %v", want, names)
		}
	}
	g.clean()
}

func TestCoverageAndCounts(t *testing.T) {
	g := newRig(t)
	r4.MACVersion.Load(g.r)
	r4.MACRxFlow.Store(g.r, r4.RFE)
	r4.MACRxFlow.Store(g.r, 0)
	g.r.Load32(0x0ffc)
	got := g.d.Coverage()
	want := []Touched{
		{uint32(r4.MACRxFlow), "MAC_Rx_Flow_Ctrl", false, true, true, "", "RFE"},
		{uint32(r4.MACVersion), "MAC_Version", true, false, true, "SNPSVER=82", ""},
		{0x0ffc, "", true, false, false, "", ""},
	}
	if len(got) != len(want) {
		t.Fatalf("%+v", got)
	}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("%+v, want %+v", got[i], want[i])
		}
	}
	if s := g.d.Stats(); s.Loads != 2 || s.Stores != 2 || s.Unknown != 1 {
		t.Errorf("%+v", s)
	}
	r4.MACRxFlow.Store(g.r, r4.UP)
	r4.MACRxFlow.Load(g.r)
	if c := g.d.Coverage()[0]; c.StoredBits != "RFE|UP" || c.LoadedBits != "UP" {
		t.Errorf("%+v", c)
	}
	quiet := newRig(t, withConfig(func(c *Config) { c.NoAudit = true }))
	r4.MACVersion.Load(quiet.r)
	if len(quiet.d.Coverage()) != 0 || quiet.d.Stats().Loads != 0 {
		t.Error("counted with NoAudit")
	}
}

func TestSoftwareReset(t *testing.T) {
	g := newRig(t)
	g.open()
	f := testFrame(80, 1)
	g.w.inject(f)
	g.step()
	r4.DMAMode.Store(g.r, r4.SWR)
	if v := r4.DMAMode.Load(g.r); v != r4.SWR {
		t.Fatalf("DMA_Mode is %#x during reset", uint32(v))
	}
	if v := r4.MACVersion.Load(g.r); v != 0 {
		t.Fatalf("MAC_Version is %#x during reset", uint32(v))
	}
	r4.MACRxFlow.Store(g.r, r4.RFE)
	g.w.inject(f)
	if n := g.step(); n != 0 {
		t.Fatalf("%d units of work during reset", n)
	}
	g.clock.Advance(resetTime - 1)
	if r4.DMAMode.Load(g.r) == 0 {
		t.Fatal("the reset ended early")
	}
	g.clock.Advance(1)
	if v := r4.DMAMode.Load(g.r); v != 0 {
		t.Fatalf("DMA_Mode is %#x after reset", uint32(v))
	}
	for name, v := range map[string]uint32{
		"MAC_Rx_Flow_Ctrl": uint32(r4.MACRxFlow.Load(g.r)), "list": r4.DMACHRxDescListAddr.Load(g.ch(0)),
		"status": uint32(r4.DMACHStatus.Load(g.ch(0))), "start": uint32(r4.DMACHRxControl.Load(g.ch(0))),
		"current": r4.DMACHCurAppRxDesc.Load(g.ch(0)), "debug": r4.DMADebugStatus0.Load(g.r),
		"tail": r4.DMACHRxDescTailPointer.Load(g.ch(0)),
	} {
		if v != 0 {
			t.Errorf("%s is %#x after reset", name, v)
		}
	}
	if ks := g.kinds(); len(ks) != 1 || ks[0] != StoreInReset {
		t.Errorf("violations %v", ks)
	}
}

func TestResetNeedsClock(t *testing.T) {
	g := newRig(t)
	g.d.SetClockGated(true)
	r4.DMAMode.Store(g.r, r4.SWR)
	g.clock.Advance(time.Hour)
	if r4.DMAMode.Load(g.r) != r4.SWR {
		t.Fatal("the reset ended without a clock")
	}
	// A second try while the first hangs changes nothing.
	r4.DMAMode.Store(g.r, r4.SWR)
	g.clock.Advance(time.Hour)
	if r4.DMAMode.Load(g.r) != r4.SWR {
		t.Fatal("the second reset ended without a clock")
	}
	g.d.SetClockGated(false)
	g.clock.Advance(resetTime)
	if r4.DMAMode.Load(g.r) != 0 {
		t.Fatal("the reset does not end with the clock")
	}
	g.open() // everything works afterwards
	f := testFrame(60, 3)
	g.w.inject(f)
	g.step()
	g.mustRecv(f)

	g.d.SetClockGated(true)
	r4.DMAMode.Store(g.r, r4.SWR)
	if err := g.d.Reset(context.Background()); err != nil {
		t.Fatal(err)
	}
	if r4.DMAMode.Load(g.r) != 0 || r4.MACVersion.Load(g.r) == 0 {
		t.Fatal("a reset from outside needs no clock")
	}
}

func TestResetFaults(t *testing.T) {
	g := newRig(t, withFaults(Faults{Reset: ResetFaults{GarbageHash: true, BroadcastOff: true, AddressOff: true}}))
	for range 2 {
		if r4.MACHashTable.Load(g.r) == 0 || r4.MACPacketFilter.Load(g.r) != r4.DBF {
			t.Fatal("the reset values are those of the databook")
		}
		if r4.MACAddressHigh.Load(g.r)&r4.AE != 0 {
			t.Fatal("AE is set")
		}
		g.reset()
	}
	g.setMAC(0, testMAC)
	if r4.MACAddressHigh.Load(g.r)&r4.AE == 0 {
		t.Fatal("AE does not stick")
	}
	g.open()
	f := testFrame(64, 1)
	g.w.inject(f, frameTo([6]byte{255, 255, 255, 255, 255, 255}, 64, 2))
	g.step()
	g.mustRecv(f)
	g.noRecv()
}

func TestMDIO(t *testing.T) {
	g := newRig(t, withConfig(func(c *Config) { c.CSRClock = 125_000_000 }))
	addr := mmio.Reg[r4.MDIOAddress](r4.MACMDIOAddress)
	read := r4.MDIOGB | r4.MDIOGOC.Of(r4.MDIOGOCRead) | r4.MDIOPA.Of(9) | r4.MDIORDA.Of(2) | r4.MDIOCR.Of(1)
	addr.Store(g.r, read)
	if addr.Load(g.r) != read {
		t.Fatal("not busy")
	}
	g.clock.Advance(64 * 62 * 8) // 64 bits of 62 cycles of 8 ns
	if addr.Load(g.r) != read&^r4.MDIOGB {
		t.Fatal("busy after the time of a frame")
	}
	if v := r4.MACMDIOData.Load(g.r); v != 0xffff {
		t.Fatalf("read %#x from no PHY", v)
	}
	g.clean()
	addr.Store(g.r, read)
	r4.MACMDIOData.Store(g.r, 5) // while busy
	if ks := g.kinds(); len(ks) != 1 || ks[0] != MDIOMisuse {
		t.Fatalf("violations %v", ks)
	}
}

// TestMDCRate: the divider codes of the databook and the CSR clocks they are for.
func TestMDCRate(t *testing.T) {
	for _, c := range []struct {
		hz   uint64
		code uint32
		ok   bool
	}{
		{20e6, 2, true}, {35e6, 3, true}, {34_900_000, 2, true}, {60e6, 0, true}, {59_900_000, 3, true}, {100e6, 0, true},
		{150e6, 1, true}, {150e6, 0, false}, {250e6, 4, true}, {300e6, 5, true}, {500e6, 6, true}, {800e6, 7, true},
		{150e6, 8, false}, {100e6, 2, false}, {300e6, 4, false},
	} {
		g := newRig(t, withConfig(func(f *Config) { f.CSRClock = c.hz }))
		r4.MACMDIOAddress.Store(g.r, uint32(r4.MDIOGB|r4.MDIOGOC.Of(r4.MDIOGOCWrite)|r4.MDIOCR.Of(c.code)))
		if got := len(g.d.Audit()) == 0; got != c.ok {
			t.Errorf("CR %d at %d Hz: accepted %v", c.code, c.hz, got)
		}
	}
}

// TestRegisters: the names of each generation's map are all different, and what a model
// was accessed at is among them.
func TestRegisters(t *testing.T) {
	for g, some := range map[Generation][]string{
		GMAC4: {"MAC_Configuration", "MAC_Address31_High", "MTL_TxQ7_Operation_Mode", "DMA_CH7_Status"},
		GMAC:  {"MAC_Configuration", "Bus_Mode", "HW_Feature"},
	} {
		seen := map[string]bool{}
		for _, name := range Registers(g) {
			if name == "" || seen[name] {
				t.Errorf("%v: %q again", g, name)
			}
			seen[name] = true
		}
		for _, name := range some {
			if !seen[name] {
				t.Errorf("%v: there is no %s among %d", g, name, len(seen))
			}
		}
	}
}
