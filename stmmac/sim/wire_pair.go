package sim

import (
	"math/bits"
	"sync/atomic"
)

const (
	// maxWireFrame is the longest frame that a wire of this package carries: the
	// receive length field of every generation (14 bits and FCS) ends there.
	maxWireFrame = 16 << 10
	// maxPairCapacity keeps the slot table of a careless caller at a few MiB.
	maxPairCapacity = 1 << 16
	// pairSlotMin is the first size of a slot; most traffic is short frames.
	pairSlotMin = 128
)

// NewPair returns the two ends of a cable. A frame that one end transmits is
// received at the other, in order. Each direction holds capacity frames (1 to
// 65536; what is outside is taken as the nearest) of up to 16 KiB; a longer
// frame is dropped. The cable copies frames into slots that grow to what they
// carried, so that in steady state it does not allocate. It is not elastic.
//
// Each end belongs to one MAC and the two may run on different goroutines;
// Notify and Close may be called from any. An end is notified once after a
// Receive that had nothing, when a frame is there, and once after a Transmit
// that had no room, when a frame was taken. Close of either end unplugs the
// cable: neither end receives any more, and what is transmitted is dropped.
func NewPair(capacity int) (a, b Wire) {
	capacity = min(max(capacity, 1), maxPairCapacity)
	ab, ba := newPairRing(capacity), newPairRing(capacity)
	closed := new(atomic.Bool)
	na, nb := new(wireNotify), new(wireNotify)
	return &pairEnd{out: ab, in: ba, self: na, peer: nb, closed: closed},
		&pairEnd{out: ba, in: ab, self: nb, peer: na, closed: closed}
}

// wireNotify is the function that [Wire.Notify] set.
type wireNotify struct{ f atomic.Pointer[func()] }

func (n *wireNotify) set(f func()) {
	if f == nil {
		n.f.Store(nil)
		return
	}
	n.f.Store(&f)
}

func (n *wireNotify) call() {
	if f := n.f.Load(); f != nil {
		(*f)()
	}
}

// wake calls the function if flag is set, and clears the flag before the call:
// whoever sets it again after that looks again itself. Without a function the
// flag stays, for a function that is set later.
func (n *wireNotify) wake(flag *atomic.Bool) {
	if !flag.Load() {
		return
	}
	if f := n.f.Load(); f != nil {
		flag.Store(false)
		(*f)()
	}
}

type pairSlot struct {
	buf []byte
	n   int
	bad bool
}

// pairRing is one direction: a ring of slots with one producer and one consumer.
type pairRing struct {
	slots    []pairSlot
	mask     uint64
	capacity uint64
	_        [64]byte // the producer's line

	tail     atomic.Uint64 // frames put
	headSeen uint64        // the producer's last look at head
	_        [64]byte      // the consumer's line

	head     atomic.Uint64 // frames taken
	tailSeen uint64        // the consumer's last look at tail
	_        [64]byte

	empty atomic.Bool // the consumer went away with nothing
	full  atomic.Bool // the producer went away with a frame
}

func newPairRing(capacity int) *pairRing {
	// One slot more than frames may wait: the frame that was taken last stays
	// readable until the next is taken, although its place already counts as free.
	n := 1 << bits.Len(uint(capacity))
	r := &pairRing{slots: make([]pairSlot, n), mask: uint64(n - 1), capacity: uint64(capacity)}
	r.empty.Store(true)
	return r
}

// room looks for a free slot; if there is none, the consumer is told to wake us.
func (r *pairRing) room(tail uint64) bool {
	if tail-r.headSeen < r.capacity {
		return true
	}
	r.headSeen = r.head.Load()
	if tail-r.headSeen < r.capacity {
		return true
	}
	// The flag is up before the second look and the consumer looks at the flag
	// after it moved head, so one of the two sees the other.
	r.full.Store(true)
	r.headSeen = r.head.Load()
	if tail-r.headSeen < r.capacity {
		r.full.Store(false)
		return true
	}
	return false
}

// waiting is the same for the consumer.
func (r *pairRing) waiting(head uint64) bool {
	if head != r.tailSeen {
		return true
	}
	r.tailSeen = r.tail.Load()
	if head != r.tailSeen {
		return true
	}
	if !r.empty.Load() {
		r.empty.Store(true)
	}
	r.tailSeen = r.tail.Load()
	if head != r.tailSeen {
		r.empty.Store(false)
		return true
	}
	return false
}

type pairEnd struct {
	out, in    *pairRing
	self, peer *wireNotify
	closed     *atomic.Bool
}

// Transmit implements [Wire].
func (e *pairEnd) Transmit(f Frame) bool {
	if e.closed.Load() || len(f.Data) > maxWireFrame {
		return true
	}
	r := e.out
	tail := r.tail.Load()
	if !r.room(tail) {
		return false
	}
	s := &r.slots[tail&r.mask]
	if len(f.Data) > len(s.buf) {
		s.buf = make([]byte, max(pairSlotMin, 1<<bits.Len(uint(len(f.Data)-1))))
	}
	s.n, s.bad = copy(s.buf, f.Data), f.BadFCS
	r.tail.Store(tail + 1)
	e.peer.wake(&r.empty)
	return true
}

// Receive implements [Wire].
func (e *pairEnd) Receive() (Frame, bool) {
	if e.closed.Load() {
		return Frame{}, false
	}
	r := e.in
	head := r.head.Load()
	if !r.waiting(head) {
		return Frame{}, false
	}
	s := &r.slots[head&r.mask]
	r.head.Store(head + 1)
	e.peer.wake(&r.full)
	return Frame{Data: s.buf[:s.n:s.n], BadFCS: s.bad}, true
}

// Elastic implements [Wire].
func (e *pairEnd) Elastic() bool { return false }

// Notify implements [Wire].
func (e *pairEnd) Notify(f func()) { e.self.set(f) }

// Close implements [Wire].
func (e *pairEnd) Close() error {
	if !e.closed.Swap(true) {
		// A frame that found no room is dropped now, at either end.
		e.self.call()
		e.peer.call()
	}
	return nil
}
