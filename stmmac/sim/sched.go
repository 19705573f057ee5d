package sim

import (
	r4 "github.com/gostmmac/gostmmac/stmmac/internal/regs/gmac4reg"
)

// scheduler chooses between the transmit queues, and between the receive queues
// (databook: MTL_Operation_Mode, SCHALG and RAA). What it keeps between two steps
// makes the order of frames independent of how much work a step may do.
type scheduler struct {
	alg    uint32
	queue  int    // whose turn it is
	left   int    // WRR: frames of the turn
	opened bool   // DWRR: the queue had its quantum in this turn
	vtime  uint64 // WFQ: virtual time

	rxStrict bool // higher queues first
	rxQueue  int
	rxLeft   int
}

// txSched is what the scheduler knows of a transmit queue.
type txSched struct {
	weight  int    // WRR: frames in a turn; WFQ: factor of the length
	quantum uint64 // DWRR: bytes for each turn
	deficit uint64 // DWRR: bytes that it may send
	finish  uint64 // WFQ: virtual time at which its frame, or the last, ends
	tagged  bool   // WFQ: finish is that of the frame in the queue
}

// deriveSched takes over the registers of the schedulers.
func (m *Model) deriveSched() {
	mode := r4.MTLMode(m.regs.get(uint32(r4.MTLOperationMode)))
	s := &m.sched
	if alg := r4.SCHALG.Get(mode); alg != s.alg {
		*s = scheduler{alg: alg}
		for c := range m.tx {
			m.tx[c].sched = txSched{}
		}
	}
	s.rxStrict = mode&r4.RAA == 0
	for c := range m.tx {
		w := m.regs.get(mtlOff(m, r4.MTLTxQQuantumWeight, c))
		t := &m.tx[c].sched
		t.quantum = uint64(min(max(w, 1), r4.MaxQuantumDWRR))
		switch s.alg {
		case r4.SCHALGWFQ:
			t.weight = int(min(w, r4.MaxWeightWFQ)) // 0 is all of the bandwidth
		default:
			t.weight = int(min(max(w, 1), r4.MaxWeightWRR))
		}
	}
	for q := range m.rxq {
		w := r4.RXQWEGT.Get(r4.RxQControl(m.regs.get(mtlOff(m, r4.MTLRxQControl, q))))
		m.rxq[q].weight = int(max(w, 1))
	}
}

// auditSched looks at MTL_TxQx_Quantum_Weight when the channel starts.
func (t *txChan) auditSched() {
	most, least := uint32(r4.MaxWeightWRR), uint32(0)
	switch t.m.sched.alg {
	case r4.SCHALGWFQ:
		most = r4.MaxWeightWFQ
	case r4.SCHALGDWRR:
		most, least = r4.MaxQuantumDWRR, 1
	case r4.SCHALGSP:
		return
	}
	w := t.m.regs.get(mtlOff(t.m, r4.MTLTxQQuantumWeight, t.ch))
	if len(t.m.tx) > 1 && (w < least || w > most) {
		t.report(ConfigInvalid, -1, "weight or quantum %d is not %d to %d with SCHALG %d", w, least, most, t.m.sched.alg)
	}
}

// stepTx lets the transmit channels do up to budget descriptors.
func (m *Model) stepTx(budget int) (used int) {
	if len(m.tx) == 1 {
		used, _ = m.tx[0].step(budget, budget)
		return used
	}
	switch m.sched.alg {
	case r4.SCHALGSP:
		return m.stepStrict(budget)
	case r4.SCHALGWRR:
		return m.stepRoundRobin(budget)
	}
	return m.stepByBytes(budget)
}

// waits says whether the frame in the queue waits for something that would hold every
// other queue up too.
func (t *txChan) waits() bool { return t.held && t.eligible() }

// eligible says whether the scheduler may choose the queue.
func (t *txChan) eligible() bool {
	return t.enabled && !t.flushing && !t.stalled && !t.early() &&
		!(t.m.faults.HalfDuplexQueue0Only && t.m.mac.conf&r4.DM == 0 && t.ch != 0)
}

// stepStrict serves the highest queue that has a frame.
func (m *Model) stepStrict(budget int) (used int) {
	for c := len(m.tx) - 1; c >= 0 && used < budget; c-- {
		n, _ := m.tx[c].step(budget-used, budget)
		used += n
		if m.tx[c].waits() {
			break
		}
	}
	return used
}

// stepRoundRobin gives each queue as many frames in turn as its weight says.
func (m *Model) stepRoundRobin(budget int) (used int) {
	s := &m.sched
	for idle := 0; used < budget && idle < len(m.tx); {
		t := &m.tx[s.queue]
		if s.left == 0 {
			s.left = t.sched.weight
		}
		n, left := t.step(budget-used, s.left)
		used += n
		if left != s.left {
			idle = 0
		}
		s.left = left
		if left > 0 && (used >= budget || t.waits()) {
			break // the turn goes on in the next step
		}
		idle++
		s.left = 0
		if s.queue++; s.queue == len(m.tx) {
			s.queue = 0
		}
	}
	return used
}

// stepByBytes is for the schedulers that look at the length of frames: each queue
// gets its next frame, then one of them is sent.
func (m *Model) stepByBytes(budget int) (used int) {
	for used < budget {
		for c := range m.tx {
			t := &m.tx[c]
			if !t.held {
				t.sched.tagged = false
				if t.look() {
					used += t.load(budget - used)
				}
			}
			if t.held && !t.sched.tagged {
				t.sched.tagged = true
				t.sched.finish = max(t.sched.finish, m.sched.vtime) + uint64(t.sched.weight)*uint64(t.length)
			}
		}
		if used >= budget {
			break // a queue may not have had its chance
		}
		t := m.pickByBytes()
		if t == nil {
			break
		}
		n := t.length
		more, left := t.step(1, 1)
		if left != 0 {
			break
		}
		used += more
		m.sched.charge(t, uint64(n))
	}
	for c := range m.tx {
		m.tx[c].own()
	}
	return used
}

// pickByBytes chooses among the queues that hold a frame; nil is none.
func (m *Model) pickByBytes() *txChan {
	some := false
	for c := range m.tx {
		if m.tx[c].waits() {
			some = true
		} else {
			m.tx[c].sched.deficit = 0 // an empty queue saves nothing up
		}
	}
	switch {
	case !some:
		return nil
	case m.sched.alg == r4.SCHALGWFQ:
		return m.pickFair()
	}
	return m.pickDeficit()
}

// pickFair chooses the frame that ends first in virtual time; among equals the lowest
// queue. A frame ends its factor times its length behind the last one of its queue,
// or behind the time at which it came to the head of the queue, the end of the frame
// that was sent then (self-clocked fair queueing).
func (m *Model) pickFair() (best *txChan) {
	first := ^uint64(0)
	for c := range m.tx {
		if t := &m.tx[c]; t.waits() {
			if t.sched.finish < first {
				best, first = t, t.sched.finish
			}
		}
	}
	return best
}

// pickDeficit is deficit round robin: at its turn a queue gets its quantum, and
// sends while what it has suffices.
func (m *Model) pickDeficit() *txChan {
	s := &m.sched
	for {
		for range m.tx {
			t := &m.tx[s.queue]
			if t.waits() {
				if !s.opened {
					s.opened = true
					t.sched.deficit += t.sched.quantum
				}
				if t.sched.deficit >= uint64(t.length) {
					return t
				}
			}
			s.opened = false
			if s.queue++; s.queue == len(m.tx) {
				s.queue = 0
			}
		}
		// Small quanta need many rounds: all but the last at once.
		rounds := ^uint64(0)
		for c := range m.tx {
			if t := &m.tx[c]; t.waits() {
				short := uint64(t.length) - min(t.sched.deficit, uint64(t.length))
				rounds = min(rounds, (short+t.sched.quantum-1)/t.sched.quantum)
			}
		}
		for c := range m.tx {
			if t := &m.tx[c]; t.waits() && rounds > 1 {
				t.sched.deficit += (rounds - 1) * t.sched.quantum
			}
		}
	}
}

// charge accounts for a frame of n bytes that a queue sent.
func (s *scheduler) charge(t *txChan, n uint64) {
	if s.alg == r4.SCHALGWFQ {
		s.vtime, t.sched.tagged = t.sched.finish, false
		return
	}
	t.sched.deficit -= min(n, t.sched.deficit)
}

// drainAll moves waiting frames of all receive queues to memory.
func (m *Model) drainAll(budget int) (used int) {
	s := &m.sched
	n := len(m.rxq)
	if s.rxStrict || n == 1 {
		for i := n - 1; i >= 0; i-- {
			if !m.rxq[i].empty() {
				k, _ := m.drain(i, budget-used, budget)
				used += k
			}
		}
		return used
	}
	// Weighted strict priority: from the highest queue down, each as many frames in
	// a cycle as its weight says. Whole frames whatever RXQ_FRM_ARBIT says: the
	// bursts of frames for different channels cannot be told apart in memory.
	for idle := 0; used < budget && idle < n; {
		i := n - 1 - s.rxQueue
		q := &m.rxq[i]
		if s.rxLeft == 0 {
			s.rxLeft = q.weight
		}
		left := s.rxLeft
		if !q.empty() {
			var k int
			k, left = m.drain(i, budget-used, left)
			used += k
		}
		if left != s.rxLeft {
			idle = 0
		}
		s.rxLeft = left
		if left > 0 && used >= budget {
			break // the turn goes on in the next step
		}
		idle++
		s.rxLeft = 0
		if s.rxQueue++; s.rxQueue == n {
			s.rxQueue = 0
		}
	}
	return used
}
