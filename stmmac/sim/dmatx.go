package sim

import (
	"github.com/gostmmac/gostmmac/barrier"
	r4 "github.com/gostmmac/gostmmac/stmmac/internal/regs/gmac4reg"
)

// txChan is a transmit DMA channel and the queue that it feeds.
type txChan struct {
	ring

	enabled      bool
	storeForward bool
	threshold    int
	size         int // bytes
	sched        txSched
	flushing     bool

	txFrame
	stopping bool   // stops when the frame in the queue is gone
	told     bool   // the audit has told of this start's threshold mode
	buf      []byte // frames that do not lie in one piece
	pad      [minPadded]byte
	buffer   uint64 // address of the last buffer
	tags     txTags
}

// txFrame is the frame that a channel is gathering or sending.
type txFrame struct {
	inFrame bool
	drop    bool // it will not be sent: its start is missing or it was flushed
	held    bool // complete, on its way to the wire
	cutTold bool
	direct  bool // data is memory of the host
	data    []byte
	length  int // sum of the buffers
	field   int // length field of the first descriptor
	cpc     uint32

	timed  bool   // it has a launch time
	launch uint64 // ns, modulo launchWrap

	cic, vtir, saic uint32
	innerReq        uint32   // what a context descriptor asks for the inner tag
	edited          bool     // the MAC changed its header
	coe             r4.TDES3 // status of the checksum engine
}

// Values of CPC.
const (
	cpcPadFCS  = 0
	cpcFCS     = 1
	cpcNone    = 2
	cpcReplace = 3
)

// maxGather bounds the frame that a chain of descriptors can make the model copy;
// the MAC cuts frames before that.
const maxGather = 1 << 15

func (t *txChan) reset() {
	t.ring.reset()
	t.txFrame, t.sched = txFrame{}, txSched{}
	t.stopping, t.flushing, t.told = false, false, false
	t.buffer = 0
	t.tags = txTags{}
}

// control takes over a change of the start bit.
func (t *txChan) control(old, now r4.CHTxControl) {
	switch {
	case old&r4.ST == 0 && now&r4.ST != 0:
		if t.stopping {
			t.stopping = false
			return
		}
		t.txFrame = txFrame{}
		t.told = false
		t.auditSched()
		t.start()
	case old&r4.ST != 0 && now&r4.ST == 0:
		t.cureStall(StallUntilStop)
		if t.held && !t.stalled && !t.hangs() && t.run {
			t.stopping = true // the packet in the queue leaves first
			return
		}
		t.txFrame = txFrame{}
		t.stop()
	}
}

// state is TPSx of DMA_Debug_Status.
func (t *txChan) state() uint32 {
	switch {
	case t.hung:
		return txWaiting
	case !t.run:
		return txStopped
	case t.held:
		return txWaiting
	case t.suspended && !t.stalled:
		return txSuspended
	}
	return txReading
}

// debug is MTL_TxQx_Debug.
func (t *txChan) debug() r4.MTLTxQDbg {
	if t.held {
		return r4.TXQSTS | r4.TWCSTS
	}
	return 0
}

// current is the current descriptor register, which a fault lets run ahead.
func (t *txChan) current() uint32 {
	i := t.cur
	if ahead := uint32(max(t.m.faults.CurTxAhead, 0)); ahead > 0 && t.run && t.n > 0 {
		i = (i + min(ahead, t.before())) % t.n
	}
	return uint32(t.base) + i*t.stride
}

// step does up to budget descriptors and frames frames of a channel; left is how many
// frames it may still send.
func (t *txChan) step(budget, frames int) (used, left int) {
	m := t.m
	if !t.look() && !t.held {
		return 0, frames
	}
	if n := t.burst(min(budget, frames)); n > 0 {
		used, frames = n, frames-n
	}
	for used < budget && frames > 0 {
		if t.held {
			status, sent := t.transmit()
			if !sent {
				t.own()
				break
			}
			if !t.finish(m, status) {
				break
			}
			used++
			frames--
			continue
		}
		n := t.load(budget - used)
		used += n
		if n == 0 && !t.held {
			break
		}
	}
	return used, frames
}

// load reads descriptors until the frame is complete, up to budget of them. The
// last of a frame is counted when it is given back.
func (t *txChan) load(budget int) (used int) {
	for used < budget && !t.held {
		if !t.run || t.stopping || t.suspended || !t.fetch() {
			if t.suspended && t.inFrame && !t.cutTold {
				t.cutTold = true
				t.report(ChainCut, int(t.cur), "the frame so far has %d bytes", t.length)
			}
			break
		}
		if !t.take() {
			break
		}
		if !t.held {
			used++
		}
	}
	return used
}

// take works on the fetched descriptor. It is false after a bus error.
func (t *txChan) take() bool {
	m, w := t.m, &t.fetched
	d2, d3 := r4.TDES2(w[2]), r4.TDES3(w[3])
	if d3&r4.TxCTXT != 0 {
		allOnes := *w == words{^uint32(0), ^uint32(0), ^uint32(0), ^uint32(0)}
		if t.inFrame || allOnes {
			t.events |= r4.CDE
			t.report(ContextInFrame, int(t.cur), "%08x", *w)
			t.drop = t.inFrame
		} else {
			t.takeContext(d2, d3)
		}
		return t.writeBack(&words{3: uint32(d3 & r4.TxCTXT)})
	}
	switch {
	case d3&r4.TxFD != 0:
		if t.inFrame {
			t.report(ChainBroken, int(t.cur), "FD inside a frame of %d bytes so far", t.length)
		}
		t.txFrame = txFrame{inFrame: true, field: int(r4.TxFL.Get(d3)), cpc: r4.CPC.Get(d3),
			cic: r4.CIC.Get(d3), vtir: r4.VTIR.Get(d2), saic: r4.SAIC.Get(d3), innerReq: t.tags.innerReq}
		t.tags.innerReq = r4.TagNone
		if t.front != 0 && !t.takeLaunch() {
			return false
		}
	case !t.inFrame:
		t.report(ChainBroken, int(t.cur), "no FD")
		t.txFrame = txFrame{inFrame: true, drop: true}
	case d3&(r4.CPC.Mask()|r4.SAIC.Mask()|r4.CIC.Mask()|r4.TxTSE) != 0 || d2&(r4.TTSE|r4.VTIR.Mask()) != 0:
		t.report(FirstOnlyBits, int(t.cur), "word 2 %#08x, word 3 %#08x", w[2], w[3])
	}

	a1, a2 := uint64(w[0]), uint64(w[1])
	n1, n2 := int(r4.B1L.Get(d2)), int(r4.B2L.Get(d2))
	if m.eame {
		a1 |= a2 << 32
		if n2 != 0 {
			// Word 1 holds the upper half of the address of buffer 1.
			t.report(ConfigInvalid, int(t.cur), "B2L is %d with addresses of more than 32 bits", n2)
			n2 = 0
		}
	}
	if n1+n2 == 0 {
		t.report(NoBuffer, int(t.cur), "both buffer lengths are 0")
	}
	whole := d3&(r4.TxFD|r4.TxLD) == r4.TxFD|r4.TxLD && (n1 == 0 || n2 == 0)
	if !t.gather(a1, n1, whole) || !t.gather(a2, n2, whole) {
		return false
	}
	if d3&r4.TxLD == 0 {
		return t.writeBack(&words{3: uint32(d3 & r4.TxFD)})
	}
	t.held = true
	if !m.audit.off && !t.drop {
		t.auditFrame()
	}
	if !t.drop && len(t.data) > 0 {
		if t.cic != r4.CICNone {
			t.insertChecksums()
		}
		if m.mac.tags.edits || t.vtir|t.saic|t.innerReq != 0 {
			t.editHeader()
		}
	}
	return true
}

func (t *txChan) auditFrame() {
	i := int(t.cur)
	if t.field != t.length {
		t.report(LengthMismatch, i, "length field %d, buffers %d", t.field, t.length)
	}
	switch {
	case t.storeForward && t.length > t.size:
		t.report(FrameBeyondFIFO, i, "%d bytes, queue of %d", t.length, t.size)
	case !t.storeForward && !t.told:
		t.told = true
		t.report(ThresholdTransmit, i, "threshold %d", t.threshold)
	}
}

// gather adds a buffer to the frame. A frame in one buffer stays where it is.
func (t *txChan) gather(addr uint64, n int, whole bool) bool {
	if n == 0 {
		return true
	}
	m := t.m
	t.buffer = addr
	start := t.length
	t.length += n
	if t.drop {
		return true
	}
	if m.faults.BusError == nil {
		if w := m.window(addr, n); w != nil {
			switch {
			case whole:
				t.data, t.direct = w, true
			case start+n <= maxGather:
				t.buf = append(t.buf[:start], w...)
				t.data = t.buf
			}
			return true
		}
	}
	dst := m.scratch
	if keep := min(n, maxGather-start); keep > 0 {
		t.buf = grow(t.buf[:start], start+keep)
		dst = t.buf[start:]
	} else {
		dst = grow(dst, 1) // beyond what is kept only the access matters
	}
	if m.readDMA(addr, dst) != nil {
		t.reportAccess(addr, n)
		t.txFrame = txFrame{}
		t.busError(busRead)
		return false
	}
	t.data = t.buf
	return true
}

// idle says that no frame is on its way and that no tail write waits to be looked at.
func (t *txChan) idle() bool {
	return !t.held && !t.inFrame && (!t.run || t.suspended && barrier.Load32(&t.seq) == t.seen)
}

// grow returns b with a length of n.
func grow(b []byte, n int) []byte {
	if n > cap(b) {
		b = append(b[:cap(b)], make([]byte, n-cap(b))...)
	}
	return b[:n]
}

// own moves a frame that could not leave yet out of the host's memory, as the
// transmit FIFO does.
func (t *txChan) own() {
	if t.direct {
		t.buf = append(t.buf[:0], t.data...)
		t.data, t.direct = t.buf, false
	}
}

// transmit sends the frame that is complete. sent is false while it has to wait.
func (t *txChan) transmit() (status r4.TDES3, sent bool) {
	m := t.m
	if t.drop || len(t.data) == 0 {
		return r4.TxES, true // nothing of it reaches the MAC
	}
	if m.flow.busy() {
		m.stepFlow() // the frame before this one may have filled a queue in loopback
	}
	c, f := m.mac.conf, &m.faults
	if c&r4.TE == 0 || !t.eligible() || m.clockGated() || f.TxNeverCompletes || m.paused() || m.lpiSilent() ||
		f.LinkLossStallsTx && m.mii.down && c&r4.LM == 0 {
		return 0, false
	}
	data, bad := t.data, false
	switch t.cpc {
	case cpcPadFCS:
		if len(data) < minPadded {
			clear(t.pad[copy(t.pad[:], data):])
			data = t.pad[:]
		}
	case cpcNone, cpcReplace:
		if len(data) <= fcsLen {
			return r4.TxES, true
		}
		own := data[len(data)-fcsLen:]
		data = data[:len(data)-fcsLen]
		bad = t.cpc == cpcNone && !t.edited && fcs(data) != [fcsLen]byte(own)
	}
	if len(data)+fcsLen > m.mac.jabber {
		data, bad = data[:m.mac.jabber-fcsLen], true
		status = r4.TxES | r4.TxJT
	}
	if f.ThresholdCorrupts && !t.storeForward && len(data) > t.threshold {
		m.scratch = append(m.scratch[:0], data...)
		m.scratch[t.threshold] ^= 1
		data = m.scratch
	}
	half := c&(r4.DM|r4.LM) == 0
	if half {
		bits, lost := m.collide()
		status |= bits
		if lost {
			m.countHalf(status)
			m.countTx(data, len(data)+fcsLen, false)
			return status, true
		}
	}
	times := 1
	if f.SingleTxTwice && t.n == 1 {
		times = 2
	}
	for range times {
		sent, lost := m.emit(Frame{Data: data, BadFCS: bad})
		if !sent {
			return 0, false
		}
		m.countTx(data, len(data)+fcsLen, status&r4.TxES == 0)
		if lost {
			continue
		}
		m.stats.TxFrames++
		m.stats.TxBytes += uint64(len(data))
	}
	if half {
		m.countHalf(status)
	}
	return status | t.coe, true
}

// emit lets a frame leave the MAC: to itself in loopback, else to the wire unless the
// PHY loses it, which the MAC does not know. sent is false while the wire is full.
func (m *Model) emit(frame Frame) (sent, lost bool) {
	switch {
	case m.mac.conf&r4.LM != 0 || m.mii.loop:
		m.arrive(frame, slice, false)
	case m.mii.blocked:
		m.stats.TxLost++
		return true, true
	default:
		return m.wire.Transmit(frame), false
	}
	return true, false
}

// finish gives the last descriptor of the frame back.
func (t *txChan) finish(m *Model, status r4.TDES3) bool {
	w := &t.fetched
	ioc := r4.TDES2(w[2])&r4.IOC != 0
	if status&r4.TxES != 0 {
		m.stats.TxErrors++
	}
	t.txFrame = txFrame{}
	if !t.writeBack(&words{3: w[3]&uint32(r4.TxFD|r4.TxLD) | uint32(status)}) {
		return false
	}
	if ioc {
		t.events |= r4.TI
	}
	if t.stopping {
		t.stopping = false
		t.stop()
	}
	return true
}
