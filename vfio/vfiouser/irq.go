package vfiouser

import (
	"encoding/binary"
	"io"
	"syscall"

	"github.com/gostmmac/gostmmac/vfio/internal/uapi"
)

// sink is what an interrupt is told to: an eventfd of the client.
type sink interface {
	signal()
	io.Closer
}

// vector is an interrupt of an index.
type vector struct {
	sink    sink // nil for none
	masked  bool // by the client's message, or, of INTx, because it fired
	pending bool // it fired while it could not be delivered (MSI and MSI-X; INTx has the line)
}

// irqs are the interrupts of a function. Who uses them holds the lock of the function.
type irqs struct {
	cfg     *configSpace
	index   [uapi.PCINumIRQs][]vector
	line    bool      // level of the interrupt pin
	unmask  io.Closer // the eventfd that unmasks INTx, nil for none
	table   []byte    // of MSI-X
	written []bool    // entries of the table that the client has written
}

func newIRQs(c *Config, cfg *configSpace) *irqs {
	q := &irqs{cfg: cfg, table: make([]byte, c.MSIX.tableSize()), written: make([]bool, c.MSIX.Vectors)}
	if c.INTx {
		q.index[uapi.PCIINTx] = make([]vector, 1)
	}
	q.index[uapi.PCIMSI] = make([]vector, c.MSI.Vectors)
	q.index[uapi.PCIMSIX] = make([]vector, c.MSIX.Vectors)
	q.index[uapi.PCIERR] = make([]vector, 1)
	q.index[uapi.PCIREQ] = make([]vector, 1)
	q.reset()
	return q
}

// irqFlags are the flags of an index as GET_IRQ_INFO tells them. Single vectors of MSI-X
// come and go, those of MSI are set up together.
func irqFlags(index uint32) uint32 {
	switch index {
	case uapi.PCIINTx:
		return uapi.IRQEventfd | uapi.IRQMaskable | uapi.IRQAutomasked
	case uapi.PCIMSI:
		return uapi.IRQEventfd | uapi.IRQNoResize
	}
	return uapi.IRQEventfd
}

// reset is what a reset of the function does: nothing is pending or masked, and the line is
// low. Eventfds stay.
func (q *irqs) reset() {
	for _, all := range q.index {
		for i := range all {
			all[i].masked, all[i].pending = false, false
		}
	}
	q.line = false
	clear(q.table)
	clear(q.written)
	for i := range q.written {
		q.table[msixEntrySize*i+msixVectorControl] = msixVectorMask
	}
}

// Of an entry of the MSI-X table (PCI Local Bus 3.0, 6.8.2.9).
const (
	msixVectorControl = 12
	msixVectorMask    = 1
)

// state says whether an index of messages is switched on in configuration space, and
// whether a vector is masked, by whomever.
func (q *irqs) state(index, v int) (on, masked bool) {
	masked = q.index[index][v].masked
	switch index {
	case uapi.PCIINTx:
		return false, masked || q.cfg.intxOff()
	case uapi.PCIMSI:
		on, _, bits := q.cfg.msiState()
		return on, masked || bits>>v&1 != 0
	case uapi.PCIMSIX:
		on, all := q.cfg.msixState()
		entry := q.written[v] && q.table[msixEntrySize*v+msixVectorControl]&msixVectorMask != 0
		return on, masked || on && all || entry
	}
	return false, masked
}

// fire is a vector of MSI or MSI-X, or a notification, that the device fires. One that
// nobody listens to is kept while the index is on: the client sets vectors up one by one,
// some after others already fire.
func (q *irqs) fire(index, v int) {
	if v < 0 || v >= len(q.index[index]) {
		return
	}
	t := &q.index[index][v]
	on, masked := q.state(index, v)
	switch {
	case masked || t.sink == nil && on:
		t.pending = true
	case t.sink != nil:
		t.sink.signal()
	}
}

// withdraw takes back what is pending of a vector.
func (q *irqs) withdraw(index, v int) {
	if v >= 0 && v < len(q.index[index]) {
		q.index[index][v].pending = false
	}
}

// flush delivers what is not masked any more: after each change of masks, eventfds,
// configuration space and the line.
func (q *irqs) flush() {
	if all := q.index[uapi.PCIINTx]; len(all) > 0 {
		if t := &all[0]; q.line && t.sink != nil {
			if _, masked := q.state(uapi.PCIINTx, 0); !masked {
				t.masked = true // until the client unmasks it
				t.sink.signal()
			}
		}
	}
	for _, index := range []int{uapi.PCIMSI, uapi.PCIMSIX} {
		for v := range q.index[index] {
			t := &q.index[index][v]
			if !t.pending || t.sink == nil {
				continue
			}
			if _, masked := q.state(index, v); !masked {
				t.pending = false
				t.sink.signal()
			}
		}
	}
}

// configured is called after a write to configuration space: an index that was switched
// off has nothing pending any more.
func (q *irqs) configured() {
	msi, _, _ := q.cfg.msiState()
	msix, _ := q.cfg.msixState()
	for index, on := range map[int]bool{uapi.PCIMSI: msi, uapi.PCIMSIX: msix} {
		for v := range q.index[index] {
			t := &q.index[index][v]
			t.pending = t.pending && on
		}
	}
	q.flush()
}

// pendingBits returns those of the first 64 vectors of an index from v on.
func (q *irqs) pendingBits(index, v int) uint64 {
	var bits uint64
	all := q.index[index]
	for i := 0; i < 64 && v+i < len(all); i++ {
		if all[v+i].pending {
			bits |= 1 << i
		}
	}
	return bits
}

// readTable and writeTable access the MSI-X table, readPBA the pending bits: p at off is
// inside them. Writes to pending bits do nothing.
func (q *irqs) readTable(off uint64, p []byte) { copy(p, q.table[off:]) }

func (q *irqs) writeTable(off uint64, p []byte) {
	for i, b := range p {
		at := off + uint64(i)
		switch at % msixEntrySize {
		case msixVectorControl:
			b &= msixVectorMask
		case msixVectorControl + 1, msixVectorControl + 2, msixVectorControl + 3:
			b = 0
		}
		q.table[at] = b
		q.written[at/msixEntrySize] = true
	}
	q.flush()
}

func (q *irqs) readPBA(off uint64, p []byte) {
	var word [8]byte
	for len(p) > 0 {
		binary.LittleEndian.PutUint64(word[:], q.pendingBits(uapi.PCIMSIX, int(off/8*64)))
		n := copy(p, word[off%8:])
		p, off = p[n:], off+uint64(n)
	}
}

// request is a SET_IRQS.
type request struct {
	index, start, count uint32
	kind, action        uint32
	bools               []byte // of kind IRQDataBool
	sinks               []sink // of kind IRQDataEventfd: count of them, or none
}

// set serves a SET_IRQS. What it returns is to be closed once the lock is free, also after
// an error; sinks that it does not take are the caller's.
func (q *irqs) set(r request) (old []io.Closer, taken bool, err error) {
	if r.index >= uint32(len(q.index)) {
		return nil, false, refuse(syscall.EINVAL, "interrupt index %d", r.index)
	}
	all := q.index[r.index]
	if r.kind == uapi.IRQDataNone && r.count == 0 && r.action == uapi.IRQActionTrigger && r.start == 0 {
		return q.release(r.index, 0, len(all)), true, nil
	}
	if r.count == 0 || uint64(r.start)+uint64(r.count) > uint64(len(all)) {
		return nil, false, refuse(syscall.EINVAL, "%d vectors from %d on, of %d", r.count, r.start, len(all))
	}
	first := int(r.start)
	vectors := all[first : first+int(r.count)]
	wanted := func(i int) bool { return r.kind != uapi.IRQDataBool || r.bools[i] != 0 }
	switch {
	case r.action == uapi.IRQActionTrigger && r.kind == uapi.IRQDataEventfd:
		if len(r.sinks) == 0 {
			return q.release(r.index, first, len(vectors)), true, nil
		}
		if other := q.inUse(); r.index <= uapi.PCIMSIX && other >= 0 && other != int(r.index) {
			return nil, false, refuse(syscall.EINVAL, "interrupt index %d is in use", other)
		}
		for i := range vectors {
			if vectors[i].sink != nil {
				old = append(old, vectors[i].sink)
			}
			vectors[i].sink = r.sinks[i]
		}
		q.flush()
		return old, true, nil
	case r.action == uapi.IRQActionTrigger:
		for i := range vectors {
			if wanted(i) && vectors[i].sink != nil {
				vectors[i].sink.signal()
			}
		}
		return nil, true, nil
	case r.kind == uapi.IRQDataEventfd || r.index > uapi.PCIMSIX:
		return nil, false, refuse(syscall.ENOTTY, "masks of interrupt index %d", r.index)
	}
	for i := range vectors {
		if wanted(i) {
			vectors[i].masked = r.action == uapi.IRQActionMask
		}
	}
	q.flush()
	return nil, true, nil
}

// setUnmask makes c the eventfd that unmasks INTx; nil is none. The old one is to be closed
// once the lock is free.
func (q *irqs) setUnmask(c io.Closer) (old io.Closer) {
	old, q.unmask = q.unmask, c
	return old
}

// unmaskLine lets INTx fire again.
func (q *irqs) unmaskLine() {
	if all := q.index[uapi.PCIINTx]; len(all) > 0 {
		all[0].masked = false
		q.flush()
	}
}

// release takes the eventfds of vectors away, and what the client masked with them.
func (q *irqs) release(index uint32, first, n int) (old []io.Closer) {
	for i := range q.index[index][first : first+n] {
		t := &q.index[index][first+i]
		if t.sink != nil {
			old = append(old, t.sink)
		}
		t.sink, t.masked = nil, false
	}
	if c := q.unmask; index == uapi.PCIINTx && c != nil {
		q.unmask = nil
		old = append(old, c)
	}
	return old
}

// releaseAll does so for all: the client is gone.
func (q *irqs) releaseAll() (old []io.Closer) {
	for index := range q.index {
		old = append(old, q.release(uint32(index), 0, len(q.index[index]))...)
	}
	return old
}

// inUse is the index of INTx, MSI and MSI-X that has an eventfd: one at most. It is -1 for
// none.
func (q *irqs) inUse() int {
	for index := uapi.PCIINTx; index <= uapi.PCIMSIX; index++ {
		for v := range q.index[index] {
			if q.index[index][v].sink != nil {
				return index
			}
		}
	}
	return -1
}
