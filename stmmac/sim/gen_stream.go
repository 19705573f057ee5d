package sim

import (
	"encoding/binary"
	"hash/crc32"
	"math/bits"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gostmmac/gostmmac/stmmac/internal/core"
)

// loopStop in loopStream.sent says that nothing more is injected.
const loopStop = uint64(1) << 63

// loopStream is one direction of a loop: the end that injects moves sent, the
// end that checks does the accounts, and the timer gives up what is too old.
type loopStream struct {
	*loopPlan
	window   uint64
	giveUp   uint64
	limit    uint64 // 0: none
	rewrites bool
	timeout  time.Duration
	clock    core.Clock
	tickFunc func()

	_ [64]byte
	// sent is the number of injected frames and loopStop, in one word so that
	// after a Stop no frame follows. Only the injecting end counts it up.
	sent   atomic.Uint64
	armed  atomic.Bool // the timer runs
	notify wireNotify  // of the injecting end
	_      [64]byte

	mu        sync.Mutex
	accounted uint64 // sent frames that are not outstanding any more
	stalled   bool   // the injecting end found the window full
	closed    bool
	isIdle    bool
	mark      uint64 // sent at the last tick
	flow      []loopFlow
	count     LoopCounters // without Sent and Outstanding
	stopTimer func() bool
	idle      chan struct{} // closed: stopped and nothing outstanding
	gone      chan struct{} // closed: the injecting end is closed
}

// loopFlow is what is known of the frames of a flow.
type loopFlow struct {
	next uint64 // behind the highest number that arrived
	base uint64 // all below arrived or are lost
	// One bit for each of the last numbers below max(next, base), by number
	// modulo their count: it arrived, and it arrived intact.
	seen, good []uint64
}

func newLoopStream(cfg *LoopConfig, id uint8, addr LoopAddr) *loopStream {
	s := &loopStream{
		loopPlan: newLoopPlan(cfg, id, addr),
		window:   uint64(cfg.Window),
		giveUp:   uint64(cfg.GiveUp),
		limit:    cfg.Frames,
		rewrites: cfg.Rewrites,
		timeout:  cfg.Timeout,
		clock:    cfg.Clock,
		flow:     make([]loopFlow, cfg.Flows),
		idle:     make(chan struct{}),
		gone:     make(chan struct{}),
	}
	s.tickFunc = s.tick
	// What is outstanding must be remembered: it lies less than giveUp+1 below
	// the top of its flow.
	words := max(loopHistory, 1<<bits.Len(uint(2*cfg.GiveUp))) / 64
	for i := range s.flow {
		b := make([]uint64, 2*words)
		s.flow[i].seen, s.flow[i].good = b[:words:words], b[words:]
	}
	return s
}

func (f *loopFlow) top() uint64     { return max(f.next, f.base) }
func (f *loopFlow) history() uint64 { return uint64(len(f.seen)) * 64 }

// bit returns where the bit of a number is.
func (f *loopFlow) bit(seq uint64) (word, mask uint64) {
	i := seq & (f.history() - 1)
	return i / 64, 1 << (i % 64)
}

func (f *loopFlow) has(seq uint64) bool {
	w, m := f.bit(seq)
	return f.seen[w]&m != 0
}

// skip moves base to the first that is missing.
func (f *loopFlow) skip() {
	for f.base < f.next && f.has(f.base) {
		f.base++
	}
}

// extend forgets what is a history below the new top.
func (f *loopFlow) extend(top uint64) {
	old := f.top()
	if top <= old {
		return
	}
	if top-old >= f.history() {
		clear(f.seen)
		clear(f.good)
		return
	}
	for seq := old; seq < top; seq++ {
		w, m := f.bit(seq)
		f.seen[w] &^= m
		f.good[w] &^= m
	}
}

// raise gives up what is missing below base.
func (s *loopStream) raise(f *loopFlow, base uint64) {
	if base <= f.base {
		return
	}
	top := f.top()
	lost := uint64(0)
	for ; f.base < min(base, top); f.base++ {
		if !f.has(f.base) {
			lost++
		}
	}
	if base > top {
		lost += base - top
		f.extend(base)
		f.base = base
	}
	s.count.Lost += lost
	s.accounted += lost
	f.skip()
}

// arrive accounts for an arrival of number seq of f with size bytes.
func (s *loopStream) arrive(f *loopFlow, seq uint64, size int, intact bool) {
	switch top := f.top(); {
	case seq >= top:
		// First, because the new top may overwrite what is known below base.
		s.raise(f, max(seq, s.giveUp)-s.giveUp)
		f.extend(seq + 1)
	case top-seq > f.history():
		if intact {
			s.count.Stale++
		} else {
			s.count.Corrupted++
		}
		return
	}
	w, m := f.bit(seq)
	if f.seen[w]&m == 0 {
		f.seen[w] |= m
		if seq < f.base {
			s.count.Lost--
		} else {
			s.accounted++
		}
	}
	switch {
	case !intact:
		s.count.Corrupted++
	case f.good[w]&m != 0:
		s.count.Duplicated++
	default:
		f.good[w] |= m
		s.count.Received++
		s.count.Bytes += uint64(size)
		if seq+1 < f.next {
			s.count.Reordered++
		}
	}
	f.next = max(f.next, seq+1)
	f.skip()
}

// check accounts for a frame that arrived.
func (s *loopStream) check(f Frame) {
	flow, seq, what := s.judge(f)
	s.mu.Lock()
	switch what {
	case loopForeign:
		s.count.Foreign++
	case loopCorrupt:
		s.count.Corrupted++
	case loopCredible, loopIntact:
		s.arrive(&s.flow[flow], seq, len(f.Data), what == loopIntact)
	}
	wake := s.settle()
	s.mu.Unlock()
	if wake {
		s.notify.call()
	}
}

// loopVerdict is what a frame is.
type loopVerdict int

const (
	loopForeign  loopVerdict = iota
	loopCorrupt              // of this stream, its number is not known
	loopCredible             // corrupt, its number is known
	loopIntact
)

// judge tells what a frame is, and its flow and number if these are known.
func (s *loopStream) judge(f Frame) (flow, seq uint64, what loopVerdict) {
	b := f.Data
	off := loopAddrs + 2
	if len(b) >= off+4 && binary.BigEndian.Uint16(b[loopAddrs:]) == loopTPID {
		off += 4
	}
	if len(b) < off || binary.BigEndian.Uint16(b[off-2:]) != loopEtherType {
		return 0, 0, loopForeign
	}
	if len(b) < off+loopHeader {
		return 0, 0, loopCorrupt
	}
	var w loopWords
	w.load(b[off:])
	sent := s.sent.Load() &^ loopStop
	if w.sum != w.check(s.key) {
		if flow, seq, ok := s.find(&w, sent); ok {
			return flow, seq, loopCredible
		}
		return 0, 0, loopCorrupt
	}
	flow, seq = w.flow(), w.number
	if uint32(w.id) != uint32(s.id) || !s.isSent(sent, flow, seq) {
		return 0, 0, loopForeign
	}
	n := w.length()
	have := uint64(len(b) - off)
	switch {
	case f.BadFCS,
		have < n || n < loopHeader,
		have > n && (!s.rewrites || len(b) > loopMinFrame),
		!s.rewrites && !s.sameEthernet(b, off, flow),
		uint64(crc32.Checksum(b[off+loopHeader:off+int(n)], s.table)) != w.payload:
		return flow, seq, loopCredible
	}
	return flow, seq, loopIntact
}

// sameEthernet says whether addresses and tag are those that were sent.
func (s *loopStream) sameEthernet(b []byte, off int, flow uint64) bool {
	return off == s.off && [loopAddrs]byte(b) == s.addr &&
		(s.queues == 0 || binary.BigEndian.Uint16(b[loopAddrs+2:]) == s.tci(flow))
}

// settle is called with the lock after the accounts changed. It reports whether
// the injecting end is to be notified.
func (s *loopStream) settle() bool {
	sent := s.sent.Load()
	if sent == s.accounted|loopStop && !s.isIdle {
		s.isIdle = true
		close(s.idle)
	}
	// A few frames at once: one wake-up for each would cost more than they do.
	if s.stalled && sent&^loopStop-s.accounted <= s.window-max(1, s.window/8) {
		s.stalled = false
		return true
	}
	return false
}

// look returns how many frames are accounted for. If the window is full for
// frame k, the injecting end will be notified.
func (s *loopStream) look(k uint64) uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	if k-s.accounted >= s.window {
		s.stalled = true
	}
	return s.accounted
}

// arm starts the timer. It is called without the lock: a clock may call tick
// with a lock of its own.
func (s *loopStream) arm() {
	if s.armed.CompareAndSwap(false, true) {
		s.startTimer()
	}
}

func (s *loopStream) startTimer() {
	stop := s.clock.AfterFunc(s.timeout, s.tickFunc)
	s.mu.Lock()
	s.stopTimer = stop
	closed := s.closed
	s.mu.Unlock()
	if closed {
		stop()
	}
}

// tick gives up the frames that were outstanding at the last tick.
func (s *loopStream) tick() {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return
	}
	for i := range s.flow {
		s.raise(&s.flow[i], s.sentOf(s.mark, uint64(i)))
	}
	// The injecting end counts before it looks at armed, and this the other way
	// around: one of the two sees a frame and starts the timer again.
	s.armed.Store(false)
	s.mark = s.sent.Load() &^ loopStop
	again := s.mark != s.accounted && s.armed.CompareAndSwap(false, true)
	wake := s.settle()
	s.mu.Unlock()
	if again {
		s.startTimer()
	}
	if wake {
		s.notify.call()
	}
}

// stop ends injecting.
func (s *loopStream) stop() {
	s.sent.Or(loopStop)
	s.mu.Lock()
	s.settle()
	s.mu.Unlock()
}

// close ends injecting and the timer.
func (s *loopStream) close() {
	s.sent.Or(loopStop)
	s.mu.Lock()
	s.settle()
	stop := s.stopTimer
	if !s.closed {
		s.closed = true
		close(s.gone)
	}
	s.mu.Unlock()
	if stop != nil {
		stop()
	}
}

func (s *loopStream) counters() LoopCounters {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.count
	c.Sent = s.sent.Load() &^ loopStop
	c.Outstanding = c.Sent - s.accounted
	return c
}
