package core

import (
	"iter"
	"sync/atomic"
	"unsafe"

	"github.com/gostmmac/gostmmac/pagepool"
)

// TxPost is a transmit descriptor to post.
type TxPost struct {
	Addr uint64
	Len  uint32 // bytes of this buffer, and TxInterrupt
	// Own has what the Format says of it: TxFirst, TxLast, TxCsum and TxFrameLen,
	// in the word with OWN or wherever the generation has them. The bit of OWN
	// itself says that the descriptor is the first of its frame.
	Own uint32
}

// TxInterrupt in TxPost.Len asks for an interrupt when the descriptor is done.
const TxInterrupt = 1 << 31

// TxErrors are the neutral form of the errors of a sent frame.
type TxErrors uint32

// Errors of a sent frame.
const (
	TxErrUnderflow TxErrors = 1 << iota
	TxErrCollision          // late or excessive collisions
	TxErrCarrier            // no carrier or loss of carrier
	TxErrDeferral
	TxErrJabber
	TxErrFlushed
	TxErrChecksum
	TxErrOther // the error summary without a known cause
)

// TxDescs is the descriptor ring of a transmit channel in the format of a
// generation. Slots are numbered from 0; ranges wrap at the end of the ring.
type TxDescs interface {
	Ring() Ring
	// Errors decodes the OWN word of a finished descriptor with an error.
	Errors(own uint32) TxErrors
	// Tag describes a frame with the tags of m beside it: the context descriptor
	// before its first one, and what that has in addition.
	Tag(m *pagepool.Meta) (context TxPost, length, own uint32)
	// PostWhole gives the device frames of one buffer each in the slots from
	// first on, not beyond the end of the ring: bodies, then OWN words. With
	// interrupt = TxInterrupt the last of them interrupts when it is done.
	PostWhole(first uint32, frames []*pagepool.Buf, v *pagepool.View, interrupt uint32)
	// PostOne gives the device one frame of one buffer of n bytes, as PostWhole.
	PostOne(slot uint32, addr uint64, n, interrupt uint32)
	// Post gives the device frames of any kind in the slots from first on:
	// bodies, then the OWN words of all descriptors that do not start a frame,
	// then those that do.
	Post(first uint32, d []TxPost)
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

	Refused uint64 // frames that Send returned an error for

	CsumDevice uint64 // frames whose checksums the device was asked for
	CsumDriver uint64 // frames whose checksums the driver computed
	CsumNone   uint64 // frames with TxCsum in which there is no checksum
	TagDriver  uint64 // frames whose tags the driver put among their bytes
}

// All yields the counts by name.
func (s TxStats) All() iter.Seq2[string, uint64] {
	return counts{
		{"packets", s.Packets}, {"bytes", s.Bytes}, {"done", s.Done},
		{"underflow", s.Underflow}, {"collision", s.Collision}, {"carrier", s.Carrier}, {"deferral", s.Deferral},
		{"jabber", s.Jabber}, {"flushed", s.Flushed}, {"checksum", s.Checksum}, {"other", s.Other},
		{"refused", s.Refused},
		{"csum_device", s.CsumDevice}, {"csum_driver", s.CsumDriver}, {"csum_none", s.CsumNone}, {"tag_driver", s.TagDriver},
	}.all
}

// Errors is the number of frames that the device finished with an error.
func (s TxStats) Errors() uint64 {
	return s.Underflow + s.Collision + s.Carrier + s.Deferral + s.Jabber + s.Flushed + s.Checksum + s.Other
}

type txCounters struct {
	packets, bytes, done                                                         atomic.Uint64
	underflow, collision, carrier, deferral, jabber, flushed, checksum, anyOther atomic.Uint64
	refused                                                                      atomic.Uint64
	csumDevice, csumDriver, csumNone, tagDriver                                  atomic.Uint64
}

// TxRing is the driver's side of a transmit queue. One goroutine at a time uses
// it, except for Stats.
type TxRing struct {
	gate
	descs   TxDescs
	ring    Ring
	mapping *pagepool.Mapping
	view    *pagepool.View
	pool    *pagepool.Pool
	owner   pagepool.Owner // this ring
	app     pagepool.Owner // whoever calls Send

	n        uint32 // slots
	most     uint32 // slots that the device may have
	clean    uint32 // the slot that finishes next
	tail     uint32 // the slot to post next
	inflight uint32 // slots that the device has, or has finished
	// contexts are those of them that have no buffer, and, where the device does not
	// tell what ends a frame, those that do not.
	contexts uint32
	limits   TxLimits
	oneEnd   uint32 // how long a frame of one buffer is not any more, without the Ethernet header
	keep     bool   // finished frames wait for Reap
	reserve  uint32 // free slots below which Send reclaims finished ones
	every    uint32 // frames that share an interrupt
	since    uint32 // frames since the last that interrupts

	// tap, if there is one, sees the frames that Send takes.
	tap func(*pagepool.Buf)

	fail func(error) error // makes the error of Send
	// away is Send while the ring is held, has ended or is in use.
	away func([]*pagepool.Buf) (int, error)

	handles []pagepool.Handle // what each slot holds; the shadow of the ring
	backlog []*pagepool.Buf   // frames for Reap that were taken off the ring when it was rebuilt

	post [MaxBatch]TxPost

	c txCounters
}

// NewTxRing returns a ring that is held and has no memory: Restart gives it
// that. With keep Send reclaims nothing: finished frames wait for Reap. fail
// wraps the errors of Send, and away is Send while the ring is held, has ended or
// is in use.
func NewTxRing(m *pagepool.Mapping, owner pagepool.Owner, keep bool, fail func(error) error,
	away func([]*pagepool.Buf) (int, error)) *TxRing {
	r := &TxRing{
		mapping: m, view: m.View(), pool: m.Pool(), owner: owner, app: m.View().Application(),
		keep: keep, fail: fail, away: away, every: 1,
	}
	r.Hold()
	return r
}

// TxLimits are what frames a ring can take.
type TxLimits struct {
	MaxFrame int // longest frame in bytes, without FCS
	MaxBuf   int // longest buffer in bytes
	// MaxCsum is the longest frame in bytes whose checksums the device inserts; 0
	// if it inserts none.
	MaxCsum  int
	CsumTags int  // tags behind which it does so
	Tag      bool // the device inserts an outer tag (TPID 0x8100)
	InnerTag bool // and an inner one
}

// Restart gives a held ring without buffers n slots in d.
func (r *TxRing) Restart(d TxDescs, n int, l TxLimits) {
	r.descs, r.ring, r.view = d, d.Ring(), r.mapping.View()
	if r.n != uint32(n) {
		r.n, r.handles = uint32(n), make([]pagepool.Handle, n)
		r.reserve = uint32(n) / 4
	}
	r.most = r.n - r.ring.Spare
	r.clean, r.tail, r.inflight, r.contexts, r.since = 0, 0, 0, 0, 0
	r.limits = l
	r.SetTap(r.tap)
}

// SetTap sets what sees the frames that Send takes. The ring is held.
func (r *TxRing) SetTap(f func(*pagepool.Buf)) {
	r.tap = f
	// While somebody looks no frame takes the short way, on which nobody does.
	r.oneEnd = 0
	if f == nil {
		r.oneEnd = uint32(min(r.limits.MaxFrame, r.limits.MaxBuf)) - EthHeaderLen + 1
	}
}

// SetInterrupts makes n frames share an interrupt. The ring is held.
func (r *TxRing) SetInterrupts(n int) { r.every, r.since = uint32(n), 0 }

// Space is how many more buffers Send can take.
func (r *TxRing) Space() int {
	if !r.enter() {
		return 0
	}
	defer r.leave()
	return int(r.most - r.inflight)
}

// Inflight is how many buffers are with the device or wait for Reap; frames that a
// rebuild took off the ring count as one buffer each. It is 0 while the ring is held.
func (r *TxRing) Inflight() int {
	if !r.enter() {
		return 0
	}
	defer r.leave()
	return int(r.inflight) + len(r.backlog)
}

// Send takes a prefix of src and returns how many frames that was. With fewer
// than len(src) and no error the ring is full for now; with an error src[n] can
// never be sent, or the ring has ended, and the caller keeps it and those
// behind it.
func (r *TxRing) Send(src []*pagepool.Buf) (int, error) {
	if !r.state.CompareAndSwap(gateOpen, gateBusy) {
		return r.sendAway(src)
	}
	if r.most-r.inflight < uint32(len(src))+r.reserve && !r.keep {
		r.reclaim(nil)
	}
	if len(src) == 1 && r.inflight < r.most && r.single(src[0], r.view.Arenas()) {
		// A list of one is what network stacks send: it pays for no loop.
		b := src[0]
		size := uint32(b.Len())
		b.SetOwner(r.owner)
		r.handles[r.tail] = pagepool.HandleOf(r.view.First(), b)
		r.descs.PostOne(r.tail, r.view.Bus().Chunk(b)+uint64(b.Offset()), size, r.interrupt(1))
		r.kick(1, 1, uint64(size))
		r.leave()
		return 1, nil
	}
	want := min(uint32(len(src)), r.most-r.inflight, MaxBatch)
	n, bytes := r.claim(unsafe.Pointer(unsafe.SliceData(src)), min(want, r.n-r.tail))
	if n < want {
		done, err := r.sendAny(src, int(n))
		r.leave()
		return done, err
	}
	if n > 0 {
		r.descs.PostWhole(r.tail, src[:n], r.view, r.interrupt(n))
		r.kick(n, n, bytes)
	}
	r.leave()
	return int(n), nil
}

// single says whether b is a frame of one buffer that can be sent.
func (r *TxRing) single(b *pagepool.Buf, arenas int) bool {
	// A length below that of the header wraps.
	return b != nil && b.Owner() == r.app && !b.Chained() && b.Flags&pagepool.TxSpecial == 0 &&
		uint32(b.Len())-EthHeaderLen < r.oneEnd && b.Arena() < arenas
}

// interrupt says whether the last of n frames interrupts when it is done.
func (r *TxRing) interrupt(n uint32) uint32 {
	if n < r.every {
		return r.share(n)
	}
	return TxInterrupt
}

// share is interrupt for fewer frames than share one.
func (r *TxRing) share(n uint32) uint32 {
	if r.since += n; r.since < r.every {
		return 0
	}
	r.since = 0
	return TxInterrupt
}

// claim takes frames of one buffer, the common case, of the n at from, for the
// slots from the tail on, up to the first frame that is none. It returns how
// many and their bytes. It goes by pointers, in slices whose bounds Send knows.
func (r *TxRing) claim(from unsafe.Pointer, n uint32) (uint32, uint64) {
	first, arenas := r.view.First(), r.view.Arenas()
	h := unsafe.Add(unsafe.Pointer(unsafe.SliceData(r.handles)), uintptr(r.tail)*unsafe.Sizeof(pagepool.Handle(0)))
	var bytes uint64
	i := uintptr(0)
	for ; i < uintptr(n); i++ {
		b := *(**pagepool.Buf)(unsafe.Add(from, i*unsafe.Sizeof(from)))
		if !r.single(b, arenas) {
			break
		}
		b.SetOwner(r.owner)
		*(*pagepool.Handle)(unsafe.Add(h, i*unsafe.Sizeof(pagepool.Handle(0)))) = pagepool.HandleOf(first, b)
		bytes += uint64(b.Len())
	}
	return uint32(i), bytes
}

// kick accounts for what was posted and rings the doorbell.
func (r *TxRing) kick(frames, used uint32, bytes uint64) {
	if r.tail += used; r.tail >= r.n {
		r.tail -= r.n
	}
	r.inflight += used
	r.c.packets.Add(uint64(frames))
	r.c.bytes.Add(bytes)
	r.ring.kick(r.tail)
}

// sendAway is Send for a ring that did not let it in: once more if only the monitor
// was looking.
func (r *TxRing) sendAway(src []*pagepool.Buf) (int, error) {
	if r.again() {
		return r.Send(src)
	}
	return r.away(src)
}

// sendAny is Send for a batch in which not every frame has one buffer; the
// first n have and are claimed.
func (r *TxRing) sendAny(src []*pagepool.Buf, n int) (int, error) {
	space := min(int(r.most-r.inflight), MaxBatch)
	var bytes uint64
	for i, b := range src[:n] {
		_, addr, _ := r.view.Lookup(b)
		size := uint32(b.Len())
		r.post[i] = TxPost{Addr: addr, Len: size, Own: r.ring.Format.TxOwn | r.ring.Format.TxFirst | r.ring.Format.TxLast | size&r.ring.Format.TxFrameLen}
		bytes += uint64(size)
	}
	used := n
	var err error
	for n < len(src) && used < space {
		k, size, e := r.gather(src[n], used, space)
		if e != nil {
			r.c.refused.Add(1)
			err = e
			break
		}
		if k == 0 {
			// Send looked for room for frames of one buffer only.
			if r.keep || r.reclaim(nil) == 0 {
				break
			}
			space = min(int(r.most-r.inflight), MaxBatch)
			continue
		}
		bytes += uint64(size)
		used += k
		n++
	}
	if n > 0 {
		r.post[used-1].Len |= r.interrupt(uint32(n))
		r.descs.Post(r.tail, r.post[:used])
		r.kick(uint32(n), uint32(used), bytes)
	}
	if err != nil {
		err = r.fail(err)
	}
	return n, err
}

// slot is where descriptor used of the batch goes.
func (r *TxRing) slot(used int) int {
	s := int(r.tail) + used
	if s >= len(r.handles) {
		s -= len(r.handles)
	}
	return s
}

// gather prepares the descriptors of one frame, whatever it is. It returns how
// many there are, 0 if the ring has no room for them now, and the bytes of the
// frame. Nothing of a frame that is refused stays behind: slots count only when
// Send has posted them.
func (r *TxRing) gather(b *pagepool.Buf, used, space int) (k int, size uint32, err error) {
	if v := r.mapping.View(); v != r.view {
		r.view = v // the pool has grown
	}
	if b == nil {
		return 0, 0, ErrFrameTooShort
	}
	way := wayOf(&b.Meta)
	most, longest := min(int(r.most), MaxBatch), uint32(r.limits.MaxFrame)-way.tags
	for p := b; p != nil; p = p.Next() {
		_, _, ok := r.view.Lookup(p)
		n := uint32(p.Len())
		switch k++; {
		case !ok:
			return 0, 0, ErrForeignBuffer
		case p.Owner() != r.app:
			return 0, 0, ErrNotHeld
		case n == 0:
			return 0, 0, ErrFrameTooShort
		case k > most || size+n > longest || n > uint32(r.limits.MaxBuf):
			return 0, 0, ErrFrameTooLong
		}
		size += n
	}
	if size < EthHeaderLen {
		return 0, 0, ErrFrameTooShort
	}
	if way.tags > 0 {
		if err := r.placeTags(&way, b, k < most); err != nil {
			return 0, 0, err
		}
		k += way.contexts
	}
	if used+k > space {
		return 0, 0, nil
	}
	for p := b; p != nil; p = p.Next() {
		if p.Owner() == r.owner { // linked twice into this frame
			for q := b; q != p; q = q.Next() {
				q.SetOwner(r.app)
			}
			return 0, 0, ErrNotHeld
		}
		p.SetOwner(r.owner)
	}
	// From here on the frame is the ring's.
	if r.tap != nil {
		r.tap(b)
	}
	return k, r.describe(b, used, way), nil
}

// describe writes the descriptors of a frame that was taken, and returns its
// length in bytes as the device gets it.
func (r *TxRing) describe(b *pagepool.Buf, used int, way txWay) (size uint32) {
	own := way.apply(r, b)
	context, more, tagOwn := TxPost{}, uint32(0), uint32(0)
	first := r.ring.Format.TxOwn
	if way.contexts > 0 {
		context, more, tagOwn = r.descs.Tag(&b.Meta)
		context.Own |= r.ring.Format.TxOwn
		first = 0
		r.handles[r.slot(used)] = noBuf
		r.contexts++
		r.post[used] = context
		used++
	}
	at := used
	for p := b; p != nil; p = p.Next() {
		h, addr, _ := r.view.Lookup(p)
		n := uint32(p.Len())
		r.handles[r.slot(at)] = h
		r.post[at] = TxPost{Addr: addr, Len: n}
		if p.Chained() && r.ring.Format.TxDoneLast == 0 {
			r.contexts++
		}
		size += n
		at++
	}
	r.post[used].Len |= more
	r.post[used].Own |= first | r.ring.Format.TxFirst | own | tagOwn | size&r.ring.Format.TxFrameLen
	r.post[at-1].Own |= r.ring.Format.TxLast
	return size
}

// Reap takes finished frames off the ring. With a dst it gives at most len(dst)
// of them to the caller, who owns them then; without one all go back to the
// pool. It returns how many frames it took.
func (r *TxRing) Reap(dst []*pagepool.Buf) int {
	if !r.enter() {
		return 0
	}
	defer r.leave()
	if len(r.backlog) > 0 {
		return r.reapBacklog(dst)
	}
	return r.reclaim(dst)
}

// reapBacklog is Reap for the frames that were taken off the ring when it was
// rebuilt.
func (r *TxRing) reapBacklog(dst []*pagepool.Buf) int {
	n := len(r.backlog)
	if dst == nil {
		r.pool.FreeBatch(r.backlog)
	} else {
		n = copy(dst, r.backlog)
	}
	if r.backlog = r.backlog[n:]; len(r.backlog) == 0 {
		r.backlog = nil
	}
	return n
}

func (r *TxRing) reclaim(dst []*pagepool.Buf) int {
	frames := 0
	for dst == nil && r.inflight > 0 && r.contexts == 0 {
		// A piece of the ring that does not wrap.
		want := min(r.inflight, r.n-r.clean)
		k, all, any := loadSent(r.ring.word(r.clean), uintptr(r.ring.Format.Stride), want)
		if last := r.ring.Format.TxDoneLast; k == 0 || all&last != last || any&r.ring.Format.TxDoneErr != 0 {
			break
		}
		// Frames of one buffer without an error: the common case.
		frames += int(k)
		r.drop(k)
	}
	frames += r.finish(dst)
	if frames > 0 {
		r.c.done.Add(uint64(frames))
	}
	return frames
}

// drop takes k descriptors off the ring and gives their buffers to the pool.
func (r *TxRing) drop(k uint32) {
	first := min(k, r.n-r.clean)
	r.pool.Put(r.handles[r.clean:][:first])
	if k > first {
		r.pool.Put(r.handles[:k-first])
	}
	r.advance(k)
}

// dropAny is drop for descriptors of which some have no buffer.
func (r *TxRing) dropAny(k uint32) {
	for ; k > 0; k-- {
		h := r.handles[r.clean]
		if h == noBuf {
			r.contexts--
			r.advance(1)
			continue
		}
		if r.ring.Format.TxDoneLast == 0 && r.view.Buf(h).Chained() {
			r.contexts--
		}
		r.drop(1)
	}
}

// advance takes k finished descriptors off the ring.
func (r *TxRing) advance(k uint32) {
	if r.clean += k; r.clean >= r.n {
		r.clean -= r.n
	}
	r.inflight -= k
}

// finish takes finished frames of any kind off the ring, each when its last
// descriptor is done, until dst is full.
func (r *TxRing) finish(dst []*pagepool.Buf) int {
	n, k := 0, uint32(0)
	slot := r.clean
	for k < r.inflight && (dst == nil || n < len(dst)) {
		own := r.ring.own(slot)
		if own&ownBit != 0 {
			break
		}
		k++
		last := r.ends(slot, own)
		if slot++; slot == r.n {
			slot = 0
		}
		if !last {
			continue
		}
		if own&r.ring.Format.TxDoneErr != 0 {
			r.countError(r.descs.Errors(own))
		}
		if dst != nil {
			dst[n] = r.link(r.clean, k)
			r.advance(k)
		} else {
			r.dropAny(k)
		}
		k = 0
		n++
	}
	return n
}

// ends says whether a finished descriptor is the last of a frame, which one without
// a buffer is not, whatever the device says. Where the device does not tell, the
// last is the one whose buffer has no next one.
func (r *TxRing) ends(slot, own uint32) bool {
	h, last := r.handles[slot], r.ring.Format.TxDoneLast
	if last == 0 {
		return h != noBuf && !r.view.Buf(h).Chained()
	}
	return own&last != 0 && h != noBuf
}

// link returns the frame that lies in the k slots from slot on that finish next.
func (r *TxRing) link(slot, k uint32) *pagepool.Buf {
	var head, tail *pagepool.Buf
	for ; k > 0; k-- {
		if slot >= r.n {
			slot -= r.n
		}
		if h := r.handles[slot]; h != noBuf {
			b := r.view.Buf(h)
			if r.ring.Format.TxDoneLast == 0 && b.Chained() {
				r.contexts--
			}
			b.SetOwner(r.app)
			b.SetNext(nil)
			if head == nil {
				head = b
			} else {
				tail.SetNext(b)
			}
			tail = b
		} else {
			r.contexts--
		}
		slot++
	}
	return head
}

func (r *TxRing) countError(s TxErrors) {
	c := &r.c
	for _, e := range []struct {
		bit TxErrors
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

// Look says whether Reap has something to look at, or nothing is in flight, or
// another goroutine is inside a call. While the ring is held and once it has
// ended it says no.
func (r *TxRing) Look() bool {
	if !r.enter() {
		return r.busy()
	}
	defer r.leave()
	if len(r.backlog) > 0 {
		return true
	}
	for slot, k := r.clean, r.inflight; k > 0; k-- {
		switch own := r.ring.own(slot); {
		case own&ownBit != 0:
			return false
		case r.ends(slot, own):
			return true
		}
		if slot++; slot == r.n {
			slot = 0
		}
	}
	return r.inflight == 0
}

// Harvest takes everything off a held ring: the device must have been stopped.
// Frames that it had not finished count as flushed. With keep all wait for Reap,
// else they are freed.
func (r *TxRing) Harvest() {
	var done []*pagepool.Buf
	if r.keep {
		done = make([]*pagepool.Buf, r.inflight)
	}
	n := r.reclaim(done)
	if r.keep {
		r.backlog = append(r.backlog, done[:n]...)
	}
	for r.inflight > 0 {
		k := r.frame()
		r.c.flushed.Add(1)
		r.c.done.Add(1)
		if r.keep {
			r.backlog = append(r.backlog, r.link(r.clean, k))
			r.advance(k)
		} else {
			r.dropAny(k)
		}
	}
}

// frame is how many descriptors the frame that finishes next has.
func (r *TxRing) frame() uint32 {
	k, slot := uint32(1), r.clean
	if r.handles[slot] == noBuf {
		k++
		if slot++; slot == r.n {
			slot = 0
		}
	}
	for b := r.view.Buf(r.handles[slot]); b.Chained() && k < r.inflight; b = b.Next() {
		k++
	}
	return k
}

// Release gives all buffers of a ring that has ended back, including those that
// the device had: it must have been stopped.
func (r *TxRing) Release() {
	r.dropAny(r.inflight)
	r.pool.FreeBatch(r.backlog)
	r.backlog = nil
}

// Resume lets calls into a held ring again.
func (r *TxRing) Resume() { r.leave() }

// Forget frees the frames that wait for Reap in an empty ring, and sets the counts
// to 0. The ring is held.
func (r *TxRing) Forget() {
	r.Release()
	r.c = txCounters{}
}

// Idle says that the device has finished all frames.
func (r *TxRing) Idle() bool {
	last := r.clean + r.inflight - 1
	if last >= r.n {
		last -= r.n
	}
	return r.inflight == 0 || r.ring.own(last)&ownBit == 0
}

// Stuck says whether frames are with the device of which, by the state of the
// ring, it has finished none since the call before, or it has finished all and says
// of none where it ends; mark is what that call returned. It is for one goroutine, and
// says no while another is inside a call.
func (r *TxRing) Stuck(mark uint64) (now uint64, stuck bool) {
	was, ok := r.look()
	if !ok {
		return 0, false
	}
	defer r.unlook(was)
	slot, whole := r.clean, false
	k := uint32(0)
	for ; k < r.inflight; k++ {
		own := r.ring.own(slot)
		if own&ownBit != 0 {
			break
		}
		whole = whole || r.ends(slot, own)
		if slot++; slot == r.n {
			slot = 0
		}
	}
	if k == r.inflight && (k == 0 || whole) {
		return 0, false
	}
	now = 1<<63 | r.c.done.Load()<<16 | uint64(slot)
	return now, now == mark
}

// Stats returns the counts. Any goroutine may call it.
func (r *TxRing) Stats() TxStats {
	c := &r.c
	return TxStats{
		Packets: c.packets.Load(), Bytes: c.bytes.Load(), Done: c.done.Load(),
		Underflow: c.underflow.Load(), Collision: c.collision.Load(), Carrier: c.carrier.Load(),
		Deferral: c.deferral.Load(), Jabber: c.jabber.Load(), Flushed: c.flushed.Load(),
		Checksum: c.checksum.Load(), Other: c.anyOther.Load(),
		Refused:    c.refused.Load(),
		CsumDevice: c.csumDevice.Load(), CsumDriver: c.csumDriver.Load(), CsumNone: c.csumNone.Load(),
		TagDriver: c.tagDriver.Load(),
	}
}
