package ixystyle

type rxQueue struct {
	descriptors [][]byte
	buffers     []*PktBuf // the buffer behind each descriptor
	bus         uint64    // bus address of the ring
	pool        *Mempool
	index       uint16 // next descriptor that the device completes
	dropped     uint64
}

// RxBatch implements Driver. A frame with an error or over several descriptors is dropped and counted.
func (d *Device) RxBatch(queue uint16, bufs []*PktBuf) uint32 {
	if int(queue) >= len(d.rxQueues) {
		return 0
	}
	q := &d.rxQueues[queue]
	ringSize := uint16(len(q.descriptors))
	index := q.index
	last := index
	received := uint32(0)
	for received < uint32(len(bufs)) {
		desc := q.descriptors[index]
		status := loadStatus(desc)
		if status&rdes3Own != 0 {
			break
		}
		buf := q.buffers[index]
		size := int(status&rdes3PacketLength) - frameCheckSequence
		if status&(rdes3First|rdes3Last|rdes3Context|rdes3ErrorSummary) == rdes3First|rdes3Last &&
			size > 0 && size <= len(buf.mem) {
			fresh := q.pool.Alloc()
			if fresh == nil {
				break // the frame stays in the ring until a buffer comes back
			}
			buf.Pkt = buf.mem[:size]
			bufs[received] = buf
			received++
			q.buffers[index] = fresh
			buf = fresh
		} else {
			q.dropped++
		}
		setAddress(desc, buf.bus)
		setControl(desc, 0, rdes3Own|rdes3Buffer1Valid)
		last = index
		index = wrap(index, ringSize)
	}
	if index != last {
		q.index = index
		d.setReg32(dmaCh0RxTail, descriptorAddress(q.bus, last))
	}
	return received
}

// Dropped returns the number of frames that RxBatch did not deliver.
func (d *Device) Dropped() uint64 {
	var n uint64
	for i := range d.rxQueues {
		n += d.rxQueues[i].dropped
	}
	return n
}
