package drive

import (
	"fmt"
	"unsafe"

	"github.com/gostmmac/gostmmac/mmio"
)

// Registers and bits that the tests look at.
const (
	regMACAddrHigh = 0x0040
	regMACAddrLow  = 0x0044
	regBusMode     = 0x1000
	regTxPoll      = 0x1004
	regRxList      = 0x100c
	regTxList      = 0x1010
	regStatus      = 0x1014
	regOperation   = 0x1018
	regIntEnable   = 0x101c

	busSWR = 1 << 0

	intRI = 1 << 6

	statusRU  = 1 << 7
	statusAIS = 1 << 15
	statusNIS = 1 << 16

	opSR  = 1 << 1
	opST  = 1 << 13
	opFTF = 1 << 20
	opDFF = 1 << 24
)

// Bits of the first word of a receive descriptor.
const (
	descOwn = 1 << 31
	rxFS    = 1 << 9
	rxLS    = 1 << 8
)

// unmapped is an address at which no machine has memory.
const unmapped = 0xe000_0000

// regs are the registers for the test's own accesses, which nobody sees.
func (b *board) regs() (mmio.Region, error) { return b.dev.Device.Region(0) }

// descs are the descriptors of a list, four words each. The device and the driver change
// them: they are accessed by barrier.LoadOwn and barrier.StoreOwn.
type descs []uint32

// list is the list whose address is in a register, as long as the board's rings.
func (b *board) list(reg uint32) (descs, error) {
	r, err := b.regs()
	if err != nil {
		return nil, err
	}
	const size = 16
	mem, err := b.dev.at(uint64(r.Load32(reg)), size*b.slots)
	if err != nil {
		return nil, fmt.Errorf("the list of register %#x: %w", reg, err)
	}
	return unsafe.Slice((*uint32)(unsafe.Pointer(unsafe.SliceData(mem))), size/4*b.slots), nil
}

// word is word w of descriptor i; the number wraps at the end of the list.
func (d descs) word(i, w int) *uint32 { return &d[4*(i%(len(d)/4))+w] }
