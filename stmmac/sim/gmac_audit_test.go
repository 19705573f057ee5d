package sim

import (
	"testing"

	"github.com/gostmmac/gostmmac/barrier"
	rg "github.com/gostmmac/gostmmac/stmmac/internal/regs/gmacreg"
)

// What a driver must not do, each rule alone.
func TestGMACAudit(t *testing.T) {
	frame := testFrame(600, 1)
	for _, c := range []struct {
		name string
		set  gmacOption
		do   func(g *gmacRig)
		want []ViolationKind
	}{
		{"write before the fetch", nil, func(g *gmacRig) {
			g.word(g.rxRing, 0)[2] += 64
			g.w.inject(frame)
		}, []ViolationKind{OwnedWrite}},
		{"write behind a poll demand", nil, func(g *gmacRig) {
			g.queue(frame)
			g.d.SetFaults(func(f *Faults) { f.TxStall = 1 })
			rg.TransmitPollDemand.Store(g.r, 1)
			g.word(g.txRing, 0)[1] &^= uint32(rg.TxIC)
			g.d.SetFaults(func(f *Faults) { f.TxStall = 0 })
		}, []ViolationKind{OwnedWrite}},
		{"write while it is sent", nil, func(g *gmacRig) {
			g.w.full = true
			g.send(frame)
			g.step()
			g.word(g.txRing, 0)[2] += 64
			g.w.full = false
		}, []ViolationKind{OwnedWrite}},
		{"refill in order", nil, func(g *gmacRig) {
			for range 40 {
				g.w.inject(frame)
				g.step()
				g.mustRecv(frame)
				g.post(1)
			}
		}, nil},
		{"first OWN first", func(g *gmacRig) { g.txPiece = 256 }, func(g *gmacRig) {
			g.queue(frame)
			own := g.word(g.txRing, 1)
			barrier.StoreOwn(&own[0], 0)
			rg.TransmitPollDemand.Store(g.r, 1)
			g.step()
			barrier.StoreOwn(&own[0], uint32(rg.TxOWN))
			rg.TransmitPollDemand.Store(g.r, 1)
			g.step()
			if n, _ := g.reap(); n != 3 || len(g.w.tx) != 1 {
				g.t.Errorf("%d descriptors, %d frames", n, len(g.w.tx))
			}
		}, []ViolationKind{ChainCut}},
		{"no first segment", nil, func(g *gmacRig) {
			g.write(g.txRing, g.txBase, 0, [4]uint32{uint32(rg.TxOWN), uint32(rg.TxLS | rg.TxTBS1.Of(60)), uint32(g.txIOVA), 0})
			rg.TransmitPollDemand.Store(g.r, 1)
		}, []ViolationKind{ChainBroken}},
		{"two first segments", nil, func(g *gmacRig) {
			for i := range 2 {
				g.write(g.txRing, g.txBase, i, [4]uint32{uint32(rg.TxOWN), uint32(rg.TxFS | rg.TxTBS1.Of(60)), uint32(g.txIOVA), 0})
			}
			g.write(g.txRing, g.txBase, 2, [4]uint32{uint32(rg.TxOWN), uint32(rg.TxLS | rg.TxTBS1.Of(60)), uint32(g.txIOVA), 0})
			rg.TransmitPollDemand.Store(g.r, 1)
		}, []ViolationKind{ChainBroken}},
		{"no buffer", nil, func(g *gmacRig) {
			g.write(g.txRing, g.txBase, 0, [4]uint32{uint32(rg.TxOWN), uint32(rg.TxLS | rg.TxFS), 0, 0})
			rg.TransmitPollDemand.Store(g.r, 1)
		}, []ViolationKind{NoBuffer}},
		{"receive buffers without bytes", func(g *gmacRig) { g.size = 0 }, func(g *gmacRig) { g.w.inject(frame) }, []ViolationKind{NoBuffer}},
		{"receive buffer of odd size", func(g *gmacRig) { g.size = 2047 }, func(g *gmacRig) { g.w.inject(frame) }, []ViolationKind{ConfigInvalid}},
		{"receive buffer not mapped", nil, func(g *gmacRig) {
			rg.OperationModeReg.Update(g.r, rg.SR, 0)
			g.word(g.rxRing, 0)[2] = 0xffff_0000
			rg.OperationModeReg.Update(g.r, 0, rg.SR)
			g.w.inject(frame)
		}, []ViolationKind{BufferOutside, DMAOutside}},
		{"list base", nil, func(g *gmacRig) { rg.TransmitListAddress.Store(g.r, uint32(g.rxBase)) }, []ViolationKind{ConfigRunning}},
		{"list not aligned", nil, func(g *gmacRig) {
			rg.OperationModeReg.Update(g.r, rg.ST, 0)
			rg.TransmitListAddress.Store(g.r, uint32(g.txBase)+4)
		}, []ViolationKind{ConfigInvalid}},
		{"burst length", nil, func(g *gmacRig) { rg.BusModeReg.Update(g.r, 0, rg.PBLX8) }, []ViolationKind{ConfigRunning}},
		{"skip length", nil, func(g *gmacRig) { rg.BusModeReg.Update(g.r, 0, rg.DSL.Of(1)) }, []ViolationKind{ConfigRunning}},
		{"alternate descriptors", func(g *gmacRig) {}, func(g *gmacRig) {
			rg.OperationModeReg.Update(g.r, rg.SR|rg.ST, 0)
			rg.BusModeReg.Update(g.r, 0, rg.ATDS)
		}, []ViolationKind{ConfigInvalid}},
		{"speed", nil, func(g *gmacRig) { rg.MACConfiguration.Update(g.r, 0, rg.PS|rg.FES) }, []ViolationKind{ConfigRunning}},
		{"duplex", nil, func(g *gmacRig) { rg.MACConfiguration.Update(g.r, rg.DM, 0) }, []ViolationKind{ConfigRunning}},
		{"speed while it is off", nil, func(g *gmacRig) {
			rg.MACConfiguration.Update(g.r, rg.RE|rg.TE, 0)
			rg.MACConfiguration.Update(g.r, rg.DM, rg.PS|rg.FES)
			rg.MACConfiguration.Update(g.r, 0, rg.RE|rg.TE)
		}, nil},
		{"threshold", func(g *gmacRig) { g.operation &^= rg.TSF }, func(g *gmacRig) { g.send(frame) }, []ViolationKind{ThresholdTransmit}},
		{"flow control thresholds", nil, func(g *gmacRig) { rg.OperationModeReg.Update(g.r, 0, rg.EFC|rg.RFAOf(3)|rg.RFDOf(2)) }, []ViolationKind{ConfigInvalid}},
	} {
		t.Run(c.name, func(t *testing.T) {
			g := newGMACRig(t, c.set)
			g.open()
			c.do(g)
			g.step()
			g.wantKinds(c.want...)
		})
	}
	// A frame that the FIFO does not hold.
	g := newGMACRig(t, nil, withConfig(func(c *Config) { c.TxFIFO = 512 }))
	g.open()
	g.send(frame)
	g.step()
	g.wantKinds(FrameBeyondFIFO)
}

// The management bus: CR codes, busy, and what a PHY says.
func TestGMACManagement(t *testing.T) {
	g := newGMACRig(t, nil, withConfig(func(c *Config) {
		c.PHY = &PHYConfig{Address: 7, Partner: Partner{Modes: AllModes}}
	}))
	wait := func() {
		t.Helper()
		for range 1000 {
			if rg.GMIIAddress.Load(g.r)&rg.GB == 0 {
				return
			}
			g.clock.Advance(1000)
		}
		t.Fatal("busy for ever")
	}
	read := func(pa, reg, cr uint32) uint32 {
		rg.GMIIAddress.Store(g.r, rg.GB|rg.PA.Of(pa)|rg.GR.Of(reg)|rg.CR.Of(cr))
		if rg.GMIIAddress.Load(g.r)&rg.GB == 0 {
			t.Fatal("not busy")
		}
		wait()
		return rg.GMIIData.Load(g.r)
	}
	// 125 MHz: dividers of 62 and more are slow enough, that of code 0, 42, is not.
	for _, cr := range []uint32{1, 4, 5, 6, 7} {
		if v := read(7, 2, cr); v == 0xffff || v == 0 {
			t.Errorf("CR %d: identifier %#x", cr, v)
		}
	}
	if v := read(6, 2, 1); v != 0xffff {
		t.Errorf("nobody answers with %#x", v)
	}
	rg.GMIIData.Store(g.r, 0x1234)
	rg.GMIIAddress.Store(g.r, rg.GB|rg.GW|rg.PA.Of(7)|rg.GR.Of(4)|rg.CR.Of(1))
	wait()
	if v := read(7, 4, 1); v == 0xffff || v&0x20 == 0 {
		t.Errorf("the advertisement reads %#x", v)
	}
	g.clean()
	read(7, 2, 0)
	g.wantKinds(MDIOMisuse)
	rg.GMIIAddress.Store(g.r, rg.GB|rg.PA.Of(7)|rg.CR.Of(1))
	rg.GMIIAddress.Store(g.r, rg.GB|rg.PA.Of(7)|rg.CR.Of(1))
	if n := len(g.d.Audit()); n != 2 {
		t.Errorf("%d violations with a second transaction while busy", n)
	}
	wait()
}
