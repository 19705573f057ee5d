package stmmac_test

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"
	"unsafe"

	"github.com/gostmmac/gostmmac/barrier"
	"github.com/gostmmac/gostmmac/mmio"
	"github.com/gostmmac/gostmmac/pagepool"
	"github.com/gostmmac/gostmmac/stmmac"
	"github.com/gostmmac/gostmmac/stmmac/internal/regs/gmac4reg"
	"github.com/gostmmac/gostmmac/stmmac/sim"
)

// byHand is a model whose driver is the test itself, descriptor by descriptor and
// register by register: for what a driver must not do.
type byHand struct {
	*testing.T
	wire  *testWire
	clock *sim.ManualClock
	dev   *sim.Device
	csr   mmio.Region
	ch    mmio.Region
	rx    handRing
	tx    handRing
	bufs  []byte
	bus   uint64 // bus address of bufs
}

type handRing struct {
	mem  []byte
	bus  uint64
	tail mmio.Reg[uint32]
}

const handBuf = 2048

// newByHand sets a model with rings of n descriptors up; run starts it.
func newByHand(t *testing.T, cfg sim.Config, n int) *byHand {
	t.Helper()
	b := &byHand{T: t, wire: &testWire{}, clock: sim.NewManualClock()}
	cfg.Inline, cfg.Clock, cfg.OwnMemory = true, b.clock, true
	var err error
	if b.dev, err = sim.New(cfg, b.wire); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { b.dev.Close() })
	if b.csr, err = b.dev.Region(0); err != nil {
		t.Fatal(err)
	}
	b.ch = gmac4reg.DefaultLayout.DMAChannel(b.csr, 0)
	alloc := func(size int) ([]byte, uint64) {
		mem, bus, err := b.dev.AllocDMA(size, 0)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := b.dev.UnmapDMA(bus, size); err != nil {
				t.Error(err)
			}
		})
		return mem, bus
	}
	b.rx.mem, b.rx.bus = alloc(n * gmac4reg.DescSize)
	b.tx.mem, b.tx.bus = alloc(n * gmac4reg.DescSize)
	b.rx.tail, b.tx.tail = gmac4reg.DMACHRxDescTailPointer, gmac4reg.DMACHTxDescTailPointer
	b.bufs, b.bus = alloc(16 * handBuf)

	mtl := gmac4reg.DefaultLayout.MTLQueue(b.csr, 0)
	gmac4reg.DMASysBusMode.Store(b.csr, gmac4reg.EAME)
	gmac4reg.DMACHTxDescListHAddr.Store(b.ch, uint32(b.tx.bus>>32))
	gmac4reg.DMACHTxDescListAddr.Store(b.ch, uint32(b.tx.bus))
	gmac4reg.DMACHTxDescRingLength.Store(b.ch, uint32(n-1))
	gmac4reg.DMACHRxDescListHAddr.Store(b.ch, uint32(b.rx.bus>>32))
	gmac4reg.DMACHRxDescListAddr.Store(b.ch, uint32(b.rx.bus))
	gmac4reg.DMACHRxDescRingLength.Store(b.ch, uint32(n-1))
	b.ring(&b.rx, 0)
	b.ring(&b.tx, 0)
	gmac4reg.MACRxQCtrl0.Store(b.csr, gmac4reg.RxQDCB)
	gmac4reg.MTLRxQOperationMode.Store(mtl, gmac4reg.RSF|gmac4reg.RQS.Of(16384/256-1))
	gmac4reg.MTLTxQOperationMode.Store(mtl, gmac4reg.TSF|gmac4reg.TXQEN.Of(gmac4reg.TXQENEnabled)|gmac4reg.TQS.Of(16384/256-1))
	gmac4reg.DMACHRxControl.Store(b.ch, gmac4reg.RBSZ.Of(handBuf))
	gmac4reg.MACPacketFilter.Store(b.csr, gmac4reg.PR)
	gmac4reg.MACConfiguration.Store(b.csr, gmac4reg.DM)
	return b
}

func (b *byHand) run() {
	gmac4reg.DMACHRxControl.Update(b.ch, 0, gmac4reg.SR)
	gmac4reg.DMACHTxControl.Update(b.ch, 0, gmac4reg.ST)
	gmac4reg.MACConfiguration.Update(b.csr, 0, gmac4reg.RE|gmac4reg.TE)
}

// ring writes the tail register.
func (b *byHand) ring(r *handRing, slot int) {
	r.tail.Store(b.ch, uint32(r.bus)+uint32(slot*gmac4reg.DescSize))
}

func (r *handRing) words(slot int) *[4]uint32 {
	return (*[4]uint32)(unsafe.Pointer(&r.mem[slot*gmac4reg.DescSize]))
}

// put writes a descriptor, the word with OWN last.
func (b *byHand) put(r *handRing, slot, buf int, d2, d3 uint32) {
	d, a := r.words(slot), b.bus+uint64(buf*handBuf)
	d[0], d[1], d[2] = uint32(a), uint32(a>>32), d2
	barrier.DMAWrite() // the body, before OWN
	barrier.StoreOwn(&d[3], d3)
}

// buf is the memory of buffer i.
func (b *byHand) buf(i, n int) []byte { return b.bufs[i*handBuf:][:n] }

const (
	handRx = uint32(gmac4reg.RxOWN | gmac4reg.RxIOC | gmac4reg.RxBUF1V)
	handTx = uint32(gmac4reg.TxOWN | gmac4reg.TxFD | gmac4reg.TxLD)
)

// settle lets the model do what it can now and after each of some delays.
func (b *byHand) settle(d time.Duration) {
	for range 4 {
		for b.dev.Step(1<<20) > 0 {
		}
		b.clock.Advance(d)
	}
}

// found says whether the audit has a violation of the kind.
func (b *byHand) found(k sim.ViolationKind) bool {
	return slices.ContainsFunc(b.dev.Audit(), func(v sim.Violation) bool { return v.Kind == k })
}

// TestD03: an engine that reads the words of a descriptor early and OWN late.
func TestD03(t *testing.T) {
	const delay = 200 * time.Nanosecond
	for depth := 1; depth <= 4; depth++ {
		t.Run(fmt.Sprint("depth ", depth), func(t *testing.T) {
			r := newRig(t, rigConfig{
				sim:  sim.Config{Faults: sim.Faults{Prefetch: sim.Prefetch{On: true, Delay: delay, Depth: depth}}},
				opts: []stmmac.Option{stmmac.WithRings(4, 4)},
			})
			// Arrival, engine, time, receive and send come in any order, so that
			// the driver refills and sends at every point of a fetch.
			total := scale(t, 1_000_000) / 4
			rnd := rand.New(rand.NewPCG(3, uint64(depth)))
			rx, tx := r.mac.Rx(0), r.mac.Tx(0)
			bufs := make([]*pagepool.Buf, 4)
			given, got, sent, seen := 0, 0, 0, 0
			length := func(seq int) int { return 60 + seq%300 }
			check := func(f []byte, seq int, what string) {
				if want := frame(length(seq), uint64(seq)); !bytes.Equal(f, want) {
					t.Fatalf("%s frame %d: %d bytes % .40x…, want %d bytes % .40x…", what, seq, len(f), f, len(want), want)
				}
			}
			for stuck := 0; got < total || seen < total; stuck++ {
				if stuck > 10_000 {
					t.Fatalf("stuck: received %d of %d, sent %d of %d, %d on the wire", got, given, sent, total, seen)
				}
				switch rnd.IntN(6) {
				case 0:
					if given < total && given-got < 20 {
						r.wire.deliver(frame(length(given), uint64(given)))
						given++
					}
				case 1:
					r.dev.Step(1 + rnd.IntN(3))
				case 2, 3:
					r.clock.Advance(delay / 2)
				case 4:
					n := rx.Recv(bufs[:1+rnd.IntN(4)])
					for _, b := range bufs[:n] {
						f := make([]byte, b.FrameLen())
						b.CopyTo(f)
						check(f, got, "received")
						got++
						stuck = 0
					}
					r.pool.FreeBatch(bufs[:n])
				case 5:
					if sent == total {
						break
					}
					// in one to three buffers, which is all that the ring takes
					b := r.buf(frame(length(sent), uint64(sent)), length(sent)/(1+rnd.IntN(3))+2)
					n, err := tx.Send([]*pagepool.Buf{b})
					if err != nil {
						t.Fatal(err)
					}
					if n == 0 {
						r.pool.Free(b)
					}
					sent += n
				}
				for _, f := range r.wire.take() {
					check(f, seen, "sent")
					seen++
					stuck = 0
				}
			}
			r.settled()
		})
	}
}

// TestD03ParkedTail is the driver that D03 is about: it leaves the tail behind
// the engine, which therefore polls, and hands descriptors over by OWN alone.
func TestD03ParkedTail(t *testing.T) {
	const delay = 200 * time.Nanosecond
	was, is := frame(200, 1), frame(200, 2)
	fetch := sim.Faults{Prefetch: sim.Prefetch{On: true, Delay: delay}}

	// rearm lets the engine pass slot 0, parks the tail and re-arms slot 1 with
	// buffer 5 instead of 1 while the engine is in the middle of its fetch.
	rearm := func(b *byHand, r *handRing, d2, d3 uint32) {
		b.put(r, 0, 0, d2, d3)
		b.ring(r, 1)
		b.run()
		if r == &b.rx {
			b.wire.deliver(was)
		}
		b.settle(delay)
		for slot := 1; slot < 4; slot++ {
			b.put(r, slot, slot, d2, d3&^uint32(gmac4reg.RxOWN)) // as the lap before left them
		}
		b.ring(r, 0)
		b.dev.Step(100)
		if r == &b.rx {
			b.wire.deliver(is)
			b.dev.Step(100)
		}
		b.put(r, 1, 5, d2, d3)
		b.settle(delay)
	}

	t.Run("receive", func(t *testing.T) {
		b := newByHand(t, sim.Config{Faults: fetch}, 4)
		rearm(b, &b.rx, 0, handRx)
		if !b.found(sim.StaleFetch) {
			t.Errorf("the audit missed it: %v", b.dev.Audit())
		}
		if !bytes.Equal(b.buf(1, len(is)), is) || bytes.Equal(b.buf(5, len(is)), is) {
			t.Error("the frame is not in the buffer that the driver had taken back")
		}
	})
	t.Run("send", func(t *testing.T) {
		b := newByHand(t, sim.Config{Faults: fetch}, 4)
		for i := range 4 {
			copy(b.buf(i, len(was)), was)
		}
		copy(b.buf(5, len(is)), is)
		rearm(b, &b.tx, uint32(len(is)), handTx|uint32(len(is)))
		if !b.found(sim.StaleFetch) {
			t.Errorf("the audit missed it: %v", b.dev.Audit())
		}
		if s := b.wire.take(); len(s) != 2 || !bytes.Equal(s[1], was) {
			t.Errorf("%d frames were sent, the last is not the stale one", len(s))
		}
	})
	t.Run("linux", func(t *testing.T) { // there one descriptor is fetched at once
		b := newByHand(t, sim.Config{Faults: fetch, Profile: sim.Linux}, 4)
		rearm(b, &b.rx, 0, handRx)
		b.ring(&b.rx, 0)
		b.settle(delay)
		if v := b.dev.Audit(); len(v) != 0 {
			t.Errorf("audit: %v", v)
		}
		if !bytes.Equal(b.buf(5, len(is)), is) {
			t.Error("the frame is not in the new buffer")
		}
	})
}

// viewDevice is a fakeDevice whose memory a test reaches by bus address.
type viewDevice struct {
	*fakeDevice
	maps []viewMap
}

type viewMap struct {
	bus uint64
	mem []byte
}

func (d *viewDevice) MapDMA(mem []byte) (uint64, error) {
	bus, err := d.fakeDevice.MapDMA(mem)
	if err == nil {
		d.maps = append(d.maps, viewMap{bus, mem})
	}
	return bus, err
}

// at is the n bytes at a bus address, or nil.
func (d *viewDevice) at(bus uint64, n int) []byte {
	for _, m := range d.maps {
		if off := bus - m.bus; off < uint64(len(m.mem)) && uint64(n) <= uint64(len(m.mem))-off {
			return m.mem[off:][:n]
		}
	}
	return nil
}

// ownEngine is a bus master that goes by OWN alone and never looks at a tail, so
// it sees a descriptor as soon as the driver stores OWN.
type ownEngine struct {
	handRing
	n, cur int
	at     func(bus uint64, n int) []byte
}

func (e *ownEngine) words(i int) *[4]uint32 { return e.handRing.words((e.cur + i) % e.n) }

func (e *ownEngine) data(d *[4]uint32, n int) []byte {
	return e.at(uint64(d[0])|uint64(d[1])<<32, n)
}

var errTorn = errors.New("torn")

// take copies the next frame to p and gives its descriptors back. It is nil
// while there is none; an error says what was not written before the first OWN.
func (e *ownEngine) take(p []byte) ([]byte, error) {
	const own, fd, ld = uint32(gmac4reg.TxOWN), uint32(gmac4reg.TxFD), uint32(gmac4reg.TxLD)
	first := barrier.LoadOwn(&e.words(0)[3])
	if first&own == 0 {
		return nil, nil
	}
	barrier.DMARead() // the first OWN, before all that it covers
	p = p[:0]
	k := 0
	for last := false; !last; k++ {
		d := e.words(k)
		w3 := barrier.LoadOwn(&d[3])
		buf := e.data(d, int(gmac4reg.B1L.Get(gmac4reg.TDES2(d[2]))))
		if w3&own == 0 || (w3&fd != 0) != (k == 0) || len(buf) == 0 || k == e.n {
			return nil, fmt.Errorf("%w: slot %d, descriptor %d of the frame is %08x", errTorn, e.cur, k, *d)
		}
		p = append(p, buf...)
		last = w3&ld != 0
	}
	if n := int(gmac4reg.TxFL.Get(gmac4reg.TDES3(first))); len(p) != n {
		return nil, fmt.Errorf("%w: slot %d says %d bytes, the buffers have %d", errTorn, e.cur, n, len(p))
	}
	barrier.DMARelease() // the loads of the frame, before it is given back
	for i := range k {
		d := e.words(i)
		barrier.StoreOwn(&d[3], barrier.LoadOwn(&d[3])&(fd|ld))
	}
	e.cur = (e.cur + k) % e.n
	return p, nil
}

// give fills one descriptor with the next piece of a frame: total is the length
// of the whole, done how much of it there is before. It is 0 while there is no
// descriptor.
func (e *ownEngine) give(piece []byte, done, total int) (int, error) {
	d := e.words(0)
	if barrier.LoadOwn(&d[3])&uint32(gmac4reg.RxOWN) == 0 {
		return 0, nil
	}
	barrier.DMARead() // OWN, before the address
	buf := e.data(d, len(piece))
	if buf == nil {
		return 0, fmt.Errorf("%w: slot %d is %08x", errTorn, e.cur, *d)
	}
	copy(buf, piece)
	d[0], d[1], d[2] = 0xdead0000, 0xdead0001, 0xdead0002
	w3 := gmac4reg.RDES3(0)
	if done == 0 {
		w3 |= gmac4reg.RxFD
	}
	if done += len(piece); done == total {
		w3 |= gmac4reg.RxLD
	}
	barrier.DMAWrite() // the frame and the status, before OWN is cleared
	barrier.StoreOwn(&d[3], uint32(gmac4reg.RxPL.Put(w3, uint32(done))))
	e.cur = (e.cur + 1) % e.n
	return len(piece), nil
}

// openView opens a MAC on a viewDevice and returns engines for its two rings.
func openView(t *testing.T, n int, opts ...stmmac.Option) (*stmmac.MAC, *pagepool.Pool, *mmio.Fake, *ownEngine, *ownEngine) {
	t.Helper()
	regs := fakeGMAC4()
	dev := &viewDevice{fakeDevice: newFakeDevice(regs)}
	pool, err := pagepool.New(dev, 1024, pagepool.WithBufSize(320))
	if err != nil {
		t.Fatal(err)
	}
	mac, err := stmmac.Open(t.Context(), dev, append([]stmmac.Option{
		stmmac.WithGeneration(stmmac.GMAC4), stmmac.WithLink(gigabit), noSelfTest, stmmac.WithPool(pool), stmmac.WithRings(n, n), stmmac.WithClock(&stepClock{}),
	}, opts...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := mac.Close(); err != nil {
			t.Error(err)
		}
		if err := pool.Close(); err != nil {
			t.Error(err)
		}
		dev.mustUnmap(t)
	})
	ch := gmac4reg.DefaultLayout.DMAChannel(regs, 0)
	engine := func(low, high mmio.Reg[uint32]) *ownEngine {
		bus := uint64(low.Load(ch)) | uint64(high.Load(ch))<<32
		mem := dev.at(bus, n*gmac4reg.DescSize)
		if mem == nil {
			t.Fatalf("no ring at %#x", bus)
		}
		return &ownEngine{handRing: handRing{mem: mem, bus: bus}, n: n, at: dev.at}
	}
	return mac, pool, regs, engine(gmac4reg.DMACHRxDescListAddr, gmac4reg.DMACHRxDescListHAddr),
		engine(gmac4reg.DMACHTxDescListAddr, gmac4reg.DMACHTxDescListHAddr)
}

// TestD04Torn runs both rings against a goroutine that goes by OWN alone: all of
// a frame is there when its first descriptor is the engine's, on the way out, and
// when its OWN is clear on the way in. On one machine this proves the order
// that the machine can show; the litmus tests of package barrier and the
// disassembly of the ring's leaves stand beside it.
func TestD04Torn(t *testing.T) {
	const n = 16
	t.Run("send", func(t *testing.T) {
		total, ctx := scale(t, 20_000_000), patience(t)
		// Made before, so that the engine is the faster side and waits for OWN.
		in := make([][]byte, 97)
		for i := range in {
			in[i] = frame(28+i, uint64(i))
		}
		mac, pool, regs, _, engine := openView(t, 256)
		var stop atomic.Bool
		var wg sync.WaitGroup
		wg.Go(func() {
			defer stop.Store(true)
			var p []byte
			for seq, idle := 0, 0; seq < total && ctx.Err() == nil; {
				f, err := engine.take(p)
				if err != nil {
					t.Errorf("frame %d: %v", seq, err)
					return
				}
				if f == nil {
					// Look often: a frame that is torn is so for nanoseconds.
					if idle++; idle%32 == 0 {
						runtime.Gosched()
					}
					continue
				}
				p = f
				if !bytes.Equal(f, in[seq%len(in)]) {
					t.Errorf("frame %d differs", seq)
					return
				}
				seq++
			}
			if ctx.Err() != nil {
				t.Error(ctx.Err())
			}
		})
		// Long batches: the OWN words of the starts are as far as they can be from the rest.
		tx, batch := mac.Tx(0), []*pagepool.Buf(nil)
		for seq := 0; seq < total && !stop.Load(); {
			for len(batch) < 1+seq%40 && seq+len(batch) < total {
				k := seq + len(batch)
				batch = append(batch, chain(t, pool, in[k%len(in)], 20+k%3*20))
			}
			k, err := tx.Send(batch)
			if err != nil {
				t.Fatal(err)
			}
			if k == 0 {
				regs.ResetLog()
				runtime.Gosched()
			}
			batch = append(batch[:0], batch[k:]...)
			seq += k
		}
		wg.Wait()
		pool.FreeBatch(batch)
		if k := tx.Reap(nil); tx.Inflight() != 0 && !t.Failed() {
			t.Errorf("%d reaped, %d buffers are still in flight", k, tx.Inflight())
		}
	})
	t.Run("receive", func(t *testing.T) {
		total, ctx := scale(t, 4_000_000), patience(t)
		length := func(seq int) int { return 64 + seq*7%700 }
		mac, pool, regs, engine, _ := openView(t, n)
		lay := mac.Rx(0).Layout()
		var stop atomic.Bool
		var wg sync.WaitGroup
		wg.Go(func() {
			for seq := range total {
				f := append(frame(length(seq), uint64(seq)), 1, 2, 3, 4)
				for done := 0; done < len(f); {
					if stop.Load() {
						return
					}
					k, err := engine.give(f[done:min(len(f), done+lay.Size)], done, len(f))
					if err != nil {
						t.Errorf("frame %d: %v", seq, err)
						return
					}
					if k == 0 {
						runtime.Gosched()
					}
					done += k
				}
			}
		})
		rx, bufs, p := mac.Rx(0), make([]*pagepool.Buf, 8), make([]byte, 2048)
		for seq := 0; seq < total && !t.Failed(); {
			k := rx.Recv(bufs)
			if k == 0 {
				regs.ResetLog()
				runtime.Gosched()
			}
			for _, b := range bufs[:k] {
				if f := p[:b.CopyTo(p)]; !bytes.Equal(f, frame(length(seq), uint64(seq))) {
					t.Errorf("frame %d differs: %d bytes % .40x…", seq, len(f), f)
					break
				}
				seq++
			}
			pool.FreeBatch(bufs[:k])
			if ctx.Err() != nil {
				t.Error(ctx.Err())
			}
		}
		stop.Store(true)
		wg.Wait()
		if s := rx.Stats(); s.Drops() != 0 || s.Packets != uint64(total) {
			t.Errorf("%+v", s)
		}
	})
	// The engine must be able to see it: the same stores in the wrong order.
	t.Run("control", func(t *testing.T) {
		mem, bufs := make([]uint32, 4*4), make([]byte, 4096)
		e := &ownEngine{n: 4, at: func(bus uint64, n int) []byte { return bufs[bus:][:n] },
			handRing: handRing{mem: unsafe.Slice((*byte)(unsafe.Pointer(&mem[0])), 64)}}
		body := func(i int) { copy(mem[4*i:], []uint32{uint32(100 * i), 0, 100}) }
		own := func(i int, bits gmac4reg.TDES3) {
			barrier.StoreOwn(&mem[4*i+3], uint32(gmac4reg.TxOWN|bits))
		}
		const first, last = gmac4reg.TxFD | 200, gmac4reg.TxLD
		for name, store := range map[string][]func(){
			"first OWN first":   {func() { body(0); body(1) }, func() { own(0, first) }, func() { own(1, last) }},
			"OWN before a body": {func() { body(0) }, func() { own(1, last) }, func() { own(0, first) }, func() { body(1) }},
		} {
			clear(mem)
			torn := false
			for _, s := range store {
				s()
				_, err := e.take(nil)
				torn = torn || errors.Is(err, errTorn)
			}
			if !torn {
				t.Errorf("%s: the engine did not see it", name)
			}
			e.cur = 0
		}
		clear(mem)
		for _, s := range []func(){func() { body(0); body(1) }, func() { own(1, last) }, func() { own(0, first) }} {
			if f, err := e.take(nil); f != nil || err != nil {
				t.Errorf("before the first OWN: %d bytes, %v", len(f), err)
			}
			s()
		}
		if f, err := e.take(nil); len(f) != 200 || err != nil {
			t.Errorf("%d bytes, %v", len(f), err)
		}
	})
}

// TestD04Cable sends frames of one to many descriptors both ways between two
// models that run by themselves.
func TestD04Cable(t *testing.T) {
	total, ctx := scale(t, 1_000_000), patience(t)
	c := newCable(t, sim.Config{}, "each", stmmac.WithRings(16, 16))
	length := func(seq int) int { return 60 + seq*13%1455 }
	var wg sync.WaitGroup
	for i := range c.mac {
		tx, rx := c.mac[i].Tx(0), c.mac[1-i].Rx(0)
		credit := make(chan struct{}, 8) // the receive FIFO holds 8 frames of any length
		wg.Go(func() {
			for seq := range total {
				select {
				case credit <- struct{}{}:
				case <-ctx.Done():
					t.Error(ctx.Err())
					return
				}
				// 1 to 12 buffers
				b := chain(t, c.pool, frame(length(seq), uint64(seq)), max(length(seq)/(1+seq%12)+1, 16))
				if err := sendOne(ctx, tx, b); err != nil {
					t.Error(err)
					return
				}
			}
			if _, err := drain(ctx, tx); err != nil {
				t.Error(err)
			}
		})
		wg.Go(func() {
			bufs, p := make([]*pagepool.Buf, 8), make([]byte, 2048)
			for seq := 0; seq < total; {
				n := rx.Recv(bufs)
				if n == 0 {
					if err := rx.Wait(ctx); err != nil {
						t.Errorf("%d of %d frames: %v", seq, total, err)
						return
					}
				}
				for _, b := range bufs[:n] {
					if f := p[:b.CopyTo(p)]; !bytes.Equal(f, frame(length(seq), uint64(seq))) {
						t.Errorf("frame %d differs: %d bytes % .40x…", seq, len(f), f)
					}
					seq++
					<-credit
				}
				c.pool.FreeBatch(bufs[:n])
			}
		})
	}
	wg.Wait()
	for i := range c.mac {
		if s := c.mac[i].Rx(0).Stats(); s.Packets != uint64(total) || s.Drops() != 0 {
			t.Errorf("receive: %+v", s)
		}
		if s := c.mac[i].Tx(0).Stats(); s.Done != uint64(total) || s.Errors() != 0 {
			t.Errorf("send: %+v", s)
		}
	}
}

// TestD04Doorbell: a lone frame leaves with one doorbell, and nothing behind it
// is needed to push it.
func TestD04Doorbell(t *testing.T) {
	total, ctx := scale(t, 100_000), patience(t)
	c := newCable(t, sim.Config{}, "each", stmmac.WithRings(4, 4), noSelfTest)
	tx, rx := c.mac[0].Tx(0), c.mac[1].Rx(0)
	one := make([]*pagepool.Buf, 1)
	sent := 0
	before := c.dev[0].Stats().TxDoorbells
	for seq := range total {
		f := frame(60+seq%1000, uint64(seq))
		b := chain(t, c.pool, f, len(f)/(1+seq%3)+1)
		if n, err := tx.Send([]*pagepool.Buf{b}); n != 1 || err != nil {
			t.Fatal(n, err)
		}
		for rx.Recv(one) == 0 {
			if err := rx.Wait(ctx); err != nil {
				t.Fatalf("frame %d: %v", seq, err)
			}
		}
		p := make([]byte, one[0].FrameLen())
		one[0].CopyTo(p)
		c.pool.Free(one[0])
		if !bytes.Equal(p, f) {
			t.Fatalf("frame %d differs", seq)
		}
		n, err := drain(ctx, tx)
		if err != nil {
			t.Fatalf("frame %d: %v", seq, err)
		}
		sent += n
	}
	if n := c.dev[0].Stats().TxDoorbells - before; n != uint64(total) {
		t.Errorf("%d doorbells for %d frames", n, total)
	}
	if sent != total {
		t.Errorf("%d frames reaped", sent)
	}
}

// TestD05: the register of the current descriptor runs ahead of the write-back.
// Only OWN frees a buffer.
func TestD05(t *testing.T) {
	for lag := 1; lag <= 3; lag++ {
		for _, per := range []int{1, 3} { // descriptors of a frame
			t.Run(fmt.Sprintf("lag %d, %d descriptors", lag, per), func(t *testing.T) {
				r := newRig(t, rigConfig{
					sim:  sim.Config{Faults: sim.Faults{CurTxAhead: lag}},
					opts: []stmmac.Option{stmmac.WithRings(8, 8)},
				})
				tx, ch := r.mac.Tx(0), r.channel(0)
				done, ahead := uint64(0), 0
				for round := range scale(t, 1000) {
					in := frames(6/per, 150, uint64(round)*8)
					r.wire.blocked = true
					for _, f := range in {
						if n, err := tx.Send([]*pagepool.Buf{r.buf(f, 150/per)}); n != 1 || err != nil {
							t.Fatal(n, err)
						}
					}
					for free := 0; free < 6; {
						r.dev.Step(1)
						tx.Reap(nil)
						left := len(r.wire.sent) // frames whose last OWN is clear
						if got := tx.Stats().Done - done; got != uint64(left) {
							t.Fatalf("%d frames are reclaimed, the device has finished %d", got, left)
						}
						if n, want := r.pool.InUse()-r.base, 6-per*left; n != want {
							t.Fatalf("%d buffers are with the queue, want %d: %v", n, want, r.pool.Holders())
						}
						// What a driver that goes by the register would free.
						first := (round*6 + per*left) % 8
						cur := int(gmac4reg.DMACHCurAppTxDesc.Load(ch)-gmac4reg.DMACHTxDescListAddr.Load(ch)) / gmac4reg.DescSize
						if (cur-first+8)%8 >= per && left < len(in) {
							ahead++
						}
						r.wire.blocked = false
						free = per * left
					}
					done += uint64(len(in))
					r.same(r.wire.take(), in)
				}
				if ahead == 0 {
					t.Error("the register was never ahead: this tests nothing")
				}
				r.settled()
			})
		}
	}
	t.Run("the driver does not read it", func(t *testing.T) {
		r := newRig(t, rigConfig{})
		r.send(frames(300, 60, 0)...)
		r.step()
		r.settled()
		at := gmac4reg.DefaultLayout.DMABase + uint32(gmac4reg.DMACHCurAppTxDesc)
		for _, reg := range r.dev.Coverage() {
			if reg.Off == at {
				t.Errorf("%s was accessed", reg.Name)
			}
		}
	})
}

// TestD06: no word of a finished descriptor is an address any more.
func TestD06(t *testing.T) {
	for _, bufSize := range []int{320, 2048} {
		for _, invalid := range []bool{false, true} {
			t.Run(fmt.Sprintf("buffers of %d, lost timestamps %v", bufSize, invalid), func(t *testing.T) {
				const n = 16
				bad := func(k uint64) bool { return k%5 == 1 }
				r := newRig(t, rigConfig{bufSize: bufSize, opts: []stmmac.Option{stmmac.WithRings(n, n)}, sim: sim.Config{Faults: sim.Faults{
					ScribbleWriteBack: true,
					InjectContext:     sim.InjectContext{Every: 3, Invalid: invalid},
					RxError: func(k uint64) (e gmac4reg.RDES3) {
						if bad(k) {
							e = gmac4reg.RxCE
						}
						return e
					},
				}}})
				var s stmmac.RxStats
				seq := uint64(0)
				run := func(count int) {
					for range count {
						f := frame(60+int(seq*37%1400), seq)
						r.wire.deliver(f)
						var want [][]byte
						if !bad(seq) {
							want = append(want, f)
							s.Packets++
							s.Bytes += uint64(len(f))
						} else {
							s.CRC++
						}
						if seq++; seq%3 == 0 {
							s.Context++
						}
						r.same(r.recv(2), want)
					}
				}
				run(scale(t, 10_000))
				r.dev.SetFaults(func(f *sim.Faults) { f.InjectContext, f.RxError = sim.InjectContext{}, nil })
				bad = func(uint64) bool { return false }
				context := s.Context
				run(4 * n)
				s.Context = context
				if got := r.mac.Rx(0).Stats(); got != s {
					t.Errorf("got %+v, want %+v", got, s)
				}
				r.settled()
			})
		}
	}
	t.Run("control", func(t *testing.T) {
		b := newByHand(t, sim.Config{Faults: sim.Faults{ScribbleWriteBack: true}}, 4)
		for i := range 3 {
			b.put(&b.rx, i, i, 0, handRx)
		}
		b.ring(&b.rx, 3)
		b.run()
		b.wire.deliver(frames(3, 60, 1)...)
		b.settle(0)
		d := b.rx.words(0)
		if d[0]>>16 != 0xdead || d[1]>>16 != 0xdead {
			t.Errorf("written back as %08x", *d)
		}
		// A driver that thinks that the address is still there.
		b.put(&b.rx, 3, 3, 0, handRx)
		barrier.StoreOwn(&d[3], handRx)
		b.ring(&b.rx, 1)
		b.wire.deliver(frames(2, 60, 4)...)
		b.settle(0)
		if !b.found(sim.BufferOutside) || !b.found(sim.DMAOutside) {
			t.Errorf("the audit missed it: %v", b.dev.Audit())
		}
	})
}
