package main

import (
	"encoding/binary"
	"math/bits"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/gostmmac/gostmmac/pagepool"
)

// IEEE 802.1D-2004: the recommended ageing time (table 7-5) and the addresses
// that a bridge never forwards, 01:80:c2:00:00:00 to :0f (table 7-10).
const (
	ageingTime   = 300 * time.Second
	reservedAddr = 0x0180c2000000
	reservedMask = 0xfffffffffff0
)

const (
	learnLimit = 4096 // stations

	etherHeader = 14
	tpidVLAN    = 0x8100
	groupBit    = 1 << 40 // of an address read as a number
	// maxProbe bounds the search for an address. A table that is at most half
	// full has no such run unless somebody guessed the hash.
	maxProbe = 64
	// sweepEvery bounds how often a full table is searched for old stations.
	sweepEvery = time.Second
)

// A station is an address and a VLAN (0 for frames without a tag), as
// address<<16 | VLAN. No station is 0: that is an empty slot.
type station uint64

// slot is a place of the table.
type slot struct {
	who  station
	side uint8
	seen time.Duration // when it last sent
}

// table says on which side of the forwarder stations are. It is a hash table
// with open addressing that never allocates; its methods may be called by
// several goroutines.
type table struct {
	mu    sync.Mutex
	age   time.Duration
	limit int
	seed  uint64 // nobody who sends frames can aim at one slot
	shift int
	slots []slot
	spare []slot // what a sweep copies to
	used  int
	swept time.Duration

	unlearned uint64 // frames of stations for which there was no room
}

// newTable returns a table for limit stations, which are forgotten when they
// have not sent for age.
func newTable(limit int, age time.Duration) *table {
	n := bits.Len(uint(max(limit, 1)*2 - 1)) // log2 of twice the limit, rounded up
	return &table{
		age: age, limit: limit, seed: rand.Uint64(), shift: 64 - n,
		slots: make([]slot, 1<<n), spare: make([]slot, 1<<n), swept: -sweepEvery,
	}
}

// split moves the frames that came in on side and go out on the other to the
// front, in their order, and returns how many they are. The rest stays behind
// them. It learns where their senders are.
func (t *table) split(side uint8, bufs []*pagepool.Buf, now time.Duration) int {
	t.mu.Lock()
	defer t.mu.Unlock()
	n := 0
	for i, b := range bufs {
		if t.forward(side, b.Bytes(), now) {
			bufs[n], bufs[i] = b, bufs[n]
			n++
		}
	}
	return n
}

// forward learns from a frame and says whether it goes to the other side: so it
// does unless its destination is known on its own, or is one that bridges keep.
func (t *table) forward(side uint8, frame []byte, now time.Duration) bool {
	if len(frame) < etherHeader {
		return false
	}
	dst := binary.BigEndian.Uint64(frame) >> 16
	src := binary.BigEndian.Uint64(frame[4:]) & (1<<48 - 1)
	vlan := uint64(0)
	if binary.BigEndian.Uint16(frame[12:]) == tpidVLAN && len(frame) >= etherHeader+2 {
		vlan = uint64(binary.BigEndian.Uint16(frame[14:])) & 0xfff
	}
	if src&groupBit == 0 && src != 0 {
		t.learn(station(src<<16|vlan), side, now)
	}
	if dst&groupBit != 0 {
		return dst&reservedMask != reservedAddr
	}
	at, known := t.lookup(station(dst<<16|vlan), now)
	return !known || at != side
}

func (t *table) hash(s station) int {
	x := (uint64(s) ^ t.seed) * 0x9e3779b97f4a7c15 // 2^64 / golden ratio
	x ^= x >> 32
	return int((x * 0xbf58476d1ce4e5b9) >> t.shift)
}

func (t *table) old(e *slot, now time.Duration) bool { return now-e.seen > t.age }

// lookup returns the side of a station.
func (t *table) lookup(s station, now time.Duration) (side uint8, ok bool) {
	mask := len(t.slots) - 1
	for i, n := t.hash(s), 0; n < maxProbe; i, n = (i+1)&mask, n+1 {
		switch e := &t.slots[i]; e.who {
		case 0:
			return 0, false
		case s:
			return e.side, !t.old(e, now)
		}
	}
	return 0, false
}

// learn remembers the side of a station. When there is no room it is not
// learned, as IEEE 802.1D (7.8) allows: frames to it go to the other side.
func (t *table) learn(s station, side uint8, now time.Duration) {
	if t.put(s, side, now) {
		return
	}
	if now-t.swept >= sweepEvery {
		t.sweep(now)
		if t.put(s, side, now) {
			return
		}
	}
	t.unlearned++
}

// put is learn without a sweep. It takes the place of an old station where the
// search for this one comes by, which leaves all searches intact.
func (t *table) put(s station, side uint8, now time.Duration) bool {
	mask := len(t.slots) - 1
	free := -1
	for i, n := t.hash(s), 0; n < maxProbe; i, n = (i+1)&mask, n+1 {
		e := &t.slots[i]
		if e.who == s {
			e.side, e.seen = side, now
			return true
		}
		if e.who == 0 {
			if free < 0 && t.used < t.limit {
				free = i
				t.used++
			}
			break
		}
		if free < 0 && t.old(e, now) {
			free = i
		}
	}
	if free < 0 {
		return false
	}
	t.slots[free] = slot{s, side, now}
	return true
}

// sweep copies the stations that are not old into an empty table.
func (t *table) sweep(now time.Duration) {
	t.swept = now
	t.slots, t.spare = t.spare, t.slots
	clear(t.slots)
	t.used = 0
	for _, e := range t.spare {
		if e.who != 0 && !t.old(&e, now) {
			t.put(e.who, e.side, e.seen)
		}
	}
}
