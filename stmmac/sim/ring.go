package sim

import (
	"encoding/binary"
	"math/bits"
	"runtime"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/gostmmac/gostmmac/barrier"
	r4 "github.com/gostmmac/gostmmac/stmmac/internal/regs/gmac4reg"
)

// descOwn is OWN, the same bit in every format of word 3.
const descOwn = uint32(r4.TxOWN)

// words is a descriptor in the byte order of the processor.
type words [4]uint32

// bigEndian says that the processor's words are not those of the descriptors,
// which are little-endian.
const bigEndian = runtime.GOARCH == "ppc64" || runtime.GOARCH == "s390x" || runtime.GOARCH == "mips" || runtime.GOARCH == "mips64"

func le32(v uint32) uint32 {
	if bigEndian {
		return bits.ReverseBytes32(v)
	}
	return v
}

// ring is the engine's view of a descriptor list.
type ring struct {
	m  *Model
	tx bool
	ch int

	// Doorbell: written by the owner of the queue without a lock. seq counts the
	// tail writes that may resume the engine.
	tailOff uint32 // of the tail register
	seq     uint32
	bells   atomic.Uint64

	ringState
	stalled bool // by a fault, which a reset may survive
	audit   *ringAudit
}

// ringState is what a software reset clears.
type ringState struct {
	// As programmed when the channel was started.
	base   uint64
	n      uint32
	stride uint32
	front  uint32 // bytes of a descriptor in front of words 0 to 3

	cur       uint32 // index of the descriptor to fetch next
	rebase    bool   // the list address was written since the last start
	tail      uint32 // the tail as the engine last saw it
	seen      uint32 // seq as the engine last saw it
	run       bool
	suspended bool
	ready     bool // a descriptor was fetched since the last suspension
	faulted   bool // stopped by a bus error
	hung      bool // by a fault: was stopped and does not come to rest

	win     []byte         // the list, while it lies in one mapping that is in reach
	winBase unsafe.Pointer // words 0 to 3 of the first descriptor
	fetched words          // the current descriptor as fetched
	pre     []preDesc
	reads   uint64
	events  r4.CHStatus
}

// preDesc is a descriptor of which words 0 to 2 were read ahead.
type preDesc struct {
	w  [3]uint32
	at time.Duration
}

func (r *ring) init(m *Model, tx bool, ch int) {
	r.m, r.tx, r.ch = m, tx, ch
	r.tailOff = chOff(m, r4.DMACHRxDescTailPointer, ch)
	if tx {
		r.tailOff = chOff(m, r4.DMACHTxDescTailPointer, ch)
	}
	r.audit = &ringAudit{}
}

// doorbell is a store to a tail register. The owner of the queue calls it; the
// tail is visible before the count that announces it.
func (m *Model) doorbell(r *ring, off, v uint32) {
	if !m.audit.off {
		r.bells.Add(1)
		r.auditTail(v)
	}
	same := m.ignoreSame.Load() && m.regs.get(off) == v
	barrier.Store32(&m.regs.word[off/4], v)
	if same {
		return
	}
	barrier.Store32(&r.seq, barrier.LoadOwn(&r.seq)+1)
	if m.wakeup != nil {
		barrier.DMAFull() // the count, before the look at whether the engine sleeps
		m.kick()
	}
}

// look takes notice of tail writes and says whether the engine may fetch.
func (r *ring) look() bool {
	if !r.run || r.stalled {
		return false
	}
	seq := barrier.Load32(&r.seq)
	if r.suspended && seq == r.seen {
		return false
	}
	r.seen = seq
	r.tail = barrier.Load32(&r.m.regs.word[r.tailOff/4])
	r.suspended = false
	return true
}

// low is the lower half of the address of the current descriptor, what the tail is
// compared with.
func (r *ring) low() uint32 { return uint32(r.base) + r.cur*r.stride }

// atTail says that the current descriptor is the one at which the engine stops.
func (r *ring) atTail() bool {
	if r.m.cfg.Profile == Linux {
		if !r.tx {
			return false // OWN alone decides
		}
		if r.tail == uint32(r.base)+r.n*r.stride {
			return r.cur == 0
		}
	}
	return r.low() == r.tail
}

// start takes the list as the registers describe it now.
func (r *ring) start() {
	m := r.m
	if r.hung {
		return
	}
	high, low, length := r4.DMACHRxDescListHAddr, r4.DMACHRxDescListAddr, r4.DMACHRxDescRingLength
	if r.tx {
		high, low, length = r4.DMACHTxDescListHAddr, r4.DMACHTxDescListAddr, r4.DMACHTxDescRingLength
	}
	r.base = uint64(m.regs.get(chOff(m, low, r.ch)))
	if m.eame {
		r.base |= uint64(m.regs.get(chOff(m, high, r.ch))) << 32
	}
	r.n = m.regs.get(chOff(m, length, r.ch)) + 1
	ctl := r4.CHControl(m.regs.get(chOff(m, r4.DMACHControl, r.ch)))
	r.stride, r.front = r4.DescSize, 0
	if r.tx && r4.CHTxControl(m.regs.get(chOff(m, r4.DMACHTxControl, r.ch)))&r4.EDSE != 0 {
		r.stride, r.front = r4.EnhancedSize, r4.EnhancedSize-r4.DescSize
	}
	r.stride += r4.DSL.Get(ctl) * uint32(m.cfg.BusBytes)
	if r.rebase || r.cur >= r.n {
		r.cur, r.rebase = 0, false
	}
	r.run, r.suspended, r.faulted = true, false, false
	r.ready = r.tx
	r.pre = r.pre[:0]
	r.win = nil
	r.seen = barrier.Load32(&r.seq)
	r.tail = barrier.Load32(&m.regs.word[r.tailOff/4])
	if !m.audit.off {
		r.auditStart()
	}
}

// stop ends fetching; the position stays.
func (r *ring) stop() {
	r.cureStall(StallUntilStop)
	if r.hung = r.hung || r.run && r.hangs(); r.run && !r.hung {
		if r.tx {
			r.events |= r4.TPS
		} else {
			r.events |= r4.RPS
		}
	}
	r.run, r.suspended = false, false
	r.pre = r.pre[:0]
	r.auditStop()
}

// reset is what a software reset does.
func (r *ring) reset() {
	r.cureStall(StallUntilReset)
	r.ringState = ringState{pre: r.pre[:0], reads: r.reads}
	r.auditStop()
}

// suspend waits for a tail write. The status says so once for each time that the
// engine ran dry.
func (r *ring) suspend() {
	r.suspended = true
	r.pre = r.pre[:0]
	if !r.ready {
		return
	}
	r.ready = false
	if r.tx {
		r.events |= r4.TBU
	} else {
		r.events |= r4.RBU
	}
}

// Bits of TEB and REB (databook: DMA_CHx_Status).
const (
	busRead = 1 << iota
	busDescriptor
	busTransfer
)

// busError stops the channel. It starts again when its start bit is cleared and set.
func (r *ring) busError(bits uint32) { r.fatal(bits | busTransfer) }

func (r *ring) fatal(code uint32) {
	f := r4.REB
	if r.tx {
		f = r4.TEB
	}
	r.events = f.Put(r.events, code) | r4.FBE
	r.run, r.suspended, r.faulted = false, false, true
	r.pre = r.pre[:0]
	r.auditStop()
}

// reportAccess tells the audit of an access that failed because of its address.
func (r *ring) reportAccess(addr uint64, n int) {
	if !r.m.refused {
		r.report(DMAOutside, int(r.cur), "%d bytes at %#x", n, addr)
	}
}

// window finds the list in memory. It is nil where only the calls of DMA reach it.
func (r *ring) window() unsafe.Pointer {
	if r.win == nil {
		size := uint64(r.n-1)*uint64(r.stride) + r4.DescSize
		w := r.m.window(r.base+uint64(r.front), int(size))
		if w == nil || uintptr(unsafe.Pointer(unsafe.SliceData(w)))&3 != 0 {
			return nil
		}
		r.win, r.winBase = w, unsafe.Pointer(unsafe.SliceData(w))
	}
	return r.winBase
}

// fetch reads the current descriptor into fetched. It is false when there is none:
// the engine is suspended, or waits, or met a bus error.
func (r *ring) fetch() bool {
	if r.atTail() {
		r.tail = barrier.Load32(&r.m.regs.word[r.tailOff/4])
		if r.atTail() {
			r.suspend()
			return false
		}
	}
	m := r.m
	if m.faults.Prefetch.On && m.cfg.Profile == Strict {
		return r.fetchAhead()
	}
	r.reads++
	if p := r.window(); p != nil && m.faults.BusError == nil {
		d := (*words)(unsafe.Add(p, uintptr(r.cur*r.stride)))
		w3 := le32(barrier.LoadOwn(&d[3]))
		if w3&descOwn == 0 {
			r.fetched[3] = w3
			r.notOwned()
			return false
		}
		barrier.DMARead() // OWN, before the words that it covers
		r.fetched = words{le32(d[0]), le32(d[1]), le32(d[2]), w3}
	} else {
		w, ok := r.readDesc(r.cur)
		if !ok {
			r.busError(busRead | busDescriptor)
			return false
		}
		r.fetched = w
		if w[3]&descOwn == 0 {
			r.notOwned()
			return false
		}
	}
	r.ready = true
	if !m.audit.off {
		r.auditFetch()
	}
	return true
}

func (r *ring) notOwned() {
	if r.m.cfg.Profile != Linux {
		r.report(OwnMissing, int(r.cur), "word 3 is %#08x before the tail", r.fetched[3])
	}
	r.suspend()
}

// before counts the descriptors from the current one to the tail.
func (r *ring) before() uint32 {
	if r.m.cfg.Profile == Linux && !r.tx {
		return 1
	}
	d := r.tail - uint32(r.base)
	if d%r.stride != 0 || d/r.stride > r.n {
		return r.n
	}
	i := d / r.stride % r.n
	if i >= r.cur {
		return i - r.cur
	}
	return r.n - r.cur + i
}

// fetchAhead is fetch for an engine that reads words 0 to 2 early and word 3 last.
// Where it does not own the descriptor it looks again instead of waiting for a
// tail write.
func (r *ring) fetchAhead() bool {
	m, f := r.m, r.m.faults.Prefetch
	depth := min(uint32(max(f.Depth, 1)), r.before())
	for i := uint32(len(r.pre)); i < depth; i++ {
		r.reads++
		w, ok := r.readDesc((r.cur + i) % r.n)
		if !ok {
			r.busError(busRead | busDescriptor)
			return false
		}
		r.pre = append(r.pre, preDesc{w: [3]uint32(w[:3]), at: m.time()})
	}
	if len(r.pre) == 0 {
		r.suspend()
		return false
	}
	p := r.pre[0]
	if due := p.at + f.Delay; m.time() < due {
		m.armTimer(due)
		return false
	}
	w, ok := r.readDesc(r.cur)
	if !ok {
		r.busError(busRead | busDescriptor)
		return false
	}
	if w[3]&descOwn == 0 {
		r.fetched[3] = w[3]
		if m.cfg.Profile != Linux {
			r.report(OwnMissing, int(r.cur), "word 3 is %#08x before the tail", w[3])
		}
		r.pre = r.pre[:0]
		m.armTimer(m.time() + max(f.Delay, time.Microsecond))
		return false
	}
	if [3]uint32(w[:3]) != p.w {
		r.report(StaleFetch, int(r.cur), "fetched %08x, written later to %08x", p.w, w[:3])
	}
	r.fetched = words{p.w[0], p.w[1], p.w[2], w[3]}
	r.pre = append(r.pre[:0], r.pre[1:]...)
	r.ready = true
	if !m.audit.off {
		r.auditFetch()
	}
	return true
}

// at is the address of words 0 to 3 of a descriptor.
func (r *ring) at(i uint32) uint64 {
	return r.base + uint64(i)*uint64(r.stride) + uint64(r.front)
}

// readDesc reads a descriptor, OWN first.
func (r *ring) readDesc(i uint32) (w words, ok bool) {
	addr := r.at(i)
	if r.m.dmaFault(addr, r4.DescSize, false) {
		r.reportAccess(addr, r4.DescSize)
		return w, false
	}
	if p := r.window(); p != nil {
		d := (*words)(unsafe.Add(p, uintptr(i*r.stride)))
		w[3] = le32(barrier.LoadOwn(&d[3]))
		barrier.DMARead() // OWN, before the words that it covers
		w[0], w[1], w[2] = le32(d[0]), le32(d[1]), le32(d[2])
		return w, true
	}
	var b [r4.DescSize]byte
	if r.m.readMapped(addr, b[:]) != nil {
		r.reportAccess(addr, r4.DescSize)
		return w, false
	}
	for k := range w {
		w[k] = binary.LittleEndian.Uint32(b[4*k:])
	}
	return w, true
}

// writeBack gives the current descriptor back, OWN last, and steps to the next. All
// four words are written for a receive descriptor, word 3 for a transmit descriptor.
func (r *ring) writeBack(w *words) bool {
	m := r.m
	if !m.audit.off {
		r.auditWriteBack()
	}
	if p := r.window(); p != nil && m.faults.BusError == nil {
		d := (*words)(unsafe.Add(p, uintptr(r.cur*r.stride)))
		if !r.tx {
			d[0], d[1], d[2] = le32(w[0]), le32(w[1]), le32(w[2])
		}
		barrier.DMAWrite() // payload and status, before OWN is cleared
		barrier.StoreOwn(&d[3], le32(w[3]))
	} else if !r.writeDesc(w) {
		r.busError(busDescriptor)
		return false
	}
	r.next()
	return true
}

func (r *ring) writeDesc(w *words) bool {
	addr := r.at(r.cur)
	if r.m.dmaFault(addr, r4.DescSize, true) {
		return false
	}
	var b [r4.DescSize]byte
	for k, v := range w {
		binary.LittleEndian.PutUint32(b[4*k:], v)
	}
	if !r.tx && r.m.writeMapped(addr, b[:12]) != nil {
		return false
	}
	if p := r.window(); p != nil {
		d := (*words)(unsafe.Add(p, uintptr(r.cur*r.stride)))
		barrier.DMAWrite() // payload and status, before OWN is cleared
		barrier.StoreOwn(&d[3], le32(w[3]))
		return true
	}
	return r.m.writeMapped(addr+12, b[12:]) == nil
}

func (r *ring) next() {
	if r.cur++; r.cur >= r.n {
		r.cur = 0
	}
}
