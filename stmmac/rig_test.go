package stmmac_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gostmmac/gostmmac/mmio"
	"github.com/gostmmac/gostmmac/pagepool"
	"github.com/gostmmac/gostmmac/stmmac"
	"github.com/gostmmac/gostmmac/stmmac/sim"
)

// scale divides the counts of the public cases unless the long run is asked for.
func scale(t *testing.T, n int) int {
	t.Helper()
	if os.Getenv("GOSTMMAC_LONG") == "1" {
		return n
	}
	short := max(n/100, 10)
	if short < n {
		t.Logf("%d rounds instead of %d; GOSTMMAC_LONG=1 runs all", short, n)
	}
	return short
}

// testWire is a wire in the hands of a test: what it was given to deliver
// arrives at the MAC, and what the MAC sends is kept.
type testWire struct {
	mu      sync.Mutex
	in      []sim.Frame
	sent    [][]byte
	blocked bool // the wire takes no frame from the MAC
	elastic bool
	notify  func()
}

func (w *testWire) Transmit(f sim.Frame) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.blocked {
		return false
	}
	w.sent = append(w.sent, bytes.Clone(f.Data))
	return true
}

func (w *testWire) Receive() (sim.Frame, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.in) == 0 {
		return sim.Frame{}, false
	}
	f := w.in[0]
	w.in = w.in[1:]
	return f, true
}

func (w *testWire) Elastic() bool   { return w.elastic }
func (w *testWire) Notify(f func()) { w.notify = f }
func (w *testWire) Close() error    { return nil }

// deliver lets frames arrive.
func (w *testWire) deliver(frames ...[]byte) {
	w.mu.Lock()
	for _, f := range frames {
		w.in = append(w.in, sim.Frame{Data: f})
	}
	w.mu.Unlock()
	if w.notify != nil {
		w.notify()
	}
}

// take returns what was sent since the last call.
func (w *testWire) take() [][]byte {
	w.mu.Lock()
	defer w.mu.Unlock()
	s := w.sent
	w.sent = nil
	return s
}

// rig is a MAC on an inline model with a wire in the hands of the test.
type rig struct {
	*testing.T
	wire  *testWire
	clock *sim.ManualClock
	dev   *sim.Device
	gen   generation
	via   stmmac.Device // what the MAC opens: what rigConfig.wrap made of dev
	spy   *spy          // between the two, unless there is a wrap of another kind
	pool  *pagepool.Pool
	mac   *stmmac.MAC
	opts  []stmmac.Option
	base  int            // buffers in use when the MAC was open and idle
	full  map[int]uint64 // what overflows has seen, by queue
	// tolerate are violations that the case provokes.
	tolerate []sim.ViolationKind
}

// rigConfig is what a test says of its rig; the zero value is a single-queue
// GMAC4 5.20, or a GMAC 3.70 where a test runs on that.
type rigConfig struct {
	sim     sim.Config
	bufs    int // buffers of the pool; 0: 2,048
	bufSize int // bytes; 0: 2,048
	opts    []stmmac.Option
	wrap    func(*sim.Device) stmmac.Device // stands between the MAC and the model; nil: a spy
}

// gigabit is a fixed link.
var gigabit = stmmac.Link{Up: true, Speed: 1000, FullDuplex: true}

// noSelfTest is for tests that count what the model does: the frames of the
// self-test would be among it.
var noSelfTest = stmmac.WithConfig(func(c *stmmac.Config) { c.SelfTest = false })

// newRig opens a MAC. When the test ends it closes it and fails if a buffer, a
// mapping or the audit is not clean.
func newRig(t *testing.T, c rigConfig) *rig {
	t.Helper()
	r := &rig{T: t, wire: &testWire{}, clock: sim.NewManualClock(), gen: on(t)}
	c.sim.Inline, c.sim.Clock, c.sim.Generation = true, r.clock, r.gen.model()
	var err error
	if r.dev, err = sim.New(c.sim, r.wire); err != nil {
		t.Fatal(err)
	}
	if c.wrap == nil {
		c.wrap = func(d *sim.Device) stmmac.Device { return newSpy(d) }
	}
	r.via = c.wrap(r.dev)
	r.spy, _ = r.via.(*spy)
	if c.bufs == 0 {
		c.bufs = 2048
	}
	if c.bufSize == 0 {
		c.bufSize = 2048
	}
	if r.pool, err = pagepool.New(r.dev, c.bufs, pagepool.WithBufSize(c.bufSize)); err != nil {
		t.Fatal(err)
	}
	r.opts = append([]stmmac.Option{
		r.gen.options(c.sim), stmmac.WithName("sim"), stmmac.WithPool(r.pool),
		stmmac.WithClock(rigClock{r.clock, r.dev}), stmmac.WithPromiscuous(),
		stmmac.WithHardwareAddr([]byte{2, 0, 0, 0, 0, 1}), stmmac.WithLink(gigabit),
		noSelfTest,
	}, c.opts...)
	r.open()
	t.Cleanup(r.finish)
	return r
}

// rigClock is the clock of a MAC on an inline model: while the driver sleeps the
// model goes on.
type rigClock struct {
	*sim.ManualClock
	dev *sim.Device
}

func (c rigClock) Sleep(ctx context.Context, d time.Duration) error {
	for c.dev.Step(1<<20) > 0 {
	}
	return c.ManualClock.Sleep(ctx, d)
}

// pass lets d go by, 10 ms at a time, with everything that is due in it.
func (r *rig) pass(d time.Duration) {
	for end := r.clock.Now() + d; r.clock.Now() < end; {
		r.clock.Advance(min(10*time.Millisecond, end-r.clock.Now()))
		r.step()
		r.mac.MonitorPass()
	}
}

func (r *rig) open() {
	r.Helper()
	var err error
	if r.mac, err = stmmac.Open(r.Context(), r.via, r.opts...); err != nil {
		r.Fatal(err)
	}
	r.base = r.pool.InUse()
}

// finish closes everything and looks for what was left behind.
func (r *rig) finish() {
	if err := r.mac.Close(); err != nil {
		r.Error(err)
	}
	if err := r.pool.Close(); err != nil {
		r.Error(err)
	}
	if n := r.pool.Misfreed(); n != 0 {
		r.Errorf("%d buffers were freed twice", n)
	}
	r.checkAudit()
	if err := r.dev.Close(); err != nil {
		r.Error(err)
	}
}

// checkAudit fails on every violation that is not tolerated.
func (r *rig) checkAudit() {
	r.Helper()
next:
	for _, v := range r.dev.Audit() {
		for _, k := range r.tolerate {
			if v.Kind == k {
				continue next
			}
		}
		r.Errorf("audit: %v", v)
	}
}

// step lets the model do all that it can.
func (r *rig) step() {
	for r.dev.Step(1<<20) > 0 {
	}
}

// recv takes up to n frames, steps in between, and copies and frees them.
func (r *rig) recv(n int) [][]byte {
	r.Helper()
	return r.recvQ(0, n)
}

func (r *rig) recvQ(q, n int) [][]byte { return receive(r.pool, n, r.step, r.mac.Rx(q).Recv) }

// receive takes up to n frames, steps in between, and copies and frees them.
func receive(pool *pagepool.Pool, n int, step func(), recv func([]*pagepool.Buf) int) [][]byte {
	var out [][]byte
	bufs := make([]*pagepool.Buf, 64)
	for idle := 0; idle < 3 && len(out) < n; {
		step()
		k := recv(bufs[:min(len(bufs), n-len(out))])
		if k == 0 {
			idle++
			continue
		}
		idle = 0
		for _, b := range bufs[:k] {
			f := make([]byte, b.FrameLen())
			b.CopyTo(f)
			out = append(out, f)
		}
		pool.FreeBatch(bufs[:k])
	}
	return out
}

// buf returns a buffer, or a chain of buffers of at most each bytes, with the
// frame in it.
func (r *rig) buf(frame []byte, each int) *pagepool.Buf {
	r.Helper()
	return chain(r.T, r.pool, frame, each)
}

// chain is a frame in buffers of at most each bytes, in one if it is empty.
func chain(t *testing.T, pool *pagepool.Pool, frame []byte, each int) *pagepool.Buf {
	t.Helper()
	var head, tail *pagepool.Buf
	for len(frame) > 0 || head == nil {
		b, err := pool.Alloc()
		if err != nil {
			t.Fatal(err)
		}
		n := min(len(frame), each)
		if !b.SetData(frame[:n]) {
			t.Fatalf("%d bytes do not fit a buffer", n)
		}
		frame = frame[n:]
		if head == nil {
			head = b
		} else {
			tail.SetNext(b)
		}
		tail = b
	}
	return head
}

// send sends frames one by one and fails if one is not taken.
func (r *rig) send(frames ...[]byte) {
	r.Helper()
	for _, f := range frames {
		n, err := r.mac.Tx(0).Send([]*pagepool.Buf{r.buf(f, len(f))})
		if n != 1 || err != nil {
			r.Fatalf("send took %d: %v", n, err)
		}
	}
}

// settled fails unless all buffers but those of the idle MAC are free.
func (r *rig) settled() {
	r.Helper()
	r.step()
	for q := range r.numTx() {
		r.mac.Tx(q).Reap(nil)
	}
	if n := r.pool.InUse(); n != r.base {
		r.Errorf("%d buffers are in use, %d when idle: %v", n, r.base, r.pool.Holders())
	}
}

func (r *rig) numTx() int {
	_, tx := r.mac.NumQueues()
	return tx
}

// frame returns a frame of n bytes with a number in it and a payload that
// follows from both.
func frame(n int, seq uint64) []byte {
	f := make([]byte, n)
	copy(f, []byte{2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 0x88, 0xb5})
	x := seq*0x9e3779b97f4a7c15 + uint64(n)
	for i := 14; i < n; i++ {
		x ^= x << 13
		x ^= x >> 7
		x ^= x << 17
		f[i] = byte(x)
	}
	if n >= 22 {
		binary.BigEndian.PutUint64(f[14:], seq)
	}
	return f
}

// frames returns n frames of one length, numbered from seq.
func frames(n, length int, seq uint64) [][]byte {
	var out [][]byte
	for i := range n {
		out = append(out, frame(length, seq+uint64(i)))
	}
	return out
}

// same fails unless both lists hold the same frames in the same order.
func (r *rig) same(got, want [][]byte) {
	r.Helper()
	if len(got) != len(want) {
		r.Errorf("%d frames, want %d", len(got), len(want))
	}
	for i := range min(len(got), len(want)) {
		if !bytes.Equal(got[i], want[i]) {
			r.Fatalf("frame %d differs: %d bytes % .40x…, want %d bytes % .40x…", i, len(got[i]), got[i], len(want[i]), want[i])
		}
	}
}

// mustFail fails unless err is target and its text has all of words.
func mustFail(t *testing.T, err, target error, words ...string) {
	t.Helper()
	if !errors.Is(err, target) {
		t.Fatalf("error %v is not %v", err, target)
	}
	for _, w := range words {
		if !strings.Contains(err.Error(), w) {
			t.Errorf("error %q does not say %q", err, w)
		}
	}
}

// features wraps a device whose feature register at off tells also of set, and not of
// unset.
func features(off, set, unset uint32) func(*sim.Device) stmmac.Device {
	return func(d *sim.Device) stmmac.Device { return lyingDevice{d, off, set, unset} }
}

// claims wraps a device that says that it has an engine.
func claims(t *testing.T, e engine) func(*sim.Device) stmmac.Device {
	off, bit := on(t).feature(e)
	return features(off, bit, 0)
}

type lyingDevice struct {
	*sim.Device
	off, set, unset uint32
}

func (d lyingDevice) Region(i int) (mmio.Region, error) {
	r, err := d.Device.Region(i)
	return lyingRegion{r, d}, err
}

type lyingRegion struct {
	mmio.Region
	dev lyingDevice
}

func (r lyingRegion) Load32(off uint32) uint32 {
	v := r.Region.Load32(off)
	if off == r.dev.off {
		v = v&^r.dev.unset | r.dev.set
	}
	return v
}
