package stmmac_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/gostmmac/gostmmac/pagepool"
	"github.com/gostmmac/gostmmac/stmmac"
	r4 "github.com/gostmmac/gostmmac/stmmac/internal/regs/gmac4reg"
	"github.com/gostmmac/gostmmac/stmmac/sim"
)

func doubleTags(c *stmmac.Config) { c.VLANStrip, c.VLANDouble = true, true }

// tagWays are who puts tags into frames that are sent.
var tagWays = []struct {
	name   string
	c      rigConfig
	single bool // the device inserts an outer tag
	double bool // and two
}{
	{"device", rigConfig{}, true, false},
	{"device, double", rigConfig{opts: []stmmac.Option{with(doubleTags)}}, true, true},
	{"no feature", rigConfig{sim: sim.Config{NoVLANInsert: true}}, false, false},
	{"no double feature", rigConfig{sim: sim.Config{NoDoubleVLAN: true}}, true, false},
	{"not wanted", rigConfig{opts: []stmmac.Option{with(func(c *stmmac.Config) { c.VLANInsert = false })}}, false, false},
}

// TestD43 sends tags that change from frame to frame, with frames without one
// in between, and equal ones after a different one.
func TestD43(t *testing.T) {
	for _, way := range tagWays {
		for _, n := range []int{1, 2, 4} {
			t.Run(fmt.Sprintf("%s, %d queues", way.name, n), func(t *testing.T) {
				r := newRig(t, queued(n, way.c))
				var list []tagging
				for _, vid := range []uint16{1, 0x123, 4094} {
					for pcp := range uint16(8) {
						g := tagging{there: true, outer: pcp<<13 | (pcp&1)<<12 | vid}
						h := tagging{there: true, outer: g.outer ^ 1<<12, double: true, inner: ^g.outer}
						s := tagging{there: true, outer: g.outer, service: true}
						hs := h
						hs.service = true
						list = append(list, g, tagging{}, h, h, g, g, s, tagging{}, tagging{}, g, hs, h, s)
					}
				}
				var want [4][][]byte
				byDriver := uint64(0)
				for i, g := range list {
					f := frame(60+i%7, uint64(i))
					r.put(i%n, g.beside(r.buf(f, 1<<12)))
					want[i%n] = append(want[i%n], g.among(f))
					if g.there && (!way.single || g.service || g.double && !way.double) {
						byDriver++
					}
					if i%5 == 4 || n > 1 {
						r.step()
						got := r.wire.take()
						var now [][]byte
						for q := range n {
							now, want[q] = append(now, want[q]...), nil
						}
						r.same(got, now)
					}
				}
				r.step()
				r.same(r.wire.take(), want[0])
				r.settled()
				if s := r.txStats(); s["tag_driver"] != byDriver || s["done"] != uint64(len(list)) {
					t.Errorf("%d tags were put in by the driver, want %d; %d frames done", s["tag_driver"], byDriver, s["done"])
				}
			})
		}
	}
}

// anyTags are one tag, one S-VLAN tag, two tags or none.
func anyTags(rng *rand.Rand) tagging {
	g := tagging{there: rng.IntN(3) > 0, outer: uint16(rng.Uint32())}
	if g.there && rng.IntN(3) == 0 {
		g.double, g.inner = true, uint16(rng.Uint32())
	}
	g.service = g.there && rng.IntN(4) == 0
	return g
}

// TestD44 mixes frames with and without a context descriptor, of one to four
// buffers, over small rings, and takes what is finished in pieces of any size.
// A context descriptor has no buffer and ends no frame.
func TestD44(t *testing.T) {
	for _, keep := range []bool{false, true} {
		for ring := 7; ring <= 9; ring++ {
			for start := range ring {
				t.Run(fmt.Sprintf("keep %v, ring %d, from %d", keep, ring, start), func(t *testing.T) {
					opts := []stmmac.Option{stmmac.WithRings(8, ring), with(doubleTags)}
					if keep {
						opts = append(opts, stmmac.WithTxCompletions())
					}
					r := newRig(t, rigConfig{opts: opts, bufs: 128})
					tx := r.mac.Tx(0)
					rng := rand.New(rand.NewPCG(44, uint64(ring*100+start)))
					out := make([]*pagepool.Buf, ring)
					for range start {
						r.put(0, r.buf(frame(60, 0), 60))
						r.step()
						r.pool.FreeBatch(out[:tx.Reap(out)])
					}
					r.wire.take()

					// what the ring holds, oldest first
					type held struct {
						first *pagepool.Buf
						bufs  int
						slots int
					}
					var ledger []held
					var want [][]byte
					used := func() (n int) {
						for _, h := range ledger {
							n += h.slots
						}
						return n
					}
					reap := func(most int) {
						if !keep {
							n := tx.Reap(nil)
							ledger = ledger[n:]
							return
						}
						for _, b := range out[:tx.Reap(out[:most])] {
							h := ledger[0]
							ledger = ledger[1:]
							k := 0
							for p := b; p != nil; p = p.Next() {
								k++
							}
							if b != h.first || k != h.bufs {
								t.Fatalf("a frame of %d buffers came back, want one of %d; the first is the right one: %v", k, h.bufs, b == h.first)
							}
							r.pool.Free(b)
						}
					}
					for seq := range 120 {
						g, bufs := anyTags(rng), 1+rng.IntN(4)
						f := frame(80, uint64(seq))
						b := g.beside(r.buf(f, (80+bufs-1)/bufs))
						h := held{first: b, bufs: bufs, slots: bufs}
						if g.there && !g.service {
							h.slots++
						}
						if room := ring - 1 - used(); h.slots > room {
							r.wire.block(false)
							r.step()
							reap(1 + rng.IntN(3))
							for ring-1-used() < h.slots {
								reap(1 + rng.IntN(3))
							}
						}
						r.put(0, b)
						ledger = append(ledger, h)
						want = append(want, g.among(f))
						if keep {
							// otherwise Send may have taken something off by itself
							if n, m := tx.Inflight(), tx.Space(); n != used() || m != ring-1-n {
								t.Fatalf("frame %d: %d slots in flight and %d free, want %d of %d", seq, n, m, used(), ring-1)
							}
						}
						if !keep {
							reap(0)
							for used() > tx.Inflight() {
								ledger = ledger[1:]
							}
							if used() != tx.Inflight() {
								t.Fatalf("frame %d: %d slots in flight, want %d", seq, tx.Inflight(), used())
							}
						}
						if rng.IntN(3) == 0 {
							r.wire.block(rng.IntN(2) == 0)
							r.step()
						}
					}
					r.wire.block(false)
					r.step()
					for keep && len(ledger) > 0 {
						reap(1 + rng.IntN(3))
					}
					r.same(r.wire.take(), want)
					r.settled()
					if n := tx.Space(); n != ring-1 {
						t.Errorf("%d slots are free, want %d", n, ring-1)
					}
				})
			}
		}
	}
}

// block says whether the wire takes frames.
func (w *testWire) block(on bool) {
	w.mu.Lock()
	w.blocked = on
	w.mu.Unlock()
	if w.notify != nil {
		w.notify()
	}
}

// TestContextEndsNoFrame plays a device that marks context descriptors as the
// last of a frame: they have no buffer, and nothing is given back for them.
func TestContextEndsNoFrame(t *testing.T) {
	for _, keep := range []bool{false, true} {
		t.Run(fmt.Sprintf("keep %v", keep), func(t *testing.T) {
			regs := fakeGMAC4()
			regs.Set(0x011c, regs.Peek(0x011c)|uint32(r4.SAVLANINS))
			d := newFakeDevice(regs)
			pool, err := pagepool.New(d, 64)
			if err != nil {
				t.Fatal(err)
			}
			opts := []stmmac.Option{stmmac.WithGeneration(stmmac.GMAC4), stmmac.WithLink(gigabit), stmmac.WithClock(&stepClock{}), stmmac.WithRings(8, 8), stmmac.WithPool(pool)}
			if keep {
				opts = append(opts, stmmac.WithTxCompletions())
			}
			m, err := stmmac.Open(t.Context(), d, opts...)
			if err != nil {
				t.Fatal(err)
			}
			ring := d.memory[uint64(regs.Peek(0x1114))]
			base := pool.InUse()
			g := tagging{there: true, outer: 5}
			finish := func(slot int, last r4.TDES3) { // write back
				at := ring[16*(slot%8)+12:]
				d3 := binary.LittleEndian.Uint32(at)
				binary.LittleEndian.PutUint32(at, d3&uint32(r4.TxCTXT|r4.TxFD)|uint32(last))
			}
			for i := range 12 { // the ring wraps
				b := g.beside(chain(t, pool, frame(60, 1), 60))
				if n, err := m.Tx(0).Send([]*pagepool.Buf{b}); n != 1 || err != nil {
					t.Fatal(n, err)
				}
				finish(2*i, r4.TxLD)
				out := make([]*pagepool.Buf, 4)
				if n := m.Tx(0).Reap(out); n != 0 {
					t.Fatalf("%d frames are done and none was sent: %v", n, out[:n])
				}
				ready, cancel := context.WithTimeout(t.Context(), time.Millisecond)
				if err := m.Tx(0).Wait(ready); err == nil {
					t.Fatal("a context descriptor is something to reap")
				}
				cancel()
				if n := m.Tx(0).Inflight(); n != 2 {
					t.Fatalf("%d slots in flight", n)
				}
				finish(2*i+1, r4.TxLD)
				n := 0
				if i%2 == 0 || keep {
					n = m.Tx(0).Reap(out)
					pool.FreeBatch(out[:n])
				} else {
					n = m.Tx(0).Reap(nil)
				}
				if n != 1 {
					t.Fatalf("%d frames are done", n)
				}
			}
			if n := pool.InUse(); n != base {
				t.Errorf("%d buffers in use, %d before", n, base)
			}
			if err := errors.Join(m.Close(), pool.Close()); err != nil || pool.Misfreed() != 0 {
				t.Error(err, pool.Misfreed())
			}
			d.mustUnmap(t)
		})
	}
}

// TestTaggedRebuild takes a ring with context descriptors down while its frames
// are under way: each is flushed and handed back once.
func TestTaggedRebuild(t *testing.T) {
	for _, keep := range []bool{false, true} {
		for name, rebuild := range map[string]func(r *rig){
			"MTU": func(r *rig) { r.must(r.mac.SetMTU(t.Context(), 1400)) },
			"stall": func(r *rig) {
				r.dev.SetFaults(func(f *sim.Faults) { f.TxNeverCompletes = true })
				r.pass(time.Second)
				r.dev.SetFaults(func(f *sim.Faults) { f.TxNeverCompletes = false })
				if n := recoveries(r.mac); n != 1 {
					t.Errorf("%d recoveries", n)
				}
			},
		} {
			t.Run(fmt.Sprintf("%s, keep %v", name, keep), func(t *testing.T) {
				opts := []stmmac.Option{stmmac.WithRings(16, 16), with(doubleTags)}
				if keep {
					opts = append(opts, stmmac.WithTxCompletions())
				}
				r := newRig(t, rigConfig{opts: opts})
				r.wire.block(true)
				rng := rand.New(rand.NewPCG(1, 2))
				var heads []*pagepool.Buf
				var bufs []int
				for seq := range 4 {
					g := tagging{there: true, outer: uint16(seq), double: seq%2 == 0, inner: 9}
					n := 1 + rng.IntN(2)
					heads = append(heads, g.beside(r.buf(frame(80, uint64(seq)), 80/n)))
					bufs = append(bufs, n)
					r.put(0, heads[seq])
					r.step()
				}
				rebuild(r)
				r.wire.block(false)
				r.step()
				s := r.mac.Tx(0).Stats()
				if sent := uint64(len(r.wire.take())); s.Packets != 4 || s.Done != 4 || s.Flushed+sent != 4 {
					t.Errorf("%d frames left, and %+v", sent, s)
				}
				if keep {
					out := make([]*pagepool.Buf, 8)
					n := r.mac.Tx(0).Reap(out)
					if !slices.Equal(out[:n], heads) {
						t.Errorf("%d frames came back, or others", n)
					}
					for i, b := range out[:n] {
						if l := b.FrameLen(); l != 80 {
							t.Errorf("frame %d of %d buffers came back with %d bytes", i, bufs[i], l)
						}
					}
					r.pool.FreeBatch(out[:n])
				}
				if n := r.mac.Tx(0).Space(); n != 15 {
					t.Errorf("%d slots are free", n)
				}
				g := tagging{there: true, outer: 0x777, double: true, inner: 0x888}
				f := frame(90, 9)
				r.leaves(0, g.beside(r.buf(f, 90)), g.among(f), "after it")
				if keep {
					var one [1]*pagepool.Buf
					r.pool.FreeBatch(one[:r.mac.Tx(0).Reap(one[:])])
				}
				r.onlyRx()
			})
		}
	}
}

// TestStripAndForward receives frames with tags of all kinds, taken off or not,
// and sends them on another MAC: they leave as they came.
func TestStripAndForward(t *testing.T) {
	ways := map[string]func(*stmmac.Config){
		"no strip": func(*stmmac.Config) {},
		"single":   func(c *stmmac.Config) { c.VLANStrip = true },
		"double":   doubleTags,
	}
	kinds := []struct {
		g              tagging
		more           []byte // behind the tags
		single, double int    // tags beside the frame then
	}{
		{tagging{}, nil, 0, 0},
		{tagging{there: true, outer: 0xa123}, nil, 1, 1},
		{tagging{there: true, outer: 0}, nil, 1, 1},
		{tagging{there: true, outer: 0xffff}, nil, 1, 1},
		{tagging{there: true, outer: 0xa123, double: true, inner: 0x7fff}, nil, 1, 2},
		{tagging{there: true, outer: 0xa123, double: true}, nil, 1, 2},
		{tagging{there: true, outer: 7, service: true}, nil, 0, 0},
		{tagging{there: true, outer: 7, service: true, double: true, inner: 8}, nil, 0, 0},
		{tagging{there: true, outer: 7, double: true, inner: 8}, []byte{0x81, 0, 0, 9}, 1, 2},
		{tagging{there: true, outer: 7}, []byte{0x88, 0xa8, 0, 9}, 1, 1},
	}
	for name, strip := range ways {
		for _, out := range tagWays {
			t.Run(name+" to "+out.name, func(t *testing.T) {
				r := newRig(t, rigConfig{opts: []stmmac.Option{with(strip)}})
				far := second(r, out.c)
				for i, k := range kinds {
					for _, n := range []int{60, 61, 64, 300, 1514} {
						f := frame(n, uint64(i))
						f = k.g.among(slices.Concat(f[:12], k.more, f[12:n-len(k.more)]))
						r.wire.deliver(f)
						b := r.takeOne(0)
						got, want := tagsBeside(b), 0
						switch name {
						case "single":
							want = k.single
						case "double":
							want = k.double
						}
						has := 0
						if got.there {
							has++
						}
						if got.double {
							has++
						}
						if has != want || b.FrameLen() != len(f)-4*want {
							t.Errorf("%v: %d tags beside %d bytes, want %d beside %d", k.g, has, b.FrameLen(), want, len(f)-4*want)
						}
						far.leaves(0, b, f, "%v and % x, %d bytes", k.g, k.more, n)
					}
				}
				far.mac.Tx(0).Reap(nil)
				r.onlyRx()
			})
		}
	}
}

// second is another MAC on the pool of a rig.
func second(r *rig, c rigConfig) *rig {
	r.Helper()
	s := &rig{T: r.T, wire: &testWire{}, clock: r.clock, pool: r.pool}
	c.sim.Inline, c.sim.Clock = true, r.clock
	var err error
	s.dev, err = sim.New(c.sim, s.wire)
	r.must(err)
	s.via = s.dev
	s.opts = append([]stmmac.Option{
		stmmac.WithGeneration(stmmac.GMAC4), stmmac.WithName("far"), stmmac.WithPool(r.pool), stmmac.WithRings(64, 64),
		stmmac.WithClock(rigClock{r.clock, s.dev}), stmmac.WithPromiscuous(),
		stmmac.WithHardwareAddr(otherMAC), stmmac.WithLink(gigabit), noSelfTest,
	}, c.opts...)
	s.open()
	r.base = r.pool.InUse()
	r.Cleanup(func() {
		if err := s.mac.Close(); err != nil {
			r.Error(err)
		}
		s.checkAudit()
		if err := s.dev.Close(); err != nil {
			r.Error(err)
		}
	})
	return s
}

// TestStripLong receives tagged frames of several buffers, and of all lengths up
// to the longest.
func TestStripLong(t *testing.T) {
	for _, n := range []int{1, 2, 4} {
		r := newRig(t, queued(n, rigConfig{sim: sim.Config{RxFIFO: 1 << 16, TxFIFO: 1 << 16}, opts: []stmmac.Option{stmmac.WithMTU(9000), with(doubleTags)}}))
		for _, l := range []int{60, 1919, 1920, 1921, 1984, 1985, 1986, 1987, 1988, 1989, 1990, 2000, 3968, 3969, 3970, 9004, 9010} {
			g := tagging{there: true, outer: uint16(l), double: true, inner: uint16(2 * l)}
			if l > 9006 { // a giant with two tags
				g.double, g.inner = false, 0
			}
			f := frame(l, uint64(l))
			r.wire.deliver(g.among(f))
			b := r.takeOne(0)
			got := make([]byte, b.FrameLen())
			b.CopyTo(got)
			if tagsBeside(b) != g || !bytes.Equal(got, f) {
				t.Errorf("%d bytes: %v beside %d bytes, want %v", l, tagsBeside(b), len(got), g)
			}
			for p := b.Next(); p != nil; p = p.Next() {
				if p.Flags != 0 {
					t.Errorf("%d bytes: a later buffer has flags %#x", l, p.Flags)
				}
			}
			r.leaves(n-1, b, g.among(f), "%d bytes", l)
		}
		r.onlyRx()
	}
}

// TestTagsNotStripped: a device that says that it reports tags when nobody asked
// it to take them off has taken none off.
func TestTagsNotStripped(t *testing.T) {
	r := newRig(t, rigConfig{sim: sim.Config{Faults: sim.Faults{RxLengthFlags: r4.RxRS0V}}})
	for i, g := range []tagging{{}, {there: true, outer: 5}} {
		f := g.among(frame(70, uint64(i)))
		r.wire.deliver(f)
		b := r.takeOne(0)
		if got := tagsBeside(b); got.there || b.FrameLen() != len(f) {
			t.Errorf("%v: %v beside %d bytes", g, got, b.FrameLen())
		}
		r.leaves(0, b, f, "sent on")
	}
	r.onlyRx()
}

// TestNoHeadroom: tags that the driver has to put in need room in front of the
// frame; without it nothing of the frame is taken, and those before it are.
func TestNoHeadroom(t *testing.T) {
	for _, way := range tagWays {
		t.Run(way.name, func(t *testing.T) {
			r := newRig(t, way.c)
			one := tagging{there: true, outer: 5}
			two := tagging{there: true, outer: 6, double: true, inner: 7}
			for _, c := range []struct {
				g      tagging
				room   int
				device bool
			}{
				{one, 0, way.single}, {one, 3, way.single}, {one, 4, way.single},
				{two, 4, way.double}, {two, 7, way.double}, {two, 8, way.double},
				{tagging{there: true, outer: 8, service: true}, 3, false},
			} {
				need := 4
				if c.g.double {
					need = 8
				}
				f := frame(80, 1)
				list := []*pagepool.Buf{r.buf(frame(60, 0), 60), r.buf(f, 80), r.buf(frame(61, 2), 61)}
				list[1].Reset(c.room)
				list[1].SetData(f)
				c.g.beside(list[1])
				n, err := r.mac.Tx(0).Send(list)
				r.step()
				if c.device || c.room >= need {
					if n != 3 || err != nil {
						t.Fatalf("%v with %d bytes: %d, %v", c.g, c.room, n, err)
					}
					r.onWire([][]byte{frame(60, 0), c.g.among(f), frame(61, 2)}, "%v with %d bytes", c.g, c.room)
					continue
				}
				mustFail(t, err, stmmac.ErrNoHeadroom, "send")
				if n != 1 || list[1].Headroom() != c.room || tagsBeside(list[1]) != c.g || !bytes.Equal(list[1].Bytes(), f) {
					t.Errorf("%v with %d bytes: %d taken, or the frame was changed", c.g, c.room, n)
				}
				r.onWire([][]byte{frame(60, 0)}, "before it")
				r.pool.FreeBatch(list[1:])
			}
			r.settled()
		})
	}
}

// TestTagsOverBuffers tags frames whose addresses lie in several buffers.
func TestTagsOverBuffers(t *testing.T) {
	for _, way := range tagWays {
		r := newRig(t, way.c)
		for each := 1; each < 20; each++ {
			for _, g := range []tagging{{there: true, outer: 0xe005}, {there: true, outer: 6, double: true, inner: 7}} {
				f := frame(80, uint64(each))
				b := g.beside(r.buf(f, each))
				r.leaves(0, b, g.among(f), "%s: %v in pieces of %d", way.name, g, each)
			}
		}
		r.settled()
	}
}

// TestTagsAmongAndBeside: what is beside a frame goes in front of what is among
// its bytes.
func TestTagsAmongAndBeside(t *testing.T) {
	for _, way := range tagWays {
		r := newRig(t, way.c)
		for _, in := range []tagging{{there: true, outer: 1}, {there: true, outer: 1, service: true}, {there: true, outer: 1, double: true, inner: 2}} {
			for _, g := range []tagging{{there: true, outer: 5}, {there: true, outer: 6, double: true, inner: 7}, {there: true, outer: 8, service: true}} {
				f := in.among(frame(80, 3))
				r.leaves(0, g.beside(r.buf(f, 80)), g.among(f), "%s: %v before %v", way.name, g, in)
			}
		}
		r.settled()
	}
}

// TestTaggedLength: two tags are what a frame may have beside its MTU, wherever
// they are.
func TestTaggedLength(t *testing.T) {
	for _, way := range tagWays {
		r := newRig(t, way.c)
		one, two := tagging{there: true, outer: 5}, tagging{there: true, outer: 6, double: true, inner: 7}
		const most = 1500 + 14 + 8
		for _, c := range []struct {
			g      tagging
			in     int
			length int
			ok     bool
		}{
			{two, 0, most - 8, true}, {two, 0, most - 7, false},
			{one, 0, most - 4, true}, {one, 0, most - 3, false},
			{one, 1, most - 8, true}, {one, 1, most - 7, false},
			{tagging{}, 0, most, true}, {tagging{}, 0, most + 1, false},
		} {
			f := frame(c.length, 1)
			if c.in == 1 {
				f = one.among(f)
			}
			b := c.g.beside(r.buf(f, 1000))
			if c.ok {
				r.leaves(0, b, c.g.among(f), "%s: %v, %d bytes", way.name, c.g, len(f))
				continue
			}
			n, err := r.mac.Tx(0).Send([]*pagepool.Buf{b})
			mustFail(t, err, stmmac.ErrFrameTooLong)
			if n != 0 || b.FrameLen() != len(f) || tagsBeside(b) != c.g {
				t.Errorf("%s: %v, %d bytes: %d taken, or changed", way.name, c.g, len(f), n)
			}
			r.pool.Free(b)
		}
		r.settled()
	}
}

// TestTagsInShortRings: a frame that fills the ring without a context descriptor
// can have tags all the same.
func TestTagsInShortRings(t *testing.T) {
	for ring := 2; ring < 6; ring++ {
		r := newRig(t, rigConfig{opts: []stmmac.Option{stmmac.WithRings(8, ring), with(doubleTags)}})
		for bufs := 1; bufs < ring; bufs++ {
			for _, g := range []tagging{{there: true, outer: 5}, {there: true, outer: 6, double: true, inner: 7}} {
				f := frame(60*bufs, uint64(bufs))
				r.leaves(0, g.beside(r.asked(f, 60)), g.among(f), "ring of %d: %d buffers, %v", ring, bufs, g)
			}
		}
		b := tagging{there: true, outer: 5}.beside(r.buf(frame(60*ring, 1), 60))
		_, err := r.mac.Tx(0).Send([]*pagepool.Buf{b})
		mustFail(t, err, stmmac.ErrFrameTooLong)
		r.pool.Free(b)
		r.settled()
	}
}

// TestStripAndFilter: the VLAN filter looks at tags that are taken off, in
// devices with one filter, with several and with a hash table alone.
func TestStripAndFilter(t *testing.T) {
	for _, filters := range []int{1, 4} {
		for name, strip := range map[string]func(*stmmac.Config){"single": func(c *stmmac.Config) { c.VLANStrip = true }, "double": doubleTags} {
			for _, n := range []int{1, 4} {
				t.Run(fmt.Sprintf("%d filters, %s, %d queues", filters, name, n), func(t *testing.T) {
					r := newRig(t, queued(n, rigConfig{sim: sim.Config{VLANFilters: filters}, opts: []stmmac.Option{with(choosy), with(strip)}}))
					hears := func(want ...uint16) {
						t.Helper()
						for _, g := range []tagging{{}, {there: true, outer: 0xa001}, {there: true, outer: 5}, {there: true, outer: 0x5005, double: true, inner: 1}, {there: true, outer: 1, double: true, inner: 5}} {
							f := to(ownMAC, 1)
							r.wire.deliver(g.among(f))
							r.step()
							var one [1]*pagepool.Buf
							in := false
							for q := range n {
								if r.mac.Rx(q).Recv(one[:]) == 0 {
									continue
								}
								in = true
								got := tagsBeside(one[0])
								if bytes := one[0].Bytes(); got.outer != g.outer || got.double != (g.double && name == "double") || string(bytes[len(bytes)-46:]) != string(f[14:]) {
									t.Errorf("%v came as %v", g, got)
								}
								r.pool.Free(one[0])
							}
							if ok := !g.there || slices.Contains(want, g.outer&0xfff); in != ok {
								t.Errorf("%v came in %v, want those of %v", g, in, want)
							}
						}
					}
					hears(1, 5)
					r.must(r.mac.AddVLAN(5))
					hears(5)
					r.must(r.mac.AddVLAN(1))
					hears(1, 5)
					r.must(r.mac.RemoveVLAN(5))
					hears(1)
					r.must(r.mac.SetMTU(t.Context(), 1400))
					hears(1)
					r.must(r.mac.RemoveVLAN(1))
					hears(1, 5)
					r.onlyRx()
				})
			}
		}
	}
}

// TestTaggedChecksums: tags and checksums, each by the device and by the driver.
func TestTaggedChecksums(t *testing.T) {
	for _, way := range tagWays {
		for _, engine := range []bool{true, false} {
			for _, n := range []int{1, 2, 4} {
				t.Run(fmt.Sprintf("%s, engine %v, %d queues", way.name, engine, n), func(t *testing.T) {
					c := queued(n, way.c)
					c.opts = append(c.opts, stmmac.WithChecksums(true, engine))
					r := newRig(t, c)
					none, one, two := tagging{}, tagging{there: true, outer: 0xf005}, tagging{there: true, outer: 6, double: true, inner: 7}
					device := uint64(0)
					seq := 0
					for i := range plainKinds {
						for _, in := range []tagging{none, one, two, {there: true, outer: 9, service: true}} {
							for _, g := range []tagging{none, one, two, {there: true, outer: 8, service: true}} {
								if len(in.among(g.among(make([]byte, 80)))) > 88 {
									continue // more than two
								}
								f := in.among(ofLen(i, 100+i, uint64(seq)))
								r.leaves(seq%n, g.beside(r.asked(f, 1+seq%50)), g.among(fixed(f)), "%s, %v before %v", plainKinds[i].name, g, in)
								seq++
								if engine && !in.service && !(g.service) {
									device++
								}
							}
						}
					}
					s := r.txStats()
					if got := s["csum_device"]; got+s["csum_driver"] != uint64(seq) || got > device || engine && got == 0 || way.double && got != device {
						t.Errorf("of %d frames the device did %d and the driver %d; %d could be the device's", seq, got, s["csum_driver"], device)
					}
					r.settled()
				})
			}
		}
	}
}
