package sim

import (
	"encoding/binary"
	"hash/crc32"
	"math/bits"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/gostmmac/gostmmac/stmmac/internal/core"
)

const (
	// loopEtherType is IEEE Std 802 Local Experimental EtherType 1.
	loopEtherType = 0x88b5
	loopTPID      = 0x8100 // IEEE 802.1Q customer tag

	loopAddrs    = 12     // both addresses
	loopHeader   = 32     // four words, see loopWords
	loopMinFrame = 60     // minFrameSize of IEEE 802.3 without FCS
	loopMagic    = 0x706f // "op"

	// loopVariants is how many payloads there are. It is a prime so that frames
	// that are a power of two apart, as two uses of a ring's buffer are, differ.
	loopVariants = 17

	loopMaxFlows  = 4096
	loopMaxQueues = 8
	loopMaxWindow = 1 << 16
	// loopHistory is the least number of frames of a flow that are remembered.
	loopHistory = 4096
)

// LoopAddr is the addresses of frames.
type LoopAddr struct{ Dst, Src [6]byte }

// LoopConfig is the configuration of [NewLoop]. A value outside of its range is
// taken as the nearest inside.
type LoopConfig struct {
	// AddrA and AddrB are the addresses of the frames injected at A and at B. A
	// zero Dst is 02:00:00:00:00:0b at A and …:0a at B, a zero Src the other.
	AddrA, AddrB LoopAddr
	// Flows is the number of flows of each stream, which frames take in turn: 1
	// to 4096; 0 is max(1, Queues).
	Flows int
	// Queues, 2 to 8, gives each frame an 802.1Q tag with the VLAN identifier
	// VLAN and the priority flow mod Queues; with 0 or 1 frames have no tag.
	Queues int
	VLAN   uint16
	// Sizes are the frame sizes in bytes from the destination address to the end
	// of the payload, without FCS, each 60 to 16384; empty is 60. Frames take
	// one pseudo-randomly, so a size that is listed twice is twice as frequent.
	Sizes []int
	// Window is how many frames of a stream may be outstanding, 1 to 65536; 0 is 256.
	Window int
	// GiveUp is how many frames behind the last frame of its flow that arrived a
	// missing one is given up, 1 to 65536; 0 is 64.
	GiveUp int
	// Timeout gives up frames that have been outstanding for once to twice this
	// time; 0 is 100 ms.
	Timeout time.Duration
	// Clock is the clock of Timeout; nil is the clock of the machine.
	Clock core.Clock
	// Frames stops each side after so many; 0 is no limit.
	Frames uint64
	// Seed makes payloads, sizes and checksums; frames of a loop with another
	// seed are corrupt.
	Seed uint64
	// Rewrites says that the forwarder may change the addresses, insert, change
	// or strip an 802.1Q tag, and that a frame may be padded to 60 bytes for
	// that. Otherwise any of these makes a frame corrupt.
	Rewrites bool
}

// LoopCounters count the frames of one stream. Each frame that arrives is
// counted in one of Received, Corrupted, Duplicated, Stale and Foreign.
//
//	Sent == Received + Lost + Outstanding + frames that only arrived corrupt
//
// At any time Lost may hold frames that are late; once Outstanding is 0 and
// nothing is under way any more, all are exact. A damaged frame on the wire is
// told by the counter that rises, and by no other: dropped, or with a bad FCS
// that the MAC drops: Lost; bytes changed behind the Ethernet header:
// Corrupted; doubled: Duplicated; overtaken: Reordered and Received.
type LoopCounters struct {
	// Sent frames were taken by the MAC on whose wire they were injected.
	Sent uint64
	// Received frames arrived intact, the first time each; Bytes is the sum of
	// their lengths without FCS.
	Received, Bytes uint64
	// Lost frames were given up (see GiveUp and Timeout) and did not arrive
	// since, neither intact nor as a corrupt frame whose number is credible.
	Lost uint64
	// Corrupted counts arrivals of frames of which some byte is not what was
	// sent, or that were sent with a bad FCS. The number of such a frame is
	// credible if at least three of the four 64-bit words of its header (magic,
	// stream, length and flow; number; payload CRC; header checksum) are
	// those of a frame that was sent. So it is whatever single byte changed.
	Corrupted uint64
	// Duplicated counts intact arrivals of frames that had arrived intact.
	Duplicated uint64
	// Reordered counts those of Received before which a later frame of the flow
	// had arrived (RFC 4737, 3.3).
	Reordered uint64
	// Stale counts intact arrivals so late (at least 4096 frames of the flow)
	// that it is not known any more whether they arrived before.
	Stale uint64
	// Foreign counts arrivals of frames that nobody sent on this stream: of
	// another EtherType, of the other stream, or with a number not yet sent.
	Foreign uint64
	// Outstanding frames are sent and neither arrived nor given up.
	Outstanding uint64
}

// loopWords is the header of a frame: little-endian words behind the EtherType.
// (A struct and not an array: the compiler keeps it in registers.)
type loopWords struct {
	id      uint64 // magic (16 bits), stream (8), 0 (8), bytes from here to the end (16), flow (16)
	number  uint64 // of the frame in its flow, from 0
	payload uint64 // its CRC-32C
	sum     uint64 // checksum of the other words
}

func (w *loopWords) load(b []byte) {
	_ = b[loopHeader-1]
	w.id = binary.LittleEndian.Uint64(b)
	w.number = binary.LittleEndian.Uint64(b[8:])
	w.payload = binary.LittleEndian.Uint64(b[16:])
	w.sum = binary.LittleEndian.Uint64(b[24:])
}

func (w *loopWords) store(b []byte) {
	_ = b[loopHeader-1]
	binary.LittleEndian.PutUint64(b, w.id)
	binary.LittleEndian.PutUint64(b[8:], w.number)
	binary.LittleEndian.PutUint64(b[16:], w.payload)
	binary.LittleEndian.PutUint64(b[24:], w.sum)
}

func (w *loopWords) flow() uint64   { return w.id >> 48 }
func (w *loopWords) length() uint64 { return w.id >> 32 & 0xffff }

// Odd factors: multiplication by each is a bijection of 64-bit words, so a
// checksum made of it, addition and rotation is certain to differ if exactly one
// of the words that go in does.
const (
	loopMul0    = 0x9e3779b97f4a7c15
	loopMul1    = 0xbf58476d1ce4e5b9
	loopMul2    = 0x94d049bb133111eb
	loopMul1Inv = 0x96de1b173f119089 // loopMul1 * loopMul1Inv == 1 mod 2^64
)

// check is what sum has to be.
func (w *loopWords) check(key uint64) uint64 {
	return w.id*loopMul0 + bits.RotateLeft64(w.number*loopMul1, 32) + w.payload*loopMul2 + key
}

// solve is the number for which check is sum.
func (w *loopWords) solve(key uint64) uint64 {
	return bits.RotateLeft64(w.sum-w.id*loopMul0-w.payload*loopMul2-key, 32) * loopMul1Inv
}

// distance returns in how many words and bytes two headers differ.
func (w *loopWords) distance(v *loopWords) (words, bytes int) {
	for _, x := range [...]uint64{w.id ^ v.id, w.number ^ v.number, w.payload ^ v.payload, w.sum ^ v.sum} {
		if x != 0 {
			words++
		}
		for ; x != 0; x >>= 8 {
			if x&0xff != 0 {
				bytes++
			}
		}
	}
	return words, bytes
}

// loopPlan says what frame k of a stream is. It does not change.
type loopPlan struct {
	addr   [loopAddrs]byte
	id     uint64 // magic and stream
	key    uint64
	flows  uint64
	queues uint64 // 0: no tags
	vlan   uint16
	off    int // of the header
	sizes  []int
	crc    [loopVariants][]uint32 // CRC-32C of the payload of each size
	frames [loopVariants][]byte   // of the longest size
	table  *crc32.Table
}

func newLoopPlan(cfg *LoopConfig, stream uint8, addr LoopAddr) *loopPlan {
	rnd := rand.New(rand.NewPCG(cfg.Seed, 0))
	p := &loopPlan{
		id:    loopMagic | uint64(stream)<<16,
		key:   rnd.Uint64(), // of both streams: a reflected frame is told from a corrupt one
		flows: uint64(cfg.Flows),
		vlan:  cfg.VLAN & 0xfff,
		off:   loopAddrs + 2,
		sizes: cfg.Sizes,
		table: crc32.MakeTable(crc32.Castagnoli),
	}
	copy(p.addr[:6], addr.Dst[:])
	copy(p.addr[6:], addr.Src[:])
	if cfg.Queues > 1 {
		p.queues = uint64(cfg.Queues)
		p.off += 4
	}
	rnd = rand.New(rand.NewPCG(cfg.Seed, 1+uint64(stream)))
	longest := slices.Max(p.sizes)
	for v := range p.frames {
		b := make([]byte, longest)
		copy(b, p.addr[:])
		if p.queues > 0 {
			binary.BigEndian.PutUint16(b[loopAddrs:], loopTPID)
			binary.BigEndian.PutUint16(b[loopAddrs+2:], p.vlan)
		}
		binary.BigEndian.PutUint16(b[p.off-2:], loopEtherType)
		payload := b[p.off+loopHeader:]
		for i := range payload {
			payload[i] = byte(rnd.Uint32())
		}
		p.frames[v] = b
		p.crc[v] = make([]uint32, len(p.sizes))
		for i, n := range p.sizes {
			p.crc[v][i] = crc32.Checksum(b[p.off+loopHeader:n], p.table)
		}
	}
	return p
}

// size returns the index of the size of frame k.
func (p *loopPlan) size(k uint64) int {
	if len(p.sizes) == 1 {
		return 0
	}
	x := (k + p.key) * loopMul0
	x = (x ^ x>>32) * loopMul1
	i, _ := bits.Mul64(x^x>>29, uint64(len(p.sizes)))
	return int(i)
}

// header returns the header, variant and size of frame k, which is the given
// number of flow.
func (p *loopPlan) header(k, flow, number uint64) (w loopWords, variant uint64, size int) {
	i := p.size(k)
	variant = k % loopVariants
	size = p.sizes[i]
	w.id = p.id | uint64(size-p.off)<<32 | flow<<48
	w.number = number
	w.payload = uint64(p.crc[variant][i])
	w.sum = w.check(p.key)
	return w, variant, size
}

// sentOf is how many frames of flow are among the first k of the stream.
func (p *loopPlan) sentOf(k, flow uint64) uint64 { return (k + p.flows - 1 - flow) / p.flows }

// isSent says whether a number of a flow is among the first k of the stream.
func (p *loopPlan) isSent(k, flow, number uint64) bool {
	over, i := bits.Mul64(number, p.flows)
	return flow < p.flows && number < k && over == 0 && i+flow < k // i+flow: number < 2^63
}

// tci is the tag of a frame of flow.
func (p *loopPlan) tci(flow uint64) uint16 { return uint16(flow%p.queues)<<13 | p.vlan }

// find returns which of the first sent frames has a header that differs from w
// in one word at most; if there are several, in the fewest bytes of it.
func (p *loopPlan) find(w *loopWords, sent uint64) (flow, seq uint64, ok bool) {
	best := 9 // more than a word has bytes
	try := func(f, n uint64) {
		if !p.isSent(sent, f, n) {
			return
		}
		is, _, _ := p.header(n*p.flows+f, f, n)
		words, bytes := w.distance(&is)
		if words <= 1 && bytes < best {
			flow, seq, best = f, n, bytes
		}
	}
	try(w.flow(), w.solve(p.key)) // if it is the number
	for f := range p.flows {      // if it is another
		try(f, w.number)
	}
	return flow, seq, best < 9
}
