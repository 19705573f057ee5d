package ixystyle

// txCleanBatch is how many sent descriptors are cleaned at once, by looking at the last of them.
const txCleanBatch = 32

type txQueue struct {
	descriptors [][]byte
	buffers     []*PktBuf
	bus         uint64
	index       uint16 // next descriptor to fill
	clean       uint16 // oldest descriptor that is not cleaned
}

// TxBatch implements Driver. It first frees what was sent since, in batches of 32.
func (d *Device) TxBatch(queue uint16, bufs []*PktBuf) uint32 {
	if int(queue) >= len(d.txQueues) {
		return 0
	}
	q := &d.txQueues[queue]
	q.cleanSent()
	ringSize := uint16(len(q.descriptors))
	sent := uint32(0)
	for sent < uint32(len(bufs)) {
		next := wrap(q.index, ringSize)
		if next == q.clean {
			break // one descriptor stays empty: a full ring is not an empty one
		}
		buf := bufs[sent]
		desc := q.descriptors[q.index]
		length := uint32(len(buf.Pkt))
		setAddress(desc, buf.bus)
		setControl(desc, length, tdes3Own|tdes3First|tdes3Last|length)
		q.buffers[q.index] = buf
		q.index = next
		sent++
	}
	d.setReg32(dmaCh0TxTail, descriptorAddress(q.bus, q.index))
	return sent
}

func (q *txQueue) cleanSent() {
	ringSize := uint16(len(q.descriptors))
	for {
		cleanable := (q.index - q.clean) & (ringSize - 1)
		if cleanable < txCleanBatch {
			return
		}
		last := (q.clean + txCleanBatch - 1) & (ringSize - 1)
		if loadStatus(q.descriptors[last])&tdes3Own != 0 {
			return
		}
		for i := q.clean; ; i = wrap(i, ringSize) {
			q.buffers[i].Free()
			q.buffers[i] = nil
			if i == last {
				break
			}
		}
		q.clean = wrap(last, ringSize)
	}
}
