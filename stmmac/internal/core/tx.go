package core

import (
	"iter"
	"sync/atomic"

	"github.com/gostmmac/gostmmac/pagepool"
)

// TxFlags are the neutral form of what a transmit descriptor asks for.
type TxFlags uint32

// Flags of a transmit descriptor to post.
const (
	TxFirst     TxFlags = 1 << iota // starts a frame
	TxLast                          // ends a frame
	TxInterrupt                     // tells the driver when it is done
)

// TxPost is a transmit descriptor to post.
type TxPost struct {
	Addr     uint64
	Len      uint32 // bytes of this buffer
	FrameLen uint32 // bytes of the frame, on its first descriptor
	Flags    TxFlags
}

// TxStatus is the neutral form of the status of a transmit descriptor.
type TxStatus uint32

// Bits of a finished transmit descriptor.
const (
	TxDoneLast TxStatus = 1 << iota // ends a frame; only then the errors are valid
	TxErrUnderflow
	TxErrCollision // late or excessive collisions
	TxErrCarrier   // no carrier or loss of carrier
	TxErrDeferral
	TxErrJabber
	TxErrFlushed
	TxErrChecksum
	TxErrOther // the error summary without a known cause

	TxErrors = TxErrUnderflow | TxErrCollision | TxErrCarrier | TxErrDeferral | TxErrJabber | TxErrFlushed |
		TxErrChecksum | TxErrOther
)

// TxDescs is the descriptor ring of a transmit channel in the format of a
// generation. Slots are numbered from 0; ranges wrap at the end of the ring.
type TxDescs interface {
	// Post gives the device the slots from first on: bodies, then the OWN words
	// of all that do not start a frame, then those that do.
	Post(first uint32, d []TxPost)
	// Kick tells the device that all slots before tail are posted.
	Kick(tail uint32)
	// Done decodes the status of the finished descriptors from slot first on,
	// at most len(out), up to the first that the device still owns.
	Done(first uint32, out []TxStatus) int
	// Ready says whether the device has finished the descriptor of a slot.
	Ready(slot uint32) bool
}

// TxStats counts what a transmit queue did. All counts start at 0 when the MAC
// is opened.
type TxStats struct {
	Packets, Bytes uint64 // frames given to the device, without pad and FCS
	Done           uint64 // frames that the device has finished

	Underflow uint64 // frames cut by an underflow of the FIFO
	Collision uint64 // frames lost to late or excessive collisions
	Carrier   uint64 // frames sent without carrier
	Deferral  uint64 // frames deferred too long
	Jabber    uint64 // frames cut by the jabber timer
	Flushed   uint64 // frames flushed
	Checksum  uint64 // frames whose checksums could not be inserted
	Other     uint64 // frames with an error summary and no cause

	Refused   uint64 // frames that Send returned an error for
	Doorbells uint64
}

// All yields the counts by name.
func (s TxStats) All() iter.Seq2[string, uint64] {
	return counts{
		{"packets", s.Packets}, {"bytes", s.Bytes}, {"done", s.Done},
		{"underflow", s.Underflow}, {"collision", s.Collision}, {"carrier", s.Carrier}, {"deferral", s.Deferral},
		{"jabber", s.Jabber}, {"flushed", s.Flushed}, {"checksum", s.Checksum}, {"other", s.Other},
		{"refused", s.Refused}, {"doorbells", s.Doorbells},
	}.all
}

// Errors is the number of frames that the device finished with an error.
func (s TxStats) Errors() uint64 {
	return s.Underflow + s.Collision + s.Carrier + s.Deferral + s.Jabber + s.Flushed + s.Checksum + s.Other
}

type txCounters struct {
	packets, bytes, done                                                         atomic.Uint64
	underflow, collision, carrier, deferral, jabber, flushed, checksum, anyOther atomic.Uint64
	refused, doorbells                                                           atomic.Uint64
}

// TxRing is the driver's side of a transmit queue. One goroutine at a time uses
// it, except for Stats.
type TxRing struct {
	descs   TxDescs
	mapping *pagepool.Mapping
	view    *pagepool.View
	cache   *pagepool.Cache
	owner   pagepool.Owner

	n        uint32 // slots
	clean    uint32 // the slot that finishes next
	tail     uint32 // the slot to post next; the device never owns it
	inflight uint32 // slots that the device has, or has finished
	maxFrame uint32 // longest frame in bytes, without FCS
	maxBuf   uint32 // longest buffer in bytes
	keep     bool   // finished frames are kept for Reap

	handles []pagepool.Handle // what each slot holds; the shadow of the ring

	post [MaxBatch]TxPost
	done [MaxBatch]TxStatus

	c txCounters
}

// NewTxRing returns an empty ring of n slots.
func NewTxRing(d TxDescs, m *pagepool.Mapping, owner pagepool.Owner, n, maxFrame, maxBuf int, keep bool) *TxRing {
	return &TxRing{
		descs: d, mapping: m, view: m.View(), cache: m.NewCache(), owner: owner,
		n: uint32(n), maxFrame: uint32(maxFrame), maxBuf: uint32(maxBuf), keep: keep,
		handles: make([]pagepool.Handle, n),
	}
}

// Space is how many more buffers Send can take.
func (r *TxRing) Space() int { return int(r.n - 1 - r.inflight) }

// Inflight is how many buffers are with the device.
func (r *TxRing) Inflight() int { return int(r.inflight) }

// Send takes a prefix of src and returns how many frames that was. With fewer
// than len(src) and no error the ring is full for now; with an error src[n]
// can never be sent, and the caller keeps it and those behind it.
func (r *TxRing) Send(src []*pagepool.Buf) (int, error) {
	if !r.keep && r.n-1-r.inflight < uint32(len(src))+r.n/4 {
		r.reclaim(nil)
	}
	space := min(r.n-1-r.inflight, MaxBatch)
	slot := r.tail
	var used uint32
	var bytes uint64
	var err error
	n := 0
	for _, b := range src {
		if used == space {
			break
		}
		h, addr, ok := r.view.Lookup(b)
		// A frame of one buffer: the common case. The limits hold for lengths
		// of 0 too, since both sides are unsigned.
		if size := uint32(b.Len()); ok && b.Next() == nil && b.Owner() == pagepool.OwnerApplication && size-EthHeaderLen <= r.maxFrame-EthHeaderLen && size <= r.maxBuf {
			r.handles[slot] = h
			b.SetOwner(r.owner)
			p := &r.post[used]
			p.Addr, p.Len, p.FrameLen, p.Flags = addr, size, size, TxFirst|TxLast
			bytes += uint64(size)
			if slot++; slot == r.n {
				slot = 0
			}
			used++
			n++
			continue
		}
		k, size, e := r.gather(b, slot, used, space)
		if e != nil {
			r.c.refused.Add(1)
			err = e
			break
		}
		if k == 0 {
			break
		}
		bytes += uint64(size)
		used += k
		if slot += k; slot >= r.n {
			slot -= r.n
		}
		n++
	}
	if n == 0 {
		return 0, err
	}
	r.post[used-1].Flags |= TxInterrupt
	r.descs.Post(r.tail, r.post[:used])
	r.tail = slot
	r.inflight += used
	r.c.packets.Add(uint64(n))
	r.c.bytes.Add(bytes)
	r.c.doorbells.Add(1)
	r.descs.Kick(slot)
	return n, err
}

// gather prepares the descriptors of a frame of several buffers. It returns how
// many there are, 0 if the ring has no room for them now, and the bytes of the
// frame. Nothing of a frame that is refused stays behind: the slots are posted
// only when Send has all of it.
func (r *TxRing) gather(b *pagepool.Buf, slot, used, space uint32) (k, size uint32, err error) {
	if v := r.mapping.View(); v != r.view {
		r.view = v // the pool has grown
		r.cache.Refresh(v)
	}
	most := min(r.n-1, MaxBatch)
	for p := b; p != nil; p = p.Next() {
		if k++; k > most {
			return 0, 0, ErrFrameTooLong
		}
		n := uint32(p.Len())
		if n == 0 {
			return 0, 0, ErrFrameTooShort
		}
		if size += n; size > r.maxFrame || n > r.maxBuf {
			return 0, 0, ErrFrameTooLong
		}
		h, addr, ok := r.view.Lookup(p)
		if !ok {
			return 0, 0, ErrForeignBuffer
		}
		if p.Owner() != pagepool.OwnerApplication {
			return 0, 0, ErrNotHeld
		}
		if used+k <= space {
			r.handles[slot] = h
			if slot++; slot == r.n {
				slot = 0
			}
			r.post[used+k-1] = TxPost{Addr: addr, Len: n}
		}
	}
	if size < EthHeaderLen {
		return 0, 0, ErrFrameTooShort
	}
	if used+k > space {
		return 0, 0, nil
	}
	for p := b; p != nil; p = p.Next() {
		if p.Owner() == r.owner { // linked twice into this frame
			for q := b; q != p; q = q.Next() {
				q.SetOwner(pagepool.OwnerApplication)
			}
			return 0, 0, ErrNotHeld
		}
		p.SetOwner(r.owner)
	}
	r.post[used].Flags |= TxFirst
	r.post[used].FrameLen = size
	r.post[used+k-1].Flags |= TxLast
	return k, size, nil
}

// Check says why Send refuses a frame whatever the state of the ring, or nil.
func (r *TxRing) Check(b *pagepool.Buf) error {
	_, _, err := r.gather(b, r.tail, 0, 0)
	return err
}

// Reap takes finished frames off the ring. With a dst it gives at most len(dst)
// of them to the caller, who owns them then; without one all go back to the
// pool. It returns how many frames it took.
func (r *TxRing) Reap(dst []*pagepool.Buf) int { return r.reclaim(dst) }

func (r *TxRing) reclaim(dst []*pagepool.Buf) int {
	frames := 0
	for r.inflight > 0 {
		want := min(r.inflight, MaxBatch)
		k := uint32(r.descs.Done(r.clean, r.done[:want]))
		if k == 0 {
			break
		}
		// A frame is taken only when its last descriptor is done: its buffers
		// stay together.
		var whole uint32
		for i, s := range r.done[:k] {
			if s&TxDoneLast == 0 {
				continue
			}
			if dst != nil {
				if frames == len(dst) {
					break
				}
				dst[frames] = r.link(r.clean+whole, uint32(i)+1-whole)
			}
			if s&TxErrors != 0 {
				r.countError(s)
			}
			frames++
			whole = uint32(i) + 1
		}
		if whole == 0 {
			break
		}
		if dst == nil {
			first := min(whole, r.n-r.clean)
			r.cache.Put(r.handles[r.clean : r.clean+first])
			r.cache.Put(r.handles[:whole-first])
		}
		if r.clean += whole; r.clean >= r.n {
			r.clean -= r.n
		}
		r.inflight -= whole
		if k < want || dst != nil && frames == len(dst) {
			break
		}
	}
	if frames > 0 {
		r.c.done.Add(uint64(frames))
	}
	return frames
}

// link returns the frame that lies in k slots from slot on.
func (r *TxRing) link(slot, k uint32) *pagepool.Buf {
	var head, tail *pagepool.Buf
	for ; k > 0; k-- {
		if slot >= r.n {
			slot -= r.n
		}
		b := r.view.Buf(r.handles[slot])
		b.SetOwner(pagepool.OwnerApplication)
		b.SetNext(nil)
		if head == nil {
			head = b
		} else {
			tail.SetNext(b)
		}
		tail = b
		slot++
	}
	return head
}

func (r *TxRing) countError(s TxStatus) {
	c := &r.c
	for _, e := range []struct {
		bit TxStatus
		n   *atomic.Uint64
	}{
		{TxErrUnderflow, &c.underflow}, {TxErrCollision, &c.collision}, {TxErrCarrier, &c.carrier},
		{TxErrDeferral, &c.deferral}, {TxErrJabber, &c.jabber}, {TxErrFlushed, &c.flushed},
		{TxErrChecksum, &c.checksum}, {TxErrOther, &c.anyOther},
	} {
		if s&e.bit != 0 {
			e.n.Add(1)
			return
		}
	}
}

// Ready says whether Reap has something to look at.
func (r *TxRing) Ready() bool { return r.inflight > 0 && r.descs.Ready(r.clean) }

// Tail is the slot that the tail register names.
func (r *TxRing) Tail() uint32 { return r.tail }

// Release gives all buffers back, including those that the device had: it must
// have been stopped. The ring is then empty and starts at slot 0.
func (r *TxRing) Release() {
	for ; r.inflight > 0; r.inflight-- {
		r.cache.Put(r.handles[r.clean : r.clean+1])
		if r.clean++; r.clean == r.n {
			r.clean = 0
		}
	}
	r.clean, r.tail = 0, 0
	r.cache.Flush()
}

// Stats returns the counts. Any goroutine may call it.
func (r *TxRing) Stats() TxStats {
	c := &r.c
	return TxStats{
		Packets: c.packets.Load(), Bytes: c.bytes.Load(), Done: c.done.Load(),
		Underflow: c.underflow.Load(), Collision: c.collision.Load(), Carrier: c.carrier.Load(),
		Deferral: c.deferral.Load(), Jabber: c.jabber.Load(), Flushed: c.flushed.Load(),
		Checksum: c.checksum.Load(), Other: c.anyOther.Load(),
		Refused: c.refused.Load(), Doorbells: c.doorbells.Load(),
	}
}
