package core

import (
	"iter"
	"math/bits"
	"sync/atomic"
	"unsafe"

	"github.com/gostmmac/gostmmac/barrier"
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
	RxErrCut   // it ends for want of a descriptor
	RxErrOther // the error summary without a known cause

	RxErrors = RxErrCRC | RxErrOverflow | RxErrWatchdog | RxErrGiant | RxErrDribble | RxErrReceive | RxErrCut | RxErrOther
)

// RxDescs is the descriptor ring of a receive channel in the format of a
// generation. Slots are numbered from 0; ranges wrap at the end of the ring.
type RxDescs interface {
	Ring() Ring
	// Status decodes the OWN word of a finished descriptor.
	Status(own uint32) RxFlags
	// Meta says what the device tells of the frame whose last descriptor is in a
	// slot, beside its errors: flags, and the tags that it took off.
	Meta(slot, own uint32) (f pagepool.Flags, vlan, inner uint16)
	// SetInterrupts makes each n-th slot from 0 on interrupt when it is filled, or
	// none with 0: that is left to the watchdog.
	SetInterrupts(n int)
	// Post gives the device buffers, a in the slots from first on and b, if there
	// are some, from slot 0 on: the bodies, then the OWN words. When it returns
	// the device may own them. The device writes from offset start of a chunk.
	Post(first uint32, a, b []pagepool.Handle, v *pagepool.View, start int)
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

	// What the device counts itself, read when Stats is called: its counters
	// hold 2,047, so a caller who wants them exact looks before as many are lost.
	Missed   uint64 // frames that the DMA dropped because the channel had stopped
	FIFOFull uint64 // frames that found no room in the receive FIFO
}

// All yields the counts by name.
func (s RxStats) All() iter.Seq2[string, uint64] {
	return counts{
		{"packets", s.Packets}, {"bytes", s.Bytes},
		{"crc", s.CRC}, {"overflow", s.Overflow}, {"watchdog", s.Watchdog}, {"giant", s.Giant},
		{"dribble", s.Dribble}, {"receive", s.Receive}, {"other", s.Other},
		{"length", s.Length}, {"oversize", s.Oversize}, {"truncated", s.Truncated}, {"context", s.Context},
		{"aborted", s.Aborted}, {"dropped", s.Dropped},
		{"no_buffer", s.NoBuffer},
		{"missed", s.Missed}, {"fifo_full", s.FIFOFull},
	}.all
}

// Drops is the number of frames that arrived in memory and were not given out.
func (s RxStats) Drops() uint64 {
	return s.CRC + s.Overflow + s.Watchdog + s.Giant + s.Dribble + s.Receive + s.Other +
		s.Length + s.Oversize + s.Truncated + s.Aborted + s.Dropped
}

// rxCounters are the counts as the queue keeps them: one goroutine adds, any
// reads. Frames and bytes are published once a batch.
type rxCounters struct {
	packets, bytes                                          atomic.Uint64
	crc, overflow, watchdog, giant, dribble, receive, other atomic.Uint64
	length, oversize, truncated, context, noBuffer          atomic.Uint64
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
// it, except for Stats.
type RxRing struct {
	gate
	descs   RxDescs
	ring    Ring
	mapping *pagepool.Mapping
	view    *pagepool.View
	pool    *pagepool.Pool
	owner   pagepool.Owner // this ring
	app     pagepool.Owner // whoever calls Recv

	n          uint32 // slots
	interrupts int    // which slots interrupt: see RxDescs
	head       uint32 // the slot that finishes next
	tail       uint32 // the slot to post next
	most       uint32 // slots that the device may have
	posted     uint32 // slots that the device has, or has finished
	threshold  uint32 // empty slots that make a refill worth a doorbell
	fcs        uint32 // bytes of FCS that the device leaves on a frame
	maxLen     uint32 // longest frame as the device reports its length
	fastLen    uint32 // longest frame in one buffer, without FCS and Ethernet header

	// As in Format, where they are one load nearer.
	rxMask, rxWhole, lenMask uint32
	lenAt, csumAt            int
	csum                     *[256]uint8
	lay                      RxLayout
	start                    uint16 // lay.Start
	perFrame                 uint32 // descriptors that the longest frame takes

	// filter, if there is one, sees the frames that Recv is about to give out
	// and returns how many it left, in front.
	filter func([]*pagepool.Buf) int

	handles []pagepool.Handle // what each slot holds; the shadow of the ring
	chain   rxChain
	backlog []*pagepool.Buf // frames that were taken off the ring when it was rebuilt

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

// NewRxRing returns a ring that is held and has no memory: Restart gives it
// that.
func NewRxRing(m *pagepool.Mapping, owner pagepool.Owner, keepsFCS bool) *RxRing {
	r := &RxRing{mapping: m, view: m.View(), pool: m.Pool(), owner: owner, app: m.View().Application(), interrupts: 1}
	if keepsFCS {
		r.fcs = FCSLen
	}
	r.Hold()
	return r
}

// Restart gives a held ring without buffers n slots in d, to receive frames as
// lay says.
func (r *RxRing) Restart(d RxDescs, n int, lay RxLayout) {
	r.descs, r.ring, r.view = d, d.Ring(), r.mapping.View()
	if r.n != uint32(n) {
		r.n, r.handles = uint32(n), make([]pagepool.Handle, n)
		r.threshold = uint32(max(1, min(n/4, 64)))
	}
	r.most = r.n - r.ring.Spare
	r.head, r.tail, r.posted, r.chain = 0, 0, 0, rxChain{}
	r.lay, r.start = lay, uint16(lay.Start)
	r.perFrame = uint32(max(1, (lay.MaxFrame+lay.Size-1)/lay.Size))
	if lay.Single {
		r.perFrame = 1
	}
	r.maxLen = uint32(lay.MaxFrame) - FCSLen + r.fcs
	r.fastLen = min(uint32(lay.First), r.maxLen) - r.fcs - EthHeaderLen
	f := r.ring.Format
	r.rxMask, r.rxWhole, r.lenMask, r.lenAt = f.RxMask, f.RxWhole, uint32(f.RxLen), f.RxLenAt
	r.csum, r.csumAt = f.RxCsum, f.RxCsumAt
	r.descs.SetInterrupts(r.interrupts)
}

// Recv moves received frames to dst and returns how many. It never blocks. The
// caller owns the buffers that it got. One call does not go beyond the end of
// the ring.
func (r *RxRing) Recv(dst []*pagepool.Buf) int {
	if !r.state.CompareAndSwap(gateOpen, gateBusy) {
		return r.recvBacklog(dst)
	}
	at, stride := r.ring.word(r.head), uintptr(r.ring.Format.Stride)
	want := min(MaxBatch, r.posted, r.n-r.head)
	var k, room uint32
	if r.perFrame > 1 {
		k = loadFrames(at, stride, want, r.ring.Format.RxLast, len(dst))
		room = min(k, uint32(len(dst)))
	} else {
		k = loadDone(at, stride, min(want, uint32(len(dst))))
		room = k
	}
	n := uint32(0)
	if k > 0 {
		// Orders the loads of the OWN words in loadDone before those of the
		// descriptors below and of the frames by whoever gets them.
		barrier.DMARead()
		used := uint32(0)
		if !r.chain.active {
			n = r.whole(unsafe.Pointer(unsafe.SliceData(dst)), at, stride, uintptr(room))
			used = n
		}
		if used < k {
			n, used = r.rest(dst, used, k)
		}
		r.posted -= used
		if r.head += used; r.head == r.n {
			r.head = 0
		}
	}
	if empty := r.most - r.posted; empty >= r.threshold || empty > 0 && n == 0 {
		r.refill()
	}
	filter := r.filter
	r.leave()
	// The frames are the caller's already, so whatever the filter does, also
	// if it panics, the ring is in order.
	if filter != nil && n > 0 {
		return filter(dst[:n])
	}
	return int(n)
}

// whole gives out frames of one descriptor without an error, the common case,
// of the first n finished descriptors, the OWN words of which lie from at on,
// stride bytes apart, up to the first that is none, and returns how many. There
// is room for n at to. It goes by pointers, in slices whose bounds Recv knows.
func (r *RxRing) whole(to, at unsafe.Pointer, stride, n uintptr) uint32 {
	first := r.view.First()
	h := unsafe.Add(unsafe.Pointer(unsafe.SliceData(r.handles)), uintptr(r.head)*unsafe.Sizeof(pagepool.Handle(0)))
	csum := unsafe.Pointer(r.csum)
	var bytes uint64
	i := uintptr(0)
	for ; i < n; i++ {
		// The length is the device's word: it is compared with what was posted
		// before a slice is made of it, and loaded once, so that a device that
		// changes what it has given back deceives only itself. One below that of
		// the header wraps.
		size := uint32(*(*uint16)(unsafe.Add(at, r.lenAt)))&r.lenMask - r.fcs
		if *(*uint32)(at)&r.rxMask != r.rxWhole || size-EthHeaderLen > r.fastLen {
			break
		}
		known := *(*uint8)(unsafe.Add(csum, *(*uint8)(unsafe.Add(at, r.csumAt))))
		b := pagepool.At(first, *(*pagepool.Handle)(unsafe.Add(h, i*unsafe.Sizeof(pagepool.Handle(0)))))
		b.Received(r.start, uint16(size), r.app, pagepool.Flags(known))
		at = unsafe.Add(at, stride)
		bytes += uint64(size)
		// Buffers do not lie in the Go heap: stored as a number the pointer
		// needs no write barrier of the garbage collector.
		*(*uintptr)(unsafe.Add(to, i*unsafe.Sizeof(b))) = uintptr(unsafe.Pointer(b))
	}
	r.c.packets.Add(uint64(i))
	r.c.bytes.Add(bytes)
	return uint32(i)
}

// rest takes k finished descriptors off the ring one by one, of which the first
// n are frames in dst already, and stops when dst is full. It returns how many
// frames dst has and how many descriptors are used.
func (r *RxRing) rest(dst []*pagepool.Buf, n, k uint32) (frames, used uint32) {
	if r.ring.Format.RxTogether {
		k = min(k, max(n, r.ended()))
	}
	hs := r.handles[r.head:][:k]
	for used = n; used < k && int(n) < len(dst); used++ {
		f := r.assemble(r.head+used, hs[used], r.ring.own(r.head+used))
		if f == nil {
			continue
		}
		r.count(f)
		dst[n] = f
		n++
	}
	return n, used
}

// ended is how many descriptors from the head on belong to frames of which the last
// descriptor is finished too. Those of a frame that can have no such one, since it is
// longer than any may be or has all slots and needs more, count as well.
func (r *RxRing) ended() uint32 {
	end, k := uint32(0), uint32(0)
	for slot := r.head; k < r.posted; {
		own := r.ring.own(slot)
		if own&ownBit != 0 {
			break
		}
		k++
		if own&r.ring.Format.RxLast != 0 {
			end = k
		}
		if slot++; slot == r.n {
			slot = 0
		}
	}
	if part := k - end; part > r.perFrame || part == r.most && part < r.perFrame {
		end = k
	}
	// Orders the loads of the OWN words above before those of the descriptors and
	// of the frames behind them.
	barrier.DMARead()
	return end
}

// count counts a frame that is given out.
func (r *RxRing) count(f *pagepool.Buf) {
	r.c.packets.Add(1)
	r.c.bytes.Add(uint64(f.FrameLen()))
}

// assemble adds a descriptor's buffer to the frame under way and returns the
// frame when it is complete and good. Buffers of frames that are not go back
// to the pool.
func (r *RxRing) assemble(slot uint32, h pagepool.Handle, own uint32) *pagepool.Buf {
	b, c, flags := r.view.Buf(h), &r.chain, r.descs.Status(own)
	length := own >> (8 * r.lenAt) & r.lenMask
	if flags&RxContext != 0 {
		r.c.context.Add(1)
		r.recycle(h)
		return nil
	}
	if flags&RxFirst != 0 {
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
		if flags&RxLast != 0 {
			r.c.truncated.Add(1)
		}
		r.recycle(h)
		return nil
	}

	// What lies in this buffer: all that was posted, unless it is the last,
	// whose share follows from the length of the frame. What a device reports
	// in the length field of other descriptors differs between versions.
	room := uint32(r.lay.Size)
	if flags&RxFirst != 0 {
		room = uint32(r.lay.First)
	}
	size := room
	last := flags&RxLast != 0
	switch {
	case c.bad:
	case last && flags&RxErrors != 0:
		r.countError(flags)
		c.bad = true
	case last:
		size = length - c.got // wraps if the length is less than what arrived
		if length < r.fcs+EthHeaderLen || size == 0 || size > room {
			r.c.length.Add(1)
			c.bad = true
		} else if length > r.maxLen {
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

	b.Received(r.start, uint16(size), r.owner, 0)
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
	f.Flags, f.VLAN, f.InnerVLAN = r.descs.Meta(slot, own)
	for p := f; p != nil; p = p.Next() {
		p.SetOwner(r.app)
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
	case RxErrCut:
		r.c.truncated.Add(1)
	default:
		r.c.other.Add(1)
	}
}

// recycle gives one buffer that the device has finished back to the pool.
func (r *RxRing) recycle(h pagepool.Handle) { r.pool.Put([]pagepool.Handle{h}) }

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

// refill posts buffers to the empty slots and rings the doorbell once.
func (r *RxRing) refill() {
	if r.post() > 0 {
		r.ring.kick(r.tail)
	}
}

// SetFilter sets what sees received frames before Recv gives them out. The ring
// is held.
func (r *RxRing) SetFilter(f func([]*pagepool.Buf) int) { r.filter = f }

// SetInterrupts makes each n-th slot interrupt when it is filled, or none with 0.
// The ring is held; slots that are posted already are as they were.
func (r *RxRing) SetInterrupts(n int) {
	r.interrupts = n
	if r.descs != nil {
		r.descs.SetInterrupts(n)
	}
}

// Fill posts buffers to all slots of a ring whose channel is not set up yet:
// the tail register is left to the set-up.
func (r *RxRing) Fill() {
	for r.post() > 0 {
	}
}

// post posts buffers to the empty slots but those that the device never owns: a tail
// that names one cannot meet the device's current descriptor.
func (r *RxRing) post() int {
	if mark := r.ring.Format.RxPassed; mark != 0 && r.posted < r.most && r.ring.own(r.tail) == mark {
		r.passed()
	}
	want := min(r.most-r.posted, MaxBatch)
	if want == 0 {
		return 0
	}
	first := r.tail
	// The slots may wrap: the shadow is filled in two pieces at most.
	room := min(want, r.n-first)
	got := uint32(r.pool.Take(r.handles[first:][:room], r.owner))
	if got == room && want > room {
		got += uint32(r.pool.Take(r.handles[:want-room], r.owner))
	}
	if got < want {
		r.c.noBuffer.Add(1)
	}
	if got == 0 {
		return 0
	}
	r.view = r.mapping.View() // the pool may have grown
	k := min(got, r.n-first)
	r.descs.Post(first, r.handles[first:][:k], r.handles[:got-k], r.view, r.lay.Start)
	if r.tail = first + got; r.tail >= r.n {
		r.tail -= r.n
	}
	r.posted += got
	return int(got)
}

// passed counts the slot at the tail as posted and finished: the device has passed
// it, and receives behind it. It gets a buffer, and ends a frame whose length is wrong.
func (r *RxRing) passed() {
	if r.pool.Take(r.handles[r.tail:][:1], r.owner) == 0 {
		return
	}
	// The mark is changed, so that the slot is not passed again when the tail comes
	// round.
	f := r.ring.Format
	barrier.StoreOwn((*uint32)(r.ring.word(r.tail)), f.RxLast|1<<(8*f.RxLenAt))
	if r.tail++; r.tail == r.n {
		r.tail = 0
	}
	r.posted++
}

// Look says whether Recv has something to look at, and if not, after a refill,
// whether the device has no buffer to receive to. It says ready too when another
// goroutine is inside a call, and neither while the ring is held or has ended.
func (r *RxRing) Look() (ready, starved bool) {
	if !r.enter() {
		return r.busy(), false
	}
	if len(r.backlog) > 0 {
		r.leaveBacklog()
		return true, false
	}
	defer r.leave()
	if r.ready() {
		return true, false
	}
	r.refill()
	return false, r.posted == 0
}

// ready says whether there is a descriptor to take off the ring.
func (r *RxRing) ready() bool {
	return r.posted > 0 && r.ring.own(r.head)&ownBit == 0 && (!r.ring.Format.RxTogether || r.ended() > 0)
}

// Layout is where the device writes in a buffer.
func (r *RxRing) Layout() RxLayout { return r.lay }

// Tail is the slot that the tail register names.
func (r *RxRing) Tail() uint32 { return r.tail }

// CountVerdicts counts what a program decided.
func (r *RxRing) CountVerdicts(dropped, aborted int) {
	if dropped > 0 {
		r.c.dropped.Add(uint64(dropped))
	}
	if aborted > 0 {
		r.c.aborted.Add(uint64(aborted))
	}
}

// Harvest takes the frames that the device has finished off a held ring, for
// later calls of Recv, and gives all other buffers back: the device must have
// been stopped.
func (r *RxRing) Harvest() {
	for r.posted > 0 {
		own := r.ring.own(r.head)
		if own&ownBit != 0 {
			break
		}
		// Orders the load of the OWN word before those of the frame by whoever
		// gets it.
		barrier.DMARead()
		if f := r.assemble(r.head, r.handles[r.head], own); f != nil {
			r.count(f)
			r.backlog = append(r.backlog, f)
		}
		r.drop()
	}
	r.returnPosted()
}

// recvBacklog is Recv for a ring with a backlog; it does nothing for one that is
// held, has ended or is in use.
func (r *RxRing) recvBacklog(dst []*pagepool.Buf) int {
	if !r.state.CompareAndSwap(gateBacklog, gateBusy) {
		if r.again() {
			return r.Recv(dst)
		}
		return 0
	}
	n := copy(dst[:min(len(dst), MaxBatch)], r.backlog)
	clear(r.backlog[:n])
	if r.backlog = r.backlog[n:]; len(r.backlog) == 0 {
		r.backlog = nil
	}
	filter := r.filter
	r.Resume()
	if filter != nil && n > 0 {
		return filter(dst[:n])
	}
	return n
}

// Resume lets calls into a held ring again.
func (r *RxRing) Resume() {
	if len(r.backlog) > 0 {
		r.leaveBacklog()
		return
	}
	r.leave()
}

// drop takes the descriptor at the head off the ring.
func (r *RxRing) drop() {
	r.posted--
	if r.head++; r.head == r.n {
		r.head = 0
	}
}

// returnPosted gives the buffers that the device had back, and those of a frame
// of which a part has arrived.
func (r *RxRing) returnPosted() {
	if r.chain.active && !r.chain.bad {
		r.c.truncated.Add(1)
	}
	r.dropChain()
	r.chain = rxChain{}
	for r.posted > 0 {
		r.recycle(r.handles[r.head])
		r.drop()
	}
}

// Release gives all buffers of a ring that has ended back, including those that
// the device had: it must have been stopped.
func (r *RxRing) Release() {
	r.returnPosted()
	r.pool.FreeBatch(r.backlog)
	r.backlog = nil
}

// Forget frees the frames that wait for Recv in an empty ring, and sets the counts
// to 0. The ring is held.
func (r *RxRing) Forget() {
	r.Release()
	r.c = rxCounters{}
}

// Stuck says whether the device has all that it needs to receive into this ring
// and, by the state of the ring, has received nothing since the call before; mark
// is what that call returned. It is for one goroutine and says no while another
// is inside a call.
func (r *RxRing) Stuck(mark uint64) (now uint64, stuck bool) {
	was, ok := r.look()
	if !ok {
		return 0, false
	}
	defer r.unlook(was)
	if r.posted == 0 || r.ready() {
		return 0, false
	}
	s := r.Stats()
	now = 1<<63 | (s.Packets+s.Drops())<<16 | uint64(r.head)
	return now, now == mark
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
		NoBuffer: c.noBuffer.Load(),
	}
}
