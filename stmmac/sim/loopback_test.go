package sim

import (
	"bytes"
	"fmt"
	"testing"
	"time"

	r4 "github.com/gostmmac/gostmmac/stmmac/internal/regs/gmac4reg"
)

// loopbacks are the two ways in which a MAC hears itself.
var loopbacks = []struct {
	name string
	on   func(*rig)
}{
	{"MAC", func(g *rig) { r4.MACConfiguration.Update(g.r, 0, r4.LM) }},
	{"PHY", func(g *rig) {
		g.d.SetPHYControl(bmcrLoopback | bmcrSpeedHigh | bmcrDuplex)
		g.settle()
	}},
}

// TestLoopbackFrames: what a MAC sends to itself passes its filters, its checksum
// engines and its counters both ways, as a frame of the wire does.
func TestLoopbackFrames(t *testing.T) {
	badSum := udp(1, 2, 3).filled(6).bytes()
	badSum[len(badSum)-1] ^= 1
	for _, c := range []struct {
		name   string
		frame  []byte
		conf   r4.Configuration
		filter r4.PacketFilter
		vlan   r4.VLANTag
		kept   bool
		d1     r4.RDES1
		counts map[uint32]uint32
	}{
		{"plain", testFrame(100, 1), 0, 0, 0, true, 0, map[uint32]uint32{
			r4.TxPacketCountGood: 1, r4.TxOctetCountGood: 104, r4.RxPacketsCountGoodBad: 1, r4.RxOctetCountGood: 104, r4.RxUnicastPacketsGood: 1}},
		{"group", frameTo(mcast, 100, 1), 0, r4.PM, 0, true, 0, map[uint32]uint32{
			r4.TxMulticastPacketsGood: 1, r4.RxMulticastPacketsGood: 1}},
		{"foreign address", frameTo(foreign, 100, 1), 0, 0, 0, false, 0, map[uint32]uint32{
			r4.TxPacketCountGood: 1, r4.RxPacketsCountGoodBad: 0}},
		{"foreign address, promiscuous", frameTo(foreign, 100, 1), 0, r4.PR, 0, true, 0, map[uint32]uint32{
			r4.TxPacketCountGood: 1, r4.RxPacketsCountGoodBad: 1}},
		{"VLAN", tags(testFrame(100, 1), 5), 0, r4.VTFE, r4.ETV | 5, true, 0, map[uint32]uint32{
			r4.TxVLANPacketsGood: 1, r4.RxVLANPacketsGoodBad: 1}},
		{"other VLAN", tags(testFrame(100, 1), 6), 0, r4.VTFE, r4.ETV | 5, false, 0, map[uint32]uint32{
			r4.TxVLANPacketsGood: 1, r4.RxVLANPacketsGoodBad: 0}},
		{"jumbo", testFrame(4000, 1), r4.JE | r4.JD, 0, 0, true, 0, map[uint32]uint32{
			r4.Tx1024ToMaxOctetsPacketsGoodBad: 1, r4.Rx1024ToMaxOctetsPacketsGoodBad: 1}},
		{"UDP", udp(1, 2, 3).filled(6).bytes(), r4.IPC, 0, 0, true, r4.IPV4 | r4.RxPT.Of(r4.PTUDP), map[uint32]uint32{
			r4.RxUDPGoodPackets: 1}},
		{"UDP with a wrong sum", badSum, r4.IPC, 0, 0, false, 0, map[uint32]uint32{
			r4.TxPacketCountGood: 1, r4.RxUDPErrorPackets: 1}},
	} {
		for _, l := range loopbacks {
			t.Run(c.name+"/"+l.name, func(t *testing.T) {
				g := newRig(t, withRBSZ(4096), withSlot(8192), withConfig(func(cfg *Config) { cfg.VLANFilters = 1 }))
				g.open()
				r4.MACConfiguration.Update(g.r, 0, c.conf)
				r4.MACPacketFilter.Store(g.r, c.filter)
				r4.MACVLANTag.Store(g.r, uint32(c.vlan))
				l.on(g)
				g.w.inject(testFrame(77, 0xff)) // nobody hears it
				frame := c.frame
				if len(frame) < minPadded {
					frame = append(bytes.Clone(frame), make([]byte, minPadded-len(frame))...)
				}
				g.send(c.frame)
				g.step()
				if n, _ := g.reap(); n != 1 {
					t.Fatalf("%d descriptors back", n)
				}
				if c.kept {
					w := g.mustRecv(frame)
					if d1 := r4.RDES1(w[1]); d1 != c.d1 && c.conf&r4.IPC != 0 {
						t.Errorf("RDES1 %#x, want %#x", d1, c.d1)
					}
				} else {
					g.noRecv()
				}
				for off, want := range c.counts {
					if v := g.r.Load32(off); v != want {
						t.Errorf("%s is %d, want %d", r4.Map.Name(off), v, want)
					}
				}
				g.wantSent()
				g.clean()
			})
		}
	}
}

// TestLoopbackPauseReceived: a MAC that fills up tells itself to be silent, with a frame that it
// receives, and goes on when its time is over or the queue is empty. The PAUSE leaves in front
// of the next frame, also where many wait to be sent.
func TestLoopbackPauseReceived(t *testing.T) {
	for i := range 2 * len(loopbacks) {
		l, atOnce := loopbacks[i/2], i%2 == 1
		t.Run(fmt.Sprintf("%s, at once %v", l.name, atOnce), func(t *testing.T) {
			g := newRig(t, withRing(32), withConfig(func(c *Config) { c.RxFIFO = 8192 }))
			g.open()
			r4.MACPacketFilter.Store(g.r, r4.PR|r4.PCF.Of(2)) // as a self-test of Linux
			r4.MTLRxQOperationMode.Store(g.mtl(0), r4.RSF|r4.RQS.Of(31)|r4.EHFC|r4.RFA.Of(4)|r4.RFD.Of(7))
			r4.MACRxFlow.Store(g.r, r4.RFE)
			r4.MACQxTxFlow.Store(g.r, r4.TFE|r4.PT.Of(0xffff))
			l.on(g)
			r4.DMACHRxControl.Update(g.ch(0), r4.SR, 0)
			data := testFrame(1400, 1)
			for range 6 {
				g.send(data)
				if !atOnce {
					g.step()
				}
			}
			g.step()
			if sent, _ := g.reap(); sent != 4 {
				t.Fatalf("%d frames left, want the 4 to the threshold", sent)
			}
			if !g.paused() {
				t.Fatal("not paused")
			}
			r4.DMACHRxControl.Update(g.ch(0), 0, r4.SR)
			g.step()
			pauses, frames := 0, 0
			for range 2 { // the rest comes when the pause has ended
				for {
					f, w, ok := g.recv()
					if !ok {
						break
					}
					if isPause(f) && r4.RDES2(w[2])&r4.DAFFail == 0 {
						pauses++
					} else if bytes.Equal(f, data) {
						frames++
					}
				}
				g.clock.Advance(0xffff * 512 * time.Nanosecond)
				g.step()
			}
			if pauses != 2 || frames != 6 {
				t.Errorf("%d pauses and %d frames received, want 2 and 6", pauses, frames)
			}
			if s := g.d.Stats(); s.TxPause != 2 || s.RxPause != 2 {
				t.Errorf("%d pauses made, %d heard", s.TxPause, s.RxPause)
			}
			g.wantSent()
			g.clean()
		})
	}
}

// TestPauseNeedsTheLink: behind a PHY without a link a PAUSE is lost as any frame is.
func TestPauseNeedsTheLink(t *testing.T) {
	g := newRig(t)
	g.open()
	g.d.SetCable(false)
	r4.MACQxTxFlow.Store(g.r, r4.TFE|r4.PT.Of(300)|r4.FCBBPA)
	g.step()
	g.wantSent()
	if s := g.d.Stats(); s.TxLost != 1 || s.TxPause != 1 {
		t.Errorf("%d lost, %d pauses", s.TxLost, s.TxPause)
	}
	g.clean()
}
