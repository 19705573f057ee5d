package sim

import (
	"bytes"
	"encoding/binary"
	"testing"
	"time"

	rg "github.com/gostmmac/gostmmac/stmmac/internal/regs/gmacreg"
)

// Padding and FCS by DC and DP.
func TestGMACPadding(t *testing.T) {
	short, long := testFrame(20, 1), testFrame(100, 1)
	withFCS := func(f []byte) []byte {
		sum := fcs(f)
		return append(bytes.Clone(f), sum[:]...)
	}
	padded := append(bytes.Clone(short), make([]byte, 40)...)
	for _, c := range []struct {
		name  string
		flags rg.TDES1
		sent  []byte
		want  []byte
		bad   bool
	}{
		{"short", 0, short, padded, false},
		{"short/DP", rg.TxDP, short, short, false},
		{"short/DC", rg.TxDC, short, padded, false}, // padding brings the FCS with it
		{"long", 0, long, long, false},
		{"long/DC", rg.TxDC, withFCS(long), long, false},
		{"long/DC/bad", rg.TxDC, testFrame(104, 1), testFrame(100, 1), true},
		{"short/DC/DP", rg.TxDC | rg.TxDP, withFCS(short), short, false},
	} {
		g := newGMACRig(t, func(g *gmacRig) { g.txFlags = c.flags })
		g.open()
		g.send(c.sent)
		g.step()
		if n, d0 := g.reap(); n != 1 || d0 != 0 {
			t.Errorf("%s: %d descriptors, status %v", c.name, n, d0)
		}
		if len(g.w.tx) != 1 || !bytes.Equal(g.w.tx[0].Data, c.want) || g.w.tx[0].BadFCS != c.bad {
			t.Errorf("%s: %+v on the wire", c.name, g.w.tx)
		}
		g.clean()
	}
}

func TestGMACTransmitStatus(t *testing.T) {
	g := newGMACRig(t, nil)
	g.open()
	if s := g.step(); s != 0 {
		t.Fatalf("%d units of work with an empty list", s)
	}
	if ev := g.events(); ev != rg.TU {
		t.Errorf("events %v with an empty list", ev)
	}
	if s := rg.TS.Get(rg.StatusReg.Load(g.r)); s != rg.TSSuspended {
		t.Errorf("process state %d with an empty list", s)
	}
	g.queue(testFrame(100, 1))
	g.step()
	if n, _ := g.reap(); n != 0 {
		t.Fatal("sent without a poll demand")
	}
	rg.TransmitPollDemand.Store(g.r, 1)
	g.step()
	if n, d0 := g.reap(); n != 1 || d0 != 0 {
		t.Fatalf("%d descriptors, status %v", n, d0)
	}
	if ev := g.events(); ev != rg.TI|rg.TU|rg.ETI {
		t.Errorf("events %v behind a frame", ev)
	}
	if v := rg.CurrentTxBuffer.Load(g.r); v != uint32(g.txIOVA) {
		t.Errorf("current buffer %#x", v)
	}
	if v := g.r.Load32(uint32(rg.TransmitPollDemand)); v != g.descAddr(g.txBase, 1) {
		t.Errorf("the poll demand register reads %#x", v)
	}
	// A VLAN frame, then one that is too long.
	v := testFrame(100, 1)
	copy(v[12:], []byte{0x81, 0})
	if g.send(v); g.step() == 0 {
		t.Fatal("no work")
	}
	if _, d0 := g.reap(); d0 != rg.TxVF {
		t.Errorf("status %v of a VLAN frame", d0)
	}
	g.w.tx = nil
	g.send(testFrame(3000, 1))
	g.step()
	if n, d0 := g.reap(); n != 2 || d0 != rg.TxES|rg.TxJT || len(g.w.tx[0].Data) != watchdogLen-fcsLen || !g.w.tx[0].BadFCS {
		t.Errorf("%d descriptors, status %v of a jabber", n, d0)
	}
	if ev := g.events(); ev&rg.TJT == 0 {
		t.Errorf("events %v behind a jabber", ev)
	}
	g.clean()
}

func TestGMACChecksumInsertion(t *testing.T) {
	good := ipFrame(100)
	zero := bytes.Clone(good)
	binary.BigEndian.PutUint16(zero[24:], 0)
	binary.BigEndian.PutUint16(zero[40:], 0)
	header := bytes.Clone(good)
	binary.BigEndian.PutUint16(header[40:], 0)
	short := bytes.Clone(zero)
	short[14] = 0x44 // a header of 16 bytes
	for _, c := range []struct {
		name  string
		cic   uint32
		frame []byte
		want  []byte
		d0    rg.TDES0
	}{
		{"none", rg.CICNone, zero, zero, 0},
		{"header", rg.CICHeader, zero, header, 0},
		{"full", rg.CICFull, zero, good, 0},
		{"header error", rg.CICFull, short, nil, rg.TxES | rg.TxIHE},
	} {
		g := newGMACRig(t, func(g *gmacRig) { g.cic = rg.TxCIC.Of(c.cic) })
		g.open()
		g.send(c.frame)
		g.step()
		if n, d0 := g.reap(); n != 1 || d0 != c.d0 {
			t.Errorf("%s: %d descriptors, status %v", c.name, n, d0)
		}
		if len(g.w.tx) != 1 || c.want != nil && !bytes.Equal(g.w.tx[0].Data, c.want) {
			t.Errorf("%s: wrong frame on the wire", c.name)
		}
		g.clean()
	}
	// Without store and forward, and without an engine, it is misuse.
	for _, o := range []rigOption{nil, withConfig(func(c *Config) { c.NoTxChecksum = true })} {
		g := newGMACRig(t, func(g *gmacRig) {
			g.cic = rg.TxCIC.Of(rg.CICFull)
			if o == nil {
				g.operation &^= rg.TSF
			}
		}, func(r *rig) {
			if o != nil {
				o(r)
			}
		})
		g.open()
		g.send(zero)
		g.step()
		if o == nil {
			g.wantKinds(ChecksumMisuse, ThresholdTransmit)
		} else {
			g.wantKinds(ChecksumMisuse)
		}
	}
	// A frame beyond what the FIFO and the bursts leave: no payload checksum.
	g := newGMACRig(t, func(g *gmacRig) { g.cic = rg.TxCIC.Of(rg.CICFull) }, withConfig(func(c *Config) { c.TxFIFO = 2048 }))
	g.open()
	rg.OperationModeReg.Update(g.r, rg.ST|rg.SR, 0)
	rg.BusModeReg.Update(g.r, rg.PBL.Mask(), rg.PBL.Of(32)|rg.PBLX8)
	if got, want := g.d.checksumLimit(0), 2048-(256+5)*8; got != want {
		t.Errorf("limit %d, want %d", got, want)
	}
}

// A frame on its way: it stays while the wire is full, FTF gives it back.
func TestGMACFlush(t *testing.T) {
	g := newGMACRig(t, nil)
	g.open()
	g.w.full = true
	g.send(testFrame(100, 1))
	g.step()
	if n, _ := g.reap(); n != 0 {
		t.Fatal("given back with a full wire")
	}
	if v := rg.DebugReg.Load(g.r); v&rg.TXFSTS == 0 {
		t.Errorf("Debug is %v with a frame in the FIFO", v)
	}
	if s := rg.TS.Get(rg.StatusReg.Load(g.r)); s != rg.TSWait {
		t.Errorf("process state %d", s)
	}
	g.d.SetClockGated(true)
	rg.OperationModeReg.Update(g.r, 0, rg.FTF)
	if v := rg.OperationModeReg.Load(g.r); v&rg.FTF == 0 {
		t.Error("FTF is clear without a clock")
	}
	g.d.SetClockGated(false)
	if v := rg.OperationModeReg.Load(g.r); v&rg.FTF != 0 {
		t.Error("FTF is set for ever")
	}
	if n, d0 := g.reap(); n != 1 || d0 != rg.TxES|rg.TxFF {
		t.Errorf("%d descriptors, status %v", n, d0)
	}
	g.clean()
	g.w.full = false
	g.mustSend(testFrame(100, 2))

	g.d.SetFaults(func(f *Faults) { f.FlushHangs = true })
	rg.OperationModeReg.Update(g.r, 0, rg.FTF)
	rg.OperationModeReg.Update(g.r, 0, rg.OSF)
	if v := rg.OperationModeReg.Load(g.r); v&rg.FTF == 0 {
		t.Error("FTF is clear")
	}
	g.wantKinds(ConfigRunning)
}

// ST stops behind the frame in the FIFO.
func TestGMACTransmitStop(t *testing.T) {
	g := newGMACRig(t, nil)
	g.open()
	g.w.full = true
	f := testFrame(100, 1)
	g.send(f)
	g.send(f)
	g.step()
	rg.OperationModeReg.Update(g.r, rg.ST, 0)
	if ev := g.events(); ev&rg.TPS != 0 {
		t.Error("stopped with a frame in the FIFO")
	}
	g.w.full = false
	g.step()
	if n, _ := g.reap(); n != 1 {
		t.Errorf("%d frames left", n)
	}
	if ev := g.events(); ev&rg.TPS == 0 {
		t.Errorf("events %v", ev)
	}
	rg.OperationModeReg.Update(g.r, 0, rg.ST)
	g.step()
	if n, _ := g.reap(); n != 1 || len(g.w.tx) != 2 {
		t.Errorf("%d more frames, %d on the wire", n, len(g.w.tx))
	}
	g.clean()
}

// The fault that sends frames of a ring of one descriptor twice, in both kinds of lists.
func TestGMACSingleDescriptor(t *testing.T) {
	for _, chain := range []bool{false, true} {
		for n, want := range map[int]int{1: 2, 2: 1} {
			g := newGMACRig(t, func(g *gmacRig) { g.chain = chain }, withRing(n), withFaults(Faults{SingleTxTwice: true}))
			g.open()
			g.send(testFrame(100, 1))
			g.step()
			if len(g.w.tx) != want {
				t.Errorf("chain %v: %d times on the wire with %d descriptors", chain, len(g.w.tx), n)
			}
			g.clean()
		}
	}
}

// Frames pass when speed and duplex are those of the link.
func TestGMACSpeed(t *testing.T) {
	for _, c := range []struct {
		modes LinkModes
		conf  rg.Configuration
	}{
		{Mode1000Full, rg.DM}, {Mode100Full, rg.DM | rg.PS | rg.FES}, {Mode10Full, rg.DM | rg.PS},
		{Mode100Half, rg.PS | rg.FES}, {Mode10Half, rg.PS},
	} {
		for _, conf := range []rg.Configuration{rg.DM, rg.DM | rg.FES, rg.DM | rg.PS | rg.FES, rg.DM | rg.PS, rg.PS | rg.FES, rg.PS, 0} {
			g := newGMACRig(t, func(g *gmacRig) { g.configuration = conf }, withConfig(func(cfg *Config) {
				cfg.PHY = &PHYConfig{Address: 1, Partner: Partner{Modes: c.modes}}
			}))
			g.clock.Advance(10 * time.Second) // negotiation
			g.open()
			f := testFrame(100, 1)
			g.w.inject(f)
			g.send(f)
			g.step()
			_, _, _, ok := g.recv()
			want := conf == c.conf || c.conf == rg.DM && conf == rg.DM|rg.FES // FES says nothing without PS
			if ok != want || len(g.w.tx) == 1 != want {
				t.Errorf("link %v, MAC_Configuration %v: received %v, %d on the wire", c.modes, conf, ok, len(g.w.tx))
			}
		}
	}
}

func TestGMACHalfDuplex(t *testing.T) {
	g := newGMACRig(t, func(g *gmacRig) { g.configuration = 0 }, withFaults(Faults{
		Collide:     func(k uint64) int { return []int{0, 3, 16, 0}[k] },
		CollideLate: func(k uint64) bool { return k == 3 },
	}), withConfig(func(c *Config) { c.NoPHY = true }))
	g.open()
	for k, want := range []rg.TDES0{0, rg.TxCC.Of(3), rg.TxES | rg.TxEC, rg.TxES | rg.TxLC} {
		g.send(testFrame(100, 1))
		g.step()
		if _, d0 := g.reap(); d0 != want {
			t.Errorf("frame %d: status %v, want %v", k, d0, want)
		}
	}
	g.clean()
}

// The loopback of the MAC keeps frames off the wire.
func TestGMACLoopback(t *testing.T) {
	g := newGMACRig(t, func(g *gmacRig) { g.configuration |= rg.LM })
	g.open()
	for k := range 40 {
		f := testFrame(60+k*30, byte(k))
		g.send(f)
		g.step()
		if n, d0 := g.reap(); n != 1 || d0 != 0 {
			t.Fatalf("frame %d: %d descriptors, status %v", k, n, d0)
		}
		g.mustRecv(f)
		g.post(1)
	}
	if len(g.w.tx) != 0 {
		t.Errorf("%d frames on the wire", len(g.w.tx))
	}
	g.clean()
}

// PAUSE by fill level, once more when it runs out, and at the end with time 0.
func TestGMACFlowControl(t *testing.T) {
	g := newGMACRig(t, func(g *gmacRig) { g.operation |= rg.EFC | rg.RFAOf(0) | rg.RFDOf(2) },
		withRing(2), withConfig(func(c *Config) { c.RxFIFO = 4096 }))
	g.open()
	rg.FlowControl.Store(g.r, rg.TFE|rg.RFE|rg.PT.Of(0xffff))
	f := testFrame(1000, 1)
	g.w.inject(f, f, f, f, f, f)
	g.step()
	pauses := func() (times []uint16) {
		for _, f := range g.w.tx {
			if !isPause(f.Data) {
				t.Fatalf("% x is no PAUSE", f.Data[:20])
			}
			times = append(times, binary.BigEndian.Uint16(f.Data[16:]))
		}
		g.w.tx = nil
		return times
	}
	if p := pauses(); len(p) != 1 || p[0] != 0xffff {
		t.Fatalf("PAUSE %v with a full FIFO", p)
	}
	g.mustRecv(f)
	g.mustRecv(f)
	g.post(2)
	g.step()
	g.mustRecv(f)
	g.mustRecv(f)
	g.post(2)
	g.step()
	if p := pauses(); len(p) != 1 || p[0] != 0 {
		t.Errorf("PAUSE %v with an empty FIFO", p)
	}
	rg.FlowControl.Update(g.r, 0, rg.FCBBPA)
	g.step()
	if p := pauses(); len(p) != 1 || p[0] != 0xffff || rg.FlowControl.Load(g.r)&rg.FCBBPA != 0 {
		t.Errorf("PAUSE %v by FCB", p)
	}
	// The peer's PAUSE holds the transmitter.
	g.obeyPause(100)
	g.clean()
	rg.FlowControl.Store(g.r, rg.TFE|rg.PT.Of(4))
	g.wantKinds(ConfigInvalid)
}

// obeyPause receives a PAUSE of n slots and sees a frame wait for its end.
func (g *gmacRig) obeyPause(n uint16) {
	g.t.Helper()
	p := make([]byte, minPadded)
	putAddr(p, pauseAddr)
	binary.BigEndian.PutUint16(p[12:], typeControl)
	binary.BigEndian.PutUint16(p[14:], opPause)
	binary.BigEndian.PutUint16(p[16:], n)
	g.w.inject(p)
	g.step()
	g.send(testFrame(100, 1))
	g.step()
	if got, _ := g.reap(); got != 0 {
		g.t.Fatal("sent during PAUSE")
	}
	if v := rg.DebugReg.Load(g.r); v&rg.TXPAUSED == 0 {
		g.t.Errorf("Debug is %v during PAUSE", v)
	}
	g.clock.Advance(g.d.mac.slotTime(uint32(n)))
	g.step()
	if got, _ := g.reap(); got != 1 {
		g.t.Fatal("not sent behind PAUSE")
	}
}
