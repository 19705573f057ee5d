package chips

import (
	"encoding/binary"
	"sync"
	"sync/atomic"

	"github.com/gostmmac/gostmmac/stmmac/sim"
	"github.com/gostmmac/gostmmac/vfio/vfiouser"
)

// Offsets in BAR 0 of the YT6801, and bits (dwmac-motorcomm.c).
const (
	ytEPHYCtrl   = 0x1004
	ytOOBWOLCtrl = 0x1010
	ytEFuseOp0   = 0x1500
	ytEFuseOp1   = 0x1504
	ytSysReset   = 0x152c
	ytBlock      = 0x2000 // where the block ends and the MAC begins

	ytEPHYRunning    = 1 << 0
	ytWOLDisabled    = 1 << 0
	ytEFuseStart     = 1 << 2
	ytEFuseAddrShift = 8 // eight bits
	ytEFuseDone      = 1 << 1
	ytEFuseDataShift = 24
	ytReleased       = 1 << 31

	ytEFuseRecords = 18     // bytes before the first record
	ytAddrLow      = 0x1520 // records: an offset of a register and its value
	ytAddrHigh     = 0x1524
)

// yt6801 is a Motorcomm YT6801: a GMAC5 behind a block of its own.
func yt6801() Chip {
	return Chip{
		Name: "yt6801", What: "Motorcomm YT6801, 1f0a:6801, a GMAC5 at 0x2000 of BAR 0",
		pci: vfiouser.Config{
			Name: "YT6801", Vendor: 0x1f0a, Device: 0x6801, SubVendor: 0x1f0a, SubDevice: 0x6801, Revision: 1, Class: 0x020000,
			BARs: [6]vfiouser.BAR{0: {Size: 0x10000}, 2: {Size: 0x1000}},
			MSI:  vfiouser.MSI{Vectors: 1, Maskable: true}, MSIX: vfiouser.MSIX{Vectors: 6, BAR: 2, PBA: 0x800},
			INTx: true, PM: true, PCIe: true,
		},
		sim: sim.Config{CSRClock: 25_000_000, HashBins: 64},
		csr: ytBlock,
		vector: func(l line) int {
			switch l.kind {
			case rxLine:
				return l.ch
			case txLine:
				return 4 + l.ch
			}
			return 5
		},
		block: func(k *Card) block { return &ytRegisters{card: k, regs: newMemory(ytBlock)} },
	}
}

// ytRegisters is the block of the YT6801.
type ytRegisters struct {
	card *Card
	held atomic.Bool // interrupts do not pass

	mu   sync.Mutex // guards what follows
	regs memory
}

func (y *ytRegisters) Len() uint32 { return ytBlock }

func (y *ytRegisters) quiet() bool { return y.held.Load() }

func (y *ytRegisters) reset() {
	y.mu.Lock()
	clear(y.regs)
	y.regs.set(ytSysReset, ytReleased)
	y.mu.Unlock()
	y.held.Store(true)
	y.card.model.SetClockGated(true) // the PHY is in reset
}

func (y *ytRegisters) Load32(off uint32) uint32 {
	if off&3 != 0 || off >= ytBlock {
		return 0
	}
	y.mu.Lock()
	defer y.mu.Unlock()
	return y.regs.get(off)
}

func (y *ytRegisters) Store32(off, v uint32) {
	if off&3 != 0 || off >= ytBlock {
		return
	}
	y.mu.Lock()
	y.regs.set(off, v)
	switch off {
	case ytEFuseOp0:
		if v&ytEFuseStart != 0 {
			data := y.fuse(uint8(v >> ytEFuseAddrShift))
			y.regs.set(ytEFuseOp1, uint32(data)<<ytEFuseDataShift|ytEFuseDone)
		}
	case ytOOBWOLCtrl:
		y.held.Store(v&ytWOLDisabled == 0)
	}
	y.mu.Unlock()
	switch off {
	case ytEPHYCtrl:
		y.card.model.SetClockGated(v&ytEPHYRunning == 0)
	case ytSysReset:
		if v&ytReleased == 0 {
			y.card.model.Reset()
			y.reset()
			y.mu.Lock()
			y.regs.set(ytSysReset, v)
			y.mu.Unlock()
		}
	}
}

// fuse is a byte of the eFuse: two records with the address of the MAC, and behind them
// none.
func (y *ytRegisters) fuse(at uint8) byte {
	a := y.card.opts.Addr
	var f [ytEFuseRecords + 2*6]byte
	record := func(n int, reg uint16, v uint32) {
		r := f[ytEFuseRecords+6*n:]
		binary.LittleEndian.PutUint16(r, reg)
		binary.LittleEndian.PutUint32(r[2:], v)
	}
	if a != [6]byte{} {
		record(0, ytAddrLow, binary.BigEndian.Uint32(a[2:]))
		record(1, ytAddrHigh, uint32(binary.BigEndian.Uint16(a[:])))
	}
	if int(at) >= len(f) {
		return 0
	}
	return f[at]
}
