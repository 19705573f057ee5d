package stmmac_test

import (
	"bytes"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"
	"unsafe"

	"github.com/gostmmac/gostmmac/mmio"
	"github.com/gostmmac/gostmmac/pagepool"
	"github.com/gostmmac/gostmmac/stmmac"
	"github.com/gostmmac/gostmmac/stmmac/internal/core"
	r4 "github.com/gostmmac/gostmmac/stmmac/internal/regs/gmac4reg"
	"github.com/gostmmac/gostmmac/stmmac/sim"
)

// spy is a device whose memory and registers a test sees from outside the
// driver.
type spy struct {
	stmmac.Device

	mu    sync.Mutex
	maps  map[uint64][]byte
	trace func(mmio.Access) // set before the MAC is opened
	ring  func(n int) []byte
	skew  uint64 // bytes by which AllocDMA misses the alignment
}

func newSpy(d stmmac.Device) *spy { return &spy{Device: d, maps: map[uint64][]byte{}} }

func (s *spy) Region(i int) (mmio.Region, error) {
	r, err := s.Device.Region(i)
	if err == nil && s.trace != nil {
		r = mmio.Trace(r, s.trace)
	}
	return r, err
}

func (s *spy) MapDMA(mem []byte) (uint64, error) {
	a, err := s.Device.MapDMA(mem)
	if err == nil {
		s.note(a, mem)
	}
	return a, err
}

// AllocDMA gives the memory of ring, if there is one.
func (s *spy) AllocDMA(n, align int) ([]byte, uint64, error) {
	if s.ring == nil {
		mem, a, err := s.Device.AllocDMA(n, align)
		if err == nil {
			s.note(a, mem)
		}
		return mem, a, err
	}
	mem := s.ring(n)
	a, err := s.MapDMA(mem)
	return mem[s.skew:], a + s.skew, err
}

func (s *spy) UnmapDMA(a uint64, n int) error {
	s.mu.Lock()
	if _, whole := s.maps[a]; !whole { // of AllocDMA
		a, n = a-s.skew, n+int(s.skew)
	}
	s.mu.Unlock()
	err := s.Device.UnmapDMA(a, n)
	if err == nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.maps, a)
	}
	return err
}

func (s *spy) note(a uint64, mem []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.maps[a] = mem
}

// at returns n bytes at a bus address, or nil.
func (s *spy) at(a uint64, n int) []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	for base, mem := range s.maps {
		if off := a - base; off < uint64(len(mem)) && uint64(n) <= uint64(len(mem))-off {
			return mem[off:][:n]
		}
	}
	return nil
}

// mappings is how many mappings there are.
func (s *spy) mappings() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.maps)
}

// chan0 returns the registers of channel 0.
func chan0(t *testing.T, d stmmac.Device) mmio.Region {
	t.Helper()
	r, err := d.Region(0)
	if err != nil {
		t.Fatal(err)
	}
	return r4.DefaultLayout.DMAChannel(r, 0)
}

// descAt is the descriptor of 16 bytes at a bus address, or nil.
func (s *spy) descAt(a uint64) *[4]uint32 {
	return (*[4]uint32)(unsafe.Pointer(unsafe.SliceData(s.at(a, 16))))
}

// desc is descriptor i of a list.
func (s *spy) desc(t *testing.T, list uint64, i int) *[4]uint32 {
	t.Helper()
	d := s.descAt(list + 16*uint64(i))
	if d == nil {
		t.Fatalf("descriptor %d of the list at %#x is not mapped", i, list)
	}
	return d
}

// rings are the driver's two rings of channel 0 without package stmmac above
// them, for layouts and limits that Open does not choose.
type rings struct {
	*testing.T
	dev   *sim.Device
	gen   generation
	csr   mmio.Region
	spy   *spy
	wire  *testWire
	clock *sim.ManualClock
	pool  *pagepool.Pool
	rx    *core.RxRing
	tx    *core.TxRing
	base  int
	// abandon leaves everything open when the test ends.
	abandon  bool
	tolerate []sim.ViolationKind
}

type ringsConfig struct {
	sim      sim.Config
	n        int // descriptors of each ring; 0: 16
	bufs     int // 0: 256
	bufSize  int // bytes; 0: 2,048
	lay      core.RxLayout
	strip    bool // the device removes the FCS
	maxFrame int  // longest frame to send, bytes; 0: 1,522
	ring     func(n int) []byte
}

func newRings(t *testing.T, c ringsConfig) *rings {
	t.Helper()
	r := &rings{T: t, gen: on(t), wire: &testWire{elastic: true}, clock: sim.NewManualClock()}
	c.sim.Inline, c.sim.Clock, c.sim.Generation = true, r.clock, r.gen.model()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	or := func(p *int, v int) {
		if *p == 0 {
			*p = v
		}
	}
	or(&c.n, 16)
	or(&c.bufs, 256)
	or(&c.bufSize, 2048)
	or(&c.maxFrame, 1522)
	var err error
	r.dev, err = sim.New(c.sim, r.wire)
	must(err)
	r.spy = newSpy(r.dev)
	r.spy.ring = c.ring
	r.pool, err = pagepool.New(r.dev, c.bufs, pagepool.WithBufSize(c.bufSize))
	must(err)
	m, err := r.pool.Attach(r.spy)
	must(err)
	r.csr, err = r.spy.Region(0)
	must(err)
	hw := r.gen.hardware(&core.Config{Name: "rings", RxQueues: 1, TxQueues: 1, StripFCS: c.strip, Clock: r.clock,
		ResetTimeout: time.Second, StopTimeout: time.Second}, r.csr)
	_, err = hw.Identify()
	must(err)
	hw.Halt()
	must(hw.Reset(t.Context()))
	var mem [2]core.RingMemory
	for i := range mem {
		p, err := pagepool.NewMemory(r.spy, c.n*r4.DescSize, 64)
		must(err)
		mem[i] = core.RingMemory{Mem: p, N: c.n}
	}
	r.rx = core.NewRxRing(m, r.pool.Owner("rx"), !c.strip)
	r.rx.Restart(hw.RxDescs(0, mem[0], c.lay.Size), c.n, c.lay)
	r.tx = core.NewTxRing(m, r.pool.Owner("tx"), false, func(err error) error { return err },
		func([]*pagepool.Buf) (int, error) { return 0, nil })
	r.tx.Restart(hw.TxDescs(0, mem[1]), c.n, core.TxLimits{MaxFrame: c.maxFrame, MaxBuf: hw.Limits().MaxTxBuf})
	r.rx.Fill()
	r.rx.Resume()
	r.tx.Resume()
	must(hw.Setup(core.Setup{Rx: mem[:1], Tx: mem[1:], RxSize: c.lay.Size, RxTails: []uint32{r.rx.Tail()}, Addr: []byte{2, 0, 0, 0, 0, 1}}))
	hw.Start()
	if _, err := hw.SetFilter(core.Filter{Promiscuous: true}); err != nil {
		t.Fatal(err)
	}
	must(hw.SetLink(core.Link{Up: true, Speed: 1000, FullDuplex: true}))
	r.base = r.pool.InUse()
	t.Cleanup(func() {
		if r.abandon {
			return
		}
		r.rx.End()
		r.tx.End()
		for _, err := range []error{hw.Stop(t.Context()), func() error { r.rx.Release(); r.tx.Release(); return nil }(),
			mem[0].Mem.Close(), mem[1].Mem.Close(), m.Close(), r.pool.Close()} {
			if err != nil {
				t.Error(err)
			}
		}
		for _, v := range r.dev.Audit() {
			if !slices.Contains(r.tolerate, v.Kind) {
				t.Errorf("audit: %v", v)
			}
		}
		if err := r.dev.Close(); err != nil {
			t.Error(err)
		}
	})
	return r
}

func (r *rings) step() {
	for r.dev.Step(1<<20) > 0 {
	}
}

// recv is rig.recv.
func (r *rings) recv(n int) [][]byte { return receive(r.pool, n, r.step, r.rx.Recv) }

// settled fails unless the ring has its buffers back and nobody else has one.
func (r *rings) settled() {
	r.Helper()
	r.recv(1)
	r.tx.Reap(nil)
	if n := r.pool.InUse(); n != r.base {
		r.Errorf("%d buffers are in use, %d when idle: %v", n, r.base, r.pool.Holders())
	}
}

// TestD13: what a device reports in the length field of a descriptor that does
// not end the frame has no influence. Split header is not built, so its other
// rule is not tested.
func TestD13(t *testing.T) { onEach(t, testD13) }

func testD13(t *testing.T) {
	var lens [][]byte
	for n := 60; n <= 1518; n++ {
		lens = append(lens, frame(n, uint64(n)))
	}
	jumbo := frame(9018, 1)
	copy(jumbo[12:], []byte{0x81, 0, 0, 1})
	modes := map[string]sim.MiddleLength{"cumulative": sim.MiddleCumulative, "zero": sim.MiddleZero,
		"own": sim.MiddleOwn, "stale": sim.MiddleStale}
	trusting := 0
	for name, mode := range modes {
		for _, size := range []int{256, 608} {
			for _, strip := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s/%d/strip=%v", name, size, strip), func(t *testing.T) {
					r := newRings(t, ringsConfig{n: 64, bufSize: 704, strip: strip,
						sim: sim.Config{Faults: sim.Faults{MiddleLength: mode, ScribbleWriteBack: true}},
						lay: core.RxLayout{Start: 64, Size: size, First: size, MaxFrame: core.MaxFrameLen(9000)}})
					r.wire.deliver(lens...)
					same(t, r.recv(len(lens)+1), lens)
					r.wire.deliver(jumbo)
					same(t, r.recv(2), [][]byte{jumbo})
					r.settled()
					if s := r.rx.Stats(); s.Packets != uint64(len(lens)+1) || s.Drops() != 0 {
						t.Errorf("%+v", s)
					}
				})
			}
		}
		// The control: a reader that adds the fields up gets the frame in one of
		// the modes only, so the modes do differ.
		t.Run(name+"/trusting", func(t *testing.T) {
			r := newRig(t, rigConfig{bufSize: 320, sim: sim.Config{Faults: sim.Faults{MiddleLength: mode}},
				opts: []stmmac.Option{stmmac.WithRings(8, 8)}})
			f := frame(700, 1)
			r.wire.deliver(f)
			r.step()
			sum := 0
			for i := range 3 {
				if n, last := r.gen.received(r.desc(receiving, i)); !last {
					sum += n
				} else if sum += n - 512; n == 704 && sum == 704 {
					trusting++
				}
			}
			r.same(r.recv(2), [][]byte{f})
			r.settled()
		})
	}
	if trusting != 1 {
		t.Errorf("adding up the length fields works in %d of %d modes", trusting, len(modes))
	}
}

// same is rig.same for tests without a rig.
func same(t *testing.T, got, want [][]byte) {
	t.Helper()
	(&rig{T: t}).same(got, want)
}

// TestD14: a length in the last descriptor that contradicts those before drops
// the frame, and nothing but the frame.
func TestD14(t *testing.T) { onEach(t, testD14) }

func testD14(t *testing.T) {
	const size = 256
	for _, strip := range []bool{false, true} {
		for descs := 1; descs <= 5; descs++ {
			before := (descs - 1) * size
			length := before + 92 // of the frame in memory
			totals := []int{0, 1, 3, 4, before - 1, before, before + size + 1, on(t).limits().rxLen}
			if descs > 1 {
				totals = append(totals, 17)
			}
			for _, total := range totals {
				if total < 0 || strip && total == 4 && descs == 1 || strip && (total == 1 || total == 3) && descs == 1 {
					continue // a length that one descriptor can have
				}
				t.Run(fmt.Sprintf("strip=%v/descriptors=%d/total=%d", strip, descs, total), func(t *testing.T) {
					r := newRings(t, ringsConfig{n: 8, bufSize: 320, strip: strip,
						lay: core.RxLayout{Start: 64, Size: size, First: size, MaxFrame: core.MaxFrameLen(1500)}})
					n := length
					if !strip {
						n -= core.FCSLen
					}
					bad := false
					r.dev.SetFaults(func(f *sim.Faults) {
						f.InconsistentLength = func(pl uint32) uint32 {
							if bad {
								return uint32(total)
							}
							return pl
						}
					})
					const rounds = 12 // more than once around the ring
					for i := range uint64(rounds) {
						bad = true
						r.wire.deliver(frame(n, i))
						if got := r.recv(2); len(got) != 0 {
							t.Fatalf("a frame of %d bytes came out", len(got[0]))
						}
						bad = false
						good := frame(n, 100+i)
						r.wire.deliver(good)
						same(t, r.recv(2), [][]byte{good})
					}
					r.settled()
					if s := r.rx.Stats(); s.Length != rounds || s.Drops() != rounds || s.Packets != rounds {
						t.Errorf("%+v", s)
					}
				})
			}
		}
	}
}

// deviceHand is a driver whose device is the test itself: it fills receive
// descriptors by hand.
type deviceHand struct {
	*testing.T
	spy  *spy
	mac  *stmmac.MAC
	n    int
	slot int // that the device fills next
	list uint64
}

func newDeviceHand(t *testing.T, n, bufSize int, opts ...stmmac.Option) *deviceHand {
	t.Helper()
	f := newFakeDevice(fakeGMAC4())
	h := &deviceHand{T: t, spy: newSpy(f), n: n}
	var err error
	h.mac, err = stmmac.Open(t.Context(), h.spy, append([]stmmac.Option{stmmac.WithGeneration(stmmac.GMAC4), stmmac.WithLink(gigabit),
		stmmac.WithClock(&stepClock{}), stmmac.WithRings(n, n), stmmac.WithBufSize(bufSize), stmmac.WithNetIPAlign(0)}, opts...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := h.mac.Close(); err != nil {
			t.Error(err)
		}
		f.mustUnmap(t)
	})
	c := chan0(t, f)
	h.list = uint64(r4.DMACHRxDescListHAddr.Load(c))<<32 | uint64(r4.DMACHRxDescListAddr.Load(c))
	return h
}

// fill writes the last word of the next descriptor.
func (h *deviceHand) fill(d3 r4.RDES3) {
	h.Helper()
	d := h.spy.desc(h.T, h.list, h.slot)
	if d[3]&uint32(r4.RxOWN) == 0 {
		h.Fatalf("descriptor %d is not the device's", h.slot)
	}
	d[3] = uint32(d3)
	if d3&r4.RxOWN == 0 {
		if h.slot++; h.slot == h.n {
			h.slot = 0
		}
	}
}

// take calls Recv once and returns the length of the frame, or -1.
func (h *deviceHand) take() int {
	h.Helper()
	var bufs [2]*pagepool.Buf
	switch h.mac.Rx(0).Recv(bufs[:]) {
	case 0:
		return -1
	case 1:
		n := bufs[0].FrameLen()
		if lay := h.mac.Rx(0).Layout(); bufs[0].Offset() != lay.Start || bufs[0].Len() > lay.First {
			h.Fatalf("%d bytes at %d with the layout %+v", bufs[0].Len(), bufs[0].Offset(), lay)
		}
		h.mac.Pool().Free(bufs[0])
		return n
	}
	h.Fatal("more than one frame")
	return 0
}

// TestD15: no bit from 15 on is taken for a part of the length.
func TestD15(t *testing.T) {
	h := newDeviceHand(t, 16, 2048)
	const pl = 1518
	const good = r4.RxFD | r4.RxLD | pl
	for flags := range uint32(1 << 16) {
		d3 := r4.RDES3(flags<<15 | pl)
		want := -1
		if d3&(r4.RxFD|r4.RxLD|r4.RxES|r4.RxCTXT) == r4.RxFD|r4.RxLD {
			want = pl - core.FCSLen
		}
		h.fill(d3 | r4.RxOWN)
		if got := h.take(); got != -1 {
			t.Fatalf("RDES3 %#08x: a frame of %d bytes from a descriptor of the device", d3|r4.RxOWN, got)
		}
		h.fill(d3)
		if got := h.take(); got != want {
			t.Fatalf("RDES3 %#08x: %d bytes, want %d", d3, got, want)
		}
		// whole again, whatever the flags began
		h.fill(good)
		if got := h.take(); got != pl-core.FCSLen {
			t.Fatalf("after RDES3 %#08x: %d bytes", d3, got)
		}
	}
	s := h.mac.Rx(0).Stats()
	// Half of the 65,536 have CTXT. Of the others an eighth is whole and good,
	// an eighth whole and bad. A start without an end is truncated by what
	// follows, an end without a start by itself.
	const eighth = 1 << 15 / 8
	if s.Packets != 1<<16+eighth || s.Context != 1<<15 {
		t.Errorf("%+v", s)
	}
	if n := s.CRC + s.Overflow + s.Watchdog + s.Giant + s.Dribble + s.Receive + s.Other; n != eighth {
		t.Errorf("%d frames with an error, want %d: %+v", n, eighth, s)
	}
	if s.Truncated != 4*eighth || s.Length != 0 || s.Oversize != 0 {
		t.Errorf("%+v", s)
	}
}

// TestD16: a length beyond the MTU or beyond what was posted never becomes a
// slice.
func TestD16(t *testing.T) {
	for _, c := range []struct {
		mtu, buf int
		pass     []int // lengths as reported, with FCS
		drop     []int
	}{
		// 1,519 to 1,526 are frames with two tags.
		{1500, 2048, []int{64, 1518, 1519, 1522, 1526}, []int{1527, 1983, 1984, 1985, 2048, 2049, 16383, 1<<15 - 1}},
		{9000, 9216, []int{1518, 9018, 9022, 9025, 9026}, []int{9027, 9152, 9153, 9216, 16383, 1<<15 - 1}},
		{1966, 2048, []int{1983, 1984, 1985, 1992}, []int{1993, 2048}}, // several buffers may be needed
	} {
		t.Run(fmt.Sprintf("mtu=%d", c.mtu), func(t *testing.T) {
			h := newDeviceHand(t, 8, c.buf, stmmac.WithMTU(c.mtu))
			lay := h.mac.Rx(0).Layout()
			dropped := uint64(0)
			for round := 0; round < 3*h.n; round++ {
				for _, pl := range c.pass {
					if pl > lay.First { // as far as one descriptor goes
						h.fill(r4.RxFD | r4.RDES3(lay.First))
					}
					d3 := r4.RxLD | r4.RDES3(pl)
					if pl <= lay.First {
						d3 |= r4.RxFD
					}
					h.fill(d3)
					if got := h.take(); got != pl-core.FCSLen {
						t.Fatalf("length %d: %d bytes", pl, got)
					}
				}
				for _, pl := range c.drop {
					h.fill(r4.RxFD | r4.RxLD | r4.RDES3(pl))
					if got := h.take(); got != -1 {
						t.Fatalf("length %d gives a frame of %d bytes", pl, got)
					}
					dropped++
					if s := h.mac.Rx(0).Stats(); s.Length+s.Oversize != dropped || s.Drops() != dropped {
						t.Fatalf("length %d: %+v", pl, s)
					}
				}
			}
		})
	}
	// The same from the wire: 1,500 bytes and up to two tags pass.
	r := newRig(t, rigConfig{})
	pass := [][]byte{frame(1514, 1), frame(1518, 2), frame(1522, 3)}
	copy(pass[1][12:], []byte{0x81, 0, 0, 1})
	copy(pass[2][12:], []byte{0x81, 0, 0, 1, 0x81, 0, 0, 2})
	r.wire.deliver(pass[0], frame(1523, 4), pass[1], frame(2000, 5), pass[2])
	r.same(r.recv(6), pass)
	if s := r.mac.Rx(0).Stats(); s.Oversize != 2 || s.Drops() != 2 {
		t.Errorf("%+v", s)
	}
	r.settled()
}

// passAll is a Program that wants the headroom of one and changes nothing.
type passAll struct{}

func (passAll) Run(_ []*pagepool.Buf, v []stmmac.Verdict) {
	for i := range v {
		v[i] = stmmac.VerdictPass
	}
}

// canaries watch the payload of a pool.
type canaries struct {
	*testing.T
	mem    []byte // payload, chunks one stride apart
	stride int
	clean  []byte
	base   uintptr
	bus    int
	lay    core.RxLayout

	front, back int // bytes of bus words that carried garbage beside a frame
}

const canary = 0x77

// guard fills the payload of the pool, which no received frame lies in, with
// canaries.
func guard(t *testing.T, s *spy, p *pagepool.Pool, bus int, lay core.RxLayout) *canaries {
	t.Helper()
	g := &canaries{T: t, bus: bus, lay: lay}
	var two [2]*pagepool.Buf
	if p.AllocBatch(two[:]) != 2 {
		t.Fatal("no buffers")
	}
	// Free buffers of a new pool lie in order.
	x, y := chunk(two[0]), chunk(two[1])
	g.stride = int(max(x, y) - min(x, y))
	if g.stride < p.BufSize() || g.stride > p.BufSize()+2*pagepool.CacheLine {
		t.Fatalf("chunks of %d bytes are %d apart", p.BufSize(), g.stride)
	}
	p.FreeBatch(two[:])
	s.mu.Lock()
	for _, mem := range s.maps {
		if len(mem) > len(g.mem) {
			g.mem = mem
		}
	}
	s.mu.Unlock()
	g.base = uintptr(unsafe.Pointer(unsafe.SliceData(g.mem)))
	g.clean = bytes.Repeat([]byte{canary}, g.stride)
	g.reset()
	return g
}

// chunk is the address of the chunk of b.
func chunk(b *pagepool.Buf) uintptr {
	b.SetLen(1)
	return uintptr(unsafe.Pointer(unsafe.SliceData(b.Bytes()))) - uintptr(b.Offset())
}

func (g *canaries) reset() {
	for rest := g.mem; len(rest) > 0; {
		rest = rest[copy(rest, g.clean):]
	}
}

func (g *canaries) at(i int) []byte {
	if i < 0 || (i+1)*g.stride > len(g.mem) {
		return nil
	}
	return g.mem[i*g.stride:][:g.stride]
}

// frame fails unless the device wrote nothing beside the bus words of the n
// bytes in memory of frame b. It puts the canaries back.
func (g *canaries) frame(b *pagepool.Buf, n int) {
	g.Helper()
	if n > b.FrameLen()+core.FCSLen {
		g.Fatalf("%d bytes in memory, and the frame has %d", n, b.FrameLen())
	}
	if held := g.lay.First; b.Chained() || n > held {
		for p := b.Next(); p != nil; p = p.Next() {
			held += g.lay.Size
		}
		if n > held {
			// The end of the FCS lies alone in a buffer that is free already.
			if d := g.damaged(); d != 0 {
				g.Fatalf("%d bytes were damaged", d)
			}
			g.reset()
			return
		}
	}
	var own []int
	for p := b; p != nil; p = p.Next() {
		own = append(own, int(uintptr(unsafe.Pointer(unsafe.SliceData(p.Bytes())))-g.base)/g.stride)
	}
	for k, i := range own {
		mem, here := g.at(i), g.lay.Size
		if k == 0 {
			here = g.lay.First
		}
		here = min(here, n)
		n -= here
		lo, hi := g.lay.Start&^(g.bus-1), (g.lay.Start+here+g.bus-1)&^(g.bus-1)
		for _, x := range [][]byte{mem[lo:g.lay.Start], mem[g.lay.Start+here : hi]} {
			if bytes.Contains(x, []byte{canary}) {
				g.Fatalf("the device did not write whole bus words: % x", x)
			}
		}
		g.front += g.lay.Start - lo
		g.back += hi - g.lay.Start - here
		if !bytes.Equal(mem[:lo], g.clean[:lo]) {
			g.Fatalf("the headroom of chunk %d was written: % x", i, mem[:lo])
		}
		if !bytes.Equal(mem[hi:], g.clean[hi:]) {
			g.Fatalf("chunk %d was written behind %d bytes at %d: % .40x", i, here, g.lay.Start, mem[hi:])
		}
		for _, j := range []int{i - 1, i + 1} {
			if x := g.at(j); x != nil && !slices.Contains(own, j) && !bytes.Equal(x, g.clean) {
				g.Fatalf("the neighbour %d of chunk %d was written", j, i)
			}
		}
		copy(mem[lo:hi], g.clean)
	}
}

// damaged is how many bytes of all chunks were written that no buffer of the
// layout has: in front of the start's bus word, behind the programmed size.
func (g *canaries) damaged() int {
	n := 0
	lo := g.lay.Start &^ (g.bus - 1)
	hi := lo + g.lay.Size
	for i := 0; g.at(i) != nil; i++ {
		mem := g.at(i)
		n += len(mem) - bytes.Count(mem, []byte{canary})
		if hi <= len(mem) {
			n -= hi - lo - bytes.Count(mem[lo:hi], []byte{canary})
		}
	}
	return n
}

// end is the receiving side of a rig or of rings, for canaries.
type end struct {
	*testing.T
	wire *testWire
	gen  generation
	dev  *sim.Device
	spy  *spy
	pool *pagepool.Pool
	step func()
	recv func([]*pagepool.Buf) int
	stat func() core.RxStats
	lay  core.RxLayout
	done func()
}

// newEnd opens a receiver whose frames start at offset start of a buffer of
// size bytes: through Open, where it can be told to, and else on the rings.
func newEnd(t *testing.T, start, size, bus, mtu int) *end {
	t.Helper()
	sc := sim.Config{BusBytes: bus, Faults: sim.Faults{WholeBusWords: true}}
	var headroom int
	var opts []stmmac.Option
	switch {
	case start >= pagepool.XDPHeadroom:
		headroom = pagepool.XDPHeadroom
		opts = append(opts, stmmac.WithProgram(passAll{}))
	case start >= pagepool.NetSKBPad:
		headroom = pagepool.NetSKBPad
	default:
		lay, err := core.ChooseRxLayout(mtu, size, 0, start, on(t).limits().rxBuf)
		if err != nil {
			t.Fatal(err)
		}
		r := newRings(t, ringsConfig{sim: sc, bufs: 64, bufSize: size, lay: lay})
		return &end{T: t, wire: r.wire, gen: r.gen, dev: r.dev, spy: r.spy, pool: r.pool, step: r.step, recv: r.rx.Recv, stat: r.rx.Stats, lay: lay, done: r.settled}
	}
	opts = append(opts, stmmac.WithNetIPAlign(start-headroom), stmmac.WithMTU(mtu), stmmac.WithRings(16, 16))
	r := newRig(t, rigConfig{sim: sc, bufs: 64, bufSize: size, opts: opts})
	r.wire.elastic = true
	q := r.mac.Rx(0)
	return &end{T: t, wire: r.wire, gen: r.gen, dev: r.dev, spy: r.spy, pool: r.pool, step: r.step, recv: q.Recv, stat: q.Stats, lay: q.Layout(),
		done: func() { r.recv(1); r.settled() }}
}

// rxSize is the size of buffers that the device was told, bytes.
func (e *end) rxSize() int {
	e.Helper()
	csr, err := e.dev.Region(0)
	if err != nil {
		e.Fatal(err)
	}
	return e.gen.rxSize(csr, e.spy)
}

// check delivers frames one at a time and looks at each with its surroundings.
func (e *end) check(g *canaries, list ...[]byte) {
	e.Helper()
	for _, f := range list {
		b := e.one(f)
		if b == nil {
			e.Fatalf("no frame, want one of %d bytes: %+v", len(f), e.stat())
		}
		got := make([]byte, b.FrameLen())
		b.CopyTo(got)
		if !bytes.Equal(got, f) {
			e.Fatalf("frame of %d bytes differs: got %d bytes % .40x…, want % .40x…", len(f), len(got), got, f)
		}
		g.frame(b, len(f)+core.FCSLen)
		e.pool.Free(b)
	}
}

// one delivers a frame and returns what comes out of it, or nil.
func (e *end) one(f []byte) (b *pagepool.Buf) {
	e.Helper()
	e.wire.deliver(f)
	var bufs [4]*pagepool.Buf
	for range 4 { // a call ends at the end of the ring
		e.step()
		switch k := e.recv(bufs[:]); {
		case k > 1 || k == 1 && b != nil:
			e.Fatal("more than one frame")
		case k == 1:
			b = bufs[0]
		}
	}
	return b
}

// drop delivers a frame that must not come out, nor be written beside buffers.
func (e *end) drop(g *canaries, n int) {
	e.Helper()
	if b := e.one(frame(n, uint64(n))); b != nil {
		e.Fatalf("a frame of %d bytes came out with %d", n, b.FrameLen())
	}
	if d := g.damaged(); d != 0 {
		e.Fatalf("a frame of %d bytes damaged %d bytes", n, d)
	}
	g.reset()
}

// TestD17D20Matrix: every receive offset, buffer size and bus width with a
// device that writes whole bus words and takes the size from the start rounded
// down (D17, D20). The frames go up to the MTU and beyond a buffer.
func TestD17D20Matrix(t *testing.T) { onEach(t, testD17D20Matrix) }

func testD17D20Matrix(t *testing.T) {
	front, single := 0, 0
	var all [][]byte
	for n := 60; n <= 1518; n++ {
		all = append(all, frame(n, uint64(n)))
	}
	for _, size := range []int{1536, 2048, 8192} {
		for _, bus := range []int{4, 8, 16} {
			for _, start := range []int{0, 2, 8, 16, 64, 66, 256, 258} {
				t.Run(fmt.Sprintf("size=%d/bus=%d/start=%d", size, bus, start), func(t *testing.T) {
					e := newEnd(t, start, size, bus, 1500)
					lay := e.lay
					// The offset is the one that was asked for, unless a frame
					// then does not fit behind it.
					if fits := (size-start)&^63-start%16 >= core.MaxFrameLen(1500); fits && lay.Start != start || !fits && lay.Start%64 != 0 {
						t.Fatalf("layout %+v", lay)
					}
					rbsz := e.rxSize()
					if rbsz != lay.Size || rbsz%64 != 0 || lay.Start+rbsz > size {
						t.Fatalf("the device was told %d bytes, layout %+v", rbsz, lay)
					}
					g := guard(t, e.spy, e.pool, bus, lay)
					e.check(g, all...)
					front += g.front
					if lay.Single {
						single++
					}
					// Longer than the MTU, and longer than a buffer: dropped and
					// counted, and nothing but buffers written.
					beyond := []int{1523, lay.First - 4, lay.First - 3, lay.First, lay.Size + 1, size, size + 64, 9000}
					want := uint64(0)
					for _, n := range beyond {
						if n <= 1522 {
							continue
						}
						e.drop(g, n)
						// A bus that is narrower than the driver assumes lets a
						// first buffer hold a few bytes more than it counts with.
						want++
						if s := e.stat(); s.Oversize+s.Length != want || s.Drops() != want {
							t.Fatalf("%d bytes: %+v", n, s)
						}
					}
					e.check(g, frame(60, 1), frame(1518, 2))
					e.done()
				})
			}
		}
	}
	if front == 0 || single == 0 {
		t.Errorf("%d bytes of garbage in front of frames, %d layouts with an offset that no bus has", front, single)
	}
}

// TestD17: the size that the device is told leaves out what lies in front of
// the data. The pool keeps no tailroom, so the canaries behind are the gap
// between two chunks and the next chunk.
func TestD17(t *testing.T) { onEach(t, testD17) }

func testD17(t *testing.T) {
	const chunkSize, headroom = 2048, pagepool.XDPHeadroom
	sizes := []int{chunkSize - headroom - 1, chunkSize - headroom, chunkSize - headroom + 1, chunkSize} // in memory, with FCS
	for _, c := range []struct {
		name string
		mtu  int
		pass int // how many of sizes
	}{
		{"dropped", 1500, 0},
		{"one buffer", chunkSize - headroom - 26, 2},
		{"several buffers", 4000, 4},
	} {
		t.Run(c.name, func(t *testing.T) {
			e := newEnd(t, headroom, chunkSize, 8, c.mtu)
			if rbsz := e.rxSize(); rbsz <= 0 || rbsz > chunkSize-headroom || rbsz%16 != 0 {
				t.Fatalf("RBSZ is %d", rbsz)
			}
			g := guard(t, e.spy, e.pool, 8, e.lay)
			for i, n := range sizes {
				if i < c.pass {
					e.check(g, frame(n-core.FCSLen, uint64(n)))
					continue
				}
				e.drop(g, n-core.FCSLen)
			}
			if s := e.stat(); s.Oversize != uint64(len(sizes)-c.pass) || s.Drops() != s.Oversize {
				t.Errorf("%+v", s)
			}
			e.done()
		})
	}
	// A buffer with little room behind the longest frame: the device counts it
	// from the start rounded down to its bus, so an offset of more than that room
	// is not used.
	for off := range 16 {
		e := newEnd(t, pagepool.NetSKBPad+off, 1664, 16, 1500)
		room := 1664 - pagepool.NetSKBPad
		if off > 0 {
			room -= 64
		}
		if fits := room-off >= core.MaxFrameLen(1500); fits != (e.lay.Start == pagepool.NetSKBPad+off) {
			t.Errorf("offset %d: layout %+v", off, e.lay)
		}
		e.check(guard(t, e.spy, e.pool, 16, e.lay), frame(1522, 1), frame(1521, 2), frame(60, 3))
		e.done()
	}
	// The control: the size of the chunk, told as it is, or as much of it as can be
	// told, reaches the neighbour.
	t.Run("wrong size", func(t *testing.T) {
		told := min(chunkSize, on(t).limits().rxBuf)
		lay := core.RxLayout{Start: headroom, Size: told, First: told, MaxFrame: core.MaxFrameLen(1500)}
		r := newRings(t, ringsConfig{bufs: 64, lay: lay})
		right := lay
		right.Size = chunkSize - headroom
		g := guard(t, r.spy, r.pool, 8, right)
		for _, n := range sizes {
			r.wire.deliver(frame(n-core.FCSLen, 1))
			r.step()
			r.recv(1)
			if d := g.damaged(); (d > 0) != (n > right.Size) {
				t.Errorf("%d bytes: %d were damaged", n, d)
			}
			g.reset()
		}
		// The last chunk's buffer may end behind the pool.
		r.tolerate = append(r.tolerate, sim.BufferOutside)
	})
}

// TestD20: a device that writes whole bus words destroys nothing that lives, at
// any offset of the start in a bus word and any end.
func TestD20(t *testing.T) {
	for _, bus := range []int{4, 8, 16} {
		front, back := 0, 0
		for _, base := range []int{0, pagepool.NetSKBPad, pagepool.XDPHeadroom} {
			for off := range 16 {
				e := newEnd(t, base+off, 2048, bus, 1500)
				if e.lay.Start != base+off {
					t.Fatalf("layout %+v", e.lay)
				}
				g := guard(t, e.spy, e.pool, bus, e.lay)
				for n := 60; n < 60+bus; n++ {
					e.check(g, frame(n, 1), frame(n+1000, 2))
				}
				e.done()
				front, back = front+g.front, back+g.back
			}
		}
		if front == 0 || back == 0 {
			t.Errorf("bus %d: %d bytes in front and %d behind were garbage", bus, front, back)
		}
	}
	// The control: with an offset that is no multiple of the bus width a frame
	// must not go on in a second buffer; the device ignores the low bits there.
	lay := core.RxLayout{Start: 66, Size: 256, First: 256 - 66%8, MaxFrame: core.MaxFrameLen(1500)}
	r := newRings(t, ringsConfig{bufSize: 512, lay: lay})
	f := frame(400, 1)
	r.wire.deliver(f)
	got := r.recv(2)
	if len(got) != 1 || len(got[0]) != len(f) {
		t.Fatalf("%d frames", len(got))
	}
	if bytes.Equal(got[0], f) {
		t.Error("a continuation at an offset arrives whole")
	}
	if !bytes.Equal(got[0][:lay.First], f[:lay.First]) {
		t.Error("the first buffer is damaged")
	}
}
