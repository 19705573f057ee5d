package sim

import (
	"bytes"
	"encoding/binary"
	"testing"
	"time"

	"github.com/gostmmac/gostmmac/stmmac/internal/regs/gmac4reg"
	rg "github.com/gostmmac/gostmmac/stmmac/internal/regs/gmacreg"
)

// The end of the descriptors: RU once, frames that wait with DFF and are missed without,
// and what goes on: a poll demand, or the next frame.
func TestGMACReceiveSuspends(t *testing.T) {
	for _, keep := range []bool{false, true} {
		g := newGMACRig(t, func(g *gmacRig) {
			if !keep {
				g.operation &^= rg.DFF
			}
		}, withRing(2))
		g.open()
		f := testFrame(100, 1)
		g.w.inject(f, f)
		g.step()
		if ev := g.events(); ev&rg.RI == 0 || ev&rg.RU == 0 {
			t.Fatalf("keep %v: events %v behind the last descriptor", keep, ev)
		}
		if s := rg.RS.Get(rg.StatusReg.Load(g.r)); s != rg.RSSuspended {
			t.Errorf("keep %v: process state %d", keep, s)
		}
		g.w.inject(f, f, f)
		g.step()
		if ev := g.events(); ev&(rg.RI|rg.RU) != 0 {
			t.Errorf("keep %v: events %v again", keep, ev)
		}
		missed := rg.MissedFrame.Load(g.r)
		if n := rg.MISFRMCNT.Get(missed); keep && n != 0 || !keep && n != 3 {
			t.Errorf("keep %v: %d frames missed", keep, n)
		}
		if v := rg.MissedFrame.Load(g.r); v != 0 {
			t.Errorf("keep %v: the counter is %#x behind its read", keep, uint32(v))
		}
		g.mustRecv(f)
		g.mustRecv(f)
		if keep {
			g.post(2)
			g.step()
			g.mustRecv(f)
			g.mustRecv(f)
			g.post(1)
			g.step()
			g.mustRecv(f)
		} else {
			// Without a poll demand the next frame finds the descriptor.
			g.armRx(g.rxTail)
			g.rxTail++
			g.w.inject(f)
			g.step()
			g.mustRecv(f)
		}
		g.clean()
	}
}

func TestGMACFIFOOverflow(t *testing.T) {
	g := newGMACRig(t, nil, withRing(1), withConfig(func(c *Config) { c.RxFIFO = 2048 }))
	g.open()
	f := testFrame(1000, 1)
	g.w.inject(f, f, f, f)
	g.step()
	if v := rg.MissedFrame.Load(g.r); rg.OVFFRMCNT.Get(v) != 1 || rg.MISFRMCNT.Get(v) != 0 {
		t.Errorf("missed %#x", uint32(v))
	}
	if ev := g.events(); ev&rg.OVF == 0 {
		t.Errorf("events %v", ev)
	}
	if v := g.r.Load32(uint32(rg.RxFIFOOverflow)); v != 1 {
		t.Errorf("rxfifooverflow is %d", v)
	}
	if v := rg.RXFSTS.Get(rg.DebugReg.Load(g.r)); v == 0 {
		t.Errorf("RXFSTS is 0 with frames in the FIFO")
	}
}

// A frame that does not fit into the descriptors is cut without DFF, and goes on with it.
func TestGMACDescriptorError(t *testing.T) {
	for _, keep := range []bool{false, true} {
		g := newGMACRig(t, func(g *gmacRig) {
			g.size = 256
			if !keep {
				g.operation &^= rg.DFF
			}
		}, withRing(4))
		g.setup()
		g.post(2)
		g.run()
		f := testFrame(700, 1)
		g.w.inject(f)
		g.step()
		last := rg.RDES0(g.read(g.rxRing, 1)[0])
		if keep {
			if last&(rg.RxOWN|rg.RxLS|rg.RxDE) != 0 || rg.RxFL.Get(last) != 512 {
				t.Fatalf("the second of three descriptors is %v %#x", last, uint32(last))
			}
			g.post(2)
			g.step()
			g.mustRecv(f)
		} else {
			const want = rg.RxLS | rg.RxDE | rg.RxES
			if last&(rg.RxOWN|want|rg.RxFS) != want {
				t.Fatalf("the last of two descriptors is %#x", uint32(last))
			}
			g.rxHead = 2
			g.post(2)
			g.w.inject(testFrame(100, 2))
			g.step()
			g.mustRecv(testFrame(100, 2))
		}
		g.clean()
	}
}

// RI follows DIC, ERI the first buffer of a long frame, the watchdog what DIC kept quiet.
func TestGMACReceiveInterrupts(t *testing.T) {
	g := newGMACRig(t, func(g *gmacRig) { g.size, g.rxFlags = 256, rg.RxDIC })
	g.open()
	rg.ReceiveWatchdog.Store(g.r, 10) // 2,560 cycles of 8 ns
	g.w.inject(testFrame(600, 1))
	g.step()
	if ev := g.events(); ev&(rg.RI|rg.ERI) != rg.ERI {
		t.Fatalf("events %v with DIC", ev)
	}
	g.clock.Advance(20479 * time.Nanosecond)
	if ev := g.events(); ev&rg.RI != 0 {
		t.Fatal("the watchdog is early")
	}
	g.clock.Advance(time.Nanosecond)
	if ev := g.events(); ev&rg.RI == 0 {
		t.Fatal("the watchdog did not bark")
	}
	g.rxFlags = 0
	g.mustRecv(testFrame(600, 1))
	g.setup()
	g.post(g.n)
	g.run()
	g.w.inject(testFrame(600, 2))
	g.step()
	if ev := g.events(); ev&(rg.RI|rg.ERI) != rg.RI {
		t.Fatalf("events %v: RI clears ERI", ev)
	}
}

// ipFrame is an IPv4 UDP frame with right checksums.
func ipFrame(n int) []byte {
	f := testFrame(n, 3)
	binary.BigEndian.PutUint16(f[12:], typeIPv4)
	ip := f[14:34]
	copy(ip, []byte{0x45, 0, 0, 0, 0, 0, 0, 0, 64, protoUDP, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2})
	binary.BigEndian.PutUint16(ip[2:], uint16(n-14))
	binary.BigEndian.PutUint16(f[38:], uint16(n-34))
	binary.BigEndian.PutUint16(f[40:], 0)
	p := parseIP(f[14:], typeIPv4)
	binary.BigEndian.PutUint16(f[40:], ^fold16(sum16(p.pseudo(n-34), p.payload)))
	binary.BigEndian.PutUint16(ip[10:], ^fold16(sum16(0, ip)))
	return f
}

func TestGMACVerdict(t *testing.T) {
	change := func(f []byte, at int, v byte) []byte {
		f = bytes.Clone(f)
		f[at] ^= v
		return f
	}
	fragment := bytes.Clone(ipFrame(100))
	fragment[20] |= 0x20 // more fragments
	binary.BigEndian.PutUint16(fragment[24:], 0)
	binary.BigEndian.PutUint16(fragment[24:], ^fold16(sum16(0, fragment[14:34])))
	length := testFrame(60, 1)
	binary.BigEndian.PutUint16(length[12:], 46)
	tagged := testFrame(64, 1)
	copy(tagged[12:], []byte{0x81, 0, 0, 5, 0x88, 0xb5})
	giant := testFrame(1600, 1)
	const code = rg.RxFT | rg.RxIPE | rg.RxPCE | rg.RxES
	for _, c := range []struct {
		name  string
		frame []byte
		ipc   bool
		want  rg.RDES0 // of code
		also  rg.RDES0
	}{
		{"type", testFrame(60, 1), false, rg.RxFT, 0},
		{"length", length, false, 0, 0},
		{"giant", giant, false, rg.RxFT | rg.RxIPE | rg.RxES, 0},
		{"tagged", tagged, false, rg.RxFT, rg.RxVLN},
		{"ipc/type", testFrame(60, 1), true, rg.RxIPE | rg.RxPCE, 0},
		{"ipc/length", length, true, 0, 0},
		{"ipc/giant", giant, true, rg.RxIPE | rg.RxPCE, 0},
		{"ipc/good", ipFrame(100), true, rg.RxFT, 0},
		{"ipc/header", change(ipFrame(100), 24, 1), true, rg.RxFT | rg.RxIPE | rg.RxES, 0},
		{"ipc/payload", change(ipFrame(100), 60, 1), true, rg.RxFT | rg.RxPCE | rg.RxES, 0},
		{"ipc/fragment", fragment, true, rg.RxPCE, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			g := newGMACRig(t, func(g *gmacRig) {
				g.operation |= rg.DT
				if c.ipc {
					g.configuration |= rg.IPC
				}
			})
			g.open()
			g.w.inject(c.frame)
			g.step()
			d0 := g.mustRecv(c.frame)
			if d0&code != c.want || d0&c.also != c.also {
				t.Errorf("RDES0 %v, want %v and %v", d0&code, c.want, c.also)
			}
			g.clean()
		})
	}
}

// Frames with errors reach memory with FEF only; a wrong checksum with DT too.
func TestGMACErrorFrames(t *testing.T) {
	bad := bytes.Clone(ipFrame(100))
	bad[60] ^= 1
	for _, c := range []struct {
		name  string
		frame Frame
		bits  rg.Operation
		want  rg.RDES0
		comes bool
	}{
		{"crc", Frame{Data: testFrame(100, 1), BadFCS: true}, 0, 0, false},
		{"crc/fef", Frame{Data: testFrame(100, 1), BadFCS: true}, rg.FEF, rg.RxES | rg.RxCE, true},
		{"runt", Frame{Data: testFrame(40, 1)}, 0, 0, false},
		{"runt/fuf", Frame{Data: testFrame(40, 1)}, rg.FUF, 0, true},
		{"long/fef", Frame{Data: testFrame(3000, 1)}, rg.FEF, rg.RxES | rg.RxRWT, true},
		{"checksum", Frame{Data: bad}, 0, 0, false},
		{"checksum/dt", Frame{Data: bad}, rg.DT, rg.RxES | rg.RxPCE, true},
		{"checksum/fef", Frame{Data: bad}, rg.FEF, rg.RxES | rg.RxPCE, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			g := newGMACRig(t, func(g *gmacRig) { g.operation |= c.bits; g.configuration |= rg.IPC })
			g.open()
			g.w.rx = append(g.w.rx, c.frame)
			g.step()
			_, d0, _, ok := g.recv()
			const errs = rg.RxES | rg.RxCE | rg.RxRWT | rg.RxDE | rg.RxOE
			if ok != c.comes || d0&(errs&^rg.RxES) != c.want&errs&^rg.RxES || ok && d0&c.want != c.want {
				t.Errorf("frame %v, status %v", ok, d0)
			}
			if ev := g.events(); (ev&rg.RWT != 0) != (c.want&rg.RxRWT != 0) {
				t.Errorf("events %v", ev)
			}
		})
	}
}

// Faults that change what a receive descriptor says.
func TestGMACReceiveFaults(t *testing.T) {
	f := testFrame(600, 1)
	lengths := func(m MiddleLength) []uint32 {
		g := newGMACRig(t, func(g *gmacRig) { g.size = 256 }, withFaults(Faults{MiddleLength: m}))
		g.open()
		g.w.inject(f)
		g.step()
		var n []uint32
		for i := range 3 {
			n = append(n, rg.RxFL.Get(rg.RDES0(g.read(g.rxRing, i)[0])))
		}
		g.clean()
		return n
	}
	for m, want := range map[MiddleLength][3]uint32{
		MiddleCumulative: {256, 512, 604}, MiddleZero: {0, 0, 604}, MiddleOwn: {256, 256, 604}, MiddleStale: {0, 0, 604},
	} {
		if got := lengths(m); [3]uint32(got) != want {
			t.Errorf("MiddleLength %d: %v, want %v", m, got, want)
		}
	}

	for _, c := range []struct {
		name  string
		fault Faults
		chk   func(d []rg.RDES0) bool
		ring  bool
	}{
		{"cut with error", Faults{Overflow: Overflow{Mode: OverflowLastWithError, Every: 1, After: 2}},
			func(d []rg.RDES0) bool { return d[1]&(rg.RxLS|rg.RxOE|rg.RxES) == rg.RxLS|rg.RxOE|rg.RxES }, false},
		{"cut without LS", Faults{Overflow: Overflow{Mode: OverflowNoLast, Every: 1, After: 2}},
			func(d []rg.RDES0) bool { return d[1]&(rg.RxLS|rg.RxOWN) == 0 && d[2]&rg.RxOWN != 0 }, false},
		{"cut without error", Faults{Overflow: Overflow{Mode: OverflowLastWithoutError, Every: 1, After: 1}},
			func(d []rg.RDES0) bool { return d[0]&(rg.RxLS|rg.RxES) == rg.RxLS }, false},
		{"link loss", Faults{LinkLoss: func(uint64) LinkLossMode { return LinkLossError }},
			func(d []rg.RDES0) bool {
				return d[2]&(rg.RxLS|rg.RxRE|rg.RxCE|rg.RxES) == rg.RxLS|rg.RxRE|rg.RxCE|rg.RxES
			}, false},
		{"dribble", Faults{RxError: func(uint64) gmac4reg.RDES3 { return gmac4reg.RxDE }},
			func(d []rg.RDES0) bool { return d[2]&(rg.RxLS|rg.RxDB|rg.RxES) == rg.RxLS|rg.RxDB|rg.RxES }, false},
		{"length", Faults{InconsistentLength: func(uint32) uint32 { return 16383 }},
			func(d []rg.RDES0) bool { return rg.RxFL.Get(d[2]) == 16383 }, false},
		{"timestamps", Faults{ScribbleWriteBack: true}, func(d []rg.RDES0) bool { return d[2]&rg.RxLS != 0 }, false},
		{"an empty buffer in a ring", Faults{EmptyBufferEnds: true}, func(d []rg.RDES0) bool {
			return d[0]&(rg.RxFS|rg.RxLS|rg.RxES) == rg.RxFS|rg.RxLS && rg.RxFL.Get(d[0]) == 604 && d[1]&rg.RxOWN != 0
		}, true},
		{"an empty buffer in a chain", Faults{EmptyBufferEnds: true},
			func(d []rg.RDES0) bool { return d[0]&rg.RxLS == 0 && d[2]&rg.RxLS != 0 && rg.RxFL.Get(d[2]) == 604 }, false},
	} {
		g := newGMACRig(t, func(g *gmacRig) { g.size, g.chain = 256, !c.ring }, withFaults(c.fault))
		g.open()
		g.w.inject(f)
		g.step()
		var d []rg.RDES0
		for i := range 4 {
			d = append(d, rg.RDES0(g.read(g.rxRing, i)[0]))
		}
		if !c.chk(d) {
			t.Errorf("%s: %#x", c.name, d)
		}
		if w := g.read(g.rxRing, 2); c.fault.ScribbleWriteBack && (w[2]>>16 != 0xdead || w[3]>>16 != 0xdead) {
			t.Errorf("%s: the last descriptor is %08x", c.name, w)
		}
		g.clean()
	}
}

// A frame counts when LS is there; a descriptor that is taken before is lost.
func TestGMACLateLastSegment(t *testing.T) {
	f := testFrame(100, 1)
	g := newGMACRig(t, nil, withFaults(Faults{LateLastSegment: time.Microsecond}))
	g.open()
	g.w.inject(f, f)
	g.step()
	if d0 := rg.RDES0(g.read(g.rxRing, 0)[0]); d0&(rg.RxOWN|rg.RxFS|rg.RxLS) != rg.RxFS {
		t.Fatalf("descriptor 0 is %v at first", d0)
	}
	if ev := g.events(); ev&rg.RI == 0 {
		t.Errorf("events %v", ev)
	}
	g.clock.Advance(time.Microsecond)
	g.step()
	g.mustRecv(f)
	g.clock.Advance(time.Microsecond)
	g.step()
	g.mustRecv(f)
	g.clean()
	g.w.inject(f)
	g.step()
	g.armRx(2)
	g.clock.Advance(time.Microsecond)
	g.step()
	g.wantKinds(OwnedWrite)
}

// Whole bus words are written around a frame, and nothing else.
func TestGMACWholeBusWords(t *testing.T) {
	g := newGMACRig(t, nil, withStart(2), withFaults(Faults{WholeBusWords: true}))
	g.open()
	f := testFrame(101, 1)
	g.w.inject(f)
	g.step()
	g.mustRecv(f)
	if g.rxMem[0] != busGarbage || g.rxMem[1] != busGarbage || g.rxMem[2+105] != busGarbage || g.rxMem[112] != 0 {
		t.Errorf("memory around the frame is % x", g.rxMem[96:128])
	}
	g.clean()
}

func TestGMACVLAN(t *testing.T) {
	frame := func(typ uint16, tci uint16) []byte {
		f := testFrame(64, 1)
		binary.BigEndian.PutUint16(f[12:], typ)
		binary.BigEndian.PutUint16(f[14:], tci)
		return f
	}
	for _, c := range []struct {
		tag    rg.VLANTag
		filter rg.FrameFilter
		frame  []byte
		comes  bool
		vln    bool
	}{
		{rg.VL.Of(5), 0, frame(typeVLAN, 5), true, true},
		{rg.VL.Of(5), 0, frame(typeVLAN, 6), true, false},
		{rg.VL.Of(5), 0, frame(typeVLAN, 0x2005), true, false},
		{rg.VL.Of(5) | rg.ETV, 0, frame(typeVLAN, 0x2005), true, true},
		{rg.VL.Of(5), rg.VTFE, frame(typeVLAN, 6), false, false},
		{rg.VL.Of(5) | rg.VTIM, rg.VTFE, frame(typeVLAN, 6), true, true},
		{rg.VL.Of(5), rg.VTFE, frame(typeSVLAN, 6), true, false},
		{rg.VL.Of(5) | rg.ESVL, rg.VTFE, frame(typeSVLAN, 5), true, true},
		{rg.VL.Of(5) | rg.ESVL, rg.VTFE, frame(typeSVLAN, 6), false, false},
	} {
		g := newGMACRig(t, nil)
		g.open()
		rg.VLANTagReg.Store(g.r, c.tag)
		rg.MACFrameFilter.Store(g.r, c.filter)
		g.w.inject(c.frame)
		g.step()
		_, d0, _, ok := g.recv()
		if ok != c.comes || ok && (d0&rg.RxVLN != 0) != c.vln {
			t.Errorf("%v, %v, % x: frame %v, status %v", c.tag, c.filter, c.frame[12:16], ok, d0)
		}
	}
}

func TestGMACFilters(t *testing.T) {
	other := [6]byte{2, 9, 9, 9, 9, 9}
	group := [6]byte{1, 0, 0x5e, 1, 2, 3}
	all := [6]byte{255, 255, 255, 255, 255, 255}
	hash := func(a [6]byte, bins int) func(*gmacRig) {
		return func(g *gmacRig) {
			bin := hashBin(a[:], bins)
			reg := rg.HashTableReg.At(bin/32, 4)
			if bins == 64 {
				reg = rg.HashTableLow
				if bin >= 32 {
					reg = rg.HashTableHigh
				}
			}
			reg.Store(g.r, 1<<(bin%32))
		}
	}
	for _, c := range []struct {
		name   string
		filter rg.FrameFilter
		dst    [6]byte
		set    func(*gmacRig)
		bins   int
		comes  bool
		afm    bool
	}{
		{"own", 0, testMAC, nil, 0, true, false},
		{"other", 0, other, nil, 0, false, false},
		{"promiscuous", rg.PR, other, nil, 0, true, false},
		{"receive all", rg.RA, other, nil, 0, true, true},
		{"inverse", rg.DAIF, other, nil, 0, true, false},
		{"broadcast", 0, all, nil, 0, true, false},
		{"no broadcast", rg.DBF, all, nil, 0, false, false},
		{"group", 0, group, nil, 0, false, false},
		{"all groups", rg.PM, group, nil, 0, true, false},
		{"second address", 0, other, func(g *gmacRig) { g.setAddress(1, other) }, 0, true, false},
		{"address 31", 0, other, func(g *gmacRig) { g.setAddress(31, other) }, 0, true, false},
		{"hash 64", rg.HMC, group, hash(group, 64), 64, true, false},
		{"hash 128", rg.HMC, group, hash(group, 128), 128, true, false},
		{"hash 256", rg.HUC, other, hash(other, 256), 256, true, false},
		{"hash of another", rg.HMC, group, hash(all, 64), 64, false, false},
		{"hash or perfect", rg.HUC | rg.HPF, testMAC, nil, 64, true, false},
		{"source", rg.SAF, testMAC, nil, 0, false, false},
		{"inverse source", rg.SAF | rg.SAIF, testMAC, nil, 0, true, false},
	} {
		g := newGMACRig(t, nil, withConfig(func(cfg *Config) { cfg.HashBins = c.bins }))
		g.open()
		if c.set != nil {
			c.set(g)
		}
		rg.MACFrameFilter.Store(g.r, c.filter)
		f := frameTo(c.dst, 80, 1)
		g.w.inject(f)
		g.step()
		_, d0, _, ok := g.recv()
		if ok != c.comes || (d0&rg.RxAFM != 0) != c.afm {
			t.Errorf("%s: frame %v, status %v", c.name, ok, d0)
		}
		g.clean()
	}
}

// Stopping leaves the place in the list; a new base begins there.
func TestGMACReceiveRestart(t *testing.T) {
	g := newGMACRig(t, nil, withRing(8))
	g.open()
	f := testFrame(100, 1)
	g.w.inject(f, f, f)
	g.step()
	rg.OperationModeReg.Update(g.r, rg.SR, 0)
	if ev := g.events(); ev&rg.RPS == 0 {
		t.Errorf("events %v when SR is cleared", ev)
	}
	if s := rg.RS.Get(rg.StatusReg.Load(g.r)); s != rg.RSStopped {
		t.Errorf("process state %d", s)
	}
	if v := rg.CurrentRxDescriptor.Load(g.r); v != g.descAddr(g.rxBase, 3) {
		t.Errorf("current descriptor %#x", v)
	}
	rg.OperationModeReg.Update(g.r, 0, rg.SR)
	g.w.inject(f)
	g.step()
	for range 4 {
		g.mustRecv(f)
	}
	g.clean()

	rg.ReceiveListAddress.Store(g.r, g.descAddr(g.rxBase, 6)) // takes effect at the next start
	g.wantKinds(ConfigRunning)
	g.w.inject(f)
	g.step()
	g.mustRecv(f)
	rg.OperationModeReg.Update(g.r, rg.SR, 0)
	rg.OperationModeReg.Update(g.r, 0, rg.SR)
	g.w.inject(f)
	g.step()
	if w := rg.RDES0(g.read(g.rxRing, 6)[0]); w&rg.RxOWN != 0 {
		t.Error("the new base was not taken at the start")
	}
}

// Frames that came while SR was clear wait in the FIFO; those for which there is no
// descriptor then are missed without DFF, and wait on with it.
func TestGMACBacklog(t *testing.T) {
	for _, keep := range []bool{false, true} {
		for _, budget := range []int{1, 3, 1 << 20} {
			g := newGMACRig(t, func(g *gmacRig) {
				g.size = 256
				if !keep {
					g.operation &^= rg.DFF
				}
			}, withRing(8))
			step := func() {
				for g.d.Step(budget) > 0 {
				}
			}
			g.setup()
			g.post(6)
			rg.MACConfiguration.Update(g.r, 0, rg.RE)
			f := testFrame(500, 1) // two descriptors
			g.w.inject(f, f, f, f, f)
			step()
			if _, _, _, ok := g.recv(); ok {
				t.Fatal("received with SR clear")
			}
			g.run()
			step()
			for range 3 {
				g.mustRecv(f)
			}
			missed := rg.MISFRMCNT.Get(rg.MissedFrame.Load(g.r))
			if keep && missed != 0 || !keep && missed != 2 {
				t.Errorf("keep %v, budget %d: %d missed", keep, budget, missed)
			}
			g.post(6)
			step()
			for range 2 {
				if keep {
					g.mustRecv(f)
				}
			}
			if _, _, _, ok := g.recv(); ok {
				t.Errorf("keep %v, budget %d: one frame too many", keep, budget)
			}
			g.clean()
		}
	}
}

// The counters of missed frames say that they ran over.
func TestGMACMissedOverflow(t *testing.T) {
	g := newGMACRig(t, func(g *gmacRig) { g.operation &^= rg.DFF }, withRing(1))
	g.open()
	f := testFrame(60, 1)
	for range 1<<16 + 2 { // one is received
		g.w.inject(f)
	}
	g.step()
	if v := rg.MissedFrame.Load(g.r); v&rg.MISCNTOVF == 0 || rg.MISFRMCNT.Get(v) != 1 {
		t.Errorf("missed %#x", uint32(v))
	}
	g.setup()
	rg.MACConfiguration.Update(g.r, 0, rg.RE)
	for range 1<<11 + 1 + g.d.cfg.RxFIFO/(64+8) {
		g.w.inject(f)
	}
	g.step()
	if v := rg.MissedFrame.Load(g.r); v&rg.OVFCNTOVF == 0 {
		t.Errorf("overflow %#x", uint32(v))
	}
}
