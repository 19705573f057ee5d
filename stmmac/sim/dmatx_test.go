package sim

import (
	"bytes"
	"fmt"
	"slices"
	"testing"

	r4 "github.com/gostmmac/gostmmac/stmmac/internal/regs/gmac4reg"
)

// wantKinds checks that exactly these kinds of violations were found.
func (g *rig) wantKinds(want ...ViolationKind) {
	g.t.Helper()
	got := g.kinds()
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		g.t.Errorf("violations %v, want %v: %v", got, want, g.d.Audit())
	}
}

func (g *rig) wantSent(want ...[]byte) {
	g.t.Helper()
	if len(g.w.tx) != len(want) {
		g.t.Fatalf("%d frames on the wire, want %d", len(g.w.tx), len(want))
	}
	for i, f := range g.w.tx {
		if !bytes.Equal(f.Data, want[i]) {
			g.t.Fatalf("frame %d on the wire: %d bytes, want %d, or other content", i, len(f.Data), len(want[i]))
		}
	}
	g.w.tx = nil
}

// split cuts f into pieces of n bytes.
func split(f []byte, n int) (p [][]byte) {
	for len(f) > n {
		p = append(p, f[:n])
		f = f[n:]
	}
	return append(p, f)
}

func TestTransmitGather(t *testing.T) {
	g := newRig(t, withRing(8))
	g.open()
	for _, size := range []int{60, 61, 200, 1514, 9018} {
		for _, n := range []int{size, size - 1, (size + 1) / 2, (size + 6) / 7} {
			f := testFrame(size, byte(size+n))
			p := split(f, n)
			if n > g.slot {
				continue
			}
			g.send(p...)
			g.step()
			if got, last := g.reap(); got != len(p) || last[3]&txLD == 0 {
				t.Fatalf("%d bytes in %d pieces: %d back, the last %08x", size, len(p), got, last)
			}
			if size <= 2044 {
				g.wantSent(f)
			} else {
				g.w.tx = nil // cut: see TestJabber
			}
		}
	}
	if s := g.status(); s&(r4.TI|r4.TBU) != r4.TI|r4.TBU {
		t.Errorf("status %#x", uint32(s))
	}
}

// TestTransmitTwoBuffers: with 32 address bits word 1 is the second buffer.
func TestTransmitTwoBuffers(t *testing.T) {
	g := newRig(t, withConfig(func(c *Config) { c.AddrWidth = 32 }))
	g.open()
	f := testFrame(300, 5)
	copy(g.txMem, f[:100])
	copy(g.txMem[g.slot:], f[100:])
	a := uint32(g.txIOVA)
	g.put(g.txRing, 0, [4]uint32{a, a + uint32(g.slot), uint32(r4.B1L.Of(100) | r4.B2L.Of(200)), uint32(r4.TxOWN|r4.TxFD|r4.TxLD) | 300})
	g.txTail = 1
	g.ring()
	g.step()
	g.wantSent(f)
	g.put(g.txRing, 1, [4]uint32{0, a + uint32(g.slot), uint32(r4.B2L.Of(200)), uint32(r4.TxOWN|r4.TxFD|r4.TxLD) | 200})
	g.txTail = 2
	g.ring()
	g.step()
	g.wantSent(f[100:])
	g.clean()
}

func TestPadAndFCS(t *testing.T) {
	short, long := testFrame(20, 1), testFrame(90, 2)
	padded := append(bytes.Clone(short), make([]byte, 40)...)
	sum := fcs(long)
	withFCS := append(bytes.Clone(long), sum[:]...)
	wrong := append(bytes.Clone(long), 1, 2, 3, 4)
	for _, c := range []struct {
		name string
		cpc  uint32
		in   []byte
		out  []byte
		bad  bool
	}{
		{"pad", cpcPadFCS, short, padded, false},
		{"no pad", cpcFCS, short, short, false},
		{"own FCS", cpcNone, withFCS, long, false},
		{"own wrong FCS", cpcNone, wrong, long, true},
		{"replaced FCS", cpcReplace, wrong, long, false},
	} {
		g := newRig(t)
		g.open()
		g.queue(true, c.in)
		d := g.desc(g.txRing, 0)
		d[3] |= uint32(r4.CPC.Of(c.cpc))
		g.ring()
		g.step()
		if len(g.w.tx) != 1 || !bytes.Equal(g.w.tx[0].Data, c.out) || g.w.tx[0].BadFCS != c.bad {
			t.Errorf("%s: %v", c.name, g.w.tx)
		}
		g.clean()
	}
}

func TestJabber(t *testing.T) {
	for _, c := range []struct {
		conf r4.Configuration
		size int
		want int
		cut  bool
	}{
		{0, 2044, 2044, false}, {0, 2045, 2044, true}, {r4.JE, 10236, 10236, false}, {r4.JE, 10237, 10236, true},
		{r4.JD, 16000, 16000, false},
	} {
		g := newRig(t, withRing(8), withSlot(16384))
		g.open()
		r4.MACConfiguration.Update(g.r, 0, c.conf)
		g.send(testFrame(c.size, 1))
		g.step()
		_, last := g.reap()
		es := r4.TDES3(last[3])&(r4.TxES|r4.TxJT) == r4.TxES|r4.TxJT
		if len(g.w.tx) != 1 || len(g.w.tx[0].Data) != c.want || g.w.tx[0].BadFCS != c.cut || es != c.cut {
			t.Errorf("conf %#x, %d bytes: %d on the wire, word 3 %#x", uint32(c.conf), c.size, len(g.w.tx[0].Data), last[3])
		}
	}
}

// TestTransmitWaits: what holds a frame in the queue, and that nothing of it is lost.
func TestTransmitWaits(t *testing.T) {
	f := [][]byte{testFrame(60, 1), testFrame(700, 2), testFrame(90, 3)}
	for name, c := range map[string]struct{ stop, free func(*rig) }{
		"full wire":        {func(g *rig) { g.w.full = true }, func(g *rig) { g.w.full = false }},
		"TE off":           {func(g *rig) { r4.MACConfiguration.Update(g.r, r4.TE, 0) }, func(g *rig) { r4.MACConfiguration.Update(g.r, 0, r4.TE) }},
		"no clock":         {func(g *rig) { g.d.SetClockGated(true) }, func(g *rig) { g.d.SetClockGated(false) }},
		"never completes":  {func(g *rig) { g.d.SetFaults(func(f *Faults) { f.TxNeverCompletes = true }) }, func(g *rig) { g.d.SetFaults(func(f *Faults) { f.TxNeverCompletes = false }) }},
		"queue disabled":   {func(g *rig) { r4.MTLTxQOperationMode.Update(g.mtl(0), r4.TXQEN.Mask(), 0) }, func(g *rig) { r4.MTLTxQOperationMode.Update(g.mtl(0), 0, r4.TXQEN.Of(2)) }},
		"unmap of another": {func(g *rig) { g.w.full = true; g.d.DropWindows() }, func(g *rig) { g.d.DropWindows(); g.w.full = false }},
	} {
		t.Run(name, func(t *testing.T) {
			g := newRig(t)
			g.open()
			c.stop(g)
			g.queue(true, f[0])
			g.queue(true, f[1][:300], f[1][300:])
			g.queue(true, f[2])
			g.ring()
			for range 3 {
				g.step()
				if n, _ := g.reap(); n != 0 || len(g.w.tx) != 0 || g.status()&r4.TI != 0 {
					t.Fatal("sent")
				}
			}
			if v := r4.MTLTxQDebug.Load(g.mtl(0)); v&r4.TXQSTS == 0 {
				t.Errorf("MTL_TxQ0_Debug %#x: empty", uint32(v))
			}
			if v := r4.DMADebugStatus0.Load(g.r) >> 12 & 0xf; v != txWaiting {
				t.Errorf("TPS0 %d", v)
			}
			c.free(g)
			g.step()
			if n, _ := g.reap(); n != 4 || g.status()&r4.TI == 0 {
				t.Fatalf("%d descriptors back", n)
			}
			g.wantSent(f...)
			g.clean()
		})
	}
}

func TestHalfDuplexQueues(t *testing.T) {
	g := newRig(t, withConfig(func(c *Config) { c.TxQueues = 2 }), withFaults(Faults{HalfDuplexQueue0Only: true}))
	g.open()
	c := g.ch(1)
	r4.DMACHTxDescListHAddr.Store(c, uint32(g.txBase>>32))
	r4.DMACHTxDescListAddr.Store(c, uint32(g.txBase))
	r4.DMACHTxDescTailPointer.Store(c, uint32(g.txBase))
	r4.DMACHTxDescRingLength.Store(c, uint32(g.n-1))
	r4.MTLTxQOperationMode.Store(g.mtl(1), r4.TSF|r4.TXQEN.Of(2)|r4.TQS.Of(31))
	r4.DMACHTxControl.Update(g.ch(0), r4.ST, 0)
	r4.DMACHTxControl.Update(c, 0, r4.ST)
	r4.MACConfiguration.Store(g.r, 0)
	r4.MACConfiguration.Store(g.r, r4.TE|r4.RE) // half duplex
	f := testFrame(60, 1)
	g.queue(true, f)
	r4.DMACHTxDescTailPointer.Store(c, g.ringTail(g.txBase, g.txTail))
	g.step()
	if len(g.w.tx) != 0 {
		t.Fatal("queue 1 sends in half duplex")
	}
	r4.MACConfiguration.Store(g.r, 0)
	r4.MACConfiguration.Store(g.r, r4.TE|r4.RE|r4.DM)
	g.step()
	g.wantSent(f)
}

func TestSingleTransmitDescriptor(t *testing.T) {
	for _, twice := range []bool{false, true} {
		g := newRig(t, withRing(1), withFaults(Faults{SingleTxTwice: twice}), withProfile(Linux))
		g.open()
		f := testFrame(60, 1)
		g.queue(true, f)
		// The tail of a ring of one is its base; only the linux profile takes the
		// address behind the ring for it.
		r4.DMACHTxDescTailPointer.Store(g.ch(0), uint32(g.txBase)+16)
		g.step()
		if len(g.w.tx) != 0 {
			t.Fatal("the engine stops at the tail")
		}
		g2 := newRig(t, withRing(2), withFaults(Faults{SingleTxTwice: twice}))
		g2.open()
		g2.send(f)
		g2.step()
		g2.wantSent(f)
	}
	// With two descriptors programmed as one the tail never matches.
	g := newRig(t, withRing(2), withFaults(Faults{SingleTxTwice: true}))
	g.setup()
	r4.DMACHTxDescRingLength.Store(g.ch(0), 0)
	g.run()
	f := testFrame(60, 1)
	g.queue(true, f)
	r4.DMACHTxDescTailPointer.Store(g.ch(0), uint32(g.txBase)+16)
	g.step()
	g.wantSent(f, f)
	g.wantKinds(TailOutside, OwnMissing)
}

func TestStopAndRestart(t *testing.T) {
	g := newRig(t, withRing(8))
	g.open()
	f := testFrame(60, 1)
	g.send(f)
	g.send(f)
	g.send(f)
	g.d.Step(1)
	g.reap()
	g.w.full = true
	g.step() // the second frame is in the queue
	r4.DMACHTxControl.Update(g.ch(0), r4.ST, 0)
	g.step()
	if v := r4.DMADebugStatus0.Load(g.r) >> 12 & 0xf; v == txStopped {
		t.Fatal("stopped with a frame in the queue")
	}
	g.w.full = false
	g.step()
	if v := r4.DMADebugStatus0.Load(g.r) >> 12 & 0xf; v != txStopped {
		t.Fatalf("TPS0 %d", v)
	}
	if g.status()&r4.TPS == 0 {
		t.Fatal("no TPS")
	}
	if n, _ := g.reap(); n != 1 {
		t.Fatalf("%d back", n)
	}
	if v := r4.DMACHCurAppTxDesc.Load(g.ch(0)); v != g.ringTail(g.txBase, 2) {
		t.Fatalf("current descriptor %#x", v)
	}
	r4.DMACHTxControl.Update(g.ch(0), 0, r4.ST) // goes on where it stopped
	g.step()
	g.wantSent(f, f, f)
	r4.DMACHTxControl.Update(g.ch(0), r4.ST, 0)
	r4.DMACHTxDescListAddr.Store(g.ch(0), uint32(g.txBase))
	if v := r4.DMACHCurAppTxDesc.Load(g.ch(0)); v != uint32(g.txBase) {
		t.Fatalf("current descriptor %#x after the list was written", v)
	}
	g.reap()
	g.txHead, g.txTail = 0, 0
	r4.DMACHTxDescTailPointer.Store(g.ch(0), uint32(g.txBase))
	r4.DMACHTxControl.Update(g.ch(0), 0, r4.ST)
	g.send(f)
	g.step()
	g.wantSent(f)
	g.clean()
}

func TestFlush(t *testing.T) {
	for _, hang := range []bool{false, true} {
		g := newRig(t, withFaults(Faults{FlushHangs: hang}))
		g.open()
		g.w.full = true
		g.send(testFrame(60, 1))
		g.step()
		q := g.mtl(0)
		r4.MTLTxQOperationMode.Update(q, 0, r4.FTQ)
		busy := r4.MTLTxQOperationMode.Load(q)&r4.FTQ != 0
		n, last := g.reap()
		if busy != hang || (n == 0) != hang {
			t.Fatalf("hang %v: FTQ %v, %d back", hang, busy, n)
		}
		if !hang && r4.TDES3(last[3])&(r4.TxES|r4.TxFF) != r4.TxES|r4.TxFF {
			t.Fatalf("word 3 %#x", last[3])
		}
		g.d.SetFaults(func(f *Faults) { f.FlushHangs = false })
		if r4.MTLTxQOperationMode.Load(q)&r4.FTQ != 0 {
			t.Fatal("FTQ is still set")
		}
		g.reap()
		g.w.full = false
		f := testFrame(61, 2)
		g.send(f)
		g.step()
		g.wantSent(f)
	}
}

func TestContextDescriptor(t *testing.T) {
	g := newRig(t)
	g.open()
	f := testFrame(60, 1)
	g.put(g.txRing, 0, [4]uint32{0, 0, 1400, uint32(r4.TxOWN | r4.TxCTXT | r4.TxTCMSSV)})
	g.txTail = 1
	g.send(f)
	g.step()
	g.wantSent(f)
	if w := g.get(g.txRing, 0); w[3] != uint32(r4.TxCTXT) {
		t.Fatalf("context descriptor %08x", w)
	}
	g.clean()
	if g.status()&r4.CDE != 0 {
		t.Fatal("CDE")
	}
	// In the middle of a frame it is an error and the frame is lost.
	g.txHead = g.txTail
	g.queue(true, f[:30], f[30:40], f[40:])
	g.put(g.txRing, g.txTail-2, [4]uint32{0, 0, 0, uint32(r4.TxOWN | r4.TxCTXT)})
	g.ring()
	g.send(f)
	g.step()
	g.wantSent(f)
	if g.status()&r4.CDE == 0 {
		t.Fatal("no CDE")
	}
	g.wantKinds(ContextInFrame)
}

func TestThresholdCorrupts(t *testing.T) {
	g := newRig(t, withFaults(Faults{ThresholdCorrupts: true}))
	g.open()
	r4.MTLTxQOperationMode.Update(g.mtl(0), r4.TSF, 0)
	f := testFrame(100, 1)
	g.send(f)
	g.step()
	if len(g.w.tx) != 1 || bytes.Equal(g.w.tx[0].Data, f) || g.w.tx[0].BadFCS {
		t.Fatal("the frame is whole")
	}
	g.wantKinds(ThresholdTransmit)
	r4.MTLTxQOperationMode.Update(g.mtl(0), 0, r4.TSF)
	g.w.tx = nil
	g.send(f)
	g.step()
	g.wantSent(f)
}

// TestCurrentRunsAhead is D05: the register is ahead of the write-back, not of the tail.
func TestCurrentRunsAhead(t *testing.T) {
	g := newRig(t, withFaults(Faults{CurTxAhead: 3}))
	g.open()
	g.w.full = true
	f := testFrame(60, 1)
	g.send(f)
	g.send(f)
	g.step()
	if v := r4.DMACHCurAppTxDesc.Load(g.ch(0)); v != g.ringTail(g.txBase, 2) {
		t.Fatalf("current %#x, list at %#x", v, g.txBase)
	}
	if n, _ := g.reap(); n != 0 {
		t.Fatal("written back")
	}
}

// TestSchedulers: strict priority serves the highest queue first, round robin by weight.
func TestSchedulers(t *testing.T) {
	for _, c := range []struct {
		alg     uint32
		weights [2]uint32
		want    string
	}{
		{r4.SCHALGSP, [2]uint32{1, 1}, "11110000"},
		{r4.SCHALGWRR, [2]uint32{1, 1}, "01010101"},
		{r4.SCHALGWRR, [2]uint32{2, 1}, "00100111"},
	} {
		g := newRig(t, withConfig(func(c *Config) { c.TxQueues = 2 }))
		g.open()
		mem, base, err := g.d.AllocDMA(16*16, 0)
		if err != nil {
			t.Fatal(err)
		}
		defer g.d.UnmapDMA(base, len(mem))
		ch := g.ch(1)
		r4.DMACHTxDescListHAddr.Store(ch, uint32(base>>32))
		r4.DMACHTxDescListAddr.Store(ch, uint32(base))
		r4.DMACHTxDescTailPointer.Store(ch, uint32(base))
		r4.DMACHTxDescRingLength.Store(ch, 15)
		r4.MTLTxQOperationMode.Store(g.mtl(1), r4.TSF|r4.TXQEN.Of(2)|r4.TQS.Of(31))
		r4.MTLOperationMode.Store(g.r, r4.SCHALG.Of(c.alg))
		for q := range 2 {
			r4.MTLTxQQuantumWeight.Store(g.mtl(q), c.weights[q])
		}
		r4.MTLOperationMode.Store(g.r, r4.SCHALG.Of(c.alg))
		r4.DMACHTxControl.Update(ch, 0, r4.ST)
		for i := range 4 {
			g.queue(false, testFrame(60, 0))
			a := g.txIOVA + uint64((8+i)*g.slot)
			copy(g.txMem[(8+i)*g.slot:], testFrame(60, 100))
			g.put(mem, i, [4]uint32{uint32(a), uint32(a >> 32), 60, uint32(r4.TxOWN|r4.TxFD|r4.TxLD) | 60})
		}
		r4.DMACHTxDescTailPointer.Store(ch, uint32(base)+4*16)
		g.ring()
		g.step()
		got := ""
		for _, f := range g.w.tx {
			got += fmt.Sprint(f.Data[headerLen] / 100)
		}
		if got != c.want {
			t.Errorf("SCHALG %d, weights %v: %s, want %s", c.alg, c.weights, got, c.want)
		}
		g.clean()
	}
}
