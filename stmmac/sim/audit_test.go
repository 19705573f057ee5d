package sim

import (
	"strings"
	"testing"
	"time"

	"github.com/gostmmac/gostmmac/mmio"
	r4 "github.com/gostmmac/gostmmac/stmmac/internal/regs/gmac4reg"
)

// TestAuditFinds is the negative control of every rule: a driver that breaks it is
// found in both profiles, but for those rules that the tail stands for.
func TestAuditFinds(t *testing.T) {
	f := testFrame(60, 1)
	tail := func(g *rig, tx bool, off uint32) {
		if tx {
			r4.DMACHTxDescTailPointer.Store(g.ch(0), uint32(g.txBase)+off)
		} else {
			r4.DMACHRxDescTailPointer.Store(g.ch(0), uint32(g.rxBase)+off)
		}
	}
	update := func(reg mmio.Reg[uint32], v uint32) func(*rig) {
		return func(g *rig) { reg.Store(g.ch(0), v) }
	}
	for _, c := range []struct {
		name   string
		kind   ViolationKind
		strict bool // not judged in the linux profile
		opts   []rigOption
		do     func(*rig)
	}{
		{"rx descriptor written while owned", OwnedWrite, true, nil, func(g *rig) {
			g.desc(g.rxRing, 3)[0] += 64
			for range 5 {
				g.w.inject(f)
			}
			g.step()
		}},
		{"tx descriptor written while owned", OwnedWrite, true, nil, func(g *rig) {
			g.send(f)
			g.desc(g.txRing, 0)[2] &^= uint32(r4.IOC)
			g.step()
		}},
		{"tx descriptor written after the fetch", OwnedWrite, false, nil, func(g *rig) {
			g.w.full = true
			g.send(f)
			g.step()
			g.desc(g.txRing, 0)[0] += 4
			g.w.full = false
			g.step()
		}},
		{"rx descriptor without OWN before the tail", OwnMissing, true, nil, func(g *rig) {
			g.desc(g.rxRing, 1)[3] &^= uint32(r4.RxOWN)
			g.w.inject(f, f)
			g.step()
		}},
		{"tx descriptor without OWN before the tail", OwnMissing, true, nil, func(g *rig) {
			g.txTail = 2
			g.ring()
			g.step()
		}},
		{"parked rx tail", StaleFetch, true, []rigOption{withFaults(Faults{Prefetch: Prefetch{On: true, Delay: 200 * time.Nanosecond}})}, func(g *rig) {
			// The tail stands behind a descriptor that is armed later: the engine
			// reads its words 0 to 2 before and word 3 after it was armed.
			g.arm(0, rxRead)
			tail(g, false, 2*16)
			g.w.inject(f, f)
			for range 4 {
				g.step()
				g.clock.Advance(200 * time.Nanosecond)
			}
			g.step()
			g.step() // if the last one gave up the words, this one reads them again
			g.arm(1, rxRead)
			g.clock.Advance(time.Microsecond)
			g.step()
		}},
		{"rx tail outside the list", TailOutside, false, nil, func(g *rig) { tail(g, false, uint32(g.n*16+16)) }},
		{"tx tail below the list", TailOutside, false, nil, func(g *rig) { tail(g, true, ^uint32(15)) }},
		{"rx tail behind the list", TailOutside, true, nil, func(g *rig) { tail(g, false, uint32(g.n*16)) }},
		{"tx tail inside a descriptor", TailMisaligned, false, nil, func(g *rig) { tail(g, true, 24) }},
		{"rx tail hands over again", TailOvertakes, true, nil, func(g *rig) { tail(g, false, 2*16); tail(g, false, 1*16) }},
		{"tx buffer not mapped", DMAOutside, false, nil, func(g *rig) {
			g.queue(true, f)
			g.desc(g.txRing, 0)[0] = 0x1000
			g.ring()
			g.step()
		}},
		{"tx buffer beyond the address width", DMAOutside, false, []rigOption{withConfig(func(c *Config) { c.AddrWidth = 40 })}, func(g *rig) {
			g.queue(true, f)
			g.desc(g.txRing, 0)[1] = 0x100
			g.ring()
			g.step()
		}},
		{"rx list not mapped", DMAOutside, false, nil, func(g *rig) {
			r4.DMACHRxControl.Update(g.ch(0), r4.SR, 0)
			r4.DMACHRxDescListAddr.Store(g.ch(0), 0x2000)
			r4.DMACHRxDescTailPointer.Store(g.ch(0), 0x2010)
			r4.DMACHRxControl.Update(g.ch(0), 0, r4.SR)
			g.w.inject(f)
			g.step()
		}},
		{"rx buffer ends outside", BufferOutside, false, nil, func(g *rig) {
			iova, err := g.d.MapDMA(make([]byte, 4096))
			if err != nil {
				g.t.Fatal(err)
			}
			g.setup()
			a := iova + 4096 - 1024 // a short frame fits, the buffer does not
			g.put(g.rxRing, 0, [4]uint32{uint32(a), uint32(a >> 32), 0, rxRead})
			g.rxTail = 1
			r4.DMACHRxDescTailPointer.Store(g.ch(0), g.ringTail(g.rxBase, 1))
			g.run()
			g.w.inject(f)
			g.step()
		}},
		{"rx descriptor without a buffer", NoBuffer, false, nil, func(g *rig) {
			g.setup()
			g.arm(0, uint32(r4.RxOWN))
			g.arm(1, rxRead)
			g.rxTail = 2
			r4.DMACHRxDescTailPointer.Store(g.ch(0), g.ringTail(g.rxBase, 2))
			g.run()
			g.w.inject(f)
			g.step()
		}},
		{"tx descriptor with empty buffers", NoBuffer, false, nil, func(g *rig) { g.send(f[:30], nil, f[30:]); g.step() }},
		{"rx list", ConfigRunning, false, nil, update(r4.DMACHRxDescListAddr, 0x3000)},
		{"rx list high", ConfigRunning, false, nil, update(r4.DMACHRxDescListHAddr, 1)},
		{"tx list", ConfigRunning, false, nil, update(r4.DMACHTxDescListAddr, 0x3000)},
		{"rx ring length", ConfigRunning, false, nil, update(r4.DMACHRxDescRingLength, 7)},
		{"tx ring length", ConfigRunning, false, nil, update(r4.DMACHTxDescRingLength, 7)},
		{"RBSZ", ConfigRunning, false, nil, func(g *rig) { r4.DMACHRxControl.Update(g.ch(0), r4.RBSZ.Mask(), r4.RBSZ.Of(1024)) }},
		{"rx burst length", ConfigRunning, false, nil, func(g *rig) { r4.DMACHRxControl.Update(g.ch(0), 0, r4.RXPBL.Of(8)) }},
		{"tx burst length", ConfigRunning, false, nil, func(g *rig) { r4.DMACHTxControl.Update(g.ch(0), 0, r4.TXPBL.Of(8)) }},
		{"PBLx8", ConfigRunning, false, nil, func(g *rig) { r4.DMACHControl.Update(g.ch(0), 0, r4.PBLx8) }},
		{"EAME", ConfigRunning, false, nil, func(g *rig) { r4.DMASysBusMode.Update(g.r, r4.EAME, 0) }},
		{"TQS", ConfigRunning, false, nil, func(g *rig) { r4.MTLTxQOperationMode.Update(g.mtl(0), r4.TQS.Mask(), r4.TQS.Of(7)) }},
		{"RQS", ConfigRunning, false, nil, func(g *rig) { r4.MTLRxQOperationMode.Update(g.mtl(0), r4.RQS.Mask(), r4.RQS.Of(7)) }},
		{"speed", ConfigRunning, false, nil, func(g *rig) { r4.MACConfiguration.Update(g.r, 0, r4.PS) }},
		{"duplex with the enables going off", ConfigRunning, false, nil, func(g *rig) { r4.MACConfiguration.Update(g.r, r4.DM|r4.TE|r4.RE, 0) }},
		{"RBSZ not of bus words", ConfigInvalid, false, nil, func(g *rig) {
			r4.DMACHRxControl.Update(g.ch(0), r4.SR, 0)
			r4.DMACHRxControl.Store(g.ch(0), r4.RBSZ.Of(1535))
		}},
		{"RBSZ 0", ConfigInvalid, false, []rigOption{withRBSZ(0)}, func(g *rig) {}},
		{"list not aligned", ConfigInvalid, false, nil, func(g *rig) {
			g.setup()
			r4.DMACHRxDescListAddr.Store(g.ch(0), uint32(g.rxBase)+4)
		}},
		{"list across 4 GiB", ConfigInvalid, false, nil, func(g *rig) {
			g.setup()
			r4.DMACHRxDescListAddr.Store(g.ch(0), 0xffffff80)
			r4.DMACHRxDescTailPointer.Store(g.ch(0), 0xffffff80)
			r4.DMACHRxControl.Update(g.ch(0), 0, r4.SR)
		}},
		{"second tx buffer with wide addresses", ConfigInvalid, false, nil, func(g *rig) {
			g.queue(true, f)
			g.desc(g.txRing, 0)[2] |= uint32(r4.B2L.Of(20))
			g.ring()
			g.step()
		}},
		{"receive queues larger than the FIFO", ConfigInvalid, false, []rigOption{withConfig(func(c *Config) { c.RxQueues = 2 })}, func(g *rig) {
			g.setup()
			r4.MACRxQCtrl0.Store(g.r, 0xa)
			for q := range 2 {
				r4.MTLRxQOperationMode.Store(g.mtl(q), r4.RQS.Of(63))
			}
		}},
		{"transmit queues larger than the FIFO", ConfigInvalid, false, []rigOption{withConfig(func(c *Config) { c.TxQueues = 2 })}, func(g *rig) {
			g.setup()
			for q := range 2 {
				r4.MTLTxQOperationMode.Store(g.mtl(q), r4.TXQEN.Of(2)|r4.TQS.Of(63))
			}
		}},
		{"CIC on a later descriptor", FirstOnlyBits, false, nil, func(g *rig) {
			g.queue(true, f[:30], f[30:])
			g.desc(g.txRing, 1)[3] |= uint32(r4.CIC.Of(3))
			g.ring()
			g.step()
		}},
		{"TTSE on a later descriptor", FirstOnlyBits, false, nil, func(g *rig) {
			g.queue(true, f[:30], f[30:])
			g.desc(g.txRing, 1)[2] |= uint32(r4.TTSE)
			g.ring()
			g.step()
		}},
		{"frame without FD", ChainBroken, false, nil, func(g *rig) {
			g.queue(true, f)
			g.desc(g.txRing, 0)[3] &^= txFD
			g.ring()
			g.step()
		}},
		{"FD inside a frame", ChainBroken, false, nil, func(g *rig) {
			g.queue(true, f[:30], f[30:])
			g.desc(g.txRing, 1)[3] |= txFD
			g.ring()
			g.step()
		}},
		{"tail inside a frame", ChainCut, false, nil, func(g *rig) {
			g.queue(true, f[:30], f[30:])
			tail(g, true, 16)
			g.step()
		}},
		{"context inside a frame", ContextInFrame, false, nil, func(g *rig) {
			g.queue(true, f[:30], f[30:])
			g.desc(g.txRing, 1)[3] |= uint32(r4.TxCTXT)
			g.ring()
			g.step()
		}},
		{"descriptor of all ones", ContextInFrame, false, nil, func(g *rig) {
			g.queue(true, f)
			*g.desc(g.txRing, 0) = [4]uint32{^uint32(0), ^uint32(0), ^uint32(0), ^uint32(0)}
			g.ring()
			g.step()
		}},
		{"wrong frame length", LengthMismatch, false, nil, func(g *rig) {
			g.queue(true, f)
			g.desc(g.txRing, 0)[3]++
			g.ring()
			g.step()
		}},
		{"frame beyond its queue", FrameBeyondFIFO, false, nil, func(g *rig) {
			g.setup()
			r4.MTLTxQOperationMode.Update(g.mtl(0), r4.TQS.Mask(), r4.TQS.Of(1))
			g.run()
			g.send(testFrame(513, 1))
			g.step()
		}},
		{"threshold mode", ThresholdTransmit, false, nil, func(g *rig) {
			r4.MTLTxQOperationMode.Update(g.mtl(0), r4.TSF, 0)
			g.send(f)
			g.step()
		}},
		{"store during reset", StoreInReset, false, nil, func(g *rig) {
			r4.DMAMode.Store(g.r, r4.SWR)
			r4.DMACHStatus.Store(g.ch(0), 1)
		}},
		{"fast MDC", MDIOMisuse, false, nil, func(g *rig) { r4.MACMDIOAddress.Store(g.r, uint32(r4.MDIOGB|r4.MDIOCR.Of(2))) }},
	} {
		for _, p := range []Profile{Strict, Linux} {
			t.Run(c.name+"/"+p.String(), func(t *testing.T) {
				g := newRig(t, append(c.opts, withProfile(p))...)
				g.setup()
				if g.rbsz == 0 {
					g.run()
				} else {
					g.post(g.n - 1)
					g.run()
				}
				if c.name == "parked rx tail" {
					g = newRig(t, append(c.opts, withProfile(p))...)
					g.setup()
					g.run()
				}
				c.do(g)
				found := false
				for _, v := range g.d.Audit() {
					found = found || v.Kind == c.kind
					if v.Text == "" || !strings.HasPrefix(v.String(), v.Kind.String()) {
						t.Errorf("violation without a text: %+v", v)
					}
				}
				if want := p == Strict || !c.strict; found != want {
					t.Errorf("found %v, want %v: %v", found, want, g.d.Audit())
				}
			})
		}
	}
}

// TestAuditOff: NoAudit records nothing.
func TestAuditOff(t *testing.T) {
	g := newRig(t, withConfig(func(c *Config) { c.NoAudit = true }))
	g.open()
	r4.DMACHRxDescListAddr.Store(g.ch(0), 4)
	g.queue(true, testFrame(60, 1))
	g.desc(g.txRing, 0)[3]++
	g.ring()
	g.step()
	g.clean()
}

func TestAuditIsBounded(t *testing.T) {
	g := newRig(t)
	g.open()
	for range 3 * maxViolations {
		r4.DMACHTxDescTailPointer.Store(g.ch(0), 8)
	}
	if n := len(g.d.Audit()); n != maxViolations {
		t.Errorf("%d violations", n)
	}
}

// TestPrefetch: a driver that keeps the tail rule works with an engine that reads
// words 0 to 2 of everything before the tail early (D03).
func TestPrefetch(t *testing.T) {
	rounds := 1_000_000 / 4
	if !long() {
		rounds /= 100
		t.Logf("%d rounds; GOSTMMAC_LONG=1 runs 100 times as many", rounds)
	}
	g := newRig(t, withRing(4), withFaults(Faults{ScribbleWriteBack: true, Prefetch: Prefetch{On: true, Delay: 200 * time.Nanosecond, Depth: 3}}))
	g.open()
	for k := range rounds {
		f := testFrame(60+k%50, byte(k))
		g.w.inject(f)
		g.send(f)
		for range 4 {
			g.step()
			g.clock.Advance(100 * time.Nanosecond)
		}
		g.step()
		g.mustRecv(f)
		g.post(1)
		if n, _ := g.reap(); n != 1 {
			t.Fatalf("round %d: %d sent", k, n)
		}
		g.wantSent(f)
	}
	g.clean()
}

func TestKindNames(t *testing.T) {
	seen := map[string]bool{}
	for k := OwnedWrite; k <= VLANMisuse; k++ {
		s := k.String()
		if seen[s] || strings.Contains(s, "(") {
			t.Errorf("kind %d is %q", int(k), s)
		}
		seen[s] = true
	}
	if s := ViolationKind(99).String(); s != "ViolationKind(99)" {
		t.Error(s)
	}
	v := Violation{Kind: OwnMissing, Channel: 2, Tx: true, Index: 7, Text: "x"}
	if v.String() != "OwnMissing tx channel 2 descriptor 7: x" {
		t.Error(v)
	}
}
