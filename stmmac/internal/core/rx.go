package core

import (
	"iter"
	"math/bits"
	"sync/atomic"

	"github.com/gostmmac/gostmmac/pagepool"
)

// FCSLen is the length of the frame check sequence in bytes (IEEE 802.3).
const FCSLen = 4

// MaxBatch bounds the descriptors that one call handles, and so the scratch
// memory of a ring.
const MaxBatch = 256

// RxFlags are the neutral form of the status of a receive descriptor.
type RxFlags uint32

// Flags of a finished receive descriptor.
const (
	RxFirst   RxFlags = 1 << iota // holds the start of a frame
	RxLast                        // holds the end of a frame
	RxContext                     // holds no frame data

	// Errors of the frame, valid on the last descriptor.
	RxErrCRC
	RxErrOverflow
	RxErrWatchdog
	RxErrGiant
	RxErrDribble
	RxErrReceive
	RxErrOther // the error summary without a known cause

	RxErrors = RxErrCRC | RxErrOverflow | RxErrWatchdog | RxErrGiant | RxErrDribble | RxErrReceive | RxErrOther
	rxWhole  = RxFirst | RxLast
)

// RxDone is a finished receive descriptor, as a value: nothing of it is read
// from the descriptor twice.
type RxDone struct {
	Len   uint32 // on the last descriptor: bytes of the whole frame
	Flags RxFlags
}

// RxDescs is the descriptor ring of a receive channel in the format of a
// generation. Slots are numbered from 0; ranges wrap at the end of the ring.
type RxDescs interface {
	// Done decodes the finished descriptors from slot first on, at most
	// len(out), up to the first that the device still owns. It loads the OWN
	// words of all before any other word of them.
	Done(first uint32, out []RxDone) int
	// Ready says whether the device has finished the descriptor of a slot.
	Ready(slot uint32) bool
	// Post gives the device the slots from first on, with the bus addresses of
	// their buffers. When it returns the device may own them.
	Post(first uint32, addr []uint64)
	// Kick tells the device that all slots before tail are posted.
	Kick(tail uint32)
}

// RxStats counts what a receive queue did. All counts start at 0 when the MAC
// is opened.
type RxStats struct {
	Packets, Bytes uint64 // frames given out, without FCS

	CRC       uint64 // frames with a bad FCS
	Overflow  uint64 // frames cut by a FIFO overflow
	Watchdog  uint64 // frames cut by the receive watchdog
	Giant     uint64 // frames that the device calls giant
	Dribble   uint64 // frames with a fraction of a byte
	Receive   uint64 // frames with an error signalled by the PHY
	Other     uint64 // frames with an error summary and no cause
	Length    uint64 // frames whose length contradicts the buffers they lie in
	Oversize  uint64 // frames longer than the MTU allows or than the one buffer that they may have
	Truncated uint64 // frames whose end or start is missing
	Context   uint64 // descriptors without frame data
	Aborted   uint64 // frames that the program aborted
	Dropped   uint64 // frames that the program dropped

	NoBuffer uint64 // refills that found the pool empty
	Refills  uint64 // doorbells
}

// All yields the counts by name.
func (s RxStats) All() iter.Seq2[string, uint64] {
	return counts{
		{"packets", s.Packets}, {"bytes", s.Bytes},
		{"crc", s.CRC}, {"overflow", s.Overflow}, {"watchdog", s.Watchdog}, {"giant", s.Giant},
		{"dribble", s.Dribble}, {"receive", s.Receive}, {"other", s.Other},
		{"length", s.Length}, {"oversize", s.Oversize}, {"truncated", s.Truncated}, {"context", s.Context},
		{"aborted", s.Aborted}, {"dropped", s.Dropped},
		{"no_buffer", s.NoBuffer}, {"refills", s.Refills},
	}.all
}

// Drops is the number of frames that arrived and were not given out.
func (s RxStats) Drops() uint64 {
	return s.CRC + s.Overflow + s.Watchdog + s.Giant + s.Dribble + s.Receive + s.Other +
		s.Length + s.Oversize + s.Truncated + s.Aborted + s.Dropped
}

// rxCounters are the counts as the queue keeps them: one goroutine adds, any
// reads. Frames and bytes are published once a batch.
type rxCounters struct {
	packets, bytes                                          atomic.Uint64
	crc, overflow, watchdog, giant, dribble, receive, other atomic.Uint64
	length, oversize, truncated, context, noBuffer, refills atomic.Uint64
	aborted, dropped                                        atomic.Uint64
}

// RxLayout is where in a chunk the device writes and how much.
type RxLayout struct {
	Start    int  // bytes from the start of the chunk to the first byte of a frame
	Size     int  // receive buffer size to program, bytes, a multiple of 64
	First    int  // bytes that a first buffer holds
	Single   bool // a frame has one buffer; a longer one is dropped
	MaxFrame int  // longest frame in bytes, with FCS
}

// RxRing is the driver's side of a receive queue. One goroutine at a time uses
// it, except for Stats, Posted and Wake.
type RxRing struct {
	descs   RxDescs
	mapping *pagepool.Mapping
	view    *pagepool.View
	cache   *pagepool.Cache
	owner   pagepool.Owner

	n         uint32 // slots
	head      uint32 // the slot that finishes next
	tail      uint32 // the slot to post next; the device never owns it
	posted    uint32 // slots that the device has, or has finished
	threshold uint32 // empty slots that make a refill worth a doorbell
	fcs       uint32 // bytes of FCS that the device leaves on a frame
	maxLen    uint32 // longest frame as the device reports its length
	lay       RxLayout
	perFrame  uint32 // descriptors that the longest frame takes

	handles []pagepool.Handle // what each slot holds; the shadow of the ring
	chain   rxChain

	done [MaxBatch]RxDone
	addr [MaxBatch]uint64

	c rxCounters
}

// rxChain is a frame of several descriptors of which some have arrived. It
// lives on between calls.
type rxChain struct {
	head, tail *pagepool.Buf
	got        uint32 // bytes in the buffers so far
	active     bool   // a first descriptor was seen and the last was not
	bad        bool   // it is to be dropped: the rest is only recycled
}

// NewRxRing returns an empty ring of n slots.
func NewRxRing(d RxDescs, m *pagepool.Mapping, owner pagepool.Owner, n int, lay RxLayout, keepsFCS bool) *RxRing {
	r := &RxRing{
		descs: d, mapping: m, view: m.View(), cache: m.NewCache(), owner: owner,
		n: uint32(n), lay: lay, handles: make([]pagepool.Handle, n),
		threshold: uint32(max(1, min(n/4, 16))),
		perFrame:  uint32(max(1, (lay.MaxFrame+lay.Size-1)/lay.Size)),
	}
	if keepsFCS {
		r.fcs = FCSLen
	}
	r.maxLen = uint32(lay.MaxFrame) - FCSLen + r.fcs
	if lay.Single {
		r.perFrame = 1
	}
	for i := range r.handles {
		r.handles[i] = pagepool.NoHandle
	}
	return r
}

// Recv moves received frames to dst and returns how many. It never blocks. The
// caller owns the buffers that it got.
func (r *RxRing) Recv(dst []*pagepool.Buf) int {
	want := uint32(min(len(dst)*int(r.perFrame), MaxBatch))
	n := 0
	if want = min(want, r.posted); want > 0 {
		k := r.descs.Done(r.head, r.done[:want])
		n = r.deliver(dst, r.done[:k])
	}
	if empty := r.n - 1 - r.posted; empty >= r.threshold || empty > 0 && n == 0 {
		r.Refill()
	}
	return n
}

// deliver takes finished descriptors off the ring until dst is full.
func (r *RxRing) deliver(dst []*pagepool.Buf, done []RxDone) int {
	var bytes uint64
	n, used := 0, 0
	slot := r.head
	limit := min(uint32(r.lay.First), r.maxLen)
	for i := range done {
		if n == len(dst) {
			break
		}
		d := &done[i]
		h := r.handles[slot]
		if slot++; slot == r.n {
			slot = 0
		}
		used++
		b := r.view.Buf(h)
		// A frame of one descriptor without an error, with no other under way:
		// the common case. The length is the device's word, so it is compared
		// with what was posted before a slice is made of it.
		if d.Flags == rxWhole && d.Len-r.fcs-1 < limit-r.fcs && !r.chain.active {
			b.Received(uint16(r.lay.Start), uint16(d.Len-r.fcs))
			bytes += uint64(d.Len - r.fcs)
			dst[n] = b
			n++
			continue
		}
		if f := r.assemble(b, h, d); f != nil {
			bytes += uint64(f.FrameLen())
			dst[n] = f
			n++
		}
	}
	r.head = slot
	r.posted -= uint32(used)
	if n > 0 {
		r.c.packets.Add(uint64(n))
		r.c.bytes.Add(bytes)
	}
	return n
}

// assemble adds a descriptor's buffer to the frame under way and returns the
// frame when it is complete and good. Buffers of frames that are not go back
// to the pool.
func (r *RxRing) assemble(b *pagepool.Buf, h pagepool.Handle, d *RxDone) *pagepool.Buf {
	c := &r.chain
	if d.Flags&RxContext != 0 {
		r.c.context.Add(1)
		r.recycle(h)
		return nil
	}
	if d.Flags&RxFirst != 0 {
		if c.active {
			// The frame before lost its end in an overflow.
			if !c.bad {
				r.c.truncated.Add(1)
			}
			r.dropChain()
		}
		*c = rxChain{active: true}
	} else if !c.active {
		// The end of a frame whose start was lost: counted once, at its last
		// descriptor.
		if d.Flags&RxLast != 0 {
			r.c.truncated.Add(1)
		}
		r.recycle(h)
		return nil
	}

	// What lies in this buffer: all that was posted, unless it is the last,
	// whose share follows from the length of the frame. What a device reports
	// in the length field of other descriptors differs between versions.
	room := uint32(r.lay.Size)
	if d.Flags&RxFirst != 0 {
		room = uint32(r.lay.First)
	}
	size := room
	last := d.Flags&RxLast != 0
	switch {
	case c.bad:
	case last && d.Flags&RxErrors != 0:
		r.countError(d.Flags)
		c.bad = true
	case last:
		size = d.Len - c.got // wraps if the length is less than what arrived
		if d.Len <= r.fcs || size == 0 || size > room {
			r.c.length.Add(1)
			c.bad = true
		} else if d.Len > r.maxLen {
			r.c.oversize.Add(1)
			c.bad = true
		}
	case r.lay.Single || c.got+size > r.maxLen+uint32(r.lay.Size):
		// A buffer with an offset that is no multiple of the bus width cannot
		// be followed by another, and no frame is longer than the MTU allows.
		r.c.oversize.Add(1)
		c.bad = true
	}
	if c.bad {
		r.recycle(h)
		r.dropChain()
		if last {
			*c = rxChain{}
		}
		return nil
	}

	b.Received(uint16(r.lay.Start), uint16(size))
	b.SetOwner(r.owner)
	c.got += size
	if c.head == nil {
		c.head = b
	} else {
		c.tail.SetNext(b)
	}
	before := c.tail
	c.tail = b
	if !last {
		return nil
	}
	f := c.head
	if r.fcs > 0 {
		if size > r.fcs {
			b.SetLen(int(size - r.fcs))
		} else {
			// The last buffer holds nothing but the end of the FCS.
			before.SetLen(before.Len() - int(r.fcs-size))
			before.SetNext(nil)
			r.recycle(h)
		}
	}
	*c = rxChain{}
	for p := f; p != nil; p = p.Next() {
		p.SetOwner(pagepool.OwnerApplication)
	}
	return f
}

// countError counts a frame once, by its first cause.
func (r *RxRing) countError(f RxFlags) {
	switch f &= RxErrors; RxFlags(1) << bits.TrailingZeros32(uint32(f)) {
	case RxErrCRC:
		r.c.crc.Add(1)
	case RxErrOverflow:
		r.c.overflow.Add(1)
	case RxErrWatchdog:
		r.c.watchdog.Add(1)
	case RxErrGiant:
		r.c.giant.Add(1)
	case RxErrDribble:
		r.c.dribble.Add(1)
	case RxErrReceive:
		r.c.receive.Add(1)
	default:
		r.c.other.Add(1)
	}
}

// recycle gives one buffer that the device has finished back to the pool.
func (r *RxRing) recycle(h pagepool.Handle) { r.cache.Put([]pagepool.Handle{h}) }

// dropChain gives the buffers of the frame under way back.
func (r *RxRing) dropChain() {
	for b := r.chain.head; b != nil; {
		next := b.Next()
		if h, _, ok := r.view.Lookup(b); ok {
			r.recycle(h)
		}
		b = next
	}
	r.chain.head, r.chain.tail, r.chain.got = nil, nil, 0
}

// Refill posts buffers to the empty slots and rings the doorbell once. It
// returns how many it posted.
func (r *RxRing) Refill() int {
	n := r.post()
	if n > 0 {
		r.c.refills.Add(1)
		r.descs.Kick(r.tail)
	}
	return n
}

// Fill posts buffers to all slots of a ring whose channel is not set up yet:
// the tail register is left to the set-up.
func (r *RxRing) Fill() {
	for r.post() > 0 {
	}
}

// post posts buffers to the empty slots but one, which keeps the tail from
// meeting the device's current descriptor.
func (r *RxRing) post() int {
	want := min(r.n-1-r.posted, MaxBatch)
	if want == 0 {
		return 0
	}
	first := r.tail
	var got uint32
	// The slots may wrap: the shadow is filled in two pieces at most.
	if k := min(want, r.n-first); k > 0 {
		got = uint32(r.cache.Take(r.handles[first : first+k]))
		if got == k && want > k {
			got += uint32(r.cache.Take(r.handles[:want-k]))
		}
	}
	if got < want {
		r.c.noBuffer.Add(1)
	}
	if got == 0 {
		return 0
	}
	if v := r.mapping.View(); v != r.view {
		r.view = v // the pool has grown
		r.cache.Refresh(v)
	}
	slot := first
	for i := range got {
		b := r.view.Buf(r.handles[slot])
		b.SetOwner(r.owner)
		r.addr[i] = r.view.Addr(b, r.lay.Start)
		if slot++; slot == r.n {
			slot = 0
		}
	}
	r.descs.Post(first, r.addr[:got])
	r.tail = slot
	r.posted += got
	return int(got)
}

// Ready says whether Recv has something to look at.
func (r *RxRing) Ready() bool { return r.posted > 0 && r.descs.Ready(r.head) }

// Starved says whether the device has no buffer to receive to.
func (r *RxRing) Starved() bool { return r.posted == 0 }

// Layout is where the device writes in a buffer.
func (r *RxRing) Layout() RxLayout { return r.lay }

// Tail is the slot that the tail register names.
func (r *RxRing) Tail() uint32 { return r.tail }

// Pool is where the ring takes its buffers.
func (r *RxRing) Pool() *pagepool.Pool { return r.mapping.Pool() }

// Drop gives the frames of bufs back to the pool.
func (r *RxRing) Drop(bufs []*pagepool.Buf) {
	for _, b := range bufs {
		for b != nil {
			next := b.Next()
			if h, _, ok := r.view.Lookup(b); ok {
				r.recycle(h)
			}
			b = next
		}
	}
}

// CountVerdicts counts what a program decided.
func (r *RxRing) CountVerdicts(dropped, aborted int) {
	if dropped > 0 {
		r.c.dropped.Add(uint64(dropped))
	}
	if aborted > 0 {
		r.c.aborted.Add(uint64(aborted))
	}
}

// Release gives all buffers back, including those that the device had: it must
// have been stopped. The ring is then empty and starts at slot 0.
func (r *RxRing) Release() {
	r.dropChain()
	r.chain = rxChain{}
	for ; r.posted > 0; r.posted-- {
		r.recycle(r.handles[r.head])
		r.handles[r.head] = pagepool.NoHandle
		if r.head++; r.head == r.n {
			r.head = 0
		}
	}
	r.head, r.tail = 0, 0
	r.cache.Flush()
}

// Stats returns the counts. Any goroutine may call it.
func (r *RxRing) Stats() RxStats {
	c := &r.c
	return RxStats{
		Packets: c.packets.Load(), Bytes: c.bytes.Load(),
		CRC: c.crc.Load(), Overflow: c.overflow.Load(), Watchdog: c.watchdog.Load(), Giant: c.giant.Load(),
		Dribble: c.dribble.Load(), Receive: c.receive.Load(), Other: c.other.Load(),
		Length: c.length.Load(), Oversize: c.oversize.Load(), Truncated: c.truncated.Load(), Context: c.context.Load(),
		Aborted: c.aborted.Load(), Dropped: c.dropped.Load(),
		NoBuffer: c.noBuffer.Load(), Refills: c.refills.Load(),
	}
}
