package sim

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"net"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// wireClock is a clock that only a test moves. Its zero value stands at 0.
type wireClock struct {
	mu     sync.Mutex
	now    time.Duration
	timers []*wireTimer
}

type wireTimer struct {
	at time.Duration
	f  func()
}

func (c *wireClock) Now() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *wireClock) Sleep(ctx context.Context, d time.Duration) error {
	c.advance(d)
	return ctx.Err()
}

func (c *wireClock) AfterFunc(d time.Duration, f func()) func() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	t := &wireTimer{c.now + d, f}
	c.timers = append(c.timers, t)
	return func() bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		return c.remove(t)
	}
}

func (c *wireClock) remove(t *wireTimer) bool {
	i := slices.Index(c.timers, t)
	if i >= 0 {
		c.timers = slices.Delete(c.timers, i, i+1)
	}
	return i >= 0
}

func (c *wireClock) pending() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.timers)
}

// advance runs what is due in its order, each at its time.
func (c *wireClock) advance(d time.Duration) {
	c.mu.Lock()
	end := c.now + d
	for {
		var due *wireTimer
		for _, t := range c.timers {
			if t.at <= end && (due == nil || t.at < due.at) {
				due = t
			}
		}
		if due == nil {
			break
		}
		c.remove(due)
		c.now = max(c.now, due.at)
		c.mu.Unlock()
		due.f()
		c.mu.Lock()
	}
	c.now = end
	c.mu.Unlock()
}

const loopTimeout = 100 * time.Millisecond

// inject takes n frames from a wire, each as memory of its own.
func loopInject(t interface {
	Helper()
	Fatalf(string, ...any)
}, w Wire, n int) [][]byte {
	t.Helper()
	out := make([][]byte, n)
	for i := range out {
		f, ok := w.Receive()
		if !ok || f.BadFCS {
			t.Fatalf("frame %d of %d: ok %v, bad %v", i, n, ok, f.BadFCS)
		}
		out[i] = bytes.Clone(f.Data)
	}
	return out
}

func loopExpect(t *testing.T, what string, w *LoopWire, want LoopCounters) {
	t.Helper()
	got := w.Counters()
	if want.Bytes == 0 {
		want.Bytes = got.Bytes
	}
	if got != want {
		t.Fatalf("%s:\n got %+v\nwant %+v", what, got, want)
	}
}

func TestLoopFrames(t *testing.T) {
	for _, tc := range []struct {
		name string
		cfg  LoopConfig
	}{
		{"default", LoopConfig{}},
		{"sizes", LoopConfig{Sizes: []int{60, 1514, 594}, Flows: 3}},
		{"queues", LoopConfig{Queues: 4, VLAN: 0x123, Sizes: []int{60, 64, 1518}}},
		{"queues and flows", LoopConfig{Queues: 8, Flows: 20}},
		{"addresses", LoopConfig{AddrA: LoopAddr{Dst: [6]byte{2, 1, 2, 3, 4, 5}, Src: [6]byte{2, 9, 8, 7, 6, 5}}}},
		{"jumbo", LoopConfig{Sizes: []int{9018, maxWireFrame}}},
		{"clamped", LoopConfig{Sizes: []int{-1, 59, 1 << 30}, Queues: 99, Flows: 1 << 20, Window: 1 << 30}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			tc.cfg.Clock = new(wireClock)
			a, b := NewLoop(tc.cfg)
			if !a.Elastic() || !b.Elastic() {
				t.Fatal("a loop must be elastic")
			}
			cfg := tc.cfg
			cfg.normalize()
			sizes, flows := map[int]bool{}, map[uint64]uint64{}
			total := 0
			for range 200 {
				f := loopInject(t, a, 1)[0]
				sizes[len(f)] = true
				total += len(f)
				off := 14
				if cfg.Queues > 1 {
					off = 18
					if binary.BigEndian.Uint16(f[12:]) != 0x8100 {
						t.Fatalf("no tag: %x", f[:20])
					}
				}
				if [6]byte(f) != cfg.AddrA.Dst || [6]byte(f[6:]) != cfg.AddrA.Src || binary.BigEndian.Uint16(f[off-2:]) != 0x88b5 {
					t.Fatalf("header %x", f[:off])
				}
				var w loopWords
				w.load(f[off:])
				flow := w.flow()
				if w.number != flows[flow] {
					t.Fatalf("flow %d: number %d, want %d", flow, w.number, flows[flow])
				}
				flows[flow]++
				if tci := binary.BigEndian.Uint16(f[14:]); off == 18 && tci != uint16(flow)%uint16(cfg.Queues)<<13|tc.cfg.VLAN {
					t.Fatalf("flow %d has tag %#x", flow, tci)
				}
				if !b.Transmit(Frame{Data: f}) {
					t.Fatal("no room")
				}
			}
			for _, n := range cfg.Sizes {
				if !sizes[n] {
					t.Errorf("no frame of %d bytes", n)
				}
			}
			for n := range sizes {
				if !slices.Contains(cfg.Sizes, n) {
					t.Errorf("a frame of %d bytes", n)
				}
			}
			if len(flows) != min(cfg.Flows, 200) {
				t.Fatalf("%d flows", len(flows))
			}
			loopExpect(t, "a", a, LoopCounters{Sent: 200, Received: 200, Bytes: uint64(total)})
			loopExpect(t, "b", b, LoopCounters{})
		})
	}
}

// Same seed, same frames; another seed, others.
func TestLoopSeed(t *testing.T) {
	run := func(seed uint64) []byte {
		a, _ := NewLoop(LoopConfig{Seed: seed, Sizes: []int{60, 100, 1514}, Clock: new(wireClock)})
		return bytes.Join(loopInject(t, a, 100), nil)
	}
	if !bytes.Equal(run(1), run(1)) {
		t.Fatal("two runs of a seed differ")
	}
	if bytes.Equal(run(1), run(2)) {
		t.Fatal("two seeds are equal")
	}
}

// Any other value of any byte is seen, and the frame is not counted as lost.
// Behind the addresses, tag and type that is also so if the forwarder rewrites.
func TestLoopEveryByte(t *testing.T) {
	for _, cfg := range []LoopConfig{
		{Flows: 3, Sizes: []int{60, 131}},
		{Queues: 3, VLAN: 5, Sizes: []int{60, 64}},
		{Queues: 2, Rewrites: true},
	} {
		cfg.Clock = new(wireClock)
		a, b := NewLoop(cfg)
		off := 14
		if cfg.Queues > 1 {
			off = 18
		}
		var want LoopCounters
		for i := range cfg.normalizedMax() {
			for _, x := range []byte{1, 0x80, 0xff, byte(i) | 2} {
				f := loopInject(t, a, 1)[0]
				want.Sent++
				if i >= len(f) {
					b.Transmit(Frame{Data: f})
					want.Received++
					continue
				}
				f[i] ^= x
				b.Transmit(Frame{Data: f})
				switch {
				case i >= 12 && i < 14, off == 18 && i >= 16 && i < 18:
					// It is no frame of a loop any more.
					want.Foreign++
					f[i] ^= x
					b.Transmit(Frame{Data: f})
					want.Received++
				case cfg.Rewrites && i < off:
					want.Received++
				default:
					want.Corrupted++
				}
				loopExpect(t, fmt.Sprintf("byte %d ^ %#x", i, x), a, want)
			}
		}
		if want.Corrupted < 100 {
			t.Fatalf("only %d corrupt frames", want.Corrupted)
		}
	}
}

func (c LoopConfig) normalizedMax() int {
	c.normalize()
	return slices.Max(c.Sizes)
}

func TestLoopDamage(t *testing.T) {
	sent := func(c LoopCounters) LoopCounters { c.Sent = 8; return c }
	for _, tc := range []struct {
		name string
		do   func(a, b *LoopWire, f [][]byte)
		want LoopCounters
	}{
		{"none", func(a, b *LoopWire, f [][]byte) {}, LoopCounters{Received: 8}},
		{"cut by one", func(a, b *LoopWire, f [][]byte) { f[3] = f[3][:99] }, LoopCounters{Received: 7, Corrupted: 1}},
		{"longer by one", func(a, b *LoopWire, f [][]byte) { f[3] = append(f[3], 0) }, LoopCounters{Received: 7, Corrupted: 1}},
		{"cut behind the header", func(a, b *LoopWire, f [][]byte) { f[3] = f[3][:46] }, LoopCounters{Received: 7, Corrupted: 1}},
		{"cut in the header", func(a, b *LoopWire, f [][]byte) { f[3] = f[3][:45] }, LoopCounters{Received: 7, Corrupted: 1, Lost: 1}},
		{"two words of the header", func(a, b *LoopWire, f [][]byte) { f[3][16] ^= 1; f[3][30] ^= 1 }, LoopCounters{Received: 7, Corrupted: 1, Lost: 1}},
		{"all bytes of one word and the payload", func(a, b *LoopWire, f [][]byte) {
			clear(f[3][22:30])
			clear(f[3][60:])
		}, LoopCounters{Received: 7, Corrupted: 1}},
		{"payload of another frame", func(a, b *LoopWire, f [][]byte) { copy(f[3][46:], f[1][46:]) }, LoopCounters{Received: 7, Corrupted: 1}},
		{"no header at all", func(a, b *LoopWire, f [][]byte) { f[3] = f[3][:14] }, LoopCounters{Received: 7, Corrupted: 1, Lost: 1}},
		{"no type", func(a, b *LoopWire, f [][]byte) { f[3] = f[3][:13] }, LoopCounters{Received: 7, Foreign: 1, Lost: 1}},
		{"empty", func(a, b *LoopWire, f [][]byte) { f[3] = nil }, LoopCounters{Received: 7, Foreign: 1, Lost: 1}},
		{"tag inserted", func(a, b *LoopWire, f [][]byte) {
			f[3] = slices.Insert(f[3], 12, 0x81, 0, 0, 1)
		}, LoopCounters{Received: 7, Corrupted: 1}},
		{"reflected", func(a, b *LoopWire, f [][]byte) { a.Transmit(Frame{Data: f[3]}) }, LoopCounters{Received: 8}},
		{"sent with bad FCS", func(a, b *LoopWire, f [][]byte) {
			b.Transmit(Frame{Data: f[0], BadFCS: true})
		}, LoopCounters{Received: 8, Corrupted: 1}},
		{"corrupt copy of a late frame", func(a, b *LoopWire, f [][]byte) {
			x := bytes.Clone(f[0])
			x[99] ^= 1
			f[0], f[1], f[2] = f[1], x, f[0]
		}, LoopCounters{Received: 7, Reordered: 1, Corrupted: 1, Lost: 1}},
		{"other EtherType", func(a, b *LoopWire, f [][]byte) {
			b.Transmit(Frame{Data: append(make([]byte, 12), 0x08, 0x06, 1, 2, 3)})
		}, LoopCounters{Received: 8, Foreign: 1}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			clock := new(wireClock)
			a, b := NewLoop(LoopConfig{Sizes: []int{100}, Clock: clock})
			f := loopInject(t, a, 8)
			tc.do(a, b, f)
			for _, d := range f {
				b.Transmit(Frame{Data: d})
			}
			clock.advance(2 * loopTimeout)
			loopExpect(t, "a", a, sent(tc.want))
			wantB := LoopCounters{}
			if tc.name == "reflected" {
				wantB.Foreign = 1
			}
			loopExpect(t, "b", b, wantB)
		})
	}
}

// A damaged number that is that of another frame with the same payload does not
// take that frame's place.
func TestLoopCredibleNumber(t *testing.T) {
	for _, cfg := range []LoopConfig{{}, {Flows: 200}, {Flows: 2, Sizes: []int{60, 60, 60, 61}}} {
		cfg.Clock = new(wireClock)
		for _, x := range []int{1, 2, 4, 8, 16, 32, 64, 128, 17, 34, 51, 68, 85, 102, 119, 136, 153, 170, 187, 204, 221, 238, 255} {
			for _, at := range []int{14 + 6, 14 + 8} { // flow, number
				a, b := NewLoop(cfg)
				f := loopInject(t, a, 250)
				f[100][at] ^= byte(x)
				for _, d := range f {
					b.Transmit(Frame{Data: d})
				}
				loopExpect(t, fmt.Sprintf("%+v, byte %d ^ %#x", cfg, at, x), a, LoopCounters{Sent: 250, Received: 249, Corrupted: 1})
			}
		}
	}
}

// Frames of a loop that sent more, with the same seed, are not taken for ours.
func TestLoopNotYetSent(t *testing.T) {
	cfg := LoopConfig{Clock: new(wireClock), Flows: 2}
	a1, _ := NewLoop(cfg)
	a2, b2 := NewLoop(cfg)
	f := loopInject(t, a1, 5)
	loopInject(t, a2, 2)
	for _, d := range f {
		b2.Transmit(Frame{Data: d})
	}
	f[4][25]++ // corrupt on top of it
	b2.Transmit(Frame{Data: f[4]})
	loopExpect(t, "a2", a2, LoopCounters{Sent: 2, Received: 2, Foreign: 3, Corrupted: 1})
}

func TestLoopRewrites(t *testing.T) {
	strip := func(f []byte) []byte { return append(f[:12:12], f[16:]...) }
	pad := func(f []byte) []byte { return append(f, make([]byte, max(0, 60-len(f)))...) }
	a, b := NewLoop(LoopConfig{Rewrites: true, Queues: 2, Sizes: []int{60}, Clock: new(wireClock)})
	f := loopInject(t, a, 5)
	f[0] = pad(strip(f[0]))
	f[1] = strip(f[1]) // not padded
	clear(f[2][:12])
	f[3][15] = 7
	f[4] = append(f[4], 0) // longer for no reason
	for _, d := range f {
		b.Transmit(Frame{Data: d})
	}
	loopExpect(t, "a", a, LoopCounters{Sent: 5, Received: 4, Corrupted: 1})
}

func TestLoopWindow(t *testing.T) {
	for _, window := range []int{1, 2, 8, 256} {
		clock := new(wireClock)
		a, b := NewLoop(LoopConfig{Window: window, Clock: clock})
		notified := 0
		a.Notify(func() { notified++ })
		b.Notify(func() { t.Error("b notified") })
		f := loopInject(t, a, window)
		mustNotReceive(t, a)
		room := max(1, window/8)
		for i := range room {
			if notified != 0 {
				t.Fatalf("window %d: notified after %d arrivals", window, i)
			}
			b.Transmit(Frame{Data: f[i]})
		}
		if notified != 1 {
			t.Fatalf("window %d: notified %d times", window, notified)
		}
		loopInject(t, a, room)
		mustNotReceive(t, a)
		// Nothing arrives any more: all is given up in twice the timeout.
		clock.advance(2 * loopTimeout)
		if notified != 2 {
			t.Fatalf("window %d: notified %d times after the timeout", window, notified)
		}
		n, r := uint64(window+room), uint64(room)
		loopExpect(t, "given up", a, LoopCounters{Sent: n, Received: r, Lost: n - r})
		loopInject(t, a, window)
		mustNotReceive(t, a)
	}
}

func TestLoopTimeoutSparesTheYoung(t *testing.T) {
	clock := new(wireClock)
	a, _ := NewLoop(LoopConfig{Clock: clock, Flows: 3, Timeout: time.Second})
	loopInject(t, a, 5)
	clock.advance(time.Second)
	loopExpect(t, "one timeout", a, LoopCounters{Sent: 5, Outstanding: 5})
	loopInject(t, a, 2)
	clock.advance(time.Second)
	loopExpect(t, "two", a, LoopCounters{Sent: 7, Lost: 5, Outstanding: 2})
	clock.advance(time.Second)
	loopExpect(t, "three", a, LoopCounters{Sent: 7, Lost: 7})
	if n := clock.pending(); n != 0 {
		t.Fatalf("%d timers run with nothing outstanding", n)
	}
	loopInject(t, a, 1)
	clock.advance(2 * time.Second)
	loopExpect(t, "again", a, LoopCounters{Sent: 8, Lost: 8})
}

func TestLoopGiveUp(t *testing.T) {
	a, b := NewLoop(LoopConfig{Clock: new(wireClock), GiveUp: 4, Flows: 2})
	f := loopInject(t, a, 24)
	// Flow 0 loses its first frame; flow 1 loses nothing.
	for i := 1; i <= 8; i++ {
		b.Transmit(Frame{Data: f[i]})
	}
	loopExpect(t, "four behind", a, LoopCounters{Sent: 24, Received: 8, Outstanding: 16})
	b.Transmit(Frame{Data: f[10]})
	loopExpect(t, "five behind", a, LoopCounters{Sent: 24, Received: 9, Lost: 1, Outstanding: 14})
	b.Transmit(Frame{Data: f[0]})
	loopExpect(t, "late", a, LoopCounters{Sent: 24, Received: 10, Reordered: 1, Outstanding: 14})
	b.Transmit(Frame{Data: f[0]})
	loopExpect(t, "twice", a, LoopCounters{Sent: 24, Received: 10, Reordered: 1, Duplicated: 1, Outstanding: 14})
}

// A frame that is slow, but overtaken by none, is taken back from Lost and is
// not reordered.
func TestLoopSlow(t *testing.T) {
	clock := new(wireClock)
	a, b := NewLoop(LoopConfig{Clock: clock})
	f := loopInject(t, a, 3)
	clock.advance(2 * loopTimeout)
	loopExpect(t, "given up", a, LoopCounters{Sent: 3, Lost: 3})
	for _, d := range f {
		b.Transmit(Frame{Data: d})
	}
	loopExpect(t, "came", a, LoopCounters{Sent: 3, Received: 3})
}

func TestLoopStale(t *testing.T) {
	clock := new(wireClock)
	a, b := NewLoop(LoopConfig{Clock: clock})
	first := loopInject(t, a, 2)
	var oldest []byte
	for i := range loopHistory {
		f := loopInject(t, a, 1)[0]
		b.Transmit(Frame{Data: f})
		if i == 0 {
			oldest = f
		}
	}
	n := uint64(loopHistory + 2)
	loopExpect(t, "gone", a, LoopCounters{Sent: n, Received: n - 2, Lost: 2})
	b.Transmit(Frame{Data: first[1]}) // forgotten
	b.Transmit(Frame{Data: first[0]})
	loopExpect(t, "stale", a, LoopCounters{Sent: n, Received: n - 2, Lost: 2, Stale: 2})
	first[0][50]++
	b.Transmit(Frame{Data: first[0]})
	loopExpect(t, "stale and corrupt", a, LoopCounters{Sent: n, Received: n - 2, Lost: 2, Stale: 2, Corrupted: 1})
	b.Transmit(Frame{Data: oldest})
	loopExpect(t, "oldest that is remembered, twice", a, LoopCounters{Sent: n, Received: n - 2, Lost: 2, Stale: 2, Corrupted: 1, Duplicated: 1})
}

// A gap that is longer than what is remembered does not hide what arrived before.
func TestLoopFarJump(t *testing.T) {
	const frames = loopHistory + 1000
	for _, jump := range []int{loopHistory - 2, loopHistory, loopHistory + 1, frames - 1} {
		clock := new(wireClock)
		a, b := NewLoop(LoopConfig{Clock: clock, Window: loopMaxWindow, GiveUp: 10})
		f := loopInject(t, a, frames)
		for _, k := range []int{1, 2, 4, 9, jump} { // 0, 3, 5 to 8 and more are missing
			b.Transmit(Frame{Data: f[k]})
		}
		lost := uint64(jump - 10 - 4)
		loopExpect(t, fmt.Sprint("jump to ", jump), a, LoopCounters{Sent: frames, Received: 5, Lost: lost, Outstanding: frames - 5 - lost})
		b.Transmit(Frame{Data: f[jump-1]})
		clock.advance(2 * loopTimeout)
		loopExpect(t, "then time", a, LoopCounters{Sent: frames, Received: 6, Reordered: 1, Lost: frames - 6})

		a, b = NewLoop(LoopConfig{Clock: clock, Window: loopMaxWindow})
		f = loopInject(t, a, jump)
		for _, k := range []int{1, 2, 4, 9} {
			b.Transmit(Frame{Data: f[k]})
		}
		clock.advance(2 * loopTimeout)
		loopExpect(t, fmt.Sprint("time after ", jump), a, LoopCounters{Sent: uint64(jump), Received: 4, Lost: uint64(jump) - 4})
	}
}

func TestLoopStopAndIdle(t *testing.T) {
	clock := new(wireClock)
	a, b := NewLoop(LoopConfig{Clock: clock, Frames: 10, Window: 4})
	if a.Idle() {
		t.Fatal("idle before the start")
	}
	for k := range 10 {
		b.Transmit(Frame{Data: loopInject(t, a, 1)[0]})
		if a.Idle() != (k == 9) {
			t.Fatalf("after frame %d: idle %v", k, a.Idle())
		}
	}
	mustNotReceive(t, a)
	loopExpect(t, "all", a, LoopCounters{Sent: 10, Received: 10})

	f := loopInject(t, b, 3)
	b.Stop()
	mustNotReceive(t, b)
	a.Transmit(Frame{Data: f[0]})
	if b.Idle() {
		t.Fatal("idle with two frames outstanding")
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := b.Drain(ctx); !errors.Is(err, context.Canceled) {
		t.Fatalf("drain: %v", err)
	}
	clock.advance(2 * loopTimeout)
	if err := b.Drain(context.Background()); err != nil || !b.Idle() {
		t.Fatalf("drain: %v, idle %v", err, b.Idle())
	}
	loopExpect(t, "b", b, LoopCounters{Sent: 3, Received: 1, Lost: 2})

	_, unused := NewLoop(LoopConfig{Clock: clock})
	if err := unused.Drain(context.Background()); err != nil {
		t.Fatalf("drain of nothing: %v", err)
	}
}

func TestLoopClose(t *testing.T) {
	clock := new(wireClock)
	a, b := NewLoop(LoopConfig{Clock: clock, Window: 4})
	fa := loopInject(t, a, 2)
	fb := loopInject(t, b, 4)
	drained := make(chan error)
	go func() { drained <- a.Drain(context.Background()) }()
	for range 2 {
		if err := a.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if err := <-drained; !errors.Is(err, net.ErrClosed) {
		t.Fatalf("drain: %v, want net.ErrClosed", err)
	}
	mustNotReceive(t, a)
	if !a.Transmit(Frame{Data: fb[0]}) {
		t.Fatal("a closed end must drop frames")
	}
	b.Transmit(Frame{Data: fa[0]})
	loopExpect(t, "a", a, LoopCounters{Sent: 2, Received: 1, Outstanding: 1})
	loopExpect(t, "b", b, LoopCounters{Sent: 4, Outstanding: 4})
	clock.advance(2 * loopTimeout)
	loopExpect(t, "b given up", b, LoopCounters{Sent: 4, Lost: 4})
	loopInject(t, b, 1)
	b.Close()
	if n := clock.pending(); n != 0 {
		t.Fatalf("%d timers run after close", n)
	}
}

// loopArrival is what a test knows of a frame that arrives.
type loopArrival struct {
	k       int
	flow    int
	seq     uint64
	size    int
	corrupt bool
}

// loopOracle counts arrivals from their definitions, with all of the past.
func loopOracle(sent int, arrivals []loopArrival) LoopCounters {
	c := LoopCounters{Sent: uint64(sent)}
	any, intact, top := map[int]bool{}, map[int]bool{}, map[int]uint64{}
	for _, a := range arrivals {
		switch {
		case a.corrupt:
			c.Corrupted++
		case intact[a.k]:
			c.Duplicated++
		default:
			intact[a.k] = true
			c.Received++
			c.Bytes += uint64(a.size)
			if a.seq+1 < top[a.flow] {
				c.Reordered++
			}
		}
		any[a.k] = true
		top[a.flow] = max(top[a.flow], a.seq+1)
	}
	c.Lost = c.Sent - uint64(len(any))
	return c
}

// Any sequence of losses, copies, damage, reordering and time has the counts
// that follow from the definitions.
func TestLoopOracle(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		clock := new(wireClock)
		cfg := LoopConfig{
			Clock:  clock,
			Flows:  rapid.IntRange(1, 5).Draw(t, "flows"),
			Queues: rapid.IntRange(0, 3).Draw(t, "queues"),
			Sizes:  rapid.SliceOfN(rapid.IntRange(60, 200), 1, 4).Draw(t, "sizes"),
			Window: rapid.IntRange(1, 40).Draw(t, "window"),
			GiveUp: rapid.IntRange(1, 20).Draw(t, "give up"),
			Seed:   rapid.Uint64().Draw(t, "seed"),
		}
		a, b := NewLoop(cfg)
		off := 14
		if cfg.Queues > 1 {
			off = 18
		}
		type frame struct {
			loopArrival
			data []byte
		}
		var flight []frame
		var arrivals []loopArrival
		sent := 0
		check := func() {
			c := a.Counters()
			want := loopOracle(sent, arrivals)
			want.Lost, want.Outstanding = c.Lost, c.Outstanding
			onlyCorrupt := map[int]bool{}
			for _, x := range arrivals {
				onlyCorrupt[x.k] = true
			}
			if c != want || c.Sent != c.Received+c.Lost+c.Outstanding+uint64(len(onlyCorrupt))-c.Received {
				t.Fatalf("after %d frames, %d arrivals:\n got %+v\nwant %+v", sent, len(arrivals), c, want)
			}
			if c.Outstanding > uint64(cfg.Window) {
				t.Fatalf("%d frames outstanding, window %d", c.Outstanding, cfg.Window)
			}
		}
		pick := func() int { return rapid.IntRange(0, len(flight)-1).Draw(t, "which") }
		send := func(t *rapid.T) {
			for range rapid.IntRange(1, 12).Draw(t, "burst") {
				full := a.Counters().Outstanding == uint64(cfg.Window)
				f, ok := a.Receive()
				if ok == full {
					t.Fatalf("window full: %v, and got a frame: %v", full, ok)
				}
				if ok {
					flight = append(flight, frame{loopArrival{k: sent, flow: sent % cfg.Flows, seq: uint64(sent / cfg.Flows), size: len(f.Data)}, bytes.Clone(f.Data)})
					sent++
				}
			}
		}
		deliver := func(t *rapid.T, i int, keep, corrupt bool) {
			f := flight[i]
			if !keep {
				flight = slices.Delete(flight, i, i+1)
			}
			if corrupt {
				f.corrupt = true
				f.data = bytes.Clone(f.data)
				f.data[rapid.IntRange(off, len(f.data)-1).Draw(t, "byte")] ^= byte(rapid.IntRange(1, 255).Draw(t, "change"))
			}
			b.Transmit(Frame{Data: f.data})
			arrivals = append(arrivals, f.loopArrival)
		}
		some := func(t *rapid.T) {
			if len(flight) == 0 {
				t.Skip("nothing under way")
			}
		}
		t.Repeat(map[string]func(*rapid.T){
			"":     func(*rapid.T) { check() },
			"send": send,
			"in order": func(t *rapid.T) {
				for range min(len(flight), rapid.IntRange(1, 12).Draw(t, "burst")) {
					deliver(t, 0, false, false)
				}
			},
			"any":     func(t *rapid.T) { some(t); deliver(t, pick(), false, false) },
			"copy":    func(t *rapid.T) { some(t); deliver(t, pick(), true, false) },
			"corrupt": func(t *rapid.T) { some(t); deliver(t, pick(), rapid.Bool().Draw(t, "keep"), true) },
			"drop":    func(t *rapid.T) { some(t); i := pick(); flight = slices.Delete(flight, i, i+1) },
			"time": func(t *rapid.T) {
				clock.advance(loopTimeout * time.Duration(rapid.IntRange(1, 3).Draw(t, "time")) / 2)
			},
		})
		a.Stop()
		clock.advance(2 * loopTimeout)
		if c, want := a.Counters(), loopOracle(sent, arrivals); c != want || !a.Idle() {
			t.Fatalf("idle %v, at the end:\n got %+v\nwant %+v", a.Idle(), c, want)
		}
		if c := b.Counters(); c != (LoopCounters{}) {
			t.Fatalf("b: %+v", c)
		}
	})
}

// Two forwarders on goroutines of their own that sleep when there is nothing to
// do: a lost wake-up ends the test by its deadlock.
func TestLoopGoroutines(t *testing.T) {
	const frames = 50000
	for _, window := range []int{1, 16, 256} {
		// The clock stands still, so nothing but arrivals moves the window.
		a, b := NewLoop(LoopConfig{Clock: new(wireClock), Frames: frames, Window: window, Flows: 4, Sizes: []int{60, 600}})
		stop := make(chan struct{})
		var wg sync.WaitGroup
		forward := func(from, to *LoopWire) {
			defer wg.Done()
			wake := make(chan struct{}, 1)
			from.Notify(func() {
				select {
				case wake <- struct{}{}:
				default:
				}
			})
			var held [][]byte
			for {
				f, ok := from.Receive()
				if ok {
					held = append(held, bytes.Clone(f.Data))
				}
				if !ok || len(held) == 8 {
					for _, d := range held {
						to.Transmit(Frame{Data: d})
					}
					held = held[:0]
				}
				if !ok {
					// The last arrivals may have come from here.
					if f, ok = from.Receive(); ok {
						held = append(held, bytes.Clone(f.Data))
						continue
					}
					select {
					case <-wake:
					case <-stop:
						return
					}
				}
			}
		}
		wg.Add(2)
		go forward(a, b)
		go forward(b, a)
		for _, w := range []*LoopWire{a, b} {
			<-w.out.idle
			c := w.Counters()
			c.Bytes = 0
			if want := (LoopCounters{Sent: frames, Received: frames}); c != want {
				t.Errorf("window %d: %+v", window, c)
			}
		}
		close(stop)
		wg.Wait()
	}
}

// Stop, Drain, Counters and Close while frames pass; for the race detector and
// for the promise that nothing follows a Stop.
func TestLoopStopWhileRunning(t *testing.T) {
	for round := range 50 {
		a, b := NewLoop(LoopConfig{Clock: new(wireClock), Window: 4})
		quit, done := make(chan struct{}), make(chan struct{})
		go func() {
			defer close(done)
			for {
				select {
				case <-quit:
					return
				default:
				}
				if f, ok := a.Receive(); ok {
					b.Transmit(f)
				}
			}
		}()
		for a.Counters().Received < uint64(round) {
			runtime.Gosched()
		}
		if err := a.Drain(context.Background()); err != nil {
			t.Fatal(err)
		}
		before := a.Counters()
		close(quit)
		<-done
		if after := a.Counters(); after != before || after.Sent != after.Received {
			t.Fatalf("drained with %+v, then %+v", before, after)
		}
		a.Close()
		b.Close()
	}
}

func TestLoopAllocs(t *testing.T) {
	sizes := []int{60, 1514, 300}
	a, b := NewLoop(LoopConfig{Clock: new(wireClock), Sizes: sizes, Queues: 2, Flows: 5, GiveUp: 3})
	a.Notify(func() {})
	k := 0
	step := func() {
		f, ok := a.Receive()
		if k++; ok && k%7 != 0 { // one in seven is lost
			b.Transmit(f)
		}
	}
	step()
	if n := testing.AllocsPerRun(5000, step); n != 0 {
		t.Fatalf("%v allocations per frame, want 0", n)
	}
	if c := a.Counters(); c.Lost == 0 || c.Received == 0 {
		t.Fatalf("not exercised: %+v", c)
	}
}

// The checker takes any bytes.
func FuzzLoop(f *testing.F) {
	a, _ := NewLoop(LoopConfig{Clock: new(wireClock)})
	x, _ := a.Receive()
	f.Add(bytes.Clone(x.Data), uint16(14), uint64(1))
	f.Add(bytes.Clone(x.Data[:46]), uint16(0), uint64(0))
	f.Add(append(make([]byte, 12), 0x81, 0), uint16(0), uint64(0))
	f.Add([]byte{}, uint16(0), uint64(math.MaxUint64))
	f.Fuzz(func(t *testing.T, data []byte, at uint16, word uint64) {
		clock := new(wireClock)
		for _, cfg := range []LoopConfig{{Clock: clock}, {Clock: clock, Queues: 3, Rewrites: true}} {
			a, b := NewLoop(cfg)
			f := loopInject(t, a, 4)
			b.Transmit(Frame{Data: data})
			// A header that is right but for one word that may be anything, with
			// a checksum over it.
			d := f[1]
			off := len(d) - int(at)%len(d)
			if off+8 <= len(d) {
				binary.LittleEndian.PutUint64(d[off:], word)
			}
			h := a.out.off
			var w loopWords
			w.load(d[h:])
			w.sum = w.check(a.out.key)
			w.store(d[h:])
			b.Transmit(Frame{Data: d})
			b.Transmit(Frame{Data: f[0]})
			a.Stop()
			clock.advance(2 * loopTimeout)
			c := a.Counters()
			if !a.Idle() || c.Received+c.Corrupted+c.Duplicated+c.Foreign+c.Stale != 3 || c.Received+c.Lost > 4 {
				t.Fatalf("idle %v, %+v", a.Idle(), c)
			}
		}
	})
}

func BenchmarkLoop(b *testing.B) {
	for _, tc := range []struct {
		name string
		cfg  LoopConfig
	}{
		{"60", LoopConfig{}},
		{"60/queues=4", LoopConfig{Queues: 4}},
		{"1514", LoopConfig{Sizes: []int{1514}}},
		{"mix", LoopConfig{Sizes: []int{60, 60, 60, 60, 60, 60, 60, 590, 590, 590, 590, 1514}}},
	} {
		b.Run(tc.name, func(b *testing.B) {
			tc.cfg.Clock = new(wireClock)
			x, y := NewLoop(tc.cfg)
			b.ReportAllocs()
			for range b.N {
				f, _ := x.Receive()
				y.Transmit(f)
			}
			if c := x.Counters(); c.Received != uint64(b.N) {
				b.Fatalf("%+v", c)
			}
		})
	}
}
