package sim

import (
	"encoding/binary"
	"hash/crc32"
	"time"

	r4 "github.com/gostmmac/gostmmac/stmmac/internal/regs/gmac4reg"
)

// rxChan is a receive DMA channel.
type rxChan struct {
	ring

	rbsz  int  // bytes of a buffer
	sph   bool // headers are split off
	flush bool // RPF
	mid   int  // the queue whose first frame is partly in memory; -1 is none

	riwt   time.Duration // from the end of a frame without IOC to RI; 0 is never
	riwtAt time.Duration // when RI is due; 0 is not

	ctx    rxContext
	buffer uint64 // address of the last buffer
}

// rxContext is a context descriptor that follows a frame.
type rxContext struct {
	pending bool
	invalid bool
	stamp   time.Duration // when the frame arrived
	at      time.Duration // when the descriptor may be written
}

func (c *rxChan) init(m *Model, tx bool, ch int) {
	c.ring.init(m, tx, ch)
	c.mid = -1
}

func (c *rxChan) reset() {
	c.ring.reset()
	c.rbsz, c.sph, c.flush, c.mid = 0, false, false, -1
	c.riwt, c.riwtAt = 0, 0
	c.ctx = rxContext{}
	c.buffer = 0
}

// control takes over DMA_CHx_Rx_Control.
func (c *rxChan) control(old, now r4.CHRxControl) {
	c.rbsz = int(r4.RBSZ.Get(now))
	c.flush = now&r4.RPF != 0
	switch {
	case old&r4.SR == 0 && now&r4.SR != 0:
		if c.rbsz == 0 {
			c.report(ConfigInvalid, -1, "started with RBSZ 0")
		}
		if c.sph && !c.m.audit.off {
			c.auditSplit()
		}
		c.ctx = rxContext{}
		c.start()
	case old&r4.SR != 0 && now&r4.SR == 0:
		c.stop()
		c.abandon()
	}
}

// abandon drops a frame that is partly in memory.
func (c *rxChan) abandon() {
	if c.mid >= 0 {
		c.m.rxq[c.mid].pop(c.m)
		c.mid = -1
		c.m.stats.RxDropped++
	}
}

// setWatchdog takes over DMA_CHx_Rx_Interrupt_Watchdog_Timer.
func (c *rxChan) setWatchdog(v r4.RxWatchdog) {
	cycles := uint64(r4.RWTF.Get(v)) * 256 << r4.RWTU.Get(v)
	c.riwt = time.Duration(cycles * uint64(time.Second) / c.m.cfg.CSRClock)
	if c.riwt == 0 {
		c.riwtAt = 0
	}
}

// watchdog raises RI when its time has come and otherwise asks to be called again.
func (c *rxChan) watchdog(m *Model) {
	switch {
	case c.riwtAt == 0:
	case m.time() >= c.riwtAt:
		c.riwtAt = 0
		c.events |= r4.RI
	default:
		m.armTimer(c.riwtAt)
	}
}

// state is RPSx of DMA_Debug_Status.
func (c *rxChan) state() uint32 {
	switch {
	case c.hung:
		return rxTransferring
	case !c.run:
		return rxStopped
	case c.suspended && !c.stalled:
		return rxSuspended
	}
	return rxWaiting
}

// stepRx moves frames from the FIFO to memory and takes frames from the wire, up to
// budget descriptors and dropped frames.
func (m *Model) stepRx(budget int) (used int) {
	for i := range m.rx {
		c := &m.rx[i]
		if c.look() && c.ctx.pending && used < budget && c.writeContext() {
			used++
		}
	}
	used += m.drainAll(budget - used)
	used += m.listen(budget - used)
	for i := range m.rx {
		m.rx[i].peek()
	}
	return used
}

// free says whether the channel can take a frame of queue q now.
func (c *rxChan) free(q int) bool {
	return c.run && !c.stalled && !c.suspended && !c.ctx.pending && (c.mid < 0 || c.mid == q)
}

// drain moves up to frames waiting frames of a queue to memory, with up to budget
// descriptors; left is how many frames it may still move.
func (m *Model) drain(i, budget, frames int) (used, left int) {
	q := &m.rxq[i]
	for used < budget && frames > 0 && !q.empty() {
		f := &q.frames[q.head]
		c := &m.rx[f.meta.ch]
		if !c.run && c.flush && c.mid != i {
			m.missed(c)
			q.pop(m)
			used++
			frames--
			continue
		}
		if !c.free(i) {
			break
		}
		n, done := c.deliver(f, budget-used)
		used += n
		if !done {
			if f.desc > 0 {
				if c.run {
					c.mid = i
					break
				}
				m.missed(c) // a bus error in the middle of the frame
				q.pop(m)
			}
			break
		}
		c.mid = -1
		q.pop(m)
		frames--
	}
	return used, frames
}

// missed counts a frame that the DMA drops because the channel has stopped.
func (m *Model) missed(c *rxChan) {
	m.stats.RxMissed++
	off := chOff(m, r4.DMACHMissFrameCnt, c.ch)
	v := r4.CHMiss(m.regs.get(off))
	if n := r4.MFC.Get(v); n == r4.MFC.Max() {
		v = r4.MFC.Put(v, 0) | r4.MFCO
	} else {
		v = r4.MFC.Put(v, n+1)
	}
	m.regs.set(off, uint32(v))
}

// listen takes frames from the wire. On a wire that is not elastic they come
// whether the receiver and the link are on or not; on one that is, they wait.
func (m *Model) listen(budget int) (used int) {
	elastic := m.wire.Elastic()
	shut := m.mii.shut()
	deaf := m.mac.conf&r4.RE == 0 || m.mac.conf&r4.LM != 0 || m.clockGated() || shut
	if deaf && elastic {
		return 0
	}
	if c := int(m.rxq[0].channel); !deaf && c < len(m.rx) {
		used = m.rx[c].burst(budget)
	}
	for used < budget {
		frame := m.held
		if !m.hasHeld {
			var ok bool
			if frame, ok = m.wire.Receive(); !ok {
				break
			}
		}
		if deaf {
			if shut {
				m.stats.RxLost++
			} else {
				m.stats.RxDropped++
			}
			m.held, m.hasHeld = Frame{}, false
			used++
			continue
		}
		n, taken := m.arrive(frame, budget-used, elastic)
		used += n
		m.hasHeld = !taken
		if !taken {
			m.held = frame
			break
		}
		m.held = Frame{}
	}
	return used
}

// arrive handles a frame at the receiver. It is false, and has had no effect, when the
// frame has to wait on the wire.
func (m *Model) arrive(frame Frame, budget int, wait bool) (used int, taken bool) {
	if m.mac.conf&r4.RE == 0 {
		m.stats.RxDropped++
		return 1, true
	}
	f := &m.direct
	*f = rxFrame{data: frame.Data}
	fate := m.classify(frame.Data, frame.BadFCS, &f.meta)
	if f.meta.pause && !f.meta.bad {
		m.obeyPause(frame.Data)
	}
	switch fate {
	case fateFiltered:
		if f.meta.pause && !f.meta.bad {
			m.countRx(&f.meta) // PCF keeps it from memory only
		}
		m.stats.RxFiltered++
		return 1, true
	case fateKeep:
	default:
		if fate == fateQueue {
			m.stats.RxUnrouted++
		}
		if len(frame.Data) >= headerLen {
			m.countRx(&f.meta)
		}
		m.stats.RxDropped++
		return 1, true
	}
	if m.mac.arp.asks(frame.Data, &f.meta) {
		return m.acceptARP(f, budget, wait)
	}
	return m.gen.accept(f, budget, wait)
}

// accept implements generation.
func (m *Model) accept(f *rxFrame, budget int, wait bool) (used int, taken bool) {
	q, c := &m.rxq[f.meta.queue], &m.rx[f.meta.ch]
	i := int(f.meta.queue)
	fits := q.room(m, len(f.data))
	pass := q.empty() && c.mid < 0 && c.free(i) && (fits || !q.storeForward)
	if pass {
		var done bool
		if used, done = c.deliver(f, budget); done {
			m.countRx(&f.meta)
			return used, true
		}
	}
	switch {
	case f.desc > 0 && !c.run:
		m.countRx(&f.meta)
		m.missed(c) // a bus error in the middle of the frame
	case fits || f.desc > 0:
		m.countRx(&f.meta)
		q.push(m, f)
		if f.desc > 0 {
			c.mid = i
		}
	case wait && m.cost(len(f.data)) <= q.size:
		return used, false
	default:
		m.countRx(&f.meta)
		m.overflow(i)
	}
	return max(used, 1), true
}

// peek looks whether there is a descriptor for the next frame, so that the driver
// learns at once that it used the last.
func (c *rxChan) peek() {
	if !c.run || c.stalled || c.suspended || !c.ready || c.m.faults.Prefetch.On {
		return
	}
	if c.m.cfg.Profile == Linux {
		c.reads++
		if w, ok := c.readDesc(c.cur); ok && w[3]&descOwn == 0 {
			c.suspend()
		}
		return
	}
	if c.atTail() {
		c.look()
		if c.atTail() {
			c.suspend()
		}
	}
}

// deliver writes a frame to memory, up to budget descriptors of it. done is false
// when there is more to write.
func (c *rxChan) deliver(f *rxFrame, budget int) (used int, done bool) {
	m := c.m
	for used < budget {
		if !c.fetch() {
			return used, false
		}
		if !f.seen {
			m.spoil(f)
		}
		w := c.fetched
		d3 := r4.RDES3(w[3])
		if !m.audit.off {
			c.auditBuffers(&w)
		}
		first := f.desc == 0
		before := f.fill
		switch {
		case c.sph:
			if !c.split(&w, f, first) {
				return used, false
			}
		case d3&r4.RxBUF1V != 0 && !c.fill(c.address1(&w), first, f, f.total()),
			d3&r4.RxBUF2V != 0 && !c.fill(c.address2(&w), first && d3&r4.RxBUF1V == 0, f, f.total()):
			return used, false
		}
		f.desc++
		used++
		if done = c.close(&w, f, first, f.fill-before); done || !c.run {
			return used, done
		}
	}
	return used, false
}

// spoil lets the faults choose a frame as it reaches the channel.
func (m *Model) spoil(f *rxFrame) {
	f.seen, f.k = true, m.rxSeen
	m.rxSeen++
	if m.faults.RxError != nil {
		if e := m.faults.RxError(f.k) & rxErrors; e != 0 {
			f.meta.d3 |= e | r4.RxES
		}
	}
	if o := m.faults.Overflow; o.Mode != OverflowNone && o.Every > 0 && (f.k+1)%o.Every == 0 {
		f.cut, f.mode = max(o.After, 1), o.Mode
		if f.mode == OverflowLastWithError {
			f.cutErr = r4.RxOE | r4.RxES
		}
		m.gen.overflow(int(f.meta.queue))
	}
	if m.faults.LinkLoss != nil {
		if mode := m.faults.LinkLoss(f.k); mode != LinkLossNone {
			m.cutOff(f, mode)
		}
	}
}

// close writes the current descriptor back. done says that the frame ends with it.
func (c *rxChan) close(w *words, f *rxFrame, first bool, here int) (done bool) {
	m := c.m
	read := r4.RDES3(w[3])
	var d1 r4.RDES1
	d3 := r4.RDES3(0)
	if first {
		d3 |= r4.RxFD
	}
	last := f.off >= f.total()
	done = last
	length := f.fill
	if f.cut > 0 && (last || f.desc >= f.cut) {
		done = true
		if last {
			length -= (here + 1) / 2 // the rest did not arrive
		}
		last = f.mode != OverflowNoLast
		d3 |= f.cutErr
	}
	pl := uint32(length)
	var context bool
	if last {
		d1 = f.meta.check.d1
		d3 |= f.meta.d3 | r4.RxLD | r4.RxRS2V | m.faults.RxLengthFlags
		if ic := m.faults.InjectContext; ic.Every > 0 && (f.k+1)%ic.Every == 0 {
			d1 |= r4.TSA
			d3 |= r4.RxRS1V
			if context = !ic.Absent; context {
				c.ctx = rxContext{pending: true, invalid: ic.Invalid, stamp: m.time(), at: m.time() + ic.Delay}
			}
		}
		m.faults.RxChecksumLies.lie(&d1, &d3)
		if m.faults.InconsistentLength != nil {
			pl = m.faults.InconsistentLength(pl)
		}
	} else {
		switch m.faults.MiddleLength {
		case MiddleZero:
			pl = 0
		case MiddleOwn:
			pl = uint32(here)
		case MiddleStale:
			pl = r4.RxPL.Get(read)
		}
	}
	back := words{0, uint32(d1), 0, uint32(r4.RxPL.Put(d3, pl) &^ r4.RxOWN)}
	if last {
		back[0], back[2] = f.meta.d0, uint32(f.meta.d2)
	}
	if first {
		back[2] |= uint32(r4.HL.Of(uint32(f.header)))
	}
	if m.faults.ScribbleWriteBack {
		for i, valid := range [3]r4.RDES3{r4.RxRS0V, r4.RxRS1V, r4.RxRS2V} {
			if d3&valid == 0 && (i != 2 || !first || !c.sph) { // HL is valid without RS2V
				back[i] = 0xdead0000 | uint32(f.k)<<4&0xfff0 | uint32(i)
			}
		}
	}
	if !c.writeBack(&back) {
		c.ctx.pending = c.ctx.pending && !context
		return false
	}
	if read&r4.RxIOC != 0 {
		c.events |= r4.RI
		c.riwtAt = 0
	}
	if !done {
		return false
	}
	if last && d3&r4.RxRWT != 0 {
		c.events |= r4.RWT
	}
	if last && d3&r4.RxES == 0 {
		m.stats.RxFrames++
		m.stats.RxBytes += uint64(f.meta.n)
	} else {
		m.stats.RxErrors++
	}
	if read&r4.RxIOC == 0 && c.riwt > 0 && c.riwtAt == 0 {
		c.riwtAt = m.time() + c.riwt
		m.armTimer(c.riwtAt)
	}
	if c.ctx.pending {
		c.writeContext()
	}
	return true
}

// writeContext fills the context descriptor that follows a frame, if its time has
// come and there is one.
func (c *rxChan) writeContext() bool {
	m := c.m
	if m.time() < c.ctx.at {
		m.armTimer(c.ctx.at)
		return false
	}
	if c.suspended || !c.fetch() {
		return false
	}
	w := words{uint32(c.ctx.stamp % time.Second), uint32(c.ctx.stamp / time.Second), 0, uint32(r4.RxCTXT)}
	if c.ctx.invalid {
		w[0], w[1] = ^uint32(0), ^uint32(0)
	}
	if m.faults.ScribbleWriteBack {
		w[2] = 0xdead0002
	}
	ioc := r4.RDES3(c.fetched[3])&r4.RxIOC != 0
	c.ctx = rxContext{}
	if c.writeBack(&w) && ioc {
		c.events |= r4.RI
	}
	return true
}

// address1 and address2 are the bus addresses of the buffers of a descriptor.
func (c *rxChan) address1(w *words) uint64 {
	a := uint64(w[0])
	if c.m.eame {
		a |= uint64(w[1]) << 32
	}
	return a
}

func (c *rxChan) address2(w *words) uint64 {
	a := uint64(w[2])
	if c.m.eame {
		high := w[3] & (1<<(c.m.cfg.AddrWidth-32) - 1)
		a |= uint64(high) << 32
	}
	return a
}

// room is what a buffer holds of a frame that starts in it, or does not.
func (c *rxChan) room(addr uint64, first bool) int {
	if first {
		return c.rbsz - int(addr&uint64(c.m.cfg.BusBytes-1))
	}
	return c.rbsz
}

// fill writes as much of the frame as a buffer holds, up to limit bytes. The buffer with the start of the
// frame takes it at any address, and its room counts from there rounded down to the
// width of the bus; of any other the low bits of the address are ignored.
func (c *rxChan) fill(addr uint64, first bool, f *rxFrame, limit int) bool {
	m := c.m
	if addr == ^uint64(0) || !m.eame && addr == 1<<32-1 {
		c.events |= r4.CDE
		return true
	}
	n := min(c.room(addr, first), f.total()-f.off, limit)
	if !first {
		addr &^= uint64(m.cfg.BusBytes - 1)
	}
	if n <= 0 {
		return true
	}
	return c.store(addr, n, f)
}

// store writes the next n bytes of the frame to addr. It reports false after a bus
// error.
func (c *rxChan) store(addr uint64, n int, f *rxFrame) bool {
	m := c.m
	c.buffer = addr
	if m.faults.WholeBusWords {
		return c.fillWords(addr, n, f)
	}
	if m.faults.BusError == nil {
		if w := m.window(addr, n); w != nil {
			f.copyTo(w)
			f.off += n
			f.fill += n
			return true
		}
	}
	m.scratch = grow(m.scratch, n)
	f.copyTo(m.scratch)
	return c.fillSlow(addr, m.scratch, n, f)
}

// busGarbage is what whole bus words carry beside the frame.
const busGarbage = 0xa5

// fillWords is fill for an engine that writes whole bus words.
func (c *rxChan) fillWords(addr uint64, n int, f *rxFrame) bool {
	m := c.m
	bus := uint64(m.cfg.BusBytes)
	lo := addr &^ (bus - 1)
	hi := (addr + uint64(n) + bus - 1) &^ (bus - 1)
	m.scratch = grow(m.scratch, int(hi-lo))
	for i := range m.scratch {
		m.scratch[i] = busGarbage
	}
	f.copyTo(m.scratch[addr-lo:][:n])
	return c.fillSlow(lo, m.scratch, n, f)
}

func (c *rxChan) fillSlow(addr uint64, p []byte, n int, f *rxFrame) bool {
	if c.m.writeDMA(addr, p) != nil {
		c.reportAccess(addr, len(p))
		c.busError(0)
		c.ctx = rxContext{}
		c.mid = -1
		return false
	}
	f.off += n
	f.fill += n
	return true
}

// copyTo copies the frame from off on, with the FCS behind it.
func (f *rxFrame) copyTo(p []byte) {
	n := 0
	if f.off < f.meta.n {
		if cut := f.meta.cut; cut > 0 {
			if f.off < f.meta.cutAt {
				n = copy(p, f.data[f.off:f.meta.cutAt])
			}
			n += copy(p[n:], f.data[f.off+n+cut:f.meta.n+cut])
		} else {
			n = copy(p, f.data[f.off:f.meta.n])
		}
	}
	if n == len(p) {
		return
	}
	if !f.fcsDone {
		f.fcsDone = true
		f.fcsVal = fcs(f.data)
		if f.meta.bad {
			f.fcsVal[0] ^= 0xff
		}
	}
	copy(p[n:], f.fcsVal[f.off+n-f.meta.n:])
}

// fcs is the frame check sequence of a frame in the order of transmission.
func fcs(data []byte) (b [fcsLen]byte) {
	binary.LittleEndian.PutUint32(b[:], crc32.ChecksumIEEE(data))
	return b
}

// auditBuffers checks that the device may write all of the buffers.
func (c *rxChan) auditBuffers(w *words) {
	d3 := r4.RDES3(w[3])
	const both = r4.RxBUF1V | r4.RxBUF2V
	if d3&both == 0 || c.sph && d3&both != both {
		c.report(NoBuffer, int(c.cur), "word 3 is %#08x", w[3])
	}
	low := uint64(c.m.cfg.BusBytes - 1)
	check := func(a uint64) {
		if !c.m.reachable(a&^low, c.rbsz) {
			c.report(BufferOutside, int(c.cur), "%d bytes at %#x", c.rbsz, a&^low)
		}
	}
	if d3&r4.RxBUF1V != 0 {
		check(c.address1(w))
	}
	if d3&r4.RxBUF2V != 0 {
		check(c.address2(w))
	}
}
