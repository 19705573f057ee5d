package sim

import (
	"encoding/binary"
	"unsafe"

	"github.com/gostmmac/gostmmac/barrier"
	r4 "github.com/gostmmac/gostmmac/stmmac/internal/regs/gmac4reg"
)

// The paths here do what take, transmit and finish, and arrive, deliver and close do,
// for frames in one descriptor about which there is nothing special, in one loop and
// with the counters added up at its end. They run with NoAudit and without faults
// that touch the data path; whatever they do not understand they leave to the
// general code.

// plain says whether the faults leave the data path alone.
func (f *Faults) plain() bool {
	return !f.ScribbleWriteBack && !f.Prefetch.On && !f.WholeBusWords && !f.ClockGated && f.Overflow.Mode == OverflowNone &&
		f.InjectContext.Every == 0 && !f.TxNeverCompletes && !f.HalfDuplexQueue0Only && !f.SingleTxTwice && f.BusError == nil &&
		f.RxError == nil && f.LinkLoss == nil && f.Collide == nil && f.CollideLate == nil && f.RxChecksumLies == RxChecksumHonest &&
		f.InconsistentLength == nil && f.RxLengthFlags == 0 && !f.ThresholdCorrupts
}

// burstCount adds up what the counters get at the end of a burst.
type burstCount struct {
	frames, octets, giants uint32
	bins                   [6]uint32
}

// add counts a frame of n bytes with its FCS, at least 64.
func (b *burstCount) add(n, giant int) {
	b.frames++
	b.octets += uint32(n)
	bin, _ := sizeBin(n)
	b.bins[bin/4]++
	if n > giant {
		b.giants++
	}
}

// count adds n to a counter, if there is something to add.
func (m *Model) count(off, n uint32) {
	if n != 0 {
		m.countMMC(off, n)
	}
}

// burstBlock is how many descriptors share a barrier each way.
const burstBlock = 16

// view is a mapping that accesses follow one another in.
type view struct {
	lo  uint64
	mem []byte
}

// extenter is a DMA that can tell the whole mapping around an address.
type extenter interface {
	// Extent returns the mapping that addr lies in and its bus address, or nil.
	Extent(addr uint64) (lo uint64, mem []byte)
}

// at is the n bytes at addr, or nil.
func (v *view) at(m *Model, addr uint64, n int) []byte {
	if off := addr - v.lo; off < uint64(len(v.mem)) && uint64(n) <= uint64(len(v.mem))-off {
		return v.mem[off : off+uint64(n)]
	}
	if x, ok := m.dma.(extenter); ok {
		v.lo, v.mem = x.Extent(addr)
	}
	return m.window(addr, n)
}

// owned loads word 3 of up to n descriptors from the current one on while they are of
// the kind that mask and want say, with the barrier that the other words need.
func (r *ring) owned(list unsafe.Pointer, n int, mask, want uint32, w3 *[burstBlock]uint32) (k int) {
	i := r.cur
	for k < min(n, burstBlock) {
		d := (*words)(unsafe.Add(list, uintptr(i*r.stride)))
		w := le32(barrier.LoadOwn(&d[3]))
		if w&mask != want {
			break
		}
		w3[k] = w
		k++
		if i++; i == r.n {
			i = 0
		}
	}
	if k > 0 {
		barrier.DMARead() // the OWN words, before the words that they cover
	}
	return k
}

// release stores word 3 of the next len(w3) descriptors.
func (r *ring) release(list unsafe.Pointer, w3 []uint32) {
	barrier.DMAWrite() // payload and status, before OWN is cleared
	for _, w := range w3 {
		d := (*words)(unsafe.Add(list, uintptr(r.cur*r.stride)))
		barrier.StoreOwn(&d[3], le32(w))
		r.next()
	}
}

// burst sends up to budget frames.
func (t *txChan) burst(budget int) (used int) {
	m := t.m
	if !m.quick || !t.run || t.suspended || t.held || t.inFrame || t.stopping || t.flushing || !t.enabled || t.front != 0 ||
		m.mac.conf&(r4.TE|r4.LM|r4.DM) != r4.TE|r4.DM || m.flow.until != 0 || m.mac.tags.edits || t.tags.innerReq != 0 || m.lpi.phase != lpiOff {
		return 0
	}
	list := t.window()
	if list == nil || (t.tail-uint32(t.base))%t.stride != 0 || (t.tail-uint32(t.base))/t.stride >= t.n {
		return 0
	}
	var sum burstCount
	var v view
	var w3 [burstBlock]uint32
	limit := min(budget, int(t.before()))
	ioc, octets := uint32(0), uint64(0)
	for used < limit {
		const kind = uint32(r4.TxOWN | r4.TxCTXT | r4.TxFD | r4.TxLD)
		k := t.owned(list, limit-used, kind|uint32(r4.CPC|r4.CIC|r4.SAIC), uint32(r4.TxOWN|r4.TxFD|r4.TxLD), &w3)
		i, done := t.cur, 0
		for done < k {
			d := (*words)(unsafe.Add(list, uintptr(i*t.stride)))
			w2 := le32(d[2])
			n := int(w2 & uint32(r4.B1L))
			if n < minPadded || w2&uint32(r4.B2L|r4.VTIR) != 0 || n+fcsLen > m.mac.jabber {
				break
			}
			addr := uint64(le32(d[0]))
			if m.eame {
				addr |= uint64(le32(d[1])) << 32
			}
			data := v.at(m, addr, n)
			if data == nil || !m.wire.Transmit(Frame{Data: data}) {
				break
			}
			etype := uint32(binary.BigEndian.Uint16(data[12:]))
			if data[0]&groupBit != 0 || etype == typeVLAN || etype == typeSVLAN || etype == typeControl {
				m.countTx(data, n+fcsLen, true)
			} else {
				sum.add(n+fcsLen, m.mac.giant)
			}
			octets += uint64(n)
			t.buffer = addr
			ioc |= w2
			w3[done] = uint32(r4.TxFD | r4.TxLD)
			done++
			if i++; i == t.n {
				i = 0
			}
		}
		if done == 0 {
			break
		}
		t.release(list, w3[:done])
		used += done
		if done < k {
			break
		}
	}
	if used == 0 {
		return 0
	}
	t.ready = true
	t.reads += uint64(used)
	m.stats.TxFrames += uint64(used)
	m.stats.TxBytes += octets
	if ioc&uint32(r4.IOC) != 0 {
		t.events |= r4.TI
	}
	m.count(r4.TxOctetCountGoodBad, sum.octets)
	m.count(r4.TxPacketCountGoodBad, sum.frames)
	m.count(r4.TxUnicastPacketsGoodBad, sum.frames)
	m.count(r4.TxOctetCountGood, sum.octets)
	m.count(r4.TxPacketCountGood, sum.frames)
	m.count(r4.TxOsizePacketsGood, sum.giants)
	for i, n := range sum.bins {
		m.count(r4.Tx64OctetsPacketsGoodBad+4*uint32(i), n)
	}
	return used
}

// burst receives up to budget frames. A frame that is not for it is left held.
func (c *rxChan) burst(budget int) (used int) {
	m := c.m
	q := &m.rxq[0]
	s := &m.mac
	if !m.quick || m.hasHeld || s.routed || s.l34.active || !q.enabled || q.dynamic || !q.empty() || c.mid >= 0 || c.sph || !c.free(0) ||
		s.filter&(r4.HUC|r4.DAIF|r4.SAF|r4.VTFE|r4.RA) != 0 || len(s.entries) == 0 || s.entries[0].n != 0 {
		return 0
	}
	list := c.window()
	if list == nil {
		return 0
	}
	longest := min(s.giant, s.watchdog) - fcsLen
	if q.storeForward {
		// What the FIFO would have to hold: the frame in whole bus words and a
		// word of status.
		longest = min(longest, q.size-m.cfg.BusBytes)
	}
	var sum burstCount
	var v view
	var w3 [burstBlock]uint32
	flags := uint32(r4.RxFD | r4.RxLD | r4.RxRS2V | r4.RxLT.Of(ltType))
	if s.conf&r4.IPC != 0 {
		flags |= uint32(r4.RxRS1V)
	}
	limit := min(budget, int(c.n))
	if m.cfg.Profile == Strict {
		limit = min(budget, int(c.before()))
	}
	for used < limit {
		const kind = uint32(r4.RxOWN | r4.RxBUF1V)
		k := c.owned(list, limit-used, kind, kind, &w3)
		i, done := c.cur, 0
		for done < k {
			frame, ok := m.wire.Receive()
			if !ok {
				break
			}
			d := (*words)(unsafe.Add(list, uintptr(i*c.stride)))
			total := c.burstFrame(d, &v, frame, longest)
			if total == 0 {
				m.held, m.hasHeld = frame, true
				break
			}
			sum.add(len(frame.Data)+fcsLen, maxPacket)
			if w3[done]&uint32(r4.RxIOC) != 0 {
				c.events |= r4.RI
				c.riwtAt = 0
			} else if c.riwt > 0 && c.riwtAt == 0 {
				c.riwtAt = m.time() + c.riwt
				m.armTimer(c.riwtAt)
			}
			w3[done] = flags | total
			done++
			if i++; i == c.n {
				i = 0
			}
		}
		if done == 0 {
			break
		}
		c.release(list, w3[:done])
		used += done
		if done < k {
			break
		}
	}
	if used == 0 {
		return 0
	}
	c.ready = true
	c.reads += uint64(used)
	m.rxSeen += uint64(used)
	m.stats.RxFrames += uint64(used)
	m.stats.RxBytes += uint64(sum.octets) - uint64(used)*fcsLen
	m.count(r4.RxPacketsCountGoodBad, sum.frames)
	m.count(r4.RxOctetCountGoodBad, sum.octets)
	m.count(r4.RxOctetCountGood, sum.octets)
	m.count(r4.RxUnicastPacketsGood, sum.frames)
	for i, n := range sum.bins {
		m.count(r4.Rx64OctetsPacketsGoodBad+4*uint32(i), n)
	}
	return used
}

// burstFrame writes a frame to the buffer of d, and the words of its status but the
// last. It returns the length in memory, or 0 if it left everything alone.
func (c *rxChan) burstFrame(d *words, v *view, frame Frame, longest int) uint32 {
	m := c.m
	data := frame.Data
	if len(data) < minPadded || len(data) > longest || frame.BadFCS {
		return 0
	}
	if macAddr(data) != m.mac.entries[0].addr && (m.mac.filter&r4.PR == 0 || len(m.mac.entries) > 1 || data[0]&groupBit != 0) {
		return 0
	}
	switch etype := uint32(binary.BigEndian.Uint16(data[12:])); {
	case etype < typeMin, etype == typeVLAN, etype == typeSVLAN, etype == typeARP, etype == typeSlow, etype == typeControl:
		return 0
	}
	addr := uint64(le32(d[0]))
	if m.eame {
		addr |= uint64(le32(d[1])) << 32
	}
	total := len(data)
	strip := m.mac.conf&r4.CST != 0
	if !strip {
		total += fcsLen
	}
	if c.rbsz-int(addr&uint64(m.cfg.BusBytes-1)) < total {
		return 0
	}
	buf := v.at(m, addr, total)
	if buf == nil {
		return 0
	}
	d1 := r4.RDES1(0)
	if m.mac.conf&r4.IPC != 0 {
		check := m.mac.checkRx(data)
		if m.rxq[0].dropsChecksum(&check) {
			return 0
		}
		m.countIPC(&check)
		d1 = check.d1
	}
	copy(buf, data)
	if !strip {
		sum := fcs(data)
		copy(buf[len(data):], sum[:])
	}
	d[0], d[1], d[2] = 0, le32(uint32(d1)), 0
	c.buffer = addr
	return uint32(total)
}
