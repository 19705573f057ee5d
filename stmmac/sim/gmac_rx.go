package sim

import (
	"time"

	r4 "github.com/gostmmac/gostmmac/stmmac/internal/regs/gmac4reg"
	rg "github.com/gostmmac/gostmmac/stmmac/internal/regs/gmacreg"
)

// stepRx implements generation.
func (g *gmac) stepRx(budget int) (used int) {
	g.rx.look()
	if g.late.pending {
		if !g.writeLate() {
			return 0
		}
		used++
	}
	used += g.drain(budget - used)
	if !g.late.pending {
		used += g.m.listen(budget - used)
	}
	g.peek()
	return used
}

// ready says whether the channel may fetch.
func (g *gmac) ready() bool {
	c := &g.m.rx[0]
	return c.run && !c.stalled && !c.suspended && !g.late.pending
}

// flushes says whether frames that find no descriptor are dropped.
func (g *gmac) flushes() bool {
	c := &g.m.rx[0]
	return !g.dff && c.run && !c.stalled && c.suspended
}

// drain moves waiting frames to memory, with up to budget descriptors.
func (g *gmac) drain(budget int) (used int) {
	m := g.m
	q, c := &m.rxq[0], &m.rx[0]
	for used < budget && !q.empty() {
		f := &q.frames[q.head]
		if g.flushes() && f.desc == 0 {
			g.missed()
			q.pop(m)
			used++
			continue
		}
		if !g.ready() {
			break
		}
		n, done := g.deliver(f, budget-used)
		used += n
		if !done && (c.run || f.desc == 0) {
			if f.desc > 0 {
				c.mid = 0
			}
			if n == 0 && g.flushes() {
				continue
			}
			break
		}
		c.mid = -1 // whole, or cut by a bus error
		q.pop(m)
	}
	return used
}

// accept implements generation. A frame makes a suspended channel look at its descriptor
// again, as a poll demand does.
func (g *gmac) accept(f *rxFrame, budget int, wait bool) (used int, taken bool) {
	m := g.m
	q, c := &m.rxq[0], &m.rx[0]
	if c.run && !c.stalled {
		c.suspended = false
	}
	fits := q.room(m, len(f.data))
	if q.empty() && c.mid < 0 && g.ready() && (fits || !q.storeForward) {
		var done bool
		if used, done = g.deliver(f, budget); done {
			m.countRx(&f.meta)
			return used, true
		}
		if f.desc == 0 && g.flushes() {
			m.countRx(&f.meta)
			g.missed()
			return max(used, 1), true
		}
	}
	switch {
	case f.desc > 0 && !c.run:
		m.countRx(&f.meta) // a bus error in the middle of the frame
		m.stats.RxDropped++
	case fits || f.desc > 0:
		m.countRx(&f.meta)
		q.push(m, f)
		if f.desc > 0 {
			c.mid = 0
		}
	case wait && m.cost(len(f.data)) <= q.size:
		return used, false
	default:
		m.countRx(&f.meta)
		g.overflow(0)
	}
	return max(used, 1), true
}

// peek looks whether there is a descriptor for the next frame, so that the driver learns
// at once that it used the last.
func (g *gmac) peek() {
	c := &g.m.rx[0]
	if !g.ready() || !c.ready || c.mid >= 0 {
		return
	}
	g.rx.look()
	c.reads++
	if w, ok := g.rx.read(g.rx.addr); ok && w[0]&gmacOwn == 0 {
		c.suspend()
	}
}

// deliver writes a frame to memory, up to budget descriptors of it. done is false when
// there is more to write.
func (g *gmac) deliver(f *rxFrame, budget int) (used int, done bool) {
	m := g.m
	c := &m.rx[0]
	for used < budget {
		if !g.rx.fetch() {
			return used, false
		}
		if !f.seen {
			m.spoil(f)
		}
		w := c.fetched
		d1 := rg.RDES1(w[1])
		size1, size2 := g.size(rg.RxRBS1.Get(d1)), 0
		if g.rx.second() {
			size2 = g.size(rg.RxRBS2.Get(d1))
		}
		if !m.audit.off {
			g.auditBuffers(&w, size1, size2)
		}
		first, before := f.desc == 0, f.fill
		if !g.fill(w[2], size1, first, f) || !g.fill(w[3], size2, first && size1 == 0, f) {
			return used, false
		}
		f.desc++
		used++
		if done = g.close(f, first, f.fill-before); done || !c.run {
			return used, done
		}
	}
	return used, false
}

// size is the room of a buffer: the engine counts whole bus words.
func (g *gmac) size(field uint32) int { return int(field) &^ (g.m.cfg.BusBytes - 1) }

// fill writes as much of the frame as a buffer holds. The buffer with the start of the
// frame takes it at any address, and its room counts from there rounded down to the
// width of the bus; of any other the low bits of the address are ignored.
func (g *gmac) fill(at uint32, size int, first bool, f *rxFrame) bool {
	m := g.m
	c := &m.rx[0]
	low := uint32(m.cfg.BusBytes - 1)
	if first {
		size -= int(at & low)
	} else {
		at &^= low
	}
	n := min(size, f.total()-f.off)
	if n <= 0 {
		return true
	}
	return c.store(uint64(at), n, f)
}

// close writes the current descriptor back. done says that the frame ends with it: it is
// whole, or cut by a fault, or there is no descriptor for the rest, which is dropped
// unless DFF keeps it.
func (g *gmac) close(f *rxFrame, first bool, here int) (done bool) {
	m := g.m
	c := &m.rx[0]
	d0, d1 := rg.RDES0(0), rg.RDES1(c.fetched[1])
	if first {
		d0 |= rg.RxFS
	}
	last := f.off >= f.total()
	done = last
	length := f.fill
	cut := r4.RDES3(0)
	switch {
	case f.cut > 0 && (last || f.desc >= f.cut):
		done = true
		if last {
			length -= (here + 1) / 2 // the rest did not arrive
		}
		last = f.mode != OverflowNoLast
		cut = f.cutErr
	case !last && m.faults.EmptyBufferEnds && g.rx.second() && rg.RxRBS2.Get(d1) == 0:
		done, last, length = true, true, f.total()
	case !last && !g.dff && !g.owned(g.rx.following()):
		done, last = true, true
		d0 |= rg.RxDE | rg.RxES
	}
	n := uint32(length)
	switch {
	case last:
		d0 |= g.verdict(&f.meta, f.meta.d3|cut) | rg.RxLS
		if m.faults.InconsistentLength != nil {
			n = m.faults.InconsistentLength(n)
		}
	case m.faults.MiddleLength == MiddleZero:
		n = 0
	case m.faults.MiddleLength == MiddleOwn:
		n = uint32(here)
	case m.faults.MiddleLength == MiddleStale:
		n = rg.RxFL.Get(rg.RDES0(c.fetched[0]))
	}
	var stamp *[2]uint32
	if last && m.faults.ScribbleWriteBack {
		stamp = &[2]uint32{0xdead0000 | uint32(f.k)<<4&0xfff0 | 2, 0xdead0000 | uint32(f.k)<<4&0xfff0 | 3}
	}
	d0 = rg.RxFL.Put(d0, n) &^ rg.RxOWN
	show := d0
	if wait := m.faults.LateLastSegment; wait > 0 && last {
		show &^= rg.RxLS
		g.late = gmacLate{pending: true, addr: g.rx.addr, first: uint32(show), last: uint32(d0), at: m.time() + wait,
			ri: d1&rg.RxDIC == 0}
	}
	if !g.rx.writeBack(uint32(show), stamp) {
		g.late = gmacLate{}
		return false
	}
	if !done {
		if first {
			c.events |= r4.ERI
		}
		return false
	}
	g.complete(f, d0, d1)
	return true
}

// gmacLate is the second write-back of a descriptor by the fault LateLastSegment.
type gmacLate struct {
	pending     bool
	addr        uint32
	first, last uint32 // word 0 of the two
	at          time.Duration
	ri          bool
}

// writeLate writes a descriptor back for the second time when that is due, over whatever
// the driver has made of it.
func (g *gmac) writeLate() bool {
	m, l := g.m, g.late
	c := &m.rx[0]
	if m.time() < l.at {
		m.armTimer(l.at)
		return false
	}
	g.late = gmacLate{}
	if w, ok := g.rx.read(l.addr); ok && w[0] != l.first {
		c.report(OwnedWrite, -1, "word 0 at %#x was written back as %#08x without LS, and is %#08x", l.addr, l.first, w[0])
	}
	if !g.rx.store(l.addr, l.last, nil) {
		c.busError(busDescriptor)
	} else if l.ri {
		c.events |= r4.RI
	}
	return true
}

// gmacRxErrors are the errors of a frame that ES sums up, without those of checksums.
const gmacRxErrors = rg.RxDE | rg.RxOE | rg.RxRWT | rg.RxRE | rg.RxCE

// complete is the end of a frame: counts and interrupts.
func (g *gmac) complete(f *rxFrame, d0 rg.RDES0, d1 rg.RDES1) {
	m := g.m
	c := &m.rx[0]
	whole := d0&rg.RxLS != 0
	dribble := d0&(rg.RxES|rg.RxDB) == rg.RxES|rg.RxDB
	if whole && d0&gmacRxErrors == 0 && !dribble {
		m.stats.RxFrames++
		m.stats.RxBytes += uint64(f.meta.n)
	} else {
		m.stats.RxErrors++
	}
	if !whole {
		return // RI comes with LS
	}
	if d0&rg.RxRWT != 0 {
		c.events |= r4.RWT
	}
	switch {
	case d1&rg.RxDIC == 0:
		c.events |= r4.RI
		c.riwtAt = 0
	case c.riwt > 0 && c.riwtAt == 0:
		c.riwtAt = m.time() + c.riwt
		m.armTimer(c.riwtAt)
	}
}

// owned says whether the device owns the descriptor at addr.
func (g *gmac) owned(addr uint32) bool {
	g.rx.r.reads++
	w, ok := g.rx.read(addr)
	return !ok || w[0]&gmacOwn != 0 // what cannot be read is a bus error at its fetch
}

// verdict is RDES0 of a frame. With the checksum engine, type 2, bits 5, 7 and 0 are one
// code (databook: RDES0, Receive Checksum Offload Engine):
//
//	FT IPE PCE
//	0  0   0    a length field
//	1  0   0    an IP packet, all checksums right
//	1  0   1    payload checksum wrong
//	1  1   0    IP header wrong, and 1 1 1 both
//	0  0   1    an IP packet whose payload was not checked
//	0  1   1    no IP packet
//
// Without it FT tells a type field and IPE a giant. ES sums the errors up, with those of
// checksums where there is an IP packet: the databook names the bits whatever the code, but
// a core that set ES for each frame that is not IP could not have been used.
func (g *gmac) verdict(f *rxMeta, d3 r4.RDES3) (d0 rg.RDES0) {
	m := g.m
	for _, b := range [...]struct {
		gmac4 r4.RDES3
		gmac  rg.RDES0
	}{{r4.RxDE, rg.RxDB}, {r4.RxRE, rg.RxRE}, {r4.RxOE, rg.RxOE}, {r4.RxRWT, rg.RxRWT}, {r4.RxCE, rg.RxCE}} {
		if d3&b.gmac4 != 0 {
			d0 |= b.gmac
		}
	}
	// The databook sums up all of these but the dribble bit; the fault RxError does so
	// with any.
	if d0&gmacRxErrors != 0 || d0 != 0 && d3&r4.RxES != 0 {
		d0 |= rg.RxES
	}
	if f.d2&r4.DAFFail != 0 {
		d0 |= rg.RxAFM
	}
	if f.d2&r4.SAFFail != 0 {
		d0 |= rg.RxSAF
	}
	if f.d2&r4.VF != 0 {
		d0 |= rg.RxVLN
	}
	length := r4.RxLT.Get(f.d3) == ltLength
	if m.mac.conf&r4.IPC == 0 {
		if !length {
			d0 |= rg.RxFT
		}
		if d3&r4.RxGP != 0 {
			d0 |= rg.RxIPE | rg.RxES
		}
		return d0
	}
	check := f.check.d1
	switch {
	case check&(r4.IPV4|r4.IPV6) == 0:
		if !length {
			d0 |= rg.RxIPE | rg.RxPCE
		}
	case check&r4.IPHE != 0:
		d0 |= rg.RxFT | rg.RxIPE | rg.RxES
	case check&r4.IPCB != 0:
		d0 |= rg.RxPCE
	case check&r4.IPCE != 0:
		d0 |= rg.RxFT | rg.RxPCE | rg.RxES
	default:
		d0 |= rg.RxFT
	}
	return d0
}

// auditBuffers checks that the device may write all of the buffers.
func (g *gmac) auditBuffers(w *words, size1, size2 int) {
	c := &g.m.rx[0]
	d1 := rg.RDES1(w[1])
	if size1+size2 == 0 {
		c.report(NoBuffer, int(c.cur), "word 1 is %#08x", w[1])
	}
	n1, n2 := int(rg.RxRBS1.Get(d1)), 0
	if g.rx.second() {
		n2 = int(rg.RxRBS2.Get(d1))
	}
	if n1 != size1 || n2 != size2 {
		c.report(ConfigInvalid, int(c.cur), "buffers of %d and %d bytes are not multiples of the bus width %d", n1, n2, g.m.cfg.BusBytes)
	}
	low := uint32(g.m.cfg.BusBytes - 1)
	for i, n := range [2]int{size1, size2} {
		if a := uint64(w[2+i] &^ low); !g.m.reachable(a, n) {
			c.report(BufferOutside, int(c.cur), "%d bytes at %#x", n, a)
		}
	}
}
