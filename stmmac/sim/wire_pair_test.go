package sim

import (
	"bytes"
	"encoding/binary"
	"runtime"
	"sync"
	"testing"
)

// wireFrame returns a frame of n bytes that all depend on k.
func wireFrame(k uint64, n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(k + uint64(i)*7)
	}
	if n >= 8 {
		binary.LittleEndian.PutUint64(b, k)
	}
	return b
}

func mustReceive(t *testing.T, w Wire, want []byte, bad bool) {
	t.Helper()
	f, ok := w.Receive()
	if !ok || f.BadFCS != bad || !bytes.Equal(f.Data, want) {
		t.Fatalf("received %d bytes, bad %v, ok %v; want %d bytes, bad %v", len(f.Data), f.BadFCS, ok, len(want), bad)
	}
}

func mustNotReceive(t *testing.T, w Wire) {
	t.Helper()
	if f, ok := w.Receive(); ok {
		t.Fatalf("received %d bytes, want nothing", len(f.Data))
	}
}

func TestPairCapacity(t *testing.T) {
	for _, tc := range []struct{ capacity, want int }{
		{-3, 1}, {0, 1}, {1, 1}, {2, 2}, {3, 3}, {4, 4}, {7, 7}, {8, 8}, {1000, 1000}, {1 << 30, maxPairCapacity},
	} {
		a, b := NewPair(tc.capacity)
		for round := range 3 {
			n := 0
			for a.Transmit(Frame{Data: wireFrame(uint64(n), 60)}) {
				n++
			}
			if n != tc.want {
				t.Fatalf("capacity %d, round %d: took %d frames, want %d", tc.capacity, round, n, tc.want)
			}
			for k := range n {
				mustReceive(t, b, wireFrame(uint64(k), 60), false)
			}
			mustNotReceive(t, b)
		}
	}
}

func TestPairFrames(t *testing.T) {
	a, b := NewPair(4)
	if a.Elastic() || b.Elastic() {
		t.Fatal("a pair must not be elastic")
	}
	for _, n := range []int{0, 1, 60, 127, 128, 129, 1514, 9018, maxWireFrame, 64} {
		for _, bad := range []bool{false, true} {
			data := wireFrame(uint64(n), n)
			if !a.Transmit(Frame{Data: data, BadFCS: bad}) || !b.Transmit(Frame{Data: data, BadFCS: !bad}) {
				t.Fatalf("size %d: no room", n)
			}
			want := bytes.Clone(data)
			clear(data) // the sender reuses its memory
			mustReceive(t, b, want, bad)
			mustReceive(t, a, want, !bad)
		}
	}
	if !a.Transmit(Frame{Data: make([]byte, maxWireFrame+1)}) {
		t.Fatal("an overlong frame must be dropped")
	}
	mustNotReceive(t, b)
}

// A received frame stays as it is until the next Receive, even when the sender
// fills everything that is free.
func TestPairFrameStaysValid(t *testing.T) {
	for capacity := 1; capacity <= 9; capacity++ {
		a, b := NewPair(capacity)
		for k := range uint64(50) {
			if !a.Transmit(Frame{Data: wireFrame(k, 64)}) {
				t.Fatal("no room")
			}
			f, ok := b.Receive()
			if !ok {
				t.Fatal("nothing received")
			}
			n := 0
			for a.Transmit(Frame{Data: wireFrame(1000+k, 64)}) {
				n++
			}
			if n != capacity || !bytes.Equal(f.Data, wireFrame(k, 64)) {
				t.Fatalf("capacity %d: %d more frames; the held frame is %x", capacity, n, f.Data[:8])
			}
			for range n {
				b.Receive()
			}
		}
	}
}

func TestPairNotify(t *testing.T) {
	a, b := NewPair(2)
	var na, nb int
	a.Notify(func() { na++ })
	b.Notify(func() { nb++ })
	expect := func(what string, wa, wb int) {
		t.Helper()
		if na != wa || nb != wb {
			t.Fatalf("%s: notified a %d, b %d times; want %d, %d", what, na, nb, wa, wb)
		}
	}
	data := wireFrame(1, 60)
	a.Transmit(Frame{Data: data})
	expect("first frame", 0, 1)
	a.Transmit(Frame{Data: data})
	expect("second frame, b has not looked", 0, 1)
	if a.Transmit(Frame{Data: data}) {
		t.Fatal("took a third frame")
	}
	b.Receive()
	expect("room", 1, 1)
	b.Receive()
	expect("more room, a has not looked", 1, 1)
	mustNotReceive(t, b)
	mustNotReceive(t, b)
	a.Transmit(Frame{Data: data})
	expect("frame after nothing", 1, 2)
	b.Notify(nil)
	b.Receive()
	mustNotReceive(t, b)
	a.Transmit(Frame{Data: data})
	expect("no function", 1, 2)
}

func TestPairClose(t *testing.T) {
	for _, second := range []bool{false, true} {
		a, b := NewPair(1)
		var na, nb int
		a.Notify(func() { na++ })
		b.Notify(func() { nb++ })
		data := wireFrame(1, 60)
		a.Transmit(Frame{Data: data})
		b.Transmit(Frame{Data: data})
		if a.Transmit(Frame{Data: data}) || b.Transmit(Frame{Data: data}) {
			t.Fatal("took a second frame")
		}
		na, nb = 0, 0
		w := a
		if second {
			w = b
		}
		for range 2 {
			if err := w.Close(); err != nil {
				t.Fatal(err)
			}
		}
		if na != 1 || nb != 1 {
			t.Fatalf("close notified a %d, b %d times, want once each", na, nb)
		}
		mustNotReceive(t, a)
		mustNotReceive(t, b)
		for range 5 {
			if !a.Transmit(Frame{Data: data}) || !b.Transmit(Frame{Data: data}) {
				t.Fatal("a closed pair must drop frames")
			}
		}
		mustNotReceive(t, a)
		mustNotReceive(t, b)
	}
}

// Two goroutines that sleep whenever the wire has nothing to do for them: a lost
// wake-up ends the test by its deadlock.
func TestPairGoroutines(t *testing.T) {
	const frames = 20000
	for _, capacity := range []int{1, 2, 3, 64} {
		a, b := NewPair(capacity)
		sizes := []int{60, 64, 300, 1514}
		var wg sync.WaitGroup
		// Each end sends frames and receives as many, as a model does.
		end := func(w Wire) {
			defer wg.Done()
			wake := make(chan struct{}, 1)
			w.Notify(func() {
				select {
				case wake <- struct{}{}:
				default:
				}
			})
			for sent, got := uint64(0), uint64(0); sent < frames || got < frames; {
				idle := true
				if sent < frames && w.Transmit(Frame{Data: wireFrame(sent, sizes[sent%4]), BadFCS: sent%3 == 0}) {
					sent++
					idle = false
				}
				if f, ok := w.Receive(); ok {
					if got >= frames || f.BadFCS != (got%3 == 0) || !bytes.Equal(f.Data, wireFrame(got, sizes[got%4])) {
						t.Errorf("capacity %d: frame %d is wrong", capacity, got)
						w.Close()
						return
					}
					got++
					idle = false
				}
				if idle {
					<-wake
				}
			}
		}
		wg.Add(2)
		go end(a)
		go end(b)
		wg.Wait()
		if t.Failed() {
			return
		}
	}
}

func TestPairCloseUnblocks(t *testing.T) {
	a, b := NewPair(1)
	wake := make(chan struct{}, 1)
	b.Notify(func() {
		select {
		case wake <- struct{}{}:
		default:
		}
	})
	started, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		b.Transmit(Frame{Data: wireFrame(0, 60)})
		for first := true; !b.Transmit(Frame{Data: wireFrame(1, 60)}); first = false {
			if first {
				close(started)
			}
			<-wake
		}
	}()
	<-started
	runtime.Gosched()
	a.Close()
	<-done
}

func TestPairAllocs(t *testing.T) {
	a, b := NewPair(8)
	a.Notify(func() {})
	b.Notify(func() {})
	short, long := wireFrame(1, 60), wireFrame(2, 1514)
	round := func() {
		for range 12 { // as many as there are slots
			a.Transmit(Frame{Data: short})
			a.Transmit(Frame{Data: long})
			for range 3 {
				b.Receive()
			}
		}
	}
	round()
	if n := testing.AllocsPerRun(100, round); n != 0 {
		t.Fatalf("%v allocations per round, want 0", n)
	}
}

func BenchmarkPair(b *testing.B) {
	for _, n := range []int{60, 1514} {
		b.Run(map[int]string{60: "60", 1514: "1514"}[n], func(b *testing.B) {
			x, y := NewPair(64)
			data := wireFrame(1, n)
			b.ReportAllocs()
			for i := 0; i < b.N; i += 32 {
				for range 32 {
					x.Transmit(Frame{Data: data})
				}
				for range 32 {
					y.Receive()
				}
			}
		})
	}
}
