package ixystyle

import (
	"encoding/binary"
	"errors"
	"fmt"
	"testing"

	"github.com/gostmmac/gostmmac/hwtest/sidebyside/fakemac"
)

type rig struct {
	*testing.T
	mem  *Memory
	mac  *fakemac.Device
	pool *Mempool
	dev  *Device
}

const testBufferSize = 2048

func newRig(t *testing.T, ringSize, buffers int) *rig {
	t.Helper()
	mem, err := NewMemory(buffers*testBufferSize + 2*(ringSize*descriptorSize+4096))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := mem.Close(); err != nil {
			t.Error(err)
		}
	})
	r := &rig{T: t, mem: mem, mac: fakemac.New(mem.Bytes(), mem.Bus())}
	if r.pool, err = NewMempool(mem, buffers, testBufferSize); err != nil {
		t.Fatal(err)
	}
	if r.dev, err = Open(r.mac.BAR(), mem, r.pool, Config{RingSize: ringSize, BufferSize: testBufferSize}); err != nil {
		t.Fatal(err)
	}
	return r
}

func (r *rig) receive(n, size int, fill func(int, []byte)) int {
	r.Helper()
	got, err := r.mac.Receive(n, size, fill)
	if err != nil {
		r.Fatal(err)
	}
	return got
}

func (r *rig) transmit(sink func([]byte)) int {
	r.Helper()
	got, err := r.mac.Transmit(sink)
	if err != nil {
		r.Fatal(err)
	}
	return got
}

// checkBuffers fails unless every buffer of the pool is in exactly one place: free, in a ring, or in held.
func (r *rig) checkBuffers(held ...*PktBuf) {
	r.Helper()
	places := make([]int, len(r.pool.buffers))
	for _, i := range r.pool.stack[:r.pool.top] {
		places[i]++
	}
	for _, b := range r.dev.rxQueues[0].buffers {
		places[b.index]++
	}
	tx := &r.dev.txQueues[0]
	for i := tx.clean; i != tx.index; i = wrap(i, uint16(len(tx.buffers))) {
		places[tx.buffers[i].index]++
	}
	for _, b := range held {
		places[b.index]++
	}
	for i, n := range places {
		if n != 1 {
			r.Fatalf("buffer %d is in %d places", i, n)
		}
	}
}

// Frames keep their order and their bytes, except the one that the forwarder changes, for every way
// in which batches meet the ends of the rings.
func TestForward(t *testing.T) {
	for _, ringSize := range []int{64, 512} {
		for _, batch := range []int{1, 2, 7, 8, 31, 32, 33, 64, 256} {
			t.Run(fmt.Sprintf("ring=%d/batch=%d", ringSize, batch), func(t *testing.T) {
				r := newRig(t, ringSize, 3*ringSize)
				bufs := make([]*PktBuf, batch)
				in, out := uint64(0), uint64(0)
				content := func(seq uint64, frame []byte) {
					for i := range frame {
						frame[i] = byte(seq>>3) ^ byte(i*7)
					}
					binary.LittleEndian.PutUint64(frame[8:], seq)
				}
				want := make([]byte, testBufferSize)
				for round := range 300 {
					// The steps are odd, so the batches start everywhere in the ring. Up to 31 sent descriptors wait to be
					// cleaned, which leaves room for ring size - 32 frames.
					size := 60 + round*37%1454
					n := r.receive(1+round*13%(ringSize-txCleanBatch), size, func(_ int, frame []byte) {
						content(in, frame)
						in++
					})
					if got := Forward(r.dev, r.dev, bufs, n); got != n {
						t.Fatalf("round %d: forwarded %d of %d", round, got, n)
					}
					sent := r.transmit(func(frame []byte) {
						if len(frame) != size {
							t.Fatalf("frame %d has %d bytes, want %d", out, len(frame), size)
						}
						content(out, want[:size])
						want[0]++
						if string(frame) != string(want[:size]) {
							t.Fatalf("frame %d: % x, want % x", out, frame, want[:size])
						}
						out++
					})
					if sent != n {
						t.Fatalf("round %d: sent %d of %d", round, sent, n)
					}
					r.checkBuffers()
				}
				if in != out || in < uint64(20*ringSize) {
					t.Errorf("%d frames in, %d out, too few turns of the ring", in, out)
				}
			})
		}
	}
}

func TestForwardStopsAtTheCount(t *testing.T) {
	r := newRig(t, 64, 256)
	r.receive(20, 60, nil)
	if n := Forward(r.dev, r.dev, make([]*PktBuf, 8), 13); n != 13 {
		t.Errorf("forwarded %d, want 13", n)
	}
	if n := Forward(r.dev, r.dev, make([]*PktBuf, 8), 100); n != 7 {
		t.Errorf("forwarded %d of the rest, want 7", n)
	}
}

// What the transmit ring has no room for is dropped and its buffers come back.
func TestForwardDrops(t *testing.T) {
	r := newRig(t, 64, 256)
	bufs := make([]*PktBuf, 16)
	for round, want := range []int{50, 13, 0} {
		r.receive(50, 60, nil)
		if n := Forward(r.dev, r.dev, bufs, 50); n != want {
			t.Errorf("round %d: forwarded %d, want %d", round, n, want)
		}
		r.checkBuffers()
	}
	if n := r.transmit(nil); n != 63 {
		t.Errorf("device sent %d, want 63", n)
	}
}

// The device may never come around to a descriptor that the driver has not taken.
func TestReceiveRingFull(t *testing.T) {
	r := newRig(t, 64, 256)
	if n := r.receive(1000, 60, nil); n != 63 {
		t.Fatalf("a ring of 64 took %d frames, want 63", n)
	}
	bufs := make([]*PktBuf, 10)
	if n := r.dev.RxBatch(0, bufs); n != 10 {
		t.Fatalf("RxBatch gave %d, want 10", n)
	}
	if n := r.receive(1000, 60, nil); n != 10 {
		t.Errorf("after a refill of 10 the device took %d", n)
	}
	r.checkBuffers(bufs...)
}

// With no buffer for the refill a frame waits in the ring, and nothing is lost.
func TestPoolExhausted(t *testing.T) {
	r := newRig(t, 64, 64+5)
	seq := byte(0)
	r.receive(20, 60, func(_ int, frame []byte) { frame[0] = seq; seq++ })
	bufs := make([]*PktBuf, 32)
	if n := r.dev.RxBatch(0, bufs); n != 5 {
		t.Fatalf("with 5 spare buffers RxBatch gave %d", n)
	}
	if n := r.dev.RxBatch(0, bufs[5:]); n != 0 {
		t.Fatalf("with none RxBatch gave %d", n)
	}
	r.checkBuffers(bufs[:5]...)
	next := byte(0)
	for next < 20 {
		for _, b := range bufs[:min(5, 20-next)] {
			if b.Pkt[0] != next {
				t.Fatalf("frame %d where %d is due", b.Pkt[0], next)
			}
			next++
			b.Free()
		}
		if next < 20 {
			if n := r.dev.RxBatch(0, bufs); n != 5 {
				t.Fatalf("RxBatch gave %d after 5 buffers came back", n)
			}
		}
	}
	r.checkBuffers()
}

func TestReceiveDropsBadFrames(t *testing.T) {
	const good = rdes3First | rdes3Last | 64
	for name, status := range map[string]uint32{
		"error summary":   good | rdes3ErrorSummary,
		"not first":       rdes3Last | 64,
		"not last":        rdes3First | 64,
		"context":         good | rdes3Context,
		"no bytes":        rdes3First | rdes3Last,
		"only FCS":        rdes3First | rdes3Last | frameCheckSequence,
		"past the buffer": rdes3First | rdes3Last | (testBufferSize + frameCheckSequence + 1),
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, 64, 128)
			bufs := make([]*PktBuf, 8)
			for turn := range 100 {
				r.receive(3, 60, func(i int, frame []byte) { frame[0] = byte(i) })
				q := &r.dev.rxQueues[0]
				setControl(q.descriptors[(q.index+1)%64], 0, status)
				if n := r.dev.RxBatch(0, bufs); n != 2 || bufs[0].Pkt[0] != 0 || bufs[1].Pkt[0] != 2 {
					t.Fatalf("got %d frames, want the first and the third", n)
				}
				if got := r.dev.Dropped(); got != uint64(turn+1) {
					t.Fatalf("dropped %d, want %d", got, turn+1)
				}
				r.checkBuffers(bufs[:2]...)
				bufs[0].Free()
				bufs[1].Free()
			}
		})
	}
}

func TestTransmitRingFull(t *testing.T) {
	r := newRig(t, 64, 256)
	bufs := make([]*PktBuf, 100)
	for i := range bufs {
		bufs[i] = r.pool.Alloc()
		bufs[i].Pkt = bufs[i].Pkt[:60]
	}
	if n := r.dev.TxBatch(0, bufs); n != 63 {
		t.Fatalf("a ring of 64 took %d", n)
	}
	if n := r.dev.TxBatch(0, bufs[63:]); n != 0 {
		t.Fatalf("a full ring took %d", n)
	}
	r.checkBuffers(bufs[63:]...)
	if n := r.transmit(nil); n != 63 {
		t.Fatalf("device sent %d", n)
	}
	// Cleaning goes by 32 and leaves 31 of the 63 where they are.
	if n := r.dev.TxBatch(0, bufs[63:]); n != 32 {
		t.Errorf("after cleaning the ring took %d, want 32", n)
	}
	r.checkBuffers(bufs[95:]...)
}

// One doorbell per batch, and none for nothing received.
func TestDoorbells(t *testing.T) {
	r := newRig(t, 64, 256)
	register := func(offset int) uint32 { return binary.NativeEndian.Uint32(r.mac.BAR()[offset:]) }
	const mark = 0xdead0000
	r.dev.setReg32(dmaCh0RxTail, mark)
	bufs := make([]*PktBuf, 8)
	if n := r.dev.RxBatch(0, bufs); n != 0 || register(dmaCh0RxTail) != mark {
		t.Errorf("an empty poll gave %d and wrote the tail", n)
	}
	r.dev.setReg32(dmaCh0RxTail, descriptorAddress(r.dev.rxQueues[0].bus, 63))
	r.receive(5, 60, nil)
	n := r.dev.RxBatch(0, bufs)
	if got, want := register(dmaCh0RxTail), descriptorAddress(r.dev.rxQueues[0].bus, 4); n != 5 || got != want {
		t.Errorf("RxBatch %d, tail %#x, want 5 and the last refilled %#x", n, got, want)
	}
	r.dev.TxBatch(0, bufs[:5])
	if got, want := register(dmaCh0TxTail), descriptorAddress(r.dev.txQueues[0].bus, 5); got != want {
		t.Errorf("transmit tail %#x, want the next free %#x", got, want)
	}
}

func TestNoSuchQueue(t *testing.T) {
	r := newRig(t, 64, 128)
	r.receive(1, 60, nil)
	bufs := make([]*PktBuf, 1)
	if r.dev.RxBatch(1, bufs) != 0 || r.dev.TxBatch(1, bufs) != 0 {
		t.Error("queue 1 moved packets")
	}
}

func TestDoubleFree(t *testing.T) {
	r := newRig(t, 64, 65)
	b := r.pool.Alloc()
	if b == nil || r.pool.Alloc() != nil {
		t.Fatal("want exactly one free buffer")
	}
	for range 200 {
		b.Free()
	}
	if n := r.pool.Available(); n != 65 {
		t.Errorf("%d free of 65", n)
	}
}

func TestRejects(t *testing.T) {
	mem, err := NewMemory(1 << 20)
	if err != nil {
		t.Fatal(err)
	}
	defer mem.Close()
	if _, err := NewMemory(0); err == nil {
		t.Error("a memory of nothing is made")
	}
	for _, c := range []struct{ n, size int }{{0, 2048}, {-1, 2048}, {1<<16 + 1, 64}, {1, 0}, {1, 100}, {1, 16384}} {
		if _, err := NewMempool(mem, c.n, c.size); err == nil {
			t.Errorf("a pool of %d × %d is made", c.n, c.size)
		}
	}
	if _, err := NewMempool(mem, 1000, 2048); !errors.Is(err, ErrNoMemory) {
		t.Errorf("a pool larger than memory: %v", err)
	}
	pool, err := NewMempool(mem, 500, 2048)
	if err != nil {
		t.Fatal(err)
	}
	bar := fakemac.New(mem.Bytes(), mem.Bus()).BAR()
	for name, open := range map[string]func() (*Device, error){
		"short BAR":     func() (*Device, error) { return Open(bar[:0x1000], mem, pool, Config{64, 2048}) },
		"odd BAR":       func() (*Device, error) { return Open(bar[1:], mem, pool, Config{64, 2048}) },
		"small ring":    func() (*Device, error) { return Open(bar, mem, pool, Config{32, 2048}) },
		"large ring":    func() (*Device, error) { return Open(bar, mem, pool, Config{2048, 2048}) },
		"odd ring":      func() (*Device, error) { return Open(bar, mem, pool, Config{100, 2048}) },
		"small pool":    func() (*Device, error) { return Open(bar, mem, pool, Config{512, 2048}) },
		"other buffers": func() (*Device, error) { return Open(bar, mem, pool, Config{64, 1536}) },
	} {
		if _, err := open(); err == nil {
			t.Errorf("%s is accepted", name)
		}
	}
	if n := pool.Available(); n != 500 {
		t.Errorf("refused Opens took %d buffers", 500-n)
	}
}

func TestMemoryCloseTwice(t *testing.T) {
	mem, err := NewMemory(4096)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(mem.Close(), mem.Close()); err != nil {
		t.Error(err)
	}
	if _, err := NewMempool(mem, 1, 64); !errors.Is(err, ErrNoMemory) {
		t.Errorf("a pool in closed memory: %v", err)
	}
}
