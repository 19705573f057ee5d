package stmmac_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
	"unsafe"

	"github.com/gostmmac/gostmmac/barrier"
	"github.com/gostmmac/gostmmac/mmio"
	"github.com/gostmmac/gostmmac/pagepool"
	"github.com/gostmmac/gostmmac/stmmac"
	"github.com/gostmmac/gostmmac/stmmac/internal/core"
	r4 "github.com/gostmmac/gostmmac/stmmac/internal/regs/gmac4reg"
	"github.com/gostmmac/gostmmac/stmmac/sim"
)

// bare is a driver at the level of registers that does what a test tells it,
// right or wrong. Frames of up to 124 bytes, one descriptor each.
type bare struct {
	*testing.T
	dev    *sim.Device
	gen    generation
	wire   *testWire
	clock  *sim.ManualClock
	csr    mmio.Region
	ch     mmio.Region // channel 0 of a GMAC4
	n      int
	stride int // bytes between descriptors, as this driver believes

	rxList, txList *pagepool.Memory
	bufs           *pagepool.Memory
	rxHead, rxTail int // next to look at, next to hand over; they grow for ever
	txHead, txTail int
}

const bareBuf = 128

type bareConfig struct {
	sim    sim.Config
	n      int
	dsl    int
	stride int    // 0: what dsl means
	base   uint64 // bytes from an aligned address to the lists
}

func newBare(t *testing.T, c bareConfig) *bare {
	t.Helper()
	b := &bare{T: t, gen: on(t), wire: &testWire{elastic: true}, clock: sim.NewManualClock(), n: c.n, stride: c.stride}
	if c.sim.BusBytes == 0 {
		c.sim.BusBytes = 8
	}
	if b.stride == 0 {
		b.stride = r4.DescSize + c.dsl*c.sim.BusBytes
	}
	c.sim.Inline, c.sim.Clock, c.sim.Generation = true, b.clock, b.gen.model()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	var err error
	b.dev, err = sim.New(c.sim, b.wire)
	must(err)
	t.Cleanup(func() { b.dev.Close() })
	alloc := func(n int) *pagepool.Memory {
		m, err := pagepool.NewMemory(b.dev, n, 64)
		must(err)
		t.Cleanup(func() { must(m.Close()) })
		return m
	}
	b.rxList, b.txList = alloc(c.n*b.stride+64), alloc(c.n*b.stride+64)
	b.bufs = alloc((2*c.n + 1) * bareBuf)
	b.csr, err = b.dev.Region(0)
	must(err)
	b.ch = chan0(t, b.dev)
	b.gen.reset(b.csr)
	b.clock.Advance(time.Millisecond)
	if b.gen.resetting(b.csr) {
		t.Fatal("the reset does not end")
	}
	b.gen.setup(b, c.dsl)
	b.lists(c.base)
	return b
}

// lists programs the addresses of both lists, off bytes behind where they are.
func (b *bare) lists(off uint64) {
	b.gen.lists(b, b.rxList.Addr()+off, b.txList.Addr()+off)
}

func (b *bare) start() { b.gen.run(b, true) }

func (b *bare) step() {
	for b.dev.Step(1<<20) > 0 {
	}
}

func (b *bare) desc(m *pagepool.Memory, i int) *[4]uint32 {
	return (*[4]uint32)(unsafe.Pointer(&m.Bytes()[i%b.n*b.stride]))
}

// put writes a descriptor of a GMAC4.
func (b *bare) put(m *pagepool.Memory, i int, addr uint64, d2, d3 uint32) {
	b.write(m, i, [4]uint32{uint32(addr), uint32(addr >> 32), d2, d3})
}

// write writes a descriptor, OWN last.
func (b *bare) write(m *pagepool.Memory, i int, w [4]uint32) {
	d, own := b.desc(m, i), b.gen.own()
	for k := range w {
		if k != own {
			d[k] = w[k]
		}
	}
	barrier.DMAWrite()
	barrier.StoreOwn(&d[own], w[own])
}

func (b *bare) buf(i int) []byte     { return b.bufs.Bytes()[i*bareBuf:][:bareBuf] }
func (b *bare) bufAddr(i int) uint64 { return b.bufs.Addr() + uint64(i*bareBuf) }

// arm writes receive descriptor i and tells nobody.
func (b *bare) arm(i int) { b.write(b.rxList, i, b.gen.rxWords(b, i, b.bufAddr(i%b.n))) }

// post hands k more receive descriptors over.
func (b *bare) post(k int) {
	for range k {
		b.arm(b.rxTail)
		b.rxTail++
	}
	b.gen.ring(b, receiving, b.rxList.Addr()+uint64(b.rxTail%b.n*b.stride))
}

// recv returns the next received frame, or nil.
func (b *bare) recv() []byte {
	d := b.desc(b.rxList, b.rxHead)
	if b.rxHead == b.rxTail || b.gen.owned(d) {
		return nil
	}
	barrier.DMARead()
	n, last := b.gen.received(d)
	n -= core.FCSLen
	if !last || n < 0 || n > bareBuf {
		return nil
	}
	f := bytes.Clone(b.buf(b.rxHead % b.n)[:n])
	b.rxHead++
	return f
}

// send puts a frame into the next transmit descriptor; ring tells the device.
func (b *bare) send(f []byte, ring bool) {
	i := b.n + b.txTail%b.n
	copy(b.buf(i), f)
	b.write(b.txList, b.txTail, b.gen.txWords(b, b.txTail, b.bufAddr(i), len(f)))
	b.txTail++
	if ring {
		b.gen.ring(b, sending, b.txList.Addr()+uint64(b.txTail%b.n*b.stride))
	}
}

// kinds are the kinds of violations so far, each once.
func kinds(d *sim.Device) (ks []sim.ViolationKind) {
	for _, v := range d.Audit() {
		if !slices.Contains(ks, v.Kind) {
			ks = append(ks, v.Kind)
		}
	}
	return ks
}

// TestD18: a frame of which a part has arrived is left alone until it is whole.
func TestD18(t *testing.T) {
	for _, n := range []int{4, 5, 8} {
		for stop := 1; stop <= 2; stop++ {
			t.Run(fmt.Sprintf("ring=%d/stop=%d", n, stop), func(t *testing.T) {
				r := newRig(t, rigConfig{bufSize: 320, opts: []stmmac.Option{stmmac.WithRings(n, n)}})
				r.wire.elastic = true
				q := r.mac.Rx(0)
				for round := range uint64(3 * n) { // every slot is the first once
					f := frame(600, round)
					r.wire.deliver(f)
					if k := r.dev.Step(stop); k != stop {
						t.Fatalf("%d descriptors, want %d", k, stop)
					}
					// The addresses of the part that has arrived are gone from the
					// descriptors, but the buffers can be told by their bytes.
					for poll := range 5 {
						if k := q.Recv(make([]*pagepool.Buf, 8)); k != 0 {
							t.Fatalf("poll %d gives %d frames", poll, k)
						}
						for i := range n {
							d := r.desc(receiving, i)
							if d[3]&uint32(r4.RxOWN) == 0 {
								continue
							}
							mem := r.spy.at(uint64(d[1])<<32|uint64(d[0]), 256)
							if bytes.Equal(mem, f[:256]) || stop == 2 && bytes.Equal(mem, f[256:512]) {
								t.Fatalf("poll %d: a buffer of the frame is posted in slot %d", poll, i)
							}
							clear(mem) // what the device has is free to be overwritten
						}
					}
					r.same(r.recv(2), [][]byte{f})
				}
				r.settled()
				if st := q.Stats(); st.Packets != uint64(3*n) || st.Drops() != 0 {
					t.Errorf("%+v", st)
				}
			})
		}
	}
}

// TestD19: a buffer is posted again only when its consumer has freed it.
func TestD19(t *testing.T) {
	type heldFrame struct {
		b     *pagepool.Buf
		want  []byte
		until int
	}
	// run receives with every third frame held while 50 more arrive, and counts
	// the held frames that changed. Early is the control: the buffer goes back
	// at once.
	run := func(t *testing.T, early bool) (changed int) {
		r := newRig(t, rigConfig{bufs: 128, opts: []stmmac.Option{stmmac.WithRings(4, 4)}})
		r.wire.elastic = true
		count := scale(t, 100_000)
		var held []heldFrame
		bufs := make([]*pagepool.Buf, 4)
		sent, got := 0, 0
		for got < count {
			for ; sent < count && sent < got+5; sent++ {
				r.wire.deliver(frame(60+sent%1400, uint64(sent)))
			}
			r.step()
			k := r.mac.Rx(0).Recv(bufs)
			for _, b := range bufs[:k] {
				want := frame(60+got%1400, uint64(got))
				if !bytes.Equal(b.Bytes(), want) {
					t.Fatalf("frame %d differs", got)
				}
				switch {
				case got%3 != 0:
					r.pool.Free(b)
				case early:
					held = append(held, heldFrame{b, want, got + 50})
					r.pool.Free(b)
				default:
					held = append(held, heldFrame{b, want, got + 50})
				}
				got++
			}
			for len(held) > 0 && (held[0].until <= got || got == count) {
				h := held[0]
				held = held[1:]
				if !bytes.Equal(h.b.Bytes(), h.want) {
					changed++
				}
				if !early {
					r.pool.Free(h.b)
				}
			}
		}
		r.recv(1)
		r.settled()
		return changed
	}
	t.Run("held", func(t *testing.T) {
		if n := run(t, false); n != 0 {
			t.Errorf("%d held frames changed", n)
		}
	})
	t.Run("freed early", func(t *testing.T) {
		if n := run(t, true); n == 0 {
			t.Error("no frame of a freed buffer changed")
		}
	})
}

// TestD21: where the lists lie and how far apart descriptors are. The skip
// length counts bus words, and a chain needs none. Descriptors of 32 bytes with a
// timestamp (the extended ones of GMAC 3.x) do not exist in a GMAC4, and the driver
// does not have them yet.
func TestD21(t *testing.T) { onEach(t, testD21) }

func testD21(t *testing.T) {
	t.Run("driver refuses a misplaced list", func(t *testing.T) {
		for _, skew := range []uint64{4, 8, 12, 16, 32} {
			clock := sim.NewManualClock()
			sc := sim.Config{Inline: true, Clock: clock, Generation: on(t).model()}
			d, err := sim.New(sc, &testWire{})
			if err != nil {
				t.Fatal(err)
			}
			defer d.Close()
			s := newSpy(d)
			s.skew, s.ring = skew, func(n int) []byte {
				mem := make([]byte, n+128)
				return mem[-uintptr(unsafe.Pointer(&mem[0]))&63:][:n+int(skew)]
			}
			// With a pool of its own nothing but the lists is misplaced.
			pool, err := pagepool.New(d, 64)
			if err != nil {
				t.Fatal(err)
			}
			m, err := stmmac.Open(t.Context(), s, on(t).options(sc), stmmac.WithLink(gigabit), stmmac.WithClock(clock), stmmac.WithRings(8, 8), stmmac.WithPool(pool))
			if err == nil {
				m.Close()
				t.Fatalf("a list %d bytes beside an aligned address was taken", skew)
			}
			var e *stmmac.Error
			if !errors.As(err, &e) || !strings.Contains(err.Error(), "aligned") {
				t.Errorf("%v", err)
			}
			if n := s.mappings(); n != 0 {
				t.Errorf("%d mappings are left", n)
			}
			if err := pool.Close(); err != nil {
				t.Error(err)
			}
		}
	})
	for _, bus := range []int{4, 8, 16} {
		t.Run(fmt.Sprintf("bus=%d", bus), func(t *testing.T) {
			// The driver's own lists, on every bus: 16 bytes a descriptor, from an
			// address that all take.
			r := newRig(t, rigConfig{sim: sim.Config{BusBytes: bus}, opts: []stmmac.Option{stmmac.WithRings(5, 5)}})
			if v := r.gen.skip(r.csr()); v != 0 {
				t.Errorf("%d bus words are skipped", v)
			}
			if a, b := r.gen.list(r.csr(), 0, receiving), r.gen.list(r.csr(), 0, sending); a&63 != 0 || b&63 != 0 {
				t.Errorf("lists at %#x and %#x", a, b)
			}
			for i := range uint64(17) {
				f := frame(60+int(i), i)
				rx, tx := r.slot(0, receiving), r.slot(0, sending)
				r.wire.deliver(f)
				r.step()
				r.send(f)
				// The descriptor that the device is at is the one that was written.
				if d := r.desc(sending, tx); !r.gen.owned(d) || r.gen.queued(d).n != len(f) {
					t.Fatalf("transmit descriptor %d is %08x", tx, *d)
				}
				d := r.desc(receiving, rx)
				if n, last := r.gen.received(d); r.gen.owned(d) || n != len(f)+core.FCSLen || !last {
					t.Fatalf("receive descriptor %d is %08x", rx, *d)
				}
				r.step()
				r.same(r.recv(2), [][]byte{f})
				r.same(r.wire.take(), [][]byte{f})
			}
			r.settled()

			// Another driver, whose descriptors are 16, 32 or 64 bytes apart.
			for _, stride := range []int{16, 32, 64} {
				dsl, ok := on(t).skips(stride, bus)
				if !ok {
					continue // more than DSL can skip on a narrow bus
				}
				b := newBare(t, bareConfig{sim: sim.Config{BusBytes: bus}, n: 5, dsl: dsl, stride: stride})
				b.post(4)
				b.start()
				b.roundTrip(t, 17)
				for _, v := range b.dev.Audit() {
					t.Errorf("stride %d: %v", stride, v)
				}
				// The control: a driver that counts bytes where the device counts
				// bus words is found out.
				if dsl > 0 {
					w := newBare(t, bareConfig{sim: sim.Config{BusBytes: bus}, n: 5, dsl: 1, stride: 16})
					w.post(4)
					w.start()
					w.send(frame(60, 1), true)
					w.wire.deliver(frames(3, 60, 1)...)
					w.step()
					got := 0
					for w.recv() != nil {
						got++
					}
					if got == 3 && len(kinds(w.dev)) == 0 {
						t.Error("a wrong stride is not noticed")
					}
				}
			}
			// The lowest bits of the address of a list are not taken.
			for _, off := range []uint64{4, 8, 12} {
				b := newBare(t, bareConfig{sim: sim.Config{BusBytes: bus}, n: 5, base: off})
				want := uint32(b.rxList.Addr()) + uint32(off)&^uint32(bus-1)
				if v := uint32(b.gen.list(b.csr, 0, receiving)); v != want {
					t.Errorf("list at +%d: the register is %#x, want %#x", off, v, want)
				}
				if bad := slices.Contains(kinds(b.dev), sim.ConfigInvalid); bad != (off%uint64(bus) != 0) {
					t.Errorf("list at +%d: audit %v", off, b.dev.Audit())
				}
			}
		})
	}
}

// roundTrip receives and sends k frames one by one.
func (b *bare) roundTrip(t *testing.T, k int) {
	t.Helper()
	for i := range k {
		f := frame(60+i%60, uint64(i))
		b.wire.deliver(f)
		b.step()
		if got := b.recv(); !bytes.Equal(got, f) {
			t.Fatalf("ring of %d: frame %d arrived as % x", b.n, i, got)
		}
		b.post(1)
		b.send(f, true)
		b.step()
		if got := b.wire.take(); len(got) != 1 || !bytes.Equal(got[0], f) {
			t.Fatalf("ring of %d: frame %d left as % x", b.n, i, got)
		}
	}
}

// TestD23: rings whose length is no power of two.
func TestD23(t *testing.T) { onEach(t, testD23) }

func testD23(t *testing.T) {
	for _, n := range []int{3, 5, 7, 100, 1000, 1023} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			r := newRig(t, rigConfig{bufs: 4096, opts: []stmmac.Option{stmmac.WithRings(n, n)}})
			r.wire.elastic = true
			for i := range 3 * n {
				// The device steps through all slots in turn, so a frame that goes
				// through means that the driver was at the same one.
				if a, b := r.slot(0, receiving), r.slot(0, sending); a != i%n || b != i%n {
					t.Fatalf("frame %d: the device is at slots %d and %d", i, a, b)
				}
				f := frame(60+i%61, uint64(i))
				r.wire.deliver(f)
				r.same(r.recv(1), [][]byte{f})
				r.send(f)
				r.step()
				r.same(r.wire.take(), [][]byte{f})
			}
			// And in bursts of all that the rings hold.
			for burst := range uint64(3) {
				in := frames(n-1, 60, burst*2000)
				r.wire.deliver(in...)
				r.same(r.recv(n), in)
				r.send(in...)
				r.step()
				r.same(r.wire.take(), in)
				r.settled() // reaps
			}
			if s := r.dev.Stats(); s.RxFrames != uint64(6*n-3) || s.TxFrames != s.RxFrames {
				t.Errorf("%+v", s)
			}
		})
	}
}

// TestD24: a ring of one descriptor is refused, and one of two sends once.
func TestD24(t *testing.T) { onEach(t, testD24) }

func testD24(t *testing.T) {
	sc := sim.Config{Inline: true, Generation: on(t).model()}
	d, err := sim.New(sc, &testWire{})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	for _, n := range [][2]int{{512, 1}, {1, 512}, {1, 1}, {512, 0}, {0, 512}, {512, -1}, {1025, 512}, {512, 1025}} {
		_, err := stmmac.Open(t.Context(), d, on(t).options(sc), stmmac.WithLink(gigabit), stmmac.WithRings(n[0], n[1]), stmmac.WithClock(sim.NewManualClock()))
		mustFail(t, err, os.ErrInvalid, "ring")
	}
	r := newRig(t, rigConfig{sim: sim.Config{Faults: sim.Faults{SingleTxTwice: true}}, opts: []stmmac.Option{stmmac.WithRings(2, 2)}})
	for i := range uint64(20) {
		f := frame(60+int(i), i)
		r.send(f)
		r.wire.deliver(f)
		r.step()
		r.same(r.wire.take(), [][]byte{f})
		r.same(r.recv(2), [][]byte{f})
	}
	r.settled()
	// The control: a list of one descriptor, which ends where it begins, makes the
	// model send twice. An engine with a tail only runs with one that lies outside.
	b := newBare(t, bareConfig{sim: sim.Config{Faults: sim.Faults{SingleTxTwice: true}}, n: 1})
	b.start()
	f := frame(60, 1)
	b.send(f, false)
	b.gen.ring(b, sending, b.txList.Addr()+16)
	b.step()
	r.same(b.wire.take(), [][]byte{f, f})
	if ks := kinds(b.dev); slices.Contains(ks, sim.TailOutside) != b.gen.limits().tails {
		t.Errorf("audit: %v", ks)
	}
}

// TestD59: after going down and up again driver and device begin at the same
// slot.
func TestD59(t *testing.T) { onEach(t, testD59) }

func testD59(t *testing.T) {
	const n = 8
	for _, pending := range []bool{false, true} {
		for k := range n {
			t.Run(fmt.Sprintf("close/pending=%v/%d", pending, k), func(t *testing.T) {
				r := newRig(t, rigConfig{opts: []stmmac.Option{stmmac.WithRings(n, n)}})
				r.wire.elastic = true
				in := frames(k, 60, 0)
				r.wire.deliver(in...)
				r.send(in...)
				r.step()
				if !pending {
					r.same(r.recv(n), in)
					r.settled()
				}
				r.wire.take()
				if err := r.mac.Close(); err != nil {
					t.Fatal(err)
				}
				if got := r.pool.InUse(); got != 0 {
					t.Fatalf("%d buffers are in use: %v", got, r.pool.Holders())
				}
				r.open()
				if a, b := r.slot(0, receiving), r.slot(0, sending); a != 0 || b != 0 {
					t.Errorf("the engines are at slots %d and %d", a, b)
				}
				r.after(2 * n)
			})
			t.Run(fmt.Sprintf("link/pending=%v/%d", pending, k), func(t *testing.T) {
				r := newRig(t, rigConfig{opts: []stmmac.Option{stmmac.WithRings(n, n)}})
				r.wire.elastic = true
				in := frames(k, 60, 0)
				r.wire.deliver(in...)
				r.send(in...)
				r.step()
				if !pending {
					r.same(r.recv(n), in)
				}
				r.same(r.wire.take(), in)
				link := r.mac.Link()
				if err := r.mac.SetLink(stmmac.Link{}); err != nil {
					t.Fatal(err)
				}
				r.step()
				if err := r.mac.SetLink(link); err != nil {
					t.Fatal(err)
				}
				if pending { // nothing was reset: they are still there
					r.same(r.recv(n), in)
				}
				r.after(2 * n)
			})
		}
	}
	// The control: a driver that goes on at its old slot after it has programmed
	// the list anew loses everything, and one that starts at 0 does not.
	for _, rewind := range []bool{false, true} {
		b := newBare(t, bareConfig{n: n})
		b.post(n - 1)
		b.start()
		b.roundTrip(t, 3)
		b.gen.run(b, false)
		b.step()
		b.lists(0)
		for i := range n {
			*b.desc(b.rxList, i), *b.desc(b.txList, i) = [4]uint32{}, [4]uint32{}
		}
		b.rxHead, b.txHead = b.rxTail, b.txTail
		if rewind {
			b.rxHead, b.rxTail, b.txHead, b.txTail = 0, 0, 0, 0
		}
		b.start()
		b.post(n - 1)
		got := 0
		for i := range uint64(2 * n) {
			b.wire.deliver(frame(60, i))
			b.step()
			if f := b.recv(); bytes.Equal(f, frame(60, i)) {
				got++
				b.post(1)
			}
		}
		if want := map[bool]int{false: 0, true: 2 * n}[rewind]; got != want {
			t.Errorf("rewind %v: %d frames, want %d", rewind, got, want)
		}
		for _, v := range b.dev.Audit() {
			t.Errorf("rewind %v: %v", rewind, v)
		}
	}
}

// after receives and sends k frames in order.
func (r *rig) after(k int) {
	r.Helper()
	for i := range uint64(k) {
		f := frame(100, 1000+i)
		r.wire.deliver(f)
		r.same(r.recv(2), [][]byte{f})
		r.send(f)
		r.step()
		r.same(r.wire.take(), [][]byte{f})
	}
	r.settled()
}

// statusTrace watches the accesses to DMA_CH0_Status: a store may clear only
// what the load before it returned.
type statusTrace struct {
	last, wrong atomic.Uint32
	stores      atomic.Uint64
}

var statusOff = r4.DefaultLayout.DMABase + uint32(r4.DMACHStatus)

func (s *statusTrace) access(a mmio.Access) {
	if a.Off != statusOff {
		return
	}
	if !a.Store {
		s.last.Store(a.Val)
		return
	}
	s.stores.Add(1)
	if x := a.Val &^ s.last.Load(); x != 0 {
		s.wrong.Store(x)
	}
}

// clearsAll is a device on which every clear of the status is one of all bits.
type clearsAll struct{ *sim.Device }

func (d clearsAll) Region(i int) (mmio.Region, error) {
	r, err := d.Device.Region(i)
	return allOnesRegion{r}, err
}

type allOnesRegion struct{ mmio.Region }

func (r allOnesRegion) Store32(off, v uint32) {
	if off == statusOff {
		v = mmio.AllOnes
	}
	r.Region.Store32(off, v)
}

// TestD63: what happens between the driver's load of the status and its clear
// is not lost.
func TestD63(t *testing.T) {
	t.Run("clears what it read", func(t *testing.T) {
		trace := &statusTrace{}
		r := newRig(t, rigConfig{opts: []stmmac.Option{stmmac.WithRings(4, 4)}, wrap: func(d *sim.Device) stmmac.Device {
			s := newSpy(d)
			s.trace = trace.access
			return s
		}})
		rng := rand.New(rand.NewPCG(6, 3))
		raise := make(chan r4.CHStatus, 1)
		r.dev.SetFaults(func(f *sim.Faults) {
			f.OnStatusLoad = func(ch int) {
				select {
				case bits := <-raise:
					r.dev.RaiseStatus(ch, bits)
				default:
				}
			}
		})
		events := []r4.CHStatus{r4.TI, r4.TBU, r4.RI, r4.RBU, r4.ERI, r4.ETI, r4.RI | r4.TI, r4.RBU | r4.TI}
		ctx, c := patience(t), chan0(t, r.dev)
		for i := range scale(t, 100_000) {
			select {
			case raise <- events[rng.IntN(len(events))]:
			default:
			}
			f := frame(60, uint64(i))
			woke := make(chan error, 1)
			go func() { woke <- r.mac.Rx(0).Wait(ctx) }()
			for r4.DMACHInterruptEnable.Load(c)&r4.RIE == 0 {
				runtime.Gosched()
			}
			r.wire.deliver(f)
			r.step()
			if err := <-woke; err != nil {
				t.Fatal(err)
			}
			r.same(r.recv(1), [][]byte{f})
			r.send(f)
			r.step()
			if err := r.mac.Tx(0).Wait(ctx); err != nil {
				t.Fatal(err)
			}
			r.same(r.wire.take(), [][]byte{f})
		}
		if x := trace.wrong.Load(); x != 0 {
			t.Errorf("status bits %#x were cleared unread", x)
		}
		if trace.stores.Load() == 0 {
			t.Error("the status was never cleared")
		}
		r.settled()
	})
	for _, first := range []string{"receive", "send"} {
		t.Run(first+" first", func(t *testing.T) {
			r := newRig(t, rigConfig{opts: []stmmac.Option{stmmac.WithRings(4, 4)}})
			r.wire.elastic = true
			w := &between{rig: r, rxFirst: first == "receive"}
			w.arm()
			for i := range scale(t, 1_000_000) {
				if !w.round(i) {
					t.Fatalf("round %d: an event was lost, status %v", i, r4.DMACHStatus.Load(chan0(t, r.dev)))
				}
			}
			r.settled()
		})
	}
	// Two channels share the vector: the event of one comes while the
	// dispatcher, which has looked at it, serves the other.
	t.Run("two channels", func(t *testing.T) {
		r := newRig(t, rigConfig{sim: sim.Config{RxQueues: 2, TxQueues: 2}, opts: []stmmac.Option{stmmac.WithQueues(2, 2)}})
		c, d := chan0(t, r.dev), mmioChannel(t, r.dev, 1)
		var armed atomic.Bool
		var mu sync.Mutex // the wire and the steps of the model
		arrive := func(f []byte) {
			mu.Lock()
			defer mu.Unlock()
			r.wire.deliver(f)
			r.step()
		}
		var low []byte
		r.dev.SetFaults(func(f *sim.Faults) {
			f.OnStatusLoad = func(ch int) {
				if ch == 1 && armed.CompareAndSwap(true, false) {
					arrive(low)
				}
			}
		})
		ctx := patience(t)
		for i := range scale(t, 100_000) {
			high := frame(64, uint64(i))
			copy(high[12:], []byte{0x81, 0, 0xe0, 1}) // priority 7: queue 1
			low = frame(60, uint64(i))
			woke := make(chan error, 2)
			for q := range 2 {
				go func() { woke <- r.mac.Rx(q).Wait(ctx) }()
			}
			for r4.DMACHInterruptEnable.Load(c)&r4.RIE == 0 || r4.DMACHInterruptEnable.Load(d)&r4.RIE == 0 {
				runtime.Gosched()
			}
			armed.Store(true)
			arrive(high)
			for range 2 {
				if err := <-woke; err != nil {
					t.Fatalf("round %d: an event was lost: %v", i, err)
				}
			}
			mu.Lock()
			r.same(r.recvQ(0, 1), [][]byte{low})
			r.same(r.recvQ(1, 1), [][]byte{high})
			mu.Unlock()
		}
	})
	// The control: with a clear of all bits the second event is gone.
	t.Run("clears all", func(t *testing.T) {
		r := newRig(t, rigConfig{opts: []stmmac.Option{stmmac.WithRings(4, 4)},
			wrap: func(d *sim.Device) stmmac.Device { return clearsAll{d} }})
		r.wire.elastic = true
		w := &between{rig: r, rxFirst: true}
		w.arm()
		lost := false
		w.after = func(cancel func()) {
			// TI is enabled and not pending, and the frame is gone.
			c := chan0(t, r.dev)
			lost = r4.DMACHInterruptEnable.Load(c)&r4.TIE != 0 && r4.CHStatus(r.dev.Load(statusOff))&r4.TI == 0
			cancel()
		}
		if w.round(0) || !lost {
			t.Error("nothing was lost")
		}
		r.settled()
	})
}

func mmioChannel(t *testing.T, d stmmac.Device, ch int) mmio.Region {
	t.Helper()
	r, err := d.Region(0)
	if err != nil {
		t.Fatal(err)
	}
	return r4.DefaultLayout.DMAChannel(r, ch)
}

// between makes one of two events happen while the dispatcher, woken by the
// other, stands between the load of the status and its clear.
type between struct {
	*rig
	rxFirst bool
	armed   atomic.Bool
	frame   []byte
	after   func(cancel func()) // called when the first has woken

	mu sync.Mutex // the wire and the steps of the model
}

func (w *between) rx() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.wire.deliver(w.frame)
	w.step()
}

func (w *between) tx() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.wire.blocked = false
	w.step()
}

func (w *between) arm() {
	w.dev.SetFaults(func(f *sim.Faults) {
		f.OnStatusLoad = func(int) {
			if !w.armed.CompareAndSwap(true, false) {
				return
			}
			if w.rxFirst {
				w.tx()
			} else {
				w.rx()
			}
		}
	})
}

// round has a receiver and a sender asleep, and says whether both woke up.
func (w *between) round(i int) bool {
	w.Helper()
	ctx, cancel := context.WithTimeout(w.Context(), 2*time.Minute)
	defer cancel()
	c := chan0(w.T, w.dev)
	w.frame = frame(60, uint64(i))
	w.wire.blocked = true
	w.send(w.frame)
	w.step()
	woke := make(chan error, 2)
	go func() { woke <- w.mac.Rx(0).Wait(ctx) }()
	go func() { woke <- w.mac.Tx(0).Wait(ctx) }()
	const both = r4.RIE | r4.TIE
	for r4.DMACHInterruptEnable.Load(c)&both != both {
		if ctx.Err() != nil {
			w.Fatal("the queues do not go to sleep")
		}
		runtime.Gosched()
	}
	w.armed.Store(true)
	if w.rxFirst {
		w.rx()
	} else {
		w.tx()
	}
	err := <-woke
	if w.after != nil {
		w.after(cancel)
	}
	err = errors.Join(err, <-woke)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.same(w.recv(1), [][]byte{w.frame})
	w.mac.Tx(0).Reap(nil)
	w.same(w.wire.take(), [][]byte{w.frame})
	return err == nil
}

// TestD73: only the registers say how long the rings of the model are and how
// far its descriptors are apart. A GMAC4 has no chain mode and descriptors of
// one size; the skip length stands for the others.
func TestD73(t *testing.T) {
	long := os.Getenv("GOSTMMAC_LONG") == "1"
	if !long {
		t.Log("a part of the lengths; GOSTMMAC_LONG=1 runs all")
	}
	skip := func(n int) bool { return !long && n > 20 && n%101 != 0 && n < 1023 }
	t.Run("driver", func(t *testing.T) {
		for n := 2; n <= core.MaxRing; n++ {
			if skip(n) {
				continue
			}
			r := newRig(t, rigConfig{bufs: 4096, opts: []stmmac.Option{stmmac.WithRings(n, n)}})
			r.wire.elastic = true
			for lap := range uint64(2) {
				in := frames(n+1, 60, lap*5000)
				r.wire.deliver(in...)
				r.same(r.recv(n+2), in)
				r.send(in[:n-1]...)
				r.step()
				r.same(r.wire.take(), in[:n-1])
				r.settled() // reaps
			}
		}
	})
	t.Run("registers", func(t *testing.T) {
		for n := 1; n <= core.MaxRing; n++ {
			if skip(n) {
				continue
			}
			dsls := []int{n % 8} // every skip length comes with many lengths
			if long || n <= 8 {
				dsls = []int{0, 1, 2, 3, 4, 5, 6, 7}
			}
			for _, dsl := range dsls {
				bus := 4 << (n % 3)
				b := newBare(t, bareConfig{sim: sim.Config{BusBytes: bus}, n: n, dsl: dsl})
				b.post(n - 1)
				b.start()
				if n == 1 {
					// The tail of a ring of one is always the current descriptor:
					// nothing moves, and nothing breaks.
					b.wire.deliver(frame(60, 1))
					b.arm(0)
					b.send(frame(60, 1), true)
					b.step()
					if d := b.desc(b.rxList, 0); d[3]&uint32(r4.RxOWN) == 0 || len(b.wire.take()) != 0 {
						t.Fatalf("DSL %d: a ring of one moves", dsl)
					}
				} else {
					b.roundTrip(t, n+3)
				}
				for _, v := range b.dev.Audit() {
					t.Errorf("ring of %d, DSL %d: %v", n, dsl, v)
				}
			}
		}
	})
	// The control: a driver that believes in another length than it programmed.
	b := newBare(t, bareConfig{n: 8})
	r4.DMACHRxDescRingLength.Store(b.ch, 3)
	b.post(3)
	b.start()
	got := 0
	for i := range uint64(8) {
		b.wire.deliver(frame(60, i))
		b.step()
		if b.recv() != nil {
			got++
			b.post(1)
		}
	}
	if ks := kinds(b.dev); got == 8 || !slices.Contains(ks, sim.TailOutside) {
		t.Errorf("%d frames with a ring of another length, audit %v", got, ks)
	}
}
