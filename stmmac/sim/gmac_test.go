package sim

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	rg "github.com/gostmmac/gostmmac/stmmac/internal/regs/gmacreg"
)

// gmacLists are the kinds of descriptor lists.
var gmacLists = []struct {
	name string
	set  gmacOption
}{
	{"ring", nil},
	{"ring/two", func(g *gmacRig) { g.size, g.second, g.txPiece, g.txTwo = 64, 1024, 700, true }},
	{"chain", func(g *gmacRig) { g.chain = true }},
	{"chain/small", func(g *gmacRig) { g.chain, g.size, g.txPiece = true, 256, 300 }},
}

// Every kind of list, every size of ring, frames of one and of many descriptors.
func TestGMACLoop(t *testing.T) {
	for _, list := range gmacLists {
		for _, n := range []int{1, 2, 3, 7, 16, 64} {
			t.Run(fmt.Sprintf("%s/%d", list.name, n), func(t *testing.T) {
				g := newGMACRig(t, list.set, withRing(n))
				g.open()
				sizes := []int{60, 61, 64, 200, 255, 256, 257, 1000, 1514}
				for k := range 4*n + 20 {
					f := testFrame(sizes[k%len(sizes)], byte(k))
					if len(f)+fcsLen <= n*(g.size+g.second) {
						g.w.inject(f)
						g.step()
						before := g.rxHead
						if d0 := g.mustRecv(f); d0&rg.RxES != 0 {
							t.Fatalf("round %d: status %#x", k, uint32(d0))
						}
						g.post(g.rxHead - before)
					}
					per := g.txPiece
					if g.txTwo {
						per *= 2
					}
					if (len(f)+per-1)/per <= n {
						if d0 := g.mustSend(f); d0 != 0 {
							t.Fatalf("round %d: status %#x", k, uint32(d0))
						}
					}
				}
				g.clean()
			})
		}
	}
}

// Frames of up to 9,000 bytes over as many descriptors as they need.
func TestGMACJumbo(t *testing.T) {
	for _, list := range gmacLists {
		t.Run(list.name, func(t *testing.T) {
			g := newGMACRig(t, func(g *gmacRig) {
				if list.set != nil {
					list.set(g)
				}
				g.configuration |= rg.JE
			}, withRing(64))
			g.open()
			for n := 1500; n <= 9000; n += 750 {
				f := testFrame(n, byte(n))
				g.w.inject(f)
				g.step()
				before := g.rxHead
				g.mustRecv(f)
				g.post(g.rxHead - before)
				g.mustSend(f)
			}
			g.clean()
		})
	}
}

// callsOnly is a DMA that shows no memory, and no extent of it either.
type callsOnly struct{ DMA }

// Memory that only the calls of DMA reach.
func TestGMACWithoutWindows(t *testing.T) {
	for _, list := range gmacLists {
		t.Run(list.name, func(t *testing.T) {
			g := newGMACRig(t, list.set, withRing(8), withFaults(Faults{ScribbleWriteBack: true}))
			g.d.Model.dma = callsOnly{noWindow{&g.d.space}}
			g.open()
			for k := range 30 {
				f := testFrame(60+k*40, byte(k))
				g.w.inject(f)
				g.step()
				before := g.rxHead
				g.mustRecv(f)
				g.post(g.rxHead - before)
				g.mustSend(f)
			}
			g.clean()
		})
	}
}

// Frames of the loopback, while the driver sends and refills on another goroutine.
func TestGMACGoroutineBothWays(t *testing.T) {
	const frames = 2000
	g := newGMACRig(t, func(g *gmacRig) { g.configuration |= rg.LM }, withConfig(func(c *Config) { c.Inline = false }))
	g.open()
	deadline := time.Now().Add(time.Minute)
	sent, got := 0, 0
	for got < frames {
		if time.Now().After(deadline) {
			t.Fatalf("%d of %d frames in a minute", got, frames)
		}
		for sent < frames && g.txTail-g.txHead < g.n/2 && sent-got < g.n/2 {
			g.send(testFrame(60+sent%700, byte(sent)))
			sent++
		}
		g.reap()
		if data, d0, _, ok := g.recv(); ok {
			if want := testFrame(60+got%700, byte(got)); !bytes.Equal(data[:len(data)-fcsLen], want) || d0&rg.RxES != 0 {
				t.Fatalf("frame %d differs, status %v", got, d0)
			}
			got++
			g.post(1)
		}
	}
	g.clean()
}

func TestGMACSkipLength(t *testing.T) {
	for dsl := range 8 {
		for _, bus := range []int{4, 8, 16} {
			t.Run(fmt.Sprintf("%d/%d", dsl, bus), func(t *testing.T) {
				g := newGMACRig(t, nil, withRing(5), withDSL(dsl), withConfig(func(c *Config) { c.BusBytes = bus }))
				g.open()
				for k := range 12 {
					f := testFrame(100+k, byte(k))
					g.w.inject(f)
					g.step()
					g.mustRecv(f)
					g.post(1)
					g.mustSend(f)
				}
				g.clean()
			})
		}
	}
}

// The start of a frame lies anywhere; the room of its buffer counts from there rounded
// down to the width of the bus.
func TestGMACBufferStart(t *testing.T) {
	for start := range 16 {
		g := newGMACRig(t, func(g *gmacRig) { g.size = 128 }, withStart(start), withConfig(func(c *Config) { c.BusBytes = 8 }))
		g.open()
		room := 128 - start%8
		f := testFrame(room-fcsLen, byte(start))
		g.w.inject(f)
		g.step()
		got, d0, descs, ok := g.recv()
		if !ok || descs != 1 || !bytes.Equal(got[:len(f)], f) {
			t.Fatalf("start %d: %d descriptors, status %#x", start, descs, uint32(d0))
		}
		g.w.inject(testFrame(room-fcsLen+1, byte(start)))
		g.step()
		if w := rg.RDES0(g.read(g.rxRing, 1)[0]); w&rg.RxLS != 0 {
			t.Fatalf("start %d: a frame of %d bytes in a buffer with room for %d", start, room+1, room)
		}
		g.clean()
	}
}

func TestGMACRegisters(t *testing.T) {
	g := newGMACRig(t, nil, withConfig(func(c *Config) { c.UserVersion = 0x10; c.Address = testMAC; c.RxFIFO = 4096 }))
	for _, c := range []struct {
		name        string
		off         uint32
		reset       uint32
		store, hold uint32 // what is stored, and read then
	}{
		{"MAC_Configuration", uint32(rg.MACConfiguration), 0, ^uint32(rg.RE | rg.TE), 0x0afffef0 &^ 0x100},
		{"MAC_Frame_Filter", uint32(rg.MACFrameFilter), 0, ^uint32(0), 0x800107ff},
		{"Hash_Table_High", uint32(rg.HashTableHigh), 0, 0xa5a5a5a5, 0xa5a5a5a5},
		{"Hash_Table_Low", uint32(rg.HashTableLow), 0, 0x5a5a5a5a, 0x5a5a5a5a},
		{"Flow_Control", uint32(rg.FlowControl), 0, 0xffff00be, 0xffff00be},
		{"VLAN_Tag", uint32(rg.VLANTagReg), 0, ^uint32(0), 0x0007ffff},
		{"Version", uint32(rg.VersionReg), 0x1037, 0, 0x1037},
		{"Debug", uint32(rg.DebugReg), 0, ^uint32(0), 0},
		{"Interrupt_Status", uint32(rg.InterruptStatus), 0, ^uint32(0), 0},
		{"Interrupt_Mask", uint32(rg.InterruptMask), 0, ^uint32(0), uint32(rg.MACInterruptMaskAll)},
		{"MAC_Address0_High", 0x40, 0x80005544, 0x00001234, 0x80001234},
		{"MAC_Address0_Low", 0x44, 0x33221102, 0x87654321, 0x87654321},
		{"MAC_Address1_High", 0x48, 0x0000ffff, ^uint32(0), 0xff00ffff},
		{"MAC_Address16_High", 0x800, 0x0000ffff, 0x80000000, 0x80000000},
		{"Bus_Mode", uint32(rg.BusModeReg), 0x00020100, ^uint32(rg.SWR), 0x0fffff7e},
		{"Receive_Descriptor_List_Address", uint32(rg.ReceiveListAddress), 0, 0x12345678, 0x12345678},
		{"Transmit_Descriptor_List_Address", uint32(rg.TransmitListAddress), 0, 0x1234567f, 0x12345678},
		{"Status", uint32(rg.StatusReg), 0, ^uint32(0), 0},
		{"Operation_Mode", uint32(rg.OperationModeReg), 0, uint32(rg.TSF | rg.RSF | rg.DFF | rg.DT | rg.OSF), uint32(rg.TSF | rg.RSF | rg.DFF | rg.DT | rg.OSF)},
		{"Interrupt_Enable", uint32(rg.InterruptEnable), 0, ^uint32(0), 0x1e7ff},
		{"Missed_Frame", uint32(rg.MissedFrame), 0, ^uint32(0), 0},
		{"Receive_Interrupt_Watchdog", uint32(rg.ReceiveWatchdog), 0, ^uint32(0), 0xff},
		{"AXI_Bus_Mode", uint32(rg.AXIBusMode), 0x00110000, 0, 0},
		{"HW_Feature", uint32(rg.HWFeatureReg), uint32(rg.MIISEL | rg.GMIISEL | rg.HDSEL | rg.HASHSEL | rg.ADDMACADR | rg.SMASEL |
			rg.MMCSEL | rg.TXCOESEL | rg.RXTYP2COE | rg.RXFIFOSIZE), 0, uint32(rg.MIISEL | rg.GMIISEL | rg.HDSEL | rg.HASHSEL |
			rg.ADDMACADR | rg.SMASEL | rg.MMCSEL | rg.TXCOESEL | rg.RXTYP2COE | rg.RXFIFOSIZE)},
		{"nothing", 0x700, 0, ^uint32(0), 0},
	} {
		if v := g.r.Load32(c.off); v != c.reset {
			t.Errorf("%s is %#x after reset, want %#x", c.name, v, c.reset)
		}
		g.r.Store32(c.off, c.store)
		if v := g.r.Load32(c.off); v != c.hold {
			t.Errorf("%s holds %#x, want %#x", c.name, v, c.hold)
		}
	}
	rg.BusModeReg.Store(g.r, rg.SWR)
	if v := g.r.Load32(uint32(rg.MACConfiguration)); v != 0 {
		t.Errorf("MAC_Configuration reads %#x during the reset", v)
	}
	g.clock.Advance(resetTime)
	if v := rg.BusModeReg.Load(g.r); v != 0x00020100 {
		t.Errorf("Bus_Mode is %#x behind the reset", uint32(v))
	}
}

func TestGMACConfig(t *testing.T) {
	for _, c := range []struct {
		field string
		set   func(*Config)
	}{
		{"Version", func(c *Config) { c.Version = 0x52 }},
		{"RxQueues", func(c *Config) { c.RxQueues = 2 }},
		{"TxQueues", func(c *Config) { c.TxQueues = 8 }},
		{"RxFIFO", func(c *Config) { c.RxFIFO = 1000 }},
		{"TxFIFO", func(c *Config) { c.TxFIFO = 128 }},
		{"AddrWidth", func(c *Config) { c.AddrWidth = 40 }},
		{"BusBytes", func(c *Config) { c.BusBytes = 2 }},
		{"HashBins", func(c *Config) { c.HashBins = 32 }},
		{"VLANFilters", func(c *Config) { c.VLANFilters = 4 }},
		{"NumInterrupts", func(c *Config) { c.NumInterrupts = 3 }},
		{"Layout", func(c *Config) { c.Layout.DMABase = 0x2000 }},
		{"L3L4Filters", func(c *Config) { c.L3L4Filters = 1 }},
		{"SplitHeader", func(c *Config) { c.SplitHeader = true }},
		{"ARPOffload", func(c *Config) { c.ARPOffload = true }},
		{"EEE", func(c *Config) { c.EEE = true }},
		{"Timestamp", func(c *Config) { c.Timestamp = true }},
		{"TBS", func(c *Config) { c.TBS = true }},
		{"Profile", func(c *Config) { c.Profile = 7 }},
		{"HighIOVA", func(c *Config) { c.HighIOVA = true }},
	} {
		cfg := Config{Generation: GMAC, Inline: true}
		c.set(&cfg)
		_, err := New(cfg, &testWire{})
		var ce *ConfigError
		if !errors.As(err, &ce) || ce.Field != c.field {
			t.Errorf("%s: error %v", c.field, err)
		}
	}
	for _, cfg := range []Config{{Generation: 2}, {NoHWFeature: true}} {
		if _, err := New(cfg, &testWire{}); err == nil {
			t.Errorf("%+v is taken", cfg)
		}
	}
	for _, cfg := range []Config{{Version: 0x30}, {NoHWFeature: true}, {HashBins: 256, NoMDIO: true}} {
		cfg.Generation, cfg.Inline = GMAC, true
		d, err := New(cfg, &testWire{})
		if err != nil {
			t.Fatal(err)
		}
		r, _ := d.Region(0)
		v := rg.HWFeatureReg.Load(r)
		if (v == 0) != cfg.NoHWFeature || (v&rg.EXTHASHEN != 0) != (cfg.HashBins > 64) || !cfg.NoHWFeature && (v&rg.SMASEL == 0) != cfg.NoMDIO {
			t.Errorf("%+v has HW_Feature %v", cfg, v)
		}
		if rg.ReceiveWatchdog.Store(r, 5); (rg.ReceiveWatchdog.Load(r) == 0) != (cfg.Version == 0x30) {
			t.Errorf("the receive watchdog of version %#x is %#x", cfg.Version, rg.ReceiveWatchdog.Load(r))
		}
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	}
	if GMAC.String() != "gmac" || GMAC4.String() != "gmac4" || Generation(9).String() != "Generation(9)" {
		t.Error("names of the generations")
	}
}

// The goroutine of the model, with interrupts.
func TestGMACGoroutine(t *testing.T) {
	g := newGMACRig(t, nil, withConfig(func(c *Config) { c.Inline = false }))
	v, err := g.d.Interrupt(0)
	if err != nil {
		t.Fatal(err)
	}
	g.open()
	rg.InterruptEnable.Store(g.r, rg.NIE|rg.TIE)
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	for k := range 500 {
		g.send(testFrame(60+k%1000, byte(k)))
		for done := 0; done == 0; {
			if done, _ = g.reap(); done != 0 {
				break
			}
			if _, err := v.Wait(ctx); err != nil {
				t.Fatal(err)
			}
			g.events()
		}
	}
	if err := g.d.Close(); err != nil {
		t.Fatal(err)
	}
	if len(g.w.tx) != 500 {
		t.Fatalf("%d frames on the wire", len(g.w.tx))
	}
	g.clean()
}

func TestGMACCoverage(t *testing.T) {
	g := newGMACRig(t, nil)
	g.open()
	rg.StatusReg.Load(g.r)
	g.r.Load32(0x0700)
	names := map[string]Touched{}
	for _, c := range g.d.Coverage() {
		names[c.Name] = c
	}
	for _, want := range []Touched{
		{Off: uint32(rg.BusModeReg), Name: rg.Map.Name(uint32(rg.BusModeReg)), Loaded: true, Stored: true, Implemented: true,
			LoadedBits: "PBL=1|RPBL=1", StoredBits: "SWR|PBL=8|RPBL=8|USP"},
		{Off: uint32(rg.StatusReg), Name: rg.Map.Name(uint32(rg.StatusReg)), Loaded: true, Implemented: true, LoadedBits: "RS=3|TS=3"},
		{Off: uint32(rg.ReceivePollDemand), Name: rg.Map.Name(uint32(rg.ReceivePollDemand)), Stored: true, Implemented: true},
	} {
		if want.Name == "" || names[want.Name] != want {
			t.Errorf("coverage has %+v, want %+v", names[want.Name], want)
		}
	}
	if s := g.d.Stats(); s.Unknown != 1 || s.RxDoorbells != 1 {
		t.Errorf("%d unknown registers, %d doorbells", s.Unknown, s.RxDoorbells)
	}
}
