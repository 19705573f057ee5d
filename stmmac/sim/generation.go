package sim

import (
	"fmt"

	r4 "github.com/gostmmac/gostmmac/stmmac/internal/regs/gmac4reg"
)

// Generation is a generation of the MAC.
type Generation int

// The generations that there are models of.
const (
	GMAC4 Generation = iota // GMAC4 and GMAC5, 4.00 to 5.30
	GMAC                    // GMAC 3.x with normal descriptors
)

// String returns the name of the generation as an address string has it.
func (g Generation) String() string {
	switch g {
	case GMAC4:
		return "gmac4"
	case GMAC:
		return "gmac"
	}
	return fmt.Sprintf("Generation(%d)", int(g))
}

// generation is what each generation of the MAC does in its own way: the map of its
// registers, its descriptor lists and its status. A Model itself is that of GMAC4. What
// has no place here is the same for all: frames, filters, checksums, counters, PHYs and
// wires. It speaks of events, of the verdict on a frame and of the settings of the MAC
// in the bits of GMAC4, whatever the registers of the generation are.
//
// The methods for registers are called as the kinds of loads and stores say, the
// others with the lock of the engines held.
type generation interface {
	// buildRegs lays out the register file, and places says where in it is what the
	// shared parts reach for themselves.
	buildRegs() error
	places() places
	mapName(off uint32) string              // of the databook, "" is none
	mapText(off uint32) func(uint32) string // what a value says; nil without named bits

	control(off uint32, r *register, v uint32)
	loadLocked(off uint32, r *register) uint32
	loadIRQ(id uint32) uint32
	clearStatus(ch int, v uint32)
	storeEnable(ch int, off, v uint32)
	storeLine(off uint32, r *register, v uint32)

	// raise shows events of a channel in its status, sharedLines is what MAC, MMC and
	// MTL hold the lines with, flushEvents shows what a step collected.
	raise(ch int, bits r4.CHStatus) vectors
	sharedLines() uint8
	flushEvents() vectors

	// resetQueues is the rest of a reset, derive takes the registers of the MAC over.
	resetQueues()
	derive()
	mdioCommand(v uint32) r4.MDIOAddress

	// stepTx and stepRx do up to budget units of work. accept takes a frame that
	// passed the filters, as arrive does.
	stepTx(budget int) int
	stepRx(budget int) int
	accept(f *rxFrame, budget int, wait bool) (used int, taken bool)
	overflow(q int)
	finishFlushes()
	// txBurst is how many bus words the DMA of a transmit channel moves at once.
	txBurst(ch int) int
	dropWindows()
}

// places are offsets of registers.
type places struct {
	mmc                   uint32 // what the MMC block lies below that of GMAC4
	mdioAddress, mdioData uint32
	filter                uint32
	flow                  uint32 // with FCB_BPA
	hash                  [r4.HashWords]uint32
	address               func(i int) (high, low uint32)
}

// places implements generation.
func (m *Model) places() places {
	p := places{
		mdioAddress: uint32(r4.MACMDIOAddress), mdioData: uint32(r4.MACMDIOData),
		filter: uint32(r4.MACPacketFilter), flow: uint32(r4.MACQxTxFlow),
		address: func(i int) (high, low uint32) {
			return uint32(r4.MACAddressHigh.At(i, r4.AddressStride)), uint32(r4.MACAddressLow.At(i, r4.AddressStride))
		},
	}
	for i := range p.hash {
		p.hash[i] = uint32(r4.MACHashTable.At(i, 4))
	}
	return p
}

// mdioCommand implements generation.
func (m *Model) mdioCommand(v uint32) r4.MDIOAddress { return r4.MDIOAddress(v) }

// txBurst implements generation.
func (m *Model) txBurst(ch int) int {
	pbl := int(r4.TXPBL.Get(r4.CHTxControl(m.regs.get(chOff(m, r4.DMACHTxControl, ch)))))
	if r4.CHControl(m.regs.get(chOff(m, r4.DMACHControl, ch)))&r4.PBLx8 != 0 {
		pbl *= 8
	}
	return pbl
}

// dropWindows implements generation.
func (m *Model) dropWindows() {
	for i := range m.tx {
		m.tx[i].win = nil
	}
	for i := range m.rx {
		m.rx[i].win = nil
	}
}

// resetQueues implements generation.
func (m *Model) resetQueues() {
	m.eame = false
	m.resetVLAN()
	for q := range m.rxq {
		m.rxq[q].mode(0)
	}
	for q := range m.tx {
		m.tx[q].mode(r4.MTLTxQMode(m.regs.get(mtlOff(m, r4.MTLTxQOperationMode, q))))
	}
}

// regName names a register for a message.
func (m *Model) regName(off uint32) string {
	if s := m.gen.mapName(off); s != "" {
		return s
	}
	return fmt.Sprintf("register %#x", off)
}
