package sim

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"testing"
	"time"

	r4 "github.com/gostmmac/gostmmac/stmmac/internal/regs/gmac4reg"
)

// TestTailIsTheEnd: in the strict profile exactly the descriptors before the tail are
// used, RBU comes when the last was used and not before, and the tail write
// resumes (D01, D07).
func TestTailIsTheEnd(t *testing.T) {
	for _, n := range []int{2, 3, 4, 7, 8, 64} {
		g := newRig(t, withRing(n))
		g.open()
		if v := r4.DMACHRxDescTailPointer.Load(g.ch(0)); v == uint32(g.rxBase) {
			t.Fatal("the tail is the current descriptor")
		}
		seed := byte(0)
		for round := range 30 {
			batch := round%(n-1) + 1
			for i := range n - 1 {
				g.w.inject(testFrame(60, seed+byte(i)))
				g.step()
				s := g.status()
				if rbu := s&r4.RBU != 0; rbu != (i == n-2) {
					t.Fatalf("n %d: RBU %v after frame %d", n, rbu, i)
				}
			}
			extra := testFrame(70, 0xee)
			g.w.inject(extra) // waits in the FIFO
			g.step()
			if s := g.status(); s&r4.RBU != 0 {
				t.Fatal("RBU again")
			}
			if v := r4.DMADebugStatus0.Load(g.r) >> 8 & 0xf; v != rxSuspended {
				t.Fatalf("RPS0 %d", v)
			}
			for i := range n - 1 {
				g.mustRecv(testFrame(60, seed+byte(i)))
			}
			g.noRecv()
			for left := n - 1; left > 0; left -= batch {
				g.post(min(batch, left))
			}
			g.step()
			g.mustRecv(extra)
			g.post(1)
			g.step()
			seed += byte(n)
		}
		g.clean()
	}
}

// TestRingLengths: only the registers say how long a ring is (D73).
func TestRingLengths(t *testing.T) {
	frames := 0
	if !long() {
		t.Log("a part of the lengths; GOSTMMAC_LONG=1 runs all")
	}
	for n := 1; n <= maxRing; n++ {
		if !long() && n > 20 && n%97 != 0 && n < 1023 {
			continue
		}
		for _, p := range []Profile{Strict, Linux} {
			g := newRig(t, withRing(n), withProfile(p), withSlot(256), withRBSZ(256))
			g.setup()
			full := n - 1 // strict: one descriptor is never handed over
			if p == Linux {
				full = n
			}
			for i := range full {
				g.arm(i, rxRead)
			}
			g.rxTail = full
			// Linux hands a full ring over with the address behind it.
			r4.DMACHRxDescTailPointer.Store(g.ch(0), uint32(g.rxBase)+uint32(full*g.stride()))
			g.run()
			for k := range n + 3 {
				f := testFrame(60+k%20, byte(k))
				g.w.inject(f)
				g.step()
				if full == 0 {
					g.noRecv()
					break
				}
				g.mustRecv(f)
				g.post(1)
				frames++
			}
			if full == 0 {
				continue
			}
			if s := g.d.Stats(); s.RxDescReads > 3*uint64(n+3) {
				t.Errorf("n %d: %d descriptor reads", n, s.RxDescReads)
			}
			g.clean()
			g.d.Close()
		}
	}
	if frames == 0 {
		t.Fatal("nothing received")
	}
}

// TestSkipLength: DSL counts bus words (D21).
func TestSkipLength(t *testing.T) {
	for _, bus := range []int{4, 8, 16} {
		for dsl := range 8 {
			g := newRig(t, withConfig(func(c *Config) { c.BusBytes = bus }), withDSL(dsl), withRing(5))
			g.open()
			for k := range 12 {
				f := testFrame(60+k, byte(k))
				g.w.inject(f)
				g.send(f)
				g.step()
				g.mustRecv(f)
				g.post(1)
				g.reap()
				g.wantSent(f)
			}
			g.clean()
		}
	}
}

// TestListAlignment: the low bits of the list address are not taken (D21).
func TestListAlignment(t *testing.T) {
	for _, bus := range []int{4, 8, 16} {
		for off := uint32(0); off < 16; off += 4 {
			g := newRig(t, withConfig(func(c *Config) { c.BusBytes = bus }))
			g.setup()
			r4.DMACHRxDescListAddr.Store(g.ch(0), uint32(g.rxBase)+off)
			want := uint32(g.rxBase) + off&^uint32(bus-1)
			if v := r4.DMACHRxDescListAddr.Load(g.ch(0)); v != want {
				t.Errorf("bus %d: %#x stored, %#x read", bus, uint32(g.rxBase)+off, v)
			}
			if bad := len(g.kinds()) != 0; bad != (off%uint32(bus) != 0) {
				t.Errorf("bus %d offset %d: violations %v", bus, off, g.kinds())
			}
		}
	}
}

// TestResume: what wakes a suspended receive channel.
func TestResume(t *testing.T) {
	f := testFrame(60, 1)
	for _, c := range []struct {
		p      Profile
		ignore bool
		same   bool // resumed by the same tail value
	}{{Strict, false, true}, {Linux, false, true}, {Linux, true, false}} {
		g := newRig(t, withProfile(c.p), withFaults(Faults{IgnoreSameTail: c.ignore}))
		g.setup()
		g.run()
		tail := uint32(g.rxBase) + 16
		r4.DMACHRxDescTailPointer.Store(g.ch(0), tail)
		g.w.inject(f)
		g.step() // finds no OWN and suspends
		g.arm(0, rxRead)
		g.rxTail = 1
		g.step()
		g.noRecv() // OWN alone wakes nothing
		r4.DMACHRxDescTailPointer.Store(g.ch(0), tail)
		g.step()
		if _, _, ok := g.recv(); ok != c.same {
			t.Errorf("%+v: resumed %v", c, ok)
		}
		if !c.same {
			r4.DMACHRxDescTailPointer.Store(g.ch(0), tail+16)
			g.step()
			g.mustRecv(f)
		}
	}
}

// TestBuffers: frames over several descriptors and both buffers, with every way to
// tell the length of the middle ones (D12, D13).
func TestBuffers(t *testing.T) {
	for _, mode := range []MiddleLength{MiddleCumulative, MiddleZero, MiddleOwn, MiddleStale} {
		for _, two := range []bool{false, true} {
			for _, strip := range []bool{false, true} {
				g := newRig(t, withRBSZ(256), withRing(16), withFaults(Faults{MiddleLength: mode, ScribbleWriteBack: true}))
				g.setup()
				if strip {
					r4.MACConfiguration.Update(g.r, 0, r4.CST)
				}
				post := func(n int) {
					for range n {
						g.arm(g.rxTail, rxRead)
						if two {
							a := g.rxAddr(g.rxTail) + 1024
							d := g.desc(g.rxRing, g.rxTail)
							d[2] = uint32(a)
							d[3] = rxRead | uint32(r4.RxBUF2V)
						}
						g.rxTail++
					}
					r4.DMACHRxDescTailPointer.Store(g.ch(0), g.ringTail(g.rxBase, g.rxTail))
				}
				post(g.n - 1)
				g.run()
				per := 256
				if two {
					per = 512
				}
				for _, size := range []int{60, 251, 252, 253, 254, 255, 256, 257, 508, 509, 512, 513, 700, 1024, 1514} {
					f := testFrame(size, byte(size))
					g.w.inject(f)
					g.step()
					total := size + 4
					if strip {
						total = size
					}
					want := append(bytes.Clone(f), binary.LittleEndian.AppendUint32(nil, crc32.ChecksumIEEE(f))...)[:total]
					var got []byte
					for k := 0; ; k++ {
						w := g.get(g.rxRing, g.rxHead)
						d3 := r4.RDES3(w[3])
						if d3&r4.RxOWN != 0 {
							t.Fatalf("size %d: descriptor %d is not back", size, k)
						}
						if (d3&r4.RxFD != 0) != (k == 0) {
							t.Fatalf("size %d: FD in descriptor %d: %#x", size, k, w[3])
						}
						here := min(per, total-len(got))
						b := g.rxBuf(g.rxHead, 256)
						got = append(got, b[:min(here, 256)]...)
						if here > 256 {
							got = append(got, g.rxMem[g.rxHead%g.n*g.slot+1024:][:here-256]...)
						}
						g.rxHead++
						if w[0]>>16 != 0xdead {
							t.Fatalf("word 0 is %#x", w[0])
						}
						pl := int(r4.RxPL.Get(d3))
						if d3&r4.RxLD != 0 {
							if pl != total || d3&r4.RxES != 0 {
								t.Fatalf("size %d: last word 3 %#x", size, w[3])
							}
							break
						}
						wantPL := map[MiddleLength]int{MiddleCumulative: len(got), MiddleZero: 0, MiddleOwn: here, MiddleStale: 0}[mode]
						if pl != wantPL {
							t.Fatalf("mode %d size %d: middle length %d, want %d", mode, size, pl, wantPL)
						}
					}
					if !bytes.Equal(got, want) {
						t.Fatalf("size %d, two buffers %v: content differs", size, two)
					}
					post(g.n - 1 - (g.rxTail - g.rxHead))
				}
				g.clean()
			}
		}
	}
}

// TestBusWords: where a start that is not aligned puts the data, how much a buffer
// holds, and which bytes an engine that writes whole bus words destroys (D20).
func TestBusWords(t *testing.T) {
	const canary = 0x77
	for _, bus := range []int{4, 8, 16} {
		for start := range 18 {
			for _, whole := range []bool{false, true} {
				g := newRig(t, withConfig(func(c *Config) { c.BusBytes = bus }), withRBSZ(128), withStart(256+start),
					withFaults(Faults{WholeBusWords: whole}))
				for i := range g.rxMem {
					g.rxMem[i] = canary
				}
				g.open()
				size := 200
				f := testFrame(size, byte(start))
				g.w.inject(f)
				g.step()
				low := start % bus
				first := 128 - low
				frame := append(bytes.Clone(f), binary.LittleEndian.AppendUint32(nil, crc32.ChecksumIEEE(f))...)
				rest := len(frame) - first
				d0, d1 := g.get(g.rxRing, 0), g.get(g.rxRing, 1)
				if n := r4.RxPL.Get(r4.RDES3(d0[3])); n != uint32(first) {
					t.Fatalf("bus %d start %d: first buffer has %d bytes, want %d", bus, start, n, first)
				}
				if n := r4.RxPL.Get(r4.RDES3(d1[3])); n != uint32(len(frame)) {
					t.Fatalf("bus %d start %d: %d bytes", bus, start, n)
				}
				check := func(slot, from int, data []byte) {
					t.Helper()
					mem := g.rxMem[slot*g.slot:][:g.slot]
					if !bytes.Equal(mem[from:][:len(data)], data) {
						t.Fatalf("bus %d start %d: wrong data in slot %d", bus, start, slot)
					}
					lo, hi := from, from+len(data)
					if whole {
						lo, hi = lo&^(bus-1), (hi+bus-1)&^(bus-1)
					}
					for i, b := range mem {
						inside := i >= from && i < from+len(data)
						want := byte(canary)
						if i >= lo && i < hi {
							want = busGarbage
						}
						if !inside && b != want {
							t.Fatalf("bus %d start %d: byte %d of slot %d is %#x, want %#x", bus, start, i, slot, b, want)
						}
					}
				}
				check(0, 256+start, frame[:first])
				// A continuation starts below the programmed address.
				check(1, 256+start-low, frame[first:first+rest])
				g.clean()
			}
		}
	}
}

func TestContextInjection(t *testing.T) {
	f := testFrame(60, 1)
	for _, c := range []struct {
		name   string
		ic     InjectContext
		before bool // there at once
		after  bool // there after a millisecond
	}{
		{"at once", InjectContext{Every: 1}, true, true},
		{"late", InjectContext{Every: 1, Delay: time.Millisecond}, false, true},
		{"never", InjectContext{Every: 1, Absent: true}, false, false},
		{"invalid", InjectContext{Every: 1, Invalid: true}, true, true},
	} {
		g := newRig(t, withFaults(Faults{InjectContext: c.ic}))
		g.open()
		g.clock.Advance(3 * time.Second)
		g.w.inject(f)
		g.step()
		w := g.mustRecv(f)
		if r4.RDES3(w[3])&r4.RxRS1V == 0 || r4.RDES1(w[1])&r4.TSA == 0 {
			t.Fatalf("%s: no TSA: %08x", c.name, w)
		}
		there := func() bool {
			w = g.get(g.rxRing, 1)
			return w[3] == uint32(r4.RxCTXT)
		}
		if there() != c.before {
			t.Fatalf("%s: descriptor %08x", c.name, w)
		}
		g.clock.Advance(time.Millisecond)
		g.step()
		if there() != c.after {
			t.Fatalf("%s: descriptor %08x after a millisecond", c.name, w)
		}
		switch {
		case c.ic.Invalid && (w[0] != ^uint32(0) || w[1] != ^uint32(0)):
			t.Fatalf("%s: %08x", c.name, w)
		case c.after && !c.ic.Invalid && (w[1] != 3 || w[0] > 1_000_000):
			t.Fatalf("%s: %08x", c.name, w)
		}
		if c.after {
			g.rxHead++
		}
		g.w.inject(f) // the next frame has the next descriptor
		g.step()
		g.mustRecv(f)
		g.clean()
	}
	// The only free descriptor goes to the frame: the context waits for the refill (D65).
	g := newRig(t, withRing(2), withFaults(Faults{InjectContext: InjectContext{Every: 1}}))
	g.open()
	g.w.inject(f)
	g.step()
	g.mustRecv(f)
	if g.status()&r4.RBU == 0 {
		t.Fatal("no RBU")
	}
	g.w.inject(f)
	g.step()
	g.post(1)
	g.step()
	if w := g.get(g.rxRing, 1); w[3] != uint32(r4.RxCTXT) {
		t.Fatalf("no context: %08x", w)
	}
	g.rxHead++
	g.post(1)
	g.step()
	g.mustRecv(f)
	g.clean()
}

// TestOverflowForms: the three forms of a frame that an overflow cut (D09).
func TestOverflowForms(t *testing.T) {
	for _, mode := range []OverflowMode{OverflowLastWithError, OverflowNoLast, OverflowLastWithoutError} {
		for after := 1; after <= 6; after++ {
			g := newRig(t, withRBSZ(256), withFaults(Faults{Overflow: Overflow{Mode: mode, Every: 2, After: after}}))
			g.open()
			good, cut := testFrame(300, 1), testFrame(1000, 2)
			for range 20 {
				g.w.inject(good, cut)
				g.step()
				var d3s []r4.RDES3
				for g.rxHead != g.rxTail {
					w := g.get(g.rxRing, g.rxHead)
					if r4.RDES3(w[3])&r4.RxOWN != 0 {
						break
					}
					d3s = append(d3s, r4.RDES3(w[3]))
					g.rxHead++
				}
				n := min(after, 4) // 1004 bytes in buffers of 256
				if len(d3s) != 2+n {
					t.Fatalf("mode %d after %d: %d descriptors, want %d", mode, after, len(d3s), 2+n)
				}
				if d3s[1]&(r4.RxLD|r4.RxES) != r4.RxLD || r4.RxPL.Get(d3s[1]) != 304 {
					t.Fatalf("the good frame ends with %#x", uint32(d3s[1]))
				}
				if d3s[2]&r4.RxFD == 0 {
					t.Fatalf("the cut frame starts with %#x", uint32(d3s[2]))
				}
				last := d3s[len(d3s)-1]
				ld, es := last&r4.RxLD != 0, last&(r4.RxES|r4.RxOE) == r4.RxES|r4.RxOE
				if ld != (mode != OverflowNoLast) || es != (mode == OverflowLastWithError) || r4.RxPL.Get(last) >= 1004 {
					t.Fatalf("mode %d: the cut frame ends with %#x", mode, uint32(last))
				}
				g.post(len(d3s))
			}
			q := g.mtl(0)
			if v := r4.MTLRxQMissedOverflow.Load(q); r4.OVFPKTCNT.Get(v) != 20 || r4.MTLRxQMissedOverflow.Load(q) != 0 {
				t.Errorf("overflow counter %#x", uint32(v))
			}
			if v := r4.MTLQInterruptCtrl.Load(q); v&r4.RXOVFIS == 0 {
				t.Error("no RXOVFIS")
			}
			g.clean()
		}
	}
}

func TestErrorInjection(t *testing.T) {
	for _, e := range []r4.RDES3{r4.RxCE, r4.RxDE, r4.RxRE, r4.RxOE, r4.RxRWT, r4.RxGP} {
		for k := range uint64(5) {
			g := newRig(t, withRing(4), withFaults(Faults{RxError: func(i uint64) r4.RDES3 {
				if i == k {
					return e
				}
				return 0
			}}))
			g.open()
			for i := range uint64(5) {
				f := testFrame(60, byte(i))
				g.w.inject(f)
				g.step()
				w := g.mustRecv(f)
				got := r4.RDES3(w[3]) & (rxErrors | r4.RxES)
				want := r4.RDES3(0)
				if i == k {
					want = e | r4.RxES
				}
				if got != want {
					t.Fatalf("frame %d: errors %#x, want %#x", i, uint32(got), uint32(want))
				}
				g.post(1)
			}
			if s := g.d.Stats(); s.RxErrors != 1 || s.RxFrames != 4 {
				t.Fatalf("%+v", s)
			}
		}
	}
}

func TestLengthFaults(t *testing.T) {
	g := newRig(t, withFaults(Faults{InconsistentLength: func(pl uint32) uint32 { return pl + 16000 }, RxLengthFlags: r4.RxES | r4.RxLT.Of(7)}))
	g.open()
	g.w.inject(testFrame(60, 1))
	g.step()
	if w := r4.RDES3(g.get(g.rxRing, 0)[3]); r4.RxPL.Get(w) != 16064 || w&r4.RxES == 0 || r4.RxLT.Get(w) != 7 {
		t.Fatalf("word 3 %#x", uint32(w))
	}
}

// TestBoundedStep: a step stops within a frame and goes on later (D18).
func TestBoundedStep(t *testing.T) {
	g := newRig(t, withRBSZ(256))
	g.open()
	f := testFrame(600, 1)
	g.w.inject(f)
	if n := g.d.Step(1); n != 1 {
		t.Fatalf("%d units", n)
	}
	if a, b := g.get(g.rxRing, 0)[3], g.get(g.rxRing, 1)[3]; a&rxRead>>31 != 0 || b>>31 == 0 {
		t.Fatalf("%#x %#x", a, b)
	}
	g.w.inject(testFrame(60, 2))
	g.step()
	for i, want := range []r4.RDES3{r4.RxFD, 0, r4.RxLD, r4.RxFD | r4.RxLD} {
		if d3 := r4.RDES3(g.get(g.rxRing, i)[3]); d3&(r4.RxOWN|r4.RxFD|r4.RxLD) != want {
			t.Errorf("descriptor %d: %#x", i, uint32(d3))
		}
	}
	g.clean()
}

func TestStopInFrame(t *testing.T) {
	g := newRig(t, withRBSZ(256))
	g.open()
	g.w.inject(testFrame(600, 1))
	g.d.Step(1)
	r4.DMACHRxControl.Update(g.ch(0), r4.SR, 0)
	if g.status()&r4.RPS == 0 || r4.DMADebugStatus0.Load(g.r)>>8&0xf != rxStopped {
		t.Fatal("not stopped")
	}
	// Down and up: the list starts over (D59).
	r4.DMACHRxDescListAddr.Store(g.ch(0), uint32(g.rxBase))
	if v := r4.DMACHCurAppRxDesc.Load(g.ch(0)); v != uint32(g.rxBase) {
		t.Fatalf("current descriptor %#x", v)
	}
	g.rxHead, g.rxTail = 0, 0
	for range g.n - 1 {
		g.arm(g.rxTail, rxRead)
		g.rxTail++
	}
	r4.DMACHRxDescTailPointer.Store(g.ch(0), g.ringTail(g.rxBase, g.rxTail))
	r4.DMACHRxControl.Update(g.ch(0), 0, r4.SR)
	f := testFrame(200, 3)
	g.w.inject(f)
	g.step()
	g.mustRecv(f)
	g.clean()
}

// TestFIFO: frames wait in the FIFO while there is no descriptor, in order; what
// does not fit is counted.
func TestFIFO(t *testing.T) {
	g := newRig(t, withConfig(func(c *Config) { c.RxFIFO = 1024 }))
	g.setup()
	g.run() // no descriptor
	var want [][]byte
	for i := range 10 {
		f := testFrame(200, byte(i)) // 208 of 1024 bytes in the FIFO
		g.w.inject(f)
		if i < 4 {
			want = append(want, f)
		}
	}
	g.step()
	if v := r4.MTLRxQDebug.Load(g.mtl(0)); r4.PRXQ.Get(v) != 4 || r4.RXQSTS.Get(v) == 0 {
		t.Errorf("MTL_RxQ0_Debug %#x", uint32(v))
	}
	g.post(g.n - 1)
	g.step()
	for _, f := range want {
		g.mustRecv(f)
	}
	g.noRecv()
	if v := r4.MTLRxQMissedOverflow.Load(g.mtl(0)); r4.OVFPKTCNT.Get(v) != 6 {
		t.Errorf("overflow counter %#x", uint32(v))
	}
	if v := g.r.Load32(r4.RxFIFOOverflowPackets); v != 6 {
		t.Errorf("MMC overflow %d", v)
	}
	if s := g.d.Stats(); s.RxFrames != 4 || s.RxOverflow != 6 {
		t.Errorf("%+v", s)
	}

	// An elastic wire keeps what the FIFO has no room for.
	e := newRig(t, withConfig(func(c *Config) { c.RxFIFO = 1024 }))
	e.w.elastic = true
	e.setup()
	e.w.inject(testFrame(100, 0xfe))
	e.step()
	if len(e.w.rx) != 1 {
		t.Fatal("taken with the receiver off")
	}
	e.run()
	for i := range 10 {
		e.w.inject(testFrame(200, byte(i)))
	}
	e.step()
	e.post(e.n - 1)
	e.step()
	e.mustRecv(testFrame(100, 0xfe))
	for i := range 10 {
		e.mustRecv(testFrame(200, byte(i)))
	}
	if s := e.d.Stats(); s.RxOverflow != 0 {
		t.Errorf("%+v", s)
	}
	// A frame that can never fit does not block it.
	e.post(10)
	e.w.inject(testFrame(1400, 1), testFrame(60, 2))
	e.step()
	e.mustRecv(testFrame(60, 2))
	e.clean()
}

func TestBusErrors(t *testing.T) {
	type fault struct {
		name   string
		break_ func(*rig)
		tx     bool
		bits   uint32
		kinds  []ViolationKind
	}
	all := func(*rig) Faults { return Faults{} }
	_ = all
	for _, c := range []fault{
		{"rx buffer unmapped", func(g *rig) { g.desc(g.rxRing, 0)[0] = 0x4000 }, false, busTransfer, []ViolationKind{OwnedWrite, BufferOutside, DMAOutside}},
		{"rx buffer too high", func(g *rig) { g.desc(g.rxRing, 0)[1] = 0x10000 }, false, busTransfer, []ViolationKind{OwnedWrite, BufferOutside, DMAOutside}},
		{"rx list unmapped", func(g *rig) { g.d.UnmapDMA(g.rxBase, len(g.rxRing)) }, false, busTransfer | busRead | busDescriptor, []ViolationKind{DMAOutside}},
		{"rx write refused", func(g *rig) {
			g.d.SetFaults(func(f *Faults) { f.BusError = func(a uint64, n int, w bool) bool { return w && n > 16 } })
		}, false, busTransfer, nil},
		{"rx write-back refused", func(g *rig) {
			g.d.SetFaults(func(f *Faults) { f.BusError = func(a uint64, n int, w bool) bool { return w && n == 16 } })
		}, false, busTransfer | busDescriptor, nil},
		{"tx buffer unmapped", func(g *rig) { g.desc(g.txRing, 0)[0] = 0x4000 }, true, busTransfer | busRead, []ViolationKind{DMAOutside, OwnedWrite}},
		{"tx list unmapped", func(g *rig) { g.d.UnmapDMA(g.txBase, len(g.txRing)) }, true, busTransfer | busRead | busDescriptor, []ViolationKind{DMAOutside}},
		{"tx read refused", func(g *rig) {
			g.d.SetFaults(func(f *Faults) { f.BusError = func(a uint64, n int, w bool) bool { return !w && n > 16 } })
		}, true, busTransfer | busRead, nil},
		{"tx write-back refused", func(g *rig) {
			g.d.SetFaults(func(f *Faults) { f.BusError = func(a uint64, n int, w bool) bool { return w } })
		}, true, busTransfer | busDescriptor, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			g := newRig(t)
			g.open()
			r4.DMACHInterruptEnable.Store(g.ch(0), r4.FBEE|r4.AIE)
			if c.tx {
				g.queue(true, testFrame(60, 1))
				g.ring()
			} else {
				g.w.inject(testFrame(60, 1))
			}
			c.break_(g)
			g.step()
			s := g.status()
			field := r4.REB
			if c.tx {
				field = r4.TEB
			}
			if s&(r4.FBE|r4.AIS) != r4.FBE|r4.AIS || field.Get(s) != c.bits {
				t.Fatalf("status %#x", uint32(s))
			}
			if g.d.Stats().Edges[0] != 1 {
				t.Error("no interrupt")
			}
			if v := r4.DMACHStatus.Load(g.ch(0)); field.Get(v) != 0 {
				t.Errorf("status %#x after the clear", uint32(v))
			}
			g.wantKinds(c.kinds...)
			// The channel has stopped until it is started again; the others run.
			if n := g.step(); n != 0 {
				t.Errorf("%d units after the fault", n)
			}
		})
	}
}

// TestRecovery: after a bus error a channel works again when its list was written
// and it was started anew.
func TestRecovery(t *testing.T) {
	bad := true
	g := newRig(t, withFaults(Faults{BusError: func(uint64, int, bool) bool { return bad }}))
	g.open()
	f := testFrame(90, 1)
	g.w.inject(f)
	g.send(f)
	g.step()
	if s := g.status(); s&r4.FBE == 0 {
		t.Fatal("no bus error")
	}
	g.d.SetFaults(func(*Faults) { bad = false })
	g.open()
	g.w.inject(f)
	g.send(f)
	g.step()
	g.mustRecv(f)
	g.wantSent(f)
	g.clean()
}

func TestFlushStopped(t *testing.T) {
	g := newRig(t)
	g.setup()
	r4.DMACHRxControl.Update(g.ch(0), 0, r4.RPF)
	r4.MACConfiguration.Update(g.r, 0, r4.RE)
	g.w.inject(testFrame(60, 1), testFrame(60, 2))
	g.step()
	if v := r4.DMACHMissFrameCnt.Load(g.ch(0)); r4.MFC.Get(v) != 2 || r4.DMACHMissFrameCnt.Load(g.ch(0)) != 0 {
		t.Fatalf("missed %#x", uint32(v))
	}
	if s := g.d.Stats(); s.RxMissed != 2 {
		t.Fatalf("%+v", s)
	}
}

func TestContextAddressError(t *testing.T) {
	g := newRig(t)
	g.setup()
	g.put(g.rxRing, 0, [4]uint32{^uint32(0), ^uint32(0), 0, rxRead})
	g.arm(1, rxRead)
	g.rxTail = 2
	r4.DMACHRxDescTailPointer.Store(g.ch(0), g.ringTail(g.rxBase, 2))
	g.run()
	g.w.inject(testFrame(60, 1))
	g.step()
	if g.status()&r4.CDE == 0 {
		t.Fatal("no CDE")
	}
	g.wantKinds(BufferOutside)
}

// noWindow is memory that only calls reach.
type noWindow struct{ *space }

func (n noWindow) Window(uint64, int) []byte { return nil }

func (n noWindow) Read(a uint64, p []byte) error {
	w := n.space.Window(a, len(p))
	if w == nil {
		return errBus
	}
	copy(p, w)
	return nil
}

func (n noWindow) Write(a uint64, p []byte) error {
	w := n.space.Window(a, len(p))
	if w == nil {
		return errBus
	}
	copy(w, p)
	return nil
}

// TestWithoutWindows: a transport whose memory is reached by calls only.
func TestWithoutWindows(t *testing.T) {
	g := newRig(t, withRBSZ(256))
	g.d.Model.dma = noWindow{&g.d.space}
	g.open()
	for k := range 40 {
		f := testFrame(60+k*31, byte(k))
		g.w.inject(f)
		g.send(split(f, 400)...)
		g.step()
		g.wantSent(f)
		g.reap()
		var got []byte
		for {
			w := g.get(g.rxRing, g.rxHead)
			d3 := r4.RDES3(w[3])
			if d3&r4.RxOWN != 0 {
				t.Fatalf("round %d: frame is not complete", k)
			}
			got = append(got, g.rxBuf(g.rxHead, 256)...)
			g.rxHead++
			g.post(1)
			if d3&r4.RxLD != 0 {
				got = got[:r4.RxPL.Get(d3)]
				break
			}
		}
		if !bytes.Equal(got[:len(f)], f) {
			t.Fatalf("round %d differs", k)
		}
	}
	g.clean()
}

func TestAddressWidths(t *testing.T) {
	for _, c := range []struct {
		width int
		high  bool
	}{{32, false}, {40, false}, {40, true}, {48, false}, {48, true}} {
		t.Run(fmt.Sprint(c), func(t *testing.T) {
			g := newRig(t, withConfig(func(f *Config) { f.AddrWidth, f.HighIOVA = c.width, c.high }))
			if high := g.rxBase>>32 != 0; high != c.high {
				t.Fatalf("list at %#x", g.rxBase)
			}
			g.open()
			f := testFrame(99, 1)
			g.w.inject(f)
			g.send(f)
			g.step()
			g.mustRecv(f)
			g.wantSent(f)
			g.clean()
		})
	}
}
