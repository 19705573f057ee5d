package sim

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"testing"
	"time"

	r4 "github.com/gostmmac/gostmmac/stmmac/internal/regs/gmac4reg"
)

// pauseTo is a PAUSE of n slots from a peer.
func pauseTo(dst [6]byte, n uint16) []byte {
	f := make([]byte, 60)
	copy(f, dst[:])
	copy(f[6:], []byte{2, 0, 0, 0, 0, 9, 0x88, 0x08, 0, 1})
	binary.BigEndian.PutUint16(f[16:], n)
	return f
}

// wantPause takes the only frame on the wire and checks that it is a PAUSE of n slots.
func (g *rig) wantPause(n uint16) {
	g.t.Helper()
	want := pauseTo(pauseDst, n)
	copy(want[6:], testMAC[:])
	g.wantSent(want)
}

// link sets speed and duplex as a driver does.
func (g *rig) link(conf r4.Configuration) {
	r4.MACConfiguration.Update(g.r, r4.TE|r4.RE, 0)
	r4.MACConfiguration.Store(g.r, conf)
	r4.MACConfiguration.Store(g.r, conf|r4.TE|r4.RE)
}

func (g *rig) paused() bool {
	g.t.Helper()
	v := r4.MTLTxQDebug.Load(g.mtl(0))
	return v&r4.TXQPAUSED != 0
}

// TestPauseReceived: who is obeyed, for how long, at each speed.
func TestPauseReceived(t *testing.T) {
	for _, c := range []struct {
		name   string
		rx     r4.RxFlow
		conf   r4.Configuration
		filter r4.PacketFilter
		frame  []byte
		bad    bool
		want   time.Duration
		counts bool
	}{
		{"gigabit", r4.RFE, r4.DM, 0, pauseTo(pauseDst, 10), false, 10 * 512 * time.Nanosecond, true},
		{"100", r4.RFE, r4.DM | r4.PS | r4.FES, 0, pauseTo(pauseDst, 10), false, 10 * 5120 * time.Nanosecond, true},
		{"10", r4.RFE, r4.DM | r4.PS, 0, pauseTo(pauseDst, 0xffff), false, 0xffff * 51200 * time.Nanosecond, true},
		{"2500", r4.RFE, r4.DM | r4.FES, 0, pauseTo(pauseDst, 10), false, 2048 * time.Nanosecond, true},
		{"forwarded to memory", r4.RFE, r4.DM, r4.PCF.Of(2), pauseTo(pauseDst, 10), false, 10 * 512 * time.Nanosecond, true},
		{"not enabled", 0, r4.DM, 0, pauseTo(pauseDst, 10), false, 0, true},
		{"half duplex", r4.RFE, 0, 0, pauseTo(pauseDst, 10), false, 0, true},
		{"unicast", r4.RFE, r4.DM, 0, pauseTo(testMAC, 10), false, 0, false},
		{"unicast with UP", r4.RFE | r4.UP, r4.DM, 0, pauseTo(testMAC, 10), false, 10 * 512 * time.Nanosecond, true},
		{"foreign with UP", r4.RFE | r4.UP, r4.DM, 0, pauseTo(foreign, 10), false, 0, false},
		{"foreign promiscuous", r4.RFE | r4.UP, r4.DM, r4.PR, pauseTo(foreign, 10), false, 0, false},
		{"bad FCS", r4.RFE, r4.DM, 0, pauseTo(pauseDst, 10), true, 0, false},
		{"runt", r4.RFE, r4.DM, 0, pauseTo(pauseDst, 10)[:46], false, 0, false},
		{"no time", r4.RFE, r4.DM, 0, pauseTo(pauseDst, 0), false, 0, true},
		{"priority flow control", r4.RFE, r4.DM, 0, func() []byte {
			f := pauseTo(pauseDst, 10)
			binary.BigEndian.PutUint16(f[14:], 0x0101)
			return f
		}(), false, 0, false},
	} {
		test := func(t *testing.T, quiet bool) {
			g := newRig(t, withConfig(func(c *Config) { c.NoAudit = quiet }))
			g.open()
			g.link(c.conf)
			r4.MACPacketFilter.Store(g.r, c.filter)
			r4.MACRxFlow.Store(g.r, c.rx)
			g.clock.Advance(time.Millisecond)
			g.w.rx = append(g.w.rx, Frame{Data: c.frame, BadFCS: c.bad})
			g.step()
			if got := g.paused(); got != (c.want > 0) {
				t.Fatalf("TXQPAUSED %v", got)
			}
			f := testFrame(80, 1)
			g.send(f)
			g.step()
			if c.want > 0 {
				if n, _ := g.reap(); n != 0 || len(g.w.tx) != 0 {
					t.Fatal("sent in the pause")
				}
				g.clock.Advance(c.want - 1)
				g.step()
				if len(g.w.tx) != 0 || !g.paused() {
					t.Fatal("the pause is too short")
				}
				g.clock.Advance(1)
				g.step()
			}
			g.wantSent(f)
			if n, _ := g.reap(); n != 1 || g.paused() {
				t.Fatalf("%d back, paused %v", n, g.paused())
			}
			n := uint32(0)
			if c.counts {
				n = 1
			}
			if got := g.r.Load32(r4.RxPausePackets); got != n {
				t.Errorf("%d PAUSE counted, want %d", got, n)
			}
			g.clean()
		}
		t.Run(c.name, func(t *testing.T) { test(t, false) })
		t.Run(c.name+" with bursts", func(t *testing.T) { test(t, true) })
	}
}

// TestPauseEnds: what ends a pause before its time.
func TestPauseEnds(t *testing.T) {
	f := testFrame(80, 1)
	for name, end := range map[string]func(*rig){
		"XON":         func(g *rig) { g.w.inject(pauseTo(pauseDst, 0)); g.step() },
		"shorter":     func(g *rig) { g.w.inject(pauseTo(pauseDst, 1)); g.step(); g.clock.Advance(512) },
		"RFE cleared": func(g *rig) { r4.MACRxFlow.Store(g.r, 0) },
		"half duplex": func(g *rig) {
			g.link(0)
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := newRig(t)
			g.open()
			r4.MACRxFlow.Store(g.r, r4.RFE)
			g.w.inject(pauseTo(pauseDst, 0xffff))
			g.step()
			g.send(f)
			g.step()
			g.wantSent()
			end(g)
			g.step()
			g.wantSent(f)
			g.clean()
		})
	}
	// A software reset, with what it takes to start again.
	g := newRig(t)
	g.open()
	r4.MACRxFlow.Store(g.r, r4.RFE)
	g.w.inject(pauseTo(pauseDst, 0xffff))
	g.step()
	g.open()
	g.send(f)
	g.step()
	g.wantSent(f)
}

// congested is a rig whose receive queue fills up: nothing is posted.
func congested(t *testing.T, fifo int, tx r4.TxFlow, rfa, rfd uint32, opts ...rigOption) *rig {
	g := newRig(t, append([]rigOption{withRing(64), withConfig(func(c *Config) { c.RxFIFO = fifo })}, opts...)...)
	g.setup()
	r4.MTLRxQOperationMode.Update(g.mtl(0), 0, r4.EHFC|r4.RFA.Of(rfa)|r4.RFD.Of(rfd))
	r4.MACQxTxFlow.Store(g.r, tx)
	g.run()
	return g
}

// TestPauseSent: XOFF at one threshold, again before it ends, XON at the other (D61).
func TestPauseSent(t *testing.T) {
	const size = 504 // 512 in the FIFO with the word of its status
	for _, c := range []struct {
		fifo     int
		rfa, rfd uint32
		on, off  int // frames in the queue
	}{{4096, 1, 3, 5, 2}, {8192, 4, 7, 10, 6}, {16384, 4, 7, 26, 22}, {16384, 1, 20, 29, 9}} {
		for _, dzpq := range []r4.TxFlow{0, r4.DZPQ} {
			t.Run(fmt.Sprint(c.fifo, c.rfa, c.rfd, dzpq), func(t *testing.T) {
				g := congested(t, c.fifo, r4.TFE|r4.PT.Of(100)|r4.PLT.Of(1)|dzpq, c.rfa, c.rfd)
				for k := 1; k <= c.on; k++ {
					g.wantSent()
					if v := r4.MTLRxQDebug.Load(g.mtl(0)); r4.RXQSTS.Get(v) > 1 {
						t.Fatalf("%d frames: MTL_RxQ0_Debug %#x", k, uint32(v))
					}
					g.w.inject(testFrame(size, byte(k)))
					g.step()
				}
				if v := r4.MTLRxQDebug.Load(g.mtl(0)); r4.RXQSTS.Get(v) != 2 {
					t.Fatalf("MTL_RxQ0_Debug %#x", uint32(v))
				}
				g.wantPause(100)
				for range 5 { // 28 slots before it ends
					g.clock.Advance(72*512 - 1)
					g.step()
					g.wantSent()
					g.clock.Advance(1)
					g.step()
					g.wantPause(100)
				}
				// The queue empties frame by frame: the hysteresis.
				for left := c.on - 1; left >= 0; left-- {
					g.post(1)
					g.step()
					if left == c.off && dzpq == 0 {
						g.wantPause(0)
					}
					g.wantSent()
				}
				g.clock.Advance(time.Second)
				g.step()
				g.wantSent()
				n := uint32(7)
				if dzpq != 0 {
					n = 6
				}
				if got := g.r.Load32(r4.TxPausePackets); got != n || g.d.Stats().TxPause != uint64(n) || g.d.Stats().TxFrames != 0 {
					t.Errorf("%d PAUSE counted, want %d; %+v", got, n, g.d.Stats())
				}
				g.clean()
			})
		}
	}
}

// TestPauseNotSent: no PAUSE unless all that it needs is on.
func TestPauseNotSent(t *testing.T) {
	on := r4.TFE | r4.PT.Of(100)
	for name, c := range map[string]struct {
		tx    r4.TxFlow
		off   func(*rig)
		back  func(*rig) // what makes it leave after all; nil: nothing does
		kinds []ViolationKind
	}{
		"TFE off":  {r4.PT.Of(100), func(*rig) {}, func(g *rig) { r4.MACQxTxFlow.Store(g.r, on) }, nil},
		"EHFC off": {on, func(g *rig) { r4.MTLRxQOperationMode.Update(g.mtl(0), r4.EHFC, 0) }, nil, nil},
		"TE off": {on, func(g *rig) { r4.MACConfiguration.Update(g.r, r4.TE, 0) },
			func(g *rig) { r4.MACConfiguration.Update(g.r, 0, r4.TE) }, nil},
		"no clock":  {on, func(g *rig) {}, nil, nil},
		"full wire": {on, func(g *rig) { g.w.full = true }, func(g *rig) { g.w.full = false }, nil},
		"half duplex": {on, func(g *rig) {
			g.link(0)
		}, nil, []ViolationKind{ConfigInvalid}},
	} {
		t.Run(name, func(t *testing.T) {
			g := congested(t, 4096, c.tx, 1, 3)
			c.off(g)
			for k := range 7 {
				if name == "no clock" && k == 4 {
					g.d.SetClockGated(true) // nothing arrives any more either
				}
				g.w.inject(testFrame(504, byte(k)))
				g.step()
			}
			g.clock.Advance(time.Second)
			g.step()
			g.wantSent()
			if c.back != nil {
				c.back(g)
				g.step()
				g.wantPause(100)
			}
			g.wantKinds(c.kinds...)
		})
	}
}

// TestPauseInFront: PAUSE leaves in front of the data that waits, also while the MAC is
// paused itself, and a reset ends it (D61: close or kill).
func TestPauseInFront(t *testing.T) {
	g := congested(t, 4096, r4.TFE|r4.PT.Of(100), 1, 3)
	r4.MACRxFlow.Store(g.r, r4.RFE)
	g.w.full = true
	f := testFrame(80, 1)
	g.send(f)
	for k := range 6 {
		g.w.inject(testFrame(504, byte(k)))
	}
	g.step()
	g.w.full = false
	g.step()
	if len(g.w.tx) != 2 || !bytes.Equal(g.w.tx[1].Data, f) {
		t.Fatalf("%d frames", len(g.w.tx))
	}
	g.w.tx = g.w.tx[:1]
	g.wantPause(100)

	// The peer has paused us; our PAUSE is repeated all the same.
	g.w.inject(pauseTo(pauseDst, 0xffff))
	g.step()
	g.send(f)
	g.clock.Advance(96 * 512)
	g.step()
	g.wantPause(100)

	g.reset()
	for range 10 {
		g.clock.Advance(time.Millisecond)
		g.step()
	}
	g.wantSent()
	g.clean()
}

// TestPauseByHand: FCB_BPA sends one PAUSE and clears itself.
func TestPauseByHand(t *testing.T) {
	g := newRig(t)
	g.open()
	flow := func() r4.TxFlow { return r4.MACQxTxFlow.Load(g.r) }
	r4.MACQxTxFlow.Store(g.r, r4.PT.Of(300)|r4.FCBBPA)
	g.step()
	if g.wantSent(); flow()&r4.FCBBPA != 0 {
		t.Fatal("FCB_BPA without TFE")
	}
	g.w.full = true
	r4.MACQxTxFlow.Store(g.r, r4.TFE|r4.PT.Of(300)|r4.FCBBPA)
	g.step()
	if flow()&r4.FCBBPA == 0 {
		t.Fatal("cleared before the PAUSE left")
	}
	g.clean()
	r4.MACQxTxFlow.Store(g.r, flow()) // not while it is set
	g.w.full = false
	g.step()
	if flow() != r4.TFE|r4.PT.Of(300) {
		t.Fatalf("MAC_Q0_Tx_Flow_Ctrl %#x", uint32(flow()))
	}
	g.wantPause(300)
	g.clock.Advance(time.Second)
	g.step()
	g.wantSent()
	g.wantKinds(ConfigRunning)
}

// TestPauseByHandReset: a reset forgets the PAUSE that was asked for.
func TestPauseByHandReset(t *testing.T) {
	g := newRig(t)
	g.open()
	g.w.full = true
	r4.MACQxTxFlow.Store(g.r, r4.TFE|r4.PT.Of(300)|r4.FCBBPA)
	g.step()
	g.w.full = false
	g.open()
	r4.MACQxTxFlow.Store(g.r, r4.TFE|r4.PT.Of(300))
	g.step()
	g.wantSent()
	g.clean()
}

// TestPauseQueues: each queue with EHFC asks for the one PAUSE, and all have to have
// emptied before it ends.
func TestPauseQueues(t *testing.T) {
	g := newRig(t, withConfig(func(c *Config) { c.RxQueues, c.TxQueues, c.RxFIFO = 2, 2, 8192 }))
	g.setup()
	r4.MACRxQCtrl0.Store(g.r, 0xa)
	r4.MACRxQCtrl2.Store(g.r, 0x0f|0xf0<<8)
	for q := range 2 {
		r4.MTLRxQOperationMode.Store(g.mtl(q), r4.RSF|r4.RQS.Of(15)|r4.EHFC|r4.RFA.Of(1)|r4.RFD.Of(3))
	}
	r4.MACQxTxFlow.Store(g.r, r4.TFE|r4.PT.Of(1000))
	r4.MACQxTxFlow.At(1, 4).Store(g.r, r4.TFE|r4.PT.Of(77)|r4.FCBBPA) // has no effect
	if v := r4.MACQxTxFlow.At(1, 4).Load(g.r); v != r4.TFE|r4.PT.Of(77) {
		t.Fatalf("MAC_Q1_Tx_Flow_Ctrl %#x", uint32(v))
	}
	g.run()
	for k := range 12 {
		g.w.inject(tagged(500, uint16(k%2)*4<<13|1, byte(k)))
	}
	g.step()
	g.wantPause(1000)
	// Both map to channel 0: the higher queue is emptied first.
	g.post(6)
	g.step()
	g.wantSent()
	g.post(6)
	g.step()
	g.wantPause(0)
	g.clean()
}

// TestPauseAudit: thresholds that cannot work.
func TestPauseAudit(t *testing.T) {
	for _, c := range []struct {
		name     string
		size     uint32
		rfa, rfd uint32
		tx       r4.TxFlow
		bad      bool
	}{
		{"4 KiB as Linux", 4096, 1, 3, r4.TFE | r4.PT.Of(100), false},
		{"16 KiB as Linux", 16384, 4, 7, r4.TFE | r4.PT.Of(0xffff), false},
		{"2 KiB", 2048, 0, 1, 0, true},
		{"no hysteresis", 8192, 4, 4, 0, true},
		{"upside down", 8192, 7, 4, 0, true},
		{"never empty enough", 4096, 1, 6, 0, true},
		{"no room for a frame", 8192, 0, 3, 0, true},
		{"PT not beyond PLT", 8192, 4, 7, r4.TFE | r4.PT.Of(28) | r4.PLT.Of(1), true},
	} {
		g := newRig(t)
		g.reset()
		r4.MTLRxQOperationMode.Store(g.mtl(0), r4.RSF|r4.RQS.Of(c.size/256-1)|r4.EHFC|r4.RFA.Of(c.rfa)|r4.RFD.Of(c.rfd))
		r4.MACQxTxFlow.Store(g.r, c.tx)
		if got := len(g.d.Audit()) > 0; got != c.bad {
			t.Errorf("%s: %v", c.name, g.d.Audit())
		}
	}
}

// TestPauseBetweenTwo: with PAUSE both ways nothing is lost on a cable whose far end
// stops taking frames; without it frames are.
func TestPauseBetweenTwo(t *testing.T) {
	for _, on := range []bool{true, false} {
		a := newRig(t, withRing(64))
		b := newRig(t, withRing(64), withConfig(func(c *Config) { c.RxFIFO = 8192; c.Clock = a.clock }))
		a.d.Model.wire, b.d.Model.wire = NewPair(1)
		b.clock = a.clock
		a.open()
		b.setup()
		if on {
			r4.MACRxFlow.Store(a.r, r4.RFE)
			r4.MTLRxQOperationMode.Update(b.mtl(0), 0, r4.EHFC|r4.RFA.Of(4)|r4.RFD.Of(7))
			r4.MACQxTxFlow.Store(b.r, r4.TFE|r4.PT.Of(1000))
		}
		b.run()
		const frames = 40
		for k := range frames {
			a.queue(true, testFrame(1000, byte(k)))
		}
		a.ring()
		settle := func() {
			for a.step()+b.step() > 0 {
			}
		}
		settle()
		for range 3 { // the pause is kept up, 4 slots before it ends
			a.clock.Advance(996 * 512)
			settle()
		}
		b.post(63)
		settle()
		got := 0
		for k := 0; k < frames; k++ {
			if data, _, ok := b.recv(); ok {
				if on && !bytes.Equal(data, testFrame(1000, byte(k))) {
					t.Fatalf("frame %d is another", k)
				}
				got++
			}
		}
		lost := int(b.d.Stats().RxOverflow)
		if got+lost != frames || (lost == 0) != on {
			t.Errorf("PAUSE %v: %d received, %d lost", on, got, lost)
		}
		if on && (b.d.Stats().TxPause < 4 || a.d.Stats().RxPause != b.d.Stats().TxPause) {
			t.Errorf("%d PAUSE sent, %d received", b.d.Stats().TxPause, a.d.Stats().RxPause)
		}
		a.clean()
		b.clean()
	}
}

// TestPauseElastic: on a wire that waits nothing is lost, with PAUSE or without, and
// the MAC sends it all the same.
func TestPauseElastic(t *testing.T) {
	g := congested(t, 4096, r4.TFE|r4.PT.Of(100), 1, 3)
	g.w.elastic = true
	const frames = 30
	for k := range frames {
		g.w.inject(testFrame(504, byte(k)))
	}
	g.step()
	g.wantPause(100)
	g.post(frames)
	g.step()
	for k := range frames {
		g.mustRecv(testFrame(504, byte(k)))
	}
	if s := g.d.Stats(); s.RxOverflow != 0 {
		t.Errorf("%+v", s)
	}
	g.clean()
}

// TestPauseGoroutine: the timer ends a pause of a model that runs by itself.
func TestPauseGoroutine(t *testing.T) {
	g := newRig(t, withConfig(func(c *Config) { c.Inline = false }))
	got := make(chan struct{}, 1)
	g.d.Model.mu.Lock()
	g.d.Model.wire = &chanWire{sent: got, rx: [][]byte{pauseTo(pauseDst, 1000)}}
	g.d.Model.mu.Unlock()
	g.open()
	r4.MACRxFlow.Store(g.r, r4.RFE)
	g.d.Step(100) // takes the PAUSE, if the engine did not
	if !g.paused() {
		t.Fatal("not paused")
	}
	g.send(testFrame(60, 1))
	g.d.Step(100)
	select {
	case <-got:
		t.Fatal("sent in the pause")
	default:
	}
	g.clock.Advance(1000 * 512)
	<-got
}

// chanWire gives its frames and tells of what is sent.
type chanWire struct {
	nullPort
	sent chan struct{}
	rx   [][]byte
}

func (w *chanWire) Transmit(Frame) bool { w.sent <- struct{}{}; return true }
func (w *chanWire) Receive() (Frame, bool) {
	if len(w.rx) == 0 {
		return Frame{}, false
	}
	f := w.rx[0]
	w.rx = w.rx[1:]
	return Frame{Data: f}, true
}

type nullPort struct{}

func (nullPort) Elastic() bool { return true }
func (nullPort) Notify(func()) {}
func (nullPort) Close() error  { return nil }
