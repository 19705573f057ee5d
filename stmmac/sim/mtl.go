package sim

import (
	r4 "github.com/gostmmac/gostmmac/stmmac/internal/regs/gmac4reg"
)

// rxFrame is a received frame on its way to memory.
type rxFrame struct {
	data []byte
	meta rxMeta
	off  int // bytes that memory has
	fill int // bytes in the descriptors so far
	desc int // descriptors that it filled
	cut  int // descriptors after which an overflow ends it; 0 is none
	mode OverflowMode
	// cutErr are the error bits of a frame that is cut.
	cutErr r4.RDES3
	header uint16 // HL
	seen   bool   // the faults have had their look at it
	k      uint64

	fcsDone bool
	fcsVal  [fcsLen]byte
}

// total is the length that memory gets.
func (f *rxFrame) total() int { return f.meta.n + f.meta.fcs }

// rxQueue is a queue of the receive FIFO.
type rxQueue struct {
	enabled      bool
	channel      uint8
	dynamic      bool // the channel comes from the address that matched
	storeForward bool
	fep, fup     bool
	tcpEF        bool // DIS_TCP_EF
	threshold    int
	size         int // bytes
	used         int
	weight       int // frames in a turn

	ehfc, above          bool // PAUSE by fill level
	activate, deactivate int  // bytes

	frames []rxFrame // frames[head:] wait
	head   int
}

// rxThresholds are the values of RTC.
var rxThresholds = [4]int{64, 32, 96, 128}

// mode takes over MTL_RxQx_Operation_Mode.
func (q *rxQueue) mode(v r4.MTLRxQMode) {
	q.storeForward = v&r4.RSF != 0
	q.fep, q.fup = v&r4.FEP != 0, v&r4.FUP != 0
	q.tcpEF = v&r4.DISTCPEF != 0
	q.threshold = rxThresholds[r4.RTC.Get(v)]
	q.size = int(r4.RQS.Get(v)+1) * 256
	q.flowMode(v)
}

func (m *Model) rxQueueMode(off uint32, q int, old, now r4.MTLRxQMode) {
	if (old^now)&r4.RQS.Mask() != 0 {
		running := false
		for c := range m.rx {
			running = running || m.rx[c].run
		}
		m.changedRunning(off, running, uint32(old), uint32(now))
	}
	m.regs.set(off, uint32(now))
	m.rxq[q].mode(now)
	m.rxq[q].level(m)
	if now&r4.EHFC != 0 && now != old {
		m.auditFlow(q, now)
	}
	sum := 0
	for i := range m.rxq {
		if m.rxq[i].enabled || i == q {
			sum += m.rxq[i].size
		}
	}
	if sum > m.cfg.RxFIFO {
		m.report(Violation{Kind: ConfigInvalid, Channel: q, Index: -1},
			"receive queues of %d bytes in a FIFO of %d", sum, m.cfg.RxFIFO)
	}
}

func (q *rxQueue) empty() bool { return q.head == len(q.frames) }

// cost is the room of a frame in the FIFO: whole bus words, and one for its status.
func (m *Model) cost(n int) int {
	b := m.cfg.BusBytes
	return (n+b-1)/b*b + b
}

// room says whether a frame of n bytes fits.
func (q *rxQueue) room(m *Model, n int) bool { return q.used+m.cost(n) <= q.size }

// push keeps a copy of a frame.
func (q *rxQueue) push(m *Model, f *rxFrame) {
	var buf []byte
	if n := len(m.bufs); n > 0 {
		buf = m.bufs[n-1]
		m.bufs = m.bufs[:n-1]
	}
	if q.head > 0 && len(q.frames) == cap(q.frames) {
		n := copy(q.frames, q.frames[q.head:])
		clear(q.frames[n:])
		q.frames, q.head = q.frames[:n], 0
	}
	g := *f
	g.data = append(buf[:0], f.data...)
	q.frames = append(q.frames, g)
	q.used += m.cost(len(f.data))
	if q.ehfc {
		q.level(m)
	}
}

func (q *rxQueue) pop(m *Model) {
	f := &q.frames[q.head]
	q.used -= m.cost(len(f.data))
	if q.ehfc {
		q.level(m)
	}
	m.bufs = append(m.bufs, f.data)
	*f = rxFrame{}
	if q.head++; q.head == len(q.frames) {
		q.frames, q.head = q.frames[:0], 0
	}
}

// drop empties the queue.
func (q *rxQueue) drop(m *Model) {
	for !q.empty() {
		q.pop(m)
	}
}

// debug is MTL_RxQx_Debug, with the fill level against the threshold of PAUSE.
func (q *rxQueue) debug() r4.MTLRxQDbg {
	n := len(q.frames) - q.head
	if n == 0 {
		return 0
	}
	level := uint32(1)
	switch {
	case q.size-q.used < minWire:
		level = 3
	case q.used >= q.activate:
		level = 2
	}
	return r4.PRXQ.Of(uint32(n)) | r4.RXQSTS.Of(level)
}

// overflow counts a frame for which a queue had no room.
func (m *Model) overflow(q int) {
	m.stats.RxOverflow++
	off := mtlOff(m, r4.MTLRxQMissedOverflow, q)
	v := r4.MTLRxQMissedOvf(m.regs.get(off))
	if n := r4.OVFPKTCNT.Get(v); n == r4.OVFPKTCNT.Max() {
		v = r4.OVFPKTCNT.Put(v, 0) | r4.OVFCNTOVF
	} else {
		v = r4.OVFPKTCNT.Put(v, n+1)
	}
	m.regs.set(off, uint32(v))
	m.countMMC(r4.RxFIFOOverflowPackets, 1)
	m.raiseQueue(q, r4.RXOVFIS)
}

// txThresholds are the values of TTC.
var txThresholds = [8]int{32, 64, 96, 128, 192, 256, 384, 512}

// mode takes over MTL_TxQx_Operation_Mode.
func (t *txChan) mode(v r4.MTLTxQMode) {
	t.enabled = r4.TXQEN.Get(v) != 0
	t.storeForward = v&r4.TSF != 0
	t.threshold = txThresholds[r4.TTC.Get(v)]
	t.size = int(r4.TQS.Get(v)+1) * 256
}

func (m *Model) txQueueMode(off uint32, c int, old, now r4.MTLTxQMode) {
	t := &m.tx[c]
	if (old^now)&r4.TQS.Mask() != 0 {
		m.changedRunning(off, t.run, uint32(old), uint32(now))
	}
	m.regs.set(off, uint32(now))
	t.mode(now)
	sum := 0
	for i := range m.tx {
		if m.tx[i].enabled {
			sum += m.tx[i].size
		}
	}
	if sum > m.cfg.TxFIFO {
		m.report(Violation{Kind: ConfigInvalid, Channel: c, Tx: true, Index: -1},
			"transmit queues of %d bytes in a FIFO of %d", sum, m.cfg.TxFIFO)
	}
	if now&r4.FTQ != 0 {
		m.flushLPI()
		t.flushing = true
		m.finishFlushes()
	}
}

// finishFlushes ends the flushes of transmit queues, which needs the clock of the
// transmitter. A frame that was complete is given back as flushed.
func (m *Model) finishFlushes() {
	if m.clockGated() || m.faults.FlushHangs {
		return
	}
	for c := range m.tx {
		t := &m.tx[c]
		if !t.flushing {
			continue
		}
		t.flushing = false
		if t.stalled {
			t.txFrame = txFrame{} // the DMA does not give it back
		}
		if t.held {
			t.finish(m, r4.TxES|r4.TxFF)
		}
		t.drop = t.inFrame
		off := mtlOff(m, r4.MTLTxQOperationMode, c)
		m.regs.set(off, m.regs.get(off)&^uint32(r4.FTQ))
	}
}
