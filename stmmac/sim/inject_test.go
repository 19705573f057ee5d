package sim

import (
	"bytes"
	"errors"
	"math"
	"testing"

	"pgregory.net/rapid"
)

// sliceWire gives frames from memory that it reuses.
type sliceWire struct {
	frames  []Frame
	buf     []byte
	sent    int
	notify  func()
	closed  int
	elastic bool
}

func (w *sliceWire) Transmit(Frame) bool { w.sent++; return w.sent%2 == 1 }

func (w *sliceWire) Receive() (Frame, bool) {
	for i := range w.buf {
		w.buf[i] = 0xee
	}
	if len(w.frames) == 0 {
		return Frame{}, false
	}
	f := w.frames[0]
	w.frames = w.frames[1:]
	w.buf = append(w.buf[:0], f.Data...)
	return Frame{Data: w.buf, BadFCS: f.BadFCS}, true
}

func (w *sliceWire) Elastic() bool   { return w.elastic }
func (w *sliceWire) Notify(f func()) { w.notify = f }
func (w *sliceWire) Close() error    { w.closed++; return errors.New("closed") }

func injectFrames(n int) []Frame {
	out := make([]Frame, n)
	for i := range out {
		out[i] = Frame{Data: wireFrame(uint64(i), 60+i%3), BadFCS: i%5 == 4}
	}
	return out
}

func receiveAll(w Wire) []Frame {
	var out []Frame
	for {
		f, ok := w.Receive()
		if !ok {
			return out
		}
		out = append(out, Frame{Data: bytes.Clone(f.Data), BadFCS: f.BadFCS})
	}
}

func sameFrame(a, b Frame) bool { return a.BadFCS == b.BadFCS && bytes.Equal(a.Data, b.Data) }

func TestInjectorPassesThrough(t *testing.T) {
	for _, elastic := range []bool{false, true} {
		inner := &sliceWire{frames: injectFrames(100), elastic: elastic}
		w := NewInjector(inner, FaultRates{Seed: 1})
		for i, f := range receiveAll(w) {
			if !sameFrame(f, injectFrames(100)[i]) {
				t.Fatalf("frame %d changed", i)
			}
		}
		called := false
		w.Notify(func() { called = true })
		inner.notify()
		if w.Elastic() != elastic || !called || !w.Transmit(Frame{}) || w.Transmit(Frame{}) {
			t.Fatal("the wire behind does not show through")
		}
		if err := w.Close(); err == nil || inner.closed != 1 {
			t.Fatal("close does not reach the wire behind")
		}
	}
}

// Every frame has the fault that is asked for.
func TestInjectorEachFault(t *testing.T) {
	in := injectFrames(200)
	for _, tc := range []struct {
		name  string
		rates FaultRates
		count FaultCounts
		check func(t *testing.T, out []Frame)
	}{
		{"drop", FaultRates{Drop: 1}, FaultCounts{Drop: 200}, func(t *testing.T, out []Frame) {
			if len(out) != 0 {
				t.Fatalf("%d frames came", len(out))
			}
		}},
		{"crc", FaultRates{CRC: 1}, FaultCounts{CRC: 200}, func(t *testing.T, out []Frame) {
			for i, f := range out {
				if !f.BadFCS || !bytes.Equal(f.Data, in[i].Data) {
					t.Fatalf("frame %d", i)
				}
			}
		}},
		{"corrupt", FaultRates{Corrupt: 1}, FaultCounts{Corrupt: 200}, func(t *testing.T, out []Frame) {
			at := map[int]bool{}
			for i, f := range out {
				diff := 0
				for n := range f.Data {
					if f.Data[n] != in[i].Data[n] {
						diff++
						at[n] = true
					}
				}
				if diff != 1 || len(f.Data) != len(in[i].Data) || f.BadFCS != in[i].BadFCS {
					t.Fatalf("frame %d has %d other bytes", i, diff)
				}
			}
			for n := range 14 {
				if at[n] {
					t.Fatalf("byte %d of the header changed", n)
				}
			}
			if len(at) < 30 {
				t.Fatalf("only the bytes %v changed", at)
			}
		}},
		{"dup", FaultRates{Dup: 1}, FaultCounts{Dup: 200}, func(t *testing.T, out []Frame) {
			if len(out) != 400 {
				t.Fatalf("%d frames came", len(out))
			}
			for i, f := range out {
				if !sameFrame(f, in[i/2]) {
					t.Fatalf("frame %d", i)
				}
			}
		}},
		{"reorder", FaultRates{Reorder: 0.3}, FaultCounts{}, func(t *testing.T, out []Frame) {
			if len(out) != 200 {
				t.Fatalf("%d frames came", len(out))
			}
			seen, late := map[byte]bool{}, 0
			for at, f := range out {
				k := int(f.Data[0])
				if seen[f.Data[0]] || !sameFrame(f, in[k]) {
					t.Fatalf("frame %d came twice or changed", k)
				}
				seen[f.Data[0]] = true
				if at-k > injectDepth+injectHeld || k-at > injectHeld {
					t.Fatalf("frame %d came at %d", k, at)
				}
				if at > k {
					late++
				}
			}
			if late < 30 {
				t.Fatalf("%d frames came late", late)
			}
		}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			w := NewInjector(&sliceWire{frames: injectFrames(200)}, tc.rates)
			out := receiveAll(w)
			tc.check(t, out)
			c := w.Counts()
			if tc.name == "reorder" {
				if c.Reorder < 30 || c.Reorder > 90 {
					t.Fatalf("%d frames held", c.Reorder)
				}
				c.Reorder = 0
			}
			if c != tc.count {
				t.Fatalf("counted %+v, want %+v", c, tc.count)
			}
		})
	}
}

// Tags are part of the header, and a frame that ends with it is left alone.
func TestInjectorCorruptSparesHeader(t *testing.T) {
	addr := make([]byte, 12)
	for _, tc := range []struct {
		name  string
		head  []byte
		extra int
	}{
		{"plain", []byte{0x08, 0x00}, 1},
		{"tag", []byte{0x81, 0, 0, 1, 0x88, 0xb5}, 1},
		{"two tags", []byte{0x88, 0xa8, 0, 1, 0x81, 0, 0, 2, 0x08, 0}, 1},
		{"nothing behind", []byte{0x08, 0x00}, 0},
		{"cut tag", []byte{0x81, 0, 0}, 0},
		{"tag without type", []byte{0x81, 0, 0, 1}, 0},
		{"cut type", []byte{8}, 0},
	} {
		data := append(bytes.Clone(addr), tc.head...)
		data = append(data, make([]byte, tc.extra)...)
		for seed := range uint64(20) {
			w := NewInjector(&sliceWire{frames: []Frame{{Data: data}}}, FaultRates{Corrupt: 1, Seed: seed})
			f, ok := w.Receive()
			if !ok || len(f.Data) != len(data) || !bytes.Equal(f.Data[:12+len(tc.head)], data[:12+len(tc.head)]) {
				t.Fatalf("%s: %x became %x", tc.name, data, f.Data)
			}
			if changed := !bytes.Equal(f.Data, data); changed != (tc.extra > 0) || w.Counts().Corrupt != uint64(tc.extra) {
				t.Fatalf("%s: changed %v, counted %d", tc.name, changed, w.Counts().Corrupt)
			}
		}
	}
	for _, short := range [][]byte{nil, addr[:5]} {
		w := NewInjector(&sliceWire{frames: []Frame{{Data: short}}}, FaultRates{Corrupt: 1})
		mustReceive(t, w, short, false)
	}
}

func TestInjectorDeterministic(t *testing.T) {
	run := func(seed uint64) []Frame {
		return receiveAll(NewInjector(&sliceWire{frames: injectFrames(250)},
			FaultRates{Drop: 0.1, CRC: 0.1, Corrupt: 0.1, Dup: 0.1, Reorder: 0.1, Seed: seed}))
	}
	same := func(a, b []Frame) bool {
		if len(a) != len(b) {
			return false
		}
		for i := range a {
			if !sameFrame(a[i], b[i]) {
				return false
			}
		}
		return true
	}
	if !same(run(7), run(7)) {
		t.Fatal("two runs of a seed differ")
	}
	if same(run(7), run(8)) {
		t.Fatal("two seeds are equal")
	}
}

// A frame that is held alone lets one to eight others pass.
func TestInjectorReorderDepth(t *testing.T) {
	depth := map[int]bool{}
	for seed := range uint64(600) {
		w := NewInjector(&sliceWire{frames: injectFrames(100)}, FaultRates{Reorder: 0.01, Seed: seed})
		out := receiveAll(w)
		if w.Counts().Reorder != 1 {
			continue
		}
		for at, f := range out {
			if k := int(f.Data[0]); at > k && k < len(out)-injectDepth {
				depth[at-k] = true
			}
		}
	}
	for n := range 20 {
		if depth[n] != (n >= 1 && n <= injectDepth) {
			t.Fatalf("frames came late by %v", depth)
		}
	}
}

// Held frames come when the wire has nothing else, and then it has nothing.
func TestInjectorHoldsNothingBack(t *testing.T) {
	for n := range 40 {
		w := NewInjector(&sliceWire{frames: injectFrames(n)}, FaultRates{Reorder: 1, Seed: uint64(n)})
		if got := len(receiveAll(w)); got != n {
			t.Fatalf("%d of %d frames came", got, n)
		}
		mustNotReceive(t, w)
	}
}

func TestInjectorRatesOutOfRange(t *testing.T) {
	for _, tc := range []struct {
		rates FaultRates
		want  FaultCounts
	}{
		{FaultRates{Drop: math.NaN(), CRC: -1}, FaultCounts{}},
		{FaultRates{Drop: 2, CRC: 1}, FaultCounts{Drop: 100}},
		{FaultRates{Drop: math.Inf(1)}, FaultCounts{Drop: 100}},
		{FaultRates{Corrupt: math.Inf(-1), Dup: 7}, FaultCounts{Dup: 100}},
	} {
		w := NewInjector(&sliceWire{frames: injectFrames(100)}, tc.rates)
		receiveAll(w)
		if c := w.Counts(); c != tc.want {
			t.Errorf("%+v: counted %+v, want %+v", tc.rates, c, tc.want)
		}
	}
}

// busyWire always has a frame.
type busyWire struct {
	sliceWire
	first func()
}

func (w *busyWire) Receive() (Frame, bool) {
	if w.first != nil {
		w.first()
		w.first = nil
	}
	return Frame{Data: make([]byte, 60)}, true
}

func TestInjectorClose(t *testing.T) {
	// Every frame of a wire that never ends is dropped: Close ends that.
	inner := new(busyWire)
	started := make(chan struct{})
	inner.first = func() { close(started) }
	w := NewInjector(inner, FaultRates{Drop: 1})
	done := make(chan bool)
	go func() { _, ok := w.Receive(); done <- ok }()
	<-started
	w.Close()
	if <-done {
		t.Fatal("received a frame")
	}
	// A copy and a held frame do not come after Close.
	for _, rates := range []FaultRates{{Dup: 1}, {Reorder: 1}} {
		w := NewInjector(&sliceWire{frames: injectFrames(50)}, rates)
		if _, ok := w.Receive(); !ok {
			t.Fatal("nothing received")
		}
		w.Close()
		mustNotReceive(t, w)
	}
}

func TestInjectorAllocs(t *testing.T) {
	a, b := NewPair(4)
	w := NewInjector(b, FaultRates{Drop: 0.15, CRC: 0.15, Corrupt: 0.15, Dup: 0.15, Reorder: 0.2})
	data := wireFrame(1, 300)
	step := func() {
		for a.Transmit(Frame{Data: data}) {
		}
		for range 5 {
			w.Receive()
		}
	}
	for range 1000 {
		step()
	}
	if n := testing.AllocsPerRun(1000, step); n != 0 {
		t.Fatalf("%v allocations per round, want 0", n)
	}
}

// loopForward moves frames between the wires of a loop as a forwarder with MACs
// does, until both are idle, and returns what arrived from a at b.
func loopForward(t interface{ Fatalf(string, ...any) }, a, b Wire, la, lb *LoopWire, clock *wireClock) (arrivals []loopArrival) {
	number := func(d []byte) loopArrival {
		var w loopWords
		w.load(d[la.out.off:])
		flow := int(w.flow())
		return loopArrival{k: int(w.number*la.out.flows) + flow, flow: flow, seq: w.number, size: len(d)}
	}
	for idle := 0; ; {
		moved := false
		if f, ok := a.Receive(); ok {
			moved = true
			if !f.BadFCS {
				arrivals = append(arrivals, number(f.Data))
				b.Transmit(f)
			}
		}
		if f, ok := b.Receive(); ok {
			moved = true
			if !f.BadFCS {
				a.Transmit(f)
			}
		}
		if moved {
			idle = 0
			continue
		}
		if la.Idle() && lb.Idle() {
			return arrivals
		}
		if idle++; idle > 20000 {
			t.Fatalf("the loop stalls: %+v, %+v", la.Counters(), lb.Counters())
		}
		clock.advance(loopTimeout)
	}
}

// Each fault raises its own counter and no other, by as much as was injected.
func TestLoopWithFaults(t *testing.T) {
	const frames = 5000
	for _, tc := range []struct {
		name  string
		rates FaultRates
		want  func(c FaultCounts) LoopCounters
	}{
		{"none", FaultRates{}, func(c FaultCounts) LoopCounters { return LoopCounters{Received: frames} }},
		{"drop", FaultRates{Drop: 0.1}, func(c FaultCounts) LoopCounters {
			return LoopCounters{Received: frames - c.Drop, Lost: c.Drop}
		}},
		{"crc", FaultRates{CRC: 0.1}, func(c FaultCounts) LoopCounters {
			return LoopCounters{Received: frames - c.CRC, Lost: c.CRC}
		}},
		{"corrupt", FaultRates{Corrupt: 0.1}, func(c FaultCounts) LoopCounters {
			return LoopCounters{Received: frames - c.Corrupt, Corrupted: c.Corrupt}
		}},
		{"corrupt all", FaultRates{Corrupt: 1}, func(c FaultCounts) LoopCounters {
			return LoopCounters{Corrupted: frames}
		}},
		{"dup", FaultRates{Dup: 0.1}, func(c FaultCounts) LoopCounters {
			return LoopCounters{Received: frames, Duplicated: c.Dup}
		}},
		{"drop all", FaultRates{Drop: 1}, func(c FaultCounts) LoopCounters { return LoopCounters{Lost: frames} }},
		{"reorder", FaultRates{Reorder: 0.1}, nil},
		{"reorder all", FaultRates{Reorder: 1}, nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			for _, cfg := range []LoopConfig{
				{Frames: frames},
				{Frames: frames, Queues: 4, Flows: 8, Sizes: []int{60, 61, 128, 1514}, Window: 32},
				{Frames: frames, Window: 1},
			} {
				cfg.Clock = new(wireClock)
				tc.rates.Seed = 3
				la, lb := NewLoop(cfg)
				w := NewInjector(la, tc.rates)
				arrivals := loopForward(t, w, lb, la, lb, cfg.Clock.(*wireClock))
				got, c := la.Counters(), w.Counts()
				if tc.want == nil {
					want := loopOracle(frames, arrivals)
					if got != want || got.Received != frames || got.Reordered > c.Reorder {
						t.Fatalf("%+v:\n got %+v\nwant %+v", c, got, want)
					}
					if got.Reordered == 0 && cfg.Window > 1 {
						t.Fatalf("%d frames held and none reordered", c.Reorder)
					}
				} else {
					want := tc.want(c)
					want.Sent, want.Bytes = frames, got.Bytes
					if got != want {
						t.Fatalf("%+v:\n got %+v\nwant %+v", c, got, want)
					}
					if tc.rates.Drop+tc.rates.CRC+tc.rates.Corrupt+tc.rates.Dup > 0 && c == (FaultCounts{}) {
						t.Fatal("no fault injected")
					}
				}
				other := lb.Counters()
				other.Bytes = 0
				if other != (LoopCounters{Sent: frames, Received: frames}) {
					t.Fatalf("the other way: %+v", other)
				}
			}
		})
	}
}

// All faults at once: what is not order follows from what was injected.
func TestLoopWithMixedFaults(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rate := rapid.Float64Range(0, 0.2)
		rates := FaultRates{Drop: rate.Draw(t, "drop"), CRC: rate.Draw(t, "crc"), Corrupt: rate.Draw(t, "corrupt"),
			Dup: rate.Draw(t, "dup"), Reorder: rate.Draw(t, "reorder"), Seed: rapid.Uint64().Draw(t, "seed")}
		clock := new(wireClock)
		cfg := LoopConfig{Clock: clock, Frames: uint64(rapid.IntRange(1, 600).Draw(t, "frames")),
			Flows: rapid.IntRange(1, 9).Draw(t, "flows"), Window: rapid.IntRange(1, 300).Draw(t, "window")}
		la, lb := NewLoop(cfg)
		w := NewInjector(la, rates)
		loopForward(t, w, lb, la, lb, clock)
		got, c := la.Counters(), w.Counts()
		want := LoopCounters{
			Sent: cfg.Frames, Received: cfg.Frames - c.Drop - c.CRC - c.Corrupt, Lost: c.Drop + c.CRC,
			Corrupted: c.Corrupt, Duplicated: c.Dup, Bytes: got.Bytes, Reordered: got.Reordered,
		}
		if got != want || got.Reordered > c.Reorder {
			t.Fatalf("%+v:\n got %+v\nwant %+v", c, got, want)
		}
	})
}

func TestParseFaultRates(t *testing.T) {
	for _, tc := range []struct {
		text string
		want FaultRates
		err  error
		key  string
	}{
		{"", FaultRates{}, nil, ""},
		{"drop=1e-4,dup=1e-3", FaultRates{Drop: 1e-4, Dup: 1e-3}, nil, ""},
		{"seed=0x10,reorder=0.25,corrupt=0.5,crc=0.125", FaultRates{Seed: 16, Reorder: 0.25, Corrupt: 0.5, CRC: 0.125}, nil, ""},
		{"drop=1", FaultRates{Drop: 1}, nil, ""},
		{"seed=18446744073709551615", FaultRates{Seed: math.MaxUint64}, nil, ""},
		{"drop=0.1,crc=0.2,corrupt=0.3,dup=0.1,reorder=0.3", FaultRates{Drop: 0.1, CRC: 0.2, Corrupt: 0.3, Dup: 0.1, Reorder: 0.3}, nil, ""},
		{"drop", FaultRates{}, ErrFaultRate, "drop"},
		{"drop=", FaultRates{}, ErrFaultRate, "drop"},
		{"drop=x", FaultRates{}, ErrFaultRate, "drop"},
		{"drop=NaN", FaultRates{}, ErrFaultRate, "drop"},
		{"drop=-0.1", FaultRates{}, ErrFaultRate, "drop"},
		{"dup=1.5", FaultRates{}, ErrFaultRate, "dup"},
		{"dup=inf", FaultRates{}, ErrFaultRate, "dup"},
		{"drop=0.1,drop=0.1", FaultRates{}, ErrFaultTwice, "drop"},
		{"seed=1,seed=1", FaultRates{}, ErrFaultTwice, "seed"},
		{"seed=-1", FaultRates{}, ErrFaultSeed, "seed"},
		{"seed=1.5", FaultRates{}, ErrFaultSeed, "seed"},
		{"Drop=0.1", FaultRates{}, ErrFaultName, "Drop"},
		{"drop=0.1,", FaultRates{}, ErrFaultName, ""},
		{" drop=0.1", FaultRates{}, ErrFaultName, " drop"},
		{"drop=0.6,dup=0.5", FaultRates{}, ErrFaultSum, ""},
	} {
		got, err := ParseFaultRates(tc.text)
		if got != tc.want || !errors.Is(err, tc.err) {
			t.Errorf("%q: %+v, %v; want %+v, %v", tc.text, got, err, tc.want, tc.err)
			continue
		}
		var fe *FaultRateError
		if tc.err != nil && (!errors.As(err, &fe) || fe.Key != tc.key || err.Error() == "") {
			t.Errorf("%q: %v, want an error at key %q", tc.text, err, tc.key)
		}
	}
}
