package sim

import (
	"bytes"
	"encoding/binary"
	"testing"

	"pgregory.net/rapid"

	r4 "github.com/gostmmac/gostmmac/stmmac/internal/regs/gmac4reg"
)

// TestBurstIsTheSame: the burst paths and the general code leave the same memory,
// registers, counters and frames behind, whatever the traffic and the settings.
func TestBurstIsTheSame(t *testing.T) {
	bursts := 0
	rapid.Check(t, func(rt *rapid.T) {
		pick := func(name string, v ...uint32) uint32 { return rapid.SampledFrom(v).Draw(rt, name) }
		conf := r4.Configuration(pick("conf", 0, uint32(r4.CST), uint32(r4.JE|r4.JD), uint32(r4.ACS|r4.S2KP), uint32(r4.LM), uint32(r4.WD|r4.JE),
			uint32(r4.IPC), uint32(r4.IPC|r4.CST)))
		dropErrors := rapid.Bool().Draw(rt, "drop checksum errors")
		incl := r4.VLANIncl(pick("incl", 0, 0, 0, uint32(r4.VLP|r4.VLC.Of(2)|5)))
		filter := r4.PacketFilter(pick("filter", 0, 0, 0, uint32(r4.PR), uint32(r4.PM), uint32(r4.RA), uint32(r4.HMC), uint32(r4.PCF.Of(2))))
		n := int(pick("ring", 4, 7, 16))
		rbsz := int(pick("rbsz", 256, 2048))
		start := int(pick("start", 64, 66))
		ioc := rapid.Bool().Draw(rt, "ioc")
		queue := uint32(pick("queue", 0, 0, 0, 1))
		profile := Profile(pick("profile", 0, 0, 1))

		type round struct {
			rx, tx [][]byte
			cic    uint32
			vtir   uint32
			bad    bool
			full   bool
			refill int
			budget int
		}
		frame := func(name string) []byte {
			dst := rapid.SampledFrom([][6]byte{testMAC, testMAC, testMAC, foreign, mcast, bcast}).Draw(rt, name+"dst")
			size := int(pick(name+"size", 60, 60, 61, 64, 124, 252, 253, 1514, 20, 1515, 2100))
			f := frameTo(dst, size, byte(size))
			etype := uint16(pick(name+"type", 0x800, 0x800, 0x800, typeVLAN, typeARP, typeControl, 46, typeSlow))
			binary.BigEndian.PutUint16(f[12:], etype)
			if at := int(pick(name+"packet", 0, 0, 8, 27)); at > 0 && size >= 60 {
				p := udp(make([]byte, size-60)...).filled(6).padded(18).bytes()
				p[headerLen+at] ^= byte(pick(name+"flip", 0, 0, 1)) // of the IP header or the UDP checksum
				copy(p, dst[:])
				return p
			}
			if etype == typeControl { // PAUSE, for a round or two
				copy(f, pauseDst[:])
				binary.BigEndian.PutUint16(f[14:], opPause)
				binary.BigEndian.PutUint16(f[16:], 3)
			}
			return f
		}
		var rounds []round
		for range rapid.IntRange(1, 8).Draw(rt, "rounds") {
			r := round{bad: rapid.IntRange(0, 9).Draw(rt, "bad") == 0, full: rapid.IntRange(0, 9).Draw(rt, "full") == 0,
				refill: rapid.IntRange(0, n-1).Draw(rt, "refill"), budget: rapid.IntRange(1, 64).Draw(rt, "budget")}
			for range rapid.IntRange(0, 6).Draw(rt, "rx") {
				r.rx = append(r.rx, frame("rx"))
			}
			for range rapid.IntRange(0, 3).Draw(rt, "tx") {
				r.tx = append(r.tx, frame("tx"))
			}
			r.cic, r.vtir = pick("cic", 0, 0, 1, 3), pick("vtir", 0, 0, 2)
			rounds = append(rounds, r)
		}

		var got [2]*rig
		for k := range got {
			g := newRig(t, withRing(n), withRBSZ(rbsz), withStart(start), withProfile(profile), withConfig(func(c *Config) {
				c.NoAudit = true
				c.RxQueues = 2
			}))
			got[k] = g
			g.d.quick = k == 1
			g.setup()
			r4.MACRxQCtrl0.Store(g.r, 0xa)
			r4.MACRxQCtrl1.Store(g.r, r4.UPQ.Of(queue))
			r4.MTLRxQOperationMode.Store(g.mtl(1), r4.RSF|r4.RQS.Of(7))
			r4.MACPacketFilter.Store(g.r, filter)
			r4.DMACHRxWatchdogTimer.Store(g.ch(0), 0x40)
			if !dropErrors {
				r4.MTLRxQOperationMode.Update(g.mtl(0), 0, r4.DISTCPEF)
			}
			r4.MACVLANIncl.Store(g.r, incl)
			r4.MACRxFlow.Store(g.r, r4.RFE)
			g.run()
			r4.MACConfiguration.Update(g.r, 0, conf)
			r4.DMACHInterruptEnable.Store(g.ch(0), r4.NIE|r4.AIE|r4.RIE|r4.TIE|r4.RBUE)
			for _, r := range rounds {
				for range min(r.refill, n-1-(g.rxTail-g.rxHead)) {
					d3 := rxRead
					if !ioc {
						d3 &^= uint32(r4.RxIOC)
					}
					g.arm(g.rxTail, d3)
					g.rxTail++
				}
				r4.DMACHRxDescTailPointer.Store(g.ch(0), g.ringTail(g.rxBase, g.rxTail))
				g.w.full = r.full
				for _, f := range r.rx {
					g.w.rx = append(g.w.rx, Frame{Data: f, BadFCS: r.bad})
				}
				g.reap()
				for _, f := range r.tx {
					if g.txTail-g.txHead < n-1 {
						d := g.desc(g.txRing, g.txTail)
						g.queue(ioc, f)
						d[2] |= uint32(r4.VTIR.Of(r.vtir))
						d[3] |= uint32(r4.CIC.Of(r.cic))
					}
				}
				g.ring()
				for g.d.Step(r.budget) > 0 {
				}
				g.clock.Advance(1000)
				for g.rxHead != g.rxTail && g.get(g.rxRing, g.rxHead)[3]&uint32(r4.RxOWN) == 0 {
					g.rxHead++
				}
			}
		}
		a, b := got[0], got[1]
		for name, p := range map[string][2][]byte{"rx ring": {a.rxRing, b.rxRing}, "tx ring": {a.txRing, b.txRing},
			"rx memory": {a.rxMem, b.rxMem}} {
			if !bytes.Equal(p[0], p[1]) {
				i := 0
				for p[0][i] == p[1][i] {
					i++
				}
				rt.Fatalf("%s differs at %#x", name, i)
			}
		}
		for off := uint32(0); off < a.r.Len(); off += 4 {
			if x, y := a.r.Load32(off), b.r.Load32(off); x != y {
				rt.Fatalf("%s is %#x with bursts, %#x without", a.d.regName(off), y, x)
			}
		}
		if len(a.w.tx) != len(b.w.tx) {
			rt.Fatalf("%d frames sent with bursts, %d without", len(b.w.tx), len(a.w.tx))
		}
		for i := range a.w.tx {
			if !bytes.Equal(a.w.tx[i].Data, b.w.tx[i].Data) || a.w.tx[i].BadFCS != b.w.tx[i].BadFCS {
				rt.Fatalf("sent frame %d differs", i)
			}
		}
		x, y := a.d.Stats(), b.d.Stats()
		if x.RxFrames != y.RxFrames || x.RxBytes != y.RxBytes || x.TxFrames != y.TxFrames || x.TxBytes != y.TxBytes ||
			x.RxFiltered != y.RxFiltered || x.RxDropped != y.RxDropped || x.RxOverflow != y.RxOverflow || x.RxErrors != y.RxErrors {
			rt.Fatalf("%+v with bursts, %+v without", y, x)
		}
		bursts += int(y.RxFrames)
		a.d.Close()
		b.d.Close()
	})
	if bursts == 0 {
		t.Fatal("no frame was received")
	}
}
