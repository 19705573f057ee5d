package sim

import (
	"bytes"
	"testing"

	"github.com/gostmmac/gostmmac/barrier"
	rg "github.com/gostmmac/gostmmac/stmmac/internal/regs/gmacreg"
)

// FuzzGMACDescriptors: whatever stands in descriptors, chains and registers, the model
// neither panics nor hangs, and writes nothing outside mappings.
func FuzzGMACDescriptors(f *testing.F) {
	f.Add([]byte{0, 1, 2, 3}, uint8(4), uint8(0))
	f.Add(bytes.Repeat([]byte{0xff}, 200), uint8(1), uint8(3))
	f.Add(bytes.Repeat([]byte{0x01, 0x03, 0, 0x80, 0x40}, 100), uint8(16), uint8(0x55))
	f.Add([]byte("\x00\x03\x00\x00\x00\x00\x00\x80\xff\xff\x1f\x01\x10\x00\x00\x00\x20\x00\x00\x00\x0c\x05\x20\x00\x80\x00\x00\x00\x80\x00\x00\x00"), uint8(8), uint8(0x18))
	f.Fuzz(func(t *testing.T, data []byte, n, flags uint8) {
		bit := func(i int) bool { return flags>>i&1 != 0 }
		g := newGMACRig(t, func(g *gmacRig) {
			g.size = int(flags) * 8
			if bit(1) {
				g.operation &^= rg.DFF
			}
			g.chain = bit(2)
		}, withRing(int(n)%16+1), withConfig(func(c *Config) {
			c.BusBytes = 4 << (flags % 3)
			if bit(3) {
				c.Profile = Linux
			}
			c.NoAudit = bit(4)
			c.Faults = Faults{WholeBusWords: bit(5), ScribbleWriteBack: bit(6), MiddleLength: MiddleLength(flags % 4),
				Overflow: Overflow{Mode: OverflowMode(flags % 4), Every: uint64(flags%5) + 1, After: 2}}
		}))
		g.open()
		mem, iova := newGuardedPage(t, g.d)
		next := func() uint32 { return nextWord(&data) }
		for i := 0; len(data) > 0 && i < 400; i++ {
			v := next()
			list, base := g.rxRing, g.rxBase
			if v&1 != 0 {
				list, base = g.txRing, g.txBase
			}
			switch v >> 1 & 7 {
			case 0, 1, 2: // a descriptor, mostly with addresses that are near a mapping
				w := [4]uint32{next(), next(), next(), next()}
				if v&0x100 != 0 {
					w[2] = uint32(iova) + w[2]%8192 - 2048
					w[3] = uint32(iova) + w[3]%8192 - 2048
				}
				if v&0x200 != 0 {
					w[0] |= gmacOwn
				}
				if v&0x400 != 0 { // a chain through the list
					w[1] |= gmacChain
					w[3] = uint32(base) + w[3]%uint32(len(list)+32)
				}
				d := g.word(list, int(v>>16))
				d[1], d[2], d[3] = w[1], w[2], w[3]
				barrier.DMAWrite()
				barrier.StoreOwn(&d[0], w[0])
			case 3, 4:
				rg.TransmitPollDemand.Store(g.r, v)
				rg.ReceivePollDemand.Store(g.r, v)
			case 5: // any register
				g.r.Store32(next()%g.r.Len()&^3, next())
			case 6: // frames of any length
				for range v >> 8 & 7 {
					g.w.rx = append(g.w.rx, Frame{Data: make([]byte, next()%17000), BadFCS: v&0x100000 != 0})
				}
			case 7:
				g.r.Load32(next() % g.r.Len() &^ 3)
				g.clock.Advance(1000)
			}
			if done := g.d.Step(4096); done > 4096 {
				t.Fatalf("%d units in a step of 4096", done)
			}
			g.w.tx = nil
		}
		mem.check(t)
	})
}
