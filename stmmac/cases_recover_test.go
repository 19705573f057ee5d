package stmmac_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gostmmac/gostmmac/pagepool"
	"github.com/gostmmac/gostmmac/stmmac"
	r4 "github.com/gostmmac/gostmmac/stmmac/internal/regs/gmac4reg"
	"github.com/gostmmac/gostmmac/stmmac/sim"
)

// sendOn sends frames on a queue, and fails if one is not taken.
func (r *rig) sendOn(q int, frames ...[]byte) {
	r.Helper()
	for _, f := range frames {
		if n, err := r.mac.Tx(q).Send([]*pagepool.Buf{r.buf(f, 1500)}); n != 1 {
			r.Fatalf("queue %d: %v", q, err)
		}
	}
}

// works fails unless every transmit queue sends a frame within d.
func (r *rig) works(seq uint64, d time.Duration) {
	r.Helper()
	end := r.clock.Now() + d
	for q := range r.numTx() {
		r.sendOn(q, frame(70+q, seq))
	}
	left := r.numTx()
	for r.step(); left > 0; r.pass(10 * time.Millisecond) {
		for _, f := range r.wire.take() {
			if q := len(f) - 70; q >= 0 && q < r.numTx() && bytes.Equal(f, frame(70+q, seq)) {
				left--
			}
		}
		if left > 0 && r.clock.Now() >= end {
			r.Fatalf("%d of %d queues do not send within %v: %v", left, r.numTx(), d, r.mac.Err())
		}
	}
}

// TestLinkLossInFlight is case D28: the link drops with frames in the queues, which
// stay in the MAC, for ever or until the link is back. Each buffer is released once,
// and the MAC sends within a second of the link.
func TestLinkLossInFlight(t *testing.T) {
	const ring = 16
	for _, flush := range []bool{false, true} {
		for _, lost := range []bool{false, true} {
			for _, n := range []int{1, 2, 4} {
				t.Run(fmt.Sprintf("flush hangs %v, frames lost %v, %d queues", flush, lost, n), func(t *testing.T) {
					c := queues(withPHY(rigConfig{}, sim.PHYConfig{}, stmmac.PHY{}), n)
					c.opts = append(c.opts, stmmac.WithRings(ring, ring))
					r := newRig(t, c)
					r.dev.SetFaults(func(f *sim.Faults) { f.LinkLossStallsTx, f.FlushHangs = true, flush })
					r.until(true, time.Second)
					rounds := scale(t, 100)
					seq := uint64(0)
					for i := range rounds {
						inflight := []int{0, 1, ring - 1}[i%3]
						away := []time.Duration{100 * time.Millisecond, 5 * time.Second, 60 * time.Second}[i/3%3]
						before := counter(t, r.mac, "recoveries")
						if lost {
							r.dev.SetFaults(func(f *sim.Faults) { f.TxNeverCompletes = true })
						}
						r.dev.SetCable(false)
						for q := range n {
							seq += ring
							r.sendOn(q, frames(inflight, 60, seq)...)
						}
						r.step()
						r.pass(away)
						if n := counter(t, r.mac, "recoveries"); n != before && away < 400*time.Millisecond {
							t.Errorf("%d recoveries without a link", n-before)
						}
						r.dev.SetCable(true)
						r.pass(20 * time.Millisecond)
						up := r.clock.Now() // the PHY has its link
						r.until(true, time.Second)
						if lost && inflight > 0 {
							for counter(t, r.mac, "recoveries") == before {
								r.pass(10 * time.Millisecond)
								if r.clock.Now() > up+time.Second {
									t.Fatal("no recovery within a second")
								}
							}
						}
						r.dev.SetFaults(func(f *sim.Faults) { f.TxNeverCompletes = false })
						r.step()
						r.wire.take()
						for q := range n {
							r.mac.Tx(q).Reap(nil)
						}
						r.works(seq+1, up+time.Second-r.clock.Now())
						r.onlyRx()
						if err := r.mac.Err(); err != nil {
							t.Fatal(err)
						}
						r.pass(10 * time.Second) // out of the window of the recoveries
					}
					for q := range n {
						if s := r.mac.Tx(q).Stats(); s.Done != s.Packets || !lost && s.Flushed != 0 {
							t.Errorf("queue %d: %+v", q, s)
						}
					}
				})
			}
		}
	}
}

// TestCongestion is case D61: a consumer stops for ten seconds at line rate, with
// pause frames negotiated in all ways. None is sent that was not agreed on; with them
// nothing is lost; and a MAC that is closed in the middle pauses nobody any more.
func TestCongestion(t *testing.T) { onEach(t, testCongestion) }

func testCongestion(t *testing.T) {
	for _, fifo := range []int{4096, 16384} {
		for _, p := range []struct {
			partner sim.LinkModes
			tx      bool
		}{{0, false}, {sim.ModeAsymPause, false}, {sim.ModePause, true}, {sim.ModePause | sim.ModeAsymPause, true}} {
			for _, closed := range []bool{false, true} {
				t.Run(fmt.Sprintf("%d, partner %#x, closed %v", fifo, p.partner, closed), func(t *testing.T) {
					r := newRig(t, withPHY(rigConfig{sim: sim.Config{RxFIFO: fifo}, opts: []stmmac.Option{stmmac.WithRings(8, 8)}},
						sim.PHYConfig{Partner: sim.Partner{Modes: sim.Mode1000Full | p.partner}}, stmmac.PHY{}))
					r.until(true, time.Second)
					// pauses returns the times of the pause frames since the last call.
					pauses := func() (l []uint16) {
						for _, f := range r.wire.take() {
							if f[12] != 0x88 || f[13] != 0x08 {
								t.Errorf("a frame of type %#x", f[12:14])
							}
							l = append(l, binary.BigEndian.Uint16(f[16:]))
						}
						return l
					}
					var in [][]byte
					var until time.Duration // the partner is silent until then
					asked := 0
					start := r.clock.Now()
					for seq := uint64(0); r.clock.Now() < start+10*time.Second; {
						for range 12 { // frames of 12 us in a slice of a busy line
							if r.clock.Now() < until {
								break
							}
							f := frame(900, seq)
							seq++
							if p.tx || len(in) < 7 {
								in = append(in, f)
							}
							r.wire.deliver(f)
							r.step()
							for _, v := range pauses() {
								asked++
								until = r.clock.Now() + time.Duration(v)*512*time.Nanosecond
							}
						}
						r.pass(10 * time.Millisecond)
						for _, v := range pauses() {
							asked++
							until = r.clock.Now() + time.Duration(v)*512*time.Nanosecond
						}
					}
					if p.tx != (asked > 0) {
						t.Fatalf("%d pause frames", asked)
					}
					if n := counter(t, r.mac, "faults"); n != 0 {
						t.Errorf("%d faults of a MAC whose consumer sleeps", n)
					}
					if closed {
						if err := r.mac.Close(); err != nil {
							t.Fatal(err)
						}
						r.wire.take()
						r.wire.deliver(frames(100, 900, 0)...)
						r.clock.Advance(10 * time.Second)
						r.step()
						if l := pauses(); len(l) != 0 {
							t.Errorf("pauses of %v after Close", l)
						}
						return
					}
					got := r.recv(len(in))
					r.same(got, in)
					if l := pauses(); p.tx && (len(l) == 0 || l[len(l)-1] != 0) {
						t.Errorf("the end of the congestion is told by %v", l)
					}
					s := r.mac.Rx(0).Stats()
					if lost := s.Missed+s.FIFOFull > 0; lost == p.tx {
						t.Errorf("lost %d and %d", s.Missed, s.FIFOFull)
					}
					r.recv(1000)
					r.flows(99)
					r.onlyRx()
				})
			}
		}
	}
}

// TestBusErrorCodes is the other half of case D62: a bus error with every code on
// every kind of channel, found by polling and told by interrupts.
func TestBusErrorCodes(t *testing.T) { onEach(t, testBusErrorCodes) }

func testBusErrorCodes(t *testing.T) {
	for _, n := range queueCounts(t, 1, 2, 4) {
		for _, tx := range []bool{false, true} {
			for _, wrap := range []func(*sim.Device) stmmac.Device{polled, nil} {
				t.Run(fmt.Sprintf("%d queues, tx %v, polled %v", n, tx, wrap != nil), func(t *testing.T) {
					c := queues(rigConfig{wrap: wrap}, n)
					r := newRig(t, c)
					for code := range uint32(8) {
						before := recoveries(r.mac)
						r.wire.deliver(frame(60, uint64(code)))
						r.step()
						r.dev.RaiseBusError(n-1, tx, code)
						start := r.clock.Now()
						for recoveries(r.mac) == before {
							r.pass(10 * time.Millisecond)
							if wrap != nil && r.clock.Now() > start+time.Second {
								t.Fatalf("code %d: no recovery", code)
							}
							runtime.Gosched() // the dispatcher has a goroutine of its own
						}
						r.same(r.recv(1), frames(1, 60, uint64(code)))
						r.flows(uint64(code))
						r.works(uint64(code), 100*time.Millisecond)
						r.onlyRx()
						r.pass(4 * time.Second)
					}
				})
			}
		}
	}
}

// mappings is a device whose IOMMU a test can reach.
type mappings struct {
	*sim.Device
	mu   sync.Mutex
	now  map[uint64]int
	gone map[uint64]bool
}

func (d *mappings) NumInterrupts() int { return 0 }

func (d *mappings) MapDMA(mem []byte) (uint64, error) {
	a, err := d.Device.MapDMA(mem)
	d.mu.Lock()
	defer d.mu.Unlock()
	if err == nil {
		d.now[a] = len(mem)
	}
	return a, err
}

func (d *mappings) UnmapDMA(iova uint64, n int) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.now, iova)
	if d.gone[iova] {
		delete(d.gone, iova)
		return nil
	}
	return d.Device.UnmapDMA(iova, n)
}

// unmap takes the mapping that holds addr away.
func (d *mappings) unmap(t *testing.T, addr uint64) {
	t.Helper()
	for a, n := range d.now {
		if addr >= a && addr < a+uint64(n) {
			if err := d.Device.UnmapDMA(a, n); err != nil {
				t.Fatal(err)
			}
			d.gone[a] = true
			return
		}
	}
	t.Fatalf("nothing is mapped at %#x", addr)
}

// TestUnmapped takes the memory of a running MAC out of the IOMMU (case D62). That
// does not come back by rebuilding: after the limit the MAC is down with the reason,
// without going on to reset the device, and everything is given back.
func TestUnmapped(t *testing.T) { onEach(t, testUnmapped) }

func testUnmapped(t *testing.T) {
	for _, what := range []string{"receive ring", "transmit ring", "buffers"} {
		for _, n := range queueCounts(t, 1, 4) {
			t.Run(fmt.Sprintf("%s, %d queues", what, n), func(t *testing.T) {
				var dev *mappings
				r := newRig(t, queues(rigConfig{wrap: func(d *sim.Device) stmmac.Device {
					dev = &mappings{Device: d, now: map[uint64]int{}, gone: map[uint64]bool{}}
					return dev
				}}, n))
				r.tolerate = []sim.ViolationKind{sim.DMAOutside, sim.BufferOutside}
				r.flows(1)
				switch what {
				case "receive ring":
					dev.unmap(t, r.gen.list(r.csr(), 0, receiving))
				case "transmit ring":
					dev.unmap(t, r.gen.list(r.csr(), 0, sending))
				default:
					for a, n := range dev.now {
						if n > 1<<20 {
							dev.unmap(t, a)
							break
						}
					}
				}
				r.wire.deliver(frame(60, 2))
				r.send(frame(60, 3))
				start := r.clock.Now()
				for r.mac.Err() == nil {
					r.pass(10 * time.Millisecond)
					r.wire.deliver(frame(60, 2))
					if r.mac.Err() == nil {
						r.send(frame(60, 3))
						r.recv(10)
					}
					if r.clock.Now() > start+5*time.Second {
						t.Fatalf("not down after %v", r.clock.Now()-start)
					}
				}
				mustFail(t, r.mac.Err(), stmmac.ErrFatalBus, "fault 5", "stays down", "channel 0")
				if n := r.pool.InUse(); n != 0 {
					t.Errorf("%d buffers are in use: %v", n, r.pool.Holders())
				}
				stores := r.dev.Stats().Stores
				r.pass(20 * time.Second)
				if n := r.dev.Stats().Stores - stores; n != 0 {
					t.Errorf("%d stores to a MAC that is down", n)
				}
				if err := r.mac.Close(); err != nil {
					t.Fatal(err)
				}
				r.open()
				r.flows(4)
			})
		}
	}
}

// TestStalls stalls a channel without any status (stalls of D02, D27). The others go on; what the
// stall survives decides between a recovery within a second and the end.
func TestStalls(t *testing.T) {
	for _, cure := range []sim.StallCure{sim.StallUntilStop, sim.StallUntilReset, sim.StallForever} {
		for _, tx := range []bool{false, true} {
			for _, n := range []int{1, 2, 4} {
				t.Run(fmt.Sprintf("cure %d, tx %v, %d queues", cure, tx, n), func(t *testing.T) {
					c := queues(rigConfig{}, n)
					r := newRig(t, c)
					last := n - 1
					in := func(q int, seq uint64) []byte { return tagged(80, seq, q*8/n) } // by priority
					r.dev.SetFaults(func(f *sim.Faults) {
						f.StallSurvives = cure
						if tx {
							f.TxStall = 1 << last
						} else {
							f.RxStall = 1 << last
						}
					})
					start := r.clock.Now()
					for seq := uint64(0); recoveries(r.mac) == 0; seq++ {
						if r.clock.Now() > start+time.Second {
							t.Fatal("no recovery within a second")
						}
						if tx {
							r.sendOn(last, frame(60, seq))
						} else {
							r.wire.deliver(in(last, seq))
						}
						r.pass(10 * time.Millisecond)
						if n > 1 && recoveries(r.mac) == 0 { // the first queue does not notice
							r.wire.take()
							r.sendOn(0, frame(61, seq))
							r.wire.deliver(in(0, seq))
							r.step()
							r.same(r.recv(1), [][]byte{in(0, seq)})
							r.same(r.wire.take(), frames(1, 61, seq))
						}
					}
					if cure != sim.StallForever {
						r.pass(10 * time.Millisecond)
						for q := range n {
							r.recvQ(q, 100)
						}
						r.wire.take()
						r.works(1000, 50*time.Millisecond)
						r.wire.deliver(in(last, 1000))
						r.same(r.recvQ(last, 1), [][]byte{in(last, 1000)})
						r.onlyRx()
						r.pass(3 * time.Second)
						if n := counter(t, r.mac, "faults"); n != 1 {
							t.Errorf("%d faults", n)
						}
						return
					}
					for r.mac.Err() == nil {
						if tx && r.mac.Tx(last).Space() > 0 {
							r.sendOn(last, frame(60, 1))
						} else {
							r.wire.deliver(in(last, 1))
						}
						r.pass(50 * time.Millisecond)
						if r.clock.Now() > start+5*time.Second {
							t.Fatal("no end")
						}
					}
					mustFail(t, r.mac.Err(), stmmac.ErrStalled, "fault 5", "stays down", fmt.Sprintf("queue %d", last))
					for q := range n {
						r.recvQ(q, 1000)
					}
					if n := r.pool.InUse(); n != 0 {
						t.Errorf("%d buffers are in use: %v", n, r.pool.Holders())
					}
				})
			}
		}
	}
}

// tickClock is a stepClock whose timers fire when a test says so.
type tickClock struct {
	stepClock
	fire func()
}

func (c *tickClock) AfterFunc(_ time.Duration, f func()) func() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.fire = f
	return func() bool { return true }
}

// tick lets 100 ms pass, and the monitor look.
func (c *tickClock) tick(m *stmmac.MAC) {
	c.mu.Lock()
	c.now += 100 * time.Millisecond
	fire := c.fire
	c.mu.Unlock()
	fire()
	m.MonitorPass()
}

// TestNoLast plays a device that gives descriptors back and says of none that a frame
// ends there: nothing can be reaped, and the queue counts as one that stands still.
func TestNoLast(t *testing.T) {
	for _, good := range []bool{false, true} {
		t.Run(fmt.Sprintf("good %v", good), func(t *testing.T) {
			regs, clock := fakeGMAC4(), &tickClock{}
			m, d, err := openOn(t, regs, stmmac.WithLink(gigabit), stmmac.WithClock(clock), stmmac.WithRings(8, 8))
			if err != nil {
				t.Fatal(err)
			}
			ring := d.memory[uint64(regs.Peek(0x1114))]
			for range 2 {
				b := chain(t, m.Pool(), frame(60, 1), 60)
				if n, err := m.Tx(0).Send([]*pagepool.Buf{b}); n != 1 || err != nil {
					t.Fatal(n, err)
				}
			}
			for slot := range 2 {
				d3 := uint32(r4.TxFD)
				if good {
					d3 |= uint32(r4.TxLD)
				}
				binary.LittleEndian.PutUint32(ring[16*slot+12:], d3)
			}
			for range 100 {
				clock.tick(m)
			}
			if n := recoveries(m); (n != 0) == good {
				t.Errorf("%d recoveries", n)
			}
			if n := m.Tx(0).Reap(nil); (n != 0) != good {
				t.Errorf("%d frames are done", n)
			}
			if err := m.Close(); err != nil {
				t.Error(err)
			}
			d.mustUnmap(t)
		})
	}
}

// TestStopHangs has channels that do not come to rest: whatever stops them needs a
// reset, and that is enough.
func TestStopHangs(t *testing.T) {
	for _, tx := range []bool{false, true} {
		for _, n := range []int{1, 4} {
			r := newRig(t, queues(rigConfig{}, n))
			hang := func() {
				r.dev.SetFaults(func(f *sim.Faults) {
					if tx {
						f.TxStopHangs = 1 << (n - 1)
					} else {
						f.RxStopHangs = 1 << (n - 1)
					}
				})
			}
			hang()
			r.wire.deliver(frames(3, 60, 0)...)
			r.step()
			if err := r.mac.SetMTU(t.Context(), 1400); err != nil {
				t.Fatal(err)
			}
			r.same(r.recv(3), frames(3, 60, 0))
			r.flows(1)
			hang()
			r.dev.RaiseBusError(0, false, 1)
			r.pass(300 * time.Millisecond)
			r.flows(2)
			hang()
			if err := r.mac.Close(); err != nil {
				t.Fatal(err)
			}
			r.dev.SetFaults(func(f *sim.Faults) { f.TxStopHangs, f.RxStopHangs = 0, 0 })
			r.open()
			r.flows(3)
		}
	}
}

// TestLinkLossMidFrame cuts received frames off in their middle: they are counted,
// those around them arrive, and nothing is rebuilt.
func TestLinkLossMidFrame(t *testing.T) { onEach(t, testLinkLossMidFrame) }

func testLinkLossMidFrame(t *testing.T) {
	for _, mode := range []sim.LinkLossMode{sim.LinkLossError, sim.LinkLossNoLast} {
		for _, mtu := range []int{1500, 9000} {
			t.Run(fmt.Sprintf("mode %d, MTU %d", mode, mtu), func(t *testing.T) {
				c := withPHY(rigConfig{opts: []stmmac.Option{stmmac.WithMTU(mtu), stmmac.WithRings(32, 32)}}, sim.PHYConfig{}, stmmac.PHY{})
				c.sim.RxFIFO = 32 << 10
				r := newRig(t, c)
				r.until(true, time.Second)
				r.dev.SetFaults(func(f *sim.Faults) {
					f.LinkLoss = func(i uint64) sim.LinkLossMode {
						if i%3 == 1 {
							return mode
						}
						return sim.LinkLossNone
					}
				})
				rounds := scale(t, 1000)
				for i := range rounds {
					seq := uint64(10 * i)
					r.wire.deliver(frames(2, mtu, seq)...)
					r.step()
					r.dev.SetCable(false)
					r.pass(50 * time.Millisecond)
					r.dev.SetCable(true)
					r.pass(1100 * time.Millisecond)
					r.wire.deliver(frame(mtu, seq+2))
					r.same(r.recv(2), [][]byte{frame(mtu, seq), frame(mtu, seq+2)})
				}
				if s := r.mac.Rx(0).Stats(); s.Drops() != uint64(rounds) {
					t.Errorf("%d frames dropped of %d: %+v", s.Drops(), rounds, s)
				}
				if n := counter(t, r.mac, "faults"); n != 0 {
					t.Errorf("%d faults", n)
				}
				r.onlyRx()
			})
		}
	}
}

// TestOverflowStorm fills FIFO and ring and goes on for long: what does not fit is
// counted, nothing is rebuilt because of a consumer that sleeps, and all is well
// when it wakes up.
func TestOverflowStorm(t *testing.T) {
	for _, n := range []int{1, 2, 4} {
		c := queues(rigConfig{}, n)
		c.opts = append(c.opts, stmmac.WithRings(8, 8))
		r := newRig(t, c)
		sent := uint64(0)
		for range scale(t, 1000) {
			r.wire.deliver(frames(500, 1000, sent)...)
			sent += 500
			r.pass(200 * time.Millisecond)
		}
		got := r.recv(1 << 20)
		s := r.mac.Rx(0).Stats()
		if uint64(len(got))+s.Missed+s.FIFOFull != sent {
			t.Errorf("%d frames, %d came, %d missed, %d did not fit", sent, len(got), s.Missed, s.FIFOFull)
		}
		if f := counter(t, r.mac, "faults"); f != 0 {
			t.Errorf("%d faults", f)
		}
		r.flows(1)
		r.onlyRx()
	}
}

// config are the registers that hold what was configured, by their names.
func (r *rig) config() map[string]uint32 {
	out := map[string]uint32{}
	for off := uint32(0); off < 0x1200; off += 4 {
		name := stmmac.RegName(stmmac.GMAC4, off)
		switch {
		case name == "",
			strings.Contains(name, "MDIO"), strings.Contains(name, "Debug"), strings.Contains(name, "Status"),
			strings.Contains(name, "Current"), strings.Contains(name, "Tail"), strings.Contains(name, "Packets"),
			strings.Contains(name, "Octet"), strings.Contains(name, "VLAN_Tag"), // the latter by another access
			strings.Contains(name, "Miss"), strings.Contains(name, "Underflow"), strings.Contains(name, "Interrupt_Enable"):
			continue
		case off >= 0x700 && off < 0xc00: // counters
			continue
		}
		if off > 0x304 && off < 0x400 { // filters, which may be in any order
			if off&4 == 0 {
				out[fmt.Sprintf("MAC_Address %#x %#x", r.reg(off), r.reg(off+4))] = 1
			}
			continue
		}
		out[name] = r.reg(off)
	}
	return out
}

// TestRestored holds that a rebuilt MAC is configured as before, by its registers and
// by what it does.
func TestRestored(t *testing.T) {
	for _, n := range []int{1, 2, 4} {
		for _, how := range []string{"bus error", "stall", "MTU", "rings"} {
			t.Run(fmt.Sprintf("%d queues, %s", n, how), func(t *testing.T) {
				dropped := frame(66, 6)
				c := queues(withPHY(rigConfig{wrap: polled}, sim.PHYConfig{}, stmmac.PHY{Pause: stmmac.PauseRx}), n)
				c.opts = append(c.opts, stmmac.WithConfig(choosy), stmmac.WithMTU(1700), stmmac.WithConfig(func(c *stmmac.Config) { c.VLANStrip = true }),
					stmmac.WithProgram(programFunc(func(b *pagepool.Buf) stmmac.Verdict {
						if bytes.Equal(b.Bytes(), dropped) {
							return stmmac.VerdictDrop
						}
						return stmmac.VerdictPass
					})))
				r := newRig(t, c)
				r.until(true, time.Second)
				me := net.HardwareAddr{2, 0, 0, 0, 0, 1}
				r.must(r.mac.SetHardwareAddr(me))
				r.must(r.mac.AddVLAN(5))
				r.must(r.mac.AddVLAN(77))
				for i := range 40 { // more than there are perfect filters
					r.must(r.mac.JoinGroup(group(byte(i))))
				}
				r.must(r.mac.AddUnicast(net.HardwareAddr{2, 0, 0, 0, 0, 9}))
				check := func(seq uint64) {
					t.Helper()
					vlan := func(vid uint16) []byte {
						f := tagFrame(1, 60, seq)
						binary.BigEndian.PutUint16(f[14:], vid)
						return f
					}
					other := to(net.HardwareAddr{2, 0, 0, 0, 0, 8}, seq)
					r.wire.deliver(frame(60, seq), to(group(39), seq), other, to(net.HardwareAddr{2, 0, 0, 0, 0, 9}, seq), dropped,
						vlan(5), vlan(6), vlan(77), frame(1714, seq), frame(1740, seq))
					var got [][]byte
					for q := range n {
						got = append(got, r.recvQ(q, 100)...)
					}
					if len(got) != 6 {
						t.Fatalf("%d frames came, want 6", len(got))
					}
					for _, f := range got {
						if bytes.Equal(f, other) || bytes.Equal(f, dropped) || len(f) > 1714 || f[12] == 0x81 {
							t.Errorf("% x came", f[:20])
						}
					}
					r.works(seq, 10*time.Millisecond)
				}
				check(1)
				before := r.config()
				filter, addr, l := r.mac.Filter(), r.mac.HardwareAddr(), r.mac.Link()
				switch how {
				case "bus error":
					r.dev.RaiseBusError(n-1, false, 3)
				case "stall":
					r.dev.SetFaults(func(f *sim.Faults) { f.TxStall, f.StallSurvives = 1, sim.StallUntilReset })
					r.send(frame(60, 3))
				case "MTU":
					r.must(r.mac.SetMTU(t.Context(), 600))
					r.must(r.mac.SetMTU(t.Context(), 1700))
				case "rings":
					r.must(r.mac.SetRings(t.Context(), 64, 64))
					r.must(r.mac.SetRings(t.Context(), 512, 512))
				}
				r.pass(800 * time.Millisecond)
				if want := map[string]uint64{"bus error": 1, "stall": 1}[how]; recoveries(r.mac) != want {
					t.Fatalf("%d recoveries", recoveries(r.mac))
				}
				after := r.config()
				if len(after) != len(before) {
					t.Errorf("%d registers and filters, were %d", len(after), len(before))
				}
				for name, v := range after {
					// The rings that were made anew lie elsewhere.
					if v != before[name] && !(how == "rings" && strings.Contains(name, "List")) {
						t.Errorf("%s is %#x, was %#x", name, v, before[name])
					}
				}
				if len(before) < 80 {
					t.Errorf("%d registers compared", len(before))
				}
				if f := r.mac.Filter(); !slices.EqualFunc(f.Multicast, filter.Multicast, func(a, b net.HardwareAddr) bool { return bytes.Equal(a, b) }) ||
					!bytes.Equal(r.mac.HardwareAddr(), addr) || r.mac.MTU() != 1700 || r.mac.Link() != l {
					t.Errorf("%+v, %v, %v, %v", f, r.mac.HardwareAddr(), r.mac.MTU(), r.mac.Link())
				}
				check(2)
			})
		}
	}
}

// TestRecoveryUnderTraffic raises bus errors in MACs at work that run by themselves:
// whoever waits neither hangs nor gets an error, and frames that are sent afterwards
// arrive.
func TestRecoveryUnderTraffic(t *testing.T) {
	for _, vectors := range []string{"common", "each", "none"} {
		t.Run(vectors, func(t *testing.T) {
			c := newCable(t, sim.Config{RxQueues: 2, TxQueues: 2}, vectors, stmmac.WithQueues(2, 2), noSelfTest,
				stmmac.WithRecovery(stmmac.Recovery{Limit: 1000}))
			ctx := patience(t)
			last := uint64(1 << 40)
			var wg sync.WaitGroup
			done := make(chan struct{})
			stop := make(chan struct{})
			for i := range 2 {
				wg.Go(func() { // both receive
					for b, err := range c.mac[i].Rx(0).Frames(ctx) {
						if err != nil {
							if !errors.Is(err, stmmac.ErrClosed) {
								t.Error(err)
							}
							return
						}
						end := bytes.Equal(b.Bytes(), frame(60, last))
						c.pool.Free(b)
						if end && i == 1 {
							close(done)
							return
						}
					}
				})
				wg.Go(func() { // both send
					q := c.mac[i].Tx(1)
					for seq := uint64(0); ; seq++ {
						select {
						case <-stop:
							return
						default:
						}
						b, err := c.pool.Alloc()
						if err != nil {
							runtime.Gosched()
							continue
						}
						b.SetData(frame(60, seq))
						if err := sendOne(ctx, q, b); err != nil {
							if !errors.Is(err, stmmac.ErrClosed) {
								t.Error(err)
							}
							c.pool.Free(b)
							return
						}
						if seq%64 == 0 {
							if _, err := drain(ctx, q); err != nil && !errors.Is(err, stmmac.ErrClosed) {
								t.Error(err)
								return
							}
						}
					}
				})
			}
			rounds := map[string]int{"none": 3}[vectors]
			if rounds == 0 {
				rounds = scale(t, 1000)
			}
			for i := range rounds {
				m, d := c.mac[i%2], c.dev[i%2]
				before := recoveries(m)
				d.RaiseBusError(i%2, i/2%2 == 0, uint32(i)%8)
				for recoveries(m) == before {
					if ctx.Err() != nil {
						t.Fatal("no recovery")
					}
					runtime.Gosched()
				}
			}
			close(stop)
			for { // what was on the cable while the receiver was off is lost
				b, err := c.pool.Alloc()
				if err != nil {
					t.Fatal(err)
				}
				b.SetData(frame(60, last))
				if err := sendOne(ctx, c.mac[0].Tx(0), b); err != nil {
					t.Fatal(err)
				}
				c.mac[0].Tx(0).Reap(nil)
				select {
				case <-done:
				case <-time.After(time.Millisecond):
					continue
				}
				break
			}
			c.mac[0].Close() // ends the other receiver
			wg.Wait()
			for i, m := range c.mac {
				if err := m.Err(); err != nil {
					t.Errorf("MAC %d: %v", i, err)
				}
			}
		})
	}
}

// TestEndWhileRebuilding closes MACs, or unplugs their device, while they are being
// rebuilt without a clock: the end comes soon, waiters hear of it, and no goroutine
// is left.
func TestEndWhileRebuilding(t *testing.T) { onEach(t, testEndWhileRebuilding) }

func testEndWhileRebuilding(t *testing.T) {
	for _, how := range []string{"close", "gone"} {
		for _, change := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, change %v", how, change), func(t *testing.T) {
				goroutines := runtime.NumGoroutine()
				r := newRig(t, withPHY(rigConfig{}, sim.PHYConfig{}, stmmac.PHY{}))
				r.until(true, time.Second)
				r.clock.SetStepped(true)
				r.dev.SetClockGated(true)
				changed := make(chan error, 1)
				if change {
					go func() { changed <- r.mac.SetMTU(t.Context(), 1400) }()
				} else {
					r.dev.RaiseBusError(0, false, 0) // the monitor hears of it
				}
				waited := make(chan error, 2)
				go func() { waited <- r.mac.Rx(0).Wait(t.Context()) }()
				go func() { // a transmit queue with something in flight
					b := chain(t, r.pool, frame(60, 1), 60)
					if n, _ := r.mac.Tx(0).Send([]*pagepool.Buf{b}); n == 0 {
						r.pool.Free(b)
					}
					waited <- r.mac.Tx(0).Wait(t.Context())
				}()
				for !r.mac.Rebuilding() {
					runtime.Gosched()
				}
				// No time goes by before the end begins: the reset that hangs
				// would be a failure of its own.
				target := stmmac.ErrClosed
				ended := make(chan error, 1)
				if how == "close" {
					go func() { ended <- r.mac.Close() }()
					for !r.mac.Ending() {
						runtime.Gosched()
					}
				} else {
					target = stmmac.ErrGone
					ended <- r.dev.Close()
				}
				var pump sync.WaitGroup
				stop := make(chan struct{})
				pump.Go(func() {
					for {
						select {
						case <-stop:
							return
						default:
							r.clock.Advance(time.Millisecond)
							runtime.Gosched()
						}
					}
				})
				r.must(<-ended)
				for range 2 {
					if err := <-waited; err != nil && !errors.Is(err, target) {
						t.Error(err)
					}
				}
				if change {
					mustFail(t, <-changed, target)
				}
				for r.mac.Rebuilding() {
					runtime.Gosched()
				}
				// A rebuild that Close cut short is no failure of the device.
				if err := r.mac.Err(); err != nil && !errors.Is(err, target) {
					t.Errorf("the MAC has failed: %v", err)
				}
				if how == "gone" {
					mustFail(t, r.mac.Err(), stmmac.ErrGone)
				}
				close(stop)
				pump.Wait()
				r.clock.SetStepped(false)
				if err := r.mac.Close(); err != nil {
					t.Error(err)
				}
				for i := 0; runtime.NumGoroutine() > goroutines; i++ {
					if i == 1000 {
						t.Fatalf("%d goroutines, %d before", runtime.NumGoroutine(), goroutines)
					}
					time.Sleep(time.Millisecond)
				}
			})
		}
	}
}

// TestLyingFeatures has feature registers that tell less, or more, than there is: the
// link has what they tell, and frames pass.
func TestLyingFeatures(t *testing.T) {
	const mii, gmii, half = 1 << 0, 1 << 1, 1 << 2
	for _, tc := range []struct {
		name    string
		clear   uint32
		partner sim.LinkModes
		want    stmmac.Link
	}{
		{"no GMII", gmii, sim.AllModes, link(100, true, true, true)},
		{"no MII", mii, sim.AllModes, link(1000, true, true, true)},
		{"no MII, slow partner", mii, sim.Mode100Full, stmmac.Link{}},
		{"neither", mii | gmii, sim.AllModes, link(1000, true, true, true)},
		{"no half duplex", half, sim.Mode100Half, stmmac.Link{}},
		{"no half duplex, full partner", half, sim.Mode10Full, link(10, true)},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r := newRig(t, withPHY(rigConfig{wrap: features(0x011c, 0, tc.clear)}, sim.PHYConfig{Partner: sim.Partner{Modes: tc.partner}}, stmmac.PHY{}))
			r.pass(1200 * time.Millisecond)
			r.agrees(tc.want)
			if tc.want.Up {
				r.flows(1)
			}
			if tc.clear&half != 0 {
				mustFail(t, r.mac.SetForced(link(10, false)), errors.ErrUnsupported, "10baseT/Half")
			}
		})
	}
}

// FuzzFeatures opens MACs on feature registers, and a management bus, that hold
// anything: it ends without a panic, with a typed error or with a MAC that can be
// closed, and leaves nothing mapped.
func FuzzFeatures(f *testing.F) {
	f.Add(uint32(0x1052), uint32(0x127), uint32(0x01004187), uint32(0xc30c3), uint32(0), uint32(0x796d796d), uint8(0))
	f.Add(uint32(0x1040), uint32(0), uint32(0), uint32(0), uint32(0), uint32(0), uint8(1))
	f.Add(uint32(0x1053), ^uint32(0), ^uint32(0), ^uint32(0), ^uint32(0), ^uint32(0), uint8(3))
	f.Add(uint32(0x52), ^uint32(0), uint32(0), ^uint32(0), uint32(0), uint32(0x0141), uint8(2))
	f.Fuzz(func(t *testing.T, version, f0, f1, f2, f3, mdio uint32, kind uint8) {
		regs, clock := fakeGMAC4(), &tickClock{}
		for off, v := range map[uint32]uint32{0x110: version, 0x11c: f0, 0x120: f1, 0x124: f2, 0x128: f3} {
			regs.Set(off, v)
		}
		regs.SelfClearing(0x200, 1, int(kind>>5)-1)
		n := uint32(0)
		regs.OnLoad(0x204, func(uint32) uint32 {
			n++
			return mdio>>(n%17) ^ n>>3
		})
		queues := int(kind>>2&3) + 1
		opts := []stmmac.Option{stmmac.WithQueues(queues, queues), stmmac.WithRings(4, 4), stmmac.WithCSRClock(100e6), stmmac.WithBufSize(512), stmmac.WithClock(clock)}
		if kind&1 != 0 {
			opts = append(opts, stmmac.WithPHY(stmmac.PHY{Addr: int(kind>>1&1) - 1, Clause45: kind&2 != 0}))
		}
		m, d, err := openOn(t, regs, opts...)
		if err != nil {
			var e *stmmac.Error
			if !errors.As(err, &e) || e.Dev != "fake" || e.Op == "" {
				t.Fatalf("error %#v", err)
			}
			d.mustUnmap(t)
			return
		}
		m.SetMTU(t.Context(), 9000)
		m.SetMTU(t.Context(), 46)
		m.Renegotiate()
		for range 3 {
			clock.tick(m)
		}
		for range m.Counters() {
		}
		if err := m.Close(); err != nil {
			t.Fatal(err)
		}
		d.mustUnmap(t)
	})
}
