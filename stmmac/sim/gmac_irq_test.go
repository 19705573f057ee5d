package sim

import (
	"testing"

	r4 "github.com/gostmmac/gostmmac/stmmac/internal/regs/gmac4reg"
	rg "github.com/gostmmac/gostmmac/stmmac/internal/regs/gmacreg"
)

// The line rises with an enabled summary, and falls when the causes and it are cleared.
func TestGMACInterruptLine(t *testing.T) {
	g := newGMACRig(t, nil)
	g.open()
	edges := func() uint64 { return g.d.Stats().Edges[0] }
	f := testFrame(100, 1)
	g.w.inject(f)
	g.step()
	if edges() != 0 {
		t.Fatal("an edge with all disabled")
	}
	rg.InterruptEnable.Store(g.r, rg.NIE|rg.RIE)
	if edges() != 1 {
		t.Fatalf("%d edges by enabling what is pending", edges())
	}
	rg.StatusReg.Store(g.r, rg.RI)
	if v := rg.StatusReg.Load(g.r); v&(rg.RI|rg.NIS) != rg.NIS {
		t.Errorf("status %v: the summary stays until it is cleared", v)
	}
	rg.StatusReg.Store(g.r, rg.NIS)
	if v := rg.StatusReg.Load(g.r); v&rg.NIS != 0 {
		t.Errorf("status %v", v)
	}
	g.w.inject(f)
	g.step()
	if edges() != 2 {
		t.Errorf("%d edges behind the next frame", edges())
	}
	rg.StatusReg.Store(g.r, rg.NIS)
	if v := rg.StatusReg.Load(g.r); v&rg.NIS == 0 {
		t.Errorf("status %v: the summary comes back while RI is pending", v)
	}
	rg.InterruptEnable.Store(g.r, rg.AIE|rg.RUE|rg.OVE|rg.UNE|rg.TJE|rg.TSE|rg.RSE|rg.RWE|rg.ETE|rg.FBE)
	g.events()
	for i, bit := range []rg.Status{rg.TPS, rg.TJT, rg.OVF, rg.UNF, rg.RU, rg.RPS, rg.RWT, rg.ETI} {
		was := edges()
		g.d.RaiseStatus(0, r4.CHStatus(bit))
		if v := rg.StatusReg.Load(g.r); v&(bit|rg.AIS) != bit|rg.AIS || edges() != was+1 {
			t.Errorf("abnormal event %d: status %v, %d edges", i, v, edges()-was)
		}
		if ev := g.events(); ev&bit == 0 {
			t.Errorf("events %v", ev)
		}
	}
}

// MMC counters that pass half show in Interrupt_Status and as GMI, and hold the line.
func TestGMACMMC(t *testing.T) {
	g := newGMACRig(t, nil)
	g.open()
	edges := func() uint64 { return g.d.Stats().Edges[0] }
	f := testFrame(96, 1)
	g.w.inject(f)
	g.step()
	g.mustSend(f)
	for _, c := range []struct {
		off  uint32
		want uint32
	}{
		{rg.RxFrameCountGB, 1}, {rg.RxOctetCountGB, 100}, {rg.RxUnicastFramesG, 1}, {rg.Rx65To127OctetsGB, 1},
		{rg.TxFrameCountGB, 1}, {rg.TxOctetCountG, 100}, {rg.Tx65To127OctetsGB, 1},
	} {
		if v := g.r.Load32(c.off); v != c.want {
			t.Errorf("%s is %d, want %d", rg.Map.Name(c.off), v, c.want)
		}
	}
	rg.MMCControl.Store(g.r, rg.MMCRstOnRd)
	g.r.Load32(rg.RxFrameCountGB)
	if v := g.r.Load32(rg.RxFrameCountGB); v != 0 {
		t.Errorf("%d behind a read with RSTONRD", v)
	}
	rg.MMCControl.Store(g.r, rg.MMCCntPrst)
	if v := g.r.Load32(rg.RxFrameCountGB); v != mmcHalf-mmcPresetPackets {
		t.Errorf("preset is %#x", v)
	}
	for range mmcPresetPackets {
		g.w.inject(f)
		g.step()
		g.rxHead++
		g.post(1)
	}
	const bit = 1 << ((rg.RxFrameCountGB - rg.MMCRxFirst) / 4)
	if v := rg.MMCRxInterrupt.Load(g.r); v&bit == 0 {
		t.Errorf("MMC_Receive_Interrupt is %#x", v)
	}
	if v := rg.InterruptStatus.Load(g.r); v&(rg.MMCIS|rg.MMCRXIS) != rg.MMCIS|rg.MMCRXIS {
		t.Errorf("Interrupt_Status is %v", v)
	}
	if v := rg.StatusReg.Load(g.r); v&rg.GMI == 0 {
		t.Errorf("Status is %v", v)
	}
	if edges() != 1 {
		t.Errorf("%d edges", edges())
	}
	rg.MMCRxInterruptMask.Store(g.r, ^uint32(0))
	rg.MMCTxInterruptMask.Store(g.r, ^uint32(0))
	if v := rg.InterruptStatus.Load(g.r); v != 0 {
		t.Errorf("Interrupt_Status is %v with all masked", v)
	}
	rg.MMCControl.Store(g.r, rg.MMCCntRst)
	if v := g.r.Load32(rg.RxOctetCountGB); v != 0 {
		t.Errorf("%d behind CNTRST", v)
	}
	g.clean()
}

func TestGMACIPCCounters(t *testing.T) {
	g := newGMACRig(t, func(g *gmacRig) { g.configuration |= rg.IPC })
	g.open()
	g.w.inject(ipFrame(100))
	g.step()
	for _, c := range []struct{ off, want uint32 }{
		{rg.RxIPv4Good, 1}, {rg.RxUDPGood, 1}, {rg.RxIPv4Good + rg.IPCOctets, 86}, {rg.RxUDPGood + rg.IPCOctets, 66},
	} {
		if v := g.r.Load32(c.off); v != c.want {
			t.Errorf("%s is %d, want %d", rg.Map.Name(c.off), v, c.want)
		}
	}
}

// OnStatusLoad falls between the load of the status and what a driver does with it.
func TestGMACStatusRace(t *testing.T) {
	g := newGMACRig(t, nil)
	g.open()
	raise := true
	g.d.SetFaults(func(f *Faults) {
		f.OnStatusLoad = func(int) {
			if raise {
				raise = false
				g.d.RaiseStatus(0, r4.RI)
			}
		}
	})
	if ev := g.events(); ev&rg.RI != 0 {
		t.Errorf("events %v", ev)
	}
	if ev := g.events(); ev&rg.RI == 0 {
		t.Errorf("events %v: RI was lost", ev)
	}
}

// Bus errors stop the channel, with where and what in EB.
func TestGMACBusErrors(t *testing.T) {
	for _, c := range []struct {
		name string
		fail func(g *gmacRig, addr uint64, write bool) bool
		tx   bool
		eb   uint32
	}{
		{"rx descriptor read", func(g *gmacRig, a uint64, w bool) bool { return a == uint64(g.descAddr(g.rxBase, 0)) && !w }, false, 6},
		{"rx descriptor write", func(g *gmacRig, a uint64, w bool) bool { return a == uint64(g.descAddr(g.rxBase, 0)) && w }, false, 4},
		{"rx buffer", func(g *gmacRig, a uint64, w bool) bool { return a == g.rxIOVA && w }, false, 0},
		{"tx descriptor read", func(g *gmacRig, a uint64, w bool) bool { return a == uint64(g.descAddr(g.txBase, 0)) && !w }, true, 7},
		{"tx descriptor write", func(g *gmacRig, a uint64, w bool) bool { return a == uint64(g.descAddr(g.txBase, 0)) && w }, true, 5},
		{"tx buffer", func(g *gmacRig, a uint64, w bool) bool { return a == g.txIOVA && !w }, true, 3},
	} {
		t.Run(c.name, func(t *testing.T) {
			g := newGMACRig(t, nil)
			on := false
			g.d.SetFaults(func(f *Faults) {
				f.BusError = func(addr uint64, _ int, write bool) bool { return on && c.fail(g, addr, write) }
			})
			g.open()
			on = true
			g.w.inject(testFrame(100, 1))
			if c.tx {
				g.w.rx = nil
				g.send(testFrame(100, 1))
			}
			g.step()
			v := rg.StatusReg.Load(g.r)
			if v&rg.FBI == 0 || rg.EB.Get(v) != c.eb {
				t.Errorf("status %v, want FBI with EB %d", v, c.eb)
			}
			rg.StatusReg.Store(g.r, rg.FBI)
			if v := rg.StatusReg.Load(g.r); v&(rg.FBI|rg.EB.Mask()) != 0 {
				t.Errorf("status %v behind the clear", v)
			}
			on = false
			clear(g.txRing)
			g.open()
			f := testFrame(100, 2)
			g.w.inject(f)
			g.step()
			g.mustRecv(f)
			g.w.tx = nil
			g.mustSend(f)
			g.clean()
		})
	}
	// An address outside all mappings is one too, and the audit says so.
	g := newGMACRig(t, nil)
	g.setup()
	g.write(g.txRing, g.txBase, 0, [4]uint32{uint32(rg.TxOWN), uint32(rg.TxFS | rg.TxLS | rg.TxTBS1.Of(100)), 0xfffffff0, 0})
	g.run()
	g.step()
	if ev := g.events(); ev&rg.FBI == 0 {
		t.Errorf("events %v", ev)
	}
	g.wantKinds(DMAOutside)
	g.d.RaiseBusError(0, false, busRead)
	if v := rg.StatusReg.Load(g.r); v&rg.FBI == 0 || rg.EB.Get(v) != 2 {
		t.Errorf("status %v", v)
	}
}

// A reset ends when the clocks of the PHY run, and clears all.
func TestGMACResetGated(t *testing.T) {
	g := newGMACRig(t, nil)
	g.open()
	g.w.inject(testFrame(100, 1))
	g.step()
	g.d.SetClockGated(true)
	rg.BusModeReg.Store(g.r, rg.SWR)
	g.clock.Advance(100 * resetTime)
	if rg.BusModeReg.Load(g.r)&rg.SWR == 0 {
		t.Fatal("the reset ended without a clock")
	}
	rg.MACFrameFilter.Store(g.r, rg.PR)
	g.wantKinds(StoreInReset)
	g.d.SetClockGated(false)
	g.clock.Advance(resetTime)
	if rg.BusModeReg.Load(g.r)&rg.SWR != 0 {
		t.Fatal("the reset does not end")
	}
	if v := rg.StatusReg.Load(g.r); v != 0 {
		t.Errorf("status %v", v)
	}
	if v := g.r.Load32(rg.RxFrameCountGB); v != 0 {
		t.Errorf("%d frames counted", v)
	}
	if err := g.d.Reset(t.Context()); err != nil {
		t.Fatal(err)
	}

	g = newGMACRig(t, nil, withFaults(Faults{Reset: ResetFaults{GarbageHash: true, BroadcastOff: true, AddressOff: true}}))
	if rg.HashTableHigh.Load(g.r) != 0xdeadbeef || rg.MACFrameFilter.Load(g.r) != rg.DBF || rg.MACAddressHigh.Load(g.r)&rg.AE != 0 {
		t.Error("the faults of the reset do not show")
	}
}

// Stalls keep the channel from all work, and end as they are told to.
func TestGMACStalls(t *testing.T) {
	g := newGMACRig(t, nil)
	g.open()
	g.d.SetFaults(func(f *Faults) { f.RxStall, f.TxStall = 1, 1 })
	f := testFrame(100, 1)
	g.w.inject(f)
	g.send(f)
	g.step()
	if _, _, _, ok := g.recv(); ok || len(g.w.tx) != 0 {
		t.Fatal("a stalled channel moved a frame")
	}
	rg.OperationModeReg.Update(g.r, rg.ST|rg.SR, 0)
	rg.OperationModeReg.Update(g.r, 0, rg.ST|rg.SR)
	g.step()
	g.mustRecv(f)
	if n, _ := g.reap(); n != 1 {
		t.Error("the transmit channel still stands")
	}
	g.events()
	g.d.SetFaults(func(f *Faults) { f.RxStopHangs, f.TxStopHangs = 1, 1 })
	rg.OperationModeReg.Update(g.r, rg.ST|rg.SR, 0)
	v := rg.StatusReg.Load(g.r)
	if rg.RS.Get(v) != rg.RSTransfer || rg.TS.Get(v) != rg.TSWait || v&(rg.RPS|rg.TPS) != 0 {
		t.Errorf("status %v of channels that do not come to rest", v)
	}
	g.d.SetFaults(func(f *Faults) { f.RxStopHangs, f.TxStopHangs = 0, 0 })
	g.open()
	g.w.inject(f)
	g.step()
	g.mustRecv(f)
}
