package pagepool

import "unsafe"

// Handle names a buffer of a pool: the distance of its record from the pool's
// first one, in records. Handles of one pool are valid wherever the pool is
// mapped, and mean nothing to another pool.
type Handle int32

// Limits of a pool.
const (
	// MaxArenas is how many arenas a pool can have.
	MaxArenas = 1 << 12
	// MaxArenaBufs is how many buffers an arena can have.
	MaxArenaBufs = 1 << 20
	// MaxBufSize is the largest chunk in bytes, a multiple of every cache line.
	MaxBufSize = 1<<16 - 256
)

// Flags say what is known of a received frame and what is asked for a sent one.
type Flags uint32

// Flags of received frames. Drivers set those whose feature they have; on a sent
// frame they mean nothing.
const (
	// RxCsumGood: the device verified the checksum of the IPv4 header, if the
	// frame has one, and that of its TCP, UDP or ICMP payload, and both are right. A
	// UDP checksum of 0 in IPv4, which is none, counts as right.
	// Without it, and without RxCsumBad, nobody has looked.
	RxCsumGood Flags = 1 << iota
	// RxCsumBad: the device found one of them wrong.
	RxCsumBad
	// RxTimestamp: Meta.Timestamp is valid.
	RxTimestamp
	// RxHash: Meta.Hash is valid.
	RxHash
)

// Flags of frames in both directions: tags that are not among the bytes of a
// frame but beside them. A frame that was received so and is sent on leaves
// with the same tags. The second and the third mean nothing without VLANTag.
const (
	// VLANTag: the frame has an outer tag, whose tag control information is in
	// Meta.VLAN. Its TPID is 0x8100.
	VLANTag Flags = 1 << (8 + iota)
	// VLANService: the TPID of the outer tag is 0x88a8 (IEEE 802.1ad).
	VLANService
	// InnerVLANTag: the frame has an inner tag, in Meta.InnerVLAN, with the TPID
	// 0x8100, behind the outer tag.
	InnerVLANTag
)

// TxSpecial are the flags with which a frame cannot be sent just as it is.
const TxSpecial = VLANTag | VLANService | InnerVLANTag | TxCsum

// Flags of sent frames.
const (
	// TxCsum: the checksums of the IPv4 header, if the frame has one, and of its
	// TCP, UDP, ICMPv4 or ICMPv6 payload are to be computed on the way out,
	// whatever their fields hold: by the device where it can, else by the driver.
	TxCsum Flags = 1 << (16 + iota)
)

// Meta is what travels with a frame beside its bytes. It is that of the first
// buffer of a chain.
type Meta struct {
	Flags     Flags
	Hash      uint32 // receive hash
	VLAN      uint16 // tag control information of the outer tag
	InnerVLAN uint16 // tag control information of the inner tag
	MSS       uint16 // bytes, for segmentation by the device
	HdrLen    uint16 // bytes of headers to repeat, for segmentation
	Timestamp uint64 // nanoseconds of the device's clock
	Cookie    uint64 // the user's own
}

// Buf is one packet buffer. Several of them, linked by [Buf.SetNext], hold a
// frame that is longer than a buffer. Its methods are for the one goroutine
// that holds the buffer. A Buf is only made by a pool and never copied.
type Buf struct {
	dist  int64  // bytes from this record to the start of its chunk
	owner Owner  // who holds it, and of which pool it is
	chunk uint32 // offset of the chunk in the arena, bytes
	next  int32  // records from this one to the next of the chain, 0 at the end
	off   uint16 // start of the data in the chunk
	len   uint16 // bytes of data
	size  uint16 // bytes of the chunk
	arena uint16

	Meta
}

// RecordSize is the size of a Buf in memory: one cache line of 64 bytes.
const RecordSize = 64

var _ [RecordSize]byte = [unsafe.Sizeof(Buf{})]byte{}

// Bytes returns the data. The slice is valid until the buffer is freed or
// given to a queue.
func (b *Buf) Bytes() []byte {
	return unsafe.Slice((*byte)(unsafe.Add(unsafe.Pointer(b), b.dist+int64(b.off))), int(b.len))
}

// Len is the number of bytes in this buffer.
func (b *Buf) Len() int { return int(b.len) }

// Offset is where the data starts in the chunk.
func (b *Buf) Offset() int { return int(b.off) }

// Headroom is how many bytes [Buf.Prepend] can add.
func (b *Buf) Headroom() int { return int(b.off) }

// Tailroom is how many bytes SetLen can add.
func (b *Buf) Tailroom() int { return int(b.size) - int(b.off) - int(b.len) }

// SetLen sets the number of bytes of data. It reports whether they fit; if not,
// nothing changes. Bytes that it adds hold what was there before.
func (b *Buf) SetLen(n int) bool {
	if uint(n) > uint(b.size)-uint(b.off) {
		return false
	}
	b.len = uint16(n)
	return true
}

// Prepend makes room for n bytes in front of the data and returns them, or nil
// when the headroom is too small. Prepending nothing returns an empty slice.
func (b *Buf) Prepend(n int) []byte {
	if uint(n) > uint(b.off) {
		return nil
	}
	b.off -= uint16(n)
	b.len += uint16(n)
	return b.Bytes()[:n]
}

// TrimFront takes n bytes off the front. It reports whether there were as many.
func (b *Buf) TrimFront(n int) bool {
	if uint(n) > uint(b.len) {
		return false
	}
	b.off += uint16(n)
	b.len -= uint16(n)
	return true
}

// SetData copies p into the buffer at its present offset. It reports whether p
// fitted; if not, nothing changes.
func (b *Buf) SetData(p []byte) bool {
	if !b.SetLen(len(p)) {
		return false
	}
	copy(b.Bytes(), p)
	return true
}

// Reset empties the buffer, ends its chain, forgets its metadata and puts the
// start of the data to headroom bytes from the start of the chunk. It reports
// whether the chunk is as long; if not, nothing changes.
func (b *Buf) Reset(headroom int) bool {
	if uint(headroom) > uint(b.size) {
		return false
	}
	b.off, b.len, b.next, b.Meta = uint16(headroom), 0, 0, Meta{}
	return true
}

// Next is the buffer that continues the frame, or nil.
func (b *Buf) Next() *Buf {
	if b.next == 0 {
		return nil
	}
	return (*Buf)(unsafe.Add(unsafe.Pointer(b), int(b.next)*RecordSize))
}

// SetNext makes c continue the frame; nil ends it. It reports whether c is of
// the same pool; if not, nothing changes. A chain must have an end.
func (b *Buf) SetNext(c *Buf) bool {
	if c == nil {
		b.next = 0
		return true
	}
	if b.owner.pool() != c.owner.pool() {
		return false
	}
	b.next = int32((int64(uintptr(unsafe.Pointer(c))) - int64(uintptr(unsafe.Pointer(b)))) / RecordSize)
	return true
}

// FrameLen is the number of bytes in this buffer and those that follow it.
func (b *Buf) FrameLen() int {
	n := 0
	for ; b != nil; b = b.Next() {
		n += int(b.len)
	}
	return n
}

// CopyTo copies the data of the whole chain into p and returns how many bytes
// there was room for.
func (b *Buf) CopyTo(p []byte) int {
	n := 0
	for ; b != nil && n < len(p); b = b.Next() {
		n += copy(p[n:], b.Bytes())
	}
	return n
}

// Received makes the buffer hold n bytes that a device wrote at offset off of
// its chunk, with flags f and without a successor, and gives it to o. For
// drivers: n and off must lie inside the chunk.
func (b *Buf) Received(off, n uint16, o Owner, f Flags) {
	b.off, b.len, b.next, b.owner = off, n, 0, o
	b.Flags = f
}

// SetOwner says who holds the buffer, for the report of [Pool.Close]; o is of
// the buffer's pool. For drivers.
func (b *Buf) SetOwner(o Owner) { b.owner = o }

// Owner is who holds the buffer.
func (b *Buf) Owner() Owner { return b.owner }

// Arena is the number of the arena of the buffer.
func (b *Buf) Arena() int { return int(b.arena) }

// Owner is a holder of buffers of one pool: a number for the pool in the upper
// half and one for the holder in the lower. A comparison of two Owners thus
// tells both whether a buffer is of this pool and whether it is held.
type Owner uint64

// Holders that every pool has.
const (
	holderPool        = 0 // free
	holderApplication = 1 // given out by Alloc or by a receive queue
)

func (o Owner) pool() uint32     { return uint32(o >> 32) }
func (o Owner) holder() int      { return int(uint32(o)) }
func (o Owner) with(n int) Owner { return o&^(1<<32-1) | Owner(uint32(n)) }

// Chained says whether another buffer continues the frame.
func (b *Buf) Chained() bool { return b.next != 0 }
