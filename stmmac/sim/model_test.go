package sim

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"os"
	"slices"
	"testing"
	"time"
	"unsafe"

	"github.com/gostmmac/gostmmac/barrier"
	"github.com/gostmmac/gostmmac/mmio"
	r4 "github.com/gostmmac/gostmmac/stmmac/internal/regs/gmac4reg"
)

// testWire is a wire in memory: frames to receive, frames that were sent.
type testWire struct {
	rx      []Frame
	tx      []Frame
	full    bool
	elastic bool
	notify  func()
	closed  int
}

func (w *testWire) Transmit(f Frame) bool {
	if w.full {
		return false
	}
	w.tx = append(w.tx, Frame{Data: bytes.Clone(f.Data), BadFCS: f.BadFCS})
	return true
}

func (w *testWire) Receive() (Frame, bool) {
	if len(w.rx) == 0 {
		return Frame{}, false
	}
	f := w.rx[0]
	w.rx = w.rx[1:]
	return f, true
}

func (w *testWire) Elastic() bool   { return w.elastic }
func (w *testWire) Notify(f func()) { w.notify = f }
func (w *testWire) Close() error    { w.closed++; return nil }

// inject puts frames on the wire.
func (w *testWire) inject(frames ...[]byte) {
	for _, f := range frames {
		w.rx = append(w.rx, Frame{Data: f})
	}
}

var testMAC = [6]byte{0x02, 0x11, 0x22, 0x33, 0x44, 0x55}

// frameTo is a frame of n bytes to dst with a payload that tells seed and place.
func frameTo(dst [6]byte, n int, seed byte) []byte {
	f := make([]byte, max(n, headerLen))
	copy(f, dst[:])
	copy(f[6:], []byte{2, 0, 0, 0, 0, 9})
	binary.BigEndian.PutUint16(f[12:], 0x88b5)
	for i := headerLen; i < n; i++ {
		f[i] = seed + byte(i*7)
	}
	return f[:n]
}

// long says whether the cases run with all their counts.
func long() bool { return os.Getenv("GOSTMMAC_LONG") == "1" }

func testFrame(n int, seed byte) []byte { return frameTo(testMAC, n, seed) }

// rig is a driver at the level of registers: it does what it is told and no more.
type rig struct {
	t     testing.TB
	d     *Device
	r     mmio.Region
	w     *testWire
	clock *ManualClock
	cfg   Config

	n     int // descriptors in a ring
	rbsz  int
	dsl   int
	start int // offset of a receive buffer in its slot

	rxRing, txRing []byte
	rxBase, txBase uint64
	rxMem, txMem   []byte
	rxIOVA, txIOVA uint64
	slot           int
	chans          [maxQueues]mmio.Region

	rxHead, rxTail int // next to look at, next to hand over
	txHead, txTail int
}

type rigOption func(*rig)

func withConfig(f func(*Config)) rigOption { return func(g *rig) { f(&g.cfg) } }
func withRing(n int) rigOption             { return func(g *rig) { g.n = n } }
func withRBSZ(n int) rigOption             { return func(g *rig) { g.rbsz = n } }
func withSlot(n int) rigOption             { return func(g *rig) { g.slot = n } }
func withDSL(n int) rigOption              { return func(g *rig) { g.dsl = n } }
func withStart(n int) rigOption            { return func(g *rig) { g.start = n } }
func withFaults(f Faults) rigOption        { return func(g *rig) { g.cfg.Faults = f } }
func withProfile(p Profile) rigOption      { return func(g *rig) { g.cfg.Profile = p } }

// newRig makes a device and memory for one channel each way; nothing is programmed.
func newRig(t testing.TB, opts ...rigOption) *rig {
	t.Helper()
	g := &rig{t: t, w: &testWire{}, clock: NewManualClock(), n: 16, rbsz: 2048, slot: 4096}
	g.cfg = Config{Inline: true, OwnMemory: true}
	for _, o := range opts {
		o(g)
	}
	if g.cfg.Clock == nil {
		g.cfg.Clock = g.clock
	}
	d, err := New(g.cfg, g.w)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.Close() })
	g.d = d
	g.r, err = d.Region(0)
	if err != nil {
		t.Fatal(err)
	}
	alloc := func(n int) ([]byte, uint64) {
		mem, iova, err := d.AllocDMA(n, 0)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := d.UnmapDMA(iova, n); err != nil && !errors.Is(err, ErrNotMapped) {
				t.Error(err)
			}
		})
		return mem, iova
	}
	g.rxRing, g.rxBase = alloc(g.n * g.stride())
	g.txRing, g.txBase = alloc(g.n * g.stride())
	g.rxMem, g.rxIOVA = alloc(g.n * g.slot)
	g.txMem, g.txIOVA = alloc(g.n * g.slot)
	return g
}

func (g *rig) bus() int {
	if g.cfg.BusBytes == 0 {
		return 8
	}
	return g.cfg.BusBytes
}

func (g *rig) stride() int { return 16 + g.dsl*g.bus() }

func (g *rig) ch(c int) mmio.Region {
	if g.chans[c] == nil {
		g.chans[c] = g.d.cfg.Layout.DMAChannel(g.r, c)
	}
	return g.chans[c]
}

func (g *rig) mtl(q int) mmio.Region { return g.d.cfg.Layout.MTLQueue(g.r, q) }

// setup programs everything but the start bits.
func (g *rig) setup() {
	g.t.Helper()
	g.reset()
	if g.d.cfg.AddrWidth > 32 {
		r4.DMASysBusMode.Store(g.r, r4.EAME)
	}
	c, q := g.ch(0), g.mtl(0)
	r4.DMACHControl.Store(c, r4.DSL.Of(uint32(g.dsl)))
	r4.DMACHTxDescListHAddr.Store(c, uint32(g.txBase>>32))
	r4.DMACHTxDescListAddr.Store(c, uint32(g.txBase))
	r4.DMACHTxDescTailPointer.Store(c, uint32(g.txBase))
	r4.DMACHTxDescRingLength.Store(c, uint32(g.n-1))
	r4.DMACHRxDescListHAddr.Store(c, uint32(g.rxBase>>32))
	r4.DMACHRxDescListAddr.Store(c, uint32(g.rxBase))
	r4.DMACHRxDescTailPointer.Store(c, uint32(g.rxBase))
	r4.DMACHRxDescRingLength.Store(c, uint32(g.n-1))
	r4.MACRxQCtrl0.Store(g.r, r4.RxQDCB)
	r4.MTLRxQOperationMode.Store(q, r4.RSF|r4.RQS.Of(uint32(g.d.cfg.RxFIFO/g.d.cfg.RxQueues/256-1)))
	r4.MTLTxQOperationMode.Store(q, r4.TSF|r4.TXQEN.Of(r4.TXQENEnabled)|r4.TQS.Of(uint32(g.d.cfg.TxFIFO/g.d.cfg.TxQueues/256-1)))
	r4.DMACHRxControl.Store(c, r4.RBSZ.Of(uint32(g.rbsz)))
	g.setMAC(0, testMAC)
	r4.MACConfiguration.Store(g.r, r4.DM)
	g.rxHead, g.rxTail, g.txHead, g.txTail = 0, 0, 0, 0
}

func (g *rig) reset() {
	g.t.Helper()
	r4.DMAMode.Store(g.r, r4.SWR)
	for range 10 {
		if r4.DMAMode.Load(g.r)&r4.SWR == 0 {
			return
		}
		g.clock.Advance(resetTime)
	}
	g.t.Fatal("the software reset does not end")
}

func (g *rig) setMAC(i int, a [6]byte) {
	r4.MACAddressHigh.At(i, r4.AddressStride).Store(g.r, r4.AE|r4.AddressHigh(a[5])<<8|r4.AddressHigh(a[4]))
	r4.MACAddressLow.At(i, r4.AddressStride).Store(g.r, binary.LittleEndian.Uint32(a[:]))
}

// run starts both DMA channels and the MAC.
func (g *rig) run() {
	c := g.ch(0)
	r4.DMACHRxControl.Update(c, 0, r4.SR)
	r4.DMACHTxControl.Update(c, 0, r4.ST)
	r4.MACConfiguration.Update(g.r, 0, r4.RE|r4.TE)
}

// open is setup, a full receive ring but for one descriptor, and run.
func (g *rig) open() {
	g.t.Helper()
	g.setup()
	g.post(max(g.n-1, 0))
	g.run()
}

func (g *rig) desc(ring []byte, i int) *[4]uint32 {
	return (*[4]uint32)(unsafe.Pointer(&ring[i%g.n*g.stride()]))
}

func (g *rig) put(ring []byte, i int, w [4]uint32) {
	d := g.desc(ring, i)
	d[0], d[1], d[2] = w[0], w[1], w[2]
	barrier.DMAWrite()
	barrier.StoreOwn(&d[3], w[3])
}

func (g *rig) get(ring []byte, i int) (w [4]uint32) {
	d := g.desc(ring, i)
	w[3] = barrier.LoadOwn(&d[3])
	barrier.DMARead()
	w[0], w[1], w[2] = d[0], d[1], d[2]
	return w
}

func (g *rig) rxAddr(i int) uint64 { return g.rxIOVA + uint64(i%g.n*g.slot+g.start) }

func (g *rig) rxBuf(i, n int) []byte { return g.rxMem[i%g.n*g.slot+g.start:][:n] }

const rxRead = uint32(r4.RxOWN | r4.RxIOC | r4.RxBUF1V)

// arm writes receive descriptor i without telling the device.
func (g *rig) arm(i int, d3 uint32) {
	a := g.rxAddr(i)
	g.put(g.rxRing, i, [4]uint32{uint32(a), uint32(a >> 32), 0, d3})
}

func (g *rig) ringTail(base uint64, i int) uint32 { return uint32(base) + uint32(i%g.n*g.stride()) }

// post hands n more receive descriptors over.
func (g *rig) post(n int) {
	for range n {
		g.arm(g.rxTail, rxRead)
		g.rxTail++
	}
	r4.DMACHRxDescTailPointer.Store(g.ch(0), g.ringTail(g.rxBase, g.rxTail))
}

// recv takes the next received frame without its FCS, one descriptor each; ok is
// false when there is none.
func (g *rig) recv() (data []byte, w [4]uint32, ok bool) {
	w = g.get(g.rxRing, g.rxHead)
	if g.rxHead == g.rxTail || r4.RDES3(w[3])&r4.RxOWN != 0 {
		return nil, w, false
	}
	n := int(r4.RxPL.Get(r4.RDES3(w[3])))
	if n < fcsLen || n > g.slot-g.start {
		g.t.Fatalf("descriptor %d has length %d: %08x", g.rxHead%g.n, n, w)
	}
	data = bytes.Clone(g.rxBuf(g.rxHead, n-fcsLen))
	g.rxHead++
	return data, w, true
}

// mustRecv takes a frame and compares it.
func (g *rig) mustRecv(want []byte) [4]uint32 {
	g.t.Helper()
	got, w, ok := g.recv()
	if !ok {
		g.t.Fatalf("no frame; descriptor %d is %08x, status %v", g.rxHead%g.n, w, r4.DMACHStatus.Load(g.ch(0)))
	}
	if !bytes.Equal(got, want) {
		g.t.Fatalf("frame of %d bytes differs from the one of %d that was sent", len(got), len(want))
	}
	return w
}

func (g *rig) noRecv() {
	g.t.Helper()
	if got, w, ok := g.recv(); ok {
		g.t.Fatalf("unexpected frame of %d bytes: %08x", len(got), w)
	}
}

const txFD, txLD = uint32(r4.TxFD), uint32(r4.TxLD)

// queue writes the descriptors of a frame of one or more pieces; the first OWN last.
func (g *rig) queue(ioc bool, pieces ...[]byte) {
	total := 0
	for _, p := range pieces {
		total += len(p)
	}
	var first [4]uint32
	for k, p := range pieces {
		i := g.txTail + k
		copy(g.txMem[i%g.n*g.slot:], p)
		a := g.txIOVA + uint64(i%g.n*g.slot)
		w := [4]uint32{uint32(a), uint32(a >> 32), uint32(len(p)), uint32(r4.TxOWN)}
		if k == 0 {
			w[3] |= txFD | uint32(total)
		}
		if k == len(pieces)-1 {
			w[3] |= txLD
			if ioc {
				w[2] |= uint32(r4.IOC)
			}
		}
		if k == 0 {
			first = w
		} else {
			g.put(g.txRing, i, w)
		}
	}
	g.put(g.txRing, g.txTail, first)
	g.txTail += len(pieces)
}

func (g *rig) ring() {
	r4.DMACHTxDescTailPointer.Store(g.ch(0), g.ringTail(g.txBase, g.txTail))
}

func (g *rig) send(pieces ...[]byte) {
	g.queue(true, pieces...)
	g.ring()
}

// reap counts finished transmit descriptors.
func (g *rig) reap() (n int, last [4]uint32) {
	for g.txHead != g.txTail {
		w := g.get(g.txRing, g.txHead)
		if w[3]&uint32(r4.TxOWN) != 0 {
			break
		}
		g.txHead++
		n++
		last = w
	}
	return n, last
}

func (g *rig) step() int { return g.d.Step(1 << 20) }

// status reads and clears the channel status.
func (g *rig) status() r4.CHStatus {
	v := r4.DMACHStatus.Load(g.ch(0))
	r4.DMACHStatus.Store(g.ch(0), v)
	return v
}

// kinds are the kinds of violations so far, each once.
func (g *rig) kinds() (ks []ViolationKind) {
	for _, v := range g.d.Audit() {
		if !slices.Contains(ks, v.Kind) {
			ks = append(ks, v.Kind)
		}
	}
	return ks
}

// clean fails the test for any violation.
func (g *rig) clean() {
	g.t.Helper()
	for _, v := range g.d.Audit() {
		g.t.Error(v)
	}
}

func TestLoopThroughRegisters(t *testing.T) {
	g := newRig(t)
	g.open()
	for k := range 5 * g.n {
		f := testFrame(60+k*17%1400, byte(k))
		g.w.inject(f)
		g.step()
		g.mustRecv(f)
		g.post(1)
		g.send(f)
		g.step()
		if n, last := g.reap(); n != 1 || last[3] != txFD|txLD {
			t.Fatalf("round %d: %d descriptors back, the last %08x", k, n, last)
		}
		if len(g.w.tx) != 1 || !bytes.Equal(g.w.tx[0].Data, f) || g.w.tx[0].BadFCS {
			t.Fatalf("round %d: wrong frame on the wire", k)
		}
		g.w.tx = nil
	}
	g.clean()
}

func TestGoroutine(t *testing.T) {
	g := newRig(t, withConfig(func(c *Config) { c.Inline = false; c.OwnMemory = true }))
	v, err := g.d.Interrupt(0)
	if err != nil {
		t.Fatal(err)
	}
	g.open()
	r4.DMACHInterruptEnable.Store(g.ch(0), r4.NIE|r4.TIE)
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	for k := range 1000 {
		g.send(testFrame(60+k%1000, byte(k)))
		for done := 0; done == 0; {
			n, _ := g.reap()
			if done = n; n != 0 {
				break
			}
			if _, err := v.Wait(ctx); err != nil {
				t.Fatal(err)
			}
			g.status()
		}
	}
	if err := g.d.Close(); err != nil {
		t.Fatal(err)
	}
	if len(g.w.tx) != 1000 {
		t.Fatalf("%d frames on the wire", len(g.w.tx))
	}
	for k, f := range g.w.tx {
		if !bytes.Equal(f.Data, testFrame(60+k%1000, byte(k))) {
			t.Fatalf("frame %d differs", k)
		}
	}
	g.clean()
}
