package sim

import (
	"bytes"
	"testing"
	"time"

	r4 "github.com/gostmmac/gostmmac/stmmac/internal/regs/gmac4reg"
)

func (g *rig) rps() uint32 { return r4.DMADebugStatus0.Load(g.r) >> 8 & 0xf }
func (g *rig) tps() uint32 { return r4.DMADebugStatus0.Load(g.r) >> 12 & 0xf }

// restart stops channel 0 both ways and starts it with its lists as after a reset.
func (g *rig) restart() {
	c := g.ch(0)
	r4.DMACHRxControl.Update(c, r4.SR, 0)
	r4.DMACHTxControl.Update(c, r4.ST, 0)
	r4.DMACHRxDescListAddr.Store(c, uint32(g.rxBase))
	r4.DMACHTxDescListAddr.Store(c, uint32(g.txBase))
	r4.DMACHRxDescTailPointer.Store(c, uint32(g.rxBase))
	r4.DMACHTxDescTailPointer.Store(c, uint32(g.txBase))
	g.rxHead, g.rxTail, g.txHead, g.txTail = 0, 0, 0, 0
	g.post(g.n - 1)
	g.run()
}

// TestStall: a stalled channel does nothing and says nothing, and each kind of stall
// ends by what it says and by nothing less.
func TestStall(t *testing.T) {
	cures := []struct {
		name string
		do   func(*rig)
		rank StallCure
	}{
		{"doorbell", func(g *rig) {
			r4.DMACHRxDescTailPointer.Store(g.ch(0), g.ringTail(g.rxBase, g.rxTail))
			g.ring()
		}, -1},
		{"restart", (*rig).restart, StallUntilStop},
		{"software reset", (*rig).open, StallUntilReset},
		{"reset from outside", func(g *rig) { g.d.Model.Reset(); g.open() }, StallUntilReset},
		{"SetFaults", func(g *rig) { g.d.SetFaults(func(f *Faults) { f.RxStall, f.TxStall = 0, 0 }); g.restart() }, StallForever},
	}
	f := testFrame(200, 1)
	for _, survives := range []StallCure{StallUntilStop, StallUntilReset, StallForever} {
		for _, cure := range cures {
			for _, quiet := range []bool{false, true} {
				g := newRig(t, withConfig(func(c *Config) { c.RxFIFO, c.NoAudit = 2048, quiet }))
				g.open()
				g.w.inject(f)
				g.send(f)
				g.step()
				g.mustRecv(f)
				g.wantSent(f)
				g.status()
				g.d.SetFaults(func(f *Faults) { f.RxStall, f.TxStall, f.StallSurvives = 1, 1, survives })
				for range 12 { // nine fit into the FIFO
					g.w.inject(f)
				}
				g.send(f)
				g.step()
				g.noRecv()
				g.wantSent()
				if n, _ := g.reap(); n > 1 {
					t.Fatal("written back")
				}
				if s := g.status(); s != 0 || g.rps() != rxWaiting || g.tps() != txReading {
					t.Fatalf("status %#x, RPS %d, TPS %d", uint32(s), g.rps(), g.tps())
				}
				if v := r4.MTLRxQMissedOverflow.Load(g.mtl(0)); r4.OVFPKTCNT.Get(v) != 3 {
					t.Fatalf("overflow %#x", uint32(v))
				}
				cure.do(g)
				g.step()
				if cure.rank < 0 {
					g.noRecv()
					g.wantSent()
					continue
				}
				for g.rxHead != g.rxTail { // what the FIFO had kept
					if _, _, ok := g.recv(); !ok {
						break
					}
				}
				g.w.tx = nil
				after := testFrame(300, 9)
				g.w.inject(after)
				g.send(after)
				g.step()
				got, _, ok := g.recv()
				cured := cure.rank >= survives
				if ok != cured || (len(g.w.tx) == 1) != cured {
					t.Errorf("stall that survives %d, %s: received %v, sent %d", survives, cure.name, ok, len(g.w.tx))
				}
				if ok && !bytes.Equal(got, after) {
					t.Error("another frame")
				}
				g.d.SetFaults(func(f *Faults) {
					if (f.RxStall|f.TxStall == 0) != cured {
						t.Errorf("%s: RxStall %#x, TxStall %#x", cure.name, f.RxStall, f.TxStall)
					}
				})
				g.clean()
			}
		}
	}
}

// TestStallOneChannel: the other direction and the other channels run on.
func TestStallOneChannel(t *testing.T) {
	f := testFrame(90, 1)
	g := newRig(t)
	g.open()
	g.d.SetFaults(func(f *Faults) { f.RxStall = 1 })
	g.w.inject(f)
	g.send(f)
	g.step()
	g.noRecv()
	g.wantSent(f)
	g.d.SetFaults(func(f *Faults) { f.RxStall, f.TxStall = 0, 1 })
	g.send(f)
	g.step()
	g.mustRecv(f) // what the FIFO kept
	g.wantSent()

	m, rings := txQueues(t, 3, r4.SCHALGWRR, []uint32{1, 1, 1})
	m.d.SetFaults(func(f *Faults) { f.TxStall = 1 << 1 })
	for c, s := range rings {
		s.queue(queueFrame(c, 60), 1)
		m.ringSide(c, s)
	}
	m.step()
	if got := m.order(); got != "02" {
		t.Fatalf("%q with channel 1 stalled", got)
	}
}

// TestStallContext: nor is a context descriptor written while the channel is stalled.
func TestStallContext(t *testing.T) {
	g := newRig(t, withFaults(Faults{InjectContext: InjectContext{Every: 1, Delay: time.Microsecond}}))
	g.open()
	f := testFrame(90, 1)
	g.w.inject(f)
	g.step()
	g.mustRecv(f)
	g.d.SetFaults(func(f *Faults) { f.RxStall = 1 })
	g.clock.Advance(time.Millisecond)
	g.step()
	if w := g.get(g.rxRing, g.rxHead); r4.RDES3(w[3])&r4.RxOWN == 0 {
		t.Fatalf("word 3 is %#x", w[3])
	}
	g.d.SetFaults(func(f *Faults) { f.RxStall = 0 })
	g.step()
	if w := g.get(g.rxRing, g.rxHead); w[3] != uint32(r4.RxCTXT) {
		t.Fatalf("word 3 is %#x", w[3])
	}
}

// TestStallInTheQueue: a frame that was in the transmit queue when its channel stalled
// is not given back by a flush.
func TestStallInTheQueue(t *testing.T) {
	g := newRig(t)
	g.open()
	g.w.full = true
	g.send(testFrame(90, 1))
	g.step()
	g.d.SetFaults(func(f *Faults) { f.TxStall, f.StallSurvives = 1, StallUntilReset })
	g.w.full = false
	g.step()
	r4.MTLTxQOperationMode.Update(g.mtl(0), 0, r4.FTQ)
	if r4.MTLTxQOperationMode.Load(g.mtl(0))&r4.FTQ != 0 {
		t.Fatal("the flush does not end")
	}
	g.step()
	if n, _ := g.reap(); n != 0 {
		t.Fatal("written back")
	}
	g.wantSent()
	if v := r4.MTLTxQDebug.Load(g.mtl(0)); v != 0 {
		t.Fatalf("MTL_TxQ0_Debug %#x after the flush", uint32(v))
	}
}

// TestStopHangs: a channel that does not come to rest says so until a reset.
func TestStopHangs(t *testing.T) {
	f := testFrame(90, 1)
	g := newRig(t, withFaults(Faults{RxStopHangs: 1, TxStopHangs: 1}))
	g.open()
	c := g.ch(0)
	g.w.full = true
	g.send(f)
	g.step()
	r4.DMACHRxControl.Update(c, r4.SR, 0)
	r4.DMACHTxControl.Update(c, r4.ST, 0)
	g.w.full = false
	for range 3 {
		g.w.inject(f)
		g.step()
		g.clock.Advance(time.Second)
		if g.rps() == rxStopped || g.tps() == txStopped || g.status()&(r4.RPS|r4.TPS) != 0 {
			t.Fatalf("RPS %d, TPS %d", g.rps(), g.tps())
		}
		// Stopping again and starting again change nothing.
		r4.DMACHRxControl.Update(c, r4.SR, 0)
		r4.DMACHTxControl.Update(c, r4.ST, 0)
		r4.DMACHRxControl.Update(c, 0, r4.SR)
		r4.DMACHTxControl.Update(c, 0, r4.ST)
	}
	g.noRecv()
	g.wantSent()
	g.open()
	if g.rps() == rxTransferring || g.tps() == txWaiting {
		t.Fatalf("RPS %d, TPS %d after the reset", g.rps(), g.tps())
	}
	g.w.inject(f)
	g.send(f)
	g.step()
	g.mustRecv(f)
	g.wantSent(f)
}

// TestLinkLoss: frames that the link cut off in the middle, and the one behind them.
func TestLinkLoss(t *testing.T) {
	for _, mode := range []LinkLossMode{LinkLossError, LinkLossNoLast} {
		for _, size := range []int{60, 700} {
			g := newRig(t, withRBSZ(256))
			g.d.SetFaults(func(f *Faults) {
				f.LinkLoss = func(k uint64) LinkLossMode {
					if k == 1 {
						return mode
					}
					return LinkLossNone
				}
			})
			g.open()
			first, after := testFrame(60, 1), testFrame(61, 3)
			g.w.inject(first, testFrame(size, 2), after)
			g.step()
			g.mustRecv(first)
			used := 0
			for {
				d3 := r4.RDES3(g.get(g.rxRing, g.rxHead)[3])
				if d3&r4.RxOWN != 0 {
					t.Fatal("no end")
				}
				if (d3&r4.RxFD != 0) != (used == 0) {
					break // the next frame
				}
				used++
				g.rxHead++
				n := int(r4.RxPL.Get(d3))
				if d3&r4.RxLD == 0 {
					if d3&r4.RxES != 0 {
						t.Errorf("word 3 %#x", uint32(d3))
					}
					continue
				}
				if mode != LinkLossError || d3&(r4.RxES|r4.RxRE|r4.RxCE) != r4.RxES|r4.RxRE|r4.RxCE || n >= size+fcsLen || n == 0 {
					t.Errorf("mode %d, size %d: word 3 %#x", mode, size, uint32(d3))
				}
				break
			}
			if want := map[LinkLossMode]int{LinkLossError: (size + fcsLen + 255) / 256, LinkLossNoLast: 1}[mode]; used != want {
				t.Errorf("mode %d, size %d: %d descriptors, want %d", mode, size, used, want)
			}
			g.mustRecv(after)
			if s := g.d.Stats(); s.RxErrors != 1 || s.RxFrames != 2 || g.r.Load32(r4.RxReceiveErrorPackets) != 1 {
				t.Errorf("mode %d: %+v", mode, s)
			}
			g.clean()
		}
	}
}

// TestWatchdogStatus: a frame that the receive watchdog cut raises RWT in the channel
// that gets it.
func TestWatchdogStatus(t *testing.T) {
	for _, size := range []int{2044, 2045} {
		g := newRig(t, withRBSZ(2304))
		g.open()
		r4.MTLRxQOperationMode.Update(g.mtl(0), 0, r4.FEP)
		g.w.inject(testFrame(size, 1))
		g.step()
		if s := g.status(); (s&r4.RWT != 0) != (size > 2044) || s&r4.RI == 0 {
			t.Errorf("%d bytes: status %#x", size, uint32(s))
		}
	}
}

// TestRxWatchdogUnits: RWTU scales the watchdog, from 5.00 on, and a frame of several
// descriptors without IOC starts it once, at its end.
func TestRxWatchdogUnits(t *testing.T) {
	for _, c := range []struct {
		version uint8
		rwtu    uint32
		cycles  int
	}{{0x40, 3, 256}, {0x42, 1, 256}, {0x50, 0, 256}, {0x50, 1, 512}, {0x51, 2, 1024}, {0x52, 3, 2048}} {
		g := newRig(t, withRBSZ(256), withConfig(func(k *Config) { k.CSRClock = 250_000_000; k.Version = c.version }))
		g.setup()
		for i := range g.n - 1 {
			g.arm(i, rxRead&^uint32(r4.RxIOC))
		}
		g.rxTail = g.n - 1
		r4.DMACHRxDescTailPointer.Store(g.ch(0), g.ringTail(g.rxBase, g.rxTail))
		r4.DMACHRxWatchdogTimer.Store(g.ch(0), uint32(r4.RWTU.Of(c.rwtu)|r4.RWTF.Of(20)))
		g.run()
		wait := time.Duration(20*c.cycles) * 4 * time.Nanosecond
		g.w.inject(testFrame(700, 1))
		g.step()
		g.clock.Advance(wait - 1)
		if s := g.status(); s&r4.RI != 0 {
			t.Errorf("%#x, RWTU %d: status %#x too early", c.version, c.rwtu, uint32(s))
		}
		g.clock.Advance(1)
		if s := g.status(); s != r4.RI {
			t.Errorf("%#x, RWTU %d: status %#x when it ran out", c.version, c.rwtu, uint32(s))
		}
		g.clock.Advance(10 * wait)
		if s := g.status(); s != 0 {
			t.Errorf("%#x, RWTU %d: status %#x again", c.version, c.rwtu, uint32(s))
		}
	}
}

// TestBusErrorCodes: every code that TEB and REB can hold, told for the channel, which
// stops alone (D62).
func TestBusErrorCodes(t *testing.T) {
	f := testFrame(90, 1)
	for code := range uint32(8) {
		for _, tx := range []bool{false, true} {
			g := newRig(t)
			g.open()
			r4.DMACHInterruptEnable.Store(g.ch(0), r4.FBEE|r4.AIE)
			g.d.RaiseBusError(0, tx, code)
			s := r4.DMACHStatus.Load(g.ch(0))
			mine, other := r4.REB, r4.TEB
			if tx {
				mine, other = other, mine
			}
			if s&(r4.FBE|r4.AIS) != r4.FBE|r4.AIS || mine.Get(s) != code || other.Get(s) != 0 || g.d.Stats().Edges[0] != 1 {
				t.Errorf("code %d: status %#x, %d edges", code, uint32(s), g.d.Stats().Edges[0])
			}
			g.w.inject(f)
			g.send(f)
			g.step()
			if _, _, ok := g.recv(); ok != tx || (len(g.w.tx) == 0) != tx {
				t.Errorf("code %d, tx %v: received %v, sent %d", code, tx, ok, len(g.w.tx))
			}
			if g.rps() == rxStopped == tx || g.tps() == txStopped != tx {
				t.Errorf("tx %v: RPS %d, TPS %d", tx, g.rps(), g.tps())
			}
		}
	}
	g := newRig(t)
	g.open()
	for _, ch := range []int{-1, 1, 99} { // not there
		g.d.RaiseBusError(ch, true, 7)
		g.d.RaiseBusError(ch, false, 7)
	}
	if s := g.status(); s != 0 {
		t.Errorf("status %#x", uint32(s))
	}
}

// TestBusErrorNth: an access of each kind fails at any time; the code says which kind
// it was, and what was whole before it stays (D62).
func TestBusErrorNth(t *testing.T) {
	const frames = 5
	for _, c := range []struct {
		name       string
		tx, write  bool
		descriptor bool
		code       uint32
	}{
		{"rx descriptor read", false, false, true, 7}, {"rx descriptor write", false, true, true, 6}, {"rx data write", false, true, false, 4},
		{"tx descriptor read", true, false, true, 7}, {"tx descriptor write", true, true, true, 6}, {"tx data read", true, false, false, 5},
	} {
		for nth := range 4 {
			g := newRig(t, withSlot(4096))
			g.open()
			lists := [2]uint64{g.rxBase, g.txBase}
			bufs := [2]uint64{g.rxIOVA, g.txIOVA}
			seen := 0
			g.d.SetFaults(func(f *Faults) {
				f.BusError = func(addr uint64, n int, write bool) bool {
					dir := 0
					if c.tx {
						dir = 1
					}
					list := addr >= lists[dir] && addr < lists[dir]+uint64(g.n*16)
					buf := addr >= bufs[dir] && addr < bufs[dir]+uint64(g.n*g.slot)
					if write != c.write || list != c.descriptor || !list && !buf {
						return false
					}
					seen++
					return seen == nth+1
				}
			})
			for k := range frames {
				g.w.inject(testFrame(90, byte(k)))
				g.send(testFrame(80, byte(k)))
			}
			g.step()
			s := g.status()
			field, other := r4.REB, r4.TEB
			if c.tx {
				field, other = other, field
			}
			if s&r4.FBE == 0 || field.Get(s) != c.code || other.Get(s) != 0 {
				t.Errorf("%s %d: status %#x, want code %d", c.name, nth, uint32(s), c.code)
			}
			got := 0
			for {
				if _, _, ok := g.recv(); !ok {
					break
				}
				got++
			}
			if want := map[bool]int{true: frames, false: nth}[c.tx]; got != want {
				t.Errorf("%s %d: %d frames received, want %d", c.name, nth, got, want)
			}
			if back, _ := g.reap(); back != map[bool]int{true: nth, false: frames}[c.tx] {
				t.Errorf("%s %d: %d frames sent", c.name, nth, back)
			}
			g.clean()
		}
	}
}

// TestBusErrorThenOutside: the audit tells an access that the fault refused from one that
// goes nowhere, also when both happen.
func TestBusErrorThenOutside(t *testing.T) {
	g := newRig(t)
	g.open()
	g.d.SetFaults(func(f *Faults) { f.BusError = func(_ uint64, n int, write bool) bool { return write && n > 16 } })
	g.w.inject(testFrame(90, 1))
	g.step()
	g.wantKinds()
	g.d.SetFaults(func(f *Faults) { f.BusError = nil })
	g.queue(true, testFrame(90, 1))
	g.desc(g.txRing, 0)[1] = 0x10000 // beyond the address width
	g.ring()
	g.step()
	g.wantKinds(DMAOutside)
}

// TestUnmapWhileRunning: one receive buffer, or a list, loses its mapping between two
// frames (D62); the device is usable again after a reset with new memory.
func TestUnmapWhileRunning(t *testing.T) {
	f := testFrame(90, 1)
	for _, c := range []struct {
		name string
		tx   bool
		code uint32
		kind []ViolationKind
	}{
		{"rx buffer", false, 4, []ViolationKind{BufferOutside, DMAOutside}},
		{"rx list", false, 7, []ViolationKind{DMAOutside}},
		{"tx list", true, 7, []ViolationKind{DMAOutside}},
	} {
		g := newRig(t)
		g.setup()
		extra, iova, err := g.d.AllocDMA(4096, 0)
		if err != nil {
			t.Fatal(err)
		}
		for i := range g.n - 1 {
			g.arm(i, rxRead)
		}
		d := g.desc(g.rxRing, 2)
		d[0], d[1] = uint32(iova), uint32(iova>>32)
		g.rxTail = g.n - 1
		r4.DMACHRxDescTailPointer.Store(g.ch(0), g.ringTail(g.rxBase, g.rxTail))
		g.run()
		g.w.inject(f, f)
		g.send(f)
		g.step()
		g.mustRecv(f)
		g.mustRecv(f)
		g.wantSent(f)
		g.status()
		switch c.name {
		case "rx buffer":
			err = g.d.UnmapDMA(iova, len(extra))
		case "rx list":
			err = g.d.UnmapDMA(g.rxBase, len(g.rxRing))
		case "tx list":
			g.queue(true, f)
			err = g.d.UnmapDMA(g.txBase, len(g.txRing))
		}
		if err != nil {
			t.Fatal(err)
		}
		if c.tx {
			g.ring()
		} else {
			g.w.inject(f)
		}
		g.step()
		field := r4.REB
		if c.tx {
			field = r4.TEB
		}
		if s := g.status(); s&r4.FBE == 0 || field.Get(s) != c.code {
			t.Errorf("%s: status %#x", c.name, uint32(s))
		}
		g.wantKinds(c.kind...)
		if n := g.step(); n != 0 {
			t.Errorf("%s: %d units after the fault", c.name, n)
		}
		again := newRigOn(g)
		again.open()
		again.w.inject(f)
		again.send(f)
		again.step()
		again.mustRecv(f)
		again.wantSent(f)
	}
}

// newRigOn is g with new memory on the same device.
func newRigOn(g *rig) *rig {
	h := *g
	alloc := func(n int) ([]byte, uint64) {
		mem, iova, err := g.d.AllocDMA(n, 0)
		if err != nil {
			g.t.Fatal(err)
		}
		return mem, iova
	}
	h.rxRing, h.rxBase = alloc(g.n * 16)
	h.txRing, h.txBase = alloc(g.n * 16)
	return &h
}
