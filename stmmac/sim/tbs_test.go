package sim

import (
	"encoding/binary"
	"testing"
	"time"

	"github.com/gostmmac/gostmmac/barrier"
	r4 "github.com/gostmmac/gostmmac/stmmac/internal/regs/gmac4reg"
)

// enhancedRing is a transmit list of enhanced descriptors for a channel, in the memory of the
// side ring that it is made of.
type enhancedRing struct {
	*sideRing
	stride int
}

// launch is words 4 and 5 of a descriptor.
type launch [2]uint32

// launchAt asks for a time in whole seconds and nanoseconds.
func launchAt(sec, ns uint32) launch {
	return launch{uint32(r4.LTV | r4.LTSeconds.Of(sec)), uint32(r4.LTNanoseconds.Mask()) & ns}
}

// queue writes the descriptors of a frame that is cut into pieces, the first with a launch
// time. What nobody is to write is filled.
func (s enhancedRing) queue(f []byte, pieces int, at launch) {
	size := (len(f) + pieces - 1) / pieces
	for k, p := range split(f, size) {
		i := s.tail
		copy(s.mem[i%s.n*s.slot:], p)
		a := s.iova + uint64(i%s.n*s.slot)
		d3 := uint32(r4.TxOWN)
		if k == 0 {
			d3 |= txFD | uint32(len(f))
		}
		if k == pieces-1 {
			d3 |= txLD
		}
		b := s.ring[i%s.n*s.stride:]
		for k, v := range [8]uint32{at[0], at[1], 6, 7, uint32(a), uint32(a >> 32), uint32(len(p)), d3} {
			binary.NativeEndian.PutUint32(b[4*k:], v)
		}
		barrier.DMAWrite()
		s.tail++
	}
}

func (s enhancedRing) word(i, k int) uint32 {
	return binary.NativeEndian.Uint32(s.ring[i%s.n*s.stride+4*k:])
}

// openEnhanced opens channels 0 and 1 for transmission, the second with enhanced descriptors.
func openEnhanced(t *testing.T, n int, opts ...rigOption) (*rig, *sideRing, enhancedRing) {
	t.Helper()
	g := newRig(t, append([]rigOption{withConfig(func(c *Config) { c.TxQueues, c.TBS, c.Timestamp = 2, true, true })}, opts...)...)
	plain := g.side(n, 2048)
	e := enhancedRing{g.side(4*n, 2048), 32 + g.dsl*g.bus()} // room for the larger ones
	e.n = n
	g.openTx([]*sideRing{plain, e.sideRing}, r4.SCHALGWRR, []uint32{1, 1})
	for c, dsl := range []int{0, g.dsl} { // the rest of g has its own rings in channel 0
		r4.DMACHTxControl.Update(g.ch(c), r4.ST, 0)
		r4.DMACHControl.Store(g.ch(c), r4.DSL.Of(uint32(dsl)))
	}
	r4.DMACHTxControl.Update(g.ch(1), 0, r4.EDSE)
	if r4.DMACHTxControl.Load(g.ch(1))&r4.EDSE == 0 {
		t.Fatal("there is no EDSE")
	}
	for c := range 2 {
		r4.DMACHTxControl.Update(g.ch(c), 0, r4.ST)
	}
	return g, plain, e
}

func (g *rig) ringEnhanced(s enhancedRing) {
	r4.DMACHTxDescTailPointer.Store(g.ch(1), uint32(s.base)+uint32(s.tail%s.n*s.stride))
}

// TestEnhancedDescriptors: lists of 32 bytes a descriptor, round the end, in pieces, with a
// skip length, with the burst path on, with memory that calls alone reach, and in both
// profiles; the four words in front stay as they are.
func TestEnhancedDescriptors(t *testing.T) {
	for _, c := range []struct {
		name   string
		pieces int
		opts   []rigOption
	}{
		{"one buffer", 1, nil},
		{"pieces", 3, nil},
		{"skip length", 1, []rigOption{withDSL(2)}},
		{"bursts", 1, []rigOption{withConfig(func(c *Config) { c.NoAudit = true })}},
		{"Linux", 2, []rigOption{withProfile(Linux)}},
		{"calls", 2, []rigOption{withFaults(Faults{BusError: func(uint64, int, bool) bool { return false }})}},
		{"fetched ahead", 1, []rigOption{withFaults(Faults{Prefetch: Prefetch{On: true, Depth: 2}})}},
	} {
		t.Run(c.name, func(t *testing.T) {
			g, plain, e := openEnhanced(t, 8, c.opts...)
			for k := range 3 * e.n {
				f := testFrame(100+k, byte(k))
				first := e.tail
				e.queue(f, c.pieces, launch{})
				g.ringEnhanced(e)
				g.step()
				g.wantSent(f)
				for i := first; i < e.tail; i++ {
					if w := e.word(i, 7); w&uint32(r4.TxOWN) != 0 {
						t.Fatalf("frame %d: descriptor %d is %08x", k, i%e.n, w)
					}
					if e.word(i, 2) != 6 || e.word(i, 3) != 7 {
						t.Fatalf("frame %d: the words in front of descriptor %d are written", k, i%e.n)
					}
				}
				plain.queue(f, 1)
				g.ringSide(0, plain)
				g.step()
				g.wantSent(f)
			}
			if at := r4.DMACHCurAppTxDesc.Load(g.ch(1)); at != uint32(e.base)+uint32(e.tail%e.n*e.stride) {
				t.Errorf("current descriptor %#x, list at %#x", at, e.base)
			}
			g.clean()
		})
	}
}

// TestEnhancedRunning: the size of the descriptors is not changed while the channel runs.
func TestEnhancedRunning(t *testing.T) {
	g, _, _ := openEnhanced(t, 8)
	r4.DMACHTxControl.Update(g.ch(1), r4.EDSE, 0)
	g.wantKinds(ConfigRunning)
}

// TestLaunchTime: a frame leaves at its time and not before, and what waits in another queue
// does not wait for it.
func TestLaunchTime(t *testing.T) {
	const ms = time.Millisecond
	for _, c := range []struct {
		name  string
		now   [2]uint32 // system time
		at    launch
		after time.Duration // 0 is at once
	}{
		{"in time", [2]uint32{10, 0}, launchAt(10, 500e6), 500*ms - 500_000_000%256},
		{"the next second", [2]uint32{10, 900e6}, launchAt(11, 0), 100 * ms},
		{"the seconds have eight bits", [2]uint32{255, 900e6}, launchAt(256, 0), 100 * ms},
		{"of a large time too", [2]uint32{1<<20 + 3, 0}, launchAt(1<<20+4, 0), time.Second},
		{"now", [2]uint32{10, 0}, launchAt(10, 0), 0},
		{"too late", [2]uint32{10, 500e6}, launchAt(10, 0), 0},
		{"too late by seconds", [2]uint32{300, 0}, launchAt(299, 0), 0},
		{"no time", [2]uint32{10, 0}, launch{20, 0}, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			g, plain, e := openEnhanced(t, 8)
			r4.MACTimestampControl.Store(g.r, r4.TSENA|r4.TSCTRLSSR)
			r4.MACSubSecondIncrement.Store(g.r, r4.SSINC.Of(20))
			g.setTime(c.now[0], r4.TimeNsUpdate(c.now[1]))
			g.clock.Advance(0)
			start := g.clock.Now()
			timed, other := testFrame(100, 1), testFrame(200, 2)
			e.queue(timed, 1, c.at)
			g.ringEnhanced(e)
			g.step()
			if c.after == 0 {
				g.wantSent(timed)
				g.clean()
				return
			}
			g.wantSent()
			plain.queue(other, 1)
			g.ringSide(0, plain)
			g.step()
			g.wantSent(other)
			e.queue(other, 1, launch{}) // behind it
			g.ringEnhanced(e)
			// The system time was set by a command that took its time before start.
			g.clock.Advance(c.after - ms - (g.clock.Now() - start))
			g.step()
			g.wantSent()
			g.clock.Advance(ms)
			g.step()
			g.wantSent(timed, other)
			g.clean()
		})
	}
}

// TestLaunchTimeStopped: a clock that does not run has no time to launch at, and a channel
// that is stopped or flushed gives the frame up.
func TestLaunchTimeStopped(t *testing.T) {
	g, _, e := openEnhanced(t, 8)
	f := testFrame(100, 1)
	e.queue(f, 1, launchAt(1, 0))
	g.ringEnhanced(e)
	g.step()
	g.wantSent(f)
	r4.MACTimestampControl.Store(g.r, r4.TSENA|r4.TSCTRLSSR)
	e.queue(f, 1, launchAt(1, 0))
	g.ringEnhanced(e)
	g.step()
	g.wantSent()
	r4.MTLTxQOperationMode.Update(g.mtl(1), 0, r4.FTQ)
	g.step()
	g.clock.Advance(10 * time.Second)
	g.step()
	g.wantSent()
	if w := e.word(1, 7); w&uint32(r4.TxOWN) != 0 {
		t.Errorf("the flushed descriptor is %08x", w)
	}
}
