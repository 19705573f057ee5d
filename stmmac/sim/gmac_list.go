package sim

import (
	"encoding/binary"
	"unsafe"

	"github.com/gostmmac/gostmmac/barrier"
	rg "github.com/gostmmac/gostmmac/stmmac/internal/regs/gmacreg"
)

// gmacOwn is OWN, in word 0. The bits that say what follows a descriptor are the same in
// word 1 of both directions: the end of a ring, which wins, and a chain.
const (
	gmacOwn   = uint32(rg.RxOWN)
	gmacEnd   = uint32(rg.RxRER)
	gmacChain = uint32(rg.RxRCH)
)

// gmacList is the engine's view of a list of normal descriptors. Whether the channel runs
// or is suspended stands in the ring of the channel, with its count of doorbells, which
// here are poll demands; cur is how many descriptors the current one lies behind the base.
type gmacList struct {
	m *Model
	r *ring

	gmacListState
	view  view
	audit gmacAudit
}

// gmacListState is what a software reset clears.
type gmacListState struct {
	base   uint32 // as latched
	addr   uint32 // of the current descriptor
	stride uint32 // to the next one where no chain names it
}

func (l *gmacList) reset() {
	l.gmacListState, l.view = gmacListState{}, view{}
	l.audit.stop()
}

// demand is a store to a poll demand register. The owner of the queue calls it without
// a lock: the descriptors are visible before the count that announces them.
func (g *gmac) demand(tx bool) {
	l := &g.rx
	if tx {
		l = &g.tx
	}
	m := g.m
	if !m.audit.off {
		l.r.bells.Add(1)
		l.audit.walk(l)
	}
	barrier.Store32(&l.r.seq, barrier.LoadOwn(&l.r.seq)+1)
	if m.wakeup != nil {
		barrier.DMAFull() // the count, before the look at whether the engine sleeps
		m.kick()
	}
}

// look takes notice of poll demands and says whether the engine may fetch.
func (l *gmacList) look() bool {
	r := l.r
	if !r.run || r.stalled {
		return false
	}
	seq := barrier.Load32(&r.seq)
	if r.suspended && seq == r.seen {
		return false
	}
	r.seen = seq // before OWN is read: a demand behind it is seen the next time
	r.suspended = false
	return true
}

// setBase is a store to a list address register. While the channel runs it has no effect
// until the next start.
func (l *gmacList) setBase(off, old, v, now uint32) {
	m := l.m
	m.changedRunning(off, l.r.run, old, now)
	if v != now {
		l.r.report(ConfigInvalid, -1, "%s = %#x: the device takes %#x", m.regName(off), v, now)
	}
	m.regs.set(off, now)
	l.r.rebase = true
	if !l.r.run {
		l.latch()
	}
}

func (l *gmacList) latch() {
	off := uint32(rg.ReceiveListAddress)
	if l.r.tx {
		off = uint32(rg.TransmitListAddress)
	}
	l.base = l.m.regs.get(off)
	l.addr, l.r.cur, l.r.rebase = l.base, 0, false
}

// start goes on where the channel stopped, or at the base if that was written since.
func (l *gmacList) start() {
	r, m := l.r, l.m
	if r.hung {
		return
	}
	if r.rebase {
		l.latch()
	}
	l.stride = rg.DescSize + rg.DSL.Get(rg.BusMode(m.regs.get(uint32(rg.BusModeReg))))*uint32(m.cfg.BusBytes)
	r.run, r.suspended, r.faulted = true, false, false
	r.ready = r.tx
	r.seen = barrier.Load32(&r.seq)
	l.view = view{}
	if !m.audit.off {
		l.audit.start(l)
	}
}

// desc is the descriptor at addr in memory; nil where only the calls of DMA reach it.
func (l *gmacList) desc(addr uint32) *words {
	p := l.view.at(l.m, uint64(addr), rg.DescSize)
	if p == nil || uintptr(unsafe.Pointer(unsafe.SliceData(p)))&3 != 0 {
		return nil
	}
	return (*words)(unsafe.Pointer(unsafe.SliceData(p)))
}

// read reads a descriptor, OWN first.
func (l *gmacList) read(addr uint32) (w words, ok bool) {
	m := l.m
	if m.dmaFault(uint64(addr), rg.DescSize, false) {
		l.r.reportAccess(uint64(addr), rg.DescSize)
		return w, false
	}
	if d := l.desc(addr); d != nil {
		w[0] = le32(barrier.LoadOwn(&d[0]))
		barrier.DMARead() // OWN, before the words that it covers
		w[1], w[2], w[3] = le32(d[1]), le32(d[2]), le32(d[3])
		return w, true
	}
	var b [rg.DescSize]byte
	err := m.readMapped(uint64(addr), b[:4])
	barrier.DMARead() // OWN, before the words that it covers
	if err != nil || m.readMapped(uint64(addr)+4, b[4:]) != nil {
		l.r.reportAccess(uint64(addr), rg.DescSize)
		return w, false
	}
	for k := range w {
		w[k] = binary.LittleEndian.Uint32(b[4*k:])
	}
	return w, true
}

// fetch reads the current descriptor into fetched. It is false when there is none: the
// engine is suspended or met a bus error.
func (l *gmacList) fetch() bool {
	r := l.r
	r.reads++
	w, ok := l.read(l.addr)
	if !ok {
		r.busError(busRead | busDescriptor)
		return false
	}
	r.fetched = w
	if w[0]&gmacOwn == 0 {
		r.suspend()
		return false
	}
	r.ready = true
	if !l.m.audit.off {
		l.audit.fetch(l)
	}
	return true
}

// following is the address of the descriptor behind the one that was fetched.
func (l *gmacList) following() uint32 { return l.behind(&l.r.fetched, l.m.cfg.BusBytes) }

// behind is the address of the descriptor that follows w, the current one.
func (s *gmacListState) behind(w *words, busBytes int) uint32 {
	switch {
	case w[1]&gmacEnd != 0:
		return s.base
	case w[1]&gmacChain != 0:
		return w[3] &^ uint32(busBytes-1)
	}
	return s.addr + s.stride
}

// second says whether word 3 is a buffer.
func (l *gmacList) second() bool { return l.r.fetched[1]&gmacChain == 0 }

// writeBack writes words 2 and 3 if extra is not nil, then word 0, which gives the current
// descriptor back, and steps to the next.
func (l *gmacList) writeBack(status uint32, extra *[2]uint32) bool {
	m := l.m
	if !m.audit.off {
		l.audit.mu.Lock()
		defer l.audit.mu.Unlock()
		l.audit.release(l)
	}
	if !l.store(l.addr, status, extra) {
		l.r.busError(busDescriptor)
		return false
	}
	next := l.following()
	l.r.cur++
	if next == l.base {
		l.r.cur = 0
	}
	l.addr = next
	return true
}

func (l *gmacList) store(at, status uint32, extra *[2]uint32) bool {
	m, addr := l.m, uint64(at)
	if m.dmaFault(addr, rg.DescSize, true) {
		return false
	}
	if d := l.desc(at); d != nil {
		if extra != nil {
			d[2], d[3] = le32(extra[0]), le32(extra[1])
		}
		barrier.DMAWrite() // payload and words 2 and 3, before OWN is cleared
		barrier.StoreOwn(&d[0], le32(status))
		return true
	}
	var b [8]byte
	if extra != nil {
		binary.LittleEndian.PutUint32(b[:], extra[0])
		binary.LittleEndian.PutUint32(b[4:], extra[1])
		if m.writeMapped(addr+8, b[:]) != nil {
			return false
		}
	}
	binary.LittleEndian.PutUint32(b[:], status)
	return m.writeMapped(addr, b[:4]) == nil
}
