package sim

import (
	"sync/atomic"

	"github.com/gostmmac/gostmmac/barrier"
	"github.com/gostmmac/gostmmac/mmio"
	"github.com/gostmmac/gostmmac/stmmac/internal/regs/gmac4reg"
)

// How a register is loaded. Everything but loadLocked leaves the lock of the
// engines alone.
const (
	loadPlain  = iota
	loadStatus // DMA_CHx_Status: the word, then a fault hook
	loadIRQ    // a summary of what is pending
	loadLocked // computed or cleared by the load
)

// How a register is stored.
const (
	storeIgnored = iota // read-only or unknown
	storePlain          // holds what was stored, nothing depends on it
	storeStatus         // DMA_CHx_Status, write-1-to-clear
	storeEnable         // DMA_CHx_Interrupt_Enable
	storeTxTail
	storeRxTail
	storeDemand // a poll demand; ch is 0 for the receive channel, 1 for the transmit channel
	storeLine   // another register that the interrupt lines depend on
	storeLocked // changes what the engines do
)

// register is what the register file knows of one word.
type register struct {
	known bool
	load  uint8
	store uint8
	ch    uint8 // channel or queue
	mask  uint32
	reset uint32
	// id is the offset that the register has in the default layout, for
	// channel or queue 0: what code switches on.
	id uint32
}

// regFile holds the words of the register space. Words are accessed by the
// single accesses of package barrier, as a device's registers are: the owners of
// different queues reach them without a lock. A word has one writer at a time:
// status and enable words under Model.irqMu, tails the owner of the queue, all
// others Model.mu.
type regFile struct {
	word []uint32
	desc []register
	// touched is how each word was accessed, nil with NoAudit.
	touched []touches
	loads   atomic.Uint64
	stores  atomic.Uint64
	unknown atomic.Uint64
}

func (f *regFile) get(off uint32) uint32    { return barrier.LoadOwn(&f.word[off/4]) }
func (f *regFile) set(off uint32, v uint32) { barrier.StoreOwn(&f.word[off/4], v) }

// Len is the size of the register space in bytes.
func (m *Model) Len() uint32 { return uint32(len(m.regs.word)) * 4 }

// Load reads a register. An offset outside the register space or not a multiple
// of 4 reads as all ones, one inside it at which there is no register as 0.
func (m *Model) Load(off uint32) uint32 {
	if off >= m.Len() || off&3 != 0 {
		return mmio.AllOnes
	}
	r := &m.regs.desc[off/4]
	if m.regs.touched == nil {
		return m.load(off, r)
	}
	m.regs.loads.Add(1)
	v := m.load(off, r)
	m.touch(off, r, loaded, v)
	return v
}

// load reads the register r, which is at off.
func (m *Model) load(off uint32, r *register) uint32 {
	if m.resetting.Load() {
		if r.id == uint32(gmac4reg.DMAMode) {
			return uint32(gmac4reg.SWR)
		}
		return 0
	}
	switch r.load {
	case loadStatus:
		v := m.regs.get(off)
		if f := m.onStatusLoad.Load(); f != nil {
			(*f)(int(r.ch))
		}
		return v
	case loadIRQ:
		return m.gen.loadIRQ(r.id)
	case loadLocked:
		m.mu.Lock()
		v := m.gen.loadLocked(off, r)
		m.leave()
		return v
	}
	return barrier.Load32(&m.regs.word[off/4])
}

// Store writes a register; reserved and read-only bits keep their value.
func (m *Model) Store(off, v uint32) {
	if off >= m.Len() || off&3 != 0 {
		return
	}
	r := &m.regs.desc[off/4]
	if m.regs.touched != nil {
		m.regs.stores.Add(1)
		m.touch(off, r, stored, v)
	}
	if m.resetting.Load() {
		switch {
		case r.id == uint32(gmac4reg.DMAMode):
		case r.known && off == m.at.mdioAddress && gmac4reg.MDIOAddress(v)&gmac4reg.MDIOGB != 0:
			m.report(mdioMisuse, "%s = %#x during the software reset", m.regName(off), v)
		default:
			m.report(Violation{Kind: StoreInReset, Channel: -1, Index: -1}, "%s = %#x", m.regName(off), v)
		}
		return
	}
	switch r.store {
	case storePlain:
		barrier.Store32(&m.regs.word[off/4], v&r.mask)
	case storeTxTail:
		m.doorbell(&m.tx[r.ch].ring, off, v&r.mask)
	case storeRxTail:
		m.doorbell(&m.rx[r.ch].ring, off, v&r.mask)
	case storeDemand:
		m.onDemand(r.ch != 0)
	case storeStatus:
		m.gen.clearStatus(int(r.ch), v)
	case storeEnable:
		m.gen.storeEnable(int(r.ch), off, v&r.mask)
	case storeLine:
		m.gen.storeLine(off, r, v)
	case storeLocked:
		m.mu.Lock()
		m.gen.control(off, r, v)
		m.unlock()
	}
}

// touches is how a word was accessed: how often is not counted.
type touches struct {
	how  atomic.Uint32    // of loaded and stored
	bits [2]atomic.Uint32 // that were set in what was loaded, and in what was stored
}

// Ways to access a word.
const (
	loaded = iota
	stored
)

func (m *Model) touch(off uint32, r *register, how int, v uint32) {
	if !r.known {
		m.regs.unknown.Add(1)
	}
	t := &m.regs.touched[off/4]
	if old := t.how.Load(); old>>how&1 == 0 {
		t.how.Or(1 << how)
	}
	if old := t.bits[how].Load(); v&^old != 0 {
		t.bits[how].Or(v)
	}
}
